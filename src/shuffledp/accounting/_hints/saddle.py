"""The saddle point of E[(X_1 + ... + X_n)_+]: the tilt that suits it, and an estimate. Not certified."""

from __future__ import annotations

import numpy as np

from shuffledp._certified.rounding import UNIT, Floats, positive

TOO_LOW = -(2.0**40)
"""Values of X so low, in units of the largest, decide the sum alone: raising them changes nothing."""


def largest_value(x: Floats) -> Floats:
    """Of every row, or one where none is positive."""
    most = x.max(axis=1)
    return np.where(most > 0.0, np.maximum(most, UNIT), 1.0)


def saddle(x: Floats, w: Floats, n: int | Floats, start: Floats | None = None) -> Floats:
    """theta > 0 near the minimum of n log E[e^{theta X}] - 2 log theta. Any value is valid.

    ``start``: where to begin, if that is known."""
    if start is None:
        mean, square = (w * x).sum(axis=1), (w * x * x).sum(axis=1)
        start = (-n * mean + np.sqrt((n * mean) ** 2 + 8.0 * n * square)) / (2.0 * n * square)
    steepest = 600.0 / largest_value(x)
    theta = np.minimum(start, steepest)
    low, high = 1e-3 * theta, steepest
    found, left = theta.copy(), np.arange(len(x))
    for _ in range(40):
        phi, tilted = _tilted_values(x, w, theta)
        first = tilted.sum(axis=1) / phi
        second = np.einsum("ij,ij->i", tilted, x) / phi - first * first
        slope = n * first - 2.0 / theta
        # The function is convex: its slope says on which side of theta the minimum is.
        low, high = np.where(slope < 0.0, theta, low), np.where(slope > 0.0, theta, high)
        step = -slope / (n * np.maximum(second, 0.0) + 2.0 / theta**2)
        moved = np.clip(theta + step, theta / 4.0, np.minimum(theta * 4.0, steepest))
        inside = (moved > low) & (moved < high)
        moved = np.where(inside, moved, np.sqrt(low * high))
        found[left] = moved
        open_ = np.abs(moved - theta) > 1e-2 * theta
        if not open_.any():
            break
        theta, low, high, steepest, left = (part[open_] for part in (moved, low, high, steepest, left))
        if not open_.all():
            x, w = x[open_], w[open_]
            n = n[open_] if isinstance(n, np.ndarray) else n
    return found


def log_saddle(x: Floats, w: Floats, n: int) -> Floats:
    """log E[(sum)_+] for rows of values and weights, by the saddle point."""
    x = np.maximum(x, TOO_LOW)
    theta = saddle(x, w, n)
    phi, tilted = _tilted_values(x, w, theta)
    tilted = tilted / phi[:, None]
    first = tilted.sum(axis=1)
    spread = np.maximum((tilted * x).sum(axis=1) - first**2, 0.0)
    curvature = n * spread * theta**2 + 2.0
    return np.asarray(n * np.log(phi) - np.log(theta) - 0.5 * np.log(2.0 * np.pi * curvature))


def _tilted_values(x: Floats, w: Floats, theta: Floats) -> tuple[Floats, Floats]:
    """(E[e^{theta X}], w x e^{theta x}) per row, the former accurate near one and near zero."""
    exponent = theta[:, None] * x
    growth = np.expm1(exponent)
    growth *= w
    change = growth.sum(axis=1)
    small = change <= -0.5
    phi = 1.0 + change
    growth += w
    if small.any():
        growth[small] = w[small] * np.exp(exponent[small])
        phi[small] = growth[small].sum(axis=1)
    growth *= x
    return positive(phi), growth
