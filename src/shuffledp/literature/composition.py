"""Homogeneous composition: ``rounds`` adaptive rounds, each (epsilon, delta)-DP, nothing else known.

Upper bounds; any neighbouring relation under which every round is (epsilon, delta)-DP.

Advanced composition (Dwork, Rothblum, Vadhan 2010, in the form of Dwork and Roth 2014, Theorem 3.20):
with delta' = total delta - rounds delta > 0,

    total epsilon = epsilon sqrt(2 rounds log(1/delta')) + rounds epsilon (e^epsilon - 1).

Optimal composition (Kairouz, Oh, Viswanath 2015, Theorem 3.3): every round is dominated by one that
gives the input away with probability delta and otherwise is binary randomized response, so with J ~
Bin(rounds, e^epsilon/(e^epsilon + 1)) truthful answers and loss (2 J - rounds) epsilon,

    total delta = 1 - (1 - delta)^rounds (1 - E[(1 - e^{total epsilon - (2 J - rounds) epsilon})_+]).

Its closed form (Theorem 3.4): with 1 - delta' = (1 - total delta)/(1 - delta)^rounds, the smallest of
rounds epsilon and rounds epsilon tanh(epsilon/2) + epsilon sqrt(2 rounds log x), for x = 1/delta' and
x = e + epsilon sqrt(rounds)/delta'.

The expectation is a sum of positive terms, windowed 12 standard deviations wide; what lies outside
is added as if its loss were infinite.

>>> round(kairouz_oh_viswanath_epsilon(epsilon=0.1, delta=0.0, rounds=100, total_delta=1e-6), 4)
4.7746
>>> round(dwork_rothblum_vadhan_epsilon(epsilon=0.1, delta=0.0, rounds=100, total_delta=1e-6), 4)
6.3082
"""

from __future__ import annotations

import math

import numpy as np

from shuffledp import _validate
from shuffledp._certified.binomial import log_pmf, log_upper_tail
from shuffledp._certified.rounding import CALL, Floats, capped, down, gamma, up
from shuffledp.literature._solve import smallest_below

_MOST_ROUNDS = 10**10  # speed: a window of 24 standard deviations then has a million terms
_OPERATIONS = 32  # soundness: no form, and no exponent of one, costs more
_EXPONENT = 800  # soundness: units that e costs, to the power of a rounded logarithm of a double


def dwork_rothblum_vadhan_epsilon(epsilon: float, delta: float, rounds: int, total_delta: float) -> float:
    """Total epsilon by advanced composition; inf unless total_delta > rounds delta."""
    each, leak, count, level = _checked(epsilon, delta, rounds, total_delta)
    slack = down(level - up(count * leak, operations=1, tiny=0.0), operations=1, tiny=0.0)
    if slack <= 0.0:
        return math.inf
    spread = each * math.sqrt(2.0 * count * -math.log(slack))
    return up(spread + count * each * math.expm1(each), _OPERATIONS, tiny=0.0)


def dwork_rothblum_vadhan_delta(epsilon: float, delta: float, rounds: int, total_epsilon: float) -> float:
    """Total delta by advanced composition, at most 1 (its value if total_epsilon is below the drift)."""
    each, leak, count, _ = _checked(epsilon, delta, rounds, 1.0)
    target = _validate.positive("total_epsilon", total_epsilon)
    if each == 0.0:
        return min(1.0, up(count * leak, _OPERATIONS, tiny=0.0))
    excess = max(target - up(count * each * math.expm1(each), _OPERATIONS), 0.0) / each
    slack = math.exp(-capped(down(excess * excess / (2.0 * count), _OPERATIONS)))
    return min(1.0, up(count * leak + slack, _OPERATIONS, tiny=0.0))


def kairouz_oh_viswanath_delta(epsilon: float, delta: float, rounds: int, total_epsilon: float) -> float:
    """Total delta by optimal composition."""
    each, leak, count, _ = _checked(epsilon, delta, rounds, 1.0)
    target = float(_validate.non_negative("total_epsilon", total_epsilon).reshape(()))
    return _optimal_delta(each, leak, count, target)


