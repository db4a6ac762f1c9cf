"""What the literature's bounds can be asked about: one kind of round, repeated."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from shuffledp.accounting.mechanism import Mechanism, Shuffled
from shuffledp.randomizers.kary import KaryRandomizedResponse


@dataclass(frozen=True)
class Case:
    """``rounds`` times the round ``part``."""

    part: Shuffled
    rounds: int

    @classmethod
    def of(cls, mechanism: Mechanism) -> Case | None:
        """The mechanism as repetitions of one shuffled round, or None if it mixes several.

        Also None where there is nothing to bound: no round, or a local epsilon of 0 or infinity."""
        kinds = [(part, count) for part, count in mechanism.parts if count]
        part, rounds = kinds[0] if len(kinds) == 1 else (None, 0)
        if not isinstance(part, Shuffled) or not 0.0 < part.randomizer.epsilon0 < math.inf:
            return None
        if not part.round.profile.scale > 0.0:
            return None
        return cls(part, rounds)

    @property
    def randomizer(self) -> Any:
        return self.part.randomizer

    @property
    def epsilon0(self) -> float:
        return float(self.randomizer.epsilon0)

    @property
    def n(self) -> int:
        return self.part.n

    @property
    def population(self) -> int:
        return self.part.population or self.part.n

    @property
    def fraction(self) -> float:
        return self.part.fraction

    @property
    def single(self) -> bool:
        """One round in which everybody takes part: what most theorems are about."""
        return self.rounds == 1 and self.fraction == 1.0

    @property
    def kary(self) -> KaryRandomizedResponse | None:
        """The randomizer, if it is randomized response."""
        found = self.randomizer
        return found if isinstance(found, KaryRandomizedResponse) else None

    def one_round(self, analysis: str) -> Shuffled:
        """One round of everybody in the cohort, under one analysis."""
        return replace(self.part, analysis=analysis, population=None)
