"""Privacy-blanket bounds from concentration inequalities (Balle, Bell, Gascon, Nissim 2019).

Upper bounds of delta for substitution neighbours; the adversary knows everybody else's data and sees
the shuffled reports. Lemma 5.3: with M ~ Bin(n, gamma), gamma the blanket mass, and iid copies of the
amplification variable L, E[L] = 1 - a, a = e^epsilon,

    delta <= (1/(gamma n)) sum_{m >= 1} Pr[M = m] E[(L_1 + ... + L_m)_+].

The expectation is at most K e^{-m s}, so the sum over all m is geometric and exact:

    delta <= K ((1 - gamma + gamma e^-s)^n - (1 - gamma)^n)/(gamma n),

    Hoeffding (Lemma 5.5):  K = b^2/(4 A),            s = 2 A^2/b^2,
    Bennett (Lemma 5.6):    K = t/log(1 + A t/c),     s = (c/t^2) phi(A t/c),   A = a - 1,

with phi(u) = (1+u) log(1+u) - u. Lemma 5.6 as printed has a further 1/(A m): it is unsound, and only
in ``shuffledp.papers``. Any b >= range of L, t >= L, c >= E[L^2] may be used. For every epsilon0-LDP
randomizer, with v = mu_x/inf mu and v' likewise in [1, E], gamma (1 - a E) <= L <= gamma (E - a), and
v^2 <= (1+E) v - E, v v' >= v + v' - 1 give

    b = gamma (E-1) (1+a),   t = gamma (E-a),   c = gamma (2 a (E-1)(1-gamma) + A^2 (1 + E (1-gamma))),

sharper than Lemma 5.4 and attained by k-ary randomized response (Lemma 5.7). Laplace noise on [0, 1]
(Lemma 5.8) has gamma = e^{-epsilon0/2} and c = 4a (1-gamma)^2 (1+2 gamma)/(3 gamma) + A^2 (2/gamma +
gamma^2)/3. Where gamma is not known the largest bound over gamma in [1/E, 1] is taken.

>>> survey = KaryBlanket(k=4, epsilon0=1.0)
>>> round(bennett_delta(survey, n=1000, epsilon=0.1), 9)
0.000126104
>>> round(hoeffding_epsilon(AnyBlanket(epsilon0=1.0), n=10**5, delta=1e-6), 4)
0.0207
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shuffledp import _validate
from shuffledp._certified.binomial import log1p_minus
from shuffledp._certified.rounding import CALL, Floats, down, positive, up
from shuffledp.facts import response_probabilities
from shuffledp.literature._solve import smallest_below

_LOGARITHMS = 90_000  # soundness: units; a dozen logarithms, of at most 600 in size each
_RATE = 9_000  # soundness: units; a short chain of positive terms, and phi, which cancels a digit
_POWER = 900  # soundness: units; the logarithm of a sum of two positive terms, times n
_SMALLEST = 1e-100  # soundness: doubles hold no smaller epsilon times e^-epsilon0
_CELLS, _SPLIT, _MOST_CELLS, _STEPS = 64, 4, 20_000, 40  # speed: of the blanket's mass gamma
_LOOSE = 1e-4  # speed: what the largest bound over gamma may be off by, from above


_Inequality = Callable[[float, float, Floats, Floats], tuple[Floats, Floats]]
"""(epsilon0, epsilon, gamma or more, c) -> (log K, s) of E[(L_1 + ... + L_m)_+] <= a E K e^{-m s}, m >= 1."""


def _lemma_54(epsilon0: float, epsilon: float, high: Floats, rest: Floats) -> Floats:
    """c of the module docstring, scaled; c/gamma decreases with gamma. ``rest`` is 1 - low."""
    first = 2.0 * -math.expm1(-epsilon0) * math.exp(-epsilon - epsilon0) * rest
    second = math.expm1(-epsilon) ** 2 * math.exp(-epsilon0) * (math.exp(-epsilon0) + rest)
    return np.asarray(high * (first + second))


@dataclass(frozen=True)
class AnyBlanket:
    """Any epsilon0-LDP randomizer: its blanket mass is somewhere in [e^-epsilon0, 1]."""

    epsilon0: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon0", _validate.epsilon0(self.epsilon0))

    @property
    def gammas(self) -> tuple[float, float]:
        """An interval that holds the blanket mass."""
        return down(math.exp(-self.epsilon0), CALL), 1.0

    @property
    def truthful(self) -> float:
        """1 - gamma at the low end, accurate when small."""
        return -math.expm1(-self.epsilon0)

    def second_moment(self, epsilon: float, low: Floats, high: Floats) -> Floats:
        """At least E[(L/(a E))^2] for every gamma in [low, high]: scaled, so that nothing overflows."""
        return _lemma_54(self.epsilon0, epsilon, high, np.minimum(1.0 - low, self.truthful))


@dataclass(frozen=True)
class KaryBlanket:
    """k-ary randomized response: gamma = k/(E + k - 1)."""

    k: int
    epsilon0: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", _validate.count("k", self.k, least=2, most=2**40))
        object.__setattr__(self, "epsilon0", _validate.epsilon0(self.epsilon0))

    @property
    def gammas(self) -> tuple[float, float]:
        gamma = min(1.0, self.k * response_probabilities(self.k, self.epsilon0)[0])
        return gamma, gamma

    @property
    def truthful(self) -> float:
        return response_probabilities(self.k, self.epsilon0)[2]

    def second_moment(self, epsilon: float, low: Floats, high: Floats) -> Floats:
        return _lemma_54(self.epsilon0, epsilon, high, np.full_like(low, self.truthful))


@dataclass(frozen=True)
class LaplaceBlanket(AnyBlanket):
    """x + Laplace(1/epsilon0) noise for x in [0, 1]: gamma = e^{-epsilon0/2}."""

    @property
    def gammas(self) -> tuple[float, float]:
        gamma = math.exp(-0.5 * self.epsilon0)
        return gamma, gamma

    @property
    def truthful(self) -> float:
        return -math.expm1(-0.5 * self.epsilon0)

    def second_moment(self, epsilon: float, low: Floats, high: Floats) -> Floats:
        gap = 4.0 * math.exp(-epsilon) * self.truthful**2 * (1.0 + 2.0 * high) / low
        rest = math.expm1(-epsilon) ** 2 * (2.0 / low + high * high)
        return np.asarray(math.exp(-2.0 * self.epsilon0) * (gap + rest) / 3.0)


Blanket = AnyBlanket | KaryBlanket


def _mean(epsilon0: float, epsilon: float) -> float:
    """A = -E[L], scaled."""
    return -math.expm1(-epsilon) * math.exp(-epsilon0)


def _hoeffding(epsilon0: float, epsilon: float, high: Floats, c: Floats) -> tuple[Floats, Floats]:
    A = _mean(epsilon0, epsilon)
    b = high * (-math.expm1(-epsilon0) * (1.0 + math.exp(-epsilon)))
    return 2.0 * np.log(b) - math.log(4.0 * A), 2.0 * (A / b) ** 2


def _bennett(epsilon0: float, epsilon: float, high: Floats, c: Floats) -> tuple[Floats, Floats]:
    A = _mean(epsilon0, epsilon)
    # E - a without cancellation; a larger t is allowed, and keeps u away from underflow.
    t = high * (math.exp(-epsilon) * -math.expm1(epsilon - epsilon0))
    t = np.maximum(t, 1e-100 * c / A)
    u = A * (t / c)
    # (1 + u) log(1 + u) - u, so that neither small nor large u cancels more than a digit.
    v = np.minimum(u, 1.0)
    phi = np.where(u < 1.0, (1.0 + v) * log1p_minus(v) + v * v, (1.0 + u) * np.log1p(u) - u)
    return np.log(t) - np.log(np.log1p(u)), (c / t) * (phi / t)


def hoeffding_delta(blanket: Blanket, n: int, epsilon: float) -> float:
    """delta at epsilon > 0 by Hoeffding's inequality (Lemma 5.5), at most 1."""
    return _checked(blanket, n, epsilon, _hoeffding)


