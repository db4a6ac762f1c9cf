"""What the analyst gets of ordered data: people in ranges, quantiles, the whole distribution.

Everything is a sum of the consistent counts of small bins (least squares over all levels of the tree), whose
variance is known exactly for every histogram (Theorem T25). It is taken at the estimated one (it is linear
and quadratic in the counts, so that unbiased ones serve best), and never below that of any. Intervals are
normal. That of a quantile holds every bin that neither of two tests refuses: that too few people are up to
it, and that enough are before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import Floats
from shuffledp.collecting._intervals import quantile as normal_quantile
from shuffledp.collecting.result import (
    ONE_PERCENT,
    Estimate,
    HistogramResult,
    Interval,
    Tabular,
    lies,
    one_percent,
    project_to_simplex,
)
from shuffledp.collecting.statement import PrivacyStatement
from shuffledp.randomizers._categories import Counts
from shuffledp.randomizers.levels import LeveledResponse

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_AT_ONCE = 1 << 21  # speed and memory: entries of a matrix of sums
_ONE_ERROR = 0.6826894921370859  # the confidence of an interval of one standard error either way


@dataclass(frozen=True, eq=False)
class Distribution:
    """The bins between ``edges`` as ``support``, the tally of n reports, tells them.

    The j-th bin holds the numbers from edges[j] up to edges[j + 1], which belongs to the next; the last edge
    belongs to the last bin."""

    edges: Floats
    support: Counts
    n: int
    randomizer: LeveledResponse

    @cached_property
    def counts(self) -> Floats:
        """Unbiased and consistent: of each bin (they may be negative), n in all."""
        return self.randomizer.estimate(self.support, self.n)

    @cached_property
    def projected(self) -> Floats:
        """The nearest counts that are not negative."""
        return project_to_simplex(self.counts, float(self.n))

    @cached_property
    def sent(self) -> list[int]:
        """How many reports came of each level."""
        return [int(level.sum()) for level in self.randomizer.tree.levels(self.support)]

    def errors(self, sums: Any) -> Floats:
        """Standard errors of sums of bins, one row of coefficients each."""
        rows = max(1, _AT_ONCE // len(self.counts))
        parts = [
            self.randomizer.variance(self.counts, self.n, sums=sums[i : i + rows], sent=self.sent)
            for i in range(0, len(sums), rows)
        ]
        return np.sqrt(np.concatenate(parts))

    def reach(self, sums: Any) -> Floats:
        """How far one dishonest report can move each sum, to first order: it may choose level and node."""
        randomizer, weights = self.randomizer, self.randomizer.weights(self.sent)
        levels = randomizer.tree.totals(randomizer.tree.solve(weights, sums, total=0.0))
        found = np.zeros(len(sums))
        for level, came, _, gap in randomizer._settings(self.sent):
            if came:
                score = weights[level] * levels[level] / gap
                found = np.maximum(found, self.n / came * (score.max(axis=-1) - score.min(axis=-1)))
        return found

    def interval(self, sums: Any, confidence: float) -> Interval:
        """Normal, within [0, n]."""
        middle, margin = self.counts @ np.asarray(sums).T, normal_quantile(confidence) * self.errors(sums)
        return Interval(*(np.clip(end, 0.0, float(self.n)) for end in (middle - margin, middle + margin)))

    @cached_property
    def _below(self) -> Floats:
        """Coefficients of "up to the j-th bin", for all bins but the last."""
        return np.tri(len(self.counts) - 1, len(self.counts))

    @cached_property
    def _below_errors(self) -> Floats:
        return self.errors(self._below)

    def cumulative(self, confidence: float) -> tuple[Floats, Floats, Floats]:
        """How many people are below each inner edge: estimates, and the ends of their intervals."""
        middle, margin = np.cumsum(self.counts)[:-1], normal_quantile(confidence) * self._below_errors
        return middle, np.clip(middle - margin, 0.0, self.n), np.clip(middle + margin, 0.0, self.n)

    def place(self, people: Any) -> Floats:
        """The number up to which so many people are, evenly spread within bins.

        Where noise makes fewer people of more bins, half way between the least rising curve above the
        cumulative counts and the largest one below."""
        grown = np.clip(np.concatenate([[0.0], np.cumsum(self.counts)]), 0.0, float(self.n))
        above, below = np.maximum.accumulate(grown), np.minimum.accumulate(grown[::-1])[::-1]
        return rising(0.5 * (above + below), self.edges, people)

    def quantile_interval(self, share: float, confidence: float) -> tuple[float, float]:
        """Numbers between which the true quantile lies: the least one that share n people do not exceed."""
        people = share * self.n
        middle = np.cumsum(self.counts)[:-1]
        margin = normal_quantile(confidence) * self._below_errors
        enough = np.append(middle + margin >= people, True)  # up to this bin there may be enough people
        before = np.insert(middle - margin < people, 0, True)  # and before it, too few
        held = np.flatnonzero(enough & before)
        if not held.size:  # noise that contradicts itself, between two bins
            held = np.array([int(np.argmin(np.abs(middle - people)))])
        return float(self.edges[held[0]]), float(self.edges[held[-1] + 1])


@dataclass(frozen=True, eq=False, kw_only=True)
class RangeResult(HistogramResult):
    """People in ranges: ``result["[18, 30)"]``, ``between(18, 30)``, ``quantile(0.5)``.

    Consistent: ranges that make up another one add up to it."""

    distribution: Distribution
    sums: Floats

    @property
    def counts(self) -> Floats:
        """Unbiased estimates of how many people are in each range (they may be negative)."""
        return np.asarray(self.sums @ self.distribution.counts)

    @property
    def standard_errors(self) -> Floats:
        """Of ``counts``: from the exact variance, at the estimated distribution."""
        return self.distribution.errors(self.sums)

    def interval(self, confidence: float | None = None) -> Interval:
        """Confidence intervals of the true numbers of people, one per range: normal."""
        return self.distribution.interval(self.sums, self.level(confidence))

    def projected(self) -> Floats:
        """Of the nearest distribution without negative counts: not unbiased."""
        return np.asarray(self.sums @ self.distribution.projected)

    def poisoning(self, m: int) -> Floats:
        """How far m dishonest reports can move each of ``counts`` (to first order in m)."""
        return _validate.count("m", m, least=0, most=self.n) * self.distribution.reach(self.sums)

    def between(self, low: float, high: float, confidence: float | None = None) -> Estimate:
        """The people from ``low`` up to ``high`` (two edges of bins), asked for or not."""
        return between(self.distribution, low, high, self.level(confidence))

    def quantile(self, share: float, confidence: float | None = None) -> Quantile:
        """The number that a ``share`` of the people do not exceed."""
        return quantile(self.distribution, share, self.level(confidence))


@dataclass(frozen=True)
class Quantile:
    """``value`` is about the least number that a ``share`` of the people do not exceed.

    The true one lies from ``lower`` to ``upper`` with the confidence asked for. ``standard_error``: half the
    length of the interval that holds it as often as one standard error would."""

    share: float
    value: float
    standard_error: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class QuantileResult(Tabular):
    """Quantiles, one row each; ``quantile(0.9)`` and ``between(18, 30)`` for others."""

    shares: tuple[float, ...]
    distribution: Distribution
    privacy: PrivacyStatement
    confidence: float = 0.95

    @property
    def n(self) -> int:  # type: ignore[override]
        """The people who answered."""
        return self.distribution.n

    def quantile(self, share: float, confidence: float | None = None) -> Quantile:
        """The number that a ``share`` of the people do not exceed."""
        return quantile(self.distribution, share, self.level(confidence))

    def between(self, low: float, high: float, confidence: float | None = None) -> Estimate:
        """The people from ``low`` up to ``high``, two edges of bins."""
        return between(self.distribution, low, high, self.level(confidence))

    def quantiles(self, confidence: float | None = None) -> list[Quantile]:
        """Those that were asked for."""
        return [self.quantile(share, confidence) for share in self.shares]

    def poisoning(self, m: int) -> Floats:
        """How far m dishonest reports can move each quantile (to first order in m)."""
        moved = _validate.count("m", m, least=0, most=self.n) * self.distribution.reach(
            self.distribution._below
        )
        far = float(moved.max())
        people = np.array(self.shares) * self.n
        places = [self.distribution.place(people + shift) for shift in (-far, 0.0, far)]
        return np.maximum(places[1] - places[0], places[2] - places[1])

    def plot(self, *, truth: Any = None, confidence: float | None = None, ax: Axes | None = None) -> Axes:
        """The share of people below each number, and the quantiles (needs matplotlib)."""
        from shuffledp.plotting._rows import cumulative

        return cumulative(self, truth=truth, confidence=confidence, ax=ax)

    def columns(self, confidence: float | None = None) -> dict[str, list[Any]]:
        """One row per quantile."""
        found = self.quantiles(confidence)
        return {
            "quantile": list(self.shares),
            "value": [each.value for each in found],
            "standard_error": [each.standard_error for each in found],
            ONE_PERCENT: self.poisoning(one_percent(self.n)).tolist(),
            "lower": [each.lower for each in found],
            "upper": [each.upper for each in found],
        }

    def __len__(self) -> int:
        return len(self.shares)

    def __str__(self) -> str:
        share = f"{100 * self.confidence:g}% interval"
        lines = [f"{'quantile':>8}  {'value':>12}  {share:>27}"]
        for each in self.quantiles():
            lines.append(f"{each.share:>8g}  {each.value:12.6g}  {each.lower:12.6g} .. {each.upper:11.6g}")
        return "\n".join([*lines, lies(self.n), "", self.privacy.text])


def quantile(distribution: Distribution, share: float, confidence: float) -> Quantile:
    """One quantile, with its interval."""
    part = checked_share(share)
    low, high = distribution.quantile_interval(part, confidence)
    near = distribution.quantile_interval(part, _ONE_ERROR)
    value = float(np.clip(distribution.place(part * distribution.n), low, high))
    return Quantile(part, value, 0.5 * (near[1] - near[0]), low, high)


def between(distribution: Distribution, low: float, high: float, confidence: float) -> Estimate:
    """The people of one range."""
    first, last = bins_between(distribution.edges, low, high)
    row = np.zeros((1, len(distribution.counts)))
    row[0, first:last] = 1.0
    lower, upper = distribution.interval(row, confidence)
    count, error = row @ distribution.counts, distribution.errors(row)
    return Estimate(
        range_name(distribution.edges, first, last), *(float(x[0]) for x in (count, error, lower, upper))
    )


def rising(grown: Floats, edges: Floats, people: Any) -> Floats:
    """Where a curve that never falls, known at the edges, reaches ``people`` first."""
    _, first = np.unique(grown, return_index=True)  # a flat piece: its beginning
    return np.asarray(np.interp(people, grown[first], edges[first]))


def checked_share(share: Any) -> float:
    """Of a quantile: inside (0, 1)."""
    part = _validate.probability("quantile", share, positive=True)
    if part == 1.0:
        raise ValueError(f"quantile must be in (0, 1), got {share!r}")
    return part


def bins_between(edges: Floats, low: Any, high: Any) -> tuple[int, int]:
    """The bins from one edge to another: first, and behind the last."""
    found = []
    for name, value in (("low", low), ("high", high)):
        number = _validate.finite(name, value)
        place = int(np.argmin(np.abs(edges - number)))
        if abs(edges[place] - number) > 1e-9 * (edges[-1] - edges[0]):
            near = edges[max(0, place - 1) : place + 2].tolist()
            raise ValueError(f"{name} of a range must be an edge of bins, got {value!r}; near are {near}")
        found.append(place)
    if found[0] >= found[1]:
        raise ValueError(f"a range must go from a lower edge to a higher one, got {low!r} to {high!r}")
    return found[0], found[1]


def range_name(edges: Floats, first: int, last: int) -> str:
    """[low, high), or [low, high] at the end.

    >>> range_name(np.array([0.0, 10.0, 20.0]), 0, 1), range_name(np.array([0.0, 10.0, 20.0]), 0, 2)
    ('[0, 10)', '[0, 20]')
    """
    return f"[{edges[first]:g}, {edges[last]:g}{')' if last < len(edges) - 1 else ']'}"
