"""Where a curve is likely to pass a level: starts for certified searches, by the curve's structure.

For the pair F(kappa, N) of fair signs (see ``_curves.clones``) the start is good to a fraction of a percent.
With Y the mean of N fair signs (nearly normal) and epsilon = 2 atanh(kappa y),

    delta = (1 + e^epsilon) kappa E[(Y - y)_+],   E[(Y - y)_+] ~ (phi(z) - z Phi(-z)) / sqrt(N),

where z^2/2 is N times the rate function of a sign, y^2/2 + y^4/12 + ..., at y. A random N = C + 1, C
binomial, counts as the N that its moment generating function at the rate gives.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from shuffledp._certified.rounding import LARGEST_EXPONENT, TINY, Floats
from shuffledp.accounting._hints.inverse import mills
from shuffledp.accounting._hints.lattices import LatticeHints
from shuffledp.accounting._hints.tilt import Tilts, lattice_spacing

if TYPE_CHECKING:
    from shuffledp.accounting._rounds.compose import ComposedLoss
    from shuffledp.accounting._rounds.round import Rounds

Curve = Callable[[Floats], Floats]
Law = Callable[[Floats], tuple[npt.NDArray[np.bool_], Floats, Floats]]

_FEWEST_CLONES = 200.0  # speed
"""Mean number of clones below which their steps show: there the curve itself is looked at."""
_MANY_CLONES = 4000.0  # speed: from so many on their number is nearly normal
_LOOKS = 3  # speed
_AROUND_NORMAL = np.geomspace(1 / 8, 8, 13)  # speed
_POINTS_PER_LOOK = 17  # speed
_POINTS_FOR_LOWEST = 33  # speed
_REACHED = np.geomspace(3.0, 24.0, 10)  # speed: deviations
_LARGEST_EPSILON = 690.0  # speed
_MOST_SECANTS = 60  # speed
_BELOW_ONE = 0.999999999  # speed
_STEPS, _FEW_TYPES, _MANY_USERS = 12, 6, 100  # speed
_CLOSE_ENOUGH = 1e-7  # speed: relative in y, absolute in log delta


@dataclass(frozen=True)
class Hints:
    """What is guessed of one curve.

    ``scale``: rough standard deviation of the privacy loss. ``costly``: upper bounds take much longer than
    lines, so that as few as possible should be asked for. ``apart``: two points take twice as long as one."""

    scale: float
    costly: bool = False
    apart: bool = False

    def start(self, delta: float, most: float) -> float:
        """About where the curve passes ``delta``, at most ``most``: as if the loss were normal."""
        if self.scale == 0.0:
            return min(1e-6, most)
        away = math.sqrt(2.0 * math.log1p(0.2 * self.scale / delta))
        return min(self.scale * (away + 0.1), most)

    @property
    def close(self) -> bool:
        """Whether the start is mostly within a tenth of a thousandth."""
        return False

    @property
    def company(self) -> float:
        """How many reports of others are alike those that tell: of few, a loss is far from normal."""
        return math.inf

    def promise(self, epsilon: Floats) -> Floats:
        """What upper bounds are hardly below: where less is known, they need not be asked for."""
        return np.zeros(epsilon.size)

    def may_promise(self, epsilon: Floats, most: Floats) -> bool:
        """Whether ``promise`` may be as small as that anywhere, if that is told in no time."""
        return True

    def log_about(self, epsilon: Floats) -> Floats | None:
        """About the logarithm of the curve, to some percent of the curve, if that is told in no time."""
        return None

    def guessed(self, epsilon: Floats) -> Floats | None:
        """The curve to a tenth of a percent, if that is known without a look at it."""
        return None

    def aim(self, epsilon: Floats, value: Floats, slope: Floats, level: float) -> float:
        """Where the curve may pass the level: the root of its tangent in log value, by Newton, from the point
        whose value is nearest. ``slope`` is that in alpha = e^epsilon, falling."""
        usable = np.flatnonzero((value > 0.0) & (slope > 0.0))
        if not usable.size:
            return 0.0
        gap = np.log(value[usable] / level)
        best = int(np.argmin(np.abs(gap)))
        i = int(usable[best])
        at = float(epsilon[i])
        rate = math.exp(min(at, LARGEST_EXPONENT)) * float(slope[i] / value[i])
        return at + float(gap[best]) / rate

    def between(self, low: float, high: float) -> float:
        """A point inside (low, high), either of which may still be unknown (0 and infinity)."""
        if low == 0.0:
            return 0.1 * high if math.isfinite(high) else 1e-3
        if math.isinf(high):
            return 4.0 * low
        return math.sqrt(low * high)

    def spacing(self, rounds: Rounds, resolution: float, stride: int) -> float:
        """Of one lattice for the losses of these rounds, of which this curve's is the first."""
        return lattice_spacing(rounds, resolution, stride)

    def tilts(self, loss: ComposedLoss) -> Tilts:
        """For a sum of losses."""
        return Tilts(loss)


