"""Whole numbers, events and doubles of exactly known probabilities, from random words.

Uniform whole numbers by rejection: a word is kept only if it lies below the largest multiple of
``bound``; its remainder is then exactly uniform. At most half of the words are thrown away, and next to
none for small bounds.

>>> import numpy as np
>>> from shuffledp._randomness.words import source
>>> bool((uniform(source(), 6, 1000) < 6).all())
True

Thresholds of events are whole numbers: exponentials and logarithms for them round to a known side.

>>> low, high = exponential(1.0)
>>> low < high and float(low) == float(high) == 2.718281828459045
True
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from shuffledp._certified.rounding import CALL, Floats, up
from shuffledp._randomness.words import Uint64s, Words

Bools = npt.NDArray[np.bool_]

WORD = 2**64
_LOW_BITS = np.uint64(11)  # of a word, beyond the 53 of a double


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


def happens(weight: int, count: int, words: Words) -> Bools:
    """Independent events of probability weight / 2^64 each, weight < 2^64."""
    return np.asarray(words.draw(count) < np.uint64(weight))


def rounded_up(share: Floats, words: Words) -> Bools:
    """True with probability floor((1 + share) 2^52) / 2^53, for each share in [-1, 1].

    So the mean of the sign is the share, up to 2^-52; a share of -1, 0 or 1 is kept exactly."""
    threshold = np.floor((1.0 + share) * 2.0**52).astype(np.uint64)
    return np.asarray((words.draw(share.size) >> _LOW_BITS) < threshold)


def rounded_at_random(steps: Floats, words: Words) -> npt.NDArray[np.int64]:
    """Each number as a whole one next to it, in the mean itself (up to 2^-53)."""
    below = np.floor(steps)
    share = np.minimum(steps - below, np.nextafter(1.0, 0.0))  # tiny negative numbers are one above theirs
    # Below 2^64, and whole unless the share is under 2^-11 (then cut by less than 2^-64).
    up = words.draw(steps.size).reshape(steps.shape) < np.ldexp(share, 64).astype(np.uint64)
    return below.astype(np.int64) + up


def open_uniforms(count: int, words: Words) -> Floats:
    """Uniform on the multiples of 2^-53 in (0, 1]."""
    return np.asarray(((words.draw(count) >> _LOW_BITS) + np.uint64(1)) * 2.0**-53)


_CONTEXT = Context(prec=60)
_SLACK = Fraction(1, 10**58)


def exponential(exponent: float | Fraction) -> tuple[Fraction, Fraction]:
    """(low, high) with low < e^exponent < high, apart by less than 3e-58 of it; |exponent| <= 1000."""
    if isinstance(exponent, Fraction):
        # The quotient's error, 1e-60 of at most 1000, moves e^x by at most 1e-57 of it.
        argument = _CONTEXT.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
        slack = 1000 * _SLACK
    else:
        argument, slack = Decimal(exponent), _SLACK
    value = Fraction(_CONTEXT.exp(argument))
    return value * (1 - slack), value * (1 + slack)


def log_rounded_up(ratio: Fraction) -> float:
    """At least ln(ratio), by less than three parts in 10^15, for a ratio >= 1."""
    return up(math.log1p(float(ratio - 1)), operations=CALL + 2, tiny=0.0)


def weight_of_odds(odds: Fraction) -> int:
    """The largest whole w with w / (2^64 - w) <= odds."""
    return math.floor(WORD * odds / (1 + odds))


def truth_weight(epsilon0: float) -> int:
    """The weight of a truthful bit: randomized response with odds of at most e^epsilon0."""
    low, _ = exponential(epsilon0)
    return weight_of_odds(low)


def log_odds(weight: int) -> float:
    """log(weight / (2^64 - weight)) for a weight of at least 2^63, rounded up."""
    return log_rounded_up(Fraction(weight, WORD - weight))
