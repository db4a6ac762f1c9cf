"""A round whose kind is drawn at random and seen: the mean of the kinds' curves.

Where only some people are honest (T7, docs/proofs/cohorts.md), the number K of honest ones in a cohort is
random, and the adversary knows it. The truth rises with K, so that buckets of K bound it:

    from above  sum over buckets of P(bucket) curve(last of it),   P(K > last) rounded up,
    from below  the same with the first of each,                   P(K >= first) rounded down;

by parts, a tail that is rounded up (down) only raises (lowers) the sum, as the curves rise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from shuffledp._certified.hypergeometric import at_least, deviation
from shuffledp._certified.rounding import Floats, down, up
from shuffledp.accounting._curves.profile import PrivacyProfile, SupportingLines
from shuffledp.accounting._hints.starts import Hints

_STEP = 1e-3  # tightness: of the mean, between buckets; epsilon follows by half of it
_FINEST = 0.25  # speed: and of the deviation
_DENSE = -2.0, 4.0  # speed: deviations from the mean
_SPARSE = -6.0, -4.0, 5.5, 8.0  # speed


@dataclass(frozen=True)
class MixtureProfile(PrivacyProfile):
    """Curves that rise in this order, met with these probabilities."""

    weights: tuple[float, ...]
    profiles: tuple[Any, ...]

    @property
    def n(self) -> int:
        return int(self.profiles[-1].n)

    @cached_property
    def epsilon_max(self) -> float:
        return float(max(profile.epsilon_max for profile in self.profiles))

    @property
    def infinite_loss(self) -> float:
        parts = zip(self.weights, self.profiles, strict=True)
        return down(math.fsum(weight * profile.infinite_loss for weight, profile in parts), operations=4)

    @cached_property
    def hints(self) -> Hints:
        return self.profiles[int(np.argmax(self.weights))].hints  # type: ignore[no-any-return]

    @property
    def directions(self) -> tuple[MixtureProfile, ...]:
        """The pair as it is and reversed, or once if that is the same."""
        found = [profile.directions for profile in self.profiles]
        # One that stands alone is its own reverse: masses of some kinds may be so by rounding.
        sides = ([one[min(side, len(one) - 1)] for one in found] for side in range(max(map(len, found))))
        return tuple(MixtureProfile(self.weights, tuple(side)) for side in sides)

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        values = np.stack([profile.upper(epsilon, resolution) for profile in self.profiles])
        rising = np.maximum.accumulate(values)  # the truth rises: what bounds a later one bounds it, too
        return up(np.array(self.weights) @ rising, operations=len(self.weights) + 4)

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        lines = [profile.support(epsilon, resolution) for profile in self.profiles]
        table = np.stack([[line.value, line.slope_low, line.slope_high] for line in lines])
        value, low, high = np.tensordot(np.array(self.weights), table, axes=1)
        count = len(self.weights) + 4
        return SupportingLines(epsilon, down(value, count), down(low, count), up(high, count))


def honest_cohort(
    population: int, honest: int, drawn: int, make: Callable[[int], PrivacyProfile], upwards: bool
) -> MixtureProfile:
    """The mixture over the honest ones among ``drawn`` of ``population``; ``make`` gives the curve of k."""
    ends = _ends(population, honest, drawn)
    if upwards:
        beyond = at_least(population, honest, drawn, ends + 1)[1]
        tails = np.concatenate([[1.0], np.minimum.accumulate(beyond[:-1]), [0.0]])
    else:
        tails = np.append(np.minimum.accumulate(at_least(population, honest, drawn, ends)[0]), 0.0)
    weights = tails[:-1] - tails[1:]
    kept = [
        (float(weight), make(int(k))) for weight, k in zip(weights, ends, strict=True) if weight > 0.0 < k
    ]
    return MixtureProfile(tuple(weight for weight, _ in kept), tuple(profile for _, profile in kept))


def _ends(population: int, honest: int, drawn: int) -> npt.NDArray[np.int64]:
    """Numbers of honest ones at which buckets end (or begin), the largest possible one last."""
    least, most = max(0, drawn - (population - honest)), min(drawn, honest)
    mean, spread = drawn * honest / population, deviation(population, honest, drawn)
    step = max(1.0, _STEP * mean, _FINEST * spread)
    dense = np.arange(_DENSE[0] * spread, _DENSE[1] * spread + step, step)
    inner = mean + np.concatenate([dense, np.array(_SPARSE) * spread])
    return np.unique(np.clip(np.append(np.rint(inner), most), least, most).astype(np.int64))
