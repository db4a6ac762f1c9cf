"""Composition theorems against exact products of the pairs they are proved with."""

import math
from fractions import Fraction
from itertools import product as grid
from random import Random

import numpy as np
import pytest
from flint import arb

from oracles.hockey import Atoms, atoms, hockey_stick, product
from shuffledp.literature.composition import (
    dwork_rothblum_vadhan_delta,
    dwork_rothblum_vadhan_epsilon,
    kairouz_oh_viswanath_closed_epsilon,
    kairouz_oh_viswanath_delta,
    kairouz_oh_viswanath_epsilon,
)

pytestmark = pytest.mark.quick

EPSILONS = (kairouz_oh_viswanath_epsilon, kairouz_oh_viswanath_closed_epsilon, dwork_rothblum_vadhan_epsilon)


def worst_round(E: Fraction, delta: Fraction) -> Atoms:
    """The pair that every (log E, delta)-DP round is a post-processing of."""
    p = {"leak": delta, 1: (1 - delta) * E / (E + 1), 0: (1 - delta) / (E + 1)}
    q = {"other leak": delta, 0: (1 - delta) * E / (E + 1), 1: (1 - delta) / (E + 1)}
    return atoms(p, q)


@pytest.mark.parametrize("E", [Fraction(21, 20), Fraction(2), Fraction(30)])
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**6), Fraction(1, 10)])
@pytest.mark.parametrize("rounds", [1, 2, 7, 20])
def test_optimal_composition_is_the_hockey_stick_of_the_product(
    E: Fraction, delta: Fraction, rounds: int
) -> None:
    composed = product(*[worst_round(E, delta)] * rounds)
    for total in (0.0, 0.05, 0.3, 1.0, 2.5):
        exact = float(hockey_stick(composed, Fraction(math.exp(total))))
        found = kairouz_oh_viswanath_delta(math.log(E), float(delta), rounds, total)
        assert exact * (1 - 1e-12) <= found <= exact * (1 + 1e-9) + 1e-14


def ball_delta(epsilon: float, rounds: int, total: float) -> arb:
    """The sum over all counts of truthful answers, in ball arithmetic."""
    e = arb(epsilon)
    truth = 1 / (1 + (-e).exp())
    result = arb(0)
    for j in range(rounds + 1):
        loss = (2 * j - rounds) * e - arb(total)
        if loss > 0:
            mass = arb.bin_uiui(rounds, j) * truth**j * (1 - truth) ** (rounds - j)
            result += mass * (1 - (-loss).exp())
    return result


@pytest.mark.parametrize(("epsilon", "total"), [(0.01, 0.3), (0.01, 1.9), (0.1, 30.0), (1.0, 700.0)])
def test_optimal_composition_of_many_rounds_is_the_sum_in_ball_arithmetic(
    epsilon: float, total: float
) -> None:
    rounds = 1500
    exact = ball_delta(epsilon, rounds, total)
    found = kairouz_oh_viswanath_delta(epsilon, 0.0, rounds, total)
    assert float(exact.lower()) <= found <= float(exact.upper()) * (1 + 1e-9)


def test_ten_million_rounds_are_as_a_normal_law_has_it() -> None:
    """The loss of T rounds is near normal: mean T epsilon tanh(epsilon/2), deviation epsilon sqrt(T)."""
    epsilon, rounds, delta = 1e-4, 10**7, 1e-6
    found = kairouz_oh_viswanath_epsilon(epsilon, 0.0, rounds, delta)
    deviation = epsilon * math.sqrt(rounds)
    # (epsilon, delta) of a Gaussian mechanism whose loss has this deviation: its own equation.
    z = found / deviation - deviation / 2, found / deviation + deviation / 2
    tail = [0.5 * math.erfc(x / math.sqrt(2)) for x in z]
    assert tail[0] - math.exp(found) * tail[1] == pytest.approx(delta, rel=1e-3)


