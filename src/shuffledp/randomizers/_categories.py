"""What all randomizers of categories share: checked values in, checked reports out, in chunks.

Values are whole numbers in [0, k). Reports are NumPy arrays with one entry (or row) per user. Both
are worked on in pieces that fit a processor's cache, so memory beyond the arrays themselves does
not grow with the number of users. Words come from ``shuffledp._randomness.words``: secure unless a
generator is given.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from shuffledp import _validate
from shuffledp._certified.rounding import Floats
from shuffledp._randomness.words import Words, source
from shuffledp.facts import Facts

Integers = npt.NDArray[np.unsignedinteger[Any]]
Counts = npt.NDArray[np.int64]

CHUNK_WORDS = 1 << 15
"""Words drawn at once: 256 KiB."""


class NumberedReports(ABC):
    """Every report is one of the numbers 0, ..., outputs - 1."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """How many different reports there are."""

    @property
    def report_dtype(self) -> np.dtype[np.unsignedinteger[Any]]:
        """The smallest unsigned type that holds a report's numbers."""
        return smallest_unsigned(self.outputs - 1)

    @property
    def report_shape(self) -> tuple[int, ...]:
        """The shape of one report: () for a number, (width,) for a row of numbers."""
        return ()


class SeveralMessages(NumberedReports):
    """Several messages a person, each a number."""

    def facts(self) -> Facts:
        """Without a shuffler nothing is hidden: one person's messages reveal the input, or nearly."""
        return Facts.of_matrix([[1.0, 0.0], [0.0, 1.0]])


class CategoricalRandomizer(NumberedReports):
    """A local randomizer whose inputs are the categories 0, ..., k - 1.

    ``epsilon0``: the tight local epsilon of the probabilities that are really sampled, rounded up."""

    if TYPE_CHECKING:  # fields of frozen dataclasses

        @property
        def k(self) -> int: ...

        @property
        def epsilon0(self) -> float: ...

    @property
    @abstractmethod
    def total_variation(self) -> float:
        """The largest total variation distance between the reports of two inputs."""

    @property
    def outputs(self) -> int:
        return self.k

    def randomize(self, values: Any, *, rng: np.random.Generator | None = None) -> Any:
        """One report per value (one report for a single value).

        Secure and exact; ``rng`` makes it repeatable, for simulations only."""
        array = _validate.integers("values", values)
        words = source(rng)
        flat = array.reshape(-1)
        reports = np.empty((flat.size, *self.report_shape), dtype=self.report_dtype)
        for part in chunks(flat.size, self._words_per_value):
            chosen = _validate.below("values", flat[part], self.k, part.start)
            reports[part] = self._sample(chosen, words)
        return reports if array.ndim else reports[0]

    def support(self, reports: Any) -> Counts:
        """How many reports speak for each category; adds up over pieces of the reports."""
        return self._count(self._checked_reports(reports))

    @abstractmethod
    def estimate(self, support: Any, n: int) -> Floats:
        """Unbiased estimates of how many of n users hold each category."""

    @abstractmethod
    def variance(self, counts: Any, n: int) -> Floats:
        """The exact variance of each estimate when n users hold the categories ``counts`` times."""

    def likelihoods(self, reports: Any, values: Any) -> Floats:
        """How likely each report (a row) is on each of the values (columns), up to a factor of the row.

        What an audit weighs reports by: no guarantee rests on it."""
        held = _validate.below("values", np.atleast_1d(_validate.integers("values", values)), self.k)
        return self._likelihoods(self._checked_reports(reports), held.astype(np.int64))

    @abstractmethod
    def _likelihoods(self, reports: Integers, values: Counts) -> Floats:
        """``likelihoods`` of checked reports and values."""

    def concrete_inputs(self) -> tuple[Any, ...]:
        """What the differing user may hold, and all others, in the datasets of the concrete laws of its
        ``facts()``: (x, x', others) for each. Of a matrix there are none: its rows say it."""
        return ()

    @property
    def _words_per_value(self) -> int:
        """Working memory per value, in words: the size of a chunk follows from it."""
        return 1

    @abstractmethod
    def _sample(self, values: Integers, words: Words) -> Integers:
        """Reports of checked values."""

    def _checked_reports(self, reports: Any) -> Integers:
        """The reports as an array of the right shape, every one of them possible."""
        return checked_symbols(reports, self.outputs)

    def _count(self, reports: Integers) -> Counts:
        """``support`` of checked reports."""
        return histogram(reports, self.outputs)


def chunks(n: int, words_per_value: int) -> Iterator[slice]:
    """Slices of 0, ..., n - 1 that need about CHUNK_WORDS words each."""
    rows = max(1, CHUNK_WORDS // words_per_value)
    for start in range(0, n, rows):
        yield slice(start, min(start + rows, n))


def histogram(symbols: Integers, size: int) -> Counts:
    """How often each of 0, ..., size - 1 occurs, in pieces of at least ``size`` symbols."""
    total = np.zeros(size, dtype=np.int64)
    step = max(CHUNK_WORDS, size)
    for start in range(0, len(symbols), step):
        piece = symbols[start : start + step].astype(np.int64, copy=False)
        total += np.bincount(piece, minlength=size)
    return total


def checked_symbols(reports: Any, size: int) -> Integers:
    """Reports that are whole numbers in [0, size), one per user; a single one becomes an array."""
    return _validate.below("reports", np.atleast_1d(_validate.integers("reports", reports)), size)


def smallest_unsigned(most: int) -> np.dtype[np.unsignedinteger[Any]]:
    """The smallest unsigned type that holds ``most``."""
    return np.min_scalar_type(most)
