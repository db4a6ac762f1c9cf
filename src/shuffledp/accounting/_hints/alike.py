"""Laws of many values by fewer: values that are nearly equal put together. For guesses only."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shuffledp._certified.rounding import Floats, positive

_MANY = 160  # speed: values, of which fewer are as good
_STEP = 0.1  # speed: of a value, or of the mean size of all


class Alike:
    """Columns of rows ``x`` of values, of weights ``w``, that are alike in the first and in the last row (as
    X is a line in alpha, in all of them)."""

    def __init__(self, x: Floats, w: Floats) -> None:
        ends = np.unique([0, len(x) - 1])
        scale = positive((w[ends] * np.abs(x[ends])).sum(axis=1, keepdims=True))
        cells = np.floor(np.arcsinh(x[ends] / scale) / _STEP)
        self.order: npt.NDArray[np.intp] = np.lexsort(cells)
        cells = cells[:, self.order]
        apart = (cells[:, 1:] != cells[:, :-1]).any(axis=0)
        self.starts = np.flatnonzero(np.append(True, apart))

    @classmethod
    def of(cls, x: Floats, w: Floats) -> Alike | None:
        """None where values are few, or no row is there."""
        return cls(x, w) if x.shape[1] > _MANY and len(x) else None

    def sums(self, part: Floats) -> Floats:
        return np.asarray(np.add.reduceat(part[:, self.order], self.starts, axis=1))

    def largest(self, x: Floats) -> Floats:
        return np.asarray(np.maximum.reduceat(x[:, self.order], self.starts, axis=1))

    def some(self, x: Floats) -> Floats:
        """A value of each kind."""
        ends = np.append(self.starts[1:], self.order.size)
        return np.asarray(x[:, self.order[(self.starts + ends) // 2]])


def merged(x: Floats, w: Any) -> tuple[Floats, Floats]:
    """Means of values that are alike, and their weights."""
    w = np.broadcast_to(w, x.shape)
    if (kinds := Alike.of(x, w)) is None:
        return x, w
    weight = kinds.sums(w)
    return kinds.sums(w * x) / positive(weight), weight


def merged_upward(x: Floats, w: Any) -> tuple[Floats, Floats]:
    """Largest ones of values that are alike, and their weights."""
    w = np.broadcast_to(w, x.shape)
    if (kinds := Alike.of(x, w)) is None:
        return x, w
    return kinds.largest(x), kinds.sums(w)


def heaviest(weights: Floats) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Places of the two largest weights of every row (or of one twice, where there are no more)."""
    if weights.shape[1] <= _MANY:
        order = np.argsort(weights, axis=1)
        return order[:, -1], order[:, max(-2, -weights.shape[1])]
    first, rest = weights.argmax(axis=1), weights.copy()
    rest[np.arange(len(rest)), first] = -np.inf
    return first, rest.argmax(axis=1)
