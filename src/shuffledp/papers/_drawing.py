"""The picture of a result: panels side by side, one look for all.

Line styles say what a curve is worth (see ``result``): solid with a band is certified, dashed a valid
bound, dotted red crosses are unsound, black crosses are numbers that the paper prints.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from shuffledp.papers._result import KINDS, Curve, Map, Panel, Result
from shuffledp.plotting._style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SETTINGS,
    SKY,
    VERMILLION,
    require_matplotlib,
)

_DPI = 100
_WIDTH, _HEIGHT = 5.6, 4.9
_CERTIFIED = (BLUE, GREEN, PURPLE, SKY, BLACK, ORANGE)
_SOUND = (ORANGE, BLACK, GREEN, PURPLE, SKY, GREY)
_UNSOUND = (VERMILLION, "#8C3A00", "#F2A65A")
_SOUND_LINES: tuple[Any, ...] = (
    "--",
    "-.",
    (0, (7, 1, 1, 1)),
    (0, (9, 3)),
    (0, (3, 1, 1, 1, 1, 1)),
)
_MARKS = "osD^v<>"
_LABELS = {"unsound": " (unsound)", "published": " (printed)"}


def draw(result: Result, path: Path) -> None:
    """Write the picture as a PNG file."""
    matplotlib = require_matplotlib()
    figure_module = __import__("matplotlib.figure", fromlist=["Figure"])
    count = len(result.panels)
    columns = 2 if count == 4 else min(count, 3)
    rows = -(-count // columns)
    with matplotlib.rc_context({**SETTINGS, "legend.fontsize": 7.5, "lines.markersize": 5}):
        size = (_WIDTH * columns, _HEIGHT * rows)
        figure = figure_module.Figure(figsize=size, layout="constrained")
        for place, panel in enumerate(result.panels):
            ax = figure.add_subplot(rows, columns, place + 1)
            if isinstance(panel, Map):
                _draw_map(figure, ax, panel)
            else:
                _draw_panel(ax, panel)
        figure.savefig(path, format="png", dpi=_DPI, metadata={"Software": None})


def _draw_map(figure: Any, ax: Any, panel: Map) -> None:
    image = ax.imshow(
        np.asarray(panel.values),
        origin="lower",
        aspect="auto",
        extent=panel.extent,
        cmap="viridis",
        vmin=panel.low,
        vmax=panel.high,
        interpolation="nearest",
    )
    ax.grid(visible=False)
    ax.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
    figure.colorbar(image, ax=ax, label=panel.scale)


def _draw_panel(ax: Any, panel: Panel) -> None:
    seen = dict.fromkeys(KINDS, 0)
    if panel.x_log:
        ax.set_xscale("log")
    if panel.y_log:
        ax.set_yscale("log", nonpositive="clip")
    for curve in panel.curves:
        _draw_curve(ax, curve, seen[curve.kind], panel.y_log)
        seen[curve.kind] += 1
    ax.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
    _limit(ax, panel)
    # Below the axes, where no curve can be.
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False)


def _draw_curve(ax: Any, curve: Curve, index: int, logarithmic: bool) -> None:
    y = np.where(curve.y > 0.0, curve.y, np.nan) if logarithmic else curve.y
    style = _style(curve.kind, index)
    label = curve.name + _LABELS.get(curve.kind, "")
    if curve.kind == "measured" and curve.lower is not None:
        ax.errorbar(curve.x, y, yerr=curve.lower, capsize=2.5, label=label, **style)
        return
    ax.plot(curve.x, y, label=label, **style)
    if curve.lower is not None:
        ax.fill_between(
            curve.x, curve.lower, curve.y, color=style["color"], alpha=0.22, linewidth=0
        )


def _style(kind: str, index: int) -> dict[str, Any]:
    if kind == "certified":
        return {"color": _CERTIFIED[index % len(_CERTIFIED)], "linestyle": "-"}
    if kind == "sound":
        color, line = _SOUND[index % len(_SOUND)], _SOUND_LINES[index % len(_SOUND_LINES)]
        return {"color": color, "linestyle": line, "linewidth": 1.4}
    if kind == "unsound":
        color = _UNSOUND[index % len(_UNSOUND)]
        return {"color": color, "linestyle": ":", "marker": "x", "linewidth": 1.2, "markersize": 4}
    if kind == "published":
        mark = "Xxs+"[index % 4]
        return {"color": (BLACK, GREY)[index % 2], "linestyle": "none", "marker": mark}
    if kind == "check":
        return {"color": VERMILLION, "linestyle": "none", "marker": "o", "markerfacecolor": "none"}
    if kind == "measured":
        mark = _MARKS[index % len(_MARKS)]
        color = _CERTIFIED[index % len(_CERTIFIED)]
        return {"color": color, "linestyle": "-", "linewidth": 0.8, "marker": mark}
    return {"color": GREY, "linestyle": (0, (1, 2)), "linewidth": 1.0}


def _limit(ax: Any, panel: Panel) -> None:
    if not panel.y_log:
        ax.set_ylim(bottom=0.0, top=panel.top)
        return
    shown = np.concatenate([curve.y[curve.y > 0.0] for curve in panel.curves])
    shown = shown[np.isfinite(shown)]
    if not shown.size:
        return
    low = max(float(shown.min()), panel.floor)
    high = panel.top or float(shown.max())
    room = max(1.3, (high / low) ** 0.04)
    ax.set_ylim(low / room, high * room)
