"""A sum of vectors with Gaussian noise: the curve of a trusted curator (Theorem T22).

A substitution moves the sum by up to ``shift`` deviations of the noise, mu:

    H_alpha = Phi(mu/2 - epsilon/mu) - alpha Phi(-mu/2 - epsilon/mu),     Q(event) = Phi(-mu/2 - epsilon/mu).

``off``: see ``near``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Self

import numpy as np

from shuffledp._certified.rounding import CALL, Floats, capped, gamma
from shuffledp.accounting._curves.near import NearProfile
from shuffledp.accounting._hints.starts import NearHints, normal_turn

_SMALLEST = -36.0  # soundness: the normal distribution function is above 1e-284 from here on


@dataclass(frozen=True)
class GaussianSumProfile(NearProfile):
    """The curve of the module, for one direction: the other is the same."""

    shift: float
    off: float = 0.0
    made_of: tuple[tuple[str, float], ...] | None = None
    """What both come from: people, coordinates, messages, noise, by their names in a certificate."""

    @property
    def _pure(self) -> float:
        return math.inf

    def other_side(self) -> Self:
        return replace(self, off=-self.off)

    @cached_property
    def hints(self) -> NearHints:
        return NearHints(self.shift, turn=partial(normal_turn, self.shift))

    def _central(self, epsilon: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        half, away = 0.5 * self.shift, epsilon / self.shift
        near, far = half - away, -half - away
        # Either argument is off by two units of half + away, and by as many of itself in erfc's.
        moved = gamma(4) * (half + away)
        first, units = _phi(near), _doubt(near, moved)
        event, more = _phi(far), _doubt(far, moved)
        second = np.exp(capped(epsilon)) * event
        error = units * first + (more + gamma(CALL + 1)) * second
        # Too small to be computed: alpha Phi(far) = phi(near) (1 - Phi(-far)) / phi(far) < phi(near) / |far|.
        rare = far < _SMALLEST
        most = 0.4 * np.exp(-0.5 * np.minimum(near * near, 1e3)) / np.maximum(-far, 1.0)
        value = np.where(rare, first, np.maximum(first - second, 0.0))
        error = np.where(rare, units * first + 2.0 * most, error)  # neither underflows
        return value, error, np.where(rare, 0.0, event), np.where(rare, 1e-280, more * event)


def _phi(x: Floats) -> Floats:
    """The normal distribution function."""
    return np.array([0.5 * math.erfc(-one * math.sqrt(0.5)) for one in x.tolist()])


def _doubt(x: Floats, moved: Floats) -> Floats:
    """The relative error of ``_phi`` where its argument was ``moved`` by so much: phi / Phi is at most
    1 + |x| (Mills) below zero, and 1 above; twice that, for moves that are not small."""
    return np.asarray(gamma(CALL + 2) + 2.0 * moved * (2.0 + np.maximum(-x, 0.0)))
