"""Choices of the crowd theorem: how large a pool, which tilt, how far to look. Any of them is valid."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from shuffledp._certified.rounding import LARGEST_EXPONENT, TINY, Floats, capped, positive
from shuffledp.accounting._hints.starts import Hints

Integers = npt.NDArray[np.integer[Any]]

_POOLED_VARIANCES = 1.5  # speed: of X, for each power of e by which rare pools are rare
_TILTS = np.exp(np.linspace(-2.4, 1.2, 49))  # around that of normal sums
_FEW = 4  # speed: one of so many shows about how large a bound is
_FAR = 5.0  # deviations
_LEADERS = 8  # laws that the tilt is chosen for
_PIECES = (0.0, 3.0, 0.4), (3.0, 6.0, 0.6), (6.0, 12.0, 1.0), (12.0, 24.0, 2.0)
_STEPS = np.concatenate([np.arange(*piece) for piece in _PIECES])
_ENDS = np.cumsum([np.arange(*piece).size for piece in _PIECES])
_SMALLER, _ABOUT = 0.9 ** np.arange(16.0), 1.15  # of a tilt
_BY_WEIGHTS = 1.4  # seen: how much weights raise a bound's logarithm
_NEWTON, _CLOSE_ENOUGH = 6, 1e-4  # speed
_AROUND = np.geomspace(0.4, 2.5, 9), np.linspace(0.96, 1.04, 3)  # where to begin
_RARE = 0.01, 0.03  # of the bound: what larger weights may add; where there is no less
_MOVED = 0.1  # of the bound: what a delta0 may move


class Values(Protocol):
    """Laws of X, one a row: values and masses."""

    @property
    def x(self) -> Floats: ...
    @property
    def p(self) -> Floats: ...


class CrowdHints:
    """Guesses of the crowd theorem: pools, weights, tilts and laws to begin with."""

    def steady(self, theta: float, values: Callable[[Floats], Floats]) -> float:
        """The first tilt from ``theta`` downwards that has about the least value: weights above one raise the
        value of a steep one by far more than that of others."""
        tried = theta * _SMALLER
        found = values(tried)
        return float(tried[int(np.argmax(found <= _ABOUT * found.min()))])

    def pool_sizes(self, n: int, variance: float, guess: float, moved: float = 0.0) -> Iterator[int]:
        """From where what is lost with the pool's members balances what their weights cost; in few sizes.

        ``moved``: what a delta0 costs for every member."""
        rare = -math.log(positive(_RARE[0] * guess))
        balanced = min(math.sqrt(n * variance), _MOVED * guess / positive(moved))
        least = max(balanced, _POOLED_VARIANCES * variance * rare)
        for power in count(math.ceil(2.0 * math.log2(positive(least)))):
            yield math.ceil(math.sqrt(2.0) ** power)

    def weights(self, scale: float, most: float) -> Floats:
        """Logarithms of weights to look at, between 0 and ``most``, in deviations of the pool's loss."""
        return np.asarray(scale * _STEPS)

    def normal_tail(self, second: float, n: int, growth: float) -> float:
        """About the bound, if sums were normal."""
        away = growth * math.sqrt(n / second)
        return math.sqrt(second / n) * math.exp(-0.5 * away * away) / (2.5 * (1.0 + away * away))

    def leaders(self, laws: Values, n: int) -> Integers:
        """Places of those with the largest exponential moments, at about the tilt of normal sums."""
        second = (laws.p * laws.x**2).sum(axis=1)
        exponent = capped(laws.x * (_FAR / math.sqrt(n * float(second.max()))))
        return np.argsort(-(laws.p * np.exp(exponent)).sum(axis=1))[:_LEADERS]

    def tilt(
        self,
        values: Floats,
        masses: Floats,
        n: int,
        growth: float,
        rate: float = 1.0,
        *,
        coarsely: bool = False,
    ) -> tuple[float, float]:
        """About the best theta for sums of n of the largest of these laws, and about what the bound comes to.

        With ``rate`` each of the n counts with that probability, and is -growth else. ``coarsely``: of few
        tilts."""
        variance = max(rate * float((masses * values**2).sum(axis=1).max()), TINY)
        away = growth * math.sqrt(n / variance)
        tilts = _TILTS[_TILTS.size % _FEW // 2 :: _FEW] if coarsely else _TILTS
        thetas = 0.5 * (away + math.sqrt(away * away + 8.0)) / math.sqrt(n * variance) * tilts
        absent = (1.0 - rate) * np.exp(-thetas * growth)
        moments = (np.exp(capped(values[:, None, :] * thetas[:, None])) @ masses[:, :, None])[:, :, 0]
        height = n * np.log(absent + rate * moments).max(axis=0) - 2.0 * np.log(thetas)
        best = int(height.argmin())
        spread = math.sqrt(2.0 * math.pi / (n * variance)) / (2.0 * math.pi * n)
        return float(thetas[best]), math.exp(capped(float(height[best]))) * spread

    def tilts(self, laws: Values, n: int) -> Floats:
        """About the best theta of every law, for sums of n of it: Newton's steps from that of normal sums."""
        powers = _powers(laws)
        _, mean, second = _moments(laws.p, powers)
        deviation = np.sqrt(positive(n * second))
        away = -n * mean / deviation
        tau = 0.5 * (away + np.sqrt(away**2 + 8.0)) / deviation
        none = ~(laws.x > 0.0).any(axis=1)  # is ever positive: of such sums there is no best one
        for _ in range(_NEWTON):
            sums, mean, second = _moments(laws.p * np.exp(capped(tau[:, None] * laws.x)), powers)
            sums = positive(sums)
            mean = mean / sums
            variance = second / sums - mean * mean
            step = (n * mean - 2.0 / tau) / (n * np.maximum(variance, 0.0) + 2.0 / (tau * tau))
            close = (np.abs(step) <= _CLOSE_ENOUGH * tau) | none
            tau = np.minimum(np.maximum(tau - step, 0.3 * tau), 2.0 * tau)
            if close.all():
                break
        return np.asarray(tau)

    def bounds_of_one_value(self, laws: Values, n: Any, theta: Any, spread: Any) -> Floats:
        """About what the integral of each of these laws comes to, as if it were normal under the tilt, with
        weights of the variance ``spread``."""
        return self.bounds_of_tilted(self.tilted(laws, theta), n, theta, spread)

    def tilted(self, laws: Values, theta: Any) -> tuple[Floats, Floats]:
        """log E e^(theta X) of every law, and its variance under the tilt."""
        mass = laws.p * np.exp(capped(np.reshape(theta, (-1, 1)) * laws.x))
        sums = positive(mass.sum(axis=1))
        mass /= sums[:, None]
        mean = (mass * laws.x).sum(axis=1)
        return np.log(sums), (mass * (laws.x - mean[:, None]) ** 2).sum(axis=1)

    def bounds_of_tilted(self, tilted: tuple[Floats, Floats], n: Any, theta: Any, spread: Any) -> Floats:
        """``bounds_of_one_value``, of what ``tilted`` told."""
        log_sums, variance = tilted
        square = 0.5 * n * variance * theta * theta
        y = np.sqrt(square)
        # e^(y^2) erfc(y), to a percent, of int e^(-n v w^2/2) / (theta^2 + w^2) dw.
        mills = np.maximum(y + np.sqrt(square + 4.0 / math.pi), 1.5 * y + np.sqrt(0.25 * square + 1.0))
        found = n * log_sums - np.log(positive(theta) * n * math.sqrt(math.pi) * mills)
        return np.asarray(np.exp(capped(found + _BY_WEIGHTS * spread * square)))

    def promise_of(self, law: Sequence[tuple[float, float]], n: int, variance: float, moved: float) -> float:
        """About the bound of one law (values and masses) with a pool: ``bounds_of_tilted`` of many."""
        tau = _steepness(law, n)
        told = _tilted_moments(law, tau)
        alone = _likely_bound(*told, n, tau, 0.0)
        size = max(1, min(next(self.pool_sizes(n, variance, alone, moved)), n - 2))
        return _likely_bound(*told, n - 1 - size, tau, variance / size)

    def last_weight(self, cost: Floats, guess: float) -> int:
        """The first weight to which cutting larger ones costs little enough."""
        for share in _RARE:
            if (enough := np.flatnonzero(cost <= positive(share * guess))).size:
                return int(enough[0])
        return cost.size - 1

    def grade(self, last: int) -> int:
        """How coarse weights up to one are: those that are no coarser share a table."""
        return int(np.searchsorted(_ENDS, last))


def _tilted_moments(law: Sequence[tuple[float, float]], tau: float) -> tuple[float, float, float]:
    """log E e^(tau X), mean and variance under the tilt."""
    tilted = [(x, p * math.exp(min(tau * x, LARGEST_EXPONENT))) for x, p in law]
    sums = sum(mass for _, mass in tilted)
    mean = sum(x * mass for x, mass in tilted) / sums
    return math.log(sums), mean, sum((x - mean) ** 2 * mass for x, mass in tilted) / sums


def _steepness(law: Sequence[tuple[float, float]], n: int) -> float:
    """The tilt of ``CrowdHints.tilts``, of one law."""
    deviation = math.sqrt(n * sum(p * x * x for x, p in law))
    away = -n * sum(p * x for x, p in law) / deviation
    tau = 0.5 * (away + math.sqrt(away * away + 8.0)) / deviation
    for _ in range(_NEWTON):
        _, mean, variance = _tilted_moments(law, tau)
        step = (n * mean - 2.0 / tau) / (n * variance + 2.0 / tau**2)
        tau = min(max(tau - step, 0.3 * tau), 2.0 * tau)
        if abs(step) <= _CLOSE_ENOUGH * tau:
            break
    return tau


def _likely_bound(log_sum: float, _: float, variance: float, n: float, tau: float, spread: float) -> float:
    """``CrowdHints.bounds_of_tilted``, of one law."""
    square = 0.5 * n * variance * tau * tau
    y = math.sqrt(square)
    mills = max(y + math.sqrt(square + 4.0 / math.pi), 1.5 * y + math.sqrt(0.25 * square + 1.0))
    found = n * log_sum - math.log(tau * n * math.sqrt(math.pi) * mills) + _BY_WEIGHTS * spread * square
    return math.exp(min(found, LARGEST_EXPONENT))


def _powers(laws: Values) -> Floats:
    """One, x and its square, in columns for every law."""
    return np.stack([np.ones_like(laws.x), laws.x, laws.x * laws.x], axis=2)


def _moments(mass: Floats, powers: Floats) -> Floats:
    """Sums of masses, of values and of their squares."""
    return np.asarray(np.matmul(mass[:, None, :], powers)[:, 0].T)


@dataclass(frozen=True, kw_only=True)
class CrowdCurveHints(Hints):
    """Those of a curve of the crowd theorem."""

    about: Callable[[Floats], Floats] = field(compare=False)
    """What the bound is hardly below."""
    least: Callable[[float], float] | None = field(default=None, compare=False)
    """The same of one law that mostly leads, at one epsilon in no time: no more than that."""
    crowd: CrowdHints = field(default_factory=CrowdHints)

    def start(self, delta: float, most: float) -> float:
        """Where about that much is promised: from a few looks around where a normal loss would be."""
        at = super().start(delta, most)
        for around in _AROUND:
            points = np.minimum(at * around, most)
            found = np.log(positive(self.about(points)))
            if not found[-1] < math.log(delta) < found[0]:
                at = float(points[-1 if found[-1] >= math.log(delta) else 0])
                continue
            at = float(np.interp(-math.log(delta), -found, points))
        return at

    def promise(self, epsilon: Floats) -> Floats:
        return self.about(epsilon)

    def may_promise(self, epsilon: Floats, most: Floats) -> bool:
        """Far out first: there crowds are mostly better."""
        if self.least is None:
            return True
        with suppress(ArithmeticError, ValueError):
            places = zip(epsilon[::-1].tolist(), most[::-1].tolist(), strict=True)
            return any(not self.least(at) > bound for at, bound in places)  # no number tells nothing
        return True