@dataclass(frozen=True, kw_only=True)
class SignsHints(Hints):
    """A mixture over C ~ Bin(trials, rate) of F(kappa, C + 1), met with probability ``weight``.

    ``curve`` looks at the curve itself: for small crowds. Benchmark rows: "one round", within 5 ms."""

    trials: int
    rate: float
    kappa: float
    weight: float
    curve: Curve

    @property
    def company(self) -> float:
        return self.trials * self.rate

    def start(self, delta: float, most: float) -> float:
        if self.company < _FEWEST_CLONES:
            return _located(self.curve, delta, most)
        return likely_epsilon(self.trials, self.rate, self.kappa, self.weight, delta, most)

    def guessed(self, epsilon: Floats) -> Floats | None:
        y = (np.tanh(0.5 * epsilon) / self.kappa).tolist() if self.kappa > 0.0 else [1.0]
        if self.company < _MANY_CLONES or not max(y) < _BELOW_ONE:
            return None
        logs = [_log_delta(self.trials, self.rate, self.kappa, each) for each in y]
        return self.weight * np.exp(logs)


@dataclass(frozen=True, kw_only=True)
class LawHints(Hints):
    """A sum of n iid numbers X of ``types`` values, that is 0 from epsilon = ``reach`` on.

    ``law`` gives its values and weights at some epsilons: which of them matter, rows for those.
    Benchmark rows: "k-ary randomized response", within 50 ms."""

    n: int
    types: int
    reach: float
    law: Law
    lattice: LatticeHints = field(default_factory=LatticeHints)

    @property
    def close(self) -> bool:
        return self.types <= _FEW_TYPES and self.n >= _MANY_USERS

    @property
    def company(self) -> float:
        """By the fourth moment of X, in squares of its second."""
        _, x, w = self.law(np.zeros(1))
        second, fourth = (float((w * x**power).sum()) for power in (2, 4))
        return self.n * second**2 / fourth if fourth > 0.0 else 0.0

    def log_about(self, epsilon: Floats) -> Floats:
        live, x, w = self.law(epsilon)
        value = np.full(epsilon.size, -np.inf)
        if live.any():
            value[live] = self.lattice.log_estimate(x, w, self.types, self.n)
        return value

    def start(self, delta: float, most: float) -> float:
        """Of few types secants of nearly normal sums; else estimates on finer and finer grids."""
        most = min(most, self.reach, LARGEST_EXPONENT)
        found = None
        with suppress(ArithmeticError, ValueError):  # values whose powers are no numbers
            found = self._by_secants(delta, most)
        return self._looked_for(delta, most) if found is None else found

    def _by_secants(self, delta: float, most: float) -> float | None:
        at, theta, before = super().start(delta, most), None, None
        if not (self.close and 0.0 < at < most):
            return None
        live, x, w = self.law(np.array([0.0, at]))  # X is a line in e^epsilon
        grown = math.expm1(at)
        for _ in range(_STEPS if live.all() else 0):
            line = (x[0] + (x[1] - x[0]) * (math.expm1(at) / grown)).tolist()
            height, slope, theta = likely_sum(line, w[0].tolist(), self.n, at, theta)
            if before is not None and before[0] != at:  # a secant
                slope = (height - before[1]) / (before[0] - at) or slope
            before = at, height
            step = (height - math.log(delta)) / slope
            if not abs(step) > 10.0 * _CLOSE_ENOUGH * at:
                return at + step
            if not (at := min(max(at + step, 0.5 * at), 2.0 * at)) < most:
                break
        return None

    def _looked_for(self, delta: float, most: float) -> float:
        # In a huge crowd the answer is far below ``most``: first, look also around where it normally is.
        around = super().start(delta, most) * _AROUND_NORMAL
        epsilon = np.sort(np.append(np.linspace(0.0, most, _POINTS_PER_LOOK), np.minimum(around, most)))
        for _ in range(_LOOKS):
            value = self.log_about(epsilon)
            last = int(np.sum(value >= math.log(delta)))  # the estimates fall, up to their error
            low, high = epsilon[max(last - 1, 0)], epsilon[min(last, epsilon.size - 1)]
            epsilon = np.linspace(low, high, _POINTS_PER_LOOK)
        return 0.5 * float(low + high)


