"""Groups with different randomizers against every dataset of a few people, in exact rationals (T21).

By definition: everybody of a group randomizes by the group's matrix, and the adversary sees the histogram of
all reports. What a person of a group risks is the worst over the inputs of everybody else.
"""

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import permutations, product
from math import exp, inf, log, prod
from typing import Any

import numpy as np
import pytest

import shuffledp as sdp
from oracles import brute
from oracles.brute import Matrix
from oracles.claims import assert_at_least, assert_at_most, rational_curve
from oracles.hockey import ONE, ZERO, Atoms, Law, atoms, between, ratios
from shuffledp.accounting._curves.exact_binary import BinaryAmongProfile
from shuffledp.accounting._curves.groups import GroupPairsProfile
from shuffledp.accounting.groups import _pair
from shuffledp.bound import Bound
from shuffledp.facts import Blanket, Facts
from shuffledp.randomizers._privunit_crowds import opposite


def mixed_law(people: list[tuple[Matrix, int]]) -> Law:
    """The histogram of the reports of people of different groups, each with an input."""
    law: dict[tuple[int, ...], Fraction] = {tuple(0 for _ in people[0][0][0]): ONE}
    for matrix, value in people:
        following: dict[tuple[int, ...], Fraction] = defaultdict(lambda: ZERO)
        for counts, mass in law.items():
            for y, chance in enumerate(matrix[value]):
                following[(*counts[:y], counts[y] + 1, *counts[y + 1 :])] += mass * chance
        law = dict(following)
    return dict[Hashable, Fraction](law.items())


def pairs_of_person(groups: list[tuple[Matrix, int]], place: int) -> frozenset[Atoms]:
    """All pairs for a person of one group."""
    own = groups[place][0]
    others = [matrix for j, (matrix, count) in enumerate(groups) for _ in range(count - (j == place))]
    found: set[Atoms] = set()
    for values in product(range(len(own)), repeat=len(others)):
        rest = list(zip(others, values, strict=True))
        laws = [mixed_law([(own, x), *rest]) for x in range(len(own))]
        found.update(atoms(p, q) for p, q in permutations(laws, 2))
    return frozenset(found)


