"""Several messages a person: what the accountant sees of them, and how to plan for the smallest error.

Histograms by blanket messages: the variance of a count is the number of random messages per category.

Sums by shuffled shares (split and mix): the total of n people's grid points is off by the common noise, of
scale b steps, and by everybody's rounding: in squared steps at most noise + n/4. The planner takes so many
levels that rounding is 5% of it, the smallest modulus that no sum outgrows, the noise that meets the target,
and the fewest messages that cost little of delta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from shuffledp import _validate
from shuffledp._certified.mixing import mixing_distance
from shuffledp._randomness.polya import MOST_SCALE
from shuffledp.accounting.blanket_counts import BlanketCounts
from shuffledp.accounting.mechanism import OneRound, Shuffled
from shuffledp.accounting.mixed_sum import MixedSum
from shuffledp.errors import NoCertificateError
from shuffledp.randomizers._categories import Counts
from shuffledp.randomizers.blanket_messages import MOST_SLOTS, BlanketMessages
from shuffledp.randomizers.split_and_mix import MOST_MESSAGES, SplitAndMix

MOST_AUTOMATIC = 12
"""Messages that a plan chooses at most if it is free to."""
_FEWEST = 3
_ROUNDING_SHARE = 0.05  # of the noise's variance
_DELTA_SHARE = 0.02  # of delta, for the mixing distance
_NOISE_REACH = 45.0  # scales; beyond, the noise has a probability of 2^-60
_TRIES = 40  # speed: halvings for the scale of several rounds
_CLOSE = 5e-3  # speed: relative, of that scale or of random messages
_STEP = 1.6  # speed


@dataclass(frozen=True)
class SharesDecoder:
    """What the tally of all messages says about the sum; in grid steps."""

    randomizer: SplitAndMix

    def count(self, reports: Any) -> Counts:
        """The tally of messages."""
        return self.randomizer.tally(reports)

    def sent(self, tally: Counts) -> int:
        """How many messages were counted."""
        return int(tally[-1])

    def people(self, tally: Counts, n: int | None) -> int:
        """How many people sent them. ValueError if messages are missing: their sum then says nothing."""
        sent, each = self.sent(tally), self.randomizer.messages
        if sent % each or sent == 0 or (n is not None and n * each != sent):
            raise ValueError(
                f"tally must be of {each} messages of every person, got {sent}: if one is missing or added, "
                "the sum of all says nothing"
            )
        return sent // each

    def total(self, tally: Counts) -> float:
        """The sum of the grid points that people hold, with noise."""
        return float(self.randomizer.total(tally, self.people(tally, None)))

    def variance(self, tally: Counts) -> float:
        """Of ``total``, at most."""
        return self.worst_variance(self.people(tally, None))

    def worst_variance(self, n: int) -> float:
        """Of the total of n people."""
        return self.randomizer.variance(n) + 0.25 * n

    @property
    def ends(self) -> tuple[float, float]:
        """What one person can make the sum look like: whatever the modulus holds, either way."""
        return -0.5 * self.randomizer.modulus, 0.5 * self.randomizer.modulus


def mixed_tolerance(rounds: int) -> float:
    """How much larger than the exact epsilon the certified one may be: of one round it is a formula."""
    return 1e-4 if rounds == 1 else 1e-3


def one_round(randomizer: Any, honest: int) -> OneRound:
    """What the accountant sees of one round with so many honest people.

    Noise in shares was sized for a number of people; fewer add less, and nothing is certified."""
    if isinstance(randomizer, BlanketMessages):
        return BlanketCounts(n=honest, slots=randomizer.slots, clone=randomizer.clone)
    if isinstance(randomizer, SplitAndMix) and honest >= randomizer.people:
        mixed = {name: getattr(randomizer, name) for name in ("levels", "scale", "messages", "modulus")}
        return MixedSum(n=honest, **mixed, noise_distance=randomizer.noise.distance)
    return Shuffled(randomizer, n=honest)


def best_shares(
    *, epsilon: float, delta: float, n: int, rounds: int, messages: int | None, levels: int | None
) -> SplitAndMix:
    """The shares with the smallest error at the certified (epsilon, delta) of ``rounds`` sums of n people."""
    each = epsilon / rounds
    most = int(MOST_SCALE * each) or 1
    steps = levels or min(max(1, math.ceil(each * math.sqrt(n / (8.0 * _ROUNDING_SHARE)))), most)
    scale = steps / each
    if scale > MOST_SCALE:
        raise ValueError(f"epsilon must be at least {steps / MOST_SCALE:.3g} a round for {steps} levels")
    # Room for twice as many people as planned, and for the noise.
    modulus = 1 << math.ceil(math.log2(2.0 * n * steps + 2.0 * _NOISE_REACH * scale + 2.0))
    number = messages or _fewest_messages(
        n, modulus, _DELTA_SHARE * delta / (rounds * (1.0 + math.exp(epsilon)))
    )
    shares = SplitAndMix(levels=steps, scale=scale, people=n, messages=number, modulus=modulus)
    return _with_least_noise(shares, epsilon, delta, rounds)


def _fewest_messages(n: int, modulus: int, distance: float) -> int:
    for messages in range(_FEWEST, MOST_AUTOMATIC + 1):
        if mixing_distance(n, messages, modulus) <= distance:
            return messages
    raise ValueError(
        f"n must be larger for at most {MOST_AUTOMATIC} messages a person at this delta, got {n}; "
        "give messages= for more of them, or messages=1"
    )


def _with_least_noise(shares: SplitAndMix, epsilon: float, delta: float, rounds: int) -> SplitAndMix:
    """The same with the smallest scale, nearly, that is certified."""

    def meets(scale: float) -> SplitAndMix | None:
        tried = replace(shares, scale=scale)
        mechanism = rounds * one_round(tried, shares.people)
        return tried if mechanism.upper_epsilon(delta=delta, tolerance=tolerance) <= epsilon else None

    tolerance = mixed_tolerance(rounds)
    high = shares.scale * (1.0 + 2.0 * tolerance)
    best = meets(high)
    if best is None:
        more = mixing_distance(shares.people, shares.messages, shares.modulus)
        raise ValueError(
            f"messages must be more than {shares.messages} for n = {shares.people} and delta = {delta!r}: "
            f"so few reveal more than the sum, by a distance of {more:.2g}"
        )
    low = 0.5 * high / math.sqrt(rounds)
    for _ in range(_TRIES if rounds > 1 else 0):
        if high - low <= _CLOSE * high:
            break
        middle = 0.5 * (low + high)
        found = meets(middle)
        best, low, high = (found, low, middle) if found is not None else (best, middle, high)
    return best


def best_blanket(
    k: int, *, epsilon: float, delta: float, n: int, rounds: int, messages: int | None = None
) -> BlanketMessages:
    """The fewest random messages per category (they are its variance) that are certified; and messages.

    ``messages``: of each person, the own one included (default: as few as hold them, up to twelve)."""

    def meets(per_category: float) -> BlanketMessages | None:
        each = per_category * k / n
        slots = max(1, math.ceil(each)) if messages is None else messages - 1
        if slots > (MOST_AUTOMATIC - 1 if messages is None else MOST_SLOTS) or each > slots:
            return None
        tried = BlanketMessages(k=k, rate=each / slots, slots=slots)
        mechanism = rounds * one_round(tried, n)
        try:
            return tried if mechanism.upper_epsilon(delta=delta) <= epsilon else None
        except NoCertificateError:
            return None

    high = 16.0 / min(epsilon, 1.0) ** 2 * math.sqrt(rounds)  # a guess
    while (best := meets(high)) is None:
        high *= _STEP
        if high * k > n * MOST_SLOTS:
            raise ValueError(
                f"n must be larger, or messages more, to hide k = {k} categories at epsilon = {epsilon!r}; "
                f"got n = {n}, {messages=} (at most {MOST_AUTOMATIC} are taken without being asked for)"
            )
    low = high / _STEP
    while (found := meets(low)) is not None:
        best, high, low = found, low, low / _STEP
    while high - low > _CLOSE * high:
        middle = 0.5 * (low + high)
        found = meets(middle)
        best, low, high = (found, low, middle) if found is not None else (best, middle, high)
    return best


def checked_messages(messages: Any) -> int | str:
    """A number of messages, or "auto"."""
    if messages == "auto":
        return "auto"
    return _validate.count("messages", messages, most=MOST_MESSAGES)
