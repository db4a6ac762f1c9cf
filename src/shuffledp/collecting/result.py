"""What the analyst gets: unbiased estimates, their error bars, a privacy statement.

>>> project_to_simplex([0.5, 0.7, -0.1], total=1.0)
array([0.4, 0.6, 0. ])
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shuffledp import _html, _validate
from shuffledp._certified.rounding import Floats
from shuffledp._digits import rounded_up, written
from shuffledp._files import as_csv
from shuffledp._lazy import needed
from shuffledp.collecting._intervals import (
    checked_confidence,
    count_intervals,
    laplace_margin,
    noisy_intervals,
    quantile,
)
from shuffledp.collecting.statement import PrivacyStatement
from shuffledp.randomizers._categories import Counts
from shuffledp.randomizers.frequency import FrequencyOracle, two_probabilities

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN, _SHOWN_IN_NOTEBOOKS = 20, 50  # rows


class Tabular(ABC):
    """A result as a table: rows, JSON, CSV, data frames, notebooks; n people and their privacy behind it."""

    n: int
    confidence: float
    privacy: PrivacyStatement

    def __post_init__(self) -> None:
        checked_confidence(self.confidence)

    def level(self, confidence: float | None) -> float:
        """The confidence that is asked for, or else the result's own."""
        return checked_confidence(self.confidence if confidence is None else confidence)

    @abstractmethod
    def columns(self, confidence: float | None = None) -> dict[str, list[Any]]:
        """Name -> values, one per row; the first column names the rows."""

    def rows(self, confidence: float | None = None) -> list[dict[str, Any]]:
        """One dictionary per row."""
        columns = self.columns(confidence)
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def to_dict(self, confidence: float | None = None) -> dict[str, Any]:
        """Estimates with their intervals, and the privacy statement, ready for JSON."""
        whole = {"n": self.n, "confidence": self.level(confidence), "estimates": self.rows(confidence)}
        return whole | {"privacy": self.privacy.to_dict()}

    def to_json(self, confidence: float | None = None) -> str:
        """``to_dict`` as text; a category that JSON does not know is written as text, what is infinite (one
        report alone protects nobody) as null."""
        whole = self.to_dict(confidence)
        whole["privacy"] = {k: None if v == math.inf else v for k, v in whole["privacy"].items()}
        return json.dumps(whole, indent=2, default=str, allow_nan=False)

    def to_csv(self, confidence: float | None = None) -> str:
        """The table as text; numbers are written in full."""
        columns = self.columns(confidence)
        return as_csv([list(columns), *zip(*columns.values(), strict=True)])

    def to_polars(self, confidence: float | None = None) -> Any:
        """A polars data frame (needs polars)."""
        return needed("polars").DataFrame(self.columns(confidence), strict=False)

    def to_pandas(self, confidence: float | None = None) -> Any:
        """A pandas data frame whose index is the first column (needs pandas)."""
        columns = self.columns(confidence)
        return needed("pandas").DataFrame(columns).set_index(next(iter(columns)))

    def _repr_html_(self) -> str:
        columns, level = self.columns(), f"{100 * self.confidence:g}%"
        names = [
            {"lower": f"{level} from", "upper": "to"}.get(name, name.replace("_", " ")) for name in columns
        ]
        cells = [
            [_cell(each) for each in row]
            for row in list(zip(*columns.values(), strict=True))[:_SHOWN_IN_NOTEBOOKS]
        ]
        more = len(next(iter(columns.values()))) - len(cells)
        rest = f"; {more:,} more rows" if more else ""
        guarantee = f"({rounded_up(self.privacy.epsilon)}, {written(self.privacy.delta)})-DP"
        head = f"{self.n:,} reports, {guarantee}{rest}"
        return _html.table(names, cells, head) + _html.text(self.privacy.text)


def _cell(value: Any) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else str(value)


ONE_PERCENT = "one_percent_dishonest"
"""The column of tables for ``poisoning`` of 1 % of the reports."""


