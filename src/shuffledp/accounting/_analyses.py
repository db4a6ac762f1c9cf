"""The table of analyses, and which of them apply to what is known of a randomizer.

They stand in the order of a proved chain (each step is a post-processing or a convex order: T3,
docs/proofs/order.md):

    exact <= blanket <= clones <= clones-2021,      blanket <= strong,

so the best of all that apply is the first, and no later one is evaluated unless it has no certificate.
"crowd", which is near the truth where users are many and far from it where they are few, has no place in the
chain: it is evaluated beside the others, and the smaller bound counts.
"best" answers for an adversary who sees the shuffled reports; "best-leaked" for one who also learns which of
the others answered at random, so it leaves out what covers no leaked coin (a test enumerates their views).
Blanket and clones are equal for two reports, and there the clones' numbers are closer; of a law with a type
that its clones hide by less than e^-epsilon0, or with a delta0, the order is not proved. Then both count.
A randomizer of two inputs is binary randomized response, processed (T12, two inputs): the exact
analysis of that bounds it, and where it is more than that by another name, the blanket may be smaller.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from shuffledp._certified.rounding import capped, up
from shuffledp.accounting._curves.all_pairs import FiniteBlanketProfile
from shuffledp.accounting._curves.approximate import crowd_approximate, plain_approximate, strong_approximate
from shuffledp.accounting._curves.binary_cohort import BinaryCohortProfile
from shuffledp.accounting._curves.blanket import law_blanket, tv_universal
from shuffledp.accounting._curves.clones import clones_2021, strong_adversary, strong_clones
from shuffledp.accounting._curves.combined import BestProfile, LargestProfile
from shuffledp.accounting._curves.crowd import CrowdProfile
from shuffledp.accounting._curves.exact_binary import EXACT_LIMIT, ExactBinaryProfile
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.accounting._curves.profile import PrivacyProfile
from shuffledp.accounting._curves.subsampled import in_cohort, polled
from shuffledp.errors import NoCertificateError
from shuffledp.facts import Facts, crowds_of_any

_MOST_TRIPLES = 2**29  # speed: of a matrix's inputs, times its reports, for the crowd theorem
_ROUNDING = 2.0**-40  # speed: a matrix this close to a symmetric one is taken for it


@dataclass(frozen=True)
class Analysis:
    """One way to bound a round from above; all hold for substitution neighbours."""

    name: str
    theorem: str
    adversary: str
    """The strongest it holds against: one of ``ADVERSARIES``."""
    in_best: bool
    applies: Callable[[Facts], bool]
    curve: Callable[[Facts, int], PrivacyProfile]


_ALL_DATA = "knows everybody else's data and sees the shuffled reports"
_OTHERS_COINS = f"{_ALL_DATA}, and learns which of the others answered at random"
_ALL_COINS = f"{_OTHERS_COINS}, and whether you did"
ADVERSARIES = (_ALL_DATA, _OTHERS_COINS, _ALL_COINS)
"""Each sees more than the one before. To answer at random is to draw from the blanket, the largest part
common to all inputs; who sees *what* was drawn knows the report, and nobody hides in a known report."""


def _is_private(facts: Facts) -> bool:
    return math.isfinite(facts.epsilon0.upper)


def _has_two_inputs(facts: Facts) -> bool:
    """Every report is one of binary randomized response, processed: with two inputs, or two reports, of which
    the rows with most and least of the first mix all others."""
    if facts.response is not None:
        return facts.response.k == 2
    return facts.matrix is not None and 2 in facts.matrix.rows.shape and _is_private(facts)


def _exact(facts: Facts, n: int) -> PrivacyProfile:
    matrix = None if facts.response is not None else facts.matrix
    return ExactBinaryProfile(n, facts.epsilon0.upper if matrix is None else matrix.epsilon0)


def _is_binary(facts: Facts) -> bool:
    """Whether a randomizer of two inputs *is* binary randomized response, up to rounding."""
    if facts.response is not None or facts.matrix is None:
        return True
    first = facts.matrix.rows[:, 0]
    symmetric = abs(float(first.max() + first.min()) - 1.0) <= _ROUNDING
    return facts.matrix.rows.shape[1] == 2 and symmetric


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


def _has_crowds(facts: Facts) -> bool:
    """Whether laws of crowds are stated, or are those of all triples of rows that span all reports, or of a
    matrix of positive entries; with a delta0 those of any epsilon0 are meant."""
    if facts.span is not None and facts.delta0 == 0.0:
        return True
    if facts.delta0 > 0.0 or not _is_private(facts):
        return bool(0.0 < facts.epsilon0.upper < math.inf)
    if facts.crowds or facts.matrix is None:
        return bool(facts.crowds)
    rows = facts.matrix.rows
    return len(rows) > 1 and len(rows) ** 2 * rows.size <= _MOST_TRIPLES and bool(rows.min() > 0.0)


def _crowd(facts: Facts, n: int) -> PrivacyProfile:
    if facts.span is not None and facts.delta0 == 0.0:
        return CrowdProfile(n, (), facts.span.epsilon0, facts.span)
    local, matrix = facts.epsilon0.upper, None if facts.crowds else facts.matrix
    crowds = facts.crowds if facts.delta0 == 0.0 else crowds_of_any(local)
    both = [law for given in crowds for law in (given, given.reversed())]
    different = {tuple(sorted(zip(law.own, law.other, law.clone, strict=True))): law for law in both}
    if facts.delta0 > 0.0:
        crowd = CrowdProfile(n, tuple(different.values()), local, delta0=facts.delta0)
        return crowd_approximate(crowd, local, facts.delta0)
    if matrix is None:
        return CrowdProfile(n, tuple(different.values()), local, common=facts.common)
    return CrowdProfile(n, (), max(local, matrix.epsilon0), matrix)


def _strong(facts: Facts, n: int) -> PrivacyProfile:
    assert facts.response is not None
    return strong_adversary(facts.response.k, facts.response.gamma, facts.response.truth, n)


ANALYSES = (
    Analysis("exact", "all datasets of binary randomized response", _ALL_DATA, True, _has_two_inputs, _exact),
    Analysis("crowd", "all crowds, near the worst of one value", _ALL_DATA, True, _has_crowds, _crowd),
    Analysis(
        "blanket",
        "Balle et al. 2019, Lemma 5.3, as the law of X",
        _OTHERS_COINS,
        True,
        _has_blanket,
        _blanket,
    ),
    Analysis(
        "clones",
        "Feldman, McMillan, Talwar 2022 at p = 1/(e^epsilon0 + 1); T2",
        _OTHERS_COINS,
        True,
        _is_private,
        _clones,
    ),
    Analysis(
        "clones-2021", "Feldman, McMillan, Talwar 2021", _OTHERS_COINS, False, _is_private, _clones_2021
    ),
    Analysis(
        "strong",
        "the adversary knows who answered at random, you too",
        _ALL_COINS,
        False,
        lambda facts: facts.response is not None,
        _strong,
    ),
)
"""The one table, the tightest first (see module)."""
BY_NAME = {analysis.name: analysis for analysis in ANALYSES}
BEST = {"best": _ALL_DATA, "best-leaked": _OTHERS_COINS}
"""The smallest of all that hold against an adversary."""
NAMES = (*BEST, *BY_NAME)


def covers_leaks(name: str) -> bool:
    """Whether an analysis holds as well if it leaks which of the others answered at random."""
    return BY_NAME[name].adversary != _ALL_DATA


def names_for(facts: Facts) -> list[str]:
    """The analyses that apply, the tightest first."""
    return [analysis.name for analysis in ANALYSES if analysis.applies(facts)]


def profile_of(facts: Facts, n: int, analysis: str, fraction: float = 1.0, rate: float = 1.0) -> BestProfile:
    """The profile of one round of n users under one analysis, or under the best that apply.

    The n users are a random ``fraction`` of all, or each takes part with probability ``rate``."""
    known = names_for(facts)
    if not known:
        raise NoCertificateError("epsilon0 is not bounded, and no law and no matrix is known")
    if analysis == "best-leaked" and facts.delta0 > 0.0:
        raise ValueError(
            "analysis must not be 'best-leaked' for a randomizer with a delta0, where reports outside of what"
            f" all inputs have in common tell who answered at random: 'best' covers no leak, got {facts!r}"
        )
    if analysis in BEST:
        least = ADVERSARIES.index(BEST[analysis])
        covered = [name for name in known if ADVERSARIES.index(BY_NAME[name].adversary) >= least]
        chosen = [name for name in covered if BY_NAME[name].in_best]
    elif analysis in known:
        chosen = [analysis]
    else:
        raise ValueError(
            f"analysis must be one of {', '.join(map(repr, [*BEST, *known]))} for {facts!r}, got {analysis!r}"
        )
    if n > EXACT_LIMIT and "exact" in chosen:
        # Stated fallback: beyond the limit the blanket stands in for the exact analysis.
        chosen = [name for name in chosen if name != "exact"] or ["blanket"]
    sampled = fraction < 1.0 or rate < 1.0
    if analysis in BEST and not sampled and chosen[0] == "exact" and _is_binary(facts):
        chosen = [name for name in chosen if name != "crowd"]  # nothing is below the exact curve
    if analysis in BEST and not sampled and len(chosen) > 1 and "crowd" in chosen:
        crowd = BY_NAME["crowd"].curve(facts, n)
        if isinstance(crowd, CrowdProfile) and not crowd.serves:
            chosen = [name for name in chosen if name != "crowd"]
    curves = tuple(BY_NAME[name].curve(facts, n) for name in chosen)
    alone = next((place for place, curve in enumerate(curves) if _ordered(curve, facts)), len(curves) - 1)
    # Of a cohort there is no exact curve.
    rivals = max(alone, chosen.index("crowd") if sampled and "crowd" in chosen else 0) + 1
    if fraction < 1.0:
        curves = tuple(in_cohort(curve, fraction) for curve in curves)
        if isinstance(curves[0], BinaryCohortProfile) and _is_binary(facts) and "crowd" in chosen:
            # The crowd theorem is above all crowds, one by one.
            kept = [place for place, name in enumerate(chosen) if name != "crowd"]
            chosen, curves = [chosen[place] for place in kept], tuple(curves[place] for place in kept)
            rivals = len(kept)
    if rate < 1.0:
        curves = tuple(polled(curve, rate) for curve in curves)
    return BestProfile(tuple(chosen), curves, rivals)


def _ordered(first: PrivacyProfile, facts: Facts) -> bool:
    """Whether the first analysis is proved to be below the others, and is not one of them by another name."""
    if facts.delta0 > 0.0:
        return False
    if isinstance(first, CrowdProfile):
        return False
    if isinstance(first, ExactBinaryProfile):
        return _is_binary(facts)
    if isinstance(first, AmplificationProfile):
        # Speed: any number will do, the first analysis is a bound in any case.
        most = up(math.exp(capped(facts.epsilon0.upper)), operations=2**13)
        rows = zip(first.own, first.other, first.clone, strict=True)
        return len(first.clone) > 2 and all(max(u, v) <= most * c for u, v, c in rows)
    if isinstance(first, LargestProfile):
        return all(_ordered(law, facts) for law in first.profiles)
    if isinstance(first, FiniteBlanketProfile):
        return len(first.laws) > 1 or any(len(law.clone) > 2 for law in first.laws)
    return True
