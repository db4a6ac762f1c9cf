"""One noisy sign of one random row: what the l-infinity and the l1 randomizer share.

A matrix of ``size`` rows maps the ball of radius 1 into the cube [-1, 1]^size. The user draws a row j
uniformly, rounds y_j, the j-th entry of the image, to a sign whose mean is y_j, and sends (j, sign)
through binary randomized response. With E = e^epsilon0 the report (j, s) has probability

    (1/size) (1 + s y_j (E - 1)/(E + 1)) / 2,   between 1/(size (E + 1)) and E/(size (E + 1)).

*Law* (substitution neighbours; the adversary knows everybody else's vector). Every report is hidden by
clones of probability 1/(size (E + 1)), the smallest any input gives it. For inputs with images y, y' the
amplification variable is, for every j, on (j, +) and (j, -),

    X = (E + 1)/2 * (1 - a + s (y_j - a y'_j) (E - 1)/(E + 1)),   both within [1 - a E, E - a].

Their sum, (E + 1)(1 - a), does not depend on the inputs. Two equal masses with a given sum are
largest in the convex order when they are farthest apart, at E - a and 1 - a E: that is where they are
for all j at once if y is a corner of the cube and y' the opposite one. E[(sum of n)_+] increases in
the convex order, so opposite corners are the worst pair, at every a, and their law, merged by value,
is that of binary randomized response: own = (E, 1)/(E + 1), other = (1, E)/(E + 1),
clone = (1, 1)/(E + 1). A realised epsilon0 below the asked one only adds noise to the reports. Clones are
spread evenly over the 2 size reports whatever epsilon0, so that people of several hide each other (T21).

*Exactness.* Everything is drawn in whole numbers. The row is exactly uniform; the sign is kept for
``weight`` of the 2^64 words; the rounding is an exact comparison with the double that was computed for
y_j, so the mean of the sign differs from y_j by 2^-52 and by the rounding of y_j itself. The set of
possible reports is the same for all inputs and their ratios never exceed E.

A report is one unsigned integer, 2 j + (1 if the sign is plus).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from shuffledp import _validate
from shuffledp._certified.rounding import Floats
from shuffledp._randomness.uniform import WORD, happens, log_odds, rounded_up, truth_weight, uniform
from shuffledp._randomness.words import Uint64s, Words
from shuffledp.facts import AmplificationLaw, Blanket, Facts, enclosed
from shuffledp.randomizers.hadamard import walsh_hadamard
from shuffledp.randomizers.vectors import VectorRandomizer

_AT_ONCE = 1 << 18


@dataclass(frozen=True)
class SignRandomizer(VectorRandomizer):
    """Report one randomized sign of one random row of ``size`` (see module)."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many rows there are to choose from."""

    @cached_property
    def weight(self) -> int:
        """The sign is kept with probability weight / 2^64, flipped otherwise."""
        return truth_weight(self.epsilon0)

    @property
    def realised_epsilon0(self) -> float:
        return min(self.epsilon0, log_odds(self.weight))

    @property
    def gain(self) -> float:
        """What undoes randomized response, 1 / (2 weight/2^64 - 1) = (E + 1)/(E - 1)."""
        return WORD / (2 * self.weight - WORD)

    @property
    def total_variation(self) -> float:
        return math.tanh(0.5 * self.epsilon0)

    def law(self) -> AmplificationLaw:
        """The law of binary randomized response, that of opposite corners (see module)."""
        decay = math.exp(-self.epsilon0)
        high, low = 1.0 / (1.0 + decay), decay / (1.0 + decay)
        gap = self.total_variation
        return AmplificationLaw((high, low), (low, high), clone=(low, low), gap=(gap, -gap))

    def facts(self) -> Facts:
        """Of one row it is binary randomized response, and nothing else."""
        if self.size > 1:
            known = super().facts()
            return replace(known, crowds=self._crowds(), common=self.law().gamma, blanket=self._shared(known))
        return Facts.of_response(2, self.epsilon0, realised=enclosed(self.realised_epsilon0).lower)

    def _shared(self, facts: Facts) -> Blanket:
        """Watched: all others hold one corner (the last of the concrete laws)."""
        law = self.law()
        return Blanket(f"uniform over the signs of {self.size} rows", law, law.gamma, facts.concrete[-1])

    def _crowds(self) -> tuple[AmplificationLaw, ...]:
        """Of three corners of the cube X has, row by row, one of four laws: z with x, with x', x = x' and not
        z, all alike. Vectors inside are mixtures of corners, and so are their reports."""
        law = self.law()
        alike = AmplificationLaw(law.own, law.own, law.other)
        return law.among(law.own), law.among(law.other), alike, AmplificationLaw((1.0,), (1.0,), (1.0,))

    def unpack(self, reports: Any) -> tuple[Uint64s, npt.NDArray[np.int8]]:
        """(row, sign) of every report, signs -1 and +1."""
        checked = self._checked_reports(reports)[0].astype(np.uint64)
        sign = np.where((checked & np.uint64(1)) != 0, 1, -1).astype(np.int8)
        return checked >> np.uint64(1), sign

    def balance(self, reports: Any) -> npt.NDArray[np.int64]:
        """Pluses less minuses of every row (size,): all that the mean needs, and additive."""
        checked, _ = self._checked_reports(reports)
        total = np.zeros(2 * self.size, np.int64)
        step = max(_AT_ONCE, total.size)
        for first in range(0, checked.size, step):
            part = checked[first : first + step].astype(np.int64)
            total += np.bincount(part, minlength=total.size)
        return total[1::2] - total[::2]

    @abstractmethod
    def _entry(self, rows: Floats, chosen: Uint64s) -> Floats:
        """One entry of the image of every row."""

    def _empty(self, count: int) -> npt.NDArray[Any]:
        return np.empty(count, np.min_scalar_type(2 * self.size - 1))

    def _report(self, rows: Floats, share: Floats, words: Words) -> npt.NDArray[Any]:
        chosen = uniform(words, self.size, rows.shape[0])
        # Beyond the cube only by the rounding of a norm, see ROUNDING.
        entry = np.clip(self._entry(rows, chosen), -1.0, 1.0)
        plus = rounded_up(entry, words) == happens(self.weight, chosen.size, words)
        return np.asarray((chosen << np.uint64(1)) + plus.astype(np.uint64))

    def _likelihood(self, reports: npt.NDArray[Any], row: Floats, share: float) -> Floats:
        chosen, sign = self.unpack(reports)
        entry = self._entry(np.broadcast_to(row, (chosen.size, row.size)), chosen)
        return np.asarray(1.0 + sign * entry / self.gain)

    def _checked_reports(self, reports: Any) -> tuple[npt.NDArray[Any], bool]:
        array = _validate.integers("reports", reports)
        flat = _validate.below("reports", array.reshape(-1), 2 * self.size)
        return flat, array.ndim == 0

    def _averaged(self, reports: Any) -> Floats:
        """The balance of every row, per report."""
        count = np.asarray(reports).size
        if count == 0:
            raise ValueError("reports must not be empty: there is no mean of no reports")
        return self.balance(reports) / count


