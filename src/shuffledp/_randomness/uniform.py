"""Exactly uniform whole numbers from random words, by rejection.

A word is kept only if it lies below the largest multiple of ``bound``; its remainder is then exactly
uniform. At most half of the words are thrown away, and next to none for small bounds.

>>> import numpy as np
>>> from shuffledp._randomness.words import source
>>> bool((uniform(source(), 6, 1000) < 6).all())
True
"""

from __future__ import annotations

import numpy as np

from shuffledp._randomness.words import Uint64s, Words

WORD = 2**64


def words_below(words: Words, limit: int, count: int) -> Uint64s:
    """``count`` words, uniform in [0, limit); limit <= 2^64."""
    drawn = words.draw(count)
    if limit == WORD:
        return drawn
    rejected = np.flatnonzero(drawn >= np.uint64(limit))
    while rejected.size:
        drawn[rejected] = words.draw(rejected.size)
        rejected = rejected[drawn[rejected] >= np.uint64(limit)]
    return drawn


def uniform(words: Words, bound: int, count: int) -> Uint64s:
    """``count`` whole numbers, uniform in [0, bound); 1 <= bound < 2^64."""
    drawn = words_below(words, WORD - WORD % bound, count)
    return np.remainder(drawn, np.uint64(bound), out=drawn)