class Interval(NamedTuple):
    """Lower and upper ends."""

    lower: Any
    upper: Any


@dataclass(frozen=True)
class Estimate:
    """One category: the estimated count, its standard error, the ends of its interval."""

    category: Any
    count: float
    standard_error: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class HistogramResult(Tabular):
    """What n reports say about those who sent them: ``result["cat"]``, ``for each in result``, ``top(3)``.

    ``support`` is the tally of the reports, ``privacy`` what may be said about their privacy. Intervals
    shown by default have the given ``confidence``."""

    categories: tuple[Any, ...]
    support: Counts
    n: int
    randomizer: FrequencyOracle
    privacy: PrivacyStatement
    confidence: float = 0.95

    @property
    def labels(self) -> list[str]:
        """The categories as they are printed and drawn."""
        return [str(category) for category in self.categories]

    @property
    def counts(self) -> Floats:
        """Unbiased estimates of how many people hold each category (they may be negative)."""
        return np.asarray(self.randomizer.estimate(self.support, self.n), dtype=np.float64)

    @property
    def frequencies(self) -> Floats:
        """``counts`` / n."""
        return self.counts / self.n

    @property
    def standard_errors(self) -> Floats:
        """Of ``counts``: the square root of the exact variance, taken at the estimated count.

        Where the variance of a count depends on all counts, it is taken at the nearest histogram."""
        if two_probabilities(self.randomizer) is None:
            plausible = whole_histogram(self.projected(), self.n)
        else:
            plausible = np.clip(self.counts, 0.0, float(self.n))
        variance = np.asarray(self.randomizer.variance(plausible, self.n), dtype=np.float64)
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))

    def interval(self, confidence: float | None = None) -> Interval:
        """Confidence intervals of the true counts of these n people, one per category.

        For their coverage see ``collecting._intervals``. For a randomizer without the two probabilities of
        support they are normal, with ``standard_errors``."""
        level = self.level(confidence)
        known = two_probabilities(self.randomizer)
        if known is not None:
            return Interval(*count_intervals(self.support, self.n, *known, level))
        added = getattr(self.randomizer, "added_noise", None)
        if added is not None:
            return Interval(*noisy_intervals(self.support, self.n, added(self.n), level))
        counts, margin = self.counts, quantile(level) * self.standard_errors
        ends = (np.clip(end, 0.0, float(self.n)) for end in (counts - margin, counts + margin))
        return Interval(*ends)

    def projected(self) -> Floats:
        """The nearest counts that are not negative and sum to n: a histogram, but not unbiased."""
        return project_to_simplex(self.counts, float(self.n))

    def poisoning(self, m: int) -> Floats:
        """How far m dishonest reports can move each of ``counts``, in place of honest ones or beside them.

        With p, q the probabilities of support a report adds between -q / (p - q) and (1 - q) / (p - q) to
        each estimate, so it is m / (p - q). No randomizer, threshold or budget lowers that."""
        liars = _validate.count("m", m, least=0, most=self.n)
        return np.asarray(liars * reach_of(self.randomizer, len(self.support)), dtype=np.float64)

    def plot(self, *, truth: Any = None, confidence: float | None = None, ax: Axes | None = None) -> Axes:
        """Counts with their intervals (needs matplotlib); ``truth``: true counts of made-up data."""
        from shuffledp.plotting._rows import histogram

        return histogram(self, truth=truth, confidence=confidence, ax=ax)

    def columns(self, confidence: float | None = None) -> dict[str, list[Any]]:
        """One row per category."""
        low, high = self.interval(confidence)
        numbers = {
            "count": self.counts,
            "standard_error": self.standard_errors,
            ONE_PERCENT: self.poisoning(one_percent(self.n)),
            "lower": low,
            "upper": high,
            "frequency": self.frequencies,
            "projected": self.projected(),
        }
        return {"category": list(self.categories)} | {
            name: column.tolist() for name, column in numbers.items()
        }

    def __len__(self) -> int:
        return len(self.categories)

    def __iter__(self) -> Iterator[Estimate]:
        low, high = self.interval()
        columns = (self.counts, self.standard_errors, low, high)
        return map(Estimate, self.categories, *(column.tolist() for column in columns))

    def __getitem__(self, category: Any) -> Estimate:
        """The estimate of one category, by its name."""
        if category not in self.categories:
            raise KeyError(
                f"no category {category!r}; there are {len(self)}, the first {self.categories[0]!r}"
            )
        place = self.categories.index(category)
        return next(each for i, each in enumerate(self) if i == place)

    def top(self, n: int) -> list[Estimate]:
        """The n largest estimates, the largest first."""
        return sorted(self, key=lambda each: -each.count)[: _validate.count("n", n)]

    def __str__(self) -> str:
        low, high = self.interval()
        width = max(8, *map(len, self.labels[:_SHOWN]))
        share = f"{100 * self.confidence:g}% interval"
        lines = [f"{'category':<{width}}  {'count':>12}  {'std. error':>10}  {'1% lies':>10}  {share:>27}"]
        moved = self.poisoning(one_percent(self.n))
        rows = zip(self.labels, self.counts, self.standard_errors, moved, low, high, strict=True)
        for category, count, error, far, a, b in list(rows)[:_SHOWN]:
            numbers = f"{count:12.1f}  {error:10.1f}  {far:10.1f}  {a:12.1f} .. {b:11.1f}"
            lines.append(f"{category:<{width}}  {numbers}")
        if len(self.categories) > _SHOWN:
            lines.append(f"... {len(self.categories) - _SHOWN} more categories")
        return "\n".join([*lines, *footnotes(self), "", self.privacy.text])


