"""Laws that hold for all parameters, checked on wide random ones (T4).

Upper ends are exact only up to the tolerance (relative, in epsilon), so that a law about exact
values is checked with that much slack; the laws that tie lower ends to upper ends have none.
"""

from collections.abc import Callable
from itertools import pairwise
from math import ceil, exp, log
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings, strategies as st

import shuffledp as sdp
from shuffledp.accounting import calibration
from shuffledp.accounting._hints.inverse import Path

TOLERANCE = 1e-3
SLACK = 1 + 2 * TOLERANCE

wide = settings(
    derandomize=True,
    deadline=None,
    max_examples=12,
    phases=[Phase.explicit, Phase.generate],  # an example may take a second: do not shrink it
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
few = settings(wide, max_examples=3)


def logarithmic(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(log(low), log(high)).map(exp)


epsilon0s = logarithmic(0.02, 8.0)
sizes = st.one_of(st.integers(1, 40), logarithmic(40, 1e10).map(round))
medium_sizes = logarithmic(300, 1e9).map(round)
deltas = logarithmic(1e-30, 0.5)
ks = st.one_of(st.integers(2, 6), logarithmic(6, 1000).map(round))
rounds_ = logarithmic(1, 1e5).map(round)
factors = st.floats(1.05, 20.0)


@st.composite
def randomizers(draw: st.DrawFn) -> Any:
    epsilon0 = draw(epsilon0s)
    kind = draw(st.sampled_from(["any", "known variation", "k-ary", "binary", "matrix"]))
    if kind == "any":
        return sdp.LocalRandomizer(epsilon0=epsilon0)
    if kind == "known variation":
        share = draw(st.floats(0.05, 1.0))
        return sdp.LocalRandomizer(epsilon0=epsilon0, total_variation=share * float(np.tanh(epsilon0 / 2)))
    if kind == "k-ary":
        return sdp.KaryRandomizedResponse(k=draw(ks), epsilon0=epsilon0)
    if kind == "binary":
        return sdp.BinaryRandomizedResponse(epsilon0=epsilon0)
    weights = st.lists(st.integers(1, 30), min_size=3, max_size=3)
    matrix = np.array([draw(weights), draw(weights)], dtype=float)
    return sdp.FiniteRandomizer(matrix / matrix.sum(axis=1, keepdims=True))


def same(first: sdp.Bound, second: sdp.Bound) -> bool:
    return first.lower == pytest.approx(second.lower, rel=1e-9, abs=1e-15) and (
        first.upper == pytest.approx(second.upper, rel=1e-9, abs=1e-15)
    )


# Every answer


@wide
@given(randomizers(), sizes, deltas)
def test_an_epsilon_is_ordered_and_never_above_the_local_one(randomizer: Any, n: int, delta: float) -> None:
    bound = sdp.Shuffled(randomizer, n=n).epsilon(delta=delta)
    assert 0 <= bound.lower <= bound.upper <= randomizer.epsilon0 * (1 + 1e-12)
    assert float(bound) == bound.upper


@wide
@given(randomizers(), sizes, st.floats(0.0, 10.0))
def test_a_delta_is_ordered_and_a_probability(randomizer: Any, n: int, epsilon: float) -> None:
    bound = sdp.Shuffled(randomizer, n=n).delta(epsilon=epsilon)
    assert 0 <= bound.lower <= bound.upper <= 1


@few
@given(randomizers(), medium_sizes, rounds_, deltas)
def test_an_epsilon_of_rounds_is_ordered_and_never_above_the_sum(
    randomizer: Any, n: int, rounds: int, delta: float
) -> None:
    bound = (rounds * sdp.Shuffled(randomizer, n=n)).epsilon(delta=delta)
    assert 0 <= bound.lower <= bound.upper <= rounds * randomizer.epsilon0 * (1 + 1e-9)


# Epsilon and delta


@wide
@given(randomizers(), sizes, deltas)
def test_epsilon_and_delta_invert_each_other(randomizer: Any, n: int, delta: float) -> None:
    mechanism = sdp.Shuffled(randomizer, n=n)
    bound = mechanism.epsilon(delta=delta)
    slightly_above = bound.upper * SLACK + 1e-12
    assert mechanism.delta(epsilon=slightly_above).lower <= delta * (1 + 1e-9)
    assert mechanism.delta(epsilon=slightly_above).upper <= delta * (1 + 1e-6)
    if bound.lower > 0:
        assert mechanism.delta(epsilon=bound.lower * (1 - 1e-9)).upper >= delta * (1 - 1e-9)


@wide
@given(randomizers(), sizes, deltas, factors)
def test_a_smaller_delta_needs_a_larger_epsilon(randomizer: Any, n: int, delta: float, factor: float) -> None:
    mechanism = sdp.Shuffled(randomizer, n=n)
    smaller, larger = mechanism.epsilon(delta=delta / factor), mechanism.epsilon(delta=delta)
    assert larger.upper <= smaller.upper * SLACK
    assert larger.lower <= smaller.upper


@wide
@given(randomizers(), sizes)
def test_delta_decreases_in_epsilon(randomizer: Any, n: int) -> None:
    grid = np.linspace(0.0, randomizer.epsilon0, 25)
    bound = sdp.Shuffled(randomizer, n=n).delta(epsilon=grid)
    assert np.all(np.diff(bound.upper) <= 1e-15)
    assert np.all(bound.lower[1:] <= bound.upper[:-1])
    assert bound.upper[-1] == 0


# The profile


@wide
@given(randomizers(), sizes)
def test_the_profile_is_convex(randomizer: Any, n: int) -> None:
    """Up to the tolerance: within 5% of the chord for values that matter."""
    top = exp(min(3 * sdp.Shuffled(randomizer, n=n).epsilon(delta=1e-4).upper, 20.0))
    alphas = np.concatenate([np.linspace(0.0, 1.0, 15)[:-1], np.linspace(1.0, top, 15)])
    assume(np.all(np.diff(alphas) > 1e-9))
    bound = sdp.Shuffled(randomizer, n=n).profile(alphas)
    left, middle, right = alphas[:-2], alphas[1:-1], alphas[2:]
    weight = (right - middle) / (right - left)
    chord = weight * bound.upper[:-2] + (1 - weight) * bound.upper[2:]
    assert np.all(bound.lower[1:-1] <= chord * (1 + 1e-12) + 1e-15)
    matters = chord > 1e-9
    assert np.all(bound.upper[1:-1][matters] <= 1.05 * chord[matters])


@wide
@given(randomizers(), sizes, logarithmic(0.05, 0.999))
def test_the_profile_is_its_own_mirror_image(randomizer: Any, n: int, alpha: float) -> None:
    """Neighbours are symmetric: H_alpha = 1 - alpha + alpha H_{1 / alpha}."""
    mechanism = sdp.Shuffled(randomizer, n=n)
    for m in (mechanism, mechanism.sampled_from(3 * n)):
        below, above = m.profile(alpha), m.profile(1 / alpha)
        assert below.upper == pytest.approx(1 - alpha + alpha * above.upper, rel=1e-6, abs=1e-12)


@wide
@given(randomizers(), sizes, logarithmic(0.01, 100.0))
def test_the_profile_is_delta(randomizer: Any, n: int, alpha: float) -> None:
    mechanism = sdp.Shuffled(randomizer, n=n)
    profile = mechanism.profile(alpha)
    assert max(0.0, 1 - alpha) * (1 - 1e-12) <= profile.upper <= 1
    assert profile.lower <= profile.upper
    if alpha >= 1:
        delta = mechanism.delta(epsilon=log(alpha))
        assert profile.lower <= delta.upper * (1 + 1e-9) + 1e-15
        assert delta.lower <= profile.upper * (1 + 1e-9) + 1e-15


# Monotone


@wide
@given(randomizers(), sizes, factors, deltas)
def test_more_users_hide_better(randomizer: Any, n: int, factor: float, delta: float) -> None:
    small, large = sdp.Shuffled(randomizer, n=n), sdp.Shuffled(randomizer, n=int(n * factor) + 1)
    assert large.epsilon(delta=delta).upper <= small.epsilon(delta=delta).upper * SLACK
    assert large.epsilon(delta=delta).lower <= small.epsilon(delta=delta).upper


@wide
@given(ks, epsilon0s, st.floats(1.01, 3.0), sizes, deltas)
def test_less_local_privacy_is_less_central_privacy(
    k: int, epsilon0: float, factor: float, n: int, delta: float
) -> None:
    for make in (
        lambda e: sdp.LocalRandomizer(epsilon0=e),
        lambda e: sdp.KaryRandomizedResponse(k=k, epsilon0=e),
        lambda e: sdp.BinaryRandomizedResponse(epsilon0=e),
    ):
        private = sdp.Shuffled(make(epsilon0), n=n).epsilon(delta=delta)
        less = sdp.Shuffled(make(epsilon0 * factor), n=n).epsilon(delta=delta)
        assert private.upper <= less.upper * SLACK
        assert private.lower <= less.upper


@few
@given(randomizers(), medium_sizes, rounds_, st.floats(1.1, 10.0), deltas)
def test_more_rounds_lose_more(randomizer: Any, n: int, rounds: int, factor: float, delta: float) -> None:
    daily = sdp.Shuffled(randomizer, n=n)
    fewer = (rounds * daily).epsilon(delta=delta)
    more = ((int(rounds * factor) + 1) * daily).epsilon(delta=delta)
    assert fewer.upper <= more.upper * SLACK
    assert fewer.lower <= more.upper


@few
@given(randomizers(), medium_sizes, st.integers(2, 50), deltas)
def test_rounds_lose_at_most_the_sum(randomizer: Any, n: int, rounds: int, delta: float) -> None:
    """Basic composition: rounds times epsilon at delta / rounds."""
    daily = sdp.Shuffled(randomizer, n=n)
    basic = rounds * daily.epsilon(delta=delta / rounds).upper
    assert (rounds * daily).epsilon(delta=delta).upper <= basic * SLACK


@wide
@given(randomizers(), sizes, factors, deltas)
def test_a_larger_population_hides_better(randomizer: Any, cohort: int, factor: float, delta: float) -> None:
    base = sdp.Shuffled(randomizer, n=cohort)
    whole = base.epsilon(delta=delta)
    sampled = base.sampled_from(int(cohort * factor) + 1).epsilon(delta=delta)
    larger = base.sampled_from(int(cohort * factor * 2) + 1).epsilon(delta=delta)
    assert sampled.upper <= whole.upper * SLACK
    assert larger.upper <= sampled.upper * SLACK


# Identities


@wide
@given(randomizers(), sizes, deltas)
def test_a_cohort_of_everyone_is_no_sampling(randomizer: Any, n: int, delta: float) -> None:
    mechanism = sdp.Shuffled(randomizer, n=n)
    assert same(mechanism.sampled_from(n).epsilon(delta=delta), mechanism.epsilon(delta=delta))


@wide
@given(randomizers(), sizes, deltas)
def test_one_round_is_the_mechanism(randomizer: Any, n: int, delta: float) -> None:
    mechanism = sdp.Shuffled(randomizer, n=n)
    assert same((1 * mechanism).epsilon(delta=delta), mechanism.epsilon(delta=delta))


@few
@given(randomizers(), medium_sizes, st.integers(2, 20), deltas)
def test_multiples_are_sums(randomizer: Any, n: int, rounds: int, delta: float) -> None:
    daily = sdp.Shuffled(randomizer, n=n)
    multiple = rounds * daily
    added = (rounds - 1) * daily + daily
    assert added.epsilon(delta=delta).upper == pytest.approx(
        multiple.epsilon(delta=delta).upper, rel=2 * TOLERANCE
    )
    doubled = 2 * multiple
    assert doubled.epsilon(delta=delta).upper == pytest.approx(
        ((2 * rounds) * daily).epsilon(delta=delta).upper, rel=2 * TOLERANCE
    )


@few
@given(randomizers(), randomizers(), medium_sizes, deltas)
def test_adding_a_mechanism_never_helps(first: Any, second: Any, n: int, delta: float) -> None:
    one, other = sdp.Shuffled(first, n=n), sdp.Shuffled(second, n=2 * n)
    together = (one + other).epsilon(delta=delta)
    assert one.epsilon(delta=delta).lower <= together.upper
    assert one.epsilon(delta=delta).upper <= together.upper * SLACK
    largest = first.epsilon0 + second.epsilon0
    assert together.upper <= largest * (1 + 1e-9)


# Tolerance


@wide
@given(randomizers(), sizes, deltas)
def test_a_tighter_tolerance_never_loosens(randomizer: Any, n: int, delta: float) -> None:
    mechanism = sdp.Shuffled(randomizer, n=n)
    previous = np.inf
    for tolerance in (1e-1, 1e-2, 1e-3, 1e-4):
        bound = mechanism.epsilon(delta=delta, tolerance=tolerance)
        assert bound.upper <= previous * (1 + 1e-12)
        assert bound.lower <= bound.upper
        previous = bound.upper


@few
@given(randomizers(), medium_sizes, logarithmic(2, 1e4).map(round), deltas)
def test_a_tighter_tolerance_never_loosens_rounds(randomizer: Any, n: int, rounds: int, delta: float) -> None:
    mechanism = rounds * sdp.Shuffled(randomizer, n=n)
    previous = np.inf
    for tolerance in (1e-1, 1e-2, 1e-3):
        upper = mechanism.epsilon(delta=delta, tolerance=tolerance).upper
        assert upper <= previous * (1 + 1e-12)
        previous = upper


@wide
@given(randomizers(), sizes, deltas)
def test_tolerances_agree_with_one_another(randomizer: Any, n: int, delta: float) -> None:
    mechanism = sdp.Shuffled(randomizer, n=n)
    fine = mechanism.epsilon(delta=delta, tolerance=1e-4).upper
    for tolerance in (1e-1, 1e-2, 1e-3):
        coarse = mechanism.epsilon(delta=delta, tolerance=tolerance)
        assert coarse.upper <= fine * (1 + tolerance) * (1 + 1e-9)
        assert coarse.lower <= fine * (1 + 1e-12)


# Analyses


@wide
@given(ks, epsilon0s, sizes, deltas)
def test_analyses_are_ordered(k: int, epsilon0: float, n: int, delta: float) -> None:
    """best <= blanket <= clones <= clones of 2021, and blanket <= strong."""
    randomizer = sdp.KaryRandomizedResponse(k=k, epsilon0=epsilon0)
    found = {
        analysis: sdp.Shuffled(randomizer, n=n, analysis=analysis).epsilon(delta=delta)
        for analysis in ("best", "blanket", "clones", "clones-2021", "strong")
    }
    order = ["best", "blanket", "clones", "clones-2021"]
    for better, worse in pairwise(order):
        assert found[better].upper <= found[worse].upper * SLACK
    assert found["blanket"].upper <= found["strong"].upper * SLACK
    # The strong adversary is told more: its lower end is its own.
    weaker = [bound for name, bound in found.items() if name != "strong"]
    highest_lower = max(bound.lower for bound in weaker)
    assert highest_lower <= min(bound.upper for bound in found.values())
    assert found["strong"].lower <= found["strong"].upper


@wide
@given(epsilon0s, st.integers(1, 10_000), deltas)
def test_exact_binary_response_is_below_its_blanket(epsilon0: float, n: int, delta: float) -> None:
    randomizer = sdp.BinaryRandomizedResponse(epsilon0=epsilon0)
    exact = sdp.Shuffled(randomizer, n=n, analysis="exact").epsilon(delta=delta)
    blanket = sdp.Shuffled(randomizer, n=n, analysis="blanket").epsilon(delta=delta)
    best = sdp.Shuffled(randomizer, n=n).epsilon(delta=delta)
    assert exact.upper <= blanket.upper * SLACK
    assert best.upper <= exact.upper * SLACK
    assert exact.lower <= min(best.upper, blanket.upper)


@wide
@given(epsilon0s, sizes, deltas, st.floats(0.05, 0.95))
def test_a_known_total_variation_never_hurts(epsilon0: float, n: int, delta: float, share: float) -> None:
    most = float(np.tanh(epsilon0 / 2))
    plain = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=epsilon0), n=n).epsilon(delta=delta)
    known = sdp.LocalRandomizer(epsilon0=epsilon0, total_variation=share * most)
    assert sdp.Shuffled(known, n=n).epsilon(delta=delta).upper <= plain.upper * SLACK


