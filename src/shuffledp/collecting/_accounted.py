"""What the accountant sees of a collection, and what may be promised of it: its certified upper end.

A few rounds of binary randomized response are analysed exactly, the worst case over everybody else's
data included. To a thousandth (the accountant's default) that takes minutes for a million people; to five
thousandths, seconds. The answer is an upper bound either way, and hardly larger (0.2 % in practice).

>>> from shuffledp import KaryRandomizedResponse
>>> daily = Shuffled(KaryRandomizedResponse(k=2, epsilon0=3.0), n=10_000)
>>> tolerance_for(daily), tolerance_for(30 * daily)
(0.001, 0.005)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from shuffledp import _validate
from shuffledp.accounting.blanket_counts import BlanketCounts
from shuffledp.accounting.mechanism import DEFAULT_TOLERANCE, Mechanism, OneRound, Shuffled
from shuffledp.accounting.mixed_sum import MixedSum, tabled
from shuffledp.accounting.mixed_vectors import MixedVectors
from shuffledp.errors import NoCertificateError
from shuffledp.randomizers.blanket_messages import SlottedMessages
from shuffledp.randomizers.split_and_mix import SplitAndMix
from shuffledp.randomizers.split_vectors import SplitVectors

PLAN = ("epsilon", "delta", "n", "rounds")
_BINARY_ROUNDS = 5e-3  # speed: relative tolerance
_MOST_USERS = 2**40
_MOST_ROUNDS = 2**20


@dataclass(frozen=True)
class Target:
    """The plan of a collection: (epsilon, delta) for ``rounds`` shuffles of n honest people's reports.

    ``most``: what one report may reveal alone (None, when it is made: anything)."""

    epsilon: float
    delta: float
    n: int
    rounds: int = 1
    most: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        level = _validate.probability("delta", self.delta, positive=True)
        if level == 1.0:
            raise ValueError(f"delta must be in (0, 1), got {self.delta!r}")
        most = math.inf if self.most is None else self.most
        checked = {
            "epsilon": _validate.positive("epsilon", self.epsilon),
            "delta": level,
            "n": _validate.count("n", self.n, most=_MOST_USERS),
            "rounds": _validate.count("rounds", self.rounds, most=_MOST_ROUNDS),
            "most": most if most == math.inf else _validate.sampled_epsilon0(most),
        }
        _validate.assign(self, **checked)

    @property
    def plan(self) -> dict[str, Any]:
        """As it is written."""
        return {name: getattr(self, name) for name in PLAN}

    @property
    def is_limited(self) -> bool:
        """Whether one report alone must protect people."""
        return math.isfinite(self.most)

    def mechanism(self, randomizer: Any) -> Mechanism:
        """All rounds with this randomizer."""
        return self.rounds * one_round(randomizer, self.n)

    def certified(self, randomizer: Any) -> float:
        """The epsilon of all rounds with this randomizer; infinite where none can be certified."""
        try:
            return certified_epsilon(self.mechanism(randomizer), self.delta)
        except NoCertificateError:
            return math.inf

    def is_met(self, randomizer: Any) -> bool:
        """Whether this randomizer is certified for (epsilon, delta)."""
        return self.certified(randomizer) <= self.epsilon


def one_round(randomizer: Any, honest: int) -> OneRound:
    """What the accountant sees of one round with so many honest people.

    Where some of those whom very wide noise was sized for are missing, nothing is certified."""
    if isinstance(randomizer, SlottedMessages):
        hashed = getattr(randomizer, "buckets", None)
        return BlanketCounts(n=honest, slots=randomizer.slots, clone=randomizer.clone, buckets=hashed)
    if isinstance(randomizer, SplitVectors):
        sent = {name: getattr(randomizer, name) for name in ("dimension", "farthest", "attained", "variance")}
        split = {"messages": randomizer.shares, "modulus": randomizer.modulus}
        return MixedVectors(n=honest, **sent, **split, noise_distance=randomizer.noise.distance)
    if isinstance(randomizer, SplitAndMix):
        sized = randomizer.people if honest < randomizer.people else None
        if sized is None or tabled(randomizer.levels, randomizer.scale):
            mixed = {name: getattr(randomizer, name) for name in ("levels", "scale", "messages", "modulus")}
            return MixedSum(n=honest, **mixed, noise_distance=randomizer.noise.distance, sized=sized)
    return Shuffled(randomizer, n=honest)


@lru_cache(maxsize=256)
def certified_epsilon(mechanism: Mechanism, delta: float) -> float:
    """The accountant's upper end, remembered: many collections have the same plan."""
    asked = tolerance_for(mechanism)
    return mechanism.upper_epsilon(delta=delta, tolerance=None if asked == DEFAULT_TOLERANCE else asked)


def tolerance_for(mechanism: Mechanism) -> float:
    """How much larger than the exact epsilon the certified one may be, relatively (see module)."""
    rounds = sum(count for _, count in mechanism.parts)
    if any(isinstance(part, MixedSum | MixedVectors) for part, _ in mechanism.parts):
        return 1e-4 if rounds == 1 else 1e-3  # of one round it is a formula
    binary = any(_is_binary(part) for part, _ in mechanism.parts)
    return _BINARY_ROUNDS if binary and rounds > 1 else DEFAULT_TOLERANCE


def _is_binary(part: Mechanism) -> bool:
    response = part.facts.response if isinstance(part, Shuffled) else None
    return response is not None and response.k == 2
