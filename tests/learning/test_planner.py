"""Rehearsals with normal noise: its covariance is that of real reports, and the better setting wins."""

import pytest
import torch
from torch import nn

from shuffledp import PrivUnit
from shuffledp.learning import search_settings
from shuffledp.learning._planner import normal_mean
from shuffledp.learning._reports import simulated_sum


def test_normal_noise_has_the_covariance_of_reports() -> None:
    """Of 40 reports about rows some of which are clipped: the mean, and the variance of every coordinate."""
    generator, repeats = torch.Generator().manual_seed(1), 4000
    randomizer = PrivUnit(30, 2.0, 0.5)
    rows = torch.randn(40, 30, generator=generator) * torch.linspace(0.01, 0.3, 40)[:, None] + 0.05
    real = torch.stack([simulated_sum(randomizer, rows, generator) / 40 for _ in range(repeats)])
    normal = torch.stack([normal_mean(randomizer, rows, 40, generator) for _ in range(repeats)])
    deviation = real.std(dim=0)
    assert float(((real.mean(dim=0) - normal.mean(dim=0)) / deviation).abs().max()) < 6 * (2 / repeats) ** 0.5
    assert float(normal.var(dim=0).sum() / real.var(dim=0).sum()) == pytest.approx(1.0, abs=0.03)
    assert float((normal.std(dim=0) / deviation - 1.0).abs().max()) < 0.1


def test_the_search_prefers_the_setting_that_learns_and_changes_no_model() -> None:
    generator = torch.Generator().manual_seed(3)
    labels = torch.arange(200) % 2
    points = torch.randn(200, 3, generator=generator) + 2.0 * labels[:, None] - 1.0
    model = nn.Linear(3, 2)
    before = model.weight.clone()
    plan = {"people": 5_000, "epsilon": 2.0, "delta": 1e-5, "rounds": [5], "clips": [0.5], "seeds": 3}
    loss = nn.functional.cross_entropy
    best, worst = search_settings(model, (points, labels), loss, **plan, learning_rates=[1e-4, 1.0])
    assert (best.learning_rate, worst.learning_rate) == (1.0, 1e-4)
    assert best.accuracy > 0.85
    assert best.deviation >= 0.0
    assert torch.equal(model.weight, before)
