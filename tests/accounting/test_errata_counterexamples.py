"""Where published formulas fall below the truth, shuffledp does not.

Each test names a published claim, shows on a concrete dataset that it fails there (with a ball or
exact rationals), and checks that every analysis of shuffledp stays above the same dataset. The
published formulas are kept in the tests only, to recognise them.
"""

from fractions import Fraction
from math import exp, log
from typing import Any

import numpy as np
import pytest
from flint import arb

import shuffledp as sdp
from oracles import balls, brute, pairs
from oracles.claims import assert_at_least, assert_encloses, value
from oracles.golden import Golden, entries
from oracles.hockey import Atoms, atoms, between, hockey_stick, product, ratios

TINY = arb(10) ** -40
SOUND = ("best", "blanket", "clones", "clones-2021", "strong")


def k_ary(k: int, epsilon0: float) -> sdp.KaryRandomizedResponse:
    return sdp.KaryRandomizedResponse(k=k, epsilon0=epsilon0)


def assert_every_analysis_covers(
    randomizer: sdp.KaryRandomizedResponse, n: int, epsilon: float, truth: Any
) -> None:
    for analysis in SOUND:
        mechanism = sdp.Shuffled(randomizer, n=n, analysis=analysis)
        assert_at_least(mechanism.delta(epsilon=epsilon).upper, truth)
    assert sdp.Shuffled(randomizer, n=n).delta(epsilon=epsilon).lower <= value(truth) * 1.5


# The clones pair with p = 1 / (e^epsilon0 + k - 1) (Koskela, Heikkila, Honkela, (3.1)-(3.2))


def test_two_users_of_ternary_response_lose_twice_what_the_k_ary_clones_say() -> None:
    E, alpha = Fraction(2), Fraction(5, 3)
    truth = brute.worst(brute.shuffled_pairs(brute.k_ary(3, E), 2), alpha)
    published = hockey_stick(pairs.two_count_as_published(2, 3, E), alpha)
    assert (truth, published) == (Fraction(1, 24), Fraction(1, 48))
    for analysis in SOUND:
        mechanism = sdp.Shuffled(k_ary(3, log(2)), n=2, analysis=analysis)
        found = mechanism.profile(5 / 3)
        assert_at_least(found.upper, truth, 1e-12)
        if analysis != "strong":  # its lower end is that of another adversary
            assert_encloses(found, truth, 1e-12)


def test_three_users_of_ternary_response_exceed_the_k_ary_clones() -> None:
    E, n = Fraction(5), 3
    everything = brute.shuffled_pairs(brute.k_ary(3, E), n)
    published = pairs.two_count_as_published(n, 3, E)
    alphas = ratios([published, *everything])
    excess = [brute.worst(everything, a) - hockey_stick(published, a) for a in alphas]
    assert float(max(excess)) == pytest.approx(0.055, abs=5e-4)
    for analysis in SOUND:
        uppers = sdp.Shuffled(k_ary(3, log(5)), n=n, analysis=analysis).profile(
            np.array([float(a) for a in alphas])
        )
        for alpha, upper in zip(alphas, uppers.upper, strict=True):
            assert_at_least(upper, brute.worst(everything, Fraction(float(alpha))))


@pytest.mark.parametrize(
    ("n", "k", "epsilon0", "epsilon", "published"),
    [(1000, 16, 4.0, 1.4, 7.304e-7), (1000, 4, log(13), 1.0, 4.363e-14), (100, 4, 2.0, 1.5, 5.90e-10)],
)
def test_a_crowd_that_holds_a_third_value_exceeds_the_k_ary_clones(
    n: int, k: int, epsilon0: float, epsilon: float, published: float
) -> None:
    truth = balls.all_hold_a_third_value(n, k, epsilon0, balls.exp(epsilon), tiny=TINY)
    assert value(truth) > 1.05 * published
    assert_every_analysis_covers(k_ary(k, epsilon0), n, epsilon, truth)


# Tail probabilities with independent counts (the same, Theorems 13, 15 and 16; Koskela et al. 2021)


