"""Theorems 1 and 2 of the subsampled shuffle, against each other and every dataset of a few users."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from oracles.brute import cohort_law, cohort_pairs, k_ary
from oracles.golden import Golden, entries
from oracles.hockey import Atoms, atoms
from shuffledp.accounting._curves.clones import clones_2021, strong_clones
from shuffledp.accounting._curves.subsampled import SubsampledProfile
from shuffledp.literature.composition import kairouz_oh_viswanath_closed_epsilon
from shuffledp.literature.girgis import girgis_2021_epsilon, girgis_2021_lower, girgis_2021_upper
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
