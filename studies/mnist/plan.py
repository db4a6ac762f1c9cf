"""Which budgets are trained for, and with what: the choices that need no data.

Everybody takes part in every round: at a fixed certified epsilon the information in the reports depends
on rounds times cohort only, and full cohorts lose least (budget.py). A smaller epsilon0 buys more
information for more rounds; the values here keep the rounds below 6,000.
"""

from __future__ import annotations

from dataclasses import dataclass

import shuffledp as sdp
from shuffledp.learning import rounds_for
from shuffledp.randomizers.privunit import PrivUnit

POPULATION, DELTA = 60_000, 1e-5


@dataclass(frozen=True)
class Size:
    """How much of everything: the whole study, or a glance that only shows that it runs."""

    clients: int
    validation: int
    strokes: int
    rounds: int | None = None
    """Instead of what the accountant allows."""


WHOLE = Size(clients=POPULATION, validation=10_000, strokes=30_000)
QUICK = Size(clients=300, validation=60, strokes=100, rounds=2)


@dataclass(frozen=True)
class Plan:
    """A certified budget and how it is spent: all clients, this epsilon0, this cap."""

    epsilon: float
    epsilon0: float
    cap: float

    def randomizer(self, dimension: int, radius: float = 1.0) -> PrivUnit:
        return PrivUnit(dimension, self.epsilon0, radius, cap_probability=self.cap)

    def rounds(self, dimension: int, size: Size = WHOLE) -> int:
        """The most that the certified accountant allows."""
        if size.rounds is not None:
            return size.rounds
        one = sdp.Shuffled(self.randomizer(dimension), n=POPULATION).sampled_from(POPULATION)
        return rounds_for(one, epsilon=self.epsilon, delta=DELTA)


PLANS = (
    Plan(0.1, 1.0, 0.185),
    Plan(0.3, 1.0, 0.185),
    Plan(0.667, 1.5, 0.15),
    Plan(1.0, 1.5, 0.15),
    Plan(3.0, 2.0, 0.115),
    Plan(5.8, 3.0, 0.065),
)
