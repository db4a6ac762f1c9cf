"""The table of analyses, and which of them apply to what is known of a randomizer.

They stand in the order of a proved chain (each step is a post-processing or a convex order, see
docs/mathematics.md):

    exact <= blanket <= clones <= clones-2021,      blanket <= strong,

so the pointwise minimum of all that apply is the curve of the first, which is convex: it is its own
convex minorant. Where numerical upper bounds of a later one happen to be smaller they are used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from shuffledp._certified.rounding import Floats
from shuffledp.accounting._curves.all_pairs import FiniteBlanketProfile
from shuffledp.accounting._curves.approximate import plain_approximate, strong_approximate
from shuffledp.accounting._curves.blanket import law_blanket, tv_universal
from shuffledp.accounting._curves.clones import clones_2021, strong_adversary, strong_clones
from shuffledp.accounting._curves.exact_binary import EXACT_LIMIT, ExactBinaryProfile
from shuffledp.accounting._curves.maximum import LargestProfile
from shuffledp.accounting._curves.profile import PrivacyProfile, SupportingLines
from shuffledp.accounting._hints.starts import Hints
from shuffledp.errors import NoCertificateError
from shuffledp.facts import Facts

T = TypeVar("T")


@dataclass(frozen=True)
class BestProfile(PrivacyProfile):
    """The pointwise minimum of several analyses; the first is the smallest in exact arithmetic."""

    names: tuple[str, ...]
    profiles: tuple[PrivacyProfile, ...]

    @property
    def epsilon_max(self) -> float:
        return min(profile.epsilon_max for profile in self.profiles)

    @cached_property
    def hints(self) -> Hints:
        return self.profiles[0].hints

    @property
    def infinite_loss(self) -> float:
        return self.profiles[0].infinite_loss

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


@dataclass(frozen=True)
class Analysis:
    """One way to bound a round from above; all hold for substitution neighbours."""

    name: str
    theorem: str
    adversary: str
    in_best: bool
    applies: Callable[[Facts], bool]
    curve: Callable[[Facts, int], PrivacyProfile]


_ALL_DATA = "knows everybody else's data and sees the shuffled reports"


def _is_private(facts: Facts) -> bool:
    return math.isfinite(facts.epsilon0.upper)


def _has_blanket(facts: Facts) -> bool:
    universal = facts.total_variation is not None and _is_private(facts) and facts.delta0 == 0.0
    return bool(facts.above) or facts.matrix is not None or universal


def _blanket(facts: Facts, n: int) -> PrivacyProfile:
    """The laws that were proved to be the largest, or all pairs of a matrix, or what total variation says."""
    if facts.above:
        laws = [law_blanket(law, n) for law in facts.above]
        return laws[0] if len(laws) == 1 else LargestProfile(tuple(laws))
    if facts.matrix is not None:
        return FiniteBlanketProfile(facts.matrix, n)
    assert facts.total_variation is not None
    return tv_universal(facts.epsilon0.upper, facts.total_variation, n)


def _clones(facts: Facts, n: int) -> PrivacyProfile:
    clones = strong_clones(facts.epsilon0.upper, n)
    return clones if facts.delta0 == 0.0 else strong_approximate(clones, facts.delta0, n)


def _clones_2021(facts: Facts, n: int) -> PrivacyProfile:
    clones = clones_2021(facts.epsilon0.upper, n)
    return clones if facts.delta0 == 0.0 else plain_approximate(clones, facts.delta0, n)


def _strong(facts: Facts, n: int) -> PrivacyProfile:
    assert facts.response is not None
    return strong_adversary(facts.response.k, facts.response.gamma, facts.response.truth, n)


ANALYSES = (
    Analysis(
        "exact",
        "all datasets of binary randomized response",
        _ALL_DATA,
        True,
        lambda facts: facts.response is not None and facts.response.k == 2,
        lambda facts, n: ExactBinaryProfile(n, facts.epsilon0.upper),
    ),
    Analysis(
        "blanket",
        "Balle et al. 2019, Lemma 5.3, as the law of X",
        _ALL_DATA,
        True,
        _has_blanket,
        _blanket,
    ),
    Analysis(
        "clones",
        "Feldman, McMillan, Talwar 2022, at p = 1/(e^epsilon0 + 1)",
        _ALL_DATA,
        True,
        _is_private,
        _clones,
    ),
    Analysis(
        "clones-2021",
        "Feldman, McMillan, Talwar 2021",
        _ALL_DATA,
        False,
        _is_private,
        _clones_2021,
    ),
    Analysis(
        "strong",
        "the adversary knows which reports are random",
        f"{_ALL_DATA}, and learns who sent a uniformly random report",
        False,
        lambda facts: facts.response is not None,
        _strong,
    ),
)
"""The one table, the tightest first (see module)."""
BY_NAME = {analysis.name: analysis for analysis in ANALYSES}
NAMES = ("best", *BY_NAME)


def names_for(facts: Facts) -> list[str]:
    """The analyses that apply, the tightest first."""
    return [analysis.name for analysis in ANALYSES if analysis.applies(facts)]


def profile_of(facts: Facts, n: int, analysis: str) -> BestProfile:
    """The profile of one round of n users under one analysis, or under the best that apply."""
    known = names_for(facts)
    if analysis == "best":
        chosen = [name for name in known if BY_NAME[name].in_best]
    elif analysis in known:
        chosen = [analysis]
    else:
        raise ValueError(
            f"analysis must be one of {', '.join(map(repr, ['best', *known]))} for {facts!r}, "
            f"got {analysis!r}"
        )
    if n > EXACT_LIMIT and "exact" in chosen:
        # Stated fallback: beyond the limit the blanket stands in for the exact analysis.
        chosen = [name for name in chosen if name != "exact"] or ["blanket"]
    return BestProfile(tuple(chosen), tuple(BY_NAME[name].curve(facts, n) for name in chosen))
