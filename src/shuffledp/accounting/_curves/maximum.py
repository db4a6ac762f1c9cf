"""The largest of several curves: what holds for all of them, one pair or direction each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp._certified.rounding import Floats
from shuffledp.accounting._curves.profile import PrivacyProfile, SupportingLines
from shuffledp.accounting._hints.starts import Hints, LargestHints
from shuffledp.errors import NoCertificateError


@dataclass(frozen=True)
class LargestProfile(PrivacyProfile):
    """The pointwise maximum of ``profiles`` (zero if there are none)."""

    profiles: tuple[PrivacyProfile, ...]

    @property
    def epsilon_max(self) -> float:
        return max((profile.epsilon_max for profile in self.profiles), default=0.0)

    @property
    def infinite_loss(self) -> float:
        return max((profile.infinite_loss for profile in self.profiles), default=0.0)

    @cached_property
    def hints(self) -> Hints:
        parts = tuple(profile.hints for profile in self.profiles)
        return LargestHints(max((part.scale for part in parts), default=0.0), parts=parts)

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        found = [profile.upper(epsilon, resolution) for profile in self.profiles]
        return np.asarray(np.max(found or [0.0 * epsilon], axis=0))

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        best = np.zeros((3, epsilon.size))
        failure = None
        for place, profile in enumerate(self.profiles):
            # A line below any of them will do; without the first one it would be a poor one.
            try:
                lines = profile.support(epsilon, resolution)
            except NoCertificateError as error:
                failure = error
                if place == 0:
                    break
                continue
            rows = np.stack([lines.value, lines.slope_low, lines.slope_high])
            best = np.where(rows[0] > best[0], rows, best)
        if failure is not None and not best[0].any():
            raise failure
        return SupportingLines(epsilon, best[0], best[1], best[2])
