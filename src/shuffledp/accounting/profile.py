"""The privacy profile: the curve alpha -> H_alpha, with certified evaluations from both sides.

``H_alpha(P, Q) = sum (P - alpha Q)_+`` and delta(epsilon) = H at alpha = e^epsilon. A mechanism's
profile is the supremum over ordered pairs of neighbouring datasets. The relation is symmetric, so
the curve left of 1 follows from the right, ``H_alpha = 1 - alpha + alpha H_{1/alpha}``, and a
profile is evaluated at epsilon >= 0 only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ProfileValues:
    """What one evaluation knows of the curve h at alpha = e^epsilon, elementwise.

    ``upper`` >= h. ``lower`` is the value there of a test: an event (set of outcomes) A with
    P(A) - alpha Q(A) >= lower; ``slope`` encloses Q(A). So for every other alpha' the curve lies
    above the line ``lower - Q(A) (alpha' - alpha)``: a supporting line from below."""

    epsilon: Floats
    lower: Floats
    slope_low: Floats
    slope_high: Floats
    upper: Floats


class PrivacyProfile(ABC):
    """A curve with certified evaluations. Subclasses are frozen descriptions of one analysis."""

    @property
    @abstractmethod
    def epsilon_max(self) -> float:
        """The curve is zero from here on (inf if it never is)."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """Rough standard deviation of the privacy loss: where to start looking. Not certified."""

    @abstractmethod
    def evaluate(self, epsilon: Floats, resolution: float) -> ProfileValues:
        """Enclose the curve at every epsilon >= 0 (a 1-d array).

        ``resolution`` is the relative looseness in epsilon to aim at; it is never a promise:
        the promise is in the values."""
