"""A round known only by its privacy losses: masses of P at finitely many losses, and at infinity.

Another accountant's privacy loss distribution becomes a round that composes with shuffled ones. For
the pair (P, Q) with P-mass m_i at loss l_i = log P/Q,

    H_alpha = infinity + sum over l_i > epsilon of m_i (1 - e^{epsilon - l_i}),   alpha = e^epsilon.

Given the losses of both directions, the curve is the larger of the two: it dominates either pair.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp._certified.rounding import CALL, Floats, additions, down, total, up
from shuffledp.accounting._curves.profile import PrivacyProfile, SupportingLines
from shuffledp.accounting._hints.starts import Hints

_CELLS_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class LossLaw:
    """P-masses at increasing ``loss``; the remaining mass, up to ``infinity``, at an infinite loss."""

    loss: Floats
    mass: Floats
    infinity: float

    def tests(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """(H, Q(loss > epsilon)) at each epsilon, up to rounding."""
        rows = 1 + epsilon.size * self.loss.size // _CELLS_AT_ONCE
        parts = [self._tests(part) for part in np.array_split(epsilon, rows)]
        found = np.concatenate(parts, axis=1)
        return self.infinity + found[0], found[1]

    def _tests(self, epsilon: Floats) -> Floats:
        # Only losses above the smallest epsilon matter; below it terms are cut to zero.
        first = int(np.searchsorted(self.loss, epsilon.min(initial=math.inf)))
        loss, mass = self.loss[first:], self.mass[first:]
        with np.errstate(under="ignore"):
            above = loss > epsilon[:, None]
            value = total(-np.expm1(np.minimum(epsilon[:, None] - loss, 0.0)) * mass)
            return np.stack([value, total(np.where(above, mass * np.exp(-loss), 0.0))])

    @property
    def units(self) -> int:
        """Of either: a difference, an exponential and a product per term, their sum and ``infinity``."""
        return CALL + 3 + additions(self.loss.size)


@dataclass(frozen=True, eq=False)
class KnownLossProfile(PrivacyProfile):
    """The larger of the curves of some loss laws (the two directions)."""

    laws: tuple[LossLaw, ...]

    def __repr__(self) -> str:
        return f"{', '.join(str(law.loss.size) for law in self.laws)} losses"

    @property
    def epsilon_max(self) -> float:
        if self.infinite_loss > 0.0:
            return math.inf
        tops = [float(law.loss[law.mass > 0.0].max(initial=0.0)) for law in self.laws]
        return max(0.0, *tops)

    @property
    def infinite_loss(self) -> float:
        return max(law.infinity for law in self.laws)

    @cached_property
    def hints(self) -> Hints:
        spreads = []
        for law in self.laws:
            weight = law.mass / law.mass.sum()
            mean = float(weight @ law.loss)
            spreads.append(math.sqrt(float(weight @ (law.loss - mean) ** 2)))
        return Hints(max(spreads))

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        highest = np.max([law.tests(epsilon)[0] for law in self.laws], axis=0)
        return up(np.asarray(highest), operations=self._units)

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        found = np.array([law.tests(epsilon) for law in self.laws])
        best = np.argmax(found[:, 0], axis=0)
        value, event = found[best, :, np.arange(epsilon.size)].T
        units = self._units
        return SupportingLines(epsilon, down(value, units), down(event, units), up(event, units))

    @property
    def _units(self) -> int:
        return max(law.units for law in self.laws)
