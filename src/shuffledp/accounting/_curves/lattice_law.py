"""The law of X on a lattice: (1/n) E[(X_1 + ... + X_n)_+] from above and from below.

The law is put on a lattice that contains 0 and the largest value of X:

* from above, every value is split onto its two lattice neighbours, keeping the mean: a
  mean-preserving spread, and E[(sum)_+] increases under it;
* from below, (s)_+ >= s 1[A] for every event A. A is "the sum of the values *rounded* to the
  lattice exceeds a threshold": the Neyman-Pearson test with rounded scores. Where both sides are asked for,
  scores are spread instead of rounded, by a coin for each report (A may depend on coins): one sum gives both.

Both lose only the second order of the lattice spacing. See _certified.lattice_sum for the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from shuffledp._certified.frequencies import DEPTH
from shuffledp._certified.lattice_sum import Group, Own, Result, log_transform, tail_sum
from shuffledp._certified.rounding import CALL, Floats, gamma, positive, up
from shuffledp.accounting._curves.jumps import Jumps, above_cap
from shuffledp.accounting._curves.profile import Bools
from shuffledp.accounting._hints.alike import heaviest
from shuffledp.accounting._hints.lattices import LatticeHints
from shuffledp.accounting._hints.saddle import TOO_LOW, largest_value

_LOWEST = -1e300  # soundness: the only way that values below are changed is up
_STEEPEST_TILT = 600.0  # soundness: in units of the largest value; e to this power is finite
_FLATTEST_TILT = 1e-30  # speed: far flatter than any sum is refused at
_LATTICE_SPACINGS = 2.0**-60, 2.0**60  # speed: far finer and coarser than any sum is refused at
_MOST_EXPECTED_JUMPS = 1.0  # soundness: the rounding of the number of jumps is counted up to here
_FEW_USERS = 16  # speed
_FEW_DECIDED = 64  # tightness: of so few, other values outweigh one that decides
_SHARE_CUT_OFF = 0.1  # speed: of the resolution
_DEPTH = 20.0  # speed: of a sum that is asked for with a resolution of one
_CUT = 0.01  # tightness: of the resolution, what the truncation of a sum may cost
_MOST_TIMES = 2.0**400  # soundness: nothing overflows
_DEEPER = 1.0  # speed: than what seems to be needed
_CANCELLED = 4.0  # speed
"""Chernoff's bound exceeds the sum by more where no tilt suits it: jumps decide."""
_LARGEST_WHOLE = 2.0**53  # soundness: whole numbers are floats up to here
_CANCELLED_MORE = 1e6  # tightness: the same of values cut where they decide, in resolutions: rounding remains