@dataclass(frozen=True)
class NumberResult(Tabular):
    """``value`` estimates the sum (or mean) of the n people's own numbers, which lies in ``ends``.

    ``standard_error`` is that of the randomization (rounding included): the people are who they are.
    ``reach``: how far one dishonest report can move the value. ``noise_scale``: of Laplace noise in it."""

    name: str
    value: float
    standard_error: float
    n: int
    ends: tuple[float, float]
    reach: float
    privacy: PrivacyStatement
    confidence: float = 0.95
    noise_scale: float = 0.0

    def poisoning(self, m: int) -> float:
        """How far m dishonest reports can move ``value``: in the place of honest ones or beside them."""
        return _validate.count("m", m, least=0, most=self.n) * self.reach

    def interval(self, confidence: float | None = None) -> Interval:
        """A confidence interval of the true sum (or mean) of these n people.

        Normal, with a variance that in the mean is not below the true one: its coverage is
        ``confidence`` or more, up to the error of the normal approximation of a sum of n bounded
        reports. With Laplace noise in shares (``noise_scale``): for the sum of that and a normal one."""
        level = self.level(confidence)
        margin = laplace_margin(level, self.noise_scale, self.standard_error)
        low, high = self.ends
        return Interval(min(max(self.value - margin, low), high), max(min(self.value + margin, high), low))

    def plot(
        self, *, truth: float | None = None, confidence: float | None = None, ax: Axes | None = None
    ) -> Axes:
        """The number with its interval (needs matplotlib); ``truth``: the true one of made-up data."""
        from shuffledp.plotting._rows import estimate

        return estimate(self, truth=truth, confidence=confidence, ax=ax)

    def __float__(self) -> float:
        return self.value

    def columns(self, confidence: float | None = None) -> dict[str, list[Any]]:
        """One row."""
        low, high = self.interval(confidence)
        row = {"quantity": self.name, "value": self.value, "standard_error": self.standard_error}
        row |= {ONE_PERCENT: self.poisoning(one_percent(self.n)), "lower": low, "upper": high, "n": self.n}
        return {name: [value] for name, value in row.items()}

    def __str__(self) -> str:
        low, high = self.interval()
        moved, share = self.poisoning(one_percent(self.n)), f"{100 * self.confidence:g}% interval"
        errors = f"standard error {self.standard_error:.3g}, 1% lies {moved:.3g}"
        places = max(0, 1 - math.floor(math.log10(self.standard_error))) if self.standard_error > 0.0 else 6
        shown, a, b = (f"{number:.{min(places, 12)}f}" for number in (self.value, low, high))
        head = f"{self.name}  {shown}  ({errors}, {share} {a} .. {b})"
        return "\n".join([head, *footnotes(self), "", self.privacy.text])


