"""Numbers for people: as short as they can be written, or rounded outward; and as people write them.

A shown upper end, read back, is never below the certified one, a shown lower end never above it.

>>> rounded_up(0.12345678), rounded_down(0.12345678)
('0.12346', '0.12345')
>>> written(1e-8), written(1_000_000), written(0.25), written(123_456_789)
('1e-8', '1e6', '0.25', '123456789')
>>> [int(as_typed(text)) for text in ("1200000", "1_200_000", "1,200,000", "1.2e6", "1.2M", "1200k")]
[1200000, 1200000, 1200000, 1200000, 1200000, 1200000]
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

DIGITS = 5
_TYPED = re.compile(
    r"\s*([+-]?(?:\d+(?:_\d+)*|\d{1,3}(?:,\d{3})+)?(?:\.\d*)?(?:e[+-]?\d{1,6})?)\s*([kmg%]?)\s*",
    re.ASCII | re.I,
)
_UNITS = {
    "": Decimal(1),
    "k": Decimal(1000),
    "m": Decimal(10) ** 6,
    "g": Decimal(10) ** 9,
    "%": Decimal("0.01"),
}


def as_typed(value: Any) -> Decimal:
    """The exact number that somebody typed: 1e6, 1_000_000, 1,000,000, 1M, 90%. Anything else is nan."""
    found = _TYPED.fullmatch(str(value))
    if found is None or not any(c.isdigit() for c in found[1].partition("e")[0]):
        return Decimal("nan")
    return Decimal(found[1].replace(",", "").replace("_", "")) * _UNITS[found[2].lower()]


def rounded_up(value: float, digits: int = DIGITS) -> str:
    """At least ``value``, in so many significant digits."""
    return _rounded(value, digits, ROUND_CEILING)


def rounded_down(value: float, digits: int = DIGITS) -> str:
    """At most ``value``, in so many significant digits."""
    return _rounded(value, digits, ROUND_FLOOR)


def written(value: float) -> str:
    """The number itself, nothing rounded away, in few characters."""
    short = f"{value:.5g}"
    return _plain_exponent(short if float(short) == value else repr(value))


def _rounded(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value):
        return f"{value:g}"
    # The shortest decimal that reads as this float, so that 0.2 is shown as 0.2. Reading is
    # monotone: the shown text reads as a float on the right side of the value.
    shown = Context(digits, rounding).plus(Decimal(repr(float(value))))
    return _plain_exponent(f"{float(shown):.{digits}g}")


def _plain_exponent(text: str) -> str:
    """1e-8 for 1e-08, 1e6 for 1e+06."""
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else text