@wide
@given(randomizers(), sizes, st.floats(0.0, 2.0))
def test_the_winning_analysis_is_named(randomizer: Any, n: int, epsilon: float) -> None:
    name = sdp.Shuffled(randomizer, n=n).analysis_at(epsilon)
    assert isinstance(name, str)
    assert name


# Calibration


@few
@given(ks, medium_sizes, st.integers(1, 100), st.floats(0.05, 2.0), logarithmic(1e-12, 1e-3))
def test_calibrate_finds_the_local_epsilon(k: int, n: int, rounds: int, epsilon: float, delta: float) -> None:
    try:
        found = sdp.calibrate(
            sdp.KaryRandomizedResponse, k=k, n=n, rounds=rounds, epsilon=epsilon, delta=delta
        )
    except ValueError:  # nothing in reach meets the target, or everything does
        assume(False)
    assert found.parameter == "epsilon0"
    assert float(found) == found.value
    randomizer = sdp.KaryRandomizedResponse(k=k, epsilon0=float(found))
    achieved = (rounds * sdp.Shuffled(randomizer, n=n)).epsilon(delta=delta).upper
    assert achieved <= epsilon * (1 + 1e-12)
    assert found.mechanism.epsilon(delta=delta).upper <= epsilon * (1 + 1e-12)
    assert float(found.epsilon) <= epsilon * (1 + 1e-12)
    if found.value < 8.0:
        more = sdp.KaryRandomizedResponse(k=k, epsilon0=1.02 * float(found))
        beyond = (rounds * sdp.Shuffled(more, n=n)).epsilon(delta=delta).upper
        assert beyond > epsilon


