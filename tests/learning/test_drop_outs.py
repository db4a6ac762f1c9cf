"""Clients who never answer, users with many records, and one budget for surveys and training."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import shuffledp as sdp
from shuffledp import HistogramProtocol, Ledger, PrivUnit, Shuffled
from shuffledp.errors import BudgetExceededError
from shuffledp.learning import ShuffledTrainer, epsilon0_for
from shuffledp.learning._budget import training_round
from shuffledp.learning._clients import LocalUpdates

pytestmark = pytest.mark.quick

LOSS = nn.functional.cross_entropy


def people(count: int = 300) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    labels = torch.arange(count) % 2
    return torch.randn(count, 3, generator=generator) + 2.0 * (2 * labels[:, None] - 1), labels


def trainer(dataset: Any = None, **options: Any) -> ShuffledTrainer:
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    options = {"cohort": 300, "seed": 1} | options
    data = people() if dataset is None else dataset
    return ShuffledTrainer(model, data, LOSS, randomizer=PrivUnit(8, 2.0), optimizer=optimizer, **options)


def weights(run: ShuffledTrainer) -> torch.Tensor:
    return torch.cat([value.detach().reshape(-1) for value in run.model.parameters()])


@pytest.mark.thorough
def test_a_round_is_accounted_at_its_minimum_and_accepts_more() -> None:
    run = trainer(least_reports=200, drop_out=0.2).run(5)
    assert (run.void, run.spending.spent) == (0, 5)
    least = 5 * Shuffled(PrivUnit(8, 2.0), n=200)
    spent = run.spending.upper_epsilon(delta=1e-5)
    assert spent == least.upper_epsilon(delta=1e-5)
    assert spent > (5 * Shuffled(PrivUnit(8, 2.0), n=300)).upper_epsilon(delta=1e-5)


def test_a_round_below_the_minimum_is_void_changes_nothing_and_costs_nothing() -> None:
    run = trainer(least_reports=290, drop_out=0.3)
    before = weights(run)
    run.run(3)
    assert (run.rounds, run.void, run.spending.spent) == (3, 3, 0)
    assert torch.equal(weights(run), before)
    assert float(run.epsilon(delta=1e-5)) == 0.0


def test_the_headline_with_a_tenth_missing_costs_3_18() -> None:
    """The number of the audit: 5,727 rounds at 54,000 of 60,000 reports."""
    randomizer = PrivUnit(3010, 2.0, cap_probability=0.115)
    one = training_round(randomizer, cohort=60_000, population=60_000, least_reports=54_000)
    assert (5727 * one).upper_epsilon(delta=1e-5) == pytest.approx(3.18, abs=0.01)


def test_drawn_cohorts_with_drop_outs_are_counted_as_partly_honest_ones() -> None:
    """Taking n down alone would also say that people are asked less often: below the truth."""
    one = training_round(PrivUnit(8, 2.0), cohort=30, population=300, least_reports=20)
    assert (one.n, one.population, one.honest) == (30, 300, 199)  # the share is rounded down
    wrong = Shuffled(PrivUnit(8, 2.0), n=20).sampled_from(300)
    assert one.upper_epsilon(delta=1e-5) > wrong.upper_epsilon(delta=1e-5)


@pytest.mark.thorough
def test_epsilon0_for_the_minimum_meets_the_target() -> None:
    sizes = {"cohort": 300, "population": 300, "least_reports": 200}
    local = epsilon0_for(PrivUnit, dimension=8, epsilon=1.0, delta=1e-5, rounds=2, **sizes)
    assert (2 * Shuffled(PrivUnit(8, local), n=200)).upper_epsilon(delta=1e-5) <= 1.0


def test_the_mean_is_over_the_reports_that_came() -> None:
    """Twenty rounds with a third missing move a model as far as twenty with all."""
    full, part = trainer(least_reports=1).run(20), trainer(least_reports=1, drop_out=1 / 3).run(20)
    start = weights(trainer())
    assert float((weights(part) - start).norm() / (weights(full) - start).norm()) == pytest.approx(
        1.0, abs=0.2
    )


def users(count: int = 200) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Of 0 to 4 records each."""
    points, labels = people(5 * count)
    return [(points[5 * i : 5 * i + i % 5], labels[5 * i : 5 * i + i % 5]) for i in range(count)]


