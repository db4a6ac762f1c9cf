"""Who takes part and who is honest, against every population of a few people, exactly (T7, T20).

By definition: a set of people is dishonest and shows the adversary who of them was asked and what they
sent, so that the adversary sees the shuffled reports of the honest ones and how many they are. People who
flip coins of their own send nothing, or one report; the adversary sees the shuffled reports, and so their
number, or, where empty reports are filled up by others of the blanket's law, not even that.
"""

from collections import defaultdict
from fractions import Fraction
from itertools import combinations
from math import floor, log
from typing import Any

import numpy as np
import pytest

import shuffledp as sdp
from oracles import brute
from oracles.brute import Matrix
from oracles.claims import assert_at_least, assert_encloses, rational_curve
from oracles.hockey import ZERO, Atoms, Law, between, ratios

SKEWED = brute.stochastic([[32, 16, 16], [8, 24, 32]])


def honest_law(matrix: Matrix, honest: tuple[int, ...], dishonest: int, cohort: int) -> Law:
    """What the adversary sees of a uniform cohort of honest people (their inputs) and of dishonest ones."""
    everybody = [(True, value) for value in honest] + [(False, 0)] * dishonest
    subsets = list(combinations(range(len(everybody)), cohort))
    law: dict[object, Fraction] = defaultdict(lambda: ZERO)
    for subset in subsets:
        asked = [everybody[i] for i in subset]
        telling = tuple(i for i in subset if not everybody[i][0])
        for counts, mass in brute.shuffled_law(matrix, [value for kept, value in asked if kept]).items():
            law[telling, counts] += mass / len(subsets)
    return law


def honest_pairs(matrix: Matrix, honest: int, dishonest: int, cohort: int) -> frozenset[Atoms]:
    return brute.pairs_of(matrix, honest, lambda values: honest_law(matrix, values, dishonest, cohort))


def filled_law(matrix: Matrix, values: tuple[int, ...], rate: Fraction) -> Law:
    """The same, where in place of everybody who is silent a report of the blanket's law is added."""
    common = [min(column) for column in zip(*matrix, strict=True)]
    filler = [mass / sum(common) for mass in common]
    mixed = tuple(
        tuple(rate * p + (1 - rate) * q for p, q in zip(row, filler, strict=True)) for row in matrix
    )
    return brute.shuffled_law(mixed, values)


def randomizers(matrix: Matrix) -> list[object]:
    """What may be known of it."""
    floats = sdp.FiniteRandomizer([[float(entry) for entry in row] for row in matrix])
    return [floats, sdp.LocalRandomizer(epsilon0=floats.epsilon0 * (1 + 1e-12))]


