"""Hadamard response (Acharya, Sun, Zhang 2019).

Let K be the smallest power of two above k and H[r, y] = (-1)^(number of common one bits of r and y). A
user who holds x reports a column y of row x + 1, E = e^epsilon0 times as likely where H is +1. The sign
+1 has probability p, a whole multiple of 2^-64 rounded down so that the realised E = p / (1 - p) is at
most what was asked; the column is uniform among the K/2 of that sign, exactly.

A report supports the categories whose sign is +1 there. Rows agree in half of their columns, so another
category is supported with probability exactly 1/2, and all supports are one Walsh-Hadamard transform of
the reports' histogram.

The law of the amplification variable (any two inputs), w = 2 (1 - p) / K: K/4 columns for each pair of
signs of x and x'. The smallest probability of a column is w, except of column 0, which is +1 for
everybody (rows 1, 2, 4, ..., K/2 <= k are all in use, so no other column is):

    (+, -)              own E w, other w, clone w     K/4 columns        X = E - a
    (-, +)              own w, other E w, clone w     K/4 columns        X = 1 - a E
    (+, +), column > 0  own = other = E w, clone w    K/4 - 1 columns    X = E (1 - a)
    column 0, (-, -)    own = other = clone = E w, and w for K/4 columns X = 1 - a
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from shuffledp import _validate
from shuffledp._randomness.uniform import WORD, exponential, log_rounded_up
from shuffledp._randomness.words import Uint64s, Words
from shuffledp.facts import AmplificationLaw, Blanket
from shuffledp.randomizers._categories import Counts, Integers, histogram
from shuffledp.randomizers.frequency import Bits, FrequencyRandomizer

Number = TypeVar("Number", np.int64, np.float64)


@dataclass(frozen=True, init=False)
class HadamardResponse(FrequencyRandomizer):
    """Report a column of the own row of a Hadamard matrix, likelier where the entry is +1.

    >>> HadamardResponse(k=100, epsilon0=1.0).order
    128
    """

    k: int
    epsilon0: float
    weight: int = field(repr=False)

    def __init__(self, k: int, epsilon0: float) -> None:
        asked = _validate.sampled_epsilon0(epsilon0)
        low, _ = exponential(asked)
        weight = math.floor(WORD * low / (1 + low))
        whole = _validate.count("k", k, least=2, most=2**24)
        local = min(asked, log_rounded_up(Fraction(weight, WORD - weight)))
        _validate.assign(self, k=whole, epsilon0=local, weight=weight)

    @property
    def order(self) -> int:
        """K, the number of different reports."""
        return 1 << self.k.bit_length()

    outputs = order

    def law(self) -> AmplificationLaw:
        """All pairs have the same law (see module)."""
        p, K = Fraction(self.weight, WORD), self.order
        heavy, light, quarter = 2 * p / K, 2 * (1 - p) / K, K // 4
        both, shared = (quarter - 1) * heavy, heavy + quarter * light
        return AmplificationLaw.merged(
            [
                (quarter * heavy, quarter * light, quarter * light),
                (quarter * light, quarter * heavy, quarter * light),
                (both, both, (quarter - 1) * light),
                (shared, shared, shared),
            ]
        )

    def blanket(self) -> Blanket:
        """Every column has at least the probability of a light one."""
        p, K = Fraction(self.weight, WORD), self.order
        heavy, light = p / 2, (1 - p) / 2  # of a quarter of the columns
        types = [(heavy, light, light), (light, heavy, light), (heavy, heavy, light), (light, light, light)]
        return Blanket(f"uniform over {K} columns", AmplificationLaw.merged(types), float(4 * light))

    def _watched(self) -> list[tuple[Fraction, Fraction, Fraction]] | None:
        """Others who hold z with row z = row x xor row x' (rows 1, 2 and 3): the sign of z is the product.

        Where x and x' differ they are as light as clones can be: the blanket's own telling types."""
        if self.k < 3:
            return None
        heavy = Fraction(self.weight, 2 * WORD)
        light = Fraction(1, 2) - heavy
        return [(heavy, light, light), (light, heavy, light), (heavy, heavy, heavy), (light, light, heavy)]

    def _support_fractions(self) -> tuple[Fraction, Fraction]:
        return Fraction(self.weight, WORD), Fraction(1, 2)

    @property
    def _words_per_value(self) -> int:
        return 2

    def _sample(self, values: Integers, words: Words) -> Integers:
        rows = values.astype(np.uint64) + np.uint64(1)
        minus = words.draw(values.size) >= np.uint64(self.weight)
        columns = words.draw(values.size) & np.uint64(self.order - 1)
        # Flipping the row's lowest one bit maps the columns of either sign onto those of the other.
        lowest = rows & (~rows + np.uint64(1))
        return np.where(_odd_common_bits(rows, columns) == minus, columns, columns ^ lowest)

    def _supports(self, reports: Integers, values: Counts) -> Bits:
        columns = reports.astype(np.uint64)[:, None]
        return np.asarray(~_odd_common_bits((values + 1).astype(np.uint64), columns))

    def _count(self, reports: Integers) -> Counts:
        signs = walsh_hadamard(histogram(reports, self.order))
        return np.asarray((len(reports) + signs[1 : self.k + 1]) // 2)


def _odd_common_bits(rows: Uint64s, columns: Uint64s) -> Any:
    """Whether the entry of the Hadamard matrix is -1."""
    common = rows & columns
    for shift in (32, 16, 8, 4, 2, 1):
        common = common ^ (common >> np.uint64(shift))
    return (common & np.uint64(1)).astype(np.bool_)


def walsh_hadamard(vector: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """sum over y of vector[y] H[r, y], for every r."""
    half = 1
    while half < vector.size:
        pairs = vector.reshape(-1, 2, half)
        vector = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
        half *= 2
    return vector
