"""Concentration bounds: golden values, and that they lie above the blanket they bound."""

import math
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx

from oracles.brute import random_matrices, shuffled_pairs, worst
from oracles.golden import Golden, entries
from response import krr_blanket
from shuffledp import FiniteRandomizer
from shuffledp.accounting._curves.all_pairs import FiniteBlanketProfile
from shuffledp.accounting._curves.blanket import tv_universal
from shuffledp.accounting._curves.clones import strong_clones
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.accounting._witnesses import finite_pair
from shuffledp.literature import concentration
from shuffledp.literature.concentration import (
    AnyBlanket,
    KaryBlanket,
    LaplaceBlanket,
    bennett_delta,
    bennett_epsilon,
    hoeffding_delta,
    hoeffding_epsilon,
)

pytestmark = pytest.mark.quick

DELTAS = (hoeffding_delta, bennett_delta)


def lower(profile: AmplificationProfile, epsilon: float) -> float:
    """A certified lower bound of the curve."""
    return float(profile.support(np.array([epsilon]), 1e-2).value[0])


@pytest.mark.parametrize("golden", entries("p2_hoeffding_rr", "p2_bennett_rr_corrected"), ids=str)
def test_k_ary_randomized_response_has_the_golden_value_rounded_up(golden: Golden) -> None:
    bound = hoeffding_delta if golden.name == "p2_hoeffding_rr" else bennett_delta
    blanket = KaryBlanket(golden.params["k"], golden.number("eps0"))
    found = bound(blanket, golden.params["n"], golden.number("eps"))
    assert golden.delta <= found <= golden.delta * (1 + 1e-9)


def test_refined_ranges_give_the_generic_value_of_the_errata() -> None:
    """n = 10^4, epsilon0 = 1, epsilon = 0.1: 1.4e-10, where Theorem 5.3 has 1.17e-4."""
    assert hoeffding_delta(AnyBlanket(1.0), 10_000, 0.1) == pytest.approx(1.4e-10, rel=0.02)


GRID = list(product((2, 3, 16, 1000), (0.1, 1.0, 3.0, 6.0), (1, 10, 300, 10_000, 10**6)))


@pytest.mark.parametrize(("k", "epsilon0", "n"), GRID)
def test_bounds_lie_above_the_blanket_of_k_ary_randomized_response(k: int, epsilon0: float, n: int) -> None:
    profile, blanket = krr_blanket(k, epsilon0, n), KaryBlanket(k, epsilon0)
    for share in (0.001, 0.02, 0.2, 0.7, 0.999):
        epsilon = share * epsilon0
        truth = lower(profile, epsilon)
        for bound in DELTAS:
            assert bound(blanket, n, epsilon) >= truth
            assert bound(AnyBlanket(epsilon0), n, epsilon) >= bound(blanket, n, epsilon) * (1 - 1e-9)


@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 3.0, 6.0])
@pytest.mark.parametrize("n", [1, 20, 1000, 10**6])
def test_generic_bounds_lie_above_the_strong_clones_lower_bound_on_some_randomizer(
    epsilon0: float, n: int
) -> None:
    """Binary randomized response has the clones' curve as its blanket."""
    for share in (0.01, 0.1, 0.5, 0.9):
        truth = lower(strong_clones(epsilon0, n), share * epsilon0)
        for bound in DELTAS:
            assert bound(AnyBlanket(epsilon0), n, share * epsilon0) >= truth


def laplace_cells(epsilon0: float, centre: float) -> np.ndarray:
    """Masses of the Laplace density of rate epsilon0 around ``centre`` on six cells of the line."""
    z = epsilon0 * (np.linspace(-0.2, 1.2, 5) - centre)
    cdf = np.where(z < 0, 0.5 * np.exp(np.minimum(z, 0)), 1 - 0.5 * np.exp(-np.maximum(z, 0)))
    return np.diff(np.concatenate([[0.0], cdf, [1.0]]))