def check(truth: frozenset[Atoms], rounds: list[sdp.Shuffled], lower: bool = True) -> None:
    """Both directions, on both sides of one. Lower ends are those of what is known exactly, the first."""
    middles = between([ZERO, *ratios(truth)])
    for alpha in [float(a) for a in middles[:: max(1, len(middles) // 8)]]:
        exact = brute.worst(truth, Fraction(alpha))
        for place, one in enumerate(rounds):
            if place == 0 and lower:
                assert_encloses(one.profile(alpha), exact)
            else:
                assert_at_least(one.profile(alpha).upper, exact)


MATRICES = [brute.k_ary(2, 3), brute.k_ary(3, 5), SKEWED, *brute.random_matrices(2, seed=11)]


@pytest.mark.parametrize("matrix", MATRICES, ids=brute.shape)
@pytest.mark.parametrize(("honest", "dishonest", "cohort"), [(3, 1, 2), (2, 2, 2), (3, 2, 3), (2, 1, 3)])
def test_an_honest_share_of_a_cohort_covers_every_population(
    matrix: Matrix, honest: int, dishonest: int, cohort: int
) -> None:
    truth = honest_pairs(matrix, honest, dishonest, cohort)
    people = honest + dishonest
    share = float(np.nextafter(honest / people, 1.0))
    assert floor(Fraction(share) * people) == honest
    rounds = [
        sdp.Shuffled(one, n=cohort, honest_fraction=share).sampled_from(people) for one in randomizers(matrix)
    ]
    check(truth, rounds)


@pytest.mark.parametrize(
    "weights", [[[40, 24], [32, 32]], [[40, 24], [32, 32], [36, 28]], [[24, 8], [21, 11]]]
)
def test_the_number_of_honest_people_in_a_cohort_does_not_change_what_they_hold(weights: Any) -> None:
    """The datasets that tell most of one person are not those that tell most of two: a lower end has one."""
    matrix = brute.stochastic(weights)
    one = randomizers(matrix)[0]
    for honest, dishonest, cohort in ((2, 4, 2), (3, 2, 3), (3, 3, 2)):
        share = float(np.nextafter(honest / (honest + dishonest), 1.0))
        truth = honest_pairs(matrix, honest, dishonest, cohort)
        check(truth, [sdp.Shuffled(one, n=cohort).sampled_from(honest + dishonest, honest_fraction=share)])


@pytest.mark.parametrize("matrix", MATRICES, ids=brute.shape)
@pytest.mark.parametrize(("people", "rate"), [(2, Fraction(1, 4)), (3, Fraction(1, 2)), (4, Fraction(1, 8))])
def test_people_who_flip_their_own_coins_are_covered(matrix: Matrix, people: int, rate: Fraction) -> None:
    truth = brute.pairs_of(matrix, people, lambda values: brute.polled_law(matrix, values, rate))
    known = [sdp.Shuffled(one, n=1).sampled_from(people, rate=float(rate)) for one in randomizers(matrix)]
    check(truth, known)
    hidden = brute.pairs_of(matrix, people, lambda values: filled_law(matrix, values, rate))
    check(hidden, known, lower=False)


def test_honest_people_who_flip_coins_are_fewer_people() -> None:
    answer = sdp.KaryRandomizedResponse(k=5, epsilon0=2.0)
    some = sdp.Shuffled(answer, n=1).sampled_from(1000, rate=0.1, honest_fraction=0.9)
    fewer = sdp.Shuffled(answer, n=1).sampled_from(900, rate=0.1)
    assert some.epsilon(delta=1e-6) == fewer.epsilon(delta=1e-6)


def test_rounds_of_honest_shares_and_of_coins_cover_the_adaptive_adversary() -> None:
    matrix, answer = brute.k_ary(2, 3), sdp.BinaryRandomizedResponse(epsilon0=log(3))
    parts = [
        honest_pairs(matrix, 2, 1, 2),
        brute.pairs_of(matrix, 2, lambda v: brute.polled_law(matrix, v, Fraction(1, 2))),
    ]
    curve = rational_curve(lambda alpha: brute.worst_adaptive(parts, alpha))
    mechanism = sdp.Shuffled(answer, n=2, honest_fraction=0.67).sampled_from(3) + sdp.Shuffled(
        answer, n=1
    ).sampled_from(2, poisson=True)
    for epsilon in (0.0, 0.3, 0.8, 1.5):
        assert_encloses(mechanism.delta(epsilon=epsilon), curve(epsilon))


@pytest.mark.thorough
@pytest.mark.quick
def test_dishonest_people_never_help() -> None:
    """The case of the guide: 5% of 1.2 million asked, a tenth of whom are dishonest."""
    answer = sdp.KaryRandomizedResponse(k=24, epsilon0=6.0)
    everybody = (90 * sdp.Shuffled(answer, n=60_000).sampled_from(1_200_000)).epsilon(delta=1e-9)
    fewer = sdp.Shuffled(answer, n=60_000).sampled_from(1_200_000, honest_fraction=0.9)
    some = (90 * fewer).epsilon(delta=1e-9)
    as_many = (90 * sdp.Shuffled(answer, n=54_000).sampled_from(1_080_000)).epsilon(delta=1e-9)
    assert everybody.upper < some.lower < some.upper
    assert some.upper == pytest.approx(as_many.upper, rel=3e-3)


@pytest.mark.quick
def test_without_a_cohort_the_honest_reports_are_counted() -> None:
    answer = sdp.KaryRandomizedResponse(k=4, epsilon0=2.0)
    some = sdp.Shuffled(answer, n=1001, honest_fraction=0.5)
    assert some.honest == 500
    assert some.epsilon(delta=1e-6) == sdp.Shuffled(answer, n=500).epsilon(delta=1e-6)
    assert "honest_fraction=0.5" in repr(some)


@pytest.mark.quick
def test_what_makes_no_sense_is_refused() -> None:
    answer = sdp.KaryRandomizedResponse(k=4, epsilon0=2.0)
    for share in (0.0, 1.5, -1.0):
        with pytest.raises(ValueError, match="honest_fraction"):
            sdp.Shuffled(answer, n=10, honest_fraction=share)
    with pytest.raises(ValueError, match="rate"):
        sdp.Shuffled(answer, n=10).sampled_from(20, rate=0.0)
    with pytest.raises(ValueError, match="population"):
        sdp.Shuffled(answer, n=10, rate=0.5)
    with pytest.raises(ValueError, match="strong"):
        sdp.Shuffled(answer, n=10, analysis="strong").sampled_from(20, poisson=True)


def test_kinds_of_a_round_may_be_their_own_reverse_or_not() -> None:
    """Masses of PrivUnit's laws are equal both ways for some numbers of honest people, by rounding."""
    vectors = sdp.PrivUnit(dimension=100, epsilon0=2.0)
    some = sdp.Shuffled(vectors, n=10**6, population=10**7, honest_fraction=0.7).epsilon(delta=1e-9)
    everybody = sdp.Shuffled(vectors, n=10**6).sampled_from(10**7).epsilon(delta=1e-9)
    assert everybody.lower < some.lower < some.upper < 1.05 * some.lower


def test_a_share_of_people_is_the_decimal_that_was_written() -> None:
    """0.7 is a little less in binary, and 0.7 of 1,000 people are 700 all the same, in every question."""
    answer = sdp.KaryRandomizedResponse(k=4, epsilon0=1.0)
    for percent in range(1, 101):
        share = percent / 100
        assert sdp.Shuffled(answer, n=1000, honest_fraction=share).honest == 10 * percent
        assert sdp.Shuffled(answer, n=10).sampled_from(1000, honest_fraction=share).honest == 10 * percent
        assert sdp.Shuffled(answer, n=1).sampled_from(1000, rate=share).n == 10 * percent
        groups = sdp.ShuffledGroups.of(sdp.KaryRandomizedResponse, {1.0: 1000}, k=4, honest_fraction=share)
        assert groups._honest == [10 * percent]
    assert sdp.Shuffled(answer, n=999, honest_fraction=0.5).honest == 499  # rounded down
