"""Laplace and Gaussian on a grid: what is sampled is what is analysed, and unbiased."""

from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from flint import arb, fmpq
from scipy.special import chdtri

import shuffledp as sdp
from oracles import brute, pairs
from oracles.hockey import hockey_stick
from shuffledp.randomizers.gaussian import DiscreteGaussian
from shuffledp.randomizers.laplace import DiscreteLaplace

pytestmark = pytest.mark.quick

WORD = 2**64
GRIDS = [
    DiscreteLaplace(1.0, levels=1),
    DiscreteLaplace(3.0, levels=4),
    DiscreteLaplace(0.01, levels=16),
    DiscreteLaplace(20.0, low=-5.0, high=5.0, levels=8),
    DiscreteLaplace(36.0, levels=32),
    DiscreteLaplace(1e-6, levels=1024),
    DiscreteGaussian(0.5, levels=4),
    DiscreteGaussian(2.0, levels=1),
    DiscreteGaussian(0.02, levels=20),
    DiscreteGaussian(7.0, low=-10.0, high=10.0, levels=16),
]
SMALL = [r for r in GRIDS if r.levels <= 16 and r.outputs < 200]


def name(randomizer: Any) -> str:
    return f"{type(randomizer).__name__}-{randomizer.epsilon0:.3g}-{randomizer.levels}"


def ball(number: Fraction | float) -> arb:
    fraction = Fraction(number)
    return arb(fmpq(fraction.numerator, fraction.denominator))


def by_definition(randomizer: Any) -> list[list[int]]:
    """The matrix: noise -reach..reach added to each grid point, clamped."""
    reach = randomizer.levels + randomizer.pad
    rows = [[0] * randomizer.outputs for _ in range(randomizer.levels + 1)]
    for x, d in product(range(randomizer.levels + 1), range(-reach, reach + 1)):
        y = min(max(x + d, -randomizer.pad), randomizer.levels + randomizer.pad)
        rows[x][y + randomizer.pad] += randomizer.noise[abs(d)]
    return rows


@pytest.mark.parametrize("randomizer", SMALL, ids=name)
def test_the_matrix_is_the_clamped_noise(randomizer: Any) -> None:
    rows = by_definition(randomizer)
    assert all(sum(row) == WORD for row in rows)
    assert randomizer.weights.tolist() == rows
    exact = [[float(Fraction(w, WORD)) for w in row] for row in rows]
    assert randomizer.matrix.tolist() == exact
    assert randomizer.finite.matrix == pytest.approx(np.array(exact), rel=1e-15)


@pytest.mark.parametrize("randomizer", GRIDS, ids=name)
def test_every_report_is_possible_for_every_input(randomizer: Any) -> None:
    assert int(randomizer.weights.min()) >= 1


@pytest.mark.parametrize("randomizer", GRIDS, ids=name)
def test_epsilon0_is_the_largest_ratio_rounded_up(randomizer: Any) -> None:
    top, bottom = randomizer.weights.max(axis=0).tolist(), randomizer.weights.min(axis=0).tolist()
    ratio = max(Fraction(t, b) for t, b in zip(top, bottom, strict=True))
    assert ball(ratio).log() <= ball(randomizer.epsilon0)
    assert ball(randomizer.epsilon0) <= ball(ratio).log() * (1 + ball(Fraction(2, 10**15)))


@pytest.mark.parametrize("epsilon0", [1e-6, 0.1, 1.0, 4.0, 12.0, 30.0])
@pytest.mark.parametrize("levels", [1, 2, 7, 64])
def test_realised_laplace_keeps_the_epsilon0_that_was_asked(epsilon0: float, levels: int) -> None:
    randomizer = DiscreteLaplace(epsilon0, levels=levels)
    top, bottom = randomizer.weights.max(axis=0).tolist(), randomizer.weights.min(axis=0).tolist()
    ratio = max(Fraction(t, b) for t, b in zip(top, bottom, strict=True))
    assert ball(ratio) <= ball(epsilon0).exp()
    assert randomizer.epsilon0 <= epsilon0
    assert randomizer.epsilon0 == pytest.approx(epsilon0, rel=1e-5)


def test_laplace_noise_is_geometric() -> None:
    randomizer = DiscreteLaplace(2.0, levels=10)
    r = np.exp(-0.2)
    ideal = np.append((1 - r) / (1 + r) * r ** np.arange(10), r**10 / (1 + r))
    assert np.array(randomizer.noise, dtype=float) / WORD == pytest.approx(ideal, rel=1e-14)


