"""Noise on a bounded interval: a fixed grid, whole-number weights, clamped reports.

An input in [low, high] is moved at random to one of its two neighbours among the levels + 1 grid points,
keeping its mean. Whole-number noise with weights out of 2^64 is added and the sum is clamped to [-pad, levels
+ pad]. So the randomizer is a finite matrix of whole numbers (``finite``): what is sampled is what is
analysed.

The rounding costs no privacy: for given clones the profile is jointly convex in the two inputs' laws, so
mixtures of grid points are never worse than the grid points themselves, and those are all in the matrix.
Where the noise is symmetric and falls off to both sides (it does in all subclasses), the two ends have the
largest total variation distance: laws of larger inputs are stochastically larger, and two of them cross once.

Where the noise falls off, f(0) >= f(1) >= ..., the amplification variable X of the two ends is above that of
all other pairs in the convex order, for every alpha >= 1 (T11, docs/proofs/noise-on-a-grid.md). The last
weight holds all beyond; it counts as if it were spread there.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from operator import mul
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from shuffledp import _validate
from shuffledp._certified.rounding import Floats, up
from shuffledp._randomness.tables import WeightTable
from shuffledp._randomness.uniform import WORD, log_rounded_up
from shuffledp._randomness.words import Uint64s, Words, source
from shuffledp._spans.of_grid import span_of_grid
from shuffledp._spans.span import Span
from shuffledp.facts import AmplificationLaw, Facts, Matrix, enclosed
from shuffledp.randomizers._categories import Integers, NumberedReports, checked_symbols, chunks, histogram
from shuffledp.randomizers.matrix import FiniteRandomizer

_FRACTION_BITS = 53


@dataclass(frozen=True, init=False)
class GridRandomizer(NumberedReports):
    """What randomizers of a bounded interval share.

    ``noise[d]`` is the weight of noise d and of -d, d = 0, ..., levels + pad; all together sum to 2^64.
    A report is the number of its grid point, counted from the lowest one that is reported."""

    MOST_EPSILON0: ClassVar[float] = _validate.MAX_SAMPLED_EPSILON0

    epsilon0: float
    low: float
    high: float
    levels: int
    pad: int = field(repr=False)
    noise: tuple[int, ...] = field(repr=False)

    @property
    def step(self) -> float:
        """The distance of neighbouring grid points."""
        return (self.high - self.low) / self.levels

    @property
    def outputs(self) -> int:
        return self.levels + 2 * self.pad + 1

    @cached_property
    def weights(self) -> Uint64s:
        """Row x, column y: the weight of report y at grid point x, out of 2^64."""
        return matrix_of_noise(self.noise, self.levels, self.pad)

    @cached_property
    def finite(self) -> FiniteRandomizer:
        """The grid points' matrix of realised probabilities: what is analysed."""
        return FiniteRandomizer(self.matrix)

    @cached_property
    def matrix(self) -> Floats:
        """``weights`` / 2^64."""
        return np.ldexp(self.weights.astype(np.float64), -64)

    @property
    def total_variation(self) -> float:
        """Total variation distance between the reports of the two ends, rounded up."""
        first, last = self.weights[0], self.weights[-1]
        apart = sum(int(u) - int(v) for u, v in zip(first, last, strict=True) if u > v)
        return min(1.0, up(apart / WORD, operations=2, tiny=0.0))

    @property
    def falls_off(self) -> bool:
        """Whether no weight of the noise is below the next one: the theorem of the module applies.

        The last weight holds all beyond. It passes if it can be spread there, in proportion to what an
        end holds: T(m + pad) / T(pad) f(pad) is then the weight that follows the last but one."""
        *inner, last = self.noise
        at_an_end = sum(self.noise[self.pad :])
        spread = bool(inner) and inner[-1] * at_an_end >= self.noise[self.pad] * last
        return all(a >= b for a, b in pairwise(inner)) and (spread or inner[-1:] >= [last])

    def law(self) -> AmplificationLaw:
        """The law of the amplification variable for the pair (low, high).

        It is the largest of all pairs where the noise ``falls_off`` (see module). Where it does not, the
        accountant takes all pairs of ``finite`` and compares them with this one at every epsilon
        (accounting._curves.stop_loss)."""
        first, last, least = self.weights[0], self.weights[-1], self.weights.min(axis=0)
        rows = zip(first.tolist(), last.tolist(), least.tolist(), strict=True)
        return AmplificationLaw.merged(
            (Fraction(u, WORD), Fraction(v, WORD), Fraction(c, WORD)) for u, v, c in rows
        )

    def facts(self) -> Facts:
        """The matrix; and where the theorem of the module applies, the law of the two ends."""
        above = (self.law(),) if self.falls_off else ()
        return Facts(
            enclosed(self.epsilon0),
            total_variation=self.total_variation,
            above=above,
            matrix=Matrix(self.matrix),
            span=self._span if self.falls_off else None,
        )

    @cached_property
    def _span(self) -> Span | None:
        """Few rows that span all grid points, where these are many."""
        return span_of_grid(self.matrix)

    @property
    @abstractmethod
    def positions(self) -> Floats:
        """What each report stands for, in grid steps from ``low``."""

    @cached_property
    def bias(self) -> float:
        """A bound of |E[decoded report] - value|, in units of the data, for every value.

        Computed from the whole-number weights; what 53 bits of the random rounding leave is added."""
        ratios = [float(place).as_integer_ratio() for place in self.positions]
        common = max(denominator for _, denominator in ratios)
        places = [numerator * (common // denominator) for numerator, denominator in ratios]
        worst = max(
            abs(sum(map(mul, row, places)) - x * WORD * common) for x, row in enumerate(self.weights.tolist())
        )
        rounded = float(Fraction(worst, WORD * common))
        return (rounded + (1 + self.levels) * 2.0**-51) * self.step

    def randomize(self, values: Any, *, rng: np.random.Generator | None = None) -> Any:
        """One report per value in [low, high] (one report for a single value)."""
        array = _validate.reals("values", values, self.low, self.high)
        words = source(rng)
        flat = array.reshape(-1)
        reports = np.empty(flat.size, dtype=self.report_dtype)
        for part in chunks(flat.size, 4):
            reports[part] = self._sample(flat[part], words)
        return reports if array.ndim else reports[0]

    @property
    def row_inputs(self) -> tuple[float, ...]:
        """The input of each row of the matrix: the grid points."""
        return tuple(np.linspace(self.low, self.high, self.levels + 1).tolist())

    def likelihoods(self, reports: Any, values: Any) -> Floats:
        """How likely each report (a row) is on each of the values (columns).

        What an audit weighs reports by: no guarantee rests on it."""
        below, share = self._rounding(np.atleast_1d(_validate.reals("values", values, self.low, self.high)))
        above = np.minimum(below + 1, self.levels)
        rows = (1.0 - share)[:, None] * self.matrix[below] + share[:, None] * self.matrix[above]
        return np.asarray(rows[:, checked_symbols(reports, self.outputs)].T)

    def decode(self, reports: Any) -> Floats:
        """One number per report, each with its user's value as its mean (up to ``bias``)."""
        return self._values[checked_symbols(reports, self.outputs)]

    def estimate(self, reports: Any) -> float:
        """The estimated sum of the users' values; adds up over pieces of the reports."""
        seen = histogram(checked_symbols(reports, self.outputs), self.outputs)
        return math.fsum(seen * self._values)

    def mean(self, reports: Any) -> float:
        """The estimated mean of the users' values."""
        n = np.size(reports)
        if n == 0:
            raise ValueError("reports must not be empty: there is no mean of nothing")
        return self.estimate(reports) / n

    def variance(self, values: Any) -> Floats:
        """The variance of one decoded report, for each value.

        Of a sum of reports it is the sum; rounding to the grid is included."""
        array = _validate.reals("values", values, self.low, self.high)
        below, share = self._rounding(array)
        above = np.minimum(below + 1, self.levels)
        mean, spread = self._moments
        mixed = (1.0 - share) * spread[below] + share * spread[above]
        return np.asarray((mixed + share * (1.0 - share) * (mean[above] - mean[below]) ** 2) * self.step**2)

    @property
    def _values(self) -> Floats:
        return np.asarray(self.low + self.positions * self.step)

    @cached_property
    def _moments(self) -> tuple[Floats, Floats]:
        """Mean and variance of a report's position, per grid point."""
        away = self.positions - np.arange(self.levels + 1.0)[:, None]
        drift = (self.matrix * away).sum(axis=1)
        spread = (self.matrix * away**2).sum(axis=1) - drift**2
        return drift + np.arange(self.levels + 1.0), spread

    def _rounding(self, values: Floats) -> tuple[npt.NDArray[np.intp], Floats]:
        """The grid point below, and the probability of taking the next one: a multiple of 2^-53."""
        place = np.clip((values - self.low) / (self.high - self.low) * self.levels, 0.0, self.levels)
        below = np.floor(place)
        share = np.ldexp(np.floor(np.ldexp(place - below, _FRACTION_BITS)), -_FRACTION_BITS)
        return below.astype(np.intp), share

    def _sample(self, values: Floats, words: Words) -> Integers:
        below, share = self._rounding(values)
        threshold = np.ldexp(share, _FRACTION_BITS).astype(np.uint64)
        up = words.draw(values.size) >> np.uint64(64 - _FRACTION_BITS) < threshold
        reach = self.levels + self.pad
        moved = below + up + self._table.sample(np.zeros(values.size, np.intp), words) - reach
        return np.asarray(np.clip(moved + self.pad, 0, self.outputs - 1), dtype=np.uint64)

    @cached_property
    def _table(self) -> WeightTable:
        """The noise -reach, ..., reach."""
        return WeightTable.of([(*self.noise[:0:-1], *self.noise)])


def interval(low: Any, high: Any) -> tuple[float, float]:
    """Two finite numbers in order, with a finite difference."""
    first, last = _validate.finite("low", low), _validate.finite("high", high)
    if not first < last or not math.isfinite(last - first):
        raise ValueError(f"low must be below high (by a finite amount), got {low=!r} and {high=!r}")
    return first, last


def matrix_of_noise(noise: tuple[int, ...], levels: int, pad: int) -> Uint64s:
    """Rows of weights at the grid points 0, ..., levels for reports clamped to [-pad, levels + pad]."""
    weights = np.array(noise, dtype=np.uint64)
    away = np.arange(-pad, levels + pad + 1) - np.arange(levels + 1)[:, None]
    rows = weights[np.abs(away)]
    beyond = np.cumsum(weights[::-1], dtype=np.uint64)[::-1]  # of noise d, d + 1, ...
    # Only noise 0 and more from the last grid point: with pad = 0 that is the end report's weight.
    rows[:, -1] = beyond[levels + pad - np.arange(levels + 1)]
    rows[:, 0] = beyond[pad + np.arange(levels + 1)]
    return np.asarray(rows)


def tight_epsilon0(weights: Uint64s) -> Fraction:
    """e^epsilon0 of rows of positive weights: the largest ratio in a column."""
    top, bottom = weights.max(axis=0), weights.min(axis=0)
    return max(Fraction(int(t), int(b)) for t, b in zip(top, bottom, strict=True))


def log_of(ratio: Fraction, asked: float = math.inf) -> float:
    """ln(ratio), rounded up, but not above what is known to hold."""
    return min(asked, log_rounded_up(ratio))