def bennett_delta(blanket: Blanket, n: int, epsilon: float) -> float:
    """delta at epsilon > 0 by Bennett's inequality (Lemma 5.6, corrected), at most 1."""
    return _checked(blanket, n, epsilon, _bennett)


def hoeffding_epsilon(blanket: Blanket, n: int, delta: float) -> float:
    """epsilon at delta by Hoeffding's inequality; at most epsilon0."""
    return _solved(blanket, n, delta, _hoeffding)


def bennett_epsilon(blanket: Blanket, n: int, delta: float) -> float:
    """epsilon at delta by Bennett's inequality; at most epsilon0."""
    return _solved(blanket, n, delta, _bennett)


def _checked(blanket: Blanket, n: int, epsilon: float, inequality: _Inequality) -> float:
    users = _validate.count("n", n)
    return _delta(blanket, users, _validate.positive("epsilon", epsilon), inequality)


def _solved(blanket: Blanket, n: int, delta: float, inequality: _Inequality) -> float:
    users = _validate.count("n", n)
    level = _validate.probability("delta", delta, positive=True)
    if blanket.epsilon0 == 0.0:
        return 0.0
    return smallest_below(lambda e: _delta(blanket, users, e, inequality), level, blanket.epsilon0)


def _delta(blanket: Blanket, n: int, epsilon: float, inequality: _Inequality) -> float:
    if epsilon >= blanket.epsilon0:
        return 0.0  # L <= gamma (E - a) <= 0
    if epsilon < _SMALLEST:
        return 1.0  # K grows like 1/epsilon; doubles hold no such epsilon times e^-epsilon0
    low, high = blanket.gammas
    if low == high:
        gamma, rest = np.array([low]), np.array([blanket.truthful])
        return min(1.0, float(_cells(blanket, n, epsilon, inequality, gamma, gamma, rest)[0]))
    return min(1.0, _largest(blanket, n, epsilon, inequality))


