"""Choices of the crowd theorem: how large a pool, which tilt, how far to look. Any of them is valid."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from shuffledp._certified.rounding import Floats, capped, positive

_POOLED_VARIANCES = 4.0  # speed: of X, for each power of e by which rare pools are rare
_TILTS = np.exp(np.linspace(-1.2, 1.2, 49))  # around that of normal sums
_STEPS = np.concatenate([np.arange(0.0, 3.0, 0.4), np.arange(3.0, 6.0, 0.6), np.arange(6.0, 12.0, 1.0)])
_RARE = 0.03  # of the bound: what pools of larger weights may add


def pool_size(n: int, variance: float, guess: float, inputs: float) -> int:
    """Where what is lost with the pool's members balances what their weights cost; in few sizes."""
    rare = math.log(positive(inputs) / positive(_RARE * guess))
    least = max(math.sqrt(n * variance), _POOLED_VARIANCES * variance * rare)
    return math.ceil(math.sqrt(2.0) ** math.ceil(2.0 * math.log2(positive(least))))


def weights(scale: float, most: float) -> Floats:
    """Logarithms of weights to look at, from 0 to ``most``, in deviations of the pool's loss."""
    steps = scale * _STEPS
    return np.append(steps[steps < most], most)


def tilt(values: Sequence[Floats], masses: Sequence[Floats], n: int, growth: float) -> tuple[float, float]:
    """About the best theta for sums of n of the largest of these laws, and about what the bound comes to."""
    variance = max(float(p @ (x * x)) for x, p in zip(values, masses, strict=True))
    away = growth * math.sqrt(n / variance)
    thetas = 0.5 * (away + math.sqrt(away * away + 8.0)) / math.sqrt(n * variance) * _TILTS
    heights = [
        n * np.log(np.exp(capped(np.outer(thetas, x))) @ p) for x, p in zip(values, masses, strict=True)
    ]
    height = np.max(heights, axis=0) - 2.0 * np.log(thetas)
    best = int(height.argmin())
    spread = math.sqrt(2.0 * math.pi / (n * variance)) / (2.0 * math.pi * n)
    return float(thetas[best]), math.exp(capped(float(height[best]))) * spread


def last_weight(rare: Floats, guess: float) -> int:
    """The first weight beyond which pools are rare enough."""
    enough = np.flatnonzero(rare <= positive(_RARE * guess))
    return int(enough[0]) if enough.size else rare.size - 1
