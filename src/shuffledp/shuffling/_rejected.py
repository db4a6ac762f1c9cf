"""Values that a protocol rejects, counted over all batches and numbered by the rows of the whole column.

A protocol's error knows its own batch only. Here the first few of its ``examples`` get their row, and
its counts (``missing``, ``outside``) add up, so that one error in the end tells the whole story.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy.typing as npt

Result = TypeVar("Result")

EXAMPLES = 5


@dataclass(frozen=True)
class Rejected:
    """Values without a place in the domain: how many, and the first few as (row, value).

    ``cause`` is the protocol's own error, of which another one with the whole story is made."""

    missing: int
    outside: int
    examples: tuple[tuple[int, Any], ...]
    cause: ValueError = field(compare=False)
    note: str = ""

    def __add__(self, other: Rejected) -> Rejected:
        return Rejected(
            self.missing + other.missing,
            self.outside + other.outside,
            tuple(sorted(self.examples + other.examples, key=_row)[:EXAMPLES]),
            self.cause,
            self.note,
        )

    def error(self, rows: int) -> ValueError:
        """The protocol's kind of error, about all ``rows`` rows."""
        kind: Any = type(self.cause)
        error = kind(rows, self.missing, self.outside, list(self.examples))
        assert isinstance(error, ValueError)
        if self.note:
            error.add_note(self.note)
        return error


def attempt(
    function: Callable[[npt.NDArray[Any]], Result], batch: npt.NDArray[Any], first_row: int
) -> Result | Rejected:
    """``function(batch)``, or what it rejects; the batch's first row has the number ``first_row``."""
    try:
        return function(batch)
    except ValueError as error:
        if not hasattr(error, "examples"):
            raise
        told: Any = error
        examples = tuple((first_row + int(row), value) for row, value in told.examples)
        return Rejected(told.missing, told.outside, examples, error)


def _row(example: tuple[int, Any]) -> int:
    return example[0]
