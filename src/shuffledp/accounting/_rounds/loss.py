"""A privacy profile on a grid: a discrete pair of laws that dominates it, or is dominated by it.

A convex curve that is linear between the points alpha_j = e^{j h} is the profile of a discrete
pair whose privacy loss lives on the lattice h Z: Q has mass (change of slope) at alpha_j, P has
alpha_j times that. The profile is sampled at some lattice points (upper values and supporting lines):

* *from above* (connect the dots, Doroshenko et al. 2022): the polygon through the upper values
  lies above the convex curve, so the discrete pair dominates. What is left at the last point
  becomes P-mass at an infinite loss;
* *from below*: between two samples, the polygon through the lower of their two supporting lines at one
  lattice point. That lies below the higher of the two lines everywhere, whichever point it is, so the
  pair is dominated. The best point is next to the lines' crossing.

Domination survives adaptive composition (Blackwell; Zhu, Dong, Wang 2022), so sums of independent
losses of these pairs bound the composed mechanism. Left of alpha = 1 the curve is that of the
reversed pair; a mechanism's own profile is symmetric.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from shuffledp._certified.rounding import CALL, Floats, down, gamma, positive, up
from shuffledp.accounting._curves.profile import PrivacyProfile
from shuffledp.errors import NoCertificateError

OUTWARD_UNITS = 8192  # soundness
"""What a discrete pair's curve may be off the polygon's, as _certified.rounding counts, and a little more.

