"""Where to call values of X jumps, and where to cap them: estimates that only choose (see jumps).

Any threshold and any cap is valid, so nothing here is certified."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shuffledp._certified.rounding import LARGEST_EXPONENT, TINY, Floats
from shuffledp.accounting._hints.saddle import log_saddle

Bools = npt.NDArray[np.bool_]

_COUNTS = np.append(0.0, 10.0 ** np.arange(-17.0, -2.0, 2.0))
"""Expected numbers of jumps to choose from (0: there are none)."""
_FEW_JUMPS = 1e-5
_MUCH_LESS = 0.5
_BEYOND_THE_MEAN = 1.5  # speed: caps at least so far, so that a coarse lattice will do
_BEYOND = np.append(np.arange(0.0, 12.0, 0.5), np.geomspace(12.0, 1e4, 40))
"""Deviations of a typical crowd's sum beyond its mean, to choose from."""


@dataclass(frozen=True)
class Split:
    """Rows of laws with the values above ``b`` called jumps, and an estimate: nothing is certified.

    ``total`` is about (1/n) E[(sum)_+], rather more than less; ``heavy``: much less than without."""

    b: Floats
    total: Floats
    heavy: Bools

    @classmethod
    def best(cls, x: Floats, w: Floats, n: int) -> Split:
        """For values x and weights w that sum to one: a threshold with a small estimate, of a few."""
        b = _thresholds(x, w, n)
        rows, kinds = b.shape
        new = np.concatenate([np.ones((rows, 1), bool), b[:, 1:] != b[:, :-1]], axis=1).ravel()
        place = np.cumsum(new) - 1  # thresholds that are the same are looked at once
        row = np.repeat(np.arange(rows), kinds)[new]
        flat, weight = x[row], w[row]
        kept = flat <= b.reshape(-1, 1)[new]
        below = np.where(kept, weight, 0.0)
        below = below / below.sum(axis=1, keepdims=True)
        values = np.where(kept, flat, 0.0)
        usable = values.max(axis=1) > 0.0
        bulk = np.zeros(len(values))
        bulk[usable] = _saddle_estimate(values[usable], below[usable], n)
        mean, variance = typical(values, below, n)
        reach = flat + n * mean[:, None]
        # Scarf: E[(y + S)_+] <= (y + sqrt(y^2 + var S)) / 2 for S of mean zero.
        excess = 0.5 * (reach + np.hypot(reach, np.sqrt(n * variance)[:, None]))
        excess = np.minimum(excess, _alone(x, w, n)[row])
        jumps = np.where(kept, 0.0, weight * excess).sum(axis=1)
        bulk, total = (part[place].reshape(rows, kinds) for part in (bulk, bulk + jumps))
        least = total.min(axis=1)
        # The more are called jumps, the faster is the sum of the others.
        good = (bulk <= least[:, None]) & (_COUNTS <= _FEW_JUMPS)
        last = kinds - 1 - np.argmax(good[:, ::-1], axis=1)
        chosen = np.where(good.any(axis=1), last, np.argmin(total, axis=1))
        found = b[np.arange(rows), chosen]
        # Where hardly anybody has a positive value, all of those are jumps.
        found = np.maximum(found, 0.5 * np.where(x > 0.0, x, np.inf).min(axis=1, initial=x.max()))
        return cls(found, least, least <= _MUCH_LESS * total[:, 0])


def _alone(x: Floats, w: Floats, n: int) -> Floats:
    """Of every value, what it adds if that is nothing unless all others are smaller in size."""
    order = np.argsort(x, axis=1)
    value = np.take_along_axis(x, order, axis=1)
    below = np.cumsum(np.take_along_axis(np.broadcast_to(w, x.shape), order, axis=1), axis=1)
    places = [np.searchsorted(row, -here) for row, here in zip(value, x, strict=True)]
    beyond = np.take_along_axis(np.insert(below, 0, 0.0, axis=1), np.array(places), axis=1)
    return np.asarray(np.maximum(x, 0.0) * np.exp(-n * beyond))


def _thresholds(x: Floats, w: Floats, n: int) -> Floats:
    """Per row and expected number of jumps, the smallest value with no more than that above it."""
    order = np.argsort(-x, axis=1)
    mass = np.take_along_axis(w, order, axis=1)
    above = n * (np.cumsum(mass, axis=1) - mass)
    last = (above[:, None, :] <= _COUNTS[None, :, None]).sum(axis=2) - 1
    return np.take_along_axis(np.take_along_axis(x, order, axis=1), last, axis=1)


