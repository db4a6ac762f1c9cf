"""A law of finitely many values, in balls: its transform, its moments, and simpler laws above it.

What is a float here chooses tilts and cuts: any are valid."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from flint import acb, acb_mat, arb, arb_mat

from shuffledp.verifying._guesses import Guess

_POWERS = 24  # speed, tightness: of turns, whose products widen balls
_MOST_MULTIPLES, _NEAR = 16, 1e-13  # speed: of lattices
_CELLS = 20  # speed: of coarser laws


class Tilted(NamedTuple):
    """A law under a tilt: E e^{theta X}, its variance, and half of the mean fourth power of what two copies
    differ by."""

    first: arb
    variance: arb
    fourth: arb

    def fallen(self, w: arb) -> arb:
        """|phi(theta + iw)|^2 as a share of that of theta, at most (V5)."""
        square = w**2
        return (1 - square * self.variance + square**2 * self.fourth / 12).max(arb(0)).upper()

    @property
    def falls(self) -> arb:
        """Up to this w that bound falls."""
        return (6 * self.variance / self.fourth).sqrt()


class Variable:
    """A finite law in balls: ``values`` with probabilities ``masses``, and zero with what is left."""

    def __init__(self, values: Sequence[arb], masses: Sequence[arb], rest: arb | None = None) -> None:
        self.values, self.masses = list(values), list(masses)
        self.rest = (1 - sum(self.masses, arb(0))).max(arb(0)) if rest is None else rest

    @cached_property
    def _floats(self) -> list[tuple[float, float]]:
        return [(float(v.mid()), float(m.mid())) for v, m in zip(self.values, self.masses, strict=True)]

    def ordered(self) -> list[tuple[float, float]]:
        """About the values, from the least on, and their masses."""
        return sorted(self._floats)

    def waves(self, s: acb) -> list[acb]:
        """m e^{sv} of all values."""
        return [m * (s * v).exp() for v, m in zip(self.values, self.masses, strict=True)]

    def transform(self, s: acb) -> acb:
        """E e^{sX}."""
        return sum(self.waves(s), acb(self.rest))

    def along(self, start: acb, stride: arb, count: int) -> Iterator[acb]:
        """E e^{sX} at s = start + i j stride, for all j < count: few powers of e^{i v stride}, and their
        products, as a product of matrices."""
        inner = min(math.isqrt(count - 1) + 1, _POWERS)
        turns = _powers([acb(0, stride * v).exp() for v in self.values], inner + 1)
        leap, at = turns.pop(), self.waves(start)
        near = acb_mat([list(row) for row in zip(*turns, strict=True)])
        for begin in range(0, count, inner * inner):
            rows = []
            for _ in range(begin, min(begin + inner * inner, count), inner):
                rows.append(at)
                at = [wave * turn for wave, turn in zip(at, leap, strict=True)]
            found = (acb_mat(rows) * near).entries()
            yield from (value + self.rest for value in found[: count - begin])
            if begin + inner * inner < count:
                at = self.waves(start + acb(0, (begin + inner * inner) * stride))

    def moment(self, theta: arb) -> arb:
        """E e^{theta X}."""
        return sum(
            (m * (theta * v).exp() for v, m in zip(self.values, self.masses, strict=True)), arb(self.rest)
        )

    def total(self, term: Callable[[arb], arb]) -> arb:
        """The mean of a function that is zero at zero."""
        return sum((term(v) * m for v, m in zip(self.values, self.masses, strict=True)), arb(0))

    def tilted(self, theta: arb) -> Tilted:
        """E e^{theta X}, and X under that tilt."""
        waves = arb_mat([[m * (theta * v).exp() for v, m in zip(self.values, self.masses, strict=True)]])
        away, rest = -self._centre, self.rest
        first, *sums = (waves * self._centred).entries()
        first += rest
        one, two, three, four = ((total + rest * away**k) / first for k, total in enumerate(sums, 1))
        square = one * one
        variance = (two - square).max(arb(0))
        fourth = four - 4 * one * three + 6 * square * two - 3 * square * square
        return Tilted(first, variance, fourth.max(arb(0)) + 3 * variance**2)

    @cached_property
    def _centre(self) -> arb:
        """About the mean: the variance is that of what is away from it."""
        return arb(self.total(lambda v: v).mid())

    @cached_property
    def _centred(self) -> arb_mat:
        """1, d, d^2, d^3 and d^4 of all values that lie d above the centre."""
        away = [(d, d * d) for d in (v - self._centre for v in self.values)]
        return arb_mat([[1, d, square, d * square, square * square] for d, square in away])

    def chernoff(self, n: int, theta: float) -> arb:
        """(1/n) E[S_+] for the sum S of n, at most: e theta s_+ <= e^(theta s)."""
        return self.moment(arb(theta)) ** n / (n * arb(theta) * arb(1).exp())

    def mean_above(self, cut: arb) -> arb:
        """E[(X - cut)_+] for a cut that is not negative."""
        return self.total(lambda v: (v - cut).max(arb(0)))

    def cut(self, budget: float) -> tuple[Variable, arb]:
        """Without the largest values, which add about ``budget`` to the mean; and what they add at most."""
        rows = sorted(((v, m) for v, m in self._floats if v > 0.0), reverse=True)
        if not rows:
            return self, arb(0)
        seen, mass, at = 0.0, 0.0, rows[0][0]
        for v, m in rows:
            if seen + mass * (at - v) > budget:
                break
            seen, mass, at = seen + mass * (at - v), mass + m, v
        return self.cut_at(math.inf if at == rows[0][0] else at)

    def cut_at(self, end: float) -> tuple[Variable, arb]:
        """No value beyond ``end``, and what that adds at most.

        X <= min(X, c) + (X - c)_+, and positive parts of sums are at most sums of positive parts."""
        if math.isinf(end):
            return self, arb(0)
        cut = arb(end)
        return Variable([v.min(cut) for v in self.values], self.masses, self.rest), self.mean_above(cut)

    def coarser(self, theta: float, share: float) -> Variable:
        """Fewer values, by a spread that keeps the mean: larger in the convex order.

        What lies between two that stay goes to both; the tilted variance grows by about ``share``."""
        order = sorted(range(len(self.values)), key=lambda i: self._floats[i][0])
        top = max(theta * v for v, _ in self._floats)
        tilted = [m * math.exp(max(theta * v - top, -700.0)) for v, m in self._floats]
        spare = share * self.cumulants(theta)[2] * math.fsum(tilted) / _CELLS
        values, masses = [self.values[order[0]]], [self.masses[order[0]]]
        start = 0
        while start < len(order) - 1:
            end, a = start + 1, self._floats[order[start]][0]
            inside = own = square = 0.0  # of what lies between: tilted mass, and its moments from a
            while end < len(order) - 1:
                w, v = tilted[order[end]], self._floats[order[end]][0] - a
                inside, own, square = inside + w, own + w * v, square + w * v * v
                if own * (self._floats[order[end + 1]][0] - a) - square > spare:
                    break
                end += 1
            low, high, place = values[-1], self.values[order[end]], len(values) - 1
            inner = dict[int, arb]()
            for i in order[start + 1 : end]:
                if low <= self.values[i] <= high and low < high:
                    inner[i] = (self.values[i] - low) / (high - low)
                else:  # not sure to be between: it stays
                    values.append(self.values[i])
                    masses.append(self.masses[i])
            values.append(high)
            masses.append(self.masses[order[end]])
            for i, up in inner.items():
                masses[place] += self.masses[i] * (1 - up)
                masses[-1] += self.masses[i] * up
            start = end
        return Variable(values, masses, self.rest)

    def on_a_lattice(self) -> tuple[Variable, arb, arb] | None:
        """If all values are next to multiples of the smallest one: a law on these, the span, and how much
        larger the mean of the positive part may be: E[(X - its multiple)_+]."""
        span = min((abs(v) for v, _ in self._floats if v != 0.0), default=0.0)
        if span == 0.0 or any(abs(v) > _MOST_MULTIPLES * span for v, _ in self._floats):
            return None
        whole = [round(v / span) for v, _ in self._floats]
        if any(abs(v - k * span) > _NEAR * span for (v, _), k in zip(self._floats, whole, strict=True)):
            return None
        unit = arb(span)
        values = [k * unit for k in whole]
        rows = zip(self.values, values, self.masses, strict=True)
        added = sum(((v - at).max(arb(0)) * m for v, at, m in rows), arb(0))
        return Variable(values, self.masses), unit, added.upper()

    @cached_property
    def guess(self) -> Guess:
        return Guess.of([*self._floats, (0.0, float(self.rest.mid()))])

    def guess_above(self, cut: float) -> float:
        """About E[(X - cut)_+]: of all values, as few of those alike are on one side of a cut."""
        return math.fsum(m * (v - cut) for v, m in self._floats if v > cut)

    def cumulants(self, theta: float) -> tuple[float, float, float]:
        """log E e^{theta X} and two derivatives, as floats: guesses only."""
        return self.guess.cumulants(theta)


def _powers(turns: list[acb], count: int) -> list[list[acb]]:
    """From the zeroth on, by few products each: balls widen with every one."""
    found = [[acb(1)] * len(turns), turns]
    while len(found) < count:
        half, rest = found[len(found) // 2], found[len(found) - len(found) // 2]
        found.append([a * b for a, b in zip(half, rest, strict=True)])
    return found[:count]
