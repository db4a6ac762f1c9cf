"""Pictures show the certified numbers, with units, inside their frame, and in one style."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

import shuffledp as sdp
from shuffledp import plotting
from shuffledp._digits import rounded_up
from shuffledp.plotting import _style as style
from shuffledp.plotting._rows import height_of

ROUND = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=1.0), n=1000)
FEW = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=1.0), n=200)
GRID = np.linspace(0.0, 0.3, 7)
SIZES = [10, 100, 1000]
BOUND = sdp.Bound(np.array([1.0, 0.3, 0.1]), np.array([2.0, 0.5, 0.2]))
ROWS = [
    ("blanket", 0.402, "sound"),
    ("strong clones (Feldman et al. 2022)", 0.4108, "sound"),
    ("closed form (2021)", 2.2, "sound outside its stated range"),
    ("strong adversary, as printed", 0.2, "unsound"),
    ("Erlingsson et al. 2019", inf, "sound"),
]


def curve() -> Axes:
    return plotting.privacy_curve({"many": ROUND, "few": FEW}, ax=plotting.new_axes())


def against_n() -> Axes:
    return plotting.epsilon_against("n", SIZES, BOUND, delta=1e-8, ax=plotting.new_axes())


def compared() -> Axes:
    ax = plotting.new_axes(height_of(len(ROWS)))
    return plotting.bounds_compared(ROWS, lower=0.4, ax=ax)


PICTURES = [curve, against_n, compared]


def texts(ax: Axes) -> Iterator[Text]:
    """Everything that is written in the picture and can be seen."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text():
            yield text


@pytest.mark.parametrize("picture", PICTURES)
def test_everything_written_lies_inside_the_picture(picture: Callable[[], Axes]) -> None:
    ax = picture()
    figure = ax.get_figure(root=True)
    assert figure is not None
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    frame = figure.bbox.padded(0.5)
    low, high = sorted(ax.get_xlim())
    bottom, top = sorted(ax.get_ylim())
    for text in texts(ax):
        x, y = text.get_position()
        if text in ax.get_xticklabels(which="both") and not low <= x <= high:
            continue  # ticks beyond the axes are not drawn
        if text in ax.get_yticklabels(which="both") and not bottom <= y <= top:
            continue
        box = text.get_window_extent(canvas.get_renderer())
        assert frame.x0 <= box.x0, text
        assert box.x1 <= frame.x1, text
        assert frame.y0 <= box.y0, text
        assert box.y1 <= frame.y1, text


