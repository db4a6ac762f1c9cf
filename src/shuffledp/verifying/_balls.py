"""Numbers of a certificate as balls: what is exact, and what is known up to a few units."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce
from typing import Any

from flint import arb

UNITS = 8
"""A mass of a law is a double within so many units (2^-53, relative) of the true one."""


def exact(value: Any) -> arb:
    """A finite number, as it is."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"a number of a certificate must be finite, got {value!r}")
    return arb(number)


def near(value: Any) -> arb:
    """All numbers within UNITS of it."""
    centre = exact(value)
    return centre + arb(0, 1) * abs(centre) * UNITS * arb(2) ** -53


def probability(value: Any) -> arb:
    """A mass, up to UNITS."""
    if not 0.0 <= float(value) <= 1.0 + 1e-9:
        raise ValueError(f"a mass of a certificate must be in [0, 1], got {value!r}")
    return near(value)


def positive(value: arb) -> arb:
    """max(value, 0)."""
    return value.max(arb(0))


def max_of(values: Iterable[arb]) -> arb:
    """The largest of some that are not negative."""
    return reduce(arb.max, values, arb(0))
