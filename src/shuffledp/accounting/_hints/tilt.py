"""Guesses for composition: a lattice for the losses, and tilts for their sums.

Any lattice and any tilt is valid; a good one makes the answer close and quick."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from shuffledp._certified.rounding import Floats, gamma, positive
from shuffledp.accounting._hints.influence import NormalSum

if TYPE_CHECKING:
    from shuffledp.accounting._rounds.round import Rounds

_MOST_STEPS = 60  # speed
_ALIKE, _TOGETHER = 2.0, 64  # speed: deviations from the first to the last of one tilt; and how many
_WIDEST = 40.0  # speed: deviation of a round's loss, a few of which are as far as a curve is followed
_BEYOND = 32  # speed: units
_SHORT = 0.1  # speed: of epsilon, and of what is left up to the largest loss; further on nothing is known
_SPARE_EXPONENT = 3.0  # speed: how far, in nats, a steeper tilt may raise the exponent
_WIDE = 16.0  # speed: a tilted variance, in plain ones
_SPARE_DIGITS = 14.0  # speed: nats that a flatter tilt may cost
_UNUSUAL = 3.0  # speed: from the mean to epsilon, in distances of normal sums
_FLATTER = 0.85 ** np.arange(40.0)  # speed: of a tilt
_WINDOW = 10.0, 46.0  # speed: about, of a sum: tilted deviations, and one over the tilt


class Loss(Protocol):
    """What is known of a sum of losses: as ``ComposedLoss``."""

    @property
    def largest(self) -> float: ...
    @property
    def reach(self) -> float: ...
    @property
    def steepest(self) -> float: ...
    def cumulants(self, theta: float) -> tuple[float, float, float]: ...
    def higher_cumulants(self, theta: float) -> tuple[float, float]: ...


class Tilts:
    """Tilts for one sum of losses."""

    def __init__(self, loss: Loss) -> None:
        self._loss = loss
        _, self._mean, variance = loss.cumulants(0.0)
        deviation = math.sqrt(positive(variance))
        self.deviation = deviation
        self._floor = min(3.0 / deviation, 40.0 / loss.reach)

    def at(self, epsilon: Floats) -> Floats:
        """Tilts for each epsilon; neighbours have nearly the same."""
        order = np.argsort(epsilon)
        found, best = np.zeros(epsilon.size), 1.0
        for i in order:
            best = self._best(float(epsilon[i]), best)
            found[i] = self._quick(float(epsilon[i]), best)
        return found

    def alike(self, epsilon: Floats) -> Iterator[tuple[npt.NDArray[np.intp], float]]:
        """Places of neighbours that one tilt suits, and that tilt: as far as the tilted sum spreads."""
        order = np.argsort(epsilon)
        while order.size:
            first = epsilon[order[:1]]
            tilt, count = float(self.at(first)[0]), 1
            if order.size > 1:
                spread = math.sqrt(positive(self._loss.cumulants(tilt)[2]))
                count = min(int((epsilon[order] <= first + _ALIKE * spread).sum()), _TOGETHER)
            if count > 1:
                tilt = float(self.at(epsilon[order[count // 2 : count // 2 + 1]])[0])
            yield order[:count], tilt
            order = order[count:]

    def _best(self, epsilon: float, start: float) -> float:
        """theta near the minimum of K(theta) - theta epsilon - log(theta (1 + theta))."""
        theta, low, high = min(start, self._loss.steepest), 0.0, self._loss.steepest
        for _ in range(_MOST_STEPS):
            _, mean, variance = self._loss.cumulants(theta)
            slope = mean - epsilon - 1.0 / theta - 1.0 / (1.0 + theta)
            bend = variance + 1.0 / theta**2 + 1.0 / (1.0 + theta) ** 2
            # The function is convex: its slope says on which side of theta the minimum is.
            low, high = (theta, high) if slope < 0.0 else (low, theta)
            moved = min(max(theta - slope / bend, theta / 5.0), theta * 5.0)
            if not low < moved < high:
                moved = math.sqrt(low * high) if low > 0.0 else 0.2 * high
            done = abs(moved - theta) < 1e-2 * theta
            theta = moved
            if done:
                break
        return theta

    def _quick(self, epsilon: float, theta: float) -> float:
        # A steeper tilt than the best costs little and keeps the window short, unless nearly all
        # losses are beyond epsilon: then it would blow up every rounding error.
        steep = self.steep_enough(theta)
        while steep > theta and self._loss.cumulants(steep)[0] - steep * epsilon > _SPARE_EXPONENT:
            steep = max(0.7 * steep, theta)
        return self._narrow(epsilon, steep)

    def steep_enough(self, theta: float) -> float:
        """At least so steep that the window is short."""
        return min(max(theta, self._floor), self._loss.steepest)

    def for_delta(self, delta: float, closely: bool = False) -> tuple[float, float]:
        """(theta, epsilon) at which the saddle-point estimate of delta(epsilon) is ``delta``.

        ``closely``: with its next order, and a last step in epsilon."""
        # About sqrt(2 log(1/delta)) / deviation; only a guess is wanted.
        rough = math.log(max(math.sqrt(2.0 * math.log(1.0 / delta)), 0.1) / self.deviation)
        steepest = math.log(self._loss.steepest)
        low = min(max(math.log(1e-6 / self._loss.reach), rough - 3.0), steepest - 1e-3)
        high = max(min(steepest, rough + 3.0), low + 1e-3)
        middle = 0.5 * (low + high)
        if not isinstance(self._loss, NormalSum):  # its solution is found in no time, and is near
            normal = _saddle(NormalSum(self.deviation**2), delta, low, high, middle)
            middle = min(max(math.log(normal.theta), low + 1e-9), high - 1e-9)
        found = _saddle(self._loss, delta, low, high, middle)
        theta, epsilon, variance, second, above = (
            found.theta,
            found.epsilon,
            found.variance,
            found.second,
            found.above,
        )
        usual = self._mean + _UNUSUAL * self.deviation * math.sqrt(2.0 * math.log(1.0 / delta))
        if variance > _WIDE * self.deviation**2 or epsilon > usual:
            return self._before_a_jump(delta, theta)
        if closely:
            third, fourth = self._loss.higher_cumulants(theta)
            third -= 2.0 / theta**3 + 2.0 / (1.0 + theta) ** 3
            fourth += 6.0 / theta**4 + 6.0 / (1.0 + theta) ** 4
            above += math.log1p(max(fourth / (8.0 * second**2) - 5.0 * third**2 / (24.0 * second**3), -0.5))
            # Along epsilon the logarithm falls by theta, and by the square over twice the second derivative.
            step = 2.0 * above / (theta + math.sqrt(max(theta**2 + 2.0 * above / second, 0.0)))
            if abs(step) < _SHORT * min(epsilon, self._loss.largest - epsilon):
                epsilon += step
        return theta, max(epsilon, 0.0)

    def _before_a_jump(self, delta: float, theta: float) -> tuple[float, float]:
        """Where a tilted sum goes over from its bulk to many rare losses there is no saddle point: the
        smallest epsilon of any tilt."""
        thetas = theta * _FLATTER
        found = [self._loss.cumulants(each) for each in thetas.tolist()]
        k, _, variance = np.array(found).T
        spread = np.log(thetas * (1.0 + thetas)) + 0.5 * np.log(2.0 * math.pi * (variance + 1.0 / thetas**2))
        epsilon = (k - spread - math.log(delta)) / thetas
        best = int(epsilon.argmin())
        least = max(float(epsilon[best]), 0.0)
        return self._narrow(least, float(thetas[best])), least

    def _narrow(self, epsilon: float, theta: float) -> float:
        """A flatter tilt of a shorter window, where a steep one finds rare losses beside the bulk: digits are
        to spare."""
        if not self._loss.cumulants(theta)[2] > _WIDE * self.deviation**2:
            return theta
        thetas = theta * _FLATTER
        k, _, variance = np.array([self._loss.cumulants(each) for each in thetas.tolist()]).T
        exponent = k - thetas * epsilon
        window = _WINDOW[0] * np.sqrt(positive(variance)) + _WINDOW[1] / thetas
        return float(
            thetas[int(np.where(exponent <= exponent[0] + _SPARE_DIGITS, window, math.inf).argmin())]
        )


@dataclass(frozen=True)
class _Saddle:
    """A tilt, the epsilon it suits, the tilted sum's variance, the exponent's second derivative, and by how
    much the estimate there is above delta, in logarithms."""

    theta: float
    epsilon: float
    variance: float
    second: float
    above: float


def _saddle(loss: Loss, delta: float, low: float, high: float, middle: float) -> _Saddle:
    """Where the saddle-point estimate of delta(epsilon) is ``delta``: log theta from low to high."""
    for _ in range(_MOST_STEPS):
        theta = math.exp(middle)
        k, mean, variance = loss.cumulants(theta)
        epsilon = mean - 1.0 / theta - 1.0 / (1.0 + theta)
        second = variance + 1.0 / theta**2 + 1.0 / (1.0 + theta) ** 2
        exponent = k - theta * epsilon - math.log(theta * (1.0 + theta))
        above = exponent - 0.5 * math.log(2.0 * math.pi * second) - math.log(delta)
        low, high = (middle, high) if above > 0.0 else (low, middle)
        # Newton's step: in log theta the estimate falls by about theta^2 variance, and one.
        step = above / (1.0 + theta * theta * variance)
        if min(abs(step), high - low) < 3e-3:
            break
        middle = middle + step if low < middle + step < high else 0.5 * (low + high)
    return _Saddle(theta, epsilon, variance, second, above)


def lattice_spacing(rounds: Rounds, resolution: float, stride: int) -> float:
    """The spacing of one lattice for all rounds.

    Sampling at distance d adds about d^2/8 to the variance of a round's loss (d times its deviation
    if that is smaller): keep the sum below a share of the total. The largest loss is put on it, or rather a
    number that is larger also after rounding."""
    scales = [min(part.profile.hints.scale, part.profile.epsilon_max / 8.0, _WIDEST) for part, _ in rounds]
    counts = [count for _, count in rounds]
    total = sum(count * scale * scale for count, scale in zip(counts, scales, strict=True))
    h = max(scales) or 1e-3  # rounds whose every difference is seen at once have no scale
    if len(rounds) == 1 and total > 0.0:  # most of the steps at once
        h *= 0.9 ** max(math.floor(0.5 * math.log(6.0 * resolution) / math.log(0.9)), 0)
    for _ in range(200):
        added = sum(count * min(h, 8.0 * scale) for count, scale in zip(counts, scales, strict=True)) * h
        if added <= 6.0 * resolution * total:
            break
        h *= 0.9
    h /= stride
    top = max(part.profile.epsilon_max for part, _ in rounds)
    on = 0.0 < top < math.inf and top / h < 1e7
    return (1.0 + gamma(_BEYOND)) * top / (stride * math.ceil(top / (h * stride))) if on else h
