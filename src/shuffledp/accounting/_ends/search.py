"""Where a decreasing certified curve crosses a level."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from shuffledp._certified.rounding import Floats
from shuffledp.accounting._curves.profile import SupportingLines

Lines = Callable[[Floats], SupportingLines]

_STEPS = 60
_LOOKS = 3
_AT_ONCE = 17
_AROUND = np.array([-1.0, 0.0, 1.0])
ROUGHLY = (0.6, 1.0, 1.6)
CLOSELY = (0.9973, 0.9982, 0.9991, 1.0)
"""How far a guess may be trusted: where, in multiples of it, to look first."""


def crossing(
    lines: Lines,
    level: float,
    guess: float,
    ceiling: float,
    relative: float,
    first: tuple[float, ...] = ROUGHLY,
) -> tuple[float, float]:
    """(low, high): the value at low is >= ``level``, it is not at high, high <= low (1 + relative).

    low is 0 if even there the value is below the level; high may be ``ceiling``, beyond which the
    curve is known to be at most the level.

    The logarithm of a hockey-stick curve is nearly concave in epsilon, so Newton's method from the
    lines' own slopes comes in from the right: aim at its root and a little to either side of it."""
    low, high = 0.0, ceiling
    points = np.unique(np.minimum(guess, 0.98 * ceiling) * np.array(first))
    for step in range(_STEPS):
        points = points[(points > low) & (points < high)]
        if not points.size:
            points = np.array([_between(low, high)])
        found = lines(points)
        above = np.flatnonzero(found.value >= level)
        last = int(above[-1]) if above.size else -1
        if last >= 0:
            low = float(points[last])
        if last + 1 < points.size:
            high = float(points[last + 1])
        if high <= low * (1.0 + relative) or not low < _between(low, high) < high:
            break
        if low == 0.0 and step == 1 and float(lines(np.zeros(1)).value[0]) < level:
            return 0.0, 0.0
        aim = newton(found, level) if step % 6 < 5 else _between(low, high)
        points = aim * (1.0 + 0.9 * relative * _AROUND)
    return low, high


def located(curve: Callable[[Floats], Floats], level: float, most: float) -> float:
    """About where a falling curve crosses a level below ``most``, from a few looks at many points."""
    low, high = 0.0, min(most, 690.0)
    for _ in range(_LOOKS):
        points = np.linspace(low, high, _AT_ONCE)
        value = np.maximum(curve(points), 1e-300)
        last = min(max(int((value >= level).sum()), 1), points.size - 1)
        low, high = float(points[last - 1]), float(points[last])
    ratio = np.log(value[last - 1 : last + 1] / level)
    share = ratio[0] / (ratio[0] - ratio[1]) if ratio[0] > 0.0 > ratio[1] else 0.5
    return low + float(share) * (high - low)


def newton(found: SupportingLines, level: float) -> float:
    """Root of the tangent in log value, from the evaluated point whose value is nearest the level."""
    usable = np.flatnonzero((found.value > 0.0) & (found.slope_high > 0.0))
    if not usable.size:
        return 0.0
    gap = np.log(found.value[usable] / level)
    best = int(np.argmin(np.abs(gap)))
    i = int(usable[best])
    epsilon = float(found.epsilon[i])
    rate = math.exp(min(epsilon, 700.0)) * float(found.slope_high[i] / found.value[i])
    return epsilon + float(gap[best]) / rate


def _between(low: float, high: float) -> float:
    if low == 0.0:
        return 0.1 * high if math.isfinite(high) else 1e-3
    if math.isinf(high):
        return 4.0 * low
    return math.sqrt(low * high)
