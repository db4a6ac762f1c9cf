"""A round of several messages a person on a fresh random cohort of a larger population.

>>> from shuffledp import MixedVectors
>>> one = MixedVectors(n=1000, dimension=10, farthest=200**2, variance=1e3, messages=10, modulus=2**24)
>>> weekly = Cohort(one, population=100_000)
>>> 50 * weekly.epsilon(delta=1e-6).upper < one.epsilon(delta=1e-6).upper
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from shuffledp import _validate
from shuffledp.accounting._curves.cohort_pair import CohortPair
from shuffledp.accounting._curves.near import NearProfile
from shuffledp.accounting._curves.subsampled import SubsampledProfile
from shuffledp.accounting._rounds.round import Round
from shuffledp.accounting.mechanism import OneRound
from shuffledp.accounting.mixed_sum import MixedSum
from shuffledp.accounting.mixed_vectors import MixedVectors


@dataclass(frozen=True)
class Cohort(OneRound):
    """``one`` round whose n people are a uniformly random subset of ``population``, drawn afresh in secret.

    The upper end is T5 for the curve of the round; the lower end is what a population gives away in which all
    others hold the same value (T22, cohorts)."""

    one: MixedSum | MixedVectors
    population: int

    def __post_init__(self) -> None:
        if not isinstance(self.one, MixedSum | MixedVectors):
            raise TypeError(f"one must be a MixedSum or MixedVectors, got {self.one!r}")
        object.__setattr__(self, "population", _validate.count("population", self.population, least=self.n))

    @property
    def n(self) -> int:
        """The people of one round."""
        return self.one.n

    @cached_property
    def round(self) -> Round:
        base, share = self.one.round, self.n / self.population
        if share == 1.0:
            return base
        pairs = tuple(CohortPair(seen, share) for seen in base.witnesses if isinstance(seen, NearProfile))
        return Round(SubsampledProfile(base.profile, share), pairs, math.inf, 0.0, alone=True)
