"""The privacy profile: the curve alpha -> H_alpha, with certified evaluations from both sides.

``H_alpha(P, Q) = sum (P - alpha Q)_+`` and delta(epsilon) = H at alpha = e^epsilon. A mechanism's
profile is the supremum over ordered pairs of neighbouring datasets. The relation is symmetric, so
the curve left of 1 follows from the right, ``H_alpha = 1 - alpha + alpha H_{1/alpha}`` (T4), and a
profile is evaluated at epsilon >= 0 only.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from shuffledp._certified.rounding import Floats
from shuffledp.accounting._hints.starts import Hints

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class SupportingLines:
    """Certified lines below a curve h, one per epsilon.

    At alpha = e^epsilon some event A (a test) has P(A) - alpha Q(A) >= ``value``, and Q(A) lies in
    [slope_low, slope_high]. So for every alpha' the curve lies above value - Q(A) (alpha' - alpha)."""

    epsilon: Floats
    value: Floats
    slope_low: Floats
    slope_high: Floats

    @classmethod
    def join(cls, epsilon: Floats, parts: Sequence[Floats]) -> SupportingLines:
        """From pieces whose rows are value, slope_low, slope_high."""
        return cls(epsilon, *np.concatenate(list(parts), axis=1))

    def chosen(self, other: SupportingLines, where: Bools) -> SupportingLines:
        """The other lines at some of the points, these elsewhere."""
        mine, theirs = (np.stack([lines.value, lines.slope_low, lines.slope_high]) for lines in (self, other))
        return SupportingLines.join(self.epsilon, [np.where(where, theirs, mine)])


class PrivacyProfile(ABC):
    """A curve with certified evaluations. Subclasses are frozen descriptions of one analysis.

    ``resolution`` is the relative looseness in epsilon to aim at. It is never a promise: the
    promise is that ``upper`` is above the curve and the lines of ``support`` below it."""

    @property
    @abstractmethod
    def epsilon_max(self) -> float:
        """The curve is zero from here on (inf if it never is)."""

    @property
    def infinite_loss(self) -> float:
        """A lower bound of the curve at every epsilon: no finite epsilon has a smaller delta."""
        return 0.0

    @cached_property
    def hints(self) -> Hints:
        """What is guessed of the curve: nothing in them can make an answer wrong."""
        # The distance of two normal laws of one variance, in deviations, from their total variation.
        told = self.support(np.zeros(1), 1e-3).value[0]
        return Hints(scale=math.sqrt(2.0 * math.pi) * float(told))

    @property
    def tailed(self) -> bool:
        """Whether rare reports tell most: then points take long, and few of them are asked for."""
        return False

    @property
    def quick(self) -> PrivacyProfile:
        """A bound of the same that takes less time, and may be larger."""
        return self

    @property
    def slow(self) -> PrivacyProfile | None:
        """Another bound of the same: the smaller of both is this one."""
        return None

    def worth_it(self, epsilon: Floats, upper: Floats) -> Bools:
        """Where this promises to be clearly below upper bounds of ``quick``: a guess."""
        return np.zeros(epsilon.size, bool)

    def down_to(self, least: float) -> PrivacyProfile:
        """The same curve for who need not know more of it, where it is below ``least``, than that."""
        return self

    def with_hints(self, hints: Hints) -> Self:
        """The same curve, evaluated and searched with other hints."""
        other = copy(self)
        vars(other)["hints"] = hints
        return other

    @abstractmethod
    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        """Upper bounds of the curve at every epsilon >= 0 (a 1-d array)."""

    def upper_or_crude(self, epsilon: Floats, resolution: float) -> tuple[Floats, Bools]:
        """``upper``, and where it is a crude bound only because a sum was refused."""
        return self.upper(epsilon, resolution), np.zeros(epsilon.size, bool)

    @abstractmethod
    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        """Supporting lines of the curve at every epsilon >= 0."""

    def both(self, epsilon: Floats, resolution: float) -> tuple[Floats, SupportingLines]:
        """``upper`` and ``support`` at the same points, together where that is cheaper."""
        upper, _, lines = self.both_or_crude(epsilon, resolution)
        return upper, lines

    def both_or_crude(self, epsilon: Floats, resolution: float) -> tuple[Floats, Bools, SupportingLines]:
        """``upper_or_crude`` and ``support``."""
        return *self.upper_or_crude(epsilon, resolution), self.support(epsilon, resolution)

    def both_below(
        self, epsilon: Floats, resolution: float, _known: Floats
    ) -> tuple[Floats, Bools, SupportingLines]:
        """``both_or_crude``, for who knows these upper bounds: what exceeds them need not be close."""
        return self.both_or_crude(epsilon, resolution)
