"""The side of a cap on which a drawn direction falls: computed, and in exact arithmetic."""

import math

import numpy as np
import pytest
from flint import arb

from shuffledp._certified.caps import cap_at, cap_of
from shuffledp._randomness.normals import RELATIVE_ERROR, normals
from shuffledp._randomness.words import Words, source
from shuffledp.randomizers._privunit_directions import height_error, heights_and_limits, rejected
from shuffledp.randomizers.privunit import PrivUnit
from shuffledp.randomizers.vectors import sum_by_halves

UNIT = 2.0**-53


def inner(g: np.ndarray, a: np.ndarray) -> arb:
    """<g, a> of doubles, within 2^-300 of it."""
    return sum((arb(x) * arb(y) for x, y in zip(g.tolist(), a.tolist(), strict=True)), arb(0))


def excess(drawn: np.ndarray, axis: np.ndarray, t: float) -> arb:
    """<g, a>/(|g| |a|) - t: positive inside the cap."""
    return inner(drawn, axis) / (inner(drawn, drawn) * inner(axis, axis)).sqrt() - arb(t)


def axes(dimension: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Unit vectors as the randomizer makes them: random, with few entries, with tiny entries."""
    rows = rng.normal(size=(count, dimension))
    rows[1::3, 3:] = 0.0
    rows[2::3] *= 2.0 ** -rng.integers(0, 400, (len(rows[2::3]), dimension))
    rows /= np.abs(rows).max(axis=1)[:, None]
    return PrivUnit(dimension, 1.0)._points(rows, np.ones(count), source(rng))


def near_the_edge(axis: np.ndarray, t: float, rng: np.random.Generator) -> np.ndarray:
    """Doubles whose height misses the threshold by rounding alone, or by a few units more."""
    across = rng.normal(size=axis.shape) * (axis != 0.0)
    across -= (across * axis).sum(axis=1)[:, None] * axis
    across /= np.linalg.norm(across, axis=1)[:, None]
    height = t + rng.integers(-12, 13, len(axis)) * UNIT * rng.choice([0.1, 0.5, 1.0], len(axis))
    length = np.exp2(rng.uniform(-3.0, 3.0, len(axis)))[:, None]
    return length * (height[:, None] * axis + np.sqrt(1.0 - height**2)[:, None] * across)


@pytest.mark.parametrize(("dimension", "count"), [(2, 2000), (3, 2000), (10, 2000), (1000, 800)])
@pytest.mark.parametrize("t", [0.0, 0.01, 0.3, 0.9, 0.999999])
def test_a_direction_is_on_its_exact_side_if_it_is_further_from_the_edge_than_stated(
    dimension: int, count: int, t: float
) -> None:
    rng = np.random.default_rng(dimension)
    axis = axes(dimension, count, rng)
    drawn = near_the_edge(axis, t, rng)
    height, limit = heights_and_limits(drawn, axis, t)
    wrong = []
    for g, a, computed in zip(drawn, axis, height >= limit, strict=True):
        over = excess(g, a, t)
        if bool(computed) != bool(over >= 0):
            wrong.append(abs(float(over)))
    # What the proof says of given doubles; with the error of the doubles it is half of what is stated.
    proved = (2 * (dimension - 1).bit_length() + 9) * UNIT
    assert max(wrong) <= proved
    assert proved + RELATIVE_ERROR <= 0.5 * height_error(dimension)
    assert max(wrong) > 1e-3 * height_error(dimension)  # a thousandth of it would not do


@pytest.mark.parametrize("dimension", [2, 3, 7, 1000, 50_000])
def test_axes_are_unit_vectors_up_to_their_share_of_the_height_error(dimension: int) -> None:
    rng = np.random.default_rng(1)
    levels = (dimension - 1).bit_length()
    for axis in axes(dimension, 9 if dimension > 1000 else 60, rng):
        assert abs(inner(axis, axis).sqrt() - 1) <= ((levels + 3) / 2 + 4) * UNIT


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 8, 31, 1000, 1025])
def test_sums_by_halves_have_every_term_once_and_the_error_of_few_additions(width: int) -> None:
    rng = np.random.default_rng(2)
    whole = rng.integers(-(2**40), 2**40, (3, width)).astype(np.float64)
    np.testing.assert_array_equal(sum_by_halves(whole.copy()), whole.sum(axis=1))
    terms = rng.normal(size=(200, width)) * np.exp(rng.normal(size=(200, width)))
    levels = (width - 1).bit_length()
    for row, total in zip(terms, sum_by_halves(terms.copy()), strict=True):
        error = abs(math.fsum([*row, -total]))  # rounded once
        assert error <= levels * UNIT * 1.0001 * math.fsum(abs(row))


@pytest.mark.parametrize("dimension", [2, 3, 5, 64, 1001, 20_000])
def test_heights_and_limits_do_not_depend_on_the_place_in_a_batch(dimension: int) -> None:
    """Above 8192 terms those of numpy.einsum do."""
    rng = np.random.default_rng(3)
    drawn = normals(60, dimension, source(rng)).reshape(6, 10, dimension)
    axis = axes(dimension, 6, rng)
    height, limit = heights_and_limits(drawn, axis[:, None], 0.3)
    for i in range(6):
        some = heights_and_limits(drawn[i : i + 1, 3:], axis[i : i + 1, None], 0.3)
        assert np.array_equal(some[0][0], height[i, 3:])
        assert np.array_equal(some[1][0], limit[i, 3:])
        for j in (0, 4, 9):
            shifted = np.empty(dimension + 1)[1:]  # another alignment
            shifted[:] = drawn[i, j]
            one = heights_and_limits(shifted, axis[i], 0.3)
            assert one == (height[i, j], limit[i, j])


@pytest.mark.parametrize("dimension", [2, 3, 64])
def test_opposite_directions_have_opposite_heights_and_equal_limits(dimension: int) -> None:
    rng = np.random.default_rng(4)
    drawn = normals(500, dimension, source(rng))
    axis = axes(dimension, 500, rng)
    height, limit = heights_and_limits(drawn, axis, 0.2)
    opposite = heights_and_limits(-drawn, axis, 0.2)
    np.testing.assert_array_equal(opposite[0], -height)
    np.testing.assert_array_equal(opposite[1], limit)


def test_no_direction_is_in_the_cap_and_in_its_antipode_even_at_threshold_zero() -> None:
    drawn = np.array([[0.0, 1.0], [-0.0, 1.0], [1e-300, 1.0], [-1e-300, 1.0]])
    height, limit = heights_and_limits(drawn, np.array([1.0, 0.0]), 0.0)
    inside, opposite = height >= limit, -height >= limit
    assert inside.tolist() == [False, False, True, False]
    assert opposite.tolist() == [False, False, False, True]


@pytest.mark.parametrize("probability", [0.2, 0.5])
@pytest.mark.parametrize("turned", [False, True])
def test_reports_are_on_the_side_that_was_asked_for(probability: float, turned: bool) -> None:
    rng = np.random.default_rng(5)
    cap = cap_of(4, probability)
    axis = axes(4, 3000, rng) * (-1.0 if turned else 1.0)
    inside = rng.random(3000) < 0.5
    reports = rejected(axis, inside, cap, source(rng)).astype(np.float64)
    height = (reports * axis).sum(axis=1)
    assert (height[inside] >= cap.threshold - 1e-6).all()
    assert (height[~inside] < cap.threshold + 1e-6).all()


class Replay(Words):
    """Rows of words, one row per call, repeated to the wanted number."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows, self.calls = rows, 0

    def draw(self, count: int) -> np.ndarray:
        row = self.rows[self.calls % len(self.rows)]
        self.calls += 1
        return np.resize(row, count)


def test_a_direction_and_its_opposite_give_the_same_report_inside() -> None:
    cap = cap_at(2, 0.5)
    axis, inside = np.array([[1.0, 0.0]]), np.array([True])
    # Words: a length, then an angle near 0 whose low bits are the signs.
    length, angle = 2**63 + 8, 2**60 + 8
    first, second = (
        rejected(axis, inside, cap, Replay(np.array([[length], [angle + low]], np.uint64))) for low in (0, 3)
    )
    np.testing.assert_array_equal(first, second)
    assert first[0, 0] > 0.5
