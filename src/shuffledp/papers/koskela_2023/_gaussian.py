"""Koskela, Heikkila, Honkela 2023, "Numerical accounting in the shuffle model", Figure 5.

n values 0 with Gaussian noise, shuffled, against one of them 1. The likelihood ratio is (W_1 + ... +
W_n)/n, W = e^((2 t - 1)/(2 sigma^2)) at t: a sum of iid numbers, so the n-dimensional integral is
one-dimensional. The line is cut into cells; from above a cell's mass goes to the ends of its range of W,
keeping mean and mass (a mean-preserving spread), from below it becomes one type.
"""

from __future__ import annotations

import math

import numpy as np

from shuffledp._certified.rounding import Floats, down, up
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.papers._result import Curve, Panel, Result, Setting, item

SIGMA = 2.0
_WIDENED_UNITS = 2**23  # soundness: ends of cells go outward by far more than the masses are off
_WIDENED = 1e-9  # soundness: and epsilon to the safe side
_FAR = 7.0  # standard deviations
_RESOLUTION = 1e-3  # speed: relative


@item
def figure_5(setting: Setting) -> Result:
    """Shuffled Gaussian noise: delta(epsilon) of one pair of datasets."""
    epsilon = np.linspace(0.0, 1.0, setting.choose(21, 6))
    curves = []
    for n in (1, 2, 3, 5, 7, 20):
        lower, upper = shuffled_gaussians(SIGMA, n, setting.choose(160, 60), epsilon)
        curves.append(Curve(f"n = {n}", "certified", epsilon, upper, lower, hue=f"n = {n}"))
    some = epsilon[: -1 : setting.choose(4, 2)]
    sampled = _monte_carlo(some, 7, setting.choose(4_000_000, 200_000))
    alone = [gaussian_alone(float(e)) for e in epsilon]
    numbers = {
        "widest": max(float(np.max(curve.y - curve.lower)) for curve in curves),
        "off": float(np.max(np.abs(sampled.y - np.interp(some, epsilon, curves[4].y)))),
        "check": float(np.max(np.abs(curves[0].y - alone))),
    }
    title = "one 1 among zeros, Gaussian noise, σ = 2, shuffled"
    return Result([Panel(title, [*curves, sampled], floor=1e-7)], numbers)


def shuffled_gaussians(sigma: float, n: int, cells: int, epsilon: Floats) -> tuple[Floats, Floats]:
    """delta from below and above: one 1 among n - 1 zeros, against n zeros."""
    edge = np.linspace(-_FAR * sigma, 1.0 + _FAR * sigma, cells + 1)
    zero, one = _masses(edge, sigma), _masses(edge - 1.0, sigma)
    above: list[tuple[float, float, float]] = []
    below: list[tuple[float, float, float]] = []
    for low, high, own, other in zip(edge[:-1], edge[1:], one, zero, strict=True):
        below.append((own, other, other))
        r, s = (math.exp((2.0 * t - 1.0) / (2.0 * sigma**2)) for t in (low, high))
        r, s = down(r, _WIDENED_UNITS), up(s, _WIDENED_UNITS)
        far = (own - r * other) / (s - r)
        above += [(s * far, far, far), (r * (other - far), other - far, other - far)]
    # Beyond seven deviations: seen at once, from above; not at all, from below.
    tails = 2.0 * _right_of(_FAR)
    upper = _law([*above, (tails, 0.0, 0.0)], n).upper(np.maximum(epsilon - _WIDENED, 0.0), _RESOLUTION)
    # Where that would be below zero: H at alpha < 1 exceeds H at 1 by at most 1 - alpha.
    upper = up(upper + np.maximum(_WIDENED - epsilon, 0.0), operations=3)
    lower = _law(below, n).support(epsilon + _WIDENED, _RESOLUTION).value
    # delta falls with epsilon: a bound holds to its right.
    return lower, np.minimum.accumulate(upper)


def _law(rows: list[tuple[float, float, float]], n: int) -> AmplificationProfile:
    own, other, clone = (tuple(map(float, column)) for column in zip(*rows, strict=True))
    gap = tuple(u - v for u, v in zip(own, other, strict=True))
    return AmplificationProfile(n, own, other, gap, clone).without_empty_types()


def _masses(edge: Floats, sigma: float) -> Floats:
    """Normal probabilities between edges, each from its own tail: accurate far out."""
    z = edge / sigma
    right = np.array([_right_of(abs(float(each))) for each in z])
    outside = np.abs(np.diff(right))
    across = 1.0 - right[:-1] - right[1:]
    return np.asarray(np.where((z[:-1] < 0.0) & (z[1:] > 0.0), across, outside))


def _right_of(z: float) -> float:
    return 0.5 * math.erfc(z / math.sqrt(2.0))


def gaussian_alone(epsilon: float, sigma: float = SIGMA) -> float:
    """The Gaussian mechanism of sensitivity 1 (Balle, Wang 2018)."""
    near, far = 0.5 / sigma - epsilon * sigma, -0.5 / sigma - epsilon * sigma
    return _right_of(-near) - math.exp(epsilon) * _right_of(-far)


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
