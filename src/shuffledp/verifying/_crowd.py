"""Crowds that hold what they like, in balls: the crowd theorem T16 (docs/proofs/crowd.md), by V5.

r of the n - 1 others are a pool, n' = n - 1 - r remain; for every theta > 0

    H <= max over z of E[b_z(l)] + rare,    b_z(l) = l T_z(l theta),

T_z(tau) the sum of Theorem V1 with sizes in place of real parts, which for even n' is above its integral. l
is a likelihood ratio of r + 1 reports: convex polygons of it have means below sums of the pool's curve. In
random cohorts there is no pool, and l is 1.
Floats choose r, theta and the corners: any are valid."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from flint import acb, arb

from shuffledp.verifying._balls import positive
from shuffledp.verifying._positive_part import TiltedSum, Variable

_STEPS = (*(0.4 * i for i in range(8)), *(3.2 + 0.6 * i for i in range(5)), *(6.2 + i for i in range(8)))
_RARE = 0.03, 0.004  # speed, tightness: of the bound, what rare pools add as guessed, and as aimed at
_POOLED_VARIANCES = 4.0  # speed
_LARGEST_SHARE = 0.3  # speed
_POOLS, _WELL = 3, 1.7  # speed: sizes that are tried, and what is good, as a multiple of the guess
_LOSS = 1e-3  # tightness: of a blur


@dataclass(frozen=True)
class Pool:
    """``curve`` of so many users at a logarithm; about the ``variance`` of X; no loss exceeds ``local``."""

    curve: Callable[[int, float], arb]
    variance: float
    local: arb

    def size(self, n: int, guess: float) -> int:
        """Where what is lost with the members balances what their weights cost; n - 1 less it is even."""
        rare = -math.log(max(_RARE[0] * guess, 1e-300))
        least = max(math.sqrt(n * self.variance), _POOLED_VARIANCES * self.variance * rare, 1.0)
        size = math.ceil(math.pow(2.0, 0.5 * math.ceil(2.0 * math.log2(least))))
        return size + (n - 1 - size) % 2

    def corners(self, size: int) -> list[_Corner]:
        """From l = 1 to beyond all there are."""
        scale, most = math.sqrt(self.variance / (size + 1)), float(self.local.upper())
        logs = [scale * step for step in _STEPS if scale * step < most]
        at = [(arb(log), self.curve(size + 1, log)) for log in logs]
        return [_Corner(log, log.exp(), excess) for log, excess in [*at, (self.local, arb(0))]]


@dataclass(frozen=True)
class _Corner:
    log: arb
    weight: arb
    excess: arb


def crowd(laws: Sequence[Variable], n: int, pool: Pool) -> arb:
    """An upper bound of the curve, X having one of these laws, or a mixture, given any third input."""
    guess, best = max(_guess(law, n)[1] for law in laws), arb(1)
    size = pool.size(n, guess)
    for _ in range(_POOLS):
        if size <= _LARGEST_SHARE * n:
            best = best.min(_with_pool(laws, n - 1 - size, pool.corners(size), guess))
        if best <= arb(_WELL * guess):
            break
        size = math.ceil(1.5 * size)
        size += (n - 1 - size) % 2
    return best


def _with_pool(laws: Sequence[Variable], users: int, corners: list[_Corner], guess: float) -> arb:
    last, rare = _last(corners, guess)
    corners = corners[: last + 1]
    scaled = [*(1 / one.weight for one in corners[:0:-1]), *(one.weight for one in corners)]
    theta = max((_guess(law, users) for law in laws), key=lambda found: found[1])[0]
    ordered = sorted(laws, key=lambda law: -law.cumulants(theta)[0])
    most = _mean(corners, scaled, [_Heights(ordered[0], users, theta).upper(one) for one in scaled])
    for law in ordered[1:]:
        heights = _Heights(law, users, theta)
        for values in (heights.crude, heights.upper):
            found = _mean(corners, scaled, [values(one) for one in scaled])
            if found <= most:
                break
        most = most.max(found)
    # A rare member is taken out of the sum, where its weight becomes zero: b(0) = 1/(2 n' theta).
    return most + rare * (1 + 1 / (2 * users * arb(theta)))


def without_pool(laws: Sequence[Variable], n: int) -> arb:
    """The same of a random cohort of n users, X being that of the cohort: all weights are one. The mean of an
    odd number of terms spreads less than that of one less."""
    users = n - n % 2
    theta = max((_guess(law, users) for law in laws), key=lambda found: found[1])[0]
    most = arb(0)
    for law in sorted(laws, key=lambda law: -law.cumulants(theta)[0]):
        if not _Heights(law, users, theta).crude(arb(1)) <= most:
            most = most.max(_Heights(law, users, theta).upper(arb(1)))
    return most


def by_coins(laws: Sequence[Variable], n: int, rate: arb, away: arb) -> arb:
    """The same if each of n users takes part by a coin; ``away`` = 1 - alpha is the X of those who do not."""
    mixed = [Variable([*law.values, away], [*(rate * m for m in law.masses), 1 - rate]) for law in laws]
    theta = max((_guess(law, n) for law in mixed), key=lambda found: found[1])[0]
    most, coin = arb(0), (rate, (away * theta).exp())
    for law, whole in sorted(zip(laws, mixed, strict=True), key=lambda pair: -pair[1].cumulants(theta)[0]):
        if not _Heights(whole, n, theta).crude(arb(1)) <= most:
            made = TiltedSum.at(theta, whole, n, _LOSS)
            most = most.max(replace(made, law=law, coin=coin, absolute=True).upper())
    return most + rate**n


def _guess(law: Variable, n: int) -> tuple[float, float]:
    """A tilt, and about what the bound comes to."""
    theta = law.tilt(n)
    log, _, variance = law.cumulants(theta)
    height = n * log - 2.0 * math.log(theta) - 0.5 * math.log(2.0 * math.pi * n * variance) - math.log(n)
    return theta, math.exp(min(height, 0.0))


@dataclass(frozen=True)
class _Heights:
    """l T(l theta). X is blurred, by as much for every l: T is that of one law."""

    law: Variable
    users: int
    theta: float

    @cached_property
    def _blur(self) -> float:
        return TiltedSum.at(self.theta, self.law, self.users, _LOSS).blur

    def upper(self, weight: arb) -> arb:
        made = TiltedSum.at(float(weight) * self.theta, self.law, self.users, _LOSS)
        return replace(made, theta=weight * self.theta, blur=self._blur, absolute=True).upper() * weight

    def crude(self, weight: arb) -> arb:
        """Sizes are at most that of the first, and 1/|s|^2 has the integral pi/tau."""
        tilt = weight * self.theta
        return self.law.transform(acb(tilt)).real ** self.users / (2 * self.users * tilt) * weight


def _last(corners: Sequence[_Corner], guess: float) -> tuple[int, arb]:
    """The first corner beyond which weights are rare, and their probability at most, under either law.

    With A: l > L, delta(t) >= (L - e^t) Pr[A]; with A: l < 1/L, delta(t) >= (1 - e^t/L) Pr[A]."""
    best = arb(2)
    for place in range(1, len(corners) - 1):
        top = corners[place].weight
        for one in corners[:place]:
            found = one.excess / (top - one.weight)
            best = best.min(found * (1 + top))
        if best <= arb(_RARE[1] * guess):
            return place, best
    return len(corners) - 1, arb(0)


def _mean(corners: Sequence[_Corner], scaled: Sequence[arb], values: Sequence[arb]) -> arb:
    """Of the polygon through the values, made convex from l = 1 on, raised between its corners."""
    middle = len(corners) - 1
    step = arb(0)
    for low, high in pairwise(scaled):
        step = step.max(high / low - 1)
    height = [value * (step**2 / 8).exp() for value in values]
    total, outward = height[middle], list[arb]()
    for sign in (1, -1):
        steepest = arb(0)
        for i in range(middle):
            a, b = middle + sign * i, middle + sign * (i + 1)
            slope = (height[b] - height[a]) / abs(scaled[b] - scaled[a])
            if i == 0:
                steepest = slope
                outward.append(slope)
                continue
            # (l - t)_+ has a mean of at most delta(log t), (t - l)_+ of t delta(-log t).
            total += positive(slope - steepest) * corners[i].excess * (1 if sign > 0 else scaled[a])
            steepest = steepest.max(slope)
        # Beyond the last corner it is held level.
        total += positive(-steepest) * corners[-1].excess * (1 if sign > 0 else scaled[0])
    return arb(total + positive(outward[0] + outward[1]) * corners[0].excess)
