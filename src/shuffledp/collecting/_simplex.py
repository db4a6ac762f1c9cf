"""The nearest histogram: Euclidean projection onto {c >= 0, sum c = total}.

Subtract one number from all estimates and set what becomes negative to zero; the number is found by
sorting (Held, Wolfe, Crowder 1974). Projection never moves the estimate farther from the true histogram,
but it is no longer unbiased.

>>> project_to_simplex([0.5, 0.7, -0.1], total=1.0)
array([0.4, 0.6, 0. ])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import Floats


def project_to_simplex(values: Any, total: float = 1.0) -> Floats:
    """The point with entries >= 0 that sum to ``total`` nearest to ``values``."""
    mass = _validate.positive("total", total)
    point = np.asarray(values, dtype=np.float64)
    if point.ndim != 1 or point.size == 0 or not np.isfinite(point).all():
        raise ValueError(f"values must be finite numbers in one dimension, got {values!r}")
    falling = np.sort(point)[::-1]
    levels = (np.cumsum(falling) - mass) / np.arange(1, point.size + 1)
    # The largest number of entries that all stay above the level they imply.
    level = levels[np.flatnonzero(falling > levels)[-1]]
    return np.asarray(np.maximum(point - level, 0.0))
