"""Curves of rounds sampled where it matters for one question about their sum: few points, as close as many.

A cell between two samples raises the polygon above the curve by about a third, on average, of the bend, the
height of the chord above the crossing of the two supporting lines. What that adds to delta of the sum, as a
share of how delta falls with epsilon, is guessed by _hints.influence. Under a tilt theta, E[e^(theta L)] is,
up to terms that do not depend on the curve h, theta (theta + 1) int h(alpha) alpha^(theta - 1) dalpha. So the
cell adds about

    theta (theta + 1) bend / 3 e^(theta epsilon) (width in epsilon)

to it, as a share of itself to its logarithm, in units of theta epsilon. The sum over all rounds and cells is
what the composition loses. A cell cut into p parts loses 1/p^2 of it; the fewest parts with a total loss of B
have p^3 proportional to each loss c: p = c^(1/3) sqrt(sum of c^(1/3) / B). All points and parts are guesses:
any samples are valid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from shuffledp._certified.rounding import Floats, positive
from shuffledp._progress import expected
from shuffledp.accounting._curves.profile import PrivacyProfile
from shuffledp.accounting._hints.influence import (
    Decided,
    NormalPart,
    NormalSum,
    Part,
    Tilted,
    influence,
    normal_places,
)
from shuffledp.accounting._hints.tilt import Tilts
from shuffledp.accounting._rounds.compose import ComposedLoss, Hints, compose
from shuffledp.accounting._rounds.loss import (
    LARGEST_INDEX,
    LARGEST_LOSS,
    Lattice,
    Samples,
    dominated,
    last_index,
)
from shuffledp.errors import NoCertificateError

_COARSE_SCALES, _COARSE_STEP, _COARSE_GROWTH = 4.0, 0.25, 0.1  # speed: where to look first
_AT_ONCE = 8  # speed: points of the tail
_SEEN, _COARSEST = 3e5, 0.02  # speed: in floors; of less, resolutions are coarser in proportion, up to this
_MANY_POINTS, _FIRST_POINTS = 256, 16  # speed: are a part of the work; are the first of many
_SLOW = 1e-5  # speed: a resolution
_AS_FAR = 1.5  # tightness: of two losses that may be infinite; the smaller one must be seen
_FLAT = 1e-9  # speed: a relative fall that is none
_SHARE = 0.25  # speed: of the resolution times theta epsilon that the exponent may lose
_SHARE_APART = 0.7, 0.4  # speed: where points take long; the same where few of many, or rare, losses decide
_FEW_ROUNDS, _MANY_ROUNDS = 16, 100  # speed
_SHARE_OF_CORNERS, _CORNERS = 0.06, 64  # speed: for lattices of so many points to a sample: a few users
_MATTERS, _PROBED = (
    1e-3,
    3,
)  # speed: of the resolution; one of so many points shows whether more time is worth it
_PASSES = 8  # speed
_SMALL, _SMALLEST, _COMPANY = 0.02, 0.1, 100.0  # speed: of the largest loss, of one; reports: nearly normal
_SHARE_AT_ONCE = 1.0, 0.9  # tightness: of what cells may add, where they are chosen once: lines, both sides
_LOOKED_AT = 0.0, 0.4, 0.8, 0.95  # speed
_NEXT_TO = 0.25  # speed: of the distance to the next point
_WORTH = 3  # speed: the first look at a curve is about one of so many, of which a warning of long work counts
_QUANTILES = np.linspace(0.0, 1.0, 5)  # speed
_ENOUGH = 1.3  # speed: a loss above what was aimed at that is good enough
_MOST_POINTS = 16_000  # speed
_ROUNDED = 0.6  # speed: a number of parts is the whole number below it and this
_MANY_LINES, _GOOD = 1000, 0.999  # speed; tightness: of the highest line
_AS_LARGE = 0.7  # speed: a rough epsilon, in larger ones
_MOST = 1e100  # speed: of what a cell counts, by an absurd hint
_MOST_PARTS = 8.0  # speed: of a cell at once


Pair = tuple[PrivacyProfile, PrivacyProfile]
"""A round's curve and that of the reversed pair, which may be the same object."""
Influences = Sequence[Tilted | Decided]
Question = Callable[[Hints], list[tuple[float, float, float | None]]]
"""What is asked of a sum of losses, by guesses about it: tilts, epsilons, and the delta, if that is given."""


