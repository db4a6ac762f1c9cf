"""Several messages a person: what the accountant sees of them, and how to plan for the smallest error.

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
from fractions import Fraction
from typing import Any, TypeVar

from shuffledp import _validate
from shuffledp._certified.mixing import mixing_distance
from shuffledp._randomness.polya import MOST_SCALE
from shuffledp.accounting.blanket_counts import BlanketCounts
from shuffledp.accounting.mechanism import OneRound, Shuffled
from shuffledp.accounting.mixed_sum import MixedSum, tabled
from shuffledp.accounting.mixed_vectors import MixedVectors
from shuffledp.collecting._gaussian import analytic_gaussian_sigma
from shuffledp.errors import NoCertificateError
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
_TRIES = 40  # speed: halvings for the scale of several rounds
_CLOSE = 5e-3  # speed: relative, of that scale or of random messages
_STEP = 1.6  # speed
_AS_GOOD = 1.1  # a ratio of variances

Counting = TypeVar("Counting", BlanketMessages, HashedMessages)


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


def mixed_tolerance(rounds: int) -> float:
    """How much larger than the exact epsilon the certified one may be: of one round it is a formula."""
    return 1e-4 if rounds == 1 else 1e-3


def one_round(randomizer: Any, honest: int) -> OneRound:
    """What the accountant sees of one round with so many honest people.

    Where some of those whom very wide noise was sized for are missing, nothing is certified."""
    if isinstance(randomizer, BlanketMessages | HashedMessages):
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


def best_shares(
    *,
    epsilon: float,
    delta: float,
    n: int,
    rounds: int,
    messages: int | None,
    levels: int | None,
    most: int = MOST_AUTOMATIC,
) -> SplitAndMix:
    """The shares with the smallest error at the certified (epsilon, delta) of ``rounds`` sums of n people."""
    each = epsilon / rounds
    finest = int(MOST_SCALE * each) or 1
    steps = levels or min(max(1, math.ceil(each * math.sqrt(n / (8.0 * _ROUNDING_SHARE)))), finest)
    scale = steps / each
    if scale > MOST_SCALE:
        raise ValueError(f"epsilon must be at least {steps / MOST_SCALE:.3g} a round for {steps} levels")
    # Room for twice as many people as planned, and for the noise.
    modulus = 1 << math.ceil(math.log2(2.0 * n * steps + 2.0 * _NOISE_REACH * scale + 2.0))
    number = messages or _fewest_messages(
        n, modulus, _DELTA_SHARE * delta / (rounds * (1.0 + math.exp(epsilon))), most
    )
    shares = SplitAndMix(levels=steps, scale=scale, people=n, messages=number, modulus=modulus)
    return _with_least_noise(shares, epsilon, delta, rounds)


def best_vectors(
    dimension: int,
    norm: str,
    *,
    epsilon: float,
    delta: float,
    n: int,
    rounds: int,
    messages: int | None,
    most: int = MOST_AUTOMATIC,
    noise: float | None = None,
) -> SplitVectors:
    """The shares of vectors with the smallest error at the certified (epsilon, delta) of ``rounds`` sums.

    ``noise``: deviations of it per largest distance, if that is known already."""
    factor = noise or analytic_gaussian_sigma(epsilon, delta) * math.sqrt(rounds)
    reach = 2.0 * factor * (math.sqrt(dimension) if norm == "linf" else 1.0)  # deviations of noise per level
    rounding = math.sqrt(n / (4.0 * _ROUNDING_SHARE)) / reach
    levels = math.ceil(max(rounding, _LENGTHENED * math.sqrt(dimension) if norm == "l2" else 1.0))
    deviation = factor * math.sqrt(SplitVectors(dimension, norm, levels, 1.0, 2, 1 << 40).farthest)
    modulus = 1 << math.ceil(math.log2(4.0 * n * levels + 2.0 * _NORMAL_REACH * deviation + 2.0))
    share = _DELTA_SHARE * delta / (rounds * (1.0 + math.exp(epsilon)))
    number = messages or _fewest_messages(n, modulus, share / dimension, most)
    if noise is not None:
        return SplitVectors(dimension, norm, levels, deviation**2 / n, number, modulus)
    for more in _MORE_NOISE:
        tried = SplitVectors(dimension, norm, levels, (more * deviation) ** 2 / n, number, modulus)
        mechanism = rounds * one_round(tried, n)
        if mechanism.upper_epsilon(delta=delta, tolerance=mixed_tolerance(rounds)) <= epsilon:
            return tried
    raise _too_few(number, n, delta, dimension * mixing_distance(n, number, modulus))


def _fewest_messages(n: int, modulus: int, distance: float, most: int = MOST_AUTOMATIC) -> int:
    for messages in range(_FEWEST, most + 1):
        if mixing_distance(n, messages, modulus) <= distance:
            return messages
    raise ValueError(
        f"n must be larger for at most max_messages = {most} messages of a number at this delta, got {n}; "
        "give messages= for more of them, or messages=1"
    )


def _too_few(messages: int, n: int, delta: float, distance: float) -> ValueError:
    return ValueError(
        f"messages must be more than {messages} for n = {n} and delta = {delta!r}: "
        f"so few reveal more than the sum, by a distance of {distance:.2g}"
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
        raise _too_few(shares.messages, shares.people, delta, more)
    low = 0.5 * high / math.sqrt(rounds)
    for _ in range(_TRIES if rounds > 1 else 0):
        if high - low <= _CLOSE * high:
            break
        middle = 0.5 * (low + high)
        found = meets(middle)
        best, low, high = (found, low, middle) if found is not None else (best, middle, high)
    return best


def best_counts(
    k: int, *, epsilon: float, delta: float, n: int, rounds: int, messages: int | None, most: int
) -> BlanketMessages | HashedMessages:
    """Messages that count k categories: each as it is, or hashed where that takes more than ``most``."""
    target: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "n": n, "rounds": rounds}
    try:
        return best_blanket(k, **target, messages=messages, most=most)
    except ValueError:
        if k < 3:
            raise
    best = best_hashed(k, **target, messages=messages or most)
    if messages is None:
        # With s random messages each, collisions add about 1/s to the variance: as few as err hardly more.
        few = math.ceil(1.0 / (_AS_GOOD * (1.0 + 1.0 / (most - 1.0)) - 1.0))
        with suppress(ValueError):
            return best_hashed(k, **target, messages=1 + min(few, most - 1))
    return best


def best_blanket(
    k: int,
    *,
    epsilon: float,
    delta: float,
    n: int,
    rounds: int,
    messages: int | None = None,
    most: int = MOST_AUTOMATIC,
) -> BlanketMessages:
    """The fewest random messages per category (they are its variance) that are certified; and messages.

    ``messages``: of each person, the own one included (default: as few as hold them, up to ``most``)."""

    def make(per_category: float) -> BlanketMessages | None:
        each = per_category * k / n
        slots = max(1, math.ceil(each)) if messages is None else messages - 1
        if slots > room or each > slots:
            return None
        return BlanketMessages(k=k, rate=each / slots, slots=slots)

    room = MOST_SLOTS if messages is not None else most - 1
    found = _least_noise(make, epsilon, delta, n, rounds, n * room / k)
    if found is None:
        raise ValueError(
            f"n must be larger, or messages more, to hide k = {k} categories at epsilon = {epsilon!r}; "
            f"got n = {n}, {messages=} (at most max_messages = {most} are taken without being asked for)"
        )
    return found


def best_hashed(
    k: int, *, epsilon: float, delta: float, n: int, rounds: int, messages: int
) -> HashedMessages:
    """The most buckets (collisions are n over them) that so many messages of each person hide."""

    def make(per_bucket: float) -> HashedMessages | None:
        room = min(n * (messages - 1) / per_bucket, float(MOST_BUCKETS), float(max(k, 3)))
        buckets = next((p for p in range(math.floor(room), 2, -1) if is_prime(p)), 0)
        if buckets * buckets < k:
            return None
        rate = min(1.0, per_bucket * buckets / (n * (messages - 1)))
        return HashedMessages(k=k, rate=rate, slots=messages - 1, buckets=buckets)

    fewest = next(p for p in range(max(math.isqrt(k - 1) + 1, 3), 2 * k + 4) if is_prime(p))
    most = n * (messages - 1) / fewest
    found = _least_noise(make, epsilon, delta, n, rounds, most) if messages > 1 else None
    if found is None:
        raise ValueError(
            f"n must be larger, or messages more, to hide k = {k} hashed categories at {epsilon=}, "
            f"got n = {n}, {messages=}"
        )
    return found


def _least_noise(
    make: Callable[[float], Counting | None], epsilon: float, delta: float, n: int, rounds: int, most: float
) -> Counting | None:
    """``make`` of nearly the fewest random messages per category (or bucket; ``most`` of them) that are
    certified; None if there are none."""

    def meets(noise: float) -> Counting | None:
        tried = make(noise)
        if tried is None:
            return None
        try:
            certified = (rounds * one_round(tried, n)).upper_epsilon(delta=delta)
            return tried if certified <= epsilon else None
        except NoCertificateError:
            return None

    high = min(16.0 / min(epsilon, 1.0) ** 2 * math.sqrt(rounds), most)  # a guess
    while (best := meets(high)) is None:
        if high >= most:
            return None
        high = min(high * _STEP, most)
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


def checked_most_messages(max_messages: Any) -> int:
    """The most messages that a plan may choose; None for twelve."""
    return (
        MOST_AUTOMATIC
        if max_messages is None
        else _validate.count("max_messages", max_messages, most=MOST_MESSAGES)
    )


def honest_people(n: Any, honest_fraction: Any) -> int:
    """That share of n people, rounded down: those whom a plan counts on."""
    share = Fraction(_validate.probability("honest_fraction", honest_fraction, positive=True))
    return max(1, math.floor(share * _validate.count("n", n)))
