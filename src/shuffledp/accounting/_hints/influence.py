"""Where the curves of rounds matter for the delta(epsilon) of their sum.

delta(epsilon) = E[h(e^(epsilon - S))] with the curve h of one round and the loss S of all others: what h is
raised by near e counts with the probability that S is near epsilon - e, and, of the reversed pair's curve,
near epsilon + e. Where a sum is nearly normal under its tilt, E[e^(theta L)] tells as much (``Tilted``).
Where one round of large loss decides, no tilt suits the sum, and the law of S is taken from a Fourier
transform of binned and tilted losses (``Decided``). Both are relative to how fast delta falls as epsilon
grows, in logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from shuffledp._certified.rounding import Floats, capped, positive

Complexes = npt.NDArray[np.complex128]

_BINS = 1 << 14  # speed: of a sum
_LEAST_EXPONENT = 0.1  # speed: of theta epsilon; below, epsilon is ill-conditioned
_FAR = 12.0  # speed: deviations of a tilted sum
_FAR_FROM_NORMAL = (
    0.1  # speed: what the fourth moment of a tilted sum may differ by, in squares of its variance
)
_STEPS, _NOTHING = 0.3, 1e-280  # speed: the share of delta that one bin leaves; what is hidden by rounding
_TILTS = 1e-12, 1e12  # speed: far flatter and steeper than any that is good
_MOST_LAWS = 4  # speed: different ones
_BINS_OF_A_ROUND = 3.0  # tightness: in a deviation
_FARTHEST = 60.0  # speed: deviations of a normal sum
_AWAY = np.linspace(0.0, 9.0, 91)  # speed: deviations of a round up to which there are points
_THINNEST = 1.5  # speed: points in one


@dataclass(frozen=True)
class Part:
    """Losses of a round and their masses, and how many such rounds there are."""

    loss: Floats
    mass: Floats
    count: int

    def tilted(self, theta: float) -> tuple[float, Floats]:
        """log E[e^(theta L)], and the masses under the tilt."""
        exponent = np.log(positive(self.mass)) + theta * self.loss
        top = float(exponent.max())
        mass = np.exp(exponent - top)
        total = float(mass.sum())
        return top + math.log(total), mass / total


@dataclass(frozen=True)
class Tilted:
    """Of sums that are nearly normal under the tilt ``theta``."""

    parts: Sequence[Part | NormalPart]
    theta: float
    epsilon: float
    delta: float | None = None

    @property
    def about(self) -> float:
        """The epsilon that is asked about."""
        return self.epsilon

    def ahead(self, place: int, edges: Floats) -> Floats:
        """What a rise of the curve of these rounds counts, in each cell between two ``edges``."""
        return self._cells(place, edges, self.theta)

    def behind(self, place: int, edges: Floats) -> Floats:
        """The same of the reversed pair's curve."""
        return self._cells(place, edges, -self.theta - 1.0)

    def _cells(self, place: int, edges: Floats, rate: float) -> Floats:
        part, theta = self.parts[place], self.theta
        middle, (log_all, _) = 0.5 * (edges[1:] + edges[:-1]), part.tilted(theta)
        scale = part.count / max(theta * self.epsilon, _LEAST_EXPONENT)
        width = edges[1:] - edges[:-1]
        found = scale * theta * (theta + 1.0) * np.exp(capped(rate * middle - log_all)) * width
        # The others' loss is there with a probability of one at most.
        return np.asarray(found if self.delta is None else np.minimum(found, scale / positive(self.delta)))


