"""The crowd theorem: an upper end near the worst crowd of one value (T16, docs/proofs/crowd.md).

The n - 1 others hold what they like; r of them are set aside as a pool, n' = n - 1 - r remain. For every pair
of inputs and every theta > 0 and kappa,

    H_alpha <= max over z of E[b_z(l)] + rare,    b_z(l) = l/(2 pi n') e^(-kappa (l - 1)) N_z(l theta),
    N_z(tau) = int |E e^((tau + i w) X)|^n' / (tau^2 + w^2) dw,    X = (own - alpha other)/clone w.p. clone,

clone the whole law of a report of z. l is a likelihood ratio of the pool's r + 1 reports, of mean one, so
with delta(.) the profile of a round of r + 1 users E[(l - t)_+] <= delta(log t) for t >= 1 and E[(t - l)_+]
<= t delta(-log t) for t <= 1. N_z is log-convex, so a polygon through its values, raised by e^(D^2 / 8) for
steps of relative size D, is above b_z between its corners, and its expectation is a sum of delta's. ``rare``:
of pools with a weight beyond the last corner, for any of the inputs that occur.

N_z is integrated over cells of half width s: on a cell U = n' log |phi| - log(tau^2 + w^2) lies below its
tangent at the middle raised by s^2/2 times a bound of U'', with |phi'| <= sigma, |phi''| <= sigma^2 for
centred X under the tilted law of variance sigma^2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from shuffledp._certified.rounding import CALL, Floats, additions, gamma, positive, total, up
from shuffledp.accounting._curves.profile import PrivacyProfile, SupportingLines
from shuffledp.accounting._hints.crowds import last_weight, pool_size, tilt, weights
from shuffledp.accounting._hints.starts import Hints
from shuffledp.facts import AmplificationLaw

_REACH = (
    320.0,
    80.0,
)  # speed: how far to integrate, in deviations and in tilts at least; beyond counts in full
_BEND = (0.004, 0.015)  # speed: what a cell's bend may add to the exponent, near alpha = 1 and in the tail
_NEAR = 2.5  # speed: in tilts times deviations
_DEPTH = 45.0  # speed: exponents below that are not looked at
_SIZE = 0.25  # speed: |phi| below that is bounded without a tangent
_UNITS = 64  # soundness: operations and calls that a value, a mass or an exponential carries
_VARIANCE = 1.0 + 2.0**-20  # soundness: more than the error of a variance, of which only bounds are needed
_POOL_RESOLUTION = 0.01  # speed
_LARGEST_SHARE = 0.25  # speed: of the users that a pool may take
_LARGEST_LOCAL = 100.0  # soundness: values of X do not overflow; far below it nothing is gained any more


@dataclass(frozen=True)
class CrowdProfile(PrivacyProfile):
    """``laws`` of X: of every ordered pair and third input one of them, or a mixture. ``pool`` gives the
    profile of fewer users; ``inputs``: how many there are at most."""

    n: int
    laws: tuple[AmplificationLaw, ...]
    epsilon0: float
    inputs: float
    pool: Callable[[int], PrivacyProfile] = field(compare=False)

    @property
    def epsilon_max(self) -> float:
        return self.epsilon0

    @cached_property
    def hints(self) -> Hints:
        chi = [
            sum(g * g / c for g, c in zip(law.gap, law.clone, strict=True) if c > 0.0) for law in self.laws
        ]
        return Hints(math.sqrt(max(chi) / self.n))

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        return np.array([_at(self, float(e))[0] for e in epsilon])

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        """Tangents of the bound itself: what it is, not what lies below the truth."""
        value, slope = np.array([_at(self, float(e)) for e in epsilon]).reshape(-1, 2).T
        return SupportingLines(epsilon, value, slope, slope)

    @cached_property
    def variance(self) -> float:
        """Of the X of a pool's report, about."""
        return self.n * self.pool(self.n).hints.scale ** 2

    @lru_cache(maxsize=64)  # noqa: B019
    def _corners(self, size: int) -> _Corners:
        curve = self.pool(size + 1)
        # Beyond every likelihood ratio that there is, also after rounding.
        logs = weights(curve.hints.scale, up(self.epsilon0 + gamma(_UNITS), operations=_UNITS))
        # A little less than the logarithm of the rounded exponential.
        excess = up(curve.upper(np.maximum(logs - gamma(4 * CALL), 0.0), _POOL_RESOLUTION), operations=2)
        return _Corners(logs, np.minimum(excess, 1.0))


