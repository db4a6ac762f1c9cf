"""shuffledp's own certified analyses, each as a line of a comparison."""

from __future__ import annotations

from dataclasses import replace

from shuffledp.accounting._analyses import analyses
from shuffledp.accounting.mechanism import Composition, Mechanism, OneRound, Shuffled

THEOREMS = {
    "exact": "all datasets of binary randomized response",
    "blanket": "Balle et al. 2019, Lemma 5.3, as the law of X",
    "clones": "Feldman, McMillan, Talwar 2022, at p = 1/(e^epsilon0 + 1)",
    "clones-2021": "Feldman, McMillan, Talwar 2021",
    "strong": "the adversary knows which reports are random",
}


def versions(mechanism: Mechanism) -> dict[str, Mechanism]:
    """The mechanism under every analysis that applies to all its rounds, the tightest first."""
    kinds = [part for part, count in mechanism.parts if count]
    known = [list(analyses(part.randomizer)) for part in kinds if isinstance(part, Shuffled)]
    if not known or len(known) < len(kinds):
        return {}
    shared = [name for name in known[0] if all(name in other for other in known)]
    return {name: under(mechanism, name) for name in shared}


def under(mechanism: Mechanism, analysis: str) -> Mechanism:
    """Every round of the mechanism under one analysis."""
    rounds = tuple((_under(part, analysis), count) for part, count in mechanism.parts)
    return rounds[0][0] if len(rounds) == 1 and rounds[0][1] == 1 else Composition(rounds)


def _under(part: OneRound, analysis: str) -> OneRound:
    return replace(part, analysis=analysis) if isinstance(part, Shuffled) else part
