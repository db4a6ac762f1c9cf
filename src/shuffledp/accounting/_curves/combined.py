"""Curves made of several: the largest of them (pairs, directions), or the best (analyses of one round)."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from shuffledp._certified.rounding import TINY, Floats
from shuffledp.accounting._curves.profile import Bools, PrivacyProfile, SupportingLines
from shuffledp.accounting._hints.starts import Hints, LargestHints
from shuffledp.errors import NoCertificateError

_PROBED = 4  # speed: one of so many points shows which analyses are asked at all of them
_APART = 3  # speed: of so many points one shows whether a promise is kept
_KEPT = 0.97  # tightness: of the lowest; what is promised is some percent less than what is kept
_ABOUT = 1.1  # tightness: of the lowest; another may still be the lowest nearby


@dataclass(frozen=True)
class LargestProfile(PrivacyProfile):
    """The pointwise maximum of ``profiles`` (zero if there are none)."""

    profiles: tuple[PrivacyProfile, ...]

    @property
    def epsilon_max(self) -> float:
        return max((profile.epsilon_max for profile in self.profiles), default=0.0)

    @property
    def infinite_loss(self) -> float:
        return max((profile.infinite_loss for profile in self.profiles), default=0.0)

    @property
    def tailed(self) -> bool:
        return any(profile.tailed for profile in self.profiles)

    @cached_property
    def hints(self) -> Hints:
        parts = tuple(profile.hints for profile in self.profiles)
        return LargestHints(max((part.scale for part in parts), default=0.0), parts=parts)

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        return self.upper_or_crude(epsilon, resolution)[0]

    def upper_or_crude(self, epsilon: Floats, resolution: float) -> tuple[Floats, Bools]:
        found = [profile.upper_or_crude(epsilon, resolution) for profile in self.profiles]
        bounds = [bound for bound, _ in found] or [0.0 * epsilon]
        crude = [crude for _, crude in found] or [np.zeros(epsilon.size, bool)]
        return np.asarray(np.max(bounds, axis=0)), np.asarray(np.any(crude, axis=0))

    def both_or_crude(self, epsilon: Floats, resolution: float) -> tuple[Floats, Bools, SupportingLines]:
        """Of each; where lines of one are refused, the sides apart."""
        with suppress(NoCertificateError):
            found = [profile.both_or_crude(epsilon, resolution) for profile in self.profiles]
            if found:
                best = found[0][2]
                for _, _, lines in found[1:]:
                    best = best.chosen(lines, lines.value > best.value)
                upper = np.max([upper for upper, _, _ in found], axis=0)
                return upper, np.any([crude for _, crude, _ in found], axis=0), best
        return super().both_or_crude(epsilon, resolution)

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        best = np.zeros((3, epsilon.size))
        failure = None
        for place, profile in enumerate(self.profiles):
            # A line below any of them will do; without the first one it would be a poor one.
            try:
                lines = profile.support(epsilon, resolution)
            except NoCertificateError as error:
                failure = error
                if place == 0:
                    break
                continue
            rows = np.stack([lines.value, lines.slope_low, lines.slope_high])
            best = np.where(rows[0] > best[0], rows, best)
        if failure is not None and not best[0].any():
            raise failure
        return SupportingLines(epsilon, best[0], best[1], best[2])


@dataclass(frozen=True)
class BestProfile(PrivacyProfile):
    """The tightest of several analyses of one round, which stand in a proved order.

    The first is below all others, so that they are not evaluated: they only stand in where it has no
    certificate, or none but a crude one. Of the first ``rivals`` it is not known which is tighter (or they
    are equal, and one number is closer): they are evaluated together."""

    names: tuple[str, ...]
    profiles: tuple[PrivacyProfile, ...]
    rivals: int = 1

    @cached_property
    def epsilon_max(self) -> float:
        return min(profile.epsilon_max for profile in self.profiles)

    @property
    def infinite_loss(self) -> float:
        return min(profile.infinite_loss for profile in self.profiles[: self.rivals])

    @property
    def tailed(self) -> bool:
        return any(profile.tailed for profile in self.profiles[: self.rivals])

    @cached_property
    def hints(self) -> Hints:
        return min((profile.hints for profile in self.profiles[: self.rivals]), key=lambda hints: hints.scale)

    @cached_property
    def quick(self) -> PrivacyProfile:
        kept = [place for place in range(self.rivals) if not self.profiles[place].hints.apart]
        if not 0 < len(kept) < self.rivals:
            return self
        places = [*kept, *range(self.rivals, len(self.profiles))]
        names = tuple(self.names[place] for place in places)
        profiles = tuple(self.profiles[place] for place in places)
        return BestProfile(names, profiles, len(kept))

    @property
    def slow(self) -> PrivacyProfile | None:
        slow = [rival for rival in self.profiles[: self.rivals] if rival.hints.apart]
        return slow[0] if len(slow) == 1 < self.rivals else None

    def down_to(self, least: float) -> BestProfile:
        return replace(self, profiles=tuple(profile.down_to(least) for profile in self.profiles))

    def worth_it(self, epsilon: Floats, upper: Floats) -> Bools:
        slow = [rival.hints for rival in self.profiles[: self.rivals] if rival.hints.apart]
        some = [hints for hints in slow if hints.may_promise(epsilon, _KEPT * upper)]
        found = [hints.promise(epsilon) <= _KEPT * upper for hints in some]
        return np.asarray(np.any(found, axis=0)) if found else np.zeros(epsilon.size, bool)

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        best, open_ = np.full(epsilon.size, np.inf), np.ones(epsilon.size, bool)
        failure = None
        for place, profile in enumerate(self.profiles):
            at = np.ones(epsilon.size, bool) if place < self.rivals else open_
            if not at.any():
                break
            try:
                found, crude = profile.upper_or_crude(epsilon[at], resolution)
            except NoCertificateError as error:
                failure = error
                continue
            best[at] = np.minimum(best[at], found)
            open_[at] &= crude | (found <= 2.0 * TINY)  # nothing but underflow: another may be less
        if failure is not None and np.isinf(best).any():
            raise failure
        return best

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        """Lines of the first; of rivals, at every epsilon those of the lowest there."""
        failure, lowest = None, None
        for place, profile in enumerate(self.profiles):
            if lowest is not None and place >= self.rivals:
                break
            try:
                found = profile.support(epsilon, resolution)
            except NoCertificateError as error:
                failure = error
                continue
            lowest = found if lowest is None else lowest.chosen(found, found.value < lowest.value)
        if lowest is None:
            assert failure is not None
            raise failure
        return lowest

    def both(self, epsilon: Floats, resolution: float) -> tuple[Floats, SupportingLines]:
        """Of the rivals; where one of them has no certificate, or a crude one, the sides apart."""
        if len(self.profiles) == 1:
            return self.profiles[0].both(epsilon, resolution)
        with suppress(NoCertificateError):
            found = self._of_rivals(epsilon, resolution)
            crude = ((found[:, 1] > 0.0) | (found[:, 0] <= 2.0 * TINY)).all(axis=0)
            lowest = found[found[:, 2].argmin(axis=0), :, np.arange(epsilon.size)].T
            upper = found[:, 0].min(axis=0)
            if crude.any() and not crude.all():
                upper[crude], lines = super().both(epsilon[crude], resolution)
                lowest[2:, crude] = lines.value, lines.slope_low, lines.slope_high
            if not crude.all():
                return upper, SupportingLines(epsilon, *lowest[2:])
        return super().both(epsilon, resolution)

    def _of_rivals(self, epsilon: Floats, resolution: float) -> Floats:
        """Of each (upper, crude, and the three of a line), in columns: all of them at some of the points;
        between these only such as are about the lowest at one next to it, the others infinite.

        Those that take long for each point come last, and only where they promise to be lower."""
        order = np.argsort(epsilon)
        rank = np.argsort(order)
        probe = (rank % _PROBED == 0) | (rank == epsilon.size - 1)
        probe |= self.rivals == 1 or epsilon.size <= 2 * _PROBED
        rivals, found = self.profiles[: self.rivals], np.full((self.rivals, 5, epsilon.size), np.inf)
        places = sorted(range(self.rivals), key=lambda place: rivals[place].hints.apart)

        def ask(place: int, at: npt.NDArray[np.intp]) -> None:
            if at.size:
                known = found[:, 0, at].min(axis=0)
                upper, crude, lines = rivals[place].both_below(epsilon[at], resolution, known)
                found[place][:, at] = upper, crude, lines.value, lines.slope_low, lines.slope_high

        def look(place: int, at: Bools) -> None:
            if not rivals[place].hints.apart:
                ask(place, np.flatnonzero(at))
            elif at.any():
                some = order[at[order]]
                promised = rivals[place].hints.promise(epsilon[some])
                some = some[promised <= _KEPT * found[:, 0, some].min(axis=0)]
                # Between two points at which a promise is not kept it is not asked for; nor where neither the
                # first one nor the middle one is.
                first = np.unique(np.append(np.arange(0, some.size, _APART), max(some.size - 1, 0)))
                first = some[first[: some.size]]
                two = first[np.unique([0, first.size // 2])] if first.size else first
                ask(place, two)
                if kept(place, two).any():
                    ask(place, np.setdiff1d(first, two))
                    good = kept(place, first)
                    here = np.searchsorted(rank[first], rank[some])
                    near = good[here] | good[np.maximum(here - 1, 0)]
                    ask(place, some[near & ~np.isin(some, first)])

        def kept(place: int, at: npt.NDArray[np.intp]) -> Bools:
            return np.asarray(found[place, 0, at] <= found[:, 0, at].min(axis=0))

        for place in places:
            look(place, probe.copy())
        good = found[:, 0] <= _ABOUT * found[:, 0].min(axis=0)
        sides = [(rank // _PROBED + side) * _PROBED for side in (0, 1)]
        before, after = (order[np.minimum(side, epsilon.size - 1)] for side in sides)
        for place in places:
            look(place, ~probe & (good[place, before] | good[place, after]))
        return found

    def winner(self, epsilon: float, resolution: float) -> str:
        """The name of the analysis with the smallest upper bound at epsilon."""
        at = np.array([epsilon])
        rivals = self.profiles[: self.rivals]
        values = [self._value(profile, at, resolution) for profile in rivals]
        return self.names[int(np.argmin(values))]

    @staticmethod
    def _value(profile: PrivacyProfile, at: Floats, resolution: float) -> float:
        try:
            return float(profile.upper(at, resolution)[0])
        except NoCertificateError:
            return math.inf
