"""A binomial variable in buckets: first elements, and enclosures of their probabilities.

For curves that fall with the variable: the value at a bucket's first element bounds its part of the
mean from above, the value at its last one from below. The buckets are narrow in the bulk, where they
loosen the answer, and grow towards both ends, where hardly any probability is. Any edges are valid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from shuffledp._certified.binomial import (
    MAX_WINDOW,
    interval_probabilities,
    tail_bounds,
    window_probabilities,
)
from shuffledp._certified.rounding import Floats

_BULK, _GROWTH = (5.5, 4.5), 0.25
"""Standard deviations left and right of the mean beyond which widths grow by a part of the distance; tilting
moves them left."""
_AWAY = np.linspace(-10.0, 10.0, 201)  # speed: standard deviations from the mean
_RARE = np.exp(0.25 * _AWAY**2) / math.sqrt(2.0)  # one over the root of the probability, of mean one
_OUTSIDE = _GROWTH * np.maximum(np.maximum(-_AWAY - _BULK[0], _AWAY - _BULK[1]), 0.0)
_WIDEST = 0.5  # tightness: standard deviations in one bucket

_MOST = 4096


@dataclass(frozen=True)
class Buckets:
    """Edges (each bucket's first element, and one beyond the last), enclosed probabilities."""

    edges: Floats
    low: Floats
    high: Floats

    @property
    def first(self) -> Floats:
        return self.edges[:-1]

    @property
    def beyond(self) -> Floats:
        """One more than each bucket's last element."""
        return self.edges[1:]

    @cached_property
    def single(self) -> npt.NDArray[np.bool_]:
        """Whether a bucket is one element."""
        return np.asarray(self.beyond - self.first == 1.0)

    def for_last(self, weight: Floats) -> Floats:
        """For values at first elements: weights that give what ``weight`` gives for values at each bucket's
        last element, or one beyond it. At most one addition."""
        found = np.where(self.single, weight, 0.0)
        found[1:] += np.where(self.single, 0.0, weight)[:-1]
        return found


def binomial_buckets(trials: int, rate: float, rest: float, resolution: float, farther: int = 0) -> Buckets:
    """Uniform in the bulk, with a width of ``resolution`` times the mean (a bucket of relative width
    w loosens epsilon by about w/4); beyond it widths grow. Fine ones go ``farther`` to the right."""
    mean, spread = trials * rate, math.sqrt(trials * rate * rest)
    width = max(1, math.floor(min(resolution * mean, _WIDEST * spread)))
    # Tiny deltas need the far left exactly: they come back with a finer resolution.
    coarse = resolution >= 1e-4 and 2 * width < spread
    if coarse and 24.0 * spread + 120.0 < MAX_WINDOW:
        return _few(trials, rate, rest, width)
    return _all(trials, rate, rest, width, farther)


@lru_cache(maxsize=32)
def _all(trials: int, rate: float, rest: float, width: int, farther: int) -> Buckets:
    """Every bucket enclosed with a small relative error, however rare."""
    mean, spread = trials * rate, math.sqrt(trials * rate * rest)
    low = max(0, math.floor(mean - 9.0 * spread - 60.0))
    if low <= _MOST:
        low = 0  # the farthest tails of a curve may come from there
    high = min(trials, math.ceil(mean + 8.0 * spread + 20.0) + farther)
    edges = np.concatenate([_towards_zero(low, width), np.arange(low, high + 1, width), [trials + 1.0]])
    weight_low, weight_high = interval_probabilities(trials, rate, rest, edges)
    return Buckets(edges, weight_low, weight_high)


@lru_cache(maxsize=32)
def _few(trials: int, rate: float, rest: float, width: int) -> Buckets:
    """The same where the bulk has few values: it is summed, and the ends are bounded.

    From below, what lies 9 deviations to the left or 7.5 to the right counts as nothing."""
    mean, spread = trials * rate, math.sqrt(trials * rate * rest)
    low = max(0, math.floor(mean - 9.0 * spread - 60.0))
    high = min(trials + 1, math.ceil(mean + 7.5 * spread + 20.0))
    inner = _graded(low, high, mean, spread, width)
    left = _towards_zero(low, 2 * width, 1)
    below, above = tail_bounds(trials, rate, rest, np.append(left, low)[1:], inner[-1])
    lost = above + (float(below[-1]) if left.size else 0.0)
    weight_low, weight_high = window_probabilities(trials, rate, rest, inner, lost)
    right = [trials + 1.0] if high <= trials else []
    return Buckets(
        np.concatenate([left, inner, right]),
        np.concatenate([np.zeros(left.size), weight_low, np.zeros(len(right))]),
        np.concatenate([below, weight_high, [above] * len(right)]),
    )


def _graded(low: int, high: int, mean: float, spread: float, width: int) -> Floats:
    """Edges from low to high: steps of ``width`` on average.

    A bucket loosens its part by as much as its elements are away from its first, so the fewest buckets have
    widths that grow, beyond the one element, as one over the root of the probability."""
    wide = 1.0 + np.minimum((width - 1.0) * _RARE, _WIDEST * spread) + spread * _OUTSIDE
    count = np.cumsum(spread * (_AWAY[1] - _AWAY[0]) / wide)
    ends = np.array([low, high], np.float64)
    first, last = np.interp((ends - mean) / spread, _AWAY, count)
    inner = np.rint(mean + spread * np.interp(np.arange(first, last), count, _AWAY))
    inner = inner[(inner > low) & (inner < high)]
    return np.concatenate([ends[:1], inner[np.append(True, inner[1:] > inner[:-1])[: inner.size]], ends[1:]])


def _towards_zero(low: int, width: int, slowly: int = 4) -> Floats:
    """Edges 0 = ... < low, without low itself, each wider than the last by a part of it."""
    found = []
    step, edge = width, low
    while edge > 0:
        edge = max(0, edge - step)
        found.append(edge)
        step += max(1, step // slowly)
    return np.asarray(found[::-1], np.float64)
