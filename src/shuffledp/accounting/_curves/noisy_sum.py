"""A sum of whole numbers with discrete Laplace noise: the curve of a trusted curator (Theorem T18).

P(Z = k) is proportional to a^|k|, a = e^(-1/scale); a substitution moves the sum by up to ``levels`` = L. The
noise is log-concave, so half-lines are the best events, and the largest move is the worst. With t the largest
whole number below (L - epsilon scale)/2 (none: delta = 0) and u = L - epsilon scale - 2 t, in (0, 2],

    H_alpha = [(1 - a^(t + 1)) + a (1 - a^(t + u - 1))] / (1 + a),      Q(event) = a^(L - t) / (1 + a).

``off``: what is seen is within this total variation of that, for both datasets: H grows by at most
(1 + alpha) off. That rises with alpha where Q(event) < off, but the true curve falls: from there on it is
flat. A negative ``off`` makes it a lower bound instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp._certified.rounding import CALL, Floats, capped, down, gamma, up
from shuffledp.accounting._curves.profile import PrivacyProfile, SupportingLines
from shuffledp.accounting._hints.starts import Hints

_NEARLY = 1.0 - 2.0**-20  # soundness
_UNITS = 8 * CALL  # soundness: an exponential or two of few operations, and as many products


@dataclass(frozen=True)
class NoisySumProfile(PrivacyProfile):
    """The curve of the module, for one direction: the other is the same."""

    levels: int
    scale: float
    off: float = 0.0

    @property
    def epsilon_max(self) -> float:
        return math.inf if self.off > 0.0 else self._pure

    @property
    def _pure(self) -> float:
        return up(self.levels / self.scale, operations=1)

    @cached_property
    def hints(self) -> Hints:
        return Hints(self._pure)

    @property
    def directions(self) -> tuple[NoisySumProfile, ...]:
        return (self,)

    @cached_property
    def _flat(self) -> float:
        """Where H + (1 + alpha) off is smallest: beyond, Q(event) < off. Any point bounds from above."""
        if self.off <= 0.0:
            return self._pure
        event = self.off * (1.0 + math.exp(-1.0 / self.scale))
        t = math.floor(self.levels + self.scale * math.log(event)) + 1
        return min(max((self.levels - 2.0 * max(t, 0)) / self.scale, 0.0), self._pure)

    @cached_property
    def infinite_loss(self) -> float:
        if self.off <= 0.0:
            return 0.0
        # The curve is convex: next to where it is smallest, twice over what rounding may have moved that.
        return float(self.support(np.array([self._flat]), 0.0).value[0]) * _NEARLY

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        at = np.minimum(epsilon, self._flat)  # the true curve falls: what bounds it bounds it further on
        value, error, _ = self._central(at)
        return np.minimum(up(value + error + np.maximum(self._slack(at), 0.0), operations=4), 1.0)

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        at = np.minimum(epsilon, self._flat) if self.off > 0.0 else epsilon
        value, error, event = self._central(at)
        # With slack, the tangent: its slope is less by ``off``, and zero where the curve is flat.
        value = np.maximum(value - error - gamma(4) * value + down(1.0, 2 * CALL) * self._slack(at), 0.0)
        slope = np.where(at < epsilon, 0.0, np.maximum(event - max(self.off, 0.0), 0.0))
        doubt = gamma(_UNITS) * (event + abs(self.off))
        return SupportingLines(epsilon, value, np.maximum(slope - doubt, 0.0), slope + doubt)

    def _slack(self, epsilon: Floats) -> Floats:
        slack = self.off * (1.0 + np.exp(capped(epsilon)))
        return up(slack, 2 * CALL) if self.off > 0.0 else -up(-slack, 2 * CALL)

    def _central(self, epsilon: Floats) -> tuple[Floats, Floats, Floats]:
        """(H, its absolute error, Q of the event)."""
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
        return value, np.where(live, error, gamma(8) * self.levels / self.scale), np.where(live, event, 0.0)
