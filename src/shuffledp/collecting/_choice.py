"""Which randomizer, with how much noise? The one with the smallest exact error at the certified target.

**Histograms.** With p, q the support probabilities of a randomizer, the squared errors of all k estimated
counts together have the mean

    n (p (1 - p) + (k - 1) q (1 - q)) / (p - q)^2,

exactly and whatever the data: that is compared, each randomizer calibrated to (epsilon, delta) by the
accountant. Candidates come in the order of their reports' size, and a later one has to be better by
more than 2 %. Most need no calibration: a randomizer with the local epsilon0 at which it would begin to be
better is asked for its certified delta, and is out if that is too large or there is no certificate.
Randomizers that send a set of categories (one bit each) are candidates up to 4,096 categories. For two
categories randomized response is the only one: it alone is analysed exactly, and all others with its
epsilon0 are post-processings of it.

**Randomized response** for k > 2 has the epsilon0 that ``calibrate`` finds. For k = 2 the exact analysis
certifies a larger epsilon0 than the blanket, but far from the target it takes long. So the blanket's
answer, which is quick and safe, comes first, and a few secant steps with the exact analysis climb from
there: log epsilon is nearly linear in epsilon0. Only what was certified is given back.

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
from typing import Any

import numpy as np

from shuffledp.accounting.calibration import calibrate
from shuffledp.accounting.mechanism import DEFAULT_TOLERANCE, Shuffled
from shuffledp.collecting._accounted import Target
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
_MOST_STEPS = 8  # evaluations of the exact analysis
_NEAR_TARGET = 0.998  # share of the target epsilon that is near enough
_AIM = 0.999  # share of the target epsilon that a step aims at
_SMALL_STEP = 1e-3  # relative steps of epsilon0 that are not worth an evaluation
_FIRST_TOLERANCE = 5e-3  # of the first answer: steps follow
_COARSE = 0.05  # resolution of the first look at other randomizers
_LEAST_REACHED = 0.01  # share of the target, where delta alone covers the difference
_STEP_BACK = 0.99  # if the first answer is not certified
_FIRST_LEVELS = 4
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

    def calibrated(kind: Kind) -> FrequencyOracle:
        if target.is_limited:
            limited: FrequencyOracle = within(lambda e: kind(k=k, epsilon0=e), target.most)
            if is_certified(limited):
                return limited
        return kind(k=k, epsilon0=calibrate(kind, k=k, **target.plan).value)

    def is_certified(randomizer: FrequencyOracle) -> bool:
        one = Shuffled(randomizer, n=target.n)
        try:
            # One look at one round costs less than an answer: most are out after that, or before.
            curve, at = one.round.profile, np.array([target.epsilon])
            if curve.hints.scale > target.epsilon or curve.upper(at, _COARSE)[0] > target.delta:
                return False
            several = target.rounds * one
            return several is one or bool(several.upper_delta(epsilon=target.epsilon) <= target.delta)
        except NoCertificateError:
            return False

    best: FrequencyOracle = calibrated_response(k, target)
    for kind in candidates(k):
        if kind is KaryRandomizedResponse:
            continue
        first = first_better(kind, k, mean_variance(best) / _AS_GOOD)
        if first is not None and first.facts().epsilon0.upper <= target.most and is_certified(first):
            best = min(best, calibrated(kind), key=mean_variance)
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
    """The least noisy randomized response that is certified (see module)."""

    def response(epsilon0: float) -> KaryRandomizedResponse:
        made = canonical(KaryRandomizedResponse(k=k, epsilon0=epsilon0))
        assert isinstance(made, KaryRandomizedResponse)
        return made

    if target.is_limited:
        limited = within(response, target.most)
        assert isinstance(limited, KaryRandomizedResponse)
        if target.is_met(limited):
            return limited
    plan: dict[str, Any] = {"k": k, **target.plan}
    if k > 2:
        return response(calibrate(KaryRandomizedResponse, tolerance=tolerance, **plan).value)
    quick: dict[str, Any] = {"analysis": "blanket", "tolerance": max(tolerance, _FIRST_TOLERANCE)}
    first = calibrate(KaryRandomizedResponse, **plan, **quick).value
    return response(largest_certified(first, lambda e: target.certified(response(e)), target.epsilon))


def largest_certified(first: float, certified: Callable[[float], float], epsilon: float) -> float:
    """An epsilon0 with ``certified(epsilon0)`` <= epsilon, the largest up to about a thousandth."""
    tried: dict[float, float] = {}
    guess = first
    for _ in range(_MOST_STEPS):
        tried[guess] = certified(guess)
        if _NEAR_TARGET * epsilon <= tried[guess] <= epsilon:
            return guess
        guess = _next(tried, epsilon)
        good = [value for value, seen in tried.items() if seen <= epsilon]
        if good and guess - max(good) <= _SMALL_STEP * guess:
            break
    if not good:
        raise ValueError(f"epsilon = {epsilon!r} could not be certified for any epsilon0 of {sorted(tried)}")
    return max(good)


def _next(tried: dict[float, float], epsilon: float) -> float:
    """Between the largest that meets the target and the smallest that does not, or beyond."""
    low = max((v for v, seen in tried.items() if seen <= epsilon), default=None)
    high = min((v for v, seen in tried.items() if seen > epsilon), default=None)
    if low is None:
        assert high is not None
        return _STEP_BACK * high
    if high is not None and not (low < high and math.isfinite(tried[high])):
        return 0.5 * (low + high)
    reached = max(tried[low], _LEAST_REACHED * epsilon)
    if high is None:  # few people: epsilon ~ epsilon0; many: epsilon ~ exp(epsilon0 / 2)
        return low + min(2.0, low) * math.log(_AIM * epsilon / reached)
    slope = (high - low) / math.log(tried[high] / reached)
    guess = low + slope * math.log(_AIM * epsilon / reached)
    return min(max(guess, low), low + 0.95 * (high - low))


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
