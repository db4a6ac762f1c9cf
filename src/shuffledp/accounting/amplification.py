"""One shuffled round as the law of one random variable X (the privacy blanket, in general form).

The differing user sends a report of type t with probability ``own[t]`` (input x) or ``other[t]``
(input x'); each of the n - 1 others sends, independently, a report that hides type t with
probability ``clone[t]`` (their sum may be below one: the rest hides nothing). Then

    H_alpha = (1/n) E[(X_1 + ... + X_n)_+],   X = (own[t] - alpha other[t]) / clone[t] w.p. clone[t],

and X = 0 with the remaining probability (Balle, Bell, Gascon, Nissim 2019, Lemma 5.3, rewritten).
Types with clone[t] = 0 are seen by everybody and add (own - alpha other)_+ each.

The law is put on a lattice that contains 0 and the largest value of X:

* from above, every value is split onto its two lattice neighbours, keeping the mean: a
  mean-preserving spread, and E[(sum)_+] increases under it;
* from below, (s)_+ >= s 1[A] for every event A. A is "the sum of the values *rounded* to the
  lattice exceeds a threshold": the Neyman-Pearson test with rounded scores.

Both lose only the second order of the lattice spacing. See numerics.lattice_sum for the rest.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import numpy.typing as npt

from shuffledp.accounting.jump_split import Split
from shuffledp.accounting.jumps import Jumps
from shuffledp.accounting.profile import Floats, PrivacyProfile, SupportingLines
from shuffledp.numerics.binomial import UNIT
from shuffledp.numerics.frequencies import NoCertificateError
from shuffledp.numerics.lattice_sum import ERROR_UNITS, Group, Own, log_transform, tail_sum
from shuffledp.numerics.multinomial import enumerate_multinomial, outcomes

_LATTICES = np.unique(np.geomspace(1, 20_000, 100).round())
_HALVES = np.array([1.0, 2.0, 3.0, 4.0, 6.0, 8.0])
_AT_ONCE = 64
_FEW_TYPES = 6
_FEW_USERS = 16
_CANCELLED = 30.0
"""Chernoff's bound exceeds the sum by more where no tilt suits it: jumps decide."""
_GUESSES = 3
_GUESS_POINTS = 17
_NUDGE = 64.0 * UNIT
_FAR = 2.0**40

_MOST_ENUMERATED_USERS = 400
_MOST_OUTCOMES = 60_000
_ENUMERATION_ERROR = 4e-12
"""Of the probabilities, and of sums that nearly cancel (those are far smaller than the total)."""


