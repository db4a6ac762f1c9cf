"""Hashed blanket messages: large domains with few messages, and collisions that are known exactly (T23).

Categories are points of a plane over p elements, p a prime number with p^2 >= k: x = x1 + p x2. A direction s
is one of p + 1, and hashes x to x1 + s x2 mod p (to x2 for the last). Two categories collide in exactly one
direction, whatever they are. Everybody sends one random direction with the hash of the own category, the cell
s p + hash, and fills ``slots`` further messages: each, with probability ``rate``, with a random cell, else
with nothing. A count is unbiased for all data: n/(p + 1) collisions, and the random messages that fall on
it, are known in law. *One person's messages alone reveal the answer, or nearly*: all rests on the shuffler.

>>> words = HashedMessages(k=10_000, rate=1.0, slots=1, buckets=101)
>>> words.messages, len(words.randomize([7] * 100))
(2, 200)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from shuffledp import _validate
from shuffledp._randomness.uniform import WORD, uniform
from shuffledp._randomness.words import Words
from shuffledp.randomizers._categories import Counts, Integers, checked_symbols
from shuffledp.randomizers.blanket_messages import SlottedMessages
from shuffledp.randomizers.hashing import is_prime

MOST_BUCKETS = 2**20
_AT_ONCE = 1 << 18  # speed: messages that are counted together


@dataclass(frozen=True)
class HashedMessages(SlottedMessages):
    """One message of the own category's hash in a random direction, and ``slots`` random ones.

    ``rate`` is rounded down to what whole weights of 2^64 sample exactly."""

    buckets: int

    def __post_init__(self) -> None:
        p = _validate.count("buckets", self.buckets, least=3, most=MOST_BUCKETS)
        object.__setattr__(self, "k", _validate.count("k", self.k, least=3, most=p * p))
        if not is_prime(p):
            raise ValueError(f"buckets must be a prime number, got {self.buckets!r}")
        super().__post_init__()

    @property
    def _cells(self) -> int:
        return self.buckets * (self.buckets + 1)

    @property
    def clone(self) -> float:
        return self._weight * (self.buckets + 1) / WORD

    @property
    def collision(self) -> float:
        return 1.0 / (self.buckets + 1.0)

    def _own(self, values: Integers, words: Words) -> Integers:
        p = np.uint64(self.buckets)
        second, first = np.divmod(values.astype(np.uint64), p)
        direction = uniform(words, self.buckets + 1, first.size)
        return direction * p + np.where(direction == p, second, (first + direction * second) % p)

    def support(self, reports: Any) -> Counts:
        """How many messages support each category: of every message's line the points, row by row."""
        cells = checked_symbols(reports, self.outputs)
        total = np.zeros((-(-self.k // self.buckets), self.buckets), dtype=np.int64)
        for start in range(0, len(cells), _AT_ONCE):
            self._add(cells[start : start + _AT_ONCE], total)
        return total.reshape(-1)[: self.k]

    def _add(self, cells: Integers, total: Counts) -> None:
        p = self.buckets
        direction, hashed = np.divmod(cells[cells < self._cells].astype(np.int64), p)
        upright = direction == p
        total += np.bincount(hashed[upright], minlength=p)[: len(total), None]
        first, direction = hashed[~upright], direction[~upright]
        for row in total:
            row += np.bincount(first, minlength=p)
            first -= direction  # the point of the same line in the next row
            first += p * (first < 0)
