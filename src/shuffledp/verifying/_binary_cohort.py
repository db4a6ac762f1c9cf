"""Binary randomized response in a random cohort, all crowds one by one, in balls: Theorem T12'.

k of the n who are drawn hold x', the others x; of these A ~ Bin(n - k, q) and B ~ Bin(k, q) lie, and

    H = max over k of (D/n) E[(B - alpha A - t_k)_+]

(docs/proofs/cohorts.md). Laws by the ratio of neighbours; E[(B - t)_+] is the largest of E[B - t; B >= j]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

from flint import arb

from shuffledp.verifying._balls import max_of

_MOST = 10_000  # speed
_DEVIATIONS, _MORE = 10.0, 40  # tightness: of those who lie, up to where they are told apart


def binary_cohort(n: int, epsilon0: arb, share: arb, growth: arb) -> arb:
    """An upper bound of the curve at alpha = 1 + growth."""
    if n > _MOST:
        raise ValueError(f"n must be at most {_MOST} for a random cohort of binary response, got {n}")
    lies, r = _lies(n, str(epsilon0.str(80, radius=True)), epsilon0), (-epsilon0).exp()
    unit = 1 / r - r
    still = n * (1 - share) * growth / share
    bounds = list[arb]()
    for k in range(n + 1):
        told = (n - k) * (1 - r - growth * r) - k * (1 - r + growth)
        bounds.append(lies[n - k].mean_beyond(lies[k], (still - told) / unit, 1 + growth))
    return max_of(bounds) * share * unit / n


@dataclass(frozen=True)
class _Lies:
    """Of Bin(m, q): the probabilities of 0, 1, ... up to the last that is told apart; what is left beyond:
    their probability, and E[(B - last)_+]."""

    m: int
    q: arb
    masses: list[arb]
    left: arb
    more: arb

    @classmethod
    def of(cls, m: int, q: arb) -> _Lies:
        mean, ratio = m * float(q), q / (1 - q)
        last = min(m, math.ceil(mean + _DEVIATIONS * math.sqrt(mean)) + _MORE)
        masses = [(1 - q) ** m]
        for j in range(last):
            masses.append(masses[-1] * (m - j) / (j + 1) * ratio)
        if last == m:
            return cls(m, q, masses, arb(0), arb(0))
        falls = 1 - arb(m - last) / (last + 1) * ratio  # from there on at least so fast
        following = masses[-1] * (m - last) / (last + 1) * ratio
        left, more = (arb(0).union(following / falls**power) for power in (1, 2))
        return cls(m, q, masses, left, more)

    @cached_property
    def _tails(self) -> list[tuple[arb, arb]]:
        """Pr[B >= j] and E[B; B >= j], with what is left."""
        last = len(self.masses) - 1
        p, b = self.left, last * self.left + self.more
        found = [(p, b)]
        for j in range(last, -1, -1):
            p, b = p + self.masses[j], b + j * self.masses[j]
            found.append((p, b))
        return found[::-1]

    def excess(self, t: arb) -> arb:
        """E[(B - t)_+]."""
        if t < 0:
            return self.m * self.q - t
        tails, first = self._tails, math.floor(float(t.mid()))
        near = [tails[min(max(j, 0), len(tails) - 1)] for j in (first, first + 1, first + 2)]
        return max_of(b - t * p for p, b in near)

    def mean_beyond(self, other: _Lies, t: arb, alpha: arb) -> arb:
        """E[(B - alpha A - t)_+], A of this law and B of the other: it falls in A, so that those beyond are
        counted at the last."""
        total, last = arb(0), len(self.masses) - 1
        for lies, mass in enumerate(self.masses):
            total += (mass + self.left if lies == last else mass) * other.excess(t + alpha * lies)
        return total


@lru_cache(maxsize=4)
def _lies(n: int, _: str, epsilon0: arb) -> list[_Lies]:
    """Of up to n people."""
    q = 1 / (1 + epsilon0.exp())
    return [_Lies.of(m, q) for m in range(n + 1)]
