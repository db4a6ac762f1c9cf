"""One look for every picture: legible in print, in grey and to colour-blind readers.

Series differ by colour (the palette of Okabe and Ito, 2008, without its yellow, too pale on paper)
and by line style, so that neither is needed alone. This is the only module that imports matplotlib,
and only when something is drawn.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from shuffledp._files import atomic_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK = COLORS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
)
GREY = "#666666"
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (7, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (9, 3)))
FORMATS = ("png", "svg", "pdf")
WIDTH, HEIGHT = 6.0, 4.0
"""Inches."""
WIDE = 30.0
"""Values that span more than this factor are drawn on a logarithmic axis."""

LABELS = {
    "delta": "δ (probability)",
    "epsilon": "central ε (nats)",
    "epsilon0": "local ε₀ of one report (nats)",
    "n": "reports in one shuffle, n (users)",
    "rounds": "rounds",
}
"""Axis labels with units; epsilon is a natural logarithm of a ratio of probabilities."""

SETTINGS: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.labelsize": 10,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "font.size": 10,
    "grid.alpha": 0.35,
    "grid.linewidth": 0.6,
    "legend.fontsize": 9,
    "legend.framealpha": 0.9,
    "lines.linewidth": 1.8,
    "pdf.fonttype": 42,  # letters stay letters
    "savefig.dpi": 200,
    "svg.hashsalt": "shuffledp",  # the same picture is the same file
}


def require_matplotlib() -> Any:
    """The package, or an error that says how to get it."""
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'shuffledp[plot]'") from error
    return matplotlib


def new_axes(height: float = HEIGHT) -> Axes:
    """Axes on a figure of their own, which no window or notebook shows: for files."""
    matplotlib = require_matplotlib()
    from matplotlib.figure import Figure

    with matplotlib.rc_context(SETTINGS):
        return Figure(figsize=(WIDTH, height), layout="constrained").add_subplot()


def shown_axes(height: float = HEIGHT) -> Axes:
    """Axes on a figure that a notebook, or ``matplotlib.pyplot.show()``, shows."""
    matplotlib = require_matplotlib()
    from matplotlib import pyplot

    with matplotlib.rc_context(SETTINGS):
        axes: Axes = pyplot.subplots(figsize=(WIDTH, height), layout="constrained")[1]
        on = matplotlib.is_interactive()
    matplotlib.interactive(on)  # the first figure of a notebook turns it on, which must outlive the context
    return axes


def series_style(index: int) -> dict[str, Any]:
    """Colour and line of the series with this number."""
    return {"color": COLORS[index % len(COLORS)], "linestyle": LINES[index % len(LINES)]}


def figure_of(ax: Axes) -> Any:
    """The figure that the axes belong to."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def save(ax: Axes, path: str | Path) -> None:
    """Write the figure of ``ax``, whole or not at all; the format is the file's suffix."""
    write(figure_of(ax), path, SETTINGS)


def write(figure: Any, path: str | Path, settings: dict[str, Any], **how: Any) -> None:
    """The one place where a picture becomes a file."""
    kind = file_format(path)
    dates = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with require_matplotlib().rc_context(settings), atomic_file(Path(path), replace=True) as partial:
        figure.savefig(partial, format=kind, **{"metadata": dates[kind], **how})


def file_format(path: str | Path) -> str:
    """png, svg or pdf, from the suffix of a file's name.

    >>> file_format("curve.PDF")
    'pdf'
    """
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise ValueError(f"a plot must be a .png, .svg or .pdf file, got {str(path)!r}")
    return kind
