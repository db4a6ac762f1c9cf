"""One shuffled round against every dataset of a few users, in exact rationals (T1, T2, T12).

The exact side has rational e^epsilon0 = E; shuffledp is given log(E) as a float. Matrices have
dyadic entries, which floats hold exactly, and every alpha is a float taken as a fraction.
"""

from fractions import Fraction
from math import log

import numpy as np
import pytest

import shuffledp as sdp
from oracles import brute, pairs
from oracles.brute import Matrix
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
    rational_curve,
)
from oracles.hockey import Atoms, between, hockey_stick, ratios

K_ARY = [
    (k, E, n)
    for k, sizes in {2: (1, 2, 3, 5, 8), 3: (1, 2, 3, 5), 4: (2, 4), 5: (3,)}.items()
    for E in (Fraction(3, 2), Fraction(5), Fraction(20))
    for n in sizes
]
BINARY = [(E, n) for E in (Fraction(3, 2), Fraction(3), Fraction(20)) for n in (1, 2, 3, 5, 8, 12)]
DELTAS = (0.3, 0.05, 1e-3, 1e-6)
UNIVERSAL = [
    (Fraction(3), Fraction(1, 4), 6),
    (Fraction(5), Fraction(1, 3), 4),
    (Fraction(20), Fraction(1, 2), 3),
]
TOLERANCES = (1e-3, 1e-5)


