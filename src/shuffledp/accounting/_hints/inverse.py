"""Where to look for a parameter: a likely curve, corrected by what was certified so far."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from shuffledp._certified.rounding import LARGEST_EXPONENT, TINY

_MOST_STEPS = 16  # speed
_CLOSE = 1e-6  # speed: of the likely curve's logarithm
_LONGEST = 2.0  # speed: a step's logarithm
_POWERS = (0.4, 2.5)  # speed: of the likely curve that are believed
_FAR, _FARTHEST, _HALVINGS = 20.0, 40.0, 60  # speed
_SHORT, _WIDE = 1e-4, 1.1  # speed
_APART = 0.02  # speed: in logarithms of the likely curve; points that are nearer tell no power


@dataclass
class Path:
    """Values of a parameter at which a curve was certified, beside what was ``likely`` there.

    The curve is taken for a power of the likely one, times a constant: both follow from the last two points.
    A likely curve that is no number makes steps of a factor of two."""

    likely: Callable[[float], float]
    low: float
    high: float
    """Where the curve is smallest and largest."""
    slope: float = 1.0
    """Of the curve's logarithm in the value's, about."""
    apart: float = _APART
    _power: float = 1.0
    _points: list[tuple[float, float]] = field(default_factory=list)

    def start(self, first: float) -> float:
        """Where the likely curve is one, from ``first`` on; ``first`` if that cannot be told."""
        return self._where(0.0, first)

    def after(self, value: float, found: float, aim: float) -> float:
        """Where the curve's logarithm, ``found`` at ``value``, may be ``aim``."""
        likely = self._log(value)
        if not math.isfinite(found - likely):
            return value * math.exp2(-self._outward if found > 0.0 else self._outward)
        if self._points and abs(likely - self._points[-1][0]) > self.apart:
            power = (found - self._points[-1][1]) / (likely - self._points[-1][0])
            self._power = min(max(power, _POWERS[0]), _POWERS[1])
        self._points.append((likely, found))
        return self._where(likely + (aim - found) / self._power, value)

    def slope_at(self, value: float) -> float:
        """``slope`` about a value: of counts, the curve has steps."""
        far = value * _WIDE if value * _WIDE <= max(self.low, self.high) else value / _WIDE
        rise = self._log(far) - self._log(value)
        return abs(rise / math.log(_WIDE)) * self._power if 0.0 < abs(rise) < math.inf else self.slope

    @property
    def _outward(self) -> float:
        return 1.0 if self.low < self.high else -1.0

    def _log(self, value: float) -> float:
        likely = self.likely(value)
        return math.log(likely) if likely > 0.0 else math.nan

    def _where(self, level: float, start: float) -> float:
        """Secants of the likely curve, in logarithms."""
        at, height, steep = start, self._log(start), self._outward * self.slope_at(start) / self._power
        for _ in range(_MOST_STEPS):
            step = (level - height) / steep
            if not abs(step) > _CLOSE:  # nor if it is no number
                break
            there = at * math.exp(min(max(step, -_LONGEST), _LONGEST))
            there = min(max(there, min(self.low, self.high)), max(self.low, self.high))
            rise, run = self._log(there) - height, math.log(there / at)
            if not self._outward * rise * run > 0.0:
                break
            at, height, steep = there, height + rise, rise / run
        self.slope = abs(steep) * self._power
        return at


def power_law(one: float, power: float) -> Callable[[float], float]:
    """The curve that is one at ``one``; no number where it is none, or nearly."""

    def curve(value: float) -> float:
        logarithm = power * math.log(value / one) if value > 0.0 < one else math.nan
        return math.exp(logarithm) if abs(logarithm) < LARGEST_EXPONENT else math.nan

    return curve


def normal_distance(epsilon: float, delta: float) -> float:
    """About the mu of normal laws N(0, 1) and N(mu, 1) whose curve is ``delta`` at ``epsilon``: by halving,
    in z, of delta = phi(z) (m(z) - m(z + mu)), epsilon = mu (z + mu / 2), with Mills' ratio m."""
    if not 0.0 < delta < 1.0:
        return 0.0 if delta <= 0.0 else math.inf
    low, high, level = -_FAR, _FARTHEST, math.log(delta)
    for _ in range(_HALVINGS):
        z = 0.5 * (low + high)
        mu = _distance(epsilon, z)
        # Of nearly the same numbers the derivative: m' = z m - 1.
        excess = mills(z) - mills(z + mu) if mu > _SHORT else mu * (1.0 - z * mills(z))
        height = math.log(max(excess, TINY)) - 0.5 * z * z - 0.5 * math.log(2.0 * math.pi)
        low, high = (z, high) if height > level else (low, z)
    return _distance(epsilon, low)


def _distance(epsilon: float, z: float) -> float:
    """mu (z + mu / 2) = epsilon, without a difference of nearly equal numbers."""
    root = math.sqrt(z * z + 2.0 * epsilon)
    return 2.0 * epsilon / (root + z) if z > 0.0 else root - z


def normal_steepness(epsilon: float, delta: float) -> float:
    """By how much log delta grows with log mu, about, for such laws."""
    return math.log1p(_SHORT) / math.log(
        normal_distance(epsilon, (1.0 + _SHORT) * delta) / normal_distance(epsilon, delta)
    )


def mills(z: float) -> float:
    """(1 - Phi(z)) / phi(z)."""
    if z > _FAR:
        return 1.0 / z - 1.0 / z**3 + 3.0 / z**5
    if z < -_FAR:
        return math.inf
    return math.sqrt(0.5 * math.pi) * math.exp(0.5 * z * z) * math.erfc(z / math.sqrt(2.0))
