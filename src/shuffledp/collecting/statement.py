"""What may be said about the privacy of one finished collection, and what it rests on.

The number is the accountant's: rounds * Shuffled(randomizer, n=honest reports). Only honest reports
hide anybody, so ``honest_fraction`` (a share) or ``minimum_honest`` (a number) lowers n; reports that
never came lower it as well. Either is said in the statement and warned about. Reports beyond the planned
number never raise it: anybody can send more of them, and they hide nobody if he did.
"""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from shuffledp import _html, _validate
from shuffledp._digits import rounded_up, written
from shuffledp.collecting._accounted import certified_epsilon
from shuffledp.errors import WeakerPrivacyWarning
from shuffledp.randomizers.split_and_mix import SplitAndMix

if TYPE_CHECKING:
    from shuffledp.collecting._protocol import Protocol
    from shuffledp.collecting.ledger import Ledger

ADVERSARY = (
    "sees the shuffled reports and every result computed from them, knows the data of all other "
    "people, and learns neither who sent which report nor any device's coin flips"
)
_SIMULATED = "SIMULATED: these were made with a repeatable generator, which protects nobody"
NEIGHBOURS = "substitution: one person's value is replaced by any other value of the domain"


@dataclass(frozen=True)
class PrivacyStatement:
    """The certified guarantee of the rounds so far, and its assumptions.

    ``epsilon`` is certified for ``delta``, for ``rounds`` shuffles of ``n_honest`` honest reports each.
    One report alone is (``epsilon0``, ``delta0``)-differentially private. ``total_epsilon`` (with a
    ledger) also counts the population's other collections, at the delta of the ledger's budget.
    ``n_sized``: the honest people whose noise together is enough, where everybody adds a share of it.
    ``n_set_aside``: reports that no client of this protocol sends, which were not counted.
    ``simulated``: made with ``rng=``, so that the statement is about the protocol, not about the reports."""

    protocol: str
    randomizer: str
    epsilon0: float
    epsilon: float
    delta: float
    n_received: int
    n_planned: int
    n_honest: int
    rounds: int
    rounds_planned: int
    epsilon_planned: float
    population: str | None = None
    total_epsilon: float | None = None
    total_delta: float | None = None
    adversary: str = ADVERSARY
    neighbours: str = NEIGHBOURS
    delta0: float = 0.0
    n_set_aside: int = 0
    n_sized: int | None = None
    simulated: bool = False

    @property
    def weakened(self) -> bool:
        """Fewer honest reports than planned."""
        return self.n_honest < self.n_planned

    @property
    def assumption(self) -> str:
        """What is assumed of the reports."""
        each = "" if self.rounds == 1 else f" in each of the {self.rounds} rounds"
        return (
            f"at least {self.n_honest} of the {self.n_received} received reports{each} come from "
            "different people, whose clients randomized as prescribed and keep their randomness to themselves"
        )

    @property
    def _alone(self) -> str:
        if math.isinf(self.epsilon0):
            return "one person's messages together reveal the answer: everything rests on the shuffler"
        epsilon0 = rounded_up(self.epsilon0, 6)
        local = f"({epsilon0}, {rounded_up(self.delta0, 6)})" if self.delta0 else epsilon0
        return f"alone (no shuffler) is {local}-differentially private"

    @property
    def text(self) -> str:
        """The statement in words, one fact per line."""
        guarantee = f"({rounded_up(self.epsilon, 6)}, {written(self.delta)})-differential privacy"
        aside = f", {self.n_set_aside} more set aside" if self.n_set_aside else ""
        lines = [
            f"{guarantee} of real reports; {_SIMULATED}" if self.simulated else f"{guarantee}, certified",
            f"protocol    {self.protocol}, {self.randomizer}",
            f"rounds      {self.rounds} so far, {self.rounds_planned} planned",
            f"reports     {self.n_received} received, {self.n_planned} planned{aside}",
            f"neighbours  {self.neighbours}",
            f"adversary   {self.adversary}",
            f"assumption  {self.assumption}",
            f"one report  {self._alone}",
        ]
        if self.n_sized is not None:
            lines.insert(-1, f"noise       sized for {self.n_sized} honest people, each of whom adds a share")
        if self.weakened:
            missed = self.epsilon > self.epsilon_planned
            lines.insert(1, f"{'WEAKER THAN' if missed else 'FEWER REPORTS THAN'} PLANNED  {_weaker(self)}")
        if self.total_epsilon is not None:
            lines.append(
                f"ledger      all collections on {self.population!r} together: "
                f"({rounded_up(self.total_epsilon, 6)}, {self.total_delta:g})"
            )
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return _html.text(self.text)

    def to_dict(self) -> dict[str, Any]:
        """All fields, the assumption and whether the plan was missed, ready for JSON."""
        return asdict(self) | {"assumption": self.assumption, "weakened": self.weakened}

    def to_json(self) -> str:
        """``to_dict`` as text; null for what is infinite: nothing is protected."""
        finite = {key: None if value == math.inf else value for key, value in self.to_dict().items()}
        return json.dumps(finite, indent=2, allow_nan=False)


