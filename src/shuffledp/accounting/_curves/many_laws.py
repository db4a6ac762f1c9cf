"""Bounds on the curves of many laws at once: which of them can be the largest?

For a sum of n iid numbers X, whose law may be any positive measure, and every tau > 0 (Theorem 2 of
docs/proofs/crowd.md, without weights)

    (1/n) E[(X_1 + ... + X_n)_+] <= N(tau) / (2 pi n),
    N(tau) = int |E e^((tau + i w) X)|^n / (tau^2 + w^2) dw.

Second moments bound it roughly (Bennett, crowd_family.py), moments under the tilt to some percent (``Laws``,
crowd_laws.py). Reports that hide nothing are one more type, of X = 0: its mass is rounded up, and a larger
measure has a larger sum. Types that nobody hides are seen, and add (own - alpha other)_+; E[X_+] is a bound
as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from shuffledp._certified.rounding import LARGEST_EXPONENT, Floats, gamma, positive, up
from shuffledp.accounting._curves.crowd_family import Family, log_bennett
from shuffledp.accounting._curves.crowd_laws import TILTS, Laws, Taking
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.accounting._curves.profile import Bools
from shuffledp.accounting._hints.crowds import CrowdHints

_WIDEST = 48  # speed: laws for which the tilt is chosen
_FAR_BELOW = 0.3  # speed: of the largest; a law of a rough bound below that needs no closer one
_UNITS = 64  # soundness: operations of a bound beside its integral


@dataclass(frozen=True, eq=False)
class ManyLaws:
    """Laws of sums of n numbers, as rows of gap, other and clone; the last type is what hides nothing."""

    n: int
    family: Family
    hints: CrowdHints = field(default_factory=CrowdHints)

    @classmethod
    def of(cls, laws: Sequence[AmplificationProfile]) -> ManyLaws:
        """These, filled up with types of no mass."""
        size = max(len(law.clone) for law in laws)
        table = np.zeros((3, len(laws), size + 1))
        for row, law in enumerate(laws):
            table[:, row, : len(law.clone)] = law.gap, law.other, law.clone
        rest = 1.0 - table[2].sum(axis=1)
        table[2, :, -1] = np.maximum(rest, 0.0) + gamma(2 * size + 8)
        return cls(laws[0].n, Family.of_rows(*table))

    @cached_property
    def _largest(self) -> float:
        """No X is above it."""
        gap, _, clone = self.family.stated
        hidden = clone > 0.0
        return up(float((gap[hidden] / clone[hidden]).max()), operations=4)

    @cached_property
    def _has_seen(self) -> Bools:
        """Of every law, whether nobody hides some type."""
        gap, other, clone = self.family.stated
        return np.asarray(((clone == 0.0) & ((gap != 0.0) | (other > 0.0))).any(axis=1))

    @cached_property
    def bounds(self) -> Callable[[float], Floats]:
        """No law's curve is above its number at an epsilon. Some are kept, as long as this value is."""
        return lru_cache(maxsize=64)(self._bounds)

    def _bounds(self, epsilon: float) -> Floats:
        gap, other, clone = self.family.stated
        if not 0.0 <= epsilon <= LARGEST_EXPONENT:
            return np.full(len(gap), math.inf)
        growth, sums = math.expm1(epsilon), np.zeros(len(gap))
        if ((gap > 0.0) & (clone > 0.0)).any():  # else no X is positive
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                sums = self._sums(Taking(float(self.n), 1.0, growth))
        return _with_seen(sums, gap, growth * other, clone)

    def largest(self, epsilon: Floats) -> Floats:
        """No law's curve is above these numbers, at each epsilon."""
        return np.asarray(self.each(epsilon).max(axis=0))

    def each(self, epsilon: Floats) -> Floats:
        """No law's curve (rows) is above its numbers, at each epsilon: all at once, each with a tilt."""
        gap, other, clone = (np.repeat(part, epsilon.size, axis=0) for part in self.family.stated)
        growth = np.tile(np.expm1(np.minimum(epsilon, LARGEST_EXPONENT)), len(self.family.stated[0]))[:, None]
        laws = Laws.of(gap, other, clone, growth, 1.0, math.inf)
        with np.errstate(all="ignore"):  # a hint may be absurd
            sums = np.exp(laws.log_bounds(np.clip(self.hints.tilts(laws, self.n), *TILTS)[:, None], self.n))[
                :, 0
            ]
        return _with_seen(sums, gap, growth * other, clone).reshape(-1, epsilon.size)

    def _sums(self, taking: Taking) -> Floats:
        """Of the types that somebody hides."""
        family, growth = self.family, taking.growth
        seconds, _ = family.seconds.at(taking, 1.0)
        widest = np.argsort(-seconds)[:_WIDEST]
        some = family.pick(widest, growth, 1.0, math.inf)
        first = self.hints.leaders(some, self.n)
        tau = np.array([positive(self.hints.tilt(some.x[first], some.p[first], self.n, growth)[0])])
        size = 2 * family.types + 8
        # Means are -growth as far as rows sum to one and everything is hidden.
        doubt = self.n * float(tau[0]) * gamma(size) * (2.0 + growth)
        log_found = log_bennett(seconds, tau, taking, [(self._largest, 0.0)])[:, 0] + doubt
        log_found[self._has_seen] = math.inf
        close = some.log_integrals(tau, taking)[:, 0].max()
        near = np.flatnonzero(~(log_found <= close + math.log(_FAR_BELOW)))
        tilted = family.pick(near, growth, 1.0, math.inf).log_integrals(tau, taking)[:, 0]
        log_found[near] = np.minimum(log_found[near], tilted)
        return np.exp(log_found - math.log(self.n) + gamma(_UNITS) * (1.0 + np.abs(log_found)))


def _with_seen(sums: Floats, gap: Floats, grown: Floats, clone: Floats) -> Floats:
    """With the types that nobody hides; or E[X_+] by types, if that is less (``grown``: growth * other)."""
    # Where it is positive, ``grown`` is the smaller of the two.
    told = np.maximum(gap - grown + gamma(_UNITS) * np.abs(gap), 0.0)
    seen = np.where(clone == 0.0, told, 0.0).sum(axis=1)
    return up(np.asarray(np.fmin(sums + seen, told.sum(axis=1))), operations=gap.shape[1] + _UNITS)
