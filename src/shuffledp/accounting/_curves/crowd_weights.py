"""Weights that a pool gives to others, and the mean of a bound over them (T16, docs/proofs/crowd.md, 4).

A weight is a likelihood ratio, of mean one, of which a profile delta bounds E[(l - t)_+] and E[(t - l)_+]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp._certified.rounding import CALL, Floats, gamma, up
from shuffledp.accounting._curves.crowd_family import Places

_UNITS = 64  # soundness: operations of a bound beside the integral
_STRIDE = 3  # speed: weights between nodes
_ROOM = 1.15  # tightness: with a delta0, for a verifier who looks at other pools


@dataclass(frozen=True)
class Corners:
    """Weights e^-logs and e^logs, all there are, and the pool's profile there."""

    logs: Floats
    excess: Floats
    moved: float = 0.0
    """What a delta0 moves of the pool's reports, in total variation."""
    apart: float = 1.0
    """The total variation of two inputs' reports, at most."""

    def cost(self, growth: float) -> Floats:
        """Of every corner as the last one, about what weights beyond it add, at alpha - 1."""
        return self._beyond * (self.apart + (self.apart + growth) * np.exp(-self.logs))

    @property
    def _beyond(self) -> Floats:
        """At most E[(l - L)_+], and L times E[(1/L - l)_+], at every corner. Nothing is beyond e^epsilon0."""
        return np.append(self.excess[:-1], 0.0)

    def until(self, last: int) -> tuple[Scales, Cut]:
        """The weights up to one, to which larger and smaller ones are cut, and what that is."""
        last = min(max(1, last), self.logs.size - 1)
        logs = self.logs[: last + 1]
        scaled = np.exp(np.concatenate([-logs[:0:-1], logs]))
        cut = Cut(float(self._beyond[last]), self.moved, self.apart, float(scaled[-1]))
        return Scales(scaled, last, self.excess[: last + 1]), cut


@dataclass(frozen=True)
class Cut:
    """What is not counted by its weight: how far weights are ``beyond`` the ``last`` one in the mean, and its
    inverse in proportion, and what is ``moved`` of the pool's reports in both worlds, which are so far
    ``apart`` (T16, sections 4 and 8)."""

    beyond: float
    moved: float
    apart: float
    last: float

    def lost(self, growth: Floats | float, height: Floats | float) -> Floats | float:
        """At alpha - 1, ``height`` being the bound of a member of no weight.

        (l - L)_+ X is at most that much of X_+, and (l - 1/L) X, where it is negative, of X_-."""
        beyond = self.beyond * (self.apart + (self.apart + growth) / self.last)
        if self.moved == 0.0:
            return up(beyond, operations=2 * CALL + 8)
        return up(_ROOM * (beyond + self.shift(growth) + self.moved * height), operations=4 * CALL)

    def shift(self, growth: Floats | float) -> Floats | float:
        """What is moved, in both worlds."""
        here = (1.0 + 2.0 * self.last) * self.apart
        return self.moved * (here + (1.0 + self.last) * (self.apart + growth))


@dataclass(frozen=True)
class Scales:
    """Weights, that of ``middle`` being one, and the pool's profile from there on outwards."""

    weight: Floats
    middle: int
    excess: Floats

    @cached_property
    def nodes(self) -> Places:
        """Some of the weights, with 1 and both ends."""
        inner = np.arange(self.middle % _STRIDE, self.weight.size, _STRIDE)
        return np.unique(np.concatenate([[0], inner, [self.weight.size - 1]])).astype(np.intp)

    @cached_property
    def few(self) -> Places:
        """1 and both ends."""
        return np.unique([0, self.middle, self.weight.size - 1]).astype(np.intp)

    @cached_property
    def thinned(self) -> Scales:
        """Fewer of them, to compare with."""
        places = np.arange(self.middle % _STRIDE, 2 * self.middle + 1, _STRIDE)
        return Scales(self.weight[places], self.middle // _STRIDE, self.excess[::_STRIDE])

    @cached_property
    def sparse(self) -> Scales:
        """The nodes alone: fewer of them that go as far."""
        outward = self.nodes[self.nodes >= self.middle] - self.middle
        return Scales(self.weight[self.nodes], outward.size - 1, self.excess[outward])

    def interpolated(self, values: Floats, places: Places | None = None) -> Floats:
        """Values at all weights from those at the nodes (columns), or at these places with both ends,
        linearly: an upper bound if convex."""
        nodes = self.weight[self.nodes if places is None else places]
        left = np.searchsorted(nodes[1:], self.weight).clip(max=max(nodes.size - 2, 0))
        right = np.minimum(left + 1, nodes.size - 1)
        share = (self.weight - nodes[left]) / np.where(right > left, nodes[right] - nodes[left], 1.0)
        found = values[:, left] * (1.0 - share) + values[:, right] * share
        return np.asarray(found + gamma(_UNITS) * np.abs(values).max(axis=1, keepdims=True))


def expectation(scaled: Floats, heights: Floats, middle: int, excess: Floats) -> Floats:
    """Of the polygons through e^heights (rows), made convex from ``middle`` on, raised between their corners.

    Slopes are differences of rounded numbers: each is off by a share of what is subtracted."""
    with np.errstate(over="ignore", invalid="ignore"):
        heights = heights + gamma(_UNITS) * (1.0 + np.abs(heights))
        if scaled.size == 1:
            return up(np.exp(heights[:, 0]), operations=4 * CALL)
        run = np.diff(scaled)
        step = float((run / scaled[:-1]).max())
        b = np.exp(heights + step * step / 8.0)
        slope, doubt = np.diff(b) / run, gamma(2 * CALL + 8) * (b[:, 1:] + b[:, :-1]) / run
        # Outward slopes, rounded up; kinks are how much steeper a piece is than all before it.
        right, left = (slope + doubt)[:, middle:], (doubt - slope)[:, :middle][:, ::-1]
        result = b[:, middle] + np.maximum(right[:, 0] + left[:, 0], 0.0) * excess[0]
        for side, scale in ((right, np.ones(excess.size - 1)), (left, scaled[:middle][::-1])):
            rising = np.maximum.accumulate(np.maximum(side - side[:, :1], 0.0), axis=1)
            result = result + np.diff(rising) @ (scale[:-1] * excess[1:-1])
            # Beyond the last corner a polygon that still falls is held level.
            result = result + np.maximum(-(side[:, 0] + rising[:, -1]), 0.0) * (scale[-1] * excess[-1])
    return np.where(np.isfinite(result), up(result, operations=2 * scaled.size + 4 * CALL), math.inf)
