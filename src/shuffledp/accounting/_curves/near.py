"""A curve in closed form, and all that lies within a known distance of it.

``off``: what is seen is within this total variation of the pair of the curve, for both datasets: H grows by
at most (1 + alpha) off. That rises with alpha where the event that tells most has Q(event) < off, but the
true curve falls: from there on it is flat. A negative ``off`` makes it a lower bound instead.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from shuffledp._certified.rounding import CALL, Floats, capped, down, gamma, up
from shuffledp.accounting._curves.profile import PrivacyProfile, SupportingLines
from shuffledp.accounting._hints.starts import NearHints

_FLAT_UNITS = 2**33  # tightness: of where the turn is; the curve is bounded wherever that is


class NearProfile(PrivacyProfile):
    """The curve of a pair that is its own reverse, raised by (1 + alpha) ``off``."""

    if TYPE_CHECKING:  # a field of frozen dataclasses

        @property
        def off(self) -> float: ...

        @cached_property
        def hints(self) -> NearHints: ...

    @property
    @abstractmethod
    def _pure(self) -> float:
        """From here on the curve itself is zero."""

    @abstractmethod
    def _central(self, epsilon: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """(H, its absolute error, Q of the event, its absolute error) of the curve itself."""

    @abstractmethod
    def other_side(self) -> Self:
        """The bound from above for one from below, and the other way round."""

    @property
    def epsilon_max(self) -> float:
        return math.inf if self.off > 0.0 else self._pure

    @property
    def directions(self) -> tuple[Self, ...]:
        return (self,)

    @cached_property
    def _flat(self) -> float:
        """Where H + (1 + alpha) off is smallest. Any point bounds from above."""
        return self._pure if self.off <= 0.0 else min(max(self.hints.turn(self.off), 0.0), self._pure)

    @cached_property
    def infinite_loss(self) -> float:
        if self.off <= 0.0:
            return 0.0
        return down(float(self.support(np.array([self._flat]), 0.0).value[0]), _FLAT_UNITS)

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        at = np.minimum(epsilon, self._flat)  # the true curve falls: what bounds it bounds it further on
        value, error, _, _ = self._central(at)
        return np.minimum(up(value + error + np.maximum(self._slack(at), 0.0), operations=4), 1.0)

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        at = np.minimum(epsilon, self._flat) if self.off > 0.0 else epsilon
        value, error, event, doubt = self._central(at)
        # With slack, the tangent: its slope is less by ``off``, and zero where the curve is flat.
        value = np.maximum(value - error - gamma(4) * value + down(1.0, 2 * CALL) * self._slack(at), 0.0)
        slope = np.where(at < epsilon, 0.0, np.maximum(event - max(self.off, 0.0), 0.0))
        # From below, the event's true probability may differ by the distance.
        doubt = doubt + gamma(2 * CALL) * abs(self.off) + max(-self.off, 0.0)
        return SupportingLines(epsilon, value, np.maximum(slope - doubt, 0.0), slope + doubt)

    def _slack(self, epsilon: Floats) -> Floats:
        slack = self.off * (1.0 + np.exp(capped(epsilon)))
        return up(slack, 2 * CALL) if self.off > 0.0 else -up(-slack, 2 * CALL)
