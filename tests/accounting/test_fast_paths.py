"""The accountant's short cuts, at random and at their branch points, against ball arithmetic.

Parameters are drawn from fixed seeds, wide and awkward on purpose: crowds of one, rates next to zero
and one, epsilons next to the largest loss. Every oracle here sums the definition.
"""

import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from flint import arb

import shuffledp as sdp
from oracles import balls
from oracles.claims import (
    assert_at_least,
    assert_at_most,
    assert_delta_tight,
    assert_epsilon_covers,
    assert_epsilon_tight,
)
from shuffledp.accounting._curves.third_value import EvenCrowdProfile

pytestmark = pytest.mark.quick

HALF = arb(1) / 2


def crowd_outcomes(n: int, own: tuple[arb, ...], h: arb) -> dict[tuple[int, int], arb]:
    """Probability of m reports x or x', A of them x, by what the differing user sends."""
    crowd = [balls.binomial_mass(n - 1, 2 * h, c) for c in range(n)]

    def others(x: int, y: int) -> arb:
        if x < 0 or y < 0 or x + y > n - 1:
            return arb(0)
        return crowd[x + y] * balls.binomial_mass(x + y, HALF, x)

    a, b, c = own
    return {
        (x, m - x): a * others(x - 1, m - x) + b * others(x, m - x - 1) + c * others(x, m - x)
        for m in range(n + 1)
        for x in range(m + 1)
    }


def crowd_cases() -> Iterator[tuple[int, float, float, float, float]]:
    """(n, b, a - b, h, share of the time that the user takes part)."""
    rng = random.Random(5)
    yield 250, 0.05, 0.4, 0.3, 1.0  # so many that buckets hold several numbers
    for n in (1, 2, 5, 12, 20):
        for b in (0.0, 1e-40, rng.uniform(0.01, 0.2)):
            gap = rng.choice([1e-5, rng.uniform(0.05, 0.6)])
            yield n, b, gap, rng.choice([1e-6, rng.uniform(0.01, 0.45)]), rng.choice([1.0, 0.03])


@pytest.mark.thorough
def test_even_crowds_are_enclosed_and_their_lines_stay_below() -> None:
    for n, b, gap, h, share in crowd_cases():
        near, away = 2.0 * b + gap, 1.0 - (2.0 * b + gap)
        profile = EvenCrowdProfile(n, near, gap, b, away, 2.0 * h, 1.0 - 2.0 * h)
        if share < 1.0:
            profile = profile.subsampled(share)
        s, u, v, c = arb(share), arb(b) + arb(gap), arb(b), 1 - 2 * arb(b) - arb(gap)
        mixed = [s * p + (1 - s) * q for p, q in ((u, arb(h)), (v, arb(h)), (c, 1 - 2 * arb(h)))]
        p = crowd_outcomes(n, (mixed[0], mixed[1], mixed[2]), arb(h))
        q = crowd_outcomes(n, (mixed[1], mixed[0], mixed[2]), arb(h))

        def exact(epsilon: float, p: dict = p, q: dict = q) -> arb:
            alpha = balls.exp(epsilon)
            return sum(((p[key] - alpha * q[key]).max(arb(0)) for key in p), arb(0))

        top = min(profile.epsilon_max, 30.0)
        epsilon = top * np.array([0.0, 0.01, 0.3, 0.7, 0.99])
        truth = [exact(at) for at in epsilon]
        high, lines = profile.both(epsilon, 1e-3 if n < 100 else 0.2)
        for i, at in enumerate(epsilon):
            assert high[i] >= float(truth[i].lower()) * (1.0 - 1e-11)
            for j, other in enumerate(epsilon):
                run = math.exp(at) * math.expm1(other - at)
                slope = lines.slope_high[i] if run > 0.0 else lines.slope_low[i]
                line = lines.value[i] - slope * run
                assert line <= float(truth[j].upper()) * (1.0 + 1e-11) + 1e-13 * abs(slope * run)


def round_cases() -> Iterator[tuple[sdp.Shuffled, object, float]]:
    """(a round, its analysis' exact curve, a tolerance)."""
    rng = random.Random(6)
    for n in (1, 2, 3, 9, 30, 31, 200, 900):
        for name, curve in (("clones", balls.clones), ("clones-2021", balls.clones_2021)):
            epsilon0 = rng.choice([10.0 ** rng.uniform(-5.0, 0.0), rng.uniform(0.5, 9.0), 25.0])
            local = sdp.LocalRandomizer(epsilon0=epsilon0)
            one = sdp.Shuffled(local, n=n, analysis=name)
            tolerance = 10.0 ** rng.choice([-1, -2, -3, -3, -4])

            def exact(alpha: arb, curve: Any = curve, n: int = n, epsilon0: float = epsilon0) -> arb:
                return curve(n, epsilon0, alpha)

            yield one, exact, tolerance
        k, gamma = rng.choice([2, 3, 16, 1000]), rng.choice([0.01, 0.3, 0.9])
        response = sdp.KaryRandomizedResponse(k=k, gamma=gamma)

        def strong(alpha: arb, n: int = n, k: int = k, gamma: float = gamma) -> arb:
            return balls.strong(n, k, gamma, alpha)

        yield sdp.Shuffled(response, n=n, analysis="strong"), strong, 1e-3


