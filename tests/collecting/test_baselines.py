"""What the local and the central model would have given."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx

from shuffledp import KaryRandomizedResponse
from shuffledp.collecting._gaussian import analytic_gaussian_sigma, gaussian_delta
from shuffledp.collecting.baselines import central_baseline, local_baseline
from shuffledp.collecting.histogram import HistogramProtocol
from shuffledp.collecting.number import MeanProtocol, SumProtocol

pytestmark = pytest.mark.quick


@cache
def survey() -> HistogramProtocol:
    answer = KaryRandomizedResponse(k=4, epsilon0=3.0)
    return HistogramProtocol(range(4), 1.0, 1e-5, n=2000, randomizer=answer)


@cache
def mean() -> MeanProtocol:
    answer = KaryRandomizedResponse(k=5, epsilon0=3.0)
    return MeanProtocol(10.0, 20.0, 1.0, 1e-5, n=2000, randomizer=answer)


COLUMN = np.repeat([0, 1, 2, 3], [1500, 400, 100, 0])
NUMBERS = np.linspace(10.0, 20.0, 2000)


def exact_delta(epsilon: float, sigma: float) -> arb:
    """delta of Gaussian noise for sensitivity 1, in ball arithmetic."""
    e, s = arb(epsilon), arb(sigma)

    def phi(x: arb) -> arb:
        return (-x / arb(2).sqrt()).erfc() / 2

    return phi(1 / (2 * s) - e * s) - e.exp() * phi(-1 / (2 * s) - e * s)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 8.0, 50.0])
@pytest.mark.parametrize("delta", [1e-15, 1e-6, 0.1])
def test_the_gaussian_noise_is_enough_and_hardly_more(epsilon: float, delta: float) -> None:
    ctx.prec = 300
    sigma = analytic_gaussian_sigma(epsilon, delta)
    assert exact_delta(epsilon, sigma) <= delta
    assert exact_delta(epsilon, sigma * (1 - 1e-6)) > delta
    assert exact_delta(epsilon, sigma) <= gaussian_delta(epsilon, sigma)


def test_the_sensitivity_scales_the_noise() -> None:
    one = analytic_gaussian_sigma(1.0, 1e-6)
    assert analytic_gaussian_sigma(1.0, 1e-6, sensitivity=3.0) == pytest.approx(3 * one)


@pytest.mark.parametrize("make", [local_baseline, central_baseline])
def test_simulated_histograms_have_the_stated_error(make: Any) -> None:
    baseline, rng = make(survey()), np.random.default_rng(31)
    truth = np.array([1500, 400, 100, 0])
    errors = np.array([baseline.simulate(COLUMN, rng) - truth for _ in range(300)])
    assert np.abs(errors.mean(axis=0)).max() < 5.5 * baseline.standard_error * 2 / np.sqrt(300)
    # The mean over categories and 300 runs of squared errors: 6 deviations of 10 %.
    assert np.sqrt((errors**2).mean()) == pytest.approx(baseline.standard_error, rel=0.2)


@pytest.mark.parametrize("make", [local_baseline, central_baseline])
def test_simulated_means_are_unbiased_and_no_worse_than_stated(make: Any) -> None:
    baseline, rng = make(mean()), np.random.default_rng(32)
    errors = np.array([baseline.simulate(NUMBERS, rng) - 15.0 for _ in range(300)])
    assert abs(errors.mean()) < 5.5 * baseline.standard_error / np.sqrt(300)
    assert errors.std() < baseline.standard_error * (1 + 5.5 / np.sqrt(600))
    assert errors.std() > 0.5 * baseline.standard_error


def test_the_shuffler_lies_between_the_local_and_the_central_model() -> None:
    total = SumProtocol(0.0, 1.0, 1.0, 1e-6, n=20_000)
    local, central = local_baseline(total).standard_error, central_baseline(total).standard_error
    assert 2 * central < total.worst_standard_error < 0.2 * local


def test_rounds_cost_the_curator_their_square_root() -> None:
    answer = KaryRandomizedResponse(k=4, epsilon0=1.0)
    weekly = HistogramProtocol(range(4), 1.0, 1e-5, n=2000, randomizer=answer, rounds=4)
    once = analytic_gaussian_sigma(1.0, 1e-5)
    assert central_baseline(weekly).standard_error == pytest.approx(once * math.sqrt(2.0) * 2.0)
