"""Unary encodings: one bit per category, each flipped on its own.

Basic RAPPOR (Erlingsson, Pihur, Korolova 2014; symmetric) and optimised unary encoding (Wang, Blocki,
Li, Jha 2017). The bit of the own category is 1 with probability p, any other bit with probability q;
both are whole multiples of 2^-64, rounded such that the realised e^epsilon0 = p (1 - q) / (q (1 - p))
is at most what was asked.

The law of the amplification variable (any two inputs; E = e^epsilon0): a report y has probability
base(y) t[y_x] with t[1] = p / q > t[0] = (1 - p) / (1 - q), so its smallest probability is base(y) t[0],
except for the report of all ones, base t[1]. By the two bits of x and x':

    (1, 0)                own p (1 - q),       other q (1 - p),  clone q (1 - p)      X = E - a
    (0, 1)                own q (1 - p),       other p (1 - q),  clone q (1 - p)      X = 1 - a E
    (1, 1), not all ones  own = other = p q (1 - q^(k-2)),       clone that / E       X = E (1 - a)
    all ones, and (0, 0)  own = other = clone = p q^(k-1), and (1 - p)(1 - q)         X = 1 - a
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from shuffledp import _validate
from shuffledp._randomness.uniform import WORD, exponential, log_rounded_up
from shuffledp._randomness.words import Words
from shuffledp.facts import AmplificationLaw, Blanket
from shuffledp.randomizers._categories import Integers
from shuffledp.randomizers.frequency import SetRandomizer, packed

_MOST_CATEGORIES = 2**24
_MOST_COUNTED = 128  # speed: categories of which the ones are counted, for groups
_ALL_ONES_COUNTED = 64
"""Beyond that many categories all ones are rarer than 2^-62; taking them as not hidden is safe."""


@dataclass(frozen=True, init=False)
class UnaryEncoding(SetRandomizer):
    """What both encodings share. ``weights`` are p and q out of 2^64."""

    k: int
    epsilon0: float
    weights: tuple[int, int] = field(repr=False)

    def __init__(self, k: int, epsilon0: float) -> None:
        asked = _validate.sampled_epsilon0(epsilon0)
        own, other = self._bit_weights(asked)
        ratio = Fraction(own * (WORD - other), other * (WORD - own))
        whole = _validate.count("k", k, least=2, most=_MOST_CATEGORIES)
        _validate.assign(self, k=whole, epsilon0=min(asked, log_rounded_up(ratio)), weights=(own, other))

    @staticmethod
    @abstractmethod
    def _bit_weights(epsilon0: float) -> tuple[int, int]:
        """Weights of a one in the own bit and in any other, out of 2^64."""

    def law(self) -> AmplificationLaw:
        """All pairs have the same law (see module)."""
        p, q = self._support_fractions()
        far = q ** (self.k - 2) if self.k <= _ALL_ONES_COUNTED else Fraction(0)
        both, shared = p * q * (1 - far), (1 - p) * (1 - q) + p * q * far
        hidden = both * q * (1 - p) / (p * (1 - q))
        up, down = p * (1 - q), q * (1 - p)
        return AmplificationLaw.merged(
            [(up, down, down), (down, up, down), (both, both, hidden), (shared, shared, shared)]
        )

    def blanket(self) -> Blanket:
        """Types are the two bits and how many of the others are ones, in whole numbers out of 2^(64 k).

        A report of few ones is rarest for an input whose bit is 0. Of very many categories the number of ones
        tells the groups apart: nothing is stated to be common, and the two bits are the types."""
        shape = f"one bit for each of {self.k} categories"
        if self.k > _MOST_COUNTED:
            law = self.law()
            return Blanket(shape, law.among((0.0,) * len(law.own)), None)
        kept, other = self.weights
        bit = (WORD - kept, kept)
        rest = [other**ones * (WORD - other) ** (self.k - 1 - ones) for ones in range(self.k)]
        least = [bit[0] * mass for mass in rest] + [bit[1] * rest[-1]]
        types = []
        for ones in range(self.k - 1):
            ways = math.comb(self.k - 2, ones)
            for a, b in ((1, 0), (0, 1), (1, 1), (0, 0)):
                masses = bit[a] * rest[b + ones], bit[b] * rest[a + ones], least[a + b + ones]
                types.append([ways * mass for mass in masses])
        total = 1 << (64 * self.k)
        own_s, other_s, clone_s = (
            tuple(mass / total for mass in column) for column in zip(*types, strict=True)
        )
        gap = tuple((u - v) / total for u, v, _ in types)
        return Blanket(shape, AmplificationLaw(own_s, other_s, clone_s, gap), None)

    def _three_categories(self) -> tuple[Fraction, tuple[int, int, int, int]] | None:
        own, other = self.weights
        zero = WORD - other
        if self.k == 2:
            return None
        ratio = Fraction(own * zero, other * (WORD - own))
        return ratio, (zero**3, zero**2 * other, zero * other**2, other**3)

    def _support_fractions(self) -> tuple[Fraction, Fraction]:
        own, other = self.weights
        return Fraction(own, WORD), Fraction(other, WORD)

    def _sample(self, values: Integers, words: Words) -> Integers:
        own, other = map(np.uint64, self.weights)
        drawn = words.draw(values.size * self.k).reshape(values.size, self.k)
        bits = drawn < other
        at = np.arange(values.size), values
        bits[at] = drawn[at] < own
        return packed(bits)


class SymmetricUnaryEncoding(UnaryEncoding):
    """Basic RAPPOR: every bit keeps its value with probability e^(epsilon0/2) / (e^(epsilon0/2) + 1).

    >>> SymmetricUnaryEncoding(k=10, epsilon0=2.0).support_probability
    (0.7310585786300049, 0.2689414213699951)
    """

    @staticmethod
    def _bit_weights(epsilon0: float) -> tuple[int, int]:
        low, _ = exponential(0.5 * epsilon0)
        keep = math.floor(WORD * low / (1 + low))
        return keep, WORD - keep


class OptimisedUnaryEncoding(UnaryEncoding):
    """The own bit is a fair coin, any other bit is 1 with probability 1 / (e^epsilon0 + 1).

    >>> OptimisedUnaryEncoding(k=10, epsilon0=2.0).randomize([3, 4]).shape
    (2, 2)
    """

    @staticmethod
    def _bit_weights(epsilon0: float) -> tuple[int, int]:
        low, _ = exponential(epsilon0)
        return WORD // 2, math.ceil(WORD / (1 + low))
