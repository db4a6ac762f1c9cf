"""The Renyi divergence of a privacy profile, enclosed.

Theorem T15 (docs/proofs/renyi.md) writes E_Q[(P/Q)^order] as an integral of the curve, which is convex in
alpha: chords between upper values lie above it, its supporting lines below. Both are integrated exactly
against the exponential, each from points of its own, more of them where they matter. Large orders ask for
the far tail, of which logarithms are known (T15', ``far``). A PrivacyProfile is symmetric unless two are
given; its upper curve bounds the divergence of every pair it covers, in both directions.

>>> from shuffledp.accounting._curves.clones import strong_clones
>>> bound = renyi_divergence(strong_clones(4.0, 1000), order=2)
>>> 0.106826620291 in bound
True
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import LARGEST_EXPONENT, TINY, Floats, capped, down, gamma, positive, up
from shuffledp._progress import expected
from shuffledp.accounting._curves.far import log_above, log_far
from shuffledp.accounting._curves.profile import PrivacyProfile, SupportingLines
from shuffledp.bound import Bound
from shuffledp.errors import NoCertificateError

_FIRST_POINTS, _AT_ONCE, _MOST_POINTS, _PASSES = 48, 12, 6_000, 12  # speed
_MOST_PARTS, _ROUNDED, _ENOUGH = 8.0, 0.4, 1.2  # speed: of a cell at once; what is near enough to the aim
_SHARE, _REST = 0.2, 1e-3  # tightness: of the tolerance, for cells, and for what lies beyond the last point
_USUAL_POINTS, _TOLD_AFTER = 100, 24  # that a warning of long work counts on; and looks after so many
_ROUGH, _AS_LARGE = 0.1, 0.8  # speed, tightness: the witnesses that are looked at closely
INTEGRATING = "integrating the curve"
_DEEP = 500.0  # speed: growth up to here leaves next to nothing of what doubles do not hold
_STEEPEST = 300.0  # soundness: the growth of e^{rate epsilon} in one cell does not overflow
_MOST_GROWTH = 5e5  # soundness: exponents up to this are good to a tenth of _DIVERGENCE
_CELL = 90_000  # soundness: units; the integrals of a cell are good to 1e-13, so is the sum of all
_DIVERGENCE = 9_000  # soundness: units; its logarithm, and the rounding of exponents
Pair = tuple[PrivacyProfile, PrivacyProfile]
"""A curve and that of the reversed pair, which may be the same."""


def renyi_divergence(
    profile: PrivacyProfile, order: float, *, backward: PrivacyProfile | None = None, tolerance: float = 1e-3
) -> Bound:
    """The divergence of order > 1 of the pair whose curve is ``profile``, aimed within ``tolerance``.

    ``backward`` is the curve of the reversed pair if it differs. The upper end is inf where outcomes
    of infinite loss are possible."""
    pair = profile, backward or profile
    (lower,), (upper,) = (_divergences(kind, pair, [order], tolerance) for kind in (_Lines, _Chords))
    return Bound(min(lower, upper), upper)


def renyi_lowers(pairs: Sequence[Pair], orders: Sequence[float], tolerance: float = 1e-3) -> list[float]:
    """Of each order what the best of these pairs attains; infinite where outcomes of infinite loss are
    possible. Estimates tell which pairs are looked at closely: any is attained."""
    if any(profile.infinite_loss > 0.0 for profile, _ in pairs):
        return [math.inf] * len(orders)
    found, large = np.zeros(len(orders)), [True] * len(pairs)
    if len(pairs) > 1:
        about = np.array([_about(pair, [min(orders), max(orders)], tolerance) for pair in pairs])
        large = (about >= _AS_LARGE * about.max(axis=0)).any(axis=1).tolist()
    for pair in (pair for pair, so in zip(pairs, large, strict=True) if so):
        with suppress(NoCertificateError):  # one witness less: the others are still attained
            found = np.maximum(found, _divergences(_Lines, pair, orders, tolerance))
    return [float(one) for one in found]


def _about(pair: Pair, orders: Sequence[float], tolerance: float) -> Floats:
    """About the divergences: from estimates of the curves where these are quick, else rough integrals."""
    reach, found = min(pair[0].epsilon_max, LARGEST_EXPONENT), np.zeros(len(orders))
    if reach == 0.0:
        return found
    edges = _first_edges(pair[0].hints.scale, reach, 0.0)
    at, width = edges[:-1], np.diff(edges)
    ahead, back = (curve.hints.log_about(at) for curve in pair)
    with suppress(NoCertificateError):
        if ahead is None or back is None or min(orders) <= 1.0:
            return np.array(_divergences(_Lines, pair, orders, max(tolerance, _ROUGH)))
        for place, order in enumerate(orders):
            grown = np.exp(capped(ahead + (order - 1.0) * at)) + np.exp(capped(back - order * at))
            moment = order * (order - 1.0) * float((grown * width).sum())
            found[place] = math.log1p(moment) / (order - 1.0)
    return found


def renyi_uppers(profile: PrivacyProfile, orders: Sequence[float], tolerance: float = 1e-3) -> list[float]:
    """The upper ends alone, of a curve that need not be that of a pair (the best of several analyses is not
    convex; the curves below it are)."""
    if profile.epsilon_max == math.inf:
        return [math.inf] * len(orders)
    return _divergences(_Chords, (profile, profile), orders, tolerance)


def _divergences(kind: type[_Points], pair: Pair, orders: Sequence[float], tolerance: float) -> list[float]:
    """Of each order, from above or below: the points that are looked at for one serve all."""
    several = [_validate.above("order", order, 1.0) for order in orders]
    allowed = _validate.tolerance(tolerance)
    for curve in pair:
        _require_moderate(max(several), curve.epsilon_max)
    ahead, back = [order - 1.0 for order in several], [-order for order in several]
    if pair[0] is pair[1]:
        found = _integrals(kind, pair[0], ahead + back, allowed)
    else:
        found = _integrals(kind, pair[0], ahead, allowed) + _integrals(kind, pair[1], back, allowed)
    ends = zip(several, found[: len(several)], found[len(several) :], strict=True)
    return kind.monotone(several, [kind.rounded(*each, pair[0].epsilon_max) for each in ends])


def _require_moderate(order: float, epsilon_max: float) -> None:
    if math.isfinite(epsilon_max) and order * epsilon_max > _MOST_GROWTH:
        most = _MOST_GROWTH / epsilon_max
        raise ValueError(f"order must be in (1, {most:g}], got {order!r}; no certificate can be given beyond")


def log1p_exp(x: float) -> float:
    """log(1 + e^x), without overflow."""
    return math.log1p(math.exp(x)) if x < 0.0 else x + math.log1p(math.exp(-x))


def _integrals(
    kind: type[_Points], profile: PrivacyProfile, rates: Sequence[float], tolerance: float
) -> list[float]:
    """Logarithms of bounds of int_0^inf e^{rate epsilon} h(epsilon) d epsilon."""
    end = profile.epsilon_max
    if end == 0.0:
        return [-math.inf] * len(rates)
    reach = end if math.isfinite(end) else 40.0 * profile.hints.scale + 1.0
    edges = _first_edges(profile.hints.scale, reach, max(map(abs, rates)))
    deep = math.isfinite(end) and max(rates) * end > _DEEP
    with expected(_USUAL_POINTS, INTEGRATING) as looked:

        def look(points: Floats) -> _Points:
            found = []
            for some in np.array_split(points, -(-points.size // _TOLD_AFTER)):
                found.append(kind.at(profile, some, 0.1 * tolerance, deep))
                looked(some.size)
            return reduce(lambda known, more: known.merge(more), found)

        points = _followed(look, edges, max(rates), tolerance)
        for rate in sorted(rates, key=abs):
            points = _refined(look, points, rate, tolerance)
    return [points.log_integral(rate) for rate in rates]


def _followed(look: Callable[[Floats], _Points], edges: Floats, rate: float, tolerance: float) -> _Points:
    """From the left, until what is left is next to nothing, or nothing is known of it: the curve falls.

    The largest rate asks for most: against e^{rate end} all integrals fall as the rate grows."""
    found = look(edges[:_AT_ONCE])
    for start in range(_AT_ONCE, edges.size, _AT_ONCE):
        if found.log_rest(rate) <= found.log_integral(rate) + math.log(_REST * tolerance):
            break
        try:
            found = found.merge(look(edges[start : start + _AT_ONCE]))
        except NoCertificateError:
            break
    return found


def _refined(look: Callable[[Floats], _Points], points: _Points, rate: float, tolerance: float) -> _Points:
    """With more points until the cells between them lose little; of n parts each loses 1/n^3."""
    most = points.epsilon.size + _MOST_POINTS
    for _ in range(_PASSES):
        lost, allowed = points.lost(rate), _SHARE * tolerance * _less_moved(points.log_integral(rate), rate)
        if lost.sum() <= _ENOUGH * allowed or points.epsilon.size > most:
            break
        parts = np.cbrt(lost) * math.sqrt(float(np.cbrt(lost).sum()) / allowed)
        inner = _inside(points.epsilon, np.clip(np.floor(parts + _ROUNDED), 1.0, _MOST_PARTS))
        if not inner.size:
            break
        try:
            points = points.merge(look(inner))
        except NoCertificateError:
            break  # what is known holds
    return points


def _less_moved(log_integral: float, rate: float) -> float:
    """A divergence is the logarithm of 1 + e^z: where z is large it moves by less than its part."""
    order = max(rate + 1.0, -rate)
    z = log_integral + math.log(order) + math.log(order - 1.0)
    return log1p_exp(z) * (1.0 + math.exp(-z)) if 0.0 < z < math.inf else 1.0


def _inside(epsilon: Floats, parts: Floats) -> Floats:
    """New points that cut every cell into so many parts."""
    times = parts.astype(np.intp)
    cell = np.repeat(np.arange(times.size), times)
    place = np.arange(cell.size) - np.repeat(np.cumsum(times) - times, times)
    at = epsilon[cell] + np.diff(epsilon)[cell] * place / times[cell]
    return np.setdiff1d(at[place > 0], epsilon)


def _log_sum(terms: Floats) -> float:
    top = float(terms.max(initial=-math.inf))
    if not math.isfinite(top):
        return top
    with np.errstate(under="ignore"):
        return top + math.log(float(np.exp(terms - top).sum()))


def _first_edges(scale: float, reach: float, rate: float) -> Floats:
    """Geometric from a fraction of the scale, and so that e^{rate epsilon} cannot overflow in a cell."""
    start = 0.05 * (min(scale, reach) if scale > 0.0 else reach)
    even = np.linspace(0.0, reach, 2 + math.ceil(abs(rate) * reach / _STEEPEST))
    return np.unique(np.concatenate([even, np.geomspace(start, reach, _FIRST_POINTS)[:-1]]))


@dataclass(frozen=True)
class _Points(ABC):
    """What is known of a curve at some epsilons, the first of them 0, and between them."""

    epsilon: Floats
    end: float
    """The curve is zero from here on."""

    @classmethod
    @abstractmethod
    def at(cls, profile: PrivacyProfile, epsilon: Floats, resolution: float, deep: bool) -> _Points:
        """Of the curve; ``deep``: also where its values are below what doubles hold."""

    @abstractmethod
    def merge(self, others: _Points) -> _Points:
        """These points and others."""

    @abstractmethod
    def log_integral(self, rate: float) -> float:
        """log of a bound of int_0^inf e^{rate epsilon} h(epsilon) d epsilon."""

    @property
    @abstractmethod
    def log_last(self) -> float:
        """log of the bound at the last point."""

    @abstractmethod
    def bends(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Of every cell: a scale, as its logarithm; in units of it the bound at the left, and about how
        steeply the curve falls in alpha at the left and at the right."""

    @staticmethod
    @abstractmethod
    def rounded(order: float, ahead: float, back: float, most: float) -> float:
        """The divergence, outward, from the logarithms of the two integrals."""

    @staticmethod
    @abstractmethod
    def monotone(orders: Sequence[float], found: Sequence[float]) -> list[float]:
        """Divergences grow with the order: what bounds one bounds others."""

    def log_rest(self, rate: float) -> float:
        """log of about what is right of the last point, if the curve stays as it is there."""
        last, value = float(self.epsilon[-1]), self.log_last
        if last >= self.end:
            return -math.inf
        edge = self.end if rate > 0.0 else last
        return value + rate * edge - math.log(abs(rate)) if math.isfinite(edge) else math.inf

    def lost(self, rate: float) -> Floats:
        """About what every cell loses, as a share of all: a twelfth of the change of the slope, the widths
        in alpha and in epsilon."""
        width = np.diff(self.epsilon)
        run = np.exp(capped(self.epsilon[:-1])) * np.expm1(np.minimum(width, _STEEPEST))
        scale, most, before, after = self.bends()
        bend = np.minimum(np.maximum(before - after, 0.0) * run / 12.0, most)
        with np.errstate(over="ignore", under="ignore"):
            share = _power(rate, width) * np.exp(
                np.minimum(rate * self.epsilon[:-1] + scale - self.log_integral(rate), _STEEPEST)
            )
        return np.asarray(np.nan_to_num(bend * share, posinf=1.0))


