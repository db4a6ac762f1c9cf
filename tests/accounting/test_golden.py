"""Every stored reference value that names a quantity of the accountant.

A golden pair (epsilon, delta) of an analysis fixes both answers: delta(epsilon) is at least that
delta and at most what a ball-arithmetic oracle gives for an epsilon smaller by the tolerance;
epsilon(delta) is at least that epsilon and at most larger by the tolerance. Values below the truth
(one dataset, one direction, unsound formulas) must lie below every upper end, values above it
above every lower end.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from flint import arb

import shuffledp as sdp
from oracles import balls, pairs, products
from oracles.claims import (
    Curve,
    assert_at_least,
    assert_at_most,
    assert_delta_tight,
    assert_encloses,
    rational_curve,
)
from oracles.golden import Golden, entries
from oracles.hockey import Atoms, hockey_stick, product
from shuffledp.accounting._curves.clones import strong_clones
from shuffledp.accounting._curves.subsampled import SubsampledProfile
from shuffledp.accounting._ends.upper import upper_end
from shuffledp.accounting._rounds.round import Round

SLACK = 1e-12  # decimal parameters are rounded to floats
TOLERANCES = (1e-3, 1e-5)
TINY = arb(10) ** -40


def k_ary(golden: Golden) -> sdp.KaryRandomizedResponse:
    known = {
        name: golden.number(label)
        for name, label in (("epsilon0", "eps0"), ("gamma", "gamma"))
        if label in golden.params
    }
    return sdp.KaryRandomizedResponse(k=golden.params["k"], **known)


def local(golden: Golden, analysis: str) -> sdp.Shuffled:
    randomizer = sdp.LocalRandomizer(epsilon0=golden.number("eps0"))
    return sdp.Shuffled(randomizer, n=golden.params["n"], analysis=analysis)


def at_epsilon(profile: Callable[[arb], arb]) -> Curve:
    return lambda epsilon: profile(balls.exp(epsilon))


def check(mechanism: Any, golden: Golden, curve: Curve, tolerance: float) -> None:
    """The upper ends at the golden point are sound and tight; lower ends are not above them."""
    epsilon = golden.number("eps")
    if epsilon < 0:
        bound = mechanism.profile(np.exp(epsilon))
        assert_at_least(bound.upper, golden.delta, SLACK)
        assert_at_most(bound.lower, golden.delta, SLACK)
        assert bound.upper <= golden.delta * 1.02
        return
    bound = mechanism.delta(epsilon=epsilon, tolerance=tolerance)
    assert_at_least(bound.upper, golden.delta, SLACK)
    assert_at_most(bound.lower, golden.delta, SLACK)
    assert_delta_tight(bound.upper, curve, epsilon, tolerance)
    inverse = mechanism.epsilon(delta=golden.delta, tolerance=tolerance)
    assert inverse.lower <= epsilon * (1 + SLACK)
    assert epsilon * (1 - 1e-9) <= inverse.upper <= epsilon * (1 + tolerance) * (1 + 1e-9)


# Single rounds


@pytest.mark.quick
@pytest.mark.parametrize("tolerance", TOLERANCES)
@pytest.mark.parametrize("golden", entries("fmt22_delta"), ids=str)
def test_clones(golden: Golden, tolerance: float) -> None:
    curve = at_epsilon(partial(balls.clones, golden.params["n"], golden.number("eps0")))
    check(local(golden, "clones"), golden, curve, tolerance)


@pytest.mark.quick
@pytest.mark.parametrize("tolerance", TOLERANCES)
@pytest.mark.parametrize("golden", entries("fmt21_delta"), ids=str)
def test_clones_of_2021(golden: Golden, tolerance: float) -> None:
    curve = at_epsilon(partial(balls.clones_2021, golden.params["n"], golden.number("eps0")))
    check(local(golden, "clones-2021"), golden, curve, tolerance)


@pytest.mark.quick
@pytest.mark.parametrize("tolerance", TOLERANCES)
@pytest.mark.parametrize("golden", entries("strong_hs_delta"), ids=str)
def test_strong_adversary(golden: Golden, tolerance: float) -> None:
    n, k = golden.params["n"], golden.params["k"]
    mechanism = sdp.Shuffled(k_ary(golden), n=n, analysis="strong")
    check(mechanism, golden, at_epsilon(partial(balls.strong, n, k, golden.number("gamma"))), tolerance)


@pytest.mark.quick
@pytest.mark.parametrize("tolerance", TOLERANCES)
@pytest.mark.parametrize("golden", entries("weak_hs_delta"), ids=str)
def test_blanket(golden: Golden, tolerance: float) -> None:
    n, randomizer = golden.params["n"], k_ary(golden)
    mechanism = sdp.Shuffled(randomizer, n=n, analysis="blanket")
    profile = partial(balls.blanket, n, randomizer.k, randomizer.epsilon0, tiny=TINY)
    check(mechanism, golden, at_epsilon(profile), tolerance)


@pytest.mark.quick
@pytest.mark.parametrize("tolerance", TOLERANCES)
@pytest.mark.parametrize("golden", entries("tv_universal_delta"), ids=str)
def test_total_variation(golden: Golden, tolerance: float) -> None:
    n, epsilon0 = golden.params["n"], golden.number("eps0")
    laplace = -np.expm1(-epsilon0 / 2)
    randomizer = sdp.LocalRandomizer(epsilon0=epsilon0, total_variation=laplace)
    profile = partial(balls.universal, n, epsilon0, float(laplace), tiny=TINY)
    check(sdp.Shuffled(randomizer, n=n), golden, at_epsilon(profile), tolerance)


@pytest.mark.quick
@pytest.mark.parametrize("golden", entries("brr_exact_delta"), ids=str)
def test_binary_randomized_response_covers_the_golden_dataset(golden: Golden) -> None:
    randomizer = sdp.BinaryRandomizedResponse(epsilon0=golden.number("eps0"))
    for analysis in ("exact", "best", "blanket"):
        mechanism = sdp.Shuffled(randomizer, n=golden.params["n"], analysis=analysis)
        bound = mechanism.delta(epsilon=golden.number("eps"))
        assert_at_least(bound.upper, golden.delta, SLACK)
        if golden.delta > 0:
            upper = mechanism.epsilon(delta=golden.delta).upper
            assert upper >= golden.number("eps") * (1 - 1e-9)


@pytest.mark.quick
@pytest.mark.parametrize("golden", entries("krr_exact_worst_delta"), ids=str)
def test_k_ary_randomized_response_encloses_the_worst_dataset(golden: Golden) -> None:
    epsilon = golden.number("eps")
    for analysis in ("best", "blanket", "clones"):
        mechanism = sdp.Shuffled(k_ary(golden), n=golden.params["n"], analysis=analysis)
        assert_encloses(mechanism.delta(epsilon=epsilon), golden.delta, SLACK)
        inverse = mechanism.epsilon(delta=golden.delta)
        assert inverse.lower * (1 - 1e-9) <= epsilon <= inverse.upper * (1 + 1e-9)


# One-sided values


@pytest.mark.quick
@pytest.mark.parametrize("golden", entries("fmt22_krr2d_delta", "p3_eq6_delta"), ids=str)
def test_values_below_the_truth_are_below_every_upper_end(golden: Golden) -> None:
    for analysis in ("best", "blanket", "clones", "clones-2021", "strong"):
        mechanism = sdp.Shuffled(k_ary(golden), n=golden.params["n"], analysis=analysis)
        assert_at_least(mechanism.delta(epsilon=golden.number("eps")).upper, golden.delta, SLACK)


@pytest.mark.quick
@pytest.mark.parametrize("golden", entries("fmt22_krr_flag_delta"), ids=str)
def test_a_looser_pair_is_above_the_blanket(golden: Golden) -> None:
    mechanism = sdp.Shuffled(k_ary(golden), n=golden.params["n"])
    bound = mechanism.delta(epsilon=golden.number("eps"), tolerance=1e-6)
    assert_at_most(bound.upper, golden.delta, 1e-4)


@pytest.mark.quick
@pytest.mark.parametrize("golden", entries("fmt21_p1eq51_delta"), ids=str)
def test_a_looser_reading_is_above_the_2021_clones(golden: Golden) -> None:
    bound = local(golden, "clones-2021").delta(epsilon=golden.number("eps"), tolerance=1e-6)
    assert_at_most(bound.upper, golden.delta, 1e-4)


@pytest.mark.quick
@pytest.mark.parametrize("golden", entries("strong_tail_joint"), ids=str)
def test_the_tail_is_above_the_strong_adversary(golden: Golden) -> None:
    mechanism = sdp.Shuffled(k_ary(golden), n=golden.params["n"], analysis="strong")
    bound = mechanism.delta(epsilon=golden.number("eps"), tolerance=1e-6)
    assert_at_most(bound.upper, golden.delta, 1e-4)


# Cohorts


@pytest.mark.quick
@pytest.mark.parametrize("golden", entries("subsampled_h"), ids=str)
def test_cohorts_of_clones(golden: Golden) -> None:
    """The published curve has the golden value; what is certified lies below it."""
    cohort, population = golden.params["subset"], golden.params["n"]
    epsilon0, log_alpha = golden.number("eps0"), golden.number("log_alpha")
    alpha = float(np.exp(log_alpha))
    published = SubsampledProfile(strong_clones(epsilon0, cohort), cohort / population)
    at = published.upper(np.array([abs(log_alpha)]), 1e-4)[0]
    upper = at if log_alpha > 0 else 1 - alpha + alpha * at
    assert_at_least(upper, golden.delta, SLACK)
    assert upper <= golden.delta * (1 + 1e-3)
    base = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=epsilon0), n=cohort, analysis="clones")
    mechanism = base.sampled_from(population)
    bound = mechanism.profile(alpha)
    assert bound.lower <= bound.upper <= golden.delta


@pytest.mark.quick
@pytest.mark.parametrize("golden", entries("subsampled_form1", "subsampled_form2"), ids=str)
def test_either_form_of_subsampling_alone_is_below_the_cohort(golden: Golden) -> None:
    cohort, log_alpha = golden.params["subset"], golden.number("log_alpha")
    clones = strong_clones(golden.number("eps0"), cohort)
    at = SubsampledProfile(clones, cohort / golden.params["n"]).upper(np.array([abs(log_alpha)]), 1e-4)[0]
    alpha = np.exp(log_alpha)
    assert_at_least(at if log_alpha > 0 else 1 - alpha + alpha * at, golden.delta, SLACK)


# Compositions


def rational(golden: Golden, pair: Atoms) -> Curve:
    """The exact product, e^epsilon0 being a fraction right to 45 digits."""
    composed = product(*[pair] * golden.params["fold"])
    return rational_curve(lambda alpha: hockey_stick(composed, alpha))


@pytest.mark.parametrize("golden", entries("comp_fmt22_delta", "comp_fmt21_delta"), ids=str)
def test_rounds_of_clones(golden: Golden) -> None:
    n, epsilon0 = golden.params["n"], golden.number("eps0")
    analysis = "clones" if golden.name == "comp_fmt22_delta" else "clones-2021"
    if n == 1000:
        pair = products.clones(n, epsilon0)

        def of_two(epsilon: float) -> float:
            return products.hockey_stick_of_two(pair, pair, float(np.exp(epsilon)))

        curve: Curve = of_two
    else:
        clones = pairs.clones if analysis == "clones" else pairs.clones_2021
        curve = rational(golden, clones(n, golden.rational_exp("eps0")))
    check(golden.params["fold"] * local(golden, analysis), golden, curve, 1e-3)


@pytest.mark.quick
@pytest.mark.parametrize("golden", entries("comp_weak_delta"), ids=str)
def test_rounds_of_the_blanket(golden: Golden) -> None:
    n, k = golden.params["n"], golden.params["k"]
    curve = rational(golden, pairs.k_ary_blanket(n, k, golden.rational_exp("eps0")))
    mechanism = sdp.Shuffled(k_ary(golden), n=n, analysis="blanket")
    check(golden.params["fold"] * mechanism, golden, curve, 1e-3)


@pytest.mark.quick
@pytest.mark.parametrize("golden", entries("comp_strong_delta"), ids=str)
def test_rounds_of_the_strong_adversary(golden: Golden) -> None:
    n, k = golden.params["n"], golden.params["k"]
    curve = rational(golden, pairs.strong(n, k, Fraction(golden.params["gamma"])))
    mechanism = sdp.Shuffled(k_ary(golden), n=n, analysis="strong")
    check(golden.params["fold"] * mechanism, golden, curve, 1e-3)


@pytest.mark.parametrize("golden", entries("comp_brr_exact_delta"), ids=str)
def test_rounds_of_binary_randomized_response_cover_the_golden_dataset(golden: Golden) -> None:
    randomizer = sdp.BinaryRandomizedResponse(epsilon0=golden.number("eps0"))
    mechanism = golden.params["fold"] * sdp.Shuffled(randomizer, n=golden.params["n"])
    assert_at_least(mechanism.delta(epsilon=golden.number("eps")).upper, golden.delta, SLACK)
    assert mechanism.epsilon(delta=golden.delta).upper >= golden.number("eps") * (1 - 1e-9)


# Tables and intervals that were computed independently


TABLE = [  # n, epsilon0, k, epsilon at delta = 1e-6: lower bound on the truth, blanket, 2022, 2021
    (1000, 1, 2, 0.12661, 0.14867, 0.14867, 0.18241),
    (1000, 1, 4, 0.11773, 0.11782, 0.14867, 0.18241),
    (1000, 1, 16, 0.06425, 0.06427, 0.14867, 0.18241),
    (1000, 2, 2, 0.32328, 0.39709, 0.39709, 0.54550),
    (1000, 2, 4, 0.35124, 0.35150, 0.39709, 0.54550),
    (1000, 2, 16, 0.23007, 0.23014, 0.39709, 0.54550),
    (1000, 4, 2, 1.69101, 1.85291, 1.85291, 3.98996),
    (1000, 4, 4, 1.74802, 1.74897, 1.85291, 3.98996),
    (1000, 4, 16, 1.37877, 1.37918, 1.85291, 3.98996),
    (10000, 1, 2, 0.03566, 0.04321, 0.04321, 0.05301),
    (10000, 1, 4, 0.03426, 0.03426, 0.04321, 0.05301),
    (10000, 1, 16, 0.01859, 0.01859, 0.04321, 0.05301),
    (10000, 2, 2, 0.08702, 0.11440, 0.11440, 0.15505),
    (10000, 2, 4, 0.10196, 0.10196, 0.11440, 0.15505),
    (10000, 2, 16, 0.06749, 0.06749, 0.11440, 0.15505),
    (10000, 4, 2, 0.31464, 0.41081, 0.41081, 0.60091),
    (10000, 4, 4, 0.40258, 0.40258, 0.41081, 0.60091),
    (10000, 4, 16, 0.36159, 0.36159, 0.41081, 0.60091),
]
LAST_DIGIT = 1e-5


@pytest.mark.quick
@pytest.mark.parametrize(("n", "epsilon0", "k", "truth", "blanket", "clones", "clones2021"), TABLE)
def test_the_table_of_analyses_at_one_in_a_million(
    n: int, epsilon0: int, k: int, truth: float, blanket: float, clones: float, clones2021: float
) -> None:
    randomizer = sdp.KaryRandomizedResponse(k=k, epsilon0=epsilon0)
    expected = {"blanket": blanket, "clones": clones, "clones-2021": clones2021}
    for analysis, epsilon in expected.items():
        bound = sdp.Shuffled(randomizer, n=n, analysis=analysis).epsilon(delta=1e-6)
        assert epsilon - LAST_DIGIT <= bound.upper <= epsilon * 1.001 + LAST_DIGIT
        assert bound.lower <= blanket + LAST_DIGIT
    best = sdp.Shuffled(randomizer, n=n).epsilon(delta=1e-6)
    assert truth - LAST_DIGIT <= best.upper <= blanket * 1.001 + LAST_DIGIT


@pytest.mark.quick
@pytest.mark.parametrize(("n", "epsilon0", "k", "truth", "blanket", "clones", "clones2021"), TABLE)
def test_the_lower_end_comes_from_concrete_datasets(
    n: int, epsilon0: int, k: int, truth: float, blanket: float, clones: float, clones2021: float
) -> None:
    """Within 2% of the best of three homogeneous datasets."""
    randomizer = sdp.KaryRandomizedResponse(k=k, epsilon0=epsilon0)
    bound = sdp.Shuffled(randomizer, n=n).epsilon(delta=1e-6)
    assert 0.98 * truth <= bound.lower <= bound.upper


PROTOTYPE = [  # n, rounds, delta, certified interval of the clones' epsilon at epsilon0 = 4
    (10**6, 1, 1e-8, 0.0450729609, 0.0450729652),
    (10**6, 1, 1e-30, 0.1103969679, 0.1103969732),
    (10**6, 10, 1e-8, 0.150272, 0.1504276),
    (10**6, 100, 1e-8, 0.5012242, 0.5017251),
    (10**6, 1000, 1e-8, 1.687258, 1.688960),
    (10**6, 10**5, 1e-8, 22.62092, 22.64765),
    (10**6, 10**6, 1e-8, 107.8677, 108.0199),
    (10**8, 1000, 1e-8, 0.1502697, 0.1504331),
    (10**10, 10**6, 1e-8, 0.501246, 0.501714),
]


@pytest.mark.quick
@pytest.mark.parametrize(("n", "rounds", "delta", "low", "high"), PROTOTYPE)
def test_rounds_of_clones_agree_with_an_independent_certified_interval(
    n: int, rounds: int, delta: float, low: float, high: float
) -> None:
    mechanism = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=4.0), n=n, analysis="clones")
    upper = (rounds * mechanism).epsilon(delta=delta).upper
    assert low <= upper <= high * 1.001


SUBSAMPLED = [  # population, cohort, rounds, interval of the published epsilon at epsilon0 = 4, delta = 1e-8
    (10**6, 10**4, 10**4, 0.524194, 0.524543),
    (10**6, 10**4, 10**5, 1.76568, 1.76687),
    (10**6, 10**3, 10**5, 0.593526, 0.593888),
    (10**8, 10**6, 10**5, 0.150908, 0.151057),
]


@pytest.mark.quick
@pytest.mark.parametrize(("population", "cohort", "rounds", "low", "high"), SUBSAMPLED)
def test_rounds_of_cohorts_agree_with_an_independent_certified_interval(
    population: int, cohort: int, rounds: int, low: float, high: float
) -> None:
    published = SubsampledProfile(strong_clones(4.0, cohort), cohort / population)
    upper = upper_end([(Round(published, (), published.epsilon_max, 0.0), rounds)], 1e-8, 1e-3)[0]
    assert low <= upper <= high * 1.001
    tight = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=4.0), n=cohort).sampled_from(population)
    assert (rounds * tight).epsilon(delta=1e-8).upper < low


TIGHT = [  # randomizer, cohort, population, rounds, delta; an independent Fourier sum of T5', good to 0.1%
    (sdp.LocalRandomizer(epsilon0=8.0), 10**4, 10**6, 1, 1e-6, 0.02653),
    (sdp.LocalRandomizer(epsilon0=8.0), 10**4, 10**6, 100, 1e-6, 0.30090),
    (sdp.LocalRandomizer(epsilon0=2.0), 2000, 60_000, 6000, 1e-5, 0.647),
    (sdp.LocalRandomizer(epsilon0=4.0), 10**3, 10**6, 10**5, 1e-8, 0.50144),
    (sdp.KaryRandomizedResponse(k=10, epsilon0=6.0), 1000, 10**6, 1, 1e-6, 0.002488),
    (sdp.KaryRandomizedResponse(k=16, epsilon0=4.0), 1000, 10**4, 1, 1e-6, 0.104718),
    (sdp.KaryRandomizedResponse(k=16, epsilon0=4.0), 10**4, 10**6, 365, 1e-8, 0.07892),
    (sdp.KaryRandomizedResponse(k=24, epsilon0=6.0), 60_000, 1_200_000, 365, 1e-9, 0.57693),
]


@pytest.mark.quick
@pytest.mark.parametrize(("randomizer", "cohort", "population", "rounds", "delta", "epsilon"), TIGHT)
def test_cohorts_agree_with_an_independent_sum(
    randomizer: Any, cohort: int, population: int, rounds: int, delta: float, epsilon: float
) -> None:
    one = sdp.Shuffled(randomizer, n=cohort, analysis="best-leaked").sampled_from(population)
    bound = (rounds * one).epsilon(delta=delta)  # the sum is that of the blanket
    assert bound.upper == pytest.approx(epsilon, rel=2e-3)
    if isinstance(randomizer, sdp.KaryRandomizedResponse):
        assert bound.upper <= 1.01 * bound.lower
