"""Products of tables in blocks so small that linear algebra keeps to one thread.

NumPy's linear algebra starts a thread for every core where a product is large enough to. The tables here are
just as large, and too small to gain: threads that wait for each other take up to hundreds of times as long
where the cores have other work, too. A product is a sum of as many terms either way, off by as many units.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

_ALONE = 2**18  # speed: multiplications of a block; of more, OpenBLAS takes several threads

Table = npt.NDArray[Any]


def product(left: Table, right: Table) -> Table:
    """left @ right, of two dimensions; complex ones part by part, as real ones are shared later."""
    if np.iscomplexobj(left) and np.iscomplexobj(right):
        both, columns = np.concatenate([right.real, right.imag], axis=1), right.shape[1]
        real, imaginary = product(left.real.copy(), both), product(left.imag.copy(), both)
        found = np.empty((len(left), columns), np.complex128)
        found.real = real[:, :columns] - imaginary[:, columns:]
        found.imag = real[:, columns:] + imaginary[:, :columns]
        return found
    (rows, inner), columns = left.shape, right.shape[1]
    size = max(_ALONE // max(inner, 1), 1)  # entries of a block of the product
    if rows * columns <= size:
        return np.asarray(left @ right)
    wide = min(columns, max(size // rows, math.isqrt(size)))
    down, across = _steps(rows, max(size // wide, 1)), _steps(columns, wide)
    found = np.empty((rows, columns), np.result_type(left, right))
    for i in down:
        for j in across:
            np.matmul(left[i], right[:, j], out=found[i, j])
    return found


def products(left: Table, right: Table) -> Table:
    """left @ right of every pair of tables, of three dimensions."""
    (_, rows, inner), columns = left.shape, right.shape[2]
    parts = _steps(rows, max(_ALONE // max(inner * columns, 1), 1)) if rows else [slice(0, 0)]
    return np.concatenate([np.matmul(left[:, part], right) for part in parts], axis=1)


def _steps(count: int, most: int) -> list[slice]:
    """Of about one length: a single row or column would be another kind of product."""
    ends = np.linspace(0, count, -(-count // most) + 1).astype(int).tolist()
    return [slice(first, beyond) for first, beyond in pairwise(ends)]
