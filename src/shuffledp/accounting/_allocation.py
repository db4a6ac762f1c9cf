"""Random allocation: each record goes to one batch of every epoch, drawn for it alone (T24, second part).

With noise of s clipping norms and T batches, the likelihood ratio of the record's presence is a mean of T
independent log-normal numbers,

    l = (L_1 + ... + L_T)/T,    L = e^(g/s - 1/(2 s^2)),  g ~ N(0, 1),    H_alpha = E[(l - alpha)_+],

and E[(1 - alpha l)_+] the other way: the sum of an amplification law with n = T. The line of g is cut into
cells. From below only the cell of each g is seen. From above L is split onto the ends of its cell, keeping
its mean, which is larger in the convex order; beyond the last cell a record is seen."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shuffledp._certified.rounding import CALL, Floats, gamma, up
from shuffledp.accounting._curves.combined import LargestProfile
from shuffledp.accounting._curves.inexact import InexactProfile
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.accounting._rounds.round import Round

_REACH = 10.0  # tightness: beyond, a normal number has a probability of 1e-23
_STEP = 0.1  # tightness: of log L in a cell
_FEWEST, _MOST, _MOST_OF_TWO = 160, 640, 340  # tightness, speed: cells; of two batches all outcomes are seen
_KNOWN = 1e-6  # soundness: masses known less well are a mistake of ours
_UNITS = 64  # soundness: operations of a mass beside its tails


def allocation(noise_multiplier: float, batches: int) -> Round:
    """One epoch, for zero-out neighbours; later gradients may depend on sums before."""
    below, above = enclosed(noise_multiplier, batches)
    return Round(LargestProfile(above.directions), (below,), math.inf, 0.0)


def enclosed(
    noise_multiplier: float, batches: int, fewest: int = _FEWEST
) -> tuple[InexactProfile, InexactProfile]:
    """Presence against absence, from below and from above, by at least so many cells."""
    rho = 1.0 / noise_multiplier
    most = _MOST_OF_TWO if batches == 2 else _MOST
    cells = min(max(math.ceil((2.0 * _REACH + rho) * rho / _STEP), fewest), most)
    ends = np.linspace(-_REACH, _REACH + rho, cells + 1)
    absent, present = _Normal.cut(ends, 0.0), _Normal.cut(ends, rho)
    error = max(float((part.doubt / part.mass).max()) for part in (absent, present))
    below = InexactProfile(_pair(batches, present.mass, absent.mass, absent.mass), _known(error))
    return below, _split(absent, present, ends, rho, batches)


@dataclass(frozen=True)
class _Normal:
    """Masses left of the first end, in the cells and right of the last, and what each is off by at most."""

    mass: Floats
    doubt: Floats

    @classmethod
    def cut(cls, ends: Floats, mean: float) -> _Normal:
        x = ends - mean
        far = np.array([0.5 * math.erfc(abs(one) * math.sqrt(0.5)) for one in x.tolist()])
        # A unit of x counts |x| + 1 times in its tail; x is off by units of the end and of the mean.
        units = _UNITS + CALL + 8.0 * (np.abs(x) + 1.0) * (np.abs(x) + np.abs(ends) + mean + 1.0)
        off = gamma(units) * far
        across = (x[:-1] < 0.0) & (x[1:] >= 0.0)
        inner = np.where(across, 1.0 - far[:-1] - far[1:], np.abs(np.diff(far)))
        doubt = off[:-1] + off[1:] + gamma(4) * across
        return cls(np.concatenate([far[:1], inner, far[-1:]]), np.concatenate([off[:1], doubt, off[-1:]]))


def _split(absent: _Normal, present: _Normal, ends: Floats, rho: float, batches: int) -> InexactProfile:
    """L at the ends of the cells, and at zero: own = L other. Right of the last end everything is seen."""
    height = np.exp(rho * ends - 0.5 * rho * rho)
    # A unit of an exponent counts as often as it is large.
    off = gamma(_UNITS + CALL + 8.0 * rho * (float(np.abs(ends).max()) + rho))
    q, p, dq, dp = absent.mass, present.mass, absent.doubt, present.doubt
    low, high = height[:-1], height[1:]
    doubt = (dp[1:-1] + high * dq[1:-1] + 4.0 * off * (p[1:-1] + high * q[1:-1])) / (high - low)
    mass, least = np.zeros(ends.size), np.zeros(ends.size)
    for at, found in (
        (slice(1, None), (p[1:-1] - low * q[1:-1]) / (high - low)),
        (slice(None, -1), (high * q[1:-1] - p[1:-1]) / (high - low)),
    ):
        mass[at] += found
        least[at] += doubt + 4.0 * off * np.abs(found) * (high + low) / (high - low)
    mass[0] += p[0] / low[0]
    least[0] += (dp[0] + off * p[0]) / low[0]
    nothing, hardly = q[0] - p[0] / low[0], dq[0] + (dp[0] + 2.0 * off * p[0]) / low[0]
    error = max(float((least / mass).max()) + off, hardly / nothing, dp[-1] / p[-1], dq[-1] / q[-1])
    error = _known(error)
    own = np.concatenate([mass * height, [0.0, p[-1]]])
    other = np.concatenate([mass, [nothing, q[-1]]])
    # Others hide by less than they have, so that what hides nothing is known, too: it is next to nothing.
    clone = np.append((1.0 - 4.0 * error) * other[:-1], 0.0)
    return InexactProfile(_pair(batches, own, other, clone), error)


def _pair(batches: int, own: Floats, other: Floats, clone: Floats) -> AmplificationProfile:
    parts = own, other, own - other, clone
    return AmplificationProfile(batches, *(tuple(part.tolist()) for part in parts))


def _known(error: float) -> float:
    if not error < _KNOWN:
        raise ArithmeticError(f"masses of random allocation are known to {error:g} only; please report this")
    return up(error, operations=_UNITS)
