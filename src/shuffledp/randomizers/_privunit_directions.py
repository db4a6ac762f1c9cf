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

``rotated`` takes one exact rotation, as fast for small caps as for large ones. A vector Y of lattice normals
(``_randomness.normals``) is drawn whose *first coordinate* is on the
wanted side, and turned so that the first axis becomes the input's: X = Q(Y). Q is made of plane rotations,
each of three shears that add rounded multiples, x -= round(t y), y += round(s x), x -= round(t y). A shear is
undone by subtracting the same, so Q is a bijection of the lattice whatever the rounding does; and it
changes lengths by next to nothing, so it keeps the normal law of the lattice up to ``twist``, relatively, at
every point. So the report's probabilities are, point by point, those of a two-valued density with respect to
one law that is the same for all inputs: T10, docs/proofs/privunit.md.

The side is a function of Y alone: the first coordinate against ``threshold`` times the length of Y. Where the
length is not within a band about sqrt(dimension) the first coordinate alone decides, so that most sides are
known before the rest is drawn.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from shuffledp._certified.caps import SphericalCap
from shuffledp._certified.rounding import Floats, gamma
from shuffledp._randomness.normals import STEP, lattice_normals, normals
from shuffledp._randomness.uniform import Bools, open_uniforms
from shuffledp._randomness.words import SeedWords, Words
from shuffledp.randomizers.vectors import sum_by_halves

Singles = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]

SEED_BYTES = 16

_AT_ONCE = 1 << 18  # speed
_LEAST_LIMIT = float(np.finfo(np.float64).tiny)


def height_error(dimension: int) -> float:
    """By how much the computed height of a drawn direction may miss the threshold (see module)."""
    return gamma(96.0 + 4.0 * (dimension - 1).bit_length())


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


LEAST_DIMENSION, MOST_DIMENSION = 512, 1 << 14
"""Below, rejection is fast; above, the lattice would outgrow doubles."""

_BAND = 6.5  # standard deviations times sqrt(2): lengths beyond are as unlikely as ``unusual``
_BALL = 13.0
_LEAST_ENTRY = 2.0**-500  # soundness: of an axis. Squares of smaller ones underflow: no sine of an angle


def longest(dimension: int) -> float:
    """No report comes from a vector longer than this."""
    return math.sqrt(dimension) + _BALL


def lattice_error(dimension: int) -> float:
    """By how much probabilities of lattice vectors are off the normal law's, relatively."""
    return 2.0**-46 * max(dimension, 256)


def twist(dimension: int) -> float:
    """By how much probabilities of turned vectors are off, relatively (docs/proofs/privunit.md)."""
    ball, levels = longest(dimension), (dimension - 1).bit_length()
    rounding = 7.0 * STEP * math.sqrt(dimension) * ball
    return rounding + gamma(20 * levels) * ball * ball + 2.0 * lattice_error(dimension)


def rotation_height(dimension: int) -> float:
    """By how much heights may be off, beside rounding: the rotation's steps, and half of one for cells."""
    root = math.sqrt(dimension)
    return 8.0 * STEP * root / (root - _BAND)


def plane_height(dimension: int) -> float:
    """By how much in all, for axes in the plane of the first two, where all rotations but one do nothing."""
    return 6.0 * STEP / (math.sqrt(dimension) - _BAND) + gamma(32)


def unusual(dimension: int) -> float:
    """At least the probability that the length of a normal vector is outside of the band."""
    return 2.0 * math.exp(-((_BAND - 22.0 / math.sqrt(dimension)) ** 2))


def rotated(axis: Floats, inside: Bools, cap: SphericalCap, words: Words) -> Singles:
    """Per row a direction of the cap about it, or of the rest; cap.threshold >= 0."""
    count, dimension = axis.shape
    found = np.empty((count, dimension), np.float32)
    left = np.arange(count)
    while left.size:
        drawn = np.empty((left.size, dimension))
        drawn[:, 0] = _heads(inside[left], cap, words)
        drawn[:, 1:] = lattice_normals(left.size * (dimension - 1), words).reshape(left.size, -1)
        kept = in_cap(drawn, cap) == inside[left]
        rows = left[kept]
        turned = turn(drawn[kept], axis[rows])
        length = np.sqrt(sum_by_halves(turned * turned))
        short = length * STEP <= longest(dimension)
        found[rows[short]] = turned[short] / length[short, None]
        left = np.setdiff1d(left, rows[short], assume_unique=True)
    return found


def _limits(cap: SphericalCap) -> tuple[float, float]:
    """First coordinates below the one are outside, from the other on inside, whatever the rest is."""
    root = math.sqrt(cap.dimension)
    return cap.threshold * (root - _BAND) / STEP, cap.threshold * (root + _BAND) / STEP


def in_cap(drawn: Floats, cap: SphericalCap) -> Bools:
    """The side of lattice vectors: one function of each."""
    low, high = _limits(cap)
    head = drawn[:, 0]
    limit = cap.threshold * np.sqrt(sum_by_halves(drawn * drawn))
    return np.asarray((head >= high) | ((head >= low) & (head >= limit)))


def _heads(inside: Bools, cap: SphericalCap, words: Words) -> Floats:
    """First coordinates that may be on the wanted side, by rejection."""
    low, high = _limits(cap)
    tries = max(2, math.ceil(1.0 / cap.small)) if inside.any() else 2
    head = np.empty(inside.size)
    left = np.arange(inside.size)
    while left.size:
        some = left[: max(1, _AT_ONCE // tries)]
        drawn = lattice_normals(some.size * tries, words).reshape(some.size, tries)
        hit = np.where(inside[some, None], drawn >= low, drawn < high)
        done = hit.any(axis=1)
        head[some[done]] = drawn[done, hit.argmax(axis=1)[done]]
        left = np.setdiff1d(left, some[done], assume_unique=True)
    return head


def turn(drawn: Floats, axis: Floats) -> Floats:
    """Lattice vectors, turned so that the first axis becomes the given ones; overwrites ``drawn``.

    Entry 0 hands its share over to entry 1, the two to entries 2 and 3, the four to the next, and so on."""
    dimension = axis.shape[1]
    radii = [np.where(np.abs(axis) < _LEAST_ENTRY, 0.0, np.abs(axis))]
    while radii[-1].shape[1] > 1:
        below = radii[-1]
        half = 1 << ((below.shape[1] - 1).bit_length() - 1)
        above = below[:, :half].copy()
        pairs = below.shape[1] - half
        above[:, :pairs] = np.sqrt(above[:, :pairs] ** 2 + below[:, half:] ** 2)
        radii.append(above)
    for above, below in zip(radii[:0:-1], radii[-2::-1], strict=True):
        half, width = above.shape[1], below.shape[1]
        pairs = width - half
        whole = np.where(above[:, :pairs] > 0.0, above[:, :pairs], 1.0)
        sine = below[:, half:] / whole
        tangent = sine / (1.0 + below[:, :pairs] / whole)  # of half the angle
        x, y = drawn[:, :pairs], drawn[:, half:width]
        x -= np.rint(tangent * y)
        y += np.rint(sine * x)
        x -= np.rint(tangent * y)
    assert width == dimension
    return np.asarray(np.copysign(1.0, axis) * drawn)
