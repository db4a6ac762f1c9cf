"""Theorems 1 and 2 of the subsampled shuffle, against each other and every dataset of a few users."""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

from oracles.brute import Matrix, cohort_law, cohort_pairs, k_ary, random_matrices, shape, shuffled_law
from oracles.golden import Golden, entries
from oracles.hockey import Atoms, atoms
from shuffledp.accounting._curves.clones import clones_2021, strong_clones
from shuffledp.accounting._curves.subsampled import SubsampledProfile
from shuffledp.literature.composition import kairouz_oh_viswanath_closed_epsilon
from shuffledp.literature.girgis import (
    girgis_2021_epsilon,
    girgis_2021_excess_loss,
    girgis_2021_lemma_7,
    girgis_2021_lower,
    girgis_2021_mixed_upper,
    girgis_2021_theorem_4,
    girgis_2021_theorem_5,
    girgis_2021_theorem_6,
    girgis_2021_upper,
    girgis_shuffle_2021_upper,
    wang_2019_subsampled,
)
from shuffledp.literature.renyi import epsilon_from_renyi, renyi_divergence

pytestmark = pytest.mark.quick


def divergence(pair: Atoms, order: int) -> float:
    moment = sum((p**order / q ** (order - 1) for p, q in pair if p), Fraction(0))
    return math.log(moment) / (order - 1)


def arguments(golden: Golden) -> tuple[float, int, int, int]:
    at = golden.params
    return golden.number("eps0"), at["subset"], at["n"], at["order"]


@pytest.mark.parametrize("golden", entries("girgis_thm1_rdp"), ids=str)
def test_theorem_1_has_the_golden_value_rounded_up(golden: Golden) -> None:
    found = girgis_2021_upper(*arguments(golden))
    assert golden.delta <= found <= golden.delta * (1 + 1e-9)


@pytest.mark.parametrize("golden", entries("girgis_thm2_rdp"), ids=str)
def test_theorem_2_has_the_golden_value_rounded_down(golden: Golden) -> None:
    found = girgis_2021_lower(*arguments(golden))
    assert golden.delta * (1 - 1e-8) <= found <= golden.delta


@pytest.mark.parametrize("golden", entries("girgis_thm1_eps"), ids=str)
def test_rounds_of_theorem_1_have_the_golden_epsilon(golden: Golden) -> None:
    at = golden.params
    delta = golden.number("delta")
    setting = golden.number("eps0"), at["subset"], at["n"]
    found = girgis_2021_epsilon(*setting, at["T"], delta, orders=range(2, 60))
    assert golden.delta <= found <= golden.delta * (1 + 1e-9)
    size = at["T"] * girgis_2021_upper(*setting, at["best_order"])
    assert epsilon_from_renyi(size, at["best_order"], delta) == pytest.approx(found, rel=1e-12)


@pytest.mark.parametrize(
    ("k", "E", "population", "cohort"),
    [(2, 2, 6, 3), (2, 5, 5, 5), (2, 20, 4, 1), (3, 3, 4, 2), (2, Fraction(math.e), 8, 4)],
)
@pytest.mark.parametrize("order", [2, 3, 6])
def test_theorem_2_is_below_and_theorem_1_above_the_worst_dataset(
    k: int, E: Fraction, population: int, cohort: int, order: int
) -> None:
    setting = math.log(E), cohort, population, order
    exact = max(divergence(pair, order) for pair in cohort_pairs(k_ary(k, E), population, cohort))
    assert exact <= girgis_2021_upper(*setting)
    if k == 2:
        assert girgis_2021_lower(*setting) <= exact * (1 + 1e-12)


def test_binary_randomized_response_of_eight_users_has_the_value_of_the_errata() -> None:
    exact = max(divergence(pair, 2) for pair in cohort_pairs(k_ary(2, Fraction(math.e)), 8, 4))
    assert exact == pytest.approx(0.0668, abs=5e-5)
    assert girgis_2021_upper(1.0, 4, 8, 2) == pytest.approx(1.19, abs=5e-3)


@pytest.mark.parametrize(("E", "population", "cohort"), [(2, 6, 3), (7, 5, 2), (3, 4, 4)])
@pytest.mark.parametrize("order", [2, 5])
def test_theorem_2_is_the_divergence_of_its_dataset(E: int, population: int, cohort: int, order: int) -> None:
    """All others hold 0; the differing user holds 1 (P) or 0 (Q)."""
    matrix = k_ary(2, Fraction(E))
    zeros = (0,) * (population - 1)
    laws = [cohort_law(matrix, (own, *zeros), cohort) for own in (1, 0)]
    exact = divergence(atoms(*laws), order)
    found = girgis_2021_lower(math.log(E), cohort, population, order)
    assert exact * (1 - 1e-8) <= found <= exact * (1 + 1e-12)


def test_theorem_2_at_orders_that_are_not_whole_lies_between_its_neighbours() -> None:
    for setting in ((1.0, 100, 1000), (4.0, 50, 60)):
        values = [girgis_2021_lower(*setting, order) for order in (1.01, 1.5, 2, 2.5, 3, 40, 500)]
        assert values == sorted(values)
        assert values[0] > 0.0