def _weaker(statement: PrivacyStatement) -> str:
    return (
        f"{statement.n_honest} honest reports instead of {statement.n_planned}: epsilon is "
        f"{rounded_up(statement.epsilon, 6)}; {written(statement.epsilon_planned)} was the target for "
        f"{statement.rounds_planned} round{'s' * (statement.rounds_planned > 1)}"
    )


def honest_reports(received: int, planned: int, honest_fraction: float, minimum_honest: int | None) -> int:
    """How many of the received reports hide somebody (the person in question is one of them).

    At most the planned number: who injects reports must not improve the statement."""
    share = _validate.probability("honest_fraction", honest_fraction, positive=True)
    counted = min(received, planned)
    if minimum_honest is None:
        return max(1, _validate.part_of(share, counted))
    if share != 1.0:
        raise ValueError(f"give one of {honest_fraction=} and {minimum_honest=}")
    return _validate.count("minimum_honest", minimum_honest, most=counted)


def state_privacy(
    protocol: Protocol,
    received: int,
    *,
    honest_fraction: float = 1.0,
    minimum_honest: int | None = None,
    rounds: int = 1,
    ledger: Ledger | None = None,
    reservation: str | None = None,
    batch: str | None = None,
    memory: tuple[str, int] | None = None,
    set_aside: int = 0,
    simulated: bool = False,
) -> PrivacyStatement:
    """The statement for the last of ``rounds`` collections, with ``received`` reports.

    Earlier rounds are taken to have had as many honest reports; a ledger knows better. With one, the
    ``reservation`` made there before the collection becomes a commitment of what really came in;
    ``batch`` names the reports, so that the same ones can be analyzed again, and ``memory`` is its place in
    the shuffler's memory."""
    honest = honest_reports(received, protocol.n, honest_fraction, minimum_honest)
    so_far = _validate.count("rounds", rounds, most=protocol.rounds)
    if (ledger is None) != (reservation is None):
        raise ValueError("a ledger needs a reservation and the other way round")
    population: str | None = None
    spent: float | None = None
    if ledger is not None and reservation is not None:
        population, spent = ledger.settle(reservation, protocol, honest=honest, batch=batch, memory=memory)
    alone = protocol.randomizer.facts()
    statement = PrivacyStatement(
        protocol=protocol.name,
        randomizer=repr(protocol.randomizer),
        epsilon0=alone.epsilon0.upper,
        epsilon=certified_epsilon(protocol.mechanism(honest=honest, rounds=so_far), protocol.delta),
        delta=protocol.delta,
        n_received=received,
        n_planned=protocol.n,
        n_honest=honest,
        rounds=so_far,
        rounds_planned=protocol.rounds,
        epsilon_planned=protocol.epsilon,
        population=population,
        total_epsilon=spent,
        total_delta=None if ledger is None else ledger.delta,
        delta0=alone.delta0,
        n_set_aside=set_aside,
        n_sized=protocol.randomizer.people if isinstance(protocol.randomizer, SplitAndMix) else None,
        simulated=simulated,
    )
    if statement.weakened:
        warnings.warn(_weaker(statement), WeakerPrivacyWarning, stacklevel=3)
    return statement
