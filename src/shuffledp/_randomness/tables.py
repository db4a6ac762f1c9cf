"""Exact laws on finitely many outcomes: whole-number weights that sum to 2^64, one word per outcome.

Outcome i has weight w[i]; a word u gives the first i with u < w[0] + ... + w[i]. A guide table, read
with the word's leading bits, holds the outcomes where each cell of words begins and ends: the few
words in a cell with several outcomes are bisected.

>>> integer_weights([0.5, 0.25, 0.25]) == (2**63, 2**62, 2**62)
True
>>> import numpy as np
>>> from shuffledp._randomness.words import source
>>> table = WeightTable.of([integer_weights([0.25, 0.75]), integer_weights([0.0, 1.0])])
>>> table.sample(np.array([1, 1, 1]), source())
array([1, 1, 1])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import frexp

import numpy as np
import numpy.typing as npt

from shuffledp._randomness.uniform import WORD
from shuffledp._randomness.words import Uint64s, Words

Indices = npt.NDArray[np.intp]

_GUIDE_BITS = 16
_GUIDE_CELLS = 1 << 18
"""Of all rows together, as long as every row keeps a few."""
_LEAST_BITS = 4


def integer_weights(probabilities: Sequence[float]) -> tuple[int, ...]:
    """Whole weights that sum to 2^64, proportional to the probabilities up to rounding.

    By largest remainders (the first of equals), but what is possible keeps a weight of at least 1:
    otherwise one input could give itself away by a report that another never sends."""
    shares = _common_denominator(probabilities)
    total = sum(shares)
    parts = [divmod(share * WORD, total) for share in shares]
    weights = [max(whole, 1) if share else 0 for share, (whole, _) in zip(shares, parts, strict=True)]
    missing = WORD - sum(weights)
    if missing < 0:
        weights[weights.index(max(weights))] += missing
        return tuple(weights)
    by_remainder = sorted(range(len(parts)), key=lambda i: (-parts[i][1], i))
    for i in by_remainder[:missing]:
        weights[i] += 1
    return tuple(weights)


def _common_denominator(probabilities: Sequence[float]) -> list[int]:
    """The floats as whole multiples of one power of two, exactly."""
    scaled = [frexp(float(p)) for p in probabilities]
    least = min((e for m, e in scaled if m), default=0)
    return [int(m * 2**53) << (e - least) if m else 0 for m, e in scaled]


@dataclass(frozen=True, eq=False)
class WeightTable:
    """Laws in rows: ``ends[x, i]`` is the first word past outcome i of row x (before the last one).

    ``guide[x, c]`` is the outcome of the first word of cell c."""

    ends: Uint64s
    guide: npt.NDArray[np.intp]
    shift: int

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> WeightTable:
        """From rows of weights, each row summing to 2^64."""
        bits = max(_LEAST_BITS, min(_GUIDE_BITS, (_GUIDE_CELLS // len(rows)).bit_length() - 1))
        shift = 64 - bits
        ends = np.full((len(rows), len(rows[0])), WORD - 1, dtype=np.uint64)
        guide = np.empty((len(rows), 2**bits + 1), dtype=np.intp)
        starts = np.arange(2**bits, dtype=np.uint64) << np.uint64(shift)
        for x, weights in enumerate(rows):
            sums = [end for end in accumulate(weights) if end < WORD]
            if sum(weights) != WORD:
                raise ValueError(f"weights must sum to 2^64, row {x} sums to {sum(weights)}")
            ends[x, : len(sums)] = sums
            guide[x, :-1] = np.searchsorted(ends[x, : len(sums)], starts, side="right")
            guide[x, -1] = len(sums)  # the last outcome of positive weight
        return cls(ends, guide, shift)

    def sample(self, rows: Indices, words: Words) -> Indices:
        """One outcome per entry of ``rows``."""
        drawn = words.draw(rows.size)
        cell = (drawn >> np.uint64(self.shift)).astype(np.intp)
        low, high = self.guide[rows, cell], self.guide[rows, cell + 1]
        open_ = np.flatnonzero(low < high)
        while open_.size:
            middle = (low[open_] + high[open_]) >> 1
            right = drawn[open_] >= self.ends[rows[open_], middle]
            low[open_] = np.where(right, middle + 1, low[open_])
            high[open_] = np.where(right, high[open_], middle)
            open_ = open_[low[open_] < high[open_]]
        return low
