"""The accountant's short cuts, at random and at their branch points, against ball arithmetic.

Parameters are drawn from fixed seeds, wide and awkward on purpose: crowds of one, rates next to zero
and one, epsilons next to the largest loss. Every oracle here sums the definition.
"""

import math
import random
from collections.abc import Iterator

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
from shuffledp.accounting.even_crowd import EvenCrowdProfile
from shuffledp.numerics.binomial import (
    CLOSE,
    ROUGH,
    UNIT,
    TailRule,
    _even_deviance,
    _half_tail_ratio,
    _log_half_pmf,
    log1p_minus,
    mean_of_signs_excess,
    signs_excess_table,
    stirling_remainder,
)
from shuffledp.numerics.binomial_buckets import binomial_buckets

HALF = arb(1) / 2
BRANCHES = [0.05, 0.3]
"""Where the series for log1p and the deviance change their length."""


def around(x: float) -> list[float]:
    return [math.nextafter(x, 0.0), x, math.nextafter(x, 1.0)]


def relative(found: float, exact: arb) -> float:
    return abs(float((arb(float(found)) - exact) / exact))


@pytest.mark.parametrize("x", [s * v for b in BRANCHES for v in around(b) for s in (1.0, -1.0)])
def test_log1p_minus_keeps_a_few_units_where_its_series_changes(x: float) -> None:
    exact = (1 + arb(x)).log() - arb(x)
    for others in ([], [0.01], [0.9]):  # the largest of an array chooses the series
        assert relative(log1p_minus(np.array([x, *others]))[0], exact) < 8.0 * UNIT


@pytest.mark.parametrize("y", [v for b in BRANCHES for v in around(b)] + [1e-9, 1e-3, 0.7, 0.99])
def test_the_deviance_of_fair_signs_keeps_a_few_units_where_its_series_changes(y: float) -> None:
    exact = (1 + arb(y)) * (1 + arb(y)).log() + (1 - arb(y)) * (1 - arb(y)).log()
    for others in ([], [0.01], [0.9]):
        assert relative(_even_deviance(np.array([y, *others]))[0], exact) < 16.0 * UNIT


@pytest.mark.parametrize("k", [1, 2, 19, 20, 21, 999, 1000, 1001, 10**6, 10**12])
def test_stirlings_remainder_is_off_by_far_less_than_a_unit(k: int) -> None:
    exact = arb(k + 1).lgamma() - (k + HALF) * arb(k).log() + k - (2 * arb.pi()).log() / 2
    assert abs(float(arb(float(stirling_remainder(np.array([float(k)]))[0])) - exact)) < UNIT


def fair_tails(n: int, a: int) -> tuple[arb, arb]:
    """(Pr[Bin(n, 1/2) = a], Pr[Bin(n, 1/2) >= a] up to 1e-40 of it)."""
    mass = balls.binomial_mass(n, HALF, a)
    total, term = arb(0), mass
    for j in range(a, n + 1):
        total += term
        term = term * (n - j) / (j + 1)
        if term < total * arb(10) ** -40:
            break
    return mass, total


