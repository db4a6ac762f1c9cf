"""What the literature's bounds can be asked about, and one bound as a line of a comparison."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from shuffledp import _validate
from shuffledp.accounting.mechanism import Mechanism, Shuffled

SOUND = "sound"
OUTSIDE = "sound outside its stated range"
UNSOUND = "unsound"


@dataclass(frozen=True)
class Case:
    """``rounds`` times the round ``part``, as the theorems see it."""

    part: Shuffled
    rounds: int
    epsilon0: float
    k: int = 0
    """Symbols of k-ary randomized response, and the mass of its blanket; zero for any other randomizer."""
    gamma: float = 0.0

    @classmethod
    def of(cls, mechanism: Mechanism) -> Case | str:
        """The mechanism as repetitions of one shuffled round, or why no theorem says anything about it."""
        kinds = [(part, count) for part, count in mechanism.parts if count]
        part, rounds = kinds[0] if kinds else (None, 0)
        if not isinstance(part, Shuffled) or len(kinds) > 1:
            return "they are about repetitions of one shuffled round"
        if part.facts.delta0 > 0.0:
            return "they are about pure local privacy"
        if part.rate is not None:
            return "they are about a fixed number of reports, here people flip coins of their own"
        if part.honest_fraction < 1.0:
            if part.population is not None:
                return "they are about cohorts of honest people alone, here some of the population are not"
            part = replace(part, n=part.honest, honest_fraction=1.0)
        facts = part.facts
        epsilon0, response = facts.epsilon0.upper, facts.response
        if not 0.0 < epsilon0 <= _validate.MAX_EPSILON0 or not part.round.profile.hints.scale > 0.0:
            allowed = f"(0, {_validate.MAX_EPSILON0:g}]"
            return (
                f"they are about reports that tell something, with epsilon0 in {allowed}, here {epsilon0:.4g}"
            )
        if response is None:
            return cls(part, rounds, epsilon0)
        return cls(part, rounds, epsilon0, response.k, response.gamma)

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
    def cohort(self) -> Shuffled:
        """One round of everybody in the cohort, under all analyses."""
        return replace(self.part, analysis="best", population=None)


Answer = Callable[[Case, float], float]


@dataclass(frozen=True)
class Entry:
    """A bound: ``epsilon(case, delta)`` and ``delta(case, epsilon)``, where it has them.

    ``reason`` says why it is unsound, or what to know about a sound one."""

    name: str
    theorem: str
    epsilon: Answer | None
    delta: Answer | None
    applies: Callable[[Case], bool]
    soundness: str = SOUND
    reason: str = ""
