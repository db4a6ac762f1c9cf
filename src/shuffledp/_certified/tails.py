"""The integral that carries a binomial tail, by Gauss-Legendre.

With ``o = p/q`` and ``X ~ Bin(n, p)``,

    Pr[X >= a] = Pr[X = a] * a * int_0^1 exp(phi(v)) dv,
    phi(v) = (a - 1) log(1 - v) + (n - a) log(1 + o v),

(substitute x = p (1 - v) in the incomplete beta integral). Beyond the mean phi is concave and
decreasing, so the integral is cut where phi = -CUT (relative loss e^-CUT) and the rest is done by
Gauss-Legendre. The integrand is a polynomial of degree n - 1: for n <= 2 * NODES the rule is
exact. Otherwise on the Bernstein ellipse rho = 3 of [0, V], Re phi(x + iy) <= phi(x) -
y^2 phi''(x) / 2, and y^2 |phi''| / 2 <= CUT (rho - 1/rho)^2 / 16 < 17.8, hence the quadrature
error is at most about e^17.8 * CUT * 3^(-2 NODES) < 1e-16 relative for NODES = 26.

*Rounding* (units as in _certified.rounding). phi is a sum of terms of one sign, so a relative error of
k units in it is |phi| k u of the exponent; and on average over the integral |phi| <= v |phi'| (phi is
concave and phi(0) = 0), whose average is at most one (by parts). So the average cost is k, not CUT k.
log(1 + x) - x has ``CALL`` units of log(1 + x), at most 7 times itself where it is not computed as a
series (|x| >= 0.3): 56; factors, sums and the odds: 30. Nodes are off by at most one unit of one, which
changes the integral by |phi(cut)| < 64 units (it is at least cut / |phi(cut)|, by concavity, and the
integral of |phi'| e^phi at most one); weights by 80; the nodes' products with the cut by one. exp:
``CALL``; the sum: NODES; products: 4. Together less than 300. (A test checks nodes and weights.)

Where a rough answer will do, 14 nodes and a cut at 18: rho = 3.2 gives e^9.4 * 18 * 3 * 3.2^-28 < 5e-9,
and e^-18 < 1.6e-8 for the cut.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shuffledp._certified.rounding import Floats, gamma, positive

CUT = 40.0  # soundness: depth in nats
NODES = 26  # soundness

TAIL_RATIO_ERROR = gamma(400)  # soundness
"""Relative error bound of the tail integral for p = 1/2: rounding (300 units), cut and quadrature (1e-16)."""

_MOST_AT_ONCE = 4096  # speed: integrals whose nodes are in one array


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
ROUGH = TailRule(*_gauss_legendre(14), 18.0, 3e-8)  # 2.1e-8 as in the module, and rounding


def quadrature(exponent: Callable[[Floats], Floats], cut: Floats, rule: TailRule) -> Floats:
    """int e^exponent over [0, cut]."""
    if cut.size <= _MOST_AT_ONCE:  # all nodes in one array: fewer calls
        flat = np.exp(exponent(np.multiply.outer(rule.x, cut))).reshape(rule.x.size, -1)
        return np.asarray((rule.w @ flat).reshape(cut.shape) * cut)
    total = np.zeros_like(cut)
    for x, w in zip(rule.x, rule.w, strict=True):
        total += w * np.exp(exponent(cut * x))
    return np.asarray(total * cut)


def cut_at(slope: Floats, curvature: Floats, depth: float) -> Floats:
    """Where slope v + curvature v^2 / 2 = depth, at most 1."""
    root = slope + np.sqrt(slope * slope + 2.0 * depth * curvature)
    return np.minimum(2.0 * depth / positive(root), 1.0)
