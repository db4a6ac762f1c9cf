"""The picture of a result: panels side by side, one look for all.

Line styles say what a curve is worth (see ``_result``): solid with a band is certified, dashed a valid
bound, dotted red crosses are unsound, black crosses are numbers that the paper prints.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from shuffledp.papers._result import KINDS, Curve, Map, Panel, Result
from shuffledp.plotting import _style as look

_DPI = 100
_WIDTH, _HEIGHT = 5.6, 4.9  # inches, of a panel
_LOOK = {**look.SETTINGS, "legend.fontsize": 7.5, "lines.markersize": 5}
_CERTIFIED = (look.BLUE, look.GREEN, look.PURPLE, look.SKY, look.BLACK, look.ORANGE)
_SOUND = (look.ORANGE, look.BLACK, look.GREEN, look.PURPLE, look.SKY, look.GREY)
_UNSOUND = (look.VERMILLION, "#8C3A00", "#F2A65A")
_DASHES = ("--", "-.", (0, (7, 1, 1, 1)), (0, (9, 3)), (0, (3, 1, 1, 1, 1, 1)))
_CROSS = {"marker": "x", "markersize": 4}
_THIN = {"linestyle": "-", "linewidth": 0.8}
_LABELS = {"unsound": " (unsound)", "published": " (printed)"}


def draw(result: Result, path: Path) -> None:
    """Write the picture as a PNG file."""
    matplotlib = look.require_matplotlib()
    from matplotlib.figure import Figure

    count = len(result.panels)
    columns = 2 if count == 4 else min(count, 3)
    rows = -(-count // columns)
    with matplotlib.rc_context(_LOOK):
        figure = Figure(figsize=(_WIDTH * columns, _HEIGHT * rows), layout="constrained")
        for place, panel in enumerate(result.panels):
            ax = figure.add_subplot(rows, columns, place + 1)
            ax.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
            if isinstance(panel, Map):
                _draw_map(figure, ax, panel)
            else:
                _draw_panel(ax, panel)
        figure.savefig(path, format="png", dpi=_DPI, metadata={"Software": None})


def _draw_map(figure: Any, ax: Any, panel: Map) -> None:
    values, shown = np.asarray(panel.values), {"origin": "lower", "interpolation": "nearest"}
    span = {"extent": panel.extent, "vmin": panel.low, "vmax": panel.high}
    image = ax.imshow(values, aspect="auto", cmap="viridis", **shown, **span)
    ax.grid(visible=False)
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
    _limit(ax, panel)
    # Below the axes, where no curve can be.
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False)


def _draw_curve(ax: Any, curve: Curve, index: int, logarithmic: bool) -> None:
    y = np.where(curve.y > 0.0, curve.y, np.nan) if logarithmic else curve.y
    style = {"label": curve.name + _LABELS.get(curve.kind, ""), **_style(curve.kind, index)}
    if curve.kind == "measured" and curve.lower is not None:
        ax.errorbar(curve.x, y, yerr=curve.lower, capsize=2.5, **style)
        return
    ax.plot(curve.x, y, **style)
    if curve.lower is not None:
        band = {"color": style["color"], "alpha": 0.22, "linewidth": 0}
        ax.fill_between(curve.x, curve.lower, curve.y, **band)


def _style(kind: str, index: int) -> dict[str, Any]:
    """How the curve looks that is the ``index``-th of its kind."""

    def turn(choices: Any) -> Any:
        return choices[index % len(choices)]

    none = {"linestyle": "none"}
    styles: dict[str, dict[str, Any]] = {
        "certified": {"color": turn(_CERTIFIED), "linestyle": "-"},
        "sound": {"color": turn(_SOUND), "linestyle": turn(_DASHES), "linewidth": 1.4},
        "unsound": {"color": turn(_UNSOUND), "linestyle": ":", "linewidth": 1.2, **_CROSS},
        "published": {"color": turn((look.BLACK, look.GREY)), "marker": turn("Xxs+"), **none},
        "measured": {"color": turn(_CERTIFIED), "marker": turn("osD^v<>"), **_THIN},
        "check": {"color": look.VERMILLION, "marker": "o", "markerfacecolor": "none", **none},
        "guide": {"color": look.GREY, "linestyle": (0, (1, 2)), "linewidth": 1.0},
    }
    return styles[kind]


def _limit(ax: Any, panel: Panel) -> None:
    if not panel.y_log:
        ax.set_ylim(bottom=0.0)
        return
    shown = np.concatenate([curve.y[curve.y > 0.0] for curve in panel.curves])
    shown = shown[np.isfinite(shown)]
    if not shown.size:
        return
    low, high = max(float(shown.min()), panel.floor), float(shown.max())
    room = max(1.3, (high / low) ** 0.04)
    ax.set_ylim(low / room, high * room)
