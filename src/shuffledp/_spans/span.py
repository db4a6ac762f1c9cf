"""Rows that span a randomizer: few laws of which the reports of all inputs are mixtures, type by type.

Inputs may be a whole interval and reports a whole line. The crowd theorem (T16) wants finitely many laws. It
is enough (docs/proofs/crowd.md, section 9) that reports are sorted into types k, that the masses of the types
are mixtures of rows S, whatever the input, up to a factor 1 +- missed, and that inside a type no input's
report is much more likely than another's. Of any pair and any third input X is then below mixtures of the
laws of

    X = (own - alpha other)/clone  +-  spread max(own, alpha other)/clone,      each with probability clone/2,
    own = (1 + missed) S_i,    other = (1 - missed) S_j,    clone = (1 - missed) S_l,

in the increasing convex order, for all rows i, j, l and every alpha; what clones lack of one hides nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from shuffledp._certified.rounding import CALL, Floats, down, gamma, up

Places = npt.NDArray[np.intp]

_SLACK = 1e-6  # what a check lets pass: it finds mistakes, and proves nothing
_UNITS = 4  # soundness: operations of an entry
_ROUNDED = 2.0**-44  # soundness: far more than sums of rows are off by


class Sides(NamedTuple):
    """Rows of own, other and clone, with columns for what hides nothing, and the spread of the columns."""

    own: Floats
    other: Floats
    clone: Floats
    spread: Floats


@dataclass(frozen=True, eq=False, repr=False)
class Span:
    """``rows``: masses of the types. Every input x has weights with which their mixture is R_x up to a factor
    between 1 - ``missed`` and 1 + ``missed``, type by type; but for a mass of ``lost`` at most, of which a
    report is taken to be another one. Given the type, let c_x be the density of a report on x: of any three
    inputs c_x / c_z and (c_x - c_y) / c_z differ from 1 and from 0 by ``spread`` at most."""

    rows: Floats
    spread: Floats
    missed: Floats
    lost: float = 0.0

    def __post_init__(self) -> None:
        for name in ("rows", "spread", "missed"):
            part = np.array(getattr(self, name), dtype=np.float64)
            part.setflags(write=False)
            object.__setattr__(self, name, part)
        types = (self.rows.shape[1],) if self.rows.ndim == 2 else None
        if not self.spread.shape == self.missed.shape == types:
            raise ValueError(f"rows, spread and missed must have one entry per type, got {self!r}")
        if not (self.rows > 0.0).all() or not (np.abs(self.rows.sum(axis=1) - 1.0) <= _SLACK).all():
            raise ValueError("rows must be positive, and sum to 1")
        if not ((self.spread >= 0.0) & (self.spread < 1.0)).all():
            raise ValueError(f"spread must be in [0, 1), got {self.spread!r}")
        if not ((self.missed > 0.0) & (self.missed < 1.0)).all() or not 0.0 <= self.lost < 1.0:
            raise ValueError(f"missed must be in (0, 1) and lost in [0, 1), got {self!r}")

    @cached_property
    def sides(self) -> Sides:
        """Of all rows. What hides nothing is half before and half behind all types, so that mirror images of
        types, the first for the last, are mirror images of columns."""
        own, other = (
            up(self.rows * (1.0 + self.missed), _UNITS),
            down(self.rows * (1.0 - self.missed), _UNITS),
        )
        # A little more than what is left: of a law of X a larger measure has the larger sum. Mirror images,
        # whose sums are rounded in other ways, have the same.
        little = gamma(2 * len(self.missed) + 8)
        rest = np.maximum(1.0 - other.sum(axis=1), 0.0) + little
        rest = np.where(np.abs(rest - rest[::-1]) <= little, np.maximum(rest, rest[::-1]), rest)
        aside, half = np.zeros((len(rest), 1)), 0.5 * rest[:, None]
        u, v, c = (
            np.hstack([more, part, more]) for part, more in ((own, aside), (other, aside), (other, half))
        )
        return Sides(u, v, c, np.pad(self.spread, 1))

    def laws(self, own: Places, other: Places, clone: Places, alpha: float) -> tuple[Floats, Floats, Floats]:
        """Gap, other and clone of triples of rows. Types with a spread are two columns: the larger one of own
        and alpha other is moved, up and down; each is rounded so that X grows."""
        (u, v, c), types = self._plain, self._types
        gap, less, hidden = [u[own] - v[other]], [v[other]], [c[clone]]
        u, v, c = (part[place] for part, place in zip(types[0], (own, other, clone), strict=True))
        moved = u >= alpha * v
        for more, fewer in types[1]:
            gap.append(np.where(moved, more[own] - 0.5 * v, 0.5 * u - fewer[other]))
            less.append(np.where(moved, 0.5 * v, fewer[other]))
            hidden.append(0.5 * c)
        parts = (np.concatenate(part, axis=1) for part in (gap, less, hidden))
        return next(parts), next(parts), next(parts)

    @cached_property
    def _plain(self) -> tuple[Floats, Floats, Floats]:
        """Own, other and clone of types without a spread."""
        own, other, clone, spread = self.sides
        return own[:, spread == 0.0], other[:, spread == 0.0], clone[:, spread == 0.0]

    @cached_property
    def _types(self) -> tuple[tuple[Floats, Floats, Floats], list[tuple[Floats, Floats]]]:
        """The same of the others; and halves of own and other, moved so that X is large, and small."""
        own, other, clone, spread = self.sides
        u, v, c = (part[:, spread > 0.0] for part in (own, other, clone))
        wide = [sign * spread[spread > 0.0] for sign in (1.0, -1.0)]
        halves = [(up(0.5 * u * (1.0 + by), _UNITS), down(0.5 * v * (1.0 - by), _UNITS)) for by in wide]
        return (u, v, c), halves

    @cached_property
    def pooled(self) -> tuple[Floats, Floats, Floats]:
        """Two rows of which a report of any input is between mixtures, and what all inputs have in common: of
        types with a spread there are two."""
        spread = np.concatenate([self.spread, -self.spread[self.spread > 0.0]])
        types = np.concatenate([np.arange(self.spread.size), np.flatnonzero(self.spread)])
        share = np.where(self.spread > 0.0, 0.5, 1.0)[types]
        rows, missed = self.rows[:, types] * share, self.missed[types]
        high = up(rows * ((1.0 + spread) * (1.0 + missed)), 2 * _UNITS)
        low = down(rows * ((1.0 + spread) * (1.0 - missed)), 2 * _UNITS)
        common = (rows * ((1.0 - np.abs(spread)) * (1.0 - missed))).min(axis=0)
        return high, low, down(common, 2 * _UNITS)

    @cached_property
    def excess(self) -> float:
        """How much more than 1 - alpha the mean of X may be, over 1 + alpha, rounded up."""
        own, other = self.sides.own, self.sides.other
        off = max(float(own.sum(axis=1).max()) - 1.0, 1.0 - float(other.sum(axis=1).min()))
        return up(max(off, 0.0) + _ROUNDED, own.shape[1])

    @cached_property
    def epsilon0(self) -> float:
        """No own, other or clone is more than e^epsilon0 times another of the same type, anywhere in it."""
        high = self.rows.max(axis=0) * ((1.0 + self.missed) * (1.0 + self.spread))
        low = self.rows.min(axis=0) * ((1.0 - self.missed) * (1.0 - self.spread))
        return up(math.log(float((high / low).max())) + gamma(8 * _UNITS), operations=2 * CALL, tiny=0.0)

    def __repr__(self) -> str:
        return f"Span({' x '.join(map(str, self.rows.shape))})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Span):
            return NotImplemented
        return self._value == other._value

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self._value)

    @cached_property
    def _value(self) -> tuple[bytes, ...]:
        parts = self.rows, self.spread, self.missed, np.array([self.lost, *self.rows.shape])
        return tuple(part.tobytes() for part in parts)