def typical(x: Floats, w: Floats, n: int) -> tuple[Floats, Floats]:
    """Mean and variance of values cut where fewer than one of n lies beyond: a typical crowd's."""
    cap = _typical_size(x, w, n)[:, None]
    cut = np.clip(x, -cap, cap)
    mean = (w * cut).sum(axis=1)
    return mean, np.maximum((w * cut * cut).sum(axis=1) - mean * mean, 0.0)


def _typical_size(x: Floats, w: Floats, n: int) -> Floats:
    """Of every row the size beyond which fewer than one of n lies."""
    size = np.abs(x)
    order = np.argsort(-size, axis=1)
    mass = np.take_along_axis(w, order, axis=1)
    last = np.minimum((n * np.cumsum(mass, axis=1) <= 1.0).sum(axis=1), x.shape[1] - 1)
    return np.asarray(np.take_along_axis(size, order, axis=1)[np.arange(len(x)), last])


def _saddle_estimate(x: Floats, w: Floats, n: int) -> Floats:
    """(1/n) E[(sum)_+] by the saddle point, to a few percent where no jumps decide."""
    top = x.max(axis=1)
    with np.errstate(over="ignore"):  # what is too low is raised
        scaled = x / top[:, None]
    found = np.log(top / n) + log_saddle(scaled, w, n)
    return np.asarray(np.exp(np.clip(found, -LARGEST_EXPONENT, LARGEST_EXPONENT)))


def decisive(x: Floats, w: Floats, n: int, budget: Floats) -> Floats:
    """Of every row about the smallest c such that capping X at c loses no more than ``budget``.

    (X + S)_+ <= (min(X, c) + S)_+ + (X - c)_+ is an equality unless S < -c: so what is lost is about
    E[(X - c)_+] P(S < -c), which is Bernstein's bound of a typical crowd, and that of a single low value."""
    mean, variance = typical(x, w, n)
    spread, largest = np.sqrt(n * variance + TINY), _typical_size(x, w, n)
    away = -n * mean[:, None]
    caps = np.maximum(away + spread[:, None] * _BEYOND, _BEYOND_THE_MEAN * away)
    rare = np.exp(-0.5 * _BEYOND**2 / (1.0 + np.outer(largest / spread, _BEYOND / 3.0)))
    order = np.argsort(-x, axis=1)
    value, weight = np.take_along_axis(x, order, axis=1), np.take_along_axis(w, order, axis=1)
    above = np.cumsum(weight, axis=1)
    calls = np.cumsum(above[:, :-1] * -np.diff(value, axis=1), axis=1)
    calls = np.concatenate([np.zeros((len(x), 1)), calls], axis=1)
    found = np.empty(len(x))
    for row, cap in enumerate(caps):
        rising = value[row, ::-1]
        lost = np.interp(cap, rising, calls[row, ::-1], right=0.0)
        below = np.append(0.0, np.cumsum(weight[row, ::-1]))
        hidden = n * below[np.searchsorted(rising, -0.5 * cap)] + rare[row]
        good = (lost * np.minimum(hidden, 1.0) <= budget[row]) & (cap > 0.0)
        found[row] = cap[np.argmax(good)] if good.any() else value[row, 0]
    return np.minimum(found, value[:, 0])


def far_enough(x: Floats, w: Floats, b: float, n: int, budget: float) -> float:
    """The same of one law among few people, from b on, by a fourth moment: scores below keep their size."""
    order = np.argsort(-x)
    value, above = x[order], np.cumsum(w[order])
    calls = np.append(0.0, np.cumsum(above[:-1] * -np.diff(value)))
    mean, variance = (float(part[0]) for part in typical(x[None], w[None], n))
    room = np.maximum(value + n * mean, 0.0) ** 2
    spread = n * variance + TINY
    hidden = n * ((-x > 0.5 * value[:, None]) @ w) + (spread / np.maximum(room, spread)) ** 2
    good = (calls * np.minimum(hidden, 1.0) <= budget) & (value >= b)
    return float(value[max(int(good.cumprod().sum()) - 1, 0)])