def one_percent(n: int) -> int:
    """The dishonest reports for which a printed result says how far they can move it: 1 %, rounded up."""
    return -(-n // 100)


def lies(n: int) -> str:
    """What the column beside the errors means."""
    few = one_percent(n)
    return f"1% lies: how far {few} dishonest report{'s' * (few > 1)} could move it (result.poisoning)"


def footnotes(result: Any) -> list[str]:
    """Also why an estimate may lie beyond its interval."""
    lines = [lies(result.n)]
    if not isinstance(result, HistogramResult | NumberResult):
        return lines
    estimates: Any = result.counts if isinstance(result, HistogramResult) else result.value
    low, high = result.interval()
    if np.any((estimates < low) | (estimates > high)):
        lines.append("Estimates are unbiased, and may lie beyond what is possible; intervals do not.")
    return lines


def reach_of(randomizer: FrequencyOracle, size: int) -> Any:
    """How far one report can move each estimate, given a tally of ``size`` entries."""
    known = two_probabilities(randomizer)
    if known is not None:
        return np.full(randomizer.k, 1.0 / (known[0] - known[1]))
    noise = getattr(randomizer, "added_noise", None)
    if noise is not None:  # each message supports a category or not
        return np.full(randomizer.k, getattr(randomizer, "messages", 1) / (1.0 - noise(1)[0]))
    each = np.array([np.asarray(randomizer.estimate(unit, 1)) for unit in np.eye(size, dtype=np.int64)])
    if getattr(randomizer, "support_size", None) == 1:  # a report is one entry of the tally
        least, most = each.min(axis=0), each.max(axis=0)
    else:  # any set of entries
        none = np.asarray(randomizer.estimate(np.zeros(size, dtype=np.int64), 1))
        least, most = (none + choose(each - none, 0.0).sum(axis=0) for choose in (np.minimum, np.maximum))
    messages = getattr(randomizer, "messages", 1)
    return messages * np.maximum(most - least, np.maximum(most, -least))


def project_to_simplex(values: Any, total: float = 1.0) -> Floats:
    """The point with entries >= 0 that sum to ``total`` nearest to ``values`` (Euclidean).

    Subtract one number from all values and set what becomes negative to zero; the number is found by
    sorting (Held, Wolfe, Crowder 1974). Never farther from a true histogram than ``values``, but biased."""
    mass = _validate.positive("total", total)
    point = np.asarray(values, dtype=np.float64)
    if point.ndim != 1 or point.size == 0 or not np.isfinite(point).all():
        raise ValueError(f"values must be finite numbers in one dimension, got {values!r}")
    falling = np.sort(point)[::-1]
    levels = (np.cumsum(falling) - mass) / np.arange(1, point.size + 1)
    # The largest number of entries that all stay above the level they imply.
    level = levels[np.flatnonzero(falling > levels)[-1]]
    return np.asarray(np.maximum(point - level, 0.0))


def whole_histogram(counts: Floats, n: int) -> Counts:
    """Whole numbers next to ``counts`` (not negative, of sum n up to rounding) that sum to n exactly."""
    below = np.floor(counts).astype(np.int64)
    order = np.argsort(below - counts, kind="stable")
    short = n - int(below.sum())
    below[order[: max(short, 0)]] += 1
    below[np.argmax(below)] += min(short, 0)
    return below
