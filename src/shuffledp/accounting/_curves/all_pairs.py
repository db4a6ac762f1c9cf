"""The privacy blanket of any finite randomizer: the maximum over all ordered pairs of inputs (T1).

The blanket is the part that all inputs share, ``clone[y] = min_x matrix[x][y]``, of total mass gamma. For
inputs x, x' the round is the AmplificationProfile with own = row x, other = row x'; an upper bound for
substitution neighbours. Pairs whose laws are equal up to the order of the outputs are one class (k-ary
randomized response has one, whatever k).

Most families of noise have one worst pair, the leader. At every epsilon all laws are compared with it (a
little left of it) by their stop-loss curves, and what they exceed it by is added where it is a small share of
delta. Of the laws that are left, many share an *envelope*. Both are corollaries of T1
(docs/proofs/blanket.md).
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise, permutations

import numpy as np
import numpy.typing as npt

from shuffledp._certified.rounding import CALL, Floats, capped, down, gamma, up
from shuffledp.accounting._curves.combined import LargestProfile
from shuffledp.accounting._curves.jumps import above_cap
from shuffledp.accounting._curves.lattice_law import positive_part, usable_tilt
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.accounting._curves.profile import PrivacyProfile, SupportingLines
from shuffledp.accounting._curves.stop_loss import LawOrder
from shuffledp.accounting._hints.lattices import LatticeHints
from shuffledp.accounting._hints.starts import Hints
from shuffledp.errors import NoCertificateError
from shuffledp.facts import Matrix

_FEW_LAWS = 2  # speed: evaluated one by one, without a leader
_FEW_LEFT = 16  # speed: evaluated one by one, without an envelope
_MANY_LAWS = 100  # speed: upper bounds are costly
_LAWS_AT_MANY_POINTS = 400  # speed: up to so many are evaluated one by one, where there are many points
_MANY_POINTS = 8  # speed: lines of a few laws will do
_FEW_LINES = 3  # speed: so many
_ROUGHLY = 0.03  # speed: resolution of a first look at a law
_PARTS_OF_AN_ENVELOPE = 6  # speed
_ENVELOPE_CELLS = 1024  # speed
_ENVELOPE_UNITS = gamma(4 * _ENVELOPE_CELLS + 16 * CALL)  # soundness
"""By how much masses and values of the envelope may be too small, relatively, to lie above every law (T8).