@pytest.mark.parametrize(
    ("k", "epsilon", "published"), [(2, 0.3, 1.47e-9), (2, 0.5, 1.9e-22), (3, 0.5, 9.1e-13)]
)
def test_the_strong_adversary_exceeds_the_tail_of_independent_counts(
    k: int, epsilon: float, published: float
) -> None:
    n, gamma = 1000, 0.9
    truth = balls.strong(n, k, gamma, balls.exp(epsilon))
    assert value(truth) > 1.5 * published
    randomizer = sdp.KaryRandomizedResponse(k=k, gamma=gamma)
    mechanism = sdp.Shuffled(randomizer, n=n, analysis="strong")
    assert_at_least(mechanism.delta(epsilon=epsilon).upper, truth)


def test_the_mechanism_itself_exceeds_the_tail_for_the_weak_adversary() -> None:
    truth = balls.all_hold_a_third_value(1000, 4, arb(13).log(), balls.exp(1.0), tiny=TINY)
    assert value(truth) > 7 * 6.17e-15
    randomizer = sdp.KaryRandomizedResponse(k=4, gamma=0.25)
    assert_every_analysis_covers(randomizer, 1000, 1.0, truth)


def test_binary_response_itself_exceeds_the_tail_for_the_weak_adversary() -> None:
    n, epsilon, epsilon0 = 1000, 0.2, log(3)  # gamma = 1/2
    truth = max(value(d) for d in balls.binary_exact(n, n - 1, arb(3).log(), balls.exp(epsilon)))
    assert truth == pytest.approx(1.07e-9, rel=0.01)
    assert truth > 4 * 2.3e-10
    assert_every_analysis_covers(k_ary(2, epsilon0), n, epsilon, truth)
    binary = sdp.BinaryRandomizedResponse(epsilon0=epsilon0)
    for analysis in ("exact", "best"):
        mechanism = sdp.Shuffled(binary, n=n, analysis=analysis)
        assert_at_least(mechanism.delta(epsilon=epsilon).upper, truth)


@pytest.mark.parametrize("golden", entries("strong_tail_indep"), ids=str)
def test_the_strong_adversary_is_a_hockey_stick_not_a_tail(golden: Golden) -> None:
    n, k, epsilon = golden.params["n"], golden.params["k"], golden.number("eps")
    truth = balls.strong(n, k, golden.number("gamma"), balls.exp(epsilon))
    randomizer = sdp.KaryRandomizedResponse(k=k, gamma=golden.number("gamma"))
    upper = sdp.Shuffled(randomizer, n=n, analysis="strong").delta(epsilon=epsilon).upper
    assert_at_least(upper, truth)
    assert upper <= value(truth) * 1.1


def test_two_rounds_of_the_strong_adversary_keep_the_mass_that_loses_nothing() -> None:
    n, k, gamma, epsilon = 6, 2, Fraction(9, 10), 1.0
    pair = pairs.strong(n, k, gamma)
    truth = hockey_stick(product(pair, pair), Fraction(exp(epsilon)))
    assert float(truth) == pytest.approx(0.0244, abs=5e-5)
    randomizer = sdp.KaryRandomizedResponse(k=k, gamma=0.9)
    mechanism = 2 * sdp.Shuffled(randomizer, n=n, analysis="strong")
    upper = mechanism.delta(epsilon=epsilon).upper
    assert_at_least(upper, truth)
    assert upper <= 0.025


# The Bennett bound as printed (Balle et al., Lemma 5.6)


@pytest.mark.parametrize("golden", entries("p2_bennett_rr_as_printed"), ids=str)
def test_the_mechanism_exceeds_the_bennett_bound_as_printed(golden: Golden) -> None:
    n, k, epsilon0, epsilon = golden.params["n"], golden.params["k"], 1.0, golden.number("eps")
    alpha = balls.exp(epsilon)
    if k == 2:
        truth = max(value(delta) for delta in balls.binary_exact(n, n - 1, epsilon0, alpha))
    else:
        truth = value(balls.all_hold_a_third_value(n, k, epsilon0, alpha, tiny=TINY))
    assert truth > golden.delta
    assert_every_analysis_covers(k_ary(k, epsilon0), n, epsilon, truth)


