"""Binary randomized response in a random cohort, crowd by crowd (T12', docs/proofs/cohorts.md)."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import shuffledp as sdp
from oracles import brute
from shuffledp.accounting._curves.binary_cohort import BinaryCohortProfile

pytestmark = pytest.mark.quick
ONE = Fraction(1)


def crowd(n: int, k: int, r: Fraction, g: Fraction, alpha: Fraction) -> Fraction:
    """(1/n) E[(sum of X')_+] of k who hold x' and n - k who hold x, over all of their reports."""
    lie = r / (1 + r)
    values = {
        0: ((1 - lie, 1 - alpha * r), (lie, 1 - alpha / r)),
        1: ((1 - lie, r - alpha), (lie, 1 / r - alpha)),
    }
    law = {Fraction(0): ONE}
    for holds in (0,) * (n - k) + (1,) * k:
        following: dict[Fraction, Fraction] = {}
        for total, mass in law.items():
            for p, x in values[holds]:
                at = total + g * x + (1 - g) * (1 - alpha)
                following[at] = following.get(at, Fraction(0)) + mass * p
        law = following
    return sum((mass * max(total, Fraction(0)) for total, mass in law.items()), Fraction(0)) / n


@pytest.mark.parametrize(("population", "cohort"), [(2, 1), (3, 1), (3, 2), (4, 2), (4, 3), (5, 2), (6, 3)])
@pytest.mark.parametrize("E", [Fraction(11, 10), Fraction(3), Fraction(40)])
def test_no_population_of_a_few_people_is_above(population: int, cohort: int, E: Fraction) -> None:
    matrix = brute.k_ary(2, E)
    pairs = brute.cohort_pairs(matrix, population, cohort)
    profile = BinaryCohortProfile(cohort, math.log(float(E)) * (1 + 1e-15), cohort / population)
    share = Fraction(cohort, population)
    for part in (Fraction(0), Fraction(1, 50), Fraction(1, 3), Fraction(9, 10)):
        alpha = 1 + part * share * (E - 1)
        truth = brute.worst(pairs, alpha)
        epsilon = np.array([math.log(float(alpha)) * (1 - 1e-15)])
        found = float(profile.upper(epsilon, 1e-3)[0])
        assert truth <= Fraction(found)
        told = max(crowd(cohort, k, 1 / E, share, alpha) for k in range(cohort + 1))
        assert truth <= told
        assert found <= float(told) * (1 + 1e-9) + 1e-13


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.floats(0.05, 8.0), st.floats(0.01, 0.99), st.floats(0.0, 0.999))
def test_tables_say_what_the_largest_crowd_says(n: int, epsilon0: float, share: float, part: float) -> None:
    """Over a table of how many of each kind lie."""
    epsilon = part * math.log1p(share * math.expm1(epsilon0))
    alpha, r = math.exp(epsilon), math.exp(-epsilon0)
    lie = r / (1.0 + r)
    least = 0.0
    for k in range(n + 1):
        laws = [
            np.array([math.comb(m, j) * lie**j * (1.0 - lie) ** (m - j) for j in range(m + 1)])
            for m in (n - k, k)
        ]
        a, b = (np.arange(m + 1.0) for m in (n - k, k))
        honest = [
            (n - k - a) * (1 - alpha * r) + a * (1 - alpha / r),
            (k - b) * (r - alpha) + b * (1 / r - alpha),
        ]
        total = share * (honest[0][:, None] + honest[1]) + n * (1 - share) * (1 - alpha)
        least = max(least, float(laws[0] @ np.maximum(total, 0.0) @ laws[1]) / n)
    profile = BinaryCohortProfile(n, epsilon0, share)
    found = float(profile.upper(np.array([epsilon]), 1e-3)[0])
    assert least * (1 - 1e-9) - 1e-13 <= found <= least * (1 + 1e-8) + 1e-11


def test_the_curve_falls_grows_with_the_share_and_is_bounded_by_its_lines() -> None:
    epsilon = np.linspace(0.0, 1.0, 9)
    small, large = (BinaryCohortProfile(80, 3.0, share) for share in (0.1, 0.2))
    upper = small.upper(epsilon, 1e-3)
    assert (np.diff(upper) <= 0.0).all()
    assert (upper <= large.upper(epsilon, 1e-3)).all()
    value, lines = small.both(epsilon, 1e-3)
    assert (value == upper).all()
    alpha = np.exp(epsilon)
    below = lines.value[:, None] - lines.slope_low[:, None] * (alpha - alpha[:, None])
    assert (below <= upper * (1.0 + 1e-9) + 1e-15).all()


@pytest.mark.parametrize(
    ("n", "population", "epsilon0"), [(100, 1000, 4.0), (1000, 10_000, 4.0), (200, 400, 1.0)]
)
def test_cohorts_of_binary_response_are_within_a_percent(n: int, population: int, epsilon0: float) -> None:
    bound = (
        sdp.Shuffled(sdp.BinaryRandomizedResponse(epsilon0), n=n).sampled_from(population).epsilon(delta=1e-6)
    )
    assert bound.lower <= bound.upper <= 1.01 * bound.lower


def test_large_tables_are_left_to_the_crowd_theorem() -> None:
    assert BinaryCohortProfile.serves(1000, 4.0)
    assert not BinaryCohortProfile.serves(10**5, 4.0)
    assert not BinaryCohortProfile.serves(1000, 0.0)
    assert not BinaryCohortProfile.serves(10, 740.0)  # e^-epsilon0 underflows
    large = sdp.Shuffled(sdp.BinaryRandomizedResponse(4.0), n=10**5).sampled_from(10**6)
    assert large.epsilon(delta=1e-6).lower > 0.0
