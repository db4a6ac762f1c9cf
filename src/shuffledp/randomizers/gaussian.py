"""Gaussian noise on a bounded interval, on a grid.

Grid point x in {0, ..., levels} is reported as clamp(x + d, -pad, levels + pad) with discrete Gaussian
noise, P(d) ~ exp(-d^2 / (2 s^2)) on the whole numbers (Canonne, Kamath, Steinke 2020), s = ``sigma`` in
grid steps. Weights are whole numbers out of 2^64; none is below 1, so that every report is possible for
every input and the realised epsilon0 is finite (it is at most ln 2^64 = 44.4).

The noise is exactly symmetric, and ``pad`` is more than 7 s: what is clamped has a probability below
3e-12, and what that moves the mean (below 2e-13 sigma) is in ``bias``, computed from the weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import ClassVar

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import Floats
from shuffledp._randomness.uniform import WORD
from shuffledp.randomizers._grid import GridRandomizer, interval, log_of, matrix_of_noise, tight_epsilon0

_FAR = 7
_MOST_LEVELS = 1024
_MOST_OUTPUTS = 2**14
_CONTEXT = Context(prec=40)


@dataclass(frozen=True, init=False)
class DiscreteGaussian(GridRandomizer):
    """Values of [low, high] with Gaussian noise of standard deviation ``sigma`` (units of the data).

    >>> noisy = DiscreteGaussian(sigma=0.5, low=0.0, high=1.0)
    >>> noisy.bias < 1e-12
    True
    >>> round(float(noisy.variance(1.0)), 6)
    0.25
    """

    CALIBRATED: ClassVar[str] = "sigma"

    sigma: float

    def __init__(self, sigma: float, low: float = 0.0, high: float = 1.0, levels: int = 8) -> None:
        spread = _validate.positive("sigma", sigma)
        whole = _validate.count("levels", levels, least=1, most=_MOST_LEVELS)
        first, last = interval(low, high)
        steps = Fraction(spread) * whole / (Fraction(last) - Fraction(first))
        if not Fraction(1, 16) <= steps or whole + 2 * _pad(steps) >= _MOST_OUTPUTS:
            raise ValueError(
                f"sigma must be at least 1/16 of a grid step, with at most {_MOST_OUTPUTS} grid points "
                f"within {_FAR} sigma of [low, high], got {sigma=!r} with {float(steps):.4g} steps"
            )
        pad = _pad(steps)
        noise = _noise(steps, whole + pad)
        local = log_of(tight_epsilon0(matrix_of_noise(noise, whole, pad)))
        ends = {"low": first, "high": last, "levels": whole}
        _validate.assign(self, sigma=spread, epsilon0=local, **ends, pad=pad, noise=noise)

    @property
    def positions(self) -> Floats:
        return np.arange(-self.pad, self.levels + self.pad + 1.0)


def _pad(steps: Fraction) -> int:
    return math.ceil(Fraction(_FAR) * steps) + 1


def _noise(steps: Fraction, reach: int) -> tuple[int, ...]:
    """Weights of the noise 0, ..., reach: rounded down, at least 1; 0 takes what is left."""
    rate = _CONTEXT.divide(Decimal(steps.denominator**2), Decimal(2 * steps.numerator**2))
    densities = [_CONTEXT.exp(_CONTEXT.multiply(-d * d, rate)) for d in range(1, reach + 1)]
    total = Decimal(1)
    for density in densities:
        total = _CONTEXT.add(total, _CONTEXT.multiply(2, density))
    scale = _CONTEXT.divide(WORD, total)
    sides = [max(1, math.floor(_CONTEXT.multiply(density, scale))) for density in densities]
    return (WORD - 2 * sum(sides), *sides)
