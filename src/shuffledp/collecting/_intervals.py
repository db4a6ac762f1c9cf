"""Confidence intervals for a count, under the randomizer's true law.

A category that c of n users hold is supported by S = Bin(c, p) + Bin(n - c, q) reports, p > q. An
interval holds every c in [0, n] that S does not reject, at (1 - confidence)/2 on either side. P(S >= s)
rises with c, so that is an interval. It holds the true count of these n users with probability

* at least ``confidence`` where the tails are summed exactly: where fewer than about a hundred
  supporters are expected to be noise (Clopper-Pearson intervals, for two binomials);
* ``confidence`` up to the error of the normal approximation elsewhere: the score interval with the
  variance at c itself (as Wilson's) and a continuity correction of half a report.

Each interval is about its own category. For all k at once use the confidence 1 - (1 - confidence)/k.

>>> low, high = count_intervals([30], n=100, p=1.0, q=0.0, confidence=0.95)
>>> float(low[0]), float(high[0])
(30.0, 30.0)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from shuffledp import _validate
from shuffledp._certified.rounding import Floats, capped

Whole = npt.NDArray[np.int64]

_RARE = 120.0
"""Expected events of either kind up to which tails are summed."""
_SUMMED = 600.0
"""Expected random messages up to which their law is summed: e to minus that is a number."""
_SMALL = 1e-9
"""A deviation, in scales of other noise, that does not matter."""
_NARROWED = 3
"""Times that the largest possible count is narrowed down."""
_ROWS = 2048
"""Different supports worked on at once: bounds the memory."""


def count_intervals(support: Any, n: int, p: float, q: float, confidence: float) -> tuple[Floats, Floats]:
    """(low, high) per category for its true count among n users."""
    level = checked_confidence(confidence)
    # Equal supports have equal intervals.
    seen, back = np.unique(np.asarray(support, dtype=np.int64), return_inverse=True)
    low, high = _score(seen, n, p, q, level)
    # The exact interval may be wider than the approximate one, but not by that much.
    middle = np.maximum((seen - n * q) / (p - q), 0.0)
    cap = np.minimum(np.ceil(middle + 3.0 * (high - middle) + 10.0 / (p - q)), float(n))
    rare = np.flatnonzero((cap * min(p, 1.0 - p) <= _RARE) & (n * q <= _RARE) & (q <= 0.5))
    for start in range(0, rare.size, _ROWS):
        part = rare[start : start + _ROWS]
        few = _Few(seen[part], cap[part].astype(np.int64), n, p, q)
        low[part], high[part] = few.interval(0.5 * (1.0 - level))
    return low[back.reshape(-1)], high[back.reshape(-1)]


def noisy_intervals(
    support: Any, n: int, noise: tuple[float, int, float], confidence: float
) -> tuple[Floats, Floats]:
    """(low, high) per category supported by c + B messages, B = Bin(n - c, q) + Bin(trials, chance).

    ``noise``: (q, trials, chance). B falls as c grows, stochastically. So the smallest c that is not rejected
    is at least s less the quantile of B at c = 0; and if no c above c' is possible, none is above s less the
    quantile of B at c': from c' = s (noise is never negative) on. Both only widen the interval."""
    level, (q, trials, chance) = checked_confidence(confidence), noise
    seen, back = np.unique(np.asarray(support, dtype=np.int64), return_inverse=True)
    mean = n * q + trials * chance
    if mean > _SUMMED:
        middle = (seen - mean) / (1.0 - q)
        spread = np.sqrt((n - np.clip(middle, 0.0, n)) * q * (1.0 - q) + trials * chance * (1.0 - chance))
        margin = (quantile(level) * spread + 0.5) / (1.0 - q)
        low, high = middle - margin, middle + margin
    else:
        share = 0.5 * (1.0 - level)
        other = _law(np.array([trials]), chance)[0]
        most = _cumulated(np.array([n]), q, other)[0]
        # The largest b with P(B >= b) > share.
        low = seen - np.searchsorted(most, 1.0 - share).astype(np.float64)
        high = np.minimum(seen, n)
        for start in range(0, seen.size, _ROWS):
            part = slice(start, start + _ROWS)
            for _ in range(_NARROWED):
                below = _cumulated(n - np.maximum(high[part], 0), q, other)
                high[part] = np.minimum(high[part], seen[part] - (below <= share).sum(axis=1))
        high = high.astype(np.float64)
    ends = np.clip(low, 0.0, float(n)), np.clip(high, 0.0, float(n))
    return ends[0][back.reshape(-1)], ends[1][back.reshape(-1)]


def _cumulated(trials: Whole, q: float, other: Floats) -> Floats:
    """Rows of P(Bin(trials, q) + other <= b), b = 0, 1, ..., ``other`` a law on the same numbers."""
    if q == 0.0:
        return np.tile(np.cumsum(other), (len(trials), 1))
    gained = _law(trials, q)
    sums = np.array([np.convolve(row, other) for row in gained])
    return np.cumsum(sums, axis=1)


def checked_confidence(confidence: Any) -> float:
    """A confidence level for which intervals are computed accurately."""
    level = _validate.probability("confidence", confidence)
    if not 0.01 <= level <= 0.999999999:
        raise ValueError(f"confidence must be in [0.01, 1 - 1e-9], got {confidence!r}")
    return level


def quantile(confidence: float) -> float:
    """Half the width of a two-sided normal interval, in standard errors."""
    return NormalDist().inv_cdf(0.5 + 0.5 * confidence)


def laplace_margin(confidence: float, scale: float, standard_error: float) -> float:
    """Half the width of an interval for Laplace noise of ``scale`` plus a normal one: an error of both.

    With the normal part's deviation s and scale b, for t > 0,
    P(|noise| > t) = 2 Phi(-t/s) + e^(s^2/2b^2) (e^(-t/b) Phi(t/s - s/b) - e^(t/b) Phi(-t/s - s/b))."""
    if scale == 0.0:
        return quantile(confidence) * standard_error
    s = max(math.sqrt(max(standard_error**2 - 2.0 * scale**2, 0.0)), _SMALL * scale)
    phi, bend = NormalDist().cdf, 0.5 * (s / scale) ** 2

    def beyond(t: float) -> float:
        near = math.exp(bend - t / scale) * phi(t / s - s / scale)
        return 2.0 * phi(-t / s) + near - math.exp(capped(bend + t / scale)) * phi(-t / s - s / scale)

    low, high = 0.0, 45.0 * (scale + s)
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if beyond(middle) > 1.0 - confidence else (low, middle)
    return high


def _score(seen: Whole, n: int, p: float, q: float, confidence: float) -> tuple[Floats, Floats]:
    """The ends of {c in [0, n]: |estimate -+ 1/2 report - c| <= z sqrt(variance at c)}."""
    z = quantile(confidence)
    gap = p - q
    at_zero = n * q * (1.0 - q) / gap**2
    slope = (p * (1.0 - p) - q * (1.0 - q)) / gap**2
    shift = 0.5 * z * z * slope
    ends = []
    for side in (-1.0, 1.0):
        estimate = (seen - n * q + side * 0.5) / gap
        # Roots of (c - estimate)^2 = z^2 (at_zero + slope c).
        square = shift**2 + z * z * (at_zero + slope * estimate)
        end = estimate + shift + side * np.sqrt(np.maximum(square, 0.0))
        ends.append(np.clip(end, 0.0, float(n)))
    return ends[0], ends[1]


@dataclass(frozen=True)
class _Few:
    """Tails of S for few expected events, for counts up to ``cap``, per entry of ``seen``."""

    seen: Whole
    cap: Whole
    n: int
    p: float
    q: float

    def interval(self, share: float) -> tuple[Floats, Floats]:
        """The smallest c with P(S >= s) > share, and the largest with P(S <= s) > share."""
        low = self._first(lambda c: self._at_least(self.seen, c) > share)
        past = self._first(lambda c: 1.0 - self._at_least(self.seen + 1, c) <= share)
        # Not rejected up to the cap: nothing is said about what lies beyond.
        high = np.where(past > self.cap, self.n, np.maximum(past - 1, 0))
        return np.minimum(low, self.cap).astype(np.float64), high.astype(np.float64)

    def _first(self, test: Callable[[Whole], npt.NDArray[np.bool_]]) -> Whole:
        """Per entry the smallest c in [0, cap] at which a rising test holds, cap + 1 if none does."""
        low, high = np.zeros_like(self.cap), self.cap + 1
        while (low < high).any():
            middle = (low + high) // 2
            holds = test(np.minimum(middle, self.cap)) | (low >= high)
            low, high = np.where(holds, low, middle + 1), np.where(holds, middle, high)
            low = np.minimum(low, high)
        return low

    def _at_least(self, seen: Whole, c: Whole) -> Floats:
        """P(S >= seen) if c users hold the category."""
        gained = _law(self.n - c, self.q)
        tail = np.cumsum(gained[:, ::-1], axis=1)[:, ::-1]
        tail = np.concatenate([tail, np.zeros((len(c), 1))], axis=1)
        if self.p >= 0.5:  # S = c - lost + gained
            own = _law(c, 1.0 - self.p)
            needed = (seen - c)[:, None] + np.arange(own.shape[1])
        else:  # S = kept + gained
            own = _law(c, self.p)
            needed = seen[:, None] - np.arange(own.shape[1])
        reached = np.take_along_axis(tail, np.clip(needed, 0, gained.shape[1]), axis=1)
        return np.asarray((own * reached).sum(axis=1))


def _law(trials: Whole, chance: float) -> Floats:
    """Rows of P(Bin(trials, chance) = j), j = 0, 1, ... to 12 deviations above the largest mean."""
    most = float(trials.max())
    size = int(min(most, most * chance + 12.0 * np.sqrt(most * chance) + 40.0)) + 1
    steps = np.arange(1, size)
    ratio = (trials[:, None] - steps + 1.0) / steps * (chance / (1.0 - chance))
    first = np.exp(trials * np.log1p(-chance))[:, None]
    return np.concatenate([first, first * np.cumprod(np.maximum(ratio, 0.0), axis=1)], axis=1)
