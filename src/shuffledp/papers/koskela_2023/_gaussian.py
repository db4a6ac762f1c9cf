"""Koskela, Heikkila, Honkela 2023, "Numerical accounting in the shuffle model", Figure 5.

n values 0 with Gaussian noise, shuffled, against one of them 1: the reports of a record that goes to one
of n batches, drawn at random, with noise of SIGMA clipping norms. So the law is that of random allocation
(T24, second part), whose likelihood ratio is a mean of n independent numbers: the n-dimensional integral is
one-dimensional.
"""

from __future__ import annotations

import math

import numpy as np

from shuffledp._certified.rounding import Floats
from shuffledp.accounting._allocation import enclosed
from shuffledp.collecting._gaussian import gaussian_delta
from shuffledp.papers._result import Curve, Panel, Result, Setting, item

SIGMA = 2.0
_RESOLUTION = 1e-3  # speed: relative


@item
def figure_5(setting: Setting) -> Result:
    """Shuffled Gaussian noise: delta(epsilon) of one pair of datasets."""
    epsilon = np.linspace(0.0, 1.0, setting.choose(21, 6))
    curves = []
    for n in (1, 2, 3, 5, 7, 20):
        lower, upper = shuffled_gaussians(SIGMA, n, setting.choose(240, 100), epsilon)
        curves.append(Curve(f"n = {n}", "certified", epsilon, upper, lower, hue=f"n = {n}"))
    some = epsilon[: -1 : setting.choose(4, 2)]
    sampled = _monte_carlo(some, 7, setting.choose(4_000_000, 200_000))
    alone = [gaussian_delta(float(e), SIGMA) for e in epsilon]
    numbers = {
        "widest": max(float(np.max(curve.y - curve.lower)) for curve in curves),
        "off": float(np.max(np.abs(sampled.y - np.interp(some, epsilon, curves[4].y)))),
        "check": float(np.max(np.abs(curves[0].y - alone))),
    }
    title = "one 1 among zeros, Gaussian noise, σ = 2, shuffled"
    return Result([Panel(title, [*curves, sampled], floor=1e-7)], numbers)


def shuffled_gaussians(sigma: float, n: int, cells: int, epsilon: Floats) -> tuple[Floats, Floats]:
    """delta from below and above: one 1 among n - 1 zeros, against n zeros."""
    below, above = enclosed(sigma, n, cells)
    lower, upper = below.support(epsilon, _RESOLUTION).value, above.upper(epsilon, _RESOLUTION)
    return lower, np.minimum.accumulate(upper)  # delta falls with epsilon: a bound holds to its right


def _monte_carlo(epsilon: Floats, n: int, samples: int) -> Curve:
    """The mean of (1 - e^epsilon/ratio)_+ over reports of one 1 among zeros."""
    rng = np.random.default_rng(2023)
    total = np.zeros(epsilon.size)
    chunk = 200_000
    for _ in range(samples // chunk):
        t = SIGMA * rng.standard_normal((n, chunk))
        t[0] += 1.0
        ratio = np.exp((2.0 * t - 1.0) / (2.0 * SIGMA**2)).mean(axis=0)
        total += [np.maximum(1.0 - math.exp(e) / ratio, 0.0).sum() for e in epsilon]
    return Curve(f"n = {n}, sampled", "check", epsilon, total / samples)
