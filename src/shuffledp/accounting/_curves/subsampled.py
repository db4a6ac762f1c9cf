"""A fresh random cohort of fixed size in every round.

n of ``population`` users, a uniformly random subset, are asked; g = n / population. Substitution neighbours;
proofs: docs/proofs/cohorts.md.

**T5'.** Where a curve is the law of X (blanket, total variation, clones), so is that of the cohort:

    H_alpha = (1/n) E[(X'_1 + ... + X'_n)_+],    X' = g X + (1 - g)(1 - alpha),

reports that hide nothing (X = 0) being one more type.

**T5.** For any other curve h of the n-user round (Koskela et al. 2023, Lemma 7):

    alpha >= 1:  g h(1 + (alpha - 1)/g),
    alpha <  1:  1 - alpha + alpha g h(1 + (1/alpha - 1)/g),

Binary randomized response has a curve of its own where few lie (binary_cohort.py). Of T5 neither form alone
holds for all alpha. The second is the first, reversed, so the symmetric curve that a
PrivacyProfile is covers both. It pairs "x hides in the crowd" with "the absent user held x'", which no
dataset does at once: for a law it can be a hundred times larger in epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from shuffledp._certified.rounding import CALL, Floats, capped, down, gamma, up
from shuffledp.accounting._curves.all_pairs import FiniteBlanketProfile
from shuffledp.accounting._curves.approximate import ApproximateProfile
from shuffledp.accounting._curves.binary_cohort import BinaryCohortProfile
from shuffledp.accounting._curves.clones import CloneProfile, strong_clones
from shuffledp.accounting._curves.combined import BestProfile, LargestProfile
from shuffledp.accounting._curves.crowd import CrowdProfile
from shuffledp.accounting._curves.exact_binary import ExactBinaryProfile
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.accounting._curves.profile import Bools, PrivacyProfile, SupportingLines
from shuffledp.accounting._curves.third_value import EvenCrowdProfile
from shuffledp.accounting._hints.starts import Hints, SubsampledHints
from shuffledp.errors import NoCertificateError

_INNER_UNITS = 2 * CALL + 2  # soundness: of the cohort's epsilon: two calls, a quotient, the fraction


def in_cohort(profile: PrivacyProfile, fraction: float) -> PrivacyProfile:
    """The curve of the n-user round ``profile`` where the n users are a random ``fraction`` of all."""
    match profile:
        case AmplificationProfile():
            return profile.subsampled(fraction)
        case CloneProfile(weight=1.0) if 0.0 < profile.epsilon0 < math.inf:
            return _clones_in_cohort(profile, fraction)
        case FiniteBlanketProfile() | CrowdProfile():
            return replace(profile, fraction=fraction)
        case LargestProfile():
            return LargestProfile(tuple(in_cohort(part, fraction) for part in profile.profiles))
        case ExactBinaryProfile() if BinaryCohortProfile.serves(profile.n, profile.epsilon0):
            return BinaryCohortProfile(profile.n, profile.epsilon0, fraction)
        case ExactBinaryProfile():
            clones = in_cohort(strong_clones(profile.epsilon0, profile.n), fraction)
            return _smaller(clones, SubsampledProfile(profile, fraction))
        case ApproximateProfile():
            return replace(profile, clones=in_cohort(profile.clones, fraction), fraction=fraction)
    return SubsampledProfile(profile, fraction)


def polled(profile: PrivacyProfile, rate: float) -> PrivacyProfile:
    """The curve of n people, each of whom takes part by a coin of their own: a law of X (T20).

    NoCertificateError for an analysis that is no law of X and has none above it."""
    match profile:
        case AmplificationProfile():
            return profile.polled(rate)
        case CloneProfile(weight=1.0) if profile.epsilon0 < math.inf:
            return clones_law(profile).polled(rate)
        case FiniteBlanketProfile() | CrowdProfile():
            return replace(profile, rate=rate)
        case LargestProfile():
            return LargestProfile(tuple(polled(part, rate) for part in profile.profiles))
        case ExactBinaryProfile():
            return polled(strong_clones(profile.epsilon0, profile.n), rate)
        case ApproximateProfile():
            return replace(profile, clones=polled(profile.clones, rate), rate=rate)
    raise NoCertificateError("this analysis does not cover people who take part by a coin of their own")


def clones_law(profile: CloneProfile) -> AmplificationProfile:
    """The law of X of clones of a finite epsilon0 (T2)."""
    half = 0.5 * profile.rate
    lie = math.exp(-profile.epsilon0) / (1.0 + math.exp(-profile.epsilon0))
    own, gap = (1.0 - lie, lie), (profile.kappa, -profile.kappa)
    return AmplificationProfile(profile.n, own, own[::-1], gap, (half, half))


def _clones_in_cohort(profile: CloneProfile, fraction: float) -> PrivacyProfile:
    """Clones among whom the user is, or is not, and the reports that hide nothing.

    The clones of 2021 hide a report by less than it has in either world, so that in a cohort its loss may
    exceed the local one; T5 does not, and the smaller counts."""
    decay = math.exp(-profile.epsilon0)
    lie = decay / (1.0 + decay)
    whole = EvenCrowdProfile(profile.n, 1.0, profile.kappa, lie, 0.0, profile.rate, profile.rest)
    tight = replace(whole.subsampled(fraction), made_of=(profile, fraction))
    hidden = profile.rate >= down(2.0 * lie, operations=4 * CALL)
    return tight if hidden else _smaller(tight, SubsampledProfile(profile, fraction))


def _smaller(tight: PrivacyProfile, published: PrivacyProfile) -> BestProfile:
    """Both are above one and the same convex truth."""
    return BestProfile(("T5'", "T5"), (tight, published), rivals=2)


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

    def both_or_crude(self, epsilon: Floats, resolution: float) -> tuple[Floats, Bools, SupportingLines]:
        upper, lines = self.base.both(self._inner(epsilon), resolution)
        return self._scaled_upper(upper), np.zeros(epsilon.size, bool), self._scaled_lines(epsilon, lines)

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
