"""A privacy profile on a grid: a discrete pair of laws that dominates it, or is dominated by it.

A convex curve that is linear between the points alpha_j = e^{j h} is the profile of a discrete
pair whose privacy loss lives on the lattice h Z: Q has mass (change of slope) at alpha_j, P has
alpha_j times that. So

* *from above* (connect the dots, Doroshenko et al. 2022): the polygon through upper values at
  some lattice points lies above the convex curve: the discrete pair dominates. What is left at the
  last point becomes P-mass at an infinite loss;
* *from below*: supporting lines at points inside the cells; at every lattice point take the lower
  of the two neighbouring lines. The polygon through these lies below: the pair is dominated.

Domination survives adaptive composition (Blackwell; Zhu, Dong, Wang 2022), so sums of independent
losses of these pairs bound the composed mechanism. Left of alpha = 1 the curve is that of the
reversed pair; a mechanism's own profile is symmetric.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shuffledp.accounting.profile import Floats, PrivacyProfile
from shuffledp.numerics.convex import lower_hull

OUTWARD = 1e-12
"""Relative step outward that covers the rounding of slopes and masses (each below 1e-13)."""

_DENSE_SCALES = 7.0
_TAIL_GROWTH = 0.03
_CHUNK = 48
_MAX_GRID = 20_000


@dataclass(frozen=True)
class LossDistribution:
    """P-masses ``mass`` at losses ``spacing * index`` (increasing), and ``infinity`` at +inf.

    ``mass`` sums to 1 - infinity."""

    spacing: float
    index: Floats
    mass: Floats
    infinity: float


@dataclass(frozen=True)
class Polygon:
    """A convex decreasing curve on alpha >= 1: vertices at lattice points index[0] = 0 < ..."""

    index: Floats
    value: Floats

    def q_masses(self, spacing: float) -> Floats:
        """Q-mass at each vertex beyond the first: differences of slopes."""
        slope = self.slopes(spacing)
        return np.asarray(slope - np.append(slope[1:], 0.0))

    def slopes(self, spacing: float) -> Floats:
        """|slope| of each segment."""
        left = self.index[:-1]
        run = np.exp(spacing * left) * np.expm1(spacing * np.diff(self.index))
        return np.asarray(-np.diff(self.value) / run)


def dominating(
    profile: PrivacyProfile, spacing: float, floor: float, resolution: float
) -> LossDistribution:
    """A discrete pair above ``profile`` (a symmetric curve); at most about ``floor`` at infinity."""
    index, value = _upper_samples(profile, spacing, floor, resolution)
    side = _hull(Polygon(index, value * (1.0 + OUTWARD)), spacing)
    return _assemble(side, side, spacing)


def dominated(
    forward: PrivacyProfile,
    backward: PrivacyProfile,
    spacing: float,
    floor: float,
    resolution: float,
) -> LossDistribution:
    """A discrete pair below the pair whose curve is ``forward`` and, reversed, ``backward``."""
    profiles = (forward,) if forward is backward else (forward, backward)
    sides = [_lower_polygon(profile, spacing, floor, resolution) for profile in profiles]
    start = min(side.value[0] for side in sides)
    lowered = [
        _hull(Polygon(side.index, np.append(start, side.value[1:])), spacing) for side in sides
    ]
    return _assemble(lowered[0], lowered[-1], spacing)


def _assemble(right: Polygon, left: Polygon, spacing: float) -> LossDistribution:
    """Join the curve (right) and the reversed pair's curve (left), which agree at alpha = 1."""
    for _ in range(4):
        q_right, q_left = right.q_masses(spacing), left.q_masses(spacing)
        centre = 1.0 - right.value[0] - float(q_right.sum()) - float(q_left.sum())
        if centre >= 0.0:
            break
        # The joint is not convex (no mass at loss 0): lower it until it is. The true curve is
        # convex and below its neighbours, so this stays above it.
        per_unit = 1.0 + sum(1.0 / math.expm1(spacing * s.index[1]) for s in (right, left))
        lower = right.value[0] - (1.0 + 1e-9) * -centre / per_unit - 1e-18
        right, left = (
            _hull(Polygon(s.index, np.append(lower, s.value[1:])), spacing) for s in (right, left)
        )
    p_right = np.exp(spacing * right.index[1:]) * q_right
    index = np.concatenate([-left.index[:0:-1], [0.0], right.index[1:]])
    mass = np.concatenate([q_left[::-1], [max(centre, 0.0)], p_right])
    return LossDistribution(spacing, index, mass, float(right.value[-1]))


