"""The Renyi divergence of a privacy profile, enclosed.

Theorem T15 (docs/proofs/renyi.md) writes E_Q[(P/Q)^order] as an integral of the curve, which is convex in
alpha: chords between upper values lie above it, its supporting lines below. Both are integrated exactly
against the exponential, cell by cell, and the cells that matter are split. A PrivacyProfile is symmetric
unless two are given; its upper curve bounds the divergence of every pair it covers, in both directions.

>>> from shuffledp.accounting._curves.clones import strong_clones
>>> bound = renyi_divergence(strong_clones(4.0, 1000), order=2)
>>> 0.106826620291 in bound
True
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import LARGEST_EXPONENT, Floats, capped, down, gamma, positive, up
from shuffledp._progress import expected
from shuffledp.accounting._curves.profile import PrivacyProfile
from shuffledp.bound import Bound
from shuffledp.errors import NoCertificateError

_FIRST_CELLS, _MOST_CELLS, _STEPS = 48, 6_000, 40  # speed
_USUAL_STEPS, _USUAL_POINTS = 5, 200  # that a warning of long work counts on
INTEGRATING = "integrating the curve"
_STEEPEST = 300.0  # soundness: the growth of e^{rate epsilon} in one cell does not overflow
_MOST_GROWTH = 5e5  # soundness: exponents up to this are good to a tenth of _DIVERGENCE
_CELL = 90_000  # soundness: units; the integrals of a cell are good to 1e-13, so is the sum of all
_DIVERGENCE = 9_000  # soundness: units; its logarithm, and the rounding of exponents


def renyi_divergence(
    profile: PrivacyProfile, order: float, *, backward: PrivacyProfile | None = None, tolerance: float = 1e-3
) -> Bound:
    """The divergence of order > 1 of the pair whose curve is ``profile``, aimed within ``tolerance``.

    ``backward`` is the curve of the reversed pair if it differs. The upper end is inf where outcomes
    of infinite loss are possible."""
    lower, upper = _ends(profile, backward or profile, [order], tolerance)[0]
    return Bound(lower, upper)


def renyi_lowers(
    profile: PrivacyProfile, backward: PrivacyProfile, orders: Sequence[float], tolerance: float
) -> list[float]:
    """The lower ends alone, of many orders; infinite where outcomes of infinite loss are possible."""
    if profile.infinite_loss > 0.0:
        return [math.inf] * len(orders)
    return [lower for lower, _ in _ends(profile, backward, orders, tolerance)]


def likely_divergences(pair: tuple[PrivacyProfile, PrivacyProfile], orders: Sequence[float]) -> Floats | None:
    """About the divergences of a pair's two curves, from estimates on a grid, where these are quick."""
    edges = _first_edges(pair[0].hints.scale, min(pair[0].epsilon_max, LARGEST_EXPONENT), 0.0)
    at, width = edges[:-1], np.diff(edges)
    ahead, back = (curve.hints.log_about(at) for curve in pair)
    if ahead is None or back is None or min(orders) <= 1.0:
        return None
    found = []
    for order in orders:
        grown = np.exp(capped(ahead + (order - 1.0) * at)) + np.exp(capped(back - order * at))
        found.append(math.log1p(order * (order - 1.0) * float((grown * width).sum())) / (order - 1.0))
    return np.array(found)


def renyi_uppers(profile: PrivacyProfile, orders: Sequence[float], tolerance: float = 1e-3) -> list[float]:
    """The upper ends alone, of a curve that need not be that of a pair (the best of several analyses is not
    convex: its lines say where to look closer, and are below nothing)."""
    if profile.epsilon_max == math.inf:
        return [math.inf] * len(orders)
    return [upper for _, upper in _ends(profile, profile, orders, tolerance)]


def _ends(
    profile: PrivacyProfile, backward: PrivacyProfile, orders: Sequence[float], tolerance: float
) -> list[tuple[float, float]]:
    """Of each order: the cells of a curve that are measured for one serve all."""
    several = [_validate.above("order", order, 1.0) for order in orders]
    allowed = _validate.tolerance(tolerance)
    for curve in (profile, backward):
        _require_moderate(max(several), curve.epsilon_max)
    ahead, back = [order - 1.0 for order in several], [-order for order in several]
    if backward is profile:
        found = _integrals(profile, ahead + back, allowed)
    else:
        found = _integrals(profile, ahead, allowed) + _integrals(backward, back, allowed)
    parts = zip(several, found[: len(several)], found[len(several) :], strict=True)
    return [_divergence(order, one, other, profile.epsilon_max) for order, one, other in parts]


