"""Searches that ask certified curves at some points, and go on from what they hear.

A search is a generator of questions. Of many searches side by side, questions about sums of few types are
answered in one table, which takes a fraction of the time; whatever cannot be is answered by itself."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from shuffledp._certified.rounding import TINY, Floats
from shuffledp._progress import working
from shuffledp.accounting._curves.combined import BestProfile
from shuffledp.accounting._curves.law_sum import LawRows
from shuffledp.accounting._curves.profile import PrivacyProfile, SupportingLines
from shuffledp.errors import NoCertificateError

_ROWS_AT_ONCE = 128  # speed

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Asked:
    """Lines below a curve, or ``both`` sides."""

    curve: PrivacyProfile
    epsilon: Floats
    resolution: float
    both: bool = False

    def answer(self) -> Any:
        try:
            return (self.curve.both if self.both else self.curve.support)(self.epsilon, self.resolution)
        except NoCertificateError as error:
            return error
        finally:
            working()

    @property
    def rows(self) -> LawRows | None:
        """The same about the one curve that counts, if that is a sum of few types."""
        curve = self.curve
        if isinstance(curve, BestProfile) and curve.rivals == 1:
            curve = curve.profiles[0]
        return LawRows.of(curve, self.epsilon, self.both)


Search = Generator[Asked, Any, Answer]


def alone(search: Search[Answer]) -> Answer:
    """What one search finds."""
    found = together([search])[0]
    if isinstance(found, NoCertificateError):
        raise found
    return found


def together(searches: Sequence[Search[Answer]]) -> list[Answer | NoCertificateError]:
    """What each search finds, or why it does not."""
    found: list[Any] = [None] * len(searches)
    heard: dict[int, Any] = dict.fromkeys(range(len(searches)))
    while heard:
        asked: dict[int, Asked] = {}
        for place, answer in heard.items():
            search = searches[place]
            try:
                failed = isinstance(answer, NoCertificateError)
                asked[place] = search.throw(answer) if failed else search.send(answer)
            except StopIteration as done:
                found[place] = done.value
            except NoCertificateError as error:
                found[place] = error
        heard = _answered(asked) if len(asked) > 1 else {place: one.answer() for place, one in asked.items()}
    return found


def _answered(asked: dict[int, Asked]) -> dict[int, Any]:
    """Those of one kind in tables of some rows."""
    kinds: dict[Any, list[tuple[int, LawRows]]] = {}
    for place, question in asked.items():
        if (rows := question.rows) is not None:
            kinds.setdefault((question.resolution, question.both, *rows.kind), []).append((place, rows))
    answers: dict[int, Any] = {}
    for (resolution, both, *_), members in kinds.items():
        size = max(1, _ROWS_AT_ONCE // members[0][1].epsilon.size)
        for first in range(0, len(members), size):
            with suppress(NoCertificateError):
                answers.update(_in_a_table(members[first : first + size], resolution, both))
    return {place: answers[place] if place in answers else one.answer() for place, one in asked.items()}


def _in_a_table(members: list[tuple[int, LawRows]], resolution: float, both: bool) -> dict[int, Any]:
    table = LawRows.join([rows for _, rows in members])
    upper, lines = table.both(resolution) if both else (None, table.lines(resolution))
    answers: dict[int, Any] = {}
    ends = np.cumsum([rows.epsilon.size for _, rows in members]).tolist()
    for (place, rows), first, last in zip(members, [0, *ends], ends, strict=False):
        below = SupportingLines(rows.epsilon, *lines[:, first:last])
        if upper is None:
            answers[place] = below
        elif upper[first:last].min() > 2.0 * TINY:
            answers[place] = upper[first:last], below
    return answers
