"""Clones of an (epsilon0, delta0)-LDP randomizer: the curve of epsilon0 and what delta0 adds to it.

    delta(alpha) <= H_alpha(clones) + at_one + slope (alpha - 1),     alpha = e^epsilon.

Moving everybody's reports to those of an epsilon0-LDP randomizer adds some n delta0 (T9); leaving the others'
as they are, and putting the differing user's in the place of one of them, some delta0, however many they are
(T9', docs/proofs/approximate-local.md). The crowd theorem, likewise (T16, docs/proofs/crowd.md, section 8).
The true delta never increases in alpha, so the right side counts at its lowest so far: it is convex, falls to
its minimum and is constant from there on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp._certified.rounding import CALL, Floats, capped, down, gamma, up
from shuffledp.accounting._curves.profile import PrivacyProfile, SupportingLines
from shuffledp.accounting._hints.starts import RaisedHints

_RESOLUTION = 1e-4  # of the search for the minimum; speed
_POINTS = 33  # speed
_LOOKS = 3  # speed
_MOST_LACKING = 0.5  # tightness: beyond it nothing is worth knowing


@dataclass(frozen=True)
class Added:
    """What a delta0 adds to the curve of a round: at alpha = 1 (``of_crowd`` apart, of people who flip coins
    less), for each unit of alpha, and there also where the differing user is absent. All rounded up."""

    at_one: float
    of_crowd: float
    slope: float
    absent: float


@dataclass(frozen=True)
class ApproximateProfile(PrivacyProfile):
    """``clones`` of the epsilon0-LDP randomizer, and what a round of everybody adds (``added``). The n users
    are a random ``fraction`` of all, or each takes part with probability ``rate``; ``clones`` are then those
    of the cohort."""

    clones: PrivacyProfile
    added: Added
    fraction: float = 1.0
    rate: float = 1.0
    whole: PrivacyProfile | None = None
    """The clones of a round of everybody."""

    @cached_property
    def _at_one(self) -> float:
        whole = self.added.at_one + self.rate * self.added.of_crowd
        return up(self.fraction * self.rate * whole, operations=8)

    @cached_property
    def _slope(self) -> float:
        absent = (1.0 - self.fraction) * self.added.absent
        return up(self.fraction * self.rate * self.added.slope + absent, operations=8)

    @property
    def epsilon_max(self) -> float:
        return math.inf

    @cached_property
    def hints(self) -> RaisedHints:
        clones = self.clones
        base, reach = clones.hints, clones.epsilon_max
        return RaisedHints(base.scale, apart=base.apart, base=base, raised=self._at_one, reach=reach)

    @cached_property
    def infinite_loss(self) -> float:
        """The minimum of the curve, from below: found between two of the clones' lines, raised. Lines of the
        crowd theorem are those of its bound, which is constant from its lowest point on."""
        low, high = 0.5 * self.lowest, min(2.0 * self.lowest, self.clones.epsilon_max)
        best = down(self._at_one, operations=8)
        if self.hints.apart:
            return max(best, float(down(self._sum(np.array([self.lowest]), _RESOLUTION), operations=8)[0]))
        for _ in range(_LOOKS):
            lines = self.clones.support(np.linspace(low, high, _POINTS), _RESOLUTION)
            past = lines.slope_high <= self._slope
            last = int(np.argmax(past)) if past.any() else _POINTS - 1
            best = max(best, self._least(lines, max(last - 1, 0), last))
            low, high = float(lines.epsilon[max(last - 1, 0)]), float(lines.epsilon[last])
        return min(best, 1.0)

    def _least(self, lines: SupportingLines, left: int, right: int) -> float:
        """A lower bound of the sum from two lines, at a1 and a2, of slopes -q1 and -q2.

        Raised, they are y1 - (q1 - slope)(a - a1) and y2 + (slope - q2)(a - a2). Whatever a is between a1
        and a2: right of it the second line is no lower than at a, left of it the first one is not, as long
        as it falls; where it may rise instead, it counts at 1."""
        a1, a2 = np.exp(capped(lines.epsilon[[left, right]])).tolist()
        y1, y2 = (lines.value[[left, right]] + self._added(lines.epsilon[[left, right]])).tolist()
        falling = max(float(lines.slope_high[left]) - self._slope, 0.0)
        rising = max(self._slope - float(lines.slope_low[right]), 0.0)
        doubtful = max(self._slope - float(lines.slope_low[left]), 0.0) * (a1 - 1.0)
        total = falling + rising
        a = (y1 - y2 + falling * a1 + rising * a2) / total if total > 0.0 else a1
        a = min(max(a, a1), a2)
        least = min(y1 - falling * (a - a1) - doubtful, y2 - rising * (a2 - a))
        sizes = y1 + y2 + (falling + rising) * a2 + doubtful
        return float(max(least - gamma(2 * CALL + 16) * sizes, 0.0))

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        return self._sum(np.minimum(epsilon, self.lowest), resolution)

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        """Below the minimum the clones' lines, raised; from there on a constant."""
        at = np.minimum(epsilon, self.lowest)
        lines = self.clones.support(at, resolution)
        grown = np.exp(capped(at))
        raised = down(lines.value + self._added(at), operations=CALL + 8)
        # A line that rises would not be below a curve that cannot: it counts at alpha = 1.
        rising = np.maximum(self._slope - lines.slope_low, 0.0)
        fallen = raised - up(rising * (grown - 1.0), operations=CALL + 4)
        value = down(np.maximum(fallen, 0.0), operations=1)
        low, high = lines.slope_low - self._slope, lines.slope_high - self._slope
        beyond = epsilon > self.lowest
        return SupportingLines(
            epsilon,
            np.where(beyond, self.infinite_loss, value),
            np.where(beyond, 0.0, down(np.maximum(low, 0.0), operations=2)),
            np.where(beyond, 0.0, up(np.maximum(high, 0.0), operations=2)),
        )

    def _sum(self, epsilon: Floats, resolution: float) -> Floats:
        total = self.clones.upper(epsilon, resolution) + self._added(epsilon)
        return np.minimum(up(total, operations=CALL + 8), 1.0)

    def _added(self, epsilon: Floats) -> Floats:
        """A sum of two terms >= 0: a call and three operations."""
        return np.asarray(self._at_one + self._slope * np.expm1(capped(epsilon)))

    @cached_property
    def lowest(self) -> float:
        """About where the sum is smallest: any epsilon is valid."""
        found = self.hints.lowest(lambda epsilon: self._sum(epsilon, _RESOLUTION))
        return min(max(found, 0.0), self.clones.epsilon_max)