def check(groups: list[tuple[Matrix, int]], round_: Any, people: list[Any]) -> None:
    every: set[Atoms] = set()
    for place, person in enumerate(people):
        truth = pairs_of_person(groups, place)
        every |= truth
        middles = between([ZERO, *ratios(truth)])
        for alpha in [float(a) for a in middles[:: max(1, len(middles) // 6)]]:
            exact, bound = brute.worst(truth, Fraction(alpha)), person.profile(alpha, tolerance=0.05)
            assert_at_least(bound.upper, exact)
            assert_at_most(bound.lower, exact)
    for epsilon in (0.1, 0.5, 1.0):
        exact = brute.worst(frozenset(every), Fraction(float(np.exp(epsilon))))
        bound = round_.delta(epsilon=epsilon, tolerance=0.05)
        assert_at_least(bound.upper, exact)
        assert_at_most(bound.lower, exact)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    "sizes", [((2, 1), (5, 1)), ((2, 2), (5, 1)), ((2, 1), (20, 2)), ((3, 1), (5, 1), (9, 1))]
)
def test_groups_of_randomized_response_cover_every_dataset(
    k: int, sizes: tuple[tuple[int, int], ...]
) -> None:
    survey = sdp.ShuffledGroups.of(sdp.KaryRandomizedResponse, {log(E): people for E, people in sizes}, k=k)
    people = [survey.person(log(E)) for E, _ in sizes]
    check([(brute.k_ary(k, E), count) for E, count in sizes], survey, people)


@pytest.mark.parametrize("seed", range(5))
def test_groups_of_matrices_cover_every_dataset(seed: int) -> None:
    drawn = [m for m in brute.random_matrices(40, seed) if len(m[0]) == 3 and len(m) == 2]
    groups = [(drawn[0], 2), (drawn[1], 1)]
    floats = [sdp.FiniteRandomizer([[float(p) for p in row] for row in matrix]) for matrix, _ in groups]
    survey = sdp.ShuffledGroups(tuple((one, n) for one, (_, n) in zip(floats, groups, strict=True)))
    check(groups, survey, [survey.person(one.epsilon0) for one in floats])


def enumerated(randomizer: Any, reports: list[Any], k: int) -> Matrix:
    """Exact probabilities of the reports of a small hashing or Hadamard randomizer."""
    p, q = randomizer.response._support_fractions()
    g = randomizer.symbols
    return tuple(
        tuple((p if (a * x) % g == s else q) / g for a in range(g) for s in range(g)) for x in range(k)
    )


def test_groups_of_local_hashing_cover_every_dataset() -> None:
    oracles = [sdp.OptimisedLocalHashing(k=3, epsilon0=local, symbols=3) for local in (0.7, 2.0)]
    assert oracles[0].digits == 1
    groups = [(enumerated(one, [], 3), 1) for one in oracles]
    survey = sdp.ShuffledGroups(tuple((one, 1) for one in oracles))
    check(groups, survey, [survey.person(one.epsilon0) for one in oracles])


@pytest.mark.parametrize("kind", [sdp.SymmetricUnaryEncoding, sdp.OptimisedUnaryEncoding])
@pytest.mark.parametrize(("k", "sizes"), [(2, (2, 1)), (2, (2, 2)), (3, (1, 1)), (3, (2, 2)), (4, (1, 1))])
def test_groups_of_unary_encodings_cover_every_dataset(kind: Any, k: int, sizes: tuple[int, int]) -> None:
    oracles = [kind(k=k, epsilon0=local) for local in (0.7, 2.0)]
    groups = [(bits(one, k), count) for one, count in zip(oracles, sizes, strict=True)]
    survey = sdp.ShuffledGroups(tuple(zip(oracles, sizes, strict=True)))
    check(groups, survey, [survey.person(one.epsilon0) for one in oracles])


@pytest.mark.parametrize("kind", [sdp.SymmetricUnaryEncoding, sdp.OptimisedUnaryEncoding])
@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_unary_encodings_state_the_law_of_every_pair_and_what_every_input_sends(kind: Any, k: int) -> None:
    """Report by report, of the whole-number weights: types are the two bits and the number of other ones."""
    oracle = kind(k=k, epsilon0=1.3)
    matrix, stated = bits(oracle, k), oracle.facts().blanket.law
    for x, y in permutations(range(k), 2):
        types: dict[tuple[int, int, int], list[Fraction]] = defaultdict(lambda: [ZERO] * 3)
        for place, report in enumerate(product((0, 1), repeat=k)):
            column = [row[place] for row in matrix]
            rest = sum(report) - report[x] - report[y]
            found = types[rest, report[x], report[y]]
            for i, mass in enumerate((column[x], column[y], min(column))):
                found[i] += mass
        order = [(rest, a, b) for rest in range(k - 1) for a, b in ((1, 0), (0, 1), (1, 1), (0, 0))]
        for place, masses in enumerate((stated.own, stated.other, stated.clone)):
            assert masses == pytest.approx([float(types[key][place]) for key in order], rel=1e-15)
        gaps = [float(types[key][0] - types[key][1]) for key in order]
        assert stated.gap == pytest.approx(gaps, rel=1e-15, abs=0.0)


@pytest.mark.parametrize("kind", [sdp.SymmetricUnaryEncoding, sdp.OptimisedUnaryEncoding])
@pytest.mark.parametrize("share", [0.1, 0.6, 1.5])
def test_any_share_of_the_others_blanket_covers_every_dataset(kind: Any, share: float) -> None:
    """What is left of the own group's, if the others send their share of it, hides (T21)."""
    oracles, counts = [kind(k=3, epsilon0=local) for local in (0.7, 2.0)], (1, 2)
    laws = [one.facts().blanket.law for one in oracles]
    for place in (0, 1):
        people = tuple(count - (j == place) for j, count in enumerate(counts))
        nu = np.minimum(laws[place].clone, np.array(laws[1 - place].clone) / share)
        shares = tuple(1.0 if j == place else share * (1.0 - 1e-15) for j in (0, 1))
        found = _pair(laws[place].among(tuple(nu.tolist())), shares, people)
        truth = pairs_of_person([(bits(one, 3), n) for one, n in zip(oracles, counts, strict=True)], place)
        for epsilon in (0.0, 0.2, 0.6, 1.2):
            exact = brute.worst(truth, Fraction(float(np.exp(epsilon))))
            assert_at_least(float(found.upper(np.array([epsilon]), 0.01)[0]), exact)


@pytest.mark.quick
@pytest.mark.parametrize("kind", [sdp.SymmetricUnaryEncoding, sdp.OptimisedUnaryEncoding])
@pytest.mark.parametrize("k", [13, 16, 64, 128, 129, 10_000])
def test_unary_encodings_of_any_number_of_categories_are_answered(kind: Any, k: int) -> None:
    """And nobody is worse off than in their own group."""
    survey = sdp.ShuffledGroups.of(kind, {0.3: 3_000, 0.4: 5_000}, k=k)
    for local, people in ((0.3, 3_000), (0.4, 5_000)):
        found = survey.person(local).epsilon(delta=1e-6)
        alone = sdp.Shuffled(kind(k=k, epsilon0=local), n=people).epsilon(delta=1e-6).upper
        assert 0.0 < found.lower < found.upper <= 1.001 * alone
        assert k > 64 or found.upper < 0.95 * alone


def signs(randomizer: Any) -> Matrix:
    """Probabilities of (row, sign) for the corners of a square and its middle."""
    truth = Fraction(2 * randomizer.weight, 2**64) - 1
    return tuple(
        tuple((1 + s * entry * truth) / 4 for entry in image for s in (-1, 1))
        for image in ((1, 1), (1, -1), (-1, 1), (-1, -1), (0, 0))
    )


@pytest.mark.parametrize("kind", [sdp.LInfinityRandomizer, sdp.L1Randomizer])
def test_groups_of_noisy_signs_cover_every_dataset(kind: Any) -> None:
    """The image of the l1 ball of two dimensions is the same square."""
    oracles, sizes = [kind(2, local) for local in (0.7, 2.0)], (1, 2)
    groups = [(signs(one), count) for one, count in zip(oracles, sizes, strict=True)]
    survey = sdp.ShuffledGroups(tuple(zip(oracles, sizes, strict=True)))
    check(groups, survey, [survey.person(one.epsilon0) for one in oracles])


@pytest.mark.quick
@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_signs_of_many_rows_hide_as_binary_response_does(dimension: int) -> None:
    of = partial(sdp.ShuffledGroups.of, groups={1.0: 500, 2.0: 2_000})
    ball, binary = of(sdp.LInfinityRandomizer, dimension=dimension), of(sdp.KaryRandomizedResponse, k=2)
    for local in (1.0, 2.0):
        bits_, one = (survey.person(local).epsilon(delta=1e-6) for survey in (binary, ball))
        assert one.lower == pytest.approx(bits_.lower, rel=1e-3)
        assert bits_.upper <= one.upper <= 1.2 * bits_.upper


@pytest.mark.parametrize(("own", "others"), [(2, 5), (5, 2), (3, 3)])
def test_a_binary_response_among_others_is_exact(own: int, others: int) -> None:
    for n in (2, 4):
        profile = BinaryAmongProfile(n, log(own), log(others))
        truth = pairs_of_person([(brute.k_ary(2, own), 1), (brute.k_ary(2, others), n - 1)], 0)
        for epsilon in (0.0, 0.2, 0.5, 1.0):
            exact, at = brute.worst(truth, Fraction(float(np.exp(epsilon)))), np.array([epsilon])
            assert_at_least(float(profile.upper(at, 1e-3)[0]), exact)
            assert_at_most(float(profile.support(at, 1e-3).value[0]), exact)
            assert float(profile.upper(at, 1e-3)[0]) <= 1.001 * exact + 1e-9


@pytest.mark.parametrize(("own", "others"), [(1.0, 2.0), (2.0, 1.0)])
def test_a_binary_response_among_many_others_is_their_worst_dataset(own: float, others: float) -> None:
    """All of them, added up in floats."""
    n, (keep, lie) = 500, (1 / (1 + exp(-others)), 1 / (1 + exp(others)))
    one = np.array([1 / (1 + exp(-own)), 1 / (1 + exp(own))])
    counts = [np.ones(1)]
    for _ in range(n - 1):
        counts.append(np.convolve(counts[-1], [lie, keep]))
    profile, at = BinaryAmongProfile(n, own, others), np.array([0.05, 0.15, 0.3])
    upper, lower = profile.upper(at, 1e-3), profile.support(at, 1e-3).value
    for place, epsilon in enumerate(at):
        weights = [one - exp(epsilon) * one[::-1], one[::-1] - exp(epsilon) * one]
        worst = 0.0
        for m in range(n):
            law = np.convolve(counts[m], counts[n - 1 - m][::-1])
            worst = max(worst, *(float(np.maximum(np.convolve(law, w), 0.0).sum()) for w in weights))
        assert lower[place] * (1 - 1e-9) <= worst <= upper[place] * (1 + 1e-9)
        assert upper[place] <= 1.01 * worst


@pytest.mark.quick
def test_binary_groups_count_as_one_of_the_larger_epsilon0() -> None:
    survey = sdp.ShuffledGroups.of(sdp.KaryRandomizedResponse, {1.0: 500, 2.0: 2_000}, k=2)
    together = sdp.Shuffled(sdp.KaryRandomizedResponse(k=2, epsilon0=2.0), n=2_500).epsilon(delta=1e-6)
    assert survey.person(2.0).epsilon(delta=1e-6).upper <= 1.001 * together.upper
    assert survey.person(1.0).epsilon(delta=1e-6).upper <= 0.6 * together.upper


@pytest.mark.quick
def test_pairs_of_inputs_are_all_covered_by_one_that_leads() -> None:
    noise = [(sdp.DiscreteLaplace(local, levels=6), people) for local, people in ((1.0, 300), (2.0, 900))]
    survey, at = sdp.ShuffledGroups(tuple(noise)), np.array([0.0, 0.05, 0.1, 0.2])
    for place in (0, 1):
        pairs: Any = survey._of_group(place).profile
        led = pairs.profiles[0]
        assert isinstance(led, GroupPairsProfile)
        assert len(led.profiles) > 20
        upper, lines = led.upper(at, 0.01), led.support(at, 0.01).value
        each, left = (
            np.array([one.upper(place, 0.01) for one in led.profiles]).max(axis=0)
            for place in (at, 0.999 * at)
        )
        least = np.array([one.support(at, 0.01).value for one in led.profiles]).max(axis=0)
        assert (upper >= least).all()
        assert (upper <= 1.02 * left).all()
        assert (lines <= each).all()
        assert (lines >= 0.98 * least).all()


def bits(randomizer: Any, k: int) -> Matrix:
    """Exact probabilities of all vectors of bits."""
    p, q = randomizer._support_fractions()
    rows = []
    for x in range(k):
        chances = [[p if place == x else q for place in range(k)]] * 2**k
        reports = product((0, 1), repeat=k)
        rows.append(
            tuple(
                prod((c if bit else 1 - c for c, bit in zip(chance, report, strict=True)), start=ONE)
                for chance, report in zip(chances, reports, strict=True)
            )
        )
    return tuple(rows)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("kind", "parameters", "width"),
    [
        (sdp.SymmetricUnaryEncoding, {"k": 8}, 1.5),
        (sdp.SubsetSelection, {"k": 8, "size": 3}, 1.2),
        (sdp.OptimisedLocalHashing, {"k": 8, "symbols": 3}, 1.2),
        (sdp.HadamardResponse, {"k": 8}, 1.01),
        (sdp.DiscreteLaplace, {"levels": 2}, 1.7),
        (sdp.DiscreteLaplace, {}, 1.9),
    ],
)
def test_every_family_has_a_lower_end(kind: Any, parameters: dict[str, int], width: float) -> None:
    found = sdp.ShuffledGroups.of(kind, {1.0: 5_000, 2.0: 5_000}, **parameters).epsilon(delta=1e-6)
    assert 0.0 < found.lower <= found.upper <= width * found.lower


def test_rounds_of_groups_cover_the_adaptive_adversary() -> None:
    sizes = ((2, 1), (5, 1))
    groups = [(brute.k_ary(2, E), count) for E, count in sizes]
    truth = pairs_of_person(groups, 1)
    curve = rational_curve(lambda alpha: brute.worst_adaptive([truth, truth], alpha))
    survey = sdp.ShuffledGroups.of(sdp.KaryRandomizedResponse, {log(E): n for E, n in sizes}, k=2)
    twice = 2 * survey.person(log(5))
    for epsilon in (0.0, 0.8, 2.0):
        bound = twice.delta(epsilon=epsilon, tolerance=0.1)
        assert_at_least(bound.upper, curve(epsilon))
        assert_at_most(bound.lower, curve(epsilon))


@pytest.mark.quick
@pytest.mark.parametrize("k", [2, 3, 16])
def test_groups_that_are_alike_are_one_group(k: int) -> None:
    answer = sdp.KaryRandomizedResponse(k=k, epsilon0=2.0)
    apart = sdp.ShuffledGroups(((answer, 4_000), (answer, 6_000))).epsilon(delta=1e-6)
    analysis = "exact" if k == 2 else "blanket"
    together = sdp.Shuffled(answer, n=10_000, analysis=analysis).epsilon(delta=1e-6)
    assert apart.upper == pytest.approx(together.upper, rel=2e-3)
    assert apart.lower == pytest.approx(together.lower, rel=0.01) or k == 2


@pytest.mark.quick
@pytest.mark.parametrize("kind", [sdp.KaryRandomizedResponse, sdp.OptimisedUnaryEncoding])
def test_dishonest_people_of_a_group_hide_nobody(kind: Any) -> None:
    """Their reports are known: what is left is a round of the honest ones, rounded down."""
    all_of, some = {1.0: 401, 2.0: 601}, {1.0: 200, 2.0: 300}
    half = sdp.ShuffledGroups.of(kind, all_of, k=4, honest_fraction=0.5)
    left = sdp.ShuffledGroups.of(kind, some, k=4)
    for local in all_of:
        assert half.person(local).epsilon(delta=1e-6) == left.person(local).epsilon(delta=1e-6)
    nobody = sdp.ShuffledGroups.of(kind, {1.0: 3, 2.0: 3}, k=4, honest_fraction=0.1)
    assert nobody.epsilon(delta=1e-9).upper == pytest.approx(2.0, rel=1e-6)
    with pytest.raises(ValueError, match="honest_fraction"):
        sdp.ShuffledGroups.of(kind, all_of, k=4, honest_fraction=0.0)


@pytest.mark.quick
def test_a_person_is_hidden_by_all_groups() -> None:
    """More by people of a small epsilon0 than by as many of a large one, and by more people than by fewer."""
    kind = sdp.KaryRandomizedResponse
    one = {
        local: sdp.ShuffledGroups.of(kind, {1.0: 5_000, local: 5_000}, k=8).person(1.0).epsilon(delta=1e-6)
        for local in (2.0, 5.0)
    }
    alone = sdp.Shuffled(kind(k=8, epsilon0=1.0), n=5_000).epsilon(delta=1e-6)
    assert one[2.0].upper < one[5.0].upper < alone.upper
    assert one[5.0].lower <= one[5.0].upper <= 1.02 * one[5.0].lower


@pytest.mark.quick
@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (sdp.KaryRandomizedResponse, {"k": 2}),
        (sdp.HadamardResponse, {"k": 8}),
        (sdp.PrivUnit, {"dimension": 20, "cap_probability": 0.2}),
        (sdp.DiscreteLaplace, {"levels": 3}),
        (sdp.DiscreteLaplace, {"levels": 16}),
        (
            sdp.DiscreteLaplace,
            {"levels": 40},
        ),  # more inputs than are compared: everybody hides in their group
    ],
)
def test_other_groups_never_hurt(kind: Any, parameters: dict[str, Any]) -> None:
    """Who tells the other groups' reports apart is left with the own group."""
    survey = sdp.ShuffledGroups.of(kind, {1.0: 500, 4.0: 2_000}, **parameters)
    for epsilon0, people in ((1.0, 500), (4.0, 2_000)):
        alone = sdp.Shuffled(kind(**parameters, epsilon0=epsilon0), n=people).epsilon(delta=1e-6)
        assert survey.person(epsilon0).epsilon(delta=1e-6).upper <= alone.upper * 1.001
    single = sdp.ShuffledGroups.of(kind, {4.0: 2_000}, **parameters).epsilon(delta=1e-6)
    assert single.upper <= alone.upper * 1.001


