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

*Proof.* Relative errors, in units of u; second-order terms are covered by the rounding of the sums.

1. ``_halves``. The ideal V is uniform on (0, 1/2): its digits are the word's leading 61, then those
   of further words. They are read until what was read, as a whole number, is 2^53 at least (three more
   words at most; they do not suffice with probability 2^(-61 - 64 - 64 - 11)). The digits not read are
   worth at most 1, and the conversion of a word is off by 1; where two words are added the sum is off by
   1 more, but then the digits not read are worth 2^-11 at most: 2.01 in all.
2. ``_exponentials``. X = -log V or -log(1 - V), by a fair bit, is exponential. A relative change of V by
   r changes X by r/log 2 at most: |dX/dV| V/X is 1/X <= 1/log 2 for the first; for the second it is
   V/((1 - V) X) <= 1/log 2, since X/log 2 - V/(1 - V) vanishes at 0 and 1/2 and rises, then falls. So
   V's error costs 2.01/log 2 < 2.9. As computed: V = M 2^-k with M in [1/2, 1), and X = k log 2 -
   log(1 - D) with D = 1 - M; or X = -log(1 - D) with D = V. Next 32 D = J + W, J whole, W in [0, 1), all
   exact, and

       -log(1 - D) = log(32/(32 - J)) + 2 artanh(z),   z = W/(64 - 2 J - W) <= 1/33.

   z is off by 2; artanh(z) = z + z^3/3 + ... + z^11/11 up to 10^-3, its powers from the third on are
   below z/3000: with the last addition, 3.01. No term is negative, the logarithms are within 1, k log 2
   within 1.4, two additions: at most 4.1. With V's part 7, and 3.5 + 1 = 4.5 for R.
3. ``_sine_and_cosine``. The angle x = (pi/2) V in (0, pi/4) is off by 2.01 + 1 + 0.36 < 3.4 (pi is
   rounded as well). That changes the sine by no more, and the cosine by x tan(x) < 0.79 as much. The
   sine is x + x y (-1/6 + y/120 - ...) as far as x^15 (0.6 is left), y = x^2; the second part
   is off by 6, and at most 0.12 of the sine: with the addition 0.6 + 0.72 + 1 < 2.4. The cosine is
   sqrt(1 - sine^2): 2.4 of sine^2 <= 1/2, twice, and the roundings of 1/2 + 1/2 make 3.4 in a number
   of at least 1/2, so 3.4 in its root, and 1 for the root. Sine: 5.8. Cosine: 2.7 + 4.4 = 7.1.
4. A fair bit exchanges sine and cosine (the angle's octant), two more are the signs. The product with R
   is rounded: 4.5 + 7.1 + 1 < 13 < 32. The rest is for safety.

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