def test_calibrate_finds_gamma() -> None:
    target, delta, n = 0.3, 1e-6, 10_000
    found = sdp.calibrate(
        sdp.KaryRandomizedResponse, k=4, solve_for="gamma", n=n, epsilon=target, delta=delta
    )
    assert found.parameter == "gamma"

    def achieved(gamma: float) -> float:
        randomizer = sdp.KaryRandomizedResponse(k=4, gamma=gamma)
        return sdp.Shuffled(randomizer, n=n).epsilon(delta=delta).upper

    assert achieved(float(found)) <= target < achieved(0.98 * float(found))


@pytest.mark.slow
def test_calibrate_finds_sigma() -> None:
    target, delta, n = 0.5, 1e-5, 2000
    shape = {"levels": 2, "high": 10.0}
    found = sdp.calibrate(sdp.DiscreteGaussian, **shape, n=n, epsilon=target, delta=delta, analysis="blanket")
    assert found.parameter == "sigma"

    def achieved(sigma: float) -> float:
        randomizer = sdp.DiscreteGaussian(sigma=sigma, levels=2, high=10.0)
        return sdp.Shuffled(randomizer, n=n, analysis="blanket").epsilon(delta=delta).upper

    assert achieved(float(found)) <= target < achieved(0.98 * float(found))


