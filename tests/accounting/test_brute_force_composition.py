"""Two to four rounds against an adversary who chooses every round after seeing the former ones (T6).

The truth is the value of that game over all datasets of a few users, in exact rationals. The upper
ends are also compared with the exact product of the pair that each analysis stands for.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import log
from typing import Any

import numpy as np
import pytest

import shuffledp as sdp
from oracles import brute, pairs
from oracles.brute import Matrix
from oracles.claims import (
    assert_at_least,
    assert_delta_tight,
    assert_encloses,
    assert_epsilon_covers,
    assert_epsilon_sound,
    assert_epsilon_tight,
    rational_curve,
)
from oracles.hockey import Atoms, hockey_stick, pair_of_curve, product, upper_envelope

SHARES = np.array([0.0, 0.11, 0.34, 0.62, 0.93])  # of the largest loss that the rounds can have
SKEWED = brute.stochastic([[32, 16, 16], [8, 24, 32]])


def k_ary(k: int, E: Fraction, n: int) -> sdp.Shuffled:
    return sdp.Shuffled(sdp.KaryRandomizedResponse(k=k, epsilon0=log(E)), n=n)


def finite(matrix: Matrix, n: int) -> sdp.Shuffled:
    return sdp.Shuffled(sdp.FiniteRandomizer([[float(e) for e in row] for row in matrix]), n=n)


def check_against_the_adaptive_adversary(
    mechanism: Any, rounds: Sequence[brute.Pairs], largest: float
) -> None:
    truth = rational_curve(lambda alpha: brute.worst_adaptive(rounds, alpha))
    for epsilon in largest * SHARES:
        assert_encloses(mechanism.delta(epsilon=epsilon), truth(epsilon))
    for delta in (0.2, 0.01, 1e-4):
        assert_epsilon_sound(mechanism.epsilon(delta=delta), truth, delta)


@pytest.mark.parametrize("rounds", [1, 2, 3, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("E", "n"), [(Fraction(3, 2), 5), (Fraction(3), 2), (Fraction(3), 4), (Fraction(20), 3)]
)
def test_rounds_of_binary_randomized_response_cover_the_adaptive_adversary(
    E: Fraction, n: int, rounds: int
) -> None:
    truth = brute.shuffled_pairs(brute.k_ary(2, E), n)
    daily = sdp.Shuffled(sdp.BinaryRandomizedResponse(epsilon0=log(E)), n=n)
    check_against_the_adaptive_adversary(rounds * daily, [truth] * rounds, rounds * log(E))


@pytest.mark.parametrize(
    ("k", "E", "n", "rounds"),
    [
        (3, Fraction(2), 2, 2),
        (3, Fraction(5), 4, 2),
        (3, Fraction(5), 2, 3),
        pytest.param(3, Fraction(3), 3, 3, marks=pytest.mark.slow),
        (4, Fraction(3), 3, 2),
        (4, Fraction(3), 1, 4),
        (5, Fraction(20), 2, 3),
    ],
)
def test_rounds_of_k_ary_randomized_response_cover_the_adaptive_adversary(
    k: int, E: Fraction, n: int, rounds: int
) -> None:
    truth = brute.shuffled_pairs(brute.k_ary(k, E), n)
    mechanism = rounds * k_ary(k, E, n)
    check_against_the_adaptive_adversary(mechanism, [truth] * rounds, rounds * log(E))


@pytest.mark.parametrize(("n", "rounds"), [(1, 3), (2, 2), (2, 3), (3, 2)])
def test_rounds_of_any_finite_randomizer_cover_the_adaptive_adversary(n: int, rounds: int) -> None:
    truth = brute.shuffled_pairs(SKEWED, n)
    mechanism = rounds * finite(SKEWED, n)
    check_against_the_adaptive_adversary(mechanism, [truth] * rounds, rounds * log(4))


def test_a_mix_of_mechanisms_covers_the_adaptive_adversary() -> None:
    binary = sdp.Shuffled(sdp.BinaryRandomizedResponse(epsilon0=log(3)), n=3)
    mechanism = 2 * binary + k_ary(3, Fraction(5), 2) + finite(SKEWED, 1)
    small = brute.shuffled_pairs(brute.k_ary(2, Fraction(3)), 3)
    others = [brute.shuffled_pairs(brute.k_ary(3, Fraction(5)), 2), brute.shuffled_pairs(SKEWED, 1)]
    rounds = [*others, small, small]
    truth = rational_curve(lambda alpha: brute.worst_adaptive(rounds, alpha))
    largest = log(3 * 3 * 5 * 4)
    for epsilon in largest * SHARES[::2]:
        assert_encloses(mechanism.delta(epsilon=epsilon), truth(epsilon))


def test_the_order_of_a_mix_does_not_matter() -> None:
    first, second = k_ary(2, Fraction(3), 4), k_ary(5, Fraction(5), 3)
    one, other = (2 * first + second), (second + first + first)
    for delta in (0.1, 1e-4):
        assert one.epsilon(delta=delta).upper == pytest.approx(other.epsilon(delta=delta).upper, rel=2e-3)


# Each analysis against the exact product of its pair


def exact_binary(n: int, k: int, E: Fraction) -> Atoms:
    """The envelope of all datasets of binary randomized response, as one pair."""
    assert k == 2
    return pair_of_curve(upper_envelope(brute.shuffled_pairs(brute.k_ary(2, E), n)))


ANALYSES: dict[str, Callable[[int, int, Fraction], Atoms]] = {
    "clones": lambda n, k, E: pairs.clones(n, E),
    "clones-2021": lambda n, k, E: pairs.clones_2021(n, E),
    "blanket": lambda n, k, E: pairs.k_ary_blanket(n, k, E),
    "strong": lambda n, k, E: pairs.strong(n, k, Fraction(k) / (E + k - 1)),
    "exact": exact_binary,
}
SETTINGS = [
    (analysis, k, E, n, rounds)
    for analysis, k in [*((a, 3) for a in ANALYSES if a != "exact"), ("exact", 2), ("clones", 2)]
    for E, n, rounds in [
        (Fraction(3, 2), 5, 2),
        (Fraction(5), 4, 3),
        (Fraction(5), 2, 4),
        (Fraction(20), 3, 2),
    ]
]


def rounds_of(analysis: str, k: int, E: Fraction, n: int, rounds: int) -> Any:
    randomizer = sdp.KaryRandomizedResponse(k=k, epsilon0=log(E))
    if k == 2:
        randomizer = sdp.BinaryRandomizedResponse(epsilon0=log(E))
    return rounds * sdp.Shuffled(randomizer, n=n, analysis=analysis)


@pytest.mark.parametrize(("analysis", "k", "E", "n", "rounds"), [s for s in SETTINGS if s[0] != "exact"])
def test_rounds_of_every_analysis_cover_the_product_of_its_pair(
    analysis: str, k: int, E: Fraction, n: int, rounds: int
) -> None:
    composed = product(*[ANALYSES[analysis](n, k, E)] * rounds)
    curve = rational_curve(lambda alpha: hockey_stick(composed, alpha))
    mechanism = rounds_of(analysis, k, E, n, rounds)
    for epsilon in rounds * log(E) * SHARES:
        assert_at_least(mechanism.delta(epsilon=epsilon).upper, curve(epsilon))
    for delta in (0.3, 0.05, 1e-3):
        if delta > curve(50.0):  # the strong adversary never comes down to small deltas
            assert_epsilon_covers(mechanism.epsilon(delta=delta).upper, curve, delta)


@pytest.mark.parametrize("tolerance", [1e-3, pytest.param(1e-4, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("analysis", "k", "E", "n", "rounds"), SETTINGS)
def test_rounds_of_every_analysis_are_its_product_within_the_tolerance(
    analysis: str, k: int, E: Fraction, n: int, rounds: int, tolerance: float
) -> None:
    composed = product(*[ANALYSES[analysis](n, k, E)] * rounds)
    curve = rational_curve(lambda alpha: hockey_stick(composed, alpha))
    mechanism = rounds_of(analysis, k, E, n, rounds)
    for epsilon in rounds * log(E) * SHARES:
        upper = mechanism.delta(epsilon=epsilon, tolerance=tolerance).upper
        assert_delta_tight(upper, curve, epsilon, tolerance)
    for delta in (0.3, 0.05, 1e-3):
        if delta > curve(50.0):
            upper = mechanism.epsilon(delta=delta, tolerance=tolerance).upper
            assert_epsilon_tight(upper, curve, delta, tolerance)


def test_the_profile_of_rounds_covers_both_sides_of_one() -> None:
    truth = brute.shuffled_pairs(brute.k_ary(2, Fraction(3)), 2)
    mechanism = 2 * sdp.Shuffled(sdp.BinaryRandomizedResponse(epsilon0=log(3)), n=2)
    for alpha in (0.0, 0.13, 0.4, 0.9, 1.0, 1.7, 5.0, 8.9, 10.0):
        exact = brute.worst_adaptive([truth] * 2, Fraction(alpha))
        assert_encloses(mechanism.profile(alpha), exact)
