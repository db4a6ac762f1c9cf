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
from functools import cached_property
from typing import Any

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import Floats
from shuffledp._randomness.uniform import WORD, uniform
from shuffledp._randomness.words import source
from shuffledp.facts import Facts
from shuffledp.randomizers._categories import Counts, Integers, checked_symbols, chunks, smallest_unsigned
from shuffledp.randomizers.blanket_messages import MOST_SLOTS, weight_of
from shuffledp.randomizers.hashing import is_prime

MOST_BUCKETS = 2**20
_AT_ONCE = 1 << 18  # speed: messages that are counted together


@dataclass(frozen=True)
class HashedMessages:
    """One message of the own category's hash in a random direction, and ``slots`` random ones.

    ``rate`` is rounded down to what whole weights of 2^64 sample exactly."""

    k: int
    rate: float
    slots: int
    buckets: int

    def __post_init__(self) -> None:
        p = _validate.count("buckets", self.buckets, least=3, most=MOST_BUCKETS)
        object.__setattr__(self, "k", _validate.count("k", self.k, least=3, most=p * p))
        object.__setattr__(self, "slots", _validate.count("slots", self.slots, most=MOST_SLOTS))
        object.__setattr__(self, "rate", _validate.probability("rate", self.rate, positive=True))
        if not is_prime(p):
            raise ValueError(f"buckets must be a prime number, got {self.buckets!r}")
        if self._weight == 0:
            raise ValueError(f"rate must be at least {self._cells} / 2^64 to be sampled, got {self.rate!r}")

    @property
    def messages(self) -> int:
        """How many messages each person sends."""
        return 1 + self.slots

    @property
    def _cells(self) -> int:
        return self.buckets * (self.buckets + 1)

    @cached_property
    def _weight(self) -> int:
        """Of one cell in one slot, out of 2^64."""
        return weight_of(self.rate, self._cells)

    @property
    def clone(self) -> float:
        """The probability that a slot supports a given category, exactly as sampled but for rounding."""
        return self._weight * (self.buckets + 1) / WORD

    @property
    def collision(self) -> float:
        """The probability that another category's own message supports a given one."""
        return 1.0 / (self.buckets + 1.0)

    def facts(self) -> Facts:
        """Without a shuffler nothing is hidden: the own category's hash is among one person's messages."""
        return Facts.of_matrix([[1.0, 0.0], [0.0, 1.0]])

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The type of a message."""
        return smallest_unsigned(self._cells)

    @property
    def report_shape(self) -> tuple[int, ...]:
        """A message is one number."""
        return ()

    def randomize(self, values: Any, *, rng: np.random.Generator | None = None) -> Any:
        """The messages of every value, one after the other: ``messages`` times as many.

        Secure and exact; ``rng`` makes it repeatable, for simulations only."""
        own = np.atleast_1d(checked_symbols(values, self.k)).reshape(-1)
        words, p = source(rng), np.uint64(self.buckets)
        sent = np.empty((own.size, self.messages), dtype=self.report_dtype)
        for part in chunks(own.size, self.slots + 1):
            second, first = np.divmod(own[part].astype(np.uint64), p)
            direction = uniform(words, self.buckets + 1, first.size)
            hashed = np.where(direction == p, second, (first + direction * second) % p)
            sent[part, 0] = direction * p + hashed
            drawn = words.draw(first.size * self.slots) // np.uint64(self._weight)
            sent[part, 1:] = np.minimum(drawn, np.uint64(self._cells)).reshape(-1, self.slots)
        return sent.reshape(-1)

    def support(self, reports: Any) -> Counts:
        """How many messages support each category: of every message's line the points, row by row."""
        cells = checked_symbols(reports, self._cells + 1)
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

    def estimate(self, support: Any, n: int) -> Floats:
        """Unbiased estimates of how many of n people hold each category."""
        people = _validate.count("n", n)
        seen = _validate.counts("support", support, self.k, people * self.messages)
        expected = people * (self.slots * self.clone + self.collision)
        return np.asarray((seen - expected) / (1.0 - self.collision))

    def added_noise(self, n: int) -> tuple[float, int, float]:
        """(q, trials, chance): a category of c among n people is supported by c + Bin(n - c, q) +
        Bin(trials, chance) messages, independent."""
        return self.collision, n * self.slots, self.clone

    def variance(self, counts: Any, n: int) -> Floats:
        """The exact variance of each estimate: that of the random messages and of the collisions."""
        people = _validate.count("n", n)
        held = _validate.counts("counts", counts, self.k, people)
        collisions = (people - held) * self.collision * (1.0 - self.collision)
        noise = people * self.slots * self.clone * (1.0 - self.clone)
        return np.asarray((collisions + noise) / (1.0 - self.collision) ** 2)