def some_alphas(points: list[Fraction], most: int = 24) -> np.ndarray:
    """Floats between kinks, spread over the whole curve, both sides of one."""
    middles = between([Fraction(0), *points])
    return np.array([float(a) for a in middles[:: max(1, len(middles) // most)]])


def truth_curve(truth: brute.Pairs) -> Curve:
    return rational_curve(lambda alpha: brute.worst(truth, alpha))


def pair_curve(pair: Atoms) -> Curve:
    return rational_curve(lambda alpha: hockey_stick(pair, alpha))


def as_floats(matrix: Matrix) -> list[list[float]]:
    return [[float(entry) for entry in row] for row in matrix]


def log_ratio(matrix: Matrix) -> float:
    return log(max(max(column) / min(column) for column in zip(*matrix, strict=True)))


def distance(first: tuple[Fraction, ...], second: tuple[Fraction, ...]) -> Fraction:
    return sum((abs(a - b) for a, b in zip(first, second, strict=True)), Fraction(0)) / 2


# The truth of k-ary randomized response


@pytest.mark.parametrize(("k", "E", "n"), K_ARY)
def test_the_profile_of_k_ary_randomized_response_covers_every_dataset(k: int, E: Fraction, n: int) -> None:
    truth = brute.shuffled_pairs(brute.k_ary(k, E), n)
    mechanism = sdp.Shuffled(sdp.KaryRandomizedResponse(k=k, epsilon0=log(E)), n=n)
    alphas = some_alphas(ratios(truth))
    bound = mechanism.profile(alphas)
    for alpha, lower, upper in zip(alphas, bound.lower, bound.upper, strict=True):
        exact = brute.worst(truth, Fraction(alpha))
        assert_at_most(lower, exact)
        assert_at_least(upper, exact)


@pytest.mark.parametrize("analysis", ["clones", "clones-2021", "blanket", "strong"])
@pytest.mark.parametrize(
    ("k", "E", "n"), [(2, Fraction(5), 3), (3, Fraction(3, 2), 5), (3, Fraction(20), 3), (4, 5, 4)]
)
def test_every_analysis_covers_every_dataset(analysis: str, k: int, E: Fraction, n: int) -> None:
    truth = brute.shuffled_pairs(brute.k_ary(k, Fraction(E)), n)
    randomizer = sdp.KaryRandomizedResponse(k=k, epsilon0=log(E))
    mechanism = sdp.Shuffled(randomizer, n=n, analysis=analysis)
    for alpha in some_alphas(ratios(truth)):
        found, exact = mechanism.profile(alpha), brute.worst(truth, Fraction(alpha))
        assert_at_least(found.upper, exact)
        if analysis != "strong":  # whose lower end is that of another adversary: test_adversaries
            assert_encloses(found, exact)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize(("k", "E", "n"), K_ARY[::2])
def test_the_epsilon_of_k_ary_randomized_response_holds_the_true_one(
    k: int, E: Fraction, n: int, delta: float
) -> None:
    truth = truth_curve(brute.shuffled_pairs(brute.k_ary(k, E), n))
    mechanism = sdp.Shuffled(sdp.KaryRandomizedResponse(k=k, epsilon0=log(E)), n=n)
    assert_epsilon_sound(mechanism.epsilon(delta=delta), truth, delta)


@pytest.mark.parametrize(("k", "E", "n"), K_ARY[::2])
def test_the_delta_of_k_ary_randomized_response_holds_the_true_one(k: int, E: Fraction, n: int) -> None:
    truth = truth_curve(brute.shuffled_pairs(brute.k_ary(k, E), n))
    mechanism = sdp.Shuffled(sdp.KaryRandomizedResponse(k=k, epsilon0=log(E)), n=n)
    epsilons = log(E) * np.array([0.0, 0.13, 0.37, 0.61, 0.89, 0.997])
    bound = mechanism.delta(epsilon=epsilons)
    for epsilon, lower, upper in zip(epsilons, bound.lower, bound.upper, strict=True):
        assert_at_most(lower, truth(epsilon))
        assert_at_least(upper, truth(epsilon))


def test_gamma_and_epsilon0_describe_the_same_randomizer() -> None:
    k, gamma = 5, 0.25
    by_gamma = sdp.KaryRandomizedResponse(k=k, gamma=gamma)
    assert by_gamma.epsilon0 == pytest.approx(log(1 + k * (1 - gamma) / gamma), rel=1e-14)
    by_epsilon0 = sdp.KaryRandomizedResponse(k=k, epsilon0=by_gamma.epsilon0)
    assert by_epsilon0.gamma == pytest.approx(gamma, rel=1e-14)
    truth = truth_curve(brute.shuffled_pairs(brute.k_ary(k, Fraction(16)), 3))
    assert_epsilon_sound(sdp.Shuffled(by_gamma, n=3).epsilon(delta=0.01), truth, 0.01)


# Each analysis against its own pair


def analysis_pair(analysis: str, k: int, E: Fraction, n: int) -> Atoms:
    return {
        "clones": lambda: pairs.clones(n, E),
        "clones-2021": lambda: pairs.clones_2021(n, E),
        "blanket": lambda: pairs.k_ary_blanket(n, k, E),
        "strong": lambda: pairs.strong(n, k, Fraction(k) / (E + k - 1)),
    }[analysis]()


@pytest.mark.parametrize("tolerance", TOLERANCES)
@pytest.mark.parametrize("analysis", ["clones", "clones-2021", "blanket", "strong"])
@pytest.mark.parametrize(
    ("k", "E", "n"), [(2, Fraction(5), 8), (3, Fraction(3, 2), 6), (4, Fraction(20), 4), (4, 3, 1)]
)
def test_every_analysis_is_its_pair_within_the_tolerance(
    analysis: str, k: int, E: Fraction, n: int, tolerance: float
) -> None:
    curve = pair_curve(analysis_pair(analysis, k, Fraction(E), n))
    randomizer = sdp.KaryRandomizedResponse(k=k, epsilon0=log(E))
    mechanism = sdp.Shuffled(randomizer, n=n, analysis=analysis)
    for epsilon in log(E) * np.array([0.0, 0.21, 0.47, 0.83]):
        upper = mechanism.delta(epsilon=epsilon, tolerance=tolerance).upper
        assert_at_least(upper, curve(epsilon))
        assert_delta_tight(upper, curve, epsilon, tolerance)
    for delta in DELTAS:
        if delta > curve(log(E)):  # the strong adversary never comes down to small deltas
            upper = mechanism.epsilon(delta=delta, tolerance=tolerance).upper
            assert_epsilon_covers(upper, curve, delta)
            assert_epsilon_tight(upper, curve, delta, tolerance)


@pytest.mark.parametrize("analysis", ["clones", "clones-2021", "blanket", "strong"])
def test_the_profile_below_one_is_that_of_the_pair(analysis: str) -> None:
    k, E, n = 3, Fraction(5), 4
    pair = analysis_pair(analysis, k, E, n)
    randomizer = sdp.KaryRandomizedResponse(k=k, epsilon0=log(E))
    alphas = np.array([0.0, 0.11, 0.23, 0.5, 0.77, 0.95, 1.0])
    uppers = sdp.Shuffled(randomizer, n=n, analysis=analysis).profile(alphas).upper
    for alpha, upper in zip(alphas, uppers, strict=True):
        assert_at_least(upper, hockey_stick(pair, Fraction(alpha)))
        assert upper <= float(hockey_stick(pair, Fraction(alpha))) * 1.02


# Binary randomized response exactly


@pytest.mark.parametrize("tolerance", TOLERANCES)
@pytest.mark.parametrize(("E", "n"), BINARY)
def test_exact_binary_randomized_response_is_the_worst_dataset(E: Fraction, n: int, tolerance: float) -> None:
    truth = truth_curve(brute.shuffled_pairs(brute.k_ary(2, E), n))
    randomizer = sdp.BinaryRandomizedResponse(epsilon0=log(E))
    for analysis in ("exact", "best"):
        mechanism = sdp.Shuffled(randomizer, n=n, analysis=analysis)
        for delta in DELTAS:
            bound = mechanism.epsilon(delta=delta, tolerance=tolerance)
            assert_epsilon_sound(bound, truth, delta)
            assert_epsilon_tight(bound.upper, truth, delta, tolerance)
        for epsilon in log(E) * np.array([0.0, 0.21, 0.47, 0.83]):
            bound = mechanism.delta(epsilon=epsilon, tolerance=tolerance)
            assert_encloses(bound, truth(epsilon))
            assert_delta_tight(bound.upper, truth, epsilon, tolerance)


def test_exact_binary_randomized_response_covers_both_directions() -> None:
    truth = brute.shuffled_pairs(brute.k_ary(2, Fraction(5)), 6)
    randomizer = sdp.BinaryRandomizedResponse(epsilon0=log(5))
    mechanism = sdp.Shuffled(randomizer, n=6, analysis="exact")
    for alpha in some_alphas(ratios(truth), most=60):
        assert_encloses(mechanism.profile(alpha), brute.worst(truth, Fraction(alpha)))


def test_two_values_are_the_same_as_binary_randomized_response() -> None:
    truth = truth_curve(brute.shuffled_pairs(brute.k_ary(2, Fraction(3)), 7))
    mechanism = sdp.Shuffled(sdp.KaryRandomizedResponse(k=2, epsilon0=log(3)), n=7)
    assert_epsilon_sound(mechanism.epsilon(delta=0.01), truth, 0.01)


# Any finite randomizer


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("matrix", brute.random_matrices(12, seed=1), ids=brute.shape)
def test_any_finite_randomizer_is_covered_on_every_dataset(matrix: Matrix, n: int) -> None:
    truth = brute.shuffled_pairs(matrix, n)
    randomizer = sdp.FiniteRandomizer(as_floats(matrix))
    alphas = some_alphas(ratios(truth), most=10)
    for analysis in ("best", "blanket", "clones", "clones-2021"):
        bound = sdp.Shuffled(randomizer, n=n, analysis=analysis).profile(alphas)
        for alpha, lower, upper in zip(alphas, bound.lower, bound.upper, strict=True):
            exact = brute.worst(truth, Fraction(alpha))
            assert_at_most(lower, exact)
            assert_at_least(upper, exact)


@pytest.mark.parametrize("matrix", brute.random_matrices(8, seed=2), ids=brute.shape)
def test_the_epsilon_of_any_finite_randomizer_holds_the_true_one(matrix: Matrix) -> None:
    truth = truth_curve(brute.shuffled_pairs(matrix, 4))
    mechanism = sdp.Shuffled(sdp.FiniteRandomizer(as_floats(matrix)), n=4)
    for delta in DELTAS:
        assert_epsilon_sound(mechanism.epsilon(delta=delta), truth, delta)


@pytest.mark.parametrize("tolerance", TOLERANCES)
@pytest.mark.parametrize("matrix", brute.random_matrices(6, seed=3), ids=brute.shape)
def test_the_blanket_of_a_finite_randomizer_is_the_largest_over_its_pairs_of_values(
    matrix: Matrix, tolerance: float
) -> None:
    n = 4
    curve = rational_curve(lambda alpha: pairs.blanket_worst(matrix, n, alpha))
    randomizer = sdp.FiniteRandomizer(as_floats(matrix))
    mechanism = sdp.Shuffled(randomizer, n=n, analysis="blanket")
    for delta in (0.05, 1e-3):
        upper = mechanism.epsilon(delta=delta, tolerance=tolerance).upper
        assert_epsilon_covers(upper, curve, delta)
        assert_epsilon_tight(upper, curve, delta, tolerance)


@pytest.mark.parametrize("matrix", brute.random_matrices(20, seed=4), ids=brute.shape)
def test_a_finite_randomizer_knows_its_own_figures(matrix: Matrix) -> None:
    randomizer = sdp.FiniteRandomizer(as_floats(matrix))
    assert randomizer.epsilon0 == pytest.approx(log_ratio(matrix), rel=1e-12)
    common = sum(min(column) for column in zip(*matrix, strict=True))
    assert randomizer.gamma == pytest.approx(float(common), rel=1e-12)
    expected = np.array([[float(distance(a, b)) for b in matrix] for a in matrix])
    np.testing.assert_allclose(randomizer.total_variations, expected, rtol=1e-12, atol=1e-15)
    assert randomizer.total_variation == pytest.approx(expected.max(), rel=1e-12)


def test_the_matrix_of_randomized_response_is_randomized_response() -> None:
    k, E, n = 3, Fraction(6), 5
    matrix = brute.k_ary(k, E)
    truth = brute.shuffled_pairs(matrix, n)
    mechanism = sdp.Shuffled(sdp.FiniteRandomizer(as_floats(matrix)), n=n)
    curve = pair_curve(pairs.k_ary_blanket(n, k, E))
    bound = mechanism.epsilon(delta=0.01)
    assert_epsilon_sound(bound, truth_curve(truth), 0.01)
    assert_epsilon_tight(bound.upper, curve, 0.01, 1e-3)


def test_an_output_that_nobody_sends_changes_nothing() -> None:
    with_it = sdp.FiniteRandomizer([[0.75, 0.25, 0.0], [0.25, 0.75, 0.0]])
    truth = truth_curve(brute.shuffled_pairs(brute.k_ary(2, Fraction(3)), 4))
    assert with_it.epsilon0 == pytest.approx(log(3), rel=1e-12)
    assert_epsilon_sound(sdp.Shuffled(with_it, n=4).epsilon(delta=0.02), truth, 0.02)


def test_values_with_the_same_law_are_not_a_pair() -> None:
    randomizer = sdp.FiniteRandomizer([[0.5, 0.5], [0.5, 0.5]])
    assert randomizer.epsilon0 == 0
    assert sdp.Shuffled(randomizer, n=3).epsilon(delta=1e-9).upper == 0


# Any local randomizer


@pytest.mark.parametrize("matrix", brute.random_matrices(10, seed=5), ids=brute.shape)
def test_the_clones_cover_every_randomizer_of_that_epsilon0(matrix: Matrix) -> None:
    n = 4
    truth = brute.shuffled_pairs(matrix, n)
    alphas = some_alphas(ratios(truth), most=10)
    tv = float(max(distance(a, b) for a in matrix for b in matrix))
    epsilon0 = log_ratio(matrix)
    for randomizer in (
        sdp.LocalRandomizer(epsilon0=epsilon0),
        sdp.LocalRandomizer(epsilon0=epsilon0, total_variation=tv),
    ):
        for analysis in ("best", "clones", "clones-2021"):
            uppers = sdp.Shuffled(randomizer, n=n, analysis=analysis).profile(alphas).upper
            for alpha, upper in zip(alphas, uppers, strict=True):
                assert_at_least(upper, brute.worst(truth, Fraction(alpha)))


@pytest.mark.parametrize("tolerance", TOLERANCES)
@pytest.mark.parametrize(("E", "tv", "n"), UNIVERSAL)
def test_a_known_total_variation_gives_the_universal_pair(
    E: Fraction, tv: Fraction, n: int, tolerance: float
) -> None:
    curve = pair_curve(pairs.universal(n, E, tv))
    randomizer = sdp.LocalRandomizer(epsilon0=log(E), total_variation=float(tv))
    mechanism = sdp.Shuffled(randomizer, n=n)
    for delta in DELTAS:
        bound = mechanism.epsilon(delta=delta, tolerance=tolerance)
        assert_epsilon_covers(bound.upper, curve, delta)
        assert_epsilon_tight(bound.upper, curve, delta, tolerance)
        assert_epsilon_below(bound.lower, curve, delta)


def test_without_a_total_variation_any_randomizer_gets_the_clones() -> None:
    curve = pair_curve(pairs.clones(6, Fraction(5)))
    bound = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=log(5)), n=6).epsilon(delta=1e-3)
    assert_epsilon_covers(bound.upper, curve, 1e-3)
    assert_epsilon_tight(bound.upper, curve, 1e-3, 1e-3)
    assert_epsilon_below(bound.lower, curve, 1e-3)