@dataclass(frozen=True, kw_only=True)
class LargestHints(Hints):
    """The largest of several curves."""

    parts: tuple[Hints, ...]

    @property
    def company(self) -> float:
        return min((part.company for part in self.parts), default=0.0)

    def start(self, delta: float, most: float) -> float:
        return max((part.start(delta, most) for part in self.parts), default=0.0)


@dataclass(frozen=True, kw_only=True)
class SubsampledHints(Hints):
    """A cohort's curve seen by the population, at a sampling ``fraction``."""

    cohort: Hints
    fraction: float
    reach: float

    @property
    def company(self) -> float:
        return self.cohort.company

    def start(self, delta: float, most: float) -> float:
        inner = self.cohort.start(min(delta / self.fraction, 1.0), self.reach)
        return min(math.log1p(self.fraction * math.expm1(min(inner, _LARGEST_EPSILON))), most)


@dataclass(frozen=True, kw_only=True)
class RaisedHints(Hints):
    """A curve, zero from ``reach`` on, to which at least ``raised`` is added everywhere."""

    base: Hints
    raised: float
    reach: float

    @property
    def company(self) -> float:
        return self.base.company

    def start(self, delta: float, most: float) -> float:
        return self.base.start(max(delta - self.raised, 0.1 * delta), min(most, self.reach))

    def promise(self, epsilon: Floats) -> Floats:
        return np.asarray(self.base.promise(epsilon) + self.raised)

    def lowest(self, curve: Curve) -> float:
        """Where the raised curve is smallest, from a few looks at many points; of points that cost much, from
        one look at a few, as far as a normal loss reaches."""
        if self.apart:
            points = np.minimum(_REACHED * self.scale, self.reach)
            return float(points[int(curve(points).argmin())])
        points = np.append(0.0, np.geomspace(1e-4, 1.0, _POINTS_FOR_LOWEST) * self.reach)
        for _ in range(_LOOKS):
            best = int(curve(points).argmin())
            found = float(points[best])
            ends = points[max(best - 1, 0)], points[min(best + 1, points.size - 1)]
            points = np.linspace(*ends, _POINTS_FOR_LOWEST)
        return found


@dataclass(frozen=True, kw_only=True)
class NearHints(Hints):
    """A curve raised by (1 + alpha) ``off``: ``turn(off)`` is where it is smallest, as the event that tells
    most has the probability ``off`` there."""

    turn: Callable[[float], float] = field(compare=False)


def normal_turn(shift: float, off: float) -> float:
    """That of two normal laws, ``shift`` deviations apart."""
    far = NormalDist().inv_cdf(off) if TINY < off < 1.0 else math.copysign(math.inf, off - 1.0)
    return -shift * (far + 0.5 * shift)


def laplace_turn(levels: int, scale: float, off: float) -> float:
    """That of discrete Laplace noise of this scale, moved by ``levels``."""
    t = math.floor(levels + scale * math.log(off * (1.0 + math.exp(-1.0 / scale)))) + 1
    return (levels - 2.0 * max(t, 0)) / scale


def table_turn(ratio: Floats, other: Floats, off: float) -> float:
    """That of a table: falling likelihood ratios of outcomes, and probabilities of all up to each one."""
    count = int(np.searchsorted(other, off))
    return math.log(max(float(ratio[min(count, ratio.size) - 1]), TINY))


