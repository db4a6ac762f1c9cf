"""Sums and means of numbers in [low, high].

Balle, Bell, Gascon, Nissim 2019, Algorithms 2 and 3: randomized rounding to levels + 1 grid points, k-ary
randomized response on them, debiasing. The number of levels and the noise minimise the exact worst-case
mean squared error at the certified (epsilon, delta) (see ``collecting._choice``), instead of the paper's
asymptotic constants. Noise on a grid (``DiscreteLaplace``, ``DiscreteGaussian``) can be given instead. The
mean of q(x) for a statistical query q into [0, 1] (their Corollary 4.1.1): a ``MeanProtocol`` on the q(x).

Rounding is exact: a number the share f of the way between two grid points goes up if a random 64-bit
word is below 2^64 f. It costs no privacy: a mixture of inputs is never worse than the inputs.

>>> ages = MeanProtocol(low=0, high=100, epsilon=1.0, delta=1e-6, n=10_000)
>>> result = ages.analyze(ages.randomize([20.0, 30.0, 70.0, 80.0] * 2_500))
>>> abs(result.value - 50.0) < 10 * result.standard_error
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import CALL, Floats, down
from shuffledp._randomness.uniform import rounded_at_random
from shuffledp._randomness.words import source
from shuffledp.collecting._accounted import Target
from shuffledp.collecting._choice import MOST_LEVELS, best_levels, calibrated_response
from shuffledp.collecting._domain import OUTSIDE, numbers_in
from shuffledp.collecting._fixed_point import FixedPointDecoder
from shuffledp.collecting._protocol import Protocol, require_target
from shuffledp.collecting._several_messages import (
    SharesDecoder,
    best_shares,
    checked_messages,
    checked_most_messages,
    honest_people,
)
from shuffledp.collecting.result import NumberResult
from shuffledp.collecting.statement import PrivacyStatement
from shuffledp.randomizers._categories import Counts
from shuffledp.randomizers._grid import GridRandomizer, interval
from shuffledp.randomizers.kary import KaryRandomizedResponse
from shuffledp.randomizers.registry import canonical
from shuffledp.randomizers.split_and_mix import SplitAndMix

_PREFERENCES = ("error", "messages", "robustness")


@dataclass(frozen=True, init=False)
class NumberProtocol(Protocol):
    """What sums and means share.

    ``levels``: grid steps between low and high (default: the best number). ``outside``: "error", or
    "clip" to move numbers beyond an end to that end. Missing values are always an error.

    ``messages``: 1, or several shares per person that reveal hardly more than the noisy sum, whose error is
    nearly that of a trusted curator ("auto": whichever errs less). Then everything rests on the shuffler: one
    person's messages together reveal the number, a lost or added message spoils the whole sum, and one
    dishonest person can move it anywhere (``one_dishonest`` says how far). ``max_messages``: the most that
    "auto" takes (default: 12). ``prefer``: what it chooses by, the smaller "error", the fewest "messages", or
    "robustness" to one dishonest person.

    ``n`` counts the honest people that the noise is sized for; with ``honest_fraction`` it is that share of
    the given n, rounded down: fewer honest people, more noise of each."""

    needs_all: ClassVar[bool] = True
    low: float
    high: float
    epsilon: float
    delta: float
    n: int
    levels: int
    randomizer: KaryRandomizedResponse | GridRandomizer | SplitAndMix
    rounds: int
    outside: str

    def __init__(
        self,
        low: float,
        high: float,
        epsilon: float,
        delta: float,
        n: int,
        levels: int | None = None,
        randomizer: KaryRandomizedResponse | GridRandomizer | SplitAndMix | None = None,
        rounds: int = 1,
        outside: str = "error",
        messages: int | str = 1,
        max_epsilon0: float | None = None,
        max_messages: int | None = None,
        prefer: str = "error",
        honest_fraction: float = 1.0,
    ) -> None:
        target = Target(epsilon, delta, honest_people(n, honest_fraction), rounds, most=max_epsilon0)
        domain = self._described_domain({"low": low, "high": high, "outside": outside})
        number, several = checked_messages(messages, target), checked_most_messages(max_messages)
        preferred = _validate.one_of("prefer", prefer, _PREFERENCES)
        if randomizer is None:
            randomizer = _best_randomizer(levels, number, several, preferred, target)
        elif levels is not None or messages != 1:
            raise ValueError(f"{levels=} and {messages=} are a matter of the randomizer when that is given")
        self._assign(**domain, **target.plan)
        self._accept(canonical(randomizer))
        require_target(self, target.most)

    @property
    def step(self) -> float:
        """The distance of neighbouring grid points."""
        return (self.high - self.low) / self.levels

    @cached_property
    def decoder(self) -> FixedPointDecoder | SharesDecoder:
        """From reports to numbers, in grid steps."""
        if isinstance(self.randomizer, SplitAndMix):
            return SharesDecoder(self.randomizer)
        return FixedPointDecoder.of(self.randomizer)

    def encode(
        self, column: Any, *, rng: np.random.Generator | None = None, show_values: bool = False
    ) -> Any:
        """The randomizer's inputs: numbers for noise on a grid, else grid points (rounded at random)."""
        numbers = self.numbers(column, show_values=show_values)
        if isinstance(self.randomizer, GridRandomizer):
            return numbers
        place = np.clip((numbers - self.low) / (self.high - self.low) * self.levels, 0, self.levels)
        return rounded_at_random(place, source(rng))

    def numbers(self, column: Any, *, show_values: bool = False) -> Floats:
        """The column as numbers in [low, high]; DomainError for what is none."""
        return numbers_in(column, self.low, self.high, clip=self.outside == "clip", show_values=show_values)

    def _tally(self, reports: Any) -> Counts:
        return self.decoder.count(reports)

    @property
    def worst_standard_error(self) -> float:
        """Of the result for n reports, for the worst possible data: exact."""
        error = self.step * float(np.sqrt(self.decoder.worst_variance(self.n)))
        return error * self.scale(self.n)

    @property
    def one_dishonest(self) -> float:
        """How far one dishonest person can move the result for n reports."""
        return self._reach(self.n)

    @property
    def least_standard_error(self) -> float:
        """What no protocol of one message per person can go below at this (epsilon, delta), worst data."""
        least = least_single_message_error(self.n, self.epsilon, self.delta)
        return (self.high - self.low) * least * self.scale(self.n)

    @staticmethod
    def scale(n: int) -> float:
        """What a sum of n numbers is multiplied with."""
        return 1.0

    def people_in(self, tally: Counts) -> int:
        return self.people(self.decoder.sent(tally))

    def most_in_tally(self, n: int) -> int:
        return n if self.messages == 1 else n * self.messages << 32

    def estimate(self, tally: Counts, n: int) -> float:
        return (n * self.low + self.step * self.decoder.total(tally)) * self.scale(n)

    if TYPE_CHECKING:

        def analyze(self, reports: Any = None, **settings: Any) -> NumberResult: ...

    def _check(self, tally: Counts, n: int) -> None:
        self.decoder.people(tally, n)
        self.decoder.total(tally)

    def _result(self, tally: Counts, n: int, privacy: PrivacyStatement, confidence: float) -> NumberResult:
        scale = self.scale(n)
        error = self.step * float(np.sqrt(self.decoder.variance(tally))) * scale
        ends = (n * scale * self.low, n * scale * self.high)
        found = (self.name, self.estimate(tally, n), error, n, ends, self._reach(n))
        return NumberResult(*found, privacy, confidence, self._noise_scale * scale)

    @property
    def _noise_scale(self) -> float:
        """Of Laplace noise in a sum of shares; zero where the error is a sum of many."""
        return self.step * self.randomizer.scale if isinstance(self.randomizer, SplitAndMix) else 0.0

    def _reach(self, n: int) -> float:
        """How far one dishonest report can move the estimate of n: in the place of another, or beside it."""
        least, most = self._decoded_ends()
        return max(most - least, most, -least)

    def _decoded_ends(self) -> tuple[float, float]:
        """What one report can stand for, at most and at least."""
        least, most = self.decoder.ends
        return self.low + self.step * least, self.low + self.step * most

    def _domain(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high, "outside": self.outside}

    @classmethod
    def _described_domain(cls, description: dict[str, Any]) -> dict[str, Any]:
        low, high = interval(description["low"], description["high"])
        outside = _validate.one_of("outside", description["outside"], OUTSIDE)
        return {"low": low, "high": high, "outside": outside}

    def _accept(self, randomizer: Any) -> None:
        levels = _checked_levels(randomizer, (self.low, self.high))
        self._assign(randomizer=randomizer, levels=levels)