Indices times the spacing, in exponents of at most 340, cost as many units: in the points where the curve
is sampled (340 times its relative slope; below 1400, as delta >= 1e-280), in slopes, in masses, and where
compose thins the lattice. Exponentials and operations: 60. What the masses miss of one, up to _LOST_UNITS,
has loss zero, or is taken off all of them: they add up to one, so that no round counts it again."""

_LOST_UNITS = 4096  # soundness
_MOST_LOWERINGS = 8  # speed: of the joint at alpha = 1
_PASSES = 6  # speed: over all points of a hull, before they are taken one by one
LARGEST_LOSS = 340.0  # soundness: products of two exponentials end there; the curve is followed no further
_LINE_UNITS = 2 * CALL + 8 + int(LARGEST_LOSS)  # soundness: of how far a line falls, as above

_DENSE_SCALES = 7.0  # speed
_TAIL_GROWTH = 0.6  # speed: relative spacing of the tail, times the root of the resolution
_FLAT = 1e-9  # speed: a relative fall that is none
_POINTS_AT_ONCE = 48  # speed
_MOST_POINTS = 4000  # speed
LARGEST_INDEX = 2.0**52  # soundness: whole numbers up to here are floats, and add up
_LONGEST_TAIL = 4.0  # speed: in nats
_NEAR_A_POINT = 1e-9  # speed: in lattice points


@dataclass(frozen=True)
class Lattice:
    """Losses ``spacing * j``; samples are taken every ``stride`` (a power of two) points or finer."""

    spacing: float
    stride: int

    def __post_init__(self) -> None:
        if not 0.0 < self.spacing * self.stride <= LARGEST_LOSS:
            raise NoCertificateError(f"no lattice has the spacing {self.spacing!r}")


@dataclass(frozen=True)
class LossDistribution:
    """P-masses ``mass`` at losses ``spacing * index`` (increasing), and ``infinity`` at +inf.

    ``mass`` sums to 1 - infinity."""

    spacing: float
    index: Floats
    mass: Floats
    infinity: float


def _steps(x: Floats) -> Floats:
    """From each number to the next."""
    return np.asarray(x[1:] - x[:-1])


@dataclass(frozen=True)
class Polygon:
    """A convex decreasing curve on alpha >= 1: vertices at lattice points index[0] = 0 < ..."""

    index: Floats
    value: Floats

    def q_masses(self, spacing: float) -> Floats:
        """Q-mass at each vertex beyond the first: differences of slopes."""
        mass = self.slopes(spacing)
        mass[:-1] -= mass[1:].copy()
        return mass

    def slopes(self, spacing: float) -> Floats:
        """|slope| of each segment."""
        run = np.exp(spacing * self.index[:-1]) * np.expm1(spacing * _steps(self.index))
        return np.asarray((self.value[:-1] - self.value[1:]) / run)


@dataclass(frozen=True)
class Samples:
    """Upper values and supporting lines of one curve at lattice points index[0] = 0 < ...

    The curve is nowhere below ``least``."""

    index: Floats
    upper: Floats
    value: Floats
    slope_low: Floats
    slope_high: Floats
    least: float = 0.0

    @classmethod
    def at(
        cls, profile: PrivacyProfile, index: Floats, spacing: float, resolution: float, both_sides: bool
    ) -> Samples:
        epsilon = index * spacing
        if both_sides:
            upper, lines = profile.both(epsilon, resolution)
            # No share of zero covers the rounding of a point: it is beyond all losses, or says nothing.
            last, close = profile.epsilon_max, up(epsilon, operations=1, tiny=0.0)
            upper = np.where(close >= last, 1.0, np.minimum(upper, 1.0))
            upper = np.where(down(epsilon, operations=1, tiny=0.0) >= last, 0.0, upper)
        else:
            lines = profile.support(epsilon, resolution)
            upper = lines.value
        value = np.minimum(lines.value, upper)
        return cls(index, upper, value, lines.slope_low, lines.slope_high, profile.infinite_loss)

    def merge(self, other: Samples) -> Samples:
        order = np.argsort(np.concatenate([self.index, other.index]))
        pairs = zip(self._columns, other._columns, strict=True)
        joined = self._with(np.concatenate([mine, new])[order] for mine, new in pairs)
        # The curve falls: what bounds it at one point bounds it further on.
        return replace(joined, upper=np.minimum.accumulate(joined.upper))

    def upto(self, stop: int) -> Samples:
        return self._with(column[:stop] for column in self._columns)

    def at_places(self, places: npt.NDArray[Any]) -> Samples:
        return self._with(column[places] for column in self._columns)

    @property
    def _columns(self) -> tuple[Floats, ...]:
        return self.index, self.upper, self.value, self.slope_low, self.slope_high

    def _with(self, columns: Iterable[Floats]) -> Samples:
        index, upper, value, slope_low, slope_high = columns
        return Samples(index, upper, value, slope_low, slope_high, self.least)


def sample(
    profile: PrivacyProfile, lattice: Lattice, floor: float, resolution: float, both_sides: bool = True
) -> Samples:
    """Sample a curve until it falls to ``floor``: dense in the bulk, thinner in the tail, and down
    to single lattice points where it has a corner.

    Without ``both_sides`` only the supporting lines are computed (for ``dominated``)."""
    h, stride = lattice.spacing, lattice.stride
    if not profile.epsilon_max / h < LARGEST_INDEX and not LARGEST_LOSS / h < LARGEST_INDEX:
        raise NoCertificateError("the lattice is too fine for the losses")
    index = _base_grid(profile, h, stride, _TAIL_GROWTH * math.sqrt(resolution))
    scale = max(profile.hints.scale, 0.0)
    dense = math.ceil(min(_DENSE_SCALES * scale / (h * stride) + 1.0, index.size))
    found = Samples.at(profile, index[:dense], h, resolution, both_sides)
    while found.index.size < index.size and found.upper[-1] > floor:
        start = found.index.size
        more = index[start : start + _POINTS_AT_ONCE]
        found = found.merge(Samples.at(profile, more, h, resolution, both_sides))
        if found.upper[start - 1] - found.upper[-1] <= _FLAT * found.upper[start - 1]:
            break  # flat: the rest is mass at an infinite loss
    limit = max(floor, found.upper[-1] + _FLAT * found.upper[-1])
    enough = np.flatnonzero(found.upper <= limit)
    if enough.size:
        found = found.upto(max(int(enough[0]) + 1, 2))
    while (inner := _corners(found, h, scale)).size and found.index.size < 4 * _MOST_POINTS:
        found = found.merge(Samples.at(profile, inner, h, resolution, both_sides))
    return found


def last_index(profile: PrivacyProfile, spacing: float) -> float:
    """From here on points are beyond all losses, also after rounding."""
    return up(profile.epsilon_max / spacing, operations=8, tiny=0.0)


def _base_grid(profile: PrivacyProfile, h: float, stride: int, growth: float) -> Floats:
    last = last_index(profile, h)
    reachable = min(last, LARGEST_LOSS / h)
    scales = _DENSE_SCALES * max(profile.hints.scale, 0.0) / h
    dense = math.ceil(min(scales / stride, reachable / stride, _MOST_POINTS))
    index = [stride * i for i in range(max(dense, 1) + 1)]
    while index[-1] < reachable and len(index) < 2 * _MOST_POINTS:
        index.append(index[-1] + stride * max(1, math.floor(growth * index[-1] / stride)))
    points = np.asarray(index, dtype=np.float64)
    if last > reachable:
        return points
    end = stride * max(1.0, math.ceil(last / stride))
    return np.append(points[points < end], end)


def _corners(found: Samples, h: float, scale: float) -> Floats:
    """Middles of the cells whose curve bends more than a smooth curve's of this scale would."""
    if scale == 0.0:  # nothing but what is seen at once: no bends
        return np.zeros(0)
    gap, width = _bend(found, h), np.diff(found.index)
    relative = width * h / scale
    smooth = relative**2 * (1.0 + (found.index[:-1] * h / scale) ** 2) / 8.0
    bent = (gap > 3.0 * smooth * found.value[:-1]) & (width > 1.0) & (found.value[:-1] > 0.0)
    return np.asarray(np.floor(0.5 * (found.index[:-1] + found.index[1:]))[bent])


