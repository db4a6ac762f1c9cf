"""A concrete pair of datasets whose reports' probabilities are known up to a small factor only.

By Theorem T14' (docs/proofs/witnesses.md) an error of 1e-12 in every mass, which among 1e8 users would be a
total variation of 1e-4, moves epsilon by 1e-6 only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp._certified.rounding import CALL, Floats, capped, down, up
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.accounting._curves.profile import PrivacyProfile, SupportingLines
from shuffledp.accounting._curves.third_value import EvenCrowdProfile
from shuffledp.accounting._hints.starts import Hints

_DEPTH = 1400.0  # soundness: L. (1 + alpha) e^-L is below TINY for every alpha up to e^700
_SHALLOW = 40.0, 60.0  # tightness: L where what is attained is far above (1 + alpha) e^-L


@dataclass(frozen=True)
class InexactProfile(PrivacyProfile):
    """The pair ``base``, each of whose masses is off by a factor of at most 1 +- ``error``."""

    base: AmplificationProfile | EvenCrowdProfile
    error: float

    @property
    def n(self) -> int:
        return self.base.n

    @property
    def _shift(self) -> float:
        return self._shift_at(_DEPTH)

    def _shift_at(self, depth: float) -> float:
        """s; laws are scaled to total one, which doubles the error of a mass."""
        h = up(2.0 * self.error / (1.0 - self.error), operations=4)
        others = float(self.base.n - 1)
        moved = h + others * math.expm1(h) ** 2 + h * math.sqrt(2.0 * others * depth)
        return up(moved, operations=2 * CALL + 12)

    @property
    def epsilon_max(self) -> float:
        return up(self.base.epsilon_max + 2.0 * self._shift, operations=1, tiny=0.0)

    @cached_property
    def hints(self) -> Hints:
        return Hints(self.base.hints.scale)

    @property
    def directions(self) -> tuple[InexactProfile, ...]:
        """The pair as it is and reversed, or once if that is the same."""
        return tuple(InexactProfile(base, self.error) for base in self.base.directions)

    def subsampled(self, fraction: float) -> InexactProfile:
        """The differing user takes part with probability ``fraction``, else one of the others."""
        return InexactProfile(self.base.subsampled(fraction), self.error)

    def polled(self, rate: float) -> InexactProfile:
        """Everybody's own coin says, with probability ``rate``, that they report."""
        return InexactProfile(self.base.polled(rate), self.error)

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        inner = down(np.maximum(epsilon - 2.0 * self._shift, 0.0), operations=1)
        grown = math.exp(capped(self._shift))
        # Where that would be below zero: H at alpha < 1 exceeds H at 1 by at most 1 - alpha.
        less = np.maximum(2.0 * self._shift - epsilon, 0.0)
        return up((self.base.upper(inner, resolution) + less) * grown, operations=CALL + 4)

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        for depth in _SHALLOW:
            near = self._support(epsilon, resolution, depth)
            if (near.value > 0.0).all():
                return near
        return self._support(epsilon, resolution, _DEPTH)

    def _support(self, epsilon: Floats, resolution: float, depth: float) -> SupportingLines:
        """The best event of the base: P(A) >= e^-s (P'(A) - e^-L), Q(A) <= e^s Q'(A) + e^-L, and so on."""
        shift, rest = self._shift_at(depth), up(math.exp(-depth), operations=CALL)
        # The sum is rounded: a unit more of it is on the safe side.
        lines = self.base.support(up(epsilon + 2.0 * shift, operations=2), resolution)
        less, more = math.exp(-shift), math.exp(capped(shift))
        lost = up((1.0 + np.exp(capped(epsilon))) * rest, operations=CALL + 2)
        value = down(lines.value * less, operations=CALL + 1) - lost
        slope = down(lines.slope_low * less, operations=CALL + 1) - rest
        return SupportingLines(
            epsilon,
            down(np.maximum(value, 0.0), operations=1),
            down(np.maximum(slope, 0.0), operations=1),
            up(lines.slope_high * more + rest, operations=CALL + 2),
        )
