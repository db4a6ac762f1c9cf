"""One row, or one place, for each of several values: bounds side by side with what is known of the truth,
and estimates with their confidence intervals (and the truth, where it is known: simulations). Of ordered data
the share of people below each number; of two attributes a map, counts in colours and in figures.

bounds_compared([("blanket", 0.41, "sound"), ("as printed", 0.2, "unsound")], lower=0.40)
histogram(result, truth=[...])                     counts of a HistogramResult, an error bar each
estimate({"Monday": mean1, "Tuesday": mean2})      sums or means, one above the other
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import Floats
from shuffledp._digits import rounded_up, written
from shuffledp.plotting._style import (
    BLACK,
    BLUE,
    GREY,
    HEIGHT,
    LABELS,
    ORANGE,
    SKY,
    VERMILLION,
    WIDE,
    figure_of,
    shown_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from shuffledp.collecting.distribution import QuantileResult
    from shuffledp.collecting.result import HistogramResult, NumberResult, Tabular
    from shuffledp.collecting.table import TableResult
    from shuffledp.collecting.vector import VectorResult

Row = tuple[str, float, str]
Whiskers = tuple[Floats, Floats]

NAMED = 30
"""With more categories than this their names would not be legible: they are numbered."""
_LONGEST_NAME = 28
_SEPARATED = 10_000  # from here on numbers are read by their thousands
_ESTIMATE = "unbiased estimate"
_WHISKER: dict[str, Any] = {"linestyle": "none", "color": BLACK, "elinewidth": 1.2, "capsize": 3}
_TRUTH: dict[str, Any] = {"linestyle": "none", "marker": "D", "markersize": 6, "color": VERMILLION}
_TRUTH |= {"markerfacecolor": "none", "label": "truth (simulation)"}
_MARKS: dict[str, dict[str, Any]] = {
    "sound": {"marker": "o", "color": BLUE},
    "unsound": {"marker": "X", "color": VERMILLION},
}
_OTHERWISE: dict[str, Any] = {"marker": "D", "color": ORANGE, "markerfacecolor": "white"}
"""For what is neither, such as "sound outside its stated range"."""


def bounds_compared(
    rows: Sequence[Row], *, quantity: str = "epsilon", lower: float | None = None, ax: Axes | None = None
) -> Axes:
    """A line for each (name, value, soundness), the first on top.

    ``lower`` is a certified lower bound of the quantity: what lies left of it cannot be true. A value
    that is infinite is listed and not drawn, one far below ``lower`` is drawn at the edge."""
    _validate.one_of("quantity", quantity, ("epsilon", "delta"))
    if not rows:
        raise ValueError("rows must have at least one bound, got none")
    ax = shown_axes(height_of(len(rows))) if ax is None else ax
    shown = [value for _, value, _ in rows if 0.0 < value < math.inf]
    _set_x(ax, shown, lower or 0.0)
    ax.set_xlabel(LABELS[quantity])
    _mark_truth(ax, lower)
    for place, row in enumerate(rows):
        _draw_row(ax, place, row)
    _name_rows(ax, [name for name, _, _ in rows], fontsize=9)
    _legend(ax, 2)
    return ax


def histogram(
    result: HistogramResult, *, truth: Any = None, confidence: float | None = None, ax: Axes | None = None
) -> Axes:
    """A bar for each category, with its interval; ``truth``: the true counts, in the same order.

    Up to 30 categories are named, one below the other. More are numbered from left to right."""
    counts, level = result.counts, result.confidence if confidence is None else confidence
    low, high = result.interval(level)
    names = [_short(label) for label in result.labels]
    if not names:
        raise ValueError("the result must have something to draw, got no category")
    known = None if truth is None else _checked_truth(truth, len(names))
    ax = shown_axes(histogram_height(len(names))) if ax is None else ax
    (_named if len(names) <= NAMED else _numbered)(ax, names, counts, _whiskers(low, high))
    _title(ax, result)
    _label_interval(ax, level)
    if known is not None:
        _draw_truth(ax, known)
    _legend(ax, 3)
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
    _name_rows(ax, [_short(name) for name in named])
    ax.locator_params(axis="x", nbins=6)
    ax.ticklabel_format(axis="x", useOffset=False, scilimits=(-4, 9))
    if np.abs(values).max() >= _SEPARATED:
        _whole_numbers(ax.xaxis)
    if len(named) == 1:
        _title(ax, next(iter(named.values())))
    ax.set_xlabel(f"{' or '.join(kinds)} (in the units of the data)")
    _legend(ax, 3)
    return ax


def vector(
    result: VectorResult, *, truth: Any = None, confidence: float | None = None, ax: Axes | None = None
) -> Axes:
    """The entries of a mean vector from left to right, with their intervals; ``truth``: the true ones."""
    known = None if truth is None else _checked_truth(truth, result.value.size)
    ax = shown_axes(HEIGHT) if ax is None else ax
    level = result.confidence if confidence is None else confidence
    places = np.arange(result.value.size)
    ax.plot(places, result.value, ".", color=BLUE, markersize=5, label=_ESTIMATE)
    middle, half = _whiskers(*result.interval(level))
    ax.errorbar(places, middle, yerr=half, zorder=1.5, **_WHISKER | {"capsize": 0, "elinewidth": 0.8})
    if known is not None:
        ax.plot(places, known, **_TRUTH | {"marker": "_", "zorder": 1.2})
    ax.set_xlabel("entry")
    ax.set_ylabel("mean (in the units of the data)")
    _title(ax, result)
    _label_interval(ax, level)
    _legend(ax, 3)
    return ax


def cumulative(
    result: QuantileResult, *, truth: Any = None, confidence: float | None = None, ax: Axes | None = None
) -> Axes:
    """A curve from 0 to 1 with pointwise intervals; ``truth``: the true quantiles, in the order asked for."""
    level = result.confidence if confidence is None else confidence
    found, quantiles = result.distribution, result.quantiles(level)
    ax = shown_axes(HEIGHT) if ax is None else ax
    share = np.array([found.cumulative(level)]).reshape(3, -1) / found.n
    middle, low, high = (np.concatenate([[0.0], row, [1.0]]) for row in share)
    ax.plot(found.edges, middle, color=BLUE, label=_ESTIMATE)
    band = f"{100 * level:g}% interval"
    ax.fill_between(found.edges, low, high, color=SKY, alpha=0.4, linewidth=0, label=band)
    for each in quantiles:
        ax.plot([each.lower, each.upper], [each.share, each.share], color=BLUE, marker="|", linewidth=1.2)
        ax.plot([each.value], [each.share], "o", color=BLUE, markersize=5)
    if truth is not None:
        known = _checked_truth(truth, len(quantiles), "a number", "quantiles")
        ax.plot(known, [each.share for each in quantiles], **_TRUTH)
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel("value (in the units of the data)")
    ax.set_ylabel("people up to it (share)")
    _title(ax, result)
    _legend(ax, 3)
    return ax


def _title(ax: Axes, result: Tabular) -> None:
    """How many reports, and what they cost."""
    privacy = result.privacy
    guarantee = f"({rounded_up(privacy.epsilon, 4)}, {written(privacy.delta)})-differentially private"
    ax.set_title(f"{privacy.protocol} of {result.n:,} reports\n{guarantee}", parse_math=False)


def _draw_truth(ax: Axes, counts: Floats) -> None:
    places = np.arange(len(counts))
    if len(counts) <= NAMED:
        ax.plot(counts, places, **_TRUTH)
    else:  # behind the estimates, which would be hidden
        ax.plot(places, counts, **_TRUTH | {"marker": "_", "zorder": 1.2})


def height_of(rows: int) -> float:
    """Inches that so many rows need, for ``new_axes(height_of(len(rows)))``."""
    return 1.6 + 0.32 * rows


def histogram_height(categories: int) -> float:
    """The same for a histogram, whose categories are numbered from left to right where there are many."""
    return height_of(categories) if categories <= NAMED else HEIGHT


def _name_rows(ax: Axes, names: Sequence[str], **font: Any) -> None:
    ax.set_yticks(range(len(names)), names, parse_math=False, **font)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.grid(visible=False, axis="y")


def _legend(ax: Axes, columns: int) -> None:
    """Each kind of mark once, below the picture, where no mark can be; the estimates first."""
    handles, labels = ax.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    names = sorted(unique, key=lambda name: (name != _ESTIMATE, name))
    if names:
        handles = [unique[name] for name in names]
        figure_of(ax).legend(handles, names, loc="outside lower center", ncols=columns)


def _set_x(ax: Axes, values: Sequence[float], lower: float) -> None:
    """Room on the right for the numbers; what is far below the truth need not stretch the axis."""
    near = [value for value in (*values, lower) if value > lower / WIDE]
    if not near:
        return
    low, high = min(near), max(near)
    if high > WIDE * low:
        ax.set_xscale("log")
        ax.set_xlim(low / 1.5, high * (high / low) ** 0.3)
    else:
        ax.set_xlim(0.0, 1.3 * high)


def _mark_truth(ax: Axes, lower: float | None) -> None:
    if lower:
        ax.axvspan(ax.get_xlim()[0], lower, color=GREY, alpha=0.15, linewidth=0)
        ax.axvline(lower, color=GREY, linestyle="--", label="the truth is at least this")


def _draw_row(ax: Axes, place: int, row: Row) -> None:
    _, value, soundness = row
    if not 0.0 < value < math.inf:
        word = "none" if value > 0.0 else "0"
        right = ax.get_yaxis_transform()
        ax.text(0.98, place, word, transform=right, ha="right", va="center", color=GREY)
        return
    x, word = _placed(value, ax.get_xlim()[0])
    style = _MARKS.get(soundness, _OTHERWISE)
    ax.plot([x], [place], linestyle="none", markersize=8, label=soundness, clip_on=False, **style)
    ax.annotate(
        word,
        (x, place),
        (8, 0),
        textcoords="offset points",
        va="center",
        fontsize=9,
        bbox={"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 1.0},
    )


def _placed(value: float, edge: float) -> tuple[float, str]:
    """Where a value is drawn and what is written there; beyond the left edge an arrow points to it."""
    if value >= edge:
        return value, rounded_up(value, 4)
    return edge, f"\N{LEFTWARDS ARROW} {value:.1g}"


def _named(ax: Axes, names: Sequence[str], counts: Floats, whiskers: Whiskers) -> None:
    places = np.arange(len(names))
    ax.barh(places, counts, height=0.7, color=SKY, alpha=0.7, label=_ESTIMATE)
    ax.errorbar(whiskers[0], places, xerr=whiskers[1], zorder=3, **_WHISKER)
    _name_rows(ax, names)
    ax.locator_params(axis="x", nbins=6)
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


def _whiskers(low: Any, high: Any) -> Whiskers:
    """Middle and half length: an interval of possible counts may lie beside an impossible estimate."""
    lower, upper = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    return 0.5 * (lower + upper), 0.5 * (upper - lower)


def _label_interval(ax: Axes, level: float) -> None:
    """The whiskers in the legend, as a line of their own."""
    ax.plot([], [], color=BLACK, linewidth=1.2, marker="|", label=f"{100 * level:g}% interval")


def _checked_truth(truth: Any, k: int, one: str = "a count", many: str = "categories") -> Floats:
    known = np.asarray(truth, dtype=np.float64)
    if known.shape != (k,):
        raise ValueError(f"truth must have {one} for each of {k} {many}, got {known.shape}")
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


_WRITTEN = 64  # cells that have room for a figure


def table(result: TableResult, *, ax: Axes | None = None) -> Axes:
    """Rows are the first attribute, columns the second."""
    if len(result.attributes) != 2:
        raise ValueError(f"the table must have two attributes, got {len(result.attributes)}: take a marginal")
    (down, rows), (across, columns) = result.attributes
    ax = shown_axes(height_of(len(rows)) + 1.0) if ax is None else ax
    counts, errors = result.table(), result.standard_errors.reshape(len(rows), len(columns))
    drawn = ax.imshow(counts, aspect="auto", cmap="Blues", vmin=0.0)
    figure_of(ax).colorbar(drawn, ax=ax, label="people (count)", format="{x:,.0f}")
    ax.grid(visible=False)
    ax.set_xticks(range(len(columns)), [_short(str(each)) for each in columns], parse_math=False)
    ax.set_yticks(range(len(rows)), [_short(str(each)) for each in rows], parse_math=False)
    ax.set_xlabel(across, parse_math=False)
    ax.set_ylabel(down, parse_math=False)
    if counts.size <= _WRITTEN:
        for i, j in ((i, j) for i in range(len(rows)) for j in range(len(columns))):
            word = f"{counts[i, j]:,.0f}\n\N{PLUS-MINUS SIGN}{errors[i, j]:,.0f}"
            pale = counts[i, j] > 0.6 * counts.max()
            ax.text(j, i, word, ha="center", va="center", fontsize=8, color="white" if pale else "black")
    _title(ax, result)
    return ax