def _cells(
    blanket: Blanket, n: int, epsilon: float, inequality: _Inequality, low: Floats, high: Floats, rest: Floats
) -> Floats:
    """Upper bounds for every gamma in [low, high]; ``rest`` = 1 - low.

    The averaged e^{-s M}/(gamma n), M >= 1, is e^-s E[e^{-s M'}/(M' + 1)] with M' ~ Bin(n - 1, gamma):
    it decreases with gamma, so it is taken at the low end."""
    with np.errstate(under="ignore", divide="ignore"):
        c = up(blanket.second_moment(epsilon, low, high), _LOGARITHMS, tiny=0.0)
        log_front, rate = inequality(blanket.epsilon0, epsilon, high, c)
        rate = down(rate, _RATE)
        hidden = low * np.exp(-rate)
        inside = rest + hidden
        log_inside = np.where(inside > 0.5, np.log1p(low * np.expm1(-rate)), np.log(inside))
        # (inside^n - rest^n) as inside^n (1 - (rest/inside)^n): positive factors.
        some = -np.expm1(-n * np.log1p(hidden / positive(rest)))
        log_total = -down(-n * log_inside, _POWER) + np.log(some) - np.log(low * n)
        log_delta = log_total + log_front + (epsilon + blanket.epsilon0)
        return up(np.asarray(np.exp(np.minimum(log_delta, 1.0))), _LOGARITHMS)


def _largest(blanket: Blanket, n: int, epsilon: float, inequality: _Inequality) -> float:
    """Upper bound of the largest bound over all gamma, by splitting the interval where needed."""
    edges = np.geomspace(*blanket.gammas, _CELLS + 1)
    low, high = edges[:-1], edges[1:]
    closed = 0.0
    for step in range(_STEPS):
        bound = _cells(blanket, n, epsilon, inequality, low, high, 1.0 - low)
        single = _cells(blanket, n, epsilon, inequality, low, low, 1.0 - low)
        enough = max(closed, float(single.max()) * (1.0 + _LOOSE))
        open_ = bound > enough
        last = step == _STEPS - 1 or _SPLIT * int(open_.sum()) > _MOST_CELLS
        closed = max(enough, float(bound[open_].max(initial=0.0))) if last else enough
        if last or not open_.any():
            break
        low, high = _split(low[open_], high[open_])
    return closed


def _split(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    edges = np.geomspace(low, high, _SPLIT + 1)
    edges[0], edges[-1] = low, high
    return edges[:-1].ravel(), edges[1:].ravel()
