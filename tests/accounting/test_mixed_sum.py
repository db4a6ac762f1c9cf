"""Split and mix (T17, T18) by its definition: all shares of all people enumerated, and all of the noise."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, permutations, product

import numpy as np
import pytest

from oracles.shares import Law, hockey_stick, law, mixed, shuffled_shares
from shuffledp._certified.mixing import _small_sizes, mixing_distance
from shuffledp.accounting._curves.noisy_sum import NoisySumProfile
from shuffledp.accounting._curves.thinned_sum import ThinnedSumProfile
from shuffledp.accounting.cohort import Cohort
from shuffledp.accounting.mixed_sum import MixedSum

pytestmark = pytest.mark.quick

SMALL = [(2, 3, 2), (2, 3, 3), (2, 3, 4), (2, 4, 2), (3, 3, 2), (2, 5, 2)]


def shares_of_the_sum(total: int, n: int, m: int, q: int) -> Law:
    free = product(range(q), repeat=n * m - 1)
    return law(tuple(sorted((*own, (total - sum(own)) % q))) for own in free)


def distance(first: Law, second: Law) -> Fraction:
    keys = first.keys() | second.keys()
    nothing = Fraction(0)
    return sum((abs(first.get(key, nothing) - second.get(key, nothing)) for key in keys), nothing) / 2


@pytest.mark.parametrize(("n", "m", "q"), SMALL)
def test_shuffled_shares_are_as_near_to_shares_of_the_sum_as_is_said(n: int, m: int, q: int) -> None:
    simulated = [shares_of_the_sum(total, n, m, q) for total in range(q)]
    worst = max(
        distance(shuffled_shares(numbers, m, q), simulated[sum(numbers) % q])
        for numbers in combinations_with_replacement(range(q), n)
    )
    assert worst <= mixing_distance(n, m, q) <= 2 * worst


def components(matching: Sequence[int], n: int, m: int) -> int:
    root = list(range(2 * n))

    def find(vertex: int) -> int:
        while root[vertex] != vertex:
            vertex = root[vertex]
        return vertex

    for edge, other in enumerate(matching):
        root[find(edge // m)] = find(n + other // m)
    return len({find(vertex) for vertex in range(2 * n)})


@pytest.mark.parametrize(("n", "m", "q"), [(2, 3, 3), (2, 4, 5), (3, 3, 2)])
def test_the_recursion_bounds_the_mean_over_all_graphs(n: int, m: int, q: int) -> None:
    counts = Counter(components(matching, n, m) for matching in permutations(range(n * m)))
    mean = sum(k * q ** (c - 1) for c, k in counts.items()) / math.factorial(n * m)
    found = 1.0 + math.exp(_small_sizes(n, m, math.log(q - 1))[0][n - 1])
    assert mean <= found <= 1.01 * mean
    if n == 2:
        assert found == pytest.approx(mean, rel=1e-8)


def test_the_proof_for_large_crowds_agrees_with_the_recursion_and_falls() -> None:
    for m, q in ((8, 2**20), (10, 2**40)):
        excess, settled = _small_sizes(1200, m, math.log(q - 1.0))
        assert settled is not None
        assert len(excess) == 4 * settled  # it stopped there
        distances = [mixing_distance(n, m, q) for n in (len(excess), len(excess) + 1, 1000, 10**4, 10**6)]
        assert all(a > b for a, b in pairwise(distances))
        assert distances[1] <= 1.01 * distances[0]
        for n in (10**3, 10**6):  # two people who are alone with each other
            alone = math.comb(n * m, m)
            assert mixing_distance(n, m, q) == pytest.approx(
                0.5 * math.sqrt(n * (n - 1) * q / alone), rel=0.01
            )


def test_trivial_crowds() -> None:
    assert mixing_distance(1, 5, 7) == 0.0
    assert mixing_distance(100, 5, 1) == 0.0
    assert mixing_distance(100, 2, 7) == 1.0
    assert mixing_distance(10**6, 3, 2**60) == 1.0


@pytest.mark.parametrize("alpha", [Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(4)])
def test_the_whole_protocol_gives_away_the_noisy_sum_and_little_more(alpha: Fraction) -> None:
    """Two people, shares of noise from {-1, 0, 1}, three messages modulo four: everything enumerated."""
    n, m, q = 2, 3, 4
    share = {-1: Fraction(1, 5), 0: Fraction(3, 5), 1: Fraction(1, 5)}
    noises = [(a, b, share[a] * share[b]) for a in share for b in share]
    cached = {x: shuffled_shares(x, m, q) for x in product(range(q), repeat=n)}

    def seen(x: int, y: int) -> Law:
        return mixed((p, cached[(x + a) % q, (y + b) % q]) for a, b, p in noises)

    def noisy_sum(x: int, y: int) -> Law:
        return mixed((p, {((x + y + a + b) % q,): Fraction(1)}) for a, b, p in noises)

    slack = (1 + alpha) * Fraction(mixing_distance(n, m, q))
    for x, other, y in product(range(2), range(2), range(2)):
        central = hockey_stick(noisy_sum(x, y), noisy_sum(other, y), alpha)
        whole = hockey_stick(seen(x, y), seen(other, y), alpha)
        assert central <= whole <= central + slack


@pytest.mark.parametrize(("levels", "scale"), [(1, 0.7), (3, 1.0), (5, 12.0), (40, 13.7)])
def test_the_curator_s_curve_is_its_sum(levels: int, scale: float) -> None:
    a = math.exp(-1.0 / scale)
    k = np.arange(-int(60 * scale) - levels, int(60 * scale) + 2 * levels)
    p, q = ((1.0 - a) / (1.0 + a) * a ** np.abs(k - move) for move in (0, levels))
    epsilon = np.linspace(0.0, 1.05 * levels / scale, 23)
    exact = np.array([np.maximum(p - math.exp(e) * q, 0.0).sum() for e in epsilon])
    curve = NoisySumProfile(levels, scale)
    upper, lower = curve.upper(epsilon, 1e-3), curve.support(epsilon, 1e-3).value
    assert np.all(lower <= exact * (1.0 + 1e-12) + 1e-17)
    assert np.all(exact <= upper * (1.0 + 1e-12) + 1e-17)
    assert upper == pytest.approx(lower, abs=1e-12)


@pytest.mark.parametrize("modulus", [2, 4, 6, 64])
def test_the_lower_end_is_below_what_the_sum_shows_modulo_any_number(modulus: int) -> None:
    levels, scale = 4, 3.0
    k = np.arange(-400, 401)
    noise = math.tanh(0.5 / scale) * np.exp(-np.abs(k) / scale)
    one = MixedSum(n=50, levels=levels, scale=scale, messages=20, modulus=modulus)
    p, q = (np.bincount((k + move) % modulus, weights=noise) for move in (levels, 0))
    for epsilon in (0.0, 0.3, 1.0):
        assert one.delta(epsilon=epsilon).lower <= np.maximum(p - math.exp(epsilon) * q, 0.0).sum() + 1e-15
    assert (one.delta(epsilon=0.3).lower > 0.0) == (modulus == 64)


def test_a_distance_raises_the_curve_as_far_as_it_may_and_lines_stay_below() -> None:
    epsilon = np.linspace(0.0, 2.0, 41)
    plain, raised = NoisySumProfile(20, 15.0), NoisySumProfile(20, 15.0, 1e-3)
    expected = np.minimum.accumulate(plain.upper(epsilon, 0.0) + 1e-3 * (1.0 + np.exp(epsilon)))
    upper, lines = raised.both(epsilon, 0.0)
    assert np.all(upper <= expected * (1.0 + 1e-9))
    assert np.all(upper[epsilon < 1.0] >= 0.9999 * expected[epsilon < 1.0])
    alpha = np.exp(epsilon)
    for value, low, at in zip(lines.value, lines.slope_low, alpha, strict=True):
        assert np.all(value - low * np.maximum(alpha - at, 0.0) <= upper * (1.0 + 1e-9))
    assert raised.infinite_loss == pytest.approx(float(upper[-1]), rel=1e-5)
    below = NoisySumProfile(20, 15.0, -1e-3).support(epsilon, 0.0).value
    assert np.all(below <= np.maximum(plain.upper(epsilon, 0.0) - 1e-3 * (1.0 + alpha), 0.0) + 1e-15)


def test_rounds_of_mixed_sums_compose_and_too_few_messages_certify_nothing() -> None:
    one = MixedSum(n=10_000, levels=100, scale=300.0, messages=9, modulus=2**24, noise_distance=1e-12)
    bounds = [(rounds * one).epsilon(delta=1e-6) for rounds in (1, 2, 10)]
    assert all(0.0 < bound.lower <= bound.upper <= 1.004 * bound.lower for bound in bounds)
    assert bounds[0].upper <= 1.001 / 3 < bounds[1].upper < 2.002 / 3
    few = MixedSum(n=10_000, levels=100, scale=300.0, messages=6, modulus=2**24)
    assert few.epsilon(delta=1e-6).upper == math.inf
    with pytest.raises(ValueError, match="messages must be"):
        MixedSum(n=10, levels=1, scale=1.0, messages=1, modulus=4)


def noise_of(share: float, scale: float, size: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The law on -size, ..., size of that share of discrete Laplace noise: of its clusters (Poisson many)."""
    theta = 2.0 * np.pi * np.arange(4 * size) / (4 * size)
    clusters = -np.log(
        np.abs(1.0 - math.exp(-1.0 / scale) * np.exp(1j * theta)) ** 2
    )  # of all, less its mean
    clusters += 2.0 * math.log1p(-math.exp(-1.0 / scale))
    law = np.fft.fftshift(np.fft.ifft(np.exp(share * clusters)).real)
    return np.asarray(law[size : 3 * size + 1])


