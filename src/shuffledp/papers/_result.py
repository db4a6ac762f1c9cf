"""What a reproduced figure is: numbers to draw, tables to read, and four texts.

A curve's ``kind`` says how far it can be trusted:

    certified   an enclosure by this library's accountant: ``y`` is the upper end, ``lower`` the other
    sound       a valid bound of the literature
    unsound     as published; it can be below the truth
    published   numbers that the paper prints
    measured    a simulation, fixed seed; ``lower`` is one standard deviation
    check       a simulation that is only compared with a certified curve
    guide       a line for the eye
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from shuffledp.accounting.mechanism import Mechanism

KINDS = ("certified", "sound", "unsound", "published", "measured", "check", "guide")


@dataclass(frozen=True)
class Curve:
    """Values ``y`` at ``x``; nan where there is none."""

    name: str
    kind: str
    x: Any
    y: Any
    lower: Any = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {self.kind!r}")
        for part in ("x", "y", "lower"):
            if getattr(self, part) is not None:
                object.__setattr__(self, part, np.asarray(getattr(self, part), dtype=np.float64))
        if self.x.shape != self.y.shape or self.x.ndim != 1:
            raise ValueError(f"x and y must be equally long, got {self.x.shape}, {self.y.shape}")


@dataclass(frozen=True)
class Panel:
    """Curves on the same axes. ``floor`` cuts a logarithmic y axis from below."""

    title: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    x_log: bool = False
    y_log: bool = True
    floor: float = 0.0
    top: float | None = None


@dataclass(frozen=True)
class Map:
    """A table of numbers, drawn as colours. ``extent`` is left, right, bottom, top."""

    title: str
    x_label: str
    y_label: str
    values: Any
    extent: tuple[float, float, float, float]
    scale: str
    low: float
    high: float


@dataclass(frozen=True)
class Table:
    """Rows of text for the page."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Result:
    """One reproduced figure or table."""

    shows: str
    computed: str
    difference: str
    why: str
    panels: tuple[Panel | Map, ...]
    tables: tuple[Table, ...] = ()
    missing: str = ""
    """What of the original cannot be reproduced, and for lack of what."""


@dataclass(frozen=True)
class Setting:
    """How to run: on coarse grids or in full, and with which check-in data."""

    quick: bool = False
    data: Path | None = None

    def choose(self, full: Any, coarse: Any) -> Any:
        return coarse if self.quick else full


@dataclass(frozen=True)
class Item:
    """A figure or table that can be asked for by name."""

    name: str
    title: str
    run: Callable[[Setting], Result] = field(repr=False)
    uses_data: bool = False


def upper_curve(name: str, mechanism: Mechanism, epsilon: Any) -> Curve:
    """The upper end of delta alone: where an analysis is looser than another that is shown."""
    upper = mechanism.upper_delta(epsilon=np.asarray(epsilon, dtype=np.float64))
    return Curve(name, "certified", epsilon, upper)


def delta_curve(name: str, mechanism: Mechanism, epsilon: Any) -> Curve:
    """delta on a grid of epsilon, enclosed."""
    bound = mechanism.delta(epsilon=np.asarray(epsilon, dtype=np.float64))
    return Curve(name, "certified", epsilon, bound.upper, bound.lower)


def epsilon_curve(name: str, x: Any, mechanisms: Sequence[Mechanism], delta: float) -> Curve:
    """epsilon at delta of one mechanism for each x, enclosed."""
    bounds = [mechanism.epsilon(delta=delta) for mechanism in mechanisms]
    ends = [(bound.upper, bound.lower) for bound in bounds]
    upper, lower = zip(*ends, strict=True)
    return Curve(name, "certified", x, upper, lower)


def evaluated(name: str, kind: str, x: Any, function: Callable[[float], float]) -> Curve:
    """A curve from a function of one number."""
    return Curve(name, kind, x, [function(float(each)) for each in x])
