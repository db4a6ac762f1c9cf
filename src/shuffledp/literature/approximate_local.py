"""Amplification for (epsilon0, delta0)-LDP randomizers by the clones argument.

R is (epsilon0, delta0)-LDP (replacement): R(x)(S) <= E R(x')(S) + delta0 for all inputs x, x' and sets
S, E = e^epsilon0. Upper bounds of delta for substitution neighbours, n users of one common R; the
adversary knows everybody else's data and sees the shuffled reports. For a = e^epsilon >= 1,

    delta <= H_a(2021 clones) + (1 + a) delta0 ((n-1)/E + 1/(E+1)),
    delta <= H_a(clones)      + (1 + a) delta0 (2 (n-1) (E+2)/(E (E+1)) + 1/(E+1)),

and since the true delta never increases, the smallest right side at any smaller epsilon counts. This
is the argument of Feldman, McMillan, Talwar 2021 for approximate local privacy, with our own constants:

1. (P, Q) = (R(x), R(x')) of the differing user is a post-processing T of the pair that gives its input
   away with probability delta0 and else is binary randomized response (Kairouz, Oh, Viswanath 2015).
   Replace the two telling outcomes' laws (delta0, 0) and (0, delta0) by delta0 (E, 1)/(E+1) and
   delta0 (1, E)/(E+1). Through T this gives P', Q' with ratios within E, P' + Q' = P + Q, and total
   variation at most delta0/(E+1) from P, Q.
2. Another user's law R_i may be below w = (P + Q)/(2E) on a mass of at most
   (H_E(P, R_i) + H_E(Q, R_i))/(2E) <= delta0/E: moving that mass makes it at least w. (For the second
   bound w = max(P', Q')/E, and the mass is at most 2 (delta0 + delta0/(E+1))/E.)
3. The changed round is a round of epsilon0-LDP clones. Each of the two datasets' laws moved by the sum
   of the total variations, which costs H_a once that sum for P and a times for Q.

No validity range: delta0 n must only be small for the result to be useful.

>>> round(approximate_local_epsilon(epsilon0=2.0, delta0=1e-12, n=10**5, delta=1e-6), 4)
0.0334
"""

from __future__ import annotations

import math

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import Floats
from shuffledp.accounting._curves.clones import clones_2021, strong_clones
from shuffledp.accounting._curves.profile import PrivacyProfile
from shuffledp.literature._solve import smallest_below

_RESOLUTION = 1e-4
_POINTS = 33
_CLOSER = 3
_UP = 1.0 + 1e-12


def approximate_local_delta(epsilon0: float, delta0: float, n: int, epsilon: float) -> float:
    """delta at epsilon >= 0, at most 1: the smallest of both bounds at any epsilon up to this one."""
    target = float(_validate.non_negative("epsilon", epsilon).reshape(()))
    routes = _routes(*_checked(epsilon0, delta0, n))
    # Beyond epsilon0 only the blow-up grows.
    top = min(target, routes[0][0].epsilon_max)
    return min(1.0, *(_smallest(route, top) for route in routes))


def approximate_local_epsilon(epsilon0: float, delta0: float, n: int, delta: float) -> float:
    """epsilon at delta; inf where the blow-up by delta0 leaves no epsilon up to epsilon0."""
    level = _validate.probability("delta", delta, positive=True)
    local, leak, users = _checked(epsilon0, delta0, n)
    return min(_epsilon(route, level, local) for route in _routes(local, leak, users))


def _smallest(route: tuple[PrivacyProfile, float], top: float) -> float:
    """The smallest value seen in [0, top], closing in on the minimum of a curve convex in e^epsilon."""
    points = np.append(0.0, np.geomspace(1e-4, 1.0, _POINTS) * top)
    found = math.inf
    for _ in range(_CLOSER):
        values = _curve(*route, points)
        found = min(found, float(values.min()))
        best = int(values.argmin())
        ends = points[max(best - 1, 0)], points[min(best + 1, points.size - 1)]
        points = np.linspace(*ends, _POINTS)
    return found


def _epsilon(route: tuple[PrivacyProfile, float], level: float, epsilon0: float) -> float:
    def bound(epsilon: float) -> float:
        return float(_curve(*route, np.array([epsilon]))[0])

    if bound(0.0) <= level:
        return 0.0
    return smallest_below(bound, level, epsilon0) if epsilon0 > 0.0 else math.inf


def _routes(epsilon0: float, delta0: float, n: int) -> list[tuple[PrivacyProfile, float]]:
    """(clones of an epsilon0-LDP randomizer, total variation moved) of either bound."""
    decay = math.exp(-epsilon0)
    own = decay / (1.0 + decay)
    plain = (n - 1) * decay + own
    strong = 2.0 * (n - 1) * decay * (1.0 + own) + own
    return [
        (clones_2021(epsilon0, n), delta0 * plain * _UP),
        (strong_clones(epsilon0, n), delta0 * strong * _UP),
    ]


def _curve(clones: PrivacyProfile, moved: float, epsilon: Floats) -> Floats:
    grown = 1.0 + np.exp(np.minimum(epsilon, 700.0))
    return np.asarray((clones.upper(epsilon, _RESOLUTION) + grown * moved) * _UP)


def _checked(epsilon0: float, delta0: float, n: int) -> tuple[float, float, int]:
    return (
        _validate.epsilon0(epsilon0),
        _validate.probability("delta0", delta0),
        _validate.count("n", n),
    )