def _divergence(
    order: float, ahead: tuple[float, float], back: tuple[float, float], most: float
) -> tuple[float, float]:
    log_factor = math.log(order) + math.log(order - 1.0)
    lower, upper = (
        log1p_exp(float(np.logaddexp(*ends)) + log_factor) / (order - 1.0)
        for ends in zip(ahead, back, strict=True)
    )
    # No order exceeds the largest loss.
    return down(lower, _DIVERGENCE), min(up(upper, _DIVERGENCE, tiny=0.0), most)


def _require_moderate(order: float, epsilon_max: float) -> None:
    if math.isfinite(epsilon_max) and order * epsilon_max > _MOST_GROWTH:
        most = _MOST_GROWTH / epsilon_max
        raise ValueError(f"order must be in (1, {most:g}], got {order!r}; no certificate can be given beyond")


def log1p_exp(x: float) -> float:
    """log(1 + e^x), without overflow."""
    return math.log1p(math.exp(x)) if x < 0.0 else x + math.log1p(math.exp(-x))


def _integrals(
    profile: PrivacyProfile, rates: Sequence[float], tolerance: float
) -> list[tuple[float, float]]:
    """Logarithms of enclosures of int_0^inf e^{rate epsilon} h(epsilon) d epsilon."""
    end = profile.epsilon_max
    if end == 0.0:
        return [(-math.inf, -math.inf)] * len(rates)
    resolution, found = 0.1 * tolerance, []
    reach = end if math.isfinite(end) else 40.0 * profile.hints.scale + 1.0
    steepest = max(map(abs, rates))
    with expected(_USUAL_STEPS, INTEGRATING) as looked:
        _announced(profile, min(profile.hints.scale, 0.3 * reach), resolution)
        cells = _Cells.of(profile, _first_edges(profile.hints.scale, reach, steepest), resolution)
        looked()
        for rate in rates:
            low, high, cells = _refined(cells, profile, rate, tolerance, looked)
            if math.isinf(end) and rate < 0.0:
                # h is at most its last value, and e^{rate epsilon} decays.
                tail = math.log(positive(float(cells.u_right[-1]))) + rate * reach - math.log(-rate)
                high = float(np.logaddexp(high, tail))
            endless = math.isinf(end) and rate > 0.0
            found.append((low - gamma(_CELL), math.inf if endless else high + gamma(_CELL)))
    return found


def _refined(
    cells: _Cells, profile: PrivacyProfile, rate: float, tolerance: float, looked: Callable[[], None]
) -> tuple[float, float, _Cells]:
    """Logarithms of sums from below and above, and the cells that they are of."""
    most = cells.left.size + _MOST_CELLS
    for _ in range(_STEPS):
        high = cells.log_upper(rate)
        low = np.minimum(cells.log_lower(rate), high)
        total_low, total_high = _log_sum(low), _log_sum(high)
        if total_high - total_low <= 0.25 * tolerance or cells.left.size > most:
            break
        # Split where the gap is more than its share of what is allowed.
        gap = np.exp(high - total_high) - np.exp(low - total_high)
        split = gap > 0.05 * tolerance / gap.size
        if not split.any():
            break
        cells = cells.split(split, profile, 0.1 * tolerance)
        looked()
    return total_low, total_high, cells


def _announced(profile: PrivacyProfile, epsilon: float, resolution: float) -> None:
    """Says so where each point takes so long that all will: of two, the first prepares what all need."""
    with suppress(NoCertificateError):
        profile.both(np.array([epsilon]), resolution)
        with expected(_USUAL_POINTS, INTEGRATING) as looked:
            profile.both(np.array([3.0 * epsilon]), resolution)
            looked()


def _log_sum(terms: Floats) -> float:
    top = float(terms.max())
    if top == -math.inf:
        return top
    with np.errstate(under="ignore"):
        return top + math.log(float(np.exp(terms - top).sum()))


def _first_edges(scale: float, reach: float, rate: float) -> Floats:
    """Geometric from a fraction of the scale, and so that e^{rate epsilon} cannot overflow in a cell."""
    start = 0.05 * (min(scale, reach) if scale > 0.0 else reach)
    even = np.linspace(0.0, reach, 2 + math.ceil(abs(rate) * reach / _STEEPEST))
    return np.unique(np.concatenate([even, np.geomspace(start, reach, _FIRST_CELLS)[:-1]]))