def test_the_claim_of_a_factor_seventeen() -> None:
    """Pure rounds of log(1 + 0.001 (e^3 - 1)), 10^5 of them, delta = 10^-8."""
    each = math.log1p(0.001 * math.expm1(3.0))
    assert dwork_rothblum_vadhan_epsilon(each, 0.0, 10**5, 1e-8) == pytest.approx(72.37, abs=5e-3)
    assert kairouz_oh_viswanath_closed_epsilon(each, 0.0, 10**5, 1e-8) == pytest.approx(54.16, abs=5e-3)
    assert kairouz_oh_viswanath_epsilon(each, 0.0, 10**5, 1e-8) == pytest.approx(50.714, abs=5e-3)


@pytest.mark.thorough
def test_the_optimal_total_is_below_the_closed_form_and_below_advanced_composition() -> None:
    rng = Random(1)
    for _ in range(80):
        epsilon, rounds = 10 ** rng.uniform(-5, 0.7), int(10 ** rng.uniform(0, 4))
        delta = rng.choice([0.0, 10 ** rng.uniform(-14, -7)])
        total = 10 ** rng.uniform(-10, -0.1)
        best, closed, advanced = (bound(epsilon, delta, rounds, total) for bound in EPSILONS)
        assert best <= closed * (1 + 1e-8)
        assert best <= advanced * (1 + 1e-8)


def test_the_epsilon_found_has_the_delta_asked_for() -> None:
    for epsilon, delta, rounds, total in grid((1e-3, 0.5), (0.0, 1e-10), (10, 3000), (1e-2, 1e-6)):
        found = kairouz_oh_viswanath_epsilon(epsilon, delta, rounds, total)
        assert kairouz_oh_viswanath_delta(epsilon, delta, rounds, found) <= total
        if found > 0.0:
            below = kairouz_oh_viswanath_delta(epsilon, delta, rounds, found * (1 - 1e-6))
            assert below > total
        found = dwork_rothblum_vadhan_epsilon(epsilon, delta, rounds, total)
        assert dwork_rothblum_vadhan_delta(epsilon, delta, rounds, found) == pytest.approx(total, rel=1e-6)


def test_no_epsilon_has_a_total_delta_below_that_of_the_rounds() -> None:
    for bound in EPSILONS:
        assert bound(0.1, 1e-6, 1000, 9e-4) == math.inf
        assert math.isfinite(bound(0.1, 1e-6, 1000, 1.1e-3))


def test_the_ends_of_the_ranges_are_plain() -> None:
    assert kairouz_oh_viswanath_delta(0.5, 0.0, 10, 5.0 + 1e-9) == 0.0
    assert kairouz_oh_viswanath_epsilon(0.0, 0.0, 10, 1e-9) == 0.0
    assert kairouz_oh_viswanath_delta(0.0, 0.0, 10, 0.0) == 0.0
    assert kairouz_oh_viswanath_delta(1.0, 1.0, 10, 1.0) == 1.0
    for epsilon, rounds, total in grid((1e-12, 300.0), (1, 10**6), (0.0, 1e-9, 600.0)):
        with np.errstate(all="raise", under="ignore"):
            assert 0.0 <= kairouz_oh_viswanath_delta(epsilon, 0.0, rounds, total) <= 1.0


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="rounds must be in"):
        kairouz_oh_viswanath_delta(0.1, 0.0, 0, 1.0)
    with pytest.raises(ValueError, match="rounds must be in"):
        kairouz_oh_viswanath_delta(0.1, 0.0, 10**11, 1.0)
    with pytest.raises(ValueError, match="total_delta must be in"):
        kairouz_oh_viswanath_epsilon(0.1, 0.0, 10, 0.0)
    with pytest.raises(ValueError, match="total_epsilon must be in"):
        kairouz_oh_viswanath_delta(0.1, 0.0, 10, math.nan)
    with pytest.raises(ValueError, match="epsilon must be in"):
        dwork_rothblum_vadhan_epsilon(-0.1, 0.0, 10, 1e-6)
