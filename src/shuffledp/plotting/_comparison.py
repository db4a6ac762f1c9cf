"""Bounds of the same quantity side by side, with what is known of the truth.

bounds_compared([("blanket", 0.41, "sound"), ("as printed", 0.2, "unsound")], lower=0.40)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shuffledp import _validate
from shuffledp._digits import rounded_up
from shuffledp.plotting._curves import WIDE
from shuffledp.plotting._style import BLUE, GREY, LABELS, ORANGE, VERMILLION, shown_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKS: dict[str, dict[str, Any]] = {
    "sound": {"marker": "o", "color": BLUE},
    "unsound": {"marker": "X", "color": VERMILLION},
}
OTHERWISE: dict[str, Any] = {"marker": "D", "color": ORANGE, "markerfacecolor": "white"}
"""For what is neither, such as "sound outside its stated range"."""

Row = tuple[str, float, str]


def bounds_compared(
    rows: Sequence[Row],
    *,
    quantity: str = "epsilon",
    lower: float | None = None,
    ax: Axes | None = None,
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
    ax.set_yticks(range(len(rows)), [name for name, _, _ in rows], fontsize=9)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.grid(visible=False, axis="y")
    _legend(ax)
    return ax


def height_of(rows: int) -> float:
    """Inches that so many rows need, for ``new_axes(height_of(len(rows)))``."""
    return 1.4 + 0.32 * rows


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
    style = MARKS.get(soundness, OTHERWISE)
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


def _legend(ax: Axes) -> None:
    """Each kind of mark once, below the picture, where no mark can be."""
    handles, labels = ax.get_legend_handles_labels()
    unique = dict(sorted(zip(labels, handles, strict=True), key=lambda pair: pair[0]))
    figure = ax.get_figure(root=True)
    assert figure is not None
    if unique:
        figure.legend(unique.values(), unique.keys(), loc="outside lower center", ncols=2)
