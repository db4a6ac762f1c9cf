"""All outcomes of a small multinomial, with their probabilities."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from shuffledp._certified.rounding import CALL, LARGEST_EXPONENT, Floats


def outcomes(trials: int, kinds: int) -> int:
    """How many ways there are to spread ``trials`` over ``kinds``."""
    return math.comb(trials + kinds - 1, kinds - 1)


@lru_cache(maxsize=16)
def _counts(trials: int, kinds: int) -> tuple[Floats, Floats]:
    """(counts (outcomes, kinds), log of the multinomial coefficients)."""
    counts = np.zeros((1, 0), dtype=np.int64)
    left = np.array([trials], dtype=np.intp)
    for _ in range(kinds - 1):
        sizes = left + 1
        parent = np.repeat(np.arange(left.size), sizes)
        value = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        counts = np.column_stack([counts[parent], value])
        left = left[parent] - value
    counts = np.column_stack([counts, left])
    logs = np.array([math.log(math.factorial(k)) for k in range(trials + 1)])
    return counts.astype(np.float64), np.asarray(logs[trials] - logs[counts].sum(axis=1))


def enumerate_multinomial(trials: int, p: Floats) -> tuple[Floats, Floats]:
    """(counts, probabilities) of a multinomial, each within ``enumeration_units``."""
    counts, log_coefficient = _counts(trials, p.size)
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        powers = np.where(counts > 0.0, counts * np.log(p), 0.0).sum(axis=1)
        return counts, np.asarray(np.exp(log_coefficient + powers))


def enumeration_units(trials: int, kinds: int) -> float:
    """The count of a probability of ``enumerate_multinomial`` that does not underflow (T8).

    Its logarithm is off by so many units: factorials add up to at most 2 log(trials!), each logarithm
    costs a call, a product and a sum (whole numbers beyond doubles are split into mantissa and exponent);
    the powers of p add up to at most log(trials!) and what underflows together; ``kinds`` additions; and p
    itself, rounded once, enters ``trials`` times. The exponential is one more call."""
    factorials = math.log(math.factorial(trials)) + 1.0
    powers = factorials + LARGEST_EXPONENT + 50.0
    return (CALL + 3 + kinds) * 2.0 * factorials + (CALL + 2 + kinds) * powers + trials + CALL