def test_calibrate_finds_the_number_of_users() -> None:
    randomizer, target, delta = sdp.KaryRandomizedResponse(k=16, epsilon0=4.0), 0.1, 1e-8
    found = sdp.calibrate(randomizer, solve_for="n", rounds=3, epsilon=target, delta=delta)
    assert found.parameter == "n"
    assert found.value == int(found.value)

    def achieved(n: int) -> float:
        return (3 * sdp.Shuffled(randomizer, n=n)).epsilon(delta=delta).upper

    assert achieved(int(found.value)) <= target < achieved(int(0.98 * found.value))


@pytest.mark.parametrize("target", [0.5, 3.0])
def test_calibrate_finds_the_number_of_rounds(target: float) -> None:
    randomizer, delta, n = sdp.KaryRandomizedResponse(k=16, epsilon0=4.0), 1e-8, 10**5
    found = sdp.calibrate(randomizer, solve_for="rounds", n=n, epsilon=target, delta=delta)
    assert found.parameter == "rounds"
    daily = sdp.Shuffled(randomizer, n=n)

    def achieved(rounds: int) -> float:
        return (rounds * daily).epsilon(delta=delta).upper

    assert achieved(int(found.value)) <= target < achieved(int(1.02 * found.value) + 1)


def test_calibrate_finds_the_cohort() -> None:
    randomizer = sdp.KaryRandomizedResponse(k=16, epsilon0=4.0)
    population, rounds, target, delta = 10**6, 1000, 0.5, 1e-8
    found = sdp.calibrate(
        randomizer, solve_for="cohort", population=population, rounds=rounds, epsilon=target, delta=delta
    )
    assert found.parameter == "cohort"
    assert 1 <= found.value <= population
    base = sdp.Shuffled(randomizer, n=int(found.value))
    achieved = (rounds * base.sampled_from(population)).epsilon(delta=delta).upper
    assert achieved <= target