def test_a_hundred_thousand_binary_reports_exceed_the_bennett_bound_as_printed() -> None:
    n, epsilon = 10**5, 0.01
    keep = balls.exp(1.0) / (balls.exp(1.0) + 1)
    truth = value(all_others_hold_zero(n, keep, balls.exp(epsilon)))
    assert truth == pytest.approx(1.17e-6, rel=0.01)
    assert truth > 9 * 1.29e-7
    assert_every_analysis_covers(k_ary(2, 1.0), n, epsilon, truth)


def all_others_hold_zero(n: int, keep: arb, alpha: arb) -> arb:
    """Binary response: of n - 1 zeros Bin(n - 1, keep) are reported; the victim holds 0 or 1."""
    total, flip = arb(0), 1 - keep
    masses = dict(balls.window(n - 1, keep, balls.TINY))
    for j in range(min(masses), max(masses) + 2):
        one_fewer, same = masses.get(j - 1, arb(0)), masses.get(j, arb(0))
        p, q = keep * one_fewer + flip * same, flip * one_fewer + keep * same
        total += (p - alpha * q).max(arb(0))
    return total


# One bin of the histogram, and a wrong term (Biswas et al., Theorem IV.1 and its tables)


@pytest.mark.parametrize("golden", entries("p3_eq6_as_printed"), ids=str)
def test_the_mechanism_exceeds_the_tables_by_many_orders_of_magnitude(golden: Golden) -> None:
    k, epsilon0, n = golden.params["k"], golden.number("eps0"), golden.params["n"]
    epsilon = golden.number("eps")
    truth = balls.all_hold_a_third_value(n, k, epsilon0, balls.exp(epsilon), tiny=TINY)
    assert value(truth) > 1e10 * golden.delta
    assert_every_analysis_covers(k_ary(k, epsilon0), n, epsilon, truth)


def test_the_whole_histogram_of_one_hundred_reports_is_covered() -> None:
    for epsilon0, full in ((2.0, 5.02e-2), (0.49, 8.5e-7)):
        truth = value(balls.all_hold_a_third_value(100, 10, epsilon0, balls.exp(0.1), tiny=TINY))
        assert truth == pytest.approx(full, rel=0.01)
        assert_every_analysis_covers(k_ary(10, epsilon0), 100, 0.1, truth)


@pytest.mark.parametrize(("k", "n", "ratio"), [(3, 6, 2.02), (4, 5, 2.14), (5, 5, 2.12)])
def test_one_bin_in_one_direction_is_half_of_what_the_histogram_loses(k: int, n: int, ratio: float) -> None:
    alpha = Fraction(exp(0.4))
    matrix = brute.k_ary(k, Fraction(3))
    truth = brute.worst(brute.shuffled_pairs(matrix, n), alpha)
    one_bin = max(hockey_stick(first_bin_pair(matrix, n, m), alpha) for m in range(n))
    assert float(truth / one_bin) == pytest.approx(ratio, abs=0.005)
    assert_every_analysis_covers(k_ary(k, log(3)), n, 0.4, truth)


def first_bin_pair(matrix: brute.Matrix, n: int, holders: int) -> Atoms:
    """The count of value 0 when `holders` others hold it, and the victim holds 0 (P) or 1 (Q)."""
    others = [0] * holders + [1] * (n - 1 - holders)
    laws = [first_bin(brute.shuffled_law(matrix, [x, *others])) for x in (0, 1)]
    return atoms(*laws)


def first_bin(law: Any) -> dict[int, Fraction]:
    marginal: dict[int, Fraction] = {}
    for counts, mass in law.items():
        marginal[counts[0]] = marginal.get(counts[0], Fraction(0)) + mass
    return marginal


def test_the_worst_binary_dataset_and_direction_are_searched() -> None:
    """For odd lattices it is not the one where all others agree."""
    n, epsilon0, epsilon = 8, 1.0, 0.1
    matrix_value = {
        m: max(value(d) for d in balls.binary_exact(n, m, epsilon0, balls.exp(epsilon))) for m in range(n)
    }
    assert max(matrix_value, key=matrix_value.__getitem__) != n - 1
    binary = sdp.BinaryRandomizedResponse(epsilon0=epsilon0)
    bound = sdp.Shuffled(binary, n=n, analysis="exact").delta(epsilon=epsilon)
    assert_encloses(bound, max(matrix_value.values()))


# Other slips


