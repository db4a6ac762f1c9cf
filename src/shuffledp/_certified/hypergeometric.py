"""How many of n people drawn without replacement are honest: tails of the hypergeometric law, enclosed.

K honest ones among ``drawn`` of ``population``, of whom ``honest`` are. Ratios of neighbouring probabilities
are quotients of whole numbers; their products from the mode on, divided by their sum, are the law: five
roundings a step. Where the law is too wide for that, Chernoff's bound of a binomial variable holds for K, too
(Hoeffding 1963):

    P(K >= k) <= e^(-n KL(k/n, h))  for k >= n h,   and the same below.

>>> low, high = at_least(10, 6, 5, np.array([0, 3, 6]))
>>> bool(np.all(low <= [1.0, 186 / 252, 0.0]) and np.all(high >= [1.0, 186 / 252, 0.0]))
True
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from shuffledp._certified.rounding import CALL, Floats, down, gamma, up

_WIDEST = 1 << 17  # speed: values of K that are looked at one by one
_DEVIATIONS = 60.0  # speed: so far out weights underflow; that they do is checked


def deviation(population: int, honest: int, drawn: int) -> float:
    """The standard deviation of K, about."""
    share = honest / population
    return math.sqrt(drawn * share * (1.0 - share) * (population - drawn) / max(population - 1, 1))


def at_least(
    population: int, honest: int, drawn: int, counts: npt.NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """(lower, upper) bounds of P(K >= count) for every count."""
    least, most = max(0, drawn - (population - honest)), min(drawn, honest)
    if min(most - least, 2.0 * _DEVIATIONS * deviation(population, honest, drawn)) < _WIDEST:
        found = _tails(population, honest, drawn)
        if found is not None:
            return _summed(*found, counts)
    bounds = np.array([_chernoff(count, drawn, honest / population) for count in counts.tolist()])
    return bounds[:, 0], bounds[:, 1]


def _summed(first: int, tail: Floats, counts: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    at = np.clip(counts - first, 0, tail.size - 1)
    share = tail[at] / tail[0]
    # Five roundings a step away from the mode, in numerator and denominator, and the sums.
    units = 12 * tail.size + 8
    low = np.where(counts <= first, 1.0, down(share, operations=units))
    high = np.where(counts <= first, 1.0, np.minimum(up(share, operations=units), 1.0))
    return low, high  # what lies outside is less than TINY, which the steps add


@lru_cache(maxsize=8)
def _tails(population: int, honest: int, drawn: int) -> tuple[int, Floats] | None:
    """(first k, sums of weights from k on), where the weights are proportional to the law; zero at the end.

    None if not all weights that are left out underflow: the law is log-concave, so these are smaller."""
    least, most = max(0, drawn - (population - honest)), min(drawn, honest)
    reach = math.ceil(_DEVIATIONS * deviation(population, honest, drawn)) + 1000
    mode = (drawn + 1) * (honest + 1) // (population + 2)
    first, last = max(least, mode - reach), min(most, mode + reach)
    k = np.arange(first, last, dtype=np.float64)
    others = float(population - honest - drawn)
    ratio = (honest - k) * (drawn - k) / ((k + 1.0) * (others + k + 1.0))
    with np.errstate(under="ignore"):
        right = np.cumprod(ratio[mode - first :])
        left = np.cumprod(1.0 / ratio[: mode - first][::-1])[::-1]
    weight = np.concatenate([left, [1.0], right])
    if (first > least and weight[0] > 0.0) or (last < most and weight[-1] > 0.0):
        return None
    return first, np.append(np.cumsum(weight[::-1])[::-1], 0.0)


def _chernoff(count: int, drawn: int, share: float) -> tuple[float, float]:
    """For wide laws: one side is bounded, the other is trivial."""
    k = count / drawn
    if not (0.0 < k < 1.0 and share < 1.0):
        return (1.0, 1.0) if count <= 0 else (0.0, 1.0)
    terms = k * math.log(k / share), (1.0 - k) * math.log((1.0 - k) / (1.0 - share))
    exponent = drawn * (sum(terms) - gamma(4 * CALL) * (abs(terms[0]) + abs(terms[1])))
    bound = min(1.0, up(math.exp(-max(exponent, 0.0)), operations=CALL + 4))
    return (0.0, bound) if k > share else (down(1.0 - bound, operations=1), 1.0)
