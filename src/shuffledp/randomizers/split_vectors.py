"""Vectors by split and mix: every coordinate as random shares, with a share of Gaussian noise (T22).

A person scales the vector so that the radius is ``levels`` steps, rounds every coordinate at random to a
whole number, adds discrete Gaussian noise, and splits each coordinate modulo a power of two into ``shares``
uniformly random ones. A message is one share with the number of its coordinate, coordinate * modulus + share:
all messages of everybody are shuffled together. *One person's messages alone reveal the vector*: everything
rests on the shuffler, and on enough honest people. With fewer of them than planned there is less noise, and
the accountant says what that means.

>>> vectors = SplitVectors(dimension=3, norm="linf", levels=50, variance=9.0, shares=8, modulus=2**20)
>>> messages = vectors.randomize([[10, -50, 0]] * 1000)
>>> len(messages) == 1000 * vectors.messages, vectors.messages
(True, 24)
>>> [round(total / 1000) for total in vectors.totals(vectors.tally(messages)).tolist()]
[10, -50, 0]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from shuffledp import _validate
from shuffledp._certified.gaussian_shares import LEAST_VARIANCE
from shuffledp._certified.rounding import Floats
from shuffledp._randomness.noise_shares import MOST_VARIANCE, GaussianShares
from shuffledp._randomness.uniform import rounded_at_random
from shuffledp._randomness.words import Words, source
from shuffledp.randomizers._categories import Counts, SeveralMessages, chunks
from shuffledp.randomizers.split_and_mix import MOST_MESSAGES

NORMS = ("l2", "linf")
_MOST_LEVELS = 2**31  # soundness: squared norms of integer vectors fit 63 bits, as they are checked
_MOST_PLACES = 2**62  # soundness: messages, and sums of two residues
_AT_ONCE = 1 << 20  # soundness: so many halves of 32 bits add up exactly in doubles
_LOW = np.uint64(2**32 - 1)

Wholes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SplitVectors(SeveralMessages):
    """Vectors of ``dimension`` whole numbers, out of the ``norm`` ball of radius ``levels`` before rounding.

    ``variance``: of the noise that each person adds to each coordinate, in squared steps."""

    dimension: int
    norm: str
    levels: int
    variance: float
    shares: int
    modulus: int

    def __post_init__(self) -> None:
        _validate.one_of("norm", self.norm, NORMS)
        size = _validate.count("modulus", self.modulus, least=2, most=_MOST_PLACES)
        if size & (size - 1):
            raise ValueError(f"modulus must be a power of two, got {self.modulus!r}")
        counts = {
            "dimension": _validate.count("dimension", self.dimension, most=_MOST_PLACES // size),
            "levels": _validate.count("levels", self.levels, most=min(size // 2 - 1, _MOST_LEVELS) or 1),
            "shares": _validate.count("shares", self.shares, least=2, most=MOST_MESSAGES),
        }
        noise = _validate.positive("variance", self.variance)
        if not LEAST_VARIANCE <= noise <= MOST_VARIANCE:
            raise ValueError(
                f"variance must be in [{LEAST_VARIANCE:g}, {MOST_VARIANCE:g}], got {self.variance!r}"
            )
        _validate.assign(self, **counts, variance=noise)

    @cached_property
    def noise(self) -> GaussianShares:
        """The law of one person's noise in one coordinate."""
        return GaussianShares(self.variance)

    @property
    def messages(self) -> int:
        """How many messages each person sends."""
        return self.dimension * self.shares

    @property
    def longest(self) -> int:
        """The largest l2 norm of what is sent, for "l2": rounding adds at most the root of the dimension."""
        return self.levels + math.isqrt(self.dimension - 1) + 1

    @property
    def farthest(self) -> int:
        """The squared Euclidean distance of two vectors that are sent, at most."""
        if self.norm == "l2":
            return 4 * self.longest**2
        return 4 * self.dimension * self.levels**2

    @property
    def attained(self) -> int:
        """The squared distance of some two."""
        return 4 * self.levels**2 * (1 if self.norm == "l2" else self.dimension)

    @property
    def report_dtype(self) -> np.dtype[Any]:
        return np.dtype(np.uint32 if self.outputs <= 2**32 else np.uint64)

    def rounded(self, steps: Floats, words: Words) -> Wholes:
        """Vectors in steps (rows, inside of the ball) as whole numbers, each in the mean itself."""
        whole = np.clip(rounded_at_random(steps, words), -self.levels, self.levels)
        if self.norm == "l2":
            # Never but for the rounding of the scaling: what is sent has the norm that the proof counts on.
            long = np.flatnonzero((whole * whole).sum(axis=1) > self.longest**2)
            whole[long] = np.trunc(steps[long])
        return whole

    def noisy(self, values: Any, words: Words) -> Wholes:
        """Whole vectors (rows) with noise: what is split."""
        given = np.atleast_2d(np.asarray(values))
        if given.dtype.kind not in "iu" or given.ndim != 2 or given.shape[1] != self.dimension:
            raise ValueError(
                f"values must be whole numbers of shape (n, {self.dimension}), "
                f"got {given.dtype} of {given.shape}"
            )
        rows = given.astype(np.int64)
        if rows.size and max(int(rows.max()), -int(rows.min())) > self.levels:
            raise ValueError(f"values must be in -levels .. levels = {self.levels}")
        if self.norm == "l2" and rows.size and int((rows * rows).sum(axis=1).max()) > self.longest**2:
            raise ValueError(f"values must have an l2 norm of at most {self.longest}")
        return rows + self.noise.sample(rows.size, words).reshape(rows.shape)

    def randomize(self, values: Any, *, rng: np.random.Generator | None = None) -> Any:
        """The messages of whole vectors (rows), one after the other: ``messages`` of every person.

        Secure and exact; ``rng`` makes it repeatable, for simulations only."""
        rows = np.atleast_2d(np.asarray(values))
        words, mask = source(rng), np.uint64(self.modulus - 1)
        sent = np.empty((len(rows), self.dimension, self.shares), dtype=self.report_dtype)
        tags = np.arange(self.dimension, dtype=np.uint64)[:, None] * np.uint64(self.modulus)
        for part in chunks(len(rows), self.messages):
            noisy = self.noisy(rows[part], words)
            shares = words.draw(noisy.size * (self.shares - 1)).reshape(*noisy.shape, -1) & mask
            last = (noisy.astype(np.uint64) - shares.sum(axis=2, dtype=np.uint64)) & mask  # from modulo 2^64
            sent[part, :, :-1], sent[part, :, -1] = shares + tags, last + tags[:, 0]
        return sent.reshape(-1)

    def tally(self, messages: Any) -> Counts:
        """The sums of the lower 32 bits for every coordinate, then of the upper ones, then the numbers of
        messages: tallies of pieces add up."""
        array = np.atleast_1d(_validate.integers("messages", messages))
        if array.ndim > 1 or (array.size and (array.min() < 0 or int(array.max()) >= self.outputs)):
            raise ValueError(f"messages must be whole numbers in [0, {self.outputs})")
        total = np.zeros((3, self.dimension), dtype=np.int64)
        for start in range(0, array.size, _AT_ONCE):
            wide = array[start : start + _AT_ONCE].astype(np.uint64)
            place = (wide // np.uint64(self.modulus)).astype(np.int64)
            share = wide & np.uint64(self.modulus - 1)
            for row, half in enumerate((share & _LOW, share >> np.uint64(32))):
                sums = np.bincount(place, weights=half.astype(np.float64), minlength=self.dimension)
                total[row] += sums.astype(np.int64)
            total[2] += np.bincount(place, minlength=self.dimension)
        return total.reshape(-1)

    @property
    def outputs(self) -> int:
        return self.dimension * self.modulus

    def people(self, tally: Counts, n: int | None = None) -> int:
        """How many people the tally is of. ValueError if messages are missing: the sums then say nothing."""
        counts = np.asarray(tally).reshape(3, -1)[2]
        sent = int(counts[0])
        if (counts != sent).any() or sent == 0 or sent % self.shares or n not in (None, sent // self.shares):
            raise ValueError(
                f"tally must be of {self.shares} messages of every person in every coordinate: if one is "
                "missing or added, the sums say nothing"
            )
        return sent // self.shares

    def totals(self, tally: Counts) -> Wholes:
        """The noisy sum of every coordinate: the residues that are nearest to zero."""
        low, high, _ = (part.astype(np.uint64) for part in np.asarray(tally).reshape(3, -1))
        return self.centred(low + (high << np.uint64(32)))  # modulo 2^64

    def centred(self, sums: npt.NDArray[np.uint64]) -> Wholes:
        """Sums modulo 2^64 as the whole numbers in [-modulus/2, modulus/2) that they are modulo it."""
        half = np.uint64(self.modulus // 2)
        return ((sums + half) & np.uint64(self.modulus - 1)).astype(np.int64) - np.int64(half)
