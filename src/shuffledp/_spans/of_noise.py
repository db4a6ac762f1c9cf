"""Rows that span noise on the line: a continuum of inputs and of reports, by some ten rows (T16, section 9).

The line is cut into types, narrow where reports are likely and tell much. R_x(k), the mass of a type, is
log-concave in x. Types and rows are guesses (control_points.py). What is proved (``_missed``): at points x
next to each other the mixtures are compared with the masses, and between two points a log-concave function
lies between its chord and those of its neighbours. What differs inside a type (``_spreads``): two inputs
differ most at its ends, and no two more than 0 and 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shuffledp._certified.rounding import CALL, Floats, gamma, positive, up
from shuffledp._spans.control_points import closest, is_kinked, polygon, splines, steps_of_types
from shuffledp._spans.density import Density
from shuffledp._spans.span import Span

_PLACES = 4096  # speed: where widths are looked at
_OUTERMOST, _FARTHEST = 1e-24, 2.0**10  # tightness: what lies beyond all types; in widths of the interval
_NEARLY = 1e-3  # tightness: of log rho, what a last type may have
_RARE, _UNSURE = 1e-15, 1e-3  # tightness: of what has no type; of masses, as a share
_HALVINGS = 40
_POINTS = 2**9, 2**11, 2000.0  # tightness: of inputs, at least, at most, and in units of the noise's width
_OF_A_KINK = 2**13  # tightness: the same
_UNITS = 64  # soundness: operations of a mass, a mixture or a quotient
_LEAST = 1e-12  # soundness: of what mixtures miss, more than roundings of sums and of weights


def span_of_noise(noise: Density) -> Span | None:
    """Of x + noise for x in [0, 1]. None: no few rows come near."""
    kinked = is_kinked(noise.log_f(np.array([0.0, 2.0**-10, 2.0**-9])))
    points = _OF_A_KINK if kinked else _points(noise)
    edges = _edges(noise, kinked, points)
    if edges is None:
        return None
    table = _Table.of(noise, edges, points)
    if not (table.doubt.max() <= _UNSURE and table.lost <= _RARE):
        return None
    guesses = [_tangents(noise, table)] if kinked else splines(table.points, table.inside)
    found = ((rows, _missed(table, rows, weights)) for rows, weights in guesses)
    return closest(found, _spreads(noise, table), table.lost, table.deviation)


@dataclass(frozen=True)
class _Table:
    """``masses`` of the types between ``edges`` (columns), of all ``points`` x and of one beyond either end,
    up to a factor 1 +- ``doubt``, and e^+-doubt. What is ``lost`` beyond the outer edges has no type; where
    log-ratios are bounded, these are infinite."""

    edges: Floats
    points: Floats
    masses: Floats
    doubt: Floats
    lost: float

    @classmethod
    def of(cls, noise: Density, edges: Floats, points: int) -> _Table:
        x = np.arange(-1.0, points + 2.0) / points
        steps = np.rint((edges - x[:, None]) * points).astype(np.intp)
        known = noise.beyond(np.arange(np.abs(steps).max() + 1.0) / points)
        steps, tail = np.sign(steps), known[np.abs(steps)]
        lost = up(2.0 * float(tail[1, 0]) * (1.0 + noise.error), _UNITS)  # of the input 0, on both sides
        if math.isfinite(noise.epsilon0):
            edges, lost = np.concatenate([[-math.inf], edges, [math.inf]]), 0.0
            columns = (0, 0), (1, 1)
            steps, tail = np.pad(steps, columns, constant_values=((0, 0), (-1, 1))), np.pad(tail, columns)
        # Between two edges on one side of x a difference of tails; else what both leave.
        aside, sizes = (steps[:, 1:] <= 0) | (steps[:, :-1] >= 0), tail[:, :-1] + tail[:, 1:]
        masses = np.where(aside, np.abs(tail[:, 1:] - tail[:, :-1]), 1.0 - sizes)
        off = np.where(aside, sizes, 1.0 + sizes) * (noise.error + gamma(4))
        # Of a share or of a logarithm, up or down: at most by what is left of the mass.
        doubt = (off / positive(masses - off)).max(axis=0) + gamma(_UNITS)
        return cls(edges, x[1:-1], positive(masses), doubt, lost)

    @property
    def deviation(self) -> float:
        """About that of X for the inputs 0 and 1 among others who hold 1/2."""
        first, half, last = (self.inside[place] for place in (0, self.points.size // 2, -1))
        return math.sqrt(float(((first - last) ** 2 / half).sum()))

    @property
    def inside(self) -> Floats:
        """Of all points of [0, 1]."""
        return self.masses[1:-1]


def _edges(noise: Density, kinked: bool, points: int) -> Floats | None:
    """Of types: mirror images around 1/2, which is one of them, at multiples of 1/points, as inputs are, so
    that few distances are asked for, and differences are exact."""
    places = np.linspace(_far(noise), 0.5, _PLACES + 1)
    middle, width = 0.5 * (places[1:] + places[:-1]), float(places[1] - places[0])
    beyond = noise.beyond(np.array([0.0, 0.5, 1.0]) - places[0])
    with np.errstate(invalid="ignore", over="ignore"):
        rate = np.maximum(-np.diff(noise.log_rho(places)) / width, 0.0)
        density, half = np.exp(noise.log_f(np.minimum(middle, 0.0))), np.exp(noise.log_f(middle - 0.5))
        apart = np.exp(noise.log_f(middle)) - np.exp(noise.log_f(middle - 1.0))
        inside = width * float(np.nansum(apart**2 / positive(half)))
    variance = 2.0 * (inside + float((beyond[0] - beyond[2]) ** 2 / positive(float(beyond[1]))))
    steps = steps_of_types(rate[::-1], density[::-1], variance, width, kinked)
    if steps is None:
        return None
    half_of_them = math.ceil(steps[-1])
    if kinked:  # types of one width
        outward = np.linspace(0.5, 0.0, half_of_them + 1)
    else:
        levels = np.linspace(0.0, steps[-1], half_of_them + 1)[1:]
        outward = np.append(0.5, np.interp(levels, steps, places[:-1][::-1]))
    left = np.unique(np.rint(outward * points) / points)
    return np.concatenate([left, 1.0 - left[:-1][::-1]])


def _far(noise: Density) -> float:
    """Far enough that the rest is next to nothing, or tells no more than the last type."""

    def enough(w: float) -> bool:
        at = np.array([w])
        if math.isfinite(noise.epsilon0):
            return bool(noise.log_rho(at)[0] >= noise.epsilon0 - _NEARLY)
        return bool(noise.beyond(-at)[0] <= _OUTERMOST)

    high, low = 0.0, -1.0 / 64.0
    if enough(high):
        return high
    while not enough(low) and low > -_FARTHEST:
        high, low = low, 2.0 * low
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if enough(middle) else (low, middle)
    return low


def _points(noise: Density) -> int:
    """A power of two: more for narrow noise, of which a normal one of that density is measured."""
    at, least, most, each = 0.125, *_POINTS
    top, side = noise.log_f(np.array([0.0, at])).tolist()
    steep = min(math.sqrt(2.0 * positive(top - side)) / at, each)  # infinite where nothing is that far away
    return int(min(max(least, 2.0 ** math.ceil(math.log2(each * steep))), most))


def _spreads(noise: Density, table: _Table) -> Floats:
    """Of every type: f(y - x)/R_x(k) at an end y of it is monotone in x, and of any two inputs the ratio is
    monotone in y. So its logarithm is at most that of 0 and 1, at one of the ends."""
    inner = table.edges[np.isfinite(table.edges)]
    log_rho, size = noise.log_rho(inner), np.abs(noise.log_f(inner)) + np.abs(noise.log_f(1.0 - inner))
    if inner.size < table.edges.size:
        log_rho, size = np.concatenate([[noise.epsilon0], log_rho, [-noise.epsilon0]]), np.pad(size, 1)
    whole, most_size = np.log(table.inside[0] / table.inside[-1]), np.maximum(size[:-1], size[1:])
    doubt = (noise.error + gamma(4 * CALL)) * (2.0 + most_size + np.abs(whole)) + 2.0 * table.doubt
    most = np.maximum(np.maximum(log_rho[:-1] - whole, whole - log_rho[1:]), 0.0) + doubt
    # c_x/c_z is at most e^most, and (c_x - c_y)/c_z at most e^most (e^most - 1).
    most = np.minimum(most, 1.0)  # too large in any case
    return np.asarray(up(np.exp(most) * np.expm1(most), 4 * CALL))


def _missed(table: _Table, rows: Floats, weights: Floats) -> Floats:
    """By which share mixtures, with weights that go on linearly between points, miss the masses of any x."""
    weights, inside = np.maximum(weights, 0.0), table.inside
    mixed = weights @ rows / positive(weights.sum(axis=1, keepdims=True))
    rounding = gamma(_UNITS + 2 * len(rows))
    off = np.abs(inside / positive(mixed) - 1.0).max(axis=0) + 2.0 * (table.doubt + rounding)
    logs = np.log(table.masses)
    rise = np.diff(logs, axis=0)
    doubt = 4.0 * (table.doubt + gamma(2 * CALL) * (1.0 + np.abs(logs).max(axis=0)))
    # By how much slopes fall on either side of two points: a concave function exceeds their chord by no more
    # than what both neighbours' chords leave, and a mean of two numbers their geometric mean by rise^2/8.
    left, right = (np.maximum(part, 0.0) + doubt for part in (rise[:-2] - rise[1:-1], rise[1:-1] - rise[2:]))
    above = (left * right / (left + right)).max(axis=0)
    below = (np.abs(rise[1:-1]) + doubt).max(axis=0) ** 2 / 8.0
    most = np.maximum((1.0 + off) * np.exp(np.minimum(above, 1.0)) - 1.0, off + below)
    return np.asarray(up(most + (2.0 * table.lost + _LEAST), _UNITS))


def _tangents(noise: Density, table: _Table) -> tuple[Floats, Floats]:
    """Rows and weights of noise with a kink: by the slopes of the masses at the ends of types."""
    edges, points = table.edges[np.isfinite(table.edges)], table.points.size - 1
    density, none = np.exp(noise.log_f(edges - edges[:, None])), np.zeros((edges.size, 1))
    slopes = -np.diff(np.concatenate([none, density, none], axis=1), axis=1)
    return polygon(table.inside, np.rint(edges * points).astype(np.intp), slopes, 0)