def test_the_subsampled_clones_lie_between_the_theorems() -> None:
    """The curve of the strong clones, subsampled, bounds every randomizer and is far below Theorem 1."""
    for epsilon0, cohort, population in ((2.0, 2000, 60_000), (1.0, 100, 1000)):
        profile = SubsampledProfile(strong_clones(epsilon0, cohort), cohort / population)
        for order in (2, 8):
            bound = renyi_divergence(profile, order)
            setting = epsilon0, cohort, population, order
            assert girgis_2021_lower(*setting) <= bound.upper <= girgis_2021_upper(*setting)


def test_the_numbers_of_the_mnist_experiment() -> None:
    """60,000 users, 2,000 asked per round, epsilon0 = 2, delta = 10^-5."""
    assert girgis_2021_epsilon(2.0, 2000, 60_000, 6000, 1e-5) == pytest.approx(5.7946, abs=5e-5)
    assert girgis_2021_epsilon(2.0, 2000, 60_000, 1515, 1e-5) < 3.0
    assert girgis_2021_epsilon(2.0, 2000, 60_000, 1516, 1e-5) > 3.0
    reached = min(
        epsilon_from_renyi(6000 * girgis_2021_lower(2.0, 2000, 60_000, order), order, 1e-5)
        for order in range(2, 200)
    )
    assert reached == pytest.approx(0.522, abs=1e-3)


def test_the_claim_of_a_factor_seventeen() -> None:
    """10^6 users, 1,000 asked in each of 10^5 rounds, epsilon0 = 3, delta = 10^-8."""
    assert girgis_2021_epsilon(3.0, 1000, 10**6, 10**5, 1e-8) == pytest.approx(4.086, abs=5e-4)


@pytest.mark.parametrize(("clones", "expected"), [(strong_clones, 5.42), (clones_2021, 8.13)])
def test_numerical_clones_with_subsampling_and_composition_of_the_mnist_experiment(
    clones: Callable[..., Any], expected: float
) -> None:
    """Each round (epsilon, delta)-DP at the best of some deltas; errata.md has these to three digits."""
    profile = SubsampledProfile(clones(2.0, 2000), 1 / 30)
    found = []
    for epsilon in np.geomspace(0.01, 0.06, 300):
        delta = float(profile.upper(np.array([epsilon]), 1e-3)[0])
        found.append(kairouz_oh_viswanath_closed_epsilon(float(epsilon), delta, 6000, 1e-5))
    assert min(found) == pytest.approx(expected, rel=0.002)


def test_no_number_breaks_the_theorems() -> None:
    for epsilon0 in (0.0, 1e-9, 3.0, 300.0):
        for cohort, population in ((1, 1), (1, 10**12), (10**6, 10**6)):
            for order in (2, 50, 3000):
                with np.errstate(all="raise", under="ignore"):
                    low = girgis_2021_lower(epsilon0, cohort, population, order)
                    high = girgis_2021_upper(epsilon0, cohort, population, order)
                assert 0.0 <= low <= high < math.inf


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="cohort must be in"):
        girgis_2021_upper(1.0, 11, 10, 2)
    with pytest.raises(ValueError, match=r"cohort must be in .*no certificate"):
        girgis_2021_lower(1.0, 10**11, 10**12, 2)
    with pytest.raises(ValueError, match="order must be"):
        girgis_2021_upper(1.0, 5, 10, 2.5)
    with pytest.raises(ValueError, match="order must be in"):
        girgis_2021_lower(1.0, 5, 10, 1.0)
    with pytest.raises(ValueError, match="rounds must be in"):
        girgis_2021_epsilon(1.0, 5, 10, 0, 1e-6)


def ternary(matrix: Matrix, others: tuple[int, ...], order: int) -> float:
    """The largest E_R |(P - Q)/R|^order over what the last person holds in P, Q and R."""
    laws = [shuffled_law(matrix, (*others, x)) for x in range(len(matrix))]
    found = [
        sum((abs(p[h] - q[h]) ** order / r[h] ** (order - 1) for h in r), Fraction(0))
        for p, q, r in product(laws, repeat=3)
    ]
    return float(max(found))


def local_epsilon(matrix: Matrix) -> float:
    """The local epsilon, a hair up: ratios are rational."""
    columns = list(zip(*matrix, strict=True))
    return math.log(max(max(column) / min(column) for column in columns)) * (1 + 1e-15)


MATRICES = [k_ary(2, Fraction(3)), k_ary(3, Fraction(2)), *random_matrices(4, seed=5)]


