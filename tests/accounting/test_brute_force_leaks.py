"""(epsilon0, delta0)-LDP randomizers against every dataset of a few people, in exact rationals.

A matrix that is not epsilon0-LDP leaks: delta0 is, by definition, the largest sum over reports of what one
row has beyond e^epsilon0 times another. Whatever the matrix is, the bound knows only these two numbers.
"""

import warnings
from collections import defaultdict
from fractions import Fraction
from itertools import combinations, permutations, product
from math import inf, log
from random import Random

import numpy as np
import pytest

import shuffledp as sdp
from oracles import brute
from oracles.brute import Matrix
from oracles.claims import assert_at_least, rational_curve
from oracles.hockey import ONE, ZERO, Law, atoms, between, hockey_stick, ratios

SIZE = 2**14


def leaking(seed: int) -> tuple[Matrix, Fraction]:
    """A matrix of few reports, some of which one input sends hardly ever, or never; and e^epsilon0."""
    rng = Random(seed)
    E, columns = rng.choice([2, 3, 5]), rng.choice([2, 3])
    rows = []
    for x in range(rng.choice([2, 3])):
        likely = [E if y == x % columns else 1 for y in range(columns)]
        kept = SIZE - (seen := rng.choice([1, 2, 5]))
        weights = [kept * weight // sum(likely) for weight in likely]
        weights[0] += kept - sum(weights)
        rows.append([*weights, *(seen if x == y else 0 for y in range(3))])
    return brute.stochastic(rows), Fraction(E)


def leak(matrix: Matrix, E: Fraction) -> Fraction:
    """The smallest delta0."""
    both = permutations(matrix, 2)
    return max(sum((max(p - E * q, ZERO) for p, q in zip(x, y, strict=True)), ZERO) for x, y in both)


def known(seed: int) -> tuple[Matrix, sdp.LocalRandomizer]:
    matrix, E = leaking(seed)
    delta0 = leak(matrix, E)
    assert 0 < delta0 < Fraction(1, 1000)
    return matrix, sdp.LocalRandomizer(epsilon0=log(E), delta0=float(delta0) * (1 + 1e-12))


def alphas(truth: brute.Pairs) -> list[float]:
    middles = [a for a in between([ZERO, *ratios(truth)]) if a < 50]
    return [float(a) for a in middles[:: max(1, len(middles) // 8)]]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("analysis", ["best", "clones-2021"])
def test_leaking_matrices_are_covered(seed: int, analysis: str) -> None:
    matrix, local = known(seed)
    for n, truth in [(n, brute.shuffled_pairs(matrix, n)) for n in (1, 2, 3)]:
        one = sdp.Shuffled(local, n=n, analysis=analysis)
        for alpha in alphas(truth):
            assert_at_least(one.profile(alpha).upper, brute.worst(truth, Fraction(alpha)))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("analysis", ["best", "clones-2021"])
def test_cohorts_of_leaking_matrices_are_covered(seed: int, analysis: str) -> None:
    matrix, local = known(seed)
    for population, cohort in ((3, 2), (4, 1)):
        truth = brute.cohort_pairs(matrix, population, cohort)
        one = sdp.Shuffled(local, n=cohort, analysis=analysis).sampled_from(population)
        for alpha in alphas(truth):
            assert_at_least(one.profile(alpha).upper, brute.worst(truth, Fraction(alpha)))
    coins = brute.pairs_of(matrix, 2, lambda values: brute.polled_law(matrix, values, Fraction(1, 4)))
    one = sdp.Shuffled(local, n=1, analysis=analysis).sampled_from(2, rate=0.25)
    for alpha in alphas(coins):
        assert_at_least(one.profile(alpha).upper, brute.worst(coins, Fraction(alpha)))


def test_rounds_of_leaking_matrices_are_covered() -> None:
    matrix, local = known(0)
    rounds = [brute.shuffled_pairs(matrix, 2), brute.cohort_pairs(matrix, 2, 1)]
    curve = rational_curve(lambda alpha: brute.worst_adaptive(rounds, alpha))
    mechanism = sdp.Shuffled(local, n=2) + sdp.Shuffled(local, n=1).sampled_from(2)
    for epsilon in (0.0, 0.5, 1.0, 1.8):
        assert_at_least(float(mechanism.delta(epsilon=epsilon).upper), curve(epsilon))


@pytest.mark.quick
def test_lower_ends_are_those_of_members_of_the_class() -> None:
    """A report that gives its input away with probability delta0 is one: no finite epsilon below it."""
    local = sdp.LocalRandomizer(epsilon0=1.0, delta0=1e-9)
    one = sdp.Shuffled(local, n=1000)
    assert one.epsilon(delta=5e-10).lower == np.inf
    bound = one.epsilon(delta=1e-5)
    pure = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=1.0), n=1000)
    clones = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=1.0), n=1000, analysis="clones")
    assert pure.epsilon(delta=1e-5).lower * (1 - 2e-3) <= bound.lower <= bound.upper
    # Its upper end is that of clones; without leaks a better one is known (T16).
    assert pure.upper_epsilon(delta=1e-5) <= bound.upper <= 1.1 * clones.upper_epsilon(delta=1e-5)


