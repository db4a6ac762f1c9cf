"""k-ary randomized response.

Sampling is exact: the truth has weight a and every other value weight b, whole numbers with
a + (k - 1) b = 2^64 and b = ceil(2^64 / (k - 1 + e^epsilon0)), so one random 64-bit word decides a
report. Rounding b up makes the realised ln(a / b) at most epsilon0, less by about
(k - 1 + e^epsilon0)^2 / (e^epsilon0 2^64): next to nothing below a million values. What is sampled is what
was asked followed by a little more randomized response, so every upper bound that holds for epsilon0
holds for it. Lower bounds are those of ``realised``: the accountant's enclosures hold for the formula that
was asked for, and for what is sampled up to 2^-48 of its epsilon0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import CALL, up
from shuffledp._randomness.uniform import WORD, exponential, log_rounded_up, words_below
from shuffledp._randomness.words import Words
from shuffledp.facts import AmplificationLaw, Facts, enclosed
from shuffledp.randomizers._categories import Counts, Integers, smallest_unsigned
from shuffledp.randomizers.frequency import Bits, FrequencyRandomizer

_LEAST_WEIGHT = 2**10


@dataclass(frozen=True, init=False)
class KaryRandomizedResponse(FrequencyRandomizer):
    """Report the truth with probability e^epsilon0 p, any other of k values with p = 1/(e^epsilon0 + k - 1).

    Equivalently: with probability gamma = k p a uniformly random value (the blanket), else the
    truth. Give epsilon0 or gamma.

    >>> round(KaryRandomizedResponse(k=4, gamma=0.5).epsilon0, 12)
    1.609437912434
    >>> answer = KaryRandomizedResponse(k=4, epsilon0=2.0)
    >>> reports = answer.randomize([0, 3, 3, 1])
    >>> estimates = answer.estimate(answer.support(reports), n=4)
    >>> round(float(estimates.sum()), 9)
    4.0
    """

    MOST_EPSILON0: ClassVar[float] = _validate.MAX_EPSILON0  # as a description

    k: int
    epsilon0: float
    gamma: float

    def __init__(self, k: int, epsilon0: float | None = None, gamma: float | None = None) -> None:
        if (epsilon0 is None) == (gamma is None):
            raise ValueError(f"give one of epsilon0 and gamma, got {epsilon0=} and {gamma=}")
        whole = _validate.count("k", k, least=2, most=2**40)
        if gamma is not None:
            blanket = _validate.probability("gamma", gamma, positive=True)
            # Rounded up: a larger epsilon0 is a weaker guarantee.
            local = math.log1p(whole * (1.0 - blanket) / blanket)
            local = up(local, operations=CALL + 4, tiny=0.0)
            if local > _validate.MAX_EPSILON0:
                raise ValueError(
                    f"gamma must be at least k e^-{_validate.MAX_EPSILON0:g} for a certificate, got {gamma!r}"
                )
        else:
            local = _validate.epsilon0(epsilon0)
            decay = math.exp(-local)
            blanket = min(1.0, whole * decay / (1.0 + (whole - 1) * decay))
        _validate.assign(self, k=whole, epsilon0=local, gamma=blanket)

    @property
    def total_variation(self) -> float:
        """Total variation distance between the reports of two inputs, 1 - gamma."""
        decay = math.exp(-self.epsilon0)
        return -math.expm1(-self.epsilon0) / (1.0 + (self.k - 1) * decay)

    @cached_property
    def weights(self) -> tuple[int, int]:
        """(a, b), the truth's weight and any other value's, out of a + (k - 1) b.

        That sum is 2^64, unless epsilon0 is next to nothing: then a = b = floor(2^64 / k), and the
        words that are left over are drawn again."""
        low, _ = exponential(self.epsilon0)
        b = math.ceil(WORD / (self.k - 1 + low))
        a = WORD - (self.k - 1) * b
        return (a, b) if a >= b else (WORD // self.k, WORD // self.k)

    @property
    def realised_epsilon0(self) -> float:
        """ln(a / b) of the weights, rounded up: at most epsilon0."""
        a, b = self.weights
        return min(self.epsilon0, log_rounded_up(Fraction(a, b)))

    @cached_property
    def realised(self) -> KaryRandomizedResponse:
        """What is sampled, with an epsilon0 rounded down; itself, if only rounding is between them.

        Where nothing can be sampled it is the description itself."""
        local = self.realised_epsilon0
        if local >= enclosed(self.epsilon0).lower or not self.sampleable:
            return self
        return KaryRandomizedResponse(self.k, epsilon0=enclosed(local).lower)

    @property
    def sampleable(self) -> bool:
        """Whether 2^64 words can realise it well: not for an epsilon0 beyond about 37."""
        return self.weights[1] >= _LEAST_WEIGHT

    def facts(self) -> Facts:
        """What was asked, from above; what is sampled, from below."""
        realised = self.realised.epsilon0
        return Facts.of_response(self.k, self.epsilon0, gamma=self.gamma, realised=realised)

    def law(self) -> AmplificationLaw:
        """All pairs have the same law: own value, other value, the k - 2 third ones."""
        p, q = self._support_fractions()
        rest = (self.k - 2) * q
        return AmplificationLaw.merged([(p, q, q), (q, p, q), (rest, rest, rest)])

    @property
    def support_size(self) -> int:
        """Every report supports one value."""
        return 1

    def _support_fractions(self) -> tuple[Fraction, Fraction]:
        a, b = self.weights
        return Fraction(a, self._words), Fraction(b, self._words)

    @property
    def _words(self) -> int:
        """How many of the 2^64 words are used."""
        a, b = self.weights
        return a + (self.k - 1) * b

    def _supports(self, reports: Integers, values: Counts) -> Bits:
        return np.asarray(reports[:, None] == values)

    def randomize(self, values: Any, *, rng: np.random.Generator | None = None) -> Any:
        """One report per value, of the smallest unsigned type that holds k - 1."""
        if not self.sampleable:
            raise ValueError(
                "epsilon0 must be at most about 37 for sampling (other values must have a "
                f"probability of at least 2^-54), got {self.epsilon0!r}"
            )
        return super().randomize(values, rng=rng)

    def _sample(self, values: Integers, words: Words) -> Integers:
        """Words below (k - 1) b give the j-th value after the truth, all others the truth itself.

        The truth counts as the k-th value after itself, so that no branch is needed."""
        wide = smallest_unsigned(2 * self.k - 1)
        drawn = words_below(words, self._words, values.size)
        np.floor_divide(drawn, np.uint64(self.weights[1]), out=drawn)
        np.minimum(drawn, np.uint64(self.k - 1), out=drawn)
        sums = drawn.astype(wide)
        sums += values.astype(wide, copy=False)
        sums += wide.type(1)
        # Where the sum is below k, the difference wraps around and is the larger one.
        return np.asarray(np.minimum(sums, sums - wide.type(self.k)))


@dataclass(frozen=True, init=False)
class BinaryRandomizedResponse(KaryRandomizedResponse):
    """Report one bit truthfully with probability e^epsilon0/(e^epsilon0 + 1).

    >>> BinaryRandomizedResponse(epsilon0=1.0).k
    2
    """

    def __init__(self, epsilon0: float | None = None, gamma: float | None = None) -> None:
        super().__init__(k=2, epsilon0=epsilon0, gamma=gamma)
