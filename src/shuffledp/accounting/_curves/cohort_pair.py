"""A pair of populations that a random cohort leaves: g P + (1 - g) Q against Q, from below (T22, cohorts).

(P, Q) is what the round shows of neighbouring datasets if all others hold one and the same value; a share g
of the population takes part. With beta = 1 - alpha (1 - g), for alpha >= 1,

    H_alpha(g P + (1 - g) Q, Q) = g H_(1 + (alpha - 1)/g)(P, Q),
    H_alpha(Q, g P + (1 - g) Q) = beta H_(alpha g / beta)(Q, P)    (zero where beta <= 0).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from shuffledp._certified.rounding import CALL, Floats, capped, down, gamma, positive, up
from shuffledp.accounting._curves.profile import PrivacyProfile, SupportingLines
from shuffledp.accounting._curves.subsampled import SubsampledProfile
from shuffledp.accounting._hints.starts import Hints

_UNITS = 4 * CALL  # soundness: of beta's parts and of alpha g / beta


@dataclass(frozen=True)
class CohortPair(SubsampledProfile):
    """The pair as it is: T5 attained. ``base`` bounds either direction of (P, Q) from below, its
    ``other_side`` from above (NearProfile, CloneProfile)."""

    @property
    def directions(self) -> tuple[PrivacyProfile, ...]:
        return self, ReversedCohortPair(self.base, self.fraction)


@dataclass(frozen=True)
class ReversedCohortPair(PrivacyProfile):
    """The same pair, reversed."""

    base: Any
    fraction: float

    @property
    def epsilon_max(self) -> float:
        return up(-float(np.log1p(-self.fraction)), operations=CALL)

    @cached_property
    def hints(self) -> Hints:
        return Hints(self.fraction * self.base.hints.scale)

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        """Never asked for: a pair of datasets bounds from below."""
        return np.ones(epsilon.size)

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        g, alpha = self.fraction, np.exp(capped(epsilon))
        fall = np.expm1(capped(epsilon)) * (1.0 - g)
        beta = g - fall
        live = beta > gamma(_UNITS) * (g + fall)
        safe = np.where(live, beta, 1.0)
        ratio = alpha * g / safe
        inner = np.log(np.where(live, ratio, 1.0))
        lines = self.base.support(inner, resolution)
        ratio = np.exp(capped(inner))
        # ``beta`` is off by units of its parts, and the line was found at a ratio that is as far off.
        doubt = gamma(_UNITS) * (1.0 + (g + fall) / safe)
        value = lines.value - 2.0 * doubt * ratio * lines.slope_high
        value = np.where(
            live, np.maximum(value, 0.0) * np.maximum(beta - gamma(_UNITS) * (g + fall), 0.0), 0.0
        )
        above = self.base.other_side().upper(inner, resolution)
        low = g * lines.slope_low + (1.0 - g) * (lines.value + ratio * lines.slope_low)
        high = g * lines.slope_high + (1.0 - g) * (above + ratio * lines.slope_high)
        low, high = np.where(live, low, 0.0), np.where(live, np.minimum(up(high, _UNITS), 1.0), positive(0.0))
        return SupportingLines(epsilon, down(value, _UNITS), down(np.minimum(low, high), _UNITS), high)
