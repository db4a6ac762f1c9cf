"""Frequency oracles: every report supports some categories, its own one more often than others.

With p = P(a report supports its own category) and q = P(it supports a given other one),

    estimate = (support - n q) / (p - q),
    variance = (c p (1 - p) + (n - c) q (1 - q)) / (p - q)^2    for a category of true count c.

Estimates are unbiased, and the variance is exact: whether different users' reports support a
category are independent events. p and q are those of the integer probabilities really sampled.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from shuffledp import _validate
from shuffledp._certified.rounding import Floats, up
from shuffledp.facts import AmplificationLaw, Blanket, Facts, enclosed
from shuffledp.randomizers._categories import CategoricalRandomizer, Counts, Integers, chunks

Bits = npt.NDArray[np.bool_]


@runtime_checkable
class FrequencyOracle(Protocol):
    """What a survey wants of a randomizer of the categories 0, ..., k - 1, whoever wrote it.

    The accountant sees ``facts()`` only; clients run ``randomize``, the analyst the rest. ``support``
    is the tally of reports: whole numbers that add up over pieces of the reports, of at most their
    number each, and all that ``estimate`` needs. ``report_dtype`` and ``report_shape`` are those of one
    report.

    Two more members are used where there are some. ``support_probability``, (p, q): every report supports
    its own category with probability p and any given other one with probability q, independently of
    other reports; then intervals of small counts are exact (else they are normal). ``support_size``: how
    many entries of the tally every report adds to; then a tally of another sum is refused."""

    @property
    def k(self) -> int: ...
    @property
    def report_dtype(self) -> np.dtype[Any]: ...
    @property
    def report_shape(self) -> tuple[int, ...]: ...
    def facts(self) -> Facts: ...
    def randomize(self, values: Any, *, rng: np.random.Generator | None = None) -> Any: ...
    def support(self, reports: Any) -> Any: ...
    def estimate(self, support: Any, n: int) -> Any: ...
    def variance(self, counts: Any, n: int) -> Any: ...


def two_probabilities(oracle: FrequencyOracle) -> tuple[float, float] | None:
    """Its ``support_probability``, if it has one."""
    return getattr(oracle, "support_probability", None)


def exact_law(types: Sequence[tuple[Fraction, Fraction, Fraction]]) -> AmplificationLaw:
    """From exact (own, other, clone), type by type."""
    own, other, clone = ([row[part] for row in types] for part in range(3))
    gap = tuple(float(u - v) for u, v in zip(own, other, strict=True))
    return AmplificationLaw(tuple(map(float, own)), tuple(map(float, other)), tuple(map(float, clone)), gap)


class FrequencyRandomizer(CategoricalRandomizer):
    """A randomizer of categories with one law for all pairs and two support probabilities."""

    MOST_EPSILON0: ClassVar[float] = _validate.MAX_SAMPLED_EPSILON0

    @abstractmethod
    def law(self) -> AmplificationLaw:
        """The law of the amplification variable, for the worst ordered pair of inputs."""

    @abstractmethod
    def _support_fractions(self) -> tuple[Fraction, Fraction]:
        """(p, q) exactly."""

    def facts(self) -> Facts:
        """The law, and the datasets where all others hold a third category, or x."""
        law, third = self.law(), self.third_law()
        concrete = (law.among(law.own),) if third is None else (third, law.among(law.own))
        return Facts(
            enclosed(self.epsilon0),
            total_variation=self.total_variation,
            above=(law,),
            concrete=concrete,
            crowds=self._crowds(),
            common=law.gamma,
            blanket=self._shared(),
        )

    def concrete_inputs(self) -> tuple[Any, ...]:
        """0 against 1, where all others hold 2, or 0: pairs are alike, and 2 is what third laws are of."""
        apart = ((0, 1, 2),) if len(self.facts().concrete) > 1 else ()
        return (*apart, (0, 1, 0))

    def _likelihoods(self, reports: Integers, values: Counts) -> Floats:
        """A report is e^epsilon0 times as likely on a value that it supports."""
        return np.where(self._supports(reports, values), 1.0, math.exp(-self.epsilon0))

    def _supports(self, reports: Integers, values: Counts) -> Bits:
        """Whether each report supports each of the values."""
        tallies = [self._count(reports[i : i + 1])[values] for i in range(len(reports))]
        return np.array(tallies, dtype=np.bool_).reshape(len(reports), values.size)

    def _shared(self) -> Blanket | None:
        found, watched = self.blanket(), self._watched()
        return found if found is None or watched is None else replace(found, watched=exact_law(watched))

    def _crowds(self) -> tuple[AmplificationLaw, ...]:
        """The laws of all triples of categories, where they are known (``Facts.crowds``)."""
        return ()

    def blanket(self) -> Blanket | None:
        """The uniform part of every report, where reports of another epsilon0 are of the same kind."""
        return None

    @property
    def total_variation(self) -> float:
        """Total variation distance between the reports of two inputs, rounded up."""
        apart = math.fsum(max(gap, 0.0) for gap in self.law().gap)
        return min(1.0, up(apart, operations=2, tiny=0.0))

    def _three_categories(self) -> tuple[Fraction, tuple[int, int, int, int]] | None:
        """(ratio, base masses): how reports look to somebody who watches three categories.

        A report's probability is its base mass times the ratio, e^epsilon0 exactly, if it supports the
        own category, up to a factor; the masses are those of reports that support 0, 1, 2 or all of
        the three, in one way each. None where the three are not alike, or there are fewer."""
        return None

    def third_law(self) -> AmplificationLaw | None:
        """The law with ``clone`` the report of a user who holds a third category (None if unknown).

        What one concrete dataset shows to somebody who looks at three categories only."""
        found = self._watched()
        return None if found is None else AmplificationLaw.merged(found)

    def _watched(self) -> list[tuple[Fraction, Fraction, Fraction]] | None:
        """(x, x', third) of every pattern of support of the three, in one order."""
        found = self._three_categories()
        if found is None:
            return None
        ratio, masses = found
        powers = (Fraction(1), ratio)
        patterns = [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)]
        total = sum(masses[sum(pattern)] * powers[pattern[0]] for pattern in patterns)
        types = []
        for a, b, c in patterns:
            unit = masses[a + b + c] / Fraction(total)
            types.append((unit * powers[a], unit * powers[b], unit * powers[c]))
        return types

    @property
    def support_size(self) -> int | None:
        """How many categories every report supports; None if that differs."""
        return None

    @property
    def support_probability(self) -> tuple[float, float]:
        """(p, q): that a report supports its own category, or a given other one."""
        p, q = self._support_fractions()
        return float(p), float(q)

    def estimate(self, support: Any, n: int) -> Floats:
        users = _validate.count("n", n)
        seen = _validate.counts("support", support, self.k, users)
        p, q = self._support_fractions()
        return np.asarray((seen - float(users * q)) / self._gap(p, q))

    def variance(self, counts: Any, n: int) -> Floats:
        users = _validate.count("n", n)
        held = _validate.counts("counts", counts, self.k, users)
        p, q = self._support_fractions()
        own, other = float(p * (1 - p)), float(q * (1 - q))
        return np.asarray((held * own + (users - held) * other) / self._gap(p, q) ** 2)

    def _gap(self, p: Fraction, q: Fraction) -> float:
        if p == q:
            raise ValueError(f"reports of {self!r} do not depend on the values: nothing to estimate")
        return float(p - q)


