"""The analyst's histogram: unbiased counts, error bars, a privacy statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shuffledp._certified.rounding import Floats
from shuffledp.collecting._intervals import checked_confidence, count_intervals
from shuffledp.collecting._simplex import project_to_simplex
from shuffledp.collecting.statement import PrivacyStatement
from shuffledp.randomizers._categories import Counts
from shuffledp.randomizers.frequency import FrequencyRandomizer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN = 20


class Interval(NamedTuple):
    """Lower and upper ends."""

    lower: Any
    upper: Any


@dataclass(frozen=True, eq=False)
class HistogramResult:
    """What n reports say about the people who sent them.

    ``support`` is the tally of the reports, ``privacy`` what may be said about their privacy. Intervals
    shown by default have the given ``confidence``."""

    categories: tuple[Any, ...]
    support: Counts
    n: int
    randomizer: FrequencyRandomizer
    privacy: PrivacyStatement
    confidence: float = 0.95

    def __post_init__(self) -> None:
        checked_confidence(self.confidence)

    @property
    def counts(self) -> Floats:
        """Unbiased estimates of how many people hold each category (they may be negative)."""
        return self.randomizer.estimate(self.support, self.n)

    @property
    def frequencies(self) -> Floats:
        """``counts`` / n."""
        return self.counts / self.n

    @property
    def standard_errors(self) -> Floats:
        """Of ``counts``: the square root of the exact variance, taken at the estimated count."""
        plausible = np.clip(self.counts, 0.0, float(self.n))
        return np.asarray(np.sqrt(self.randomizer.variance(plausible, self.n)))

    def interval(self, confidence: float | None = None) -> Interval:
        """Confidence intervals of the true counts of these n people, one per category.

        For their coverage see ``collecting._intervals``."""
        level = self.confidence if confidence is None else confidence
        p, q = self.randomizer.support_probability
        return Interval(*count_intervals(self.support, self.n, p, q, level))

    def projected(self) -> Floats:
        """The nearest counts that are not negative and sum to n: a histogram, but not unbiased."""
        return project_to_simplex(self.counts, float(self.n))

    def plot(
        self, *, truth: Any = None, confidence: float | None = None, ax: Axes | None = None
    ) -> Axes:
        """Counts with their intervals (needs matplotlib); ``truth``: true counts of made-up data."""
        from shuffledp.plotting._histograms import histogram

        return histogram(self, truth=truth, confidence=confidence, ax=ax)

    def to_pandas(self) -> Any:
        """A data frame, one row per category."""
        import pandas

        low, high = self.interval()
        columns = {
            "count": self.counts,
            "standard_error": self.standard_errors,
            "lower": low,
            "upper": high,
            "frequency": self.frequencies,
            "projected": self.projected(),
        }
        return pandas.DataFrame(columns, index=pandas.Index(self.categories, name="category"))

    def __str__(self) -> str:
        low, high = self.interval()
        width = max(8, *(len(str(c)) for c in self.categories[:_SHOWN]))
        share = f"{100 * self.confidence:g}% interval"
        lines = [f"{'category':<{width}}  {'count':>12}  {'std. error':>10}  {share:>27}"]
        rows = zip(self.categories, self.counts, self.standard_errors, low, high, strict=True)
        for category, count, error, a, b in list(rows)[:_SHOWN]:
            lines.append(
                f"{category!s:<{width}}  {count:12.1f}  {error:10.1f}  {a:12.1f} .. {b:11.1f}"
            )
        if len(self.categories) > _SHOWN:
            lines.append(f"... {len(self.categories) - _SHOWN} more categories")
        return "\n".join([*lines, "", self.privacy.text])
