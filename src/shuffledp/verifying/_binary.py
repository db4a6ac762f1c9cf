"""Binary randomized response, the largest curve of all datasets, in balls: Theorem T12, tails by V3.

m of the others hold x, l hold x'; F ~ Bin(m, q) + Bin(l, 1 - q) of them report "x", and

    H(m, l) = max over t of  c1 Pr[F >= t - 1] + c2 Pr[F >= t],    c1 > 0 > c2,

which is unimodal in t. H falls in m and in l, so H(m1, n - 1 - m2) bounds all m in [m1, m2]: intervals are
chosen so that each is below ``enough``, or holds a single dataset."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from flint import acb, arb

_WIDER, _NARROWER = 1.25, 0.6  # speed
_MOST_INTERVALS = 20_000  # speed
_DEPTH = 40.0  # speed: nats below which frequencies and aliases are left out
_MOST_MOVES = 50


def binary(n: int, epsilon0: arb, epsilon: arb, enough: arb) -> arb:
    """An upper bound of the curve at epsilon."""
    bar = _Bar.at(epsilon0, epsilon, n - 1)
    if not bar.c1 > 0:
        return bar.c1.max(arb(0))
    result, looked, high, width = arb(0), 0, n - 1, n / 16
    # From the last dataset on, which usually is the worst; widths follow what was good enough.
    while high >= 0:
        low = max(high + 1 - max(math.floor(width), 1), 0)
        bound = bar.maximum(low, n - 1 - high)
        looked += 1
        if bound <= enough or low == high or looked > _MOST_INTERVALS:
            result = result.max(bound)
            enough = enough.max(result)  # what one dataset exceeds, others may reach
            high, width = low - 1, _WIDER * width
        else:
            width = max(_NARROWER * width, 1.0)
    return result


@dataclass(frozen=True)
class _Bar:
    """The coefficients of the objective at one epsilon, and the frequencies of at most ``most`` users."""

    keep: arb
    lie: arb
    c1: arb
    c2: arb
    most: int

    @classmethod
    def at(cls, epsilon0: arb, epsilon: arb, most: int) -> _Bar:
        grown, a = epsilon0.exp(), epsilon.exp()
        keep, lie = grown / (grown + 1), 1 / (grown + 1)
        return cls(keep, lie, keep - a * lie, lie - a * keep, most)

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
    def _waves(self) -> list[tuple[acb, acb, acb, acb, acb]]:
        """Of every frequency s: log(lie + keep e^s), log(keep + lie e^s), s, e^s, the kernel."""
        tilt, step = arb(self._theta), 2 * arb.pi() / self._size
        result = []
        for r in range(self._size // 2 + 1):
            s = acb(tilt, r * step)
            z = s.exp()
            kernel = (1 if r == 0 else 2) * (self.c1 * z + self.c2) / (1 - 1 / z)
            one, two = (self.lie + self.keep * z).log(), (self.keep + self.lie * z).log()
            result.append((one, two, s, z, kernel))
        return result

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
        most = (self.c1 * tilt.exp() - self.c2) / (1 - (-tilt).exp())
        around = left_out * most + self._size * self._aliases(m, others, first, middle)
        found = zip((below, at, above), (middle - 1, middle, middle + 1), strict=True)
        low, centre, high = (
            (total.real + around * (-tilt * t).exp() * arb(0, 1)) / self._size for total, t in found
        )
        return low, centre, high

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