@dataclass(frozen=True)
class AmplificationProfile(PrivacyProfile):
    """The pair of one law, in the direction (x, x'). Fields are tuples over types (see module).

    ``gap`` is own - other, given apart so that it is accurate when the two are close."""

    n: int
    own: tuple[float, ...]
    other: tuple[float, ...]
    gap: tuple[float, ...]
    clone: tuple[float, ...]

    @property
    def epsilon_max(self) -> float:
        ratios = [
            math.inf if v == 0.0 else math.log1p(g / v)
            for g, v in zip(self.gap, self.other, strict=True)
            if g > 0.0
        ]
        return max(ratios, default=0.0) * (1.0 + 16.0 * UNIT)

    @property
    def infinite_loss(self) -> float:
        """What x sends, x' never sends and nobody hides is seen at every epsilon."""
        rows = zip(self.own, self.other, self.clone, strict=True)
        return sum(own for own, other, clone in rows if other == clone == 0.0) * (1.0 - 1e-12)

    @property
    def scale(self) -> float:
        chi = sum(g * g / c for g, c in zip(self.gap, self.clone, strict=True) if c > 0.0)
        return math.sqrt(chi / self.n)

    def without_empty_types(self) -> AmplificationProfile:
        """Types that nobody reports, dropped."""
        rows = [
            row
            for row in zip(self.own, self.other, self.gap, self.clone, strict=True)
            if row[0] > 0.0 or row[1] > 0.0
        ]
        own, other, gap, clone = zip(*rows, strict=True)
        return AmplificationProfile(self.n, own, other, gap, clone)

    def subsampled(self, fraction: float) -> AmplificationProfile:
        """The differing user takes part with probability ``fraction``, else one of the others.

        For concrete datasets only: ``clone`` must be the whole law of one other user's report."""

        def mix(own: tuple[float, ...]) -> tuple[float, ...]:
            return tuple(
                fraction * u + (1.0 - fraction) * c for u, c in zip(own, self.clone, strict=True)
            )

        gap = tuple(fraction * g for g in self.gap)
        return AmplificationProfile(self.n, mix(self.own), mix(self.other), gap, self.clone)

    @cached_property
    def symmetric(self) -> bool:
        """Whether x and x' can be exchanged without changing the law of X."""
        forward = sorted(zip(self.own, self.other, self.clone, strict=True))
        return forward == sorted(zip(self.other, self.own, self.clone, strict=True))

    @property
    def directions(self) -> tuple[AmplificationProfile, ...]:
        """The pair as it is and reversed, or once if that is the same."""
        return (self,) if self.symmetric else (self, self.reversed())

    def reversed(self) -> AmplificationProfile:
        """The same pair in the direction (x', x)."""
        gap = tuple(-g for g in self.gap)
        return AmplificationProfile(self.n, self.other, self.own, gap, self.clone)

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        return np.concatenate([self._upper(part, resolution) for part in _chunks(epsilon)])

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        parts = [self._support(part, resolution) for part in _chunks(epsilon)]
        return SupportingLines.join(epsilon, parts)

    def guess(self, delta: float, most: float) -> float:
        """About where the curve passes ``delta``, at most ``most``: a start for the certified search.

        The saddle point of E[(sum)_+] = (2 pi i)^-1 integral e^{n K(s)} / s^2 ds, K = log E[e^{s X}]."""
        clone = np.array(self.clone)
        hidden = clone > 0.0
        clone = clone[hidden]
        low, high = 0.0, min(most, self.epsilon_max, 700.0)
        for _ in range(_GUESSES):
            epsilon = np.linspace(low, high, _GUESS_POINTS)
            weight = self._weights(epsilon, 0.0)[:, hidden]
            live = _live(weight, np.array(self.gap)[hidden], self.n)
            value = np.full(epsilon.size, -np.inf)
            if live.any():
                value[live] = _log_estimate(weight[live], clone, self.n)
            last = int(np.sum(value >= math.log(delta)))  # the estimates fall, up to their error
            low, high = epsilon[max(last - 1, 0)], epsilon[min(last, epsilon.size - 1)]
        return 0.5 * float(low + high)

    def _enumeration(self, outward: float) -> _Enumeration | None:
        """All outcomes, where they are few: then the curve is a finite sum."""
        hidden = np.array(self.clone) > 0.0
        clone = np.array(self.clone)[hidden]
        kinds = clone.size + 1
        if self.n > _MOST_ENUMERATED_USERS or outcomes(self.n, kinds) > _MOST_OUTCOMES:
            return None
        # What hides nothing has an absolute error; all terms are positive, so it moves one way.
        doubt = outward * 4.0 * UNIT * kinds
        rest = max(0.0, 1.0 - math.fsum(clone) + doubt)
        counts, p = enumerate_multinomial(self.n, np.append(clone, rest))
        return _Enumeration(counts[:, :-1] / clone / self.n, p)

    def _upper(self, epsilon: Floats, resolution: float) -> Floats:
        weight = self._weights(epsilon, -_NUDGE)
        clone, gap = np.array(self.clone), np.array(self.gap)
        hidden = clone > 0.0
        # E[X_+] is always an upper bound: the only one where X has hardly a positive part.
        result = np.maximum(weight, 0.0).sum(axis=1)
        live = _live(weight[:, hidden], gap[hidden], self.n)
        if live.any() and (small := self._enumeration(1.0)):
            seen = np.maximum(weight[:, ~hidden], 0.0).sum(axis=1)
            value = seen + small.value(weight[:, hidden]) * (1.0 + _ENUMERATION_ERROR)
            result = np.where(live, np.minimum(result, value), result)
        elif live.any():
            seen = np.maximum(weight[live][:, ~hidden], 0.0).sum(axis=1)
            lattice = _Lattice.of(weight[live][:, hidden], clone[hidden], self.n, resolution)
            result[live] = np.minimum(result[live], seen + lattice.chernoff())
            with suppress(NoCertificateError):
                result[live] = np.minimum(result[live], seen + lattice.upper())
        return np.asarray(result * (1.0 + 1e-14) + 1e-300)

    def _support(self, epsilon: Floats, resolution: float) -> Floats:
        weight = self._weights(epsilon, _NUDGE)
        other, clone, gap = np.array(self.other), np.array(self.clone), np.array(self.gap)
        hidden = (clone > 0.0) & (self.n > 1)  # alone, everything is seen
        seen = np.maximum(weight[:, ~hidden], 0.0).sum(axis=1)
        event = ((weight[:, ~hidden] > 0.0) * other[~hidden]).sum(axis=1)
        result = np.stack([seen, event, event])
        live = _live(weight[:, hidden], gap[hidden], self.n)
        if live.any() and (small := self._enumeration(-1.0)):
            value = small.value(weight[:, hidden]) * (1.0 - _ENUMERATION_ERROR)
            slope = small.event(weight[:, hidden], other[hidden])
            around = np.array([1.0 - _ENUMERATION_ERROR, 1.0 + _ENUMERATION_ERROR])
            result += live * np.stack([value, slope * around[0], slope * around[1]])
        elif live.any():
            weight = weight[live][:, hidden]
            lattice = _Lattice.of(weight, clone[hidden], self.n, resolution)
            result[:, live] += lattice.lower(weight, other[hidden])
        inward, outward = 1.0 - 1e-14, 1.0 + 1e-14
        # Beyond what exponentials reach, no lower bound is claimed.
        return np.asarray(result * np.array([[inward], [inward], [outward]]) * (epsilon <= 700.0))

    def _weights(self, epsilon: Floats, nudge: float) -> Floats:
        """own - alpha other per epsilon and type.

        Its rounding error is that of a change of a few units in epsilon: ``nudge`` steps outward."""
        capped = np.minimum(epsilon, 700.0)
        growth = (np.expm1(capped) * (1.0 + nudge * (1.0 + capped)))[:, None]
        return np.asarray(np.array(self.gap) - growth * np.array(self.other))


