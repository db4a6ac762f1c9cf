"""Subset selection (Ye, Barg 2018; Wang et al. 2016).

A report is a set of ``size`` categories: E = e^epsilon0 times as likely if it contains the own one. The
own category is in it with probability p, a whole multiple of 2^-64 rounded down so that the realised
E = p (k - size) / ((1 - p) size) is at most what was asked; the others are a uniformly random subset
(exactly: Floyd's algorithm with rejection).

The law of the amplification variable (any two inputs). Every set misses somebody, so its smallest
probability is that of a set without the own category. By membership of x and x':

    (in, out)   own p (k - size) / (k - 1),       clone = other = (1 - p) size / (k - 1)     X = E - a
    (out, in)   the same with own and other exchanged                                        X = 1 - a E
    (in, in)    own = other = p (size - 1) / (k - 1),      clone that / E                    X = E (1 - a)
    (out, out)  own = other = clone = (1 - p)(k - 1 - size) / (k - 1)                        X = 1 - a
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from shuffledp import _validate
from shuffledp._randomness.uniform import WORD, exponential, log_rounded_up, uniform
from shuffledp._randomness.words import Words
from shuffledp.facts import AmplificationLaw, Blanket
from shuffledp.randomizers._categories import Integers, chunks
from shuffledp.randomizers.frequency import Bits, SetRandomizer, packed, unpacked


@dataclass(frozen=True, init=False)
class SubsetSelection(SetRandomizer):
    """Report a random set of ``size`` categories, likelier if it contains the own one.

    The default size is the one of smallest variance, about k / (e^epsilon0 + 1).

    >>> SubsetSelection(k=100, epsilon0=2.0).size
    12
    """

    k: int
    epsilon0: float
    size: int
    weight: int = field(repr=False)

    def __init__(self, k: int, epsilon0: float, size: int | None = None) -> None:
        asked = _validate.sampled_epsilon0(epsilon0)
        whole = _validate.count("k", k, least=2, most=2**24)
        low, _ = exponential(asked)
        chosen = _best_size(whole, low) if size is None else size
        chosen = _validate.count("size", chosen, least=1, most=whole - 1)
        weight = math.floor(WORD * _own_probability(whole, chosen, low))
        ratio = Fraction(weight * (whole - chosen), (WORD - weight) * chosen)
        local = min(asked, log_rounded_up(ratio))
        _validate.assign(self, k=whole, epsilon0=local, size=chosen, weight=weight)

    def law(self) -> AmplificationLaw:
        """All pairs have the same law (see module)."""
        k, size, p = self.k, self.size, Fraction(self.weight, WORD)
        up, down = p * (k - size) / (k - 1), (1 - p) * size / (k - 1)
        both, neither = p * (size - 1) / (k - 1), (1 - p) * (k - 1 - size) / (k - 1)
        hidden = both * down / up
        return AmplificationLaw.merged(
            [(up, down, down), (down, up, down), (both, both, hidden), (neither, neither, neither)]
        )

    def blanket(self) -> Blanket:
        """Every set has at least the probability of one without the own value."""
        law = self.law()
        return Blanket(f"uniform over sets of {self.size} of {self.k}", law, law.gamma)

    def _three_categories(self) -> tuple[Fraction, tuple[int, int, int, int]] | None:
        if self.k == 2:
            return None
        s, r = self.size, self.k - self.size  # ways to have given ones in the set and others not
        masses = r * (r - 1) * (r - 2), s * r * (r - 1), s * (s - 1) * r, s * (s - 1) * (s - 2)
        return Fraction(self.weight * r, (WORD - self.weight) * s), masses

    @property
    def support_size(self) -> int:
        """Every report supports ``size`` categories."""
        return self.size

    def _support_fractions(self) -> tuple[Fraction, Fraction]:
        return _support(self.k, self.size, Fraction(self.weight, WORD))

    @property
    def _words_per_value(self) -> int:
        return max(2, self.k // 64)  # one byte per category; many rows make the loop worth its steps

    def _sample(self, values: Integers, words: Words) -> Integers:
        """The own category first; then ``wanted`` of the k - 1 others, counted from the own one on."""
        rows = np.arange(values.size)
        own = values.astype(np.int64)
        inside = words.draw(values.size) < np.uint64(self.weight)
        bits = np.zeros((values.size, self.k), dtype=np.bool_)
        bits[rows, own] = inside
        wanted = self.size - inside
        # Floyd: for j = N - m, ..., N - 1 take a uniform element of 0..j, or j if that is taken.
        # Rows that want one fewer skip the first step.
        for step in range(self.size):
            active = rows[wanted >= self.size - step]
            top = self.k - 1 - self.size + step
            drawn = uniform(words, top + 1, active.size).astype(np.int64)
            at = (own[active] + 1 + drawn) % self.k
            at = np.where(bits[active, at], (own[active] + 1 + top) % self.k, at)
            bits[active, at] = True
        return packed(bits)

    @property
    def _sets(self) -> str:
        return f"sets of {self.size} of the categories 0 to {self.k - 1}"

    def possible(self, rows: Integers) -> Bits:
        """Which rows of bytes can be sent: those that hold ``size`` categories."""
        good = super().possible(rows)
        for part in chunks(len(rows), self._words_per_value):
            good[part] &= unpacked(rows[part], self.k).sum(axis=1, dtype=np.int64) == self.size
        return good


def _own_probability(k: int, size: int, E: Fraction) -> Fraction:
    return size * E / (size * E + k - size)


def _support(k: int, size: int, p: Fraction) -> tuple[Fraction, Fraction]:
    """(p, q): the expected number of other categories in the set, shared by k - 1 of them."""
    return p, (size - p) / (k - 1)


def _best_size(k: int, E: Fraction) -> int:
    """The size next to k / (E + 1) with the smallest variance for a rare category."""
    near = math.floor(k / (E + 1))

    def spread(size: int) -> Fraction:
        p, q = _support(k, size, _own_probability(k, size, E))
        return q * (1 - q) / (p - q) ** 2

    return min((s for s in (near, near + 1) if 1 <= s <= k - 1), key=spread)
