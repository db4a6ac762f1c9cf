"""Learning by several messages a client: the noise, its account, its traffic, and that it learns."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from shuffledp import Ledger, PrivUnit
from shuffledp.learning import (
    Budget,
    BudgetExceededError,
    GradientShares,
    ShuffledTrainer,
    epsilon0_for,
    rounds_for,
)

pytestmark = pytest.mark.quick

PLAN: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "rounds": 20, "cohort": 1000, "population": 3000}


@pytest.fixture(scope="module")
def shares() -> GradientShares:
    return GradientShares.planned(10, radius=1.0, **PLAN)


def clouds(n: int = 3000) -> Any:
    generator = torch.Generator().manual_seed(5)
    labels = torch.arange(n) % 2
    return TensorDataset(torch.randn(n, 4, generator=generator) + (2 * labels[:, None] - 1), labels)


def trainer(**options: Any) -> Any:
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    settings = {"cohort": 1000, "budget": Budget(epsilon=2.0, delta=1e-5), "seed": 1} | options
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    return ShuffledTrainer(model, clouds(), nn.functional.cross_entropy, optimizer=optimizer, **settings)


def test_noise_is_sized_for_the_rounds(shares: GradientShares) -> None:
    one = shares.training_round(1000, 3000)
    bound = (20 * one).epsilon(delta=1e-5)
    assert 1.4 < bound.lower <= bound.upper <= 2.0
    assert 20 <= rounds_for(one, epsilon=2.0, delta=1e-5) <= 21
    assert rounds_for(one, epsilon=1e-3, delta=1e-5) == 0
    assert shares.bytes_per_client == shares.messages * 4 == 40 * shares.split.shares


@pytest.mark.slow
def test_one_report_errs_more_than_twice_as_much(shares: GradientShares) -> None:
    sizes = {"cohort": 1000, "population": 3000}
    found = epsilon0_for(PrivUnit, dimension=10, epsilon=2.0, delta=1e-5, rounds=20, **sizes)
    single = math.sqrt(PrivUnit(10, found).variance() / 10 / 1000)
    assert shares.standard_error(1000) < 0.5 * single


def test_sums_are_unbiased_with_the_stated_error_and_long_gradients_are_clipped(
    shares: GradientShares,
) -> None:
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((1000, 10)) * np.linspace(0.01, 3.0, 1000)[:, None]
    clipped = rows / np.maximum(np.linalg.norm(rows, axis=1), 1.0)[:, None]
    assert shares.clip(rows) == pytest.approx(clipped)
    errors = np.array([shares.summed(rows, rng) - clipped.sum(axis=0) for _ in range(60)]) / 1000
    assert abs(errors.mean()) < 5.0 * shares.standard_error(1000) / math.sqrt(600)
    assert errors.std() == pytest.approx(shares.standard_error(1000), rel=0.15)
    # What is split and shuffled adds up to the very same kind of sum.
    whole = np.rint(clipped / shares.radius * shares.split.levels * 0.9).astype(int)
    total = shares.split.totals(shares.split.tally(shares.split.randomize(whole, rng=rng)))
    assert np.abs(total - whole.sum(axis=0)).max() < 6.0 * math.sqrt(1000 * shares.split.variance)


def test_a_trainer_learns_by_messages_within_its_budget(shares: GradientShares, tmp_path: Path) -> None:
    by_messages = trainer(aggregate="messages", randomizer=shares)
    assert by_messages.bytes_per_client == shares.bytes_per_client
    inputs, labels = clouds().tensors
    before = float((by_messages.model(inputs).argmax(1) == labels).float().mean())
    by_messages.run(20, checkpoint=tmp_path / "run.pt")
    after = float((by_messages.model(inputs).argmax(1) == labels).float().mean())
    assert after > max(0.9, before)
    assert float(by_messages.epsilon(delta=1e-5)) <= 2.0
    with pytest.raises(BudgetExceededError):
        by_messages.run(5)
    again = trainer(aggregate="messages", randomizer=shares).load(tmp_path / "run.pt")
    assert again.rounds == 20
    assert again.spending.spent == 20
    with pytest.raises(ValueError, match="no epsilon0"):
        by_messages.epsilon0_for(epsilon=1.0, delta=1e-5, rounds=2)


def test_secure_and_planned_trainers() -> None:
    planned = trainer(aggregate="messages", planned_rounds=20, radius=0.5, seed=None)
    assert isinstance(planned.randomizer, GradientShares)
    assert planned.randomizer.radius == 0.5
    planned.step()
    assert planned.spending.spent == 1


def test_a_ledger_counts_rounds_of_messages(shares: GradientShares, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl", budget=(2.5, 1e-5), create=True)
    ledger.release(
        ledger.reserve_rounds(shares.training_round(1000, 3000), 1, population="us", new_population=True)
    )
    run = trainer(aggregate="messages", randomizer=shares, ledger=ledger, people="us")
    run.run(3)
    spent = ledger.epsilon("us")
    assert spent == pytest.approx(run.spending.upper_epsilon(delta=1e-5), rel=0.05)


def test_what_does_not_go_together_is_told(shares: GradientShares) -> None:
    with pytest.raises(ValueError, match="randomizer must be given"):
        trainer()
    with pytest.raises(ValueError, match="randomizer must be given"):
        trainer(aggregate="messages")
    with pytest.raises(ValueError, match='aggregate must be "messages"'):
        trainer(randomizer=shares)
    with pytest.raises(ValueError, match="aggregate must be"):
        trainer(randomizer=shares, aggregate="sums")
    with pytest.raises(ValueError, match="least_reports must be the cohort"):
        shares.training_round(1000, 3000, least_reports=900)
    assert shares.training_round(1000, 1000, least_reports=900).n == 900
    with pytest.raises(ValueError, match="n must be larger"):
        GradientShares.planned(10, epsilon=1.0, delta=1e-5, rounds=3, cohort=10)
    with pytest.raises(ValueError, match="population must be"):
        GradientShares.planned(10, epsilon=1.0, delta=1e-5, rounds=3, cohort=10, population=9)