def test_gaussian_noise_is_a_discrete_gaussian() -> None:
    randomizer = DiscreteGaussian(0.5, low=0.0, high=2.0, levels=12)  # 3 steps
    d = np.arange(-200, 201)
    mass = np.exp(-(d**2) / 18.0)
    ideal = (mass / mass.sum())[200 : 200 + len(randomizer.noise)]
    assert np.array(randomizer.noise, dtype=float) / WORD == pytest.approx(ideal, rel=1e-14, abs=1e-18)


@pytest.mark.parametrize("randomizer", SMALL, ids=name)
def test_the_two_ends_have_the_largest_total_variation(randomizer: Any) -> None:
    rows = by_definition(randomizer)
    exact = max(
        sum(max(u - v, 0) for u, v in zip(row, other, strict=True)) for row, other in permutations(rows, 2)
    )
    assert Fraction(exact, WORD) <= Fraction(randomizer.total_variation)
    assert randomizer.total_variation == pytest.approx(exact / WORD, rel=1e-14)


@pytest.mark.parametrize("randomizer", SMALL, ids=name)
def test_decoded_reports_of_grid_points_have_the_value_as_mean_within_the_bias(randomizer: Any) -> None:
    values = [Fraction(float(v)) for v in randomizer.decode(np.arange(randomizer.outputs))]
    low, high = Fraction(randomizer.low), Fraction(randomizer.high)
    for x, row in enumerate(by_definition(randomizer)):
        mean = sum(w * v for w, v in zip(row, values, strict=True)) / WORD
        truth = low + x * (high - low) / randomizer.levels
        assert abs(mean - truth) <= Fraction(randomizer.bias)
    assert randomizer.bias <= 1e-12 * float(max(abs(v) for v in values))


@pytest.mark.parametrize("randomizer", SMALL, ids=name)
def test_the_variance_of_a_decoded_report_is_exact_between_grid_points_too(randomizer: Any) -> None:
    values = [Fraction(float(v)) for v in randomizer.decode(np.arange(randomizer.outputs))]
    rows = by_definition(randomizer)
    for x, share in [(0, Fraction(0)), (0, Fraction(1, 4)), (randomizer.levels - 1, Fraction(1, 2))]:
        step = (Fraction(randomizer.high) - Fraction(randomizer.low)) / randomizer.levels
        value = float(Fraction(randomizer.low) + (x + share) * step)
        mixed = [(1 - share) * u + share * v for u, v in zip(rows[x], rows[x + 1], strict=True)]
        mean = sum(w * v for w, v in zip(mixed, values, strict=True)) / WORD
        exact = sum(w * (v - mean) ** 2 for w, v in zip(mixed, values, strict=True)) / WORD
        assert float(randomizer.variance(value)) == pytest.approx(float(exact), rel=1e-9, abs=1e-25)


@pytest.mark.parametrize("randomizer", [r for r in SMALL if r.levels == 4], ids=name)
def test_a_million_reports_follow_the_matrix_also_between_grid_points(randomizer: Any) -> None:
    # Chi-square with a false-alarm probability of 1e-7 over seeds; rare reports are put together.
    values = np.tile([0.0, 0.25, 0.3125, 0.5, 1.0], 200_000)
    reports = randomizer.randomize(values, rng=np.random.default_rng(77))
    rows = np.array(by_definition(randomizer), dtype=float) / WORD
    expected = [rows[0], rows[1], 0.75 * rows[1] + 0.25 * rows[2], rows[2], rows[4]]
    statistic, freedom = 0.0, 0
    for value, mass in zip((0.0, 0.25, 0.3125, 0.5, 1.0), expected, strict=True):
        seen = np.bincount(reports[values == value], minlength=randomizer.outputs)
        often = mass * 200_000 > 10
        seen = np.append(seen[often], seen[~often].sum())
        mean = 200_000 * np.append(mass[often], mass[~often].sum())
        seen, mean = seen[mean > 0], mean[mean > 0]
        statistic += ((seen - mean) ** 2 / mean).sum()
        freedom += seen.size - 1
    assert statistic < chdtri(freedom, 1e-7)


def stop_loss(
    own: list[int], other: list[int], clone: list[int], alpha: Fraction, at: tuple[int, int]
) -> int:
    """sum (own - alpha other - t clone)_+ over reports, for t = at[0] / at[1], times at[1], exactly."""
    p, q = alpha.numerator, alpha.denominator
    top, bottom = at
    return sum(max(0, (q * u - p * v) * bottom - top * c) for u, v, c in zip(own, other, clone, strict=True))


