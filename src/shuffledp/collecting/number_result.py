"""The analyst's sum or mean: an unbiased number, its error bar, a privacy statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shuffledp.collecting._intervals import checked_confidence, quantile
from shuffledp.collecting.histogram_result import Interval
from shuffledp.collecting.statement import PrivacyStatement

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class NumberResult:
    """``value`` estimates the sum (or mean) of the n people's own numbers, which lies in ``ends``.

    ``standard_error`` is that of the randomization (rounding included): the people are who they are."""

    name: str
    value: float
    standard_error: float
    n: int
    ends: tuple[float, float]
    privacy: PrivacyStatement
    confidence: float = 0.95

    def __post_init__(self) -> None:
        checked_confidence(self.confidence)

    def interval(self, confidence: float | None = None) -> Interval:
        """A confidence interval of the true sum (or mean) of these n people.

        Normal, with a variance that in the mean is not below the true one: its coverage is
        ``confidence`` or more, up to the error of the normal approximation of a sum of n bounded
        reports."""
        level = checked_confidence(self.confidence if confidence is None else confidence)
        margin = quantile(level) * self.standard_error
        low, high = self.ends
        return Interval(
            min(max(self.value - margin, low), high), max(min(self.value + margin, high), low)
        )

    def plot(
        self, *, truth: float | None = None, confidence: float | None = None, ax: Axes | None = None
    ) -> Axes:
        """The number with its interval (needs matplotlib); ``truth``: the true one of made-up data."""
        from shuffledp.plotting._histograms import estimate

        return estimate(self, truth=truth, confidence=confidence, ax=ax)

    def to_pandas(self) -> Any:
        """A data frame of one row."""
        import pandas

        low, high = self.interval()
        row = {"value": self.value, "standard_error": self.standard_error}
        return pandas.DataFrame(row | {"lower": low, "upper": high, "n": self.n}, index=[self.name])

    def __str__(self) -> str:
        low, high = self.interval()
        return (
            f"{self.name}  {self.value:.6g}  (standard error {self.standard_error:.3g}, "
            f"{100 * self.confidence:g}% interval {low:.6g} .. {high:.6g})\n\n{self.privacy.text}"
        )
