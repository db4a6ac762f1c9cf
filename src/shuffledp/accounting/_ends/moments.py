"""A quick bound on many rounds: moments of the privacy loss add up, and Chernoff turns them into an epsilon.

With L the loss of a discrete pair that dominates a round (``loss.dominating``), and M(theta) the mean of
e^{theta L} where L is finite, independent losses have for theta > 0

    delta(epsilon) <= Pr[L = inf] + prod M(theta) e^{-theta epsilon} c(theta),
    c(theta) = sup_{x > 0} (1 - e^{-x}) e^{-theta x} = theta^theta / (1 + theta)^{1 + theta},

since (1 - e^{epsilon - L})_+ <= c(theta) e^{theta (L - epsilon)}. The answer is larger than the exact one, by
a tenth or so, and costs an addition for each round whose moments are known: a ledger stores them. Where it
does not settle a question, the composition itself is asked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from shuffledp._certified.lattice_sum import log_transform
from shuffledp._certified.rounding import CALL, Floats, additions, down, gamma, up
from shuffledp.accounting._ends.several_rounds import grid_for
from shuffledp.accounting._rounds.loss import dominating, sample
from shuffledp.accounting._rounds.round import Rounds

THETAS: Floats = np.geomspace(0.5, 8192.0, 57)
"""Any are sound; these are four to a doubling (speed, tightness)."""
_RESOLUTION, _STRIDE = 0.02, 8  # speed, tightness


@dataclass(frozen=True)
class LogMoments:
    """log M(theta) at each of ``THETAS``, and Pr[L = inf], both rounded up."""

    logs: tuple[float, ...] = (0.0,) * len(THETAS)
    infinity: float = 0.0

    @classmethod
    def of(cls, rounds: Rounds, delta: float) -> Self:
        """Of all rounds, for questions about ``delta``."""
        total = cls()
        for part, count in rounds:
            grid, floor = grid_for([(part, count)], delta, _RESOLUTION, _STRIDE)
            law = dominating(sample(part.profile, grid, floor, _RESOLUTION), grid.spacing)
            loss, size = law.index * law.spacing, len(THETAS)
            logs = log_transform(np.tile(loss, (size, 1)), np.tile(law.mass, (size, 1)), THETAS)
            # No loss is negative, so no sum cancels: its relative error is that of the exponents (some units
            # of their size) and of its additions. Beyond what a float holds, no loss is above the last one.
            top = THETAS * float(loss[-1])
            logs = np.where(np.isfinite(logs), logs, top)
            off = gamma(8 * (CALL + 2 + additions(len(loss)))) * (1.0 + logs + top)
            one = cls(tuple((count * (logs + off)).tolist()), count * law.infinity)
            total = total + one + cls()
        return total

    def __add__(self, other: LogMoments) -> Self:
        # Sums of two signs: off by a unit of the larger of the two.
        a, b = np.array(self.logs), np.array(other.logs)
        logs = a + b + gamma(2) * (np.abs(a) + np.abs(b))
        return type(self)(tuple(logs.tolist()), up(self.infinity + other.infinity, 2, tiny=0.0))

    def upper_epsilon(self, delta: float) -> float:
        """An epsilon at which delta(epsilon) <= ``delta``; infinite where none is found."""
        left = down(max(delta - self.infinity, 0.0), 1)
        if not left > 0.0:
            return math.inf
        one = 1.0 + THETAS
        rest = np.full_like(one, -math.log(left))
        terms = np.stack([np.array(self.logs), THETAS * np.log(THETAS), -one * np.log(one), rest])
        off = gamma(2 * CALL + 8) * (1.0 + np.abs(terms).sum(axis=0))
        found = (terms.sum(axis=0) + off) / THETAS
        return up(max(0.0, float(np.min(found))), 2, tiny=0.0)

    def to_list(self) -> list[float]:
        """As numbers for JSON."""
        return [self.infinity, *self.logs]

    @classmethod
    def from_list(cls, numbers: Any) -> Self:
        """The inverse of ``to_list``."""
        infinity, *logs = map(float, numbers)
        if len(logs) != len(THETAS) or not all(map(math.isfinite, logs)) or not 0.0 <= infinity <= 1.0:
            raise ValueError("moments must be those of THETAS")
        return cls(tuple(logs), infinity)