def test_a_user_reports_how_far_their_own_steps_go() -> None:
    model = nn.Linear(3, 2)
    updates = LocalUpdates(model, LOSS, steps=3, rate=0.1)
    inputs, targets = people(8)
    moved = updates(inputs.reshape(2, 4, 3), targets.reshape(2, 4))
    for user, row in enumerate(moved):
        own = nn.Linear(3, 2)
        own.load_state_dict(model.state_dict())
        plain = torch.optim.SGD(own.parameters(), lr=0.1)
        for _ in range(3):
            plain.zero_grad()
            LOSS(own(inputs.reshape(2, 4, 3)[user]), targets.reshape(2, 4)[user]).backward()
            plain.step()
        pairs = zip(model.parameters(), own.parameters(), strict=True)
        expected = torch.cat([((a - b) / 0.1).detach().reshape(-1) for a, b in pairs])
        torch.testing.assert_close(row, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.thorough
def test_users_with_many_records_send_one_clipped_report_each() -> None:
    run = trainer(users(), cohort=200, local_steps=3, chunk=60)
    rows = run._data.groups(torch.arange(200))
    assert sum(len(places) for places, _, _ in rows) == 160  # the others have nothing to learn from
    points, labels = people()
    run.run(10, evaluate=lambda model: {"right": float((model(points).argmax(1) == labels).float().mean())})
    assert run.spending.spent == 10
    assert run.history.last["right"] > 0.9


@pytest.mark.thorough
def test_surveys_and_training_share_one_budget(tmp_path: Path) -> None:
    survey = HistogramProtocol(["a", "b", "c"], epsilon=0.5, delta=1e-6, n=300)
    ledger = Ledger(tmp_path / "people.jsonl", budget=(2.0, 1e-5), create=True, populations=["readers"])
    ticket = ledger.reserve(survey, population="readers")
    ledger.commit(ticket, survey, honest=300)
    alone = ledger.epsilon("readers")
    run = trainer(ledger=ledger, people="readers").run(4)
    total = survey.mechanism(rounds=1) + run.spending.mechanism
    assert ledger.epsilon("readers") == pytest.approx(total.upper_epsilon(delta=1e-5), rel=2e-3)
    assert ledger.epsilon("readers") > max(alone, run.spending.upper_epsilon(delta=1e-5))
    before = weights(run)
    with pytest.raises(BudgetExceededError, match="'readers' together"):
        run.run(10_000)
    assert torch.equal(weights(run), before)
    many = HistogramProtocol(["a", "b", "c"], epsilon=1.9, delta=1e-5, n=300)
    with pytest.raises(BudgetExceededError):  # and a survey that would fit alone
        ledger.reserve(many, population="readers")


def test_rounds_that_were_not_run_are_given_back_and_those_that_were_are_not(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "people.jsonl", budget=(9.0, 1e-5), create=True, populations=["readers"])

    def fails(model: nn.Module) -> dict[str, float]:
        raise RuntimeError("power cut")

    run = trainer(ledger=ledger, people="readers")
    with pytest.raises(RuntimeError, match="power cut"):
        run.run(20, evaluate=fails, every=4)
    (kept,) = ledger.collections
    assert (kept.status, kept.training["rounds"]) == ("committed", 4)
    assert ledger.spent("readers").upper_epsilon(delta=1e-5) == run.spending.upper_epsilon(delta=1e-5)
    with pytest.raises(ValueError, match="is committed already"):
        ledger.commit_rounds(kept.id, rounds=1)
    void = trainer(ledger=ledger, people="readers", least_reports=299, drop_out=0.5).run(2)
    assert (void.void, ledger.collections[-1].status) == (2, "released")
    assert Ledger(tmp_path / "people.jsonl").collections == ledger.collections  # read again from the file


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"least_reports must be in \[1, 300\]"):
        trainer(least_reports=301)
    with pytest.raises(ValueError, match="ledger and people"):
        trainer(people="readers")
    with pytest.raises(TypeError, match="list of users"):
        trainer(local_steps=2)
    with pytest.raises(ValueError, match="of equal length for every user"):
        trainer([(torch.zeros(2, 3), torch.zeros(1, dtype=torch.long))], cohort=1, local_steps=1).run(1)
    ledger = sdp.Ledger(tmp_path / "l.jsonl", budget=(1.0, 1e-5), create=True)
    with pytest.raises(ValueError, match="population must be one of"):
        trainer(ledger=ledger, people="nobody").run(1)
