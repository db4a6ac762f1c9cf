"""Directions by an exact rotation (T10): lattice normals, a bijection that keeps lengths, sides, heights."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
from flint import arb
from scipy import stats

from shuffledp import PrivUnit
from shuffledp._certified.caps import cap_of
from shuffledp._randomness import normals as lattice
from shuffledp._randomness.normals import STEP, lattice_normals
from shuffledp._randomness.words import Words, source
from shuffledp.randomizers import _privunit_directions as rotations
from shuffledp.randomizers._privunit_directions import in_cap, rotated, turn

pytestmark = pytest.mark.quick


def words(seed: int = 1) -> Words:
    return source(np.random.default_rng(seed))


def test_every_bin_is_proposed_and_kept_in_proportion_to_the_density() -> None:
    """copies * kept is one number for all bins, and no point would have to be kept more often than always."""
    copies = np.bincount(lattice._BIN, minlength=97)[:96]
    level = copies * lattice._KEPT
    assert np.ptp(level) <= 4 * np.finfo(float).eps * level.max()
    edges = np.exp(-0.5 * (np.arange(96) / 16) ** 2)
    assert (lattice._KEPT * edges <= 2.0**64).all()
    left = 4096 - copies.sum()
    mass = 16 * arb(float(level[0])) * (arb.pi() / 2).sqrt() * (arb(6) / arb(2).sqrt()).erfc()
    assert abs(float(mass / (int(left) * arb(lattice._KEPT_BEYOND))) - 1.0) < 30 * 2.0**-53


def test_points_are_kept_as_often_as_the_exact_density_says() -> None:
    """The threshold of given points, against ball arithmetic: within 48 units."""

    class Fixed(Words):
        def __init__(self) -> None:
            self.parts: Iterator[np.ndarray] = iter([points, levels])

        def draw(self, count: int) -> np.ndarray:
            return next(self.parts).copy()

    rng = np.random.default_rng(3)
    points = rng.integers(0, 4095 << 52, 400, dtype=np.uint64)  # of the core
    levels = np.zeros(400, np.uint64)
    kept = np.abs(lattice._drawn(400, Fixed()))
    places = lattice._BIN[points >> np.uint64(52)]
    assert kept.size == 400  # at level zero
    for y, place in zip(kept[:100].tolist(), places[:100].tolist(), strict=True):
        assert place * 2.0**40 < y < (place + 1) * 2.0**40
        exact = arb(lattice._KEPT[place]) * (-((arb(y) * arb(STEP)) ** 2) / 2).exp()
        x = np.exp(-0.5 * (y * STEP) * (y * STEP)) * lattice._KEPT[place]
        assert abs(float(arb(float(x)) / exact) - 1.0) < 48 * 2.0**-53


def test_lattice_normals_are_normal_also_in_the_tail() -> None:
    drawn = lattice_normals(200_000, words())
    assert ((drawn - 0.5) == np.rint(drawn - 0.5)).all()
    assert stats.kstest(drawn * STEP, stats.norm.cdf).pvalue > 1e-4
    source_of = words(2)
    tail = np.array([lattice._beyond(source_of) for _ in range(1500)]) * STEP
    assert tail.min() > 6.0
    assert stats.kstest(tail, lambda x: 1.0 - stats.norm.sf(x) / stats.norm.sf(6.0)).pvalue > 1e-4


def axes(count: int, dimension: int, rng: np.random.Generator) -> np.ndarray:
    """Dense, with few, tiny and vanishing entries (squares underflow), the first axis and a last one."""
    rows = rng.normal(size=(count, dimension))
    rows[5::10, 1:] *= 2.0**-538
    rows[1::5, 4:] = 0.0
    rows[2::5] *= 2.0 ** -rng.integers(0, 300, (len(rows[2::5]), dimension))
    rows[3::5], rows[4::5] = 0.0, 0.0
    rows[3::5, 0], rows[4::5, -1] = 1.0, -1.0
    return rows / np.linalg.norm(rows, axis=1)[:, None]


def turned_back(turned: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """The inverse, written from the shears: signs, then the planes in the opposite order."""
    y = np.copysign(1.0, axis) * turned
    share, planes = np.where(np.abs(axis) < 2.0**-500, 0.0, np.abs(axis)), []
    while share.size > 1:
        half = 1 << ((share.size - 1).bit_length() - 1)
        above = share[:half].copy()
        above[: share.size - half] = np.sqrt(above[: share.size - half] ** 2 + share[half:] ** 2)
        planes.append((half, share, above))
        share = above
    for half, below, above in planes:
        for i in range(below.size - half):
            if above[i] == 0.0:
                continue
            sine = below[half + i] / above[i]
            tangent = sine / (1.0 + below[i] / above[i])
            y[i] += np.rint(tangent * y[half + i])
            y[half + i] -= np.rint(sine * y[i])
            y[i] += np.rint(tangent * y[half + i])
    return y


@pytest.mark.parametrize("dimension", [2, 3, 7, 512, 777])
def test_the_rotation_is_undone_exactly_keeps_lengths_and_takes_the_first_axis_to_the_input(
    dimension: int,
) -> None:
    rng = np.random.default_rng(dimension)
    axis = axes(10, dimension, rng)
    drawn = lattice_normals(10 * dimension, words()).reshape(10, dimension)
    turned = turn(drawn.copy(), axis)
    for before, after, one in zip(drawn, turned, axis, strict=True):
        assert (turned_back(after, one) == before).all()
        assert (turn(before[None].copy(), one[None])[0] == after).all()  # wherever it stands in a batch
        squares = [sum((arb(v) * arb(v) for v in row.tolist()), arb(0)) for row in (before, after)]
        assert abs(float(squares[1].sqrt() - squares[0].sqrt())) <= 6.7 * math.sqrt(dimension)
        height = sum((arb(v) * arb(w) for v, w in zip(after.tolist(), one.tolist(), strict=True)), arb(0))
        assert (
            abs(float(height - arb(float(before[0])))) <= 6.7 * math.sqrt(dimension) + 64 * 2.0**-53 * 2.0**50
        )


def test_no_two_points_of_a_plane_are_turned_into_one() -> None:
    grid = np.arange(-40, 40) + 0.5
    points = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    for angle in (0.0, 0.3, 1.0, 2.5, -0.7, math.pi / 2):
        axis = np.tile([math.cos(angle), math.sin(angle)], (len(points), 1))
        assert len(np.unique(turn(points.copy(), axis), axis=0)) == len(points)


@pytest.mark.parametrize(("dimension", "step"), [(2, 2.0**-6), (3, 2.0**-3)])
def test_densities_of_turned_vectors_by_enumeration(dimension: int, step: float) -> None:
    """The whole lattice of a ball, a coarse one: what every input sends, point by point, from the definition.

    A side of probability p is drawn by the normal law of the lattice, and turned. Against that law no density
    is below (1 - p)/(1 - q) or above p/q by more than lengths are stretched, nor two inputs apart by more."""
    ball, p = 3.5, 0.7
    line = np.arange(-math.ceil(ball / step), math.ceil(ball / step)) + 0.5
    points = np.stack(np.meshgrid(*[line] * dimension), axis=-1).reshape(-1, dimension)
    points = points[np.linalg.norm(points, axis=1) * step <= ball]
    mass = np.exp(-0.5 * (points * step) ** 2).prod(axis=1)
    inside = points[:, 0] * step >= 0.8
    q = mass[inside].sum() / mass.sum()
    side = np.where(inside, p / q, (1.0 - p) / (1.0 - q))
    least = 6.7 * step * math.sqrt(dimension) * (ball + 7.0 * step * math.sqrt(dimension))
    rng = np.random.default_rng(dimension)
    for axis in axes(11, dimension, rng):
        turned = turn(points.copy(), np.tile(axis, (len(points), 1)))
        assert len(np.unique(turned, axis=0)) == len(points)
        there = np.exp(-0.5 * (turned * step) ** 2).prod(axis=1)
        density = side * mass / there  # with respect to the lattice law, up to the same constant for all
        assert np.abs(np.log(density / side)).max() <= least
        assert density.max() / density.min() <= (p / q) / ((1.0 - p) / (1.0 - q)) * math.exp(2.0 * least)


@pytest.mark.parametrize("probability", [0.42, 0.115, 0.003])
def test_reports_have_the_heights_of_their_side_and_any_direction_across(probability: float) -> None:
    dimension, count = 600, 400
    cap = cap_of(dimension, probability)
    rng = np.random.default_rng(4)
    axis = rng.normal(size=dimension)
    axis /= np.linalg.norm(axis)
    other = np.eye(dimension)[5] - axis[5] * axis
    other /= np.linalg.norm(other)
    law = stats.beta((dimension - 1) / 2, (dimension - 1) / 2, loc=-1.0, scale=2.0)
    for inside in (True, False):
        found = rotated(np.tile(axis, (count, 1)), np.full(count, inside), cap, words(7)).astype(float)
        heights = found @ axis
        q = law.sf(cap.threshold)
        shares = law.sf(heights) / q if inside else law.cdf(heights) / (1.0 - q)
        assert -1e-6 <= shares.min() <= shares.max() <= 1.0 + 1e-4  # single precision
        assert stats.kstest(shares, "uniform").pvalue > 1e-4
        across = (found @ other) / np.sqrt(1.0 - heights**2)
        assert stats.kstest(across * math.sqrt(dimension - 1), "norm").pvalue > 1e-4


def test_the_side_is_one_function_of_the_vector() -> None:
    cap = cap_of(600, 0.2)
    drawn = lattice_normals(50 * 600, words()).reshape(50, 600)
    drawn[:, 0] = cap.threshold * np.linalg.norm(drawn, axis=1)  # next to the edge
    together = in_cap(drawn, cap)
    assert [bool(in_cap(row[None], cap)[0]) for row in drawn] == together.tolist()
    assert 0 < together.sum() < 50


def test_margins_are_small_and_count_what_they_should() -> None:
    turned, plain = PrivUnit(3010, 2.0, cap_probability=0.115), PrivUnit(400, 2.0, cap_probability=0.115)
    assert turned._rotates
    assert not plain._rotates
    assert not PrivUnit(3010, 0.05)._rotates
    assert not PrivUnit(20_000, 2.0)._rotates
    assert rotations.twist(3010) < turned.margin < 5e-9
    assert turned.realised_epsilon0 <= 2.0
    # q of the two extreme densities, solved exactly: within the margin of q.
    tau, q = rotations.twist(3010), turned.cap.small
    p = turned.weight / 2**64
    low, high = (1.0 - tau) * (1.0 - p) / (1.0 - q), (1.0 + tau) * p / q
    assert math.log(high / low) <= 2.0
    assert abs((1.0 - low) / (high - low) / q - 1.0) <= turned.margin


def test_a_report_takes_few_draws_whatever_the_cap_is() -> None:
    """Words per report, the cost: by rejection they would be a hundred times as many at epsilon0 = 8."""

    class Counted(Words):
        def __init__(self) -> None:
            self.inner, self.count = words(5), 0

        def draw(self, count: int) -> np.ndarray:
            self.count += count
            return self.inner.draw(count)

    spent = []
    for epsilon0 in (0.5, 8.0):
        randomizer, counted = PrivUnit(2000, epsilon0), Counted()
        rows = np.tile(np.full(2000, 2000**-0.5), (40, 1))
        randomizer._report(rows, np.ones(40), counted)
        spent.append(counted.count)
    assert spent[1] < 4.0 * spent[0]
    assert spent[0] < 40 * 2000 * 2 * 1.5
