"""Renyi divergence of the subsampled shuffle (Girgis, Data, Diggavi 2021).

A uniformly random ``cohort`` of ``population`` users runs an epsilon0-LDP randomizer and is shuffled;
substitution neighbours; g = cohort/population, E = e^epsilon0, c = floor((cohort-1)/(2 E)) + 1.

Theorem 1 (every randomizer, whole orders >= 2): the divergence of order L is at most

    log(1 + 4 C(L,2) g^2 (E-1)^2/(c E) + sum_{j=3}^L C(L,j) g^j j Gamma(j/2) (2 (E^2-1)^2/(c E^2))^{j/2}
          + ((1+x)^L - 1 - L x) e^{-(cohort-1)/(8 E)}) / (L - 1),      x = g (E - 1/E).

Theorem 2 (some randomizer: binary randomized response, all others hold the same value): with m ~
Bin(cohort, 1/(E+1)) and y = (E^2-1)/(cohort E) (m - cohort/(E+1)), for every order L > 1, it is at least

    log E[(1 + g y)^L]/(L - 1).

>>> at = dict(epsilon0=2.0, cohort=2000, population=60000, order=2)
>>> girgis_2021_lower(**at) < girgis_2021_upper(**at) < 1e-2
True
>>> round(girgis_2021_epsilon(2.0, 2000, 60000, rounds=1515, delta=1e-5), 5)
2.99977
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from shuffledp import _validate
from shuffledp._certified.binomial import log1p_minus, log_pmf
from shuffledp._certified.rounding import CALL, down, gamma, up
from shuffledp.literature.renyi import delta_from_renyi, epsilon_from_renyi, log1p_exp

_MOST_ORDER = 10_000  # speed
_MOST_SUMMED = 10**10  # speed: users; the sum of Theorem 2 then has four million terms
_LOG_ERROR = 1e-9  # soundness: of the logarithm of that sum
ORDERS = range(2, 257)
"""Those that are tried."""


def girgis_2021_upper(epsilon0: float, cohort: int, population: int, order: int) -> float:
    """Theorem 1: an upper bound of the Renyi divergence of a whole order >= 2, rounded up."""
    local, asked, share = _checked(epsilon0, cohort, population)
    whole = _validate.count("order", order, least=2, most=_MOST_ORDER)
    if local == 0.0:
        return 0.0
    return _upper(local, asked, share, whole)


def _upper(epsilon0: float, cohort: int, share: float, order: int) -> float:
    hidden = math.floor(down((cohort - 1) * 0.5 * math.exp(-epsilon0), operations=CALL + 1)) + 1
    log_gap = math.log(2.0 * math.sinh(epsilon0))  # E - 1/E
    log_second = math.log(16.0) + 2.0 * math.log(math.sinh(0.5 * epsilon0)) - math.log(hidden)
    log_moment = math.log(2.0 / hidden) + 2.0 * log_gap
    small = -(cohort - 1) * math.exp(-epsilon0) / 8.0
    j = np.arange(2, order + 1, dtype=np.float64)
    lgamma = np.array([math.lgamma(i) for i in range(1, order + 2)])  # at 1, 2, ..., order + 1
    half = np.array([math.lgamma(0.5 * i) for i in range(2, order + 1)])
    whole = j.astype(np.int64)
    log_choose = lgamma[order] - lgamma[whole] - lgamma[order - whole]
    log_share = j * math.log(share)
    moment = np.log(j) + half + 0.5 * j * log_moment
    moment[0] = log_second
    # Gaussian moments for a full crowd, and the chance of a small one.
    terms = np.concatenate([log_choose + log_share + moment, log_choose + log_share + j * log_gap + small])
    size = lgamma[order] + order * (abs(math.log(share)) + abs(log_moment) + log_gap + 2.0) - small
    top = float(terms.max())
    log_sum = top + math.log(float(np.exp(terms - top).sum())) + gamma(32) * (float(size) + order)
    return up(log1p_exp(log_sum) / (order - 1), operations=3 * CALL, tiny=0.0)


def girgis_2021_lower(epsilon0: float, cohort: int, population: int, order: float) -> float:
    """Theorem 2: what binary randomized response reaches at any order > 1, rounded down."""
    local, asked, share = _checked(epsilon0, cohort, population, most=_MOST_SUMMED)
    exponent = _validate.above("order", order, 1.0)
    lie, truth = math.exp(-local) / (1.0 + math.exp(-local)), 1.0 / (1.0 + math.exp(-local))
    mean, spread = asked * lie, math.sqrt(asked * lie * truth)
    # Terms are >= 0 (Bernoulli's inequality), so a window is a lower bound.
    low = max(0, math.floor(mean - 40.0 * spread - 60.0))
    high = min(asked, math.ceil(mean + 40.0 * spread + 60.0))
    m = np.arange(low, high + 1, dtype=np.float64)
    log_f, error = log_pmf(asked, m, lie, truth)
    # t > -1; rounded to -1 it is raised, which lowers its term.
    t = np.maximum(share * 2.0 * math.sinh(local) * ((m - mean) / asked), -1.0 + 2.0**-52)
    log_excess, doubt = _log_power_excess(t, exponent)
    terms = log_f - error + log_excess - doubt
    top = float(terms.max())
    if top == -math.inf:
        return 0.0
    with np.errstate(under="ignore"):
        log_sum = top + math.log(float(np.exp(terms - top).sum()))
    # t carries the rounding of the mean, a few units of it against a spread; terms grow like t^order.
    slack = _LOG_ERROR + gamma(16) * exponent * (1.0 + asked / (1.0 + spread))
    return down(log1p_exp(log_sum - slack) / (exponent - 1.0), operations=3 * CALL)


def _log_power_excess(t: np.ndarray, order: float) -> tuple[np.ndarray, np.ndarray]:
    """(log((1 + t)^order - 1 - order t), absolute error) for t > -1, order > 1; -inf at t = 0."""
    x = order * np.log1p(t)
    near = np.abs(x) < 0.5
    xs = np.where(near, x, 0.0)
    # e^x - 1 - x by its series (x^2/2 times a sum of 16 terms), plus order (log(1 + t) - t) < 0.
    series = np.ones_like(xs)
    for i in range(18, 2, -1):
        series = 1.0 + xs / i * series
    first, second = 0.5 * xs * xs * series, order * log1p_minus(np.where(near, t, 0.0))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        close = np.log(np.maximum(first + second, 0.0))
        # Far out in logarithms: (1 + t)^order may overflow.
        far = x + np.log1p(-(1.0 + order * t) * np.exp(-x))
        doubt = np.where(near, gamma(64) * (first - second) / (first + second), gamma(64) * np.abs(x))
    value = np.where(near, close, far)
    live = np.isfinite(value) & np.isfinite(doubt) & (doubt < 0.1)
    return np.where(live, value, -np.inf), np.where(live, doubt + gamma(1024), 0.0)


def girgis_2021_epsilon(
    epsilon0: float, cohort: int, population: int, rounds: int, delta: float, orders: Iterable[int] = ORDERS
) -> float:
    """epsilon at delta after ``rounds`` rounds: Theorem 1 times rounds, converted at the best order."""
    level = _validate.probability("delta", delta, positive=True)
    found = _composed(epsilon0, cohort, population, rounds, orders)
    return min(epsilon_from_renyi(divergence, order, level) for order, divergence in found)


def girgis_2021_delta(
    epsilon0: float, cohort: int, population: int, rounds: int, epsilon: float, orders: Iterable[int] = ORDERS
) -> float:
    """delta at epsilon after ``rounds`` rounds, likewise."""
    found = _composed(epsilon0, cohort, population, rounds, orders)
    return min(delta_from_renyi(divergence, order, epsilon) for order, divergence in found)


def _composed(
    epsilon0: float, cohort: int, population: int, rounds: int, orders: Iterable[int]
) -> Iterator[tuple[int, float]]:
    """(order, upper bound of the divergence of all rounds)."""
    count = _validate.count("rounds", rounds)
    for order in orders:
        each = girgis_2021_upper(epsilon0, cohort, population, order)
        yield order, up(count * each, operations=1, tiny=0.0)


def _checked(
    epsilon0: float, cohort: int, population: int, most: int = _validate.MAX_COUNT
) -> tuple[float, int, float]:
    local = _validate.epsilon0(epsilon0)
    everyone = _validate.count("population", population)
    asked = _validate.count("cohort", cohort, most=min(everyone, most))
    return local, asked, asked / everyone
