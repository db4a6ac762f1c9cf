"""Which budgets are trained for, and with what: the choices that need no data.

Everybody takes part in every round: at a fixed certified epsilon the information in the reports depends
on rounds times cohort only, and full cohorts lose least (budget.py). A smaller epsilon0 buys more
information for more rounds; the values here keep the rounds below 6,000.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import shuffledp as sdp
from shuffledp.learning import rounds_for
from shuffledp.randomizers.privunit import PrivUnit

POPULATION, DELTA = 60_000, 1e-5


@dataclass(frozen=True)
class Size:
    """How much of everything: the whole study, or a glance that only shows that it runs."""

    clients: int
    validation: int
    drawn: int
    """Random images, to centre and even out."""
    steps: int
    """Of the network that learns from random images; ``batch`` prototypes each."""
    batch: int
    width: int
    seeds: int
    """Of noise, for every setting of the search."""
    rounds: int | None = None
    """Instead of what the accountant allows."""


WHOLE = Size(clients=POPULATION, validation=10_000, drawn=30_000, steps=2_500, batch=1_024, width=64, seeds=8)
QUICK = Size(clients=300, validation=60, drawn=100, steps=2, batch=8, width=8, seeds=2, rounds=2)


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

    def report_deviation(self, dimension: int, reports: int) -> float:
        """Per coordinate, of the mean of reports about unit vectors; a report's length is always the same."""
        return math.sqrt(self.randomizer(dimension).second_moment / (dimension * reports))

    def curator_deviation(self, people: int, rounds: int, difference: float) -> float:
        """Per coordinate, of the noise that a trusted server adds to a mean of unit vectors in every round.

        All rounds together meet the same (epsilon, delta): ``difference`` is 2 for one vector replaced, 1 for
        one more or less."""
        return difference * math.sqrt(rounds) / (people * gaussian_mu(self.epsilon, DELTA))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest mean shift of unit normal noise with delta(epsilon) at most delta (not certified; for the
    comparison with a trusted server only)."""
    cdf = NormalDist().cdf
    low, high = 0.0, 10.0 + epsilon
    while high - low > 1e-12 * high:
        mu = (low + high) / 2.0
        spent = cdf(mu / 2.0 - epsilon / mu) - math.exp(epsilon) * cdf(-mu / 2.0 - epsilon / mu)
        low, high = (mu, high) if spent <= delta else (low, mu)
    return low


PLANS = (
    Plan(0.1, 0.5, 0.22),
    Plan(0.3, 0.5, 0.22),
    Plan(0.667, 1.0, 0.185),
    Plan(1.0, 1.5, 0.15),
    Plan(3.0, 2.0, 0.115),
    Plan(5.8, 3.0, 0.065),
)
