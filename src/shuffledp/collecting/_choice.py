"""Which randomizer, with how much noise? The one with the smallest exact error at the certified target.

**Histograms.** With p, q the support probabilities of a randomizer, the squared errors of all k estimated
counts together have the mean

    n (p (1 - p) + (k - 1) q (1 - q)) / (p - q)^2,

exactly and whatever the data: that is compared, each randomizer calibrated to (epsilon, delta) by the
accountant. Candidates come in the order of their reports' size, and a later one has to be better by
more than 2 %. Most need no calibration: a randomizer with the local epsilon0 at which it would begin to be
better is out if a coarse look at its delta is too large.
Randomizers that send a set of categories (one bit each) are candidates up to 4,096 categories. For two
categories randomized response is the only one: it alone is analysed exactly, and all others with its
epsilon0 are post-processings of it.

**Sums.** For each number of levels, randomized response on levels + 1 points is calibrated; what is
compared is the exact variance of one decoded report, rounding included, for the worst number in the
interval (``collecting._fixed_point``). More levels round less and are noisier. The probability q of a
given false report hardly depends on the number of levels, so a few calibrations and interpolation between
them find the best number (the error is flat around it).

>>> target = Target(epsilon=1.0, delta=1e-6, n=1000)
>>> calibrated_response(4, target).epsilon0 < calibrated_response(2, target).epsilon0
True
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from shuffledp.accounting import calibration
from shuffledp.accounting._ends.upper import glance
from shuffledp.accounting.mechanism import DEFAULT_TOLERANCE, Shuffled
from shuffledp.collecting._accounted import Target, tolerance_for
from shuffledp.collecting._fixed_point import FixedPointDecoder, highest_between, response_spread
from shuffledp.errors import NoCertificateError
from shuffledp.randomizers.frequency import FrequencyOracle, two_probabilities
from shuffledp.randomizers.kary import KaryRandomizedResponse
from shuffledp.randomizers.registry import canonical, survey_candidates

Kind = Callable[..., FrequencyOracle]

_AS_GOOD = 1.02  # a ratio of variances
_LARGEST_EPSILON0 = 36.0
MOST_LEVELS = 2**14

# All that follow are speed: only what is certified is given back.
_FIRST_LEVELS = 4
_COARSE = 0.01  # tolerance of the first look at other randomizers
_LEVELS_TOLERANCE = 0.01  # of the calibrations that only choose the number of levels
_NEAR_LEVELS = 0.03  # relative difference of two numbers of levels that does not matter
_MOST_CALIBRATIONS = 8


def mean_variance(randomizer: FrequencyOracle) -> float:
    """Mean over the categories of the variance of an estimated count, per user: exact for all data.

    Without two probabilities of support: where everybody holds another category."""
    k = randomizer.k
    known = two_probabilities(randomizer)
    if known is None:
        return float(np.mean(randomizer.variance(np.ones(k, dtype=np.int64), k))) / k
    p, q = known
    return (p * (1.0 - p) + (k - 1) * q * (1.0 - q)) / (p - q) ** 2 / k


def mean_error(randomizer: FrequencyOracle, n: int) -> float:
    """Standard error of a count of n people, root mean square over all categories: exact for all data."""
    if getattr(randomizer, "added_noise", None) is not None:
        # Linear in the counts: as if all had the mean one.
        k = randomizer.k
        return math.sqrt(float(randomizer.variance(np.full(k, n / k), n)[0]))
    return math.sqrt(n * mean_variance(randomizer))


def largest_error(randomizer: FrequencyOracle, n: int) -> float:
    """Of the count that errs most, for the worst data: somebody's, everybody's, or nobody's."""
    k = randomizer.k
    held = np.zeros(k, dtype=np.int64)
    held[0] = n
    return math.sqrt(float(np.max(randomizer.variance(held, n))))


def best_calibrated(k: int, target: Target) -> FrequencyOracle:
    """The best randomizer of k categories that is certified for the target (see module)."""

    def may_do(randomizer: FrequencyOracle) -> bool:
        several = target.rounds * Shuffled(randomizer, n=target.n)
        try:
            if several.gaussian_limit().upper > target.epsilon:
                return False
            seen = glance(several._rounds(), target.epsilon, target.delta, _COARSE)[0]
        except NoCertificateError:
            return False
        return seen <= target.delta

    best: FrequencyOracle = calibrated_response(k, target)
    for kind in candidates(k):
        if kind is KaryRandomizedResponse:
            continue
        first = first_better(kind, k, mean_variance(best) / _AS_GOOD)
        if first is not None and first.facts().epsilon0.upper <= target.most and may_do(first):
            made = partial(kind, k)
            best = min(best, _calibrated(made, target, DEFAULT_TOLERANCE), key=mean_variance)
    return best


