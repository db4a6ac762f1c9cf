"""The oracles agree with the stored reference values and with one another."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product as grid
from typing import Any

import pytest
from flint import arb

from oracles import balls, brute, pairs, products
from oracles.golden import Golden, entries
from oracles.hockey import (
    Atoms,
    atoms,
    between,
    hockey_stick,
    pair_of_curve,
    product,
    ratios,
    subsampled_curve,
    swapped,
    upper_envelope,
)


def every(*ranges: Sequence[Any]) -> list[tuple[Any, ...]]:
    return list(grid(*ranges))


THIRTY_DIGITS = 1e-27
DIGITS_60 = arb(10) ** -60


def close(computed: arb | Fraction | float, golden: Golden, relative: float = THIRTY_DIGITS) -> bool:
    if isinstance(computed, Fraction):
        computed = arb(computed.numerator) / computed.denominator
    expected = arb(golden.value)
    return bool(abs(computed - expected) <= relative * expected)


def k_ary_epsilon0(golden: Golden) -> arb:
    if "eps0" in golden.params:
        return golden.ball("eps0")
    k, gamma = golden.params["k"], golden.ball("gamma")
    return (1 + k * (1 - gamma) / gamma).log()


# Balls against golden values


@pytest.mark.parametrize("golden", entries("fmt22_delta"), ids=str)
def test_the_ball_of_the_clones_is_the_golden_value(golden: Golden) -> None:
    alpha = golden.ball("eps").exp()
    assert close(balls.clones(golden.params["n"], golden.ball("eps0"), alpha), golden)


@pytest.mark.parametrize("golden", entries("fmt21_delta"), ids=str)
def test_the_ball_of_the_2021_clones_is_the_golden_value(golden: Golden) -> None:
    alpha = golden.ball("eps").exp()
    assert close(balls.clones_2021(golden.params["n"], golden.ball("eps0"), alpha), golden)


@pytest.mark.parametrize("golden", entries("strong_hs_delta"), ids=str)
def test_the_ball_of_the_strong_adversary_is_the_golden_value(golden: Golden) -> None:
    n, k = golden.params["n"], golden.params["k"]
    computed = balls.strong(n, k, golden.ball("gamma"), golden.ball("eps").exp())
    assert close(computed, golden)


@pytest.mark.parametrize("golden", entries("weak_hs_delta"), ids=str)
def test_the_ball_of_the_blanket_is_the_golden_value(golden: Golden) -> None:
    n, k = golden.params["n"], golden.params["k"]
    alpha = golden.ball("eps").exp()
    assert close(balls.blanket(n, k, k_ary_epsilon0(golden), alpha, tiny=DIGITS_60), golden)


@pytest.mark.parametrize("golden", entries("tv_universal_delta"), ids=str)
def test_the_ball_of_the_universal_pair_is_the_golden_value(golden: Golden) -> None:
    epsilon0 = golden.ball("eps0")
    laplace = 1 - (-epsilon0 / 2).exp()
    alpha = golden.ball("eps").exp()
    computed = balls.universal(golden.params["n"], epsilon0, laplace, alpha, tiny=DIGITS_60)
    assert close(computed, golden)


@pytest.mark.parametrize("golden", entries("brr_exact_delta"), ids=str)
def test_the_ball_of_binary_randomized_response_is_the_golden_value(golden: Golden) -> None:
    n, zeros = golden.params["n"], golden.params["n_x0"]
    both = balls.binary_exact(n, zeros, golden.ball("eps0"), golden.ball("eps").exp())
    assert close(both[golden.backwards], golden)


# Enumerations against golden values: e^eps0 as a fraction that is right to 45 digits


def direction(pair: Atoms, golden: Golden) -> Atoms:
    return swapped(pair) if golden.backwards else pair


def small(name: str, most: int) -> list[Golden]:
    return [golden for golden in entries(name) if golden.params["n"] <= most]


@pytest.mark.parametrize("golden", small("fmt22_delta", 10) + small("comp_fmt22_delta", 4), ids=str)
def test_the_enumerated_clones_have_the_golden_value(golden: Golden) -> None:
    pair = direction(pairs.clones(golden.params["n"], golden.rational_exp("eps0")), golden)
    rounds = product(*[pair] * golden.params.get("fold", 1))
    assert close(hockey_stick(rounds, golden.rational_exp("eps")), golden)


@pytest.mark.parametrize("golden", small("fmt21_delta", 10) + small("comp_fmt21_delta", 4), ids=str)
def test_the_enumerated_2021_clones_have_the_golden_value(golden: Golden) -> None:
    pair = direction(pairs.clones_2021(golden.params["n"], golden.rational_exp("eps0")), golden)
    rounds = product(*[pair] * golden.params.get("fold", 1))
    assert close(hockey_stick(rounds, golden.rational_exp("eps")), golden)


@pytest.mark.parametrize("golden", small("strong_hs_delta", 10) + small("comp_strong_delta", 4), ids=str)
def test_the_enumerated_strong_adversary_has_the_golden_value(golden: Golden) -> None:
    n, k = golden.params["n"], golden.params["k"]
    pair = direction(pairs.strong(n, k, Fraction(golden.params["gamma"])), golden)
    rounds = product(*[pair] * golden.params.get("fold", 1))
    assert close(hockey_stick(rounds, golden.rational_exp("eps")), golden)


@pytest.mark.parametrize("golden", small("weak_hs_delta", 20) + entries("comp_weak_delta"), ids=str)
def test_the_enumerated_blanket_has_the_golden_value(golden: Golden) -> None:
    n, k = golden.params["n"], golden.params["k"]
    pair = direction(pairs.k_ary_blanket(n, k, golden.rational_exp("eps0")), golden)
    rounds = product(*[pair] * golden.params.get("fold", 1))
    assert close(hockey_stick(rounds, golden.rational_exp("eps")), golden)


@pytest.mark.parametrize("golden", entries("comp_brr_exact_delta"), ids=str)
def test_the_enumerated_rounds_of_binary_randomized_response_have_the_golden_value(golden: Golden) -> None:
    matrix = brute.k_ary(2, golden.rational_exp("eps0"))
    zeros, n = golden.params["n_x0"], golden.params["n"]
    others = [0] * zeros + [1] * (n - 1 - zeros)
    pair = atoms(brute.shuffled_law(matrix, [0, *others]), brute.shuffled_law(matrix, [1, *others]))
    rounds = product(*[direction(pair, golden)] * golden.params["fold"])
    assert close(hockey_stick(rounds, golden.rational_exp("eps")), golden)


@pytest.mark.parametrize("golden", entries("krr_exact_worst_delta"), ids=str)
def test_the_worst_of_all_datasets_is_the_golden_value(golden: Golden) -> None:
    matrix = brute.k_ary(golden.params["k"], golden.rational_exp("eps0"))
    everything = brute.shuffled_pairs(matrix, golden.params["n"])
    assert close(brute.worst(everything, golden.rational_exp("eps")), golden)


@pytest.mark.parametrize("golden", small("fmt22_krr2d_delta", 5), ids=str)
def test_the_unsound_pair_is_recognised_by_its_golden_value(golden: Golden) -> None:
    n, k = golden.params["n"], golden.params["k"]
    pair = pairs.two_count_as_published(n, k, golden.rational_exp("eps0"))
    assert close(hockey_stick(direction(pair, golden), golden.rational_exp("eps")), golden)


@pytest.mark.parametrize("golden", entries("subsampled_h"), ids=str)
def test_the_ball_of_a_cohort_of_clones_is_the_golden_value(golden: Golden) -> None:
    cohort, epsilon0 = golden.params["subset"], golden.ball("eps0")
    share, alpha = arb(cohort) / golden.params["n"], golden.ball("log_alpha").exp()
    computed = balls.subsampled(lambda a: balls.clones(cohort, epsilon0, a), share, alpha)
    assert close(computed, golden)


@pytest.mark.parametrize("golden", [g for g in entries("subsampled_h") if g.params["subset"] == 10], ids=str)
def test_the_subsampled_curve_has_the_golden_value(golden: Golden) -> None:
    cohort, share = golden.params["subset"], Fraction(golden.params["gamma"])
    alpha = golden.rational_exp("log_alpha")
    pair = pairs.clones(cohort, golden.rational_exp("eps0"))
    subsampled = pair_of_curve(subsampled_curve(upper_envelope([pair]), share))
    assert close(hockey_stick(subsampled, alpha), golden)


# Double precision against golden values and balls


@pytest.mark.parametrize("golden", [g for g in entries("comp_fmt22_delta") if g.params["fold"] == 2], ids=str)
def test_two_rounds_of_clones_in_double_precision_have_the_golden_value(golden: Golden) -> None:
    pair = products.clones(golden.params["n"], golden.number("eps0"))
    alpha = float(golden.ball("eps").exp().mid())
    assert close(products.hockey_stick_of_two(pair, pair, alpha), golden, relative=1e-10)


def test_four_rounds_in_double_precision_have_the_golden_value() -> None:
    golden = next(g for g in entries("comp_fmt22_delta") if g.params["fold"] == 4)
    pair = products.clones(golden.params["n"], golden.number("eps0"))
    alpha = float(golden.ball("eps").exp().mid())
    assert close(products.hockey_stick_of_four(pair, alpha), golden, relative=1e-10)


def test_the_blanket_and_the_strong_adversary_in_double_precision_are_inside_their_balls() -> None:
    alpha = 1.3
    blanket = products.hockey_stick(products.blanket(30, 4, 2.0), alpha)
    assert blanket == pytest.approx(float(balls.blanket(30, 4, 2.0, alpha).mid()), rel=1e-11)
    binary = products.hockey_stick(products.blanket(30, 2, 2.0), alpha)
    assert binary == pytest.approx(float(balls.clones(30, 2.0, alpha).mid()), rel=1e-11)
    strong = products.hockey_stick(products.strong(30, 4, 0.25), alpha)
    assert strong == pytest.approx(float(balls.strong(30, 4, 0.25, alpha).mid()), rel=1e-11)


def test_lattice_rounding_encloses_two_rounds() -> None:
    pair = products.clones(200, 1.0)
    epsilon = 0.4
    exact = products.hockey_stick_of_two(pair, pair, float(balls.exp(epsilon).mid()))
    low, high = products.composed_between(pair, 2, epsilon, step=1e-5, reach=1.0)
    assert low <= exact <= high <= 1.01 * low


# Oracles against one another


@pytest.mark.parametrize(("n", "E"), every([1, 2, 5], [Fraction(3, 2), Fraction(2), Fraction(20)]))
def test_all_descriptions_of_the_clones_agree(n: int, E: Fraction) -> None:
    pair = pairs.clones(n, E)
    p, q = 1 / (E + 1), E / (E + 1)
    assert pair == pairs.counting(n, (q, p), (p, q), (p, p))
    assert pair == swapped(pair)
    for alpha in between(ratios([pair])):
        law = [(E - alpha, p), (1 - alpha * E, p)]
        assert hockey_stick(pair, alpha) == pairs.mean_positive_part(n, law)
        assert inside(hockey_stick(pair, alpha), balls.two_reports(n, 2 * one(p), one(q), one(alpha)))


@pytest.mark.parametrize(("n", "k", "E"), every([1, 2, 4], [2, 3, 5], [Fraction(2), Fraction(5)]))
def test_all_descriptions_of_the_blanket_agree(n: int, k: int, E: Fraction) -> None:
    pair = pairs.k_ary_blanket(n, k, E)
    matrix = brute.k_ary(k, E)
    p = 1 / (E + k - 1)
    assert pair == swapped(pair)
    for alpha in between(ratios([pair])):
        exact = hockey_stick(pair, alpha)
        assert exact == hockey_stick(pairs.blanket(matrix, 0, 1, n), alpha)
        assert exact == pairs.blanket_worst(matrix, n, alpha)
        law = [(E - alpha, p), (1 - alpha * E, p), (1 - alpha, (k - 2) * p)]
        assert exact == pairs.mean_positive_part(n, law)
        assert inside(exact, balls.blanket(n, k, one(E).log(), one(alpha)))


@pytest.mark.parametrize(("n", "tv"), every([1, 2, 5], [Fraction(1, 10), Fraction(1, 3), Fraction(1, 2)]))
def test_all_descriptions_of_the_universal_pair_agree(n: int, tv: Fraction) -> None:
    E = Fraction(3)
    pair = pairs.universal(n, E, tv)
    p = tv / (E - 1)
    for alpha in between(ratios([pair])):
        exact = hockey_stick(pair, alpha)
        law = [(E - alpha, p), (1 - alpha * E, p), (E * (1 - alpha), (1 - (E + 1) * p) / E)]
        assert exact == pairs.mean_positive_part(n, law)
        assert inside(exact, balls.universal(n, log3(), one(tv), one(alpha)))
    if tv == Fraction(1, 2):
        assert pair == pairs.clones(n, E)


@pytest.mark.parametrize(("n", "k"), every([2, 3, 4], [3, 4]))
def test_the_balls_of_two_datasets_are_what_enumeration_gives(n: int, k: int) -> None:
    E, alpha = Fraction(3), Fraction(7, 5)
    matrix = brute.k_ary(k, E)
    for held, ball in ((2, balls.all_hold_a_third_value), (0, balls.all_hold_the_value)):
        others = [held] * (n - 1)
        pair = atoms(brute.shuffled_law(matrix, [0, *others]), brute.shuffled_law(matrix, [1, *others]))
        assert inside(hockey_stick(pair, alpha), ball(n, k, log3(), one(alpha)))


def test_the_ball_of_the_worst_binary_dataset_is_what_enumeration_gives() -> None:
    E, alpha = Fraction(3), Fraction(7, 5)
    for n in (1, 2, 5, 8):
        exact = brute.worst(brute.shuffled_pairs(brute.k_ary(2, E), n), alpha)
        assert inside(exact, balls.binary_worst(n, log3(), one(alpha)))


def test_the_ball_of_the_strong_adversary_is_what_enumeration_gives() -> None:
    for n, alpha in every((1, 2, 6), (Fraction(4, 5), Fraction(7, 5), Fraction(3))):
        exact = hockey_stick(pairs.strong(n, 4, Fraction(1, 4)), alpha)
        assert inside(exact, balls.strong(n, 4, one(Fraction(1, 4)), one(alpha)))


@pytest.mark.parametrize(("k", "n"), [(2, 4), (3, 3), (4, 2)])
def test_published_pairs_are_ordered_as_claimed(k: int, n: int) -> None:
    E = Fraction(5)
    truth = brute.shuffled_pairs(brute.k_ary(k, E), n)
    weak, gamma = pairs.k_ary_blanket(n, k, E), Fraction(k) / (E + k - 1)
    chain = [weak, pairs.clones(n, E), pairs.clones_2021(n, E)]
    for alpha in between(ratios([*truth, *chain])):
        values = [brute.worst(truth, alpha), *(hockey_stick(pair, alpha) for pair in chain)]
        assert values == sorted(values)
        assert hockey_stick(weak, alpha) <= hockey_stick(pairs.strong(n, k, gamma), alpha)


def test_the_corners_of_an_envelope_give_back_every_hockey_stick() -> None:
    truth = brute.shuffled_pairs(brute.k_ary(2, Fraction(5)), 5)
    corners = upper_envelope(truth)
    pair = pair_of_curve(corners)
    for alpha in {alpha for alpha, _ in corners} | set(between(ratios(truth))):
        assert hockey_stick(pair, alpha) == brute.worst(truth, alpha)


def test_the_subsampled_curve_dominates_every_dataset_and_is_convex() -> None:
    matrix = brute.k_ary(2, Fraction(3))
    for population, cohort in ((2, 1), (3, 2), (4, 2), (4, 3)):
        base = upper_envelope(brute.shuffled_pairs(matrix, cohort))
        curve = pair_of_curve(subsampled_curve(base, Fraction(cohort, population)))
        assert all(p >= 0 and q >= 0 for p, q in curve)
        truth = brute.cohort_pairs(matrix, population, cohort)
        for alpha in ratios(truth):
            assert brute.worst(truth, alpha) <= hockey_stick(curve, alpha)


def test_adaptive_rounds_lie_between_fixed_rounds_and_the_product_of_the_envelope() -> None:
    truth = brute.shuffled_pairs(brute.k_ary(2, Fraction(3)), 3)
    envelope = pair_of_curve(upper_envelope(truth))
    for alpha, rounds in every((Fraction(1), Fraction(4, 3), Fraction(5, 2)), (2, 3)):
        adaptive = brute.worst_adaptive([truth] * rounds, alpha)
        assert brute.worst_fixed([truth] * rounds, alpha) <= adaptive
        assert adaptive <= hockey_stick(product(*[envelope] * rounds), alpha)


def one(x: Fraction) -> arb:
    return arb(x.numerator) / x.denominator


def log3() -> arb:
    return arb(3).log()


def inside(exact: Fraction, ball: arb) -> bool:
    """The ball holds the value and is small."""
    return ball.contains(one(exact)) or abs(float((ball - one(exact)).mid())) < 1e-120
