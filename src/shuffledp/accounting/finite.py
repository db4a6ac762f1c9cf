"""The privacy blanket of any finite randomizer: the maximum over all ordered pairs of inputs.

The blanket is the part that all inputs share, ``clone[y] = min_x matrix[x][y]``, of total mass gamma
(Balle, Bell, Gascon, Nissim 2019). For inputs x, x' the round is the AmplificationProfile with own =
row x, other = row x'; an upper bound for substitution neighbours. Pairs whose laws are equal up to
the order of the outputs are one class (k-ary randomized response has one, whatever k).

Many classes share an *envelope*, and are taken apart where it is not good enough. All laws of X
have the same mean 1 - alpha, and E[(sum)_+] is monotone in the convex order, so the law whose
stop-loss curve E[(X - t)_+] is the largest of theirs bounds them all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from shuffledp.accounting.amplification import AmplificationProfile, positive_part, saddle
from shuffledp.accounting.profile import Floats, PrivacyProfile, SupportingLines
from shuffledp.numerics.binomial import UNIT
from shuffledp.randomizers import FiniteRandomizer

_ALONE = 16
_TOGETHER = 6
_ENVELOPE_CELLS = 1024
_ENVELOPE_UNITS = 1e-11
"""Relative error of the envelope's masses: second differences of sums of up to 1024 terms."""


@dataclass(frozen=True)
class FiniteBlanketProfile(PrivacyProfile):
    """The blanket of ``randomizer`` among n users, over all ordered pairs of inputs."""

    randomizer: FiniteRandomizer
    n: int

    @cached_property
    def laws(self) -> list[AmplificationProfile]:
        """One law per class of pairs, the largest chi-square first."""
        return _laws(self.randomizer, self.n)

    @property
    def epsilon_max(self) -> float:
        return max((law.epsilon_max for law in self.laws), default=0.0)

    @property
    def infinite_loss(self) -> float:
        return max((law.infinite_loss for law in self.laws), default=0.0)

    @property
    def scale(self) -> float:
        return max((law.scale for law in self.laws), default=0.0)

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        laws = self.laws
        if len(laws) <= _ALONE:
            found = [law.upper(epsilon, resolution) for law in laws]
            return np.asarray(np.max(found or [0.0 * epsilon], axis=0))
        enough = self.support(epsilon * (1.0 - 0.5 * resolution), 0.5 * resolution).value
        pairs = zip(epsilon, enough, strict=True)
        return np.array([self._maximum(float(e), resolution, float(good)) for e, good in pairs])

    def _maximum(self, epsilon: float, resolution: float, enough: float) -> float:
        """Largest curve at epsilon; classes whose envelope is below ``enough`` are closed together.

        ``enough`` is what the true curve reaches at a slightly smaller epsilon."""
        result = 0.0
        todo = [self.laws]
        at = np.array([epsilon])
        while todo:
            laws = todo.pop()
            # Outputs that some input never sends are seen at once; then means differ: no envelope.
            if len(laws) <= _TOGETHER or any(min(law.clone) == 0.0 for law in laws):
                bound = max(float(law.upper(at, resolution)[0]) for law in laws)
            else:
                bound = _envelope(laws, self.n, epsilon)
                if bound > max(enough, result):
                    cuts = np.linspace(0, len(laws), _TOGETHER + 1).astype(int)
                    todo += [laws[i:j] for i, j in pairwise(cuts) if j > i]
                    continue
            result = max(result, bound)
        return result

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        best = np.zeros((3, epsilon.size))
        for law in self.laws[:_ALONE]:
            lines = law.support(epsilon, resolution)
            rows = np.stack([lines.value, lines.slope_low, lines.slope_high])
            best = np.where(rows[0] > best[0], rows, best)
        return SupportingLines(epsilon, best[0], best[1], best[2])


@lru_cache(maxsize=8)
def _laws(randomizer: FiniteRandomizer, n: int) -> list[AmplificationProfile]:
    rows = randomizer.matrix
    clone = rows.min(axis=0)
    classes: dict[bytes, AmplificationProfile] = {}
    for x in range(rows.shape[0]):
        for y in range(rows.shape[0]):
            if x != y:
                key, law = _law(rows[x], rows[y], clone, n)
                classes.setdefault(key, law)
    return sorted(classes.values(), key=lambda law: -law.scale)


def _law(own: Floats, other: Floats, clone: Floats, n: int) -> tuple[bytes, AmplificationProfile]:
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


def _envelope(laws: list[AmplificationProfile], n: int, epsilon: float) -> float:
    """Upper bound of every law's curve at epsilon, from the largest of their stop-loss curves."""
    growth = math.expm1(epsilon) * (1.0 - 64.0 * UNIT)
    seen = 0.0
    values, weights = [], []
    for law in laws:
        gap, other, clone = map(np.array, (law.gap, law.other, law.clone))
        weight = gap - growth * other
        hidden = clone > 0.0
        seen = max(seen, float(np.maximum(weight[~hidden], 0.0).sum()))
        values.append(weight[hidden] / clone[hidden])
        weights.append(clone[hidden])
    top = max(float(v.max(initial=0.0)) for v in values)
    bottom = min(float(v.min(initial=0.0)) for v in values)
    if top <= 1e-9 * -bottom or top == 0.0:
        return seen + max(
            float((np.maximum(v, 0.0) * w).sum()) for v, w in zip(values, weights, strict=True)
        )
    h = (top - bottom) / _ENVELOPE_CELLS
    first = math.floor(bottom / h) - 1
    size = math.ceil(top / h) + 2 - first
    lattice = (first + np.arange(size)).astype(np.float64)
    above, below = np.zeros(size), np.zeros(size)
    for value, weight in zip(values, weights, strict=True):
        mass = _spread(value / h - first, weight, size, -first)
        # Stop-loss curves from either end: sums of positive terms only.
        above = np.maximum(above, _double_sum(mass[::-1])[::-1])
        below = np.maximum(below, _double_sum(mass))
    mean = -growth / h  # all laws share it (up to rounding, inside the units)
    split = int(np.searchsorted(lattice, mean))
    masses = np.zeros(size)
    masses[split + 1 : -1] = np.diff(above, 2)[split:]
    masses[1:split] = np.diff(below, 2)[: split - 1]
    masses = np.maximum(masses, 0.0)
    masses[split] = max(0.0, 1.0 - masses.sum())
    z, w = lattice[None, :], masses[None, :]
    theta = saddle(z, w, n)
    step = np.array([h])
    return seen + float(positive_part(z, w, 0.0 * step, step, theta, n, _ENVELOPE_UNITS)[0])


def _spread(cell: Floats, weight: Floats, size: int, zero: int) -> Floats:
    """The law on the lattice: every value split onto its two neighbours, the rest at zero."""
    floor = np.floor(cell)
    right = cell - floor
    at = floor.astype(np.int64)
    mass = np.bincount(at, weight * (1.0 - right), size) + np.bincount(at + 1, weight * right, size)
    mass[zero] += max(0.0, 1.0 - float(weight.sum()))
    return np.asarray(mass)


def _double_sum(mass: Floats) -> Floats:
    """sum over i < j of (j - i) mass_i, at every j."""
    inner = np.cumsum(mass)
    return np.concatenate([[0.0], np.cumsum(inner)[:-1]])
