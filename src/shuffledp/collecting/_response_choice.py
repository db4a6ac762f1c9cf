"""k-ary randomized response with the largest epsilon0 that is certified for (epsilon, delta).

For k > 2 that is what ``calibrate`` finds. For k = 2 the exact analysis certifies a larger epsilon0 than
the blanket, but far from the target it takes long. So the blanket's answer, which is quick and safe, comes
first, and a few secant steps with the exact analysis climb from there: log epsilon is nearly linear in
epsilon0. Only what was certified is given back.

>>> target = {"epsilon": 1.0, "delta": 1e-6, "n": 1000, "rounds": 1}
>>> calibrated_response(4, **target).epsilon0 < calibrated_response(2, **target).epsilon0
True
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from shuffledp.accounting.calibration import calibrate
from shuffledp.accounting.mechanism import DEFAULT_TOLERANCE, Shuffled
from shuffledp.collecting._certificate import certified_epsilon
from shuffledp.collecting._randomizer_codec import canonical
from shuffledp.errors import NoCertificateError
from shuffledp.randomizers.kary import KaryRandomizedResponse

_STEPS = 8
_CLOSE = 0.998
"""Share of the target epsilon that is near enough."""
_SMALL = 1e-3
"""Relative steps of epsilon0 that are not worth an evaluation."""
_FIRST = 5e-3
"""Tolerance of the first answer: steps follow."""
_AIM = 0.999
_LEAST = 0.01
_BACK = 0.99
"""Where a step back goes if the first answer is not certified."""


def calibrated_response(
    k: int,
    epsilon: float,
    delta: float,
    n: int,
    rounds: int,
    tolerance: float = DEFAULT_TOLERANCE,
) -> KaryRandomizedResponse:
    """The least noisy randomized response that is certified (see module)."""

    def response(epsilon0: float) -> KaryRandomizedResponse:
        made = canonical(KaryRandomizedResponse(k=k, epsilon0=epsilon0))
        assert isinstance(made, KaryRandomizedResponse)
        return made

    def certified(epsilon0: float) -> float:
        try:
            return certified_epsilon(rounds * Shuffled(response(epsilon0), n=n), delta)
        except NoCertificateError:
            return math.inf  # what cannot be certified does not meet the target

    plan: dict[str, Any] = {"k": k, "n": n, "rounds": rounds, "epsilon": epsilon, "delta": delta}
    if k > 2:
        return response(calibrate(KaryRandomizedResponse, tolerance=tolerance, **plan).value)
    quick: dict[str, Any] = {"analysis": "blanket", "tolerance": max(tolerance, _FIRST)}
    first = calibrate(KaryRandomizedResponse, **plan, **quick).value
    return response(largest_certified(first, certified, epsilon))


def largest_certified(first: float, certified: Callable[[float], float], epsilon: float) -> float:
    """An epsilon0 with ``certified(epsilon0)`` <= epsilon, the largest up to about a thousandth."""
    tried: dict[float, float] = {}
    guess = first
    for _ in range(_STEPS):
        tried[guess] = certified(guess)
        if _CLOSE * epsilon <= tried[guess] <= epsilon:
            return guess
        guess = _next(tried, epsilon)
        good = [value for value, seen in tried.items() if seen <= epsilon]
        if good and guess - max(good) <= _SMALL * guess:
            break
    if not good:
        raise ValueError(
            f"epsilon = {epsilon!r} could not be certified for any epsilon0 of {sorted(tried)}"
        )
    return max(good)


def _next(tried: dict[float, float], epsilon: float) -> float:
    """Between the largest that meets the target and the smallest that does not, or beyond."""
    low = max((v for v, seen in tried.items() if seen <= epsilon), default=None)
    high = min((v for v, seen in tried.items() if seen > epsilon), default=None)
    if low is None:
        assert high is not None
        return _BACK * high
    if high is not None and not (low < high and math.isfinite(tried[high])):
        return 0.5 * (low + high)
    reached = max(tried[low], _LEAST * epsilon)  # zero where delta alone covers the difference
    if high is None:  # few people: epsilon ~ epsilon0; many: epsilon ~ exp(epsilon0 / 2)
        return low + min(2.0, low) * math.log(_AIM * epsilon / reached)
    slope = (high - low) / math.log(tried[high] / reached)
    guess = low + slope * math.log(_AIM * epsilon / reached)
    return min(max(guess, low), low + 0.95 * (high - low))