def test_calibrate_finds_the_largest_cohort() -> None:
    """Also where the published curve of cohorts has a hill in between: it gave 218."""
    local = sdp.LocalRandomizer(epsilon0=8.0)
    asked = {"solve_for": "cohort", "population": 10**6, "delta": 1e-6}
    assert sdp.calibrate(local, epsilon=0.5, **asked).value == 10**6
    found = int(sdp.calibrate(local, epsilon=0.1, **asked).value)
    more = sdp.Shuffled(local, n=ceil(1.01 * found)).sampled_from(10**6)
    assert more.epsilon(delta=1e-6).upper > 0.1


@pytest.mark.parametrize("solve_for", ["epsilon0", "gamma", "rounds"])
def test_calibrate_knows_people_who_flip_coins_of_a_rate(solve_for: str) -> None:
    goal = {"population": 10**6, "rate": 0.05, "epsilon": 0.2, "delta": 1e-7, "solve_for": solve_for}
    if solve_for == "rounds":
        found = sdp.calibrate(sdp.KaryRandomizedResponse(k=16, epsilon0=4.0), **goal)
    else:
        found = sdp.calibrate(sdp.KaryRandomizedResponse, k=16, rounds=100, **goal)

    def polled(value: float) -> sdp.Mechanism:
        local = {"epsilon0": 4.0} if solve_for == "rounds" else {solve_for: value}
        one = sdp.Shuffled(sdp.KaryRandomizedResponse(k=16, **local), n=1)
        rounds = round(value) if solve_for == "rounds" else 100
        return rounds * one.sampled_from(10**6, rate=0.05)

    assert found.mechanism.parts == polled(found.value).parts
    assert polled(found.value).epsilon(delta=1e-7).upper <= 0.2
    rash = 0.98 if solve_for == "gamma" else 1.02
    assert polled(rash * found.value).epsilon(delta=1e-7).lower > 0.2


