"""The second-moment bound behind the learning paper's convergence theorem (Lemma 9)."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from shuffledp.learning._reports import simulated_sum
from shuffledp.randomizers.privunit import PrivUnit
from shuffledp.randomizers.signs import L1Randomizer, LInfinityRandomizer

# Randomizer, its constant c, and max(d^(1 - 2/p), 1) as a power of d.
KINDS = [(PrivUnit, 14.0, 0), (LInfinityRandomizer, 4.0, 1), (L1Randomizer, 4.0, 0)]


def lemma_9(constant: float, power: int, dimension: int, epsilon0: float, cohort: int) -> float:
    gain = 1.0 / math.tanh(0.5 * epsilon0)
    return dimension**power * (1.0 + constant * dimension / cohort * gain**2)


@pytest.mark.parametrize(("kind", "constant", "power"), KINDS)
@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 2.0, 6.0])
@pytest.mark.parametrize("dimension", [2, 3, 10, 1000])
def test_the_noise_of_an_average_is_below_the_lemma(
    kind: Any, constant: float, power: int, epsilon0: float, dimension: int
) -> None:
    """The longest mean gradient, and the exact second moment of a report over the cohort."""
    for cohort in (1, 50):
        moment = dimension**power + kind(dimension, epsilon0).second_moment / cohort
        assert moment <= lemma_9(constant, power, dimension, epsilon0, cohort)


@pytest.mark.parametrize(("kind", "constant", "power"), KINDS)
def test_the_measured_second_moment_is_the_exact_one_and_below_the_lemma(
    kind: Any, constant: float, power: int
) -> None:
    """Mean of 400 squared norms: relative deviation 0.05, within 0.3 but once in 10^8."""
    randomizer, cohort = kind(8, 1.0), 20
    rng = np.random.default_rng(1)
    rows = torch.from_numpy(rng.uniform(-1.0, 1.0, (cohort, 8)) / 8.0)
    generator = torch.Generator().manual_seed(2)
    squares = [
        float((simulated_sum(randomizer, rows, generator) / cohort).square().sum()) for _ in range(400)
    ]
    truth = rows.mean(dim=0)
    errors = [randomizer.variance(float(row.norm())) for row in rows]
    expected = float(truth.square().sum()) + sum(errors) / cohort**2
    assert np.mean(squares) == pytest.approx(expected, rel=0.3)
    assert np.mean(squares) < lemma_9(constant, power, 8, 1.0, cohort)
