"""Composition over rounds (T6, docs/proofs/composition.md): sums of independent lattice losses, certified.

``delta(epsilon) = E_P[(1 - e^{epsilon - L})_+] + Pr[L = inf]`` for the sum L of all rounds' losses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from shuffledp._certified.lattice_sum import Group, HockeyStick, Own, tail_sum
from shuffledp._certified.rounding import CALL, TINY, Floats, capped, down, gamma, total, up
from shuffledp._progress import expected
from shuffledp.accounting._rounds.loss import LossDistribution

_MOST_STEPS = 60  # speed
_MANY = 8  # speed: epsilons that may take long together
_STEEP = 1.0  # tightness: a tilt, per lattice point, that neighbours do not share
_STEEPEST_EXPONENT = 600.0  # soundness: e to this power is finite, also times a count
_LOOKS_AT_BOTH = 3  # speed
_EVALUATION_UNITS = 4  # soundness: a product, a sum or two


class Hints(Protocol):
    """Guesses (see _hints.tilt): whatever they say, answers are certified, only less close or later."""

    deviation: float

    def at(self, epsilon: Floats) -> Floats:
        """A tilt for each delta(epsilon)."""

    def alike(self, epsilon: Floats) -> Iterator[tuple[npt.NDArray[np.intp], float]]:
        """Places of neighbours that one tilt suits, and that tilt."""

    def steep_enough(self, theta: float) -> float:
        """A tilt near theta that is quick."""

    def for_delta(self, delta: float, closely: bool = False) -> tuple[float, float]:
        """(theta, epsilon) at which delta(epsilon) is about ``delta``."""


@dataclass(frozen=True)
class ComposedLoss:
    """Independent sum of ``count`` copies of each distribution (all of one spacing).

    ``guess`` makes the hints when they are first needed."""

    parts: tuple[tuple[LossDistribution, int], ...]
    guess: Callable[[ComposedLoss], Hints]

    @cached_property
    def hints(self) -> Hints:
        return self.guess(self)

    @cached_property
    def spacing(self) -> float:
        return self.parts[0][0].spacing

    @cached_property
    def infinities(self) -> tuple[float, float]:
        """Enclosure (lower, upper) of Pr[L = inf]."""
        if any(law.infinity >= 1.0 and count for law, count in self.parts):
            return 1.0, 1.0
        log_finite = sum(count * math.log1p(-law.infinity) for law, count in self.parts)
        # log1p, products and sums are as relative as expm1 is: all have one sign.
        found, units = -math.expm1(log_finite), 2 * CALL + 1 + len(self.parts)
        return down(found, units, tiny=0.0), min(up(found, units, tiny=0.0), 1.0)

    @property
    def infinity(self) -> float:
        """Pr[L = inf], rounded up."""
        return self.infinities[1]

    @cached_property
    def largest(self) -> float:
        """The largest finite loss, rounded up (indices are whole, their sum is exact, none is negative)."""
        steps = sum(float(law.index[-1]) * count for law, count in self.parts)
        return up(self.spacing * steps, 1, tiny=0.0)

    @cached_property
    def reach(self) -> float:
        return max(self.largest, self.spacing)

    @cached_property
    def steepest(self) -> float:
        """A tilt beyond which e^{theta L} of a single round would overflow."""
        top = max(float(law.index[-1]) for law, _ in self.parts) * self.spacing
        return _STEEPEST_EXPONENT / max(top, self.spacing)  # losses may be zero or infinite only

    def delta(self, epsilon: Floats, theta: float | None = None) -> tuple[Floats, Floats]:
        """Enclosure (lower, upper) of delta of these discrete pairs at each epsilon >= 0.

        Any tilt ``theta`` is valid; by default one is guessed for each epsilon."""
        out = np.zeros((2, epsilon.size))
        live = np.flatnonzero((epsilon < self.largest) & (self.infinity < 1.0))
        alike = self.hints.alike(epsilon[live]) if theta is None else [(np.arange(live.size), theta)]
        with expected(live.size, "composing rounds") if live.size > _MANY else nullcontext() as looked:
            for some, tilt in alike:
                if not some.size:
                    continue  # a hint may give none
                out[:, live[some]] = self._of_one_tilt(epsilon[live[some]], tilt, theta is None)
                if looked is not None:
                    looked(some.size)
        # Where no scale was needed, beyond the largest loss, a zero is a true one.
        out[:, live] = _outward(out[:, live])
        return self._with_infinity(out)

    def _with_infinity(self, finite: Floats) -> tuple[Floats, Floats]:
        """Enclosures of delta: infinity + finite (1 - infinity) grows with both."""
        low, high = (
            known + part * (1.0 - known) for known, part in zip(self.infinities, finite, strict=True)
        )
        return (
            down(low, _EVALUATION_UNITS, tiny=0.0),
            np.minimum(up(high, _EVALUATION_UNITS, tiny=0.0), 1.0),
        )

    def _of_one_tilt(self, epsilon: Floats, tilt: float, guessed: bool) -> Floats:
        """``_delta`` of epsilons that one tilt suits; a steep one is guessed for each."""
        tilts = np.full(epsilon.size, tilt)
        if guessed and epsilon.size > 1:
            if tilt * self.spacing < _STEEP:
                return self._neighbours(epsilon, self._usable(tilt))
            tilts = self.hints.at(epsilon)
        return self._delta(epsilon, np.array([self._usable(float(each)) for each in tilts]))

    def _neighbours(self, epsilon: Floats, tilt: float) -> Floats:
        """``_delta`` of one tilt, from values at lattice points: between two, delta is linear in alpha."""
        h, theta = self.spacing, tilt * self.spacing
        left = np.floor(epsilon / h)
        points = np.unique(np.concatenate([left, left + 1.0]))
        k0, one = points[points.size // 2], np.ones(1)
        groups = [Group(law.index[None], w[None], count * one) for law, w, count in self._laws]
        stick = HockeyStick(0.0 * one, h * one)
        own = Own(np.zeros((1, 1)), np.ones((1, 1, 1)))
        found = tail_sum(groups, own, k0 * one, theta * one, stick, (points - k0).astype(int).tolist())
        scale = float(np.exp(found.log_scale[0]))
        low, high = (np.maximum(scale * (found.value + sign * found.error)[0], 0.0) for sign in (-1.0, 1.0))
        at = np.searchsorted(points, left)
        share = np.clip(np.expm1(epsilon - h * left) / math.expm1(h), 0.0, 1.0)
        low, high = ((1.0 - share) * end[at] + share * end[at + 1] for end in (low, high))
        # Rounding of epsilon against the lattice, as in ``_delta`` (it may be the next point), and of shares.
        slack = gamma(4 * (CALL + 3)) * (epsilon + h)
        moved = slack * np.exp(capped(found.log_scale[0] - theta * (left - 1.0 - k0)))
        return np.stack(
            [
                np.maximum(down(low, operations=4, tiny=0.0) - moved, 0.0),
                up(high, operations=4, tiny=0.0) + moved,
            ]
        )

    def _usable(self, tilt: float) -> float:
        """Positive, and not so steep that exponentials overflow."""
        return min(max(tilt, 1e-9 / self.reach), self.steepest)

    def _delta(self, epsilon: Floats, tilts: Floats) -> Floats:
        return _deltas([self] * epsilon.size, epsilon, tilts)

    @cached_property
    def _laws(self) -> list[tuple[LossDistribution, Floats, int]]:
        return [(law, law.mass / (1.0 - law.infinity), count) for law, count in self.parts if count]

    @cached_property
    def _losses(self) -> list[tuple[Floats, Floats, int]]:
        return [(law.index * self.spacing, w, count) for law, w, count in self._laws]

    def cumulants(self, theta: float) -> tuple[float, float, float]:
        """Logarithm of the moment generating function of L at theta, and two derivatives."""
        found = [0.0, 0.0, 0.0]
        for loss, w, count in self._losses:
            grown = w * np.expm1(theta * loss)
            change, tilted = float(total(grown)), grown + w
            whole = float(tilted.sum())
            mean = float(tilted @ loss) / whole
            away = loss - mean
            parts = math.log1p(change) if change > -0.5 else math.log(whole), mean
            each = (*parts, float(tilted @ (away * away)) / whole)
            found = [known + count * part for known, part in zip(found, each, strict=True)]
        return found[0], found[1], found[2]

    def higher_cumulants(self, theta: float) -> tuple[float, float]:
        """Two more derivatives."""
        third = fourth = 0.0
        for loss, w, count in self._losses:
            tilted = w * np.exp(theta * loss - theta * float(loss[-1]))
            tilted = tilted / tilted.sum()
            away = loss - float((tilted * loss).sum())
            square = away * away
            variance = float((tilted * square).sum())
            third += count * float((tilted * square * away).sum())
            fourth += count * (float((tilted * square * square).sum()) - 3.0 * variance * variance)
        return third, fourth

    def upper_epsilon(self, delta: float, relative: float) -> float:
        """An epsilon with delta(epsilon) <= ``delta``, certified, aimed ``relative`` above the root."""
        if self.infinity >= delta:
            return math.inf
        return self._search(delta, relative, lambda low, high: high <= delta)

    def lower_epsilon(self, delta: float, relative: float) -> float:
        """An epsilon with delta(epsilon) >= ``delta``, certified (0 if there is none)."""
        return self._search(delta, -relative, lambda low, high: low >= delta)

    @cached_property
    def _seen(self) -> dict[tuple[float, float | None], tuple[float, float]]:
        """delta at an epsilon under a tilt, where it was looked at beside another sum."""
        return {}

    @cached_property
    def _roots(self) -> dict[float, tuple[float, float]]:
        """What was guessed for a delta."""
        return {}

    def _aimed(self, finite: float, relative: float) -> tuple[float, float]:
        """(a tilt, where to look first): of finite losses, ``relative`` past the root."""
        if finite not in self._roots:
            self._roots[finite] = self.hints.for_delta(finite, closely=True)
        theta, point = self._roots[finite]
        return self._usable(theta), point * (1.0 + relative)

    def first_look(self, delta: float, relative: float) -> tuple[float, float] | None:
        """(epsilon, tilt) of the first look of a search from below, if there is one."""
        infinity = self.infinities[0]
        if not infinity < delta < 1.0:
            return None
        theta, point = self._aimed((delta - infinity) / (1.0 - infinity), -relative)
        return (point, self.hints.steep_enough(theta)) if 0.0 < point < self.largest else None

    def _search(self, delta: float, relative: float, good: Callable[[float, float], bool]) -> float:
        """Newton in log delta against epsilon (slope -theta), aimed past the root by ``relative``.

        Returns the good point nearest the root among those evaluated; the end of the range of
        losses on the good side is one."""
        # Only the finite losses depend on epsilon.
        infinity = self.infinities[1 if relative > 0.0 else 0]
        if delta <= infinity or infinity == 1.0:
            return self.largest
        finite = (delta - infinity) / (1.0 - infinity)
        theta, point = self._aimed(finite, relative)
        if point < 0.5 * self.hints.deviation and float(self.delta(np.zeros(1))[1][0]) <= delta:
            return 0.0
        outside = self.largest if relative > 0.0 else 0.0
        best, miss = outside, self.largest - outside
        for step in range(_MOST_STEPS):
            point = min(max(point, 0.0), self.largest)
            tilt = self.hints.steep_enough(theta) if step < 2 else None
            if (point, tilt) in self._seen:
                low, high = self._seen[point, tilt]
            else:
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


def _outward(found: Floats) -> Floats:
    """Lower and upper ends, whose scale may have underflowed."""
    return np.stack([np.maximum(found[0] - TINY, 0.0), found[1] + TINY])


Look = tuple[ComposedLoss, float, float]
"""At a sum, an epsilon, under a tilt."""


def _deltas(losses: Sequence[ComposedLoss], epsilon: Floats, tilts: Floats) -> Floats:
    """Enclosures (lower, upper) of the finite part of delta of each loss at its epsilon, under its tilt."""
    h = np.array([loss.spacing for loss in losses])
    theta = tilts * h
    groups = [_group(rows) for rows in zip(*(loss._laws for loss in losses), strict=True)]
    k0 = np.ceil(epsilon / h)
    gap = -np.expm1(np.minimum(epsilon - h * k0, 0.0))
    own = Own(np.zeros((h.size, 1)), np.ones((h.size, 1, 1)))
    result = tail_sum(groups, own, k0, theta, HockeyStick(gap, h))
    scale = np.exp(result.log_scale)
    value, error = result.value[:, 0], result.error[:, 0]
    # Rounding of epsilon against the lattice (h k0, the difference, expm1 of at most h) moves the payoff
    # by at most slack, of what Chernoff's bound leaves, which is off by a factor of two at most; if
    # epsilon is on a lattice point, that point may even be missed.
    slack = gamma(2 * (CALL + 3)) * (np.abs(epsilon) + h)
    cell = epsilon / h
    near = np.abs(cell - np.rint(cell)) <= gamma(16) * (1.0 + cell)
    moved = slack * np.exp(capped(result.log_scale + np.where(near, theta, 0.0)))
    return np.stack([np.maximum(scale * (value - error) - moved, 0.0), scale * (value + error) + moved])


def _group(rows: Sequence[tuple[LossDistribution, Floats, int]]) -> Group:
    """The laws of several sums, of one round each, as rows of a table."""
    z, w = np.zeros((2, len(rows), max(mass.size for _, mass, _ in rows)))
    for place, (law, mass, _) in enumerate(rows):
        z[place, : mass.size], w[place, : mass.size] = law.index, mass
    return Group(z, w, np.array([float(count) for *_, count in rows]))


def epsilon_within(
    above: ComposedLoss,
    below: ComposedLoss,
    delta: float,
    tolerance: float,
    relative: float,
    beside: Look | None = None,
) -> float | None:
    """``above.upper_epsilon``, if ``below`` still exceeds delta a ``tolerance`` before it: of a few looks at
    both together; else None. ``beside``: is taken with the first of them, and known from then on."""
    infinity = above.infinity
    if infinity >= delta or len(above.parts) != len(below.parts):
        return None
    finite = (delta - infinity) / (1.0 - infinity)
    theta, point = above._aimed(finite, relative)
    tilt = min(loss._usable(above.hints.steep_enough(theta)) for loss in (above, below))
    also = beside if beside is not None and len(beside[0].parts) == len(above.parts) else None
    for _ in range(_LOOKS_AT_BOTH):
        if not 0.5 * above.hints.deviation < point < min(above.largest, below.largest):
            return None
        looks = [(above, point, tilt), (below, point * (1.0 - tolerance), tilt)]
        (low, high), (before, _), *others = _looks([*looks, also] if also else looks)
        if also is not None:
            also[0]._seen[also[1:]] = others[0]
            also = None
        estimate = (0.5 * (low + high) - infinity) / (1.0 - infinity)
        if not estimate > 0.0:
            return None
        root = point + math.log(estimate / finite) / theta
        if high <= delta and abs(root - point) <= 1.5 * relative * point:
            return point if before >= delta else None
        point = root * (1.0 + relative)
    return None


def _looks(asked: Sequence[Look]) -> list[tuple[float, float]]:
    """Enclosures of delta of each sum at an epsilon below its largest loss, under a tilt, in one table."""
    losses, epsilon, tilts = zip(*asked, strict=True)
    usable = [loss._usable(tilt) for loss, tilt in zip(losses, tilts, strict=True)]
    found = _outward(_deltas(losses, np.array(epsilon), np.array(usable)))
    ends = [loss._with_infinity(found[:, i : i + 1]) for i, loss in enumerate(losses)]
    return [(float(low[0]), float(high[0])) for low, high in ends]


def compose(
    parts: Sequence[tuple[LossDistribution, int]], guess: Callable[[ComposedLoss], Hints]
) -> ComposedLoss:
    """The independent sum; every distribution must share one spacing.

    The lattice is thinned to the multiples that are used."""
    used = np.concatenate([law.index for law, _ in parts]).astype(np.int64)
    step = int(np.gcd.reduce(used)) or 1
    return ComposedLoss(
        tuple(
            (LossDistribution(law.spacing * step, law.index / step, law.mass, law.infinity), count)
            for law, count in parts
        ),
        guess,
    )
