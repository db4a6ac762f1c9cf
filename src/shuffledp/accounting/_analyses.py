"""Which analyses apply to a randomizer, the tightest first.

Each randomizer type registers its analyses in the order of a proved chain (each step is a
post-processing or a convex order, see docs/mathematics.md):

    exact <= blanket <= clones <= clones-2021,      blanket <= strong,

so the pointwise minimum of all that apply is the curve of the first, which is convex: it is its own
convex minorant. Where numerical upper bounds of a later one happen to be smaller they are used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import singledispatch
from typing import TypeVar

import numpy as np

from shuffledp._certified.rounding import Floats
from shuffledp.accounting._curves.all_pairs import FiniteBlanketProfile
from shuffledp.accounting._curves.blanket import krr_blanket, law_blanket, tv_universal
from shuffledp.accounting._curves.clones import clones_2021, strong_adversary, strong_clones
from shuffledp.accounting._curves.exact_binary import EXACT_LIMIT, ExactBinaryProfile
from shuffledp.accounting._curves.profile import PrivacyProfile, SupportingLines
from shuffledp.errors import NoCertificateError
from shuffledp.randomizers._grid import GridRandomizer
from shuffledp.randomizers.frequency import FrequencyRandomizer
from shuffledp.randomizers.kary import KaryRandomizedResponse
from shuffledp.randomizers.local import LocalRandomizer
from shuffledp.randomizers.matrix import FiniteRandomizer
from shuffledp.randomizers.vectors import VectorRandomizer

NAMES = ("best", "clones", "clones-2021", "blanket", "strong", "exact")

T = TypeVar("T")

Analyses = dict[str, Callable[[int], PrivacyProfile]]


@dataclass(frozen=True)
class BestProfile(PrivacyProfile):
    """The pointwise minimum of several analyses; the first is the smallest in exact arithmetic."""

    names: tuple[str, ...]
    profiles: tuple[PrivacyProfile, ...]

    @property
    def epsilon_max(self) -> float:
        return min(profile.epsilon_max for profile in self.profiles)

    @property
    def scale(self) -> float:
        return self.profiles[0].scale

    @property
    def infinite_loss(self) -> float:
        return self.profiles[0].infinite_loss

    @property
    def costly(self) -> bool:
        return self.profiles[0].costly

    def guess(self, delta: float, most: float) -> float:
        return self.profiles[0].guess(delta, most)

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        found = list(self._certified(lambda p: p.upper(epsilon, resolution)))
        return np.asarray(np.min(found, axis=0))

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        return next(self._certified(lambda p: p.support(epsilon, resolution)))

    def both(self, epsilon: Floats, resolution: float) -> tuple[Floats, SupportingLines]:
        if len(self.profiles) == 1:
            return self.profiles[0].both(epsilon, resolution)
        return super().both(epsilon, resolution)

    def _certified(self, evaluate: Callable[[PrivacyProfile], T]) -> Iterator[T]:
        """What the analyses give that can be certified at these numbers; at least one must."""
        failure = None
        found = False
        for profile in self.profiles:
            try:
                value = evaluate(profile)
            except NoCertificateError as error:
                failure = error
            else:
                found = True
                yield value
        if failure is not None and not found:
            raise failure

    def winner(self, epsilon: float, resolution: float) -> str:
        """The name of the analysis with the smallest upper bound at epsilon."""
        at = np.array([epsilon])
        values = [float(profile.upper(at, resolution)[0]) for profile in self.profiles]
        return self.names[int(np.argmin(values))]


@singledispatch
def analyses(randomizer: object) -> Analyses:
    """Name of each analysis that applies -> its profile for n users, the tightest first."""
    raise TypeError(
        "randomizer must be a randomizer of shuffledp (LocalRandomizer for any other), "
        f"got {randomizer!r}"
    )


def _generic(epsilon0: float) -> Analyses:
    return {
        "clones": lambda n: strong_clones(epsilon0, n),
        "clones-2021": lambda n: clones_2021(epsilon0, n),
    }


@analyses.register
def _(randomizer: LocalRandomizer) -> Analyses:
    epsilon0, known = randomizer.epsilon0, randomizer.total_variation
    if known is None:
        return _generic(epsilon0)
    return {"blanket": lambda n: tv_universal(epsilon0, known, n)} | _generic(epsilon0)


@analyses.register
def _(randomizer: KaryRandomizedResponse) -> Analyses:
    k, epsilon0, gamma = randomizer.k, randomizer.epsilon0, randomizer.gamma
    found: Analyses = {}
    if k == 2:
        found["exact"] = lambda n: ExactBinaryProfile(n, epsilon0)
    found["blanket"] = lambda n: krr_blanket(k, epsilon0, n)
    found |= _generic(epsilon0)
    truthful = randomizer.total_variation
    found["strong"] = lambda n: strong_adversary(k, gamma, truthful, n)
    return found


@analyses.register
def _(randomizer: FiniteRandomizer) -> Analyses:
    found: Analyses = {"blanket": lambda n: FiniteBlanketProfile(randomizer, n)}
    if math.isfinite(randomizer.epsilon0):
        found |= _generic(randomizer.epsilon0)
    return found


@analyses.register(FrequencyRandomizer)
@analyses.register(VectorRandomizer)
def _(randomizer: FrequencyRandomizer | VectorRandomizer) -> Analyses:
    law = randomizer.law()
    return {"blanket": lambda n: law_blanket(law, n)} | _generic(randomizer.epsilon0)


@analyses.register
def _(randomizer: GridRandomizer) -> Analyses:
    if not randomizer.falls_off:
        return analyses(randomizer.finite)
    law = randomizer.law()
    return {"blanket": lambda n: law_blanket(law, n)} | _generic(randomizer.epsilon0)


def profile_of(randomizer: object, n: int, analysis: str) -> BestProfile:
    """The profile of one round of n users under one analysis, or under the best that apply."""
    known = analyses(randomizer)
    if analysis == "best":
        names = [name for name in known if name in ("exact", "blanket", "clones")]
        if n > EXACT_LIMIT and "exact" in names:
            names.remove("exact")
    elif analysis in known:
        names = [analysis]
        if analysis == "exact" and n > EXACT_LIMIT:
            # Stated fallback: beyond the limit the blanket stands in for the exact analysis.
            names = ["blanket"]
    else:
        raise ValueError(
            f"analysis must be one of {', '.join(map(repr, ['best', *known]))} for {randomizer!r}, "
            f"got {analysis!r}"
        )
    return BestProfile(tuple(names), tuple(known[name](n) for name in names))