class _Cells(NamedTuple):
    """Intervals of epsilon with upper values at both ends and at the middle, and a line at the middle."""

    left: Floats
    right: Floats
    u_left: Floats
    u_middle: Floats
    u_right: Floats
    value: Floats
    slope_low: Floats
    slope_high: Floats

    @classmethod
    def of(cls, profile: PrivacyProfile, edges: Floats, resolution: float) -> _Cells:
        upper = np.minimum(profile.upper(edges[:-1], resolution), 1.0)
        upper = np.append(upper, 0.0 if math.isfinite(profile.epsilon_max) else upper[-1])
        return cls.measured(profile, resolution, edges[:-1], edges[1:], upper[:-1], upper[1:])

    @classmethod
    def measured(cls, profile: PrivacyProfile, resolution: float, *ends: Floats) -> _Cells:
        """From the ends (left, right) and the upper values there; the middle is asked for."""
        left, right, u_left, u_right = ends
        u, lines = profile.both(0.5 * (left + right), resolution)
        known = np.minimum(u, u_left), u_right, lines.value, lines.slope_low, lines.slope_high
        return cls(left, right, u_left, *known)

    def split(self, chosen: np.ndarray, profile: PrivacyProfile, resolution: float) -> _Cells:
        """The chosen cells halved; the others as they are."""
        left, right, u_left, u_middle, u_right = (part[chosen] for part in self[:5])
        middle = 0.5 * (left + right)
        halves = (left, middle), (middle, right), (u_left, u_middle), (u_middle, u_right)
        fresh = _Cells.measured(profile, resolution, *map(np.concatenate, halves))
        kept = (part[~chosen] for part in self)
        joined = [np.concatenate(pair) for pair in zip(kept, fresh, strict=True)]
        order = np.argsort(joined[0])
        return _Cells(*(part[order] for part in joined))

    def log_upper(self, rate: float) -> Floats:
        """log of the integral of the chords left-middle-right, per cell."""
        middle = 0.5 * (self.left + self.right)
        halves = [(self.left, middle, self.u_left, self.u_middle)]
        halves.append((middle, self.right, self.u_middle, np.minimum(self.u_right, self.u_middle)))
        return np.asarray(np.logaddexp(*(_log_chord(rate, *half) for half in halves)))

    def log_lower(self, rate: float) -> Floats:
        """log of the integral of the middle line's positive part, from below, per cell."""
        middle = 0.5 * (self.left + self.right)
        half = 0.5 * (self.right - self.left)
        before = self._half_line(rate, middle, -half, self.slope_low)
        after = self._half_line(rate, middle, half, self.slope_high)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(before + after) + rate * middle)

    def _half_line(self, rate: float, middle: Floats, step: Floats, slope: Floats) -> Floats:
        """int e^{rate t} (value - slope e^middle (e^t - 1)) dt between 0 and step, at least 0."""
        whole, tilt = np.abs(_power(rate, step)), np.abs(_tilted(rate, step))
        line = slope * np.exp(capped(middle)) * tilt
        outward = np.where(step > 0.0, -up(line, _CELL), down(line, _CELL))
        return np.maximum(down(self.value * whole, _CELL) + outward, 0.0)


def _power(rate: float, step: Floats) -> Floats:
    """int_0^step e^{rate t} dt."""
    return np.asarray(np.expm1(rate * step) / rate)


def _tilted(rate: float, step: Floats) -> Floats:
    """int_0^step e^{rate t} (e^t - 1) dt > 0 for rate > 0 or rate < -1; relative error below 1e-13."""
    near = np.abs(step) * max(abs(rate), 1.0) < 0.3
    close = _tilted_series(rate, np.where(near, step, 0.0))
    if abs(rate + 1.0) < 0.5:
        far = _power(rate + 1.0, step) - _power(rate, step)
    else:
        # The same by parts: at rate step = 0.3 this cancels one digit, not those of 1/step.
        product = np.exp(rate * step) * np.expm1(step)
        far = (product - np.expm1(rate * step) / rate) / (rate + 1.0)
    return np.asarray(np.where(near, close, far))


def _tilted_series(rate: float, step: Floats) -> Floats:
    """sum_{k >= 1} ((rate + 1)^k - rate^k) step^{k+1}/(k+1)!; the differences have one sign each."""
    total = np.zeros_like(step)
    difference, power, term = 0.0, 1.0, step
    for k in range(1, 22):
        difference = (rate + 1.0) * difference + power
        power *= rate
        term = term * step / (k + 1.0)
        total = total + difference * term
    return total


def _log_chord(rate: float, left: Floats, right: Floats, high: Floats, low: Floats) -> Floats:
    """log int e^{rate epsilon} (the chord in alpha from ``high`` at left to ``low`` at right) d epsilon."""
    d = right - left
    flat = _power(rate, d)
    # The share of high - low left at t is (e^d - e^t)/(e^d - 1).
    share = flat - _tilted(rate, d) / np.expm1(d)
    with np.errstate(divide="ignore"):
        inside = low * flat + (high - low) * np.minimum(share, flat)
        return np.asarray(np.log(up(inside, _CELL, tiny=0.0)) + rate * left)