@pytest.mark.quick
def test_what_has_no_common_blanket_is_refused_with_the_reason() -> None:
    unary = [(sdp.OptimisedUnaryEncoding(k=k, epsilon0=1.0), 10) for k in (100, 200)]
    with pytest.raises(ValueError, match="unary"):
        sdp.ShuffledGroups(tuple(unary))
    noise = [(sdp.DiscreteGaussian(sigma=sigma), 10) for sigma in (1.0, 2.0)]
    with pytest.raises(ValueError, match=r"got \[123, 235\].*depends on sigma.*each group alone"):
        sdp.ShuffledGroups(tuple(noise))
    rows = [(sdp.LInfinityRandomizer(dimension, 1.0), 10) for dimension in (2, 3)]
    with pytest.raises(ValueError, match="rows"):
        sdp.ShuffledGroups(tuple(rows))
    with pytest.raises(ValueError, match="share a blanket"):
        sdp.ShuffledGroups(tuple((sdp.KaryRandomizedResponse(k=k, epsilon0=1.0), 10) for k in (3, 4)))
    survey = sdp.ShuffledGroups.of(sdp.KaryRandomizedResponse, {1.0: 10}, k=4)
    with pytest.raises(ValueError, match="epsilon0"):
        survey.person(3.0)


@dataclass(frozen=True)
class Caps:
    """Six cells of a circle, caps of two: PrivUnit in the small, by what is stated of it."""

    epsilon0: float

    @property
    def densities(self) -> tuple[Fraction, Fraction]:
        ratio = round(exp(self.epsilon0))
        return Fraction(3, 2 + ratio), Fraction(3 * ratio, 2 + ratio)

    def matrix(self) -> Matrix:
        low, high = self.densities
        return tuple(
            tuple((high if (cell - held) % 6 < 2 else low) / 6 for cell in range(6)) for held in (0, 1, 3)
        )

    def facts(self) -> Facts:
        low, high = map(float, self.densities)
        law = opposite(low, high)
        return Facts(
            Bound(0.0, self.epsilon0 * (1 + 1e-12)), above=(law,), blanket=Blanket("circle", law, low)
        )


