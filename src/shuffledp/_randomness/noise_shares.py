"""Shares of discrete Laplace noise: n of them add up to it (infinite divisibility; Theorem T18).

Discrete Laplace noise, P(Z = k) proportional to a^|k|, is the difference of two geometric variables, and a
geometric variable is the sum of n Polya (negative binomial) ones of parameter 1/n: compound Poisson laws.
So one share is the sum of C ~ Poisson(2 log(1/(1-a)) / n) clusters, each of a random sign and of a size with
the logarithmic law P(j) = a^j / (j log(1/(1-a))), j >= 1. Nearly all shares are zero.

Both laws are sampled from whole weights that sum to 2^64, one word each. C is worked out in decimals, as its
errors add up over all people; a cluster's law in floats, as only some 2 log(scale) clusters are drawn in all.

Beside it, discrete Gaussian noise, P(Z = k) proportional to e^(-k^2/2v), exactly but for 2^-124 an outcome.

Sums of such shares are as good as discrete Gaussian, and as good as continuous Gaussian noise that is rounded
at random; how nearly is Theorem T22. Nothing in a share depends on how many people there are.

The law is a table of whole weights out of 2^128, worked out in decimals. One random word decides nearly
always; a word that falls on an end, about once in 2^58 draws, is followed by a second one.

>>> noise = NoiseShares(scale=10.0, people=1000)
>>> noise.distance < 1e-12, round(noise.variance, 1), GaussianShares(5.0).distance < 1e-34
(True, 199.8, True)
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cached_property

import numpy as np
import numpy.typing as npt

from shuffledp._certified.rounding import CALL, gamma, up
from shuffledp._randomness.uniform import WORD
from shuffledp._randomness.words import Uint64s, Words

MOST_SCALE = 2.0**22
"""Tables of cluster sizes have about forty times as many entries."""
_DIGITS = 50  # soundness: of decimals
_DEPTH = 44.0  # soundness: sizes end at so many scales, where e^-44 of the law is left
_RARE = Decimal("1e-25")  # soundness: the probability of more clusters than any word has


@dataclass(frozen=True)
class NoiseShares:
    """What each of ``people`` adds so that all together add discrete Laplace noise of ``scale``."""

    scale: float
    people: int

    @cached_property
    def _clusters(self) -> Uint64s:
        """Thresholds of the number of clusters: word u has as many as there are thresholds up to u."""
        with localcontext() as context:
            context.prec = _DIGITS
            mean = self._mean_clusters()
            term, total, thresholds = (-mean).exp(), Decimal(0), list[int]()
            while 1 - total > _RARE:
                total += term
                thresholds.append(min(int(total * WORD), WORD - 1))
                term *= mean / len(thresholds)
        return np.array(thresholds, dtype=np.uint64)

    def _mean_clusters(self) -> Decimal:
        return 2 * -(1 - (-1 / Decimal(self.scale)).exp()).ln() / self.people

    @cached_property
    def _sizes(self) -> Uint64s:
        """Thresholds of the size of a cluster, less one; what rounding leaves over goes to size one."""
        j = np.arange(1.0, math.ceil(_DEPTH * self.scale) + 1.0)
        law = np.exp(-j / self.scale) / (j * -math.log(-math.expm1(-1.0 / self.scale)))
        weights = np.ldexp(law, 64).astype(np.uint64)  # whole below 2^64; a float has no fraction above 2^53
        larger = np.cumsum(weights[:0:-1])[::-1]  # the weight of all larger sizes, exactly
        return np.asarray(~larger[larger > 0] + np.uint64(1))  # 2^64 less it

    @cached_property
    def distance(self) -> float:
        """Upper bound of the total variation between the sum of ``people`` shares and the noise, both exact.

        Per person: each weight of C is off by less than 2^-64, and so is the tail. Per cluster: sizes by the
        rounding of their law (its exponent to ``_DEPTH``), by 2^-64 each, and by what is cut off."""
        count = self.people * ((self._clusters.size + 2) / WORD + float(_RARE))
        clusters = self.people * float(self._mean_clusters())
        units = 4 * CALL + 4 * _DEPTH
        each = gamma(units) + (self._sizes.size + 1) / WORD + 2.0 * math.exp(-_DEPTH)
        return up(count + clusters * each, operations=16)

    @cached_property
    def variance(self) -> float:
        """Of the sum of ``people`` shares."""
        return float(0.5 / np.sinh(0.5 / self.scale) ** 2)

    def tail(self, size: int) -> float:
        """Upper bound of the probability that the sum of ``people`` shares is beyond +-size."""
        return (
            up(2.0 * math.exp(-size / self.scale), operations=2 * CALL + 2 * size / self.scale)
            + self.distance
        )

    def sample(self, shares: int, words: Words) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """That many independent shares."""
        clusters = np.searchsorted(self._clusters, words.draw(shares), side="right")
        noise = np.zeros(shares, dtype=np.int64)
        owner = np.repeat(np.arange(shares), clusters)
        sizes = 1 + np.searchsorted(self._sizes, words.draw(owner.size), side="right").astype(np.int64)
        signs = 1 - 2 * (words.draw(owner.size) >> np.uint64(63)).astype(np.int64)
        np.add.at(noise, owner, signs * sizes)
        return noise


MOST_VARIANCE = 2.0**28
"""Tables have about 27 deviations of entries."""
_GAUSSIAN_DIGITS = 70  # soundness: of decimals
_GAUSSIAN_DEPTH = 91  # soundness: outcomes end where the law is below e^-91 < 2^-131 of its largest value
_LOST = 2.0**-124  # soundness: of an entry: two roundings to 2^-128, decimals far finer, and the tail


@dataclass(frozen=True)
class GaussianShares:
    """The law of one person's share of the noise of one coordinate."""

    variance: float

    @cached_property
    def _largest(self) -> int:
        return math.ceil(math.sqrt(2.0 * _GAUSSIAN_DEPTH * self.variance)) + 1

    @cached_property
    def _ends(self) -> list[int]:
        """The first of 2^128 numbers past each outcome -largest, ..., largest - 1."""
        with localcontext() as context:
            context.prec = _GAUSSIAN_DIGITS
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
