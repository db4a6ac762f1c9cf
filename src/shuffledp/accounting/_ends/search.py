"""Where a decreasing certified curve crosses a level."""

from __future__ import annotations

import numpy as np

from shuffledp._certified.rounding import Floats
from shuffledp.accounting._curves.profile import PrivacyProfile
from shuffledp.accounting._ends.together import Asked, Search

_MOST_STEPS = 60  # speed
_AROUND = np.array([-1.0, 0.0, 1.0])  # speed: in steps of the accuracy
_ROUGHLY = np.array([0.6, 1.0, 1.6])  # speed: where to look first, in multiples of the start
NEAR_IN_TOLERANCES = np.array([2.7, 1.8, 0.9, 0.0])
"""speed: where to look first below a start that is an upper end."""


def crossing(
    curve: PrivacyProfile,
    resolution: float,
    level: float,
    start: float,
    ceiling: float,
    relative: float,
    first: Floats = _ROUGHLY,
) -> Search[tuple[float, float]]:
    """(low, high): the value of lines at low is >= ``level``, it is not at high, high <= low (1 + relative).

    low is 0 if even there the value is below the level; high may be ``ceiling``, beyond which the
    curve is known to be at most the level.

    The logarithm of a hockey-stick curve is nearly concave in epsilon, so Newton's method from the
    lines' own slopes comes in from the right: aim at its root and a little to either side of it."""
    low, high, hints = 0.0, ceiling, curve.hints
    points = np.unique(np.minimum(start, 0.98 * ceiling) * first)
    for step in range(_MOST_STEPS):
        points = points[(points > low) & (points < high)]
        if not points.size:
            if not low < (middle := hints.between(low, high)) < high:
                break
            points = np.array([middle])
        found = yield Asked(curve, points, resolution)
        above = np.flatnonzero(found.value >= level)
        last = int(above[-1]) if above.size else -1
        if last >= 0:
            low = float(points[last])
        if last + 1 < points.size:
            high = float(points[last + 1])
        if high <= low * (1.0 + relative):
            break
        if low == 0.0 and step == 1:
            least = yield Asked(curve, np.zeros(1), resolution)
            if least.value[0] < level:
                return 0.0, 0.0
        newton = step % 6 < 5
        aim = hints.aim(points, found.value, found.slope_high, level) if newton else hints.between(low, high)
        points = aim * (1.0 + 0.9 * relative * _AROUND)
    return low, high
