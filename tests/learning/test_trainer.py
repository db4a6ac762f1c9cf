"""The trainer, on a small data set made on the fly: two clouds of points, one client each."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from shuffledp import Shuffled
from shuffledp.learning import Budget, BudgetExceededError, ShuffledTrainer, _checkpoint, parameter_count
from shuffledp.randomizers.privunit import PrivUnit
from shuffledp.randomizers.signs import L1Randomizer, LInfinityRandomizer

LOSS = nn.functional.cross_entropy
BUDGET = Budget(epsilon=2.0, delta=1e-5)


def clouds(n: int = 400) -> Any:
    generator = torch.Generator().manual_seed(5)
    labels = torch.arange(n) % 2
    points = torch.randn(n, 4, generator=generator) + 2.0 * (2 * labels[:, None] - 1)
    return TensorDataset(points, labels)


def network(dropout: float = 0.0) -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Dropout(dropout), nn.Linear(3, 2))


def trainer(
    model: Any = None,
    dataset: Any = None,
    kind: Any = PrivUnit,
    epsilon0: float = 2.0,
    radius: float = 1.0,
    lr: float = 0.3,
    **options: Any,
) -> Any:
    model = network() if model is None else model
    dataset = clouds() if dataset is None else dataset
    options = {"cohort": 100, "seed": 1} | options
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.5)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    return ShuffledTrainer(
        model,
        dataset,
        LOSS,
        randomizer=kind(parameter_count(model), epsilon0, radius),
        optimizer=optimizer,
        **{"scheduler": scheduler} | options,
    )


def weights(of: Any) -> Any:
    return torch.cat([p.detach().reshape(-1) for p in of.model.parameters()])


def accuracy(model: Any) -> Any:
    points, labels = clouds().tensors
    with torch.no_grad():
        return {"accuracy": float((model(points).argmax(dim=1) == labels).double().mean())}


@pytest.mark.parametrize("kind", [PrivUnit, LInfinityRandomizer, L1Randomizer])
def test_it_learns_to_tell_two_clouds_apart(kind: Any) -> None:
    learned = trainer(kind=kind, epsilon0=5.0, cohort=300, lr=0.5, scheduler=None)
    assert accuracy(learned.model)["accuracy"] < 0.8
    learned.run(40, evaluate=accuracy)
    assert learned.history.last["accuracy"] > 0.9


def test_the_step_follows_the_mean_clipped_gradient() -> None:
    """Mean of 120 steps from one point; each coordinate within 6 standard errors (1 in 10^6)."""
    model = network()
    start = [p.detach().clone() for p in model.parameters()]
    one = trainer(model, lr=1.0, cohort=400, epsilon0=4.0, radius=0.5, scheduler=None)
    one.optimizer.param_groups[0]["momentum"] = 0.0
    rows = one._gradients(*clouds().tensors)
    truth = (rows * (0.5 / rows.norm(dim=1).clamp_min(0.5))[:, None]).mean(dim=0)
    before, moves = weights(one), []
    for _ in range(120):
        one.step()
        moves.append(before - weights(one))
        with torch.no_grad():
            for parameter, value in zip(model.parameters(), start, strict=True):
                parameter.copy_(value)
    stacked = torch.stack(moves)
    errors = (stacked.mean(dim=0) - truth) / (stacked.std(dim=0) / 120**0.5)
    assert float(errors.abs().max()) < 6.0
    assert float(truth.norm() / (stacked.std(dim=0).norm() / 120**0.5)) > 10  # it can tell


def test_epsilon_is_that_of_the_accountant() -> None:
    run = trainer(cohort=100).run(3)
    one = Shuffled(run.randomizer, n=100).sampled_from(400)
    assert run.epsilon(delta=1e-5) == (3 * one).epsilon(delta=1e-5)


def test_the_accountant_is_attached() -> None:
    run = trainer(cohort=100)
    target = {"epsilon": 1.0, "delta": 1e-5}
    rounds = run.rounds_for(**target)
    assert float((rounds * run.spending.round).epsilon(delta=1e-5)) <= 1.0
    # Asked the other way round, the same number of rounds gives this epsilon0 back.
    assert run.epsilon0_for(**target, rounds=rounds) == pytest.approx(2.0, rel=0.05)


def test_the_history_holds_round_epsilon_and_what_was_measured() -> None:
    run = trainer(budget=BUDGET).run(5, evaluate=accuracy, every=2)
    assert [row["round"] for row in run.history] == [2, 4, 5]
    assert run.history.last["epsilon"] == run.epsilon(delta=BUDGET.delta).upper
    assert run.history.last["accuracy"] == accuracy(run.model)["accuracy"]


def test_a_run_beyond_the_budget_is_refused_before_anything_is_sent() -> None:
    run = trainer(budget=BUDGET)
    allowed, before = int(run.spending.rounds_left), weights(run)
    with pytest.raises(BudgetExceededError):
        run.run(allowed + 1)
    assert torch.equal(weights(run), before)
    assert run.spending.spent == 0
    run.run(allowed)
    with pytest.raises(BudgetExceededError, match="0 left"):
        run.step()
    assert run.epsilon(delta=BUDGET.delta).upper <= BUDGET.epsilon


def test_a_resumed_run_is_the_run_that_was_not_interrupted(tmp_path: Path) -> None:
    whole = trainer(network(dropout=0.3), budget=BUDGET).run(6, evaluate=accuracy, every=1)
    path = tmp_path / "checkpoint"
    trainer(network(dropout=0.3), budget=BUDGET).run(4, evaluate=accuracy, every=1, checkpoint=path)
    torch.manual_seed(99)
    resumed = trainer(network(dropout=0.3), budget=BUDGET, seed=77).load(path)
    assert resumed.rounds == 4
    resumed.run(2, evaluate=accuracy, every=1)
    assert torch.equal(weights(whole), weights(resumed))
    assert whole.history.rows == resumed.history.rows
    assert whole.spending == resumed.spending


def test_seeded_runs_repeat_and_secure_runs_do_not() -> None:
    first, again = (weights(trainer().run(2)) for _ in range(2))
    assert torch.equal(first, again)
    first, again = (weights(trainer(seed=None).run(2)) for _ in range(2))
    assert not torch.equal(first, again)


def test_chunks_change_memory_and_not_the_clients_that_are_asked() -> None:
    class Watched(TensorDataset):
        seen: list[int]

        def __getitem__(self, index: int) -> Any:
            self.seen.append(index)
            return super().__getitem__(index)

    def asked(chunk: Any) -> Any:
        data = Watched(*clouds().tensors)
        data.seen = []
        trainer(dataset=data, chunk=chunk).run(1)
        return data.seen

    assert asked(7) == asked(100)
    assert len(set(asked(7))) == 100


@pytest.fixture
def plain_ctrl_c() -> Iterator[None]:
    """Python's own handler, whatever ran before in this process (Spark sets one of its own)."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX permissions")
