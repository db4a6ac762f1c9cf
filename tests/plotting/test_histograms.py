"""Pictures of results: the estimates, their intervals and the truth are where the numbers are."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from shuffledp import plotting
from shuffledp.collecting.histogram import HistogramProtocol
from shuffledp.collecting.number import MeanProtocol
from shuffledp.collecting.result import HistogramResult, NumberResult
from shuffledp.plotting._curves import learning_curve
from shuffledp.plotting._rows import NAMED, estimate, height_of, histogram, histogram_height
from shuffledp.randomizers.kary import KaryRandomizedResponse

pytestmark = pytest.mark.quick

ROWS = [{"round": r, "epsilon": 0.1 * r**0.5, "accuracy": 1 - 0.9**r, "loss": 0.9**r} for r in (1, 4, 9)]


def counted(k: int, n: int = 600) -> tuple[HistogramResult, Any]:
    """A result with rather wide intervals, and the truth."""
    names = [f"a category with the long name ${i}$" if i % 2 else f"c{i}" for i in range(k)]
    answer = KaryRandomizedResponse(k=k, epsilon0=1.5)
    protocol = HistogramProtocol(names, epsilon=1.5, delta=1e-6, n=n, randomizer=answer)
    values = np.arange(n) % k // 2
    rng = np.random.default_rng(1)
    reports = protocol.randomize([names[i] for i in values], rng=rng)
    return protocol.analyze(reports), np.bincount(values, minlength=k)


def mean() -> NumberResult:
    ages = MeanProtocol(
        0, 100, epsilon=3.0, delta=1e-6, n=500, randomizer=KaryRandomizedResponse(k=3, epsilon0=3.0)
    )
    return ages.analyze(ages.randomize([20.0, 40.0] * 250, rng=np.random.default_rng(2)))


def few() -> Axes:
    result, truth = counted(5)
    return histogram(result, truth=truth, ax=plotting.new_axes(histogram_height(5)))


def many() -> Axes:
    result, truth = counted(NAMED + 1)
    return histogram(result, truth=truth, ax=plotting.new_axes(histogram_height(NAMED + 1)))


def means() -> Axes:
    results = {"this year": mean(), "last year": mean()}
    return estimate(results, truth=30.0, ax=plotting.new_axes(height_of(2)))


def learned() -> Axes:
    return learning_curve({"a": ROWS, "b": ROWS[:2]}, delta=1e-5, ax=plotting.new_axes())


PICTURES = [few, many, means, learned]


def whiskers(ax: Axes) -> Any:
    """The segments of the error bars, one per estimate."""
    (bars,) = ax.containers if len(ax.containers) == 1 else ax.containers[1:]
    return np.array(bars[2][0].get_segments())


def labelled(ax: Axes, label: str) -> Any:
    """The points of the line with this label."""
    (line,) = (line for line in ax.get_lines() if line.get_label() == label)
    return np.asarray(line.get_xydata())


@pytest.mark.parametrize("picture", PICTURES)
def test_everything_written_lies_inside_the_picture(picture: Callable[[], Axes]) -> None:
    ax = picture()
    figure = ax.get_figure(root=True)
    assert figure is not None
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    ticks = {*ax.get_xticklabels(which="both"), *ax.get_yticklabels(which="both")}
    seen = 0
    for text in figure.findobj(Text):
        box = text.get_window_extent(canvas.get_renderer())
        inside = figure.bbox.padded(0.5)
        if text.get_visible() and text.get_text() and text not in ticks:
            seen += 1
            assert inside.containsx(box.x0), text
            assert inside.containsx(box.x1), text
            assert inside.containsy(box.y0), text
            assert inside.containsy(box.y1), text
    assert seen >= 2


@pytest.mark.parametrize("picture", PICTURES)
def test_the_same_picture_is_the_same_file(picture: Callable[[], Axes], tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("one.svg", "two.svg")]
    for file in files:
        plotting.save(picture(), file)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_bars_are_the_estimates_and_whiskers_the_intervals() -> None:
    result, truth = counted(5)
    ax = histogram(result, truth=truth, confidence=0.8, ax=plotting.new_axes())
    patches: Any = ax.patches
    assert np.allclose([bar.get_width() for bar in patches], result.counts, rtol=1e-12)
    low, high = result.interval(0.8)
    assert np.allclose(whiskers(ax)[:, :, 0], np.stack([low, high], axis=1), rtol=1e-12)
    assert np.array_equal(labelled(ax, "truth (simulation)")[:, 0], truth)
    assert ax.get_xlabel() == "people (count)"


def test_an_interval_is_drawn_where_it_is_even_beside_an_impossible_estimate() -> None:
    result, _ = counted(20)
    low, _ = result.interval()
    assert (result.counts < low).any(), "the case must occur: a negative estimate"
    assert np.allclose(whiskers(histogram(result, ax=plotting.new_axes()))[:, 0, 0], low)


def test_many_categories_are_numbered_and_few_are_named() -> None:
    result, _ = counted(NAMED + 1)
    ax = many()
    points = labelled(ax, "unbiased estimate")
    assert np.array_equal(points, np.stack([np.arange(NAMED + 1), result.counts], axis=1))
    assert f"to {NAMED}: c{NAMED})" in ax.get_xlabel()
    assert ax.get_ylabel() == "people (count)"
    low, high = result.interval()
    assert np.allclose(whiskers(ax)[:, :, 1], np.stack([low, high], axis=1), rtol=1e-12)
    names = [label.get_text() for label in few().get_yticklabels()]
    assert names[0] == "c0"
    assert names[1].startswith("a category")
    assert names[1].endswith("name $1$")


def test_without_a_truth_none_is_drawn() -> None:
    ax = histogram(counted(5)[0], ax=plotting.new_axes())
    assert all("truth" not in str(line.get_label()) for line in ax.get_lines())


def test_a_truth_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match=r"truth must have a count for each of 5 .* \(4,\)"):
        histogram(counted(5)[0], truth=[1, 2, 3, 4], ax=plotting.new_axes())


def test_sums_and_means_are_drawn_with_their_intervals() -> None:
    ax, one = means(), mean()
    assert np.allclose(labelled(ax, "unbiased estimate")[:, 0], one.value)
    assert np.allclose(whiskers(ax)[0, :, 0], one.interval())
    assert [label.get_text() for label in ax.get_yticklabels()] == ["this year", "last year"]
    assert labelled(ax, "truth (simulation)")[0, 0] == 30.0
    single = estimate(one, ax=plotting.new_axes())
    assert single.get_xlabel() == "mean (in the units of the data)"
    with pytest.raises(ValueError, match="at least one"):
        estimate({}, ax=plotting.new_axes())


def test_a_learning_curve_shows_what_was_measured_against_what_it_cost() -> None:
    ax = learning_curve(ROWS, delta=1e-5, ax=plotting.new_axes())
    (line,) = ax.get_lines()
    expected = [[row["epsilon"], row["accuracy"]] for row in ROWS]
    assert np.array_equal(line.get_xydata(), expected)
    assert ax.get_xlabel() == "central ε (nats) at δ = 1e-5"
    assert ax.get_ylabel() == "accuracy (fraction)"
    assert ax.get_xlim()[0] == 0.0


def test_another_measure_and_the_rounds_can_be_chosen() -> None:
    ax = learning_curve(ROWS, measure="loss", against="round", ax=plotting.new_axes())
    assert np.array_equal(ax.get_lines()[0].get_xdata(), [1, 4, 9])
    assert ax.get_ylabel() == "loss (nats)"
    assert ax.get_xlabel() == "rounds"
    assert len(learned().get_lines()) == 2


def test_a_history_without_measures_or_epsilon_is_refused() -> None:
    with pytest.raises(ValueError, match=r"measured: .* got rows of round, epsilon"):
        learning_curve([{"round": 1, "epsilon": 0.1}], ax=plotting.new_axes())
    with pytest.raises(ValueError, match="'epsilon' beside 'accuracy'"):
        learning_curve([{"round": 1, "accuracy": 0.1}], ax=plotting.new_axes())
    with pytest.raises(ValueError, match="measure must be one of 'accuracy', 'loss'"):
        learning_curve(ROWS, measure="f1", ax=plotting.new_axes())
    with pytest.raises(ValueError, match="got rows of nothing"):
        learning_curve([], ax=plotting.new_axes())
