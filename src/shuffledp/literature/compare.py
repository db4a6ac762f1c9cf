"""``compare``: every bound of the literature that applies, beside the certified ones.

>>> import shuffledp as sdp
>>> survey = sdp.Shuffled(sdp.KaryRandomizedResponse(k=4, epsilon0=2.0), n=1000)
>>> found = sdp.compare(survey, delta=1e-6)
>>> found.best.bound
'blanket'
>>> found["k-RR specific clones"].soundness
'unsound'
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

from shuffledp import _validate
from shuffledp.accounting.mechanism import Mechanism, Shuffled
from shuffledp.errors import NoCertificateError, OutsideRangeError
from shuffledp.literature import _as_published as as_published
from shuffledp.literature import _many_rounds as many_rounds
from shuffledp.literature import _single_round as single_round
from shuffledp.literature._case import Case
from shuffledp.literature._entry import OUTSIDE, SOUND, Entry
from shuffledp.literature._numerical import THEOREMS, versions
from shuffledp.literature.table import Comparison, Row

ENTRIES = (*single_round.ENTRIES, *many_rounds.ENTRIES, *as_published.ENTRIES)


def compare(
    mechanism: Mechanism, *, delta: float | None = None, epsilon: float | None = None
) -> Comparison:
    """Every bound of epsilon at ``delta``, or of delta at ``epsilon``, that applies to ``mechanism``.

    A theorem whose range does not hold answers what holds without it: epsilon0 for every round (or
    delta = 1), and says so. A bound that is unsound says why."""
    if not isinstance(mechanism, Mechanism):
        raise TypeError(f"mechanism must be a shuffledp Mechanism, got {mechanism!r}")
    if (delta is None) == (epsilon is None):
        raise ValueError(f"give one of delta and epsilon, got {delta=} and {epsilon=}")
    if delta is not None:
        given, level = "delta", _validate.probability("delta", delta, positive=True)
        quantity, lower = "epsilon", mechanism.lower_epsilon(delta=level)
    else:
        given, level = "epsilon", _validate.positive("epsilon", epsilon)
        quantity, lower = "delta", float(mechanism.lower_delta(epsilon=level))
    rows = [*_certified(mechanism, quantity, level), *_published(mechanism, quantity, level)]
    rows.sort(key=lambda row: row.value)
    return Comparison(repr(mechanism), quantity, given, level, lower, tuple(rows))


def _pure(mechanism: Mechanism) -> float:
    """The local epsilons of all rounds together."""
    kinds = [(part, count) for part, count in mechanism.parts if isinstance(part, Shuffled)]
    return sum(count * float(part.randomizer.epsilon0) for part, count in kinds)


def _timed(answer: Callable[[], float]) -> tuple[float, float]:
    start = time.perf_counter()
    value = answer()
    return value, time.perf_counter() - start


def _certified(mechanism: Mechanism, quantity: str, level: float) -> Iterator[Row]:
    for name, version in versions(mechanism).items():
        if quantity == "delta" and name == "strong" and level >= _pure(mechanism):
            continue  # only outcomes that give the input away are left: slow, and no news

        def answer(version: Mechanism = version) -> float:
            if quantity == "epsilon":
                return version.upper_epsilon(delta=level)
            return float(version.upper_delta(epsilon=level))

        try:
            value, seconds = _timed(answer)
        except NoCertificateError as error:
            yield Row(name, math.inf, SOUND, 0.0, THEOREMS[name], str(error))
        else:
            yield Row(name, value, SOUND, seconds, THEOREMS[name], "certified numerically")


def _published(mechanism: Mechanism, quantity: str, level: float) -> Iterator[Row]:
    case = Case.of(mechanism)
    if case is None:
        return
    if quantity == "delta" and level >= case.rounds * case.epsilon0:
        return  # delta is zero there without any theorem
    for entry in ENTRIES:
        if entry.applies(case) and getattr(entry, quantity) is not None:
            yield _row(entry, case, quantity, level)


def _row(entry: Entry, case: Case, quantity: str, level: float) -> Row:
    bound = getattr(entry, quantity)
    try:
        value, seconds = _timed(lambda: bound(case, level))
    except OutsideRangeError as error:
        value = case.rounds * case.epsilon0 if quantity == "epsilon" else 1.0
        return Row(entry.name, value, OUTSIDE, 0.0, entry.theorem, f"trivial: {error}")
    return Row(entry.name, value, entry.soundness, seconds, entry.theorem, entry.reason)
