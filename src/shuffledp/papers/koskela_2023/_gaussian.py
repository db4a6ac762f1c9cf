"""Koskela, Heikkila, Honkela 2023, "Numerical accounting in the shuffle model", Figure 5.

n values 0 with Gaussian noise, shuffled, against one of them 1. The likelihood ratio is (W_1 + ... +
W_n)/n, W = e^((2 t - 1)/(2 sigma^2)) at t: a sum of iid numbers, so the n-dimensional integral is
one-dimensional. The line is cut into cells; from above a cell's mass goes to the ends of its range of W,
keeping mean and mass (a mean-preserving spread), from below it becomes one type. Masses are known up to a
small factor (T14').
"""

from __future__ import annotations

import math

import numpy as np

from shuffledp._certified.rounding import CALL, Floats, down, gamma, up
from shuffledp.accounting._curves.inexact import InexactProfile
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.papers._result import Curve, Panel, Result, Setting, item

SIGMA = 2.0
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
    (zero, doubt), (one, own_doubt) = _masses(edge / sigma), _masses((edge - 1.0) / sigma)
    off = up(np.maximum(doubt, own_doubt), operations=4)
    w = np.exp((2.0 * edge - 1.0) / (2.0 * sigma**2))
    # Ends of cells go outward, by what the exponent and the exponential cost.
    units = CALL + 4.0 * (1.0 + np.abs(np.log(w)))
    r, s = down(w[:-1], units[:-1]), up(w[1:], units[1:])
    far, near = (one - r * zero) / (s - r), (s * zero - one) / (s - r)
    above = np.array([[*(s * far), *(r * near)], [*far, *near], [*far, *near]])
    # Differences: by how much the two parts of a cell may be off, relatively.
    parted = (off + gamma(4)) * np.maximum(
        (one + r * zero) / (far * (s - r)), (s * zero + one) / (near * (s - r))
    )
    # Beyond seven deviations: seen at once or told to be 0, from above; of one type, from below.
    tails = [_right_of((edge[-1] - x) / sigma) + _right_of((x - edge[0]) / sigma) for x in (1.0, 0.0)]
    above = np.hstack([above, [[tails[0], 0.0], [0.0, tails[1]], [0.0, tails[1]]]])
    below = np.hstack([[one, zero, zero], [[tails[0]], [tails[1]], [tails[1]]]])
    upper = InexactProfile(_law(above, n), up(float(parted.max()), 8)).upper(epsilon, _RESOLUTION)
    lower = InexactProfile(_law(below, n), float(off.max())).support(epsilon, _RESOLUTION).value
    # delta falls with epsilon: a bound holds to its right.
    return lower, np.minimum.accumulate(upper)


def _law(rows: Floats, n: int) -> AmplificationProfile:
    own, other, clone = (tuple(column.tolist()) for column in rows)
    gap = tuple((rows[0] - rows[1]).tolist())
    return AmplificationProfile(n, own, other, gap, clone).without_empty_types()


def _masses(z: Floats) -> tuple[Floats, Floats]:
    """Normal probabilities between points, each from its own tail: accurate far out; and by what share of
    itself each may be off. An argument off by 4 units moves a tail by 4 (z^2 + 1), and a call."""
    right = np.array([_right_of(abs(float(each))) for each in z])
    outside = np.abs(np.diff(right))
    across = 1.0 - right[:-1] - right[1:]
    middle = (z[:-1] < 0.0) & (z[1:] > 0.0)
    found = np.where(middle, across, outside)
    doubt = gamma(CALL + 4.0 * (z * z + 1.0)) * right
    return found, (doubt[:-1] + doubt[1:] + gamma(2) * middle) / found + gamma(1)


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