def _bend(found: Samples, h: float) -> Floats:
    """Height of the chord between neighbouring line values above the lines' crossing."""
    run = np.expm1(h * np.diff(found.index)) * np.exp(h * found.index[:-1])
    fall = found.value[:-1] - found.value[1:]
    steep = np.maximum(found.slope_high[:-1], fall / run)
    flat = np.minimum(found.slope_low[1:], fall / run)
    # Crossing at a share of the run: v0 - steep x = v1 + flat (run - x).
    across = np.clip((fall - flat * run) / positive(steep - flat), 0.0, run)
    return np.asarray((steep - fall / run) * across)


def dominating(samples: Samples, spacing: float) -> LossDistribution:
    """The discrete pair above a symmetric curve."""
    side = above(samples, spacing)
    return _assemble(side, side, spacing)


def above(samples: Samples, spacing: float) -> Polygon:
    """The convex polygon through upper values."""
    return _hull(Polygon(samples.index, up(samples.upper, OUTWARD_UNITS, tiny=0.0)), spacing)


def dominated(forward: Samples, backward: Samples, spacing: float) -> LossDistribution:
    """The discrete pair below the pair whose curve is ``forward`` and, reversed, ``backward``."""
    if backward is forward:
        side = _hull(_below(forward, spacing), spacing)
        return _assemble(side, side, spacing)
    sides = [_below(samples, spacing) for samples in (forward, backward)]
    start = min(side.value[0] for side in sides)
    right, left = (_hull(Polygon(side.index, np.append(start, side.value[1:])), spacing) for side in sides)
    return _assemble(right, left, spacing)


def _below(found: Samples, h: float) -> Polygon:
    """The lower polygon (see the module); it ends where the last useful line reaches ``least``."""
    least = down(found.least, OUTWARD_UNITS, tiny=0.0)
    dead = np.flatnonzero(found.value <= least)
    count = int(dead[0]) if dead.size else found.index.size
    if count == 0:
        return Polygon(np.array([0.0, 1.0]), np.full(2, least))
    points, heights = _along_the_lines(found.upto(count), h)
    # The last line, down to the last lattice point where it is still above ``least``; a line that
    # hardly falls is not followed beyond reason, and one that does not fall at all is mass at infinity.
    end, steep = float(points[count - 1]), float(found.slope_high[count - 1])
    height = max(float(heights[count - 1]) - least, 0.0)
    fall = math.log1p(height / (positive(steep) * math.exp(h * end)))
    last = math.floor(down(min(fall, _LONGEST_TAIL) / h, _LINE_UNITS, tiny=0.0))
    if last >= 1 and steep > 0.0:
        points, heights = np.append(points, end + last), np.append(heights, least)
    elif steep > 0.0:
        heights = np.where(points >= end, np.minimum(heights, least), heights)
    order = np.argsort(points, kind="stable")
    # Next to a flat end the line before it may dip: a falling curve is below its lowest point so far.
    lowest = down(np.minimum.accumulate(heights[order]), OUTWARD_UNITS, tiny=0.0)
    if points.size < 2:
        return Polygon(np.array([0.0, 1.0]), np.full(2, min(float(lowest[0]), least)))
    return Polygon(points[order], lowest)