class SumProtocol(NumberProtocol):
    """The sum of everybody's numbers."""

    name: ClassVar[str] = "sum"


class MeanProtocol(NumberProtocol):
    """The mean of everybody's numbers: their sum divided by the number of reports."""

    name: ClassVar[str] = "mean"

    @staticmethod
    def scale(n: int) -> float:
        return 1.0 / n

    def _reach(self, n: int) -> float:
        least, most = self._decoded_ends()
        return (most - least) / n


def least_single_message_error(n: int, epsilon: float, delta: float) -> float:
    """The least root mean squared error that any (epsilon, delta)-DP protocol with one message per person can
    have for the sum of n numbers in [0, 1], worst data: a lower bound (Balle et al. 2019, Theorem 4.2). With
    their proof's constants, for the best whole K >= 2 among some,

        error^2 >= n K min(e^-epsilon/(8 K^3), (1 - 1/K^2)(1/2 - delta)/(48 n));    0 from delta = 1/2 on.

    >>> round(least_single_message_error(10**6, epsilon=1.0, delta=1e-6), 3)
    1.307
    """
    people, e = _validate.count("n", n), float(_validate.non_negative("epsilon", epsilon).reshape(()))
    slack = 0.5 - _validate.probability("delta", delta)
    K = np.unique(np.geomspace(2.0, 2.0 + 10.0 * people ** (1.0 / 3.0), 400).round())
    spread = math.exp(-e) / (8.0 * K**3)
    square = people * K * np.minimum(spread, (1.0 - K**-2.0) * slack / (48.0 * people))
    return down(math.sqrt(max(float(square.max()), 0.0)), operations=2 * CALL + 8) if slack > 0.0 else 0.0


