"""The pair F(kappa, N) to a fraction of a percent: where its curve is likely to pass a delta.

With Y the mean of N fair signs (nearly normal) and epsilon = 2 atanh(kappa y),

    delta = (1 + e^epsilon) kappa E[(Y - y)_+],   E[(Y - y)_+] ~ (phi(z) - z Phi(-z)) / sqrt(N),

where z^2/2 is N times the rate function of a sign, y^2/2 + y^4/12 + ..., at y. A random N = C + 1, C
binomial, counts as the N that its moment generating function at the rate gives. Nothing is certified
here.
"""

from __future__ import annotations

import math

SMALL_CROWD = 200.0
"""Mean number of clones below which their steps show, and nothing here is close."""

_STEPS = 60
_CLOSE = 1e-7


def likely_epsilon(
    trials: int, rate: float, kappa: float, weight: float, delta: float, most: float
) -> float:
    """About where the mixture over C ~ Bin(trials, rate) of F(kappa, C + 1) passes ``delta``.

    By bisection and secants in y: log delta is nearly a parabola in it."""
    if kappa == 0.0 or weight == 0.0:
        return 0.0
    level = math.log(delta / weight)

    def excess(y: float) -> float:
        return _log_delta(trials, rate, kappa, y) - level

    low, high = 0.0, min(math.tanh(0.5 * min(most, 36.0)) / kappa, 1.0 - 1e-9)
    above, below = excess(low), excess(high)
    if above <= 0.0:
        return 0.0
    if below >= 0.0:
        return most
    y = low
    for step in range(_STEPS):
        share = above / (above - below)
        # log delta falls ever faster: the chord's root is left of the true one.
        y = low + (high - low) * (math.sqrt(share) if step < 2 else share)
        value = excess(y)
        if value > 0.0:
            low, above, below = y, value, below * (0.5 if step > 2 else 1.0)
        else:
            high, below, above = y, value, above * (0.5 if step > 2 else 1.0)
        if high - low <= _CLOSE * high or abs(value) < _CLOSE:
            break
    return min(2.0 * math.atanh(min(kappa * y, 1.0 - 1e-16)), most)


def _log_delta(trials: int, rate: float, kappa: float, y: float) -> float:
    cost = 0.5 * ((1.0 + y) * math.log1p(y) + (1.0 - y) * math.log1p(-y))  # of a sign
    log_mgf = trials * math.log1p(rate * math.expm1(-cost)) - cost
    count = -log_mgf / cost if cost > 0.0 else 1.0 + trials * rate
    z = math.sqrt(-2.0 * log_mgf)
    # phi(z) - z Phi(-z), without cancellation far out.
    shape = math.exp(-0.5 * z * z) if z < 37.0 else 0.0
    mills = 0.5 * math.erfc(z / math.sqrt(2.0))
    close = shape / math.sqrt(2.0 * math.pi) - z * mills
    far = -0.5 * z * z - math.log((z * z + 3.0) * math.sqrt(2.0 * math.pi))
    log_shape = math.log(close) if z < 6.0 else far
    steep = math.log((1.0 + kappa * y) / (1.0 - kappa * y)) if kappa * y < 1.0 else 40.0
    return (
        log_shape
        - 0.5 * math.log(count)
        + math.log(kappa)
        + math.log1p(math.exp(min(steep, 700.0)))
    )