@dataclass(frozen=True)
class LInfinityRandomizer(SignRandomizer):
    """The l-infinity randomizer: one noisy sign of one random coordinate.

    Duchi, Jordan, Wainwright 2018 in one bit, as in the shuffled learning of Girgis, Data, Diggavi,
    Kairouz, Suresh 2021 (their R_p for p = infinity): a vector x of [-radius, radius]^d, a coordinate j
    uniform in 0 .. d - 1, a sign of mean x_j / radius sent through binary randomized response. The report
    is decoded to

        d radius gain sign e_j,   gain = (e^epsilon0 + 1)/(e^epsilon0 - 1),

    which has mean x and squared norm (d radius gain)^2. Probabilities, law and what is exact:
    ``vectors_sign``. The law is that of binary randomized response, attained by opposite corners.

    >>> LInfinityRandomizer(dimension=10, epsilon0=2.0).variance()  # doctest: +ELLIPSIS
    172.4...
    """

    norm: ClassVar[str] = "l-infinity"

    @property
    def _corner(self) -> Floats:
        return np.full(self.dimension, self.radius)

    @property
    def size(self) -> int:
        return self.dimension

    @property
    def second_moment(self) -> float:
        return self._scale**2

    @property
    def longest(self) -> float:
        return self.radius * math.sqrt(self.dimension)

    @property
    def _scale(self) -> float:
        return self.dimension * self.radius * self.gain

    def mean(self, reports: Any) -> Floats:
        return np.asarray(self._averaged(reports) * self._scale)

    def _norms(self, rows: Floats) -> Floats:
        return np.asarray(np.maximum(rows.max(axis=1), -rows.min(axis=1)))

    def _entry(self, rows: Floats, chosen: Uint64s) -> Floats:
        return np.asarray(np.take_along_axis(rows, chosen.astype(np.int64)[:, None], axis=1)[:, 0])

    def _decoded(self, reports: npt.NDArray[Any]) -> Floats:
        row, sign = self.unpack(reports)
        vectors = np.zeros((row.size, self.dimension))
        vectors[np.arange(row.size), row.astype(np.int64)] = sign * self._scale
        return vectors


