"""One shuffled round as the law of one random variable X: the privacy blanket (T1, docs/proofs/blanket.md).

The differing user sends a report of type t with probability ``own[t]`` (input x) or ``other[t]``
(input x'); each of the n - 1 others sends, independently, a report that hides type t with
probability ``clone[t]`` (their sum may be below one: the rest hides nothing). Then

    H_alpha = (1/n) E[(X_1 + ... + X_n)_+],   X = (own[t] - alpha other[t]) / clone[t] w.p. clone[t],

and X = 0 with the remaining probability.
Types with clone[t] = 0 are seen by everybody and add (own - alpha other)_+ each.

How the expectation is evaluated: ``lattice_law``, or all outcomes one by one where they are few.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np
import numpy.typing as npt

from shuffledp._certified.multinomial import enumerate_multinomial, enumeration_units, outcomes
from shuffledp._certified.rounding import CALL, LARGEST_EXPONENT, Floats, capped, down, gamma, up
from shuffledp.accounting._curves.lattice_law import Apart, SpreadLaw, complete, unhidden, with_rest
from shuffledp.accounting._curves.profile import Bools, PrivacyProfile, SupportingLines
from shuffledp.accounting._hints.lattices import LatticeHints
from shuffledp.accounting._hints.starts import LawHints
from shuffledp.errors import NoCertificateError

Places = npt.NDArray[np.intp]

_ROWS_AT_ONCE = 64  # speed
NUDGE = gamma(64)  # soundness: units of 1 + epsilon that alpha - 1 is moved by

_MOST_ENUMERATED_USERS = 400
_FEW_USERS, _ROUGH = 100, 0.01  # speed: of more, and at such a resolution, a lattice is quicker
_MOST_OUTCOMES = 60_000
_FEW_TYPES = 6  # speed: laws of more have rows that are refused, or told apart
_TYPICAL = 0.5  # speed: a share of the variance
_FEW_ODD = 20.0  # speed: of others who report something uncommon; of more, what is left is next to nothing
_MOST_UNITS = 2.0**40  # tightness: of a lower bound, which is nothing then


@dataclass(frozen=True)
class AmplificationProfile(PrivacyProfile):
    """The pair of one law, in the direction (x, x'). Fields are tuples over types (see module).

    ``gap`` is own - other, given apart so that it is accurate when the two are close."""

    n: int
    own: tuple[float, ...]
    other: tuple[float, ...]
    gap: tuple[float, ...]
    clone: tuple[float, ...]
    least: float = field(default=0.0, kw_only=True)
    """Of a curve below that, crude bounds will do."""

    @cached_property
    def epsilon_max(self) -> float:
        ratios = [
            math.inf if v == 0.0 else math.log1p(g / v)
            for g, v in zip(self.gap, self.other, strict=True)
            if g > 0.0
        ]
        return up(max(ratios, default=0.0), operations=2 * CALL, tiny=0.0)

    @cached_property
    def infinite_loss(self) -> float:
        """What x sends and x' never sends is seen at every epsilon: always if nobody hides it, else if nobody
        among the others sends anything that x' may send."""
        rows, units = list(zip(self.own, self.other, self.clone, strict=True)), len(self.own)
        seen = sum(own for own, other, clone in rows if other == clone == 0.0)
        hidden = sum(own for own, other, clone in rows if other == 0.0 < clone)
        sent = up(sum(clone for _, other, clone in rows if other > 0.0), operations=units)
        if hidden == 0.0 or sent >= 1.0:
            return down(seen, operations=units)
        power = (self.n - 1.0) * math.log1p(-sent)
        silent = math.exp(power) if power > -LARGEST_EXPONENT else 0.0
        return down(seen + hidden * silent, operations=units + 2 * CALL + (CALL + 4) * (1.0 - power))

    @property
    def scale(self) -> float:
        """About the deviation of the loss: a guess."""
        chi = sum(g * g / c for g, c in zip(self.gap, self.clone, strict=True) if c > 0.0)
        return math.sqrt(chi / self.n)

    @cached_property
    def hints(self) -> LawHints:
        types = sum(c > 0.0 for c in self.clone)
        return LawHints(self.scale, n=self.n, types=types, reach=self.epsilon_max, law=self._law)

    @cached_property
    def tailed(self) -> bool:
        """Whether most of the variance of X is of values that hardly anybody among n has."""
        if len(self.clone) <= _FEW_TYPES or min(self.clone) == 0.0:
            return False
        x, w = complete(np.array([self.gap]), np.array(self.clone))
        return bool(self.hints.lattice.typical_share(x, w, self.n) < _TYPICAL)

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
        """A cohort (T5', docs/proofs/cohorts.md): the differing user takes part with probability
        ``fraction``, else one more of the others; what hides nothing is one more type."""
        whole = self._with_rest()

        def mix(own: tuple[float, ...]) -> tuple[float, ...]:
            return tuple(fraction * u + (1.0 - fraction) * c for u, c in zip(own, whole.clone, strict=True))

        gap = tuple(fraction * g for g in whole.gap)
        return AmplificationProfile(self.n, mix(whole.own), mix(whole.other), gap, whole.clone)

    def polled(self, rate: float) -> AmplificationProfile:
        """Everybody's own coin says, with probability ``rate``, that they report; how many did is seen."""

        def among(masses: tuple[float, ...], silent: float) -> tuple[float, ...]:
            return (*(rate * mass for mass in masses), silent)

        own, other, clone = (among(part, 1.0 - rate) for part in (self.own, self.other, self.clone))
        return AmplificationProfile(self.n, own, other, among(self.gap, 0.0), clone)

    def _with_rest(self) -> AmplificationProfile:
        """The same law with the reports that hide nothing as a type of their own."""
        rest = unhidden(self.clone)
        if rest == 0.0:
            return self
        own, other, gap = ((*part, 0.0) for part in (self.own, self.other, self.gap))
        return AmplificationProfile(self.n, own, other, gap, (*self.clone, rest))

    @cached_property
    def symmetric(self) -> bool:
        """Whether x and x' can be exchanged without changing the law of X."""
        forward = sorted(zip(self.own, self.other, self.clone, strict=True))
        return forward == sorted(zip(self.other, self.own, self.clone, strict=True))

    @property
    def directions(self) -> tuple[AmplificationProfile, ...]:
        """The pair as it is and reversed, or once if that is the same."""
        return (self,) if self.symmetric else (self, self.reversed())

    def down_to(self, least: float) -> AmplificationProfile:
        other = copy(self)  # with its hints
        vars(other)["least"] = least
        return other

    def reversed(self) -> AmplificationProfile:
        """The same pair in the direction (x', x)."""
        gap = tuple(-g for g in self.gap)
        return AmplificationProfile(self.n, self.other, self.own, gap, self.clone)

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        return self.upper_or_crude(epsilon, resolution)[0]

    def upper_or_crude(self, epsilon: Floats, resolution: float) -> tuple[Floats, Bools]:
        parts = [self._upper(part, resolution) for part in _chunks(epsilon)]
        crude = [np.full(bound.size, refused) for bound, refused in parts]
        return np.concatenate([bound for bound, _ in parts]), np.concatenate(crude)

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        parts = [self._support(part, resolution) for part in _chunks(epsilon)]
        return SupportingLines.join(epsilon, parts)

    def both_or_crude(self, epsilon: Floats, resolution: float) -> tuple[Floats, Bools, SupportingLines]:
        """Together where both are sums on one lattice."""
        parts = [self._both(part, resolution) for part in _chunks(epsilon)]
        upper, crude, lines = (np.concatenate(side, axis=-1) for side in zip(*parts, strict=True))
        return upper, crude, SupportingLines(epsilon, *lines)

    def _both(self, epsilon: Floats, resolution: float) -> tuple[Floats, Bools, Floats]:
        weight, lower = self._weights(epsilon, -NUDGE), self._weights(epsilon, NUDGE)
        other, clone, gap = np.array(self.other), np.array(self.clone), np.array(self.gap)
        live = _live(lower, gap, self.n)
        if live.any() and not live.all() and len(clone) > _FEW_TYPES:
            parts = [np.flatnonzero(live), np.flatnonzero(~live)]
            return self._both_apart(epsilon, resolution, parts)
        if self.n > 1 and (clone > 0.0).all() and live.all():
            lattice = self._lattice(weight, clone, 0.5 * resolution)  # spread scores lose as much again
            known = lattice.chernoff() if self.least > 0.0 else None
            if known is not None and (known <= self.least).any():
                return self._both_above(epsilon, resolution, weight, known)
            if isinstance(lattice, Apart):
                heavy, plain = np.flatnonzero(lattice.heavy), np.flatnonzero(~lattice.heavy)
                sides = self._both_apart(epsilon, resolution, [plain])
                jumps = self._both_of_jumps(
                    epsilon[heavy], lattice.of_jumps, weight[heavy], lower[heavy], resolution
                )
                for side, part in zip(sides, jumps, strict=True):
                    side[..., heavy] = part
                return sides
            if isinstance(lattice, SpreadLaw) and not self._enumeration(1.0):
                with suppress(NoCertificateError):
                    found, lines = lattice.both(lower, other)
                    upper = np.minimum(np.maximum(weight, 0.0).sum(axis=1), found)
                    upper = up(np.minimum(upper, lattice.chernoff()), operations=len(clone) + 8 * CALL)
                    return upper, np.zeros(epsilon.size, bool), _rounded(epsilon, lines, len(clone))
                if epsilon.size > 1 and len(clone) > _FEW_TYPES:  # one of them is refused
                    halves = np.array_split(np.arange(epsilon.size), 2)
                    return self._both_apart(epsilon, resolution, halves)
        upper, refused = self._upper(epsilon, resolution)
        return upper, np.full(epsilon.size, refused), self._support(epsilon, resolution)

    def _both_of_jumps(
        self, epsilon: Floats, lattice: Apart, weight: Floats, lower: Floats, resolution: float
    ) -> tuple[Floats, Bools, Floats]:
        """``_both`` of rows with jumps, each on one lattice: below, its values are but scores."""
        other, clone = np.array(self.other), np.array(self.clone)
        crude, lines = np.zeros(epsilon.size, bool), np.zeros((3, epsilon.size))
        try:
            upper = np.minimum(
                np.minimum(np.maximum(weight, 0.0).sum(axis=1), lattice.chernoff()), lattice.upper()
            )
            upper = up(upper, operations=len(clone) + 8 * CALL)
            found = lattice.lower(lower, other)
            if (plain := _all_alike(lower, other, clone, self.n)) is not None:
                found = np.where(plain[0] > found[0], plain, found)
            return upper, crude, _rounded(epsilon, found, len(clone))
        except NoCertificateError:  # of one of them
            upper = np.ones(epsilon.size)
            for row in range(epsilon.size):
                upper[row : row + 1], crude[row] = self._upper(epsilon[row : row + 1], resolution)
                with suppress(NoCertificateError):  # no line is as good as one that is zero
                    lines[:, row : row + 1] = self._support(epsilon[row : row + 1], resolution)
            return upper, crude, lines

    def _both_apart(
        self, epsilon: Floats, resolution: float, parts: Sequence[Places]
    ) -> tuple[Floats, Bools, Floats]:
        """``_both``, of some rows after the others."""
        upper, crude, lines = (
            np.zeros(epsilon.size),
            np.zeros(epsilon.size, bool),
            np.zeros((3, epsilon.size)),
        )
        for rows in parts:
            if rows.size:
                upper[rows], crude[rows], lines[:, rows] = self._both(epsilon[rows], resolution)
        return upper, crude, lines

    def _both_above(
        self, epsilon: Floats, resolution: float, weight: Floats, known: Floats
    ) -> tuple[Floats, Bools, Floats]:
        """``_both``, of rows that are not known to be below ``least``; of those, no line."""
        upper = up(
            np.minimum(np.maximum(weight, 0.0).sum(axis=1), known), operations=len(self.clone) + 8 * CALL
        )
        crude, lines = np.zeros(epsilon.size, bool), np.zeros((3, epsilon.size))
        if (rows := np.flatnonzero(known > self.least)).size:
            upper[rows], crude[rows], lines[:, rows] = self._both(epsilon[rows], resolution)
        return upper, crude, lines

    def _enumeration(self, outward: float) -> _Enumeration | None:
        """All outcomes, where they are few: then the curve is a finite sum."""
        hidden = np.array(self.clone) > 0.0
        clone = np.array(self.clone)[hidden]
        kinds = clone.size + 1
        if self.n > _MOST_ENUMERATED_USERS or outcomes(self.n, kinds) > _MOST_OUTCOMES:
            return None
        # What hides nothing has an absolute error; all terms are positive, so it moves one way.
        doubt = outward * gamma(4 * kinds)
        rest = max(0.0, 1.0 - math.fsum(clone) + doubt)
        counts, p = enumerate_multinomial(self.n, np.append(clone, rest))
        # A share and its products cost a few more, the sum over all outcomes one each.
        units = enumeration_units(self.n, kinds) + p.size + kinds + 8
        return _Enumeration(counts[:, :-1] / clone / self.n, p, units)

    def _upper(self, epsilon: Floats, resolution: float) -> tuple[Floats, bool]:
        refused = False
        weight = self._weights(epsilon, -NUDGE)
        clone, gap = np.array(self.clone), np.array(self.gap)
        hidden = clone > 0.0
        # E[X_+] is always an upper bound: the only one where X has hardly a positive part.
        result = np.maximum(weight, 0.0).sum(axis=1)
        live = _live(weight[:, hidden], gap[hidden], self.n)
        closely = self.n <= _FEW_USERS or resolution < _ROUGH
        if closely and live.any() and (small := self._enumeration(1.0)):
            seen = np.maximum(weight[:, ~hidden], 0.0).sum(axis=1)
            value = seen + up(small.value(weight[:, hidden], 1.0), small.units)
            result = np.where(live, np.minimum(result, value), result)
        elif live.any():
            seen = np.maximum(weight[live][:, ~hidden], 0.0).sum(axis=1)
            lattice = self._lattice(weight[live][:, hidden], clone[hidden], resolution)
            result[live] = np.minimum(result[live], seen + lattice.chernoff())
            try:
                result[live] = np.minimum(result[live], seen + lattice.upper())
            except NoCertificateError:
                if epsilon.size > 1 and len(self.clone) > _FEW_TYPES:  # one of them is refused
                    halves = [self._upper(part, resolution) for part in np.array_split(epsilon, 2)]
                    return np.concatenate([bound for bound, _ in halves]), any(no for _, no in halves)
                refused = True
        # Sums of up to so many types, and an exponential, a quotient and a few products and sums.
        return up(result, operations=len(self.clone) + 8 * CALL), refused

    def _support(self, epsilon: Floats, resolution: float) -> Floats:
        weight = self._weights(epsilon, NUDGE)
        other, clone, gap = np.array(self.other), np.array(self.clone), np.array(self.gap)
        hidden = (clone > 0.0) & (self.n > 1)  # alone, everything is seen
        seen = np.maximum(weight[:, ~hidden], 0.0).sum(axis=1)
        event = ((weight[:, ~hidden] > 0.0) * other[~hidden]).sum(axis=1)
        result = np.stack([seen, event, event])
        live = _live(weight[:, hidden], gap[hidden], self.n)
        if live.any() and (small := self._enumeration(-1.0)):
            value = down(small.value(weight[:, hidden], -1.0), small.units)
            slope = small.event(weight[:, hidden], other[hidden])
            ends = down(slope, small.units), up(slope, small.units)
            result += live * np.stack([value, *ends])
        elif live.any():
            weight = weight[live][:, hidden]
            lattice = self._lattice(weight, clone[hidden], resolution, scores=True)
            if self.least > 0.0 and not (told := lattice.chernoff() > self.least).all():
                live[live], weight = told, weight[told]
                if not told.any():
                    return _rounded(epsilon, result, len(clone))
                lattice = self._lattice(weight, clone[hidden], resolution, scores=True)
            try:
                found = lattice.lower(weight, other[hidden])
            except NoCertificateError:
                if epsilon.size == 1 or len(clone) <= _FEW_TYPES:
                    raise
                return self._support_apart(epsilon, resolution)  # one of them is refused
            if (plain := _all_alike(weight, other[hidden], clone[hidden], self.n)) is not None:
                found = np.where(plain[0] > found[0], plain, found)
            result[:, live] += found
        return _rounded(epsilon, result, len(clone))

    def _support_apart(self, epsilon: Floats, resolution: float) -> Floats:
        """``_support``, of one half after the other; lines of zero where all are refused, but not of both."""
        refused, parts = 0, []
        for half in np.array_split(epsilon, 2):
            try:
                parts.append(self._support(half, resolution))
            except NoCertificateError:
                refused += 1
                if refused == 2:
                    raise
                parts.append(np.zeros((3, half.size)))
        return np.concatenate(parts, axis=1)

    def _lattice(
        self, weight: Floats, clone: Floats, resolution: float, scores: bool = False
    ) -> SpreadLaw | Apart:
        return SpreadLaw.of(weight, clone, self.n, resolution, self.hints.lattice, scores)

    def _law(self, epsilon: Floats) -> tuple[Bools, Floats, Floats]:
        """Which rows have a positive part; the values and weights of X in those."""
        clone = np.array(self.clone)
        hidden = clone > 0.0
        weight = self._weights(epsilon, 0.0)[:, hidden]
        live = _live(weight, np.array(self.gap)[hidden], self.n)
        return live, *complete(weight[live], clone[hidden])

    def _weights(self, epsilon: Floats, nudge: float) -> Floats:
        return _weights(np.array(self.gap), np.array(self.other), epsilon, nudge)


@dataclass(frozen=True)
class LawRows:
    """Sums of few types, none of which is seen at once, an epsilon and perhaps a law and a crowd a row."""

    epsilon: Floats
    n: Floats
    gap: Floats
    other: Floats
    clone: Floats
    rest: Floats

    @classmethod
    def of(cls, curve: PrivacyProfile, epsilon: Floats, both: bool) -> LawRows | None:
        """Of one law, where neither enumeration nor the plainest of outcomes would be as good."""
        if not isinstance(curve, AmplificationProfile) or curve.n <= _MOST_ENUMERATED_USERS:
            return None
        if type(curve.hints) is not LawHints or not curve.hints.close or min(curve.clone) == 0.0:
            return None
        rest = unhidden(curve.clone)
        if (curve.n - 1.0) * (1.0 - max(rest, *curve.clone)) <= _FEW_ODD:
            return None
        parts = (np.full((epsilon.size, 1), part) for part in (float(curve.n), rest))
        laws = (np.tile(part, (epsilon.size, 1)) for part in (curve.gap, curve.other, curve.clone))
        (n, rest_of), (gap, other, clone) = parts, laws
        return cls(epsilon, n[:, 0], gap, other, clone, rest_of)

    @classmethod
    def join(cls, parts: Sequence[LawRows]) -> LawRows:
        return cls(*(np.concatenate([getattr(part, name.name) for part in parts]) for name in fields(cls)))

    @property
    def kind(self) -> tuple[int, bool]:
        """What rows of one table have in common."""
        return self.gap.shape[1], bool(self.rest.any())

    def both(self, resolution: float) -> tuple[Floats, Floats]:
        """As that of a law."""
        weight = _weights(self.gap, self.other, self.epsilon, -NUDGE)
        lattice, lower = self._lattice(weight, 0.5 * resolution), self._below()
        found, lines = lattice.both(lower, self.other)
        upper = np.minimum(np.minimum(np.maximum(weight, 0.0).sum(axis=1), found), lattice.chernoff())
        types = self.gap.shape[1]
        return up(upper, operations=types + 8 * CALL), _rounded(self.epsilon, lines, types)

    def lines(self, resolution: float) -> Floats:
        """(value, Q(A) low, Q(A) high) of tests."""
        lower = self._below()
        found = self._lattice(lower, resolution).lower(lower, self.other)
        return _rounded(self.epsilon, found, self.gap.shape[1])

    def _below(self) -> Floats:
        lower = _weights(self.gap, self.other, self.epsilon, NUDGE)
        if not _live(lower, self.gap, self.n).all():
            raise NoCertificateError("a law has hardly a positive part")
        return lower

    def _lattice(self, weight: Floats, resolution: float) -> SpreadLaw:
        return SpreadLaw.whole(*with_rest(weight, self.clone, self.rest), self.n, resolution, LatticeHints())


@dataclass(frozen=True)
class _Enumeration:
    """Every outcome of n users' types: ``share`` (outcomes, types) = count / (n clone), probability p.

    ``units``: of a sum over all of them."""

    share: Floats
    p: Floats
    units: float

    def value(self, weight: Floats, outward: float) -> Floats:
        """(1/n) E[(sum)_+] for rows of weights: a sum of positive terms, each rounded outward."""
        return np.asarray(np.maximum(self._sums(weight, outward), 0.0) @ self.p)

    def event(self, weight: Floats, other: Floats) -> Floats:
        """Q(sum > 0 for certain) for rows of weights."""
        return np.asarray((self._sums(weight, -1.0) > 0.0) @ (self.p * (self.share @ other)))

    def _sums(self, weight: Floats, outward: float) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is negative
            doubt = gamma(weight.shape[1] + 4) * (np.abs(weight) @ self.share.T)
            sums = weight @ self.share.T + outward * doubt
        return np.asarray(np.where(np.isnan(sums), -np.inf, sums))


def _all_alike(weight: Floats, other: Floats, clone: Floats, n: int) -> Floats | None:
    """(value, Q(A) low, Q(A) high) of the outcomes in which one of the n reports is of any type t and all
    others are of the most common one, m: p (w_t + (n - 1) w_m clone_t / clone_m) where that is positive,
    p = clone_m^(n - 1), for every t. None where others differ."""
    rest = unhidden(clone.tolist())
    if rest > clone.max():
        common, chance, drag, seen = -1, rest, 0.0 * weight, 0.0 * other
    else:
        common = int(clone.argmax())
        chance = float(clone[common])
        share = (n - 1.0) * clone / chance
        drag, seen = share * weight[:, common, None], share * other[common]
    if (n - 1.0) * (1.0 - chance) > _FEW_ODD:
        return None
    told = weight + drag - gamma(16) * (np.abs(weight) + np.abs(drag))
    told[:, common] = 0.0 if common >= 0 else told[:, common]
    # The chance is off by some units of itself, or of one, in each of n factors.
    power = (n - 1.0) * math.log(chance)
    units = 64.0 * len(clone) * n + CALL * (2.0 - power)
    if units > _MOST_UNITS:
        return None
    p, positive = math.exp(power), told > 0.0
    event = p * (positive * (other + seen)).sum(axis=1)
    value = p * np.maximum(told, 0.0).sum(axis=1)
    return np.stack([down(value, units), down(event, units), up(event, units)])


def _chunks(epsilon: Floats) -> list[Floats]:
    return np.array_split(epsilon, 1 + max(epsilon.size - 1, 0) // _ROWS_AT_ONCE)


def _weights(gap: Floats, other: Floats, epsilon: Floats, nudge: float) -> Floats:
    """own - alpha other per epsilon and type.

    Its rounding error is that of a change of a few units in epsilon: ``nudge`` steps outward."""
    at = capped(epsilon)
    growth = (np.expm1(at) * (1.0 + nudge * (1.0 + at)))[:, None]
    return np.asarray(gap - growth * other)


def _rounded(epsilon: Floats, result: Floats, types: int) -> Floats:
    """(value, Q(A) low, Q(A) high), outward."""
    value, low = down(result[:2], operations=types + 8 * CALL, tiny=0.0)
    found = np.stack([value, low, up(result[2], operations=types + 8 * CALL, tiny=0.0)])
    # Beyond what exponentials reach, no lower bound is claimed.
    return np.asarray(found * (epsilon <= LARGEST_EXPONENT))


def _live(weight: Floats, gap: Floats, n: int | Floats) -> Bools:
    """Rows whose X has a positive part beyond rounding (none for a single user)."""
    return np.asarray((weight > 1e-9 * gap).any(axis=1, where=gap > 0.0) & (n > 1))
