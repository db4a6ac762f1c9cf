"""Many users against ball arithmetic: intervals that hold the exact value of each analysis.

The parameters are floats and taken as they are, so nothing is lost in conversion.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from flint import arb

import shuffledp as sdp
from oracles import balls, products
from oracles.claims import (
    Curve,
    assert_at_least,
    assert_at_most,
    assert_delta_tight,
    assert_encloses,
    assert_epsilon_below,
    assert_epsilon_covers,
    assert_epsilon_sound,
    assert_epsilon_tight,
    value,
)

TINY = arb(10) ** -30
LARGE = [(10**3, 6.0), (10**4, 0.5), (10**4, 4.0), (10**5, 2.0), (10**6, 1.0), (10**6, 5.0)]


def at_epsilon(profile: Callable[[arb], arb]) -> Curve:
    return lambda epsilon: profile(balls.exp(epsilon))


def check(mechanism: Any, curve: Curve, deltas: tuple[float, ...], tolerance: float) -> None:
    """epsilon(delta), and delta at the epsilon that was found, cover the curve and are tight."""
    for delta in deltas:
        bound = mechanism.epsilon(delta=delta, tolerance=tolerance)
        assert_epsilon_covers(bound.upper, curve, delta)
        assert_epsilon_tight(bound.upper, curve, delta, tolerance)
        assert_epsilon_below(bound.lower, curve, delta)
        back = mechanism.delta(epsilon=bound.upper, tolerance=tolerance)
        assert_at_least(back.upper, curve(bound.upper), slack=1e-14)
        assert_delta_tight(back.upper, curve, bound.upper, tolerance)


@pytest.mark.parametrize("tolerance", [1e-3, pytest.param(1e-5, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("n", "epsilon0"), LARGE)
def test_clones(n: int, epsilon0: float, tolerance: float) -> None:
    mechanism = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=epsilon0), n=n, analysis="clones")
    curve = at_epsilon(partial(balls.clones, n, epsilon0))
    check(mechanism, curve, (0.01, 1e-6, 1e-12), tolerance)


@pytest.mark.parametrize(("n", "epsilon0"), LARGE)
def test_clones_of_2021(n: int, epsilon0: float) -> None:
    mechanism = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=epsilon0), n=n, analysis="clones-2021")
    curve = at_epsilon(partial(balls.clones_2021, n, epsilon0))
    check(mechanism, curve, (0.01, 1e-6, 1e-12), 1e-3)


@pytest.mark.slow
def test_clones_of_a_hundred_million_users() -> None:
    n, epsilon0 = 10**8, 4.0
    mechanism = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=epsilon0), n=n, analysis="clones")
    check(mechanism, at_epsilon(partial(balls.clones, n, epsilon0)), (1e-8,), 1e-3)


@pytest.mark.parametrize("tolerance", [1e-3, pytest.param(1e-5, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("n", "k", "gamma"), [(10**3, 2, 0.9), (10**4, 4, 0.25), (10**4, 100, 0.9), (10**6, 16, 0.3)]
)
def test_strong_adversary(n: int, k: int, gamma: float, tolerance: float) -> None:
    randomizer = sdp.KaryRandomizedResponse(k=k, gamma=gamma)
    mechanism = sdp.Shuffled(randomizer, n=n, analysis="strong")
    check(mechanism, at_epsilon(partial(balls.strong, n, k, gamma)), (0.01, 1e-6), tolerance)


BLANKETS = [
    (50, 3, 1.0),
    (200, 4, 3.0),
    (400, 3, 1.0),
    (1000, 16, 4.0),
    (1000, 100, 2.0),
    (600, 4, 2.0),
    (3000, 1000, 6.0),
]


@pytest.mark.parametrize(("n", "k", "epsilon0"), BLANKETS)
def test_blanket(n: int, k: int, epsilon0: float) -> None:
    randomizer = sdp.KaryRandomizedResponse(k=k, epsilon0=epsilon0)
    mechanism = sdp.Shuffled(randomizer, n=n, analysis="blanket")
    curve = at_epsilon(partial(balls.blanket, n, k, epsilon0, tiny=TINY))
    check(mechanism, curve, (1e-3, 1e-9), 1e-3)


@pytest.mark.parametrize(("n", "k", "epsilon0"), [(200, 4, 3.0), (1000, 16, 4.0)])
def test_blanket_with_a_small_tolerance(n: int, k: int, epsilon0: float) -> None:
    randomizer = sdp.KaryRandomizedResponse(k=k, epsilon0=epsilon0)
    mechanism = sdp.Shuffled(randomizer, n=n, analysis="blanket")
    curve = at_epsilon(partial(balls.blanket, n, k, epsilon0, tiny=TINY))
    check(mechanism, curve, (1e-6,), 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "k", "epsilon0"), [(10**4, 16, 4.0), (10**4, 4, 1.0), (10**5, 4, 4)])
def test_blanket_of_many_users(n: int, k: int, epsilon0: float) -> None:
    randomizer = sdp.KaryRandomizedResponse(k=k, epsilon0=epsilon0)
    mechanism = sdp.Shuffled(randomizer, n=n, analysis="blanket")
    curve = at_epsilon(partial(balls.blanket, n, k, epsilon0, tiny=TINY))
    check(mechanism, curve, (1e-6, 1e-12), 1e-3)


@pytest.mark.parametrize(("n", "k", "epsilon0"), BLANKETS)
def test_two_concrete_datasets_are_below_the_upper_end(n: int, k: int, epsilon0: float) -> None:
    mechanism = sdp.Shuffled(sdp.KaryRandomizedResponse(k=k, epsilon0=epsilon0), n=n)
    epsilon = mechanism.epsilon(delta=1e-6).upper
    for epsilon_there in (0.3 * epsilon, epsilon):
        alpha = balls.exp(epsilon_there)
        bound = mechanism.delta(epsilon=epsilon_there)
        for dataset in (balls.all_hold_a_third_value, balls.all_hold_the_value):
            assert_at_least(bound.upper, dataset(n, k, epsilon0, alpha, tiny=TINY), slack=1e-14)
        assert_at_most(bound.lower, balls.blanket(n, k, epsilon0, alpha, tiny=TINY), slack=1e-14)


@pytest.mark.parametrize(
    ("n", "epsilon0", "total_variation"), [(200, 1.0, 0.2), (1000, 2.0, 0.5), (2000, 4.0, 0.8)]
)
def test_known_total_variation(n: int, epsilon0: float, total_variation: float) -> None:
    randomizer = sdp.LocalRandomizer(epsilon0=epsilon0, total_variation=total_variation)
    curve = at_epsilon(partial(balls.universal, n, epsilon0, total_variation, tiny=TINY))
    check(sdp.Shuffled(randomizer, n=n), curve, (1e-3, 1e-8), 1e-3)


# Binary randomized response


@pytest.mark.parametrize("tolerance", [1e-3, pytest.param(1e-5, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("n", "epsilon0"), [(20, 3.0), (100, 1.0), (200, 4.0)])
def test_exact_binary_randomized_response_is_the_worst_of_all_datasets(
    n: int, epsilon0: float, tolerance: float
) -> None:
    randomizer = sdp.BinaryRandomizedResponse(epsilon0=epsilon0)
    mechanism = sdp.Shuffled(randomizer, n=n, analysis="exact")
    curve = at_epsilon(partial(balls.binary_worst, n, epsilon0))
    for delta in (0.05, 1e-4, 1e-8):
        bound = mechanism.epsilon(delta=delta, tolerance=tolerance)
        assert_epsilon_sound(bound, curve, delta)
        assert_epsilon_tight(bound.upper, curve, delta, tolerance)
        back = mechanism.delta(epsilon=bound.upper, tolerance=tolerance)
        assert_encloses(back, curve(bound.upper), slack=1e-13)


@pytest.mark.parametrize(("n", "epsilon0", "delta"), [(10**4, 4.0, 1e-6), (10**4, 1.0, 1e-12)])
def test_exact_binary_randomized_response_of_ten_thousand_users(
    n: int, epsilon0: float, delta: float
) -> None:
    randomizer = sdp.BinaryRandomizedResponse(epsilon0=epsilon0)
    bound = sdp.Shuffled(randomizer, n=n, analysis="exact").epsilon(delta=delta)
    alpha = balls.exp(bound.upper)
    for zeros in (n - 1, n - 2, n - 3, n - 10, n // 2, 0):
        for exact in balls.binary_exact(n, zeros, epsilon0, alpha):
            assert value(exact) <= delta * (1 + 1e-12)
    clones = at_epsilon(partial(balls.clones, n, epsilon0))
    assert_epsilon_below(bound.upper * 1.05, clones, delta)  # clearly better than the blanket
    all_agree = balls.binary_exact(n, n - 1, epsilon0, balls.exp(bound.upper / 1.002))
    assert max(value(exact) for exact in all_agree) >= 0.9 * delta  # and close to a real dataset


def test_above_its_limit_binary_randomized_response_falls_back_to_something_sound() -> None:
    n, epsilon0, delta = 10**6, 4.0, 1e-8
    bound = sdp.Shuffled(sdp.BinaryRandomizedResponse(epsilon0=epsilon0), n=n).epsilon(delta=delta)
    clones = at_epsilon(partial(balls.clones, n, epsilon0))
    assert_epsilon_tight(bound.upper, clones, delta, 1e-3)
    assert 0 < bound.lower <= bound.upper


# Compositions, enclosed by losses rounded down and up to a lattice in double precision

FOURIER = 1e-12  # absolute error of the transforms, far above what they make


@pytest.mark.parametrize(
    ("analysis", "n", "epsilon0", "rounds", "step", "reach"),
    [
        pytest.param("clones", 10**4, 4.0, 30, 2e-5, 0.8, marks=pytest.mark.slow),
        ("clones", 3000, 1.0, 30, 1e-5, 0.25),
        ("clones", 10**3, 1.0, 10, 1e-5, 0.3),
        ("clones-2021", 10**4, 2.0, 30, 1e-5, 0.35),
        pytest.param("blanket", 60, 1.0, 20, 1e-5, 0.9, marks=pytest.mark.slow),
        ("strong", 10**4, 2.0, 10, 5e-6, 0.4),
    ],
)
def test_rounds_are_enclosed_by_rounded_losses(
    analysis: str, n: int, epsilon0: float, rounds: int, step: float, reach: float
) -> None:
    k = 5
    randomizer = sdp.KaryRandomizedResponse(k=k, epsilon0=epsilon0)
    pair = {
        "clones": lambda: products.clones(n, epsilon0),
        "clones-2021": lambda: products.clones_2021(n, epsilon0),
        "blanket": lambda: products.blanket(n, k, epsilon0),
        "strong": lambda: products.strong(n, k, randomizer.gamma),
    }[analysis]()
    mechanism = rounds * sdp.Shuffled(randomizer, n=n, analysis=analysis)
    for delta in (0.1, 1e-3, 1e-6):
        upper = mechanism.epsilon(delta=delta).upper
        low, _ = products.composed_between(pair, rounds, upper, step, reach)
        assert low <= delta * (1 + 1e-6) + FOURIER, f"UNSOUND at {upper}: {low} > {delta}"
        if upper > 0:
            _, high = products.composed_between(pair, rounds, upper / 1.001, step, reach)
            assert high >= delta * (1 - 1e-6) - FOURIER, f"LOOSE at {upper}: {high} < {delta}"
        there = mechanism.delta(epsilon=upper).upper
        assert there >= low * (1 - 1e-6) - FOURIER


def test_the_epsilons_of_many_deltas_come_from_one_curve() -> None:
    """delta(epsilon) on a grid is what single calls give, up to the tolerance."""
    n, epsilon0 = 10**5, 2.0
    mechanism = sdp.Shuffled(sdp.KaryRandomizedResponse(k=8, epsilon0=epsilon0), n=n)
    grid = np.linspace(0.0, 0.1, 11)
    together = mechanism.delta(epsilon=grid)
    assert np.all(np.diff(together.upper) <= 0)
    assert np.all(together.lower <= together.upper)
    for epsilon, lower, upper in zip(grid, together.lower, together.upper, strict=True):
        alone = mechanism.delta(epsilon=epsilon)
        assert lower <= alone.upper
        assert alone.lower <= upper
        assert upper == pytest.approx(alone.upper, rel=0.1)