def _best_randomizer(
    levels: int | None, messages: int | str, most: int, prefer: str, target: Target
) -> KaryRandomizedResponse | SplitAndMix:
    """One message or several, as asked for; "auto": whichever has the smaller error, exactly. The fewest
    messages, and the least that one person can do, is always one."""
    if messages == 1 or (messages == "auto" and prefer != "error"):
        return _best_response(levels, target)
    try:
        number = None if isinstance(messages, str) else messages
        shares = best_shares(target, number, levels, most)
    except ValueError:
        if isinstance(messages, str):  # a crowd too small to mix
            return _best_response(levels, target)
        raise
    if messages == "auto":
        one = _best_response(levels, target)
        error = FixedPointDecoder.of(one).worst_variance(target.n) / (one.k - 1) ** 2
        if error <= SharesDecoder(shares).worst_variance(target.n) / shares.levels**2:
            return one
    return shares


def _best_response(levels: int | None, target: Target) -> KaryRandomizedResponse:
    """The certified randomized response on levels + 1 points, with the best ``levels`` if not given."""
    if levels is None:
        return calibrated_response(best_levels(target) + 1, target)
    return calibrated_response(_validate.count("levels", levels, most=MOST_LEVELS) + 1, target)


def _checked_levels(randomizer: Any, ends: tuple[float, float]) -> int:
    if isinstance(randomizer, SplitAndMix):
        return randomizer.levels
    if isinstance(randomizer, GridRandomizer):
        if (randomizer.low, randomizer.high) != ends:
            raise ValueError(f"randomizer must be on [low, high] = {ends}, got {randomizer!r}")
        return randomizer.levels
    if not isinstance(randomizer, KaryRandomizedResponse):
        raise TypeError(f"randomizer must be a KaryRandomizedResponse or noise, got {randomizer!r}")
    _validate.sampled_epsilon0(randomizer.epsilon0)
    return _validate.count("levels", randomizer.k - 1, most=MOST_LEVELS)
