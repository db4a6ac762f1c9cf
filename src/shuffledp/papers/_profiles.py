"""Rounds that have no randomizer of their own in the library: pairs of laws from the papers.

* ``OfProfile``: a round that is any privacy profile, so that it can be composed.
* ``clones_of_2021_as_transcribed``: (5.1)-(5.2) of Koskela et al. 2021. Its outcomes are counts of three
  types of reports, so it is itself a shuffled round, with the law below. Sound and loose.
* ``shuffled_gaussians``: n values 0 with Gaussian noise, shuffled, against one of them 1. The likelihood
  ratio is (W_1 + ... + W_n)/n, W = e^((2 t - 1)/(2 sigma^2)) at t: a sum of iid numbers, so the n-dimensional
  integral is one-dimensional. The line is cut into cells; from above a cell's mass goes to the ends of
  its range of W, keeping mean and mass (a mean-preserving spread), from below it becomes one type.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.accounting._curves.profile import PrivacyProfile
from shuffledp.accounting._rounds.round import Round
from shuffledp.accounting.mechanism import OneRound
from shuffledp.literature.continuous import PairProfile

_WIDENED = 1e-9
"""Ends of cells are moved outward by far more than the masses are off."""
_FAR = 7.0


@dataclass(frozen=True)
class OfProfile(OneRound):
    """One round known by its curve; nothing is known of datasets, so the lower end is 0."""

    profile_known: PrivacyProfile

    @cached_property
    def round(self) -> Round:
        return Round(self.profile_known, (), self.profile_known.epsilon_max, 0.0)


def clones_of_2021_as_transcribed(epsilon0: float, n: int) -> OfProfile:
    """P = (A + D, C - A), Q = (A, C - A + D); C ~ Bin(n-1, e^-epsilon0), A ~ Bin(C, 1/2)."""
    truth, rate = 1.0 / (1.0 + math.exp(-epsilon0)), math.exp(-epsilon0)
    lie = truth * rate
    return OfProfile(
        AmplificationProfile(
            n,
            own=(truth, 0.0, lie),
            other=(0.0, truth, lie),
            gap=(truth, -truth, 0.0),
            clone=(0.5 * rate, 0.5 * rate, -math.expm1(-epsilon0)),
        )
    )


def shuffled_gaussians(sigma: float, n: int, cells: int) -> PairProfile:
    """One value 1 among n - 1 zeros, against n zeros; deviation ``sigma`` of the noise."""
    edge = np.linspace(-_FAR * sigma, 1.0 + _FAR * sigma, cells + 1)
    zero, one = _masses(edge, sigma), _masses(edge - 1.0, sigma)
    above: list[tuple[float, float, float]] = []
    below: list[tuple[float, float, float]] = []
    for low, high, own, other in zip(edge[:-1], edge[1:], one, zero, strict=True):
        below.append((own, other, other))
        r, s = (math.exp((2.0 * t - 1.0) / (2.0 * sigma**2)) for t in (low, high))
        r, s = r * (1.0 - _WIDENED), s * (1.0 + _WIDENED)
        upper = (own - r * other) / (s - r)
        above += [(s * upper, upper, upper), (r * (other - upper), other - upper, other - upper)]
    # Beyond seven deviations: seen at once, from above; not at all, from below.
    tails = 2.0 * _right_of(_FAR)
    return PairProfile(_law([*above, (tails, 0.0, 0.0)], n), _law(below, n))


def _law(rows: list[tuple[float, float, float]], n: int) -> AmplificationProfile:
    own, other, clone = (tuple(map(float, column)) for column in zip(*rows, strict=True))
    gap = tuple(u - v for u, v in zip(own, other, strict=True))
    return AmplificationProfile(n, own, other, gap, clone).without_empty_types()


def _masses(edge: np.ndarray, sigma: float) -> np.ndarray:
    """Normal probabilities between edges, each from its own tail: accurate far out."""
    z = edge / sigma
    right = np.array([_right_of(abs(float(each))) for each in z])
    outside = np.abs(np.diff(right))
    across = 1.0 - right[:-1] - right[1:]
    return np.asarray(np.where((z[:-1] < 0.0) & (z[1:] > 0.0), across, outside))


def _right_of(z: float) -> float:
    return 0.5 * math.erfc(z / math.sqrt(2.0))
