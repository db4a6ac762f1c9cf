"""RampUnit: PrivUnit with a ramp in the place of a cap, the best shape after shuffling (T27).

A vector is first sent to a point u of the sphere (``vectors``). With t the height of a standard normal vector
above the plane across u, the report has the density

    h(t) = c + s r(t)   with respect to the normal law,   r(t) = min((t - start)_+, 4),   mean one:

with probability c a normal vector, otherwise one whose height is drawn in proportion to r. The largest ratio
is 1 + 4 s/c = e^epsilon0. Its mean is s Pr[start < t < start + 4] u, so a multiple of it is unbiased.

**Law.** Everybody's report has a density of at least c: clones. Two inputs are worst where one is most likely
just where the other is least: heights t and -t, at every alpha (T27, docs/proofs/ramp.md, for every shape).
Heights are spread to a grid of r, keeping their mean. Of all shapes a ramp has the most information per
variance of the amplification variable; PrivUnit's is a step. At the MNIST page's epsilon = 3 and 5,700 rounds
it has 0.45 of a trusted server's, where PrivUnit has 0.38.

**What is drawn is what is analysed.** Lattice normals, turned to u by an exact bijection, as PrivUnit's
(T10); the height is drawn by rejection, in whole numbers. All densities are those above up to a factor
e^(+-``twist``), which lowers c by 5.1 times as much in the law. *What it rests on*: as PrivUnit.

>>> ramp = RampUnit(dimension=1000, epsilon0=3.0)
>>> ramp.randomize(np.zeros(1000)).shape, ramp.margin < 1e-8
((1000,), True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from shuffledp import _validate
from shuffledp._certified.rounding import CALL, Floats, down, gamma, up
from shuffledp._randomness.exponential import log_rounded_up, weight_of_odds
from shuffledp._randomness.lattice_normals import STEP, lattice_normals
from shuffledp._randomness.sums import sum_by_halves
from shuffledp._randomness.uniform import WORD, Bools, happens
from shuffledp._randomness.words import Uint64s, Words
from shuffledp.facts import AmplificationLaw, Facts, enclosed
from shuffledp.randomizers._privunit_rotations import MOST_DIMENSION, lattice_error, longest, turn, twist
from shuffledp.randomizers.vectors import DirectionRandomizer

_RISE = 4  # standard deviations from the ramp's foot to its top
_NODES = 64  # of the grid of heights, a sixteenth apart; tightness
_MOST_START = 2.0
_LARGEST_MARGIN = 1e-3  # tightness: of the ramp's probability
_UNITS = 192  # soundness: of a normal tail and its integral up to 6 deviations, T27
_AT_ONCE = 1 << 10  # speed: heights
_LEVELS = np.uint64(64 - 46)  # 46 upper bits: _RISE is 2^46 steps


class _Normal(NamedTuple):
    """At the grid: the normal density, tail and integrated tail, and by how much the latter may be off."""

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


@lru_cache(maxsize=64)
def _grid(start: float) -> tuple[_Normal, Floats, Floats]:
    """The grid, and how much of a normal law goes to its points but the first, at least and at most.

    Every r between two points is sent to them, keeping its mean: hat functions, second differences of the
    integrated tail."""
    width = _RISE / _NODES
    normal = _Normal.at(np.asarray(start + np.arange(_NODES + 1) * width, np.float64))
    value = np.append(normal.beyond[:-1] - normal.beyond[1:], 0.0)
    mass = np.append(value[:-2] - value[1:-1], value[-2]) / width
    doubt = np.append(normal.doubt, 0.0)
    off = up((doubt[:-2] + 2.0 * doubt[1:-1] + doubt[2:]) / width + gamma(8) * mass, operations=8)
    return normal, np.maximum(mass - off, 0.0), mass + off


def _kept(steps: Floats, words: Uint64s) -> Bools:
    """Whether heights so many steps above the foot are kept: so many of 2^46 levels, rounded up, do it."""
    return np.asarray((words >> _LEVELS).astype(np.float64) < steps)


@dataclass(frozen=True)
class RampUnit(DirectionRandomizer):
    """Vectors of l2 norm at most ``radius``, of 2 to 16,384 dimensions (see module).

    ``start``: the height at which the ramp begins, a multiple of 1/16 in [0, 2]; about 1/2 is best where
    epsilon0 is near 3, and less for smaller ones. Reports are vectors in single precision."""

    start: float = 0.5

    MOST_EPSILON0: ClassVar[float] = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.count("dimension", self.dimension, least=2, most=MOST_DIMENSION)
        start = float(self.start)
        if not (0.0 <= start <= _MOST_START and (16.0 * start).is_integer()):
            raise ValueError(f"start must be a multiple of 1/16 in [0, {_MOST_START:g}], got {self.start!r}")
        object.__setattr__(self, "start", start)
        if self.margin > _LARGEST_MARGIN * self.weight / WORD:
            raise ValueError(f"epsilon0 must be larger in {self.dimension} dimensions, got {self.epsilon0!r}")

    @property
    def _mean_rise(self) -> tuple[float, float]:
        """The mean of r, at least and at most."""
        normal = _grid(self.start)[0]
        mean, off = normal.beyond[0] - normal.beyond[-1], normal.doubt[0] + normal.doubt[-1]
        return down(float(mean - off), operations=2), up(float(mean + off), operations=2)

    @property
    def twist(self) -> float:
        """By how much logarithms of densities may be off (T27): the rotation, the lattice, half steps."""
        steps = math.expm1(self.epsilon0) / _RISE + 1.0 / self._mean_rise[0]
        return up(twist(self.dimension) + 2.0 * lattice_error(self.dimension) + STEP * steps, operations=64)

    @property
    def margin(self) -> float:
        return 5.1 * self.twist

    @cached_property
    def weight(self) -> int:
        """The height is drawn from the ramp with probability weight / 2^64: so that epsilon0 also holds for
        the law, the margin included."""
        odds = down(math.expm1(self.epsilon0) * self._mean_rise[0] / _RISE, operations=CALL + 8, tiny=0.0)
        return max(0, weight_of_odds(Fraction(odds)) - math.ceil(Fraction(self.margin) * WORD))

    @property
    def realised_epsilon0(self) -> float:
        odds = Fraction(self.weight, WORD - self.weight) * _RISE / Fraction(self._mean_rise[0])
        return min(self.epsilon0, up(log_rounded_up(1 + odds) + 2.1 * self.twist, operations=4))

    @property
    def _slope(self) -> float:
        """s, about."""
        return self.weight / WORD / self._mean_rise[0]

    @property
    def mean_length(self) -> float:
        tail = _grid(self.start)[0].tail
        return self._slope * float(tail[0] - tail[-1])

    @property
    def second_moment(self) -> float:
        density = _grid(self.start)[0].density
        square = self.dimension + self._slope * float(density[0] - density[-1])
        return square * (self.radius / self.mean_length) ** 2

    @property
    def total_variation(self) -> float:
        """Of heights t and -t: all of the ramp."""
        return up(self.weight / WORD + self.margin, operations=4)

    def law(self) -> AmplificationLaw:
        """The law of heights t and -t, with c lowered by the margin: own rounded up, all else down."""
        normal, least, most = _grid(self.start)
        low = down(1.0 - self.weight / WORD - self.margin, operations=4)
        rise, (fewest, largest) = normal.height[1:] - self.start, self._mean_rise
        steep, gentle = (low + (1.0 - low) / mean * rise for mean in (fewest, largest))
        rest = 1.0 - 2.0 * math.fsum(most), 1.0 - 2.0 * math.fsum(least)
        own = up(np.concatenate([most * steep, most * low, [rest[1] * low]]), operations=8)
        other = down(np.concatenate([least * low, least * gentle, [rest[0] * low]]), operations=8)
        clone = down(np.concatenate([least, least, [rest[0]]]) * low, operations=8)
        return AmplificationLaw(tuple(own.tolist()), tuple(other.tolist()), tuple(clone.tolist()))

    def facts(self) -> Facts:
        """From below: the pair is plus and minus the first axis, the others hold the second one, or x."""
        attained = max(0.0, self.realised_epsilon0 - 8.0 * self.margin)
        seen = self._seen
        return Facts(
            enclosed(attained, self.epsilon0),
            total_variation=self.total_variation,
            above=(self.law(),),
            concrete=(seen, seen.among(seen.own)),
        )

    @cached_property
    def _seen(self) -> AmplificationLaw:
        """The pair as seen by who looks at the first entry only, at its cell of the grid.

        Cells end half-way between two singles, so that rounding to one takes no report across."""
        grid = _grid(self.start)[0].height.astype(np.float32)
        below = np.nextafter(grid, np.float32(-1.0)).astype(np.float64)
        ends = np.maximum(0.5 * (grid + below), 0.0)
        cell, (foot, top) = _Normal.at(ends), _Normal.at(np.array([self.start, self.start + _RISE])).beyond
        ramp = np.where(ends < self.start, foot, cell.density - self.start * cell.tail) - top
        mass, tilted = (part - np.append(part[1:], 0.0) for part in (cell.tail, ramp))
        plain, slope = 1.0 - self.weight / WORD, self._slope
        high, flat, rest = plain * mass + slope * tilted, plain * mass, 1.0 - 2.0 * float(cell.tail[0])
        doubt = 4.0 * gamma(_UNITS) * (cell.density + (1.0 + self.start) * cell.tail)
        error = up(float((doubt / np.minimum(mass, tilted)).max()) + self.twist, operations=16)
        # Heights in the middle, if there are any, tell nothing.
        own, other, clone = (
            (*first.tolist(), *second.tolist(), *([third] if rest > 0.0 else []))
            for first, second, third in (
                (high, flat, plain * rest), (flat, high, plain * rest), (mass, mass, rest),
            )
        )  # fmt: skip
        return AmplificationLaw(own, other, clone, error=error)

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
        found, tries = np.empty(count), math.ceil(_RISE / self._mean_rise[0])
        left = count
        while left:
            drawn = np.abs(lattice_normals(min(left, _AT_ONCE) * tries, words))
            kept = drawn[_kept(drawn - self.start / STEP, words.draw(drawn.size))][:left]
            found[count - left : count - left + kept.size] = kept
            left -= kept.size
        return found