def _hull(polygon: Polygon, spacing: float) -> Polygon:
    keep = lower_hull(np.expm1(spacing * polygon.index), polygon.value)
    return Polygon(polygon.index[keep], polygon.value[keep])


def grid(profile: PrivacyProfile, spacing: float) -> Floats:
    """Lattice indices worth sampling: dense in the bulk, thinner in the tail, up to epsilon_max."""
    last = profile.epsilon_max / spacing
    dense = min(math.ceil(_DENSE_SCALES * profile.scale / spacing), 4000)
    index = list(range(dense + 1))
    while index[-1] < last and len(index) < _MAX_GRID:
        index.append(index[-1] + max(1, math.floor(_TAIL_GROWTH * index[-1])))
    points = np.asarray(index, dtype=np.float64)
    end = max(1.0, math.ceil(last)) if math.isfinite(last) else math.inf
    return np.append(points[points < end], end) if math.isfinite(end) else points


def _upper_samples(
    profile: PrivacyProfile, spacing: float, floor: float, resolution: float
) -> tuple[Floats, Floats]:
    index = grid(profile, spacing)
    dense = int(min(math.ceil(_DENSE_SCALES * profile.scale / spacing) + 1, index.size))
    values: list[Floats] = []
    start, size = 0, dense
    while start < index.size:
        part = index[start : start + size]
        upper = profile.upper(part * spacing, resolution)
        upper = np.where(part * spacing >= profile.epsilon_max, 0.0, upper)
        values.append(upper)
        start, size = start + part.size, _CHUNK
        if upper[-1] <= floor:
            break
    value = np.concatenate(values)
    enough = np.flatnonzero(value <= floor)
    stop = int(enough[0]) + 1 if enough.size else value.size
    stop = max(stop, 2)
    return index[:stop], np.minimum(value[:stop], 1.0)


def _lower_polygon(
    profile: PrivacyProfile, spacing: float, floor: float, resolution: float
) -> Polygon:
    index = grid(profile, spacing)
    dense = int(min(math.ceil(_DENSE_SCALES * profile.scale / spacing) + 1, index.size))
    at_left: list[Floats] = []
    at_right: list[Floats] = []
    start, size = 0, max(dense - 1, 1)
    while start < index.size - 1:
        low, high = index[start : start + size], index[start + 1 : start + 1 + size]
        low = low[: high.size]
        middle = 0.5 * (low + high) * spacing
        line = profile.support(middle, resolution)
        here = np.exp(middle)
        at_left.append(line.value + line.slope_low * here * -np.expm1(low * spacing - middle))
        at_right.append(line.value - line.slope_high * here * np.expm1(high * spacing - middle))
        start, size = start + low.size, _CHUNK
        if line.value[-1] <= floor:
            break
    left, right = np.concatenate(at_left), np.concatenate(at_right)
    value = np.append(np.minimum(left, np.append(left[0], right[:-1])), 0.0) * (1.0 - OUTWARD)
    # From the first cell whose line has left the positive side the polygon is zero.
    dead = np.flatnonzero(right <= 0.0)
    end = int(dead[0]) if dead.size else left.size
    value[end:] = 0.0
    count = min(end, left.size) + 1
    if count < 2:
        return Polygon(np.array([0.0, 1.0]), np.zeros(2))
    return Polygon(index[:count], np.maximum(value[:count], 0.0))