def _divergence(order: float, ahead: float, back: float) -> float:
    log_factor = math.log(order) + math.log(order - 1.0)
    return log1p_exp(float(np.logaddexp(ahead, back)) + log_factor) / (order - 1.0)


@dataclass(frozen=True)
class _Chords(_Points):
    """Upper values, and the chords between them."""

    log_upper: Floats
    """Their logarithms."""

    @classmethod
    def at(cls, profile: PrivacyProfile, epsilon: Floats, resolution: float, deep: bool) -> _Chords:
        """Where the far tail is known, and below all that doubles hold, no value is asked for."""
        inside = epsilon[epsilon < profile.epsilon_max]
        log_upper = log_far(profile, inside) if deep else np.full(inside.size, np.inf)
        near = log_upper > math.log(TINY)
        if near.any():
            upper = log_above(np.minimum(profile.upper(inside[near], resolution), 1.0))
            log_upper[near] = np.minimum(log_upper[near], upper)
        return cls._falling(
            epsilon, profile.epsilon_max, np.append(log_upper, np.full(epsilon.size - inside.size, -np.inf))
        )

    @classmethod
    def _falling(cls, epsilon: Floats, end: float, log_upper: Floats) -> _Chords:
        return cls(epsilon, end, np.minimum.accumulate(log_upper))

    def merge(self, others: _Points) -> _Chords:
        assert isinstance(others, _Chords)
        epsilon = np.append(self.epsilon, others.epsilon)
        order = np.argsort(epsilon)
        return self._falling(epsilon[order], self.end, np.append(self.log_upper, others.log_upper)[order])

    @property
    def log_last(self) -> float:
        return float(self.log_upper[-1])

    def bends(self) -> tuple[Floats, Floats, Floats, Floats]:
        """In units of the bound at the left; slopes half way to those of the neighbouring chords."""
        run = np.exp(capped(self.epsilon[:-1])) * np.expm1(np.minimum(np.diff(self.epsilon), _STEEPEST))
        left = self.log_upper[:-1]
        some = np.isfinite(left)
        fall = np.where(some, self.log_upper[1:], 0.0) - np.where(some, left, 0.0)
        kept = np.exp(np.maximum(fall, -_STEEPEST))
        chord = (1.0 - kept) / positive(run)
        before = np.append(chord[:1], 0.5 * (chord[:-1] / kept[:-1] + chord[1:]))
        after = np.append(0.5 * (chord[:-1] + chord[1:] * kept[:-1]), chord[-1:])
        return left, np.ones(left.size), before, after

    def log_integral(self, rate: float) -> float:
        """Beyond the last point the curve is at most its last value."""
        ends = self.log_upper[:-1], self.log_upper[1:]
        cells = _log_chord(rate, self.epsilon[:-1], self.epsilon[1:], *ends)
        return float(np.logaddexp(_log_sum(cells), self.log_rest(rate))) + gamma(_CELL)

    @staticmethod
    def rounded(order: float, ahead: float, back: float, most: float) -> float:
        """No order exceeds the largest loss."""
        return min(up(_divergence(order, ahead, back), _DIVERGENCE, tiny=0.0), most)

    @staticmethod
    def monotone(orders: Sequence[float], found: Sequence[float]) -> list[float]:
        """Those of larger orders bound those of smaller ones."""
        return [min(b for other, b in zip(orders, found, strict=True) if other >= order) for order in orders]


