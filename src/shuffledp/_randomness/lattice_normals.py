"""Normal variables on a fine lattice, with probabilities of a proved relative accuracy at every point.

The points are y = +-(k + 1/2), k = 0, 1, 2, ..., in units of ``STEP`` standard deviations; the probability of
y is proportional to e^(-(y STEP)^2/2) (1 + error). Rejection: a table gives one of the bins of width 1/16
below 6, about as often as the density at its lower edge asks, and a place in it; the point is kept with the
ratio of its density to the table's. What lies beyond 6 has its share of the table, and is drawn by another
rejection, whose events of small probability are products of larger ones: no tail is cut off. Proof:
docs/proofs/privunit.md.

>>> from shuffledp._randomness.words import source
>>> lattice_normals(3, source()).shape
(3,)
"""

from __future__ import annotations

import math

import numpy as np

from shuffledp._certified.rounding import Floats
from shuffledp._randomness.words import Words

_BINS, _CORE = 16, 6  # per standard deviation; standard deviations
_PLACES = 40  # bits
STEP = 2.0**-_PLACES / _BINS
"""Between two points, in standard deviations: 2^-44."""

_ENTRIES = 4096  # 12 bits: with 40 places and a sign 53 of 64
_ALL = _BINS * _CORE
_AT_ONCE = 1 << 13  # speed
_MOST_WORD = 2.0**64 - 2048.0
_UNIFORM = 2.0**-53


def _table() -> tuple[np.ndarray, Floats, float]:
    """Bin of every entry (the last one: beyond), what a density is multiplied by in a bin, and beyond."""
    edge = np.exp(-0.5 * (np.arange(_ALL) / _BINS) ** 2)
    level = _ENTRIES / edge.sum()
    while (copies := np.ceil(level * edge)).sum() > _ENTRIES - 1:
        level *= 0.999
    bins = np.full(_ENTRIES, _ALL, np.uint8)
    bins[: int(copies.sum())] = np.repeat(np.arange(_ALL), copies.astype(np.intp))
    beyond = _BINS * level * math.sqrt(0.5 * math.pi) * math.erfc(_CORE / math.sqrt(2.0))
    return bins, level / copies * 2.0**64, beyond / (_ENTRIES - copies.sum()) * 2.0**64


_BIN, _KEPT, _KEPT_BEYOND = _table()


def lattice_normals(count: int, words: Words) -> Floats:
    """So many independent points, in units of ``STEP``."""
    found, done = np.empty(count), 0
    while done < count:
        drawn = _drawn(min(_AT_ONCE, int(1.05 * (count - done)) + 32), words)[: count - done]
        found[done : done + drawn.size] = drawn
        done += drawn.size
    return found


def _drawn(tries: int, words: Words) -> Floats:
    word, level = words.draw(tries), words.draw(tries)
    place = _BIN[word >> np.uint64(52)]
    point = ((word >> np.uint64(1)) & np.uint64((1 << _PLACES) - 1)).astype(np.float64)
    point += 0.5
    point += place * 2.0**_PLACES
    x = point * STEP
    x *= x
    x *= -0.5
    np.exp(x, out=x)
    far = np.flatnonzero(place == _ALL)
    place[far] = 0
    x *= _KEPT[place]
    kept = level < np.minimum(x, _MOST_WORD, out=x).astype(np.uint64)
    for i in far:
        kept[i] = level[i] < np.uint64(_KEPT_BEYOND)
        point[i] = _beyond(words) if kept[i] else 0.0
    point.view(np.uint64)[...] ^= word << np.uint64(63)
    return point[kept]


def _beyond(words: Words) -> float:
    """A point beyond 6: in blocks of 1/16 a geometric number of which is passed."""
    while True:
        block = 0
        while _falls(_CORE / _BINS, words):
            block += 1
        place = float(words.draw(1)[0] >> np.uint64(64 - _PLACES)) + 0.5
        s = (block + place * 2.0**-_PLACES) / _BINS
        if _falls(_CORE * (place * 2.0**-_PLACES) / _BINS + 0.5 * s * s, words):
            return (_ALL + block) * 2.0**_PLACES + place


def _falls(exponent: float, words: Words) -> bool:
    """An event of probability e^-exponent: so many of a larger probability all happen."""
    parts = max(1, math.ceil(exponent))
    chance = math.exp(-exponent / parts)
    return all(float(words.draw(1)[0] >> np.uint64(11)) * _UNIFORM < chance for _ in range(parts))
