"""Crowds that send x as often as x': every outcome of small crowds, in exact rationals."""

import math
from fractions import Fraction

import numpy as np
import pytest

from response import krr_witnesses
from shuffledp.accounting._curves.clones import strong_clones
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.accounting._curves.third_value import EvenCrowdProfile
from shuffledp.accounting._hints.starts import likely_epsilon
from shuffledp.facts import response_probabilities

EPSILONS = np.array([0.0, 0.05, 0.2, 0.5, 0.9, 1.3, 1.9])
A, B, H = Fraction(5, 8), Fraction(1, 8), Fraction(1, 10)
"""Reports of the differing user: x, x', else neither; of every other user: x and x' each."""


def crowd(n: int, a: Fraction, b: Fraction, h: Fraction) -> EvenCrowdProfile:
    parts = (a + b, a - b, b, 1 - a - b, 2 * h, 1 - 2 * h)
    return EvenCrowdProfile(n, *(float(part) for part in parts))


def outcomes(n: int, own: tuple[Fraction, ...], h: Fraction) -> dict[tuple[int, int], Fraction]:
    """Numbers of x and x' among n reports, from the reports one by one."""
    law = {(0, 0): Fraction(1)}
    for user in [own, *[(h, h, 1 - 2 * h)] * (n - 1)]:
        grown: dict[tuple[int, int], Fraction] = {}
        for (x, y), p in law.items():
            for place, q in zip([(x + 1, y), (x, y + 1), (x, y)], user, strict=True):
                grown[place] = grown.get(place, Fraction(0)) + p * q
        law = grown
    return law


def exact(n: int, a: Fraction, b: Fraction, h: Fraction, epsilon: float) -> float:
    p, q = (outcomes(n, (u, v, 1 - u - v), h) for u, v in ((a, b), (b, a)))
    alpha = Fraction(math.exp(epsilon))
    return float(sum(max(p[key] - alpha * q[key], Fraction(0)) for key in p))


@pytest.mark.parametrize("n", [1, 2, 3, 6, 15])
@pytest.mark.parametrize("resolution", [1e-3, 1e-6])
def test_small_crowds_are_enclosed_and_met(n: int, resolution: float) -> None:
    profile = crowd(n, A, B, H)
    high, lines = profile.both(EPSILONS, resolution)
    for place, epsilon in enumerate(EPSILONS):
        truth = exact(n, A, B, H, epsilon)
        assert lines.value[place] <= truth * (1 + 1e-13) + 1e-17
        assert truth <= high[place] * (1 + 1e-13) + 1e-17
        # Every bucket of so small a crowd is one number: nothing is lost.
        assert high[place] - lines.value[place] <= 1e-5 * truth + 1e-15


@pytest.mark.parametrize("n", [2, 7, 12])
def test_lines_stay_below_the_curve_at_every_other_epsilon(n: int) -> None:
    lines = crowd(n, A, B, H).support(EPSILONS, 1e-3)
    for value, slope, at in zip(lines.value, lines.slope_high, EPSILONS, strict=True):
        for epsilon in (0.0, 0.1, 0.7, 1.5):
            run = math.exp(epsilon) - math.exp(at)
            low = min(value - slope * run, value - lines.slope_low[list(EPSILONS).index(at)] * run)
            assert low <= exact(n, A, B, H, epsilon) + 1e-15


@pytest.mark.parametrize("fraction", [Fraction(1, 2), Fraction(1, 20)])
def test_who_takes_part_at_times_is_one_of_the_others_else(fraction: Fraction) -> None:
    profile = crowd(6, A, B, H).subsampled(float(fraction))
    a, b = (fraction * u + (1 - fraction) * H for u in (A, B))
    high, lines = profile.both(EPSILONS[:4], 1e-3)
    for place, epsilon in enumerate(EPSILONS[:4]):
        truth = exact(6, a, b, H, epsilon)
        assert lines.value[place] * (1 - 1e-12) <= truth + 1e-17
        assert truth <= high[place] * (1 + 1e-12) + 1e-17


@pytest.mark.parametrize(("k", "epsilon0", "n"), [(3, 4.0, 10**4), (3, 1.0, 10**6), (40, 2.0, 24_000)])
def test_buckets_of_large_crowds_bracket_the_lattice_sum_of_the_same_datasets(
    k: int, epsilon0: float, n: int
) -> None:
    p, ep, gap = response_probabilities(k, epsilon0)
    rest, others = (k - 2) * p, ep + (k - 3) * p
    law = AmplificationProfile(n, (ep, p, rest), (p, ep, rest), (gap, -gap, 0.0), (p, p, others))
    third = krr_witnesses(k, epsilon0, n)[0]
    assert isinstance(third, EvenCrowdProfile)
    middle = third.hints.start(1e-8, epsilon0)
    at = middle * np.array([0.1, 0.5, 1.0, 1.2])
    for resolution in (1e-3, 1e-5):
        high, lines = third.both(at, resolution)
        above, below = law.both(at, 1e-5)
        assert np.all(lines.value <= above)
        assert np.all(below.value <= high)
        assert np.all(high <= lines.value * (1.0 + 60.0 * resolution))


@pytest.mark.parametrize("epsilon0", [40.0, 100.0, 300.0])
def test_large_local_epsilons_are_not_lost(epsilon0: float) -> None:
    """Nobody else sends x or x' but with a probability of e^-epsilon0: the user is seen."""
    third = krr_witnesses(3, epsilon0, 1000)[0]
    at = np.array([0.5 * epsilon0, epsilon0 - 1.0])
    # P(x) - alpha Q(x) of a single report, to what a thousand others change.
    alone = -np.expm1(at - epsilon0)
    assert third.support(at, 1e-5).value == pytest.approx(alone, rel=1e-6)
    assert np.all(third.support(at, 1e-3).value <= alone)


def test_a_crowd_of_which_the_user_is_always_part_is_the_clones_pair() -> None:
    clones = strong_clones(2.0, 500)
    same = EvenCrowdProfile(
        500, 1.0, clones.kappa, 1.0 / (1.0 + math.exp(2.0)), 0.0, clones.rate, clones.rest
    )
    at = np.linspace(0.0, 1.9, 12)
    assert same.upper(at, 1e-3) == pytest.approx(clones.upper(at, 1e-3), rel=1e-9)


@pytest.mark.parametrize("n", [10**5, 10**7, 10**10])
@pytest.mark.parametrize("delta", [1e-6, 1e-14, 1e-30])
def test_the_guess_is_within_a_fraction_of_a_percent(n: int, delta: float) -> None:
    clones = strong_clones(4.0, n)
    guess = clones.hints.start(delta, 4.0)
    high, lines = clones.both(guess * np.array([0.998, 1.002]), 1e-4)
    assert lines.value[0] > delta > high[1]


def test_the_guess_stays_in_its_range() -> None:
    assert likely_epsilon(10**6, 0.1, 0.9, 1.0, 0.9, 3.0) == 0.0  # delta is never that large
    assert likely_epsilon(10, 0.01, 0.99, 1.0, 1e-30, 3.0) == 3.0  # never that small
    assert likely_epsilon(10, 0.01, 0.0, 1.0, 1e-3, 3.0) == 0.0
