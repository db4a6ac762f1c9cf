"""The integral that carries a binomial tail, by Gauss-Legendre.

With ``o = p/q`` and ``X ~ Bin(n, p)``,

    Pr[X >= a] = Pr[X = a] * a * int_0^1 exp(phi(v)) dv,
    phi(v) = (a - 1) log(1 - v) + (n - a) log(1 + o v),

cut where phi = -CUT (relative loss e^-CUT). What cut, quadrature and rounding cost: T8,
docs/proofs/numerics.md, "The tail integral".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shuffledp._certified.rounding import Floats, capped, gamma, positive

CUT = 40.0  # soundness: depth in nats
NODES = 26  # soundness

TAIL_RATIO_ERROR = gamma(400)  # soundness
"""Relative error bound of the tail integral for p = 1/2: rounding (300 units), the rest 12."""

_ELLIPSE_REACH = 1.29  # soundness: of the ellipse rho = 2.8 around [0, 1], from 0

_MOST_AT_ONCE = 12_000  # speed: integrals times nodes in one array, which memory gives at once


def _gauss_legendre(count: int) -> tuple[Floats, Floats]:
    """Nodes and weights on [0, 1]: eigenvalues of the Jacobi matrix (Golub-Welsch), then Newton."""
    k = np.arange(1, count)
    off = k / np.sqrt(4.0 * k * k - 1.0)
    x = np.linalg.eigvalsh(np.diag(off, 1) + np.diag(off, -1))
    for _ in range(2):
        previous, current = np.ones_like(x), x.copy()
        for j in range(2, count + 1):
            previous, current = current, ((2 * j - 1) * x * current - (j - 1) * previous) / j
        slope = count * (x * current - previous) / (x * x - 1.0)
        x = x - current / slope
    weights = 2.0 / ((1.0 - x * x) * slope * slope)
    return (x + 1.0) / 2.0, weights / 2.0


@dataclass(frozen=True)
class TailRule:
    """Nodes and weights on [0, 1], where to cut, and the relative error bound for p = 1/2."""

    x: Floats
    w: Floats
    cut: float
    error: float


CLOSE = TailRule(*_gauss_legendre(NODES), CUT, TAIL_RATIO_ERROR)
ROUGH = TailRule(*_gauss_legendre(14), 18.0, 3e-8)  # 2.7e-8 as in the module, 1.4e-9 of signs.py, rounding


def quadrature(exponent: Callable[[Floats], Floats], cut: Floats, rule: TailRule) -> Floats:
    """int e^exponent over [0, cut]."""
    total = np.zeros_like(cut)
    some = max(1, _MOST_AT_ONCE // max(cut.size, 1))
    for first in range(0, rule.x.size, some):
        part = slice(first, first + some)
        values = np.exp(exponent(np.multiply.outer(rule.x[part], cut)))
        one = len(values) == 1
        total += rule.w[first] * values[0] if one else np.tensordot(rule.w[part], values, 1)
    return np.asarray(total * cut)


def cut_at(slope: Floats, curvature: Floats, depth: float) -> Floats:
    """Where slope v + curvature v^2 / 2 = depth, at most 1."""
    root = np.asarray(slope * slope)
    root += 2.0 * depth * curvature
    np.sqrt(root, out=root)
    root += slope
    return np.minimum(2.0 * depth / positive(root), 1.0)


def quadrature_error(slope: Floats, first: Floats, second: Floats, odds: float, cut: Floats) -> Floats:
    """Upper bound of the error of ``CLOSE`` on [0, cut] for any p; inf where the proof does not reach.

    phi(z) = ``first`` log(1 - z) + ``second`` log(1 + odds z), -phi'(0) = ``slope`` >= 0. With z = V (x + iy)
    on the ellipse rho = 2.8 of [0, V], |z| <= 1.29 V: the first two terms of the series are at most 0.294
    times slope V + (first + second odds^2) V^2 / 2 (-x <= 0.29 and y^2 - x^2 <= 0.28 there), the rest of
    log(1 - w) at most |w|^3 / (3 (1 - |w|))."""
    near, far = _ELLIPSE_REACH * cut, _ELLIPSE_REACH * odds * cut
    inside = (near < 1.0) & (far < 1.0)
    near, far = np.where(inside, near, 0.0), np.where(inside, far, 0.0)
    depth = slope * cut + 0.5 * (first + second * odds * odds) * cut * cut
    rest = (first * near**3 / (1.0 - near) + second * far**3 / (1.0 - far)) / 3.0
    largest = np.exp(capped(0.294 * depth + rest + 1e-6))  # the last more than all rounding
    return np.where(inside, 2.5 * cut * largest * 2.8 ** (-2 * NODES), np.inf)