@dataclass(frozen=True)
class L1Randomizer(SignRandomizer):
    """The l1 randomizer: one noisy sign of one random row of a Hadamard matrix.

    As in the shuffled learning of Girgis, Data, Diggavi, Kairouz, Suresh 2021 (their R_p for p = 1): H is
    the Hadamard matrix whose size D is the least power of two >= d, H[j, i] = (-1)^popcount(i & j). For a
    vector x of l1 norm at most radius (padded with zeros) every entry of H x / radius lies in [-1, 1].
    A row j is drawn uniformly, a sign of mean (H x)_j / radius is sent through binary randomized response,
    and the report is decoded to the first d entries of

        radius gain sign H[j],   gain = (e^epsilon0 + 1)/(e^epsilon0 - 1),

    whose mean is x because H H = D I, and whose squared norm is d (radius gain)^2. Probabilities, law and
    what is exact: ``vectors_sign``. The law is that of binary randomized response, attained by
    radius e_i and -radius e_i, whose images are opposite corners of the cube.

    >>> L1Randomizer(dimension=10, epsilon0=2.0).variance()  # doctest: +ELLIPSIS
    17.24...
    """

    norm: ClassVar[str] = "l1"

    @property
    def _corner(self) -> Floats:
        return np.asarray(self.radius * np.eye(1, self.dimension)[0])

    @property
    def size(self) -> int:
        return 1 << (self.dimension - 1).bit_length()

    @property
    def second_moment(self) -> float:
        return self.dimension * (self.radius * self.gain) ** 2

    @property
    def longest(self) -> float:
        return self.radius

    def mean(self, reports: Any) -> Floats:
        total = walsh_hadamard(self._averaged(reports))
        return np.asarray(total[: self.dimension] * (self.radius * self.gain))

    def _norms(self, rows: Floats) -> Floats:
        return np.asarray(np.abs(rows).sum(axis=1))

    def _entry(self, rows: Floats, chosen: Uint64s) -> Floats:
        signs = hadamard_rows(chosen, self.dimension)
        return np.asarray(np.einsum("ij,ij->i", rows, signs))

    def _decoded(self, reports: npt.NDArray[Any]) -> Floats:
        row, sign = self.unpack(reports)
        return hadamard_rows(row, self.dimension) * (sign * (self.radius * self.gain))[:, None]


def hadamard_rows(chosen: Uint64s, width: int) -> Floats:
    """The first ``width`` entries of rows of the Hadamard matrix: each bit of j doubles them."""
    signs = np.ones((chosen.size, width))
    done, bit = 1, 0
    while done < width:
        more = min(done, width - done)
        flip = np.where((chosen >> np.uint64(bit)) & np.uint64(1), -1.0, 1.0)
        np.multiply(signs[:, :more], flip[:, None], out=signs[:, done : done + more])
        done, bit = 2 * done, bit + 1
    return signs