class SetRandomizer(FrequencyRandomizer):
    """Every report is a set of categories: row of ceil(k / 8) bytes. It supports those it contains."""

    def _crowds(self) -> tuple[AmplificationLaw, ...]:
        """Categories are alike, and the likelihood ratios of three of them know no other."""
        law, third = self.law(), self.third_law()
        crowds = (law.among(law.own), law.among(law.other))
        return crowds if third is None else (third, *crowds)

    @property
    def _words_per_value(self) -> int:
        return self.k

    @property
    def report_dtype(self) -> np.dtype[np.unsignedinteger[Any]]:
        """Bytes."""
        return np.dtype(np.uint8)

    @property
    def report_shape(self) -> tuple[int, ...]:
        """ceil(k / 8) bytes."""
        return (-(-self.k // 8),)

    def _checked_reports(self, reports: Any) -> Integers:
        array = np.asarray(reports)
        if array.dtype != np.uint8:
            raise TypeError(f"reports must be packed bits of dtype uint8, got dtype {array.dtype}")
        rows = array[None] if array.ndim == 1 else array
        (width,) = self.report_shape
        if rows.ndim != 2 or rows.shape[1] != width:
            raise ValueError(f"reports must have shape (n, {width}) for k = {self.k}, got {array.shape}")
        wrong = np.flatnonzero(~self.possible(rows))
        if wrong.size:
            raise ValueError(
                f"reports must be {self._sets}, got {wrong.size} others, the first at reports[{wrong[0]}]"
            )
        return rows

    @property
    def _sets(self) -> str:
        return f"sets of the categories 0 to {self.k - 1}"

    def possible(self, rows: Integers) -> Bits:
        """Which rows of bytes can be sent: those without bits beyond the last category."""
        used = np.uint8(self.k - 8 * (self.report_shape[0] - 1))
        return (rows[:, -1] >> used) == 0 if used < 8 else np.ones(len(rows), dtype=np.bool_)

    def _supports(self, reports: Integers, values: Counts) -> Bits:
        return np.asarray((reports[:, values // 8] >> (values % 8).astype(np.uint8)) % 2 == 1)

    def _count(self, reports: Integers) -> Counts:
        total = np.zeros(self.k, dtype=np.int64)
        for part in chunks(len(reports), *self.report_shape):
            total += unpacked(reports[part], self.k).sum(axis=0, dtype=np.int64)
        return total


def packed(bits: Bits) -> Integers:
    """Rows of bits as rows of bytes."""
    return np.packbits(bits, axis=1, bitorder="little")


def unpacked(reports: Integers, k: int) -> npt.NDArray[np.uint8]:
    """Rows of bytes as rows of k zeros and ones."""
    return np.unpackbits(reports, axis=1, count=k, bitorder="little")
