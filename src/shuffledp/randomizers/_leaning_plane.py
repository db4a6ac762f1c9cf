"""A ramp's lower end: the pair at an angle, the crowd's vector in their plane, opposite to their middle.

Only the first two entries (a, b) of a report tell anything of u, u' = (+-sin, cos) and z = (0, -1). They are
looked at in rectangular cells, whose masses under u are integrals over b of

    density(b) (c + s sum_k d_k E[(a sin + b cos - t_k)_+; a in the cell]),   r(t) = sum_k d_k (t - t_k)_+,

in closed form over a; Gauss-Legendre between all b where a corner t_k of r meets an end of a cell, up to a
relative error that is part of the law's (T27: docs/proofs/ramp.md, "From below, in a plane").
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shuffledp._certified.rounding import Floats, additions, gamma, segment_totals, up
from shuffledp._randomness.normals import STEP
from shuffledp.facts import AmplificationLaw

_EDGE, _FARTHEST = 4.25, 10.0  # the last cell begins, and ends: beyond it a normal entry is next to never
_RULE, _PIECE = 8, 0.125  # soundness: nodes of a piece, and its length at most: T27
_UNITS = 640  # soundness: of a term of the integral, T27
_MOVED = 5.0 * STEP  # soundness: by how much the rotation moves a report in the plane, T27
_LATTICE = 256  # soundness: of two lattice entries and, with e^epsilon0 more, beyond the last cells, T27
_LEVELS = 28  # tightness: of logarithms of ratios to the crowd's, for each sign
_FEW = 4  # speed: corners of a shape


def _tail(x: Floats) -> Floats:
    """The normal law's beyond the size of x."""
    sizes = (np.abs(x) * math.sqrt(0.5)).ravel().tolist()
    return np.array([0.5 * math.erfc(t) for t in sizes]).reshape(x.shape)


def _density(x: Floats) -> Floats:
    return np.asarray(np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi))


def half_angle(epsilon0: float) -> float:
    """Of the pair."""
    return math.radians(60.0 + 14.0 * math.exp(-0.5 * epsilon0))  # tightness: any angle is valid


def plane_law(
    heights: Floats, r: Floats, leaning: float, epsilon0: float, error: float
) -> AmplificationLaw | None:
    """Of reports that lean, in proportion to r, with probability ``leaning``; r is straight between
    ``heights``. None where it has many corners. ``error``: of densities, relatively, beside what is here."""
    change = np.diff(np.diff(r) / np.diff(heights), prepend=0.0, append=0.0)
    used = np.abs(change) > gamma(_UNITS)
    if used.sum() > _FEW:
        return None
    corners, change = heights[used], change[used]
    rest, far = _density(corners), corners * _tail(corners)
    mean, doubt = math.fsum(change * (rest - far)), gamma(_UNITS) * math.fsum(np.abs(change) * (rest + far))
    lines = _Lines(corners, leaning / mean * change, 1.0 - leaning, _ends(4.0 if epsilon0 <= 1.0 else 10.0))
    half = half_angle(epsilon0)
    own, off = lines.masses(math.sin(half), math.cos(half))
    (crowd,), (away,) = lines.along(np.zeros(1), 1.0, 0.0)
    (entry,), _ = _Lines(np.zeros(0), np.zeros(0), 1.0, lines.ends).along(np.zeros(1), 1.0, 0.0)
    other, clone = own[::-1], np.outer(entry, crowd[::-1])
    # On a cell's rim the mean height is that of a corner, and what a and b add in the mean.
    low, high = lines.ends[:-1], lines.ends[1:]
    corner = np.where(low < 0.0, high, low)
    beyond = np.where(low < 0.0, 0.0, np.minimum(high - low, 1.0 / _EDGE)) * lines.change.cumsum().max()
    rim = _MOVED * (_density(low) + _density(high)) / entry
    peak = lines.at(_tilted(corner, half)) + _tilted(beyond, half)
    moved = np.add.outer(rim, rim) * peak * np.outer(entry, entry) / own
    aside = rim.max() + (rim * (lines.at(corner) + beyond) * entry / crowd).max()
    known = (off / own + moved).max(), 2.0 * (away / crowd).max() + aside
    error += gamma(_LATTICE + math.exp(epsilon0)) + float(max(known)) + doubt / mean
    ratios = (np.rint(np.log(part / clone) * (_LEVELS / epsilon0)) for part in (own, other))
    kind = np.unique(np.stack([part.ravel() for part in ratios]), axis=1, return_inverse=True)[1].ravel()
    u, v, z = (tuple(np.bincount(kind, part.ravel()).tolist()) for part in (own, other, clone))
    return AmplificationLaw(u, v, z, error=up(error + gamma(own.size), operations=64))


