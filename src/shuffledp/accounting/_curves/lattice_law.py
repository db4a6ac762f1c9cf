"""The law of X on a lattice: (1/n) E[(X_1 + ... + X_n)_+] from above and from below.

The law is put on a lattice that contains 0 and the largest value of X:

* from above, every value is split onto its two lattice neighbours, keeping the mean: a
  mean-preserving spread, and E[(sum)_+] increases under it;
* from below, (s)_+ >= s 1[A] for every event A. A is "the sum of the values *rounded* to the
  lattice exceeds a threshold": the Neyman-Pearson test with rounded scores.

Both lose only the second order of the lattice spacing. See _certified.lattice_sum for the rest.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from shuffledp._certified.lattice_sum import ERROR_UNITS, Group, Own, log_transform, tail_sum
from shuffledp._certified.rounding import UNIT, Floats
from shuffledp.accounting._curves.jumps import Jumps
from shuffledp.accounting._hints.jump_split import Split
from shuffledp.accounting._hints.saddle import TOO_LOW, log_saddle, saddle
from shuffledp.errors import NoCertificateError

_LATTICES = np.unique(np.geomspace(1, 20_000, 100).round())
_HALVES = np.array([1.0, 2.0, 3.0, 4.0, 6.0, 8.0])
_FEW_TYPES = 6
_LOWEST = -1e300
_FEW_USERS = 16
_RARE = 0.01
_CANCELLED = 4.0
"""Chernoff's bound exceeds the sum by more where no tilt suits it: jumps decide."""


@dataclass(frozen=True)
class SpreadLaw:
    """Tilt and lattice for a batch of laws (rows) of X: values x, probabilities ``clone``.

    The value 0 with the remaining probability is the last column; x is in units of ``top``, its
    largest value. Lattice points are ``origin + h z``, z whole; the origin is the most probable.

    Rare extreme values would force a coarse lattice on all others. From above, X <= min(X, c) +
    (X - c)_+, and the mean of the latter is added (``beyond``); values that are too low are raised.
    Where a single report may decide and no tilt suits the law, its jumps are told apart (see jumps).
    From below x is only a score, and any will do."""

    n: int
    top: Floats
    beyond: Floats
    x: Floats
    w: Floats
    theta: Floats
    origin: Floats
    h: Floats

    @classmethod
    def of(cls, weight: Floats, clone: Floats, n: int, resolution: float) -> SpreadLaw | _Apart:
        x, w = _complete(_ratios(weight, clone), clone)
        if clone.size <= _FEW_TYPES:
            return cls.cut_at(x, w, n, resolution, x.max(axis=1), np.full(len(x), -np.inf))
        # Any cut is valid: this one is meant to loosen delta by a share of the resolution.
        split = Split.best(x, w, n)
        budget = 0.1 * resolution * np.minimum(split.total, 1.0)
        found = cls.cut_within(x, w, n, resolution, budget)
        heavy = split.heavy & (n > _FEW_USERS)
        heavy &= found.chernoff() > _CANCELLED * split.total
        if not heavy.any():
            return found
        # Without the jumps, where they decide: those are told apart.
        b = np.where(heavy, split.b, np.inf)[:, None]
        bulk = np.where(x > b, 0.0, w)
        bulk = bulk / bulk.sum(axis=1, keepdims=True)
        found = cls.cut_within(np.where(x > b, 0.0, x), bulk, n, resolution, budget)
        rows = zip(x[heavy], w[heavy], split.b[heavy], budget[heavy], strict=True)
        jumps = tuple(
            Jumps.of(u, v, float(b), n, resolution, float(share)) for u, v, b, share in rows
        )
        return _Apart(heavy, found, jumps, budget)

    @classmethod
    def cut_within(
        cls, x: Floats, w: Floats, n: int, resolution: float, budget: Floats
    ) -> SpreadLaw:
        """The lattice for values cut where that moves their mean by no more than ``budget``."""
        return cls.cut_at(x, w, n, resolution, cut(x, w, budget), -cut(-x, w, budget))

    @classmethod
    def cut_at(
        cls, x: Floats, w: Floats, n: int, resolution: float, top: Floats, bottom: Floats
    ) -> SpreadLaw:
        """The lattice for values cut to [bottom, top]."""
        beyond = (w * np.maximum(x - top[:, None], 0.0)).sum(axis=1) * (1.0 + 1e-12)
        with np.errstate(over="ignore"):
            x = np.minimum(x, top[:, None]) / top[:, None]
        # Values so low that one of them decides the sum may be raised as well.
        x = np.maximum(x, np.maximum(bottom / top, TOO_LOW)[:, None])
        theta = saddle(x, w, n)
        return cls(n, top, beyond, x, w, theta, *_spacing(x, w, theta, n, resolution))

    def rows(self, chosen: npt.NDArray[np.bool_]) -> SpreadLaw:
        parts = (getattr(self, part.name)[chosen] for part in fields(self)[1:])
        return SpreadLaw(self.n, *parts)

    def upper(self) -> Floats:
        """(1/n) E[(sum)_+] of the law spread onto the lattice."""
        cells = (self.x - self.origin[:, None]) / self.h[:, None]
        floor = np.floor(cells)
        right = cells - floor
        z = np.concatenate([floor, floor + 1.0], axis=1)
        w = np.concatenate([self.w * (1.0 - right), self.w * right], axis=1)
        scaled = positive_part(z, w, self.origin, self.h, self.theta * self.h, self.n)
        return np.asarray(self.top * scaled + self.beyond)

    def chernoff(self) -> Floats:
        """The same in one line, looser: s_+ <= e^{theta s - 1} / theta."""
        growth = self.w * np.expm1(self.theta[:, None] * self.x)
        log_phi = log_transform(self.x, self.w, self.theta)
        # The transform is off by units of its terms; where it is tiny, by more than it is.
        doubt = 64.0 * UNIT * (np.abs(growth).sum(axis=1) + 1.0) / np.exp(log_phi)
        exponent = self.n * (log_phi + doubt) - 1.0 + 1e-12
        scaled = np.exp(np.minimum(exponent, 600.0)) / (self.n * self.theta)
        return np.where(doubt < 0.1, self.top * scaled + self.beyond, np.inf)

    def lower(self, weight: Floats, other: Floats) -> Floats:
        """(value, Q(A) low, Q(A) high) of the test with rounded scores."""
        cells = (self.x - self.origin[:, None]) / self.h[:, None]
        z = np.rint(cells)
        # The rounding errors' mean under the tilt moves the best threshold: any is valid.
        tilted = self.w * np.exp(self.theta[:, None] * self.x)
        drift = (tilted * (cells - z)).sum(axis=1) / tilted.sum(axis=1)
        threshold = np.floor(-self.n * (drift + self.origin / self.h)) + 1.0
        types = weight.shape[1]
        own = Own(z[:, :types], np.stack([weight, np.broadcast_to(other, weight.shape)], axis=2))
        group = Group(z, self.w, np.full(len(z), self.n - 1.0))
        result = tail_sum([group], own, threshold, self.theta * self.h)
        scale = np.exp(result.log_scale)[:, None]
        low = scale * np.maximum(result.value - result.error, 0.0)
        high = scale * (result.value + result.error)
        return np.stack([low[:, 0], low[:, 1], high[:, 1]])


