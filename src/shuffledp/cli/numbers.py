"""Numbers as people write them: 1000000, 1_000_000, 1e6; whole numbers are read exactly.

>>> WHOLE.convert("1e6", None, None), WHOLE.convert("1_000_000", None, None)
(1000000, 1000000)
"""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:  # generic for the type checker, but not at run time before click 8.4
    IntegerType = click.ParamType[int]
    FloatType = click.ParamType[float]
else:
    IntegerType = FloatType = click.ParamType

MAX_COUNT = 2**53


class Whole(IntegerType):
    """A whole number in [least, most]."""

    name = "whole"

    def __init__(self, least: int = 1, most: int = MAX_COUNT) -> None:
        self.least, self.most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = Decimal(value)
        except (InvalidOperation, TypeError, ValueError):
            number = Decimal("nan")
        # The range first: the integer of 1e999999999 would not fit anywhere.
        if number.is_nan() or not self.least <= number <= self.most or number % 1 != 0:
            self.fail(f"{value!r} is not a whole number in [{self.least}, {self.most}].", param)
        return int(number)


class Real(FloatType):
    """A number in [low, high]; ``positive`` leaves out a lower end of zero."""

    name = "number"

    def __init__(self, low: float = 0.0, high: float = math.inf, positive: bool = False) -> None:
        self.low, self.high, self.positive = low, high, positive

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        inside = self.low <= number <= self.high and math.isfinite(number)
        if not inside or (self.positive and number == 0.0):
            self.fail(f"{value!r} is not a number in {self._range()}.", param)
        return number

    def _range(self) -> str:
        left = "(" if self.positive else "["
        right = "inf)" if math.isinf(self.high) else f"{self.high:g}]"
        return f"{left}{self.low:g}, {right}"


WHOLE = Whole()
EPSILON0 = Real(high=300.0)
PROBABILITY = Real(high=1.0)
POSITIVE_PROBABILITY = Real(high=1.0, positive=True)
EPSILON = Real()
POSITIVE = Real(positive=True)
TOLERANCE = Real(low=1e-7, high=0.5)
