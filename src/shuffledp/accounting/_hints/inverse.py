"""Where to look for a parameter: a likely curve, corrected by what was certified so far."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from shuffledp._certified.rounding import TINY

_MOST_STEPS = 16  # speed
_CLOSE = 1e-6  # speed: of the likely curve's logarithm
_LONGEST = 2.0  # speed: a step's logarithm
_POWERS = (0.4, 2.5)  # speed: of the likely curve that are believed
_FAR, _FARTHEST, _HALVINGS = 20.0, 40.0, 60  # speed
_SHORT = 1e-4  # speed
_APART = 0.02  # speed: in logarithms; points that are nearer tell no power


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
        if self._points and abs(likely - self._points[-1][0]) > _APART:
            power = (found - self._points[-1][1]) / (likely - self._points[-1][0])
            self._power = min(max(power, _POWERS[0]), _POWERS[1])
        self._points.append((likely, found))
        return self._where(likely + (aim - found) / self._power, value)

    @property
    def _outward(self) -> float:
        return 1.0 if self.low < self.high else -1.0

    def _log(self, value: float) -> float:
        likely = self.likely(value)
        return math.log(likely) if likely > 0.0 else math.nan

    def _where(self, level: float, start: float) -> float:
        """Secants of the likely curve, in logarithms."""
        at, height, steep = start, self._log(start), self._outward * self.slope / self._power
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


def normal_epsilon(mu: float, delta: float) -> float:
    """About where the curve of the normal laws N(0, 1) and N(mu, 1) passes ``delta``: by halving, in z, of
    delta = phi(z) (m(z) - m(z + mu)), epsilon = mu (z + mu / 2), with Mills' ratio m."""
    if not (mu > 0.0 and delta > 0.0):
        return math.inf if mu > 0.0 else 0.0
    low, high, level = -0.5 * mu, _FARTHEST, math.log(delta)
    for _ in range(_HALVINGS):
        z = 0.5 * (low + high)
        far = z + mu
        # Of nearly the same numbers the derivative: m' = z m - 1.
        excess = mills(z) - mills(far) if mu > _SHORT else mu * (1.0 - z * mills(z))
        height = math.log(max(excess, TINY)) - 0.5 * z * z - 0.5 * math.log(2.0 * math.pi)
        low, high = (z, high) if height > level else (low, z)
    return mu * (low + 0.5 * mu)


def mills(z: float) -> float:
    """(1 - Phi(z)) / phi(z)."""
    if z > _FAR:
        return 1.0 / z - 1.0 / z**3 + 3.0 / z**5
    if z < -_FAR:
        return math.inf
    return math.sqrt(0.5 * math.pi) * math.exp(0.5 * z * z) * math.erfc(z / math.sqrt(2.0))
