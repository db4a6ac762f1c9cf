"""Coverage of the intervals, summed from the law of the support (nothing is simulated)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shuffledp._certified.rounding import Floats
from shuffledp.collecting._intervals import count_intervals

pytestmark = pytest.mark.quick


def binomial(n: int, p: float) -> Floats:
    """The law of Bin(n, p) from the definition."""
    j = np.arange(n + 1)
    logs = [math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in j]
    with np.errstate(divide="ignore", invalid="ignore"):
        powers = np.where(j > 0, j * np.log(p), 0.0) + np.where(n > j, (n - j) * np.log1p(-p), 0.0)
    return np.exp(np.array(logs) + powers)


def coverage(n: int, c: int, p: float, q: float, confidence: float) -> float:
    """P(the interval holds c) if c of n users hold the category."""
    law = np.convolve(binomial(c, p), binomial(n - c, q))
    possible = np.flatnonzero(law > 1e-20)
    low, high = count_intervals(possible, n, p, q, confidence)
    return float(law[possible][(low <= c) & (c <= high)].sum())


@pytest.mark.parametrize("n", [1, 2, 7, 40])
@pytest.mark.parametrize(("p", "q"), [(0.75, 0.25), (0.99, 0.001), (0.5, 0.1), (0.05, 0.01)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_small_crowds_are_covered_at_least_as_promised_whatever_the_count(
    n: int, p: float, q: float, confidence: float
) -> None:
    for c in range(n + 1):
        assert coverage(n, c, p, q, confidence) >= confidence - 1e-9


@pytest.mark.parametrize("c", [0, 1, 5, 60])
def test_rare_noise_among_many_users_is_covered_at_least_as_promised(c: int) -> None:
    for q in (1e-5, 3e-4, 2e-3):
        assert coverage(5_000, c, 0.97, q, 0.99) >= 0.99 - 1e-9


@pytest.mark.parametrize(("p", "q"), [(0.8, 0.1), (0.5, 0.2), (0.95, 0.05)])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 1.0])
def test_large_crowds_are_covered_as_promised_up_to_half_a_percent(p: float, q: float, share: float) -> None:
    n = 4_000
    for confidence in (0.9, 0.95, 0.99):
        inside = coverage(n, round(share * n), p, q, confidence)
        assert confidence - 0.005 <= inside
        # At the ends of [0, n] one side can not fail.
        assert inside <= confidence + (0.02 if 0.0 < share < 1.0 else 0.06)


def test_intervals_are_no_wider_than_the_tests_they_invert_allow() -> None:
    """Both ends of an exact interval are rejected one further out."""
    n, p, q, s = 200, 0.9, 0.02, 30
    low, high = (int(end[0]) for end in count_intervals([s], n, p, q, 0.95))

    def at_least(c: int, s: int) -> float:
        return float(np.convolve(binomial(c, p), binomial(n - c, q))[s:].sum())

    assert at_least(low, s) > 0.025 >= at_least(low - 1, s)
    assert 1.0 - at_least(high, s + 1) > 0.025 >= 1.0 - at_least(high + 1, s + 1)


def test_reports_without_noise_leave_no_doubt() -> None:
    low, high = count_intervals([0, 30, 100], 100, 1.0, 0.0, 0.95)
    assert low.tolist() == high.tolist() == [0.0, 30.0, 100.0]


def test_ends_stay_among_the_possible_counts() -> None:
    low, high = count_intervals(np.arange(1001), 1000, 0.6, 0.4, 0.99)
    assert (low >= 0).all()
    assert (high <= 1000).all()
    assert (low <= high).all()


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.1, float("nan")])
def test_impossible_confidence_levels_are_refused(confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence must be in"):
        count_intervals([1], 10, 0.9, 0.1, confidence)
