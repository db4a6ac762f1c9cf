"""Reports that lean towards a vector: RampUnit, the best shape after shuffling, and GaussianUnit (T27).

A vector is first sent to a point u of the sphere (``vectors``). With t the height of a standard normal vector
above the plane across u, the report has the density

    h(t) = c + s r(t)   with respect to the normal law, mean one, r rising from 0 to 1:

with probability c a normal vector, otherwise one whose height is drawn in proportion to r. The largest ratio
is 1 + s/c = e^epsilon0. Its mean is s E[r'(t)] u, so a multiple of it is unbiased. A ``Shape`` is such an r.

**Law.** Everybody's report has a density of at least c: clones. Two inputs are worst where one is most likely
just where the other is least: heights t and -t, at every alpha (T27, docs/proofs/ramp.md, for every shape).
Heights are spread to a grid, keeping the mean of r. Of all shapes a ramp has the most information per
variance of the amplification variable; PrivUnit's is a step, and e^(signal t) is Gaussian noise on the
vector, mixed with noise alone. At the MNIST page's epsilon = 3 and 5,700 rounds a ramp has 0.45 of a trusted
server's information, PrivUnit 0.38.

**What is drawn is what is analysed.** Lattice normals, turned to u by an exact bijection, as PrivUnit's
(T10); the height is drawn by rejection, in whole numbers. All densities are those above up to a factor
e^(+-``twist``), which lowers c by ``margin`` in the law. *What it rests on*: as PrivUnit.

>>> ramp, gaussian = RampUnit(dimension=1000, epsilon0=3.0), GaussianUnit(dimension=1000, epsilon0=4.0)
>>> ramp.randomize(np.zeros(1000)).shape, ramp.margin < 1e-8, gaussian.variance() > ramp.variance()
((1000,), True, True)
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from shuffledp import _validate
from shuffledp._certified.rounding import CALL, Floats, down, gamma, up
from shuffledp._randomness.normals import STEP, lattice_normals
from shuffledp._randomness.uniform import WORD, Bools, happens, log_rounded_up, weight_of_odds
from shuffledp._randomness.words import Uint64s, Words
from shuffledp.facts import AmplificationLaw, Facts, enclosed
from shuffledp.randomizers._leaning_plane import half_angle, plane_law
from shuffledp.randomizers._privunit_directions import MOST_DIMENSION, lattice_error, longest, turn, twist
from shuffledp.randomizers.vectors import DirectionRandomizer, sum_by_halves

_NODES = 16  # of the grid of heights, per standard deviation; tightness
_REACH = 4  # standard deviations: from a ramp's foot to its top, and from zero to either end of a Gaussian
_TOP = 1 << 22  # of r, in whole numbers
_PLACES = np.uint64(41)  # bits of half a step between two points of the grid; with those of _TOP 63
_MOST_START = 2.0
_LEAST_SIGNAL, _MOST_SIGNAL = 0.0625, 2.0
_LARGEST_MARGIN = 1e-3  # tightness: of the probability to lean
_UNITS = 192  # soundness: of a normal tail and its integral up to 6 deviations, T27
_AT_ONCE = 1 << 10  # speed: heights
_CELLS, _TYPES = 2, 8  # speed: of the first entry in a type, of the second entry, for the lower end


class _Normal(NamedTuple):
    """At some heights: the normal density, tail and integrated tail; by how much that may be off."""

    height: Floats
    density: Floats
    tail: Floats
    beyond: Floats
    doubt: Floats

    @classmethod
    def at(cls, height: Floats) -> _Normal:
        density = np.exp(-0.5 * height * height) / math.sqrt(2.0 * math.pi)
        tail = np.array([0.5 * math.erfc(t * math.sqrt(0.5)) for t in height.tolist()])
        beyond = density - height * tail
        return cls(height, density, tail, beyond, gamma(_UNITS) * (density + height * tail))


@dataclass(frozen=True)
class Shape:
    """r: 0 up to ``foot`` (in sixteenths), ``rises`` / 2^22 at points a sixteenth apart, straight between
    them, 1 from the last one on."""

    foot: int
    rises: tuple[int, ...]

    @property
    def heights(self) -> Floats:
        """The points."""
        return (self.foot + np.arange(len(self.rises))) / _NODES

    @cached_property
    def steepest(self) -> float:
        """The largest slope."""
        return _NODES * max(map(int, np.diff(self.rises))) / _TOP

    @cached_property
    def grid(self) -> _Normal:
        """Heights from the first that tells t from -t to the last, beyond which r is constant both ways."""
        last = max(-self.foot, self.foot + len(self.rises) - 1)
        return _Normal.at(np.arange(max(self.foot, 0), last + 1) / _NODES)

    @cached_property
    def sides(self) -> tuple[Floats, Floats]:
        """r(t) and r(-t) on the grid."""
        at, r = self.grid.height, np.array(self.rises) / _TOP
        return np.interp(at, self.heights, r), np.interp(-at, self.heights, r)

    @cached_property
    def masses(self) -> tuple[Floats, Floats]:
        """How much of a normal law goes to the points of the grid but the first, at least and at most.

        Every height between two points is sent to them, keeping the means of r(t) and r(-t): hat functions,
        second differences of the integrated tail."""
        value = np.append(self.grid.beyond[:-1] - self.grid.beyond[1:], 0.0)
        mass = np.append(value[:-2] - value[1:-1], value[-2]) * _NODES
        doubt = np.append(self.grid.doubt, 0.0)
        off = up((doubt[:-2] + 2.0 * doubt[1:-1] + doubt[2:]) * _NODES + gamma(8) * mass, operations=8)
        return np.maximum(mass - off, 0.0), mass + off

    def lifted(self, ends: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Of the cells that begin at ``ends``, about the grid's points: their mass, the integrals of r(t) and
        r(-t), and by how much each of the three may be off. Within a cell r is continued as it is inside."""
        normal = _Normal.at(ends)
        mass, moment = (part - np.append(part[1:], 0.0) for part in (normal.tail, normal.density))
        found, off = [], normal.tail
        for side in self.sides:
            slope = np.append(np.diff(side), 0.0) * _NODES
            level = side - slope * self.grid.height
            found.append(level * mass + slope * moment)
            off = off + np.abs(level) * normal.tail + np.abs(slope) * normal.density
        return mass, found[0], found[1], 4.0 * gamma(_UNITS) * off

    @cached_property
    def means(self) -> tuple[float, float, float]:
        """Of r, and of r(t) - r(-t) where t > 0; by how much either may be off."""
        _, above, below, off = self.lifted(self.grid.height)
        doubt = up(2.0 * math.fsum(off), operations=8)
        return math.fsum([*above, *below]), math.fsum(above) - math.fsum(below), doubt

    @cached_property
    def moments(self) -> tuple[float, float]:
        """E[t r(t)] and E[(t^2 - 1) r(t)], by parts E[r'] and E[t r'], about."""
        above, below = (np.diff(side) * _NODES for side in self.sides)
        first = (above - below) @ -np.diff(self.grid.tail)
        return float(first), float((above + below) @ -np.diff(self.grid.density))

    def kept(self, steps: Floats, words: Uint64s) -> Bools:
        """Whether lattice heights (whole numbers and a half, in steps) are kept: r(t) 2^63 of 2^63 words."""
        places = 2.0 * steps - (self.foot << int(_PLACES))
        inside = np.clip(places, 0.0, math.ldexp(len(self.rises) - 1, int(_PLACES))).astype(np.uint64)
        cell = inside >> _PLACES
        rises = np.array([*self.rises, _TOP], np.uint64)
        low, slope = rises[cell], rises[cell + np.uint64(1)] - rises[cell]
        part = slope * (inside & np.uint64((1 << int(_PLACES)) - 1))
        return np.asarray(words >> np.uint64(1) < (low << _PLACES) + part)


