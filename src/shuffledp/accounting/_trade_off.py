"""The trade-off curve (f-DP) of a privacy curve, enclosed.

f(a): the least probability of missing one dataset among tests that accuse the other wrongly with
probability at most a (Dong, Roth, Su 2022). For neighbours in both directions and the curve delta(epsilon),

    f(a) = max over epsilon >= 0 of  max(0, 1 - delta - e^epsilon a, e^-epsilon (1 - delta - a)).

From below: any epsilon and an upper end of delta will do. From above: between two neighbouring points delta
is at least its lower end at the right one, and beyond the last at least what is seen at every epsilon.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shuffledp._certified.rounding import CALL, LARGEST_EXPONENT, Floats, down, gamma
from shuffledp.accounting._ends.lower import seen_at_once
from shuffledp.bound import Bound

if TYPE_CHECKING:
    from shuffledp.accounting.mechanism import Mechanism

_POINTS = 96  # speed
_FAR, _FARTHEST = 5.0, 50.0  # speed
_NO_PRIVACY, _ABOUT, _LEAST = 0.999, 0.01, 0.005  # speed
_SMALLEST = 1e-9  # speed: the curve is followed down to this delta


def trade_off(mechanism: Mechanism, a: Floats, tolerance: float) -> Bound:
    """(lower, upper) on f at each type I error in the array ``a``."""
    epsilon = _points(mechanism)
    delta = mechanism.delta(epsilon=epsilon, tolerance=tolerance)
    below = _value(epsilon, np.asarray(delta.upper), a)
    # In each cell its smallest delta, and its left end, where both forms are largest; the last is open.
    above = _value(epsilon, np.append(np.asarray(delta.lower)[1:], seen_at_once(mechanism._rounds())), a)
    doubt = gamma(4 * CALL)
    lower = np.maximum(down(np.maximum(below.max(axis=0), 0.0), operations=4 * CALL) - doubt, 0.0)
    upper = np.minimum(above.max(axis=0) + doubt, 1.0 - a)
    return Bound.of(lower, np.maximum(upper, lower), a)


def _points(mechanism: Mechanism) -> Floats:
    """Where to look, evenly as far as the curve is followed. Where that is far, from where delta is no longer
    about 1, and more densely at small ones; beyond a pure epsilon delta is nothing."""
    reach = mechanism.upper_epsilon(delta=_SMALLEST)
    if reach <= _FAR:
        return np.linspace(0.0, reach or 1.0, _POINTS)
    last = min(reach, _FARTHEST)
    first = mechanism.upper_epsilon(delta=_NO_PRIVACY, tolerance=_ABOUT)
    pure = mechanism.upper_epsilon(delta=0.0)
    points = np.geomspace(min(first + _LEAST, last), last, 2 * _POINTS)
    return np.unique(np.append(points, [0.0, pure] if pure <= LARGEST_EXPONENT else [0.0]))


def _value(epsilon: Floats, delta: Floats, a: Floats) -> Floats:
    """Rows: points of the curve; columns: type I errors."""
    kept = 1.0 - delta[:, None]
    return np.asarray(np.maximum(kept - np.exp(epsilon)[:, None] * a, np.exp(-epsilon)[:, None] * (kept - a)))