@dataclass(frozen=True)
class _Lines(_Points):
    """Supporting lines: between two points each is followed up to where they meet."""

    lines: SupportingLines

    @classmethod
    def at(cls, profile: PrivacyProfile, epsilon: Floats, resolution: float, deep: bool) -> _Lines:
        """Zero is below the curve, also where an exponential would overflow."""
        inside = epsilon < min(profile.epsilon_max, LARGEST_EXPONENT)
        lines, zeros = profile.support(epsilon[inside], resolution), np.zeros((3, epsilon.size))
        zeros[:, inside] = lines.value, lines.slope_low, lines.slope_high
        return cls(epsilon, profile.epsilon_max, SupportingLines(epsilon, *zeros))

    def merge(self, others: _Points) -> _Lines:
        assert isinstance(others, _Lines)
        epsilon = np.append(self.epsilon, others.epsilon)
        order = np.argsort(epsilon)
        names = "value", "slope_low", "slope_high"
        parts = [np.append(getattr(self.lines, name), getattr(others.lines, name))[order] for name in names]
        return _Lines(epsilon[order], self.end, SupportingLines(epsilon[order], *parts))

    @property
    def value(self) -> Floats:
        return self.lines.value

    @property
    def log_last(self) -> float:
        return math.log(positive(float(self.value[-1])))

    def bends(self) -> tuple[Floats, Floats, Floats, Floats]:
        before, after = 0.5 * self.lines.slope_high[:-1], 0.5 * self.lines.slope_low[1:]
        return 0.0 * before, self.value[:-1], before, after

    def log_integral(self, rate: float) -> float:
        after = self._steps()
        before = np.append(0.0, np.diff(self.epsilon) - after)
        sides = (-before, self.lines.slope_low), (np.append(after, 0.0), self.lines.slope_high)
        with np.errstate(divide="ignore"):
            parts = np.log(sum(self._half(rate, *side) for side in sides))
        return _log_sum(parts + rate * self.epsilon) - gamma(_CELL)

    def _steps(self) -> Floats:
        """From every point to where its line meets the next one's: any step is valid."""
        width, value = np.diff(self.epsilon), self.value
        run = np.expm1(np.minimum(width, _STEEPEST))  # in units of alpha at the left
        alpha = np.exp(capped(self.epsilon[:-1]))
        falls, next_falls = alpha * self.lines.slope_high[:-1], alpha * self.lines.slope_low[1:]
        over = value[1:] + next_falls * run - value[:-1]
        meet = np.where(next_falls < falls, over / np.where(next_falls < falls, next_falls - falls, 1.0), run)
        return np.asarray(np.minimum(np.log1p(np.clip(np.nan_to_num(meet), 0.0, run)), width))

    def _half(self, rate: float, step: Floats, slope: Floats) -> Floats:
        """int e^{rate t} (value - slope e^epsilon (e^t - 1)) dt between 0 and step, at least 0; to the right
        no further than where the line is zero."""
        falls = slope * np.exp(capped(self.epsilon))
        zero = np.log1p(self.value / positive(falls))
        step = np.minimum(step, zero)
        whole, tilt = np.abs(_power(rate, step)), np.abs(_tilted(rate, step))
        line = falls * tilt
        outward = np.where(step > 0.0, -up(line, _CELL), down(line, _CELL))
        return np.maximum(down(self.value * whole, _CELL) + outward, 0.0)

    @staticmethod
    def rounded(order: float, ahead: float, back: float, most: float) -> float:
        """No less than zero."""
        return float(down(_divergence(order, ahead, back), _DIVERGENCE))

    @staticmethod
    def monotone(orders: Sequence[float], found: Sequence[float]) -> list[float]:
        """Those of smaller orders are attained by larger ones."""
        return [max(b for other, b in zip(orders, found, strict=True) if other <= order) for order in orders]


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


def _log_chord(rate: float, left: Floats, right: Floats, log_high: Floats, log_low: Floats) -> Floats:
    """log int e^{rate epsilon} (the chord in alpha from e^log_high at left to e^log_low at right)."""
    d = right - left
    flat = _power(rate, d)
    # The share of high - low left at t is (e^d - e^t)/(e^d - 1).
    share = flat - _tilted(rate, d) / np.expm1(d)
    some = np.isfinite(log_high)
    fall = np.where(some, log_low, 0.0) - np.where(some, log_high, 0.0)
    low = np.exp(np.maximum(fall, -LARGEST_EXPONENT))
    with np.errstate(divide="ignore"):
        inside = low * flat + (1.0 - low) * np.minimum(share, flat)
        found = np.log(up(inside, _CELL, tiny=0.0)) + rate * left + log_high
    # Both may be large where they cancel.
    return np.asarray(found + gamma(4) * (np.abs(rate * left) + np.where(some, np.abs(log_high), 0.0)))