@pytest.mark.parametrize("picture", PICTURES)
@pytest.mark.parametrize("kind", style.FORMATS)
def test_the_same_picture_is_the_same_file(picture: Callable[[], Axes], kind: str, tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.{kind}" for name in ("one", "two")]
    for file in files:
        plotting.save(picture(), file)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_axes_are_labelled_with_units() -> None:
    assert curve().get_xlabel() == "central ε (nats)"
    assert curve().get_ylabel() == "δ (probability)"
    assert against_n().get_xlabel() == "reports in one shuffle, n (users)"
    assert against_n().get_ylabel() == "central ε (nats) at δ = 1e-8"
    assert compared().get_xlabel() == "central ε (nats)"


def test_the_line_is_the_upper_end_and_the_band_reaches_down_to_the_lower() -> None:
    ax = plotting.privacy_curve(ROUND, epsilon=GRID, ax=plotting.new_axes())
    bound = ROUND.delta(epsilon=GRID)
    (line,) = ax.get_lines()
    assert np.array_equal(line.get_xydata(), np.stack([GRID, bound.upper], axis=1))
    corners: Any = ax.collections[0].get_paths()[0].vertices
    for x, low, high in zip(GRID, bound.lower, bound.upper, strict=True):
        heights = corners[corners[:, 0] == x, 1]
        assert low in heights
        assert high in heights
    shown = ax.get_legend()
    assert shown is not None
    words = " ".join(text.get_text() for text in shown.get_texts())
    gap = 1.0 - float(np.min(bound.lower / bound.upper))
    assert ("% wide" in words) == (gap < 0.02)


def test_each_curve_reaches_a_delta_of_a_trillionth_and_the_axis_no_further_than_needed() -> None:
    ax = curve()
    for line in ax.get_lines():
        assert 1e-13 < float(line.get_ydata()[-1]) <= 1e-12
    assert 1e-15 < ax.get_ylim()[0] < 1e-12


def test_a_delta_of_zero_ends_the_line_and_does_not_stretch_the_axis() -> None:
    single = sdp.Shuffled(sdp.BinaryRandomizedResponse(epsilon0=1.0), n=20)
    ax = plotting.privacy_curve(single, epsilon=np.linspace(0.0, 2.0, 5), ax=plotting.new_axes())
    heights = np.asarray(ax.get_lines()[0].get_ydata())
    assert np.array_equal(np.isnan(heights), [False, False, True, True, True])
    assert ax.get_ylim()[0] > 1e-6


def test_wide_ranges_are_logarithmic_and_narrow_ones_begin_at_zero() -> None:
    wide = sdp.Bound(np.array([0.0, 0.0]), np.array([1.0, 0.01]))
    for bound, scale in [(BOUND, "linear"), (wide, "log")]:
        ax = plotting.new_axes()
        values = SIZES[: bound.upper.size]
        plotting.epsilon_against("rounds", values, bound, delta=1e-6, ax=ax)
        assert (ax.get_xscale(), ax.get_yscale()) == ("log", scale)
        assert [text.get_text() for text in ax.texts] == [f"ε ≤ {rounded_up(float(bound.upper[-1]), 4)}"]
    assert against_n().get_ylim()[0] == 0.0


def test_compared_bounds_are_marked_by_soundness_and_none_is_lost() -> None:
    ax = compared()
    assert [label.get_text() for label in ax.get_yticklabels()] == [name for name, _, _ in ROWS]
    marks = {
        float(line.get_xdata()[0]): line.get_marker()
        for line in ax.get_lines()
        if line.get_linestyle() == "None"
    }
    assert marks == {0.402: "o", 0.4108: "o", 2.2: "D", 0.2: "X"}
    words = {text.get_text() for text in texts(ax)}
    assert {"0.402", "0.4108", "2.2", "0.2", "none", "the truth is at least this"} <= words


def test_a_value_far_below_the_truth_stays_at_the_edge_of_a_logarithmic_axis() -> None:
    ax = plotting.new_axes()
    rows = [("wrong", 1e-84, "unsound"), ("loose", 0.5, "sound"), ("tight", 1e-5, "sound")]
    plotting.bounds_compared(rows, quantity="delta", lower=9e-6, ax=ax)
    assert ax.get_xscale() == "log"
    assert 1e-7 < ax.get_xlim()[0] < 9e-6
    marks = [line for line in ax.get_lines() if line.get_marker() == "X"]
    assert [float(line.get_xdata()[0]) for line in marks] == [ax.get_xlim()[0]]
    assert "← 1e-84" in {text.get_text() for text in texts(ax)}


def test_shown_bounds_are_rounded_up() -> None:
    ax = plotting.new_axes()
    plotting.bounds_compared([("one", 0.123411, "sound")], ax=ax)
    assert "0.1235" in {text.get_text() for text in texts(ax)}


def test_series_differ_in_colour_and_in_line_and_print_in_different_greys() -> None:
    assert len(set(style.COLORS)) == len(set(map(str, style.LINES))) == len(style.COLORS) == 7

    def grey(color: str) -> float:
        red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
        return 0.299 * red + 0.587 * green + 0.114 * blue

    # The first four, which most pictures use, stay apart from the paper and from their neighbour.
    shades = [grey(color) for color in style.COLORS[:4]]
    assert max(shades) < 200
    assert all(abs(a - b) > 5 for a, b in pairwise(shades))


def test_new_axes_belong_to_pyplot_and_those_for_files_do_not() -> None:
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    curve()
    assert pyplot.get_fignums() == []
    ax = plotting.delta_against_epsilon([0.0, 1.0, 2.0], BOUND)
    assert ax.get_figure() is pyplot.gcf()
    pyplot.close("all")


def test_drawing_to_a_file_loads_no_window_toolkit(tmp_path: Path) -> None:
    code = (
        "import sys, shuffledp as sdp\n"
        "from shuffledp import plotting\n"
        "assert 'matplotlib' not in sys.modules\n"
        "one = sdp.Shuffled(sdp.LocalRandomizer(1.0), n=100)\n"
        "plotting.save(plotting.privacy_curve(one, ax=plotting.new_axes()), sys.argv[1])\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    source = str(Path(sdp.__file__).parent.parent)
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "curve.png")],
        check=True,
        env={**os.environ, "PYTHONPATH": source},
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda ax: plotting.save(ax, "curve.jpg"), [".png", "curve.jpg"]),
        (lambda ax: plotting.epsilon_against("k", SIZES, BOUND, delta=0.1, ax=ax), ["parameter"]),
        (
            lambda ax: plotting.epsilon_against("n", [1, 2], BOUND, delta=0.1, ax=ax),
            ["bounds", "(2,)", "(3,)"],
        ),
        (lambda ax: plotting.privacy_curve(ROUND, epsilon=[-1.0], ax=ax), ["epsilon", "-1.0"]),
        (lambda ax: plotting.bounds_compared([], ax=ax), ["rows"]),
        (lambda ax: plotting.bounds_compared(ROWS, quantity="k", ax=ax), ["quantity", "'k'"]),
    ],
)
def test_bad_input_is_refused_by_name(call: Callable[[Axes], Any], words: list[str]) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        call(plotting.new_axes())
    for word in words:
        assert word in str(refused.value)


def test_without_matplotlib_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"shuffledp\[plot\]"):
        plotting.new_axes()