def test_savers_at_the_same_time_collide_in_nothing_and_nobody_else_reads_checkpoints(tmp_path: Path) -> None:
    """Each writes a file of its own name, which takes the place of the last one, whole."""
    path = tmp_path / "c.pt"

    def save(number: int) -> None:
        for _ in range(10):
            _checkpoint.write(path, {"number": number})
            assert _checkpoint.read(path)["number"] in range(4)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(save, range(4)))
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.usefixtures("plain_ctrl_c")
def test_ctrl_c_ends_the_round_and_keeps_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"

    def interrupt(model: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return {}

    run = trainer()
    with pytest.raises(KeyboardInterrupt):
        run.run(50, evaluate=interrupt, every=3, checkpoint=path)
    assert run.rounds == 3
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert torch.equal(weights(trainer().load(path)), weights(run))


@pytest.mark.usefixtures("plain_ctrl_c")
def test_a_second_ctrl_c_ends_at_once_and_keeps_the_checkpoint_before(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"

    def interrupt(model: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("still running")

    run = trainer(seed=None)
    with pytest.raises(KeyboardInterrupt):
        run.run(50, evaluate=interrupt, every=3, checkpoint=path, checkpoint_every=2)
    assert run.rounds == 3
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    resumed = trainer(seed=None).load(path)
    assert (resumed.rounds, resumed.spending.spent) == (2, 4)  # one of these two was sent


def test_training_works_outside_the_main_thread() -> None:
    run = trainer()
    thread = threading.Thread(target=run.run, args=(2,))
    thread.start()
    thread.join()
    assert run.rounds == 2


def test_a_crash_charges_a_secure_run_for_the_rounds_that_may_be_lost(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    run = trainer(seed=None)

    def crash(model: Any) -> Any:
        if run.rounds == 5:
            raise RuntimeError("power cut")
        return {}

    with pytest.raises(RuntimeError):
        run.run(9, evaluate=crash, every=1, checkpoint=path, checkpoint_every=3)
    resumed = trainer(seed=None).load(path)
    assert resumed.rounds == 3
    assert resumed.spending.spent == 6 >= run.spending.spent


def test_a_crash_before_the_first_checkpoint_of_a_run_is_charged_too(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    run = trainer(seed=None).run(2, checkpoint=path, checkpoint_every=5)

    def crash(model: Any) -> None:
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        run.run(4, evaluate=crash, every=4, checkpoint=path, checkpoint_every=5)
    resumed = trainer(seed=None).load(path)
    assert (resumed.rounds, resumed.spending.spent) == (2, 5)
    assert run.spending.spent == 4


def test_a_crash_charges_a_repeatable_run_nothing_more(tmp_path: Path) -> None:
    run = trainer().run(2)
    run.save(tmp_path / "checkpoint", in_flight=4)
    assert trainer().load(tmp_path / "checkpoint").spending.spent == 2


def test_a_trainer_that_goes_back_is_charged_for_what_it_had_sent(tmp_path: Path) -> None:
    run = trainer(seed=None).run(3, checkpoint=tmp_path / "checkpoint").run(2)
    run.load(tmp_path / "checkpoint").run(1)
    assert run.rounds == 4
    assert run.spending.spent >= 6  # three, two that were undone, one


def test_a_secure_run_goes_on_writing_the_checkpoint_that_it_came_from(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    trainer(seed=None).run(3, checkpoint=path)
    trainer(seed=None).load(path).run(2)
    again = trainer(seed=None).load(path)
    assert (again.rounds, again.spending.spent) == (5, 5)


def test_a_seeded_run_leaves_the_checkpoint_that_it_came_from(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    trainer().run(3, checkpoint=path)
    trainer().load(path).run(2)
    assert trainer().load(path).rounds == 3


def test_a_loaded_checkpoint_keeps_to_the_budget(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    spent = trainer(budget=BUDGET, seed=None)
    allowed = int(spent.spending.rounds_left)
    spent.save(path, in_flight=allowed)
    resumed = trainer(budget=BUDGET, seed=None).load(path)
    before = weights(resumed)
    with pytest.raises(BudgetExceededError):
        resumed.step()
    assert torch.equal(weights(resumed), before)


def test_a_clean_end_charges_nothing_more(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    trainer(seed=None).run(4, checkpoint=path, checkpoint_every=2)
    assert trainer(seed=None).load(path).spending.spent == 4


def test_a_checkpoint_of_another_mechanism_is_refused(tmp_path: Path) -> None:
    trainer().run(1, checkpoint=tmp_path / "checkpoint")
    with pytest.raises(ValueError, match="is of another plan: it has"):
        trainer(epsilon0=2.5).load(tmp_path / "checkpoint")


@pytest.mark.parametrize("other", [{"projection": 3.0}, {"chunk": 7}])
def test_a_checkpoint_of_other_settings_is_refused_and_changes_nothing(tmp_path: Path, other: Any) -> None:
    """Going on would not be exact, and would use the same random numbers for other sums."""
    trainer().run(1, checkpoint=tmp_path / "checkpoint")
    run = trainer(**other)
    before = weights(run)
    with pytest.raises(ValueError, match="is of another plan: it has"):
        run.load(tmp_path / "checkpoint")
    assert torch.equal(weights(run), before)
    assert torch.equal(weights(run.run(1)), weights(trainer(**other).run(1)))


def test_a_seeded_checkpoint_needs_a_seeded_trainer(tmp_path: Path) -> None:
    trainer().run(1, checkpoint=tmp_path / "checkpoint")
    with pytest.raises(ValueError, match="is seeded but the trainer is not"):
        trainer(seed=None).load(tmp_path / "checkpoint")


def test_another_file_is_no_checkpoint(tmp_path: Path) -> None:
    torch.save([1, 2], tmp_path / "other")
    with pytest.raises(ValueError, match="must name a checkpoint"):
        trainer().load(tmp_path / "other")
    trainer(seed=1).save(tmp_path / "half")
    (tmp_path / "half").write_bytes((tmp_path / "half").read_bytes()[:100])
    with pytest.raises(ValueError, match="checkpoint of format 2"):
        trainer(seed=1).load(tmp_path / "half")


def test_projection_keeps_the_parameters_in_the_ball() -> None:
    run = trainer(projection=0.5, lr=5.0)
    run.run(3)
    assert float(weights(run).norm()) == pytest.approx(0.5, rel=1e-5)


def test_progress_shows_rounds_accuracy_and_epsilon_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    trainer(budget=BUDGET).run(2, evaluate=accuracy, every=1, progress=True)
    shown = capsys.readouterr().err
    assert all(word in shown for word in ("2 rounds", "accuracy=", "epsilon="))


def test_what_evaluate_calls_epsilon_does_not_replace_ours() -> None:
    run = trainer(budget=BUDGET).run(1, evaluate=lambda model: {"epsilon": 0.0, "round": 9})
    assert run.history.last == {"round": 1, "epsilon": run.epsilon(delta=BUDGET.delta).upper}


def test_the_history_is_drawn_with_the_delta_of_the_budget() -> None:
    ax = trainer(budget=BUDGET).run(2, evaluate=accuracy, every=1).history.plot()
    assert "1e-5" in ax.get_xlabel()
    assert "accuracy" in ax.get_ylabel()


class Recorder(PrivUnit):
    """Notes what reaches the randomizer, and the reports."""

    def randomize(self, vectors: Any, *, rng: Any = None) -> Any:
        reports = super().randomize(vectors, rng=rng)
        NOTED.append((vectors.copy(), reports))
        return reports


NOTED: list = []


def test_a_secure_round_sends_one_report_of_each_clipped_gradient_and_the_model_sees_no_more() -> None:
    """The new model is recomputed from the reports, their order lost: to single precision it agrees."""
    NOTED.clear()
    run = trainer(kind=Recorder, seed=None, cohort=100, chunk=30, radius=0.2, lr=1.0)
    run.optimizer.param_groups[0]["momentum"] = 0.0
    points, labels = clouds().tensors
    everyone = run._gradients(points, labels).double()
    everyone = everyone * (0.2 / everyone.norm(dim=1).clamp_min(0.2))[:, None]
    before = weights(run)
    run.step()
    clipped = torch.from_numpy(np.concatenate([vectors for vectors, _ in NOTED]))
    reports = np.concatenate([sent for _, sent in NOTED])
    assert len(clipped) == len(reports) == 100
    # Whose gradient each one is: 100 different clients.
    gaps = torch.cdist(clipped, everyone)
    assert float(gaps.min(dim=1).values.max()) < 1e-6
    assert len(set(gaps.argmin(dim=1).tolist())) == 100
    estimate = torch.from_numpy(run.randomizer.mean(np.sort(reports, axis=0)))
    torch.testing.assert_close(before - weights(run), estimate.float(), rtol=1e-4, atol=1e-6)


def test_a_non_finite_gradient_is_named_and_nothing_is_spent() -> None:
    points, labels = clouds().tensors
    points = points.clone()
    points[:, 1] = float("inf")
    run = trainer(dataset=TensorDataset(points, labels))
    with pytest.raises(ValueError, match="gradients must be finite: client 0 of this cohort"):
        run.step()
    assert run.spending.spent == 0


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match=r"cohort must be in \[1, 400\], the population, got 0"):
        trainer(cohort=0)
    with pytest.raises(ValueError, match=r"cohort must be in \[1, 400\], the population"):
        trainer(cohort=401)
    with pytest.raises(ValueError, match="at least one client"):
        trainer(dataset=TensorDataset(torch.zeros(0, 4), torch.zeros(0)))
    with pytest.raises(ValueError, match="batch statistics"):
        trainer(nn.Sequential(nn.Linear(4, 2), nn.BatchNorm1d(2)))
    with pytest.raises(ValueError, match="one of seed and generator"):
        trainer(generator=torch.Generator())
    with pytest.raises(ValueError, match=r"projection must be in \(0, inf\)"):
        trainer(projection=0.0)
    with pytest.raises(ValueError, match=r"seed must be in \[0"):
        trainer(seed=-1)
    with pytest.raises(ValueError, match=r"generator must be on the model's device 'meta'"):
        trainer(network().to("meta"), seed=None, generator=torch.Generator())
    half = network()
    with pytest.raises(ValueError, match="got one without 2 of them"):
        ShuffledTrainer(
            half,
            clouds(),
            LOSS,
            randomizer=PrivUnit(23, 1.0),
            cohort=10,
            optimizer=torch.optim.SGD(half[0].parameters(), lr=0.1),
        )
    model = network()
    with pytest.raises(ValueError, match=r"randomizer.dimension must be 23"):
        ShuffledTrainer(
            model,
            clouds(),
            LOSS,
            randomizer=PrivUnit(7, 1.0),
            cohort=10,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        )


def test_evaluate_must_return_numbers() -> None:
    with pytest.raises(TypeError, match="accuracy = 'good'"):
        trainer().run(1, evaluate=lambda model: {"accuracy": "good"})


@pytest.mark.usefixtures("plain_ctrl_c")
def test_ctrl_c_in_the_middle_of_a_round_gives_it_up_and_a_seeded_run_repeats_it(tmp_path: Path) -> None:
    """Heard between two chunks of clients: nothing of that round is used, counted, or lost."""
    path, seen = tmp_path / "checkpoint", 0

    class Interrupting(TensorDataset):
        def __getitem__(self, index: int) -> Any:
            nonlocal seen
            seen += 1
            if seen == 250:  # the third round has a hundred more
                os.kill(os.getpid(), signal.SIGINT)
            return super().__getitem__(index)

    run = trainer(dataset=Interrupting(*clouds().tensors), chunk=20)
    with pytest.raises(KeyboardInterrupt):
        run.run(9, checkpoint=path)
    assert (run.rounds, run.spending.spent, seen) == (2, 2, 260)
    whole = trainer(chunk=20).run(5)
    assert torch.equal(weights(trainer(chunk=20).load(path).run(3)), weights(whole))
