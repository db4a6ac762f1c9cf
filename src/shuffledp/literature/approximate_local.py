"""Amplification for (epsilon0, delta0)-LDP randomizers by the clones argument.

R is (epsilon0, delta0)-LDP (replacement): R(x)(S) <= E R(x')(S) + delta0 for all inputs x, x' and sets
S, E = e^epsilon0. Upper bounds of delta for substitution neighbours, n users of one common R; the
adversary knows everybody else's data and sees the shuffled reports. For a = e^epsilon >= 1,

    delta <= H_a(2021 clones) + (1 + a) delta0 ((n-1)/E + 1/(E+1)),
    delta <= H_a(clones)      + (1 + a) delta0 (2 (n-1) (E+2)/(E (E+1)) + 1/(E+1)),

and since the true delta never increases, the smallest right side at any smaller epsilon counts: the
argument of Feldman, McMillan, Talwar 2021 for approximate local privacy, with our own constants. Proof:
docs/proofs/approximate-local.md. No validity range: delta0 n must only be small for the result to be
useful.

>>> round(approximate_local_epsilon(epsilon0=2.0, delta0=1e-12, n=10**5, delta=1e-6), 4)
0.0334
"""

from __future__ import annotations

import math

import numpy as np

from shuffledp import _validate
from shuffledp.accounting._curves.approximate import ApproximateProfile, plain_approximate, strong_approximate
from shuffledp.accounting._curves.clones import clones_2021, strong_clones
from shuffledp.literature._solve import smallest_below

_RESOLUTION = 1e-4  # speed: relative, of the clones' curve


def approximate_local_delta(epsilon0: float, delta0: float, n: int, epsilon: float) -> float:
    """delta at epsilon >= 0, at most 1: the smallest of both bounds at any epsilon up to this one."""
    target = float(_validate.non_negative("epsilon", epsilon).reshape(()))
    return min(_delta(bound, target) for bound in _bounds(epsilon0, delta0, n))


def approximate_local_epsilon(epsilon0: float, delta0: float, n: int, delta: float) -> float:
    """epsilon at delta; inf where the blow-up by delta0 leaves no epsilon up to epsilon0."""
    level = _validate.probability("delta", delta, positive=True)
    return min(_epsilon(bound, level) for bound in _bounds(epsilon0, delta0, n))


def _bounds(epsilon0: float, delta0: float, n: int) -> tuple[ApproximateProfile, ...]:
    local, users = _validate.epsilon0(epsilon0), _validate.count("n", n)
    leak = _validate.probability("delta0", delta0)
    return (
        plain_approximate(clones_2021(local, users), leak, users),
        strong_approximate(strong_clones(local, users), leak, users),
    )


def _delta(bound: ApproximateProfile, epsilon: float) -> float:
    return float(bound.upper(np.array([epsilon]), _RESOLUTION)[0])


def _epsilon(bound: ApproximateProfile, level: float) -> float:
    if _delta(bound, 0.0) <= level:
        return 0.0
    most = bound.clones.epsilon_max
    return smallest_below(lambda e: _delta(bound, e), level, most) if most > 0.0 else math.inf
