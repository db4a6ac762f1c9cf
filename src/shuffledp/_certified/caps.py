"""Caps of the unit sphere: probability and first moment, with relative accuracy in the far tails.

V is uniform on the unit sphere of R^d, u a unit vector, a = (d - 1)/2. For 0 <= t < 1

    moment(t)      = E[<V, u>; <V, u> >= t] = (1 - t^2)^a / (2 a B(1/2, a)),
    probability(t) = Pr[<V, u> >= t] = moment(t) * F,   F = 2F1(1, 2a; a + 1; (1 - t)/2)

What the series, a moved threshold and the overlap of two caps cost: T8, docs/proofs/numerics.md, "Caps".

>>> cap = cap_at(3, 0.5)  # Archimedes: on the sphere of R^3 the height is uniform on [-1, 1]
>>> abs(cap.probability - 0.25) <= cap.error * 0.25
True
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shuffledp._certified.rounding import CALL, down, gamma, up

_TERMS_AT_ONCE = 4096  # speed
_NEGLIGIBLE = 2.0**-60  # speed: what is left of a series is in its error
_SERIES_FROM = 32.0  # soundness: Stirling's series is below 3e-17 off
_FINEST_THRESHOLD = 2.0**-80  # speed
_NODES, _RHO = 20, 3.0  # speed: of a piece, and of its ellipse
_MOST_PIECES = 4000  # speed
_NODE_UNITS, _WEIGHT_UNITS = 16, 2048  # soundness: of numpy's rule; a test measures them


@dataclass(frozen=True)
class SphericalCap:
    """The cap {v: <v, u> >= threshold} of the unit sphere of R^dimension.

    ``small`` is the probability of the smaller of the cap (threshold >= 0) and its complement;
    ``moment`` is E[<V, u>; V in the cap]. Both are within a relative ``error``."""

    dimension: int
    threshold: float
    small: float
    moment: float
    error: float

    @property
    def probability(self) -> float:
        """The probability of the cap."""
        return self.small if self.threshold >= 0.0 else 1.0 - self.small

    @property
    def hazard(self) -> float:
        """-d log(small) / d |threshold|: the density of <V, u> at the threshold over ``small``."""
        t = abs(self.threshold)
        return (self.dimension - 1) * self.moment / ((1.0 - t) * (1.0 + t) * self.small)

    def change(self, height: float) -> float:
        """By how much ``small`` changes at most, relatively, as the threshold moves by ``height``.

        Infinite where the bound does not hold (see module); up to the error of ``hazard``."""
        t = abs(self.threshold)
        x = (2.0 * t + height) * height / ((1.0 - t) * (1.0 + t))
        growth = 0.5 * max(self.dimension - 3, 2) * x
        return self.hazard * height * math.exp(growth) if growth <= 0.5 else math.inf


def overlap(dimension: int, threshold: float, tangent: float = 1.0) -> tuple[float, float]:
    """Pr[<V, u> >= t and <V, z> >= t], t > 0, and a bound of its absolute error.

    ``tangent`` > 0: of half the angle between u and z, one where they are orthogonal."""
    t2, m = threshold * threshold, 0.5 * (dimension - 2)
    if down(t2 * (1.0 + tangent * tangent), operations=4) >= 1.0:
        return 0.0, 0.0
    end = math.sqrt((1.0 - t2) / t2)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    wide, high = 0.5 * (_RHO + 1.0 / _RHO), 0.5 * (_RHO - 1.0 / _RHO)
    remainder = 64.0 / 15.0 * _RHO ** (2 - 2 * _NODES) / (1.0 - _RHO**-2)
    start, total, error, most = tangent, 0.0, 0.0, 0.0
    for _ in range(_MOST_PIECES):
        left = max(end - start, 0.0) + gamma(16) * end
        # What is left: the falling numerator times the integral of 1 / (1 + w^2) <= 1 / start.
        tail = _power(max(1.0 - t2 * (1.0 + start * start), 0.0) + gamma(8), m) * min(left, 1.0 / start)
        if tail <= _NEGLIGIBLE * total or left <= gamma(64) * end:
            break
        half = 0.25 * min(max(start, 0.5), left, 2.0 / (m * t2 * start + 1.0 / max(start, 0.5)))
        middle = start + half
        w = middle + half * nodes
        y = t2 * (1.0 + w * w)
        log = -np.log1p(-y)
        terms = weights * np.exp(-m * log) / (1.0 + w * w)
        units = m * (CALL * log + (_NODE_UNITS + 8) * y / (1.0 - y)) + _WEIGHT_UNITS + CALL + 3 * _NODES
        total += half * float(terms.sum())
        error += half * float((terms * gamma(units)).sum())
        most = max(most, float(units.max()))
        x, rise = middle - wide * half, high * half
        size = math.hypot(1.0 - t2 * (1.0 + x * x - rise * rise), 2.0 * t2 * (middle + wide * half) * rise)
        error += half * remainder * _power(size, m) / (1.0 + x * x - rise * rise)
        start += 2.0 * half
    # The pieces' ends are rounded: what lies between two of them is covered by the units of the nodes.
    # Errors have the units of their terms, and go through two additions per piece.
    count = most + 2 * _MOST_PIECES + 4 * _NODES + 4 * CALL
    return total / math.pi, up((error + tail + total * gamma(_MOST_PIECES)) / math.pi, count)


def _power(base: float, m: float) -> float:
    """base^m, rounded up, for a base that is off by up to 2 CALL units."""
    if base <= 0.0:
        return 0.0 if m > 0.0 else 1.0
    exponent = m * math.log(base)
    # A logarithm, a product and two sums: fewer than 2 CALL units of the exponent.
    return up(math.exp(exponent + gamma(2 * CALL) * (abs(exponent) + m)), operations=CALL + 2)


def cap_at(dimension: int, threshold: float) -> SphericalCap:
    """The cap of a threshold in (-1, 1)."""
    t = abs(threshold)
    log_moment, moment_error = _log_moment(dimension, t)
    ratio, ratio_error = _series(dimension, 0.5 * (1.0 - t))
    moment = math.exp(log_moment)
    error = moment_error + ratio_error + gamma(CALL + 4)  # exp, the product, errors of the errors
    return SphericalCap(dimension, threshold, min(0.5, moment * ratio), moment, error)


def cap_of(dimension: int, probability: float) -> SphericalCap:
    """The cap whose probability is nearest to the given one, in (0, 1)."""
    small = min(probability, 1.0 - probability)
    t = _last(lambda t: cap_at(dimension, t).small >= small)
    return cap_at(dimension, t if probability <= 0.5 else -t)


def best_cap(dimension: int, epsilon0: float) -> SphericalCap:
    """The cap that maximises moment / (1/(e^epsilon0 - 1) + probability).

    Its logarithm has the derivative (density/moment) * (value - threshold): it rises where value >
    threshold and falls where value < threshold, so it crosses its own argument once, at the top."""
    growth = math.expm1(epsilon0)

    def rising(t: float) -> bool:
        cap = cap_at(dimension, t)
        return cap.moment * growth > t * (1.0 + growth * cap.small)

    return cap_at(dimension, _last(rising))


def _last(holds: Callable[[float], bool]) -> float:
    """The largest t in [0, 1) up to which a condition holds that, once false, stays false."""
    low, high = 0.0, 1.0
    while low < (middle := 0.5 * (low + high)) < high and high - low > _FINEST_THRESHOLD:
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _log_moment(dimension: int, t: float) -> tuple[float, float]:
    """log of (1 - t^2)^a / (2 a B(1/2, a)) and a bound of its error."""
    a = 0.5 * (dimension - 1)
    falling = math.log1p(-t * t) if t < 0.5 else math.log((1.0 - t) * (1.0 + t))
    constant = _log_half_step(a) - 0.5 * math.log(math.pi) - math.log(2.0 * a)
    # The first logarithm: CALL units, two in its argument (7 of it, as it is above 0.28, or 2 of a small
    # one), the product, the sum. The constant: see _log_half_step; log(2 a) CALL and four sums.
    units = 136.0 + (2 * CALL) * math.log(max(2.0 * a, 1.0))
    return a * falling + constant, gamma(CALL + 10) * -a * falling + gamma(units)


def _log_half_step(a: float) -> float:
    """log(Gamma(a + 1/2) / Gamma(a)): Stirling's series, without its big terms.

    Units of one: for a < 32 the 32 logarithms add up to 2.1, with CALL each, 32 sums and 2 in the
    arguments: 90; then CALL of log(a) / 2, 7 for the bracket and its sums. With log(pi)'s 5 and four
    sums of what _log_moment adds: 136 for a < 32, and log(a) (CALL / 2 + 2) + 40 beyond."""
    total = 0.0
    while a < _SERIES_FROM:
        total += math.log1p(-0.5 / (a + 0.5))
        a += 1.0
    main = 0.5 * math.log(a) + (a * math.log1p(0.5 / a) - 0.5)
    return total + main + (_stirling(a + 0.5) - _stirling(a))


def _stirling(z: float) -> float:
    """Stirling's remainder at z >= 32; the first omitted term, 1/(1188 z^9), is below 3e-17."""
    y = 1.0 / (z * z)
    return (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y / 1680.0))) / z


def _series(dimension: int, w: float) -> tuple[float, float]:
    """2F1(1, d - 1; (d + 1)/2; w) for w in [0, 1/2] and a bound of its relative error."""
    total, weighted, term, start = 0.0, 0.0, 1.0, 0.0
    while True:
        index = start + np.arange(_TERMS_AT_ONCE)
        factor = (dimension - 1.0 + index) / (0.5 * (dimension + 1.0) + index) * w
        terms = term * np.concatenate([[1.0], np.cumprod(factor)])
        total += math.fsum(terms[:-1])
        weighted += float(index @ terms[:-1])
        # From here on every factor is below the last one (dimension >= 3) or below w (dimension 2).
        most = max(float(factor[-1]), w)
        term, start = float(terms[-1]), start + _TERMS_AT_ONCE
        rest = term / (1.0 - most)
        if rest <= _NEGLIGIBLE * total:
            # A factor has 3 units (2 operations, w) and its product one; each block two; exact sums.
            units = 4.0 * weighted / total + 2.0 * start / _TERMS_AT_ONCE + 8.0
            return total, gamma(units) + rest / total