@pytest.mark.quick
def test_total_variation_and_a_leak_are_not_used_together() -> None:
    with pytest.raises(ValueError, match="total_variation"):
        sdp.LocalRandomizer(epsilon0=1.0, total_variation=0.1, delta0=1e-9)
    with pytest.raises(ValueError, match="delta0"):
        sdp.LocalRandomizer(epsilon0=1.0, delta0=-1.0)


def given_away(matrix: Matrix, E: Fraction) -> tuple[Matrix, Fraction]:
    """With probability 1/50 the input itself is sent: the pair of which all others are post-processings."""
    leaked, size = Fraction(1, 50), range(len(matrix))
    rows = [
        (*(p * (1 - leaked) for p in row), *(leaked if x == z else ZERO for z in size))
        for x, row in enumerate(matrix)
    ]
    return tuple(rows), E


def coin_pairs(matrix: Matrix, people: int, rate: Fraction) -> brute.Pairs:
    return brute.pairs_of(matrix, people, lambda values: brute.polled_law(matrix, values, rate))


LEAKING = [*map(leaking, range(4)), given_away(brute.k_ary(2, 3), Fraction(3))]
COHORTS = [(2, 1), (3, 1), (3, 2), (4, 1), (4, 2), (4, 3)]


@pytest.mark.parametrize("place", range(len(LEAKING)))
def test_a_cohort_leaks_its_share_of_delta0_at_the_epsilon_of_a_cohort(place: int) -> None:
    """(log(1 + g (E - 1)), g delta0), by definition: all populations of up to four people, no rounding."""
    matrix, E = LEAKING[place]
    delta0 = leak(matrix, E)
    for population, cohort in COHORTS:
        share = Fraction(cohort, population)
        truth = brute.cohort_pairs(matrix, population, cohort)
        found = brute.worst(truth, 1 + share * (E - 1))
        assert found <= share * delta0
        if cohort == 1 and place == len(LEAKING) - 1:  # nobody hides it
            assert found == share * delta0
            assert brute.worst(truth, (1 + share * (E - 1)) * Fraction(999, 1000)) > share * delta0


@pytest.mark.parametrize("place", range(len(LEAKING)))
@pytest.mark.parametrize("rate", [Fraction(1, 4), Fraction(2, 3)])
def test_people_who_flip_coins_leak_that_share_of_delta0_at_the_local_epsilon(
    place: int, rate: Fraction
) -> None:
    """Not at that of a cohort: where all take part, or are seen to be few, no absent person hides anybody."""
    matrix, E = LEAKING[place]
    delta0 = leak(matrix, E)
    for people in (1, 2, 3):
        pairs = coin_pairs(matrix, people, rate)
        assert brute.worst(pairs, E) <= rate * delta0
        if people <= 2 and place == len(LEAKING) - 1:
            assert brute.worst(pairs, 1 + rate * (E - 1)) > rate * delta0


