"""Several messages a person: how to plan for the smallest error.

Histograms by blanket messages: the variance of a count is the number of random messages per category.

Sums by shuffled shares (split and mix): the total of n people's grid points is off by the common noise, of
scale b steps, and by everybody's rounding: in squared steps at most noise + n/4. The planner takes so many
levels that rounding is 5% of it, the smallest modulus that no sum outgrows, the noise that meets the target,
and the fewest messages that cost little of delta. Vectors likewise, coordinate by coordinate, with Gaussian
noise; in the l2 ball the levels are also so many that rounding hardly makes a vector longer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from shuffledp import _validate
from shuffledp._certified.mixing import mixing_distance
from shuffledp._randomness.noise_shares import MOST_SCALE
from shuffledp.collecting._accounted import Target, one_round, tolerance_for
from shuffledp.collecting._gaussian import analytic_gaussian_sigma
from shuffledp.randomizers._categories import Counts
from shuffledp.randomizers.blanket_messages import MOST_SLOTS, BlanketMessages
from shuffledp.randomizers.hashed_messages import MOST_BUCKETS, HashedMessages
from shuffledp.randomizers.hashing import is_prime
from shuffledp.randomizers.split_and_mix import MOST_MESSAGES, SplitAndMix
from shuffledp.randomizers.split_vectors import SplitVectors

MOST_AUTOMATIC = 12
"""Messages that a plan chooses at most if it is free to."""
_FEWEST = 3
_ROUNDING_SHARE = 0.05  # of the noise's variance
_DELTA_SHARE = 0.02  # of delta, for the mixing distance
_NOISE_REACH = 45.0  # scales; beyond, the noise has a probability of 2^-60
_NORMAL_REACH = 13.0  # deviations; beyond, Gaussian noise has a probability of 2^-120
_LENGTHENED = 64.0  # one over how much longer rounding makes a vector of the l2 ball
_MORE_NOISE = (1.0, 1.001, 1.005, 1.02, 1.1)  # speed: times the noise of a curator, until it is certified
_MOST_WRAPPED = 1e-9  # of a sum's probability to outgrow the modulus
_CLOSE = 5e-3  # speed: relative, of the scale of several rounds or of random messages
_STEP = 1.6  # speed
_AS_GOOD = 1.1  # a ratio of variances

Made = TypeVar("Made")


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
        """The sum of the grid points that people hold, with noise. ValueError if it may not fit."""
        people, shares = self.people(tally, None), self.randomizer
        if shares.wrapped(people) > _MOST_WRAPPED:
            raise ValueError(
                f"tally must be of fewer people, got {people}: their sum may outgrow the modulus "
                f"{shares.modulus} of a plan for {shares.people}"
            )
        return float(shares.total(tally, people))

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


def best_shares(
    target: Target, messages: int | None, levels: int | None, most: int = MOST_AUTOMATIC
) -> SplitAndMix:
    """The shares with the smallest error of a sum at the certified target."""
    each, n = target.epsilon / target.rounds, target.n
    finest = int(MOST_SCALE * each) or 1
    steps = levels or min(max(1, math.ceil(each * math.sqrt(n / (8.0 * _ROUNDING_SHARE)))), finest)
    scale = steps / each
    if scale > MOST_SCALE:
        raise ValueError(f"epsilon must be at least {steps / MOST_SCALE:.3g} a round for {steps} levels")
    # Room for twice as many people as planned, and for the noise.
    modulus = 1 << math.ceil(math.log2(2.0 * n * steps + 2.0 * _NOISE_REACH * scale + 2.0))
    number = messages or _fewest_messages(target, modulus, 1, most)
    shares = SplitAndMix(levels=steps, scale=scale, people=n, messages=number, modulus=modulus)
    return _with_least_noise(shares, target)


def best_vectors(
    dimension: int,
    norm: str,
    target: Target,
    messages: int | None,
    most: int = MOST_AUTOMATIC,
    noise: float | None = None,
) -> SplitVectors:
    """The shares of vectors with the smallest error at the certified target.

    ``noise``: deviations of it per largest distance, if that is known already."""
    n = target.n
    factor = noise or analytic_gaussian_sigma(target.epsilon, target.delta) * math.sqrt(target.rounds)
    reach = 2.0 * factor * (math.sqrt(dimension) if norm == "linf" else 1.0)  # deviations of noise per level
    rounding = math.sqrt(n / (4.0 * _ROUNDING_SHARE)) / reach
    levels = math.ceil(max(rounding, _LENGTHENED * math.sqrt(dimension) if norm == "l2" else 1.0))
    deviation = factor * math.sqrt(SplitVectors(dimension, norm, levels, 1.0, 2, 1 << 40).farthest)
    modulus = 1 << math.ceil(math.log2(4.0 * n * levels + 2.0 * _NORMAL_REACH * deviation + 2.0))
    number = messages or _fewest_messages(target, modulus, dimension, most)
    for more in _MORE_NOISE:
        tried = SplitVectors(dimension, norm, levels, (more * deviation) ** 2 / n, number, modulus)
        if noise is not None or target.is_met(tried):
            return tried
    raise _too_few(number, target, dimension * mixing_distance(n, number, modulus))


def _fewest_messages(target: Target, modulus: int, numbers: int, most: int) -> int:
    """So many that the mixing of each person's ``numbers`` costs a small share of delta."""
    distance = _DELTA_SHARE * target.delta / (target.rounds * (1.0 + math.exp(target.epsilon)) * numbers)
    for messages in range(_FEWEST, most + 1):
        if mixing_distance(target.n, messages, modulus) <= distance:
            return messages
    raise ValueError(
        f"n must be larger for at most max_messages = {most} messages of a number at this delta, got "
        f"{target.n}; give messages= for more of them, or messages=1"
    )


