"""The smallest Gaussian noise of a trusted curator that is (epsilon, delta)-DP."""

from __future__ import annotations

import math

from shuffledp import _validate
from shuffledp._certified.rounding import capped, gamma


def gaussian_delta(epsilon: float, sigma: float) -> float:
    """An upper bound of delta for sensitivity 1, next to the exact one."""
    near, far = 0.5 / sigma - epsilon * sigma, -0.5 / sigma - epsilon * sigma
    first, second = _phi(near), _phi(far)
    # Relative errors: of phi's argument (amplified by its square) and of erfc itself.
    slack = gamma(32.0 * (2.0 + far * far))
    return first * (1.0 + slack) - math.exp(epsilon) * second * (1.0 - slack)


def _phi(x: float) -> float:
    return 0.5 * math.erfc(-x * math.sqrt(0.5))


def analytic_gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """The smallest standard deviation (to 1e-9) that is (epsilon, delta)-DP (Balle, Wang 2018, Theorem 8).

    ``sensitivity``: how far one person's substitution moves the statistic (Euclidean), d. The noise is
    (epsilon, delta)-DP iff Phi(d / (2 sigma) - epsilon sigma / d) - e^epsilon Phi(-d / (2 sigma) -
    epsilon sigma / d) <= delta.

    >>> round(analytic_gaussian_sigma(epsilon=1.0, delta=1e-6), 3)
    4.225
    """
    target = capped(_validate.positive("epsilon", epsilon))
    level = _validate.probability("delta", delta, positive=True)
    distance = _validate.positive("sensitivity", sensitivity)
    low = high = 1.0
    while gaussian_delta(target, high) > level:
        high *= 2.0
    while gaussian_delta(target, low) <= level and low > 1e-9:
        low *= 0.5
    while high - low > 1e-9 * high:
        middle = 0.5 * (low + high)
        if gaussian_delta(target, middle) <= level:
            high = middle
        else:
            low = middle
    return high * distance