@dataclass(frozen=True)
class SpreadLaw:
    """Tilt and lattice for a batch of laws (rows) of X: values x, probabilities ``clone``.

    The value 0 with the remaining probability is the last column; x is in units of ``top``. Lattice points
    are ``origin + h z``, z whole. Any tilt theta > 0 and spacing h > 0 are valid; the origin is the value
    most probable under the tilt, against which rounding errors of all others are counted.

    Rare extreme values would force a coarse lattice on all others. From above, X <= min(X, c) +
    (X - c)_+, and the mean of the latter is added (``beyond``); values that are too low are raised.
    Where a single report may decide and no tilt suits the law, its jumps are told apart (see jumps).
    From below x is only a score, and any will do. The number n may be one for all rows."""

    n: int | Floats
    top: Floats
    beyond: Floats
    x: Floats
    w: Floats
    theta: Floats
    origin: Floats
    h: Floats
    resolution: float

    @classmethod
    def of(
        cls,
        weight: Floats,
        clone: Floats,
        n: int,
        resolution: float,
        hints: LatticeHints,
        scores: bool = False,
    ) -> SpreadLaw | Apart:
        """``scores``: for ``lower`` alone."""
        x, w = complete(weight, clone)
        split = hints.split(x, w, clone.size, n)
        if split is None:
            return cls.whole(x, w, n, resolution, hints)
        # Any cut is valid: this one is meant to loosen delta by a share of the resolution.
        budget = _SHARE_CUT_OFF * resolution * np.minimum(split.total, 1.0)
        found = cls.cut_within(x, w, n, resolution, hints, budget)
        b = split.b[:, None]
        expected = n * np.where(x > b, w, 0.0).sum(axis=1)
        heavy = split.heavy & (split.b > 0.0) & (n > _FEW_USERS)
        heavy &= (expected > 0.0) & (expected <= _MOST_EXPECTED_JUMPS)
        heavy &= found.chernoff() > _CANCELLED * split.total
        if not heavy.any():
            return found
        # A value that decides the sum alone may be cut just where it does: one tilt suits most of such laws.
        decided = heavy & (n > _FEW_DECIDED)
        if decided.any():
            found = cls.cut_within(x, w, n, resolution, hints, budget, decided, scores)
            heavy &= found.chernoff() > max(_CANCELLED, _CANCELLED_MORE * resolution) * split.total
        if not heavy.any():
            return found
        # Without the jumps, where they decide: those are told apart.
        b = np.where(heavy[:, None], b, np.inf)
        bulk = np.where(x > b, 0.0, w)
        bulk = bulk / bulk.sum(axis=1, keepdims=True)
        alone = np.where(x > b, 0.0, x)
        found = cls.cut_within(alone, bulk, n, resolution, hints, budget, decided & ~heavy, scores)
        rows = zip(x[heavy], w[heavy], split.b[heavy], budget[heavy], strict=True)
        jumps = tuple(Jumps.of(u, v, float(b), n, resolution, float(share), hints) for u, v, b, share in rows)
        return Apart(heavy, found, jumps, budget)

    @classmethod
    def whole(
        cls, x: Floats, w: Floats, n: int | Floats, resolution: float, hints: LatticeHints
    ) -> SpreadLaw:
        """The lattice for all values."""
        return cls.cut_at(x, w, n, resolution, hints, x.max(axis=1), np.full(len(x), -np.inf))

    @classmethod
    def cut_within(
        cls,
        x: Floats,
        w: Floats,
        n: int,
        resolution: float,
        hints: LatticeHints,
        budget: Floats,
        decided: Bools | None = None,
        scores: bool = False,
    ) -> SpreadLaw:
        """The lattice for values cut where that moves their mean by about ``budget``; rows that single values
        have ``decided`` are cut where that moves the sum's positive part by as much."""
        top, bottom = hints.cut(x, w, budget), -hints.cut(-x, w, budget)
        if decided is not None:
            top[decided] = hints.decisive(x[decided], w[decided], n, budget[decided])
        return cls.cut_at(x, w, n, resolution, hints, top, bottom, decided, scores)

    @classmethod
    def cut_at(
        cls,
        x: Floats,
        w: Floats,
        n: int | Floats,
        resolution: float,
        hints: LatticeHints,
        top: Floats,
        bottom: Floats,
        decided: Bools | None = None,
        scores: bool = False,
    ) -> SpreadLaw:
        """The lattice for values cut to [bottom, top]."""
        largest = x.max(axis=1)
        top = np.where(top > 0.0, np.minimum(top, largest), largest)
        top = np.where(top > 0.0, top, positive(-x.min(axis=1)))  # no value is positive: any unit will do
        beyond = above_cap(x, w, top)
        with np.errstate(over="ignore"):
            x = np.minimum(x, top[:, None]) / top[:, None]
        # Values so low that one of them decides the sum may be raised as well.
        x = np.maximum(x, np.maximum(bottom / top, TOO_LOW)[:, None])
        theta = usable_tilt(hints.tilt(x, w, n), x)
        tilted = w * np.exp(theta[:, None] * x)
        tilted = tilted / tilted.sum(axis=1, keepdims=True)
        origin = x[np.arange(len(x)), heaviest(tilted)[0]]
        h = hints.spacing(x, w, tilted, n, resolution)
        if decided is not None:
            rows = x[decided], w[decided], origin[decided], n, resolution
            if scores:
                h[decided] = hints.score_spacing(*rows, h[decided])
            else:
                h[decided] = np.minimum(h[decided], hints.decided_spacing(*rows))
        h = np.clip(h, *_LATTICE_SPACINGS)
        return cls(n, top, beyond, x, w, theta, origin, h, resolution)

    def rows(self, chosen: Bools) -> SpreadLaw:
        parts: dict[str, Any] = {part.name: getattr(self, part.name) for part in fields(self)}
        return replace(self, **{name: part[chosen] for name, part in parts.items() if np.ndim(part)})

    def upper(self) -> Floats:
        """(1/n) E[(sum)_+] of the law spread onto the lattice."""
        z, right = self._cells()
        w, step, none = _split(self.w, right), self.theta * self.h, np.zeros((*z.shape, 0))
        scaled, _ = positive_part(z, w, self.origin, self.h, step, self.n, none, self.resolution)
        return np.asarray(self.top * scaled + self.beyond)

    def both(self, weight: Floats, other: Floats) -> tuple[Floats, Floats]:
        """``upper``, and ``lower`` of the test whose scores are spread likewise, by a coin each: one sum."""
        z, right = self._cells()
        mine, times = np.zeros((2, *self.x.shape)), _times(weight, other)
        mine[0, :, : weight.shape[1]], mine[1, :, : weight.shape[1]] = weight, times * other
        own = np.stack([_split(part / self.top[:, None], right) for part in mine], axis=2)
        w, step = _split(self.w, right), self.theta * self.h
        part, result = positive_part(z, w, self.origin, self.h, step, self.n, own, self.resolution)
        scale = self.top * np.exp(result.log_scale)
        ends = result.value[:, 1:] + result.error[:, 1:] * np.array([[[-1.0]], [[1.0]]])
        low, high = scale[:, None] * np.maximum(ends, 0.0)
        lines = np.stack([low[:, 0], low[:, 1] / times[:, 0], high[:, 1] / times[:, 0]])
        return self.top * part + self.beyond, lines

    def _cells(self) -> tuple[Floats, Floats]:
        """The lattice neighbours of every value, and the share of the right one."""
        cells = (self.x - self.origin[:, None]) / self.h[:, None]
        floor = np.floor(cells)
        return np.concatenate([floor, floor + 1.0], axis=1), cells - floor

    def chernoff(self) -> Floats:
        """The same in one line, looser: s_+ <= e^{theta s - 1} / theta."""
        growth = self.w * np.expm1(self.theta[:, None] * self.x)
        log_phi = log_transform(self.x, self.w, self.theta)
        # The transform is off by units of its terms; where it is tiny, by more than it is.
        units = self.x.shape[1] + 4 * CALL
        doubt = gamma(units) * (np.abs(growth).sum(axis=1) + 1.0) / np.exp(log_phi)
        exponent = up(self.n * np.abs(log_phi + doubt), operations=4) * np.sign(log_phi + doubt) - 1.0
        exponent += gamma(8) * (1.0 + np.abs(exponent))
        known = (doubt < 0.1) & (exponent < 600.0)
        scaled = np.exp(np.where(known, exponent, 0.0)) / (self.n * self.theta)
        return np.where(known, up(self.top * scaled + self.beyond, operations=2 * CALL), np.inf)

    def lower(self, weight: Floats, other: Floats) -> Floats:
        """(value, Q(A) low, Q(A) high) of the test with rounded scores."""
        cells = (self.x - self.origin[:, None]) / self.h[:, None]
        z = np.rint(cells)
        # The rounding errors' mean under the tilt moves the best threshold: any is valid.
        tilted = self.w * np.exp(self.theta[:, None] * self.x)
        drift = (tilted * (cells - z)).sum(axis=1) / tilted.sum(axis=1)
        threshold = np.floor(-self.n * (drift + self.origin / self.h)) + 1.0
        # Scores that are multiples of a number are as good without it, and fewer frequencies carry mass.
        step = _common_divisor(z)
        z, threshold = z / step[:, None], np.ceil(threshold / step)
        types, times = weight.shape[1], _times(weight, other)
        own = Own(z[:, :types], np.stack([weight, times * np.broadcast_to(other, weight.shape)], axis=2))
        group = Group(z, self.w, np.full(len(z), self.n - 1.0))
        result = _tail_sum(group, own, threshold, self.theta * self.h * step, self.resolution)
        scale = np.exp(result.log_scale)[:, None]
        low = scale * np.maximum(result.value - result.error, 0.0)
        high = scale * (result.value + result.error)
        return np.stack([low[:, 0], low[:, 1] / times[:, 0], high[:, 1] / times[:, 0]])


