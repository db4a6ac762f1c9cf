"""Exponentials and logarithms that round to a known side, for whole-number thresholds.

>>> low, high = exponential(1.0)
>>> low < high and float(low) == float(high) == 2.718281828459045
True
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

from shuffledp._certified.rounding import CALL, up
from shuffledp._randomness.uniform import WORD

_CONTEXT = Context(prec=60)
_SLACK = Fraction(1, 10**58)


def exponential(exponent: float | Fraction) -> tuple[Fraction, Fraction]:
    """(low, high) with low < e^exponent < high, apart by less than 3e-58 of it; |exponent| <= 1000."""
    if isinstance(exponent, Fraction):
        # The quotient's error, 1e-60 of at most 1000, moves e^x by at most 1e-57 of it.
        argument = _CONTEXT.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
        slack = 1000 * _SLACK
    else:
        argument, slack = Decimal(exponent), _SLACK
    value = Fraction(_CONTEXT.exp(argument))
    return value * (1 - slack), value * (1 + slack)


def log_rounded_up(ratio: Fraction) -> float:
    """At least ln(ratio), by less than three parts in 10^15, for a ratio >= 1."""
    return up(math.log1p(float(ratio - 1)), operations=CALL + 2, tiny=0.0)


def weight_of_odds(odds: Fraction) -> int:
    """The largest whole w with w / (2^64 - w) <= odds."""
    return math.floor(WORD * odds / (1 + odds))


def truth_weight(epsilon0: float) -> int:
    """The weight of a truthful bit: randomized response with odds of at most e^epsilon0."""
    low, _ = exponential(epsilon0)
    return weight_of_odds(low)


def log_odds(weight: int) -> float:
    """log(weight / (2^64 - weight)) for a weight of at least 2^63, rounded up."""
    return log_rounded_up(Fraction(weight, WORD - weight))
