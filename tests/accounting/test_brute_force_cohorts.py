"""Random cohorts against every dataset of a small population, in exact rationals.

A cohort of fixed size is drawn uniformly from the population; only its shuffled reports are seen,
not who was drawn. Neighbouring populations differ in one user's value (T5, and T5' below).
"""

from fractions import Fraction
from itertools import pairwise
from math import log, log1p
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
from oracles.hockey import (
    Atoms,
    between,
    hockey_stick,
    pair_of_curve,
    product,
    ratios,
    subsampled_curve,
    upper_envelope,
)

BINARY = [(E, N, s) for E in (Fraction(3), Fraction(20)) for N in (2, 3, 5) for s in range(1, N + 1)]
TERNARY = [
    (Fraction(2), 3, 1),
    (Fraction(2), 3, 2),
    (Fraction(5), 3, 2),
    (Fraction(5), 4, 2),
    (Fraction(5), 4, 3),
]
SKEWED = brute.stochastic([[32, 16, 16], [8, 24, 32]])


def some_alphas(truth: brute.Pairs, most: int = 20) -> np.ndarray:
    middles = between([Fraction(0), *ratios(truth)])
    return np.array([float(a) for a in middles[:: max(1, len(middles) // most)]])


def check_one_round(matrix: Matrix, mechanism: Any, population: int, cohort: int) -> None:
    truth = brute.cohort_pairs(matrix, population, cohort)
    for alpha in some_alphas(truth):
        assert_encloses(mechanism.profile(alpha), brute.worst(truth, Fraction(alpha)))
    curve = rational_curve(lambda alpha: brute.worst(truth, alpha))
    for delta in (0.1, 0.01, 1e-4):
        assert_epsilon_sound(mechanism.epsilon(delta=delta), curve, delta)


@pytest.mark.parametrize(("E", "population", "cohort"), BINARY)
def test_a_cohort_of_binary_randomized_response_covers_every_population(
    E: Fraction, population: int, cohort: int
) -> None:
    base = sdp.Shuffled(sdp.BinaryRandomizedResponse(epsilon0=log(E)), n=cohort)
    check_one_round(brute.k_ary(2, E), base.sampled_from(population), population, cohort)


@pytest.mark.parametrize(("E", "population", "cohort"), TERNARY)
def test_a_cohort_of_k_ary_randomized_response_covers_every_population(
    E: Fraction, population: int, cohort: int
) -> None:
    base = sdp.Shuffled(sdp.KaryRandomizedResponse(k=3, epsilon0=log(E)), n=cohort)
    check_one_round(brute.k_ary(3, E), base.sampled_from(population), population, cohort)


@pytest.mark.parametrize(("population", "cohort"), [(2, 1), (3, 1), (4, 2), (4, 3)])
def test_a_cohort_of_any_finite_randomizer_covers_every_population(population: int, cohort: int) -> None:
    matrix = [[float(entry) for entry in row] for row in SKEWED]
    base = sdp.Shuffled(sdp.FiniteRandomizer(matrix), n=cohort)
    check_one_round(SKEWED, base.sampled_from(population), population, cohort)


@pytest.mark.parametrize(
    ("E", "population", "cohort", "rounds"),
    [
        (Fraction(3), 2, 1, 2),
        (Fraction(3), 3, 2, 2),
        (Fraction(3), 3, 2, 3),
        (Fraction(3), 4, 1, 4),
        (Fraction(20), 3, 1, 2),
    ],
)
def test_rounds_of_cohorts_cover_the_adaptive_adversary(
    E: Fraction, population: int, cohort: int, rounds: int
) -> None:
    truth = brute.cohort_pairs(brute.k_ary(2, E), population, cohort)
    curve = rational_curve(lambda alpha: brute.worst_adaptive([truth] * rounds, alpha))
    base = sdp.Shuffled(sdp.BinaryRandomizedResponse(epsilon0=log(E)), n=cohort)
    mechanism = rounds * base.sampled_from(population)
    largest = rounds * log1p(cohort / population * float(E - 1))
    for epsilon in largest * np.array([0.0, 0.14, 0.37, 0.71, 0.94]):
        assert_encloses(mechanism.delta(epsilon=epsilon), curve(epsilon))
    for delta in (0.1, 0.01, 1e-3):
        assert_epsilon_sound(mechanism.epsilon(delta=delta), curve, delta)


def test_a_mix_of_cohorts_and_whole_populations_covers_the_adaptive_adversary() -> None:
    binary = brute.k_ary(2, Fraction(3))
    rounds = [
        brute.cohort_pairs(binary, 3, 1),
        brute.cohort_pairs(binary, 4, 2),
        brute.shuffled_pairs(binary, 3),
    ]
    curve = rational_curve(lambda alpha: brute.worst_adaptive(rounds, alpha))
    randomizer = sdp.BinaryRandomizedResponse(epsilon0=log(3))
    mechanism = (
        sdp.Shuffled(randomizer, n=1).sampled_from(3)
        + sdp.Shuffled(randomizer, n=2).sampled_from(4)
        + sdp.Shuffled(randomizer, n=3)
    )
    for epsilon in (0.0, 0.21, 0.55, 1.3):
        assert_encloses(mechanism.delta(epsilon=epsilon), curve(epsilon))


@pytest.mark.parametrize("matrix", brute.random_matrices(8, seed=5), ids=brute.shape)
@pytest.mark.parametrize(("population", "cohort"), [(3, 2), (4, 1), (4, 3), (5, 2)])
def test_every_analysis_of_a_cohort_covers_every_population(
    matrix: Matrix, population: int, cohort: int
) -> None:
    """Also where only epsilon0, or epsilon0 and the total variation, are known: clones spread further."""
    floats = sdp.FiniteRandomizer([[float(entry) for entry in row] for row in matrix])
    local = floats.epsilon0
    rows = np.array(floats.matrix)
    apart = float(np.abs(rows[:, None] - rows[None]).sum(axis=2).max()) / 2
    known = [
        *(sdp.Shuffled(floats, n=cohort, analysis=name) for name in ("best", "clones", "clones-2021")),
        sdp.Shuffled(sdp.LocalRandomizer(local * (1 + 1e-12), min(1.0, apart * (1 + 1e-12))), n=cohort),
    ]
    truth = brute.cohort_pairs(matrix, population, cohort)
    for alpha in some_alphas(truth, most=6):
        worst = brute.worst(truth, Fraction(alpha))
        for one in known:
            assert_at_least(one.sampled_from(population).profile(alpha).upper, worst)


# Against the pair of each analysis (T5' of docs/proofs/cohorts.md), enumerated


def subsampled(analysis: str, k: int, E: Fraction, cohort: int, population: int) -> Atoms:
    p, lie = Fraction(1) / (E + k - 1), Fraction(1) / (E + 1)
    own, other, clone = {
        "clones": ((E * lie, lie), (lie, E * lie), (lie, lie)),
        "blanket": ((E * p, p, (k - 2) * p), (p, E * p, (k - 2) * p), (p, p, (k - 2) * p)),
    }[analysis]
    return pairs.counting_in_cohort(cohort, own, other, clone, Fraction(cohort, population))


def test_the_published_curve_of_cohorts_is_above_the_tight_one() -> None:
    for analysis, pair in (("clones", pairs.clones(4, 5)), ("blanket", pairs.k_ary_blanket(4, 3, 5))):
        tight = subsampled(analysis, 3, Fraction(5), 4, 9)
        published = pair_of_curve(subsampled_curve(upper_envelope([pair]), Fraction(4, 9)))
        for alpha in between(ratios([tight, published])):
            assert hockey_stick(tight, alpha) <= hockey_stick(published, alpha)


def test_more_of_a_population_asked_tell_no_less() -> None:
    """The curve of T5' rises with the cohort: sums of more X, the rest being their mean, are a martingale."""
    for analysis in ("clones", "blanket"):
        curves = [subsampled(analysis, 3, Fraction(7), cohort, 6) for cohort in range(1, 7)]
        for smaller, larger in pairwise(curves):
            for alpha in between(ratios([smaller, larger])):
                assert hockey_stick(smaller, alpha) <= hockey_stick(larger, alpha)


@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize("analysis", ["clones", "blanket"])
@pytest.mark.parametrize(
    ("E", "population", "cohort"), [(Fraction(3), 8, 3), (Fraction(20), 9, 2), (Fraction(3), 3, 3)]
)
def test_a_cohort_of_every_analysis_is_the_subsampled_profile_within_the_tolerance(
    analysis: str, E: Fraction, population: int, cohort: int, rounds: int
) -> None:
    composed = product(*[subsampled(analysis, 3, E, cohort, population)] * rounds)
    curve = rational_curve(lambda alpha: hockey_stick(composed, alpha))
    randomizer = sdp.KaryRandomizedResponse(k=3, epsilon0=log(E))
    base = sdp.Shuffled(randomizer, n=cohort, analysis=analysis)
    mechanism = rounds * base.sampled_from(population)
    largest = rounds * log1p(cohort / population * float(E - 1))
    for epsilon in largest * np.array([0.0, 0.14, 0.37, 0.71, 0.94]):
        upper = mechanism.delta(epsilon=epsilon).upper
        assert_at_least(upper, curve(epsilon))
        assert_delta_tight(upper, curve, epsilon, 1e-3)
    for delta in (0.1, 0.01, 1e-3):
        upper = mechanism.epsilon(delta=delta).upper
        assert_epsilon_covers(upper, curve, delta)
        assert_epsilon_tight(upper, curve, delta, 1e-3)


def test_the_profile_of_a_cohort_has_two_sides() -> None:
    pair = subsampled("clones", 3, Fraction(5), 2, 6)
    base = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=log(5)), n=2, analysis="clones")
    alphas = np.array([0.0, 0.3, 0.55, 0.8, 0.99, 1.0, 1.01, 1.3, 1.9, 2.2, 2.4])
    uppers = base.sampled_from(6).profile(alphas).upper
    for alpha, upper in zip(alphas, uppers, strict=True):
        exact = hockey_stick(pair, Fraction(alpha))
        assert_at_least(upper, exact)
        assert upper <= float(exact) * 1.02 + 1e-15
