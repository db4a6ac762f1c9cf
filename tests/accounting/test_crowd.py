"""The crowd theorem (T16): by definition, over all crowds, and as it is computed."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, permutations, product, repeat
from random import Random
from typing import Any

import numpy as np
import pytest
from flint import acb, arb
from hypothesis import given, strategies as st

import shuffledp as sdp
from oracles import brute
from oracles.hockey import between, ratios
from shuffledp.accounting._analyses import profile_of
from shuffledp.accounting._curves import blanket, crowd, crowd_at_once
from shuffledp.accounting._curves.all_pairs import FiniteBlanketProfile
from shuffledp.accounting._curves.blanket import from_the_centre
from shuffledp.accounting._curves.crowd import CrowdProfile
from shuffledp.accounting._curves.crowd_family import Family, log_bennett, log_spread
from shuffledp.accounting._curves.crowd_inside import inside
from shuffledp.accounting._curves.crowd_laws import Laws, Taking
from shuffledp.accounting._curves.crowd_moments import Moments
from shuffledp.accounting._curves.crowd_near import Nearby
from shuffledp.accounting._curves.crowd_weights import Scales
from shuffledp.accounting._hints.crowds import CrowdHints
from shuffledp.facts import AmplificationLaw, Matrix, response_crowds

F = Fraction
SKEWED = ((F(1, 2), F(1, 4), F(1, 4)), (F(1, 8), F(3, 8), F(1, 2)), (F(3, 8), F(1, 2), F(1, 8)))
COIN = ((F(3, 4), F(1, 4)), (F(1, 4), F(3, 4)))


# Theorem 1, from the definition of the enlarged view


def positive_part(matrix: brute.Matrix, pair: tuple[int, int], rest: list[int], weight: dict, alpha: F) -> F:
    """E[((1/n') sum of l_z X)_+] over the reports of the remaining members, enumerated."""
    total = F(0)
    x, y = pair
    for reports in product(range(len(matrix[0])), repeat=len(rest)):
        mass, value = F(1), F(0)
        for z, report in zip(rest, reports, strict=True):
            mass *= matrix[z][report]
            value += weight[z] * (matrix[x][report] - alpha * matrix[y][report]) / matrix[z][report]
        total += mass * max(value, F(0)) / len(rest)
    return total


def theorem(matrix: brute.Matrix, pair: tuple[int, int], pool: list[int], rest: list[int], alpha: F) -> F:
    laws = {z: brute.shuffled_law(matrix, [*pool, z]) for z in set(rest)}
    mean: dict = defaultdict(F)
    for z, count in Counter(rest).items():
        for view, mass in laws[z].items():
            mean[view] += mass * count / len(rest)
    return sum(
        (
            mass * positive_part(matrix, pair, rest, {z: laws[z].get(view, F(0)) / mass for z in laws}, alpha)
            for view, mass in mean.items()
        ),
        F(0),
    )


def crowds(inputs: int, n: int) -> Iterator[tuple[list[int], list[int]]]:
    """Every crowd of n - 1 others, split into a pool and the rest in every way."""
    for size in range(n - 1):
        for pool in combinations_with_replacement(range(inputs), size):
            for rest in combinations_with_replacement(range(inputs), n - 1 - size):
                yield list(pool), list(rest)


@pytest.mark.parametrize(("matrix", "n"), [(COIN, 4), (SKEWED, 3)])
def test_the_enlarged_view_covers_every_crowd(matrix: brute.Matrix, n: int) -> None:
    checked = 0
    for pool, rest in crowds(len(matrix), n):
        for pair in permutations(range(len(matrix)), 2):
            views = [brute.shuffled_law(matrix, [x, *pool, *rest]) for x in pair]
            for alpha in (F(1, 2), F(1), F(5, 4), F(2)):
                truth = sum(
                    (max(mass - alpha * views[1].get(view, F(0)), F(0)) for view, mass in views[0].items()),
                    F(0),
                )
                assert truth <= theorem(matrix, pair, pool, rest, alpha)
                checked += 1
    assert checked > 100


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("matrix", "others"), [(COIN, 3), (SKEWED, 2)])
def test_a_report_of_any_input_or_of_the_blanket_s_law_in_any_pool(
    monkeypatch: pytest.MonkeyPatch, matrix: brute.Matrix, others: int, known: bool
) -> None:
    """Both ways, at many alpha, with the mass of the blanket known or not, closely or by moments; and the
    matrix's own curve."""
    least = [min(column) for column in zip(*matrix, strict=True)]
    mass = sum(least, F(0))
    rows = (*matrix, tuple(entry / mass for entry in least))
    local = finite(matrix).facts().epsilon0.upper
    stated = local, float(mass) if known else None, others + 1, CrowdHints()
    closely = from_the_centre(*stated)
    monkeypatch.setattr(blanket, "_MANY", 0.0)
    curves = [
        closely,
        from_the_centre(*stated),
        FiniteBlanketProfile(Matrix(np.array(matrix, float)), others + 1, centred=True),
    ]
    grid = np.linspace(0.0, 1.5, 16)
    bounds = [curve.upper(grid, 1e-3) for curve in curves]
    for pool in combinations_with_replacement(range(len(matrix)), others):
        centre = brute.shuffled_law(rows, [*pool, len(matrix)])
        for z in range(len(matrix)):
            law = brute.shuffled_law(rows, [*pool, z])
            for own, other in ((law, centre), (centre, law)):
                for place, epsilon in enumerate(grid):
                    alpha = F(math.exp(epsilon))
                    parts = (own.get(view, F(0)) - alpha * other.get(view, F(0)) for view in {**own, **other})
                    truth = sum((max(part, F(0)) for part in parts), F(0))
                    assert all(bound[place] >= truth * (1 - F(1, 10**12)) for bound in bounds)


# The curve, with pools so small that every dataset can be enumerated


def other_hints(monkeypatch: pytest.MonkeyPatch, size: int, tilt: float) -> None:
    """Pools of a given size and another tilt: any are valid."""
    chosen: Any = CrowdHints.tilt

    def other(*given: object, **how: object) -> tuple[float, float]:
        theta, guess = chosen(*given, **how)
        return theta * tilt, guess

    monkeypatch.setattr(CrowdHints, "pool_sizes", lambda *_: repeat(size))
    monkeypatch.setattr(CrowdHints, "tilt", other)
    tilts: Any = CrowdHints.tilts
    monkeypatch.setattr(CrowdHints, "tilts", lambda *given: tilt * tilts(*given))
    monkeypatch.setattr(crowd, "_CROWDED", 0)
    for room in (crowd, crowd_at_once):
        monkeypatch.setattr(room, "_LARGEST_SHARE", 1.0)
    monkeypatch.setattr(crowd, "_SMALL", 0)
    monkeypatch.setattr(crowd, "_HOPELESS", math.inf)
    crowd._at.cache_clear()


@pytest.mark.parametrize(("matrix", "n"), [(COIN, 12), (SKEWED, 7)])
@pytest.mark.parametrize(
    ("size", "tilt", "last"), [(3, 1.0, None), (1, 0.6, None), (2, 1.5, None), (3, 1.0, 2)]
)
def test_the_curve_covers_every_dataset(
    monkeypatch: pytest.MonkeyPatch, matrix: brute.Matrix, n: int, size: int, tilt: float, last: int | None
) -> None:
    """``last``: weights are cut to those of this corner."""
    other_hints(monkeypatch, size, tilt)
    if last is not None:
        monkeypatch.setattr(CrowdHints, "last_weight", lambda *_: last)
    randomizer = sdp.FiniteRandomizer([[float(entry) for entry in row] for row in matrix])
    mechanism = sdp.Shuffled(randomizer, n=n, analysis="crowd")
    truth = brute.shuffled_pairs(matrix, n)
    middles = [alpha for alpha in between([F(1), *ratios(truth)]) if alpha >= 1]
    useful = 0
    for alpha in middles[:: max(1, len(middles) // 12)]:
        bound = mechanism.round.profile.upper(np.array([math.log(alpha)]), 1e-3)[0]
        assert bound >= brute.worst(truth, alpha) * (1 - F(1, 10**12))
        useful += bound < 1.0
    assert useful >= (1 if tilt == 1.0 else 0)
    crowd._at.cache_clear()


def crowd_of(mechanism: sdp.Shuffled) -> CrowdProfile:
    best: Any = mechanism.round.profile
    return next(profile for profile in best.profiles if isinstance(profile, CrowdProfile))


@pytest.mark.parametrize("cap", [0.4, 1.0, 2.0])
@pytest.mark.parametrize("cohort", [None, 4])
def test_the_curve_covers_every_dataset_wherever_values_are_cut(
    monkeypatch: pytest.MonkeyPatch, cap: float, cohort: int | None
) -> None:
    other_hints(monkeypatch, 2, 1.0)
    n, truth = 7, brute.shuffled_pairs(SKEWED, 7)
    monkeypatch.setattr(crowd, "_STRAIGHT", 0.0)
    monkeypatch.setattr(crowd._Problem, "cap_from", lambda *_: cap)
    mechanism = sdp.Shuffled(finite(SKEWED), n=cohort or n, analysis="crowd")
    if cohort:
        mechanism, truth = mechanism.sampled_from(6), brute.cohort_pairs(SKEWED, 6, cohort)
    profile = crowd_of(mechanism)
    assert profile.family.cost(cap, profile.most) > 0.0
    assert_covers(mechanism, truth, cohort is not None and cap == 2.0)


def test_cuts_are_where_little_is_left() -> None:
    """For rare large values no other cap has a bound that is much less."""
    one = sdp.Shuffled(sdp.DiscreteGaussian(sigma=0.7, levels=8), n=10**4, analysis="crowd")
    profile = crowd_of(one)
    crowd._begun.cache_clear()
    problem, chosen = crowd._begun(profile, 0.06)
    assert chosen < profile.most / 100.0
    found = problem.with_pool(chosen, 1.0)[0]
    caps = [cap for cap in profile.family.caps(profile.most)[::3] if cap > 20.0]
    others = [problem.led(cap).with_pool(cap, 1.0)[0] for cap in caps]
    assert min(others) <= found <= 1.3 * min(others)
    assert found < 0.1 * others[0]  # where most is cut, that costs most
    assert found < 0.1 * others[-1]


def test_who_knows_a_lower_bound_is_told_so_or_the_same() -> None:
    one = sdp.Shuffled(sdp.DiscreteGaussian(sigma=0.7, levels=8), n=10**4, analysis="crowd")
    profile = crowd_of(one)
    epsilon = np.array([0.02, 0.04, 0.06, 0.08])
    upper = profile.upper(epsilon, 1e-3)
    for known in (2.0 * upper, 0.9 * upper):
        told = profile.both_below(epsilon, 1e-3, known)[0]
        assert ((told == upper) | (told >= known)).all()
        assert (told == upper).all() == (known[0] > upper[0])


def weighted_mean(chances: list[F], weights: list[list[F]], laws: list[list[tuple[F, F]]]) -> F:
    """The mean of the positive part of the mean of two values of X, each times its weight."""
    total = F(0)
    for chance, first, second in zip(chances, *weights, strict=True):
        for (x, p), (y, q) in product(*laws):
            total += chance * p * q * max((first * x + second * y) / 2, F(0))
    return total


def test_weights_may_be_cut_at_the_price_that_is_stated() -> None:
    """Sums of weights times X, and the same with weights cut, exactly (section 4)."""
    rng, told = Random(4), 0
    for _ in range(200):
        own, other, hidden = (random_law(rng, 3) for _ in range(3))
        if min(*own, *other, *hidden) == 0:
            continue
        alpha, last = F(rng.choice([10, 12, 15]), 10), F(rng.choice([9, 10, 12, 15]), 8)
        laws = [
            [((a - alpha * b) / c, c) for a, b, c in zip(own, other, row, strict=True)]
            for row in (hidden, own)
        ]
        chances, weights, excess = random_law(rng, 4), [], F(0)
        for _ in laws:
            some = [F(rng.choice([2, 7, 8, 9, 20])) for _ in chances]
            mean = sum((c * w for c, w in zip(chances, some, strict=True)), F(0))
            weights.append([w / mean for w in some])
            for side in ([w - last for w in weights[-1]], [1 - last * w for w in weights[-1]]):
                far = sum((c * max(w, F(0)) for c, w in zip(chances, side, strict=True)), F(0))
                excess = max(excess, far)
        cut = [[min(max(w, 1 / last), last) for w in some] for some in weights]
        apart = sum((max(a - b, F(0)) for a, b in zip(own, other, strict=True)), F(0))
        lost = excess * (apart + (apart + alpha - 1) / last)
        before, after = (weighted_mean(chances, some, laws) for some in (weights, cut))
        assert before <= after + lost
        told += before > after
    assert told > 20


# With a delta0: what is moved of a pool (section 8)


def random_law(rng: Random, size: int) -> list[F]:
    weights = [F(rng.choice([0, 1, 2, 5, 9])) for _ in range(size)]
    weights[rng.randrange(size)] += 1
    return [w / sum(weights) for w in weights]


def moved_a_little(rng: Random, law: list[F]) -> tuple[list[F], F]:
    """Another law, and the total variation between the two."""
    share, other = F(rng.choice([0, 1, 3]), 20), random_law(rng, len(law))
    found = [(1 - share) * a + share * b for a, b in zip(law, other, strict=True)]
    return found, sum((max(a - b, F(0)) for a, b in zip(law, found, strict=True)), F(0))


def test_weights_of_moved_reports_stand_for_the_true_ones_at_the_price_that_is_stated() -> None:
    """Laws of the pool (reference, hidden), and those that they are moved to: as the proof says, exactly."""
    rng, moves = Random(16), 0
    for _ in range(300):
        size, last = rng.choice([2, 4, 6]), F(rng.choice([5, 8, 12]), 4)
        clean = [F(rng.choice([1, 2, 5, 9])) for _ in range(size)]
        clean = [c / sum(clean) for c in clean]  # M: against it the clean law has a density
        hidden = random_law(rng, size)
        (reference, first), (law, second) = moved_a_little(rng, clean), moved_a_little(rng, hidden)
        if any(a > 0 and b == 0 for a, b in zip(law, reference, strict=True)):
            continue  # the reference is chosen so that all have densities against it
        tau = max(first, second)
        weight = [a / b for a, b in zip(hidden, clean, strict=True)]
        taken = put = unlike = F(0)
        for m, w, ref, true in zip(clean, weight, reference, law, strict=True):
            kept = min(m / ref, F(1)) if ref else F(0)
            for chance, f in ((kept, min(max(w, 1 / last), last)), (1 - kept, F(0))):
                density = true / ref if ref else F(0)
                taken += ref * chance * max(density - f, F(0))
                put += ref * chance * max(f - density, F(0))
            unlike += ref * (1 - kept)
        above = sum((m * max(w - last, F(0)) for m, w in zip(clean, weight, strict=True)), F(0))
        below = sum((m * max(1 / last - w, F(0)) for m, w in zip(clean, weight, strict=True)), F(0))
        assert taken <= (1 + 2 * last) * tau + above
        assert put <= (1 + last) * tau + below
        assert unlike <= tau
        moves += tau > 0
    assert moves > 100


LEAKY = ((F(1, 2), F(1, 2) - F(1, 2000), F(1, 2000)), (F(2, 5), F(3, 5), F(0)), (F(1, 2), F(1, 2), F(0)))


@pytest.mark.parametrize(("size", "tilt"), [(3, 1.0), (1, 0.6), (2, 1.5)])
@pytest.mark.parametrize("together", [False, True])
def test_pools_of_leaking_reports_cover_every_dataset(
    monkeypatch: pytest.MonkeyPatch, size: int, tilt: float, together: bool
) -> None:
    other_hints(monkeypatch, size, tilt)
    monkeypatch.setattr(crowd, "_FEW_TYPES", 10**6 if together else 0)
    local = math.log(1.5)
    delta0 = brute.worst(brute.shuffled_pairs(LEAKY, 1), F(math.exp(local)))
    assert delta0 > 0
    facts = sdp.LocalRandomizer(local, delta0=float(delta0) * (1 + 1e-12)).facts()
    profile = profile_of(facts, 9, "crowd")
    truth, useful = brute.shuffled_pairs(LEAKY, 9), 0
    for alpha in (F(1), F(51, 50), F(11, 10), F(5, 4), F(7, 5)):
        bound = profile.upper(np.array([math.log(alpha)]), 1e-3)[0]
        assert bound >= brute.worst(truth, alpha) * (1 - F(1, 10**12))
        useful += bound < 1.0
    assert useful >= (1 if tilt == 1.0 else 0)
    crowd._at.cache_clear()


@pytest.mark.parametrize(("matrix", "n"), [(COIN, 12), (SKEWED, 7)])
@pytest.mark.parametrize(("size", "tilt"), [(3, 1.0), (1, 0.6), (2, 1.5)])
def test_many_epsilons_at_once_cover_every_dataset(
    monkeypatch: pytest.MonkeyPatch, matrix: brute.Matrix, n: int, size: int, tilt: float
) -> None:
    other_hints(monkeypatch, size, tilt)
    rows = np.array(matrix, float)
    inputs = range(len(rows))
    laws = tuple(
        AmplificationLaw(*(tuple(part.tolist()) for part in (rows[x], rows[y], rows[z], rows[x] - rows[y])))
        for x, y, z in product(inputs, inputs, inputs)
        if x != y
    )
    local = finite(matrix).facts().epsilon0.upper
    curve = CrowdProfile(n, laws, local, common=float(rows.min(axis=0).sum()))
    truth = brute.shuffled_pairs(matrix, n)
    middles = [alpha for alpha in between([F(1), *ratios(truth)]) if alpha >= 1]
    some = middles[:: max(1, len(middles) // 12)]
    bounds = curve.upper(np.log(np.array([float(alpha) for alpha in some])), 1e-3)
    assert all(
        bound >= brute.worst(truth, alpha) * (1 - F(1, 10**12))
        for bound, alpha in zip(bounds, some, strict=True)
    )
    assert (bounds < 1.0).any()


@pytest.mark.parametrize(
    ("epsilon0", "n", "loose"), [(0.5, 1000, 1.05), (1.0, 10**4, 1.04), (4.0, 10**6, 1.03)]
)
def test_it_is_between_the_exact_binary_curve_and_a_little_more(
    epsilon0: float, n: int, loose: float
) -> None:
    facts = sdp.BinaryRandomizedResponse(epsilon0=epsilon0).facts()
    same = response_crowds(2, epsilon0)[0]
    curve = CrowdProfile(n, (same, same.reversed()), epsilon0, common=2.0 / (math.exp(epsilon0) + 1.0))
    exact = sdp.Shuffled(facts, n=n)
    at = exact.epsilon(delta=1e-6).upper
    found = curve.upper(np.array([0.0, 0.5, 1.0, 1.0 * loose]) * at, 1e-3)
    lower = exact.lower_delta(epsilon=np.array([0.0, 0.5, 1.0]) * at)
    assert np.all(found[:3] >= lower)
    assert found[3] <= 1e-6


@pytest.mark.parametrize(("tau", "users"), [(0.05, 300.0), (0.3, 40.0)])
def test_the_integral_is_above_its_value_in_ball_arithmetic(tau: float, users: float) -> None:
    law = laws_of([response_crowds(3, 1.0)[0]], math.expm1(0.1))[0]
    values = [(arb(float(x)), arb(float(p))) for x, p in zip(law.x, law.p, strict=True)]

    def height(w: acb, _: bool) -> acb:
        # |phi|^2 as an analytic function of w: a sum of cosines.
        total = acb(0)
        for x, p in values:
            for y, q in values:
                total += p * q * (arb(tau) * (x + y)).exp() * (w * (x - y)).cos()
        return total ** int(users / 2) / (arb(tau) ** 2 + w * w)

    exact = 2 * acb.integral(height, acb(0), acb(60)).real / (2 * arb.pi())
    found = math.exp(float(law.log_integrals(np.array([tau]), Taking(users, 1.0, 0.0))[0]))
    assert float(exact) <= found <= 1.06 * float(exact)


def laws_of(
    laws: list[AmplificationLaw], growth: float, fraction: float = 1.0, cap: float = math.inf
) -> Laws:
    return Family.of_laws(laws).pick(np.arange(len(laws)), growth, fraction, cap)


@pytest.mark.parametrize("rate", [1.0, 0.3])
@pytest.mark.parametrize(("tau", "users"), [(0.05, 300.0), (0.3, 40.0), (0.02, 20_000.0)])
def test_integrals_of_one_and_of_many_laws_are_above_a_fine_sum(
    tau: float, users: float, rate: float
) -> None:
    growth = math.expm1(0.1)
    many = laws_of([*response_crowds(3, 1.0), *response_crowds(2, 1.5)], growth)
    taking = Taking(users, rate, growth)
    rough = np.exp(many.log_integrals(np.array([tau]), taking)[:, 0])
    moments = Moments.of(many, growth)
    crude = np.exp(moments.log_chernoff(np.array([tau]), taking)[:, 0])
    normal = np.exp(moments.log_normal(np.array([tau]), taking)[:, 0])
    for place in range(3):
        law = many[place]
        w = np.arange(-40.0, 40.0, 2e-4)
        phi = np.abs(np.exp(np.outer(tau + 1j * w, law.x)) @ law.p)
        mixed = rate * phi + (1.0 - rate) * math.exp(-tau * growth)
        fine = float((mixed**users / (tau**2 + w**2)).sum() * 2e-4 / (2.0 * math.pi))
        close = math.exp(float(law.log_integrals(np.array([tau]), taking)[0]))
        assert fine * (1.0 - 1e-9) <= close <= 1.1 * fine
        assert fine * (1.0 - 1e-9) <= rough[place] <= (1.4 if users > 1000 else 10.0) * fine
        assert fine * (1.0 - 1e-9) <= crude[place] <= 10.0 * fine
        if rate == 1.0:
            assert fine * (1.0 - 1e-9) <= normal[place] <= (1.4 if users > 1000 else 10.0) * fine


@pytest.mark.parametrize("rate", [1.0, 0.3])
@pytest.mark.parametrize("users", [300.0, 20_000.0])
@pytest.mark.parametrize("far", [1.0, 3.0])
def test_cores_leave_no_less_than_a_fine_sum_and_little_more(far: float, users: float, rate: float) -> None:
    """Of laws with few values far out, which raise k long before they add to v."""
    random, growth, tau = np.random.default_rng(31), 0.1, np.array([0.02, 0.1])
    clone = np.append(np.full(24, 1.0 / 24.0), np.full(3, 0.2 * math.exp(-2.0 * far)))
    clone /= clone.sum()
    own, other = (clone * np.exp(0.3 * random.normal(size=(4, 27))) for _ in range(2))
    own[:, 24:] *= math.exp(far) * np.array([1.0, 0.5, 0.1])
    own, other = (part / part.sum(axis=1, keepdims=True) for part in (own, other))
    laws, taking = (
        Laws.of(own - other, other, clone + 0.0 * own, growth, 1.0, math.inf),
        Taking(users, rate, growth),
    )
    found = np.exp(laws.log_integrals(tau, taking))
    for place, at in np.ndindex(found.shape):
        w = np.arange(-40.0, 40.0, 1e-3)
        phi = np.abs(np.exp(np.outer(tau[at] + 1j * w, laws.x[place])) @ clone)
        mixed = rate * phi + (1.0 - rate) * math.exp(-tau[at] * growth)
        fine = float((mixed**users / (tau[at] ** 2 + w**2)).sum() * 1e-3 / (2.0 * math.pi))
        assert fine * (1.0 - 1e-9) <= found[place, at] <= (1.2 if users > 1000 else 2.0) * fine


@given(
    st.floats(0.01, 10.0),
    st.lists(st.tuples(st.floats(0.1, 1e4), st.floats(1e-4, 1e3)), min_size=1, max_size=4),
)
def test_what_cores_leave_is_above_the_integral_of_the_least_of_their_bounds(
    tau: float, cores: list[tuple[float, float]]
) -> None:
    """By a sum over cells: the least that any core says of phi^n', wherever 1 - k w^2 is at least 1/2."""
    variance, k = np.array(cores).T
    whole = np.ones(1)
    found = float(inside(np.array([tau]), variance[None], k[None], whole, whole)[0])
    w = np.geomspace(1e-6, 1e6, 200_001)
    bend = k[:, None] * w**2
    power = np.exp(np.where(bend <= 0.5, -0.5 * variance[:, None] * w**2 * (1.0 - bend), 0.0)).min(axis=0)
    # Largest at the nearer end of a cell, as far as 1/(tau^2 + w^2) goes; powers jump up only.
    least = float((np.diff(w) * np.minimum(power[1:], power[:-1]) / (tau**2 + w[1:] ** 2)).sum())
    assert 2.0 * least * (1.0 - 1e-6) <= found <= math.pi / tau * (1.0 + 1e-12)


@pytest.mark.parametrize("cap", [math.inf, 3.0, 0.5])
@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0])
def test_moments_tell_no_less_than_exponentials(scale: float, cap: float) -> None:
    """Of random laws, some with values far out on either side: phi, the variance under the tilt, and k."""
    random = np.random.default_rng(29)
    clone = random.dirichlet(np.full(7, 0.3), 40) + 1e-9
    clone /= clone.sum(axis=1, keepdims=True)
    own, other = (clone * np.exp(random.normal(0.0, scale, clone.shape)) for _ in range(2))
    own, other = (part / part.sum(axis=1, keepdims=True) for part in (own, other))
    growth = 0.1
    laws = Laws.of(own - other, other, clone, growth, 1.0, cap)
    moments = Moments.of(laws, growth)
    for tau in (0.01, 0.1, 0.5, 2.0):
        with np.errstate(all="ignore"):
            reach = np.array([tau]) * moments.top
            change, _ = moments._closely(np.array([tau]), reach)
            variance, k = moments._spread(np.array([tau]), reach, 1.0 + change)
        far = laws.x + growth
        tilted = laws.p * np.exp(np.minimum(tau * far, 600.0))
        phi = tilted.sum(axis=1, keepdims=True)
        mean = (tilted * far).sum(axis=1, keepdims=True) / phi
        second, fourth = ((tilted * (far - mean) ** j).sum(axis=1, keepdims=True) / phi for j in (2, 4))
        assert (phi <= (1.0 + change) * (1.0 + 1e-12)).all()
        assert (variance <= second * (1.0 + 1e-9) + 1e-15).all()
        assert (k >= (fourth + 3.0 * second**2) / (12.0 * second) * (1.0 - 1e-9)).all()
        if tau == 0.01 and scale < 1.0:
            assert (variance >= 0.99 * second).all()


# Random cohorts: no pool


def cohort_theorem(matrix: brute.Matrix, pair: tuple[int, int], others: list[int], cohort: int, a: F) -> F:
    """The mean over all sets of ``cohort`` others of E[((1/n) sum (g X + (1 - g)(1 - a)))_+]."""
    share = F(cohort, len(others) + 1)
    sets = list(combinations(others, cohort))
    x, y = pair
    total = F(0)
    for rest in sets:
        for reports in product(range(len(matrix[0])), repeat=cohort):
            mass, value = F(1), F(0)
            for z, report in zip(rest, reports, strict=True):
                mass *= matrix[z][report]
                told = (matrix[x][report] - a * matrix[y][report]) / matrix[z][report]
                value += share * told + (1 - share) * (1 - a)
            total += mass * max(value, F(0)) / cohort
    return total / len(sets)


@pytest.mark.parametrize(
    ("matrix", "population", "cohort"), [(COIN, 4, 2), (COIN, 5, 4), (SKEWED, 3, 1), (SKEWED, 4, 2)]
)
def test_the_theorem_of_cohorts_covers_every_crowd(
    matrix: brute.Matrix, population: int, cohort: int
) -> None:
    for others in combinations_with_replacement(range(len(matrix)), population - 1):
        for pair in permutations(range(len(matrix)), 2):
            views = [brute.cohort_law(matrix, (x, *others), cohort) for x in pair]
            for alpha in (F(1, 2), F(1), F(5, 4), F(2)):
                parts = (mass - alpha * views[1].get(view, F(0)) for view, mass in views[0].items())
                truth = sum((max(part, F(0)) for part in parts), F(0))
                assert truth <= cohort_theorem(matrix, pair, list(others), cohort, alpha)


NOISE: brute.Matrix = tuple(
    tuple(F(float(entry)) for entry in row) for row in sdp.DiscreteGaussian(sigma=0.5, levels=2).matrix
)


@pytest.mark.parametrize(("matrix", "population", "cohort"), [(COIN, 9, 7), (SKEWED, 6, 4), (NOISE, 3, 2)])
@pytest.mark.parametrize("tilt", [1.0, 0.6, 1.5])
def test_the_curve_of_cohorts_covers_every_population(
    monkeypatch: pytest.MonkeyPatch, matrix: brute.Matrix, population: int, cohort: int, tilt: float
) -> None:
    other_hints(monkeypatch, 1, tilt)
    mechanism = sdp.Shuffled(finite(matrix), n=cohort, analysis="crowd").sampled_from(population)
    assert_covers(mechanism, brute.cohort_pairs(matrix, population, cohort), matrix is not NOISE)


@pytest.mark.parametrize(("matrix", "people", "rate"), [(COIN, 7, F(1, 2)), (SKEWED, 4, F(1, 3))])
def test_the_curve_of_people_who_flip_coins_covers_every_population(
    matrix: brute.Matrix, people: int, rate: F
) -> None:
    mechanism = sdp.Shuffled(finite(matrix), n=people, analysis="crowd")
    truth = brute.pairs_of(matrix, people, lambda data: brute.polled_law(matrix, data, rate))
    assert_covers(mechanism.sampled_from(people, rate=float(rate)), truth, True)


def finite(matrix: brute.Matrix) -> sdp.FiniteRandomizer:
    return sdp.FiniteRandomizer([[float(entry) for entry in row] for row in matrix])


def assert_covers(mechanism: sdp.Shuffled, truth: brute.Pairs, useful: bool) -> None:
    middles = [alpha for alpha in between([F(1), *ratios(truth)]) if alpha >= 1]
    bounds = []
    for alpha in middles[:: max(1, len(middles) // 12)]:
        bounds.append(float(mechanism.round.profile.upper(np.array([math.log(alpha)]), 1e-3)[0]))
        assert bounds[-1] >= brute.worst(truth, alpha) * (1 - F(1, 10**12))
    assert not useful or min(bounds) < 0.7
    crowd._at.cache_clear()


@pytest.mark.parametrize("fraction", [1.0, 0.25])
@pytest.mark.parametrize("cap", [1.25, 3.0, math.inf])
@pytest.mark.parametrize("growth", [0.0, 2.0**-10, 0.0625, 0.5])
def test_moments_at_alpha_one_tell_of_those_nearby(growth: float, cap: float, fraction: float) -> None:
    """In rationals, of triples of rows whose entries are whole numbers over a power of two."""
    random, size = Random(7), 6
    rows = []
    for _ in range(5):
        parts = [random.choice([1, 3, 40, 200]) for _ in range(size)]
        rows.append([*parts[:-1], 2048 - sum(parts[:-1])])
    family = Family.of_table(Matrix(np.array(rows) / 2048.0))
    some = np.array(Random(8).sample(range(family.seconds.flat.size), 40), np.intp)
    a, share = F(growth) + 1, F(fraction)
    most = share * F(cap) if math.isfinite(cap) else F(10**6)
    exact, second, variance, cut = [], [], [], F(0)
    for x, y, z in zip(*(place[some].tolist() for place in family.places), strict=True):
        masses, triples = [F(part, 2048) for part in rows[z]], zip(rows[x], rows[y], rows[z], strict=True)
        told = [(share * F(p - q, r), share * F(q, r) + 1 - share) for p, q, r in triples]
        whole = [gap - (a - 1) * ratio for gap, ratio in told]
        values = [min(value, most) for value in whole]

        def mean(of: list[F], masses: list[F] = masses) -> F:
            return sum((m * v for m, v in zip(masses, of, strict=True)), F(0))

        second.append(mean([value**2 for value in whole]))
        variance.append(mean([value**2 for value in values]) - mean(values) ** 2)
        cut = max(cut, mean([max(gap - most, F(0)) for gap, _ in told]))
        exact.append([mean([(value + a - 1) ** j for value in values]) for j in range(1, 7)])
    given = np.nextafter(np.array(second, float), 1e9), np.nextafter(np.array(variance, float), 0.0)
    found = Nearby(family, fraction).at(
        some, growth, float(most), *given, float(np.nextafter(float(cut), 9.0))
    )
    for place, powers in enumerate(exact):
        for j, power in enumerate(powers):
            assert F(float(found.low[j, place, 0])) <= power <= F(float(found.high[j, place, 0]))
    if growth == 0.0 and math.isinf(cap):
        for j in (2, 3, 4):  # third to fifth: nothing has moved
            assert np.all(found.high[j] - found.low[j] <= 1e-9 * (1.0 + found.high[5]))


@pytest.mark.parametrize("n", [300, 10**5])
@pytest.mark.parametrize("levels", [0, 5, 20])
def test_no_triple_of_rows_is_above_the_bound(monkeypatch: pytest.MonkeyPatch, levels: int, n: int) -> None:
    """Random triples one by one, at the same tilt; most of them are settled by second moments alone."""
    rng = np.random.default_rng(7)
    rows = rng.dirichlet(np.full(6, 5.0), 6)
    if levels:
        rows = sdp.DiscreteLaplace(epsilon0=1.0, levels=levels).matrix
    local = Matrix(rows).epsilon0

    def curve(laws: tuple[AmplificationLaw, ...], matrix: Matrix | None) -> CrowdProfile:
        return CrowdProfile(n, laws, local, matrix, fraction=0.1)

    chosen: Any = CrowdHints.tilt
    everything = curve((), Matrix(rows))
    at = 4.0 * everything.hints.scale
    kept: list[tuple[float, float]] = []
    monkeypatch.setattr(CrowdHints, "tilt", lambda *given, **how: kept[0] if kept else chosen(*given, **how))
    crowd._at.cache_clear()
    settings: list[Any] = []
    inner: Any = crowd._Problem._search

    def watched(self: Any, taking: Any, theta: float, guess: float, *rest: Any) -> Any:
        settings.append((theta, guess))
        return inner(self, taking, theta, guess, *rest)

    monkeypatch.setattr(crowd._Problem, "_search", watched)
    most = everything.upper(np.array([at]), 1e-3)[0]
    assert most < 1.0
    kept.append(settings[0])
    for _ in range(60):
        x, y, z = rng.permutation(len(rows))[:3] if rng.random() < 0.8 else (0, len(rows) - 1, 0)
        law = AmplificationLaw(*(tuple(map(float, rows[place])) for place in (x, y, z)))
        alone = curve((law,), None).upper(np.array([at]), 1e-3)[0]
        assert alone <= 1.01 * most  # both are above the integral, by their own few percent
    crowd._at.cache_clear()


@pytest.mark.parametrize("growth", [0.0, 0.2])
@pytest.mark.parametrize("fraction", [1.0, 0.3])
def test_second_moments_of_all_triples(growth: float, fraction: float) -> None:
    rows = np.random.default_rng(5).dirichlet(np.full(4, 3.0), 5)
    family = Family.of_table(Matrix(rows))
    rows = Matrix(rows).rows
    for rate in (1.0, 0.5):
        found, rest = family.seconds.at(Taking(100.0, rate, growth), fraction)
        assert rest == 0.0
        for bound, x, y, z in zip(found, *family.places, strict=True):
            told = [F(float(part)) for part in (growth, fraction, rate)]
            own, other, clone = ([F(float(entry)) for entry in rows[place]] for place in (x, y, z))
            values = [
                told[1] * (u - (1 + told[0]) * v) / c - (1 - told[1]) * told[0]
                for u, v, c in zip(own, other, clone, strict=True)
            ]
            exact = told[2] * sum(c * value**2 for c, value in zip(clone, values, strict=True))
            exact += (1 - told[2]) * told[0] ** 2
            assert exact * (1 - F(1, 10**9)) <= bound <= exact * (1 + F(1, 10**6))
            if rate == 1.0:
                mean = sum(c * value for c, value in zip(clone, values, strict=True))
                least = float(family.seconds.variance(np.array([bound]), growth, fraction)[0])
                assert (exact - mean**2) * (1 - F(1, 10**6)) <= least <= exact - mean**2


@pytest.mark.parametrize("epsilon0", [1e-6, 1.0])
def test_second_moments_of_mirror_images_are_within_the_doubt(epsilon0: float) -> None:
    """Of a matrix whose mirror image differs by some units, also where its rows hardly differ."""
    rows = sdp.DiscreteLaplace(epsilon0=epsilon0, levels=3).matrix
    rng = np.random.default_rng(3)
    rows = Matrix(rows * (1.0 + rng.choice([-3.0, 0.0, 3.0], rows.shape) * 2.0**-53)).rows
    family, last = Family.of_table(Matrix(rows)), len(rows) - 1
    found, _ = family.seconds.at(Taking(100.0, 1.0, 0.1), 1.0)
    assert 2 * found.size <= len(rows) ** 3  # one of two was left out
    least = family.seconds.variance(found, 0.1, 1.0)
    growth = F(0.1)
    for bound, low, *places in zip(found, least, *family.places, strict=True):
        own, other, clone = ([F(float(entry)) for entry in rows[last - place]] for place in places)
        total = zip(own, other, clone, strict=True)
        # In units of the law's own mass: sums of floats are one up to rounding.
        spread = sum((u - v - growth * (v - c)) ** 2 / c for u, v, c in total)
        assert float(low) <= spread <= float(bound)


@pytest.mark.parametrize(("n", "cap"), [(300, 9.0), (10**5, 9.0), (10**6, 2.2)])
@pytest.mark.parametrize("growth", [0.0, 0.01])
@pytest.mark.parametrize("fraction", [1.0, 0.3])
def test_laws_of_some_second_moment_are_below_what_is_said_of_all(
    n: int, cap: float, growth: float, fraction: float
) -> None:
    """Of every triple the integral at one tilt, as a fine sum."""
    rare = np.array([[0.001], [0.004], [0.001], [0.002]])
    most = np.random.default_rng(11).dirichlet(np.full(5, 20.0), 4)
    matrix = Matrix(np.concatenate([(1.0 - rare) * most, rare], axis=1))
    curve = CrowdProfile(n, (), matrix.epsilon0, matrix, fraction=fraction)
    taking, cap = Taking(float(n), 1.0, growth), fraction * min(cap, curve.most)
    seconds, _ = curve.family.seconds.at(taking, fraction)
    theta = 3.0 / math.sqrt(n * float(seconds.max()))
    scales = Scales(np.array([0.8, 1.0, 1.25]), 1, np.array([1.0, 1.0]))
    search = crowd._Search(curve, taking, theta, scales, seconds, cap, 0)
    tau, laws = scales.weight * theta, curve.family.pick(np.arange(seconds.size), growth, fraction, cap)
    spread = log_spread(seconds, search._variance(seconds), search._reach, tau, taking.users)
    found = log_bennett(seconds, tau, taking, search.ends) + spread
    assert n < 1000 or spread.min() < -0.3
    assert (float(laws.x.max()) == cap) == (n == 10**6)  # cut
    w = np.linspace(0.0, 40.0 / math.sqrt(n * float(seconds.min())), 2001)
    for place in range(seconds.size):
        law = laws[place]
        assert float(np.abs(law.x + growth).max()) <= search._reach
        for weight, bound in zip(tau.tolist(), found[place].tolist(), strict=True):
            phi = np.abs(np.exp(np.outer(weight + 1j * w, law.x)) @ law.p)
            heights = phi**n / (weight**2 + w**2)
            fine = float((heights.sum() - 0.5 * heights[0]) * 2.0 * w[1] / (2.0 * math.pi))
            assert fine <= math.exp(bound)


# Families


@pytest.mark.parametrize(
    ("randomizer", "width"),
    [
        (sdp.SymmetricUnaryEncoding(k=16, epsilon0=1.0), 1.03),
        (sdp.OptimisedUnaryEncoding(k=16, epsilon0=1.0), 1.03),
        (sdp.SubsetSelection(k=16, epsilon0=1.0), 1.03),
        (sdp.L1Randomizer(dimension=100, epsilon0=1.0), 1.03),
        (sdp.LInfinityRandomizer(dimension=7, epsilon0=1.0), 1.03),
        (sdp.FiniteRandomizer([[float(entry) for entry in row] for row in SKEWED]), 1.05),
        (sdp.OptimisedLocalHashing(k=16, epsilon0=1.0), 1.003),
        (sdp.DiscreteLaplace(epsilon0=1.0, levels=16), 1.03),
        (sdp.DiscreteGaussian(sigma=2.0, levels=8), 1.03),
    ],
)
def test_families_are_enclosed_closely(randomizer: object, width: float) -> None:
    answer = sdp.Shuffled(randomizer, n=10**4).epsilon(delta=1e-6)
    assert answer.upper <= width * answer.lower


@pytest.mark.parametrize("poisson", [False, True])
@pytest.mark.parametrize(
    "randomizer",
    [
        sdp.BinaryRandomizedResponse(epsilon0=1.0),
        sdp.SymmetricUnaryEncoding(k=16, epsilon0=1.0),
        sdp.L1Randomizer(dimension=100, epsilon0=2.0),
        sdp.DiscreteLaplace(epsilon0=2.0, levels=16),
    ],
)
def test_cohorts_are_enclosed_closely(randomizer: object, poisson: bool) -> None:
    answer = sdp.Shuffled(randomizer, n=1000).sampled_from(10**4, poisson=poisson).epsilon(delta=1e-6)
    assert answer.upper <= 1.03 * answer.lower


@pytest.mark.parametrize(
    "randomizer",
    [sdp.SymmetricUnaryEncoding(k=3, epsilon0=1.0), sdp.SubsetSelection(k=4, epsilon0=1.0, size=2)],
)
def test_the_stated_crowds_are_those_of_all_triples(randomizer: sdp.SymmetricUnaryEncoding) -> None:
    """X of every three categories, from the probabilities of whole reports."""
    known = {law_of_x(zip(law.own, law.other, law.clone, strict=True)) for law in stated(randomizer)}
    rows = reports(randomizer)
    for x, y in permutations(range(randomizer.k), 2):
        for z in range(randomizer.k):
            assert law_of_x(zip(rows[x], rows[y], rows[z], strict=True)) in known


def stated(randomizer: object) -> list:
    laws = sdp.Shuffled(randomizer, n=10).facts.crowds
    return [law for given in laws for law in (given, given.reversed())]


def law_of_x(types: Any) -> tuple:
    """The law of (own/clone, other/clone), rounded: what X is made of."""
    seen: dict = defaultdict(float)
    for own, other, clone in types:
        if clone > 0.0:
            seen[round(own / clone, 6), round(other / clone, 6)] += clone
    return tuple(sorted((*key, round(mass, 6)) for key, mass in seen.items()))


def reports(randomizer: Any) -> list[list[float]]:
    """Probabilities of all sets of categories, for every category."""
    k = randomizer.k
    sets = list(product((0, 1), repeat=k))
    if isinstance(randomizer, sdp.SubsetSelection):
        p = randomizer.support_probability[0]
        size = randomizer.size
        inside, outside = math.comb(k - 1, size - 1), math.comb(k - 1, size)
        return [
            [(p / inside if s[x] else (1 - p) / outside) if sum(s) == size else 0.0 for s in sets]
            for x in range(k)
        ]
    p, q = randomizer.support_probability
    chance = [[(p if x == y else q) for y in range(k)] for x in range(k)]
    return [
        [math.prod(c if bit else 1 - c for c, bit in zip(chance[x], s, strict=True)) for s in sets]
        for x in range(k)
    ]


def test_leaked_coins_are_not_for_the_crowd_theorem() -> None:
    unary = sdp.SymmetricUnaryEncoding(k=16, epsilon0=1.0)
    answers = [
        sdp.Shuffled(unary, n=10**4, analysis=name).upper_epsilon(delta=1e-6)
        for name in ("best", "best-leaked", "blanket")
    ]
    assert answers[0] < 0.9 * answers[1]
    assert answers[1] == pytest.approx(answers[2], rel=1e-3)


@pytest.mark.parametrize("rounds", [1, 3])
def test_certificates_are_made_of_what_can_be_verified(rounds: int) -> None:
    unary = sdp.SymmetricUnaryEncoding(k=4, epsilon0=1.0)
    best, leaked = (rounds * sdp.Shuffled(unary, n=10**4, analysis=name) for name in ("best", "best-leaked"))
    wide = rounds * sdp.Shuffled(sdp.DiscreteLaplace(levels=16, epsilon0=1.0), n=10**4)
    for mechanism in (best, leaked, wide):
        at = mechanism.upper_epsilon(delta=1e-6)
        assert mechanism.certificate(epsilon=at, delta=1e-6).epsilon == at


def test_curves_of_other_pools_are_other_curves() -> None:
    """What is remembered of one randomizer is not said of another that has the same laws of X only."""
    unknown = sdp.LocalRandomizer(epsilon0=1.0).facts()
    known = replace(unknown, common=math.exp(-1.0))
    first = sdp.Shuffled(known, n=3000, analysis="crowd").upper_delta(epsilon=0.05)
    second = sdp.Shuffled(unknown, n=3000, analysis="crowd").upper_delta(epsilon=0.05)
    assert second > first * (1.0 + 1e-6)


def test_rounds_compose() -> None:
    answer = (20 * sdp.Shuffled(sdp.OptimisedUnaryEncoding(k=16, epsilon0=1.0), n=10**5)).epsilon(delta=1e-6)
    assert answer.upper <= 1.04 * answer.lower


@pytest.mark.parametrize("E", [F(3, 2), F(2), F(20)])
def test_the_extreme_laws_on_the_hexagon_are_the_five_that_are_stated(E: F) -> None:
    """Of the ratios (R_x/R_z, R_x'/R_z), of mean (1, 1): supports are sets of corners around that point."""
    corners = [(1 / E, 1 / E), (F(1), 1 / E), (E, F(1)), (E, E), (F(1), E), (1 / E, F(1))]
    extreme = set()
    for a, b, c in combinations(corners, 3):
        area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
        second = ((1 - a[0]) * (c[1] - a[1]) - (1 - a[1]) * (c[0] - a[0])) / area
        third = ((b[0] - a[0]) * (1 - a[1]) - (b[1] - a[1]) * (1 - a[0])) / area
        masses = (1 - second - third, second, third)
        if min(masses) >= 0:
            rows = [(*corner, mass) for corner, mass in zip((a, b, c), masses, strict=True) if mass]
            extreme.add(tuple(sorted(tuple(round(float(part), 6) for part in row) for row in rows)))
    laws = stated(sdp.LocalRandomizer(math.log(E)))
    known = {law_of_x(zip(law.own, law.other, law.clone, strict=True)) for law in laws}
    assert known == extreme
    assert len(extreme) == 5


@pytest.mark.parametrize("population", [None, 5])
def test_the_five_laws_cover_random_private_randomizers(population: int | None) -> None:
    for matrix in brute.random_matrices(6, seed=4):
        finite_matrix = finite(matrix)
        mechanism = sdp.Shuffled(sdp.LocalRandomizer(finite_matrix.epsilon0), n=4, analysis="crowd")
        truth = brute.shuffled_pairs(matrix, 4)
        if population is not None:
            mechanism, truth = mechanism.sampled_from(population), brute.cohort_pairs(matrix, population, 4)
        assert_covers(mechanism, truth, False)
