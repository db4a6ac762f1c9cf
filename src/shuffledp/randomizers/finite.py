"""Any randomizer with finitely many inputs and outputs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from shuffledp import _validate


@dataclass(frozen=True, init=False, eq=False)
class FiniteRandomizer:
    """Input x is reported as y with probability ``matrix[x][y]`` (rows sum to one).

    >>> FiniteRandomizer([[0.75, 0.25], [0.25, 0.75]]).gamma
    0.5
    """

    matrix: npt.NDArray[np.float64]

    def __init__(self, matrix: Any) -> None:
        checked = _validate.row_stochastic("matrix", matrix)
        checked.setflags(write=False)
        object.__setattr__(self, "matrix", checked)

    def __repr__(self) -> str:
        rows, columns = self.matrix.shape
        return f"FiniteRandomizer({rows} x {columns} matrix, epsilon0={self.epsilon0:.6g})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FiniteRandomizer):
            return NotImplemented
        return np.array_equal(self.matrix, other.matrix)

    def __hash__(self) -> int:
        return hash((self.matrix.shape, self.matrix.tobytes()))

    @cached_property
    def epsilon0(self) -> float:
        """The tight local epsilon: the largest log-ratio in a column (inf if a zero meets a non-zero)."""
        top, bottom = self.matrix.max(axis=0), self.matrix.min(axis=0)
        if np.any((bottom == 0.0) & (top > 0.0)):
            return math.inf
        used = top > 0.0
        excess = float(((top - bottom)[used] / bottom[used]).max())
        # A few units up: the (normalised) matrix is taken as exact, the logarithm is not.
        return math.log1p(excess) * (1.0 + 2.0**-50)

    @cached_property
    def gamma(self) -> float:
        """Blanket mass: the sum over outputs of the smallest probability of any input."""
        return min(1.0, float(self.matrix.min(axis=0).sum()))

    @cached_property
    def total_variations(self) -> npt.NDArray[np.float64]:
        """Total variation distance between the reports of every two inputs (a symmetric matrix)."""
        rows = self.matrix
        return np.array([0.5 * np.abs(rows - row).sum(axis=1) for row in rows])

    @property
    def total_variation(self) -> float:
        """The largest of ``total_variations``."""
        return float(self.total_variations.max())
