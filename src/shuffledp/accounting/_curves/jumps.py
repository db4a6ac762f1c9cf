"""Rare large values of X, told apart: one round where a single report may decide (T13, docs/proofs/jumps.md).

Values above a threshold b are called *jumps*, and the outcomes are told apart by the number K of jumps among
n. Given K, the sum is one of bounded variables: one certified lattice sum under a tilt of its own. What is
left of more jumps is at most what its reports tell alone. From below, a test may look at K as well as at the
sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from shuffledp._certified.lattice_sum import Group, Own, Result, tail_sum
from shuffledp._certified.rounding import CALL, Floats, gamma, up
from shuffledp._progress import working
from shuffledp.accounting._curves.profile import Bools
from shuffledp.accounting._hints.lattices import LatticeHints
from shuffledp.errors import NoCertificateError

_MOST_JUMPS = 4  # speed
_MOST_TERMS_PAIRED = 300  # speed
_LATTICE_SPACINGS = 2.0**-40, 1.0  # speed: in units of the cap; finer ones are refused
_FINE = 2.5e-3  # tightness: of a lattice; a coarser one blurs which jumps are large enough
_COARSER = 1.0, 4.0, 16.0  # tightness: lattices to try
_DEPTH = 32.0  # speed: of truncations
_LARGEST_THRESHOLD = 2**53  # soundness: whole numbers up to here are floats
_TILTS = 1e-30, 600.0  # soundness: e to the latter is finite


@dataclass(frozen=True)
class Jumps:
    """One law with jumps: values x (in units of ``top``, capped), weights w, ``jump`` where x > b.

    Lattice points are origin + h z, z whole; the origin is the most probable value. ``beyond`` is the
    mean of what was capped. Outcomes with more than ``most`` jumps are bounded at once."""

    n: int
    top: float
    beyond: float
    x: Floats
    w: Floats
    jump: Bools
    origin: float
    h: float
    most: int = 1
    hints: LatticeHints = field(default_factory=LatticeHints)

    @classmethod
    def of(
        cls, x: Floats, w: Floats, b: float, n: int, resolution: float, budget: float, hints: LatticeHints
    ) -> Jumps:
        """For b > 0 with values on both sides of it. Any such b, cap, spacing and budget is valid."""
        jump = x > b
        most, cap = float(x.max()), hints.jump_cap(x, w, b, n, budget)
        top = min(cap, most) if cap > 0.0 else most
        beyond = float(above_cap(x[None], w, np.array([top]))[0])
        scaled = np.clip(x / top, -1.0, 1.0)
        origin = float(scaled[np.argmax(w)])
        h = hints.jump_spacing(scaled, np.where(jump, 0.0, w), origin, n, min(resolution, _FINE))
        h = min(max(h, _LATTICE_SPACINGS[0]), _LATTICE_SPACINGS[1])
        law = cls(n, top, beyond, scaled, w, jump, origin, h, hints=hints)
        enough = (k for k in range(1, _MOST_JUMPS) if law._rest(k + 1) <= 0.1 * budget)
        return replace(law, most=next(enough, _MOST_JUMPS))

    @cached_property
    def chance(self) -> float:
        """P(jump)."""
        return math.fsum(self.w[self.jump])

    def _rest(self, k: int) -> float:
        """Upper bound of (1/n) E[S_+; K >= k]."""
        gain = self.top * self.w * np.maximum(self.x, 0.0)
        count = self.n * self.chance
        some = count ** (k - 1) / math.factorial(k - 1)
        told = float(gain[self.jump].sum()) + float(gain[~self.jump].sum()) * count / k
        return up(told * some, operations=self.w.size + 4 * k + 8)

    def crude(self) -> float:
        """Upper bound of what outcomes with jumps add: their reports tell all by themselves."""
        return self._rest(1) + self.beyond

    def _coarser(self) -> Iterator[Jumps]:
        """Itself, and on coarser lattices, whose sums are shorter."""
        return (replace(self, h=min(times * self.h, _LATTICE_SPACINGS[1])) for times in _COARSER)

    def upper_or_crude(self) -> float:
        """``upper``, or ``crude`` where nothing else is certified."""
        for law in self._coarser():
            with suppress(NoCertificateError):
                return law.upper()
        return self.crude()

    def lower_or_none(self, weight: Floats, other: Floats) -> Floats:
        """``lower``; where nothing is certified no line, which is as good as one that is zero."""
        for law in self._coarser():
            with suppress(NoCertificateError):
                return law.lower(weight, other)
        return np.zeros(3)

    def upper(self) -> float:
        """Upper bound of (1/n) E[S_+; K >= 1], from the law spread onto the lattice."""
        cells = (self.x - self.origin) / self.h
        floor = np.floor(cells)
        right = cells - floor
        z = np.concatenate([floor, floor + 1.0])
        w = np.concatenate([self.w * (1.0 - right), self.w * right])
        own = (w * (self.origin + z * self.h))[:, None]
        # Sums above zero: found in rationals, as the sum is large where the origin is not zero.
        threshold = math.floor(-self.n * Fraction(self.origin) / Fraction(self.h)) + 1
        spread = _Spread(self, z, w, np.concatenate([self.jump, self.jump]), own, threshold)
        total = math.fsum(float(high[0]) for _, high in spread.parts())
        return up(self.top * max(total, 0.0) + self._rest(self.most + 1) + self.beyond, operations=4)

    def lower(self, weight: Floats, other: Floats) -> Floats:
        """(value, Q(A) low, Q(A) high) of tests that look at K = k and at the sum of rounded scores."""
        cells = (self.x - self.origin) / self.h
        z = np.rint(cells)
        own = np.zeros((z.size, 2))
        own[: weight.size, 0], own[: weight.size, 1] = weight, other
        # The rounding errors' mean moves the best threshold: any is valid.
        drift = float((np.where(self.jump, 0.0, self.w) * (cells - z)).sum())
        threshold = math.floor(-self.n * (self.origin / self.h + drift)) + 1
        result = np.zeros(3)
        for low, high in _Spread(self, z, self.w, self.jump, own, threshold).parts():
            if low[0] > 0.0:
                result += [low[0], max(low[1], 0.0), max(high[1], 0.0)]
        return result


@dataclass(frozen=True)
class _Spread:
    """The law on its lattice: atoms z of weights w, what the own report counts, and the threshold."""

    law: Jumps
    z: Floats
    w: Floats
    jump: Bools
    own: Floats
    threshold: int

    def parts(self) -> Iterator[tuple[Floats, Floats]]:
        """For k = 1, 2, ... bounds of E[own 1{sum >= threshold}; K = k]."""
        p = self.law.chance
        jumps = _merged(self.z, np.where(self.jump, self.w, 0.0)[:, None] / p)
        bulk = _merged(self.z, np.where(self.jump, 0.0, self.w)[:, None] / (1.0 - p))
        mine, others = (
            Own(*_merged(self.z, np.where(here[:, None], self.own, 0.0))) for here in (self.jump, ~self.jump)
        )
        groups = [Group(z, c[:, :, 0], np.ones(1)) for z, c in (bulk, jumps)]
        for k in range(1, self.law.most + 1):
            theta = self._tilt(groups, k)
            found = (self._part(groups, mine, k - 1, theta), self._part(groups, others, k, theta))
            yield found[0][0] + found[1][0], found[0][1] + found[1][1]

    def _tilt(self, groups: list[Group], k: int) -> Floats:
        theta = self.law.hints.jump_tilt(groups[0], groups[1], self.law.n - k, k, self.threshold)
        largest = max(1.0, *(float(group.z.max()) for group in groups))
        return np.clip(theta, _TILTS[0], _TILTS[1] / largest)

    def _part(self, groups: list[Group], own: Own, k: int, theta: Floats) -> tuple[Floats, Floats]:
        """The same for an own report of one kind, with k jumps among the others."""
        number, units = _number(self.law.n - 1, k, self.law.chance)
        counts = [self.law.n - 1.0 - k, float(k)]
        if k and own.z.size * groups[1].z.size <= _MOST_TERMS_PAIRED:
            # One jump among the others is as good as in the own report, and faster there.
            own, counts[1] = _with_jump(own, groups[1]), k - 1.0
        used = [replace(g, count=np.full(1, c)) for g, c in zip(groups, counts, strict=True) if c]
        found = self._certified(used, own, theta)
        working()
        scale = math.exp(float(found.log_scale[0])) * number
        low, high = scale * (found.value - found.error)[0], scale * (found.value + found.error)[0]
        doubt = gamma(units + CALL * (2.0 + abs(float(found.log_scale[0]))))
        return low - doubt * np.abs(low), high + doubt * np.abs(high)

    def _certified(self, groups: list[Group], own: Own, theta: Floats) -> Result:
        """The sum under the tilt theta, or another one where its terms are too many."""
        if abs(self.threshold) > _LARGEST_THRESHOLD:
            raise NoCertificateError("the sum is too large for its lattice")
        at = np.full(1, float(self.threshold))
        with suppress(NoCertificateError):
            return tail_sum(groups, own, at, theta, depth=_DEPTH)
        with suppress(NoCertificateError):
            return tail_sum(groups, own, at, 0.5 * theta, whole=True, depth=_DEPTH)
        return tail_sum(groups, own, at, theta, whole=True, depth=_DEPTH)


def _number(n: int, k: int, p: float) -> tuple[float, float]:
    """P(Bin(n, p) = k) for small k, and its units: p has one (it is a sum rounded once)."""
    chosen = math.prod((n - i) / (i + 1.0) for i in range(k))
    none = (n - k) * math.log1p(-p)
    return chosen * p**k * math.exp(none), 4.0 * k + 2 * CALL - (CALL + 4.0) * none


def above_cap(x: Floats, w: Floats, cap: Floats) -> Floats:
    """Upper bounds of E[(X - cap)_+] per row; values are quotients, rounded once."""
    above = np.where(x > cap[:, None], up(np.maximum(x, 0.0), operations=1, tiny=0.0) - cap[:, None], 0.0)
    return up(np.asarray((w * above).sum(axis=1)), operations=x.shape[1] + 2, tiny=0.0)


def _merged(z: Floats, c: Floats) -> tuple[Floats, Floats]:
    """Values and measures as one row, equal values put together."""
    there = c.any(axis=1)
    kept, index = np.unique(z[there], return_inverse=True)
    total = np.zeros((kept.size, c.shape[1]))
    np.add.at(total, index, c[there])
    return kept[None], total[None]


def _with_jump(own: Own, jumps: Group) -> Own:
    """The own measure with one jump of another user added."""
    z = own.z[0, :, None] + jumps.z
    c = own.c[0, :, None] * jumps.w[0, :, None]
    return Own(*_merged(z.ravel(), c.reshape(z.size, -1)))
