"""The crowd theorem at many epsilons at once: few laws among many people, by their moments (T16, section 6).

With l theta X in place of X, of weights l and tilts theta, all integrals are of one kind,

    b_z(l) = l/(2 pi n') N_z(l theta) = N(1)/(2 pi n' theta),

and laws, weights and epsilons are rows of one table. Among many people that is closer than the cells of
crowd_laws.py, and much faster."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shuffledp._certified.rounding import Floats, up
from shuffledp.accounting._curves.crowd_family import Family, Places
from shuffledp.accounting._curves.crowd_laws import TILTS, Laws
from shuffledp.accounting._curves.crowd_weights import Corners, Cut, Scales, expectation
from shuffledp.accounting._curves.profile import Bools
from shuffledp.accounting._hints.crowds import CrowdHints

_UNITS = 64  # soundness: operations of a bound beside the integral
_POOLS, _LARGEST_SHARE = 5, 0.3  # speed: sizes that are tried; of the users that a pool may take
_WELL = 1.35  # tightness: a bound no larger than so many times the guess is good
_FLATTER = np.array([1.0, 0.9, 0.8, 0.65, 0.5])  # speed: of the tilt without weights


class Guess(NamedTuple):
    """At every epsilon: a tilt, about the bound, and the law that leads."""

    theta: Floats
    bound: Floats
    leader: Places

    def some(self, at: Places) -> Guess:
        return Guess(self.theta[at], self.bound[at], self.leader[at])


@dataclass(frozen=True)
class AtOnce:
    """``corners``: the weights of a pool of some size; ``variance``: of the X of its reports, about;
    ``moved``: what a delta0 costs for each."""

    n: int
    family: Family
    hints: CrowdHints
    variance: float
    moved: float
    corners: Callable[[int], Corners]

    def bounds(self, growth: Floats) -> tuple[Floats, Floats, Bools]:
        """At e^epsilon - 1: (upper bounds, about their slopes in alpha, whether they are as good as hoped).

        Of few pools the first good one."""
        found = np.ones((2, growth.size))
        with np.errstate(all="ignore"):  # a hint may be absurd
            guess = self._guess(growth)
            aim = _WELL * guess.bound
            sizes = [self._sizes(bound) for bound in guess.bound.tolist()]
            for _ in range(_POOLS):
                size = np.array([max(1, next(some)) for some in sizes])
                open_ = (guess.bound < 1.0) & (size <= min(_LARGEST_SHARE * self.n, self.n - 2))
                for at, scales, cut in self._groups(
                    np.where(open_ & (found[0] > aim), size, 0), guess, growth
                ):
                    aim[at] = _WELL * (guess.bound[at] + cut.shift(growth[at]))
                    more = self._among(growth[at], guess.some(at), self.n - 1 - int(size[at[0]]), scales, cut)
                    found[:, at] = np.where(more[0] < found[0, at], more, found[:, at])
        return found[0], found[1], found[0] <= aim

    def _laws(self, growth: Floats, some: Places | None = None) -> Laws:
        """Rows of every epsilon and law, or of one law at each."""
        count = len(self.family.stated[0])
        place = np.tile(np.arange(count), growth.size) if some is None else some
        gap, other, clone = (part[place] for part in self.family.stated)
        return Laws.of(
            gap, other, clone, np.repeat(growth, place.size // growth.size)[:, None], 1.0, math.inf
        )

    def _guess(self, growth: Floats) -> Guess:
        """As if all held one value."""
        laws = self._laws(growth)
        theta = np.clip(self.hints.tilts(laws, self.n), *TILTS)
        heights = (laws.log_bounds(theta[:, None], self.n)[:, 0]).reshape(growth.size, -1)
        leader = np.nan_to_num(heights, nan=-math.inf).argmax(axis=1)
        each = np.arange(growth.size)
        return Guess(theta.reshape(heights.shape)[each, leader], np.exp(heights[each, leader]), leader)

    def promised(self, growth: Floats) -> Floats:
        """About the bounds, rather below them, without integrals: guesses."""
        laws = self._laws(growth)
        with np.errstate(all="ignore"):  # a hint may be absurd
            theta = self.hints.tilts(laws, self.n)
            told = self.hints.tilted(laws, theta)
            alone = self.hints.bounds_of_tilted(told, self.n, theta, 0.0).reshape(growth.size, -1)
            most = np.fmax(alone, 0.0).max(axis=1).tolist()
            pools = [self._sizes(bound) for bound in most]
            size = np.repeat([max(1, min(next(pool), self.n - 2)) for pool in pools], alone.shape[1])
            found = self.hints.bounds_of_tilted(told, self.n - 1.0 - size, theta, self.variance / size)
        return np.asarray(np.fmax(found, 0.0).reshape(alone.shape).max(axis=1))

    def promised_by_one(self, growth: float) -> float:
        """The same of the law of the largest second moment at alpha = 1 alone."""
        place = int(self.family.seconds.flat.argmax())
        rows = zip(*(part[place].tolist() for part in self.family.stated), strict=True)
        law = [((gap - growth * other) / clone, clone) for gap, other, clone in rows if clone > 0.0]
        return self.hints.promise_of(law, self.n, self.variance, self.moved)

    def _sizes(self, bound: float) -> Iterator[int]:
        return self.hints.pool_sizes(self.n, self.variance, bound, self.moved)

    def _groups(self, size: Places, guess: Guess, growth: Floats) -> Iterator[tuple[Places, Scales, Cut]]:
        """Epsilons that have the same pool and weights; some have none."""
        found: dict[tuple[int, int], dict[int, int]] = {}
        for place in np.flatnonzero(size).tolist():
            pool = int(size[place])
            cost = self.corners(pool).cost(float(growth[place]))
            last = self.hints.last_weight(cost, float(guess.bound[place]))
            found.setdefault((pool, self.hints.grade(last)), {})[place] = last
        for (pool, _), lasts in found.items():
            yield np.array(list(lasts)), *self.corners(pool).until(max(lasts.values()))

    def _among(self, growth: Floats, guess: Guess, users: int, scales: Scales, cut: Cut) -> Floats:
        each, leaders = np.arange(growth.size), self._laws(growth, guess.leader)
        tried = np.clip(np.outer(guess.theta, _FLATTER), *TILTS)
        theta = tried[each, self._means(leaders, tried, users, scales.thinned).argmin(axis=1)]
        count = len(self.family.stated[0])
        found = self._means(self._laws(growth), np.repeat(theta, count)[:, None], users, scales)
        lost = cut.lost(growth, 0.5 / (users * theta))
        bound = up(found.reshape(growth.size, count).max(axis=1) + lost, operations=_UNITS)
        mass = leaders.p * np.exp(theta[:, None] * leaders.x)
        slope = (
            (bound - cut.shift(growth))
            * users
            * theta
            * (mass * leaders.ratio).sum(axis=1)
            / mass.sum(axis=1)
        )
        return np.stack([np.where(bound < 1.0, bound, 1.0), np.nan_to_num(slope)])

    def _means(self, laws: Laws, theta: Floats, users: int, scales: Scales) -> Floats:
        """Over all weights, at every tilt (columns) of every law."""
        tau = theta[:, :, None] * scales.weight
        heights = laws.log_bounds(tau.reshape(len(tau), -1), users).reshape(tau.shape)
        heights += np.log(scales.weight)
        means = expectation(
            scales.weight, heights.reshape(-1, scales.weight.size), scales.middle, scales.excess
        )
        return np.where(np.isnan(means), math.inf, means).reshape(theta.shape)
