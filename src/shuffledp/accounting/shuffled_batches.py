"""What shuffled batches cost: DP-SGD as most people run it, with a trusted server.

Training adds Gaussian noise to sums of clipped gradients over *fixed* batches, cut from the data after one
shuffle. Accountants usually report the epsilon of *Poisson* sampling instead, which can be far smaller (Chua,
Ghazi, Kamath, Kumar, Manurangsi, Sinha, Zhang 2024). Here the true epsilon of the fixed batches is enclosed,
for zero-out neighbours (one record's gradient becomes zero, its place stays): from above by the Gaussian
mechanism of who knows the shuffle, from below by a threshold on the largest sum (T24,
docs/proofs/shuffled-batches.md). Beside it, for comparison, what random allocation would cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import CALL, LARGEST_EXPONENT, capped, down, gamma, up
from shuffledp.accounting._allocation import allocation
from shuffledp.accounting._ends.upper import epsilon_of
from shuffledp.bound import Bound
from shuffledp.errors import NoCertificateError

_THRESHOLDS = 400  # speed: tried for the lower end
_RELATIVE = 1e-6  # of an epsilon that is searched for
_LEAST_NOISE = 0.1  # below, likelihood ratios of random allocation overflow, and nothing is amplified
_HARDLY_AMPLIFIED = 2.0  # speed: batches times squared noise; below, one sum tells nearly all
_ONE_EPOCH, _SEVERAL_EPOCHS = 1e-3, 5e-3  # speed: tolerances of random allocation


@dataclass(frozen=True)
class ShuffledBatches:
    """``epochs`` passes over ``batches`` fixed batches; noise of ``noise_multiplier`` clipping norms.

    *Adversary*: sees every noisy sum, knows all other records and not the shuffle. *Neighbours*: zero-out.

    >>> run = ShuffledBatches(noise_multiplier=1.0, batches=100)
    >>> run.epsilon(delta=1e-6)  # doctest: +ELLIPSIS
    Bound(lower=4.679..., upper=4.886...)
    """

    noise_multiplier: float
    batches: int
    epochs: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "noise_multiplier", _validate.positive("noise_multiplier", self.noise_multiplier)
        )
        for name in ("batches", "epochs"):
            object.__setattr__(self, name, _validate.count(name, getattr(self, name)))

    @property
    def _spread(self) -> float:
        """Standard deviation of the mean of a batch's sums."""
        return self.noise_multiplier / math.sqrt(self.epochs)

    def delta(self, *, epsilon: Any) -> Bound:
        """The smallest delta at epsilon (a number or an array), enclosed."""
        points = _validate.non_negative("epsilon", epsilon)
        low, high = ([end(float(one)) for one in points.ravel()] for end in (self._lower, self._upper))
        return Bound.of(np.array(low), np.array(high), epsilon)

    def epsilon(self, *, delta: Any) -> Bound:
        """The smallest epsilon at delta (a number or an array), enclosed."""
        if np.ndim(delta):
            return _each(lambda one: self.epsilon(delta=one), delta)
        level = _validate.probability("delta", delta, positive=True)
        if level == 1.0:
            return Bound(0.0, 0.0)
        return Bound(_crossing(self._lower, level)[0], _crossing(self._upper, level)[1])

    def poisson_epsilon(self, *, delta: Any) -> Any:
        """What is usually reported: the same noise, Poisson batches of rate 1/batches (extra ``interop``); at
        delta (a number or an array).

        By dp-accounting, for adding or removing a record: another sampling, and another neighbour."""
        from shuffledp.interop.dp_accounting import poisson_gaussian_epsilon

        if np.ndim(delta):
            found = [self.poisson_epsilon(delta=float(one)) for one in np.ravel(delta)]
            return np.reshape(found, np.shape(delta))
        steps = self.batches * self.epochs
        return poisson_gaussian_epsilon(self.noise_multiplier, 1.0 / self.batches, steps, delta)

    def allocation_epsilon(self, *, delta: Any) -> Bound:
        """What random allocation would cost at delta (a number or an array), enclosed: each record goes to
        one batch of every epoch, drawn for it alone, so that batches differ in size. For the same noise,
        adversary and neighbours.

        >>> run = ShuffledBatches(noise_multiplier=5.0, batches=10)
        >>> run.allocation_epsilon(delta=1e-6)  # doctest: +ELLIPSIS
        Bound(lower=0.245..., upper=0.246...)
        """
        if np.ndim(delta):
            return _each(lambda one: self.allocation_epsilon(delta=one), delta)
        level = _validate.probability("delta", delta, positive=True)
        if self.noise_multiplier < _LEAST_NOISE:
            raise ValueError(
                f"noise_multiplier must be at least {_LEAST_NOISE} for random allocation, "
                f"got {self.noise_multiplier!r}"
            )
        known = _crossing(self._upper, level)[1]  # of who knows where the record is
        one = replace(self, epochs=1)
        attack = _crossing(lambda epsilon: one._lower(epsilon, (1.0, 0.0)), level)[0]
        if self.batches * self.noise_multiplier**2 < _HARDLY_AMPLIFIED:
            return Bound(min(attack, known), known)
        epoch = allocation(self.noise_multiplier, self.batches)
        tolerance = _ONE_EPOCH if self.epochs == 1 else _SEVERAL_EPOCHS
        with suppress(NoCertificateError):
            lower, upper = epsilon_of([(epoch, self.epochs)], level, tolerance)
            return Bound(min(max(lower, attack), known), min(upper, known))
        return Bound(min(attack, known), known)

    def _upper(self, epsilon: float) -> float:
        """Phi(1/(2 s) - epsilon s) - e^epsilon Phi(-1/(2 s) - epsilon s), s = the spread, rounded up."""
        s = self._spread
        near, far = epsilon * s - 0.5 / s, epsilon * s + 0.5 / s
        grown = math.exp(capped(epsilon)) if epsilon <= LARGEST_EXPONENT else 0.0
        return min(1.0, max(0.0, _beyond(near, up) - down(grown * _beyond(far, down), operations=CALL + 2)))

    def _lower(self, epsilon: float, means: tuple[float, float] = (2.0, 1.0)) -> float:
        """By a threshold on the largest sum; ``means``: of the record's batch, with it and without it."""
        if epsilon > LARGEST_EXPONENT:
            return 0.0
        s = self._spread
        grown = up(math.exp(epsilon), operations=CALL)
        best = 0.0
        for c in np.linspace(-8.0 * s, 2.0 + (8.0 + epsilon * s) * s, _THRESHOLDS):
            sides = (self._exceeds(float(c), means[0], down), self._exceeds(float(c), means[1], up))
            best = max(best, sides[0] - up(grown * sides[1], operations=1))
            # None exceeds: 1 - F ... under the record at zero, against it at one.
            low, high = (
                1.0 - self._exceeds(float(c), m, step) for m, step in ((means[1], up), (means[0], down))
            )
            best = max(best, low - up(grown * max(high, 0.0), operations=1) - gamma(8) * (1.0 + grown))
        return max(0.0, down(best, operations=4))

    def _exceeds(self, c: float, mean: float, step: Any) -> float:
        """P(some batch exceeds c), the record's batch having this mean; rounded by ``step``."""
        own, other = _beyond((c - mean) / self._spread, step), _beyond(c / self._spread, step)
        if own >= 1.0 or other >= 1.0:
            return 1.0
        none = math.log1p(-own) + (self.batches - 1) * math.log1p(-other)
        return min(1.0, float(step(-math.expm1(none), operations=4 * CALL)))


def _each(question: Callable[[float], Bound], points: Any) -> Bound:
    """The answers to a question about each of the points, as arrays."""
    found = [question(float(one)) for one in np.ravel(points)]
    return Bound.of(np.array([one.lower for one in found]), np.array([one.upper for one in found]), points)


def _beyond(x: float, step: Any) -> float:
    """P(N(0, 1) > x), rounded by ``step``: erfc turns a unit of x into x^2 + 1 units."""
    return min(1.0, float(step(0.5 * math.erfc(x * math.sqrt(0.5)), operations=CALL + 8.0 * (x * x + 1.0))))


def _crossing(curve: Any, level: float) -> tuple[float, float]:
    """(a point where the curve exceeds the level, or 0; one where it does not), close to each other."""
    if curve(0.0) <= level:
        return 0.0, 0.0
    low, high = 0.0, 1.0
    while curve(high) > level:
        low, high = high, 2.0 * high
        if high > LARGEST_EXPONENT:
            return low, math.inf
    while high - low > _RELATIVE * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if curve(middle) > level else (low, middle)
    return low, high
