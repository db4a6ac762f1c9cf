"""The same question without a shuffler, and with a trusted curator: what does the shuffler buy?

* Local: nobody is trusted. The same kinds of randomizers with epsilon0 = epsilon, the best one for that
  (all rounds together: epsilon0 = epsilon / rounds).
* Central: a curator sees all data and adds Gaussian noise, calibrated exactly to (epsilon, delta)
  (``analytic_gaussian_sigma``; rounds together: noise larger by their square root, which is exact for
  Gaussian noise).

Both give the expected squared error exactly, and can be simulated. They are yardsticks: the simulated
curator's noise is ordinary floating-point noise, not fit for release.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from shuffledp.collecting._choice import best_local, mean_variance, relative_variance
from shuffledp.collecting._gaussian import analytic_gaussian_sigma
from shuffledp.collecting.histogram import HistogramProtocol
from shuffledp.collecting.number import NumberProtocol
from shuffledp.randomizers.kary import KaryRandomizedResponse


class Baseline(ABC):
    """Another way to answer a protocol's question at the same (epsilon, delta)."""

    @property
    @abstractmethod
    def standard_error(self) -> float:
        """Root of the expected squared error: of a count (mean over categories), or of the sum or mean.

        For sums and means it is the largest over all data."""

    @abstractmethod
    def simulate(self, column: Any, rng: np.random.Generator) -> Any:
        """One random answer for raw values: counts per category, or a number."""


@dataclass(frozen=True)
class LocalBaseline(Baseline):
    """The same protocol with a randomizer that needs no shuffler."""

    protocol: HistogramProtocol | NumberProtocol

    @property
    def standard_error(self) -> float:
        if isinstance(self.protocol, NumberProtocol):
            return self.protocol.worst_standard_error
        return math.sqrt(self.protocol.n * mean_variance(self.protocol.randomizer))

    def simulate(self, column: Any, rng: np.random.Generator) -> Any:
        values = np.atleast_1d(self.protocol.encode(column, rng=rng))
        reports = self.protocol.randomizer.randomize(values, rng=rng)
        return self.protocol.estimate(self.protocol.count(reports), len(values))


@dataclass(frozen=True)
class CentralBaseline(Baseline):
    """Gaussian noise of standard deviation ``sigma`` on true counts, or on the true sum."""

    protocol: HistogramProtocol | NumberProtocol
    sigma: float

    @property
    def standard_error(self) -> float:
        return self._scaled(self.sigma, self.protocol.n)

    def simulate(self, column: Any, rng: np.random.Generator) -> Any:
        if isinstance(self.protocol, NumberProtocol):
            numbers = np.atleast_1d(self.protocol.numbers(column))
            noisy = float(numbers.sum()) + self.sigma * float(rng.standard_normal())
            return self._scaled(noisy, numbers.size)
        values = np.atleast_1d(self.protocol.encode(column))
        counts = np.bincount(values, minlength=self.protocol.k)
        return counts + self.sigma * rng.standard_normal(self.protocol.k)

    def _scaled(self, total: float, n: int) -> float:
        if isinstance(self.protocol, NumberProtocol):
            return total * self.protocol.scale(n)
        return total


def local_baseline(protocol: HistogramProtocol | NumberProtocol) -> Baseline:
    """The best local protocol for the same question: pure epsilon-DP, so it also meets (epsilon, delta)."""
    epsilon0 = protocol.epsilon / protocol.rounds
    if isinstance(protocol, HistogramProtocol):
        return LocalBaseline(_asking(protocol, best_local(protocol.k, epsilon0)))
    responses = [KaryRandomizedResponse(k=k, epsilon0=epsilon0) for k in range(2, 18)]
    return LocalBaseline(_asking(protocol, min(responses, key=relative_variance)))


def _asking(protocol: Any, randomizer: Any) -> Any:
    """The same question with another randomizer; whether that meets the target is not checked."""
    other: Any = object.__new__(type(protocol))
    other._assign(**{field.name: getattr(protocol, field.name) for field in fields(protocol)})
    other._accept(randomizer)
    return other


def central_baseline(protocol: HistogramProtocol | NumberProtocol) -> Baseline:
    """The Gaussian mechanism of a trusted curator for the same question.

    A substitution moves counts by sqrt(2) and a sum by high - low."""
    sigma = analytic_gaussian_sigma(protocol.epsilon, protocol.delta) * math.sqrt(protocol.rounds)
    if isinstance(protocol, HistogramProtocol):
        return CentralBaseline(protocol, sigma * math.sqrt(2.0))
    return CentralBaseline(protocol, sigma * (protocol.high - protocol.low))
