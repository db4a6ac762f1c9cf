"""The privacy blanket of Laplace and Gaussian noise on [0, 1], numerically, for all pairs of inputs.

Report w has the density mu_x(w) = f(w - x), f symmetric and log-concave, for an input x in [0, 1]; the
blanket is omega(w) = min(f(w), f(w - 1)) (Balle, Bell, Gascon, Nissim 2019). For substitution neighbours
and an adversary who knows everybody else's data, no pair of inputs is worse than (0, 1). Left of 1/2, X =
rho - a with rho = f(w)/f(w - 1); the right half is the mirror image. The half-line is cut into cells: *from
above* a cell's mass goes to the two ends of its range of rho, keeping the mean; *from below* a cell becomes
one type. Theorems and proofs: docs/proofs/continuous-noise.md.

>>> import numpy as np
>>> pair = gaussian_pair(sigma=1.0, n=10**6)
>>> 0.99e-8 < float(pair.upper(np.array([0.00692]), 1e-4)[0]) < 1.01e-8
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import Floats, up
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.accounting._curves.profile import PrivacyProfile, SupportingLines
from shuffledp.accounting._hints.starts import Hints

_CELLS = 160  # speed
MASS_ERROR = 1e-12  # soundness
"""Relative error of the masses of cells, at most."""
_WIDENED = 1e-9  # soundness: ends of cells are moved outward by this, and epsilon to the safe side
_LARGEST_RATIO = 16.0  # speed: log rho of the last Gaussian cell; what lies beyond is rarer than e^-16

Cells = list[tuple[float, float, float, float]]


@dataclass(frozen=True)
class PairProfile(PrivacyProfile):
    """A continuous pair between the finite law ``below`` and the finite law ``above``."""

    above: AmplificationProfile
    below: AmplificationProfile

    @property
    def epsilon_max(self) -> float:
        return self.above.epsilon_max

    @property
    def infinite_loss(self) -> float:
        return self.below.infinite_loss

    @cached_property
    def hints(self) -> Hints:
        return Hints(self.below.hints.scale)

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        # Where that would be below zero: H at alpha < 1 exceeds H at 1 by at most 1 - alpha.
        below = np.maximum(_WIDENED - epsilon, 0.0)
        return up(self.above.upper(np.maximum(epsilon - _WIDENED, 0.0), resolution) + below, operations=3)

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        outward = self.below.support(epsilon + _WIDENED, resolution)
        return SupportingLines(epsilon, outward.value, outward.slope_low, outward.slope_high)


def laplace_pair(epsilon0: float, n: int) -> PairProfile:
    """x + Laplace noise of scale 1/epsilon0: blanket mass e^(-epsilon0/2), rho in [1, e^epsilon0]."""
    local = _validate.epsilon0(epsilon0)
    users = _validate.count("n", n)
    if not 1e-3 <= local <= 30.0:
        raise ValueError(f"epsilon0 must be in [0.001, 30], got {epsilon0!r}")
    # y = (1 - s)/2 for s = log(rho)/epsilon0 in [0, 1]; left of 0 the ratio is constant.
    rate = np.linspace(0.0, local, _CELLS + 1)
    # Masses between neighbouring ratios: integrals of (epsilon0/2) e^(-epsilon0 y) and of the other.
    step = np.diff(rate)
    other = 0.5 * math.exp(-0.5 * local) * np.exp(-0.5 * rate[:-1]) * -np.expm1(-0.5 * step)
    own = 0.5 * math.exp(-0.5 * local) * np.exp(0.5 * rate[:-1]) * np.expm1(0.5 * step)
    cells = [(a, b, u, v) for a, b, u, v in zip(rate[:-1], rate[1:], own, other, strict=True)]
    end = (local, local, 0.5, 0.5 * math.exp(-local))
    return _pair([*cells, end], None, users)


def gaussian_pair(sigma: float, n: int) -> PairProfile:
    """x + Gaussian noise of standard deviation ``sigma``: rho = e^((1 - 2 y)/(2 sigma^2)), unbounded."""
    spread = _validate.positive("sigma", sigma)
    users = _validate.count("n", n)
    if not 0.2 <= spread <= 100.0:
        raise ValueError(f"sigma must be in [0.2, 100], got {sigma!r}")
    # Out to nine standard deviations, or to the largest ratio.
    most = min(_LARGEST_RATIO, (1.0 + 18.0 * spread) / (2.0 * spread**2))
    rate = np.linspace(0.0, most, _CELLS + 1)
    y = 0.5 - rate * spread**2
    own = [_between(low, high, spread) for high, low in pairwise(y)]
    other = [_between(low - 1.0, high - 1.0, spread) for high, low in pairwise(y)]
    cells = [(a, b, u, v) for a, b, u, v in zip(rate[:-1], rate[1:], own, other, strict=True)]
    last = float(y[-1])
    return _pair(cells, (_left_of(last, spread), _left_of(last - 1.0, spread)), users)


def _left_of(y: float, sigma: float) -> float:
    return 0.5 * math.erfc(-y / (sigma * math.sqrt(2.0)))


def _between(low: float, high: float, sigma: float) -> float:
    """Probability of [low, high], within 1 +- MASS_ERROR, by Gauss-Legendre (docs/proofs, Lemma 3)."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    y = 0.5 * (low + high) + 0.5 * (high - low) * nodes
    density = np.exp(-0.5 * (y / sigma) ** 2) / (sigma * math.sqrt(2.0 * math.pi))
    return float(0.5 * (high - low) * (weights @ density))


def _pair(cells: Cells, beyond: tuple[float, float] | None, n: int) -> PairProfile:
    """From the cells of the left half: (log rho at its ends, mass under 0, mass under 1)."""
    above, below = [], []
    for low, high, own, other in cells:
        below.append((own, other, other))
        if high <= low:
            above.append((own, other, other))
            continue
        r, s = math.exp(low - _WIDENED), math.exp(high + _WIDENED)
        upper = (own - r * other) / (s - r)
        lower = other - upper
        above += [(s * upper, upper, upper), (r * lower, lower, lower)]
    if beyond:
        own, other = beyond
        # Each is seen by itself: as one type (own - alpha other)_+ would be too small beyond the last ratio.
        above += [(own, 0.0, 0.0), (0.0, other, 0.0)]
        below.append((own, other, other))
    return PairProfile(_mirrored(above, n, MASS_ERROR), _mirrored(below, n, -MASS_ERROR))


def _mirrored(half: list[tuple[float, float, float]], n: int, outward: float) -> AmplificationProfile:
    """Both halves, the right one with the inputs exchanged; masses are moved ``outward``."""
    more, less = 1.0 + outward, 1.0 - outward
    left = [(own * more, other * less, clone * less) for own, other, clone in half]
    right = [(other * more, own * less, clone * more) for own, other, clone in half]
    own, other, clone = (tuple(map(float, column)) for column in zip(*left, *right, strict=True))
    gap = tuple(u - v for u, v in zip(own, other, strict=True))
    return AmplificationProfile(n, own, other, gap, clone).without_empty_types()