@dataclass(frozen=True)
class _Corners:
    """Weights e^-logs and e^logs, and the pool's profile there."""

    logs: Floats
    excess: Floats

    @cached_property
    def rare(self) -> Floats:
        """At most the probability that the weight of one input is beyond each corner, on either side.

        With A: weight > L, delta(t) >= (L - e^t) Pr[A]; with A: weight < 1/L, delta(t) >= (1 - e^t/L) Pr[A].
        Nothing is beyond the last corner, e^epsilon0."""
        grown = np.exp(self.logs)
        doubt = gamma(4 * CALL) * grown
        step = (grown - doubt)[:, None] - (grown + doubt)[None, :]
        least = np.where(step > 0.0, self.excess / np.where(step > 0.0, step, 1.0), np.inf).min(axis=1)
        found = up(np.minimum(least, 1.0) + np.minimum(least * grown, 1.0), operations=4 * CALL)
        return np.append(found[:-1], 0.0)


@lru_cache(maxsize=4096)
def _at(curve: CrowdProfile, epsilon: float) -> tuple[float, float]:
    """(an upper bound at epsilon, about its slope in alpha)."""
    if curve.epsilon0 == 0.0:
        return 0.0, 0.0
    if curve.epsilon0 > _LARGEST_LOCAL:
        return 1.0, 1.0
    growth = math.expm1(min(epsilon, curve.epsilon0))
    laws = [_Law.of(law, growth) for law in curve.laws]
    values = [law.x for law in laws], [law.p for law in laws]
    guess = tilt(*values, curve.n, growth)[1]
    size = pool_size(curve.n, curve.variance, guess, min(curve.inputs, curve.n))
    users = float(curve.n - 1 - size)
    if size > _LARGEST_SHARE * curve.n:
        return 1.0, 1.0
    theta, guess = tilt(*values, int(users), growth)
    corners = curve._corners(size)
    last = max(1, last_weight(min(curve.inputs, users) * corners.rare, guess))
    logs, excess = corners.logs[: last + 1], corners.excess[: last + 1]
    scaled = np.exp(np.concatenate([-logs[:0:-1], logs]))
    laws.sort(key=lambda law: -law.height(theta))
    kappa, most = None, 0.0
    for law in laws:
        if kappa is not None:
            crude = law.log_crude(scaled * theta, users) + np.log(scaled / users) - kappa * (scaled - 1.0)
            if _expectation(scaled, crude, last, excess) <= most:
                continue
        with np.errstate(over="ignore"):  # where rounding hides everything
            height = np.log(scaled / users) + law.log_integrals(scaled * theta, users)
        if not np.isfinite(height).all():
            return 1.0, 1.0
        if kappa is None:
            kappa = float((height[last + 1] - height[last - 1]) / (scaled[last + 1] - scaled[last - 1]))
        most = max(most, _expectation(scaled, height - kappa * (scaled - 1.0), last, excess))
    bound = up(most + min(curve.inputs, users) * float(corners.rare[last]), operations=8)
    if not bound < 1.0:
        return 1.0, users * theta
    return bound, bound * users * theta * laws[0].other(theta)


def _expectation(scaled: Floats, height: Floats, middle: int, excess: Floats) -> float:
    """Of the polygon through e^height, made convex from ``middle`` on, raised between its corners.

    Slopes are differences of rounded numbers: each is off by a share of what is subtracted."""
    step = float((np.diff(scaled) / scaled[:-1]).max())
    with np.errstate(over="ignore", invalid="ignore"):
        b = np.exp(height + step * step / 8.0)
        run = np.diff(scaled)
        slope, doubt = np.diff(b) / run, gamma(2 * CALL + 8) * (b[1:] + b[:-1]) / run
        # Outward slopes, rounded up; kinks are how much steeper a piece is than all before it.
        right, left = (slope + doubt)[middle:], (doubt - slope)[:middle][::-1]
        kinks = [np.diff(np.maximum.accumulate(np.append(0.0, side[1:] - side[0]))) for side in (right, left)]
        meeting = max(0.0, float(right[0] + left[0]))
        # Beyond the last corner a polygon that still falls is held level.
        ends = [
            max(0.0, -float(side[0] + kink.sum())) for side, kink in zip((right, left), kinks, strict=True)
        ]
        low = scaled[:middle][::-1]
        result = float(b[middle]) + meeting * float(excess[0])
        result += float(kinks[0] @ excess[1:-1]) + ends[0] * float(excess[-1])
        result += float(kinks[1] @ (low[:-1] * excess[1:-1])) + ends[1] * float(low[-1] * excess[-1])
    return up(result, operations=2 * scaled.size + 4 * CALL) if math.isfinite(result) else math.inf


