"""epsilon(delta) from a bound delta(epsilon), never trusting that the bound is monotone.

The true delta of a mechanism never increases with epsilon, so *every* epsilon at which a sound bound
was seen to be at most ``level`` is a valid answer. The search only aims at a small one.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

_SMALLEST = 1e-12  # speed: of the ceiling; nothing smaller is looked for
_SCANNED_FROM, _SCANNED = 1e-6, 200  # speed: of the ceiling; points of the grid


def smallest_below(
    bound: Callable[[float], float], level: float, ceiling: float, relative: float = 1e-9
) -> float:
    """An epsilon in (0, ceiling] with bound(epsilon) <= level, ``relative`` above one without.

    inf if none is seen. Where the bound is above the level even at the ceiling, a grid is scanned."""
    good = _first_seen(bound, level, ceiling)
    if math.isinf(good):
        return math.inf
    low = _SMALLEST * ceiling
    if bound(low) <= level:
        return low
    while good > low * (1.0 + relative):
        middle = math.sqrt(low * good)
        if bound(middle) <= level:
            good = middle
        else:
            low = middle
    return good


def _first_seen(bound: Callable[[float], float], level: float, ceiling: float) -> float:
    if bound(ceiling) <= level:
        return ceiling
    scan = np.geomspace(_SCANNED_FROM * ceiling, ceiling, _SCANNED)
    return next((float(e) for e in scan if bound(float(e)) <= level), math.inf)