def best_local(k: int, epsilon0: float) -> FrequencyOracle:
    """The best randomizer without a shuffler: every one with the same epsilon0."""
    made = [kind(k=k, epsilon0=epsilon0) for kind in candidates(k)]
    good = _AS_GOOD * min(map(mean_variance, made))
    return next(randomizer for randomizer in made if mean_variance(randomizer) <= good)


def candidates(k: int) -> tuple[Kind, ...]:
    """The randomizers that are compared for k categories, the smallest reports first."""
    if k == 2:
        return (KaryRandomizedResponse,)
    return tuple(survey_candidates(k))


def first_better(kind: Kind, k: int, variance: float) -> FrequencyOracle | None:
    """The ``kind`` with the smallest epsilon0 whose ``mean_variance`` is at most ``variance``."""

    def of(epsilon0: float) -> FrequencyOracle:
        return kind(k=k, epsilon0=epsilon0)

    low, high = 0.0, _LARGEST_EPSILON0
    if mean_variance(of(high)) > variance:
        return None
    while high - low > 1e-4 * high and high > 1e-5:
        middle = 0.5 * (low + high)
        if mean_variance(of(middle)) <= variance:
            high = middle
        else:
            low = middle
    return of(high)


def within(kind: Callable[[float], Any], most: float) -> Any:
    """The least noisy ``kind(epsilon0)`` of which one report reveals at most ``most``, to the last digits."""
    epsilon0 = min(most, _LARGEST_EPSILON0)
    step = math.ulp(epsilon0)
    while (made := canonical(kind(epsilon0))).facts().epsilon0.upper > most:
        epsilon0, step = epsilon0 - step, 2.0 * step
    return made


def calibrated_response(
    k: int, target: Target, tolerance: float = DEFAULT_TOLERANCE
) -> KaryRandomizedResponse:
    """The least noisy randomized response that is certified."""
    found = _calibrated(
        lambda epsilon0: canonical(KaryRandomizedResponse(k=k, epsilon0=epsilon0)), target, tolerance
    )
    assert isinstance(found, KaryRandomizedResponse)
    return found


def _calibrated(made: Callable[[float], Any], target: Target, tolerance: float) -> Any:
    """``made`` of the largest epsilon0 that is certified as the plan will be, and within its limit."""
    if target.is_limited:
        limited = within(made, target.most)
        if target.is_met(limited):
            return limited

    def upper(epsilon0: float) -> float:
        if tolerance == DEFAULT_TOLERANCE:
            return target.certified(made(epsilon0))
        return target.mechanism(made(epsilon0)).upper_epsilon(delta=target.delta, tolerance=tolerance)

    allowed = max(tolerance, tolerance_for(target.mechanism(made(1.0))))
    goal = calibration.Target(target.epsilon, target.delta, allowed)
    reach = calibration.reach_of("epsilon0", goal, most_epsilon0=_LARGEST_EPSILON0)
    return made(calibration.solve(lambda e: target.mechanism(made(e)), upper, goal, reach))


def relative_variance(randomizer: KaryRandomizedResponse) -> float:
    """The worst variance of one decoded report, in units of (high - low)^2."""
    return FixedPointDecoder.of(randomizer).worst_variance() / (randomizer.k - 1) ** 2


def best_levels(target: Target) -> int:
    """The number of levels of smallest error for a sum, to a few per cent (see module)."""
    false_report: dict[int, float] = {}
    levels = _FIRST_LEVELS
    while len(false_report) < _MOST_CALIBRATIONS:
        response = calibrated_response(levels + 1, target, _LEVELS_TOLERANCE)
        false_report[levels] = response.support_probability[1]
        levels = _best_given(false_report)
        if any(abs(levels - tried) <= _NEAR_LEVELS * tried for tried in false_report):
            break
    return levels


def _best_given(false_report: dict[int, float]) -> int:
    """The best number of levels if log q is linear in log k between the known ones."""
    known = sorted(false_report)
    levels = np.arange(1.0, MOST_LEVELS + 1.0)
    logs = np.interp(np.log1p(levels), np.log1p(known), np.log([false_report[i] for i in known]))
    blanket = (levels + 1.0) * np.exp(logs)
    levels, blanket = levels[blanket < 1.0], blanket[blanket < 1.0]
    # The worst numbers lie between an end and the grid point next to it: the parabola z^2 - z L is
    # highest at the ends, and rounding is the same everywhere.
    ends = [response_spread(z, levels, blanket, 1.0 - blanket) for z in (0.0, 1.0)]
    return int(levels[np.argmin(highest_between(ends[0], ends[1]) / levels**2)])
