"""Many laws of X at once, by their moments alone: which of them can be the worst crowd (T16, section 6).

With D = X + alpha - 1, u = tau D at most b and r_j(b) = (e^b - 1 - b - ... - b^(j-1)/(j-1)!)/b^j, which rises
with b, all that the integral of a law needs follows from E[D], ..., E[D^6], without an exponential for every
value: e^u is above its polynomials of odd degree, and below those of even degree whose last coefficient is
r_j(b)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shuffledp._certified.rounding import LARGEST_EXPONENT, Floats, down, gamma, positive, up
from shuffledp.accounting._curves.crowd_family import Places
from shuffledp.accounting._curves.crowd_inside import log_inside
from shuffledp.accounting._curves.crowd_laws import Laws, Taking

_UNITS = 64  # soundness: operations that a value, a mass or a bound carries
_POWERS = 6
_TERMS = 8  # tightness: of a series up to 1
_LEAST_TRANSFORM = 0.5  # soundness: far from zero; of less nothing is said


class Moments(NamedTuple):
    """E[D^j] of laws (rows) is between ``low`` and ``high`` of j - 1, D is at most ``top``; ``doubt``: of a
    transform, whatever its tau, and for each unit of tau."""

    low: Floats
    high: Floats
    top: Floats
    doubt: tuple[float, Floats]

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")  # of huge values nothing is said
    def of(cls, laws: Laws, growth: float) -> Moments:
        unit = gamma(_UNITS + 4 * laws.x.shape[1])
        away, size = laws.x + growth, laws.size + growth
        power, square = laws.p, size * size
        sizes, values, part = np.ones((4, len(away), 1)), np.empty((_POWERS, len(away), 1)), laws.p
        for j in range(1, _POWERS + 1):
            power = power * away
            values[j - 1] = power.sum(axis=1)[:, None]
            if j % 2 == 0:
                part = part * square
                sizes[j // 2] = part.sum(axis=1)[:, None]
        # D^j is off by j units of size^j; of odd j at most the root of the moments beside.
        roots = np.sqrt(sizes)
        reach = [roots[j // 2] * roots[(j + 1) // 2] for j in range(1, _POWERS + 1)]
        off = np.stack([2.0**j * unit * part for j, part in enumerate(reach, 1)])
        top = up((away + unit * size).max(axis=1, initial=0.0), _UNITS)[:, None]
        return cls(values - off, values + off, top, (16.0 * unit, 16.0 * unit * roots[1]))

    def some(self, rows: Places) -> Moments:
        doubt = self.doubt[0], self.doubt[1][rows]
        return Moments(self.low[:, rows], self.high[:, rows], self.top[rows], doubt)

    def log_chernoff(self, tau: Floats, taking: Taking) -> Floats:
        """More than log N(tau) / (2 pi) of every law (rows) at every tau: phi is at most its value at w = 0,
        and N at most pi / tau times its power; from four moments."""
        with np.errstate(all="ignore"):
            change, size = self._change(tau, self._reach(tau))
            exponent = self._exponent(tau, taking, change, size)
        return np.asarray(taking.users * exponent - np.log(2.0 * tau) + gamma(_UNITS))

    def log_normal(self, tau: Floats, taking: Taking) -> Floats:
        """The same from six, where nobody flips a coin: the variance under the tilt, and its fourth moment,
        tell what is left of pi / tau (the lemma of moments)."""
        with np.errstate(all="ignore"):
            reach = self._reach(tau)
            change, size = self._closely(tau, reach)
            exponent = self._exponent(tau, taking, change, size)
            largest = np.exp(exponent + tau * taking.growth)
            variance, k = self._spread(tau, reach, largest)
            return np.asarray(taking.users * exponent + log_inside(tau, taking.users * variance, k))

    def _reach(self, tau: Floats) -> Floats:
        return np.minimum(tau * self.top, LARGEST_EXPONENT)

    def _change(self, tau: Floats, reach: Floats) -> tuple[Floats, Floats]:
        """At most E[e^u] - 1, but for rounding; and the size of its terms."""
        mean, second, third, fourth = self.high[:4]
        even = tau**2 / 2.0 * second + tau**4 * _rest(reach, 4) * fourth
        return tau * np.maximum(mean, 0.0) + even + tau**3 / 6.0 * third, even

    def _closely(self, tau: Floats, reach: Floats) -> tuple[Floats, Floats]:
        """The smaller one of ``_change`` and what all moments say."""
        mean, second, third, fourth, fifth, sixth = self.high
        four, size = self._change(tau, reach)
        even = tau**2 / 2.0 * second + tau**4 / 24.0 * fourth + tau**6 * _rest(reach, 6) * sixth
        six = tau * np.maximum(mean, 0.0) + even + tau**3 / 6.0 * third + tau**5 / 120.0 * fifth
        return np.minimum(four, six), np.maximum(size, even)

    def _exponent(self, tau: Floats, taking: Taking, change: Floats, size: Floats) -> Floats:
        """At most log phi(0). Odd terms are no larger than those beside them; each is off by a few units."""
        slack = self.doubt[0] + tau * self.doubt[1] + gamma(4 * _UNITS) * (size + tau * taking.growth)
        return np.asarray(np.log1p(taking.rate * np.maximum(change, 0.0)) - tau * taking.growth + slack)

    def _spread(self, tau: Floats, reach: Floats, largest: Floats) -> tuple[Floats, Floats]:
        """At least the variance of D under the tilt, and at most k; ``largest``: at least E[e^u]."""
        low, high, off = self.low, self.high, gamma(4 * _UNITS)
        square = tau**2 * _rest(reach, 2)
        # E[e^u] >= 1 + E[u], and E[D e^u] >= E[D]; from above by their series.
        least = 1.0 - self.doubt[0] + tau * low[0]
        even = tau * high[1] + tau**3 * _rest(reach, 3) * high[3]
        tilted = np.maximum(np.maximum(high[0], 0.0) + even + tau**2 / 2.0 * high[2] + off * even, -low[0])
        mean = up(tilted / least, 2 * _UNITS)  # and its square
        # E[D^2 e^u] from below by either polynomial, and with E[D^4 e^u] from above.
        more = np.maximum(tau**2 / 2.0 * low[3] + tau**3 / 6.0 * low[4], 0.0)
        below = low[1] + tau * low[2] + more
        below = below - off * (high[1] + tau**2 * high[3] + tau**4 * high[5])
        variance = down(np.maximum(below, 0.0) / largest, _UNITS) - mean * mean
        variance = np.where(least > _LEAST_TRANSFORM, np.maximum(variance, 0.0), 0.0)
        second, fourth = (
            ((1.0 + off) * (high[j - 1] + square * high[j + 1]) + tau * high[j]) / least for j in (2, 4)
        )
        central = (np.sqrt(np.sqrt(np.maximum(fourth, 0.0))) + mean) ** 4
        return variance, positive(up(central / (12.0 * positive(variance)) + 0.25 * second, 2 * _UNITS))


def _rest(b: Floats, order: int) -> Floats:
    """r_order(b), rounded up: up to 1 by its series, of which the last term counts as a geometric series; the
    difference beyond is off by units of e^b."""
    short, long = np.minimum(b, 1.0), np.maximum(b, 1.0)
    series = 1.0 / (1.0 - short / (order + _TERMS + 1.0))
    for j in range(_TERMS, 0, -1):
        series = 1.0 + series * short / (order + j)
    head = np.ones_like(long)
    for j in range(order - 1, 0, -1):
        head = 1.0 + head * long / j
    grown = np.exp(long)
    beyond = (grown * (1.0 + gamma(_UNITS)) - head) / long**order
    return up(np.where(b < 1.0, series / math.factorial(order), beyond), _UNITS)