@pytest.mark.parametrize("epsilon0", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("n", [5, 200, 10_000, 10**6])
def test_laplace_bounds_lie_above_the_blanket_seen_through_six_cells(epsilon0: float, n: int) -> None:
    """Binning all reports, blanket included, is a post-processing of the pair that is bounded. The
    blanket of Laplace noise on [0, 1] is e^{-epsilon0/2} times Laplace noise around 1/2."""
    own, other = laplace_cells(epsilon0, 0.0), laplace_cells(epsilon0, 1.0)
    common = math.exp(-0.5 * epsilon0) * laplace_cells(epsilon0, 0.5)
    truth = finite_pair(own, other, common, n)
    for share in (0.02, 0.1, 0.4):
        value = lower(truth, share * epsilon0)
        for bound in DELTAS:
            assert bound(LaplaceBlanket(epsilon0), n, share * epsilon0) >= value


@pytest.mark.parametrize("epsilon0", [0.2, 1.0, 4.0])
def test_moments_of_the_laplace_mechanism_are_those_of_quadrature(epsilon0: float) -> None:
    """gamma, the range and the second moment of L at the inputs 0 and 1, by summation over the line."""
    y = np.linspace(-40 / epsilon0, 1 + 40 / epsilon0, 2_000_001)
    step = y[1] - y[0]
    own, other = (0.5 * epsilon0 * np.exp(-epsilon0 * np.abs(y - x)) for x in (0.0, 1.0))
    common = np.minimum(own, other)
    blanket = LaplaceBlanket(epsilon0)
    gamma = float(common.sum() * step)
    assert blanket.gammas[0] == pytest.approx(gamma, rel=1e-4)
    for epsilon in (0.01, 0.3 * epsilon0):
        a, scale = math.exp(epsilon), math.exp(epsilon + epsilon0)
        L = (own - a * other) / (common / gamma)
        ends = np.array([gamma])
        square = float(((L / scale) ** 2 * common / gamma).sum() * step)
        assert blanket.second_moment(epsilon, ends, ends)[0] == pytest.approx(square, rel=1e-3)
        assert L.max() <= gamma * (math.exp(epsilon0) - a) * (1 + 1e-4)
        assert L.min() >= gamma * (1 - a * math.exp(epsilon0)) * (1 + 1e-4)


def moments(
    matrix: tuple[Any, ...], x: int, other: int, alpha: Fraction
) -> tuple[Fraction, list[Fraction], Fraction]:
    """(gamma, values of L, E[L^2]) from the definition."""
    common = [min(column) for column in zip(*matrix, strict=True)]
    gamma = sum(common)
    values = [gamma * (p - alpha * q) / w for p, q, w in zip(matrix[x], matrix[other], common, strict=True)]
    square = sum(w / gamma * v * v for w, v in zip(common, values, strict=True))
    return gamma, values, square


def test_refined_range_and_second_moment_hold_for_random_randomizers() -> None:
    for matrix in random_matrices(40, seed=5):
        E = max(max(c) / min(c) for c in zip(*matrix, strict=True))
        if E == 1:
            continue
        for alpha in (Fraction(1), Fraction(11, 10), (1 + E) / 2):
            for x, other in product(range(len(matrix)), repeat=2):
                gamma, values, square = moments(matrix, x, other, alpha)
                assert gamma * (1 - alpha * E) <= min(values)
                assert max(values) <= gamma * (E - alpha)
                bound = 2 * alpha * (E - 1) * (1 - gamma) + (alpha - 1) ** 2 * (1 + E * (1 - gamma))
                assert square <= gamma * bound


def test_generic_bounds_cover_every_dataset_of_random_randomizers() -> None:
    for matrix in random_matrices(6, seed=8):
        E = max(max(c) / min(c) for c in zip(*matrix, strict=True))
        epsilon0 = math.log(E) * (1 + 1e-15)
        for n in (2, 4):
            pairs = shuffled_pairs(matrix, n)
            for share in (0.1, 0.5, 0.9):
                epsilon = share * epsilon0
                truth = float(worst(pairs, Fraction(math.exp(epsilon))))
                for bound in DELTAS:
                    assert bound(AnyBlanket(epsilon0), n, epsilon) >= truth * (1 - 1e-12)


def test_generic_bounds_cover_the_blanket_of_skewed_randomizers() -> None:
    """Blanket masses from near 1/E to near 1."""
    for rare in (0.3, 0.01, 1e-4):
        E = math.exp(2.0)
        rows = [[rare * E, rare, 1 - rare * (1 + E)], [rare, rare * E, 1 - rare * (1 + E)]]
        if 1 - rare * (1 + E) < 0:
            rows = [[E / (1 + E), 1 / (1 + E)], [1 / (1 + E), E / (1 + E)]]
        randomizer = FiniteRandomizer(rows)
        for n, epsilon in product((10, 1000), (0.05, 0.5, 1.5)):
            truth = lower(FiniteBlanketProfile(randomizer.table, n), epsilon)
            for bound in DELTAS:
                assert bound(AnyBlanket(2.0 + 1e-12), n, epsilon) >= truth


def test_the_supremum_over_gamma_covers_every_single_gamma() -> None:
    rng = Random(3)
    for _ in range(40):
        blanket = AnyBlanket(rng.uniform(0.05, 8.0))
        n = int(10 ** rng.uniform(0, 7))
        epsilon = rng.uniform(0.001, 1.0) * blanket.epsilon0
        gamma = np.exp(-blanket.epsilon0 * np.linspace(0.0, 1.0, 300)[1:])
        for inequality, bound in (
            (concentration._hoeffding, hoeffding_delta),
            (concentration._bennett, bennett_delta),
        ):
            single = concentration._cells(blanket, n, epsilon, inequality, gamma, gamma, 1.0 - gamma)
            assert bound(blanket, n, epsilon) >= min(1.0, float(single.max())) * (1 - 1e-12)


def ball_bennett(k: int, epsilon0: float, n: int, epsilon: float) -> arb:
    """The formula of the module docstring for k-ary randomized response, in ball arithmetic."""
    E, a = arb(epsilon0).exp(), arb(epsilon).exp()
    gamma, A = k / (E + k - 1), a - 1
    t = gamma * (E - a)
    c = gamma * (2 * a * (E - 1) * (1 - gamma) + A * A * (1 + E * (1 - gamma)))
    u = A * t / c
    s = c / t**2 * ((1 + u) * (1 + u).log() - u)
    return t / (1 + u).log() * ((1 - gamma + gamma * (-s).exp()) ** n - (1 - gamma) ** n) / (gamma * n)


@pytest.mark.parametrize("k", [2, 100, 10**6, 2**40])
def test_bennett_is_its_formula_in_ball_arithmetic_also_where_gamma_is_next_to_one(k: int) -> None:
    before, ctx.prec = ctx.prec, 400
    try:
        for epsilon0, n, share in product((0.1, 3.0), (1, 10**5, 10**12), (1e-7, 1e-4, 0.1, 0.9)):
            exact = ball_bennett(k, epsilon0, n, share * epsilon0)
            found = bennett_delta(KaryBlanket(k, epsilon0), n, share * epsilon0)
            if exact < 1 and exact > 1e-290:
                assert exact <= found <= exact * (1 + 1e-7)
    finally:
        ctx.prec = before


@pytest.mark.parametrize("blanket", [KaryBlanket(4, 2.0), LaplaceBlanket(2.0), AnyBlanket(2.0)])
def test_epsilon_is_where_delta_comes_down_to_the_level(blanket: Any) -> None:
    for n, delta in ((1000, 1e-2), (10**5, 1e-6), (10**7, 1e-12)):
        for solve, bound in ((hoeffding_epsilon, hoeffding_delta), (bennett_epsilon, bennett_delta)):
            epsilon = solve(blanket, n, delta)
            assert bound(blanket, n, epsilon) <= delta < bound(blanket, n, epsilon * (1 - 1e-6))


def test_bounds_are_ordered_hoeffding_above_bennett_above_the_numerical_blanket() -> None:
    n, delta = 10**5, 1e-6
    blanket = KaryBlanket(16, 3.0)
    numbers = [hoeffding_epsilon(blanket, n, delta), bennett_epsilon(blanket, n, delta)]
    assert numbers[0] > numbers[1]
    assert lower(krr_blanket(16, 3.0, n), numbers[1]) <= delta
    laplace = bennett_epsilon(LaplaceBlanket(3.0), n, delta)
    universal = tv_universal(3.0, -math.expm1(-1.5), n)
    assert laplace < bennett_epsilon(AnyBlanket(3.0), n, delta)
    # The pair of the total variation covers Laplace noise too; Bennett is looser than it here.
    assert float(universal.upper(np.array([laplace]), 1e-3)[0]) <= delta


def test_delta_is_zero_from_epsilon0_on_and_no_number_breaks_it() -> None:
    for epsilon0, n in product((1e-9, 0.5, 40.0, 300.0), (1, 10**6, 10**15)):
        for blanket in (AnyBlanket(epsilon0), KaryBlanket(10**6, epsilon0), LaplaceBlanket(epsilon0)):
            for bound in DELTAS:
                assert bound(blanket, n, epsilon0) == 0.0
                for epsilon in (1e-200, 1e-9, 0.1, epsilon0 * (1 - 1e-15)):
                    with np.errstate(all="raise", under="ignore"):
                        assert 0.0 <= bound(blanket, n, epsilon) <= 1.0


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="epsilon0 must be in"):
        AnyBlanket(-1.0)
    with pytest.raises(ValueError, match="k must be in"):
        KaryBlanket(1, 1.0)
    with pytest.raises(ValueError, match="epsilon must be in"):
        bennett_delta(AnyBlanket(1.0), 10, 0.0)
    with pytest.raises(ValueError, match="delta must be in"):
        bennett_epsilon(AnyBlanket(1.0), 10, 0.0)
    with pytest.raises(ValueError, match="n must be in"):
        hoeffding_delta(LaplaceBlanket(1.0), 0, 0.1)