def honest_law(matrix: Matrix, honest: tuple[int, ...], dishonest: int, cohort: int) -> Law:
    """What the adversary sees of a cohort: who of the dishonest ones was asked, the others' reports."""
    people = range(len(honest) + dishonest)
    law: dict[object, Fraction] = defaultdict(lambda: ZERO)
    for asked in (subsets := list(combinations(people, cohort))):
        kept = [honest[i] for i in asked if i < len(honest)]
        telling = tuple(i for i in asked if i >= len(honest))
        for counts, mass in brute.shuffled_law(matrix, kept).items():
            law[telling, counts] += mass / len(subsets)
    return law


@pytest.mark.parametrize("place", range(len(LEAKING)))
@pytest.mark.parametrize(("honest", "dishonest", "cohort"), [(2, 1, 2), (3, 1, 2), (2, 2, 2), (3, 1, 3)])
def test_dishonest_people_do_not_change_what_is_leaked(
    place: int, honest: int, dishonest: int, cohort: int
) -> None:
    """gamma = n / N of delta0, at the epsilon of the largest cohort of the honest ones (T7)."""
    matrix, E = LEAKING[place]
    pairs = brute.pairs_of(matrix, honest, lambda values: honest_law(matrix, values, dishonest, cohort))
    share = Fraction(min(cohort, honest), honest)
    asked = Fraction(cohort, honest + dishonest)
    assert brute.worst(pairs, 1 + share * (E - 1)) <= asked * leak(matrix, E)


def test_what_is_answered_from_the_local_epsilon_covers_all_populations() -> None:
    """From the least delta that a finite epsilon has; it is said, and no lower end is above it."""
    coin = Fraction(1, 4)
    for seed in range(4):
        matrix, local = known(seed)
        for population, cohort in ((3, 2), (4, 1), (4, 3)):
            one = sdp.Shuffled(local, n=cohort).sampled_from(population)
            share = Fraction(cohort, population)
            assert_covers(one, brute.cohort_pairs(matrix, population, cohort), share * Fraction(local.delta0))
        coins = coin_pairs(matrix, 2, coin)
        one = sdp.Shuffled(local, n=1).sampled_from(2, rate=0.25)
        assert_covers(one, coins, coin * Fraction(local.delta0))


def assert_covers(one: sdp.Shuffled, truth: brute.Pairs, least: Fraction) -> None:
    for delta in (np.nextafter(float(least), 1.0), 1.2 * float(least), 2.0 * float(least)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sdp.CoarserBoundWarning)
            bound = one.epsilon(delta=float(delta))
        assert bound.lower <= bound.upper < inf
        assert brute.worst(truth, Fraction(np.exp(bound.upper)) * (1 + Fraction(1, 2**40))) <= Fraction(delta)
    assert one.upper_epsilon(delta=float(least) * (1 - 1e-12)) == inf


FEW = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=1.0, delta0=1e-7), n=1000)
OF_MANY = FEW.sampled_from(10**4)
BY_COINS = FEW.sampled_from(10**4, poisson=True)
SOME_HONEST = FEW.sampled_from(10**4, honest_fraction=0.5)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("rounds", "delta", "share"),
    [
        (OF_MANY, 3e-8, 0.1),
        (OF_MANY, 1e-8, 0.1),
        (30 * OF_MANY, 1e-6, 0.1),
        (30 * OF_MANY, 30 * 1e-8, 0.1),
        (BY_COINS, 3e-8, 1.0),
        (30 * BY_COINS, 1e-6, 1.0),
        (SOME_HONEST, 3e-8, 0.2),
    ],
)
def test_the_local_answer_of_cohorts_is_said_and_verified(
    rounds: sdp.Mechanism, delta: float, share: float
) -> None:
    pytest.importorskip("flint")
    with pytest.warns(sdp.CoarserBoundWarning, match="whatever the crowd adds"):
        bound = rounds.epsilon(delta=delta)
    count = sum(count for _, count in rounds.parts)
    exact = count * np.log1p(share * np.expm1(1.0))
    assert exact <= bound.upper <= exact * (1 + 1e-12)
    assert bound.certificate().verify(of=rounds)
    claimed = rounds.certificate(epsilon=bound.upper * (1 - 1e-6), delta=delta) if count == 1 else None
    assert claimed is None or delta > 1.1e-8 or not claimed.verify()


