"""The share of people below each number, with its band, and the quantiles with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shuffledp.plotting._rows import _legend, _title
from shuffledp.plotting._style import BLUE, HEIGHT, SKY, VERMILLION, shown_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from shuffledp.collecting.distribution import QuantileResult


def cumulative(
    result: QuantileResult, *, truth: Any = None, confidence: float | None = None, ax: Axes | None = None
) -> Axes:
    """A curve from 0 to 1 with pointwise intervals; ``truth``: the true quantiles, in the order asked for."""
    level = result.confidence if confidence is None else confidence
    found, quantiles = result.distribution, result.quantiles(level)
    ax = shown_axes(HEIGHT) if ax is None else ax
    share = np.array([found.cumulative(level)]).reshape(3, -1) / found.n
    middle, low, high = (np.concatenate([[0.0], row, [1.0]]) for row in share)
    ax.plot(found.edges, middle, color=BLUE, label="unbiased estimate")
    band = f"{100 * level:g}% interval"
    ax.fill_between(found.edges, low, high, color=SKY, alpha=0.4, linewidth=0, label=band)
    for each in quantiles:
        ax.plot([each.lower, each.upper], [each.share, each.share], color=BLUE, marker="|", linewidth=1.2)
        ax.plot([each.value], [each.share], "o", color=BLUE, markersize=5)
    if truth is not None:
        known = np.asarray(truth, dtype=np.float64)
        if known.shape != (len(quantiles),):
            raise ValueError(
                f"truth must have a number for each of {len(quantiles)} quantiles, got {known.shape}"
            )
        marks: dict[str, Any] = {
            "color": VERMILLION,
            "markerfacecolor": "none",
            "label": "truth (simulation)",
        }
        ax.plot(known, [each.share for each in quantiles], "D", linestyle="none", **marks)
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel("value (in the units of the data)")
    ax.set_ylabel("people up to it (share)")
    _title(ax, result)
    _legend(ax, 3)
    return ax
