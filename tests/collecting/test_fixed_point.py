"""Means and variances of decoded reports, enumerated from the randomizers' whole-number weights."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from shuffledp.collecting._fixed_point import FixedPointDecoder
from shuffledp.randomizers.kary import KaryRandomizedResponse
from shuffledp.randomizers.laplace import DiscreteLaplace

pytestmark = pytest.mark.quick

RESPONSES = [
    KaryRandomizedResponse(k=2, epsilon0=0.5),
    KaryRandomizedResponse(k=4, epsilon0=2.0),
    KaryRandomizedResponse(k=11, epsilon0=6.0),
    KaryRandomizedResponse(k=30, epsilon0=1.0),
]


def law(response: KaryRandomizedResponse, z: int) -> list[Fraction]:
    a, b = response.weights
    return [Fraction(a if y == z else b, 2**64) for y in range(response.k)]


def mean_of(values: list[float], law: list[Fraction]) -> Fraction:
    return sum((Fraction(v) * p for v, p in zip(values, law, strict=True)), Fraction(0))


@pytest.mark.parametrize("response", RESPONSES, ids=repr)
def test_decoded_reports_have_the_grid_point_as_mean_and_the_stated_variance(
    response: KaryRandomizedResponse,
) -> None:
    decoder = FixedPointDecoder.of(response)
    values = decoder.values.tolist()
    for z in range(response.k):
        mean = mean_of(values, law(response, z))
        assert abs(float(mean - z)) < 1e-9
        variance = mean_of([v * v for v in values], law(response, z)) - mean**2
        assert decoder.spread[z] == pytest.approx(float(variance), rel=1e-9)
        decoded = mean_of(decoder.spread_values.tolist(), law(response, z))
        assert float(decoded) == pytest.approx(decoder.spread[z], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("response", RESPONSES, ids=repr)
def test_the_worst_variance_is_the_largest_over_all_numbers_rounding_included(
    response: KaryRandomizedResponse,
) -> None:
    decoder = FixedPointDecoder.of(response)
    squares, found = (decoder.values**2).tolist(), []
    for z in range(response.k - 1):
        low, high = (float(mean_of(squares, law(response, i))) for i in (z, z + 1))
        f = np.linspace(0.0, 1.0, 201)
        found.append((1 - f) * low + f * high - (z + f) ** 2)
    assert decoder.worst_variance() == pytest.approx(np.max(found), rel=1e-4)
    assert decoder.worst_variance() >= np.max(found) * (1 - 1e-9)


def test_the_variance_of_the_sum_is_that_of_the_errata_for_equal_numbers() -> None:
    """n [(1-g)(r+x^2) + g(2L+1)/(6L) - ((1-g)x + g/2)^2] / (1-g)^2, r = f(1-f)/L^2."""
    response = KaryRandomizedResponse(k=11, gamma=0.2)
    decoder, L, g = FixedPointDecoder.of(response), 10, 0.2
    for x in (0.0, 0.13, 0.5, 0.99):
        f = x * L - np.floor(x * L)
        r = f * (1 - f) / L**2
        printed = (1 - g) * (r + x * x) + g * (2 * L + 1) / (6 * L) - ((1 - g) * x + g / 2) ** 2
        z = int(np.floor(x * L))
        ours = (1 - f) * decoder.spread[z] + f * decoder.spread[z + 1] + f * (1 - f)
        assert ours / L**2 == pytest.approx(printed / (1 - g) ** 2, rel=1e-9)


def test_the_estimated_variance_is_above_the_true_one_in_the_mean() -> None:
    response = KaryRandomizedResponse(k=6, epsilon0=3.0)
    decoder, rng = FixedPointDecoder.of(response), np.random.default_rng(5)
    held = np.repeat([0, 1, 5], [500, 300, 200])
    true = float(decoder.spread[held].sum())
    found = [decoder.variance(response.support(response.randomize(held, rng=rng))) for _ in range(400)]
    # On grid points the true variance lacks the rounding's n/4.
    error = np.std(found) / 20
    assert np.mean(found) == pytest.approx(true + 250, abs=5 * error)


def test_noise_on_a_grid_decodes_to_the_grid_point() -> None:
    noisy = DiscreteLaplace(epsilon0=2.0, low=-1.0, high=3.0, levels=8)
    decoder = FixedPointDecoder.of(noisy)
    assert np.allclose(noisy.matrix @ decoder.values, np.arange(9), atol=1e-9)
    spread = noisy.matrix @ decoder.values**2 - np.arange(9) ** 2
    assert np.allclose(decoder.spread, spread, atol=1e-8)
