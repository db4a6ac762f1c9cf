"""Laplace noise on a bounded interval, on a grid: the truncated geometric mechanism.

Grid point x in {0, ..., levels} is reported as clamp(x + d, 0, levels), P(d) ~ r^|d|, with
r = e^(-epsilon0 / levels) (Ghosh, Roughgarden, Sundararajan 2012). Beyond an end the likelihood ratio of
any two inputs does not change, so clamping tells nobody less about a user. The tail weights
2^64 P(d >= j) = 2^64 r^j / (1 + r) are rounded to whole numbers, with an r that is larger by next to
nothing so that the realised epsilon0 is at most what was asked.

The noise has no memory: what lies beyond an end lies r / (1 - r) steps beyond it in the mean, whatever
the input. The end reports stand for that, which makes estimates unbiased (up to the rounding of the
weights; ``bias`` is the bound).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Context
from fractions import Fraction
from itertools import pairwise

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import Floats
from shuffledp._randomness.uniform import WORD, exponential
from shuffledp.randomizers._grid import GridRandomizer, interval, log_of, matrix_of_noise, tight_epsilon0

_MOST_LEVELS = 1024


@dataclass(frozen=True, init=False)
class DiscreteLaplace(GridRandomizer):
    """Values of [low, high] with geometric noise on a grid of ``levels`` + 1 points.

    >>> noisy = DiscreteLaplace(epsilon0=2.0, low=0.0, high=100.0)
    >>> noisy.epsilon0, noisy.bias < 1e-12
    (2.0, True)
    >>> reports = noisy.randomize([20.0, 30.0, 99.5])
    """

    def __init__(self, epsilon0: float, low: float = 0.0, high: float = 1.0, levels: int = 16) -> None:
        asked = _validate.sampled_epsilon0(epsilon0)
        whole = _validate.count("levels", levels, least=1, most=_MOST_LEVELS)
        first, last = interval(low, high)
        noise, ratio = _noise(asked, whole)
        ends = {"low": first, "high": last, "levels": whole}
        _validate.assign(self, epsilon0=log_of(ratio, asked), **ends, pad=0, noise=noise)

    @property
    def positions(self) -> Floats:
        places = np.arange(self.levels + 1.0)
        beyond = 1.0 / math.expm1(self.epsilon0 / self.levels)  # r / (1 - r)
        places[0], places[-1] = -beyond, self.levels + beyond
        return places


def _noise(epsilon0: float, levels: int) -> tuple[tuple[int, ...], Fraction]:
    """Weights of the noise 0, ..., levels (the last one with all beyond), and the realised e^epsilon0."""
    most, _ = exponential(epsilon0)
    for asked in _slightly_less(epsilon0):
        noise = _differences(_tails(asked / levels, levels))
        ratio = tight_epsilon0(matrix_of_noise(noise, levels, 0))
        if ratio <= most and all(a >= b for a, b in pairwise(noise[:-1])):
            return noise, ratio
    raise ValueError(
        "levels must be fewer for weights out of 2^64 to fall off on both sides of the truth, "
        f"got levels={levels!r} with epsilon0={epsilon0!r}"
    )


def _slightly_less(epsilon0: float) -> Iterator[Fraction]:
    """epsilon0, then less by growing parts of it."""
    yield Fraction(epsilon0)
    for bits in range(60, 4, -4):
        yield Fraction(epsilon0) * (1 - Fraction(1, 2**bits))


def _tails(rate: Fraction, levels: int) -> list[int]:
    """2^64 P(noise >= j), j = 1, ..., levels, rounded to the nearest whole numbers."""
    low, high = exponential(-rate)
    r = (low + high) / 2
    context = Context(prec=60)
    factor = context.divide(r.numerator, r.denominator)
    term = context.divide(context.multiply(WORD, factor), context.add(1, factor))
    tails = []
    for _ in range(levels):
        tails.append(int(term.to_integral_value()))
        term = context.multiply(term, factor)
    return tails


def _differences(tails: list[int]) -> tuple[int, ...]:
    inner = [a - b for a, b in pairwise(tails)]
    return (WORD - 2 * tails[0], *inner, tails[-1])
