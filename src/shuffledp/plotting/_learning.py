"""Learning curves: what was measured against the privacy that it cost.

learning_curve(trainer.history, delta=1e-5)                         epsilon on the axis
learning_curve({"seed 1": first, "seed 2": second})                 several runs
learning_curve(trainer.history, against="round")                    rounds on the axis
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from shuffledp import _validate
from shuffledp._digits import written
from shuffledp.plotting._style import COLORS, LABELS, LINES, shown_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = Mapping[str, float]
History = Iterable[Row]

AXES = {"epsilon": LABELS["epsilon"], "round": LABELS["rounds"]}
UNITS = {"accuracy": "fraction", "loss": "nats"}
"""Of what is often measured."""


def learning_curve(
    history: History | Mapping[str, History],
    *,
    measure: str | None = None,
    against: str = "epsilon",
    delta: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """``measure`` (by default the first that was measured) against "epsilon" or "round".

    ``history``: rows of named numbers, or several of them by name. ``delta`` is written on the axis."""
    _validate.one_of("against", against, AXES)
    runs = {
        name: [dict(row) for row in rows]
        for name, rows in (history if isinstance(history, Mapping) else {"": history}).items()
    }
    chosen = _measure(runs, measure)
    ax = shown_axes() if ax is None else ax
    for index, (name, rows) in enumerate(runs.items()):
        x, y = _series(rows, against, chosen)
        color, line = COLORS[index % len(COLORS)], LINES[index % len(LINES)]
        ax.plot(x, y, color=color, linestyle=line, marker=".", label=name or chosen)
    _label(ax, chosen, against, delta)
    if len(runs) > 1:
        ax.legend()
    return ax


def _label(ax: Axes, chosen: str, against: str, delta: float | None) -> None:
    at = "" if delta is None or against == "round" else f" at δ = {written(delta)}"
    ax.set_xlabel(f"{AXES[against]}{at}")
    ax.set_ylabel(f"{chosen} ({UNITS[chosen]})" if chosen in UNITS else chosen, parse_math=False)
    ax.set_xlim(left=0.0)


def _measure(runs: Mapping[str, list[dict[str, float]]], asked: str | None) -> str:
    """The measure asked for, or the first; ValueError with those that there are."""
    found = dict.fromkeys(name for rows in runs.values() for row in rows for name in row)
    measured = [name for name in found if name not in AXES]
    if not measured:
        raise ValueError(
            "history must hold something measured: give evaluate= to run(), got rows of "
            f"{', '.join(found) or 'nothing'}"
        )
    return measured[0] if asked is None else _validate.one_of("measure", asked, measured)


def _series(rows: list[dict[str, float]], against: str, chosen: str) -> tuple[Any, Any]:
    """Where, and what was measured there."""
    both = [(row[against], row[chosen]) for row in rows if against in row and chosen in row]
    if not both:
        raise ValueError(
            f"history must hold {against!r} beside {chosen!r}: epsilon needs a budget, got none"
        )
    x, y = zip(*both, strict=True)
    return x, y
