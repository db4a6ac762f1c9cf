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
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import Floats
from shuffledp._randomness.uniform import WORD
from shuffledp._randomness.words import Words, source
from shuffledp.randomizers._categories import (
    Counts,
    Integers,
    SeveralMessages,
    checked_symbols,
    chunks,
    histogram,
)

MOST_SLOTS = 4096


@dataclass(frozen=True)
class SlottedMessages(SeveralMessages):
    """One message that supports the own category, among k, and ``slots`` that are random with probability
    ``rate``, each any of some cells; plain and hashed ones differ in what a cell is.

    ``rate`` is rounded down to what whole weights of 2^64 sample exactly."""

    k: int
    rate: float
    slots: int

    def __post_init__(self) -> None:
        slots = _validate.count("slots", self.slots, most=MOST_SLOTS)
        _validate.assign(self, slots=slots, rate=_validate.probability("rate", self.rate, positive=True))
        if self._weight == 0:
            raise ValueError(f"rate must be at least {self._cells} / 2^64 to be sampled, got {self.rate!r}")

    @property
    def messages(self) -> int:
        """How many messages each person sends."""
        return 1 + self.slots

    @property
    @abstractmethod
    def _cells(self) -> int:
        """How many different messages there are, but for the empty one, which has this number."""

    @cached_property
    def _weight(self) -> int:
        """Of one cell in one slot, out of 2^64."""
        return min(int(math.ldexp(self.rate, 64)), WORD) // self._cells

    @property
    @abstractmethod
    def clone(self) -> float:
        """The probability that a slot supports a given category, exactly as sampled but for rounding."""

    @property
    @abstractmethod
    def collision(self) -> float:
        """The probability that another category's own message supports a given one."""

    @property
    def outputs(self) -> int:
        return self._cells + 1

    def randomize(self, values: Any, *, rng: np.random.Generator | None = None) -> Any:
        """The messages of every value, one after the other: ``messages`` times as many.

        Secure and exact; ``rng`` makes it repeatable, for simulations only."""
        own = np.atleast_1d(checked_symbols(values, self.k)).reshape(-1)
        words = source(rng)
        sent = np.empty((own.size, self.messages), dtype=self.report_dtype)
        for part in chunks(own.size, self.messages):
            sent[part, 0] = self._own(own[part], words)
            drawn = words.draw(own[part].size * self.slots) // np.uint64(self._weight)
            sent[part, 1:] = np.minimum(drawn, np.uint64(self._cells)).reshape(-1, self.slots)
        return sent.reshape(-1)

    @abstractmethod
    def _own(self, values: Integers, words: Words) -> Integers:
        """The cells of the true messages."""

    @abstractmethod
    def support(self, reports: Any) -> Counts:
        """How many messages support each category; empty ones support none."""

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


@dataclass(frozen=True)
class BlanketMessages(SlottedMessages):
    """One message of k categories that is true, and ``slots`` that are random with probability ``rate``.

    ``rate`` is rounded down to what whole weights of 2^64 sample exactly."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", _validate.count("k", self.k, least=2, most=2**40))
        super().__post_init__()

    @property
    def _cells(self) -> int:
        return self.k

    @property
    def clone(self) -> float:
        return self._weight / WORD

    @property
    def collision(self) -> float:
        return 0.0

    def _own(self, values: Integers, words: Words) -> Integers:
        return values

    def support(self, reports: Any) -> Counts:
        return histogram(checked_symbols(reports, self.outputs), self.outputs)[: self.k]
