"""Binary randomized response in a random cohort of fixed size: the worst of all crowds, one by one.

Theorem T12' (docs/proofs/cohorts.md). Of N people a random cohort of n takes part, g = n/N. With r =
e^-epsilon0, q = r/(1 + r) and D = g (1/r - r), and with k of those who are drawn holding x' and n - k x,

    H_alpha <= max over k of (D/n) E[(B - alpha A - t_k)_+],    A ~ Bin(n - k, q),    B ~ Bin(k, q),
    t_k = (n (1 - g)(alpha - 1) - g ((n - k)(1 - alpha r) - k (alpha - r)))/D:

A and B count those who lie. E[(B - t)_+] falls in t and is a line between whole numbers, so that tables of
it, and of the law of A, give the curve at every alpha. What A has beyond a table's end is put there, where
E[(B - t)_+] is larger. No absolute value is taken (T16), which costs most where few lie.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp._certified.rounding import CALL, Floats, capped, down, gamma, up
from shuffledp.accounting._curves.profile import PrivacyProfile, SupportingLines

_LARGEST = 150_000  # speed: entries of a table
_FARTHEST = 100.0  # soundness: e^-epsilon0 is far from underflow
_DEVIATIONS, _MORE = 10.0, 30  # tightness: of those who lie, up to where they are told apart
_STEP = 16  # soundness: units of a step of a table
_UNITS = 64  # soundness: operations of t, and of what is summed


@dataclass(frozen=True)
class BinaryCohortProfile(PrivacyProfile):
    """n people who are a random ``fraction`` of all."""

    n: int
    epsilon0: float
    fraction: float

    @classmethod
    def serves(cls, n: int, epsilon0: float) -> bool:
        """Whether tables are small."""
        return 0.0 < epsilon0 <= _FARTHEST and (n + 1.0) * (_told(n, math.exp(-epsilon0)) + 2.0) <= _LARGEST

    @cached_property
    def _kept(self) -> float:
        """r, rounded down: a larger epsilon0 is no more private."""
        return down(math.exp(-self.epsilon0), operations=CALL)

    @cached_property
    def _share(self) -> float:
        """g, rounded up: with it the curve grows, as X' less its mean is g times X less its mean."""
        return min(up(self.fraction, operations=1), 1.0)

    @property
    def epsilon_max(self) -> float:
        most = self._share * (1.0 - self._kept) / self._kept
        return up(math.log1p(most), operations=CALL + 4)

    @cached_property
    def _tables(self) -> tuple[Floats, Floats]:
        """Of Bin(m, q) for every m: the probability of each j, that of the last one with all beyond; and
        E[(Bin(m, q) - j)_+], which needs no more than those of fewer people up to the same j."""
        lie, truth = self._kept / (1.0 + self._kept), 1.0 / (1.0 + self._kept)
        last = _told(self.n, self._kept)
        law, excess = np.zeros((self.n + 1, last + 1)), np.zeros((self.n + 1, last + 2))
        law[0, 0] = 1.0
        for m in range(self.n):
            law[m + 1] = truth * law[m]
            law[m + 1, 1:] += lie * law[m, :-1]
            law[m + 1, -1] = law[m, -1] + lie * law[m, -2]
            excess[m + 1] = truth * excess[m]
            excess[m + 1, 0] += lie * (m * lie + 1.0)
            excess[m + 1, 1:] += lie * excess[m, :-1]
        return law, excess

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        return self._bounds(epsilon)[0]

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        """Tangents of the bound itself, as of crowds."""
        return self._lines(epsilon, *self._bounds(epsilon))

    def both(self, epsilon: Floats, resolution: float) -> tuple[Floats, SupportingLines]:
        found = self._bounds(epsilon)
        return found[0], self._lines(epsilon, *found)

    @staticmethod
    def _lines(epsilon: Floats, value: Floats, slope: Floats) -> SupportingLines:
        return SupportingLines(epsilon, value, slope, slope)

    def _bounds(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Upper bounds, and about their slopes in alpha."""
        found = [self._at(growth) for growth in down(np.expm1(capped(epsilon)), CALL, tiny=0.0).tolist()]
        value, slope = np.array(found).reshape(-1, 2).T
        return np.where(epsilon >= self.epsilon_max, 0.0, np.minimum(value, 1.0)), slope

    def _at(self, growth: float) -> tuple[float, float]:
        """At alpha = 1 + growth, of all k (rows) and A (columns)."""
        (law, excess), n, g, r = self._tables, self.n, self._share, self._kept
        k, last = np.arange(n + 1.0), law.shape[1] - 1
        unit = (1.0 - r) * (1.0 + r) / r
        parts = np.stack(
            [
                n * (1.0 - g) * growth / g / unit + 0.0 * k,
                -(n - k) * (1.0 - r) / unit,
                (n - k) * growth * r / unit,
                k * (1.0 - r) / unit,
                k * growth / unit,
            ]
        )
        # t less what it may be off by: the sum only grows.
        lies = np.arange(last + 1.0) * (1.0 + growth)
        off = gamma(_UNITS) * (np.abs(parts).sum(axis=0)[:, None] + lies)
        t = parts.sum(axis=0)[:, None] + lies - off
        inside = np.clip(t, 0.0, float(last))
        place = inside.astype(np.intp)
        right, rows = inside - place, np.arange(n + 1)[:, None]
        low, high = excess[rows, place], excess[rows, place + 1]
        mean = (k * (r / (1.0 + r)))[:, None]
        weight = law[::-1]
        whole = (weight * np.where(t < 0.0, mean - t, low * (1.0 - right) + high * right)).sum(axis=1)
        most = int(whole.argmax())
        value = up(float(whole[most]) * unit * g / n, operations=_STEP * n + last + _UNITS)
        told = np.where(t[most] < 0.0, 1.0, low[most] - high[most])
        fall = (n * (1.0 - g) + g * ((n - k[most]) * r + k[most])) / (g * unit) + np.arange(last + 1.0)
        return value, float((weight[most] * told * fall).sum()) * unit * g / n


def _told(n: int, kept: float) -> int:
    """Up to how many who lie are told apart."""
    mean = n * kept / (1.0 + kept)
    return min(n, math.ceil(mean + _DEVIATIONS * math.sqrt(mean)) + _MORE)
