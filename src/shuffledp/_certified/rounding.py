"""Rounding has a name: double precision, how far a result may be off, and steps that cover it (T8).

**The count of a result.** Let x > 0 be what exact arithmetic gives and y > 0 what the machine gave.
y has *count* k if both x / y and y / x are at most 1 / (1 - k u), u = 2^-53 (``UNIT``).

* An input that is taken as it is has count 0, and a rounded constant has count 1.
* One operation + - * / sqrt returns the exact result times 1 + d, |d| <= u (IEEE 754): that adds 1,
  because 1 + u and 1 / (1 - u) are both at most 1 / (1 - u).
* Factors multiply and (1 - i u)(1 - j u) >= 1 - (i + j) u: the counts of the operands of a product or a
  quotient *add up*, a power y^m has m times the count, a root half of it.
* A sum of numbers >= 0 lies between its smallest and its largest factor: it has the *largest* count of
  its terms, plus one for each addition that a term goes through. So N terms cost N - 1, in whatever order
  they are added: NumPy adds in pairs sometimes, BLAS and ``einsum`` do not, and the count never relies on
  it. Where that is too much, ``total`` adds in blocks, and costs ``additions(N)``: 80 for a million.
* A call of a library function costs ``CALL`` (below), and carries on the error of its argument: e^x with
  x off by e in absolute terms is off by a factor of e^|e| <= 1 / (1 - |e|), a count of |e| / u; for x of
  count k that is about k |x|.
* Differences of rounded numbers have no count. Their error is absolute: ``gamma(k)`` times the sum of the
  sizes of what was added and subtracted (Higham, Accuracy and Stability of Numerical Algorithms, 3.1).

Counts may be any real number >= 0, or arrays of them, up to 2^52 (k u <= 1/2).

**The steps.** ``up(y, k) >= y / (1 - k u) >= x`` and ``down(y, k) <= y (1 - k u) <= x``. Proof for ``up``:
with c = (k + 4) u the factor is computed as f = 1 + c / (1 - c), whose exact value is 1 / (1 - c) =
(1 / (1 - k u)) / (1 - 4 u / (1 - k u)): a share of 4 u / (1 - k u) is to spare. Computing c, 1 - c and the
quotient changes the quotient, a share c <= 1/2 of f, by 4.1 u at most; adding one and multiplying by y
cost u each: (2 + 4.1 c) u in all, which is less. Adding ``tiny`` >= 0 cannot lower a rounded sum. For
``down``: 1 - c and the product are computed with a factor of at most 1 + u each, and
(1 - (k + 4) u)(1 + u)^2 < 1 - k u - u, which leaves u for the rounding of c.

**Underflow.** Where a result is below 2^-1022 an operation is off by up to 2^-1075 in absolute terms, and
the count says nothing. ``up`` therefore adds and ``down`` takes away ``TINY``, which covers 10^22 such
losses: enough for every sum here, as no factor above 10^16 follows an underflow. ``tiny=0.0`` says that
nothing can underflow, and that a zero is a true zero.

**What is assumed of libraries.** The functions in ``FUNCTIONS``, of NumPy and of ``math``, are off by at most
``CALL`` units (4 units in the last place; their makers state between 1 and 4). This is no theorem: a test
measures each against ball arithmetic at many thousand points, on whatever machine runs the tests.

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


def additions(terms: int) -> int:
    """Additions that a term goes through at most in ``total``, or in sums of sums by blocks."""
    blocks = -(-terms // _BLOCK)
    return terms if blocks <= 1 else _BLOCK + additions(blocks)


def total(terms: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The sum over the last axis, in blocks: ``additions`` bounds what it costs, in any order within."""
    while terms.shape[-1] > _BLOCK:
        terms = np.add.reduceat(terms, np.arange(0, terms.shape[-1], _BLOCK), axis=-1)
    return np.asarray(terms.sum(axis=-1))


def segment_totals(terms: npt.NDArray[Any], starts: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Sums over the first axis from each of ``starts`` to the next, likewise in blocks."""
    while True:
        size = np.diff(np.append(starts, len(terms))).astype(np.intp)
        blocks = -(-size // _BLOCK)
        first = np.cumsum(blocks) - blocks
        inside = np.arange(blocks.sum()) - np.repeat(first, blocks)
        terms = np.add.reduceat(terms, np.repeat(starts, blocks) + _BLOCK * inside, axis=0)
        if blocks.max(initial=1) == 1:
            return np.asarray(terms)
        starts = first