@dataclass(frozen=True)
class _Apart:
    """Laws of which some rows are ``heavy``: there ``bulk`` is the law without its ``jumps``."""

    heavy: npt.NDArray[np.bool_]
    bulk: SpreadLaw
    jumps: tuple[Jumps, ...]
    budget: Floats

    def chernoff(self) -> Floats:
        result = self.bulk.chernoff()
        result[self.heavy] += [law.crude() for law in self.jumps]
        return result

    def upper(self) -> Floats:
        """Where the bulk alone has next to nothing, Chernoff's bound of it will do."""
        result = self.bulk.chernoff()
        needed = ~self.heavy | (result > 2.0 * self.budget)
        if needed.any():
            result[needed] = self.bulk.rows(needed).upper()
        for row, law in zip(np.flatnonzero(self.heavy), self.jumps, strict=True):
            try:
                result[row] += law.upper()
            except NoCertificateError:
                result[row] += law.crude()
        return result

    def lower(self, weight: Floats, other: Floats) -> Floats:
        result = np.zeros((3, len(weight)))
        seen = np.broadcast_to(other, weight.shape).copy()
        mine, chance = weight.copy(), np.ones(len(weight))
        for row, law in zip(np.flatnonzero(self.heavy), self.jumps, strict=True):
            jump = law.jump[: weight.shape[1]]
            mine[row, jump] = seen[row, jump] = 0.0
            chance[row] = math.exp((law.n - 1.0) * math.log1p(-law.chance))
            with suppress(NoCertificateError):  # no line is as good as one that is zero
                result[:, row] = law.lower(weight[row], other)
        needed = ~self.heavy | (self.bulk.chernoff() > 2.0 * self.budget)
        if needed.any():
            found = self.bulk.rows(needed).lower(mine[needed], seen[needed]) * chance[needed]
            result[:, needed] += np.where(found[0] > 0.0, found, 0.0)
        return result


def cut(x: Floats, w: Floats, budget: Floats) -> Floats:
    """About the smallest c > 0 per row with sum w (x - c)_+ <= budget (the largest x if none)."""
    order = np.argsort(-x, axis=1)
    x, w = np.take_along_axis(x, order, axis=1), np.broadcast_to(w, x.shape)
    mass = np.cumsum(np.take_along_axis(w, order, axis=1), axis=1)
    excess = np.cumsum(mass[:, :-1] * -np.diff(x, axis=1), axis=1)
    excess = np.concatenate([np.zeros((len(x), 1)), excess], axis=1)
    usable = (excess <= budget[:, None]) & (x > 0.0)
    last = np.maximum(usable.sum(axis=1) - 1, 0)
    rows = np.arange(len(x))
    found = x[rows, last] - (budget - excess[rows, last]) / mass[rows, last]
    following = x[rows, np.minimum(last + 1, x.shape[1] - 1)]
    found = np.maximum(found, np.maximum(following, 0.5 * x[rows, last]))
    return np.where(usable[:, 0], np.minimum(found, x[:, 0]), x[:, 0])


