"""The numerical blanket of continuous noise, against quadrature and fine grids."""

import math

import numpy as np
import pytest
from scipy import integrate

import shuffledp as sdp
from shuffledp.accounting.blanket import tv_universal
from shuffledp.accounting.bounds.continuous import gaussian_pair, laplace_pair


def laplace(epsilon0):
    return lambda y: 0.5 * epsilon0 * math.exp(-epsilon0 * abs(y))


def gaussian(sigma):
    return lambda y: math.exp(-0.5 * (y / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi))


def two_users(density, alpha, reach):
    """(1/2) E[(X1 + X2)_+] by quadrature of the definition: two iid X, zero outside the blanket."""

    def blanket(y):
        return min(density(y), density(y - 1))

    def x(y):
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
def test_two_users_agree_with_quadrature(pair, density, reach, epsilon):
    exact = two_users(density, math.exp(epsilon), reach)
    upper = float(pair(2).upper(np.array([epsilon]), 1e-4)[0])
    lower = float(pair(2).support(np.array([epsilon]), 1e-4).value[0])
    assert lower <= upper
    assert lower <= exact * (1 + 2e-3)
    assert exact * (1 - 2e-3) <= upper <= exact * (1 + 1e-2)


def test_one_user_hides_nothing():
    exact = integrate.quad(
        lambda y: max(0.0, gaussian(1.0)(y) - math.exp(0.3) * gaussian(1.0)(y - 1)), -12, 12
    )[0]
    pair = gaussian_pair(1.0, 1)
    at = np.array([0.3])
    assert float(pair.support(at, 1e-4).value[0]) <= exact <= float(pair.upper(at, 1e-4)[0])
    assert float(pair.upper(at, 1e-4)[0]) == pytest.approx(exact, rel=1e-2)


def epsilon_of(profile, delta):
    low, high = 1e-6, 2.0
    while high > low * (1 + 1e-5):
        middle = math.sqrt(low * high)
        good = float(profile.upper(np.array([middle]), 1e-4)[0]) <= delta
        low, high = (low, middle) if good else (middle, high)
    return high


@pytest.mark.parametrize("epsilon0", [1.0, 4.0])
def test_laplace_is_the_limit_of_its_grids_and_below_the_universal_pair(epsilon0):
    n, delta = 10**6, 1e-8
    continuous = epsilon_of(laplace_pair(epsilon0, n), delta)
    grid = sdp.Shuffled(sdp.DiscreteLaplace(epsilon0=epsilon0, levels=16), n=n)
    assert continuous == pytest.approx(float(grid.epsilon(delta=delta)), rel=0.02)
    universal = tv_universal(epsilon0, -math.expm1(-epsilon0 / 2), n)
    assert continuous < epsilon_of(universal, delta)


def test_gaussian_noise_of_one_range_hides_among_a_million():
    """Seen before by another algorithm: epsilon in [0.00691777, 0.0069208] at delta = 1e-8."""
    pair = gaussian_pair(1.0, 10**6)
    assert float(pair.upper(np.array([0.0069208]), 1e-5)[0]) <= 1e-8 * 1.01
    assert float(pair.support(np.array([0.00691777]), 1e-5).value[0]) >= 1e-8 * 0.995


@pytest.mark.parametrize("call", [lambda: laplace_pair(0.0, 10), lambda: gaussian_pair(0.01, 10)])
def test_parameters_out_of_range_are_named(call):
    with pytest.raises(ValueError, match="must be in"):
        call()


def test_enclosures_are_consistent_over_epsilon_and_crowds():
    at = np.linspace(0.01, 1.0, 12)
    few, many = gaussian_pair(1.0, 100), gaussian_pair(1.0, 1000)
    upper = np.minimum.accumulate(few.upper(at, 1e-3))
    lower = few.support(at, 1e-3).value
    assert np.all(lower <= upper)
    assert np.all(many.support(at, 1e-3).value <= upper)
