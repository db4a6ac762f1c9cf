"""Values that a protocol rejects, counted over all batches and numbered by the rows of the whole column.

A protocol's DomainError knows its own batch only. Here the first few of its ``examples`` get their row,
and its counts (``missing``, ``outside``) add up, so that one error in the end tells the whole story.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy.typing as npt

from shuffledp.errors import DomainError

Result = TypeVar("Result")

EXAMPLES = 5


@dataclass(frozen=True)
class Rejected:
    """Values without a place in the domain: how many, and the first few as (row, value)."""

    missing: int
    outside: int
    examples: tuple[tuple[int, Any], ...]
    note: str = ""

    def __add__(self, other: Rejected) -> Rejected:
        return Rejected(
            self.missing + other.missing,
            self.outside + other.outside,
            tuple(sorted(self.examples + other.examples, key=_row)[:EXAMPLES]),
            self.note,
        )

    def error(self, rows: int) -> DomainError:
        """The error about all ``rows`` rows."""
        error = DomainError(rows, self.missing, self.outside, self.examples)
        if self.note:
            error.add_note(self.note)
        return error


def attempt(
    function: Callable[[npt.NDArray[Any]], Result], batch: npt.NDArray[Any], first_row: int
) -> Result | Rejected:
    """``function(batch)``, or what it rejects; the batch's first row has the number ``first_row``."""
    try:
        return function(batch)
    except DomainError as error:
        examples = tuple((first_row + int(row), value) for row, value in error.examples)
        return Rejected(error.missing, error.outside, examples)


def _row(example: tuple[int, Any]) -> int:
    return example[0]