@dataclass(frozen=True)
class Apart:
    """Laws of which some rows are ``heavy``: there ``bulk`` is the law without its ``jumps``."""

    heavy: Bools
    bulk: SpreadLaw
    jumps: tuple[Jumps, ...]
    budget: Floats

    @property
    def of_jumps(self) -> Apart:
        """The heavy rows alone."""
        return Apart(self.heavy[self.heavy], self.bulk.rows(self.heavy), self.jumps, self.budget[self.heavy])

    def chernoff(self) -> Floats:
        result = self._bulk
        result[self.heavy] += [law.crude() for law in self.jumps]
        return result

    @property
    def _bulk(self) -> Floats:
        """Chernoff's bound of what the bulk adds: nothing where all its values are negative."""
        return np.where((self.bulk.x > 0.0).any(axis=1), self.bulk.chernoff(), 0.0)

    def upper(self) -> Floats:
        """Where the bulk alone has next to nothing, Chernoff's bound of it will do."""
        result = self._bulk
        needed = ~self.heavy | (result > 2.0 * self.budget)
        if needed.any():
            result[needed] = np.minimum(result[needed], self.bulk.rows(needed).upper())
        for row, law in zip(np.flatnonzero(self.heavy), self.jumps, strict=True):
            result[row] += law.upper_or_crude()
        return result

    def lower(self, weight: Floats, other: Floats) -> Floats:
        result = np.zeros((3, len(weight)))
        seen = np.broadcast_to(other, weight.shape).copy()
        mine, chance = weight.copy(), np.ones(len(weight))
        for row, law in zip(np.flatnonzero(self.heavy), self.jumps, strict=True):
            jump = law.jump[: weight.shape[1]]
            mine[row, jump] = seen[row, jump] = 0.0
            chance[row] = math.exp((law.n - 1.0) * math.log1p(-law.chance))
            result[:, row] = law.lower_or_none(weight[row], other)
        needed = ~self.heavy | (self._bulk > 2.0 * self.budget)
        if needed.any():
            found = self.bulk.rows(needed).lower(mine[needed], seen[needed]) * chance[needed]
            result[:, needed] += np.where(found[0] > 0.0, found, 0.0)
        return result


