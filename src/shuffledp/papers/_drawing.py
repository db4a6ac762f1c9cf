"""The picture of a result: panels side by side, one look for all.

Line styles say what a curve is worth (see ``_result``): solid with a band is certified, dashed a valid
bound, crosses on dots are no upper bound in general, filled marks are numbers of the paper or its
authors. Colours say which method, the same in every picture (``HUES``); a family of curves takes one colour
for each member.
The background is transparent and letters are grey, so that pages may be light or dark.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

from shuffledp.papers._result import KINDS, Curve, Map, Panel, Result
from shuffledp.plotting import _style as look

_DPI = 100
_WIDTH, _HEIGHT, _ENTRY = 5.6, 4.1, 0.19  # inches: of a panel, without its legend; of a line of that
_LONGEST = 37  # characters of a label, in two columns
_MANY = 40  # decades of an axis
_INK = "#7A7A7A"  # legible on white and on black
_LOOK = {
    **look.SETTINGS, "legend.fontsize": 8, "lines.markersize": 5, "text.color": _INK, "axes.labelcolor": _INK,
    "axes.edgecolor": _INK, "xtick.color": _INK, "ytick.color": _INK, "grid.color": _INK,
}  # fmt: skip
HUES = {
    **dict.fromkeys(("certified", "blanket", "exact", "1", "RR-2", "n = 1", "Gaussian"), look.BLUE),
    **dict.fromkeys(("clones", "2", "Laplace", "n = 2", "shuffle+INV"), look.GREEN),
    **dict.fromkeys(("clones-2021", "3", "RR-100", "n = 3", "composition", "Lemma 7"), look.PURPLE),
    **dict.fromkeys(("strong", "4", "generic", "n = 5", "(5.1)"), look.ORANGE),
    **dict.fromkeys(("Renyi", "16", "n = 7", "Theorem 1", "Gaussian at ε₀"), look.SKY),
    **dict.fromkeys(("printed", "n = 20"), look.VERMILLION),
    **dict.fromkeys(("Theorem 2", "shuffle", "analytic", "[29]"), _INK),
}
"""Method, or member of a family -> colour."""
_SPARE = (look.BLUE, look.GREEN, look.PURPLE, look.ORANGE, look.SKY, _INK)
_DASHES = ("--", "-.", (0, (7, 1, 1, 1)), (0, (9, 3)), (0, (3, 1, 1, 1, 1, 1)))
_LABELS = {
    "lower": " (no guarantee)",
    "unsound": " (no upper bound in general)",
    "published": " (printed)",
    "stored": " (stored)",
}


def made_from(numbers: str) -> str:
    """A digest of all that decides a picture: its numbers, and how they are drawn."""
    source = inspect.getsource(sys.modules[__name__])
    return hashlib.sha256("\n".join((numbers, source, repr(_LOOK), repr(HUES))).encode()).hexdigest()[:16]


def looks(result: Result) -> str:
    """A digest of what a picture shows besides its numbers: labels, scales, colours, dashes, marks."""
    return hashlib.sha256(repr([_shown(panel) for panel in result.panels]).encode()).hexdigest()[:16]


def _shown(panel: Panel | Map) -> tuple[Any, ...]:
    known = panel.title, panel.x_label, panel.y_label
    if isinstance(panel, Map):
        return *known, panel.scale, f"{panel.low:.2g} {panel.high:.2g} {panel.aspect:.2g}"
    marks = [(f"{x:.2g}", words) for x, words in panel.marks.items()]
    curves = [(curve.name, curve.kind, curve.hue, curve.line) for curve in panel.curves]
    return *known, panel.x_log, panel.y_log, panel.floor, marks, curves


def draw(result: Result, path: Path, mark: str = "") -> None:
    """Write the picture as a PNG file; ``mark`` is kept inside it, as its description."""
    matplotlib = look.require_matplotlib()
    from matplotlib.figure import Figure

    count = len(result.panels)
    columns = 2 if count in (2, 4) else min(count, 3)
    rows = -(-count // columns)
    with matplotlib.rc_context(_LOOK):
        height = _HEIGHT + _ENTRY * max(map(_entries, result.panels))
        figure = Figure(figsize=(_WIDTH * columns, height * rows), layout="constrained")
        for place, panel in enumerate(result.panels):
            ax = figure.add_subplot(rows, columns, place + 1, facecolor="none")
            ax.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
            if isinstance(panel, Map):
                _draw_map(figure, ax, panel)
            else:
                _draw_panel(ax, panel)
        about = {"Software": None, "Description": mark}
        look.write(figure, path, _LOOK, dpi=_DPI, transparent=True, metadata=about)


def _draw_map(figure: Any, ax: Any, panel: Map) -> None:
    values, shown = np.asarray(panel.values), {"origin": "lower", "interpolation": "nearest"}
    span = {"extent": panel.extent, "vmin": panel.low, "vmax": panel.high}
    image = ax.imshow(values, aspect=panel.aspect or "auto", cmap="viridis", **shown, **span)
    ax.grid(visible=False)
    beyond = "min" if np.nanmin(values) < panel.low else "neither"
    figure.colorbar(image, ax=ax, label=panel.scale, extend=beyond, shrink=0.8 if panel.aspect else 1.0)


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
    for x, words in panel.marks.items():
        ax.axvline(x, color=_INK, linewidth=0.8, linestyle=":")
        ax.annotate(words, (x, 0.03), xycoords=("data", "axes fraction"), rotation=90, fontsize=8, ha="right")
    # Below the axes, where no curve can be.
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=_columns(panel), frameon=False)


def _label(curve: Curve) -> str:
    return curve.name + _LABELS.get(curve.kind, "")


def _columns(panel: Panel) -> int:
    return 2 if max(len(_label(curve)) for curve in panel.curves) <= _LONGEST else 1


def _entries(panel: Panel | Map) -> int:
    """Lines of the legend."""
    return 0 if isinstance(panel, Map) else -(-len(panel.curves) // _columns(panel))


def _draw_curve(ax: Any, curve: Curve, index: int, logarithmic: bool) -> None:
    y = np.where(curve.y > 0.0, curve.y, np.nan) if logarithmic else curve.y
    style = {"label": _label(curve), **_style(curve.kind, index)}
    if curve.hue:
        style["color"] = HUES[curve.hue]
    if curve.line:
        style["linestyle"] = curve.line
    if curve.kind == "measured" and curve.lower is not None:
        ax.errorbar(curve.x, y, yerr=curve.lower, capsize=3.5, elinewidth=1.2, **style)
        return
    ax.plot(curve.x, y, **style)
    if curve.lower is not None:
        band = {"color": style["color"], "alpha": 0.25, "linewidth": 0}
        ax.fill_between(curve.x, curve.lower, curve.y, **band)


def _style(kind: str, index: int) -> dict[str, Any]:
    """How the curve looks that is the ``index``-th of its kind."""

    def turn(choices: Any) -> Any:
        return choices[index % len(choices)]

    none = {"linestyle": "none"}
    crossed = {"marker": "x", "markersize": 4, "linestyle": ":", "linewidth": 1.2}
    styles: dict[str, dict[str, Any]] = {
        "certified": {"color": turn(_SPARE), "linestyle": "-"},
        "sound": {"color": turn(_SPARE), "linestyle": turn(_DASHES), "linewidth": 1.4},
        "lower": {"color": _INK, "linestyle": (0, (2, 2)), "linewidth": 1.2},
        "unsound": {"color": look.VERMILLION, **crossed},
        "published": {"color": turn((look.VERMILLION, _INK)), "marker": turn("Xs+"), "markersize": 7, **none},
        "stored": {"color": turn(_SPARE), "marker": turn("Dsov"), "markersize": 5, **none},
        "measured": {"color": turn(_SPARE), "marker": turn("osD^v<>"), "linestyle": "-", "linewidth": 0.8},
        "check": {
            "color": look.VERMILLION,
            "marker": "o",
            "markersize": 11,
            "markerfacecolor": "none",
            **none,
        },
        "guide": {"color": _INK, "linestyle": (0, (1, 2)), "linewidth": 1.0},
    }
    return styles[kind]


def _limit(ax: Any, panel: Panel) -> None:
    if not panel.y_log:
        shown = np.concatenate([curve.y for curve in panel.curves if curve.kind != "guide"])
        near = shown.size and np.nanmin(shown) > 0.5 and np.nanmax(shown) < 2.0
        if not near:  # else around one: a ratio
            ax.set_ylim(bottom=panel.floor)
        return
    shown = np.concatenate([curve.y[curve.y > 0.0] for curve in panel.curves])
    shown = shown[np.isfinite(shown)]
    if not shown.size:
        return
    low, high = max(float(shown.min()), panel.floor), float(shown.max())
    room = min(max(1.3, (high / low) ** 0.04), 10.0)
    ax.set_ylim(low / room, high * room)
    decades = math.log10(high) - math.log10(low)
    if decades > _MANY:  # else ticks at every ninth decade, or every thirty-sixth
        step = next(each for each in (10, 20, 50, 100) if decades <= 8 * each or each == 100)
        ax.set_yticks([10.0**-at for at in range(0, int(decades) + 1, step)])