@dataclass(frozen=True)
class _Law:
    """Values ``x`` of X and their masses ``p``; ``size`` >= |x|, relative to which x is rounded."""

    x: Floats
    p: Floats
    size: Floats
    ratio: Floats

    @classmethod
    def of(cls, law: AmplificationLaw, growth: float) -> _Law:
        gap, other, clone = (np.array(part) for part in (law.gap, law.other, law.clone))
        seen = clone > 0.0
        gap, other, clone = gap[seen], other[seen], clone[seen]
        return cls(
            (gap - growth * other) / clone, clone, (np.abs(gap) + growth * other) / clone, other / clone
        )

    def _tilted(self, tau: Floats) -> tuple[Floats, Floats]:
        """log E e^(tau X), and the tilted masses, rows of tau."""
        exponent = np.log(self.p) + np.outer(tau, self.x)
        top = exponent.max(axis=1)
        mass = np.exp(exponent - top[:, None])
        sums = mass.sum(axis=1)
        return top + np.log(sums), mass / sums[:, None]

    def height(self, theta: float) -> float:
        return float(self._tilted(np.array([theta]))[0][0])

    def other(self, theta: float) -> float:
        """About the tilted mean of other / clone: minus the slope of X in alpha."""
        return float((self._tilted(np.array([theta]))[1] @ self.ratio)[0])

    def log_crude(self, tau: Floats, users: float) -> Floats:
        """More than log N(tau) / (2 pi): |phi| is at most its value at w = 0."""
        log_phi, mass = self._tilted(tau)
        error = gamma(_UNITS + 4 * self.x.size) * (1.0 + tau * (mass @ self.size))
        return np.asarray(users * (log_phi + 16.0 * error) - np.log(2.0 * tau) + gamma(_UNITS))

    def log_integrals(self, tau: Floats, users: float) -> Floats:
        """log N(tau) / (2 pi), rounded up, for every tau (see module)."""
        log_phi, mass = self._tilted(tau)
        mean, reach = mass @ self.x, mass @ self.size
        variance = _VARIANCE * (mass * (self.x - mean[:, None]) ** 2).sum(axis=1) + (2.0**-20 * reach) ** 2
        sigma = np.sqrt(variance)
        middle, widest = float(np.median(tau)), math.sqrt(users * float(variance.max()))
        half = math.sqrt(_BEND[0] if middle * widest < _NEAR else _BEND[1]) / widest
        count = math.ceil(max(_REACH[0] / widest, _REACH[1] * middle) / (2.0 * half))
        w = half * (2.0 * np.arange(count) + 1.0)
        end = 2.0 * half * count
        angle = np.outer(w, self.x)
        waves = np.cos(angle) + 1j * np.sin(angle)
        phi = waves @ mass.T
        # All roundings and the law's own: of phi, relative to E e^(tau X).
        unit = gamma(_UNITS + 4 * self.x.size)
        error = unit * (1.0 + (tau + end) * reach)
        top = np.abs(phi) + half * sigma + error
        live = (top >= math.exp(-_DEPTH / users)).any(axis=1)
        cells = _Cells(w[live], half, users, tau, sigma, phi[live], top[live])
        inside = cells.integral((waves[live] * self.x) @ mass.T)
        rest = math.exp(-_DEPTH) * math.pi / tau + 2.0 / end
        rounded = up((inside + rest) / (2.0 * math.pi), operations=additions(count) + 8 * CALL + _UNITS)
        # Of the derivative likewise; slopes are its quotients by |phi|^2 >= 1/16.
        steep = 64.0 * (unit * (reach + (tau + end) * (mass @ self.size**2)) + reach * error)
        slack = users * (16.0 * error + half * steep)
        return np.asarray(users * log_phi + np.log(rounded) + slack)


@dataclass(frozen=True)
class _Cells:
    """Middles ``w`` > 0 of cells of one ``half`` width; columns of tau. |phi| <= ``top`` on the cell."""

    w: Floats
    half: float
    users: float
    tau: Floats
    sigma: Floats
    phi: npt.NDArray[np.complex128]
    top: Floats

    def integral(self, derivative: npt.NDArray[np.complex128]) -> Floats:
        """Over the cells around w and -w, each below its raised tangent. ``derivative``: tilted E X e^iwX."""
        half, w, size = self.half, self.w[:, None], np.abs(self.phi)
        least = size - half * self.sigma
        tangent = least >= _SIZE
        low = np.maximum(least, _SIZE)
        bend = self.sigma**2 * (1.0 / low + 1.0 / low**2)
        place = self.tau**2 + w**2
        slope = -(derivative * self.phi.conj()).imag / positive(size) ** 2
        log_size = np.where(tangent, np.log(low + half * self.sigma) + 0.5 * bend * half**2, np.log(self.top))
        exponent = self.users * log_size - np.log(place) + half**2 / (self.tau**2 + (w - half) ** 2)
        steep = np.abs(np.where(tangent, self.users * slope, 0.0) - 2.0 * w / place) * half
        # The mean of e^(steep t) over [-1, 1], from above: 1 + steep^2 where that is small, else e^steep.
        mean = np.where(steep < 1.0, 1.0 + steep**2 / 5.0, 1.0)
        return np.asarray(4.0 * half * total((np.exp(exponent + np.where(steep < 1.0, 0.0, steep)) * mean).T))
