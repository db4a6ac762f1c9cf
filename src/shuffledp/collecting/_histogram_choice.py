"""Which randomizer for a histogram? The one with the smallest exact error at the certified target.

With p, q the support probabilities of a randomizer, the squared errors of all k estimated counts
together have the mean

    n (p (1 - p) + (k - 1) q (1 - q)) / (p - q)^2,

exactly and whatever the data: that is compared, each randomizer calibrated to (epsilon, delta) by the
accountant. Candidates come in the order of their reports' size, and a later one has to be better by
more than 2 %. Most need no calibration: a randomizer with the local epsilon0 at which it would begin to be
better is asked for its certified delta, and is out if that is too large or there is no certificate.
Randomizers that send a set of categories (one bit each) are candidates up to 4,096 categories. For two
categories randomized response is the only one: it alone is analysed exactly, and all others with its
epsilon0 are post-processings of it.
"""

from __future__ import annotations

from collections.abc import Callable

from shuffledp.accounting.calibration import calibrate
from shuffledp.accounting.mechanism import Shuffled
from shuffledp.collecting._response_choice import calibrated_response
from shuffledp.errors import NoCertificateError
from shuffledp.randomizers.frequency import FrequencyRandomizer
from shuffledp.randomizers.hadamard import HadamardResponse
from shuffledp.randomizers.hashing import OptimisedLocalHashing
from shuffledp.randomizers.kary import KaryRandomizedResponse
from shuffledp.randomizers.subset import SubsetSelection
from shuffledp.randomizers.unary import OptimisedUnaryEncoding, SymmetricUnaryEncoding

Kind = Callable[..., FrequencyRandomizer]

_AS_GOOD = 1.02
_MOST_BITS = 4096
_LARGEST_EPSILON0 = 36.0
_SYMBOLS: tuple[Kind, ...] = (KaryRandomizedResponse, HadamardResponse, OptimisedLocalHashing)
_SETS: tuple[Kind, ...] = (SubsetSelection, SymmetricUnaryEncoding, OptimisedUnaryEncoding)


def mean_variance(randomizer: FrequencyRandomizer) -> float:
    """Mean over the categories of the variance of an estimated count, per user: exact for all data."""
    p, q = randomizer.support_probability
    k = randomizer.k
    return (p * (1.0 - p) + (k - 1) * q * (1.0 - q)) / (p - q) ** 2 / k


def best_calibrated(
    k: int, epsilon: float, delta: float, n: int, rounds: int
) -> FrequencyRandomizer:
    """The best randomizer that is certified for (epsilon, delta) (see module)."""

    def calibrated(kind: Kind) -> FrequencyRandomizer:
        found = calibrate(kind, k=k, n=n, rounds=rounds, epsilon=epsilon, delta=delta)
        return kind(k=k, epsilon0=found.value)

    def is_certified(randomizer: FrequencyRandomizer) -> bool:
        one = Shuffled(randomizer, n=n)
        try:
            # One round costs less than all: most are out after that, quickly.
            deltas = ((i * one).upper_delta(epsilon=epsilon) for i in sorted({1, rounds}))
            return all(found <= delta for found in deltas)
        except NoCertificateError:
            return False

    best: FrequencyRandomizer = calibrated_response(k, epsilon, delta, n, rounds)
    for kind in candidates(k)[1:]:
        first = first_better(kind, k, mean_variance(best) / _AS_GOOD)
        if first is not None and is_certified(first):
            best = min(best, calibrated(kind), key=mean_variance)
    return best


def best_local(k: int, epsilon0: float) -> FrequencyRandomizer:
    """The best randomizer without a shuffler: every one with the same epsilon0."""
    made = [kind(k=k, epsilon0=epsilon0) for kind in candidates(k)]
    good = _AS_GOOD * min(map(mean_variance, made))
    return next(randomizer for randomizer in made if mean_variance(randomizer) <= good)


def candidates(k: int) -> tuple[Kind, ...]:
    """The randomizers that are compared for k categories, the smallest reports first."""
    if k == 2:
        return (KaryRandomizedResponse,)
    return _SYMBOLS + _SETS if k <= _MOST_BITS else _SYMBOLS


def first_better(kind: Kind, k: int, variance: float) -> FrequencyRandomizer | None:
    """The ``kind`` with the smallest epsilon0 whose ``mean_variance`` is at most ``variance``."""

    def of(epsilon0: float) -> FrequencyRandomizer:
        return kind(k=k, epsilon0=epsilon0)

    low, high = 0.0, _LARGEST_EPSILON0
    if mean_variance(of(high)) > variance:
        return None
    while high - low > 1e-4 * high and high > 1e-5:
        middle = 0.5 * (low + high)
        if mean_variance(of(middle)) <= variance:
            high = middle
        else:
            low = middle
    return of(high)
