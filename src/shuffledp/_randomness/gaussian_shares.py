"""Discrete Gaussian noise, P(Z = k) proportional to e^(-k^2/2v), exactly but for 2^-124 an outcome.

Sums of such shares are as good as discrete Gaussian, and as good as continuous Gaussian noise that is rounded
at random; how nearly is Theorem T22. Nothing in a share depends on how many people there are.

The law is a table of whole weights out of 2^128, worked out in decimals. One random word decides nearly
always; a word that falls on an end, about once in 2^58 draws, is followed by a second one.

>>> GaussianShares(5.0).distance < 1e-34
True
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cached_property

import numpy as np
import numpy.typing as npt

from shuffledp._randomness.uniform import WORD
from shuffledp._randomness.words import Uint64s, Words

MOST_VARIANCE = 2.0**28
"""Tables have about 27 deviations of entries."""
_DIGITS = 70  # soundness: of decimals
_DEPTH = 91  # soundness: outcomes end where the law is below e^-91 < 2^-131 of its largest value
_LOST = 2.0**-124  # soundness: of an entry: two roundings to 2^-128, decimals far finer, and the tail


@dataclass(frozen=True)
class GaussianShares:
    """The law of one person's share of the noise of one coordinate."""

    variance: float

    @cached_property
    def _largest(self) -> int:
        return math.ceil(math.sqrt(2.0 * _DEPTH * self.variance)) + 1

    @cached_property
    def _ends(self) -> list[int]:
        """The first of 2^128 numbers past each outcome -largest, ..., largest - 1."""
        with localcontext() as context:
            context.prec = _DIGITS
            falls = (-1 / Decimal(self.variance)).exp()  # the ratio of neighbouring ratios
            weight, ratio, side = Decimal(1), (-1 / (2 * Decimal(self.variance))).exp(), list[Decimal]()
            for _ in range(self._largest):
                weight, ratio = weight * ratio, ratio * falls
                side.append(weight)
            law = [*reversed(side), Decimal(1), *side]
            total, sum_, ends = sum(law), Decimal(0), list[int]()
            for mass in law[:-1]:
                sum_ += mass
                ends.append(min(int(sum_ / total * WORD * WORD), WORD * WORD - 1))
        return ends

    @cached_property
    def _tops(self) -> Uint64s:
        return np.array([end // WORD for end in self._ends], dtype=np.uint64)

    @property
    def distance(self) -> float:
        """Upper bound of the total variation of one share from the discrete Gaussian law."""
        return _LOST * (2 * self._largest + 2)

    def sample(self, shares: int, words: Words) -> npt.NDArray[np.int64]:
        """That many independent shares."""
        drawn = words.draw(shares)
        place = np.searchsorted(self._tops, drawn, side="right")
        tied = np.flatnonzero((place > 0) & (self._tops[place - 1] == drawn))
        for i, second in zip(tied.tolist(), words.draw(tied.size).tolist(), strict=True):
            place[i] = bisect_right(self._ends, int(drawn[i]) * WORD + second)
        return place - self._largest
