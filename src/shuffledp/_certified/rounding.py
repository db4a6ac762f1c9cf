"""Rounding has a name: double precision, how far a result may be off, and steps that cover it (T8).

y, what the machine gave for x > 0, has *count* k if both x / y and y / x are at most 1 / (1 - k u), u =
2^-53 (``UNIT``). Inputs have count 0, rounded constants 1; an operation adds 1; counts of factors add up; a
sum of N terms >= 0 has the largest count of its terms and N - 1, in whatever order it is added (``total``
adds in blocks, and costs ``additions(N)``: 80 for a million); a library function adds ``CALL``, and e^x
with x off by e adds |e| / u. Differences of rounded numbers have no count: their error is ``gamma(k)``
times the sizes of what was added and subtracted. Then ``up(y, k) >= x`` and ``down(y, k) <= x``, also where
results underflow, unless ``tiny=0.0`` says that nothing can, and that a zero is a true zero. Counts may be
any real number >= 0, or arrays of them, up to 2^52. Proofs, and what is assumed of libraries
(``FUNCTIONS``): docs/proofs/numerics.md.

>>> 0.1 + 0.2 <= up(0.3, operations=2), down(0.3, operations=2) <= 0.1 + 0.2
(True, True)
>>> up(0.0, operations=5), up(0.0, operations=5, tiny=0.0), down(0.0, operations=5)
(1e-300, 0.0, 0.0)
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

UNIT = 2.0**-53
"""Unit round-off of IEEE double precision."""

TINY = 1e-300  # soundness
"""More than underflow can cost anywhere; less than any answer that is ever given."""

LARGEST_EXPONENT = 700.0  # soundness
"""e to this power is finite (1e304), also times ten thousand."""

CALL = 8  # soundness
"""Units that one call of a library function may cost."""

FUNCTIONS = (
    "exp", "expm1", "log", "log1p", "sin", "cos", "arctan2", "arctanh", "arcsinh",
    "sinh", "cosh", "tanh", "hypot", "erfc",
)  # fmt: skip
"""Those that certified code may call (by NumPy's names; ``math`` has erfc, and some under other names)."""

_SPARE = 4  # soundness: units for the rounding of the step itself


@overload
def gamma(operations: float) -> float: ...
@overload
def gamma(operations: Floats) -> Floats: ...
def gamma(operations: float | Floats) -> float | Floats:
    """k u / (1 - k u), rounded up: the relative error of ``operations`` units."""
    count = operations * UNIT
    return count / (1.0 - count) * (1.0 + 2 * _SPARE * UNIT)


@overload
def up(x: float, operations: float, tiny: float = TINY) -> float: ...
@overload
def up(x: Floats, operations: float | Floats, tiny: float = TINY) -> Floats: ...
def up(x: float | Floats, operations: float | Floats, tiny: float = TINY) -> float | Floats:
    """At least what x >= 0, computed with so many ``operations``, stands for."""
    count = (operations + _SPARE) * UNIT
    return x * (1.0 + count / (1.0 - count)) + tiny


@overload
def down(x: float, operations: float, tiny: float = TINY) -> float: ...
@overload
def down(x: Floats, operations: float | Floats, tiny: float = TINY) -> Floats: ...
def down(x: float | Floats, operations: float | Floats, tiny: float = TINY) -> float | Floats:
    """At most what x >= 0, computed with so many ``operations``, stands for; not below zero."""
    least = x * (1.0 - (operations + _SPARE) * UNIT) - tiny
    return max(least, 0.0) if isinstance(least, float) else np.maximum(least, 0.0)


@overload
def capped(x: float) -> float: ...
@overload
def capped(x: Floats) -> Floats: ...
def capped(x: float | Floats) -> float | Floats:
    """An exponent, no larger than e can carry."""
    return min(x, LARGEST_EXPONENT) if isinstance(x, float) else np.minimum(x, LARGEST_EXPONENT)


@overload
def positive(x: float) -> float: ...
@overload
def positive(x: Floats) -> Floats: ...
def positive(x: float | Floats) -> float | Floats:
    """A number that may be divided by, or whose logarithm may be taken: at least ``TINY``."""
    return max(x, TINY) if isinstance(x, float) else np.maximum(x, TINY)


_BLOCK = 16  # speed: terms added at once, in any order
_FEW = 4  # speed: sums that are taken one by one


def additions(terms: int) -> int:
    """Additions that a term goes through at most in ``total``, or in sums of sums by blocks."""
    blocks = -(-terms // _BLOCK)
    return terms if blocks <= 1 else _BLOCK + additions(blocks)


def total(terms: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The sum over the last axis, in blocks: ``additions`` bounds what it costs, in any order within."""
    while terms.shape[-1] > _BLOCK:
        terms = np.add.reduceat(terms, np.arange(0, terms.shape[-1], _BLOCK), axis=-1)
    return np.asarray(terms.sum(axis=-1))


def weighted(terms: Floats, weights: Floats, row: npt.NDArray[np.int64], closely: bool = True) -> Floats:
    """Sums over the last axis of terms (N, m) times weights (rows, m, outputs) of each one's ``row`` (sorted;
    a single row stands for all): a product, and ``additions`` of m, or m of them unless ``closely``."""
    if closely and terms.shape[1] > _BLOCK:
        some = weights[row] if len(weights) > 1 else weights
        return np.stack([total(some[:, :, place] * terms) for place in range(weights.shape[2])], axis=1)
    if len(weights) == 1:
        return np.asarray(terms @ weights[0])
    starts = np.flatnonzero(np.append(True, row[1:] != row[:-1])).tolist()
    found = np.empty((row.size, weights.shape[2]))
    for start, stop in zip(starts, [*starts[1:], row.size], strict=True):
        np.matmul(terms[start:stop], weights[row[start]], out=found[start:stop])
    return found


def segment_totals(terms: npt.NDArray[Any], starts: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Sums over the first axis from each of ``starts`` to the next, likewise in blocks."""
    if starts.size <= _FEW:
        ends = [*starts[1:].tolist(), len(terms)]
        return np.stack([total(terms[a:b].T) for a, b in zip(starts.tolist(), ends, strict=True)])
    while True:
        size = np.diff(np.append(starts, len(terms))).astype(np.intp)
        blocks = -(-size // _BLOCK)
        first = np.cumsum(blocks) - blocks
        inside = np.arange(blocks.sum()) - np.repeat(first, blocks)
        terms = np.add.reduceat(terms, np.repeat(starts, blocks) + _BLOCK * inside, axis=0)
        if blocks.max(initial=1) == 1:
            return np.asarray(terms)
        starts = first