@dataclass(frozen=True, kw_only=True)
class BinaryHints(Hints):
    """Counts F ~ Bin(m, keep) + Bin(l, lie), weighed by e^(ratio F): see ``_curves.exact_binary``."""

    def tilt(self, ratio: Floats, keep: float, lie: float, users: float) -> Floats:
        """The tilt at which the likelihood ratio passes its bar, or steeper: the window stays short."""
        return np.maximum(ratio, 1.5 / math.sqrt(1.0 + users * keep * lie))

    def alike(self, theta: float, keep: float, lie: float, users: float) -> float:
        """Up to where tilts are about as good as this one: some deviations of the tilted count."""
        grown = lie * math.exp(theta)
        return theta + 2.5 * (grown + keep) / math.sqrt(grown * keep * users)

    def ridge(
        self, ratio: float, theta: float, keep: float, lie: float, users: int, resolution: float
    ) -> RidgeCells:
        """Cells across which exponents change so little that their cubes are below the resolution."""
        deviation = math.sqrt(1.0 + users * keep * lie)
        s = complex(theta, 4.0 / deviation)
        logs = [cmath.log(p * cmath.exp(s) + 1.0 - p) for p in (keep, lie)]
        grown = math.exp(theta)
        slope = keep * grown / (keep * grown + lie) - lie * grown / (lie * grown + keep)
        steep = 1.0 + (ratio * deviation) ** 2  # of log delta, about, in log epsilon
        change = min(0.5 * (1.5 * resolution * steep) ** (1.0 / 3.0), 0.2)
        step = 2.0 * change / abs(s)
        blocks = 1.0 + 0.5 * users * abs(logs[0] - logs[1] - slope * s) / change
        return RidgeCells(blocks, step, math.ceil(max(2.0, 2.5 / step)))

    def threshold(self, ratio: Floats, keep: float, lie: float, m: Floats, others: Floats) -> Floats:
        """The count at which the likelihood ratio passes its bar, about."""
        grown = np.exp(ratio)
        first = keep * grown / (keep * grown + lie)
        second = lie * grown / (lie * grown + keep)
        return np.asarray(m * first + others * second + 0.5)


@dataclass(frozen=True)
class RidgeCells:
    """How finely to look at all datasets: blocks of m, cells of thresholds to either side."""

    blocks: float
    step: float
    columns: int


def _located(curve: Curve, level: float, most: float) -> float:
    """About where a falling curve crosses a level below ``most``, from a few looks at many points."""
    low, high = 0.0, min(most, _LARGEST_EPSILON)
    for _ in range(_LOOKS):
        points = np.linspace(low, high, _POINTS_PER_LOOK)
        value = np.maximum(curve(points), TINY)
        last = min(max(int((value >= level).sum()), 1), points.size - 1)
        low, high = float(points[last - 1]), float(points[last])
    ratio = np.log(value[last - 1 : last + 1] / level)
    share = ratio[0] / (ratio[0] - ratio[1]) if ratio[0] > 0.0 > ratio[1] else 0.5
    return low + float(share) * (high - low)