def _common_divisor(z: Floats) -> Floats:
    """Of the whole numbers of each row; one where they are too large to be told, or all zero."""
    known = np.abs(z).max(axis=1) < _LARGEST_WHOLE
    whole = np.where(known[:, None], z, 1.0).astype(np.int64)
    return np.asarray(np.maximum(np.gcd.reduce(whole, axis=1), 1), np.float64)


def _times(weight: Floats, other: Floats) -> Floats:
    """A power of two, about 1 + alpha, by which the masses of ``other`` are multiplied in every row: errors
    of a sum are relative to the largest of its measures."""
    ratio = np.abs(weight).sum(axis=-1, keepdims=True) / positive(other.sum(axis=-1, keepdims=True))
    return np.asarray(2.0 ** np.rint(np.log2(np.minimum(np.maximum(ratio, 1.0), _MOST_TIMES))))


def _split(mass: Floats, right: Floats) -> Floats:
    """Masses of values on the two lattice neighbours of each."""
    return np.concatenate([mass * (1.0 - right), mass * right], axis=1)


def complete(weight: Floats, clone: Floats) -> tuple[Floats, Floats]:
    """Rows of values weight / clone, and the value 0 with the remaining probability; their weights.

    What overflows is negative, and too low to matter: it may be raised."""
    return with_rest(
        weight, np.broadcast_to(clone, weight.shape), np.full((len(weight), 1), unhidden(clone.tolist()))
    )