Each sum of a double sum goes through one addition per cell. Let w be a mass and T the tail from it on: its
second difference is off by u (w + 2 T), and the sum of (z - t) T over z > t is at most half the number of
cells times the stop-loss curve at t: one more per cell. The mean is one more sum. Values, shares and the
few cells beyond 1024 cost some calls more."""


@dataclass(frozen=True)
class FiniteBlanketProfile(PrivacyProfile):
    """The blanket of ``matrix`` among n users, over all ordered pairs of inputs."""

    matrix: Matrix
    n: int
    fraction: float = 1.0
    """The share of the population that the n users are, drawn at random (T5', docs/proofs/cohorts.md)."""
    rate: float = 1.0
    """The probability that each of the n users takes part, by a coin of their own."""
    centred: bool = False
    """Of every input and the blanket's own law, both ways, instead of all pairs (T16)."""

    @cached_property
    def laws(self) -> list[AmplificationProfile]:
        """One law per class of pairs, the largest chi-square first."""
        laws = _laws(self.matrix, self.n, self.centred)
        if self.rate < 1.0:
            laws = [law.polled(self.rate) for law in laws]
        return laws if self.fraction == 1.0 else [law.subsampled(self.fraction) for law in laws]

    @cached_property
    def largest(self) -> LargestProfile:
        """All of them, one by one."""
        return LargestProfile(tuple(self.laws))

    @property
    def epsilon_max(self) -> float:
        return self.largest.epsilon_max

    @property
    def infinite_loss(self) -> float:
        return self.largest.infinite_loss

    @cached_property
    def hints(self) -> Hints:
        if not self.laws:
            return Hints(0.0)
        return replace(self.laws[0].hints, costly=len(self.laws) > _MANY_LAWS)

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        if len(self.laws) <= _FEW_LAWS:
            return self.largest.upper(epsilon, resolution)
        inside = epsilon * (1.0 - 0.1 * resolution)
        result = self.laws[0].upper(inside, resolution)
        left = np.zeros((len(self.laws) - 1, epsilon.size), bool)
        for i, (e, before) in enumerate(zip(epsilon, inside, strict=True)):
            excess = self._order.excess(float(before), float(e))
            left[:, i] = excess > 0.1 * resolution * result[i]
            result[i] += excess[~left[:, i]].max(initial=0.0)
        if len(self.laws) <= (_LAWS_AT_MANY_POINTS if epsilon.size >= _MANY_POINTS else _MANY_LAWS):
            return self._one_by_one(result, left, epsilon, resolution)
        for i in np.flatnonzero(left.any(axis=0)).tolist():
            laws = [law for law, open_ in zip(self.laws[1:], left[:, i], strict=True) if open_]
            result[i] = max(result[i], self._maximum(laws, float(epsilon[i]), resolution))
        return result

    def _one_by_one(
        self, result: Floats, left: npt.NDArray[np.bool_], epsilon: Floats, resolution: float
    ) -> Floats:
        """The largest of ``result`` and of the laws that are left, each at many points at once.

        A rough bound settles where a law is clearly below what is known already."""
        for law, open_ in zip(self.laws[1:], left, strict=True):
            at = np.flatnonzero(open_)
            if at.size:
                at = at[law.upper(epsilon[at], max(_ROUGHLY, resolution)) > result[at]]
            if at.size:
                result[at] = np.maximum(result[at], law.upper(epsilon[at], resolution))
        return result

    @cached_property
    def _order(self) -> LawOrder:
        return LawOrder(tuple(self.laws))

    def _maximum(self, left: list[AmplificationProfile], epsilon: float, resolution: float) -> float:
        """Largest curve at epsilon of the laws that are left."""
        at = np.array([epsilon])
        if len(left) <= _FEW_LEFT:
            return max(float(law.upper(at, resolution)[0]) for law in left)
        # What the true curve reaches at a slightly smaller epsilon is low enough for a bound.
        enough = float(self.support(at * (1.0 - 0.5 * resolution), 0.5 * resolution).value[0])
        result = 0.0
        todo = [left]
        while todo:
            laws = todo.pop()
            # Outputs that some input never sends are seen at once; then means differ: no envelope.
            if len(laws) <= _PARTS_OF_AN_ENVELOPE or any(min(law.clone) == 0.0 for law in laws):
                bound = max(float(law.upper(at, resolution)[0]) for law in laws)
            else:
                budget = 0.1 * resolution * enough
                bound = _envelope(laws, self.n, epsilon, budget, self.laws[0].hints.lattice)
                if bound > max(enough, result):
                    cuts = np.linspace(0, len(laws), _PARTS_OF_AN_ENVELOPE + 1).astype(int)
                    todo += [laws[i:j] for i, j in pairwise(cuts) if j > i]
                    continue
            result = max(result, bound)
        return result

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        if len(self.laws) <= _FEW_LAWS:
            return self.largest.support(epsilon, resolution)
        # Lines below any law will do: the widest and the most telling of those that are not
        # clearly below the first one.
        middle = epsilon.size // 2
        first = self.laws[0].support(epsilon, resolution)
        at = float(np.sort(epsilon)[middle])
        excess = self._order.excess(at * (1.0 - resolution), at)
        small = excess <= 0.1 * resolution * float(np.sort(first.value)[-1 - middle])
        others = [law for law, done in zip(self.laws[1:], small, strict=True) if not done]
        telling = sorted(others, key=lambda law: -_alone(law, at))
        few = _FEW_LINES if epsilon.size >= _MANY_POINTS else _FEW_LEFT
        chosen = tuple(dict.fromkeys(others[:few] + telling[:few]))
        with suppress(NoCertificateError):
            second = LargestProfile(chosen).support(epsilon, resolution)
            return first.chosen(second, second.value > first.value)
        return first


def _alone(law: AmplificationProfile, epsilon: float) -> float:
    """delta at epsilon if nobody else took part."""
    gap, other = np.array(law.gap), np.array(law.other)
    return float(np.maximum(gap - math.expm1(capped(epsilon)) * other, 0.0).sum())


@lru_cache(maxsize=8)
def _laws(matrix: Matrix, n: int, centred: bool) -> list[AmplificationProfile]:
    rows = matrix.rows
    clone = rows.min(axis=0)
    classes: dict[bytes, AmplificationProfile] = {}
    centre = clone / clone.sum()
    both = [pair for row in rows for pair in ((row, centre), (centre, row))]
    for own, other in both if centred else permutations(rows, 2):
        key, law = law_of_pair(own, other, clone, n)
        classes.setdefault(key, law)
    return sorted(classes.values(), key=lambda law: -law.hints.scale)


def law_of_pair(own: Floats, other: Floats, clone: Floats, n: int) -> tuple[bytes, AmplificationProfile]:
    """The law of one ordered pair and a key equal for laws that differ only in rounding or order.

    Keys keep 49 bits: entries that agree differ by at most 8 units, inside ERROR_UNITS."""
    mantissa, exponent = np.frexp(np.stack([own, other, clone, own - other]))
    keys = np.ldexp(np.rint(np.ldexp(mantissa, 49)), exponent - 49)
    order = np.lexsort(keys)
    keys = keys[:, order]
    fresh = np.append(True, np.any(keys[:, 1:] != keys[:, :-1], axis=0))
    starts = np.flatnonzero(fresh)
    table = np.stack([own, other, own - other, clone])[:, order]
    merged = np.add.reduceat(table, starts, axis=1)
    sizes = np.diff(np.append(starts, own.size)).astype(np.float64)
    law = AmplificationProfile(n, *(tuple(map(float, row)) for row in merged))
    return np.vstack([keys[:, starts], sizes]).tobytes(), law.without_empty_types()


def _envelope(
    laws: list[AmplificationProfile], n: int, epsilon: float, budget: float, hints: LatticeHints
) -> float:
    """Upper bound of every law's curve at epsilon, from the largest of their stop-loss curves.

    Rare values are cut off on both sides, as in AmplificationProfile, where that costs less than
    ``budget``. The means then differ by what was cut; (s + d)_+ <= s_+ + d pays for it."""
    growth = down(math.expm1(epsilon), operations=8 * CALL)
    seen = 0.0
    values, weights = [], []
    for law in laws:
        gap, other, clone = map(np.array, (law.gap, law.other, law.clone))
        weight = gap - growth * other
        hidden = clone > 0.0
        seen = max(seen, float(np.maximum(weight[~hidden], 0.0).sum()))
        values.append(weight[hidden] / clone[hidden])
        weights.append(clone[hidden])
    if budget > 0.0:
        values, beyond = _clipped(values, weights, budget, hints)
        seen += beyond
    top = max(float(v.max(initial=0.0)) for v in values)
    bottom = min(float(v.min(initial=0.0)) for v in values)
    if top <= 1e-9 * -bottom or top == 0.0:
        return seen + max(float((np.maximum(v, 0.0) * w).sum()) for v, w in zip(values, weights, strict=True))
    h = (top - bottom) / _ENVELOPE_CELLS
    first = math.floor(bottom / h) - 1
    size = math.ceil(top / h) + 2 - first
    lattice = (first + np.arange(size)).astype(np.float64)
    above, below = np.zeros(size), np.zeros(size)
    for value, weight in zip(values, weights, strict=True):
        mass = _spread(value / h, weight, size, first)
        # Stop-loss curves from either end: sums of positive terms only.
        above = np.maximum(above, _double_sum(mass[::-1])[::-1])
        below = np.maximum(below, _double_sum(mass))
    means = [float(v @ w) / h for v, w in zip(values, weights, strict=True)]
    split = int(np.searchsorted(lattice, max(means)))
    masses = np.zeros(size)
    masses[split + 1 : -1] = np.diff(above, 2)[split:]
    masses[1:split] = np.diff(below, 2)[: split - 1]
    masses = np.maximum(masses, 0.0)
    if masses.sum() > up(1.0, operations=size) and budget > 0.0:
        return _envelope(laws, n, epsilon, 0.0, hints)  # the cuts moved the means too far apart
    masses[split] = max(0.0, 1.0 - masses.sum())
    z, w = lattice[None, :], masses[None, :]
    # The envelope's mean must not be below any law's, but for what _ENVELOPE_UNITS covers.
    lacking = max(means) - float(masses @ lattice)
    seen += h * max(0.0, lacking)
    theta = usable_tilt(hints.tilt(z, w, n), z)
    step = np.array([h])
    return seen + float(positive_part(z, w, 0.0 * step, step, theta, n, _ENVELOPE_UNITS)[0])


def _clipped(
    values: list[Floats], weights: list[Floats], budget: float, hints: LatticeHints
) -> tuple[list[Floats], float]:
    """All laws' values cut to one range, and the largest mean that was cut off above it."""
    level = np.array([budget])
    pairs = list(zip(values, weights, strict=True))
    top = max(float(hints.cut(v[None, :], w, level)[0]) for v, w in pairs)
    bottom = max(float(hints.cut(-v[None, :], w, level)[0]) for v, w in pairs)
    beyond = max(float(above_cap(v[None], w, np.array([top]))[0]) for v, w in pairs)
    return [np.clip(v, -bottom, top) for v in values], beyond


def _spread(cell: Floats, weight: Floats, size: int, first: int) -> Floats:
    """The law on the lattice from ``first`` on: every value split onto its two neighbours, the rest at zero.

    Both shares are differences of numbers next to each other, so that each has a small relative error."""
    floor = np.floor(cell)
    at = floor.astype(np.int64) - first
    mass = np.bincount(at, weight * ((floor + 1.0) - cell), size) + np.bincount(
        at + 1, weight * (cell - floor), size
    )
    mass[-first] += max(0.0, 1.0 - float(weight.sum()))
    return np.asarray(mass)


def _double_sum(mass: Floats) -> Floats:
    """sum over i < j of (j - i) mass_i, at every j."""
    inner = np.cumsum(mass)
    return np.concatenate([[0.0], np.cumsum(inner)[:-1]])