@pytest.mark.parametrize("sizes", [((2, 1), (4, 2)), ((2, 2), (4, 1))])
def test_groups_of_caps_cover_every_dataset(sizes: tuple[tuple[int, int], ...]) -> None:
    survey = sdp.ShuffledGroups.of(Caps, {log(E): people for E, people in sizes})
    people = [survey.person(log(E)) for E, _ in sizes]
    check([(Caps(log(E)).matrix(), count) for E, count in sizes], survey, people)


def test_groups_of_privunit_are_between_the_groups_alone() -> None:
    of = partial(sdp.ShuffledGroups.of, sdp.PrivUnit, dimension=50, cap_probability=0.2)
    mixed, one = of({1.0: 4000, 2.0: 4000}), of({1.0: 8000})
    careful, open_ = (mixed.person(local).epsilon(delta=1e-6) for local in (1.0, 2.0))
    assert 0.0 < careful.lower < careful.upper < open_.upper
    assert open_.upper == pytest.approx(mixed.epsilon(delta=1e-6).upper, rel=1e-4)  # of one tolerance
    alone = sdp.Shuffled(sdp.PrivUnit(50, 1.0, cap_probability=0.2), n=8000, analysis="blanket")
    assert one.epsilon(delta=1e-6).upper == pytest.approx(alone.epsilon(delta=1e-6).upper, rel=0.01)
    assert one.epsilon(delta=1e-6).upper < careful.upper
    with pytest.raises(ValueError, match="cap_probability"):
        sdp.ShuffledGroups.of(sdp.PrivUnit, {1.0: 10, 2.0: 10}, dimension=50)


