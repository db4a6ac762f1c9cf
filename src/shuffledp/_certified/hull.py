"""Convex curves through points."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shuffledp._certified.rounding import Floats


def lower_hull(x: Floats, y: Floats) -> npt.NDArray[np.int64]:
    """Indices of the vertices of the lower convex hull of points with increasing x."""
    slope = np.diff(y) / np.diff(x)
    if np.all(np.diff(slope) > 0.0):
        return np.arange(x.size)
    xs, ys = x.tolist(), y.tolist()
    kept: list[int] = []
    for i in range(len(xs)):
        while len(kept) >= 2:
            a, b = kept[-2], kept[-1]
            before = (ys[b] - ys[a]) / (xs[b] - xs[a])
            after = (ys[i] - ys[b]) / (xs[i] - xs[b])
            if before < after:
                break
            kept.pop()
        kept.append(i)
    return np.asarray(kept, dtype=np.int64)