@pytest.mark.parametrize("randomizer", [r for r in SMALL if r.levels <= 8], ids=name)
def test_the_law_of_the_ends_is_the_largest_of_all_pairs_in_the_convex_order(randomizer: Any) -> None:
    """All laws have the same mean, and between the values of the ends' law its curve is a line."""
    rows = by_definition(randomizer)
    clone = [min(column) for column in zip(*rows, strict=True)]
    first, last = rows[0], rows[-1]
    for alpha in (Fraction(1), Fraction(11, 10), Fraction(3), Fraction(100)):
        p, q = alpha.numerator, alpha.denominator
        for u, v, c in zip(first, last, clone, strict=True):
            at = (q * u - p * v, c)
            most = stop_loss(first, last, clone, alpha, at)
            for own, other in permutations(rows, 2):
                assert stop_loss(own, other, clone, alpha, at) <= most


@pytest.mark.parametrize("randomizer", SMALL, ids=name)
def test_the_law_of_the_ends_is_that_of_the_first_and_last_row(randomizer: Any) -> None:
    law = randomizer.law()
    rows = by_definition(randomizer)
    assert sum(law.own) == pytest.approx(1.0, abs=1e-12)
    assert law.gamma == pytest.approx(sum(map(min, zip(*rows, strict=True))) / WORD, rel=1e-12)
    assert 0.5 * sum(map(abs, law.gap)) == pytest.approx(randomizer.total_variation, rel=1e-12)


def test_sums_and_means_of_secure_reports_are_those_of_the_values() -> None:
    # Four numbers within 7 standard deviations: a false alarm has probability 1e-11.
    values = np.linspace(-3.0, 10.0, 40_000)
    for randomizer in (DiscreteLaplace(1.0, -3.0, 10.0), DiscreteGaussian(4.0, -3.0, 10.0)):
        reports = randomizer.randomize(values)
        sd = np.sqrt(randomizer.variance(values).sum())
        assert abs(randomizer.estimate(reports) - values.sum()) < 7 * sd
        assert abs(randomizer.mean(reports) - values.mean()) < 7 * sd / values.size
        pieces = randomizer.estimate(reports[:7]) + randomizer.estimate(reports[7:])
        assert pieces == pytest.approx(randomizer.estimate(reports), rel=1e-9, abs=1e-6)


def test_reports_are_small_whole_numbers_and_one_value_gives_one_report() -> None:
    randomizer = DiscreteLaplace(1.0, levels=255)
    assert randomizer.randomize([0.0, 1.0]).dtype == np.uint8
    assert np.shape(randomizer.randomize(0.5)) == ()
    assert randomizer.randomize([]).shape == (0,)
    assert randomizer.randomize(np.array([0, 1])).shape == (2,)
    assert DiscreteLaplace(1.0, levels=256).randomize([0.0]).dtype == np.uint16


@pytest.mark.parametrize(
    "randomizer", [DiscreteLaplace(2.0, levels=2), DiscreteGaussian(1.0, levels=2)], ids=name
)
def test_values_between_grid_points_are_covered_by_the_blanket_of_the_grid(randomizer: Any) -> None:
    """Two users, inputs on a finer grid: every pair of mixtures is below the worst pair of rows.

    Outputs beyond the interval are put together (a post-processing of both sides)."""
    weights, pad = np.array(by_definition(randomizer), dtype=object), randomizer.pad
    kept = np.arange(max(pad - 1, 0), min(pad + 4, randomizer.outputs))
    coarse = [
        [int(row[: kept[0] + 1].sum()), *map(int, row[kept[1:-1]]), int(row[kept[-1] :].sum())]
        for row in weights
    ]
    rows = [[Fraction(w, WORD) for w in row] for row in coarse]
    assert all(sum(row) == 1 for row in rows)
    fine = [
        tuple((1 - t) * u + t * v for u, v in zip(rows[x], rows[x + 1], strict=True))
        for x in range(2)
        for t in (Fraction(0), Fraction(1, 3))
    ]
    matrix = (*fine, tuple(rows[2]))
    clone = [min(column) for column in zip(*rows, strict=True)]
    truth = brute.shuffled_pairs(matrix, 2)
    grid = [pairs.counting(2, u, v, clone) for u, v in permutations(rows, 2)]
    for alpha in (Fraction(1), Fraction(5, 4), Fraction(2)):
        assert brute.worst(truth, alpha) <= max(hockey_stick(pair, alpha) for pair in grid)


@pytest.mark.parametrize(("levels", "epsilon0"), [(1, 0.001), (2, 0.02), (4, 1e-4), (8, 0.001), (16, 0.01)])
def test_noise_of_a_tiny_epsilon0_is_answered(levels: int, epsilon0: float) -> None:
    """Logarithms of ratios near one are off by more of themselves than of one."""
    noise = sdp.DiscreteLaplace(epsilon0=epsilon0, levels=levels)
    bound = sdp.Shuffled(noise, n=5).delta(epsilon=0.5 * epsilon0)
    assert 0.0 < bound.lower <= bound.upper < epsilon0