def _along_the_lines(found: Samples, h: float) -> tuple[Floats, Floats]:
    """Lattice points and heights of a polygon below the lines: first the samples, then what is between.

    The point between is the first beyond the crossing of two lines; where the height there would be
    negative, the last before it, or the sample itself. Samples reached so are lowered."""
    index, value = found.index, found.value
    steep, flat = found.slope_high[:-1], found.slope_low[1:]
    alpha = np.exp(h * index)

    def lower_line(at: Floats) -> Floats:
        fall = steep * alpha[:-1] * np.expm1(h * (at - index[:-1]))
        rise = flat * alpha[1:] * -np.expm1(h * (at - index[1:]))
        left = value[:-1] - up(fall, _LINE_UNITS, tiny=0.0) - gamma(4) * value[:-1]
        return np.minimum(left, down(value[1:] + rise, _LINE_UNITS, tiny=0.0))

    run = _steps(alpha)
    across = (value[:-1] - value[1:] - flat * run) / positive(steep - flat)
    place = np.log1p(np.minimum(np.maximum(across, 0.0), run) / alpha[:-1]) / h + index[:-1]
    corner = np.minimum(np.maximum(np.ceil(place + _NEAR_A_POINT), index[:-1] + 1.0), index[1:])
    height = lower_line(corner)
    before = np.floor(place - _NEAR_A_POINT)
    for other in (np.minimum(np.maximum(before, index[:-1]), index[1:] - 1.0), index[:-1]):
        if (height < 0.0).any():
            corner = np.where(height < 0.0, other, corner)
            height = lower_line(corner)
    at_next, at_own = corner == index[1:], corner == index[:-1]
    lowered = value.copy()
    lowered[1:] = np.where(at_next, np.minimum(lowered[1:], height), lowered[1:])
    lowered[:-1] = np.where(at_own, np.minimum(lowered[:-1], height), lowered[:-1])
    inside = ~(at_next | at_own)
    return np.concatenate([index, corner[inside]]), np.concatenate([lowered, height[inside]])


def _assemble(right: Polygon, left: Polygon, spacing: float) -> LossDistribution:
    """Join the curve (right) and the reversed pair's curve (left), which agree at alpha = 1."""
    for _ in range(_MOST_LOWERINGS):
        q_right = right.q_masses(spacing)
        q_left = q_right if left is right else left.q_masses(spacing)
        sums = [math.fsum(masses.tolist()) for masses in ((q_right,) if left is right else (q_right, q_left))]
        centre = 1.0 - right.value[0] - sums[0] - sums[-1]
        if centre >= 0.0:
            break
        # The joint is not convex (no mass at loss 0): lower it until it is. The true curve is
        # convex and below its neighbours, so this stays above it.
        per_unit = 1.0 + sum(1.0 / math.expm1(spacing * s.index[1]) for s in (right, left))
        lower = right.value[0] + centre / per_unit
        if lower >= right.value[0]:  # too little to change it: OUTWARD_UNITS has a unit to spare
            lower = float(np.nextafter(right.value[0], 0.0))
        right, left = (_hull(Polygon(s.index, np.append(lower, s.value[1:])), spacing) for s in (right, left))
    p_right = np.exp(spacing * right.index[1:]) * q_right
    index = np.concatenate([-left.index[:0:-1], [0.0], right.index[1:]])
    # The centre may be negative by rounding: it is none.
    mass = np.maximum(np.concatenate([q_left[::-1], [centre], p_right]), 0.0)
    infinity = float(right.value[-1])
    if abs(lost := 1.0 - infinity - math.fsum(mass.tolist())) > gamma(_LOST_UNITS):
        raise NoCertificateError("the curve's masses do not add up on this lattice")
    # What is lost gets loss zero, which adds nothing to the curve; if there is too much, all masses shrink.
    mass[q_left.size] = max(mass[q_left.size] + lost, 0.0)
    mass *= (1.0 - infinity) / math.fsum(mass.tolist()) if infinity < 1.0 else 1.0
    keep = (mass > 0.0) | (index == 0.0)
    return LossDistribution(spacing, index[keep], mass[keep], infinity)


def _hull(polygon: Polygon, spacing: float) -> Polygon:
    """The convex polygon below; without those vertices, too, whose masses would be negative by rounding."""
    keep = lower_hull(np.expm1(spacing * polygon.index), polygon.value)
    found = Polygon(polygon.index[keep], polygon.value[keep])
    while (concave := found.q_masses(spacing)[:-1] < 0.0).any():
        kept = np.concatenate([[True], ~concave, [True]])
        found = Polygon(found.index[kept], found.value[kept])
    return found


def lower_hull(x: Floats, y: Floats) -> npt.NDArray[np.int64]:
    """Indices of the vertices of the lower convex hull of points with increasing x."""
    left = np.arange(x.size)
    for _ in range(_PASSES):
        slope = _steps(y[left]) / _steps(x[left])
        bent = slope[1:] > slope[:-1]
        if bent.all():
            return left
        # Whatever is on or above the line between its neighbours is no vertex.
        left = left[np.concatenate([[True], bent, [True]])]
    xs, ys = x[left].tolist(), y[left].tolist()
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
    return left[kept]
