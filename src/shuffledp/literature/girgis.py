"""Renyi divergence of the subsampled shuffle (Girgis, Data, Diggavi 2021).

A uniformly random ``cohort`` of ``population`` users runs an epsilon0-LDP randomizer and is shuffled;
substitution neighbours; g = cohort/population, E = e^epsilon0, c = floor((cohort-1)/(2 E)) + 1.

Theorem 1 (every randomizer, whole orders >= 2): the divergence of order L is at most

    log(1 + 4 C(L,2) g^2 (E-1)^2/(c E) + sum_{j=3}^L C(L,j) g^j j Gamma(j/2) (2 (E^2-1)^2/(c E^2))^{j/2}
          + ((1+x)^L - 1 - L x) e^{-(cohort-1)/(8 E)}) / (L - 1),      x = g (E - 1/E).

Theorem 2 (some randomizer: binary randomized response, all others hold the same value): with m ~
Bin(cohort, 1/(E+1)) and y = (E^2-1)/(cohort E) (m - cohort/(E+1)), for every order L > 1, it is at least

    log E[(1 + g y)^L]/(L - 1).

Theorem 1 is Lemma 2 (subsampling) with Theorem 4's bound of the ternary divergence, which comes from the
special case of equal data (Theorem 6 by Corollary 1 and Lemma 7) through Theorem 5: each is here as well.
Theorem 3 is the trade-off with convergence.

>>> at = dict(epsilon0=2.0, cohort=2000, population=60000, order=2)
>>> girgis_2021_lower(**at) < girgis_2021_upper(**at) < 1e-2
True
>>> round(girgis_2021_epsilon(2.0, 2000, 60000, rounds=1515, delta=1e-5), 5)
2.99977
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from shuffledp import _validate
from shuffledp._certified.binomial import log1p_minus, log_pmf
from shuffledp._certified.rounding import CALL, LARGEST_EXPONENT, Floats, capped, down, gamma, up
from shuffledp.literature.renyi import delta_from_renyi, epsilon_from_renyi, log1p_exp

_MOST_ORDER = 10_000  # speed
_MOST_SUMMED = 10**10  # speed: users; the sum of Theorem 2 then has four million terms
_MOST_MIXED = 10**7  # speed: users; a window of 28 standard deviations for every order
_CELL, _STAIRS = 1e-4, 24  # speed: relative width of a cell of numbers of clones; steps below the window
_MOMENT = 64  # soundness: units of its size that the logarithm of a moment costs, and of a sum of them
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
    return _lemma_2(_log_theorem_4(epsilon0, cohort, _orders(order)), share, epsilon0)


def girgis_2021_lemma_7(epsilon0: float, m: int, order: int) -> float:
    """Lemma 7: E_Q |P/Q - 1|^order of m shuffled reports, all of one value (Q) or one of another (P)."""
    local, among, j = _checked_moment(epsilon0, m, order)
    return _moment(_log_lemma_7(local, float(among), j), local, order)


def girgis_2021_theorem_6(epsilon0: float, m: int, order: int) -> float:
    """Corollary 1 with Lemma 7: E_R |(P - Q)/R|^order where m - 1 of m people hold one value, and the last of
    them the same (R), another (P) or a third (Q). The ternary divergence of the special case."""
    return up(2.0**order * girgis_2021_lemma_7(epsilon0, m, order), operations=2)


def girgis_2021_theorem_4(epsilon0: float, cohort: int, order: int) -> float:
    """The ternary divergence of ``cohort`` shuffled reports, any data: Theorem 6 at c, and Chernoff's bound
    for the rest."""
    local, among, j = _checked_moment(epsilon0, cohort, order)
    return _moment(_log_theorem_4(local, among, j), local, order)


def girgis_2021_theorem_5(epsilon0: float, cohort: int, order: int) -> float:
    """The same by Theorem 5 without Chernoff's bound: Theorem 6 at m + 1, or (E - 1/E)^order where that is
    smaller, averaged over m ~ Bin(cohort - 1, 1/E)."""
    local, among, j = _checked_moment(epsilon0, cohort, order, most=_MOST_MIXED)
    return _moment(_log_theorem_5(local, among, j), local, order)


def girgis_2021_mixed_upper(epsilon0: float, cohort: int, population: int, order: int) -> float:
    """Lemma 2 with the moments of Theorem 5: the Renyi divergence as in Theorem 1, a little smaller."""
    local, asked, share = _checked(epsilon0, cohort, population, most=_MOST_MIXED)
    whole = _validate.count("order", order, least=2, most=_MOST_ORDER)
    if local == 0.0:
        return 0.0
    return _lemma_2(_log_theorem_5(local, asked, _orders(whole)), share, local)


def _orders(last: int) -> Floats:
    return np.arange(2.0, last + 1.0)


def _log_gap(epsilon0: float) -> float:
    """log(E - 1/E)."""
    return math.log(2.0 * math.sinh(epsilon0))


def _log_lemma_7(epsilon0: float, m: Floats | float, j: Floats) -> Floats:
    """Its logarithm; (E - 1)^2/E = 4 sinh(epsilon0/2)^2."""
    log_m, half = np.log(m), np.vectorize(math.lgamma)(0.5 * j)
    second = math.log(4.0) + 2.0 * math.log(math.sinh(0.5 * epsilon0)) - log_m
    other = np.log(j) + half + 0.5 * j * (2.0 * _log_gap(epsilon0) - math.log(2.0) - log_m)
    return np.asarray(np.where(j == 2.0, second, other))


def _clones_counted_on(epsilon0: float, cohort: int) -> int:
    """c = floor((cohort - 1)/(2 E)) + 1."""
    return math.floor(down((cohort - 1) * 0.5 * math.exp(-epsilon0), operations=CALL + 1)) + 1


def _log_theorem_4(epsilon0: float, cohort: int, j: Floats) -> Floats:
    counted = float(_clones_counted_on(epsilon0, cohort))
    small = j * _log_gap(epsilon0) - (cohort - 1) * math.exp(-epsilon0) / 8.0
    return np.asarray(np.logaddexp(j * math.log(2.0) + _log_lemma_7(epsilon0, counted, j), small))


def _log_theorem_5(epsilon0: float, cohort: int, j: Floats) -> Floats:
    p, q, others = math.exp(-epsilon0), -math.expm1(-epsilon0), cohort - 1
    mean, spread = others * p, math.sqrt(others * p * q)
    low, high = max(0, math.floor(mean - 14.0 * spread)), min(others, math.ceil(mean + 14.0 * spread))
    m = np.arange(low, high + 1, dtype=np.float64)
    log_f, error = log_pmf(others, m, p, q) if others else (np.zeros(1), np.zeros(1))
    # Neighbouring numbers of clones together, at the smallest of them: the moments fall with m.
    cells = 1 + math.ceil(math.log((high + 2.0) / (low + 1.0)) / _CELL)
    starts = np.searchsorted(m, np.geomspace(low + 1.0, high + 2.0, cells)[:-1] - 1.0, side="right") - 1
    first = np.unique(np.maximum(starts, 0))
    least, log_mass = m[first], np.log(np.add.reduceat(np.exp(log_f + error), first))
    if low:  # below the window a staircase: at least so many clones, by Chernoff's bound at the next step
        edges = np.unique(np.floor(np.geomspace(0.2 * low, low, _STAIRS)))
        tails = [-mean * _chernoff(float(edge) / mean - 1.0) for edge in edges]
        least, log_mass = np.append([0.0, *edges[:-1]], least), np.append(tails, log_mass)
    if high < others:  # above it no worse than at its end
        least = np.append(least, high)
        log_mass = np.append(log_mass, -mean * _chernoff(high / mean - 1.0))
    worst = j[:, None] * _log_gap(epsilon0)
    moment = np.minimum(j[:, None] * math.log(2.0) + _log_lemma_7(epsilon0, least + 1.0, j[:, None]), worst)
    terms = log_mass + moment
    top = terms.max(axis=1)
    return np.asarray(top + np.log(np.exp(terms - top[:, None]).sum(axis=1)))


def _chernoff(x: float) -> float:
    """(1 + x) log(1 + x) - x, from below: a binomial number passes (1 + x) of its mean with a chance of at
    most e^(-mean times this). A difference costs units of its parts."""
    first = (1.0 + x) * math.log1p(x) if x > -1.0 else 0.0
    return down(first - x, operations=1, tiny=gamma(2 * CALL) * (abs(first) + abs(x)))


def _size(epsilon0: float, order: int) -> float:
    """No part of the logarithm of such a moment is larger: factorials, powers of m < 2^53 and E - 1/E."""
    return math.lgamma(order + 1.0) + order * (2.0 * abs(_log_gap(epsilon0)) + 40.0)


def _moment(log: Floats, epsilon0: float, order: int) -> float:
    """A moment from its logarithm, rounded up."""
    risen = float(log[0]) + gamma(_MOMENT) * _size(epsilon0, order)
    return up(math.exp(risen), CALL) if risen < LARGEST_EXPONENT else math.inf


def _lemma_2(log_moments: Floats, share: float, epsilon0: float) -> float:
    """log(1 + sum_j C(L, j) share^j moment_j)/(L - 1), rounded up, from logarithms of moments 2, ..., L."""
    order = log_moments.size + 1
    j = np.arange(2, order + 1)
    lgamma = np.array([math.lgamma(i) for i in range(1, order + 2)])  # at 1, 2, ..., order + 1
    log_choose = lgamma[order] - lgamma[j] - lgamma[order - j]
    terms = log_choose + j * math.log(share) + log_moments
    size = _size(epsilon0, order) + order * (abs(math.log(share)) + 1.0)
    top = float(terms.max())
    log_sum = top + math.log(float(np.exp(terms - top).sum())) + gamma(_MOMENT) * size
    return up(log1p_exp(log_sum) / (order - 1), operations=3 * CALL, tiny=0.0)


def _checked_moment(
    epsilon0: float, m: int, order: int, most: int = _validate.MAX_COUNT
) -> tuple[float, int, Floats]:
    local = _validate.positive("epsilon0", _validate.epsilon0(epsilon0))
    j = _validate.count("order", order, least=2, most=_MOST_ORDER)
    return local, _validate.count("m", m, most=most), np.array([float(j)])


def girgis_shuffle_2021_upper(epsilon0: float, n: int, order: int) -> float:
    """Girgis, Data, Diggavi, Suresh, Kairouz 2021, "On the Renyi differential privacy of the shuffle model",
    Theorem 1: everybody takes part, and Lemma 7 is used as it is:

        log(1 + sum_j C(L, j) lemma_7(c, j) + e^{L epsilon0 - (n-1)/(8 E)})/(L - 1)."""
    local, users, _ = _checked(epsilon0, n, n)
    L = _validate.count("order", order, least=2, most=_MOST_ORDER)
    if local == 0.0:
        return 0.0
    moments = _log_lemma_7(local, float(_clones_counted_on(local, users)), _orders(L))
    # The chance of a small crowd as a part of the last moment: C(L, L) = 1.
    moments[-1] = np.logaddexp(moments[-1], L * local - (users - 1) * math.exp(-local) / 8.0)
    return min(local, _lemma_2(moments, 1.0, local))


def wang_2019_subsampled(divergences: Sequence[float], epsilon: float, share: float) -> float:
    """Wang, Balle, Kasiviswanathan 2019, Theorem 9: the divergence of order L, rounded up, of a mechanism run
    on a random subset of that share, which has ``divergences`` D2, ..., DL and is (``epsilon``, 0)-DP.

        log(1 + g^2 C(L,2) min(4 (e^D2 - 1), e^D2 min(2, (e^epsilon - 1)^2))
              + sum_{j=3}^L g^j C(L,j) e^{(j-1) Dj} min(2, (e^epsilon - 1)^j)) / (L - 1)"""
    top, fraction = (
        _validate.positive("epsilon", epsilon),
        _validate.probability("share", share, positive=True),
    )
    D, j = np.array([float(each) for each in divergences]), _orders(len(divergences) + 1)
    moments = (j - 1.0) * D + np.minimum(math.log(2.0), j * math.log(math.expm1(capped(top))))
    if 0.0 < D[0] < 1.0:  # else the other one is smaller
        moments[0] = min(moments[0], math.log(4.0) + math.log(math.expm1(D[0])))
    return _lemma_2(moments, fraction, top)


def girgis_2021_excess_loss(
    epsilon0: float,
    cohort: int,
    rounds: int,
    *,
    dimension: int,
    lipschitz: float = 1.0,
    diameter: float = 1.0,
    norm: float = 2.0,
) -> float:
    """Theorem 3 by Lemmas 9 and 10: for a convex F whose gradients have l_``norm`` at most L, after T rounds
    of SGD, projected to a set of diameter D, with steps D/(G sqrt t),

        E F(theta_T) - min F <= 2 D G (2 + log T)/sqrt T,
        G^2 = L^2 max(d^(1 - 2/norm), 1) (1 + c d/cohort ((E + 1)/(E - 1))^2), c = 4 for norms 1, inf; or 14.

    Its privacy side is ``girgis_2021_epsilon``, or what the accountant certifies for the same rounds.

    >>> round(girgis_2021_excess_loss(2.0, cohort=10_000, rounds=10**4, dimension=10), 4)
    0.2269
    """
    local = _validate.positive("epsilon0", _validate.epsilon0(epsilon0))
    asked, times = _validate.count("cohort", cohort), _validate.count("rounds", rounds)
    d, p = _validate.count("dimension", dimension), float(norm)
    if not p >= 1.0:
        raise ValueError(f"norm must be in [1, inf], got {norm!r}")
    L, D = _validate.positive("lipschitz", lipschitz), _validate.positive("diameter", diameter)
    constant = 4.0 if p in (1.0, math.inf) else 14.0
    noise = constant * d / asked / math.tanh(0.5 * local) ** 2
    G = L * math.sqrt(max(d ** (1.0 - 2.0 / p), 1.0) * (1.0 + noise))
    return up(2.0 * D * G * (2.0 + math.log(times)) / math.sqrt(times), operations=8 * CALL)


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
    t = np.maximum(share * 2.0 * math.sinh(local) * ((m - mean) / asked), math.nextafter(-1.0, 0.0))
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


Divergence = Callable[[float, int, int, int], float]
"""Of epsilon0, cohort, population and a whole order."""


def girgis_2021_epsilon(
    epsilon0: float,
    cohort: int,
    population: int,
    rounds: int,
    delta: float,
    orders: Iterable[int] = ORDERS,
    divergence: Divergence = girgis_2021_upper,
) -> float:
    """epsilon at delta after ``rounds`` rounds: Theorem 1, or another ``divergence``, times rounds, converted
    at the best order."""
    level = _validate.probability("delta", delta, positive=True)
    found = _composed(epsilon0, cohort, population, rounds, orders, divergence)
    return min(epsilon_from_renyi(size, order, level) for order, size in found)


def girgis_2021_delta(
    epsilon0: float,
    cohort: int,
    population: int,
    rounds: int,
    epsilon: float,
    orders: Iterable[int] = ORDERS,
    divergence: Divergence = girgis_2021_upper,
) -> float:
    """delta at epsilon after ``rounds`` rounds, likewise."""
    found = _composed(epsilon0, cohort, population, rounds, orders, divergence)
    return min(delta_from_renyi(size, order, epsilon) for order, size in found)


def _composed(
    epsilon0: float, cohort: int, population: int, rounds: int, orders: Iterable[int], divergence: Divergence
) -> Iterator[tuple[int, float]]:
    """(order, upper bound of the divergence of all rounds)."""
    count = _validate.count("rounds", rounds)
    for order in orders:
        each = divergence(epsilon0, cohort, population, order)
        yield order, up(count * each, operations=1, tiny=0.0)


def _checked(
    epsilon0: float, cohort: int, population: int, most: int = _validate.MAX_COUNT
) -> tuple[float, int, float]:
    local = _validate.epsilon0(epsilon0)
    everyone = _validate.count("population", population)
    asked = _validate.count("cohort", cohort, most=min(everyone, most))
    return local, asked, asked / everyone
