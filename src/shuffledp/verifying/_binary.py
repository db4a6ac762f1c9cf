"""Binary randomized response, the largest curve of all datasets, in balls: Theorem T12, tails by V3.

m of the others hold x, l hold x'; F ~ Bin(m, q) + Bin(l, 1 - q) of them report "x", and

    H(m, l) = max over t of  c1 Pr[F >= t - 1] + c2 Pr[F >= t],    c1 > 0 > c2,

which is unimodal in t. H falls in m and in l, so H(m1, n - 1 - m2) bounds all m in [m1, m2]: intervals are
chosen so that each is below ``enough``, or holds a single dataset. The others' q may be another than the
person's, of whose q c1 and c2 are."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from flint import acb, arb

_WIDER, _NARROWER = 1.25, 0.6  # speed
_MOST_INTERVALS = 20_000  # speed
_DEPTH = 40.0  # speed: nats below which frequencies and aliases are left out
_MOST_MOVES = 50
_FEWEST_TOGETHER = 16  # speed: datasets that are looked at together
_REACH, _LEAST_REACH, _CENTRES = 0.06, 3.0, 3  # speed: of boxes around the best threshold
_POWERS = 8  # speed


def binary(n: int, epsilon0: arb, others: arb, epsilon: arb, enough: arb) -> arb:
    """An upper bound of the curve at epsilon."""
    bar = _Bar.at(epsilon0, others, epsilon, n - 1)
    if not bar.c1 > 0:
        return bar.c1.max(arb(0))
    result, looked, high, width = arb(0), 0, n - 1, n / 16
    # From the last dataset on, which usually is the worst; widths follow what was good enough.
    while high >= 0:
        low = max(high + 1 - max(math.floor(width), 1), 0)
        bound = bar.together(low, high)
        looked += 1
        if bound <= enough or low == high or looked > _MOST_INTERVALS:
            result = result.max(bound)
            enough = enough.max(result)  # what one dataset exceeds, others may reach
            high, width = low - 1, _WIDER * width
        else:
            width = max(_NARROWER * width, 1.0)
    return result


class _Wave(NamedTuple):
    """log(lie + keep e^s), log(keep + lie e^s), s, e^s and the kernel of the tails of V3."""

    one: acb
    two: acb
    s: acb
    grown: acb
    kernel: acb


@dataclass(frozen=True)
class _Bar:
    """The coefficients of the objective at one epsilon, and the frequencies of at most ``most`` users."""

    keep: arb
    lie: arb
    c1: arb
    c2: arb
    most: int

    @classmethod
    def at(cls, epsilon0: arb, others: arb, epsilon: arb, most: int) -> _Bar:
        grown, a = others.exp(), epsilon.exp()
        lie = 1 / (epsilon0.exp() + 1)
        return cls(grown / (grown + 1), 1 / (grown + 1), 1 - lie - a * lie, lie - a * (1 - lie), most)

    @cached_property
    def _ratio(self) -> float:
        """log(-c2/c1), where the likelihood ratio passes the bar, about."""
        ratio = math.log(max(float(-self.c2), 1e-300) / max(float(self.c1), 1e-300))
        return min(max(ratio, 0.0), 40.0)

    @cached_property
    def _theta(self) -> float:
        """A tilt: any is valid."""
        spread = math.sqrt(max(self.most * float(self.keep) * float(self.lie), 0.25))
        return max(self._ratio, 3.0 / spread if spread > 1.0 else 1.0)

    @cached_property
    def _size(self) -> int:
        """Odd: e^s is never on the negative axis, where logarithms jump."""
        spread = max(self._spread(self.most, 0), self._spread(0, self.most))
        further = math.ceil(_DEPTH / self._theta) + 8
        return (min(math.ceil(9.0 * spread), 2 * self.most) + further) | 1

    @cached_property
    def _slope(self) -> arb:
        """About how far the best threshold moves if one more holds x."""
        z = arb(self._theta).exp()
        return (self.keep * z / (self.lie + self.keep * z) - self.lie * z / (self.keep + self.lie * z)).mid()

    @cached_property
    def _made(self) -> list[_Wave]:
        return []

    @property
    def _waves(self) -> Iterator[_Wave]:
        """Of every frequency s, as far as asked for."""
        tilt, step = arb(self._theta), 2 * arb.pi() / self._size
        for r in range(self._size // 2 + 1):
            if r == len(self._made):
                s = acb(tilt, r * step)
                z = s.exp()
                kernel = (1 if r == 0 else 2) * (self.c1 * z + self.c2) / (1 - 1 / z)
                one, two = (self.lie + self.keep * z).log(), (self.keep + self.lie * z).log()
                self._made.append(_Wave(one, two, s, z, kernel))
            yield self._made[r]

    def together(self, low: int, high: int) -> arb:
        """The largest H(m, most - m) of all m from low to high, from above."""
        found = _Box.around(self, low, high) if high - low >= _FEWEST_TOGETHER else None
        return self.maximum(low, self.most - high) if found is None else found.min(self.c1)

    def maximum(self, m: int, others: int) -> arb:
        """H(m, others), from above."""
        if m + others == 0:
            return self.c1
        t, found = self._start(m, others), dict[int, arb]()
        for _ in range(_MOST_MOVES):
            found.update(zip((t - 1, t, t + 1), self._objective(m, others, t), strict=True))
            best = max(found, key=lambda i: float(found[i]))
            left = max((i for i in found if i < best and found[i] < found[best]), default=None)
            right = min((i for i in found if i > best and found[i] < found[best]), default=None)
            if left is not None and right is not None:
                # Unimodal: the maximum lies between two places that are lower than a third.
                top = found[best]
                for i in range(left + 1, right):
                    top = top.max(found[i])
                return top.min(self.c1)
            t = min(found) - 2 if left is None else max(found) + 2
        return self.c1

    def _start(self, m: int, others: int) -> int:
        keep, lie, grown = float(self.keep), float(self.lie), math.exp(self._ratio)
        mean = m * keep * grown / (lie + keep * grown) + others * lie * grown / (keep + lie * grown)
        return round(mean + 0.5)

    def _objective(self, m: int, others: int, middle: int) -> tuple[arb, arb, arb]:
        """At the thresholds middle - 1, middle, middle + 1."""
        first = self._first(m, others, self._theta)
        below, at, above, left_out = acb(0), acb(0), acb(0), arb(0)
        deepest = float(first) - _DEPTH
        for r, (one, two, s, grown, kernel) in enumerate(self._waves):
            power = m * one + others * two
            if r and float(power.real) < deepest:
                left_out = (self._size - 2 * r + 1) * power.real.exp()
                break
            share = kernel * (power - middle * s).exp()
            below, at, above = below + share * grown, at + share, above + share / grown
        tilt = arb(self._theta)
        around = left_out * self._largest_kernel + self._size * self._aliases(m, others, first, middle)
        found = zip((below, at, above), (middle - 1, middle, middle + 1), strict=True)
        low, centre, high = (
            (total.real + around * (-tilt * t).exp() * arb(0, 1)) / self._size for total, t in found
        )
        return low, centre, high

    @cached_property
    def _largest_kernel(self) -> arb:
        tilt = arb(self._theta)
        return (self.c1 * tilt.exp() - self.c2) / (1 - (-tilt).exp())

    def _first(self, m: int, others: int, theta: float) -> arb:
        """log E e^(theta F)."""
        z = arb(theta).exp()
        return m * (self.lie + self.keep * z).log() + others * (self.keep + self.lie * z).log()

    def _aliases(self, m: int, others: int, first: arb, middle: int) -> arb:
        """What other residues add at most, in units of e^{-tilt t}."""
        tilt, size = arb(self._theta), self._size
        right = (-tilt * size).exp() / (1 - (-tilt * size).exp())
        # Pr[F >= t + M j] <= E e^{steep (F - t - M j)}, at a steeper tilt.
        if middle - 2 + size > m + others:
            left = arb(0)
        else:
            further = 6.0 / self._spread(m, others)
            ratio = (-arb(further) * size).exp()
            steep = self._first(m, others, self._theta + further) - further * (middle - 2)
            left = (steep + self._theta + further).exp() * ratio / (1 - ratio)
        return (self.c1 - self.c2) * ((tilt * (middle + 2)).exp() * right + left)

    def _spread(self, m: int, others: int) -> float:
        keep, lie, grown = float(self.keep), float(self.lie), math.exp(self._theta)
        p, q = keep * grown / (lie + keep * grown), lie * grown / (keep + lie * grown)
        return math.sqrt(max(m * p * (1.0 - p) + others * q * (1.0 - q), 0.25))


@dataclass(frozen=True)
class _Box:
    """The objective around (m, t), both real, by powers of how far one is from there: V3, its last part.

    d = m' - m, |d| <= width, and t' = t + slope d + u, |u| <= reach; ``power[i][j]`` belongs to d^i u^j and
    ``rest`` bounds what is left out."""

    width: int
    reach: float
    power: list[list[arb]]
    rest: arb

    @classmethod
    def around(cls, bar: _Bar, low: int, high: int) -> arb | None:
        """An upper bound for all datasets from low to high, or None if none is found."""
        m, spread = (low + high) // 2, bar._spread(high, bar.most - high)
        t, reach = float(bar._start(m, bar.most - m)), max(_REACH / (bar._theta + 2.0 / spread), _LEAST_REACH)
        if reach * bar._theta > 1.0:
            return None
        for _ in range(_CENTRES):
            made = cls._at(bar, m, (high - low + 1) // 2, t, reach)
            found = made._most()
            if found is not None or not made.power[0][2] < 0:
                return found
            t -= float(made.power[0][1] / made.power[0][2]) / 2
        return None

    @classmethod
    def _at(cls, bar: _Bar, m: int, width: int, t: float, reach: float) -> _Box:
        sums = [[acb(0)] * (_POWERS + 1) for _ in range(3)]
        slope, rest, deepest = bar._slope, arb(0), -_DEPTH
        for r, (one, two, s, _, kernel) in enumerate(bar._waves):
            power, turn = m * one + (bar.most - m) * two - arb(t) * s, one - two - slope * s
            along, across = width * abs(turn), reach * abs(s)
            deepest += float(power.real) if r == 0 else 0.0
            if r and float(power.real) < deepest:
                left_out = (power.real + along + across).exp() * bar._largest_kernel
                rest += (bar._size - 2 * r + 1) * left_out
                break
            share = kernel * power.exp()
            tail = across ** (_POWERS + 1) / math.factorial(_POWERS + 1) + along**3 / 6
            rest += abs(share) * tail * (along + across).exp()
            for i in range(3):
                term = share
                for j in range(_POWERS + 1):
                    sums[i][j] += term
                    term = term * -s / (j + 1)
                share = share * turn / (i + 1)
        rest = rest / bar._size + cls._aliases(bar, m, width, arb(t), reach)
        return cls(width, reach, [[total.real / bar._size for total in row] for row in sums], rest)

    @staticmethod
    def _aliases(bar: _Bar, m: int, width: int, t: arb, reach: float) -> arb:
        """As for one dataset, of all in the box."""
        tilt, size = arb(bar._theta), bar._size
        right = (-tilt * (size - 2)).exp() / (1 - (-tilt * size).exp())
        steeper = arb(bar._theta + 6.0 / bar._spread(m, bar.most - m))
        z, ratio = steeper.exp(), ((tilt - steeper) * size).exp()
        one, two = (bar.lie + bar.keep * z).log(), (bar.keep + bar.lie * z).log()
        away = width * abs(one - two - bar._slope * steeper) + steeper * (reach + 2)
        left = (m * one + (bar.most - m) * two - steeper * t + away).exp() * ratio / (1 - ratio)
        return (bar.c1 - bar.c2) * (right + left)

    def _most(self) -> arb | None:
        """Of all whole t: where, for every m, one in the middle tells more than one at either end."""
        (value, tilt, bend, *higher), first, second = self.power
        width, reach = self.width, arb(self.reach)
        tilt = abs(tilt) + width * abs(first[1])
        mixed = [(width, first[2:], 2), (width**2, second[1:], 1)]
        rest = self.rest
        for scale, row, start in mixed:
            rest += scale * sum((abs(one) * reach ** (start + i) for i, one in enumerate(row)), arb(0))
        high = sum((abs(one) * reach ** (1 + i) for i, one in enumerate(higher)), arb(0))
        fall = -bend - high  # all higher powers of u are at most u^2 times ``high``
        if not fall * (reach - 1) ** 2 > (high - bend) / 4 + tilt * (reach + 0.5) + 2 * rest:
            return None
        along = width * abs(first[0]) + width**2 * abs(second[0])
        return (value + along + tilt**2 / (4 * fall) + rest).upper()
