"""One person among groups whose reports hide others with different probabilities (T21).

The person's report has the type t with probability ``own[t]`` or ``other[t]``; each of ``counts[j]`` others
of group j sends a report that hides type t with probability ``crowd[j][t]``, else one that hides nothing. If
all groups hide by one law nu, crowd[j] = gamma_j nu, then with W = (own - alpha other)/nu under nu, b_i = 1
with the probability gamma of person i and 0 else,

    H_alpha = E[W_0 1{W_0 + sum over the others b_i W_i > 0}],

which grows under mean-preserving spreads of W: it is spread onto a lattice that contains 0. From below, the
event "the sum of W rounded to the lattice is positive" is a test, of any crowds.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp._certified.lattice_sum import Group, Own, tail_sum
from shuffledp._certified.rounding import CALL, LARGEST_EXPONENT, Floats, down, positive, up
from shuffledp.accounting._curves.lattice_law import complete, usable_tilt
from shuffledp.accounting._curves.law_sum import NUDGE, AmplificationProfile
from shuffledp.accounting._curves.profile import Bools, PrivacyProfile, SupportingLines
from shuffledp.accounting._curves.stop_loss import LawOrder
from shuffledp.accounting._hints.starts import LawHints
from shuffledp.errors import NoCertificateError

_CELLS = np.unique(np.geomspace(1, 20_000, 72).round())  # speed: of the largest value
_HOPELESS = 1_000  # speed: where all of these are too few


@dataclass(frozen=True)
class GroupsProfile(PrivacyProfile):
    """See module. ``upper`` only where all of ``crowd`` have one law; ``support`` always."""

    own: tuple[float, ...]
    other: tuple[float, ...]
    gap: tuple[float, ...]
    crowd: tuple[tuple[float, ...], ...]
    counts: tuple[int, ...]

    @property
    def n(self) -> int:
        return 1 + sum(self.counts)

    @cached_property
    def _mean(self) -> AmplificationProfile:
        """The same person among others who are all alike, and hide as these do on average."""
        if self.n == 1:
            return AmplificationProfile(1, self.own, self.other, self.gap, self.own)
        table = np.array(self.counts, float) @ np.array(self.crowd) / (self.n - 1)
        return AmplificationProfile(self.n, self.own, self.other, self.gap, tuple(table.tolist()))

    @property
    def epsilon_max(self) -> float:
        return self._mean.epsilon_max

    @property
    def chi(self) -> float:
        """About the largest chi-square of a report among what hides it."""
        gap, clone = np.array(self.gap), np.array(self._mean.clone)
        return float((gap**2 / positive(clone)).sum())

    @cached_property
    def hints(self) -> LawHints:
        return self._mean.hints

    @property
    def directions(self) -> tuple[GroupsProfile, ...]:
        """The pair as it is and reversed, or once if that is the same."""
        return (self,) if self._mean.symmetric else (self, self.reversed())

    def reversed(self) -> GroupsProfile:
        """The same pair in the direction (x', x)."""
        gap = tuple(-g for g in self.gap)
        return GroupsProfile(self.other, self.own, gap, self.crowd, self.counts)

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        weight = self._mean._weights(epsilon, -NUDGE)
        result = np.maximum(weight, 0.0).sum(axis=1)  # what is told if nobody hides anything
        for i in np.flatnonzero((result > 0.0) & (self.n > 1)):
            lattice = self._lattice(weight[i], resolution)
            try:
                result[i] = min(result[i], lattice.upper())
            except NoCertificateError:
                continue
        return np.asarray(up(result, operations=len(self.own) + 8 * CALL))

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        weight = self._mean._weights(epsilon, NUDGE)
        lines = np.zeros((3, epsilon.size))
        for i in np.flatnonzero((weight > 0.0).any(axis=1) & (epsilon <= LARGEST_EXPONENT)):
            if self.n == 1:
                told = np.array([weight[i], self.other]) @ (weight[i] > 0.0)
                lines[:, i] = told[0], told[1], told[1]
            else:
                lines[:, i] = self._lattice(weight[i], resolution).lower(np.array(self.other))
        count = len(self.own) + 8 * CALL
        low = down(lines[:2], operations=count)
        return SupportingLines(epsilon, low[0], low[1], up(lines[2], operations=count))

    def _lattice(self, weight: Floats, resolution: float) -> _Lattice:
        mean = np.array(self._mean.clone)
        hidden = mean > 0.0
        x, w = complete(weight[None, hidden], mean[hidden])
        top = float(x.max())
        if top <= 0.0:
            raise NoCertificateError("what is hidden has no positive part")
        x = np.maximum(x / top, -(2.0**40))
        theta = usable_tilt(self.hints.lattice.tilt(x, w, self.n), x)
        tilted = w * np.exp(theta[:, None] * x)
        tilted = tilted[0] / tilted.sum()
        variance = float(tilted @ x[0] ** 2 - (tilted @ x[0]) ** 2)
        cells = x[0][:, None] * _CELLS
        part = cells - np.floor(cells)
        added = tilted @ (part * (1.0 - part)) / _CELLS**2
        good = _CELLS[added <= resolution * max(variance, 0.0)]
        step = 1.0 / float(good[0] if good.size else _HOPELESS)
        crowd = np.array(self.crowd)[:, hidden]
        size = crowd.shape[1]
        likely = tilted[:size]
        return _Lattice(
            weight, hidden, mean[hidden], top, x[0][:size], likely, crowd, self.counts, theta, step
        )


@dataclass(frozen=True)
class GroupPairsProfile(PrivacyProfile):
    """The largest of many laws with the same clones, some of which leads (``profiles``: in any order).

    Those that exceed the leader's, a little left of epsilon, by next to nothing in stop-loss curves add that;
    the others are evaluated (a corollary of T21, docs/proofs/groups.md)."""

    profiles: tuple[GroupsProfile, ...]

    @cached_property
    def _order(self) -> LawOrder:
        return LawOrder((self._leader._mean, *(one._mean for one in self.profiles)))

    @cached_property
    def _leader(self) -> GroupsProfile:
        return max(self.profiles, key=lambda one: one.chi)

    @property
    def epsilon_max(self) -> float:
        return max(one.epsilon_max for one in self.profiles)

    @property
    def hints(self) -> LawHints:
        return self._leader.hints

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        before = epsilon * (1.0 - 0.1 * resolution)
        result = self._leader.upper(before, resolution)
        added, left = self._compared(before, epsilon, 0.1 * resolution * result)
        result = np.asarray(up(result + added, operations=1))
        for place in np.flatnonzero(left.any(axis=1)):
            at = np.flatnonzero(left[place])
            result[at] = np.maximum(result[at], self.profiles[place].upper(epsilon[at], resolution))
        return result

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        best = self._leader.support(epsilon, resolution)
        _, left = self._compared(epsilon * (1.0 - 0.1 * resolution), epsilon, 0.1 * resolution * best.value)
        for place in np.flatnonzero(left.any(axis=1)):
            with suppress(NoCertificateError):
                lines = self.profiles[place].support(epsilon, resolution)
                best = best.chosen(lines, lines.value > best.value)
        return best

    def _compared(self, before: Floats, epsilon: Floats, allowed: Floats) -> tuple[Floats, Bools]:
        """What laws add that exceed the leader's by no more than ``allowed``; and which laws (rows) exceed it
        by more."""
        added, left = np.zeros(epsilon.size), np.zeros((len(self.profiles), epsilon.size), bool)
        for i, (low, high) in enumerate(zip(before.tolist(), epsilon.tolist(), strict=True)):
            excess = self._order.excess(low, high)
            left[:, i] = excess > allowed[i]
            added[i] = excess[~left[:, i]].max(initial=0.0)
        return added, left


@dataclass(frozen=True)
class _Lattice:
    """One epsilon: the weights of all types, which are ``hidden`` and by how much on average, their values x
    in units of ``top``, how likely they are under the tilt; the lattice's tilt and step."""

    weight: Floats
    hidden: Bools
    mean: Floats
    top: float
    x: Floats
    likely: Floats
    crowd: Floats
    counts: tuple[int, ...]
    theta: Floats
    step: float

    def _groups(self, z: Floats, share: Floats) -> list[Group]:
        """Group by group the law of what it adds; a report that hides nothing adds 0."""
        found = []
        for masses, count in zip(self.crowd, self.counts, strict=True):
            if count:
                rest = max(0.0, 1.0 - float(masses.sum()))
                w = np.append(np.tile(masses, len(z) // masses.size) * share, rest)
                found.append(Group(np.append(z, 0.0)[None], w[None], np.full(1, float(count))))
        return found

    def upper(self) -> float:
        cells = self.x / self.step
        floor = np.floor(cells)
        right = cells - floor
        z, share = np.concatenate([floor, floor + 1.0]), np.concatenate([1.0 - right, right])
        own = Own(z[None], (np.tile(self.mean, 2) * share * z * (self.step * self.top))[None, :, None])
        found = tail_sum(self._groups(z, share), own, np.ones(1), self.theta * self.step)
        seen = float(np.maximum(self.weight[~self.hidden], 0.0).sum())
        high = float(np.exp(found.log_scale[0]) * max(found.value[0, 0] + found.error[0, 0], 0.0))
        return seen + high

    def lower(self, other: Floats) -> Floats:
        """(value, Q(A) low, Q(A) high)."""
        cells = self.x / self.step
        z = np.rint(cells)
        c = np.stack([self.weight[self.hidden], other[self.hidden]], axis=1)
        # The rounding errors' mean under the tilt moves the best threshold: any is valid.
        drift = (1 + sum(self.counts)) * float(self.likely @ (cells - z))
        threshold = np.floor(np.full(1, -drift)) + 1.0
        groups = self._groups(z, np.ones(z.size))
        found = tail_sum(groups, Own(z[None], c[None]), threshold, self.theta * self.step)
        scale = np.exp(found.log_scale[0])
        low = scale * np.maximum(found.value - found.error, 0.0)[0]
        high = scale * (found.value + found.error)[0]
        seen = self.weight[~self.hidden] > 0.0
        event = float(other[~self.hidden][seen].sum())
        told = float(self.weight[~self.hidden][seen].sum())
        return np.array([low[0] + told, low[1] + event, high[1] + event])
