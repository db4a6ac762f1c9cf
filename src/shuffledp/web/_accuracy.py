"""How far off the survey will be: the error beside the epsilon.

Errors are those of the randomization, for the people who report; 95 of 100 surveys are within the margin
(a normal approximation, for the worst shares or values).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from shuffledp._digits import rounded_up
from shuffledp.collecting._intervals import quantile
from shuffledp.randomizers.frequency import two_probabilities

CONFIDENCE = 0.95
_STEPS = 8  # values tried between two grid points


def variance(randomizer: Any) -> float | None:
    """Of what one report says about a share, a mean (of the range), or a mean vector; None: not known."""
    known = two_probabilities(randomizer)
    if known is not None:
        p, q = known
        return max(p * (1.0 - p), q * (1.0 - q)) / (p - q) ** 2 if p > q else math.inf
    if hasattr(randomizer, "levels"):
        values = np.linspace(randomizer.low, randomizer.high, _STEPS * randomizer.levels + 1)
        return float(np.max(randomizer.variance(values)) / (randomizer.high - randomizer.low) ** 2)
    if hasattr(randomizer, "second_moment"):
        return float(randomizer.variance())
    return None


def margin(randomizer: Any, n: int) -> float | None:
    """Of 95 in 100 surveys of n reports; for vectors the typical length of the error."""
    known = variance(randomizer)
    if known is None or n < 1:
        return None
    scale = 1.0 if hasattr(randomizer, "second_moment") else quantile(CONFIDENCE)
    return scale * math.sqrt(known / n)


def sentence(randomizer: Any, n: int) -> tuple[str, str]:
    """(the error in a word, what it means)."""
    off = margin(randomizer, n)
    if off is None:
        return "", "Nothing is known of the error of a randomizer that is known by its local epsilon alone."
    if math.isinf(off):
        return "", "Reports do not depend on the answers: the survey learns nothing."
    if hasattr(randomizer, "second_moment"):
        return f"{rounded_up(off, 2)}", (
            f"The mean of {n:,} vectors of length at most {rounded_up(randomizer.longest, 3)} is estimated "
            f"in each round with an error of length {rounded_up(off, 2)} (root mean square)."
        )
    if two_probabilities(randomizer) is None:
        return f"± {rounded_up(100.0 * off, 2)} %", (
            f"The mean of {n:,} numbers is estimated in each round to within {rounded_up(100.0 * off, 2)} % "
            "of their range, 95 times in 100."
        )
    return f"± {rounded_up(100.0 * off, 2)} points", (
        f"Each share is estimated in each round to within {rounded_up(100.0 * off, 2)} percentage points, 95 "
        f"times in 100, from {n:,} reports."
    )


def least_epsilon0(make: Callable[[float], Any], n: int, wanted: float, most: float) -> float | None:
    """The smallest local epsilon with a margin of at most ``wanted``; None if even ``most`` misses it."""

    def good(epsilon0: float) -> bool:
        off = margin(make(epsilon0), n)
        return off is not None and off <= wanted

    if not good(most):
        return None
    low, high = 0.0, most
    while high - low > 1e-4 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if good(middle) else (middle, high)
    return high