def tail_cases() -> list[tuple[int, int]]:
    rng = random.Random(1)
    sizes = [1, 2, 3, 23, 24, 25, 26, 51, 52, 53, 54, 1000, 10**5, 10**9, 10**12]
    found = []
    for n in sizes:
        steps = {0, n, n // 4, rng.randint(0, n), round(rng.uniform(0.0, 4.0) * math.sqrt(n))}
        found += [(n, min(n // 2 + 1 + step, n)) for step in steps]
    # From the middle of a vast crowd the exact sum takes too many terms.
    return [(n, a) for n, a in found if a == n or n <= 10**5 or a - n / 2 > n / 100]


@pytest.mark.parametrize("rule", [CLOSE, ROUGH])
def test_tails_of_fair_signs_are_as_close_as_claimed(rule: TailRule) -> None:
    for n, a in tail_cases():
        at = np.array([float(n)]), np.array([float(a)])
        mass, tail = fair_tails(n, a)
        log_mass, doubt = _log_half_pmf(*at)
        assert abs(float(arb(float(log_mass[0])) - mass.log())) <= doubt[0]
        assert relative(_half_tail_ratio(*at, rule)[0], tail / mass) <= rule.error


def excess(n: int, y: float, short: float) -> arb:
    """E[(Y - y)_+] for the mean Y of n fair signs; 1 - y as given."""
    total = n * balls.binomial_mass(n, HALF, n) * arb(short)
    for j in range(n // 2, n):
        gap = arb(2 * j - n) - n * arb(y)
        if gap > 0:
            total += gap * balls.binomial_mass(n, HALF, j)
    return total / n


def test_the_excess_of_fair_signs_is_within_the_claimed_error_in_every_way_it_is_computed() -> None:
    rng = random.Random(2)
    counts = np.array([1.0, 2.0, 3.0, 24.0, 25.0, 26.0, 60.0, 111.0])
    ys = [0.0, 1 / 3, 0.5, *(rng.random() for _ in range(4)), 1 - 1e-6, 1 - 1e-13]
    y = np.array(ys)[:, None]
    short = 1.0 - y
    ways = [
        mean_of_signs_excess(counts, y, short, CLOSE),
        mean_of_signs_excess(counts, y, short, ROUGH),
        signs_excess_table(counts, y, short),
    ]
    for i, j in np.ndindex(y.shape[0], counts.size):
        exact = excess(int(counts[j]), ys[i], float(short[i, 0]))
        for value, error, _, _ in ways:
            assert abs(float(arb(float(value[i, j])) - exact)) <= error[i, j] + 1e-300


def bucket_cases() -> Iterator[tuple[int, float, float, float]]:
    """(trials, rate, rest, resolution)."""
    rng = random.Random(3)
    for trials in (0, 1, 2, 7, 40, 500, 3000, 20_000):
        for rate in (1e-130, 1e-9, 0.01, 0.3, rng.random(), 1.0 - 1e-12):
            yield trials, rate, 1.0 - rate, 10.0 ** rng.uniform(-5.0, -0.5)
    for trials in (10**6, 10**9, 10**12):
        for mean in (3.0, 300.0, 3e4):
            yield trials, mean / trials, 1.0 - mean / trials, 10.0 ** rng.uniform(-5.0, -1.0)


def test_buckets_cover_every_value_and_enclose_their_probabilities() -> None:
    rng = random.Random(4)
    for trials, rate, rest, resolution in bucket_cases():
        buckets = binomial_buckets(trials, rate, rest, resolution)
        edges = [int(edge) for edge in buckets.edges]
        assert (edges[0], edges[-1]) == (0, trials + 1)
        assert sorted(set(edges)) == edges
        whole = dict(balls.window(trials, arb(rate), arb(10) ** -140))
        last = len(edges) - 2
        for i in {0, last, *(rng.randint(0, last) for _ in range(12))}:
            values = range(max(edges[i], min(whole)), min(edges[i + 1], max(whole) + 1))
            mass = sum((whole[c] for c in values), arb(0))
            # The window leaves out less than this.
            assert buckets.low[i] <= float(mass.upper()) + 1e-130
            assert buckets.high[i] >= float(mass.lower())


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
                run = math.exp(other) - math.exp(at)
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

            def exact(alpha: arb, curve=curve, n=n, epsilon0=epsilon0) -> arb:  # type: ignore[no-untyped-def]
                return curve(n, epsilon0, alpha)

            yield one, exact, tolerance
        k, gamma = rng.choice([2, 3, 16, 1000]), rng.choice([0.01, 0.3, 0.9])
        response = sdp.KaryRandomizedResponse(k=k, gamma=gamma)

        def strong(alpha: arb, n: int = n, k: int = k, gamma: float = gamma) -> arb:
            return balls.strong(n, k, gamma, alpha)

        yield sdp.Shuffled(response, n=n, analysis="strong"), strong, 1e-3


def test_random_rounds_are_covered_and_as_tight_as_asked() -> None:
    rng = random.Random(7)
    for mechanism, profile, tolerance in round_cases():

        def curve(epsilon: float, profile=profile) -> arb:  # type: ignore[no-untyped-def]
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
def test_two_rounds_before_the_strong_adversary_are_covered(
    n: int, k: int, epsilon0: float
) -> None:
    E = balls.exp(epsilon0)
    p = 1 / (E + k - 1)
    one = [((1 - k * p) * u, (1 - k * p) * v) for u, v in two_reports(n, 2 * p)] + [(k * p, k * p)]
    two = [(a * c, b * d) for a, b in one for c, d in one]
    twice = 2 * sdp.Shuffled(
        sdp.KaryRandomizedResponse(k=k, epsilon0=epsilon0), n=n, analysis="strong"
    )
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
            yield tuple(  # type: ignore[misc]
                weight * balls.binomial_mass(c, HALF, i) for i in (j - 1, j)
            )
