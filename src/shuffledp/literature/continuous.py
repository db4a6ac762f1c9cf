"""The privacy blanket of Laplace and Gaussian noise on [0, 1], numerically, for all pairs of inputs.

Report w has the density mu_x(w) = f(w - x), f symmetric and log-concave, for an input x in [0, 1]. The
blanket is the smallest density of any input, omega(w) = min(f(w), f(w - 1)) = f(max(|w|, |w - 1|))
(Balle, Bell, Gascon, Nissim 2019). For n users, substitution neighbours and an adversary who knows
everybody else's data, the profile of the pair (x, x') is at most (1/n) E[(X_1 + ... + X_n)_+] with X =
(mu_x - a mu_x')/omega under omega and 0 with the remaining probability, a = alpha.

**Theorem.** For every a >= 1 the law of X for (0, 1) is above that of every other pair in the convex
order: epsilon >= 0 of this pair holds for all inputs in [0, 1].

*Proof*, with m = 1, or for f on the whole numbers and inputs 0, ..., m. All means are 1 - a, so it is
enough that F(x, x', t) = sum (mu_x - a mu_x' - t omega)_+ <= F(0, m, t) for all t; by reflection w ->
m - w let x <= x'.

t >= 0 (f symmetric and falling to both sides is enough). The integrand is positive only where mu_x >
mu_x': left of c = (x + x')/2. There mu_x'(w) >= f(w - x - m), as |w - x'| <= x + m - w, and omega(w) >=
f(w - x - m), both left of m/2 and for m/2 < w <= c <= (x + m)/2. So it is at most (f(w - x) - (a + t)
f(w - x - m))_+, a shift of (mu_0 - (a + t) mu_m)_+ <= (mu_0 - a mu_m - t omega)_+, as omega <= mu_m.

t = -s < 0. By equal means compare G(x, x') = sum (a mu_x' - mu_x - s omega)_+ instead.

* Let x <= m/2 <= x': if x' < m/2, replace it by m - x' (else x by m - x, if x > m/2). On a pair of
  reports {w, m - w}, which omega does not tell apart, both densities were larger on the same side; then
  one is larger on either side. The sum of the two values of a mu_x' - mu_x stays, the larger one grows:
  the sum of any convex function of them does.
* x' up to m. Let A = {a mu_x' > mu_x + s omega}. Right of m/2 the ratios mu_x/mu_x' and omega/mu_x' =
  mu_0/mu_x' fall (f is log-concave), so A is a ray {w >= r} there; and if w < m/2 is in A, so is m - w,
  where mu_x/mu_x' is no larger, omega is the same and mu_x' no smaller: left of m/2, A is within
  {w <= m - r}. Moving x' to x' + dx adds at least a sum_A (mu_(x'+dx) - mu_x') to G. The ray gains
  f(r - x') dx, the left part loses at most f(m - r - x') dx, and |m - r - x'| >= |r - x'| for r, x' >=
  m/2. (Whole numbers: f(r - 1 - x') and f(m - r - x'); for r = m/2 the left part ends at m/2 - 1.)
* x down to 0, for x' = m. Left of m/2 omega = mu_m, so A = {a > mu_x/mu_m + s min(1, mu_0/mu_m)} is one
  ray {w >= p}, and lowering x by dx adds at least f(p - x) dx >= 0. QED

Numerically: left of 1/2 the blanket is f(w - 1), and X = rho - a with rho = f(w)/f(w - 1) falling in w;
the right half is the mirror image, X = 1 - a rho. The half-line is cut into cells. *From above* a cell's
mass goes to the two ends of its range of rho, keeping the mean: a mean-preserving spread, at every alpha
at once. *From below* a cell becomes one type (the adversary sees the cell only). Gaussian noise has an
unbounded rho: beyond the last cell everything counts as seen (its mass goes to an infinite loss where
the other input cannot hide it).

Masses are within 1 +- MASS_ERROR of the truth (``_between``; closed forms for Laplace). *From above*,
what x sends is taken larger and what x' sends smaller by that factor, and the clones' masses so that
they follow x' on the left and x on the right: then sum (mu_x - a mu_x' - t omega)_+ can only grow for
t >= 0. For t < 0, where it is the mean plus G, G falls by less than 4 a MASS_ERROR, and the mean gains
more than that from epsilon - _WIDENED in place of epsilon. *From below* all signs are reversed.

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
from shuffledp._certified.rounding import Floats
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.accounting._curves.profile import PrivacyProfile, SupportingLines
from shuffledp.accounting._hints.starts import Hints

_CELLS = 160
MASS_ERROR = 1e-12
"""Relative error of the masses of cells, at most."""
_WIDENED = 1e-9
"""Ends of cells are moved outward by this, and epsilon to the safe side."""
_LARGEST_RATIO = 16.0
"""log rho of the last Gaussian cell: what lies beyond is rarer under either input than e^-16."""

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
        return self.above.upper(np.maximum(epsilon - _WIDENED, 0.0), resolution)

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
    """Probability of [low, high], within 1 +- MASS_ERROR, by Gauss-Legendre with 20 points.

    In units of sigma cells are narrower than H = 0.062 and end at y = 10.7 at most. The 40th derivative
    of the density is at most 1.09 sqrt(40!) e^(-y^2/4)/sqrt(2 pi) (Cramer's bound of Hermite functions),
    so the rule is off by less than H^40 (20!)^4 / (41 (40!)^3) 1.09 sqrt(40!) e^(y^2/4 + y H) < 1e-80 of
    the mass. All terms are positive; their exponents, up to 58, are good to 8 units (4e-13 with the
    rounding of the ends, up to 1e-13 of a width)."""
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
    tail = [(*beyond, 0.0)] if beyond else []
    return PairProfile(
        _mirrored(above + tail, n, MASS_ERROR), _mirrored(below + _hidden(tail), n, -MASS_ERROR)
    )


def _hidden(tail: list[tuple[float, float, float]]) -> list[tuple[float, float, float]]:
    return [(own, other, other) for own, other, _ in tail]


def _mirrored(
    half: list[tuple[float, float, float]], n: int, outward: float
) -> AmplificationProfile:
    """Both halves, the right one with the inputs exchanged; masses are moved ``outward``."""
    more, less = 1.0 + outward, 1.0 - outward
    left = [(own * more, other * less, clone * less) for own, other, clone in half]
    right = [(other * more, own * less, clone * more) for own, other, clone in half]
    own, other, clone = (tuple(map(float, column)) for column in zip(*left, *right, strict=True))
    gap = tuple(u - v for u, v in zip(own, other, strict=True))
    return AmplificationProfile(n, own, other, gap, clone).without_empty_types()
