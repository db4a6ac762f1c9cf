"""Normal doubles of a proved relative accuracy, from random words, by basic arithmetic alone.

Box and Muller: a pair is R (cos, sin) of a random angle, R = sqrt(2 X), X exponential. Every step is
an addition, product, quotient or square root of doubles, which IEEE 754 rounds to the nearest; the
logarithm and the sine are short sums of these. So the doubles are a function of the words alone, the
same on every machine and at every place in an array: one fixed finite law. Signs are fair bits of
their own: the law is exactly symmetric under any change of signs.

**Lemma.** Fill up the words by infinitely many random bits: then there are exactly independent
standard normal variables, one per double, such that every double d and its variable g satisfy

    |d - g| <= RELATIVE_ERROR |g|,    RELATIVE_ERROR = 32 u,    u = 2^-53,

except with probability 2^-200 per uniform variable (one and a half are drawn per double at most, for
vectors of two and more). No double is larger than 2^5, and a vector is never zero.

Proof, step by step: docs/proofs/normals.md.

Beside them, normal variables on a fine lattice, with probabilities of a proved relative accuracy at every
point. The points are y = +-(k + 1/2), k = 0, 1, 2, ..., in units of ``STEP`` standard deviations; the
probability of y is proportional to e^(-(y STEP)^2/2) (1 + error). Rejection: a table gives one of the bins of
width 1/16 below 6, about as often as the density at its lower edge asks, and a place in it; the point is kept
with the ratio of its density to the table's. What lies beyond 6 has its share of the table, and is drawn by
another rejection, whose events of small probability are products of larger ones: no tail is cut off. Proof:
docs/proofs/privunit.md.

>>> from shuffledp._randomness.words import source
>>> normals(2, 5, source()).shape, lattice_normals(3, source()).shape
((2, 5), (3,))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal

import numpy as np

from shuffledp._certified.rounding import Floats
from shuffledp._randomness.words import Uint64s, Words

RELATIVE_ERROR = 2.0**-48
"""Of every double against its normal variable (see module)."""

_SPARE_BITS = 3
_ENOUGH = 2.0**53
_WORD = 2.0**64
_MORE_WORDS = 3

_CONTEXT = Context(prec=40)
_PARTS = 32
_LOGS = np.array(
    [
        float(_CONTEXT.ln(_CONTEXT.divide(Decimal(_PARTS), Decimal(_PARTS - j))))
        for j in range(_PARTS // 2 + 1)
    ]
)
_LOG_2 = float(_LOGS[-1])
_EDGES = 2.0 * (_PARTS - np.arange(_PARTS // 2 + 1))

_ARTANH = (1 / 3, 1 / 5, 1 / 7, 1 / 9, 1 / 11)
_SINE = (-1 / 6, 1 / 120, -1 / 5040, 1 / 362880, -1 / 39916800, 1 / 6227020800, -1 / 1307674368000)

_AT_ONCE = 1 << 13  # speed


def normals(count: int, dimension: int, words: Words) -> Floats:
    """Standard normal doubles of shape (count, dimension); no pair is shared by two vectors."""
    half = (dimension + 1) // 2
    pairs = np.empty((2, count * half))
    for first in range(0, count * half, _AT_ONCE):
        _fill(pairs[:, first : first + _AT_ONCE], words)
    left, right = pairs.reshape(2, count, half)
    return np.concatenate((left, right[:, : dimension - half]), axis=1)


def _fill(pairs: Floats, words: Words) -> None:
    """Columns of two independent normal variables."""
    count = pairs.shape[1]
    half, word = _halves(2 * count, words)
    length = _exponentials(half[:count], word[:count])
    length *= 2.0
    np.sqrt(length, out=length)
    sine, cosine = _sine_and_cosine(half[count:])
    spare = word[count:]
    exchanged = (spare & np.uint64(4)).astype(np.bool_)
    np.multiply(np.where(exchanged, sine, cosine), length, out=pairs[0])
    np.multiply(np.where(exchanged, cosine, sine), length, out=pairs[1])
    bits = pairs.view(np.uint64)
    bits[0] ^= spare << np.uint64(63)  # two of the spare bits become the sign bits
    bits[1] ^= (spare >> np.uint64(1)) << np.uint64(63)


def _halves(count: int, words: Words) -> tuple[Floats, Uint64s]:
    """Uniform on (0, 1/2), to a relative 2^-52, and words with three low bits that it did not use."""
    word = words.draw(count)
    value = (word >> np.uint64(_SPARE_BITS)).astype(np.float64)
    unit = 2.0 ** (_SPARE_BITS - 65)
    half = value * unit
    low = np.flatnonzero(value < _ENOUGH)
    for _ in range(_MORE_WORDS):
        if not low.size:
            break
        unit /= _WORD
        finer = value[low] * _WORD + words.draw(low.size)
        value[low] = finer
        half[low] = (finer + 0.5) * unit  # not zero; with digits enough the 0.5 is rounded away
        low = low[finer < _ENOUGH]
    return half, word


def _exponentials(half: Floats, word: Uint64s) -> Floats:
    """-log(half) or, if the word is even, -log(1 - half)."""
    mantissa, exponent = np.frexp(half)
    large = (word & np.uint64(1)).astype(np.bool_)
    depth = np.where(large, np.subtract(1.0, mantissa, out=mantissa), half)
    depth *= _PARTS
    part = depth.astype(np.intp)
    depth -= part
    z = depth / (_EDGES[part] - depth)
    square = z * z
    z *= 2.0
    total = _polynomial(square, _ARTANH)
    total *= square
    total *= z
    total += z
    exponent *= large
    total += exponent * -_LOG_2 + _LOGS[part]
    return total


def _sine_and_cosine(half: Floats) -> tuple[Floats, Floats]:
    """Of the angles pi/2 * half, in the first octant."""
    angle = half * (0.5 * np.pi)
    square = angle * angle
    sine = _polynomial(square, _SINE)
    sine *= square
    sine *= angle
    sine += angle
    np.multiply(sine, sine, out=square)
    np.subtract(1.0, square, out=square)
    return sine, np.sqrt(square, out=square)


def _polynomial(x: Floats, coefficients: Sequence[float]) -> Floats:
    """coefficients[0] + x (coefficients[1] + x (...))."""
    total = x * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        total += coefficient
        total *= x
    total += coefficients[0]
    return total


_BINS, _CORE = 16, 6  # per standard deviation; standard deviations
_PLACES = 40  # bits
STEP = 2.0**-_PLACES / _BINS
"""Between two points, in standard deviations: 2^-44."""

_ENTRIES = 4096  # 12 bits: with 40 places and a sign 53 of 64
_ALL = _BINS * _CORE
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
