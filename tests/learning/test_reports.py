"""A client's report and the server's estimate, and their fast simulation on the device.

Statistical tests use fixed seeds; the stated rates are of a false alarm had the seed been random.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy.special import betainc
from scipy.stats import chi2
from torch import nn

from shuffledp.learning._privunit_device import DEEPEST, height_tables, report_sum
from shuffledp.learning._reports import (
    aggregate,
    parameter_count,
    randomize_gradient,
    refuse_non_finite,
    simulated_sum,
)
from shuffledp.randomizers.leaning import GaussianUnit, RampUnit
from shuffledp.randomizers.privunit import PrivUnit
from shuffledp.randomizers.signs import L1Randomizer, LInfinityRandomizer

RANDOMIZERS = [
    RampUnit(5, 2.5, radius=2.0, start=0.25),
    GaussianUnit(300, 4.0, radius=2.0),
    PrivUnit(6, 3.0, radius=2.0),
    PrivUnit(2, 1.0, radius=2.0),
    PrivUnit(150, 4.0, radius=2.0, cap_probability=0.02),
    PrivUnit(5, 1.0, radius=2.0, cap_probability=0.7),
    LInfinityRandomizer(6, 3.0, radius=2.0),
    L1Randomizer(6, 3.0, radius=2.0),
]


def height_distribution(s: Any, dimension: int) -> npt.NDArray[np.float64]:
    """Pr[<V, u> <= s] for V uniform on the unit sphere."""
    half = 0.5 * betainc(0.5, 0.5 * (dimension - 1), s * s)
    return 0.5 + np.sign(s) * half


@pytest.mark.parametrize("randomizer", [r for r in RANDOMIZERS if isinstance(r, PrivUnit)])
def test_simulated_heights_are_those_of_uniform_directions_in_the_cap_and_outside(
    randomizer: PrivUnit,
) -> None:
    """The share of the cap above a height of the table, and of the rest below it."""
    at = height_distribution(randomizer.cap.threshold, randomizer.dimension)
    inside, outside = height_tables(randomizer)
    share = np.exp(-np.linspace(0.0, DEEPEST, inside.size))
    above = height_distribution(-inside, randomizer.dimension) / (1.0 - at)
    below = height_distribution(outside, randomizer.dimension) / at
    assert np.abs(above - share).max() < 1e-5
    assert np.abs(below - share).max() < 1e-5


TABLES = [
    PrivUnit(2, 1.0),
    PrivUnit(6, 3.0),
    PrivUnit(5, 1.0, cap_probability=0.7),
    PrivUnit(150, 4.0, cap_probability=0.02),
    PrivUnit(3010, 2.0, cap_probability=0.115),
    PrivUnit(26_010, 2.0),
]


@pytest.mark.parametrize("randomizer", TABLES)
def test_the_mean_of_simulated_reports_is_the_length_that_the_server_divides_by(randomizer: PrivUnit) -> None:
    """The tables are straight between nodes: their means over the exponential law, by fine sums."""
    nodes = np.linspace(0.0, DEEPEST, height_tables(randomizer)[0].size)
    edges = np.linspace(0.0, DEEPEST, 4 * nodes.size - 3)
    middles = 0.5 * (edges[1:] + edges[:-1])
    masses = -np.diff(np.exp(-edges))
    inside, outside = (
        float(masses @ np.interp(middles, nodes, table)) for table in height_tables(randomizer)
    )
    cap = randomizer.cap
    assert inside == pytest.approx(cap.moment / cap.probability, rel=1e-6)
    p = randomizer.weight / 2**64
    mean = p * inside + (1.0 - p) * outside
    assert mean == pytest.approx(randomizer.mean_length, rel=1e-6)


def clipped(randomizer: Any, vector: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(randomizer.clip(vector.double().numpy()))


@pytest.mark.parametrize("length", [0.0, 0.7, 50.0])
@pytest.mark.parametrize("randomizer", RANDOMIZERS)
def test_the_simulated_mean_is_unbiased_with_the_stated_variance(randomizer: Any, length: float) -> None:
    """Squared error over its expectation, of 200 means: outside [0.5, 2] less than once in 10^6."""
    vector = torch.linspace(-1.0, 1.5, randomizer.dimension)
    vector = vector / vector.norm() * length
    generator = torch.Generator().manual_seed(7)
    n, repeats = 50, 200
    rows = vector.expand(n, -1)
    means = torch.stack([simulated_sum(randomizer, rows, generator) / n for _ in range(repeats)]).double()
    truth = clipped(randomizer, vector)
    expected = randomizer.variance(float(truth.norm())) / n
    assert 0.5 < float(((means - truth) ** 2).sum(dim=1).mean()) / expected < 2.0


@pytest.mark.parametrize("randomizer", [r for r in RANDOMIZERS if r.dimension <= 6])
def test_the_grand_mean_of_simulated_reports_is_the_clipped_vector(randomizer: Any) -> None:
    """Mahalanobis distance, chi-square: above the limit about once in 10^6."""
    vector = torch.tensor([1.0, -2.0, 3.0, 0.0, 0.5, 4.0])[: randomizer.dimension]
    generator = torch.Generator().manual_seed(8)
    sums = torch.stack([simulated_sum(randomizer, vector.expand(100, -1), generator) for _ in range(400)])
    means = (sums / 100).double().numpy()
    error = means.mean(axis=0) - clipped(randomizer, vector).numpy()
    distance = 400 * error @ np.linalg.solve(np.cov(means.T), error)
    assert distance < chi2.isf(1e-6, randomizer.dimension)


def test_simulated_reports_of_one_client_have_the_length_of_every_report() -> None:
    for randomizer in (r for r in RANDOMIZERS if isinstance(r, PrivUnit)):
        generator = torch.Generator().manual_seed(9)
        vector = torch.ones(1, randomizer.dimension, dtype=torch.float64)
        one = report_sum(randomizer, vector, generator)
        assert float(one.square().sum()) == pytest.approx(randomizer.second_moment, rel=1e-6)


def test_secure_and_repeatable_reports_of_one_randomizer_agree_in_law() -> None:
    """Means of 2,000 secure reports: squared error above 3 times its expectation less than once in 10^6."""
    randomizer = PrivUnit(40, 3.0)
    rows = torch.full((2000, 40), 0.1)
    error = simulated_sum(randomizer, rows, None) / 2000 - rows[0]
    assert float(error.square().sum()) < 3.0 * randomizer.variance() / 2000


@pytest.mark.parametrize("randomizer", RANDOMIZERS)
def test_a_generator_makes_reports_repeatable(randomizer: Any) -> None:
    rows = torch.ones(3, randomizer.dimension)
    first, again = (simulated_sum(randomizer, rows, torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first, again)


def test_secure_reports_are_not_repeatable() -> None:
    rows = torch.ones(3, 50)
    randomizer = PrivUnit(50, 1.0)
    first, again = (simulated_sum(randomizer, rows, None) for _ in range(2))
    assert not torch.equal(first, again)


@pytest.mark.parametrize("randomizer", RANDOMIZERS)
def test_the_server_estimates_the_mean_of_what_clients_sent(randomizer: Any) -> None:
    rng = np.random.default_rng(4)
    gradient = torch.full((randomizer.dimension,), 0.1)
    reports = [randomize_gradient(gradient, randomizer, rng=rng) for _ in range(500)]
    estimate = aggregate(reports, randomizer)
    decoded = randomizer.decode(np.stack(reports)).mean(axis=0)
    np.testing.assert_allclose(estimate.numpy(), decoded, rtol=1e-9, atol=1e-12)
    error = float((estimate - gradient).square().sum())
    assert error < 20.0 * randomizer.variance() / 500  # exceeded less than once in 10^6 for d = 2


def test_a_gradient_per_parameter_comes_back_in_the_same_shapes() -> None:
    model = nn.Linear(3, 2)
    randomizer = PrivUnit(parameter_count(model), 2.0)
    report = randomize_gradient([torch.ones(2, 3), torch.ones(2)], randomizer)
    parts = aggregate([report], randomizer, like=model.parameters())
    assert [part.shape for part in parts] == [(2, 3), (2,)]
    assert all(part.dtype == torch.float32 for part in parts)


def test_a_gradient_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="must have 4 entries"):
        randomize_gradient(torch.ones(3), PrivUnit(4, 1.0))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_non_finite_gradient_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match=f"client 0 .* has {bad} at entry 1"):
        randomize_gradient(torch.tensor([1.0, bad, 0.0]), PrivUnit(3, 1.0))


def test_a_gradient_whose_length_overflows_is_refused_and_a_long_one_is_not() -> None:
    long = torch.tensor([1e15, -1e15, 1.0])
    refuse_non_finite(torch.stack([long, long]))
    with pytest.raises(ValueError, match=r"client 1 .* at entry 2"):
        refuse_non_finite(torch.stack([long, torch.tensor([0.0, 1.0, -3e38])]))


def test_rows_whose_lengths_overflow_only_together_are_accepted() -> None:
    refuse_non_finite(torch.full((4, 1), 1.5e19))


def test_no_reports_have_no_mean() -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        aggregate([], PrivUnit(3, 1.0))
