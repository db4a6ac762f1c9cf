"""What moments leave of an integral of the crowd theorem: upper bounds (T16, section 6 of the proof).

    int phi(w)^n' / (tau^2 + w^2) dw,    phi(0) = 1,    phi(w)^2 <= 1 - w^2 v (1 - k w^2),

of n' users. v and k are those of the tilted law, or of what it has within some distance of zero (a core):
values far out raise k, and with it all bounds beyond k^(-1/2), long before they add to v. Up to
w1 = (c/k)^(1/2) phi^n' is a normal law's of variance (1 - c) n' v, up to w2 = (1/2 k)^(1/2) below
e^(-(1 - c) n' v w1^2/2); from there on a smaller core goes on, and beyond the last of them two values of X
that are told apart.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from shuffledp._certified.rounding import CALL, Floats, down, positive, up

_UNITS = 64  # soundness: operations of a bound
# tightness: up to where a law is compared with a normal one, c (see module)
_NORMAL = np.array([0.001, 0.005, 0.02, 0.06, 0.15, 0.35])
_MILLS = np.linspace(0.0, 6.0, 601)  # tightness: between which Mills' ratio is a chord


def log_inside(tau: Floats, variance: Floats, k: Floats) -> Floats:
    """log of ``inside`` / (2 pi), rounded up: without cores, and where no two values are told apart."""
    whole = np.ones_like(k)
    found = inside(tau, variance[..., None], k[..., None], whole, whole)
    return np.log(up(found / (2.0 * math.pi), operations=_UNITS))


def inside(tau: Floats, variance: Floats, k: Floats, left: Floats, apart: Floats) -> Floats:
    """The least over all c and all cores to begin with; ``variance`` is n' v.

    Cores: the last axis, the whole law first. ``left``: of a period of two values ``apart``, at most."""
    last = np.sqrt(0.5 / k)
    reach = np.maximum.accumulate(last, axis=-1)
    normal = _normal(tau[..., None], variance, k) + _beyond(reach, variance, left, apart)
    # A core that ends before a larger one did leaves a gap behind it.
    found = np.where(last == reach, normal, math.inf).min(axis=-1)
    return np.asarray(np.minimum(found, math.pi / tau))


def _normal(tau: Floats, variance: Floats, k: Floats) -> Floats:
    """Up to w2, of every core."""
    c = _NORMAL.reshape(-1, *(1,) * k.ndim)
    away, w1 = tau * np.sqrt(0.5 * variance * (1.0 - c)), np.sqrt(c / k)
    normal = 2.0 * math.sqrt(math.pi) / tau * _mills(away)  # int e^(-(w away/tau)^2) / (tau^2 + w^2) dw
    between = 2.0 / w1 * np.exp(-down(0.5 * (1.0 - c) * variance * w1**2, operations=16))
    return np.asarray((normal + between).min(axis=0))


def _beyond(reach: Floats, variance: Floats, left: Floats, apart: Floats) -> Floats:
    """From where every core ends: smaller ones, each from where those before it end, or two values at once.

    Up to the end of a core 1 - k w^2 is at least 1/2."""
    rest = (
        2.0
        / reach
        * np.minimum(left[..., None] * (1.0 + 2.0 * math.pi / positive(apart[..., None] * reach)), 1.0)
    )
    before, after = reach[..., :-1], reach[..., 1:]
    smaller = 2.0 / before * np.exp(-down(0.25 * variance[..., 1:] * before**2, operations=16))
    smaller = np.where(after > before, smaller, 0.0)
    for place in range(rest.shape[-1] - 2, -1, -1):
        rest[..., place] = np.minimum(rest[..., place], smaller[..., place] + rest[..., place + 1])
    return np.asarray(rest)


@lru_cache(maxsize=1)
def _mills_table() -> Floats:
    found = [0.5 * math.sqrt(math.pi) * math.exp(y * y) * math.erfc(y) for y in _MILLS.tolist()]
    # y^2 up to 36 is off by a unit, which counts 36 times in its exponential, and y itself is exact.
    return up(np.array(found), operations=2 * CALL + 64)


def _mills(y: Floats) -> Floats:
    """e^(y^2) int_y e^(-t^2) dt, from above: it is convex, so below its chords; from the last point on it is
    below 2/(3 y + (y^2 + 4)^(1/2))."""
    return np.where(
        y < _MILLS[-1], np.interp(y, _MILLS, _mills_table()), 2.0 / (3.0 * y + np.sqrt(y**2 + 4.0))
    )