def _ratios(weight: Floats, clone: Floats) -> Floats:
    """weight / clone; what overflows is negative, and too low to matter: it may be raised."""
    with np.errstate(over="ignore"):
        return np.asarray(np.maximum(weight / clone, _LOWEST))


def _complete(x: Floats, clone: Floats) -> tuple[Floats, Floats]:
    """Rows of values with the value 0, which has the remaining probability, and their weights."""
    rest = max(0.0, 1.0 - math.fsum(clone))
    if rest <= 16.0 * UNIT * clone.size:  # complete: what rounding leaves is no atom
        return x, np.broadcast_to(clone, x.shape)
    x = np.concatenate([x, np.zeros((len(x), 1))], axis=1)
    return x, np.broadcast_to(np.append(clone, rest), x.shape)


def log_estimate(weight: Floats, clone: Floats, n: int) -> Floats:
    """log (1/n) E[(sum)_+] for rows of weights, to a few percent (more where jumps decide)."""
    x, w = _complete(_ratios(weight, clone), clone)
    if clone.size > _FEW_TYPES:
        return np.log(np.maximum(Split.best(x, w, n).total, 1e-300))
    top = x.max(axis=1)
    with np.errstate(over="ignore"):  # values that are too low are raised
        scaled = np.maximum(x / top[:, None], TOO_LOW)
    return np.asarray(np.log(top / n) + log_saddle(scaled, w, n))


def positive_part(
    z: Floats,
    w: Floats,
    origin: Floats,
    h: Floats,
    theta: Floats,
    n: int,
    units: float = ERROR_UNITS,
) -> Floats:
    """Upper bounds of (1/n) E[(X_1 + ... + X_n)_+], X = origin + h z with weights w (rows)."""
    group = Group(z, w, np.full(len(z), n - 1.0))
    own = Own(z, (w * (origin[:, None] + z * h[:, None]))[:, :, None])
    threshold = np.floor(-n * origin / h) + 1.0
    result = tail_sum([group], own, threshold, theta, units=units)
    # The threshold may be one off by rounding: then the sum there is within units of n origin.
    slip = 32.0 * UNIT * np.abs(origin) * np.exp(log_transform(z, w, theta) + theta)
    high = result.value[:, 0] + result.error[:, 0] + slip
    return np.asarray(np.exp(result.log_scale) * np.maximum(high, 0.0))


def _spacing(
    x: Floats, w: Floats, theta: Floats, n: int, resolution: float
) -> tuple[Floats, Floats]:
    """(origin, h): the coarsest lattice whose spread adds at most ``resolution`` of variance.

    Where positive values are rare, what is spread must also be rare against them. The candidates put
    the largest value, or the second most probable one, on the lattice."""
    tilted = w * np.exp(theta[:, None] * x)
    tilted = tilted / tilted.sum(axis=1, keepdims=True)
    mean = (tilted * x).sum(axis=1)
    variance = (tilted * (x - mean[:, None]) ** 2).sum(axis=1)
    rows = np.arange(len(x))
    order = np.argsort(tilted, axis=1)
    origin = x[rows, order[:, -1]]
    second = x[rows, order[:, max(-2, -x.shape[1])]] - origin
    top = x.max(axis=1) - origin
    top = np.where(top > 0.0, top, x.max(axis=1) - x.min(axis=1))
    # Values that differ by rounding alone are one value.
    second = np.where(np.abs(second) > 1e-9 * np.abs(top), np.abs(second), top)
    h = np.concatenate([top[:, None] / _LATTICES, second[:, None] / _HALVES], axis=1)
    h = np.maximum(h, top[:, None] * 1e-6)
    cells = (x - origin[:, None])[:, :, None] / h[:, None, :]
    fraction = cells - np.floor(cells)
    added = np.einsum("ij,ijk->ik", tilted, fraction * (1.0 - fraction)) * h * h
    good = added <= resolution * variance[:, None]
    rare = n * (w * (x > 0.0)).sum(axis=1) < _RARE
    if rare.any():
        moved = np.einsum("ij,ijk->ik", w, fraction * (1.0 - fraction)) * h
        gain = (w * np.maximum(x, 0.0)).sum(axis=1)
        good &= ~rare[:, None] | (moved <= resolution * gain[:, None])
    finest = top / _LATTICES[-1]
    choice = np.where(good, h, 0.0).max(axis=1)
    return origin, np.where(choice > 0.0, choice, finest)
