"""The far tail of curves, and Renyi divergences of large orders, against exact sums in rationals (T15')."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import arb, ctx

import shuffledp as sdp
from oracles import brute, pairs
from oracles.hockey import Atoms, hockey_stick, pair_of_curve, subsampled_curve, upper_envelope
from oracles.pairs import binomial
from response import krr_blanket
from shuffledp.accounting._curves.all_pairs import FiniteBlanketProfile
from shuffledp.accounting._curves.clones import clones_2021, strong_clones
from shuffledp.accounting._curves.combined import BestProfile, LargestProfile
from shuffledp.accounting._curves.exact_binary import ExactBinaryProfile
from shuffledp.accounting._curves.far import log_far
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.accounting._curves.mixture import MixtureProfile
from shuffledp.accounting._curves.profile import PrivacyProfile
from shuffledp.accounting._curves.subsampled import SubsampledProfile, in_cohort, polled
from shuffledp.accounting._renyi import renyi_divergence, renyi_uppers
from shuffledp.literature.renyi import epsilon_from_renyi

pytestmark = pytest.mark.quick

E = Fraction(3)
ctx.prec = 640
SHARES = np.array([0.01, 0.3, 0.6, 0.9, 0.99])


def log(x: Fraction) -> float:
    """Of whole numbers as large as they come."""
    return math.log(x.numerator) - math.log(x.denominator)


def at(profile: PrivacyProfile, shares: np.ndarray = SHARES) -> np.ndarray:
    return shares * profile.epsilon_max


def exact_logs(pair: Atoms, epsilon: np.ndarray) -> np.ndarray:
    curve = [hockey_stick(pair, Fraction(math.exp(one))) for one in epsilon.tolist()]
    return np.array([log(one) if one else -math.inf for one in curve])


def held(n: int, others: int) -> Atoms:
    """Binary randomized response of 3 : 1; so many of the n - 1 others hold the first value."""
    q, r = E / (E + 1), 1 / (E + 1)
    if others in (0, n - 1):
        f = [binomial(n - 1, q if others else r, t) for t in range(n)]
    else:
        mine, theirs = ([binomial(m, p, t) for t in range(n)] for m, p in ((others, q), (n - 1 - others, r)))
        f = [sum((mine[i] * theirs[t - i] for i in range(t + 1)), Fraction(0)) for t in range(n)]
    f = [Fraction(0), *f, Fraction(0)]
    return tuple((q * before + r * here, r * before + q * here) for before, here in pairwise(f))


def log_divergence(pair: Atoms, order: int) -> float:
    """The divergence of a whole order, whatever the size of its numbers, in ball arithmetic."""
    balls = [
        (arb(p.numerator) / arb(p.denominator), arb(q.numerator) / arb(q.denominator)) for p, q in pair if p
    ]
    total = sum((p * (p / q) ** (order - 1) for p, q in balls), arb(0))
    return float(total.log() / (order - 1))


@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_far_tails_of_few_clones_and_blankets_cover_exact_sums(n: int) -> None:
    e0 = math.log(E)
    known = (
        (strong_clones(e0, n), pairs.clones(n, E)),
        (clones_2021(e0, n), pairs.clones_2021(n, E)),
        (krr_blanket(4, e0, min(n, 7)), pairs.k_ary_blanket(min(n, 7), 4, E)),
    )
    for profile, pair in known:
        points = at(profile)
        found, exact = log_far(profile, points), exact_logs(pair, points)
        assert (found >= exact).all()
        assert (found <= exact + 1.0 + math.log(4 * n + 4)).all()


def test_far_tails_of_an_uneven_law_cover_exact_sums_both_ways() -> None:
    for matrix in brute.random_matrices(6, seed=5):
        common = [min(column) for column in zip(*matrix, strict=True)]
        gap = [a - b for a, b in zip(*matrix[:2], strict=True)]
        rows = (tuple(map(float, row)) for row in (*matrix[:2], gap, common))
        law = AmplificationProfile(4, *rows)
        pair = pairs.blanket(matrix, 0, 1, 4)
        for side, exact in ((law, pair), (law.reversed(), tuple((q, p) for p, q in pair))):
            if side.epsilon_max > 0.0:
                assert (log_far(side, at(side)) >= exact_logs(exact, at(side))).all()
        points = at(law)
        whole = FiniteBlanketProfile(
            sdp.FiniteRandomizer([[float(x) for x in row] for row in matrix]).table, 4
        )
        assert (log_far(whole, points) >= exact_logs(pair, points)).all()


@pytest.mark.parametrize("n", [1, 2, 6, 25])
def test_far_tails_of_binary_response_cover_every_dataset(n: int) -> None:
    profile = ExactBinaryProfile(n, math.log(E))
    points = at(profile)
    found = log_far(profile, points)
    worst = np.max([exact_logs(held(n, others), points) for others in range(n)], axis=0)
    assert (found >= worst).all()


@pytest.mark.parametrize("n", [700, 3000])
def test_where_doubles_underflow_the_tails_are_as_steep_as_exact_ones(n: int) -> None:
    binary = ExactBinaryProfile(n, math.log(E))
    law = AmplificationProfile(n, (0.75, 0.25), (0.25, 0.75), (0.5, -0.5), (0.25, 0.75))
    points = at(law, np.array([0.6, 0.9, 0.99]))
    away, beside = (exact_logs(held(n, others), points) for others in (0, n - 1))
    assert away.min() < -900.0
    for profile, exact in ((law, away), (binary, np.maximum(away, beside))):
        found = log_far(profile, points)
        assert (found >= exact).all()
        assert (found <= exact + 2.0 + 2.0 * math.log(n)).all()


@pytest.mark.parametrize("share", [Fraction(1, 10), Fraction(1, 2)])
def test_far_tails_of_cohorts_cover_exact_sums(share: Fraction) -> None:
    n, e0 = 5, math.log(E)
    whole = upper_envelope([pairs.clones(n, E)])
    published = SubsampledProfile(strong_clones(e0, n), float(share))
    points = at(published)
    exact = exact_logs(pair_of_curve(subsampled_curve(whole, share)), points)
    assert (log_far(published, points) >= exact).all()
    clones = 1 / (E + 1)
    together = pairs.counting_in_cohort(
        n, (E * clones, clones), (clones, E * clones), (clones, clones), share
    )
    tight = in_cohort(strong_clones(e0, n), float(share))
    assert (log_far(tight, at(tight)) >= exact_logs(together, at(tight))).all()
    law = polled(strong_clones(e0, n), float(share))
    among = pairs.counting(
        n, (share * E * clones, share * clones), (share * clones, share * E * clones), (share * clones,) * 2
    )
    assert (log_far(law, at(law)) >= exact_logs(among, at(law))).all()


def test_mixtures_the_largest_and_the_best_are_made_of_their_parts() -> None:
    few, many = strong_clones(1.0, 400), strong_clones(1.0, 4000)
    points = at(few)
    low, high = log_far(many, points), log_far(few, points)
    assert (low < high).all()
    assert (log_far(LargestProfile((many, few)), points) == high).all()
    assert (log_far(BestProfile(("a", "b"), (many, few)), points) == low).all()
    mixed = log_far(MixtureProfile((0.25, 0.75), (many, few)), points)
    exact = np.logaddexp(low + math.log(0.25), high + math.log(0.75))
    assert (exact - 1e-12 * abs(exact) <= mixed).all()
    assert (mixed <= exact + 1e-9 * abs(exact)).all()


def test_curves_of_which_nothing_far_is_known_say_so() -> None:
    told = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=1.0, delta0=1e-9), n=1000).round.profile
    assert (log_far(told, np.array([0.1, 0.5])) == math.inf).all()


@pytest.mark.parametrize("order", [64, 700, 2000])
def test_large_orders_of_binary_response_are_near_the_exact_sum_of_the_worst_dataset(order: int) -> None:
    n = 700
    exact = max(log_divergence(held(n, others), order) for others in (0, n - 1))
    bound = sdp.Shuffled(sdp.BinaryRandomizedResponse(math.log(E)), n=n).renyi(order)
    assert bound.lower <= exact * (1 + 1e-12)
    assert exact <= bound.upper <= 1.01 * exact


@pytest.mark.parametrize("order", [300, 1000, 3000])
def test_large_orders_of_a_law_are_near_exact_sums_both_ways(order: int) -> None:
    n = 600
    ahead = AmplificationProfile(n, (0.75, 0.25), (0.25, 0.75), (0.5, -0.5), (0.25, 0.75))
    pair = held(n, 0)
    exact = log_divergence(pair, order)
    bound = renyi_divergence(ahead, order, backward=ahead.reversed())
    assert bound.lower <= exact <= bound.upper <= 1.01 * exact
    exact = log_divergence(tuple((q, p) for p, q in pair), order)
    bound = renyi_divergence(ahead.reversed(), order, backward=ahead)
    assert bound.lower <= exact <= bound.upper <= 1.01 * exact


def test_upper_ends_grow_with_the_order_and_lower_ends_too() -> None:
    orders = [1.5, 2.0, 8.0, 64.0, 256.0, 800.0, 3000.0, 20_000.0, 100_000.0]
    for round_ in (
        sdp.Shuffled(sdp.KaryRandomizedResponse(16, epsilon0=4.0), n=10**6),
        sdp.Shuffled(sdp.BinaryRandomizedResponse(1.0), n=10**4),
        sdp.Shuffled(sdp.KaryRandomizedResponse(16, epsilon0=4.0), n=10**4).sampled_from(10**6, poisson=True),
    ):
        found = round_.renyi(orders[::-1])
        assert all(a >= b for side in (found.lower, found.upper) for a, b in pairwise(side.tolist()))
        alone = [renyi_uppers(round_.round.profile, [order])[0] for order in orders]
        assert all(a <= b * (1 + 1e-3) for a, b in pairwise(alone))


def test_one_round_of_a_million_is_tight_at_every_usual_order() -> None:
    """Orders up to 1024: the upper end was a hundred times the lower one."""
    one = sdp.Shuffled(sdp.KaryRandomizedResponse(16, epsilon0=4.0), n=10**6)
    orders = [2.0, 32.0, 150.0, 180.0, 256.0, 512.0, 1024.0]
    for mechanism in (one, 30 * one):
        found = mechanism.renyi(orders)
        assert (found.upper <= 1.002 * found.lower).all()
    most = [float(order) for order in np.geomspace(2.0, 1024.0, 40)]
    ends = one.renyi(most).upper.tolist()
    told = [epsilon_from_renyi(size, order, 1e-8) for size, order in zip(ends, most, strict=True)]
    assert one.epsilon(delta=1e-8).upper < min(told) < 0.055