def test_a_person_is_of_one_group_and_no_other() -> None:
    """Groups of one epsilon0, or next to it, or of none that is finite."""
    rare, even = (
        sdp.FiniteRandomizer([[0.02, 0.98], [0.01, 0.99]]),
        sdp.FiniteRandomizer([[0.5, 0.5], [0.25, 0.75]]),
    )
    alike = sdp.ShuffledGroups(((rare, 2), (even, 2)))
    with pytest.raises(ValueError, match="epsilon0 must tell one group from others"):
        alike.person(even.epsilon0)
    assert (
        alike.person(group=1).delta(epsilon=0.0).lower
        > 0.18
        > 0.01
        > alike.person(group=0).delta(epsilon=0.0).upper
    )
    signs = [sdp.LInfinityRandomizer(1, 1.0), sdp.LInfinityRandomizer(1, 1.000000001)]
    near = sdp.ShuffledGroups(((signs[0], 1), (signs[1], 3)), honest_fraction=0.75)
    for place, one in enumerate(signs):
        assert near.person(one.epsilon0).delta(epsilon=0.0) == near.person(group=place).delta(epsilon=0.0)
    seen, hidden = (
        sdp.FiniteRandomizer(rows)
        for rows in ([[0, 0.1, 0.9], [0.2, 0.7, 0.1]], [[0.2, 0.6, 0.2], [0.1, 0.8, 0.1]])
    )
    mixed = sdp.ShuffledGroups(((seen, 2), (hidden, 2)))
    for place, local in enumerate((inf, hidden.epsilon0)):
        assert mixed.person(local).delta(epsilon=0.3) == mixed.person(group=place).delta(epsilon=0.3)
    for bad in ({}, {"epsilon0": 1.0, "group": 0}):
        with pytest.raises(TypeError, match="one of epsilon0 and group"):
            mixed.person(**bad)
    with pytest.raises(ValueError, match=r"group must be in \[0, 1\]"):
        mixed.person(group=2)