@pytest.mark.parametrize("matrix", MATRICES, ids=shape)
def test_moments_of_the_special_case_are_bounded(matrix: Matrix) -> None:
    """Lemma 7 and Theorem 6, from the definition."""
    epsilon0 = local_epsilon(matrix)
    for m in (1, 2, 4):
        for order in (2, 3, 4, 7):
            same = [shuffled_law(matrix, (0,) * m), shuffled_law(matrix, (0,) * (m - 1) + (1,))]
            moment = sum(
                (abs(same[1][h] - q) ** order / q ** (order - 1) for h, q in same[0].items()), Fraction(0)
            )
            assert float(moment) <= girgis_2021_lemma_7(epsilon0, m, order)
            assert ternary(matrix, (0,) * (m - 1), order) <= girgis_2021_theorem_6(epsilon0, m, order)


@pytest.mark.parametrize("matrix", MATRICES[:4], ids=shape)
def test_the_ternary_divergence_of_any_data_is_bounded(matrix: Matrix) -> None:
    """Theorem 5 as a mixture, and Theorem 4 above it."""
    epsilon0 = local_epsilon(matrix)
    for n in (1, 2, 4):
        for order in (2, 3, 6):
            worst = max(
                ternary(matrix, others, order)
                for others in combinations_with_replacement(range(len(matrix)), n - 1)
            )
            mixed = girgis_2021_theorem_5(epsilon0, n, order)
            assert worst <= mixed <= girgis_2021_theorem_4(epsilon0, n, order) * (1 + 1e-9)


@pytest.mark.parametrize("order", [2, 3, 6])
def test_the_other_divergences_cover_every_dataset_of_a_few_users(order: int) -> None:
    """The mixture of Theorem 5, the bound of the whole shuffle, and that subsampled (Wang et al. 2019)."""
    for k, E, population, cohort in [(2, 2, 6, 3), (2, 5, 5, 5), (2, 20, 4, 1), (3, 3, 4, 2)]:
        epsilon0 = math.log(E)
        exact = max(
            divergence(pair, order) for pair in cohort_pairs(k_ary(k, Fraction(E)), population, cohort)
        )
        assert exact <= girgis_2021_mixed_upper(epsilon0, cohort, population, order)
        whole = [girgis_shuffle_2021_upper(epsilon0, cohort, j) for j in range(2, order + 1)]
        assert exact <= wang_2019_subsampled(whole, epsilon0, cohort / population)
        crowd = max(divergence(pair, order) for pair in cohort_pairs(k_ary(k, Fraction(E)), cohort, cohort))
        assert crowd <= whole[-1]


def test_without_chernoff_the_paper_s_learning_setting_costs_a_third_less() -> None:
    at: Any = {"epsilon0": 2.0, "cohort": 2000, "population": 60_000, "rounds": 6000, "delta": 1e-5}
    mixed = girgis_2021_epsilon(**at, orders=range(2, 12), divergence=girgis_2021_mixed_upper)
    assert mixed == pytest.approx(3.9766, abs=2e-4)
    assert girgis_2021_epsilon(**at) == pytest.approx(5.7946, abs=1e-3)


def test_the_excess_loss_is_that_of_lemmas_9_and_10() -> None:
    """By hand: d = 10, cohort 500, e^epsilon0 = 3, T = 100: G^2 = 1 + 14 10/500 4."""
    found = girgis_2021_excess_loss(math.log(3), 500, 100, dimension=10, diameter=6.0)
    assert found == pytest.approx(2 * 6 * math.sqrt(2.12) * (2 + math.log(100)) / 10, rel=1e-12)
    wide = girgis_2021_excess_loss(math.log(3), 500, 100, dimension=10, diameter=6.0, norm=math.inf)
    assert wide == pytest.approx(2 * 6 * math.sqrt(10 * 1.32) * (2 + math.log(100)) / 10, rel=1e-12)
    with pytest.raises(ValueError, match="norm must be"):
        girgis_2021_excess_loss(1.0, 500, 100, dimension=10, norm=0.5)


@pytest.mark.parametrize(("epsilon0", "n"), [(0.3, 40), (1.0, 700), (3.0, 900)])
def test_theorem_5_is_its_average_over_the_crowd(epsilon0: float, n: int) -> None:
    """Term by term, as the theorem says; cells and tails only add to it."""
    p = math.exp(-epsilon0)
    for order in (2, 5, 30):
        worst = (2 * math.sinh(epsilon0)) ** order
        direct = sum(
            math.comb(n - 1, m) * p**m * (1 - p) ** (n - 1 - m)
            * min(worst, girgis_2021_theorem_6(epsilon0, m + 1, order))
            for m in range(n)
        )  # fmt: skip
        assert direct * (1 - 1e-9) <= girgis_2021_theorem_5(epsilon0, n, order) <= direct * (1 + 2e-3)


@pytest.mark.parametrize("order", [2, 10, 250])
def test_without_chernoff_no_divergence_is_larger(order: int) -> None:
    for epsilon0 in (0.3, 1.0, 3.0):
        for n in (1, 10, 1000, 10**6):
            mixed, whole = (
                bound(epsilon0, n, 3 * n, order) for bound in (girgis_2021_mixed_upper, girgis_2021_upper)
            )
            assert mixed <= whole * (1 + 1e-9)