def _too_few(messages: int, target: Target, distance: float) -> ValueError:
    return ValueError(
        f"messages must be more than {messages} for n = {target.n} and delta = {target.delta!r}: "
        f"so few reveal more than the sum, by a distance of {distance:.2g}"
    )


def _with_least_noise(shares: SplitAndMix, target: Target) -> SplitAndMix:
    """The same with the smallest scale, nearly, that is certified."""

    def meets(scale: float) -> SplitAndMix | None:
        tried = replace(shares, scale=scale)
        return tried if target.is_met(tried) else None

    high = shares.scale * (1.0 + 2.0 * tolerance_for(target.rounds * one_round(shares, target.n)))
    best = meets(high)
    if best is None:
        more = mixing_distance(target.n, shares.messages, shares.modulus)
        raise _too_few(shares.messages, target, more)
    low = 0.5 * high / math.sqrt(target.rounds) if target.rounds > 1 else high
    return _least(meets, best, low, high)


def _least(meets: Callable[[float], Made | None], best: Made, low: float, high: float) -> Made:
    """What ``meets`` makes of nearly the least number from ``low`` to ``high``, of which it made ``best``."""
    while high - low > _CLOSE * high:
        middle = 0.5 * (low + high)
        found = meets(middle)
        best, low, high = (found, low, middle) if found is not None else (best, middle, high)
    return best


def best_counts(k: int, target: Target, messages: int | None, most: int) -> BlanketMessages | HashedMessages:
    """Messages that count k categories: each as it is, or hashed where that takes more than ``most``."""
    try:
        return best_blanket(k, target, messages, most)
    except ValueError:
        if k < 3:
            raise
    best = best_hashed(k, target, messages or most)
    if messages is None:
        # With s random messages each, collisions add about 1/s to the variance: as few as err hardly more.
        few = math.ceil(1.0 / (_AS_GOOD * (1.0 + 1.0 / (most - 1.0)) - 1.0))
        with suppress(ValueError):
            return best_hashed(k, target, 1 + min(few, most - 1))
    return best


def best_blanket(
    k: int, target: Target, messages: int | None = None, most: int = MOST_AUTOMATIC
) -> BlanketMessages:
    """The fewest random messages per category (they are its variance) that are certified; and messages.

    ``messages``: of each person, the own one included (default: as few as hold them, up to ``most``)."""

    def make(per_category: float) -> BlanketMessages | None:
        each = per_category * k / target.n
        slots = max(1, math.ceil(each)) if messages is None else messages - 1
        if slots > room or each > slots:
            return None
        return BlanketMessages(k=k, rate=each / slots, slots=slots)

    room = MOST_SLOTS if messages is not None else most - 1
    found = _least_noise(make, target, target.n * room / k)
    if found is None:
        raise ValueError(
            f"n must be larger, or messages more, to hide k = {k} categories at epsilon = "
            f"{target.epsilon!r}; got n = {target.n}, {messages=} (at most max_messages = {most} are taken "
            "without being asked for)"
        )
    return found


def best_hashed(k: int, target: Target, messages: int) -> HashedMessages:
    """The most buckets (collisions are n over them) that so many messages of each person hide."""
    slots = target.n * (messages - 1)

    def make(per_bucket: float) -> HashedMessages | None:
        room = min(slots / per_bucket, float(MOST_BUCKETS), float(max(k, 3)))
        buckets = next((p for p in range(math.floor(room), 2, -1) if is_prime(p)), 0)
        if buckets * buckets < k:
            return None
        rate = min(1.0, per_bucket * buckets / slots)
        return HashedMessages(k=k, rate=rate, slots=messages - 1, buckets=buckets)

    fewest = next(p for p in range(max(math.isqrt(k - 1) + 1, 3), 2 * k + 4) if is_prime(p))
    found = _least_noise(make, target, slots / fewest) if messages > 1 else None
    if found is None:
        raise ValueError(
            f"n must be larger, or messages more, to hide k = {k} hashed categories at epsilon = "
            f"{target.epsilon!r}, got n = {target.n}, {messages=}"
        )
    return found


def _least_noise(make: Callable[[float], Made | None], target: Target, most: float) -> Made | None:
    """``make`` of nearly the fewest random messages per category (or bucket; ``most`` of them) that are
    certified; None if there are none."""

    def meets(noise: float) -> Made | None:
        tried = make(noise)
        return tried if tried is not None and target.is_met(tried) else None

    high = min(16.0 / min(target.epsilon, 1.0) ** 2 * math.sqrt(target.rounds), most)  # a guess
    while (best := meets(high)) is None:
        if high >= most:
            return None
        high = min(high * _STEP, most)
    low = high / _STEP
    while (found := meets(low)) is not None:
        best, high, low = found, low, low / _STEP
    return _least(meets, best, low, high)


def checked_messages(messages: Any, target: Target) -> int | str:
    """A number of messages, or "auto"; then one if what it reveals alone is limited: of several it is not."""
    if messages == "auto":
        return 1 if target.is_limited else "auto"
    return _validate.count("messages", messages, most=MOST_MESSAGES)


def checked_most_messages(max_messages: Any) -> int:
    """The most messages that a plan may choose; None for twelve."""
    return (
        MOST_AUTOMATIC
        if max_messages is None
        else _validate.count("max_messages", max_messages, most=MOST_MESSAGES)
    )


def honest_people(n: Any, honest_fraction: Any) -> int:
    """That share of n people, rounded down: those whom a plan counts on."""
    share = _validate.probability("honest_fraction", honest_fraction, positive=True)
    return max(1, _validate.part_of(share, _validate.count("n", n)))
