"""The numerical blanket of continuous noise, against quadrature and fine grids; its worst pair."""

import math
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest
from scipy import integrate

import shuffledp as sdp
from shuffledp.accounting._curves.blanket import tv_universal
from shuffledp.literature import continuous
from shuffledp.literature.continuous import gaussian_pair, laplace_pair


def laplace(epsilon0: float) -> Any:
    return lambda y: 0.5 * epsilon0 * math.exp(-epsilon0 * abs(y))


def gaussian(sigma: float) -> Any:
    return lambda y: math.exp(-0.5 * (y / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi))


def two_users(density: Any, alpha: float, reach: float) -> Any:
    """(1/2) E[(X1 + X2)_+] by quadrature of the definition: two iid X, zero outside the blanket."""

    def blanket(y: Any) -> Any:
        return min(density(y), density(y - 1))

    def x(y: Any) -> Any:
        return (density(y) - alpha * density(y - 1)) / blanket(y)

    grid = np.linspace(-reach, 1 + reach, 4001)
    middle = 0.5 * (grid[1:] + grid[:-1])
    values = np.array([x(y) for y in middle])
    masses = np.array([blanket(y) for y in middle]) * np.diff(grid)
    rest = 1 - masses.sum()
    order = np.argsort(values)
    values, masses = values[order], masses[order]
    # E[(X1 + X2)_+]: both in the blanket, or one of them.
    above = np.concatenate([np.cumsum(masses[::-1])[::-1], [0]])
    first = np.concatenate([np.cumsum((masses * values)[::-1])[::-1], [0]])
    at = np.searchsorted(values, -values)
    both = float(masses @ (values * above[at] + first[at]))
    one = float(masses @ np.maximum(values, 0))
    return 0.5 * (both + 2 * rest * one)


@pytest.mark.parametrize("epsilon", [0.1, 0.8])
@pytest.mark.parametrize(
    ("pair", "density", "reach"),
    [
        (lambda n: laplace_pair(1.0, n), laplace(1.0), 25.0),
        (lambda n: laplace_pair(3.0, n), laplace(3.0), 9.0),
        (lambda n: gaussian_pair(1.0, n), gaussian(1.0), 5.0),
        (lambda n: gaussian_pair(2.0, n), gaussian(2.0), 10.0),
    ],
)
def test_two_users_agree_with_quadrature(pair: Any, density: Any, reach: float, epsilon: float) -> None:
    exact = two_users(density, math.exp(epsilon), reach)
    upper = float(pair(2).upper(np.array([epsilon]), 1e-4)[0])
    lower = float(pair(2).support(np.array([epsilon]), 1e-4).value[0])
    assert lower <= upper
    assert lower <= exact * (1 + 2e-3)
    assert exact * (1 - 2e-3) <= upper <= exact * (1 + 1e-2)


def test_one_user_hides_nothing() -> None:
    exact = integrate.quad(
        lambda y: max(0.0, gaussian(1.0)(y) - math.exp(0.3) * gaussian(1.0)(y - 1)), -12, 12
    )[0]
    pair = gaussian_pair(1.0, 1)
    at = np.array([0.3])
    assert float(pair.support(at, 1e-4).value[0]) <= exact <= float(pair.upper(at, 1e-4)[0])
    assert float(pair.upper(at, 1e-4)[0]) == pytest.approx(exact, rel=1e-2)


def test_next_to_epsilon_zero_the_widened_ends_still_cover() -> None:
    pair = gaussian_pair(1.0, 3)
    at = np.array([0.0, 1e-12, 5e-10, 1e-9, 2e-9])
    upper = pair.upper(at, 1e-4)
    assert np.all(upper >= pair.support(at, 1e-4).value)
    moved = np.maximum(at - 1e-9, 0.0)
    assert np.all(upper >= pair.above.upper(moved, 1e-4) + 0.999 * np.maximum(1e-9 - at, 0.0))


def epsilon_of(profile: Any, delta: float) -> Any:
    low, high = 1e-6, 2.0
    while high > low * (1 + 1e-5):
        middle = math.sqrt(low * high)
        good = float(profile.upper(np.array([middle]), 1e-4)[0]) <= delta
        low, high = (low, middle) if good else (middle, high)
    return high


@pytest.mark.parametrize("epsilon0", [1.0, 4.0])
def test_laplace_is_the_limit_of_its_grids_and_below_the_universal_pair(epsilon0: float) -> None:
    n, delta = 10**6, 1e-8
    continuous = epsilon_of(laplace_pair(epsilon0, n), delta)
    grid = sdp.Shuffled(sdp.DiscreteLaplace(epsilon0=epsilon0, levels=16), n=n, analysis="blanket")
    assert continuous == pytest.approx(float(grid.epsilon(delta=delta)), rel=0.02)
    universal = tv_universal(epsilon0, -math.expm1(-epsilon0 / 2), n)
    assert continuous < epsilon_of(universal, delta)


def test_gaussian_noise_of_one_range_hides_among_a_million() -> None:
    """Seen before by another algorithm: epsilon in [0.00691777, 0.0069208] at delta = 1e-8."""
    pair = gaussian_pair(1.0, 10**6)
    assert float(pair.upper(np.array([0.0069208]), 1e-5)[0]) <= 1e-8 * 1.01
    assert float(pair.support(np.array([0.00691777]), 1e-5).value[0]) >= 1e-8 * 0.995


def test_gaussian_losses_beyond_the_last_cell_are_counted() -> None:
    """Of one user the truth is Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu), mu = 1/sigma."""
    pair, mu = gaussian_pair(0.2, 1), 5.0
    for epsilon in (10.0, 15.9, 16.1, 18.0, 25.0):
        own, other = (
            0.5 * math.erfc((epsilon / mu + side * mu / 2) / math.sqrt(2.0)) for side in (-1.0, 1.0)
        )
        truth = own - math.exp(epsilon) * other
        assert truth <= float(pair.upper(np.array([epsilon]), 1e-4)[0])


