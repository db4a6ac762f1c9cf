"""Deltas far below what double precision can resolve next to one: relative accuracy all the way.

One round against ball arithmetic; two and four rounds against a sum over all outcomes of the
product, whose terms are all positive.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from math import exp, log
from typing import Any

import numpy as np
import pytest
from flint import arb

import shuffledp as sdp
from oracles import balls, brute, pairs, products
from oracles.claims import (
    Curve,
    assert_at_least,
    assert_delta_tight,
    assert_epsilon_below,
    assert_epsilon_covers,
    assert_epsilon_sound,
    assert_epsilon_tight,
    rational_curve,
)
from oracles.hockey import hockey_stick, product

DELTAS = (1e-16, 1e-20, 1e-30, 1e-100)


def check(mechanism: Any, curve: Curve, delta: float, tolerance: float = 1e-3) -> None:
    bound = mechanism.epsilon(delta=delta, tolerance=tolerance)
    assert_epsilon_covers(bound.upper, curve, delta)
    assert_epsilon_tight(bound.upper, curve, delta, tolerance)
    assert_epsilon_below(bound.lower, curve, delta)
    there = mechanism.delta(epsilon=bound.upper, tolerance=tolerance)
    assert_at_least(there.upper, curve(bound.upper))
    assert_delta_tight(there.upper, curve, bound.upper, tolerance)
    assert 0 <= there.lower <= there.upper


def test_a_delta_that_no_double_can_hold_is_not_zero() -> None:
    """Losses add up to 349 at most, so delta is positive before; at epsilon = 1.13 it is near 1e-390."""
    rounds = 2000 * sdp.Shuffled(sdp.LocalRandomizer(epsilon0=3.0), n=10**4, analysis="clones").sampled_from(
        10**6
    )
    alone, many = rounds.delta(epsilon=1.13), rounds.delta(epsilon=np.array([1.0, 1.13, 350.0]))
    for end in (alone.upper, *many.upper[:2]):
        assert 0.0 < end < 1e-290
    assert alone.lower == many.lower[1] == many.upper[2] == 0.0


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize(("n", "epsilon0"), [(10**4, 1.0), (10**6, 4.0), (10**6, 0.5)])
def test_clones(n: int, epsilon0: float, delta: float) -> None:
    mechanism = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=epsilon0), n=n, analysis="clones")
    check(mechanism, partial(clones_curve, n, epsilon0), delta)


@pytest.mark.parametrize("delta", DELTAS)
def test_clones_of_2021(delta: float) -> None:
    n, epsilon0 = 10**5, 2.0
    mechanism = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=epsilon0), n=n, analysis="clones-2021")
    check(mechanism, lambda epsilon: balls.clones_2021(n, epsilon0, balls.exp(epsilon)), delta)


@pytest.mark.parametrize("delta", DELTAS)
def test_strong_adversary(delta: float) -> None:
    n, k, gamma = 10**5, 4, 0.5
    randomizer = sdp.KaryRandomizedResponse(k=k, gamma=gamma)
    mechanism = sdp.Shuffled(randomizer, n=n, analysis="strong")
    check(mechanism, lambda epsilon: balls.strong(n, k, gamma, balls.exp(epsilon)), delta)


@pytest.mark.parametrize("delta", DELTAS)
def test_blanket(delta: float) -> None:
    n, k, epsilon0 = 250, 4, 0.5
    randomizer = sdp.KaryRandomizedResponse(k=k, epsilon0=epsilon0)
    mechanism = sdp.Shuffled(randomizer, n=n, analysis="blanket")
    profile = partial(balls.blanket, n, k, epsilon0)
    check(mechanism, lambda epsilon: profile(balls.exp(epsilon)), delta)


@pytest.mark.parametrize("delta", DELTAS)
def test_exact_binary_randomized_response(delta: float) -> None:
    n, epsilon0 = 150, 0.5
    mechanism = sdp.Shuffled(sdp.BinaryRandomizedResponse(epsilon0=epsilon0), n=n, analysis="exact")
    profile = partial(balls.binary_worst, n, epsilon0)
    check(mechanism, lambda epsilon: profile(balls.exp(epsilon)), delta)


@pytest.mark.parametrize("share", [0.9, 0.999, 1 - 1e-6])
def test_close_to_the_local_epsilon(share: float) -> None:
    """Where the profile vanishes, differences of nearly equal numbers must not be taken."""
    n, epsilon0 = 100, 1.0
    mechanism = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=epsilon0), n=n, analysis="clones")
    curve: Curve = partial(clones_curve, n, epsilon0)
    upper = mechanism.delta(epsilon=share * epsilon0).upper
    assert_at_least(upper, curve(share * epsilon0))
    assert_delta_tight(upper, curve, share * epsilon0, 1e-3)


def clones_curve(n: int, epsilon0: float, epsilon: float) -> arb:
    return balls.clones(n, epsilon0, balls.exp(epsilon))


# Compositions


def below(largest: float, curve: Callable[[float], float]) -> Curve:
    """Zero from the largest loss on, where double precision leaves a rounding error."""
    return lambda epsilon: curve(epsilon) if epsilon < largest * (1 - 1e-12) else 0.0


def two_rounds(pair: products.Pair, largest: float) -> Curve:
    return below(largest, lambda e: products.hockey_stick_of_two(pair, pair, float(np.exp(e))))


def four_rounds(pair: products.Pair, largest: float) -> Curve:
    return below(largest, lambda e: products.hockey_stick_of_four(pair, float(np.exp(e))))


@pytest.mark.parametrize("delta", [1e-12, 1e-16, 1e-20, 1e-30])
@pytest.mark.parametrize(("n", "epsilon0"), [(300, 1.0), (1000, 0.5), (1000, 4.0)])
def test_two_rounds_of_clones(n: int, epsilon0: float, delta: float) -> None:
    mechanism = 2 * sdp.Shuffled(sdp.LocalRandomizer(epsilon0=epsilon0), n=n, analysis="clones")
    check(mechanism, two_rounds(products.clones(n, epsilon0), 2 * epsilon0), delta)


@pytest.mark.parametrize("delta", [1e-12, 1e-16, 1e-20, 1e-30])
def test_four_rounds_of_clones(delta: float) -> None:
    n, epsilon0 = 35, 0.5
    mechanism = 4 * sdp.Shuffled(sdp.LocalRandomizer(epsilon0=epsilon0), n=n, analysis="clones")
    check(mechanism, four_rounds(products.clones(n, epsilon0), 4 * epsilon0), delta)


@pytest.mark.parametrize("delta", [1e-12, 1e-20, 1e-30])
def test_two_rounds_of_the_blanket(delta: float) -> None:
    n, k, epsilon0 = 60, 4, 1.0
    randomizer = sdp.KaryRandomizedResponse(k=k, epsilon0=epsilon0)
    mechanism = 2 * sdp.Shuffled(randomizer, n=n, analysis="blanket")
    check(mechanism, two_rounds(products.blanket(n, k, epsilon0), 2 * epsilon0), delta)


def test_a_mix_of_two_mechanisms() -> None:
    first, second = products.clones(300, 1.0), products.clones_2021(200, 0.5)
    mechanism: sdp.Mechanism = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=1.0), n=300, analysis="clones")
    mechanism += sdp.Shuffled(sdp.LocalRandomizer(epsilon0=0.5), n=200, analysis="clones-2021")
    for delta in (1e-12, 1e-30):
        check(
            mechanism,
            lambda epsilon: products.hockey_stick_of_two(first, second, float(np.exp(epsilon))),
            delta,
        )


@pytest.mark.parametrize("rounds", [2, 3, 4])
def test_rounds_of_a_few_users_near_the_largest_loss(rounds: int) -> None:
    """Exact rationals: the last outcomes before the profile vanishes."""
    E, n = Fraction(3, 2), 8
    composed = product(*[pairs.clones(n, E)] * rounds)
    randomizer = sdp.LocalRandomizer(epsilon0=log(E))
    mechanism = rounds * sdp.Shuffled(randomizer, n=n, analysis="clones")
    for share in (0.8, 0.95, 0.99):
        epsilon = share * rounds * log(E)
        exact = hockey_stick(composed, Fraction(exp(epsilon)))
        assert_at_least(mechanism.delta(epsilon=epsilon).upper, exact)


def test_a_few_users_of_binary_randomized_response_at_tiny_deltas() -> None:
    E, n = Fraction(3, 2), 30
    truth = brute.shuffled_pairs(brute.k_ary(2, E), n)
    mechanism = sdp.Shuffled(sdp.BinaryRandomizedResponse(epsilon0=log(E)), n=n)
    curve = rational_curve(lambda alpha: brute.worst(truth, alpha))
    for delta in (1e-9, 1e-12, 1e-15):
        bound = mechanism.epsilon(delta=delta)
        assert_epsilon_sound(bound, curve, delta)
        assert_epsilon_tight(bound.upper, curve, delta, 1e-3)


@pytest.mark.parametrize("delta", [1e-16, 1e-30])
def test_many_rounds_stay_finite_and_ordered(delta: float) -> None:
    daily = sdp.Shuffled(sdp.KaryRandomizedResponse(k=16, epsilon0=4.0), n=10**6)
    previous = 0.0
    for rounds in (1, 10, 1000, 10**5):
        bound = (rounds * daily).epsilon(delta=delta)
        assert 0 < bound.lower <= bound.upper < np.inf
        assert bound.upper > previous
        previous = bound.upper
