"""Where a decreasing certified curve crosses a level."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from shuffledp.accounting.profile import Floats

Curve = Callable[[Floats], Floats]

_STEPS = 80


def crossing(
    curve: Curve, level: float, guess: float, ceiling: float, relative: float
) -> tuple[float, float]:
    """(low, high) with curve(low) > level >= curve(high) and high <= low (1 + relative).

    The curve need not be exactly monotone: both ends are points where it was evaluated, except
    low = 0 if the curve starts at or below the level (then high = 0), and high = ``ceiling``, where
    it is known to be at most the level. A batch costs little more than one evaluation."""
    if float(curve(np.zeros(1))[0]) <= level:
        return 0.0, 0.0
    low, high = 0.0, ceiling
    low_value, high_value = math.inf, 0.0
    points = guess * np.array([0.25, 0.5, 0.8, 1.0, 1.25, 2.0])
    for _ in range(_STEPS):
        points = np.unique(points[(points > low) & (points < high)])
        if points.size == 0:
            break
        values = curve(points)
        above = np.flatnonzero(values > level)
        first = int(above[-1]) if above.size else -1
        if first >= 0:
            low, low_value = float(points[first]), float(values[first])
        if first + 1 < points.size:
            high, high_value = float(points[first + 1]), float(values[first + 1])
        if high <= low * (1.0 + relative) or high <= 1e-300:
            break
        points = _next_points(low, high, low_value, high_value, level, relative)
    return low, high


def _next_points(
    low: float, high: float, low_value: float, high_value: float, level: float, relative: float
) -> Floats:
    if low == 0.0:
        return high * np.array([0.03, 0.1, 0.3, 0.6])
    if math.isinf(high):
        return low * np.array([1.5, 2.5, 5.0, 12.0])
    if high_value <= 0.0 or not math.isfinite(low_value) or high > 1.5 * low:
        return low * (high / low) ** np.array([0.2, 0.4, 0.6, 0.8])
    # Secant in log value against log epsilon, and two points that close in on it.
    top, bottom = math.log(low_value / level), math.log(max(high_value, 1e-307) / level)
    share = top / (top - bottom)
    root = low * (high / low) ** min(max(share, 0.01), 0.99)
    return root * (1.0 + relative * np.array([-8.0, -0.4, 0.4, 8.0]))