def at_delta(delta: float) -> Question:
    """Where does the sum's curve pass ``delta``?"""
    return lambda hints: [(*hints.for_delta(delta), delta)]


def at_epsilon(epsilon: Floats) -> Question:
    """What is the sum's curve at each of these?"""
    some = np.unique(np.quantile(epsilon, _QUANTILES))
    return lambda hints: [
        (theta, at, None) for theta, at in zip(hints.at(some).tolist(), some.tolist(), strict=True)
    ]


def _parts(rough: ComposedLoss) -> list[Part]:
    return [Part(law.index * law.spacing, law.mass, count) for law, count in rough.parts]


@dataclass(frozen=True)
class _Sampler:
    """Samples of one curve on the lattice."""

    profile: PrivacyProfile
    lattice: Lattice
    resolution: float
    both_sides: bool
    settled: bool | None = None
    """Whether the profile is a quick bound that is good enough, if that was asked already."""
    chosen: bool = False
    """Whether places were chosen for it."""

    def at(self, index: Floats, times: int = 1) -> Samples:
        """The first few of many points, or of slow ones, by themselves, so that it is said at once how long
        all of them take, or so many ``times`` as many."""
        slow = index.size > _MANY_POINTS or self.resolution < _SLOW
        parts = [index]
        if slow:
            first = index[:: 1 + index.size // _FIRST_POINTS]
            rest = np.setdiff1d(index, first)
            parts = [first, *np.array_split(rest, 1 + max(rest.size - 1, 0) // _MANY_POINTS)]
        found = []
        with expected(times * index.size, "composing rounds") as looked:
            for part in parts:
                if part.size:
                    found.append(
                        Samples.at(self.profile, part, self.lattice.spacing, self.resolution, self.both_sides)
                    )
                    looked(part.size)
        return reduce(Samples.merge, found)

    def quickly(self, floor: float, places: Floats | None) -> tuple[_Sampler, Samples]:
        """``first``, of a quick bound where there is one that is followed as far down."""
        quick, least = self.profile.quick, max(floor, _AS_FAR * self.profile.infinite_loss)
        if quick is self.profile or quick.infinite_loss > least:
            return replace(self, chosen=places is not None), self.first(floor, places)
        with suppress(NoCertificateError):
            settled = None if places is None else not self._worth_it(quick, places)
            other = replace(self, profile=quick, settled=settled, chosen=bool(settled))
            return other, other.first(floor, places if settled else None)
        return self, self.first(floor, None)

    def _worth_it(self, quick: PrivacyProfile, places: Floats) -> bool:
        """Whether the curve itself may be clearly below its quick bound where that matters."""
        some = places[(np.array(_LOOKED_AT) * (places.size - 1)).astype(np.intp)]
        upper = quick.hints.guessed(some)
        upper = quick.upper(some, self.resolution) if upper is None else upper
        return bool(self.profile.worth_it(some, upper).any())

    def first(self, floor: float, places: Floats | None) -> Samples:
        """A few points, or these ``places`` (losses), until the curve falls to ``floor``."""
        h, last = self.lattice.spacing, last_index(self.profile, self.lattice.spacing)
        reachable = min(last, LARGEST_LOSS / h)
        if not reachable < LARGEST_INDEX:
            raise NoCertificateError("the lattice is too fine for the losses")
        scale = min(max(self.profile.hints.scale, 0.0), LARGEST_LOSS / (2.0 * _COARSE_SCALES))
        step = float(_power(_COARSE_STEP * scale / h))
        scales = math.ceil(_COARSE_SCALES / _COARSE_STEP)
        index = [step * i for i in range(scales + 1)] if places is None else self._on_the_lattice(places)
        at = index[-1]
        while at < reachable:
            at += step * max(1.0, math.floor(_COARSE_GROWTH * at / step))
            index.append(at)
        points = np.array(index)
        points = points[points * h <= LARGEST_LOSS]
        if last <= reachable:
            unit = min(step, float(self.lattice.stride))
            end = unit * max(1.0, math.ceil(last / unit))
            points = np.append(points[points < end], end)
        # At once up to where a normal loss would be rare enough.
        likely = self.profile.hints.scale * math.sqrt(2.0 * math.log(1.0 / positive(min(floor, 1.0))))
        found = self.at(points[: max(scales + 1, int(np.searchsorted(points, min(likely / h, reachable))))])
        while (start := found.index.size) < points.size and found.upper[-1] > floor:
            part = self._coarser(_SEEN * floor / float(found.upper[-1]))
            found = found.merge(part.at(points[start : start + _steps(found, points, floor)]))
            if found.upper[start - 1] - found.upper[-1] <= _FLAT * found.upper[start - 1]:
                break  # flat: the rest is mass at an infinite loss
        limit = max(floor, found.upper[-1] + _FLAT * found.upper[-1])
        enough = np.flatnonzero(found.upper <= limit)
        return found.upto(max(int(enough[0]) + 1, 2)) if enough.size else found

    def _coarser(self, times: float) -> _Sampler:
        """Of a tail that counts for little."""
        return replace(self, resolution=max(self.resolution, min(times * self.resolution, _COARSEST)))

    def _on_the_lattice(self, places: Floats) -> list[float]:
        """Multiples of powers of two next to them: the sum's lattice is as coarse as the points allow."""
        at = places / self.lattice.spacing
        unit = _power(_NEXT_TO * (at[1:] - at[:-1]))
        found = np.concatenate([np.zeros(1), np.rint(at[1:] / unit) * unit])
        return list((found if (found[1:] > found[:-1]).all() else np.unique(found)).tolist())

    def closer(
        self, profile: PrivacyProfile, found: Samples, counted: Callable[[Floats], Floats]
    ) -> tuple[_Sampler, Samples]:
        """With the curve itself in place of a quick bound of it, where that matters: ``counted`` says how
        much, between edges."""
        if profile is self.profile or self.settled:
            return self, found
        epsilon = self.lattice.spacing * found.index
        between = np.append(np.insert(0.5 * (epsilon[1:] + epsilon[:-1]), 0, epsilon[0]), epsilon[-1])
        weight = counted(between) * found.upper
        least = _MATTERS * self.resolution * weight.sum(axis=1, keepdims=True)
        some = np.flatnonzero((weight > least).any(axis=0))
        probed = np.unique(np.append(some[::_PROBED], some[-1:]))
        few = probed[:: max(1, probed.size // 2)]
        if self.settled is None and not profile.worth_it(epsilon[few], found.upper[few]).any():
            return self, found
        own = replace(self, profile=profile)
        others = np.setdiff1d(np.arange(found.index.size), some)
        return own, own.at(found.index[probed]).merge(found.at_places(others))

    def finer(self, found: Samples, parts: Floats) -> Samples:
        """Every cell cut into so many parts, as far as the lattice allows."""
        width = np.diff(found.index)
        times = np.minimum(np.clip(np.floor(parts + _ROUNDED), 1.0, _MOST_PARTS), width).astype(np.intp)
        cell = np.repeat(np.arange(times.size), times)
        place = np.arange(cell.size) - np.repeat(np.cumsum(times) - times, times)
        # Multiples of powers of two: the sum's lattice is as coarse as the points allow.
        unit = _power(0.5 * width / times)[cell]
        inner = (np.rint((found.index[cell] + place * width[cell] / times[cell]) / unit) * unit)[place > 0]
        inner = np.setdiff1d(inner, found.index)
        # Cells are cut again; how often is not known where a hint asks for more than are looked at.
        wanted = float(parts.sum())
        later = max(1, round(wanted / max(inner.size, 1))) if wanted <= _MOST_POINTS else 1
        found = found.merge(self.at(inner, later)) if inner.size else found
        return found if self.both_sides else self._useful(found)

    def _useful(self, found: Samples) -> Samples:
        """Without points whose lines are poor: those of others are above them there."""
        if found.index.size > _MANY_LINES:
            return found
        alpha = np.exp(self.lattice.spacing * found.index)
        away = alpha - alpha[:, None]
        slope = np.where(away > 0.0, found.slope_high[:, None], found.slope_low[:, None])
        others = (found.value[:, None] - slope * away).max(axis=0)
        return found.at_places(np.flatnonzero((found.value >= _GOOD * others) | (found.index == 0.0)))


@dataclass(frozen=True)
class Adapted:
    """(samples, those of the reversed pair, count) of each round; and the sum of the pairs below."""

    sides: list[tuple[Samples, Samples, int]]
    below: ComposedLoss


def adapted(
    rounds: Sequence[tuple[Pair, int]],
    lattice: Lattice,
    floor: float,
    resolution: float,
    question: Question,
    both_sides: bool = True,
) -> Adapted:
    rounds = [(_followed(pair, floor), count) for pair, count in rounds]
    counts, spacing = [count for _, count in rounds], lattice.spacing
    tilted_by = rounds[0][0][0].hints.tilts
    samplers, found = [], []
    allowed = _SHARE * _SHARE_AT_ONCE[both_sides] * resolution
    likely = _Likely.of(rounds, question, allowed) if lattice.stride < _CORNERS else None
    with expected(_WORTH * len(rounds), "composing rounds") as looked:
        for place, (pair, _) in enumerate(rounds):
            curves = pair if pair[0] is not pair[1] else pair[:1]
            places = likely.places[place] if likely else None
            seen = [
                _Sampler(curve, lattice, resolution, both_sides).quickly(floor, places) for curve in curves
            ]
            samplers.append([sampler for sampler, _ in seen])
            found.append([samples for _, samples in seen])
            looked()

    def below(forward: int = 0, backward: int = -1) -> ComposedLoss:
        pairs = [
            (dominated(pair[forward], pair[backward], spacing), count)
            for pair, count in zip(found, counts, strict=True)
        ]
        return compose(pairs, tilted_by)

    def about(loss: ComposedLoss) -> Influences:
        parts = _parts(loss)
        asked = [influence(parts, *each) for each in question(loss.hints)]
        return asked if lattice.stride < _CORNERS else _tilted(asked)

    symmetric = all(len(pair) == 1 for pair in found)
    rough: ComposedLoss | None = None
    for step in range(_PASSES):
        if step == 0 and likely and all(side.chosen for pair in samplers for side in pair):
            asked: list[Influences] = [likely.asked] * (1 if symmetric else 2)
        else:
            rough = below()
            asked = [about(rough)] if symmetric else _larger(about(rough), about(below(-1, 0)))
        counted = [
            [_counted(asked, place, side, len(pair)) for side in range(len(pair))]
            for place, pair in enumerate(found)
        ]
        if step == 0:
            for both, state, (pair, _), matters in zip(samplers, found, rounds, counted, strict=True):
                for place, (side, samples) in enumerate(zip(both, state, strict=True)):
                    both[place], state[place] = side.closer(pair[place], samples, matters[place])
                    rough = rough if state[place] is samples else None
        apart = any(side.profile.hints.apart or side.profile.tailed for pair in samplers for side in pair)
        corners = _SHARE_OF_CORNERS if lattice.stride >= _CORNERS else _SHARE
        decided = any(isinstance(e, Decided) for row in asked for e in row)
        tailed = any(side.profile.tailed for pair in samplers for side in pair)
        close = sum(counts) >= _MANY_ROUNDS or (decided and (tailed or sum(counts) <= _FEW_ROUNDS))
        allowed = (_SHARE_APART[close] if apart else corners) * resolution
        losses = [
            [_loss(side, spacing, count) / allowed for side, count in zip(*pairs, strict=True)]
            for pairs in zip(found, counted, strict=True)
        ]
        flat = [loss for pair in losses for loss in pair]
        if sum(float(loss.sum()) for loss in flat) <= _ENOUGH:
            break
        scale = math.sqrt(sum(float(np.cbrt(loss).sum()) for loss in flat))
        finer = [
            [s.finer(f, scale * np.cbrt(loss)) for s, f, loss in zip(*both, strict=True)]
            for both in zip(samplers, found, losses, strict=True)
        ]
        sizes = [[side.index.size for pair in state for side in pair] for state in (found, finer)]
        found, rough = finer, None
        if sizes[0] == sizes[1] or max(sizes[1]) > _MOST_POINTS:
            break
    sides = [(pair[0], pair[-1], count) for pair, count in zip(found, counts, strict=True)]
    return Adapted(sides, rough or below())


@dataclass(frozen=True)
class _Likely:
    """Where to sample each curve, and what that is asked for, if losses are about normal: small ones are."""

    places: list[Floats]
    asked: Influences

    @classmethod
    def of(cls, rounds: Sequence[tuple[Pair, int]], question: Question, allowed: float) -> _Likely | None:
        """Of points whose cells add ``allowed``."""
        hints = [pair[0].quick.hints for pair, _ in rounds]
        parts = [NormalPart(each.scale, count) for each, (_, count) in zip(hints, rounds, strict=True)]
        ends = [min(_SMALL * pair[0].epsilon_max, _SMALLEST) for pair, _ in rounds]
        small = all(0.0 < part.scale < end for part, end in zip(parts, ends, strict=True))
        if not small or any(each.apart or each.company < _COMPANY for each in hints):
            return None
        tilts = Tilts(NormalSum(sum(part.variance for part in parts)))
        asked = [Tilted(parts, *each) for each in question(tilts)]
        return cls(normal_places(parts, asked, allowed), asked)


def _followed(pair: Pair, floor: float) -> Pair:
    """Curves that are not told closely below ``floor``."""
    first = pair[0].down_to(floor)
    return first, first if pair[0] is pair[1] else pair[1].down_to(floor)


def _steps(found: Samples, points: Floats, floor: float) -> int:
    """How many more points it takes, about, until the curve is at ``floor``: it bends down, in logarithms."""
    (before, last), (first, second) = found.index[-2:], np.log(positive(found.upper[-2:]))
    slope = (second - first) / (last - before)
    if not slope < 0.0:
        return _AT_ONCE
    there = last + (math.log(positive(floor)) - second) / slope
    return min(max(1 + int(np.searchsorted(points, there)) - found.index.size, 1), _AT_ONCE)


def _power(size: Any) -> Any:
    """The largest power of two up to it, at least one."""
    return 2.0 ** np.floor(np.log2(np.maximum(size, 1.0)))


def _tilted(asked: Influences) -> Influences:
    """Bins hide the corners of curves of a few users: of these the tilt tells."""
    return [Tilted(each.parts, each.theta, each.epsilon, each.delta) for each in asked]


def _larger(*asked: Influences) -> list[Influences]:
    """Of two orders of a pair those whose epsilon may be the larger one: that is the answer."""
    about = [max(each.about for each in influences) for influences in asked]
    return [some if at >= _AS_LARGE * max(about) else [] for some, at in zip(asked, about, strict=True)]


def _counted(asked: Sequence[Influences], place: int, side: int, sides: int) -> Callable[[Floats], Floats]:
    """What a rise of one curve counts between edges, a row for each influence: of a pair that is its own
    reversed one ahead and behind; else ahead in one order of the two, and behind in the other."""

    def rows(edges: Floats) -> Floats:
        found = []
        for order, influences in enumerate(asked):
            ahead, behind = sides == 1 or order == side, sides == 1 or order != side
            for each in influences:
                with np.errstate(all="ignore"):  # a tilt may be absurd
                    parts = [
                        way(place, edges) for way, so in ((each.ahead, ahead), (each.behind, behind)) if so
                    ]
                    found.append(sum(parts, start=np.zeros(edges.size - 1)))
        counts = np.array(found)
        return np.asarray(np.minimum(np.where(np.isnan(counts), 0.0, counts), _MOST))

    return rows


def _loss(found: Samples, spacing: float, counted: Callable[[Floats], Floats]) -> Floats:
    """What each cell adds, about; the most over all that is asked.

    The bend is a quarter of the run times the change of the slope, which rounding blurs least."""
    epsilon = spacing * found.index
    slope = 0.5 * (found.slope_low + found.slope_high)
    gap = 0.25 * np.maximum(slope[:-1] - slope[1:], 0.0)
    gap *= np.exp(epsilon[:-1]) * np.expm1(epsilon[1:] - epsilon[:-1])
    gap = np.minimum(gap, found.upper[:-1])
    return np.asarray((counted(epsilon) * (gap / 3.0)).max(axis=0))