@pytest.mark.thorough
def test_random_rounds_are_covered_and_as_tight_as_asked() -> None:
    rng = random.Random(7)
    for mechanism, profile, tolerance in round_cases():

        def curve(epsilon: float, profile: Any = profile) -> arb:
            return profile(balls.exp(epsilon))

        for delta in (rng.uniform(0.01, 0.5), 10.0 ** rng.uniform(-12.0, -2.0)):
            bound = mechanism.epsilon(delta=delta, tolerance=tolerance)
            if math.isinf(bound.upper):
                assert_at_least(float(curve(100.0).mid()), delta, slack=tolerance)
                continue
            assert_epsilon_covers(bound.upper, curve, delta)
            assert_epsilon_tight(bound.upper, curve, delta, tolerance)
            at = bound.upper * rng.choice([0.5, 0.999, 1.0])
            found = mechanism.delta(epsilon=at, tolerance=tolerance)
            assert_at_least(found.upper, curve(at))
            assert_delta_tight(found.upper, curve, at, tolerance)
            assert_at_most(found.lower, curve(at))


@pytest.mark.parametrize(("n", "k", "epsilon0"), [(3, 3, 1.0), (3, 2, 3.0), (12, 4, 2.0)])
def test_two_rounds_before_the_strong_adversary_are_covered(n: int, k: int, epsilon0: float) -> None:
    E = balls.exp(epsilon0)
    p = 1 / (E + k - 1)
    one = [((1 - k * p) * u, (1 - k * p) * v) for u, v in two_reports(n, 2 * p)] + [(k * p, k * p)]
    two = [(a * c, b * d) for a, b in one for c, d in one]
    twice = 2 * sdp.Shuffled(sdp.KaryRandomizedResponse(k=k, epsilon0=epsilon0), n=n, analysis="strong")
    hidden = sum((u for u, v in two if v == 0), arb(0))

    def curve(epsilon: float) -> arb:
        alpha = balls.exp(epsilon)
        return sum(((u - alpha * v).max(arb(0)) for u, v in two), arb(0))

    # Losses are infinite more often than the first, and seldom enough for the second.
    below, above = (float((x * hidden + y * curve(0.0)).mid()) for x, y in ((0.9, 0), (0.5, 0.5)))
    assert math.isinf(twice.epsilon(delta=below).upper)
    bound = twice.epsilon(delta=above, tolerance=1e-2)
    assert_epsilon_covers(bound.upper, curve, above)
    for epsilon in (0.0, 0.3, 1.5):
        assert_at_least(twice.upper_delta(epsilon=epsilon, tolerance=1e-2), curve(epsilon))


def two_reports(n: int, rate: arb) -> Iterator[tuple[arb, arb]]:
    """All outcomes for a user who sends x under P, x' under Q, among C ~ Bin(n - 1, rate) others."""
    for c in range(n):
        weight = balls.binomial_mass(n - 1, rate, c)
        for j in range(c + 2):
            less, more = (weight * balls.binomial_mass(c, HALF, i) for i in (j - 1, j))
            yield less, more


@pytest.mark.parametrize(("k", "epsilon0", "n"), [(3, 1.0, 900), (16, 4.0, 5000), (100, 2.0, 10**6)])
def test_both_sides_from_one_sum_agree_with_each_by_itself(k: int, epsilon0: float, n: int) -> None:
    response = sdp.KaryRandomizedResponse(k=k, epsilon0=epsilon0)
    for one in (sdp.Shuffled(response, n=n), sdp.Shuffled(response, n=n).sampled_from(30 * n)):
        curve = one.round.profile.profiles[0]  # type: ignore[attr-defined]
        epsilon = curve.hints.scale * np.array([0.0, 0.3, 1.0, 2.5, 5.0])
        upper, lines = curve.both(epsilon, 1e-3)
        finest, tested = curve.upper(epsilon, 1e-6), curve.support(epsilon, 1e-6)
        assert (upper >= tested.value).all()
        assert (lines.value <= finest).all()
        assert (upper <= 1.05 * finest).all()
        assert (lines.value >= 0.95 * tested.value).all()
        assert (lines.slope_low <= lines.slope_high).all()
        # The lines stay below the curve everywhere, not only where they touch it.
        alpha = np.exp(epsilon)
        for value, slope, at in zip(lines.value, lines.slope_high, alpha, strict=True):
            assert (finest >= value - slope * np.maximum(alpha - at, 0.0) - (alpha < at)).all()
        for value, slope, at in zip(lines.value, lines.slope_low, alpha, strict=True):
            assert (finest[alpha < at] >= (value + slope * (at - alpha))[alpha < at]).all()


def test_rounds_ask_a_slow_analysis_where_it_is_closer() -> None:
    """The quick bound is never below the whole, and not the answer where the slow analysis matters."""
    laplace = sdp.DiscreteLaplace(epsilon0=2.0, levels=4)
    one, blanket = (sdp.Shuffled(laplace, n=1000, analysis=name) for name in ("best", "blanket"))
    profile, points = one.round.profile, np.array([0.0, 0.1, 0.3])
    assert profile.quick is not profile
    assert (profile.quick.upper(points, 1e-3) >= profile.upper(points, 1e-3)).all()
    whole = (5 * one).epsilon(delta=1e-5, tolerance=0.02)
    assert whole.lower <= whole.upper < 0.97 * (5 * blanket).upper_epsilon(delta=1e-5, tolerance=0.02)
