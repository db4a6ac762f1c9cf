"""What the vector randomizers draw from 64-bit words: events, bits and uniform doubles.

All are exact: their probabilities are known multiples of 2^-64 or 2^-53. For normal variables see
``_randomness.normals``.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from shuffledp._certified.rounding import Floats
from shuffledp._randomness.exponential import exponential
from shuffledp._randomness.uniform import WORD
from shuffledp._randomness.words import Words

Bools = npt.NDArray[np.bool_]

_LOW_BITS = np.uint64(11)


def weight_of_odds(odds: Fraction) -> int:
    """The largest whole w with w / (2^64 - w) <= odds."""
    return math.floor(WORD * odds / (1 + odds))


def truth_weight(epsilon0: float) -> int:
    """The weight of a truthful bit: randomized response with odds of at most e^epsilon0."""
    low, _ = exponential(epsilon0)
    return weight_of_odds(low)


def log_odds(weight: int) -> float:
    """log(weight / (2^64 - weight)) for a weight of at least 2^63, rounded up."""
    excess = Fraction(2 * weight - WORD, WORD - weight)
    return math.log1p(float(excess)) * (1.0 + 2.0**-50)


def happens(weight: int, count: int, words: Words) -> Bools:
    """Independent events of probability weight / 2^64 each, weight < 2^64."""
    return np.asarray(words.draw(count) < np.uint64(weight))


def rounded_up(share: Floats, words: Words) -> Bools:
    """True with probability floor((1 + share) 2^52) / 2^53, for each share in [-1, 1].

    So the mean of the sign is the share, up to 2^-52; a share of -1, 0 or 1 is kept exactly."""
    threshold = np.floor((1.0 + share) * 2.0**52).astype(np.uint64)
    return np.asarray((words.draw(share.size) >> _LOW_BITS) < threshold)


def open_uniforms(count: int, words: Words) -> Floats:
    """Uniform on the multiples of 2^-53 in (0, 1]."""
    return np.asarray(((words.draw(count) >> _LOW_BITS) + np.uint64(1)) * 2.0**-53)
