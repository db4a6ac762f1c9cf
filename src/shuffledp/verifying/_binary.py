"""Binary randomized response, the largest curve of all datasets, in balls: Theorem T12, tails by V3.

m of the others hold x, l hold x'; F ~ Bin(m, q) + Bin(l, 1 - q) of them report "x", and

    H(m, l) = max over t of  c1 Pr[F >= t - 1] + c2 Pr[F >= t],    c1 > 0 > c2,

which is unimodal in t. H falls in m and in l, so H(m1, n - 1 - m2) bounds all m in [m1, m2]: intervals are
split until each is below ``enough``, or a single dataset is not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from flint import acb, arb

_FIRST_INTERVALS = 16
_SPLIT = 4
_MOST_INTERVALS = 20_000  # speed
_DEPTH = 90.0  # speed: nats below which frequencies and aliases are left out
_MOST_MOVES = 50


def binary(n: int, epsilon0: arb, epsilon: arb, enough: arb) -> arb:
    """An upper bound of the curve at epsilon."""
    bar = _Bar.at(epsilon0, epsilon)
    if not bar.c1 > 0:
        return bar.c1.max(arb(0))
    result, looked = arb(0), 0
    edges = sorted({n * i // _FIRST_INTERVALS for i in range(_FIRST_INTERVALS + 1)})
    # The worst dataset is usually the last one.
    todo = [(low, high - 1) for low, high in pairwise(edges)]
    while todo:
        low, high = todo.pop()
        bound = bar.maximum(low, n - 1 - high)
        looked += 1
        if bound <= enough or low == high or looked > _MOST_INTERVALS:
            result = result.max(bound)
            enough = enough.max(result)  # what one dataset exceeds, others may reach
            continue
        size = high - low + 1
        cuts = sorted({low + size * i // _SPLIT for i in range(_SPLIT + 1)})
        todo += [(a, b - 1) for a, b in pairwise(cuts)]
    return result


@dataclass(frozen=True)
class _Bar:
    """The coefficients of the objective at one epsilon."""

    keep: arb
    lie: arb
    c1: arb
    c2: arb

    @classmethod
    def at(cls, epsilon0: arb, epsilon: arb) -> _Bar:
        grown, a = epsilon0.exp(), epsilon.exp()
        keep, lie = grown / (grown + 1), 1 / (grown + 1)
        return cls(keep, lie, keep - a * lie, lie - a * keep)

    def maximum(self, m: int, others: int) -> arb:
        """H(m, others), from above."""
        if m + others == 0:
            return self.c1
        theta, t = self._start(m, others)
        for _ in range(_MOST_MOVES):
            found = self._objective(m, others, theta, t)
            best = max(range(len(found)), key=lambda i: float(found[i].mid()))
            left = [i for i in range(best) if found[i] < found[best]]
            right = [i for i in range(best + 1, len(found)) if found[i] < found[best]]
            if left and right:
                # Unimodal: the maximum lies between two places that are lower than a third.
                top = found[left[-1]]
                for value in found[left[-1] + 1 : right[0]]:
                    top = top.max(value)
                return top.min(self.c1)
            t += best - 2
        return self.c1

    def _start(self, m: int, others: int) -> tuple[float, int]:
        """A tilt, and a threshold: where the likelihood ratio passes the bar, about."""
        keep, lie = float(self.keep), float(self.lie)
        ratio = math.log(max(float(-self.c2), 1e-300) / max(float(self.c1), 1e-300))
        ratio = min(max(ratio, 0.0), 40.0)
        spread = math.sqrt(max((m + others) * keep * lie, 0.25))

        def mean(theta: float) -> float:
            grown = math.exp(theta)
            return m * keep * grown / (lie + keep * grown) + others * lie * grown / (keep + lie * grown)

        return max(ratio, 3.0 / spread if spread > 1.0 else 1.0), round(mean(ratio))

    def _objective(self, m: int, others: int, theta: float, middle: int) -> list[arb]:
        """At the thresholds middle - 2, ..., middle + 2."""
        users = m + others
        tilted = self._spread(m, others, theta)
        size = min(math.ceil(14.0 * tilted + _DEPTH / theta) + 8, 2 * users + 8 + math.ceil(_DEPTH / theta))
        tilt, first = arb(theta), self._transform(m, others, acb(theta)).real
        step = 2 * arb.pi() / size
        totals, left_out = [arb(0)] * 5, arb(0)
        for r in range(size // 2 + 1):
            s = acb(tilt, r * step)
            transform = self._transform(m, others, s) / first
            if r and arb(transform.abs_upper()) < arb(-_DEPTH).exp():
                left_out = (size - 2 * r + 1) * arb(transform.abs_upper())
                break
            share = transform / (1 - (-s).exp()) * (self.c1 * s.exp() + self.c2) * (-s * (middle - 2)).exp()
            back, twice = (-s).exp(), 1 if r == 0 or 2 * r == size else 2
            for i in range(5):
                totals[i] += twice * share.real
                share *= back
        kernel = (self.c1 * tilt.exp() - self.c2) / (1 - (-tilt).exp())
        around = (left_out * kernel + size * self._aliases(m, others, tilt, first, size, middle)) * arb(0, 1)
        scale = first / size
        return [scale * (totals[i] + around * (-tilt * (middle - 2 + i)).exp()) for i in range(5)]

    def _aliases(self, m: int, others: int, tilt: arb, first: arb, size: int, middle: int) -> arb:
        """What other residues add at most, in units of e^{-tilt t} times the first transform."""
        both = self.c1 - self.c2
        right = (-tilt * size).exp() / (1 - (-tilt * size).exp())
        # Pr[F >= t + M j] <= E e^{steep (F - t - M j)}, at a steeper tilt.
        if middle - 3 + size > m + others:
            left = arb(0)
        else:
            steep = tilt + arb(8.0 / self._spread(m, others, float(tilt)))
            power = self._transform(m, others, acb(steep)).real / first
            ratio = (-(steep - tilt) * size).exp()
            left = power * (steep - (steep - tilt) * (middle - 2)).exp() * ratio / (1 - ratio)
        return both * ((tilt * (middle + 2)).exp() / first * right + left)

    def _spread(self, m: int, others: int, theta: float) -> float:
        keep, lie, grown = float(self.keep), float(self.lie), math.exp(theta)
        p, q = keep * grown / (lie + keep * grown), lie * grown / (keep + lie * grown)
        return math.sqrt(max(m * p * (1.0 - p) + others * q * (1.0 - q), 0.25))

    def _transform(self, m: int, others: int, s: acb) -> acb:
        z = s.exp()
        return (self.lie + self.keep * z) ** m * (self.keep + self.lie * z) ** others
