"""A sum of whole numbers with discrete Laplace noise: the curve of a trusted curator (Theorem T18).

P(Z = k) is proportional to a^|k|, a = e^(-1/scale); a substitution moves the sum by up to ``levels`` = L. The
noise is log-concave, so half-lines are the best events, and the largest move is the worst. With t the largest
whole number below (L - epsilon scale)/2 (none: delta = 0) and u = L - epsilon scale - 2 t, in (0, 2],

    H_alpha = [(1 - a^(t + 1)) + a (1 - a^(t + u - 1))] / (1 + a),      Q(event) = a^(L - t) / (1 + a).

``off``: see ``near``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Self

import numpy as np

from shuffledp._certified.rounding import CALL, Floats, gamma, up
from shuffledp.accounting._curves.near import NearProfile
from shuffledp.accounting._hints.starts import NearHints, laplace_turn

_UNITS = 8 * CALL  # soundness: an exponential or two of few operations, and as many products


@dataclass(frozen=True)
class NoisySumProfile(NearProfile):
    """The curve of the module, for one direction: the other is the same."""

    levels: int
    scale: float
    off: float = 0.0
    made_of: tuple[int, int, int, float] | None = None
    """What ``off`` comes from: people, messages of each, modulus, the noise's own distance."""

    @property
    def _pure(self) -> float:
        return up(self.levels / self.scale, operations=1)

    def other_side(self) -> Self:
        return replace(self, off=-self.off)

    @cached_property
    def hints(self) -> NearHints:
        return NearHints(self._pure, turn=partial(laplace_turn, self.levels, self.scale))

    def _central(self, epsilon: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        room = self.levels - epsilon * self.scale
        t = np.maximum(np.ceil(0.5 * room) - 1.0, 0.0)
        rest = np.maximum(room - t - 1.0, -1.0)  # t + u - 1
        a = math.exp(-1.0 / self.scale)
        first, second = -np.expm1(-(t + 1.0) / self.scale), -a * np.expm1(-rest / self.scale)
        live = room > 0.0
        value = np.where(live, np.maximum((first + second) / (1.0 + a), 0.0), 0.0)
        # A t that is off by one changes nothing: the outcome there is as likely under P as under alpha Q.
        # ``rest`` is off by units of the levels, which counts by a / scale (1 + a) of it.
        error = gamma(_UNITS) * (np.abs(first) + np.abs(second)) + gamma(8) * (self.levels / self.scale) * a
        event = np.exp(-(self.levels - t) / self.scale) / (1.0 + a)
        event = np.where(live, event, 0.0)
        error = np.where(live, error, gamma(8) * self.levels / self.scale)
        return value, error, event, gamma(_UNITS) * event
