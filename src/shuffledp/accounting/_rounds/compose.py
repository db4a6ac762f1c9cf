"""Composition over rounds: the sum of independent lattice losses, certified.

``delta(epsilon) = E_P[(1 - e^{epsilon - L})_+] + Pr[L = inf]`` for the sum L of all rounds' losses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp._certified.lattice_sum import Group, HockeyStick, Own, log_transform, tail_sum
from shuffledp._certified.rounding import UNIT, Floats
from shuffledp.accounting._rounds.loss import LossDistribution

_SEARCH_STEPS = 60


@dataclass(frozen=True)
class ComposedLoss:
    """Independent sum of ``count`` copies of each distribution (all of one spacing)."""

    parts: tuple[tuple[LossDistribution, int], ...]

    @property
    def spacing(self) -> float:
        return self.parts[0][0].spacing

    @property
    def infinity(self) -> float:
        """Pr[L = inf], rounded up."""
        if any(law.infinity >= 1.0 and count for law, count in self.parts):
            return 1.0
        log_finite = sum(count * math.log1p(-law.infinity) for law, count in self.parts)
        return min(-math.expm1(log_finite) * (1.0 + 1e-12), 1.0)

    @property
    def largest(self) -> float:
        """The largest finite loss."""
        return self.spacing * sum(float(law.index[-1]) * count for law, count in self.parts)

    def delta(self, epsilon: Floats, theta: float | None = None) -> tuple[Floats, Floats]:
        """Enclosure (lower, upper) of delta of these discrete pairs at each epsilon >= 0.

        Any tilt ``theta`` is valid; by default the best one for each epsilon is looked for."""
        infinity = self.infinity
        out = np.zeros((2, epsilon.size))
        live = (epsilon < self.largest) & (infinity < 1.0)
        for i in np.flatnonzero(live):
            tilt = self.tilt_at(float(epsilon[i])) if theta is None else theta
            out[:, i : i + 1] = self._delta(epsilon[i : i + 1], tilt)
        out = infinity + out * (1.0 - infinity)
        return np.maximum(out[0] * (1.0 - 4e-12), 0.0), np.minimum(out[1] * (1.0 + 1e-12), 1.0)

    def _delta(self, epsilon: Floats, tilt: float) -> Floats:
        theta = np.full(epsilon.size, tilt)
        rows = epsilon.size
        groups = [
            Group(np.tile(law.index, (rows, 1)), np.tile(w, (rows, 1)), np.full(rows, float(c)))
            for law, w, c in self._laws()
        ]
        h = np.full(rows, self.spacing)
        k0 = np.ceil(epsilon / self.spacing)
        slack = 8.0 * UNIT * (np.abs(epsilon) + self.spacing)
        gap = -np.expm1(np.minimum(epsilon - self.spacing * k0, 0.0))
        own = Own(np.zeros((rows, 1)), np.ones((rows, 1, 1)))
        result = tail_sum(groups, own, k0, theta * self.spacing, HockeyStick(gap, h))
        scale = np.exp(result.log_scale)
        value, error = result.value[:, 0], result.error[:, 0]
        # Rounding of epsilon against the lattice moves the payoff by at most slack; if epsilon is on
        # a lattice point, that point may even be missed.
        cell = epsilon / self.spacing
        near = np.abs(cell - np.rint(cell)) <= 16.0 * UNIT * (1.0 + cell)
        reach = np.where(near, theta * self.spacing, 0.0)
        moved = slack * np.exp(np.minimum(result.log_scale + reach, 700.0))
        return np.stack(
            [
                np.maximum(scale * (value - error) - moved, 0.0),
                scale * (value + error) + moved,
            ]
        )

    def _laws(self) -> list[tuple[LossDistribution, Floats, int]]:
        return [(law, law.mass / (1.0 - law.infinity), count) for law, count in self.parts if count]

    def cumulants(self, theta: float) -> tuple[float, float, float]:
        """Logarithm of the moment generating function of L at theta, and two derivatives."""
        h = self.spacing
        total = np.zeros(3)
        for law, w, count in self._laws():
            loss = law.index * h
            k = float(log_transform(loss[None, :], w[None, :], np.array([theta]))[0])
            with np.errstate(under="ignore"):
                tilted = w * np.exp(theta * loss - k)
            tilted = tilted / tilted.sum()
            mean = float((tilted * loss).sum())
            total += count * np.array([k, mean, float((tilted * (loss - mean) ** 2).sum())])
        return float(total[0]), float(total[1]), float(total[2])

    def tilt_at(self, epsilon: float) -> float:
        """theta near the minimum of K(theta) - theta epsilon - log(theta (1 + theta))."""
        theta, low, high = 1.0, 0.0, self._steepest()
        for _ in range(60):
            _, mean, variance = self.cumulants(theta)
            slope = mean - epsilon - 1.0 / theta - 1.0 / (1.0 + theta)
            bend = variance + 1.0 / theta**2 + 1.0 / (1.0 + theta) ** 2
            # The function is convex: its slope says on which side of theta the minimum is.
            low, high = (theta, high) if slope < 0.0 else (low, theta)
            moved = min(max(theta - slope / bend, theta / 5.0), theta * 5.0)
            if not low < moved < high:
                moved = math.sqrt(low * high) if low > 0.0 else 0.2 * high
            done = abs(moved - theta) < 1e-3 * theta
            theta = moved
            if done:
                break
        # A steeper tilt than the best costs little and keeps the window short, unless nearly all
        # losses are beyond epsilon: then it would blow up every rounding error.
        steep = self._steep_enough(theta)
        while steep > theta and self.cumulants(steep)[0] - steep * epsilon > 3.0:
            steep = max(0.7 * steep, theta)
        return steep

    def _steep_enough(self, theta: float) -> float:
        floor = min(3.0 / self._deviation, 40.0 / self._reach())
        return min(max(theta, floor), self._steepest())

    @cached_property
    def _deviation(self) -> float:
        return math.sqrt(self.cumulants(0.0)[2] + 1e-300)

    def tilt_for(self, delta: float) -> tuple[float, float]:
        """(theta, epsilon) at which the saddle-point estimate of delta(epsilon) is ``delta``."""
        # About sqrt(2 log(1/delta)) / deviation; only a guess is wanted.
        rough = math.log(max(math.sqrt(2.0 * math.log(1.0 / delta)), 0.1) / self._deviation)
        steepest = math.log(self._steepest())
        low = min(max(math.log(1e-6 / self._reach()), rough - 3.0), steepest - 1e-3)
        high = max(min(steepest, rough + 3.0), low + 1e-3)
        for _ in range(50):
            middle = 0.5 * (low + high)
            theta = math.exp(middle)
            k, mean, variance = self.cumulants(theta)
            epsilon = mean - 1.0 / theta - 1.0 / (1.0 + theta)
            estimate = (
                k
                - theta * epsilon
                - math.log(theta * (1.0 + theta))
                - 0.5 * math.log(2.0 * math.pi * (variance + 1.0 / theta**2))
            )
            if estimate > math.log(delta):
                low = middle
            else:
                high = middle
            if high - low < 3e-3:
                break
        return theta, max(epsilon, 0.0)

    def _reach(self) -> float:
        return max(self.largest, self.spacing)

    def _steepest(self) -> float:
        """A tilt beyond which e^{theta L} of a single round would overflow."""
        top = max(float(law.index[-1]) for law, _ in self.parts) * self.spacing
        return 600.0 / max(top, self.spacing)  # losses may be zero or infinite only

    def upper_epsilon(self, delta: float, relative: float) -> float:
        """An epsilon with delta(epsilon) <= ``delta``, certified, aimed ``relative`` above the root."""
        if self.infinity >= delta:
            return math.inf
        return self._search(delta, relative, lambda low, high: high <= delta)

    def lower_epsilon(self, delta: float, relative: float) -> float:
        """An epsilon with delta(epsilon) >= ``delta``, certified (0 if there is none)."""
        return self._search(delta, -relative, lambda low, high: low >= delta)

    def _search(self, delta: float, relative: float, good: Callable[[float, float], bool]) -> float:
        """Newton in log delta against epsilon (slope -theta), aimed past the root by ``relative``.

        Returns the good point nearest the root among those evaluated; the end of the range of
        losses on the good side is one."""
        # Only the finite losses depend on epsilon.
        infinity = self.infinity
        if delta <= infinity or infinity == 1.0:
            return self.largest
        finite = (delta - infinity) / (1.0 - infinity)
        theta, point = self.tilt_for(finite)
        if point < 0.5 * self._deviation and float(self.delta(np.zeros(1))[1][0]) <= delta:
            return 0.0
        outside = self.largest if relative > 0.0 else 0.0
        best, miss = outside, self.largest - outside
        for step in range(_SEARCH_STEPS):
            point = min(max(point, 0.0), self.largest)
            tilt = self._steep_enough(theta) if step < 2 else None
            low, high = (float(v[0]) for v in self.delta(np.array([point]), tilt))
            if good(low, high):
                best = min(best, point) if relative > 0.0 else max(best, point)
            else:
                miss = max(miss, point) if relative > 0.0 else min(miss, point)
            if abs(best - miss) <= 2.0 * abs(relative) * best:
                break
            estimate = (0.5 * (low + high) - infinity) / (1.0 - infinity)
            root = point + math.log(estimate / finite) / theta if estimate > 0.0 else -1.0
            point = root + relative * max(abs(root), 1e-12)
            if good(low, high) and abs(root - best) <= 1.5 * abs(relative) * best:
                break  # as near as it was aimed at
            if step % 3 == 2 or not min(best, miss) < point < max(best, miss):
                point = 0.5 * (best + miss)
        return best


def compose(parts: Sequence[tuple[LossDistribution, int]]) -> ComposedLoss:
    """The independent sum; every distribution must share one spacing.

    The lattice is thinned to the multiples that are used."""
    used = np.concatenate([law.index for law, _ in parts]).astype(np.int64)
    step = int(np.gcd.reduce(used)) or 1
    return ComposedLoss(
        tuple(
            (LossDistribution(law.spacing * step, law.index / step, law.mass, law.infinity), count)
            for law, count in parts
        )
    )
