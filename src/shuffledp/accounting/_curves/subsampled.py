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

from shuffledp._certified.rounding import CALL, Floats, capped, down, gamma, up
from shuffledp.accounting._curves.profile import PrivacyProfile, SupportingLines
from shuffledp.accounting._hints.starts import Hints, SubsampledHints

_INNER_UNITS = 2 * CALL + 2  # soundness: of the cohort's epsilon: two calls, a quotient, the fraction


@dataclass(frozen=True)
class SubsampledProfile(PrivacyProfile):
    """The curve of ``base`` (a symmetric profile of the cohort's size) at sampling ``fraction``."""

    base: PrivacyProfile
    fraction: float

    @property
    def epsilon_max(self) -> float:
        return up(subsampled_epsilon(self.base.epsilon_max, self.fraction), _INNER_UNITS, tiny=0.0)

    @cached_property
    def hints(self) -> Hints:
        cohort = self.base.hints
        return SubsampledHints(
            self.fraction * cohort.scale, cohort=cohort, fraction=self.fraction, reach=self.base.epsilon_max
        )

    @property
    def infinite_loss(self) -> float:
        return down(self.fraction * self.base.infinite_loss, operations=2)

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        return self._scaled_upper(self.base.upper(self._inner(epsilon), resolution))

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        return self._scaled_lines(epsilon, self.base.support(self._inner(epsilon), resolution))

    def both(self, epsilon: Floats, resolution: float) -> tuple[Floats, SupportingLines]:
        upper, lines = self.base.both(self._inner(epsilon), resolution)
        return self._scaled_upper(upper), self._scaled_lines(epsilon, lines)

    def _scaled_upper(self, upper: Floats) -> Floats:
        return up(self.fraction * upper, operations=2)

    def _scaled_lines(self, epsilon: Floats, lines: SupportingLines) -> SupportingLines:
        # The line was found a little to the left of where it is asked for: it falls by its slope till there.
        inner = capped(lines.epsilon)
        fall = lines.slope_high * np.exp(inner) * gamma(2 * _INNER_UNITS + 8) * inner
        value = np.maximum(lines.value - up(fall, operations=2 * CALL), 0.0)
        return SupportingLines(epsilon, down(self.fraction * value, 4), lines.slope_low, lines.slope_high)

    def _inner(self, epsilon: Floats) -> Floats:
        """The cohort's epsilon, rounded down."""
        return down(np.log1p(np.expm1(capped(epsilon)) / self.fraction), _INNER_UNITS, tiny=0.0)


def subsampled_epsilon(epsilon: float, fraction: float) -> float:
    """log(1 + fraction (e^epsilon - 1)): pure epsilon-DP under subsampling."""
    if fraction == 1.0 or math.isinf(epsilon):
        return epsilon
    return math.log1p(fraction * math.expm1(epsilon))
