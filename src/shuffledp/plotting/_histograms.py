"""Estimates with their confidence intervals, and the truth beside them where it is known (simulations).

histogram(result)                                  counts of a HistogramResult, an error bar each
histogram(result, truth=[...])                     with the true counts: of made-up data only
estimate({"Monday": mean1, "Tuesday": mean2})      sums or means, one above the other
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from shuffledp._certified.rounding import Floats
from shuffledp.plotting._style import BLACK, BLUE, SKY, VERMILLION, shown_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from shuffledp.collecting.result import HistogramResult, NumberResult

Whiskers = tuple[Floats, Floats]

NAMED = 30
"""With more categories than this their names would not be legible: they are numbered."""
_LONGEST_NAME = 28
_ESTIMATE = "unbiased estimate"
_WHISKER: dict[str, Any] = {"linestyle": "none", "color": BLACK, "elinewidth": 1.2, "capsize": 3}
_TRUTH: dict[str, Any] = {
    "linestyle": "none",
    "marker": "D",
    "markersize": 6,
    "color": VERMILLION,
    "markerfacecolor": "none",
    "label": "truth (simulation)",
}


def histogram(
    result: HistogramResult,
    *,
    truth: Any = None,
    confidence: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """A bar for each category, with its interval; ``truth``: the true counts, in the same order.

    Up to 30 categories are named, one below the other. More are numbered from left to right."""
    counts, level = result.counts, result.confidence if confidence is None else confidence
    low, high = result.interval(level)
    names = [_short(str(category)) for category in result.categories]
    known = None if truth is None else _checked_truth(truth, len(names))
    ax = shown_axes(height_of(len(names))) if ax is None else ax
    (_named if len(names) <= NAMED else _numbered)(ax, names, counts, _whiskers(low, high))
    _label_interval(ax, level)
    if known is not None:
        _draw_truth(ax, known)
    _legend(ax)
    return ax


def estimate(
    results: NumberResult | Mapping[str, NumberResult],
    *,
    truth: float | None = None,
    confidence: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Sums or means with their intervals, the first on top; ``truth``: the true one."""
    named = results if isinstance(results, Mapping) else {results.name: results}
    if not named:
        raise ValueError("results must have at least one result, got none")
    ax = shown_axes(height_of(len(named))) if ax is None else ax
    kinds = list(dict.fromkeys(result.name for result in named.values()))
    level = next(iter(named.values())).confidence if confidence is None else confidence
    values = np.array([result.value for result in named.values()])
    ends = np.array([result.interval(level) for result in named.values()]).T
    places = np.arange(len(named))
    ax.plot(values, places, "o", color=BLUE, markersize=8, label=_ESTIMATE)
    middle, half = _whiskers(*ends)
    ax.errorbar(middle, places, xerr=half, zorder=1.5, **_WHISKER)
    _label_interval(ax, level)
    if truth is not None:
        line = {"linestyle": "--", "color": VERMILLION, "label": _TRUTH["label"]}
        ax.axvline(float(truth), **line)
    _rows(ax, [_short(name) for name in named])
    ax.ticklabel_format(axis="x", useOffset=False, scilimits=(-4, 9))
    ax.set_xlabel(f"{' or '.join(kinds)} (in the units of the data)")
    _legend(ax)
    return ax


def _draw_truth(ax: Axes, counts: Floats) -> None:
    places = np.arange(len(counts))
    if len(counts) <= NAMED:
        ax.plot(counts, places, **_TRUTH)
    else:  # behind the estimates, which would be hidden
        ax.plot(places, counts, **_TRUTH | {"marker": "_", "zorder": 1.2})


def height_of(rows: int) -> float:
    """Inches that so many rows need, for ``new_axes(height_of(rows))``."""
    return 1.6 + 0.32 * rows if rows <= NAMED else 4.0


def _named(ax: Axes, names: Sequence[str], counts: Floats, whiskers: Whiskers) -> None:
    places = np.arange(len(names))
    ax.barh(places, counts, height=0.7, color=SKY, alpha=0.7, label=_ESTIMATE)
    ax.errorbar(whiskers[0], places, xerr=whiskers[1], zorder=3, **_WHISKER)
    _rows(ax, names)
    ax.set_xlabel("people (count)")
    _whole_numbers(ax.xaxis)


def _numbered(ax: Axes, names: Sequence[str], counts: Floats, whiskers: Whiskers) -> None:
    """Whiskers alone: bars that thin would hide them."""
    places = np.arange(len(names))
    thin = _WHISKER | {"capsize": 0, "elinewidth": 0.8}
    ax.plot(places, counts, ".", color=BLUE, markersize=4, label=_ESTIMATE)
    ax.errorbar(places, whiskers[0], yerr=whiskers[1], zorder=1.5, **thin)
    ends = f"0: {names[0]} to {len(names) - 1}: {names[-1]}"
    ax.set_xlabel(f"category (place in the list, {ends})", parse_math=False)
    ax.set_ylabel("people (count)")
    _whole_numbers(ax.yaxis)


def _whole_numbers(axis: Any) -> None:
    """1,000,000 instead of 1e6: counts are read one by one."""
    axis.set_major_formatter("{x:,.0f}")


def _rows(ax: Axes, names: Sequence[str]) -> None:
    ax.set_yticks(range(len(names)), names, parse_math=False)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.grid(visible=False, axis="y")
    ax.locator_params(axis="x", nbins=6)


def _whiskers(low: Any, high: Any) -> Whiskers:
    """Middle and half length: an interval of possible counts may lie beside an impossible estimate."""
    lower, upper = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    return 0.5 * (lower + upper), 0.5 * (upper - lower)


def _label_interval(ax: Axes, level: float) -> None:
    """The whiskers in the legend, as a line of their own."""
    ax.plot([], [], color=BLACK, linewidth=1.2, marker="|", label=f"{100 * level:g}% interval")


def _legend(ax: Axes) -> None:
    """Below the picture, where no mark can be; the estimates first."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    handles, labels = ax.get_legend_handles_labels()
    pairs = sorted(zip(handles, labels, strict=True), key=lambda pair: pair[1], reverse=True)
    first = [pair for pair in pairs if pair[1] == _ESTIMATE]
    shown = first + [pair for pair in pairs if pair[1] != _ESTIMATE]
    figure.legend(*zip(*shown, strict=True), loc="outside lower center", ncols=3)


def _checked_truth(truth: Any, k: int) -> Floats:
    known = np.asarray(truth, dtype=np.float64)
    if known.shape != (k,):
        raise ValueError(f"truth must have a count for each of {k} categories, got {known.shape}")
    return known


def _short(name: str) -> str:
    """Cut in the middle: long names often differ at their ends.

    >>> _short("the answer of those who did not answer")
    'the answer of … did not answer'
    """
    half = _LONGEST_NAME // 2
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[:half].rstrip()} \N{HORIZONTAL ELLIPSIS} {name[-half:].lstrip()}"
