"""Random directions inside and outside a cap of at most half the sphere, for PrivUnit.

``rejected`` draws directions from a law that does not depend on the axis and keeps the first on the
right side. Since the cap and its antipode are disjoint and the law of directions is symmetric, a
direction in the antipodal cap, turned round, is as good as one in the cap: half as many draws.

``direct`` composes directions of the cap from the height s = <v, axis> and a direction orthogonal
to the axis. With w = (1 - s)/2, w_t its value at the threshold and y = log(w_t / w) >= 0, the density
of y is proportional to w^a (1 - w)^b, a = (d - 1)/2, b = (d - 3)/2: for d >= 3 log-concave, hence below
its exponential tangent at y = 0 (rate a - b w_t/(1 - w_t)), from which y is drawn by rejection; for
d = 2 the second factor is largest at y = 0.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shuffledp.numerics.spherical_cap import SphericalCap
from shuffledp.randomizers.vectors_sampling import Bools, Floats, normals, open_uniforms
from shuffledp.randomness.words import Words

Singles = npt.NDArray[np.float32]

_AT_ONCE = 1 << 18


def rejected(axis: Floats, inside: Bools, cap: SphericalCap, words: Words) -> Singles:
    """Per row a uniform direction of the cap about it, or of the rest; threshold = |cap.threshold|."""
    count, dimension = axis.shape
    found = np.empty((count, dimension), np.float32)
    left = np.arange(count)
    while left.size:
        tries = _tries(left.size * dimension, cap)
        drawn = normals(left.size * tries * dimension, words).reshape(-1, tries, dimension)
        height = np.einsum("ijk,ik->ij", drawn, axis[left])
        length = np.sqrt(np.einsum("ijk,ijk->ij", drawn, drawn))
        limit = abs(cap.threshold) * length
        hit = np.where(inside[left, None], np.abs(height) >= limit, height < limit) & (length > 0.0)
        first = hit.argmax(axis=1)
        row = np.flatnonzero(hit.any(axis=1))
        pick = (row, first[row])
        turn = inside[left[row]] & (height[pick] < 0.0)
        scale = np.where(turn, -1.0, 1.0) / length[pick]
        found[left[row]] = drawn[pick] * scale[:, None]
        left = np.delete(left, row)
    return found


def _tries(size: int, cap: SphericalCap) -> int:
    """How many directions to draw at once per row: enough for most, within bounded memory."""
    return int(max(1, min(_AT_ONCE // size, np.ceil(1.0 / cap.small))))


def direct(axis: Floats, inside: Bools, cap: SphericalCap, words: Words) -> Singles:
    """The same law; rows inside the cap are composed, not searched for."""
    found = np.empty(axis.shape, np.float32)
    found[~inside] = rejected(axis[~inside], inside[~inside], cap, words)
    chosen = axis[inside]
    w = _cap_depths(chosen.shape[0], cap, words)
    across = normals(chosen.size, words).reshape(chosen.shape)
    across -= np.einsum("ij,ij->i", across, chosen)[:, None] * chosen
    across *= (2.0 * np.sqrt(w * (1.0 - w)) / np.linalg.norm(across, axis=1))[:, None]
    found[inside] = (1.0 - 2.0 * w)[:, None] * chosen + across
    return found


def _cap_depths(count: int, cap: SphericalCap, words: Words) -> Floats:
    """(1 - height)/2 of uniform directions of the cap, by rejection from an exponential of log w."""
    edge = 0.5 * (1.0 - abs(cap.threshold))
    power = 0.5 * (cap.dimension - 3)
    slope = max(power, 0.0) * edge / (1.0 - edge)
    rate = 0.5 * (cap.dimension - 1) - slope
    depth = np.empty(count)
    left = np.arange(count)
    while left.size:
        y = -np.log(open_uniforms(left.size, words)) / rate
        w = edge * np.exp(-y)
        # (1 - w)/(1 - edge) = 1 + (edge - w)/(1 - edge), without cancellation.
        excess = power * np.log1p(-edge * np.expm1(-y) / (1.0 - edge)) - slope * y
        kept = np.log(open_uniforms(left.size, words)) <= excess
        depth[left[kept]] = w[kept]
        left = left[~kept]
    return depth
