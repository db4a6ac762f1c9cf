"""How near sums of discrete Gaussian shares are to Gaussian noise (the lemma of Theorem T22).

With rho(u) = 2 sum of e^(-2 pi^2 u r^2) over r >= 1 and shares of variance v, P(k) ~ e^(-k^2/2v):

    tau_n = (rho(v/2) + (n - 2) rho(2v/3)) / (1 - rho(v/2))     n shares from one discrete Gaussian,
    tau = rho(v/2) / (1 - rho(v/2))                             that from a continuous one, either way.

>>> conversion(5.0, 10**6) < 1e-20
True
"""

from __future__ import annotations

import math

from shuffledp._certified.rounding import CALL, up

LEAST_VARIANCE = 1.0
"""Below, sums of shares are not near to Gaussian noise."""


def conversion(variance: float, people: int) -> float:
    """Upper bound of tau_n + tau: between the sum of ``people`` shares and Gaussian noise of variance
    (people - 1/2) v that is rounded at random; or, noise of variance v added, of variance (people + 1) v."""
    first, others = _rho(0.5 * variance), _rho(2.0 * variance / 3.0)
    return up((2.0 * first + max(people - 2, 0) * others) / (1.0 - first), operations=8)


def tail(variance: float, people: int, size: float) -> float:
    """Upper bound of the probability that the sum of ``people`` shares is beyond +-size."""
    return _falling(0.5 * size * size / (people * variance))


def _rho(u: float) -> float:
    exponent = 2.0 * math.pi**2 * u
    return up(_falling(exponent) / -math.expm1(-3.0 * exponent), operations=2 * CALL)


def _falling(exponent: float) -> float:
    """2 e^-exponent, rounded up; the exponent is off by up to eight units."""
    return up(2.0 * math.exp(-exponent), operations=CALL + 8 * (1.0 + exponent))
