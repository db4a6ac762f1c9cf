"""Several rounds: the polygon of every round as a discrete pair, convolved in whole numbers: Theorem V2.

Masses are rounded up, small losses raised and large ones made infinite: delta only grows by that."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from flint import arb, fmpz, fmpz_poly

_SPARE_BITS = 80  # speed and tightness: of masses beyond those of delta
_SHARE_CUT = 2.0**-40  # tightness: of delta, what is cut off in all
_MOST_POINTS = 1 << 22  # speed

Vertices = Sequence[tuple[int, arb]]


@dataclass(frozen=True)
class Losses:
    """P-masses, in 2^-bits, rounded up: at first, first + 1, ... of a lattice of losses, and at infinity."""

    bits: int
    first: int
    masses: fmpz_poly
    infinite: int

    @classmethod
    def of(cls, vertices: Vertices, spacing: arb, bits: int, budget: int) -> Losses:
        kept = list(_hull(vertices, spacing))
        slopes = [(b[2] - a[2]) / (b[1] - a[1]) for a, b in pairwise(kept)]
        first = kept[1][0]
        size = kept[-1][0] - first + 1
        if size > _MOST_POINTS:
            raise ValueError(f"the grid has {size} losses, at most {_MOST_POINTS} are convolved")
        masses = [fmpz(0)] * size
        for (index, alpha, _), before, after in zip(kept[1:], slopes, [*slopes[1:], arb(0)], strict=True):
            masses[index - first] = fmpz(_scaled(alpha * (after - before), bits))
        return cls._cut(bits, first, masses, _scaled(kept[-1][2], bits), budget)

    @classmethod
    def _cut(cls, bits: int, first: int, masses: list[fmpz], infinite: int, budget: int) -> Losses:
        """Without the tails: what has a mass of at most ``budget`` is made infinite, or raised."""
        end, cut = len(masses), fmpz(0)
        while end > 1 and cut + masses[end - 1] <= budget:
            end -= 1
            cut += masses[end]
        start, raised = 0, fmpz(0)
        while start < end - 1 and raised + masses[start] <= budget:
            raised += masses[start]
            start += 1
        kept = [raised + masses[start], *masses[start + 1 : end]]
        if len(kept) > _MOST_POINTS:
            raise ValueError(f"the grid has {len(kept)} losses, at most {_MOST_POINTS} are convolved")
        return cls(bits, first + start, fmpz_poly(kept), infinite + int(cut))

    def __mul__(self, other: Losses) -> Losses:
        """The sum of two independent losses."""
        one = 1 << self.bits
        product = (self.masses * other.masses) // fmpz_poly([one])
        # Rounded up: where there is anything at all, one more.
        up = product + fmpz_poly([1] * (self.masses.degree() + other.masses.degree() + 1))
        both = self.infinite * other.infinite // one
        return Losses(self.bits, self.first + other.first, up, self.infinite + other.infinite - both)

    def cut(self, budget: int) -> Losses:
        return self._cut(self.bits, self.first, self.masses.coeffs(), self.infinite, budget)

    def power(self, count: int, budget: int) -> Iterator[Losses]:
        """``count`` copies added up; what is cut off each, at most ``budget`` times the copies.

        Every product is handed out, the last one is the answer."""
        result: Losses | None = None
        square, copies = self, 1
        while True:
            if count & copies:
                result = square if result is None else (result * square).cut(budget * copies)
                yield result
            copies *= 2
            if copies > count:
                return
            square = (square * square).cut(budget * copies)
            if result is not None:
                yield result

    def delta(self, epsilon: arb, spacing: arb) -> arb:
        """E[(1 - e^{epsilon - loss})_+]."""
        total = arb(0)
        decay, step = (epsilon - spacing * self.first).exp(), (-spacing).exp()
        for mass in self.masses.coeffs():
            if not decay >= 1:
                total += (1 - decay).max(arb(0)) * mass
            decay *= step
        return (total + self.infinite) / arb(2) ** self.bits


def precision(delta: float, counts: Sequence[int]) -> tuple[int, int]:
    """(bits of the masses, what one round may lose)."""
    bits = _SPARE_BITS + math.ceil(-math.log2(delta)) + sum(counts).bit_length()
    return bits, max(int(math.ldexp(delta * _SHARE_CUT / sum(counts), bits)), 1)


def thinned(index: Sequence[int]) -> int:
    """The largest step of which all indices are multiples (0 for none)."""
    return math.gcd(*index)


def _scaled(mass: arb, bits: int) -> int:
    """Times 2^bits, rounded up."""
    whole = (mass * arb(2) ** bits).upper().ceil().unique_fmpz()
    if whole is None:
        raise ValueError("the losses of a grid are out of range")
    return max(int(whole), 0)


def _hull(vertices: Vertices, spacing: arb) -> Iterator[tuple[int, arb, arb]]:
    """(index, alpha, value) of a convex polygon from (0, 1) on, below the given points on both sides of 1.

    A point stays only if slopes are sure to grow there."""
    if vertices[0][0] != 0 or any(a[0] >= b[0] for a, b in pairwise(vertices)) or len(vertices) < 2:
        raise ValueError("a grid must have increasing indices from 0 on, and two of them")
    right = [(j, (spacing * j).exp(), v) for j, v in vertices]
    left = [(-j, 1 / alpha, 1 - 1 / alpha + v / alpha) for j, alpha, v in reversed(right[1:])]
    kept: list[tuple[int, arb, arb]] = [(0, arb(0), arb(1))]
    for point in [*left, *right]:
        while len(kept) >= 2 and not _slope(kept[-2], kept[-1]) < _slope(kept[-1], point):
            kept.pop()
        kept.append(point)
    while len(kept) >= 3 and not _slope(kept[-2], kept[-1]) < 0:
        kept.pop()
    yield from kept


def _slope(a: tuple[int, arb, arb], b: tuple[int, arb, arb]) -> arb:
    return (b[2] - a[2]) / (b[1] - a[1])