def with_rest(weight: Floats, clone: Floats, rest: Floats) -> tuple[Floats, Floats]:
    """``complete``, of a law and what it leaves a row."""
    with np.errstate(over="ignore"):
        x = np.maximum(weight / clone, _LOWEST)
    if not rest.any():
        return x, clone
    return np.concatenate([x, np.zeros((len(x), 1))], axis=1), np.concatenate([clone, rest], axis=1)


def unhidden(clone: Sequence[float]) -> float:
    """The probability of reports that hide nothing; what rounding leaves is none."""
    rest = 1.0 - math.fsum(clone)
    return rest if rest > gamma(16 * len(clone)) else 0.0


def usable_tilt(theta: Floats, x: Floats) -> Floats:
    """Any number made a tilt under which no value overflows."""
    steepest = _STEEPEST_TILT / largest_value(x)
    return np.asarray(np.minimum(np.maximum(theta, _FLATTEST_TILT), steepest))


def positive_part(
    z: Floats,
    w: Floats,
    origin: Floats,
    h: Floats,
    theta: Floats,
    n: int | Floats,
    more: Floats,
    resolution: float,
) -> tuple[Floats, Result]:
    """Upper bounds of (1/n) E[(X_1 + ... + X_n)_+], X = origin + h z with weights w (rows); and the tails of
    ``more`` own measures as the further outputs of one sum."""
    group = Group(z, w, np.full(len(z), n - 1.0))
    own = Own(z, np.concatenate([(w * (origin[:, None] + z * h[:, None]))[:, :, None], more], axis=2))
    threshold = np.floor(-n * origin / h) + 1.0
    result = _tail_sum(group, own, threshold, theta, resolution)
    # The threshold may be a few off by rounding: then the sum there is within units of n origin.
    few = 1.0 + np.floor(gamma(8) * n * np.abs(origin) / h)
    slip = gamma(32) * np.abs(origin) * np.exp(log_transform(z, w, theta) + few * theta)
    high = result.value[:, 0] + result.error[:, 0] + slip
    return np.asarray(np.exp(result.log_scale) * np.maximum(high, 0.0)), result


def _tail_sum(group: Group, own: Own, threshold: Floats, theta: Floats, resolution: float) -> Result:
    """No deeper than the resolution asks for; rows for which that is not enough once more, as deep as what
    they came to says. Where rounding hides a value no depth helps."""
    depth = min(DEPTH, _DEPTH - math.log(resolution))
    found = tail_sum([group], own, threshold, theta, depth=depth)
    size, cut = np.abs(found.value), np.broadcast_to(found.cut, found.value.shape)
    seen = found.error - cut < np.maximum(cut, size)
    missing = np.where(seen, np.log(positive(cut)) - np.log(positive(_CUT * resolution * size)), 0.0).max(
        axis=1
    )
    needed, before = np.minimum(depth + missing + _DEEPER, DEPTH), depth
    for deepest in (0.5 * (depth + DEPTH), DEPTH):
        rows = np.flatnonzero((missing > 0.0) & (before < needed) & (needed <= deepest))
        before = deepest
        if rows.size:
            parts = Group(group.z[rows], group.w[rows], group.count[rows]), Own(own.z[rows], own.c[rows])
            deep = tail_sum(
                [parts[0]], parts[1], threshold[rows], theta[rows], depth=float(needed[rows].max())
            )
            for name in ("value", "error", "log_scale"):
                getattr(found, name)[rows] = getattr(deep, name)
    return found