def crowd_approximate(crowd: PrivacyProfile, epsilon0: float, delta0: float) -> ApproximateProfile:
    """Over the crowd theorem: 2 delta0 + mixed (E^(1/2) + delta0) is moved of one report, nothing of others:
    what is out of place, and a part that is mixed in so that its total is one."""
    mixed = 2.0 * delta0 / -math.expm1(-0.5 * epsilon0)
    own = up(2.0 * delta0 + mixed * (math.exp(0.5 * epsilon0) + delta0), operations=2 * CALL + 16)
    return ApproximateProfile(crowd, Added(2.0 * own, 0.0, own, 0.0), whole=crowd)


def strong_approximate(clones: PrivacyProfile, delta0: float, n: int) -> ApproximateProfile:
    """Over the strong clones: of a handful of people T9, of more T9'."""
    others, own = _moved(clones.epsilon_max, delta0)
    every, one = _moved_at_all(others, own, n), _left_in_place(clones.epsilon_max, delta0, own)
    added = every if every.at_one + every.of_crowd <= one.at_one else one
    return ApproximateProfile(clones, added, whole=clones)


def plain_approximate(clones: PrivacyProfile, delta0: float, n: int) -> ApproximateProfile:
    """Over the clones of 2021: delta0 ((n - 1)/E + 1/(E + 1)) is moved (T9)."""
    own, decay = _lie(clones.epsilon_max)
    others = up(delta0 * decay, operations=CALL + 4)
    own = up(delta0 * own, operations=2 * CALL + 4)
    return ApproximateProfile(clones, _moved_at_all(others, own, n), whole=clones)


def moved_by_clones(epsilon0: float, delta0: float, n: int) -> float:
    """What strong clones move of one of n reports and all others: a total variation."""
    others, own = _moved(epsilon0, delta0)
    return up((n - 1) * others + own, operations=4)


def _moved_at_all(others: float, own: float, n: int) -> Added:
    """T9: the probability ``others`` is moved of each of n - 1 reports, ``own`` of the differing user's."""
    crowd = (n - 1) * others
    return Added(2.0 * own, up(2.0 * crowd, 2), up(crowd + own, 4), up(n * others, 2))


def _left_in_place(epsilon0: float, delta0: float, own: float) -> Added:
    """T9': with lacking = 2 (delta0 + own), E times what another user's law may lack of max(R_0, R_1)/E."""
    lacking = up(2.0 * (delta0 + own), operations=4)
    if lacking > _MOST_LACKING:
        return Added(math.inf, 0.0, math.inf, math.inf)
    decay = math.exp(-epsilon0)
    grown = up(1.0 / (1.0 - lacking), operations=8)
    squared = up(grown * grown * lacking, operations=4)
    units = CALL + 12
    at_one = up(2.0 * own + 3.0 * squared * -math.expm1(-epsilon0), operations=units)
    return Added(at_one, 0.0, up(own + squared * (2.0 - decay), operations=units), up(grown * lacking, 2))


def _moved(epsilon0: float, delta0: float) -> tuple[float, float]:
    """Of each of the others', of the own."""
    own, decay = _lie(epsilon0)
    others = up(2.0 * delta0 * decay * (1.0 + own), operations=2 * CALL + 8)
    return others, up(delta0 * own, operations=2 * CALL + 4)


def _lie(epsilon0: float) -> tuple[float, float]:
    """1/(E + 1) and 1/E."""
    decay = math.exp(-epsilon0)
    return decay / (1.0 + decay), decay