@pytest.mark.parametrize("likely", [lambda v: v, lambda v: 1e9 / v, lambda v: 7.0, lambda v: np.nan])
@pytest.mark.parametrize("first", [1e-3, 1.0, 1e6])
def test_a_calibration_needs_no_good_guess(likely: Callable[[float], float], first: float) -> None:
    """Neither of rising nor of falling ratios, which are sometimes infinite; nor of counts."""

    def rising(value: float) -> float:
        return (value / 3.7) ** 1.3 if value < 1e3 else np.inf

    tolerance = 1e-3

    def found(ratio: Callable[[float], float], safe: float, rash: float, whole: bool) -> float | None:
        reach = calibration.Reach(first, safe, rash, whole, "none")
        return calibration.best(ratio, Path(likely, safe, rash), reach, tolerance)

    for whole, root in ((False, 3.7), (True, 3)):
        up = found(rising, 1.0 if whole else 0.0, 1e9, whole)
        least = found(lambda v: rising(37.0 / v), 1e9 if whole else np.inf, 1.0 if whole else 0.0, whole)
        assert up is not None
        assert least is not None
        assert (1 - tolerance) * root <= up <= 3.7
        assert 10 <= least <= (1 + tolerance) * 10
    assert found(lambda v: 2.0, 1, 1e9, True) is None


def test_calibrate_says_when_nothing_meets_the_target() -> None:
    with pytest.raises(ValueError, match="epsilon"):
        sdp.calibrate(
            sdp.KaryRandomizedResponse(k=4, epsilon0=4.0), solve_for="rounds", n=10, epsilon=0.001, delta=1e-9
        )