@dataclass(frozen=True)
class Decided:
    """Of sums that single rounds decide, tilted by ``theta`` for the sake of their digits."""

    parts: Sequence[Part]
    theta: float
    epsilon: float
    delta: float | None

    @property
    def about(self) -> float:
        """As above."""
        return self._answer[0]

    def ahead(self, place: int, edges: Floats) -> Floats:
        """As above."""
        epsilon, falls = self._answer
        found = self._others(place).between(epsilon - edges[1:], epsilon - edges[:-1])
        return np.asarray(self.parts[place].count / falls * found)

    def behind(self, place: int, edges: Floats) -> Floats:
        """Likewise: H_(1/alpha) counts 1/alpha times, left of one."""
        epsilon, falls = self._answer
        found = self._others(place).between(epsilon + edges[:-1], epsilon + edges[1:])
        return np.asarray(self.parts[place].count / falls * np.exp(-edges[:-1]) * found)

    @cached_property
    def _answer(self) -> tuple[float, float]:
        """Epsilon, where delta is asked about, and how much delta falls there as epsilon grows e-fold."""
        place, above, hidden = self._curve
        at = int(np.argmin(np.abs(place - self.epsilon)))
        if self.delta is not None:
            at = int(np.argmax(above - hidden <= self.delta))
        epsilon = max(float(place[at]), 0.0)
        return epsilon, positive(max(epsilon * hidden[at], _LEAST_EXPONENT * (above[at] - hidden[at])))

    @cached_property
    def _curve(self) -> tuple[Floats, Floats, Floats]:
        """Places, and the two parts whose difference delta is."""
        place, mass = self._others(None).law
        above = np.append(np.cumsum(mass[::-1])[::-1], 0.0)[1:]
        hidden = np.append(np.cumsum((mass * np.exp(-place))[::-1])[::-1], 0.0)[1:] * np.exp(place)
        return place, above, hidden

    def _others(self, place: int | None) -> _Sum:
        counts = [part.count - (place == i) for i, part in enumerate(self.parts)]
        power = np.ones(_BINS // 2 + 1, complex)
        log_all = 0.0
        for (log_one, wave), count in zip(self._waves, counts, strict=True):
            power, log_all = power * wave**count, log_all + count * log_one
        return _Sum(
            np.maximum(np.fft.irfft(power, _BINS), 0.0), self._first, self._width, self.theta, log_all
        )

    @cached_property
    def _laws(self) -> list[tuple[float, Floats]]:
        return [part.tilted(self.theta) for part in self.parts]

    @cached_property
    def _waves(self) -> list[tuple[float, Complexes]]:
        """Of each round, on bins: every loss on its two neighbours."""
        found = []
        for part, (log_all, mass) in zip(self.parts, self._laws, strict=True):
            place = part.loss / self._width
            left = np.floor(place)
            bins = [np.mod(left + side, _BINS).astype(np.intp) for side in (0.0, 1.0)]
            right = mass * (place - left)
            law = np.bincount(bins[0], mass - right, _BINS) + np.bincount(bins[1], right, _BINS)
            found.append((log_all, np.fft.rfft(law)))
        return found

    @cached_property
    def _moments(self) -> tuple[float, float]:
        mean, variance = 0.0, 0.0
        for part, (_, mass) in zip(self.parts, self._laws, strict=True):
            one = float(mass @ part.loss)
            mean += part.count * one
            variance += part.count * float(mass @ (part.loss - one) ** 2)
        return mean, math.sqrt(variance)

    @cached_property
    def _width(self) -> float:
        largest = max(float(np.abs(part.loss).max()) for part in self.parts)
        return (2.0 * largest + 2.0 * _FAR * self._moments[1]) / _BINS

    @property
    def _first(self) -> float:
        """The first bin: half of them are below what is expected under the tilt."""
        return math.floor(self._moments[0] / self._width) - _BINS // 2

    @property
    def fine(self) -> bool:
        """Whether bins show what single rounds are like, and what is asked about."""
        laws = ((part, part.mass / positive(part.mass.sum())) for part in self.parts)
        spread = [float(mass @ part.loss**2 - (mass @ part.loss) ** 2) for part, mass in laws]
        if not (self._width > 0.0 and min(spread) > (_BINS_OF_A_ROUND * self._width) ** 2):
            return False
        place, above, hidden = self._curve
        epsilon, delta = self._answer[0], above - hidden
        found = float(delta[int(np.argmin(np.abs(place - epsilon)))])
        inside = place[0] < epsilon < place[-1]
        return bool(inside and found > _STEPS * (positive(self.delta) if self.delta else _NOTHING))


@dataclass(frozen=True)
class _Sum:
    """Tilted masses of a sum on bins, which go round."""

    tilted: Floats
    first: float
    width: float
    theta: float
    log_all: float

    @cached_property
    def law(self) -> tuple[Floats, Floats]:
        """Places, and masses without the tilt."""
        bins = self.first + np.arange(float(_BINS))
        place = bins * self.width
        tilted = self.tilted[np.mod(bins, _BINS).astype(np.intp)]
        return place, np.asarray(tilted * np.exp(capped(self.log_all - self.theta * place)))

    def between(self, low: Floats, high: Floats) -> Floats:
        """The mass of each interval."""
        place, mass = self.law
        edges = np.append(place - 0.5 * self.width, place[-1] + 0.5 * self.width)
        # From above: masses far below differ by many orders from those.
        above = np.append(np.cumsum(mass[::-1])[::-1], 0.0)
        return np.asarray(np.interp(low, edges, above) - np.interp(high, edges, above))


@dataclass(frozen=True)
class NormalSum:
    """A sum of normal losses, of which ``Tilts`` can make its guesses before any curve is looked at."""

    variance: float

    @property
    def reach(self) -> float:
        """As far as anything is asked about."""
        return _FARTHEST * math.sqrt(self.variance)

    @property
    def steepest(self) -> float:
        """Far steeper than any tilt of a delta."""
        return _FARTHEST / math.sqrt(self.variance)

    @property
    def largest(self) -> float:
        """Nothing ends."""
        return self.reach

    def cumulants(self, theta: float) -> tuple[float, float, float]:
        """log E[e^(theta L)] of the loss of a normal pair, and two derivatives."""
        return 0.5 * self.variance * theta * (theta + 1.0), self.variance * (theta + 0.5), self.variance

    def higher_cumulants(self, theta: float) -> tuple[float, float]:
        """None."""
        return 0.0, 0.0


@dataclass(frozen=True)
class NormalPart:
    """Rounds of normal losses, of this deviation."""

    scale: float
    count: int

    @property
    def variance(self) -> float:
        """Of their sum."""
        return self.count * self.scale**2

    def tilted(self, theta: float) -> tuple[float, None]:
        """log E[e^(theta L)] of one."""
        return 0.5 * self.scale**2 * theta * (theta + 1.0), None


def normal_places(parts: Sequence[NormalPart], asked: Sequence[Tilted], allowed: float) -> list[Floats]:
    """Points at which to sample each round's curve, if losses were normal: the fewest whose cells add about
    ``allowed``, and so far out that little is left.

    A cell of width d near e adds d^3 w(e), by ``Tilted`` and the density n of a normal loss that the tilt
    moves: w = count theta (theta + 1) / (12 theta epsilon) (n(e) + n(-e)). Points as dense as the cube
    root of w are the fewest."""
    rows = []
    for part in parts:
        found = np.zeros_like(_AWAY)
        for theta, epsilon in {(each.theta, each.epsilon) for each in asked}:
            moved = part.scale * (theta + 0.5)
            tilted = np.exp(-0.5 * (_AWAY - moved) ** 2) + np.exp(-0.5 * (_AWAY + moved) ** 2)
            rate = theta * (theta + 1.0) / (12.0 * max(theta * epsilon, _LEAST_EXPONENT))
            found = np.maximum(found, part.variance * rate / math.sqrt(2.0 * math.pi) * tilted)
        rows.append(np.cbrt(found))
    step = float(_AWAY[1])
    whole = sum(float(row.sum()) for row in rows) * step
    places = []
    for row, part in zip(rows, parts, strict=True):
        density = np.maximum(row * math.sqrt(whole / allowed), _THINNEST)
        upto = np.append(0.0, np.cumsum(0.5 * step * (density[1:] + density[:-1])))
        places.append(part.scale * np.interp(np.arange(math.ceil(upto[-1]) + 1.0), upto, _AWAY))
    return places


def influence(parts: Sequence[Part], theta: float, epsilon: float, delta: float | None) -> Tilted | Decided:
    """Of a question about ``epsilon``, or about where the sum's curve passes ``delta`` (about there)."""
    theta = min(max(theta, _TILTS[0]), _TILTS[1]) if math.isfinite(theta) else 1.0
    epsilon = max(epsilon, 0.0) if math.isfinite(epsilon) else 1.0
    with np.errstate(all="ignore"):  # a tilt may be absurd
        if len(parts) <= _MOST_LAWS and abs(_excess(parts, theta)) > _FAR_FROM_NORMAL:
            found = Decided(parts, theta, epsilon, delta)
            if found.fine:
                return found
    return Tilted(parts, theta, epsilon, delta)


def _excess(parts: Sequence[Part], theta: float) -> float:
    """Of the tilted sum's fourth moment, in squares of its variance."""
    variance, fourth = 0.0, 0.0
    for part in parts:
        _, mass = part.tilted(theta)
        away = (part.loss - float(mass @ part.loss)) ** 2
        one = float(mass @ away)
        variance += part.count * one
        fourth += part.count * (float(mass @ away**2) - 3.0 * one**2)
    return fourth / positive(variance**2)
