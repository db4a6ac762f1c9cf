"""A map of a joint table of two attributes: counts in colours and in figures, with their standard errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shuffledp.plotting._rows import _short, _title, height_of
from shuffledp.plotting._style import figure_of, shown_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from shuffledp.collecting.table import TableResult

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