def kairouz_oh_viswanath_epsilon(epsilon: float, delta: float, rounds: int, total_delta: float) -> float:
    """Total epsilon by optimal composition, to 1e-9; inf if no finite one has the total delta."""
    each, leak, count, level = _checked(epsilon, delta, rounds, total_delta)
    if _optimal_delta(each, leak, count, 0.0) <= level:
        return 0.0
    top = up(count * each, operations=1, tiny=0.0)
    if _optimal_delta(each, leak, count, top) > level:
        return math.inf
    return smallest_below(lambda e: _optimal_delta(each, leak, count, e), level, top)


def kairouz_oh_viswanath_closed_epsilon(
    epsilon: float, delta: float, rounds: int, total_delta: float
) -> float:
    """Total epsilon by the closed form of optimal composition; inf if no finite one has the total delta."""
    each, leak, count, level = _checked(epsilon, delta, rounds, total_delta)
    # 1 - delta' = e^{-room}, room = -log(1 - total delta) + rounds log(1 - delta), rounded so that delta' is
    # small; the last step also covers the rounding of 1/slack.
    wanted = down(-math.log1p(-level), CALL, tiny=0.0) if level < 1.0 else math.inf
    room = wanted - up(-count * math.log1p(-leak), CALL + 1, tiny=0.0) if leak < 1.0 else -math.inf
    if not room > 0.0:
        return math.inf
    slack = down(-math.expm1(-room), CALL + 4, tiny=0.0)
    x = min(1.0 / slack, math.e + each * math.sqrt(count) / slack)
    drift = count * each * math.tanh(0.5 * each)
    spread = each * math.sqrt(2.0 * count * math.log(x))
    return up(min(count * each, drift + spread), _OPERATIONS, tiny=0.0)


def _checked(
    epsilon: float, delta: float, rounds: int, total_delta: float
) -> tuple[float, float, int, float]:
    return (
        _validate.epsilon0(epsilon, "epsilon"),
        _validate.probability("delta", delta),
        _validate.count("rounds", rounds, most=_MOST_ROUNDS),
        _validate.probability("total_delta", total_delta, positive=True),
    )


def _optimal_delta(epsilon: float, delta: float, rounds: int, total_epsilon: float) -> float:
    hidden = _binary_delta(epsilon, rounds, total_epsilon)
    if delta == 1.0 or hidden >= 1.0:
        return 1.0
    # 1 - (1 - delta)^rounds (1 - hidden), without cancellation.
    log_lost = up(-rounds * math.log1p(-delta) - math.log1p(-hidden), CALL + 2, tiny=0.0)
    return min(1.0, up(-math.expm1(-log_lost), CALL, tiny=0.0))


def _binary_delta(epsilon: float, rounds: int, total_epsilon: float) -> float:
    """Upper bound of E[(1 - e^{total_epsilon - (2 J - rounds) epsilon})_+]."""
    if epsilon == 0.0:
        return 0.0
    lie = math.exp(-epsilon) / (1.0 + math.exp(-epsilon))
    truth = 1.0 / (1.0 + math.exp(-epsilon))
    slack = gamma(16) * (rounds * epsilon + total_epsilon)
    first = math.ceil(0.5 * (rounds + (total_epsilon - slack) / epsilon))
    if first > rounds or rounds * epsilon - total_epsilon <= -slack:
        return 0.0
    mean, spread = rounds * truth, math.sqrt(rounds * truth * lie)
    low = max(0, first, math.floor(mean - 12.0 * spread - 60.0))
    high = min(rounds, math.ceil(max(low, mean) + 12.0 * spread + 60.0))
    j = np.arange(low, high + 1, dtype=np.float64)
    loss = (2.0 * j - rounds) * epsilon - total_epsilon + slack
    log_f, error = log_pmf(rounds, j, truth, lie)
    with np.errstate(under="ignore"):
        inside = float((np.exp(log_f + error) * -np.expm1(-np.maximum(loss, 0.0))).sum())
    outside = _tail(rounds, np.array([high + 1.0]), truth, lie)
    if low > max(0, first):
        outside += _tail(rounds, np.array([rounds - low + 1.0]), lie, truth)
    # As many terms as there are, each two calls and a product, or a tail.
    return min(1.0, up(inside + outside, operations=j.size + _EXPONENT + _OPERATIONS))


def _tail(n: int, a: Floats, p: float, q: float) -> float:
    """Upper bound of Pr[Bin(n, p) >= a] beyond the mean."""
    if a[0] > n:
        return 0.0
    log_tail, error = log_upper_tail(n, a, p, q)
    return math.exp(float(log_tail[0] + error[0]))