def _law(parts: Iterable[Floats], error: float = 0.0) -> AmplificationLaw:
    own, other, clone = (tuple(part.tolist()) for part in parts)
    return AmplificationLaw(own, other, clone, error=error)


@lru_cache(maxsize=64)
def _ramp(start: float) -> Shape:
    cells = _REACH * _NODES
    return Shape(int(_NODES * start), tuple(j * (_TOP // cells) for j in range(cells + 1)))


@lru_cache(maxsize=64)
def _tilted(signal: float) -> Shape:
    """e^(signal t), less what it is at the lower end, in decimals: the same on every machine."""
    cells = 2 * _REACH * _NODES
    with localcontext(Context(prec=40)):
        grown = [(Decimal(signal) * j / _NODES).exp() - 1 for j in range(cells + 1)]
        return Shape(-cells // 2, tuple(int(value / grown[-1] * _TOP) for value in grown))


@dataclass(frozen=True)
class LeaningUnit(DirectionRandomizer):
    """A randomizer of vectors of 2 to 16,384 dimensions by its shape. Reports are vectors in single
    precision."""

    MOST_EPSILON0: ClassVar[float] = 10.0

    @property
    @abstractmethod
    def shape(self) -> Shape:
        """How the probability of a height rises with it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.count("dimension", self.dimension, least=2, most=MOST_DIMENSION)
        if self.margin > _LARGEST_MARGIN * self.weight / WORD:
            raise ValueError(f"epsilon0 must be larger in {self.dimension} dimensions, got {self.epsilon0!r}")

    @property
    def _mean_rise(self) -> tuple[float, float]:
        """The mean of r, at least and at most."""
        mean, _, off = self.shape.means
        return down(mean - off, operations=2), up(mean + off, operations=2)

    @property
    def _step(self) -> float:
        """By how much h changes in a step, relatively, and the mean of r."""
        return STEP * self.shape.steepest * (math.expm1(self.epsilon0) + 1.0 / self._mean_rise[0])

    @property
    def twist(self) -> float:
        """By how much logarithms of densities may be off (T27): the rotation, the lattice, half steps."""
        return up(twist(self.dimension) + 2.0 * lattice_error(self.dimension) + self._step, operations=64)

    @property
    def margin(self) -> float:
        """e^(2 twist) - 1 <= 2.01 twist, as twist is below 1e-3 where this is below _LARGEST_MARGIN (T27)."""
        mean, apart, off = self.shape.means
        return up(2.01 * self.twist * (1.0 + 2.0 * (mean + off) / (apart - off)), operations=16)

    @cached_property
    def weight(self) -> int:
        """The height is drawn in proportion to r with probability weight / 2^64: so that epsilon0 also holds
        for the law, the margin included."""
        odds = down(math.expm1(self.epsilon0) * self._mean_rise[0], operations=CALL + 8, tiny=0.0)
        return max(0, weight_of_odds(Fraction(odds)) - math.ceil(Fraction(self.margin) * WORD))

    @property
    def realised_epsilon0(self) -> float:
        """Ratios of two densities, each off by e^(+-twist): twice that, and a twentieth more."""
        odds = Fraction(self.weight, WORD - self.weight) / Fraction(self._mean_rise[0])
        return min(self.epsilon0, up(log_rounded_up(1 + odds) + 2.1 * self.twist, operations=4))

    @property
    def _slope(self) -> float:
        """s, about."""
        return self.weight / WORD / self.shape.means[0]

    @property
    def mean_length(self) -> float:
        return self._slope * self.shape.moments[0]

    @property
    def second_moment(self) -> float:
        square = self.dimension + self._slope * self.shape.moments[1]
        return square * (self.radius / self.mean_length) ** 2

    @property
    def total_variation(self) -> float:
        """Of heights t and -t."""
        apart = self.shape.means[1] + self.shape.means[2]
        return up((self.weight / WORD + self.margin) * apart / self._mean_rise[0], operations=8)

    def law(self) -> AmplificationLaw:
        """The law of heights t and -t, with c lowered by the margin: own rounded up, all else down."""
        (least, most), (above, below) = self.shape.masses, self.shape.sides
        low = down(1.0 - self.weight / WORD - self.margin, operations=4)
        rest = 1.0 - 2.0 * math.fsum(most), 1.0 - 2.0 * math.fsum(least)
        r = np.concatenate([above[1:], below[1:], above[:1]])
        mirrored = np.concatenate([below[1:], above[1:], above[:1]])
        fewest, largest = np.append(np.tile(least, 2), rest[0]), np.append(np.tile(most, 2), rest[1])
        steep, gentle = ((1.0 - low) / mean for mean in self._mean_rise)
        own = up(largest * (low + steep * r), operations=8)
        other, clone = (down(fewest * part, operations=8) for part in (low + gentle * mirrored, low))
        return _law((own, other, clone))

    def facts(self) -> Facts:
        """From below: the pair is plus and minus the first axis, the others hold the second one, or x."""
        attained = max(0.0, self.realised_epsilon0 - 8.0 * self.margin)
        first = self._seen[0]
        return Facts(
            enclosed(attained, self.epsilon0),
            total_variation=self.total_variation,
            above=(self.law(),),
            concrete=(self._apart[0], first.among(first.own)),
        )

    def concrete_inputs(self) -> tuple[Any, ...]:
        half, r = self._apart[1], self.radius
        pair = (r * self._plane(side * math.sin(half), math.cos(half)) for side in (1.0, -1.0))
        away = self._plane(0.0, -1.0)
        return (*pair, r * away), *super().concrete_inputs()[1:]

    def _densities_at(self, heights: Floats) -> Floats:
        r = np.interp(heights, self.shape.heights, np.array(self.shape.rises) / _TOP)
        return np.asarray(1.0 - self.weight / WORD + self._slope * r)

    @cached_property
    def _apart(self) -> tuple[AmplificationLaw, float]:
        """Of the laws of a crowd away from the pair the one that shows most, and half the pair's angle."""
        square, plane = self._seen[1], self._in_a_plane
        found = [(square, 0.5 * math.pi)]
        found += [] if plane is None else [(plane, half_angle(self.epsilon0))]
        rows = [zip(law.gap, law.clone, strict=True) for law, _ in found]
        spread = [sum(g * g / c for g, c in row if c > 0.0) for row in rows]
        return found[spread.index(max(spread))]

    @cached_property
    def _seen(self) -> tuple[AmplificationLaw, AmplificationLaw]:
        """The pair as seen by who looks at the first entry only, at its cell of the grid, and by who looks at
        two, the others holding the second axis.

        Cells end half-way between two singles, so that rounding to one takes no report across."""
        shape, grid = self.shape, self.shape.grid.height.astype(np.float32)
        before = np.nextafter(grid, np.float32(-1.0)).astype(np.float64)
        mass, above, below, off = shape.lifted(np.maximum(0.5 * (grid + before), 0.0))
        plain, doubt = 1.0 - self.weight / WORD, shape.means[2] / self._mean_rise[0]
        doubt += float((off / mass).max()) * math.exp(self.epsilon0)
        error = up(doubt + 4.0 * lattice_error(2) + _NODES * self._step, operations=16)
        middle = [1.0 - 2.0 * math.fsum(mass)] if shape.foot > 0 else []  # tells nothing
        clone = np.concatenate([mass, mass, middle])
        own, other = (
            plain * clone + self._slope * np.concatenate([*sides, np.zeros(len(middle))])
            for sides in ((above, below), (below, above))
        )
        first = _law((own, other, clone), error)
        steep = np.log(own / clone / plain) * (_TYPES / self.epsilon0)
        kind = np.clip(np.ceil(steep - gamma(_UNITS)), 0, _TYPES).astype(np.intp)
        plane = [np.bincount(kind, part) for part in (clone, clone, own)]
        some = np.arange(mass.size, step=_CELLS)
        ends = [*some, *some + mass.size, 2 * mass.size][: 2 * some.size + len(middle)]
        cells = (np.add.reduceat(part, ends) for part in (own, other, clone))
        types = (np.outer(u, v).ravel() for u, v in zip(cells, plane, strict=True))
        return first, _law(types, 2.0 * error)

    @cached_property
    def _in_a_plane(self) -> AmplificationLaw | None:
        """The pair at an angle, the others opposite to its middle; None for a shape of many corners."""
        rises = np.array(self.shape.rises) / _TOP
        return plane_law(self.shape.heights, rises, self.weight / WORD, self.epsilon0, 2.0 * self._step)

    def _report(self, rows: Floats, share: Floats, words: Words) -> npt.NDArray[Any]:
        axis = self._points(rows, share, words)
        tilted = happens(self.weight, share.size, words)
        found = self._empty(share.size)
        left = np.arange(share.size)
        while left.size:
            drawn = lattice_normals(left.size * self.dimension, words).reshape(left.size, -1)
            drawn[tilted[left], 0] = self._heights(int(tilted[left].sum()), words)
            turned = turn(drawn, axis[left])
            short = np.sqrt(sum_by_halves(turned * turned)) * STEP <= longest(self.dimension)
            found[left[short]] = turned[short] * STEP
            left = left[~short]
        return found

    def _heights(self, count: int, words: Words) -> Floats:
        """Lattice normals, kept in proportion to r."""
        found, tries = np.empty(count), math.ceil(1.0 / self._mean_rise[0])
        left = count
        while left:
            drawn = lattice_normals(min(left, _AT_ONCE) * tries, words)
            kept = drawn[self.shape.kept(drawn, words.draw(drawn.size))][:left]
            found[count - left : count - left + kept.size] = kept
            left -= kept.size
        return found


@dataclass(frozen=True)
class RampUnit(LeaningUnit):
    """Vectors of l2 norm at most ``radius``, of 2 to 16,384 dimensions (see module).

    ``start``: the height at which the ramp begins, a multiple of 1/16 in [0, 2]; about 1/2 is best where
    epsilon0 is near 3, and less for smaller ones. Reports are vectors in single precision."""

    start: float = 0.5

    def __post_init__(self) -> None:
        start = float(self.start)
        if not (0.0 <= start <= _MOST_START and (_NODES * start).is_integer()):
            raise ValueError(f"start must be a multiple of 1/16 in [0, {_MOST_START:g}], got {self.start!r}")
        object.__setattr__(self, "start", start)
        super().__post_init__()

    @property
    def shape(self) -> Shape:
        return _ramp(self.start)


@dataclass(frozen=True)
class GaussianUnit(LeaningUnit):
    """Gaussian noise on a vector of l2 norm at most ``radius``, of 2 to 16,384 dimensions (see module).

    A report is noise alone, or the vector with noise. ``signal``: the vector's length over the deviation
    of an entry's noise, from 1/16 to 2. How often it is noise alone follows from ``epsilon0``; densities
    are held where they are 4 deviations from zero. Reports are vectors in single precision."""

    signal: float = 1.0

    def __post_init__(self) -> None:
        signal = _validate.positive("signal", self.signal)
        if not _LEAST_SIGNAL <= signal <= _MOST_SIGNAL:
            raise ValueError(f"signal must be in [{_LEAST_SIGNAL:g}, {_MOST_SIGNAL:g}], got {self.signal!r}")
        object.__setattr__(self, "signal", signal)
        super().__post_init__()

    @property
    def shape(self) -> Shape:
        return _tilted(self.signal)
