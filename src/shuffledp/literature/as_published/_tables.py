"""Plain double-precision tables of small binomial and trinomial laws (relative error about 1e-11).

Good enough to recognise a published number; nothing here is certified.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import Floats

MOST_USERS = 3000
"""Tables have n^2 entries."""


def require_small(n: Any) -> int:
    """A number of users whose outcomes can be enumerated."""
    return _validate.count("n", n, most=MOST_USERS)


def alpha(epsilon: Any) -> float:
    """e^epsilon."""
    return math.exp(float(_validate.non_negative("epsilon", epsilon).reshape(())))


def hockey_sticks(p: Floats, q: Floats, a: float) -> tuple[float, float]:
    """sum (p - a q)_+ and sum (q - a p)_+."""
    return float(np.maximum(p - a * q, 0.0).sum()), float(np.maximum(q - a * p, 0.0).sum())


@lru_cache(maxsize=4)
def log_factorials(n: int) -> Floats:
    """log(0!), ..., log(n!)."""
    return np.array([math.lgamma(i + 1.0) for i in range(n + 1)])


def log_chooses(n: int) -> Floats:
    """log C(n, 0), ..., log C(n, n)."""
    logs = log_factorials(n)
    return np.asarray(logs[n] - logs - logs[::-1])


def _times_log(count: Floats, p: float) -> Floats:
    """count log(p), with 0 log(0) = 0."""
    if p > 0.0:
        return np.asarray(count * math.log(p))
    return np.where(count > 0.0, -np.inf, 0.0)


def binomial_table(n: int, p: float) -> Floats:
    """Pr[Bin(n, p) = 0], ..., Pr[Bin(n, p) = n]."""
    count = np.arange(n + 1, dtype=np.float64)
    logs = log_chooses(n) + _times_log(count, p) + _times_log(n - count, max(0.0, 1.0 - p))
    with np.errstate(under="ignore"):
        return np.asarray(np.exp(logs))


@lru_cache(maxsize=2)
def trinomial_table(n: int, p: float) -> tuple[Floats, Floats, Floats]:
    """(i, j, probability) of all outcomes of n trials with chances p, p, 1 - 2 p."""
    i, j = np.indices((n + 1, n + 1))
    inside = i + j <= n
    i, j = i[inside], j[inside]
    logs = log_factorials(n)
    rest = (n - i - j).astype(np.float64)
    log_law = logs[n] - logs[i] - logs[j] - logs[n - i - j] + _times_log((i + j).astype(np.float64), p)
    log_law = log_law + _times_log(rest, max(0.0, 1.0 - 2.0 * p))
    with np.errstate(under="ignore"):
        table = i.astype(np.float64), j.astype(np.float64), np.asarray(np.exp(log_law))
    for part in table:
        part.setflags(write=False)  # shared: the last tables are kept
    return table