@pytest.mark.parametrize("share", [1.0, 0.9, 0.5, 0.2])
@pytest.mark.parametrize(("levels", "scale"), [(1, 0.7), (3, 1.0), (5, 12.0), (40, 13.7)])
def test_the_curve_of_a_part_of_the_noise_is_its_sum_for_the_worst_move(
    levels: int, scale: float, share: float
) -> None:
    curve, size = ThinnedSumProfile(levels, scale, share), int(60 * scale) + levels
    law = np.pad(noise_of(share, scale, size), levels)
    epsilon = np.linspace(0.0, 1.05 * curve._pure, 23)
    exact = [
        [np.maximum(law - math.exp(e) * np.roll(law, move), 0.0).sum() for e in epsilon]
        for move in range(1, levels + 1)
    ]
    worst = np.max(exact, axis=0)
    doubt = 1e-14 * (1.0 + np.exp(epsilon))  # of the transform here
    assert np.all(worst <= exact[-1] + doubt)
    upper, lower = curve.upper(epsilon, 1e-3), replace(curve, beyond=-0.0).support(epsilon, 1e-3).value
    assert np.all(lower <= worst + doubt)
    assert np.all(worst <= upper + doubt)
    assert upper == pytest.approx(lower, abs=1e-7)
    middle = law.size // 2
    assert curve._pure == pytest.approx(math.log(law[middle] / law[middle + levels]), rel=1e-7)
    if share == 1.0:
        assert upper == pytest.approx(NoisySumProfile(levels, scale).upper(epsilon, 1e-3), abs=1e-9)


