"""Where a curve is evaluated: evenly spaced numbers, or whole numbers evenly spaced in the logarithm.

>>> whole_numbers(1, 100, 5)
[1, 3, 10, 32, 100]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from shuffledp._digits import written

if TYPE_CHECKING:
    from shuffledp.accounting.mechanism import Mechanism

RANGES: dict[str, tuple[float, float]] = {
    "n": (1e3, 1e7),
    "rounds": (1, 1000),
    "epsilon0": (0.5, 6.0),
}
"""Where a curve begins and ends unless the user says so."""
WHOLE = ("n", "rounds")


def grid(against: str, start: float | None, stop: float | None, points: int) -> list[float]:
    """The values of the swept parameter."""
    usual = RANGES[against]
    low = usual[0] if start is None else start
    high = usual[1] if stop is None else stop
    check_ends(low, high)
    if against in WHOLE:
        return [*whole_numbers(_whole(low), _whole(high), points)]
    return numbers(low, high, points)


def epsilon_grid(
    mechanism: Mechanism, start: float | None, stop: float | None, points: int
) -> list[float]:
    """By default from 0 to where delta has fallen to 1e-12."""
    from shuffledp.plotting._curves import epsilon_grid as usual

    low = start or 0.0
    high = float(usual(mechanism)[-1]) if stop is None else stop
    check_ends(low, high)
    return numbers(low, high, points)


def check_ends(low: float, high: float) -> None:
    """They are in order."""
    if not low < high:
        raise click.UsageError(
            f"--from must be less than --to, got {written(low)} and {written(high)}."
        )


def _whole(value: float) -> int:
    if value < 1 or value % 1:
        raise click.UsageError(f"--from and --to must be whole numbers here, got {written(value)}.")
    return int(value)


def numbers(low: float, high: float, points: int) -> list[float]:
    """Evenly spaced, both ends included."""
    step = (high - low) / (points - 1)
    return [low + step * i for i in range(points - 1)] + [high]


def whole_numbers(low: int, high: int, points: int) -> list[int]:
    """Evenly spaced in the logarithm, both ends included, none twice."""
    ratio = (high / low) ** (1.0 / (points - 1))
    inner = (round(low * ratio**i) for i in range(1, points - 1))
    return sorted({low, high, *(min(max(value, low), high) for value in inner)})
