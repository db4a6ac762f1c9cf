"""The privacy that training has spent, and may still spend.

Every round is the same mechanism: a cohort of n clients, drawn from the population, randomizes and is
shuffled. Rounds are adaptive (each depends on the model so far), which the accountant's composition
covers. All numbers are certified upper bounds for substitution neighbours: one client's data replaced.

**Drop-outs.** Some never answer. A round is accounted at ``least_reports``, uses all that come, and is void
below: nothing of it is released. If everybody is asked, whoever stays away is known at worst, and the
others are ``least_reports`` honest people; more only add reports that an adversary could add, too. Where
cohorts are drawn, a share of at least least_reports/cohort of all people answers if asked, and the others are
taken for dishonest ones (T7, docs/proofs/cohorts.md). Who stays away must not depend on their data.

>>> from shuffledp import LocalRandomizer, Shuffled
>>> one = Shuffled(LocalRandomizer(2.0), n=2_000).sampled_from(60_000)
>>> spending = Spending(one, budget=Budget(epsilon=0.5, delta=1e-5)).spend(100)
>>> float(spending.epsilon(delta=1e-5)) < 0.2, spending.rounds_left > 1_000
(True, True)
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Self

from shuffledp import _validate
from shuffledp._certified.rounding import down
from shuffledp.accounting.calibration import calibrate
from shuffledp.accounting.mechanism import Mechanism, Shuffled
from shuffledp.bound import Bound
from shuffledp.errors import BudgetExceededError
from shuffledp.learning._messages import GradientShares, MessagesRound

_MOST_ROUNDS = 2**24


@dataclass(frozen=True)
class Budget:
    """The most that training may cost: (epsilon, delta)-DP in total."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _validate.positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", _validate.probability("delta", self.delta))


@dataclass(frozen=True)
class Spending:
    """``spent`` rounds of one mechanism, within a ``budget`` if there is one.

    ``rounds_allowed`` is what the budget allows in all (inf without one). It is a calibration, which
    is run once, when the spending begins."""

    round: Shuffled | MessagesRound
    spent: int = 0
    budget: Budget | None = None
    rounds_allowed: float = field(init=False, default=math.inf)

    def __post_init__(self) -> None:
        object.__setattr__(self, "spent", _validate.count("spent", self.spent, least=0))
        if self.budget is not None:
            most = rounds_for(self.round, epsilon=self.budget.epsilon, delta=self.budget.delta)
            object.__setattr__(self, "rounds_allowed", most)

    @property
    def mechanism(self) -> Mechanism:
        """What has been run so far, for any question to the accountant."""
        return self.round * self.spent

    def epsilon(self, *, delta: float) -> Bound:
        """The certified epsilon spent so far."""
        return self.mechanism.epsilon(delta=delta)

    def upper_epsilon(self, *, delta: float) -> float:
        """Its upper end alone, cheaper: what progress shows."""
        return self.mechanism.upper_epsilon(delta=delta) if self.spent else 0.0

    @property
    def rounds_left(self) -> float:
        """How many more rounds the budget allows (inf without a budget)."""
        return max(0, self.rounds_allowed - self.spent)

    def require(self, rounds: int = 1) -> None:
        """BudgetExceededError unless the budget allows so many more rounds."""
        more = _validate.count("rounds", rounds, least=0)
        if more > self.rounds_left:
            assert self.budget is not None
            raise BudgetExceededError(
                f"{more} more round(s) after {self.spent} would exceed epsilon = "
                f"{self.budget.epsilon:g} at delta = {self.budget.delta:g}: "
                f"{self.rounds_left:g} left",
                budget=(self.budget.epsilon, self.budget.delta),
            )

    def spend(self, rounds: int = 1) -> Self:
        """What is spent after so many more rounds. BudgetExceededError if they are too many."""
        self.require(rounds)
        return self.having_spent(self.spent + rounds)

    def having_spent(self, rounds: int) -> Self:
        """The same budget after so many rounds in all, which may be more than it allows."""
        after = copy(self)  # not replace(): nothing is calibrated again
        object.__setattr__(after, "spent", _validate.count("rounds", rounds, least=0))
        return after


def _most_rounds(one: MessagesRound, epsilon: float, delta: float) -> int:
    """By doubling and halving: more rounds never cost less."""

    def allowed(rounds: int) -> bool:
        return (rounds * one).upper_epsilon(delta=delta) <= epsilon

    low, high = 0, 1
    while high < _MOST_ROUNDS and allowed(high):
        low, high = high, 2 * high
    while high - low > max(1, low // 1000):
        middle = (low + high) // 2
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return low


def rounds_for(round: Shuffled | MessagesRound, *, epsilon: float, delta: float) -> int:
    """The most rounds of this mechanism that are (epsilon, delta)-DP together; 0 if not even one is."""
    if isinstance(round, MessagesRound):
        return _most_rounds(round, epsilon, delta)
    if round.upper_epsilon(delta=delta) > epsilon:
        return 0
    if round.rate is not None:
        raise ValueError(f"round must be of a cohort of fixed size, got one with rate={round.rate!r}")
    sizes = (
        {"n": round.n} if round.population is None else {"cohort": round.n, "population": round.population}
    )
    target: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "analysis": round.analysis, **sizes}
    honest = round.honest_fraction
    return int(calibrate(round.randomizer, solve_for="rounds", honest_fraction=honest, **target).value)


def epsilon0_for(
    randomizer: type,
    *,
    epsilon: float,
    delta: float,
    rounds: int,
    cohort: int,
    population: int | None = None,
    least_reports: int | None = None,
    **parameters: Any,
) -> float:
    """The largest epsilon0 for which so many rounds are (epsilon, delta)-DP, ``least_reports`` in each.

    ``randomizer`` is a class, ``parameters`` its others: ``epsilon0_for(PrivUnit, dimension=3010,
    epsilon=3.0, delta=1e-5, rounds=6_000, cohort=60_000)``."""
    target: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "rounds": rounds, **parameters}
    sizes = _sizes(cohort, population, least_reports)
    return calibrate(randomizer, solve_for="epsilon0", **target, **sizes).value


def training_round(
    randomizer: Any, *, cohort: int, population: int, least_reports: int | None = None
) -> Shuffled | MessagesRound:
    """One round as it is accounted (see module)."""
    if isinstance(randomizer, GradientShares):
        return randomizer.training_round(cohort, population, least_reports)
    sizes = _sizes(cohort, population, least_reports)
    one = Shuffled(randomizer, n=sizes.get("n", cohort), honest_fraction=sizes.get("honest_fraction", 1.0))
    return one if "n" in sizes else one.sampled_from(population)


def _sizes(cohort: int, population: int | None, least_reports: int | None) -> dict[str, Any]:
    known = cohort if least_reports is None else least_reports
    least = _validate.count("least_reports", known, most=cohort, limit="the cohort")
    if population is None or (least < cohort == population):
        return {"n": least}
    sizes = {"cohort": cohort, "population": population}
    return sizes if least == cohort else sizes | {"honest_fraction": down(least / cohort, operations=1)}
