"""Blanket messages: the own category in one message, and a few random ones beside it (Theorem T19).

Everybody sends the own category as it is and fills ``slots`` further messages: each, with probability
``rate``, with a uniformly random category, else with nothing (an empty message, the number k). Shuffled, the
random ones hide the own ones of everybody else; what is seen of category j is how many hold it, plus a
binomial number that is known in law. *One person's messages alone reveal the answer, or nearly*: everything
rests on the shuffler.

>>> pets = BlanketMessages(k=4, rate=0.5, slots=1)
>>> messages = pets.randomize([0, 0, 3] * 100)
>>> len(messages), pets.messages
(600, 2)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import Floats
from shuffledp._randomness.uniform import WORD
from shuffledp._randomness.words import source
from shuffledp.facts import Facts
from shuffledp.randomizers._categories import Counts, checked_symbols, chunks, histogram, smallest_unsigned

MOST_SLOTS = 4096


@dataclass(frozen=True)
class BlanketMessages:
    """One message of k categories that is true, and ``slots`` that are random with probability ``rate``.

    ``rate`` is rounded down to what whole weights of 2^64 sample exactly."""

    k: int
    rate: float
    slots: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", _validate.count("k", self.k, least=2, most=2**40))
        object.__setattr__(self, "slots", _validate.count("slots", self.slots, most=MOST_SLOTS))
        object.__setattr__(self, "rate", _validate.probability("rate", self.rate, positive=True))
        if self._weight == 0:
            raise ValueError(f"rate must be at least k / 2^64 to be sampled, got {self.rate!r}")

    @property
    def messages(self) -> int:
        """How many messages each person sends."""
        return 1 + self.slots

    @cached_property
    def _weight(self) -> int:
        """Of one category in one slot, out of 2^64."""
        return weight_of(self.rate, self.k)

    @property
    def clone(self) -> float:
        """The probability of a given category in one slot, exactly as it is sampled but for rounding."""
        return self._weight / WORD

    @property
    def collision(self) -> float:
        """The probability that another category's own message supports a given one: it does not."""
        return 0.0

    def facts(self) -> Facts:
        """Without a shuffler nothing is hidden: the own category is among one person's messages."""
        return Facts.of_matrix([[1.0, 0.0], [0.0, 1.0]])

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The type of a message."""
        return smallest_unsigned(self.k)

    @property
    def report_shape(self) -> tuple[int, ...]:
        """A message is one number."""
        return ()

    def randomize(self, values: Any, *, rng: np.random.Generator | None = None) -> Any:
        """The messages of every value, one after the other: ``messages`` times as many.

        Secure and exact; ``rng`` makes it repeatable, for simulations only."""
        own = np.atleast_1d(checked_symbols(values, self.k)).reshape(-1)
        words = source(rng)
        sent = np.empty((own.size, self.messages), dtype=self.report_dtype)
        sent[:, 0] = own
        for part in chunks(own.size, self.slots):
            drawn = words.draw(own[part].size * self.slots) // np.uint64(self._weight)
            sent[part, 1:] = np.minimum(drawn, np.uint64(self.k)).reshape(-1, self.slots)
        return sent.reshape(-1)

    def support(self, reports: Any) -> Counts:
        """How often each category was sent; empty messages are not counted."""
        return histogram(checked_symbols(reports, self.k + 1), self.k + 1)[: self.k]

    def estimate(self, support: Any, n: int) -> Floats:
        """Unbiased estimates of how many of n people hold each category."""
        people = _validate.count("n", n)
        seen = _validate.counts("support", support, self.k, people * self.messages)
        return np.asarray(seen - people * self.slots * self.clone)

    def added_noise(self, n: int) -> tuple[float, int, float]:
        """(q, trials, chance): a category of c among n people is supported by c + Bin(n - c, q) +
        Bin(trials, chance) messages, independent."""
        return self.collision, n * self.slots, self.clone

    def variance(self, counts: Any, n: int) -> Floats:
        """The exact variance of each estimate: that of the random messages, whatever the counts."""
        people = _validate.count("n", n)
        held = _validate.counts("counts", counts, self.k, people)
        return np.full(held.shape, people * self.slots * self.clone * (1.0 - self.clone))


def weight_of(rate: float, outcomes: int) -> int:
    """The whole weight, out of 2^64, of each of some equal outcomes that have at most ``rate`` together."""
    return min(int(math.ldexp(rate, 64)), WORD) // outcomes
