"""What ``shuffledp sum`` and ``shuffledp mean`` share: everything but the protocol's name."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from shuffledp.cli.collecting import (
    collect_or_plan,
    collecting_options,
    column_option,
    data_argument,
)
from shuffledp.cli.command import option, stacked
from shuffledp.cli.numbers import Real, Whole
from shuffledp.cli.randomizers import described

if TYPE_CHECKING:
    from shuffledp.collecting.number import NumberProtocol

GROUP = "Question"
FINITE = Real(low=-math.inf)

number_options = stacked(
    data_argument,
    column_option,
    option("--low", type=FINITE, required=True, metavar="X", help="Least number.", group=GROUP),
    option("--high", type=FINITE, required=True, metavar="X", help="Largest.", group=GROUP),
    option(
        "--outside",
        type=click.Choice(["error", "clip"]),
        default="error",
        metavar="WHAT",
        help="Numbers beyond an end: error, or clip to that end.  [default: error]",
        group=GROUP,
    ),
    option(
        "--levels",
        type=Whole(most=2**14),
        metavar="N",
        help="Grid steps from low to high.  [default: the best number]",
        group=GROUP,
    ),
    collecting_options,
)


def run_number(kind: str, low: float, high: float, given: dict[str, Any]) -> None:
    """The command for ``kind`` of ``shuffledp.collecting.number``."""
    settings = {name: given.pop(name) for name in ("outside", "levels")}

    def make(**plan: Any) -> NumberProtocol:
        from shuffledp.collecting import number as numbers
        from shuffledp.randomizers._grid import interval

        ends = described(lambda: interval(low, high))
        protocol: NumberProtocol = getattr(numbers, kind)(*ends, **settings, **plan)
        return protocol

    collect_or_plan(make, given)
