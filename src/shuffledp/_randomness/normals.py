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

>>> from shuffledp._randomness.words import source
>>> normals(2, 5, source()).shape
(2, 5)
"""

from __future__ import annotations

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

_AT_ONCE = 1 << 13


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
