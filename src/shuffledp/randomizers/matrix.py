"""Any randomizer with finitely many inputs and outputs.

Sampling is exact: row x has whole weights out of 2^64, one word per report. What is sampled is the
matrix of those weights, ``realised``, within a few 2^-64 of the given one; analyse that one.

Counts are estimated by least squares: with h the histogram of the reports, E[h] = matrix^T counts,
so that estimate = pinv(matrix^T) h is unbiased where the rows are linearly independent. A user who
holds x adds sum_y A[v, y]^2 matrix[x, y] - [v = x] to the variance of estimate v, A = pinv(matrix^T).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from shuffledp import _validate
from shuffledp._certified.rounding import Floats
from shuffledp._randomness.tables import WeightTable, integer_weights
from shuffledp._randomness.uniform import WORD
from shuffledp._randomness.words import Words
from shuffledp.facts import AmplificationLaw, Facts, Matrix
from shuffledp.randomizers._categories import CategoricalRandomizer, Counts, Integers


@dataclass(frozen=True, init=False, eq=False)
class FiniteRandomizer(CategoricalRandomizer):
    """Input x is reported as y with probability ``matrix[x][y]`` (rows sum to one).

    >>> coin = FiniteRandomizer([[0.75, 0.25], [0.25, 0.75]])
    >>> coin.gamma
    0.5
    >>> coin.estimate([3, 1], n=4).round(9) + 0.0
    array([4., 0.])
    """

    table: Matrix
    k: int

    def __init__(self, matrix: Any) -> None:
        table = Matrix(matrix)
        _validate.assign(self, table=table, k=len(table.rows))

    @property
    def matrix(self) -> Floats:
        """The probabilities, rows of inputs and columns of reports; read-only."""
        return self.table.rows

    def facts(self) -> Facts:
        """The matrix that is really sampled."""
        return Facts.of_matrix(self.realised.table)

    def __repr__(self) -> str:
        rows, columns = self.matrix.shape
        return f"FiniteRandomizer({rows} x {columns} matrix, epsilon0={self.epsilon0:.6g})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FiniteRandomizer):
            return NotImplemented
        return self.table == other.table

    def __hash__(self) -> int:
        return hash(self.table)

    @property
    def epsilon0(self) -> float:
        """The tight local epsilon: the largest log-ratio in a column (inf if a zero meets a non-zero)."""
        return self.table.epsilon0

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

    @property
    def outputs(self) -> int:
        """How many different reports there are: the columns of the matrix."""
        return int(self.matrix.shape[1])

    @property
    def support_size(self) -> int:
        """The tally is the histogram of the reports: each counts once."""
        return 1

    @cached_property
    def weights(self) -> tuple[tuple[int, ...], ...]:
        """Whole weights of each row, summing to 2^64: the probabilities that are sampled."""
        return tuple(integer_weights(row) for row in self.matrix.tolist())

    @cached_property
    def realised(self) -> FiniteRandomizer:
        """The randomizer that ``randomize`` really is: ``weights`` / 2^64."""
        return FiniteRandomizer([[math.ldexp(w, -64) for w in row] for row in self.weights])

    @cached_property
    def worst_pair(self) -> tuple[int, int]:
        """The two inputs that are told apart best in a large crowd: the largest variance of X.

        (Of the amplification variable of ``law.py`` at alpha = 1: the sum of (own - other)^2 / clone.)
        In small crowds and far tails another pair may be worse: the accountant looks at all pairs."""
        rows, clone = self.realised.matrix, self.realised.matrix.min(axis=0)
        hidden = clone > 0.0
        scaled = rows[:, hidden] / np.sqrt(clone[hidden])
        seen = rows[:, ~hidden]  # what some input never sends is seen at once: it outweighs all
        spread = [
            ((scaled - row) ** 2).sum(axis=1) + 1e30 * np.abs(seen - bare).sum(axis=1)
            for row, bare in zip(scaled, seen, strict=True)
        ]
        x, other = np.unravel_index(int(np.argmax(spread)), (self.k, self.k))
        return int(x), int(other)

    def law(self, pair: tuple[int, int] | None = None) -> AmplificationLaw:
        """The law of the amplification variable for two inputs, by default for ``worst_pair``."""
        first, last = self.worst_pair if pair is None else pair
        for name, value in (("pair[0]", first), ("pair[1]", last)):
            _validate.count(name, value, least=0, most=self.k - 1)
        least = (min(column) for column in zip(*self.weights, strict=True))
        rows = zip(self.weights[int(first)], self.weights[int(last)], least, strict=True)
        return AmplificationLaw.merged(
            (Fraction(u, WORD), Fraction(v, WORD), Fraction(c, WORD)) for u, v, c in rows
        )

    def estimate(self, support: Any, n: int) -> Floats:
        """Unbiased estimates of the inputs' counts from the histogram of n reports."""
        users = _validate.count("n", n)
        seen = _validate.counts("support", support, self.outputs, users)
        if seen.sum() != users:
            raise ValueError(f"support must sum to n = {users}, got {float(seen.sum())!r}")
        return np.asarray(self._inverse @ seen)

    def variance(self, counts: Any, n: int) -> Floats:
        """The exact variance of each estimate when n users hold the inputs ``counts`` times."""
        users = _validate.count("n", n)
        held = _validate.counts("counts", counts, self.k, users)
        if held.sum() != users:
            raise ValueError(f"counts must sum to n = {users}, got {float(held.sum())!r}")
        return np.asarray(self._inverse**2 @ (self.realised.matrix.T @ held) - held)

    @property
    def row_inputs(self) -> range:
        """The input of each row of the matrix."""
        return range(self.k)

    def _likelihoods(self, reports: Integers, values: Counts) -> Floats:
        return np.asarray(self.realised.matrix[values[:, None], reports].T)

    @cached_property
    def _inverse(self) -> Floats:
        rows = self.realised.matrix
        if np.linalg.matrix_rank(rows) < self.k:
            raise ValueError(
                f"the {self.k} rows of the matrix are linearly dependent: no unbiased estimate exists"
            )
        return np.asarray(np.linalg.pinv(rows.T), dtype=np.float64)

    @cached_property
    def _table(self) -> WeightTable:
        return WeightTable.of(self.weights)

    def _sample(self, values: Integers, words: Words) -> Integers:
        chosen = self._table.sample(values.astype(np.intp, copy=False), words)
        return chosen.astype(self.report_dtype)
