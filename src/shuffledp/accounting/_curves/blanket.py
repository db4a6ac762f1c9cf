"""The privacy blanket of k-ary randomized response and of randomizers of known total variation.

Balle, Bell, Gascon, Nissim 2019; for k-ary randomized response this is exactly the weak adversary
of Koskela et al. 2023 (who does not learn which reports are random). Upper bounds for substitution
neighbours; the adversary knows everybody else's data. All laws here are symmetric in x, x', so
each is a whole profile. With p = 1/(e^epsilon0 + k - 1), E = e^epsilon0, the law of X is

    k-ary:  E - a (p),  1 - a E (p),  1 - a ((k - 2) p),  0 (1 - k p);
    total variation (E - 1) p, p <= 1/(E + 1):  E - a (p),  1 - a E (p),  E (1 - a) ((1 - (E+1) p)/E).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from shuffledp._certified.rounding import CALL, LARGEST_EXPONENT, Floats, capped, down, up
from shuffledp._spans.span import Span
from shuffledp.accounting._curves.combined import LargestProfile
from shuffledp.accounting._curves.farthest import farthest_pairs
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.accounting._curves.many_laws import ManyLaws
from shuffledp.accounting._curves.profile import Bools, PrivacyProfile
from shuffledp.accounting._hints.crowds import CrowdHints
from shuffledp.accounting._hints.starts import Hints
from shuffledp.facts import AmplificationLaw

_COMMON_UNITS = 64  # soundness: of a blanket's mass that was stated
_MANY = 50.0  # tightness: users, in units of e^epsilon0, from which on moments are close
_WIDER = 1.25  # speed: of the largest variance, what a range of masses may have


def law_blanket(law: AmplificationLaw, n: int) -> PrivacyProfile:
    """A randomizer that knows the law of its own worst pair."""
    pair = AmplificationProfile(n, law.own, law.other, law.gap, law.clone).without_empty_types()
    return pair if pair.symmetric else LargestProfile(pair.directions)


def from_the_centre(epsilon0: float, common: float | None, n: int, hints: CrowdHints) -> PrivacyProfile:
    """Of n users one sends a report of any input, or of one law for all: the blanket's, of mass ``common``.

    Every input's report is between the blanket and e^epsilon0 times it, so with a tag it has one of the two
    densities (T16, docs/proofs/crowd.md, section 4). If the mass is not known, ranges cover all there are."""
    grown = up(math.exp(capped(epsilon0)), operations=CALL)
    ranges = list(_ranges(grown)) if common is None else [(common, common)]
    least = [down(low, operations=_COMMON_UNITS) for low, _ in ranges]
    most = [max(1.0, up(high * grown, operations=_COMMON_UNITS)) for _, high in ranges]
    parts = [_two_densities(low, high, n) for low, high in zip(least, most, strict=True)]
    sides = tuple(side for part in parts for side in part.directions)
    return _FromTheCentre(sides, hints) if n >= _MANY * grown else LargestProfile(sides)


def from_the_span(span: Span, n: int, hints: CrowdHints) -> PrivacyProfile:
    """The same, where rows span all reports (T16, section 9): hidden by what the rows have in common."""
    sides = tuple(replace(side, n=n) for side in _spanned(span))
    grown = math.exp(min(max(side.epsilon_max for side in sides), LARGEST_EXPONENT))
    return _FromTheCentre(sides, hints) if n >= _MANY * grown else LargestProfile(sides)


@lru_cache(maxsize=16)
def _spanned(span: Span) -> tuple[AmplificationProfile, ...]:
    """One user's laws: of the farthest rows, and the centre."""
    high, low, common = span.pooled
    pairs = farthest_pairs(high, low, common, common / math.fsum(common))
    parts = ((own, other, own - other, common) for own, other in pairs)
    return tuple(AmplificationProfile(1, *(tuple(part.tolist()) for part in four)) for four in parts)


def centre_variance(epsilon0: float, common: float | None) -> float:
    """Of the X of a report there, at alpha = 1, about: of unknown masses that which all ranges have."""
    grown = math.exp(capped(epsilon0))
    if common is None:
        return _WIDER * (math.sqrt(grown) - 1.0) ** 2
    return max(common * grown - 1.0, 0.0) * (1.0 / common - 1.0)


@dataclass(frozen=True)
class _FromTheCentre(LargestProfile):
    """All sides at once, to some percent: where others are many, no more is asked of them."""

    crowd: CrowdHints

    @cached_property
    def hints(self) -> Hints:
        """Nobody searches here: the scale is all that is asked for."""
        return Hints(max(side.scale for side in self.profiles if isinstance(side, AmplificationProfile)))

    def upper_or_crude(self, epsilon: Floats, resolution: float) -> tuple[Floats, Bools]:
        laws = [side for side in self.profiles if isinstance(side, AmplificationProfile)]
        return replace(ManyLaws.of(laws), hints=self.crowd).largest(epsilon), np.zeros(epsilon.size, bool)


def _ranges(grown: float) -> Iterator[tuple[float, float]]:
    """Ranges of the mass, from 1 down to 1/E, so short that no variance is much more than the largest."""
    variance = _WIDER * (math.sqrt(grown) - 1.0) ** 2
    high = 1.0
    while high * grown > 1.0:
        rise = high * grown - 1.0
        low = 1.0 / (1.0 + variance / rise) if rise * (grown - 1.0) > variance else 1.0 / grown
        yield low, high
        high = low


def _two_densities(low: float, high: float, n: int) -> AmplificationProfile:
    """Own is ``high`` times other on a set and ``low`` times elsewhere; ``low`` times other hides it."""
    inside, outside = (1.0 - low) / (high - low), (high - 1.0) / (high - low)
    return AmplificationProfile(
        n,
        own=(high * inside, low * outside),
        other=(inside, outside),
        gap=((high - 1.0) * inside, -(1.0 - low) * outside),
        clone=(low * inside, low * outside),
    ).without_empty_types()


def tv_universal(epsilon0: float, total_variation: float, n: int) -> AmplificationProfile:
    """Any epsilon0-LDP randomizer whose reports differ by at most this total variation."""
    if epsilon0 == 0.0:
        return AmplificationProfile(n, own=(1.0,), other=(1.0,), gap=(0.0,), clone=(1.0,))
    # total_variation = (E - 1) p, rounded up: the pair is monotone in p.
    most = up(math.tanh(0.5 * epsilon0), operations=CALL, tiny=0.0)
    gap = min(up(total_variation, operations=1, tiny=0.0), most)
    ep = gap / -math.expm1(-epsilon0)
    p = ep * math.exp(-epsilon0)
    rest = max(0.0, 1.0 - p - ep)
    return AmplificationProfile(
        n,
        own=(ep, p, rest),
        other=(p, ep, rest),
        gap=(gap, -gap, 0.0),
        clone=(p, p, rest * math.exp(-epsilon0)),
    ).without_empty_types()