def test_the_hockey_stick_is_weighted_by_the_loss_not_by_its_inverse() -> None:
    """Koskela, Heikkila, Honkela, (2.1), prints 0.225586 for 0.105835."""
    exact = hockey_stick(pairs.clones(6, Fraction(3)), Fraction(3, 2))
    assert float(exact) == pytest.approx(0.105835, abs=5e-7)
    mechanism = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=log(3)), n=6, analysis="clones")
    upper = mechanism.profile(1.5).upper
    assert_at_least(upper, exact)
    assert upper <= 0.106


@pytest.mark.parametrize(("n", "epsilon0"), [(20, 4.0), (100, 4.0), (100, 2.0), (300, 4.0)])
def test_no_outcome_is_forgotten_where_few_clones_are_expected(n: int, epsilon0: float) -> None:
    """The same paper's Lemma 11 omits outcomes of mass up to 1.3e-2."""
    mechanism = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=epsilon0), n=n, analysis="clones")
    assert mechanism.profile(0.0).upper == 1
    for share in (0.0, 0.2, 0.5, 0.8, 0.95, 0.999):
        epsilon = share * epsilon0
        truth = balls.clones(n, epsilon0, balls.exp(epsilon))
        assert_at_least(mechanism.delta(epsilon=epsilon).upper, truth)


def test_clones_cover_randomizers_below_the_average_of_the_two_rows() -> None:
    """Others need not send (R0 + R1) / (E + 1) as a whole for the clones of 2022 to hold."""
    matrix = brute.stochastic([[32, 24, 8], [32, 8, 24], [8, 28, 28]])
    E = max(max(column) / min(column) for column in zip(*matrix, strict=True))
    assert any(third < (first + second) / (E + 1) for first, second, third in zip(*matrix, strict=True))
    for n in (2, 3, 4):
        everything = brute.shuffled_pairs(matrix, n)
        for randomizer in (
            sdp.FiniteRandomizer([[float(entry) for entry in row] for row in matrix]),
            sdp.LocalRandomizer(epsilon0=log(E)),
        ):
            mechanism = sdp.Shuffled(randomizer, n=n, analysis="clones")
            for alpha in between(ratios(everything))[::5]:
                exact = brute.worst(everything, Fraction(float(alpha)))
                assert_at_least(mechanism.profile(float(alpha)).upper, exact)


# Subsampling


def test_a_cohort_is_accounted_with_its_own_size_not_the_population() -> None:
    matrix, population, cohort = brute.k_ary(2, Fraction(3)), 4, 2
    truth = brute.cohort_pairs(matrix, population, cohort)
    share, alpha = Fraction(cohort, population), Fraction(6, 5)
    whole = brute.shuffled_pairs(matrix, population)
    mistaken = share * brute.worst(whole, 1 + (alpha - 1) / share)
    assert brute.worst(truth, alpha) > mistaken
    base = sdp.Shuffled(sdp.BinaryRandomizedResponse(epsilon0=log(3)), n=cohort)
    bound = base.sampled_from(population).profile(float(alpha))
    assert_encloses(bound, brute.worst(truth, Fraction(float(alpha))))


def test_rounds_of_cohorts_compose_both_sides_of_the_profile() -> None:
    """Composing only the mixture (share P + (1 - share) Q, Q) falls below two adaptive rounds."""
    matrix, population, cohort = brute.k_ary(2, Fraction(3)), 3, 1
    truth = brute.cohort_pairs(matrix, population, cohort)
    base = pairs.clones(cohort, Fraction(3))
    share = Fraction(cohort, population)
    mixture = atoms(
        {i: share * p + (1 - share) * q for i, (p, q) in enumerate(base)},
        {i: q for i, (_, q) in enumerate(base)},
    )
    low = Fraction(9, 10)
    assert brute.worst(truth, low) > hockey_stick(mixture, low)
    mechanism = 2 * sdp.Shuffled(sdp.BinaryRandomizedResponse(epsilon0=log(3)), n=cohort).sampled_from(
        population
    )
    for alpha in (0.5, 0.8, 0.9, 1.0, 1.2, 1.7, 2.5):
        exact = brute.worst_adaptive([truth] * 2, Fraction(alpha))
        assert_encloses(mechanism.profile(alpha), exact)
