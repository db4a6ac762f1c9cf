"""A fresh random cohort of fixed size in every round.

n of ``population`` users, a uniformly random subset, are asked; g = n / population. For
substitution neighbours and a curve h of the n-user round (Koskela et al. 2023, Lemma 7):

    alpha >= 1:  g h(1 + (alpha - 1)/g),
    alpha <  1:  1 - alpha + alpha g h(1 + (1/alpha - 1)/g),

neither form alone for all alpha. The second is the first, reversed, so the symmetric curve that a
PrivacyProfile is covers both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp._certified.rounding import UNIT, Floats, capped
from shuffledp.accounting._curves.profile import PrivacyProfile, SupportingLines
from shuffledp.accounting._hints.starts import Hints, SubsampledHints

_NEXT_TO = 1e-6
_OUTWARD = 1e-11


@dataclass(frozen=True)
class SubsampledProfile(PrivacyProfile):
    """The curve of ``base`` (a symmetric profile of the cohort's size) at sampling ``fraction``."""

    base: PrivacyProfile
    fraction: float

    @property
    def epsilon_max(self) -> float:
        return subsampled_epsilon(self.base.epsilon_max, self.fraction) * (1.0 + 8.0 * UNIT)

    @cached_property
    def hints(self) -> Hints:
        cohort = self.base.hints
        return SubsampledHints(
            self.fraction * cohort.scale, cohort=cohort, fraction=self.fraction, reach=self.base.epsilon_max
        )

    @property
    def infinite_loss(self) -> float:
        return self.fraction * self.base.infinite_loss * (1.0 - _OUTWARD)

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        return self._scaled_upper(self.base.upper(self._inner(epsilon, -1.0), resolution))

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        return self._scaled_lines(epsilon, self.base.support(self._inner(epsilon, 1.0), resolution))

    def both(self, epsilon: Floats, resolution: float) -> tuple[Floats, SupportingLines]:
        # Only next to the largest loss a few units of epsilon are not within the base's own errors.
        if np.any(epsilon > (1.0 - _NEXT_TO) * self.epsilon_max):
            return super().both(epsilon, resolution)
        upper, lines = self.base.both(self._inner(epsilon, 0.0), resolution)
        return self._scaled_upper(upper), self._scaled_lines(epsilon, lines)

    def _scaled_upper(self, upper: Floats) -> Floats:
        return np.asarray(self.fraction * upper * (1.0 + _OUTWARD))

    def _scaled_lines(self, epsilon: Floats, lines: SupportingLines) -> SupportingLines:
        value = self.fraction * lines.value * (1.0 - _OUTWARD)
        return SupportingLines(epsilon, value, lines.slope_low, lines.slope_high)

    def _inner(self, epsilon: Floats, outward: float) -> Floats:
        """The cohort's epsilon, moved by more than its rounding error (to smaller ones for -1)."""
        grown = np.expm1(capped(epsilon)) / self.fraction
        return np.asarray(np.log1p(grown) * (1.0 + outward * 16.0 * UNIT))


def subsampled_epsilon(epsilon: float, fraction: float) -> float:
    """log(1 + fraction (e^epsilon - 1)): pure epsilon-DP under subsampling."""
    if fraction == 1.0 or math.isinf(epsilon):
        return epsilon
    return math.log1p(fraction * math.expm1(epsilon))
