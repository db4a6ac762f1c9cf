"""Products of tables in blocks so small that linear algebra keeps to one thread.

NumPy's linear algebra starts a thread for every core where a product is large enough to. The tables here are
just as large, and too small to gain: threads that wait for each other take up to ten times as long where the
cores have other work, too. A product is a sum of as many terms either way: what it is off by does not change.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

_ALONE = 2**18  # speed: multiplications of a block; of more, OpenBLAS takes several threads


def product(left: npt.NDArray[np.inexact], right: npt.NDArray[np.inexact]) -> npt.NDArray[np.inexact]:
    """left @ right, both of two dimensions."""
    (rows, inner), columns = left.shape, right.shape[1]
    size = max(_ALONE // max(inner, 1), 1)  # entries of a block of the product
    if rows * columns <= size:
        return left @ right
    wide = min(columns, max(size // rows, math.isqrt(size)))
    high = max(size // wide, 1)
    found = np.empty((rows, columns), np.result_type(left, right))
    for i in range(0, rows, high):
        for j in range(0, columns, wide):
            np.matmul(left[i : i + high], right[:, j : j + wide], out=found[i : i + high, j : j + wide])
    return found
