"""All outcomes of a small multinomial, with their probabilities."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from shuffledp._certified.rounding import Floats


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
    logs = np.array([math.lgamma(k + 1.0) for k in range(trials + 1)])
    return counts.astype(np.float64), np.asarray(logs[trials] - logs[counts].sum(axis=1))


def enumerate_multinomial(trials: int, p: Floats) -> tuple[Floats, Floats]:
    """(counts, probabilities) of a multinomial; relative error below 1e-12 for trials <= 500.

    Logarithms stay below 4,000 there (each of a few units), and every p enters ``trials`` times."""
    counts, log_coefficient = _counts(trials, p.size)
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        powers = np.where(counts > 0.0, counts * np.log(p), 0.0).sum(axis=1)
        return counts, np.asarray(np.exp(log_coefficient + powers))