@pytest.mark.parametrize("call", [lambda: laplace_pair(0.0, 10), lambda: gaussian_pair(0.01, 10)])
def test_parameters_out_of_range_are_named(call: Any) -> None:
    with pytest.raises(ValueError, match="must be in"):
        call()


def test_enclosures_are_consistent_over_epsilon_and_crowds() -> None:
    at = np.linspace(0.01, 1.0, 12)
    few, many = gaussian_pair(1.0, 100), gaussian_pair(1.0, 1000)
    upper = np.minimum.accumulate(few.upper(at, 1e-3))
    lower = few.support(at, 1e-3).value
    assert np.all(lower <= upper)
    assert np.all(many.support(at, 1e-3).value <= upper)


def log_concave(rng: Any, size: int) -> Any:
    """Whole numbers f[0] >= f[1] >= ... with f[d]^2 >= f[d - 1] f[d + 1]."""
    f = [rng.randint(20, 400)]
    f.append(rng.randint(f[0] // 4, f[0]))
    while len(f) < size and f[-1] > 0:
        most = f[-1] ** 2 // f[-2]
        f.append(rng.choice([most, rng.randint(0, most)]))
    return [value for value in f if value]


def excess_of_other_pairs(f: Any, m: int, alpha: Fraction) -> Any:
    """max over pairs and t of F(x, x', t) - F(0, m, t), in whole numbers (times the denominators).

    Between its corners F(0, m, t) is a line and the others are convex: corners are enough."""

    def density(d: Any) -> Any:
        return f[abs(d)] if abs(d) < len(f) else 0

    p, q = alpha.numerator, alpha.denominator
    reports = range(-len(f), m + len(f) + 1)
    rows = [[density(w - x) for w in reports] for x in range(m + 1)]
    least = [min(column) for column in zip(*rows, strict=True)]

    def curve(x: Any, y: Any, top: Any, bottom: Any) -> Any:
        return sum(
            max(0, (q * u - p * v) * bottom - top * c)
            for u, v, c in zip(rows[x], rows[y], least, strict=True)
        )

    corners = {(q * u - p * v, c) for u, v, c in zip(rows[0], rows[m], least, strict=True) if c}
    corners |= {(0, 1), (10**9, 1), (-(10**9), 1)}
    return max(curve(x, y, *t) - curve(0, m, *t) for t in corners for x, y in product(range(m + 1), repeat=2))


SHAPES = [
    [2 ** (7 - d) for d in range(8)],  # geometric
    [10**6, 882497, 606531, 324652, 135335, 43937, 11109, 2187, 335, 40, 4],  # Gaussian
    [6, 5, 4, 3, 2, 1],  # triangular
    [3, 3, 3],  # uniform
    [1],
]


@pytest.mark.parametrize("m", [1, 2, 3, 6])
def test_the_ends_are_above_all_pairs_in_the_convex_order_for_log_concave_noise(m: int) -> None:
    rng = Random(m)
    shapes = SHAPES + [log_concave(rng, rng.randint(2, 8)) for _ in range(12)]
    for f, alpha in product(shapes, (Fraction(1), Fraction(11, 10), Fraction(2), Fraction(60))):
        assert excess_of_other_pairs(f, m, alpha) == 0


def test_without_symmetry_or_a_single_peak_the_ends_need_not_be_the_worst_pair() -> None:
    """The hypotheses matter: noise with two peaks hides the ends better than their middle."""
    assert excess_of_other_pairs([1, 0, 8], 4, Fraction(1)) > 0


@pytest.mark.parametrize("noise", [laplace(2.0), gaussian(0.4)])
@pytest.mark.parametrize("alpha", [1.0, 1.5, 20.0])
def test_the_ends_are_above_all_pairs_of_the_unit_interval(noise: Any, alpha: float) -> None:
    """Fine grids: sums over reports stand for integrals, to the given accuracy."""
    w = np.linspace(-14.0, 15.0, 29 * 320 + 1)
    inputs = np.linspace(0.0, 1.0, 9)
    rows = np.array([[noise(v - x) for v in w] for x in inputs]) * (w[1] - w[0])
    least = rows.min(axis=0)
    for t in (-300.0, -20.0, -3.0, -0.5, 0.0, 0.4, 5.0, 100.0):
        curves = np.maximum(rows[:, None] - alpha * rows[None] - t * least, 0.0).sum(axis=2)
        assert curves.max() <= curves[0, -1] * (1.0 + 1e-9) + 1e-12


def test_masses_of_cells_are_within_their_stated_error() -> None:
    """Against erfc in ball arithmetic, at the widest cells and farthest out."""
    from flint import arb, ctx

    before, ctx.prec = ctx.prec, 200
    try:
        for sigma in (0.2, 0.613, 1.0, 100.0):
            most = min(16.0, (1.0 + 18.0 * sigma) / (2.0 * sigma**2))
            ends = 0.5 - np.linspace(0.0, most, 161) * sigma**2
            for high, low in ((ends[0], ends[1]), (ends[80], ends[81]), (ends[-2], ends[-1])):
                for shift in (0.0, 1.0):
                    a, b = float(low - shift), float(high - shift)
                    root = arb(sigma) * arb(2).sqrt()
                    exact = ((-arb(b) / root).erfc() - (-arb(a) / root).erfc()) / 2
                    found = continuous._between(a, b, sigma)
                    assert abs(arb(found) / exact - 1) < continuous.MASS_ERROR
    finally:
        ctx.prec = before
