"""Random 64-bit words: secure by default, reproducible where a generator is given.

Without an argument the words are an AES-256 key stream in counter mode, whose key and first
counter come from the operating system (needs the package ``cryptography``), or the operating
system's own random bytes where that package is not installed: slower, equally secure. Every source
has a key of its own and takes a new one after a fork, so that no two processes share a stream.

A ``numpy.random.Generator`` replaces all that in simulations and tests: its words can be repeated,
so they protect nobody. What is made with it is marked: an array of a class of its own, and so are parts,
sums and permutations of it; a statement about them says that they are simulated.

>>> import numpy as np
>>> source().draw(3).dtype
dtype('uint64')
>>> first, again = (source(np.random.default_rng(7)).draw(2) for _ in range(2))
>>> bool((first == again).all())
True
>>> reports = marked(np.array([1, 2, 3]), True)
>>> is_simulated(reports), is_simulated(np.concatenate([np.array([0]), reports[1:]]))
(True, True)
>>> is_simulated(marked([1], False))
False
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext

Uint64s = npt.NDArray[np.uint64]

_STEP = 1 << 18
"""Bytes encrypted at once: a few times less than a second-level cache."""
_ZEROS = memoryview(bytes(_STEP))
_BLOCK_WORDS = 2
"""Some versions of the cipher want room for one more block of 16 bytes."""


class Words(ABC):
    """A source of independent, uniformly distributed 64-bit words."""

    @abstractmethod
    def draw(self, count: int) -> Uint64s:
        """The next ``count`` words, in a new array."""


class KeyStreamWords(Words):
    """AES-256 in counter mode, keyed by the operating system."""

    def __init__(self) -> None:
        self._cipher, self._owner = _new_cipher(), os.getpid()
        self._zeros = _ZEROS

    def draw(self, count: int) -> Uint64s:
        if os.getpid() != self._owner:  # a fork: parent and child must not share the stream
            self._cipher, self._owner = _new_cipher(), os.getpid()
        return self._stream(count)

    def _stream(self, count: int) -> Uint64s:
        words = np.empty(count + _BLOCK_WORDS, dtype=np.uint64)
        room = words.data.cast("B")
        for start in range(0, 8 * count, _STEP):
            size = min(_STEP, 8 * count - start)
            end = start + size + 8 * _BLOCK_WORDS
            self._cipher.update_into(self._zeros[:size], room[start:end])
        return words[:count]


class SeedWords(KeyStreamWords):
    """AES-128 in counter mode from a seed of 16 bytes: the same words for everybody who knows the seed."""

    def __init__(self, seed: bytes) -> None:
        self._cipher = _new_cipher(seed, bytes(16))
        self._zeros = _ZEROS

    def draw(self, count: int) -> Uint64s:
        return self._stream(count)


class SystemWords(Words):
    """The operating system's random bytes."""

    def draw(self, count: int) -> Uint64s:
        words = np.empty(count, dtype=np.uint64)
        room = words.view(np.uint8)
        for start in range(0, 8 * count, _STEP):
            end = min(start + _STEP, 8 * count)
            room[start:end] = np.frombuffer(os.urandom(end - start), dtype=np.uint8)
        return words


class GeneratorWords(Words):
    """The words of a given generator, for simulations."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def draw(self, count: int) -> Uint64s:
        return self._rng.integers(0, 2**64 - 1, size=count, dtype=np.uint64, endpoint=True)


def source(rng: np.random.Generator | None = None) -> Words:
    """A new secure source, or the words of ``rng``."""
    if rng is not None:
        if not isinstance(rng, np.random.Generator):
            raise TypeError(f"rng must be None (secure) or a numpy.random.Generator, got {rng!r}")
        return GeneratorWords(rng)
    try:
        return KeyStreamWords()
    except ImportError:
        return SystemWords()


def _new_cipher(key: bytes | None = None, counter: bytes | None = None) -> CipherContext:
    """Of the operating system's random key and counter unless they are given."""
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import AES
    from cryptography.hazmat.primitives.ciphers.modes import CTR

    return Cipher(AES(key or os.urandom(32)), CTR(counter or os.urandom(16))).encryptor()


class Simulated(np.ndarray[Any, Any]):
    """An array that was made with repeatable randomness, which protects nobody."""

    __array_priority__ = 1.0  # joined with others, the whole is simulated


def marked(array: Any, simulated: bool) -> npt.NDArray[Any]:
    """The array, marked if it is simulated."""
    return np.asarray(array).view(Simulated) if simulated else np.asarray(array)


def is_simulated(array: object) -> bool:
    """Whether the array comes from repeatable randomness."""
    return isinstance(array, Simulated)
