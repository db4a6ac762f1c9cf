"""What a reproduced figure is: numbers to draw, tables to read, and numbers for the prose of its page.

A curve's ``kind`` says how far it can be trusted:

    certified   an enclosure by this library's accountant: ``y`` is the upper end, ``lower`` the other
    sound       a valid bound of the literature
    lower       a valid lower bound: no guarantee
    unsound     as published; it can be below the truth, even where it is not in the picture
    published   numbers that the paper prints
    stored      numbers that its authors keep in a public repository, or that a picture there draws
    measured    a simulation, fixed seed (``lower`` is one standard deviation), or data as they are
    check       a simulation that is only compared with a certified curve
    guide       a line for the eye
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from shuffledp.accounting.mechanism import Mechanism, epsilon_of_each
from shuffledp.errors import OutsideRangeError
from shuffledp.papers import _template
from shuffledp.plotting._style import LABELS, WIDE

KINDS = ("certified", "sound", "lower", "unsound", "published", "stored", "measured", "check", "guide")


@dataclass(frozen=True)
class Curve:
    """Values ``y`` at ``x``; nan where there is none. ``hue`` names its colour (see ``_drawing``),
    ``line`` its dashes where the kind's own would not do."""

    name: str
    kind: str
    x: Any
    y: Any
    lower: Any = None
    hue: str = ""
    line: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {self.kind!r}")
        for part in ("x", "y", "lower"):
            if getattr(self, part) is not None:
                object.__setattr__(self, part, np.asarray(getattr(self, part), dtype=np.float64))
        if self.x.shape != self.y.shape or self.x.ndim != 1:
            raise ValueError(f"x and y must be equally long, got {self.x.shape}, {self.y.shape}")

    @classmethod
    def delta(cls, name: str, mechanism: Mechanism, epsilon: Any, hue: str = "") -> Curve:
        """delta on a grid of epsilon, enclosed."""
        bound = mechanism.delta(epsilon=epsilon)
        return cls(name, "certified", epsilon, bound.upper, bound.lower, hue)

    @classmethod
    def upper(
        cls,
        name: str,
        mechanism: Mechanism,
        epsilon: Any,
        kind: str = "certified",
        hue: str = "",
        line: str = "",
    ) -> Curve:
        """The upper end of delta alone: where an analysis is looser than another that is shown."""
        return cls(name, kind, epsilon, mechanism.upper_delta(epsilon=epsilon), None, hue, line)

    @classmethod
    def epsilon(
        cls, name: str, x: Any, mechanisms: Sequence[Mechanism], delta: float, hue: str = ""
    ) -> Curve:
        """epsilon at delta of one mechanism for each x, enclosed."""
        bounds = epsilon_of_each(mechanisms, delta=delta)
        return cls(name, "certified", x, bounds.upper, bounds.lower, hue)

    def over(self, other: Curve) -> Curve:
        """Its ratio to another, which is read off between its points on a logarithmic scale."""
        inside = (self.x >= other.x.min()) & (self.x <= other.x.max())
        with np.errstate(divide="ignore", invalid="ignore"):
            truth = np.exp(np.interp(self.x, other.x, np.log(other.y)))
            return replace(self, y=np.where(inside, self.y / truth, np.nan), lower=None)

    @classmethod
    def each(
        cls,
        kind: str,
        x: Any,
        functions: Mapping[str, Callable[[Any], float]],
        hues: Sequence[str],
        lines: Sequence[str] = ("",),
    ) -> list[Curve]:
        """A curve for each named function of one number; nan where a theorem says nothing."""

        def value(function: Callable[[Any], float], point: float) -> float:
            try:
                return function(point)
            except OutsideRangeError:
                return math.nan

        points = np.asarray(x).tolist()
        return [
            cls(name, kind, x, [value(function, point) for point in points], None, hue, lines[i % len(lines)])
            for i, ((name, function), hue) in enumerate(zip(functions.items(), hues, strict=True))
        ]


@dataclass(frozen=True)
class Panel:
    """Curves on the same axes. ``floor`` cuts the y axis from below."""

    title: str
    curves: Sequence[Curve]
    x_label: str = LABELS["epsilon"]
    y_label: str = LABELS["delta"]
    x_log: bool = False
    y_log: bool = True
    floor: float = 0.0
    marks: Mapping[float, str] = field(default_factory=dict)
    """Words at an x, where something needs them."""

    def ratio(self, title: str, pairs: Sequence[tuple[Curve, Curve]], what: str) -> Panel:
        """Below the same x axis, each first curve over its second; one is where they agree."""
        curves = [first.over(second) for first, second in pairs]
        at = np.concatenate([curve.x for curve in curves])
        one = Curve("1", "guide", [at.min(), at.max()], [1.0, 1.0])
        wide = max(float(np.nanmax(curve.y) / np.nanmin(curve.y)) for curve in curves) > WIDE
        return Panel(title, [*curves, one], self.x_label, what, self.x_log, y_log=wide)

    @property
    def last(self) -> dict[str, float]:
        """The last value of every curve."""
        return {curve.name: float(curve.y[-1]) for curve in self.curves}


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
    aspect: float = 0.0
    """Height of a cell over its width; zero fills the panel."""


@dataclass(frozen=True)
class Table:
    """Rows of text for the page."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Result:
    """One reproduced figure or table; ``numbers`` are those that its page's template names."""

    panels: Sequence[Panel | Map]
    numbers: Mapping[str, Any] = field(default_factory=dict)
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Setting:
    """How to run: on coarse grids or in full, with which check-in data, by which version."""

    quick: bool = False
    data: Path | None = None
    version: str = ""

    def choose(self, full: Any, coarse: Any) -> Any:
        return coarse if self.quick else full


@dataclass(frozen=True)
class Item:
    """A figure or table that can be asked for by name; ``template`` is its page."""

    name: str
    template: str = field(repr=False)
    run: Callable[[Setting], Result] = field(repr=False)
    uses_data: bool = False

    @property
    def title(self) -> str:
        return self.template.partition("\n")[0].removeprefix("# ")


def item(run: Callable[[Setting], Result], uses_data: bool = False) -> Item:
    """A decorator: ``figure_4`` in the folder ``koskela_2023`` is the item koskela-2023-figure-4, and
    ``figure_4.md`` of that folder its page."""
    package = run.__module__.rpartition(".")[0]
    name = f"{package.rpartition('.')[2]}-{run.__name__}".replace("_", "-")
    return Item(name, _template.read(package, f"{run.__name__}.md"), run, uses_data)


def whole_numbers(start: int, stop: int, points: int) -> list[int]:
    """Whole numbers, evenly spaced in their logarithms.

    >>> whole_numbers(1, 1000, 4)
    [1, 10, 100, 1000]
    """
    found: list[int] = np.unique(np.geomspace(start, stop, points).round().astype(int)).tolist()
    return found


def power_of_ten(n: int) -> str:
    """
    >>> power_of_ten(1000)
    '10³'
    """
    return "10" + "⁰¹²³⁴⁵⁶⁷⁸⁹"[len(str(n)) - 1]
