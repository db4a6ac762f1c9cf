"""PrivUnit's directions by one exact rotation: as fast for small caps as for large ones.

A vector Y of lattice normals (``_randomness.lattice_normals``) is drawn whose *first coordinate* is on the
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

from shuffledp._certified.caps import SphericalCap
from shuffledp._certified.rounding import Floats, gamma
from shuffledp._randomness.lattice_normals import STEP, lattice_normals
from shuffledp._randomness.sums import sum_by_halves
from shuffledp._randomness.uniform import Bools
from shuffledp._randomness.words import Words
from shuffledp.randomizers._privunit_directions import Singles

LEAST_DIMENSION, MOST_DIMENSION = 512, 1 << 14
"""Below, rejection is fast; above, the lattice would outgrow doubles."""

_BAND = 6.5  # standard deviations times sqrt(2): lengths beyond are as unlikely as ``unusual``
_BALL = 13.0
_AT_ONCE = 1 << 18  # speed
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
    return 4.0 * STEP / (math.sqrt(dimension) - _BAND) + gamma(32)


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
