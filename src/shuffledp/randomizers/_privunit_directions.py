"""Random directions inside and outside a cap of at most half the sphere, for PrivUnit.

``rejected`` draws directions from a law that does not depend on the axis and keeps the first on the
right side. Since the cap and its antipode are disjoint and the law of directions is symmetric, a
direction in the antipodal cap, turned round, is as good as one in the cap: half as many draws.

**The side is one function of the two vectors**: products and sums of doubles in an order that depends
on nothing but the dimension. (If it depended on the place in a batch, as that of ``einsum`` does for
more than 8192 terms, a direction next to the edge might be inside at one place and outside at another:
its density would be neither of the two that are analysed.) It is also exactly symmetric: -g has the
negative height.

``seeded`` does the same with directions that are functions of random seeds, and sends the seed.

**Lemma.** The side of a drawn vector is that of its ideal normal vector, unless the height of the latter is
within ``height_error`` of the threshold (docs/proofs/privunit.md).

``direct`` composes directions of the cap from the height s = <v, axis> and a direction orthogonal
to the axis. With w = (1 - s)/2, w_t its value at the threshold and y = log(w_t / w) >= 0, the density
of y is proportional to w^a (1 - w)^b, a = (d - 1)/2, b = (d - 3)/2: for d >= 3 log-concave, hence below
its exponential tangent at y = 0 (rate a - b w_t/(1 - w_t)), from which y is drawn by rejection; for
d = 2 the second factor is largest at y = 0.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shuffledp._certified.caps import SphericalCap
from shuffledp._certified.rounding import Floats
from shuffledp._randomness.normals import normals
from shuffledp._randomness.sums import sum_by_halves
from shuffledp._randomness.uniform import Bools, open_uniforms
from shuffledp._randomness.words import SeedWords, Words

Singles = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]

SEED_BYTES = 16

_AT_ONCE = 1 << 18
_LEAST_LIMIT = float(np.finfo(np.float64).tiny)


def height_error(dimension: int) -> float:
    """By how much the computed height of a drawn direction may miss the threshold (see module)."""
    return (96.0 + 4.0 * (dimension - 1).bit_length()) * 2.0**-53


def heights_and_limits(drawn: Floats, axis: Floats, threshold: float) -> tuple[Floats, Floats]:
    """Per drawn vector g and axis a: <g, a>, and threshold |g|. Inside the cap: height >= limit."""
    height = sum_by_halves(drawn * axis)
    return height, np.maximum(threshold * _lengths(drawn), _LEAST_LIMIT)


def _lengths(drawn: Floats) -> Floats:
    return np.asarray(np.sqrt(sum_by_halves(drawn * drawn)))


def rejected(axis: Floats, inside: Bools, cap: SphericalCap, words: Words) -> Singles:
    """Per row a uniform direction of the cap about it, or of the rest; threshold = |cap.threshold|."""
    count, dimension = axis.shape
    found = np.empty((count, dimension), np.float32)
    left = np.arange(count)
    while left.size:
        tries = _tries(left.size * dimension, cap)
        drawn = normals(left.size * tries, dimension, words).reshape(-1, tries, dimension)
        height, limit = heights_and_limits(drawn, axis[left, None], abs(cap.threshold))
        hit = np.where(inside[left, None], np.abs(height) >= limit, height < limit)
        first = hit.argmax(axis=1)
        row = np.flatnonzero(hit.any(axis=1))
        pick = (row, first[row])
        turn = inside[left[row]] & (height[pick] < 0.0)
        kept = drawn[pick]
        found[left[row]] = kept * (np.where(turn, -1.0, 1.0) / _lengths(kept))[:, None]
        left = np.delete(left, row)
    return found


def seeded(axis: Floats, inside: Bools, cap: SphericalCap, words: Words) -> Bytes:
    """As ``rejected``, but the report is the seed of the direction: 16 bytes, the lowest bit its sign."""
    found = np.empty((axis.shape[0], SEED_BYTES), np.uint8)
    for row in range(axis.shape[0]):
        hit = False
        while not hit:
            seed = words.draw(SEED_BYTES // 8).view(np.uint8)
            height, limit = heights_and_limits(
                of_seeds(seed[None], cap.dimension), axis[row : row + 1], abs(cap.threshold)
            )
            hit = bool(abs(height[0]) >= limit[0]) if inside[row] else bool(height[0] < limit[0])
        seed[0] ^= np.uint8(inside[row] and height[0] < 0.0)
        found[row] = seed
    return found


def of_seeds(seeds: Bytes, dimension: int) -> Floats:
    """The normal vectors of seeds."""
    rows = np.empty((len(seeds), dimension))
    for row, seed in enumerate(seeds):
        sign = int(seed[0]) & 1
        key = bytes([int(seed[0]) ^ sign]) + seed[1:].tobytes()
        rows[row] = normals(1, dimension, SeedWords(key))[0] * (1 - 2 * sign)
    return rows


def directions_of(seeds: Bytes, dimension: int) -> Floats:
    """The unit vectors of seeds."""
    rows = of_seeds(seeds, dimension)
    return np.asarray(rows / _lengths(rows)[:, None])


def _tries(size: int, cap: SphericalCap) -> int:
    """How many directions to draw at once per row: enough for most, within bounded memory."""
    return int(max(1, min(_AT_ONCE // size, np.ceil(1.0 / cap.small))))


def direct(axis: Floats, inside: Bools, cap: SphericalCap, words: Words) -> Singles:
    """The same law; rows inside the cap are composed, not searched for."""
    found = np.empty(axis.shape, np.float32)
    found[~inside] = rejected(axis[~inside], inside[~inside], cap, words)
    chosen = axis[inside]
    w = _cap_depths(chosen.shape[0], cap, words)
    across = normals(chosen.shape[0], cap.dimension, words)
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
