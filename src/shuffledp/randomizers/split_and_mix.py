"""Split and mix: a whole number as several random shares, with a share of common noise (T17, T18).

A person adds a share of discrete Laplace noise to a number in 0, ..., levels, splits the result modulo a
power of two into ``messages`` uniformly random shares, and sends each as a message of its own. Shuffled
together with everybody's, they reveal the noisy sum and next to nothing else. *One person's messages alone
reveal the number*: everything rests on the shuffler, and on enough honest people.

>>> number = SplitAndMix(levels=10, scale=10.0, people=1000, messages=9, modulus=2**16)
>>> messages = number.randomize([3] * 1000)
>>> len(messages), abs(number.total(number.tally(messages), 1000) - 3000) < 40 * 10
(9000, True)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from shuffledp import _validate
from shuffledp._randomness.noise_shares import MOST_SCALE, NoiseShares
from shuffledp._randomness.words import source
from shuffledp.randomizers._categories import Counts, SeveralMessages, chunks

MOST_MESSAGES = 64
_MOST_MODULUS = 2**62  # soundness: sums of two fit 63 bits
_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)


@dataclass(frozen=True)
class SplitAndMix(SeveralMessages):
    """Numbers in 0, ..., ``levels``; noise of ``scale`` in all if ``people`` add their share of it."""

    levels: int
    scale: float
    people: int
    messages: int
    modulus: int

    def __post_init__(self) -> None:
        size = _validate.count("modulus", self.modulus, least=2, most=_MOST_MODULUS)
        if size & (size - 1):
            raise ValueError(f"modulus must be a power of two, got {self.modulus!r}")
        checked = {
            "levels": _validate.count("levels", self.levels, most=size - 1),
            "scale": _validate.positive("scale", self.scale),
            "people": _validate.count("people", self.people),
            "messages": _validate.count("messages", self.messages, least=2, most=MOST_MESSAGES),
        }
        if checked["scale"] > MOST_SCALE:
            raise ValueError(f"scale must be at most {MOST_SCALE:g}, got {self.scale!r}")
        _validate.assign(self, **checked)

    @cached_property
    def noise(self) -> NoiseShares:
        """The law of one person's share of the noise."""
        return NoiseShares(self.scale, self.people)

    @property
    def outputs(self) -> int:
        return self.modulus

    @property
    def report_dtype(self) -> np.dtype[Any]:
        return np.dtype(np.uint32 if self.modulus <= 2**32 else np.uint64)

    def randomize(self, values: Any, *, rng: np.random.Generator | None = None) -> Any:
        """The messages of every value, one after the other: ``messages`` times as many.

        Secure and exact; ``rng`` makes it repeatable, for simulations only."""
        numbers = np.atleast_1d(_validate.integers("values", values)).reshape(-1)
        if numbers.size and (numbers.min() < 0 or numbers.max() > self.levels):
            raise ValueError(f"values must be in 0 .. levels = {self.levels}")
        words, mask = source(rng), np.uint64(self.modulus - 1)
        sent = np.empty((numbers.size, self.messages), dtype=self.report_dtype)
        for part in chunks(numbers.size, self.messages + 1):
            noisy = numbers[part].astype(np.int64) + self.noise.sample(len(numbers[part]), words)
            shares = words.draw(noisy.size * (self.messages - 1)).reshape(noisy.size, -1) & mask
            last = (noisy.astype(np.uint64) - shares.sum(axis=1, dtype=np.uint64)) & mask  # from modulo 2^64
            sent[part, :-1], sent[part, -1] = shares, last
        return sent.reshape(-1)

    def tally(self, messages: Any) -> Counts:
        """[sum of the lower halves of 32 bits, of the upper ones, number]: tallies of pieces add up."""
        array = np.asarray(messages)
        if array.dtype.kind not in "ui" or array.ndim > 1:
            raise TypeError(f"messages must be whole numbers, got {array.dtype} of shape {array.shape}")
        flat = np.atleast_1d(array)
        if flat.size and (flat.min() < 0 or int(flat.max()) >= self.modulus):
            raise ValueError(f"messages must be in [0, {self.modulus})")
        wide = flat.astype(np.uint64)
        return np.array([(wide & _LOW).sum(), (wide >> _HALF).sum(), flat.size], dtype=np.int64)

    def total(self, tally: Counts, people: int) -> int:
        """The noisy sum of ``people`` numbers: the residue that is nearest to the possible ones' middle."""
        low, high, _ = (int(part) for part in tally)
        middle = people * self.levels // 2
        start = middle - self.modulus // 2
        return start + (low + (high << 32) - start) % self.modulus

    def variance(self, people: int) -> float:
        """Of the noise, if so many people added their share."""
        return self.noise.variance * people / self.people

    def wrapped(self, people: int) -> float:
        """Upper bound of the probability that the noise of ``self.people`` carries a sum past the modulus."""
        room = (self.modulus - people * self.levels) // 2 - 1
        return 1.0 if room <= 0 else min(1.0, self.noise.tail(room))
