"""Tails of sums on a lattice against plain enumeration and convolution."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from shuffledp._certified import frequencies, lattice_sum
from shuffledp._certified.lattice_sum import ERROR_UNITS, Group, HockeyStick, Own, tail_sum

pytestmark = pytest.mark.quick


def brute_tail(z: list[int], w: list[float], count: int, own: dict[int, float], k0: int) -> float:
    total = 0.0
    for atoms in itertools.product(range(len(z)), repeat=count):
        weight = math.prod(w[i] for i in atoms)
        total += sum(c * weight for at, c in own.items() if sum(z[i] for i in atoms) + at >= k0)
    return total


@pytest.mark.parametrize("theta", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("k0", [-3, 0, 2, 6])
def test_tails_of_lattice_sums_are_enclosed(theta: float, k0: int) -> None:
    z, w = [-2, 0, 1, 3], [0.2, 0.4, 0.3, 0.1]
    own = {0: 0.7, 2: -0.4}
    exact = brute_tail(z, w, 5, own, k0)
    group = Group(np.array([z], float), np.array([w]), np.array([5.0]))
    measure = Own(np.array([[0.0, 2.0]]), np.array([[[0.7], [-0.4]]]))
    result = tail_sum([group], measure, np.array([float(k0)]), np.array([theta]))
    scale = math.exp(result.log_scale[0])
    assert abs(scale * result.value[0, 0] - exact) <= scale * result.error[0, 0] + 1e-15
    assert result.error[0, 0] <= 1e-11  # relative to the tilted total


def test_shifted_thresholds_are_those_thresholds() -> None:
    z, w = [0, 1, 5], [0.5, 0.3, 0.2]
    group = Group(np.array([z], float), np.array([w]), np.array([4.0]))
    measure = Own(np.zeros((1, 1)), np.ones((1, 1, 1)))
    result = tail_sum([group], measure, np.array([6.0]), np.array([0.2]), shifts=(-2, 0, 3))
    exact = [brute_tail(z, w, 4, {0: 1.0}, k) for k in (4, 6, 9)]
    assert math.exp(result.log_scale[0]) * result.value[0] == pytest.approx(exact, rel=1e-10)


def test_the_hockey_stick_payoff_of_wide_laws_by_transform() -> None:
    """More than 24 atoms: the Fourier transform is used; against plain convolution."""
    rng = np.random.default_rng(7)
    w = rng.random(41)
    w /= w.sum()
    law = np.convolve(np.convolve(w, w), w)
    index = np.arange(law.size) - 60
    h, epsilon = 0.01, 0.123
    exact = float((law * np.maximum(-np.expm1(epsilon - h * index), 0.0)).sum())
    k0 = math.ceil(epsilon / h)
    group = Group((np.arange(41.0) - 20.0)[None, :], w[None, :], np.array([3.0]))
    payoff = HockeyStick(np.array([-math.expm1(epsilon - h * k0)]), np.array([h]))
    measure = Own(np.zeros((1, 1)), np.ones((1, 1, 1)))
    result = tail_sum([group], measure, np.array([float(k0)]), np.array([0.1]), payoff)
    scale = math.exp(result.log_scale[0])
    assert abs(scale * result.value[0, 0] - exact) <= scale * result.error[0, 0] + 1e-15
    assert scale * result.error[0, 0] <= 1e-10


def test_transforms_are_of_smooth_sizes() -> None:
    assert frequencies._LARGEST_TRANSFORM == frequencies._SMOOTH[-1] <= frequencies._LARGEST_SMOOTH
    rng = np.random.default_rng(3)
    sizes = frequencies.smooth_size(rng.integers(3, frequencies._LARGEST_TRANSFORM, 500))
    for prime in (3, 5, 7):
        while (whole := sizes % prime == 0).any():
            sizes[whole] //= prime
    assert np.all(sizes == 1)
    beyond = np.arange(frequencies._LARGEST_TRANSFORM + 1, frequencies._LARGEST_SMOOTH, 1001)
    assert np.all(frequencies.smooth_size(beyond) > frequencies._LARGEST_TRANSFORM)  # never transformed


def test_a_batch_of_wide_laws_by_transforms_is_that_of_rationals() -> None:
    """Rows of different sizes, two groups, two signed outputs."""
    rng = np.random.default_rng(11)
    counts, k0 = np.array([2.0, 4.0, 3.0]), np.array([150.0, 300.0, 10.0])
    wide = np.array([rng.choice(600, 26, replace=False) - 300 for _ in range(3)])
    narrow = np.array([[0, 1], [0, 7], [-3, 4]])
    weights = [rng.integers(1, 2**20, z.shape) for z in (wide, narrow)]
    groups = [
        Group(z.astype(float), w / w.sum(axis=1, keepdims=True), c)
        for z, w, c in zip((wide, narrow), weights, (counts, np.ones(3)), strict=True)
    ]
    own = Own(wide.astype(float), rng.integers(-50, 100, (3, 26, 2)) / 64.0)
    result = tail_sum(groups, own, k0, np.array([0.01, 0.002, 0.03]))
    for i in range(3):
        law = _power(dict(zip(wide[i].tolist(), weights[0][i].tolist(), strict=True)), int(counts[i]))
        law = _times(law, dict(zip(narrow[i].tolist(), weights[1][i].tolist(), strict=True)))
        total = sum(law.values())
        for output in range(2):
            exact = sum(
                weight * Fraction(c)
                for k, weight in law.items()
                for z, c in zip(wide[i].tolist(), own.c[i, :, output].tolist(), strict=True)
                if k + z >= k0[i]
            ) / Fraction(total)
            scale = math.exp(result.log_scale[i])
            assert abs(scale * result.value[i, output] - float(exact)) <= scale * result.error[i, output]
            assert result.error[i, output] <= 1e-7


def _times(first: dict[int, int], second: dict[int, int]) -> dict[int, int]:
    product: dict[int, int] = {}
    for (a, u), (b, v) in itertools.product(first.items(), second.items()):
        product[a + b] = product.get(a + b, 0) + u * v
    return product


def _power(law: dict[int, int], count: int) -> dict[int, int]:
    result = {0: 1}
    for _ in range(count):
        result = _times(result, law)
    return result


def test_first_bounds_of_wide_laws_hold_on_their_cells() -> None:
    rng = np.random.default_rng(7)
    for spread, atoms in ((3.0, 30), (40.0, 60)):
        z = np.unique(np.rint(rng.normal(5.0, spread, 4 * atoms)))[None, :atoms]
        w = rng.uniform(0.1, 1.0, z.shape)
        w /= w.sum()
        mean = (w * z).sum(axis=1)
        deviation = np.sqrt((w * (z - mean) ** 2).sum(axis=1))
        count, one = np.array([50.0]), np.ones(1)
        law = frequencies.Tilted(0.1 * one, z, w, count, mean, deviation, np.abs(z).max() * one, 1e-15 * one)
        half, cells = np.array([5000]), 256
        bound = frequencies._log_bounds([law], 0, cells, half)
        omega = 2.0 * np.pi * np.arange(half[0] + 1) / (2 * half[0] + 1)
        size = np.abs((w * np.exp(1j * omega[:, None] * z)).sum(axis=1))
        cell = np.minimum((omega / np.pi * cells).astype(int), cells - 1)
        assert (bound[cell] >= 50.0 * np.log(np.maximum(size, 1e-300))).all()
        assert (bound < -1.0).mean() > 0.3


@pytest.mark.parametrize("rare", [1e-9, 1e-6, 1e-4])
def test_bounds_of_cells_hold_where_atoms_have_next_to_no_weight(rare: float) -> None:
    """Some of them far out, in two problems with different ones."""
    z = np.array([[-3.0, 0.0, 1.0, 4.0, -(10.0**6), 77_777.0], [-2.0, 0.0, 3.0, 5.0, 9.0, 12_345.0]])
    w = np.array([[0.2, 0.5, 0.2, 0.1, 0.7 * rare, 0.3 * rare], [0.3, 0.3, 0.2, 0.2, 0.5 * rare, 0.9 * rare]])
    w /= w.sum(axis=1, keepdims=True)
    mean = (w * z).sum(axis=1)
    deviation = np.sqrt((w * (z - mean[:, None]) ** 2).sum(axis=1))
    one, half = np.ones(2), np.array([3000, 3000])
    law = frequencies.Tilted(0.1 * one, z, w, 200.0 * one, mean, deviation, 1e6 * one, 1e-15 * one)
    r = np.arange(3001.0)
    size = np.abs((w[:, None] * np.exp(2j * np.pi / 6001.0 * r[None, :, None] * z[:, None])).sum(axis=2))
    low = np.arange(0.0, 3000.0, 4.0)
    for rows in (np.zeros(low.size, np.int64), np.ones(low.size, np.int64)):
        bound = frequencies._log_bound([law], rows, low, low + 4.0, half)
        exact = 200.0 * np.log(size[rows[0], 1:]).reshape(-1, 4).max(axis=1)
        assert (bound >= exact).all()
    both = np.repeat([0, 1], low.size)
    together = frequencies._log_bound([law], both, np.tile(low, 2), np.tile(low + 4.0, 2), half)
    exact = np.concatenate([200.0 * np.log(row[1:]).reshape(-1, 4).max(axis=1) for row in size])
    assert (together >= exact).all()
    assert rare > 1e-8 or (together - exact).min() < 0.5


@pytest.mark.parametrize("depth", [16.0, 24.0, 46.0])
@pytest.mark.parametrize("theta", [1e-3, 0.05, 0.5, 2.0])
def test_a_sum_of_any_depth_encloses_the_convolved_tail(depth: float, theta: float) -> None:
    n, k0 = 40, 12
    z, w = np.array([[-2.0, 0.0, 1.0, 5.0]]), np.array([[0.3, 0.45, 0.2, 0.05]])
    own = np.array([[-0.5, 0.2, 0.4, 1.5]])
    law, shift = np.ones(1), 0
    one = np.zeros(8)
    one[[0, 2, 3, 7]] = w[0]
    for _ in range(n):
        law, shift = np.convolve(law, one), shift - 2
    mine = np.zeros(8)
    mine[[0, 2, 3, 7]] = own[0]
    whole = np.convolve(law, mine)
    exact = float(whole[k0 - (shift - 2) :].sum())
    result = tail_sum(
        [Group(z, w, np.array([float(n)]))],
        Own(z, own[:, :, None]),
        np.array([float(k0)]),
        np.array([theta]),
        depth=depth,
    )
    scale = np.exp(result.log_scale[0])
    value, error = scale * result.value[0, 0], scale * result.error[0, 0]
    assert abs(value - exact) <= error * (1.0 + 1e-6) + 1e-14


def few_values(rng: np.random.Generator, rows: int, values: int) -> frequencies.Tilted:
    """Random laws, some of whose values are alike or have no weight."""
    z = rng.integers(-12, 13, (rows, values)).astype(float)
    w = rng.random((rows, values)) ** 3 * (rng.random((rows, values)) < 0.8)
    w[:, 0] += 1e-3
    count = rng.choice([30.0, 400.0, 1e4, 1e7], rows)
    group = Group(z, w / w.sum(axis=1, keepdims=True), count)
    return lattice_sum._tilt(group, rng.choice([1e-3, 0.02, 0.3], rows), ERROR_UNITS)[0]


def moduli(law: frequencies.Tilted, row: int, points: int) -> np.ndarray:
    """|phi| at every frequency, by its definition."""
    omega = 2.0 * np.pi * np.arange(points // 2 + 1) / points
    return np.abs((law.w[row] * np.exp(1j * omega[:, None] * law.z[row])).sum(axis=1))


@pytest.mark.parametrize("seed", range(6))
def test_two_values_bound_a_transform_wherever_they_are_out_of_phase(seed: int) -> None:
    law = few_values(np.random.default_rng(seed), 12, 5)
    for row in range(12):
        size = moduli(law, row, 999)
        omega = 2.0 * np.pi * np.arange(size.size) / 999
        for i, j in itertools.combinations(range(5), 2):
            w, other = law.w[row, [i, j]]
            rho = 2.0 * w * other / max(w + other, 1e-300)
            sine = np.sin(0.5 * omega * (law.z[row, i] - law.z[row, j]))
            assert np.all(size <= 1.0 - rho * sine**2 + 1e-13)


@pytest.mark.parametrize("seed", range(6))
def test_every_frequency_that_matters_is_in_a_cell_to_begin_with_and_is_kept(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    law, depth = few_values(rng, 24, 6), 30.0
    points = 2 * rng.integers(40, 1200, 24) + 1
    half, every = (points - 1) // 2, np.arange(24)
    cells = np.minimum(np.clip(np.ceil(4.0 * law.deviation), 4, 4096).astype(np.int64), half + 1)
    begun = frequencies._beside_returns(law, every, cells, half, depth)
    kept = frequencies._frequencies([law], points, every, np.zeros(24, bool), depth)[:2]
    fewer = 0
    for row in range(24):
        with np.errstate(divide="ignore"):
            power = law.count[row] * np.log(moduli(law, row, int(points[row])))
        matters = np.flatnonzero(power > -depth)
        low, high = (side[begun[0] == row] for side in begun[1:])
        inside = (low[:, None] <= matters) & (matters <= high[:, None])
        assert inside.any(axis=0).all()
        assert np.isin(matters, kept[1][kept[0] == row]).all()
        fewer += float((high - low).sum()) < 0.7 * half[row]
    assert fewer >= 8  # two values tell mostly enough


def wide_law(rng: np.random.Generator, count: float, theta: float) -> frequencies.Tilted:
    """Some dozens of values, irregularly spread, with more or less heavy tails."""
    z = np.unique(np.rint(rng.choice([1.0, 8.0, 30.0]) * rng.standard_t(rng.choice([3, 30]), 60)))
    w = rng.random(z.size) ** 2 + 1e-6
    group = Group(z[None], (w / w.sum())[None], np.array([count]))
    return lattice_sum._tilt(group, np.array([theta]), ERROR_UNITS)[0]


@pytest.mark.parametrize("seed", range(8))
def test_two_moments_bound_a_transform_and_its_slope_is_at_most_the_deviation(seed: int) -> None:
    law = wide_law(np.random.default_rng(seed), 1e3, 0.01)
    omega = np.linspace(0.0, np.pi, 4001)
    size = np.abs((law.w[0] * np.exp(1j * omega[:, None] * law.z[0])).sum(axis=1))
    away = law.z[0] - (law.w[0] * law.z[0]).sum()
    second, fourth = ((law.w[0] * away**power).sum() for power in (2, 4))
    assert np.all(size**2 <= 1.0 - second * omega**2 + (fourth + 3.0 * second**2) / 12.0 * omega**4 + 1e-12)
    assert np.all(np.abs(np.diff(size)) <= math.sqrt(second) * np.diff(omega) + 1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_frequencies_next_to_zero_are_all_that_matter_and_their_transforms_are_right(seed: int) -> None:
    rng = np.random.default_rng(200 + seed)
    count, depth = float(rng.choice([150, 1000, 10**5, 10**7])), 30.0
    law = wide_law(rng, count, float(rng.choice([1e-3, 0.02])))
    points = 2 * int(rng.integers(40, 6000)) + 1
    found = frequencies._next_to_zero(law, 0, points, depth)
    if found is None:
        return
    phi, error = found
    exact = [
        sum(
            w * np.exp(2j * np.pi * (int(z) * r % points) / points)
            for w, z in zip(law.w[0], law.z[0], strict=True)
        )
        for r in range(phi.size)
    ]
    assert np.abs(phi - exact).max() <= error + 1e-14
    with np.errstate(divide="ignore"):
        power = count * np.log(moduli(law, 0, points))
    assert np.all(power[phi.size :] <= -depth)


def rare_law(rng: np.random.Generator, count: float) -> Group:
    """Most weight on one value, and values of all sizes, the rarer the larger."""
    z = np.unique(np.rint(rng.choice([-1.0, 1.0], 80) * np.exp(rng.uniform(0.0, 7.0, 80))))
    w = rng.random(z.size) / (1.0 + np.abs(z)) ** rng.choice([1.5, 2.0, 2.5])
    w[np.abs(z).argmin()] = 10.0 * w.sum()
    return Group(z[None], (w / w.sum())[None], np.array([count]))


@pytest.mark.parametrize("seed", range(40))
def test_values_of_every_size_tell_where_a_transform_has_fallen(seed: int) -> None:
    rng = np.random.default_rng(400 + seed)
    law = rare_law(rng, 1.0)
    z, w = law.z[0], law.w[0]
    needed, units = 10.0 ** -rng.uniform(2.0, 5.0), 1e-13
    found = frequencies._by_moments(z, w, needed, units)
    assert found is not None
    omega = np.linspace(found[0], min(found[1], np.pi), 3000)
    size = np.abs((w * np.exp(1j * omega[:, None] * z)).sum(axis=1))
    assert np.all(1.0 - size**2 >= needed * (1.0 - 1e-9) - 1e-14)


@pytest.mark.parametrize("seed", range(20))
def test_frequencies_next_to_zero_are_all_that_matter_to_many_copies_and_a_few_of_another_law(
    seed: int,
) -> None:
    rng = np.random.default_rng(500 + seed)
    count, points = float(rng.choice([1e3, 1e5, 1e6])), 2 * int(rng.integers(500, 20_000)) + 1
    groups = [
        rare_law(rng, count),
        Group(np.array([[-3.0, 50.0, 700.0]]), np.full((1, 3), 1 / 3), np.full(1, 2.0)),
    ]
    tilted = [lattice_sum._tilt(group, np.array([1e-5]), ERROR_UNITS)[0] for group in groups]
    near, told = frequencies._next_to_zeros(tilted, np.array([points]), 30.0)
    if near is None:
        return
    assert told.all()
    assert near.first
    assert np.array_equal(near.r, np.arange(near.r.size))
    r = np.arange((points + 1) // 2)
    power = np.zeros(r.size)
    for law, table in zip(tilted, near.tables, strict=True):
        turns = np.mod(r[:, None] * law.z[0], points)  # whole numbers: exact
        phi = (law.w[0] * np.exp(2j * np.pi / points * turns)).sum(axis=1)
        assert np.abs(table.phi - phi[: near.r.size]).max() <= table.error[0] + 1e-13
        power += law.count[0] * np.log(np.maximum(np.abs(phi), 1e-300))
    assert np.all(power[near.r.size :] <= -30.0)


def test_most_laws_of_rare_values_are_known_by_frequencies_next_to_zero() -> None:
    rng = np.random.default_rng(6)
    laws = [lattice_sum._tilt(rare_law(rng, 1e5), np.array([1e-5]), ERROR_UNITS)[0] for _ in range(20)]
    assert sum(frequencies._next_to_zero(law, 0, 20_001, 32.0) is not None for law in laws) >= 15


def test_most_wide_laws_of_many_copies_are_known_by_frequencies_next_to_zero() -> None:
    rng = np.random.default_rng(5)
    laws = [wide_law(rng, 1e4, 0.01) for _ in range(40)]
    assert sum(frequencies._next_to_zero(law, 0, 5001, 46.0) is not None for law in laws) >= 20


@pytest.mark.parametrize("k0", [60, 150, 300])
def test_two_sums_of_many_copies_at_once_are_those_of_convolution(k0: int) -> None:
    """Rows of different laws and sizes, known by frequencies next to zero."""
    rng, count = np.random.default_rng(13), 256
    laws = [rng.random(size) ** 2 for size in (41, 31)]
    laws = [w / w.sum() for w in laws]
    z, w = np.zeros((2, 2, 41))
    exact = []
    for row, law in enumerate(laws):
        centre = round(float((law * np.arange(law.size)).sum()))
        z[row, : law.size], w[row, : law.size] = np.arange(law.size) - centre, law
        power = law
        for _ in range(8):
            power = np.convolve(power, power)
        exact.append(float(power[np.arange(power.size) - count * centre >= k0].sum()))
    group = Group(z, w, np.full(2, float(count)))
    own, theta = Own(np.zeros((2, 1)), np.ones((2, 1, 1))), np.full(2, k0 / (count * 120.0))
    tilted = lattice_sum._tilt(group, theta, ERROR_UNITS)[0]
    assert frequencies._next_to_zeros([tilted], np.full(2, 4001), frequencies.DEPTH)[1].all()
    result = tail_sum([group], own, np.full(2, float(k0)), theta)
    scale = np.exp(result.log_scale)
    assert np.all(np.abs(scale * result.value[:, 0] - exact) <= scale * result.error[:, 0] + 1e-13)
    assert np.all(scale * result.error[:, 0] <= 1e-8 * np.array(exact))
