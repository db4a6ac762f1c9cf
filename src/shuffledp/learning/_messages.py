"""Gradients by shuffled shares: several messages a client, and noise next to that of a trusted server (T22).

Every client clips its gradient, rounds it at random to a grid, adds a little Gaussian noise and splits every
coordinate into shares modulo a power of two (``SplitVectors``). The server sees the sum of all and hardly
anything else. The accountant sizes the noise for the rounds, the cohort and the population together. It costs
traffic (``bytes_per_client``, some tens of bytes a parameter and round) and trust: everything rests on the
shuffler.

In a simulation the shares are left out: they add up to what was split, exactly, whatever they are.

>>> shares = GradientShares.planned(
...     10, radius=1.0, epsilon=2.0, delta=1e-5, rounds=100, cohort=1_000, population=50_000
... )
>>> one = shares.training_round(1_000, 50_000)
>>> (100 * one).upper_epsilon(delta=1e-5) <= 2.0, shares.messages == 10 * shares.split.shares
(True, True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import Floats
from shuffledp._randomness.words import source
from shuffledp.accounting._rounds.round import Round
from shuffledp.accounting.cohort import Cohort
from shuffledp.accounting.mechanism import OneRound
from shuffledp.accounting.mixed_vectors import MixedVectors
from shuffledp.collecting._accounted import Target, one_round
from shuffledp.collecting._several_messages import best_vectors
from shuffledp.facts import Facts
from shuffledp.randomizers.split_vectors import SplitVectors

_CLOSE = 5e-3  # speed: relative, of the noise
_LEAST_NOISE = 0.05  # deviations per largest distance, where a search begins
_MOST_NOISE = 1e6


@dataclass(frozen=True)
class GradientShares:
    """Vectors of the l2 ball of ``radius``, sent by ``split``."""

    radius: float
    split: SplitVectors

    @classmethod
    def planned(
        cls,
        dimension: int,
        *,
        radius: float = 1.0,
        epsilon: float,
        delta: float,
        rounds: int,
        cohort: int,
        population: int | None = None,
    ) -> GradientShares:
        """With nearly the least noise for which so many rounds are certified to be (epsilon, delta)-DP."""
        people = _validate.count("population", cohort if population is None else population, least=cohort)
        target = Target(epsilon, delta, cohort, rounds)

        def meets(noise: float) -> GradientShares | None:
            split = best_vectors(dimension, "l2", target, messages=None, noise=noise)
            tried = cls(_validate.positive("radius", radius), split)
            certified = (rounds * tried.training_round(cohort, people)).upper_epsilon(delta=delta)
            return tried if certified <= epsilon else None

        low, high = _LEAST_NOISE, 2.0 * _LEAST_NOISE
        while (best := meets(high)) is None:
            low, high = high, 2.0 * high
            if high > _MOST_NOISE:
                raise ValueError(
                    f"cohort must be larger for {rounds} rounds at {epsilon=}, {delta=}, got {cohort}"
                )
        while high - low > _CLOSE * high:
            middle = math.sqrt(low * high)
            found = meets(middle)
            best, low, high = (found, low, middle) if found is not None else (best, middle, high)
        return best

    @property
    def dimension(self) -> int:
        """Of a gradient."""
        return self.split.dimension

    @property
    def messages(self) -> int:
        """How many messages a client sends in a round."""
        return self.split.messages

    @property
    def bytes_per_client(self) -> int:
        """What they weigh."""
        return self.split.messages * self.split.report_dtype.itemsize

    @property
    def _step(self) -> float:
        return self.radius / self.split.levels

    def standard_error(self, clients: int) -> float:
        """Of one entry of the mean gradient of so many clients, for the worst data."""
        return self._step * math.sqrt((self.split.variance + 0.25) / clients)

    def facts(self) -> Facts:
        """Without a shuffler nothing is hidden."""
        return self.split.facts()

    def training_round(self, cohort: int, population: int, least_reports: int | None = None) -> MessagesRound:
        """One round as it is accounted: ``least_reports`` of all people, or a cohort without drop-outs."""
        least = cohort if least_reports is None else least_reports
        if least < cohort < population:
            raise ValueError(
                f"least_reports must be the cohort, {cohort}, for cohorts that send shares, got {least}"
            )
        return MessagesRound(self, least, population if least == cohort else least)

    def clip(self, rows: Any) -> Floats:
        """The vectors, those longer than the radius shortened to it."""
        vectors = np.atleast_2d(np.asarray(rows, dtype=np.float64))
        norms = np.sqrt((vectors * vectors).sum(axis=1))
        return np.asarray(vectors * (self.radius / np.maximum(norms, self.radius))[:, None])

    def summed(self, rows: Any, rng: np.random.Generator | None = None) -> Floats:
        """What the server learns of clients' gradients (rows): their noisy sum, without bias."""
        words = source(rng)
        whole = self.split.rounded(self.clip(rows) / self._step, words)
        return np.asarray(self.split.noisy(whole, words).sum(axis=0) * self._step)


@dataclass(frozen=True)
class MessagesRound(OneRound):
    """A cohort of n clients out of ``population`` who send their gradients in shares."""

    randomizer: GradientShares
    n: int
    population: int
    # As a Shuffled round says it, for the ledger.
    analysis: ClassVar[str] = "best"
    honest_fraction: ClassVar[float] = 1.0
    rate: ClassVar[None] = None

    @cached_property
    def round(self) -> Round:
        vectors = one_round(self.randomizer.split, self.n)
        assert isinstance(vectors, MixedVectors)
        return Cohort(vectors, self.population).round