def _tilted(x: Floats, half: float) -> Floats:
    """Heights above u of all pairs of entries."""
    return np.add.outer(x * math.sin(half), x * math.cos(half))


def _ends(per_unit: float) -> Floats:
    """Of cells, symmetric; half-way between two singles, so that rounding takes no report across."""
    grid = np.arange(1.0, _EDGE * per_unit + 1.0, dtype=np.float32) / np.float32(per_unit)
    positive = 0.5 * (grid.astype(np.float64) + np.nextafter(grid, np.float32(0.0)))
    return np.concatenate([[-_FARTHEST], -positive[::-1], [0.0], positive, [_FARTHEST]])


class _Lines(NamedTuple):
    """The density ``plain`` + sum_k ``change``_k (t - ``corners``_k)_+, and the ends of cells."""

    corners: Floats
    change: Floats
    plain: float
    ends: Floats

    def at(self, t: Floats) -> Floats:
        """The density."""
        above = np.maximum(np.subtract.outer(t, self.corners), 0.0)
        return np.asarray(self.plain + above @ self.change)

    def along(self, b: Floats, sine: float, cosine: float) -> tuple[Floats, Floats]:
        """For every b the integrals over the cells of a, and by how much they may be off."""
        low, high = self.ends[:-1], self.ends[1:]
        sign = np.where(low < 0.0, -1.0, 1.0)
        tails, densities = (sign * _tail(low), sign * _tail(high)), (_density(low), _density(high))
        found = np.broadcast_to(self.plain * (tails[0] - tails[1]), (b.size, low.size)).copy()
        off = np.broadcast_to(self.plain * np.abs(tails[0] + tails[1]), found.shape).copy()
        for corner, change in zip(self.corners.tolist(), self.change.tolist(), strict=True):
            level = b * cosine - corner
            start = (-level / sine)[:, None]
            before, after = start <= low, start >= high  # where all of a cell is above the corner, or none
            first = np.where(before, tails[0], np.where(after, tails[1], np.sign(start) * _tail(start)))
            peak = np.where(before, densities[0], np.where(after, densities[1], _density(start)))
            parts = sine * (peak - densities[1]), level[:, None] * (first - tails[1])
            found += change * (parts[0] + parts[1])
            sizes = sine * (peak + densities[1]) + np.abs(level[:, None]) * np.abs(first + tails[1])
            off += abs(change) * np.where(after, 0.0, sizes)
        return found, gamma(_UNITS) * off

    def masses(self, sine: float, cosine: float) -> tuple[Floats, Floats]:
        """Of the cells of (a, b), and by how much they may be off."""
        meets = (self.corners[:, None] - self.ends * sine).ravel() / cosine
        narrow = np.arange(-_FARTHEST, _FARTHEST, _PIECE)
        cuts = np.unique(np.concatenate([self.ends, meets[np.abs(meets) < _FARTHEST], narrow]))
        nodes, weights = np.polynomial.legendre.leggauss(_RULE)
        half = 0.5 * np.diff(cuts)
        b = (cuts[:-1, None] + half[:, None] * (1.0 + nodes)).ravel()
        weight = (half[:, None] * weights).ravel() * _density(b)
        starts = _RULE * np.searchsorted(cuts, self.ends[:-1])
        found, off = (
            segment_totals(weight[:, None] * part, starts).T for part in self.along(b, sine, cosine)
        )
        return found, off + gamma(additions(b.size)) * found