@pytest.mark.parametrize("sized", [2, 3, 8])
@pytest.mark.parametrize(("m", "q"), [(5, 3), (4, 4)])
def test_two_of_more_whose_shares_of_noise_were_planned_are_covered(m: int, q: int, sized: int) -> None:
    """All shares of both people, and all of their noise."""
    scale = 0.8
    noise = np.zeros(q)
    np.add.at(noise, np.arange(-60, 61) % q, noise_of(1.0 / sized, scale, 60))
    shares = [shuffled_shares([x, y], m, q) for x, y in product(range(q), repeat=2)]
    keys = sorted({key for part in shares for key in part})
    table = np.array([[float(part.get(key, 0)) for key in keys] for part in shares]).reshape(q, q, -1)

    def seen(x: int, y: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        moved = np.roll(np.roll(table, -x, axis=0), -y, axis=1)
        return np.asarray(np.einsum("a,b,abk->k", noise, noise, moved))

    one = MixedSum(n=2, levels=1, scale=scale, messages=m, modulus=q, sized=sized)
    for epsilon in (0.0, 0.5, 1.5, 3.0):
        found = [
            np.maximum(seen(x, y) - math.exp(epsilon) * seen(1 - x, y), 0.0).sum()
            for x, y in product(range(2), repeat=2)
        ]
        bound = one.delta(epsilon=epsilon)
        assert bound.lower <= max(found) + 1e-12
        assert max(found) <= bound.upper + 1e-12


def test_fewer_people_than_sized_for_have_a_larger_epsilon_and_it_is_finite() -> None:
    plan = {"levels": 100, "scale": 101.0, "messages": 9, "modulus": 2**24, "noise_distance": 1e-12}
    found = [
        MixedSum(n=n, **plan, sized=10_000).epsilon(delta=1e-6) for n in (20_000, 10_000, 9_999, 9_000, 5_000)
    ]
    assert all(0.0 < bound.lower <= bound.upper <= 1.002 * bound.lower for bound in found)
    assert all(a.upper <= b.upper for a, b in pairwise(found))
    assert found[2].upper < 1.001 * found[1].upper
    assert found[3].upper < 1.2
    few = MixedSum(n=9_000, **plan, sized=10_000)
    assert found[3].upper < (2 * few).epsilon(delta=1e-6).upper < 2.001 * found[3].upper
    assert Cohort(few, population=90_000).epsilon(delta=1e-6).upper < 0.25 * found[3].upper
    assert MixedSum(n=1, **plan, sized=10_000).epsilon(delta=1e-6).upper == math.inf
    with pytest.raises(ValueError, match="scale must be smaller"):
        MixedSum(n=9, levels=1, scale=2.0**20, messages=9, modulus=2**40, sized=10)