@dataclass(frozen=True)
class _Enumeration:
    """Every outcome of n users' types: ``share`` (outcomes, types) = count / (n clone), probability p."""

    share: Floats
    p: Floats

    def value(self, weight: Floats) -> Floats:
        """(1/n) E[(sum)_+] for rows of weights: a sum of positive terms."""
        with np.errstate(over="ignore"):  # what overflows is negative
            return np.asarray(np.maximum(weight @ self.share.T, 0.0) @ self.p)

    def event(self, weight: Floats, other: Floats) -> Floats:
        """Q(sum > 0) for rows of weights."""
        with np.errstate(over="ignore"):
            return np.asarray((weight @ self.share.T > 0.0) @ (self.p * (self.share @ other)))


def _chunks(epsilon: Floats) -> list[Floats]:
    return np.array_split(epsilon, 1 + max(epsilon.size - 1, 0) // _AT_ONCE)


def _live(weight: Floats, gap: Floats, n: int) -> npt.NDArray[np.bool_]:
    """Rows whose X has a positive part beyond rounding (none for a single user)."""
    return np.asarray((weight > 1e-9 * gap).any(axis=1, where=gap > 0.0) & (n > 1))


@dataclass(frozen=True)
class _Lattice:
    """Tilt and lattice for a batch of laws (rows) of X: values x, probabilities ``clone``.

    The value 0 with the remaining probability is the last column; x is in units of ``top``, its
    largest value. Lattice points are ``origin + h z``, z whole; the origin is the most probable.

    Rare extreme values would force a coarse lattice on all others. From above, X <= min(X, c) +
    (X - c)_+, and the mean of the latter is added (``beyond``); values that are too low are raised.
    Where a single report may decide and no tilt suits the law, its jumps are told apart (see jumps).
    From below x is only a score, and any will do."""

    n: int
    top: Floats
    beyond: Floats
    x: Floats
    w: Floats
    theta: Floats
    origin: Floats
    h: Floats

    @classmethod
    def of(cls, weight: Floats, clone: Floats, n: int, resolution: float) -> _Lattice | _Apart:
        x, w = _complete(weight / clone, clone)
        if clone.size <= _FEW_TYPES:
            return cls.cut_at(x, w, n, resolution, x.max(axis=1), np.full(len(x), -np.inf))
        # Any cut is valid: this one is meant to loosen delta by a share of the resolution.
        split = Split.best(x, w, n)
        budget = 0.1 * resolution * np.minimum(split.total, 1.0)
        found = cls.cut_within(x, w, n, resolution, budget)
        heavy = split.heavy & (n > _FEW_USERS)
        heavy &= found.chernoff() > _CANCELLED * split.total
        if not heavy.any():
            return found
        # Without the jumps, where they decide: those are told apart.
        b = np.where(heavy, split.b, np.inf)[:, None]
        bulk = np.where(x > b, 0.0, w)
        bulk = bulk / bulk.sum(axis=1, keepdims=True)
        found = cls.cut_within(np.where(x > b, 0.0, x), bulk, n, resolution, budget)
        rows = zip(x[heavy], w[heavy], split.b[heavy], budget[heavy], strict=True)
        jumps = tuple(
            Jumps.of(u, v, float(b), n, resolution, float(share)) for u, v, b, share in rows
        )
        return _Apart(heavy, found, jumps, budget)

    @classmethod
    def cut_within(
        cls, x: Floats, w: Floats, n: int, resolution: float, budget: Floats
    ) -> _Lattice:
        """The lattice for values cut where that moves their mean by no more than ``budget``."""
        return cls.cut_at(x, w, n, resolution, cut(x, w, budget), -cut(-x, w, budget))

    @classmethod
    def cut_at(
        cls, x: Floats, w: Floats, n: int, resolution: float, top: Floats, bottom: Floats
    ) -> _Lattice:
        """The lattice for values cut to [bottom, top]."""
        beyond = (w * np.maximum(x - top[:, None], 0.0)).sum(axis=1) * (1.0 + 1e-12)
        x = np.minimum(x, top[:, None]) / top[:, None]
        # Values so low that one of them decides the sum may be raised as well.
        x = np.maximum(x, np.maximum(bottom / top, -_FAR)[:, None])
        theta = saddle(x, w, n)
        return cls(n, top, beyond, x, w, theta, *_spacing(x, w, theta, n, resolution))

    def rows(self, chosen: npt.NDArray[np.bool_]) -> _Lattice:
        parts = (getattr(self, part.name)[chosen] for part in fields(self)[1:])
        return _Lattice(self.n, *parts)

    def upper(self) -> Floats:
        """(1/n) E[(sum)_+] of the law spread onto the lattice."""
        cells = (self.x - self.origin[:, None]) / self.h[:, None]
        floor = np.floor(cells)
        right = cells - floor
        z = np.concatenate([floor, floor + 1.0], axis=1)
        w = np.concatenate([self.w * (1.0 - right), self.w * right], axis=1)
        scaled = positive_part(z, w, self.origin, self.h, self.theta * self.h, self.n)
        return np.asarray(self.top * scaled + self.beyond)

    def chernoff(self) -> Floats:
        """The same in one line, looser: s_+ <= e^{theta s - 1} / theta."""
        growth = self.w * np.expm1(self.theta[:, None] * self.x)
        log_phi = log_transform(self.x, self.w, self.theta)
        # The transform is off by units of its terms; where it is tiny, by more than it is.
        doubt = 64.0 * UNIT * (np.abs(growth).sum(axis=1) + 1.0) / np.exp(log_phi)
        exponent = self.n * (log_phi + doubt) - 1.0 + 1e-12
        scaled = np.exp(np.minimum(exponent, 600.0)) / (self.n * self.theta)
        return np.where(doubt < 0.1, self.top * scaled + self.beyond, np.inf)

    def lower(self, weight: Floats, other: Floats) -> Floats:
        """(value, Q(A) low, Q(A) high) of the test with rounded scores."""
        cells = (self.x - self.origin[:, None]) / self.h[:, None]
        z = np.rint(cells)
        # The rounding errors' mean under the tilt moves the best threshold: any is valid.
        tilted = self.w * np.exp(self.theta[:, None] * self.x)
        drift = (tilted * (cells - z)).sum(axis=1) / tilted.sum(axis=1)
        threshold = np.floor(-self.n * (drift + self.origin / self.h)) + 1.0
        types = weight.shape[1]
        own = Own(z[:, :types], np.stack([weight, np.broadcast_to(other, weight.shape)], axis=2))
        group = Group(z, self.w, np.full(len(z), self.n - 1.0))
        result = tail_sum([group], own, threshold, self.theta * self.h)
        scale = np.exp(result.log_scale)[:, None]
        low = scale * np.maximum(result.value - result.error, 0.0)
        high = scale * (result.value + result.error)
        return np.stack([low[:, 0], low[:, 1], high[:, 1]])


@dataclass(frozen=True)
class _Apart:
    """Laws of which some rows are ``heavy``: there ``bulk`` is the law without its ``jumps``."""

    heavy: npt.NDArray[np.bool_]
    bulk: _Lattice
    jumps: tuple[Jumps, ...]
    budget: Floats

    def chernoff(self) -> Floats:
        result = self.bulk.chernoff()
        result[self.heavy] += [law.crude() for law in self.jumps]
        return result

    def upper(self) -> Floats:
        """Where the bulk alone has next to nothing, Chernoff's bound of it will do."""
        result = self.bulk.chernoff()
        needed = ~self.heavy | (result > 2.0 * self.budget)
        if needed.any():
            result[needed] = self.bulk.rows(needed).upper()
        for row, law in zip(np.flatnonzero(self.heavy), self.jumps, strict=True):
            try:
                result[row] += law.upper()
            except NoCertificateError:
                result[row] += law.crude()
        return result

    def lower(self, weight: Floats, other: Floats) -> Floats:
        result = np.zeros((3, len(weight)))
        seen = np.broadcast_to(other, weight.shape).copy()
        mine, chance = weight.copy(), np.ones(len(weight))
        for row, law in zip(np.flatnonzero(self.heavy), self.jumps, strict=True):
            jump = law.jump[: weight.shape[1]]
            mine[row, jump] = seen[row, jump] = 0.0
            chance[row] = math.exp((law.n - 1.0) * math.log1p(-law.chance))
            with suppress(NoCertificateError):  # no line is as good as one that is zero
                result[:, row] = law.lower(weight[row], other)
        needed = ~self.heavy | (self.bulk.chernoff() > 2.0 * self.budget)
        if needed.any():
            found = self.bulk.rows(needed).lower(mine[needed], seen[needed]) * chance[needed]
            result[:, needed] += np.where(found[0] > 0.0, found, 0.0)
        return result


def cut(x: Floats, w: Floats, budget: Floats) -> Floats:
    """About the smallest c > 0 per row with sum w (x - c)_+ <= budget (the largest x if none)."""
    order = np.argsort(-x, axis=1)
    x, w = np.take_along_axis(x, order, axis=1), np.broadcast_to(w, x.shape)
    mass = np.cumsum(np.take_along_axis(w, order, axis=1), axis=1)
    excess = np.cumsum(mass[:, :-1] * -np.diff(x, axis=1), axis=1)
    excess = np.concatenate([np.zeros((len(x), 1)), excess], axis=1)
    usable = (excess <= budget[:, None]) & (x > 0.0)
    last = np.maximum(usable.sum(axis=1) - 1, 0)
    rows = np.arange(len(x))
    found = x[rows, last] - (budget - excess[rows, last]) / mass[rows, last]
    following = x[rows, np.minimum(last + 1, x.shape[1] - 1)]
    found = np.maximum(found, np.maximum(following, 0.5 * x[rows, last]))
    return np.where(usable[:, 0], np.minimum(found, x[:, 0]), x[:, 0])


def _complete(x: Floats, clone: Floats) -> tuple[Floats, Floats]:
    """Rows of values with the value 0, which has the remaining probability, and their weights."""
    rest = max(0.0, 1.0 - math.fsum(clone))
    if rest <= 16.0 * UNIT * clone.size:  # complete: what rounding leaves is no atom
        return x, np.broadcast_to(clone, x.shape)
    x = np.concatenate([x, np.zeros((len(x), 1))], axis=1)
    return x, np.broadcast_to(np.append(clone, rest), x.shape)


def _log_estimate(weight: Floats, clone: Floats, n: int) -> Floats:
    """log (1/n) E[(sum)_+] for rows of weights, to a few percent (more where jumps decide)."""
    x, w = _complete(weight / clone, clone)
    if clone.size > _FEW_TYPES:
        return np.log(np.maximum(Split.best(x, w, n).total, 1e-300))
    top = x.max(axis=1)
    with np.errstate(over="ignore"):  # values that are too low are raised
        scaled = np.maximum(x / top[:, None], -_FAR)
    return np.asarray(np.log(top / n) + log_saddle(scaled, w, n))


def log_saddle(x: Floats, w: Floats, n: int) -> Floats:
    """log E[(sum)_+] for rows of values and weights, by the saddle point."""
    x = np.maximum(x, -_FAR)
    theta = saddle(x, w, n)
    phi, tilted = _tilted_values(x, w, theta)
    tilted = tilted / phi[:, None]
    first = tilted.sum(axis=1)
    spread = np.maximum((tilted * x).sum(axis=1) - first**2, 0.0)
    curvature = n * spread * theta**2 + 2.0
    return np.asarray(n * np.log(phi) - np.log(theta) - 0.5 * np.log(2.0 * np.pi * curvature))


def positive_part(
    z: Floats,
    w: Floats,
    origin: Floats,
    h: Floats,
    theta: Floats,
    n: int,
    units: float = ERROR_UNITS,
) -> Floats:
    """Upper bounds of (1/n) E[(X_1 + ... + X_n)_+], X = origin + h z with weights w (rows)."""
    group = Group(z, w, np.full(len(z), n - 1.0))
    own = Own(z, (w * (origin[:, None] + z * h[:, None]))[:, :, None])
    threshold = np.floor(-n * origin / h) + 1.0
    result = tail_sum([group], own, threshold, theta, units=units)
    # The threshold may be one off by rounding: then the sum there is within units of n origin.
    slip = 32.0 * UNIT * np.abs(origin) * np.exp(log_transform(z, w, theta) + theta)
    high = result.value[:, 0] + result.error[:, 0] + slip
    return np.asarray(np.exp(result.log_scale) * np.maximum(high, 0.0))


def _tilted_values(x: Floats, w: Floats, theta: Floats) -> tuple[Floats, Floats]:
    """(E[e^{theta X}], w x e^{theta x}) per row, the former accurate near one and near zero."""
    growth = w * np.expm1(theta[:, None] * x)
    change = growth.sum(axis=1)
    grown = w * np.exp(theta[:, None] * x)
    phi = np.where(change > -0.5, 1.0 + change, grown.sum(axis=1))
    return np.maximum(phi, 1e-300), np.asarray(grown * x)


def saddle(x: Floats, w: Floats, n: int) -> Floats:
    """theta > 0 near the minimum of n log E[e^{theta X}] - 2 log theta. Any value is valid."""
    mean, square = (w * x).sum(axis=1), (w * x * x).sum(axis=1)
    theta = (-n * mean + np.sqrt((n * mean) ** 2 + 8.0 * n * square)) / (2.0 * n * square)
    steepest = 600.0 / x.max(axis=1)
    theta = np.minimum(theta, steepest)
    low, high = 1e-3 * theta, steepest
    for _ in range(40):
        phi, tilted = _tilted_values(x, w, theta)
        first = tilted.sum(axis=1) / phi
        second = np.einsum("ij,ij->i", tilted, x) / phi - first * first
        slope = n * first - 2.0 / theta
        # The function is convex: its slope says on which side of theta the minimum is.
        low, high = np.where(slope < 0.0, theta, low), np.where(slope > 0.0, theta, high)
        step = -slope / (n * np.maximum(second, 0.0) + 2.0 / theta**2)
        moved = np.clip(theta + step, theta / 4.0, np.minimum(theta * 4.0, steepest))
        inside = (moved > low) & (moved < high)
        moved = np.where(inside, moved, np.sqrt(low * high))
        done = np.abs(moved - theta) <= 1e-2 * theta
        theta = moved
        if done.all():
            break
    return np.asarray(theta)


def _spacing(
    x: Floats, w: Floats, theta: Floats, n: int, resolution: float
) -> tuple[Floats, Floats]:
    """(origin, h): the coarsest lattice whose spread adds at most ``resolution`` of variance.

    Where positive values are rare, what is spread must also be rare against them. The candidates put
    the largest value, or the second most probable one, on the lattice."""
    tilted = w * np.exp(theta[:, None] * x)
    tilted = tilted / tilted.sum(axis=1, keepdims=True)
    mean = (tilted * x).sum(axis=1)
    variance = (tilted * (x - mean[:, None]) ** 2).sum(axis=1)
    rows = np.arange(len(x))
    order = np.argsort(tilted, axis=1)
    origin = x[rows, order[:, -1]]
    second = x[rows, order[:, max(-2, -x.shape[1])]] - origin
    top = x.max(axis=1) - origin
    top = np.where(top > 0.0, top, x.max(axis=1) - x.min(axis=1))
    # Values that differ by rounding alone are one value.
    second = np.where(np.abs(second) > 1e-9 * np.abs(top), np.abs(second), top)
    h = np.concatenate([top[:, None] / _LATTICES, second[:, None] / _HALVES], axis=1)
    h = np.maximum(h, top[:, None] * 1e-6)
    cells = (x - origin[:, None])[:, :, None] / h[:, None, :]
    fraction = cells - np.floor(cells)
    added = np.einsum("ij,ijk->ik", tilted, fraction * (1.0 - fraction)) * h * h
    good = added <= resolution * variance[:, None]
    rare = n * (w * (x > 0.0)).sum(axis=1) < 1.0
    if rare.any():
        moved = np.einsum("ij,ijk->ik", w, fraction * (1.0 - fraction)) * h
        gain = (w * np.maximum(x, 0.0)).sum(axis=1)
        good &= ~rare[:, None] | (moved <= resolution * gain[:, None])
    finest = top / _LATTICES[-1]
    choice = np.where(good, h, 0.0).max(axis=1)
    return origin, np.where(choice > 0.0, choice, finest)