@pytest.mark.quick
def test_a_leaked_coin_of_another_takes_the_epsilon_of_a_cohort_away() -> None:
    for analysis in ("clones", "clones-2021"):
        told = sdp.Shuffled(FEW.randomizer, n=1000, analysis=analysis).sampled_from(10**4)
        assert 1.0 <= told.upper_epsilon(delta=3e-8) <= 1.0 + 1e-12
    other = sdp.Shuffled(sdp.KaryRandomizedResponse(k=3, epsilon0=1.0), n=100).sampled_from(1000)
    mixed = 2 * OF_MANY + other
    exact = 3 * np.log1p(0.1 * np.expm1(1.0))  # pure rounds count at their epsilon of a cohort, too
    assert exact <= mixed.upper_epsilon(delta=2 * 1e-8) <= exact * (1 + 1e-9)


def seen_with_coins(matrix: Matrix, value: int, others: int) -> Law:
    """Of a person's value among others who hold 2: all reports, shuffled, and who of the others answered at
    random, which is to draw from what all inputs have in common."""
    common = tuple(min(column) for column in zip(*matrix, strict=True))
    rest = tuple(p - m for p, m in zip(matrix[2], common, strict=True))
    law: dict[object, Fraction] = defaultdict(lambda: ZERO)
    for coins in product([True, False], repeat=others):
        rows = (matrix[value], *(common if coin else rest for coin in coins))
        for counts, mass in brute.shuffled_law(rows, range(len(rows))).items():
            law[coins, counts] += mass
    return law


@pytest.mark.parametrize("inputs", [3, 5])
def test_no_bound_of_a_delta0_holds_if_it_leaks_who_answered_at_random(inputs: int) -> None:
    """Each input but two never sends a report of its own, which the first of the two sends E times as often
    as the other one, and sends another instead. As many of the others' reports are rare as did not answer at
    random: one more is the differing user's, and delta0 counts once for each input."""
    E, rare = Fraction(3), Fraction(1, 300)
    rows = [[rare] * inputs + [ZERO], [rare / E] * inputs + [ZERO]]
    rows += [[ZERO if y == z else rare for y in range(inputs)] + [rare] for z in range(inputs)]
    matrix = tuple((*row, ONE - sum(row)) for row in rows)
    assert leak(matrix, E) == rare
    for others in (1, 2):
        laws = [seen_with_coins(matrix, x, others) for x in (0, 1)]
        assert hockey_stick(atoms(*laws), 2) == inputs * rare * (1 - 2 / E)
    randomizer = sdp.LocalRandomizer(epsilon0=1.0, delta0=1e-9)
    leaky = sdp.Shuffled(randomizer, n=10**4, analysis="clones")
    assert "no leaked coin of anybody is covered" in leaky.statement(delta=1e-6).formal
    with pytest.raises(ValueError, match="must not be 'best-leaked' for a randomizer with a delta0"):
        sdp.Shuffled(randomizer, n=10**4, analysis="best-leaked").epsilon(delta=1e-6)


@pytest.mark.quick
def test_the_lower_end_does_not_rise_with_delta() -> None:
    one = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=1.0, delta0=1e-12), n=1000)
    for leaky, least in ((one, 1e-12), (one.sampled_from(10**4), 1e-13), (3 * one, 2.9e-12)):
        for delta in (0.0, 1e-300, 0.5 * least, 0.99 * least):
            assert leaky.epsilon(delta=delta) == sdp.Bound(inf, inf)
        assert leaky.lower_epsilon(delta=1.1 * least) < 4.0
    tiny = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=1.0, delta0=1e-290), n=10)
    assert tiny.epsilon(delta=0.0).lower == tiny.epsilon(delta=1e-300).lower == inf