def likely_sum(
    x: list[float], w: list[float], n: int, epsilon: float, theta: float | None
) -> tuple[float, float, float]:
    """About log (1/n) E[(X_1 + ... + X_n)_+], of a negative mean; minus its slope in epsilon; the tilt, from
    a first one on.

    Under the tilt that makes the mean zero the sum, of deviation s, is nearly normal: with its third and
    fourth cumulants and I_k = int z^k e^(-theta s z) phi(z) dz, E[S e^(-theta S); S > 0] is about

        s (I_1 + k_3/6 (I_4 - 3 I_2) + k_4/24 (I_5 - 6 I_3 + 3 I_1)
           + k_3^2/72 (I_7 - 15 I_5 + 45 I_3 - 15 I_1)),      I_(k+1) = k I_(k-1) - theta s I_k.

    An X falls by e^epsilon (other/clone), whose tilted mean is about one."""
    second = sum(p * v * v for v, p in zip(x, w, strict=True))
    theta = theta or -sum(p * v for v, p in zip(x, w, strict=True)) / second
    for _ in range(_MOST_SECANTS):
        mass = [p * math.exp(min(theta * v, LARGEST_EXPONENT)) for v, p in zip(x, w, strict=True)]
        sums = sum(mass)
        moments = [sum(m * v**k for v, m in zip(x, mass, strict=True)) / sums for k in (1, 2, 3, 4)]
        step = moments[0] / max(moments[1] - moments[0] ** 2, TINY)
        theta = min(max(theta - step, 0.5 * theta), 2.0 * theta)
        if abs(step) <= _CLOSE_ENOUGH * theta:
            break
    deviation = math.sqrt(n * moments[1])
    skew = n * moments[2] / deviation**3
    tails = n * (moments[3] - 3.0 * moments[1] ** 2) / deviation**4
    parts = [mills(far := theta * deviation), 1.0 - far * mills(far)]
    for k in range(1, 7):
        parts.append(k * parts[k - 1] - far * parts[k])
    found = (
        parts[1]
        + skew / 6.0 * (parts[4] - 3.0 * parts[2])
        + tails / 24.0 * (parts[5] - 6.0 * parts[3] + 3.0 * parts[1])
        + skew**2 / 72.0 * (parts[7] - 15.0 * parts[5] + 45.0 * parts[3] - 15.0 * parts[1])
    )
    if not 0.0 < found * far * far < 2.0:  # so far out that differences say nothing
        found = 1.0 / (1.0 + far * far)
    change = sum(p * math.expm1(min(theta * v, LARGEST_EXPONENT)) for v, p in zip(x, w, strict=True))
    height = n * math.log1p(change) + math.log(max(found, TINY) * deviation / (n * math.sqrt(2.0 * math.pi)))
    return height, n * math.exp(epsilon) * parts[0] / (deviation * found), theta


def likely_epsilon(trials: int, rate: float, kappa: float, weight: float, delta: float, most: float) -> float:
    """About where the mixture over C ~ Bin(trials, rate) of F(kappa, C + 1) passes ``delta``.

    By bisection and secants in y: log delta is nearly a parabola in it."""
    if kappa == 0.0 or weight == 0.0:
        return 0.0
    level = math.log(delta / weight)

    def excess(y: float) -> float:
        return _log_delta(trials, rate, kappa, y) - level

    low, high = 0.0, min(math.tanh(0.5 * min(most, 36.0)) / kappa, _BELOW_ONE)
    above, below = excess(low), excess(high)
    if above <= 0.0:
        return 0.0
    if below >= 0.0:
        return most
    y = low
    for step in range(_MOST_SECANTS):
        share = above / (above - below)
        # log delta falls ever faster: the chord's root is left of the true one.
        y = low + (high - low) * (math.sqrt(share) if step < 2 else share)
        value = excess(y)
        if value > 0.0:
            low, above, below = y, value, below * (0.5 if step > 2 else 1.0)
        else:
            high, below, above = y, value, above * (0.5 if step > 2 else 1.0)
        if high - low <= _CLOSE_ENOUGH * high or abs(value) < _CLOSE_ENOUGH:
            break
    return min(2.0 * math.atanh(min(kappa * y, math.nextafter(1.0, 0.0))), most)


def _log_delta(trials: int, rate: float, kappa: float, y: float) -> float:
    cost = 0.5 * ((1.0 + y) * math.log1p(y) + (1.0 - y) * math.log1p(-y))  # of a sign
    log_mgf = trials * math.log1p(rate * math.expm1(-cost)) - cost
    count = -log_mgf / cost if cost > 0.0 else 1.0 + trials * rate
    z = math.sqrt(-2.0 * log_mgf)
    # phi(z) - z Phi(-z), without cancellation far out.
    shape = math.exp(-0.5 * z * z) if z < 37.0 else 0.0
    mills = 0.5 * math.erfc(z / math.sqrt(2.0))
    close = shape / math.sqrt(2.0 * math.pi) - z * mills
    far = -0.5 * z * z - math.log((z * z + 3.0) * math.sqrt(2.0 * math.pi))
    log_shape = math.log(close) if z < 6.0 else far
    steep = math.log((1.0 + kappa * y) / (1.0 - kappa * y)) if kappa * y < 1.0 else 40.0
    return (
        log_shape
        - 0.5 * math.log(count)
        + math.log(kappa)
        + math.log1p(math.exp(min(steep, LARGEST_EXPONENT)))
    )
