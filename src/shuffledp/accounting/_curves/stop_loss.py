"""How far the laws of many pairs of inputs are above the first one, in stop-loss curves.

For laws of X = (own - alpha other)/clone (see amplification) the curve E[(X - t)_+] of every law is
compared with that of the first, the leader Y, at a slightly smaller epsilon:

    excess = max over t of E[(X - t)_+] - E[(Y - t)_+], rounded up.

It is zero where X is below Y in the increasing convex order. E[(Y - t)_+] is linear between the values
of Y and E[(X - t)_+] is convex, so that the largest difference is at a value of Y, or left of all of
them, where it is the difference of the means. For t < 0 both are taken by parts, E[(X - t)_+] = E[X] - t
+ E[(t - X)_+], so that every sum has positive terms only: E[(X - t)_+] is the sum over the values v > t
of P(X >= v) times the distance to the next smaller value (or to t).

>>> from shuffledp.accounting._curves.law_sum import AmplificationProfile
>>> wide = AmplificationProfile(9, (0.6, 0.4), (0.4, 0.6), (0.2, -0.2), (0.4, 0.4))
>>> slim = AmplificationProfile(9, (0.5, 0.5), (0.4, 0.6), (0.1, -0.1), (0.4, 0.4))
>>> LawOrder((wide, slim)).excess(0.1, 0.11)
array([0.])
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from shuffledp._certified.rounding import CALL, LARGEST_EXPONENT, Floats, down, gamma, up
from shuffledp.accounting._curves.law_sum import AmplificationProfile

Places = npt.NDArray[np.intp]

_AT_ONCE = 1 << 18  # speed


@dataclass(frozen=True)
class LawOrder:
    """The laws of some pairs, the leader first."""

    laws: tuple[AmplificationProfile, ...]

    @cached_property
    def _table(self) -> _Table:
        return _Table.of(self.laws)

    def excess(self, before: float, epsilon: float, places: Places | None = None) -> Floats:
        """Of the laws in these ``places`` (all but the first) at ``epsilon``, over the leader's at ``before``
        <= epsilon.

        Infinite where some output is hidden by nobody: there means are not comparable."""
        places = np.arange(1, len(self.laws)) if places is None else places
        leader = self._table.rows(np.zeros(1, np.intp))
        if not (before <= epsilon < LARGEST_EXPONENT and leader.hidden.all()):
            return np.full(places.size, np.inf)
        top = leader.stops(before, -1.0)
        t = np.unique(top.value)
        right = t >= 0.0
        # Sums of sums of m positive terms: both curves are rounded by no more, against the leader.
        units = 3 * leader.gap.shape[1] + 16
        calls = down(top.calls(t[right])[0], units, tiny=0.0)
        drift = max(math.expm1(epsilon) - math.expm1(before) - gamma(2 * CALL) * math.expm1(epsilon), 0.0)
        # The means are 1 - alpha as far as rows sum to one, which is a matter of rounding too.
        # Values are moved by 32 units of their terms, the means are not.
        doubt = gamma(units + 128) * (1.0 + math.exp(epsilon))
        puts = down(top.puts(t[~right])[0], units, tiny=0.0) + drift - doubt
        found = []
        for some in np.array_split(places, 1 + places.size * leader.gap.shape[1] // _AT_ONCE):
            table = self._table.rows(some)
            mine = table.stops(epsilon, 1.0)
            above = (up(mine.calls(t[right]), units, tiny=0.0) - calls).max(axis=1, initial=0.0)
            below = (up(mine.puts(t[~right]), units, tiny=0.0) - puts).max(axis=1, initial=0.0)
            worst = up(np.maximum(np.maximum(above, below), doubt - drift), operations=4, tiny=0.0)
            found.append(np.where(table.hidden, worst, np.inf))
        return np.concatenate(found)


@dataclass(frozen=True)
class _Table:
    """Laws as rows; shorter ones end in types of probability 0 that do not count.

    ``hidden``: whether every type is hidden by somebody."""

    gap: Floats
    other: Floats
    clone: Floats
    hidden: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, laws: Sequence[AmplificationProfile]) -> _Table:
        table = np.zeros((3, len(laws), max(len(law.clone) for law in laws)))
        for i, law in enumerate(laws):
            table[:, i, : len(law.clone)] = law.gap, law.other, law.clone
        hidden = np.array([min(law.clone) > 0.0 for law in laws])
        return cls(table[0], table[1], table[2], hidden)

    def rows(self, places: Places) -> _Table:
        """Some of the laws."""
        return _Table(self.gap[places], self.other[places], self.clone[places], self.hidden[places])

    def stops(self, epsilon: float, sign: float) -> Stops:
        """The values rounded up (sign 1) or down (sign -1), by more than they can be off."""
        seen = math.expm1(epsilon) * self.other
        outward = sign * gamma(32) * (np.abs(self.gap) + seen)
        used = self.clone > 0.0
        weight = self.gap - seen + outward
        value = np.where(used, weight / np.where(used, self.clone, 1.0), 0.0)
        rest = np.maximum(0.0, 1.0 - self.clone.sum(axis=1, keepdims=True))
        value = np.concatenate([value, np.zeros_like(rest)], axis=1)
        order = np.argsort(-value, axis=1)
        mass = np.concatenate([self.clone, rest], axis=1)
        return Stops(np.take_along_axis(value, order, axis=1), np.take_along_axis(mass, order, axis=1))


@dataclass(frozen=True)
class Stops:
    """Rows of values (falling) with their probabilities."""

    value: Floats
    weight: Floats

    def calls(self, t: Floats) -> Floats:
        """E[(X - t)_+] per row and t."""
        return _stop_losses(self.value, self.weight, t)

    def puts(self, t: Floats) -> Floats:
        """E[(t - X)_+] per row and t."""
        return _stop_losses(-self.value[:, ::-1], self.weight[:, ::-1], -t)


def _stop_losses(value: Floats, weight: Floats, t: Floats) -> Floats:
    """E[(X - t)_+] for rows of falling values: differences of floats are exact up to one rounding."""
    mass = np.cumsum(weight, axis=1)
    layers = np.cumsum(mass[:, :-1] * -np.diff(value, axis=1), axis=1)
    result = np.zeros((len(value), t.size))
    for row, (x, m, layer) in enumerate(zip(value, mass, layers, strict=True)):
        last = np.searchsorted(-x, -t) - 1  # the smallest value above t, if any
        above = last >= 0
        at = last[above]
        start = np.where(at > 0, layer[at - 1], 0.0)
        result[row, above] = start + m[at] * (x[at] - t[above])
    return result
