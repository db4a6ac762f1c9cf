"""MNIST with 60,000 clients, one image each: the trainer, real PrivUnit reports, the certified epsilon.

    python studies/mnist/run.py --data DIR [--only best|curator|paper|authors|network] [--seeds 5]
    python studies/mnist/run.py --task fashion --data DIR --only best

``best`` trains a linear model on fixed features, with the settings that search.csv found on the
validation split (for Fashion-MNIST too); ``curator`` trains the same with a trusted server that adds normal
noise, and without noise; ``paper`` repeats the learning paper's setting with a small
network; ``authors`` the same with the network, the hemispheres (caps of probability 1/2) and the steps of
its authors' code; ``network`` trains that network once with epsilon = 3 certified. Writes one line per run
to results.csv and one per evaluation to curves.csv (``authors``: kept as authors.csv). The test set is looked
at, not learned from.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from features import Representation
from networks import linear, small_cnn
from plan import DELTA, PLANS, QUICK, WHOLE, Plan, Size
from search import NOISES, Data, body_of, deviation_of, trained
from tasks import TASKS, Task
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from shuffledp import Shuffled
from shuffledp.learning import Budget, ShuffledTrainer, parameter_count, rounds_for
from shuffledp.randomizers.privunit import PrivUnit

HERE = Path(__file__).parent
RESULTS = (
    *("task", "run", "epsilon_target", "epsilon_certified", "epsilon0", "cap", "cohort", "rounds"),
    *("step", "clip", "decay", "parameters", "seed", "test_accuracy", "seconds"),
)
CURVES = ("task", "run", "epsilon_target", "seed", "round", "test_accuracy")


@dataclass(frozen=True)
class Choice:
    """The best line of search.csv for an epsilon: chosen on the validation split."""

    kept: int
    power: float
    step: float
    clip: float
    decay: float


def chosen(
    table: Path, task: str, epsilon: float, kept: int | None = None, noise: str = "shuffled"
) -> Choice:
    """Of all rows, or of those with so many directions."""
    with open(table, newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["task"], row["noise"]) == (task, noise)]
    found = (row for row in rows if float(row["epsilon"]) == epsilon and kept in (None, int(row["kept"])))
    best = max(found, key=lambda row: float(row["validation"]), default=None)
    if best is None:
        raise SystemExit(
            f"{table} has no line of {task}, {noise}, epsilon = {epsilon}, kept = {kept or 'any'}"
        )
    power, step, clip, decay = (float(best[name]) for name in ("power", "step", "clip", "decay"))
    return Choice(int(best["kept"]), power, step, clip, decay)


def accuracy(model: nn.Module, inputs: Tensor, labels: Tensor) -> float:
    with torch.no_grad():
        return float((model(inputs).argmax(dim=1) == labels).double().mean())


@dataclass(frozen=True)
class Run:
    """One training run, ready to go."""

    task: str
    name: str
    epsilon: float
    seed: int
    trainer: ShuffledTrainer
    rounds: int
    every: int
    test: TensorDataset
    settings: tuple[float, float, float]

    def lines(self) -> tuple[list[object], list[list[object]]]:
        """Train; the line of results.csv and those of curves.csv."""
        start = time.monotonic()
        inputs, labels = self.test.tensors
        trainer = self.trainer
        trainer.run(
            self.rounds,
            evaluate=lambda model: {"accuracy": accuracy(model, inputs, labels)},
            every=self.every,
        )
        epsilon = trainer.spending.upper_epsilon(delta=DELTA)
        curve = [
            [self.task, self.name, self.epsilon, self.seed, row["round"], row["accuracy"]]
            for row in trainer.history
        ]
        randomizer = trainer.randomizer
        assert isinstance(randomizer, PrivUnit)
        local = (randomizer.epsilon0, round(randomizer.cap.probability, 6))
        sizes = (trainer.cohort, self.rounds, *self.settings, randomizer.dimension, self.seed)
        seconds = round(time.monotonic() - start, 1)
        last = trainer.history.last["accuracy"]
        certified = f"{epsilon:.6f}"
        return [self.task, self.name, self.epsilon, certified, *local, *sizes, last, seconds], curve


PAPER_STEPS = {0: 12.0, 900: 4.0, 1800: 3.5}
AUTHORS_STEPS = {0: 12.0, 900: 5.0, 1800: 4.0, 3000: 3.5, 4200: 3.0, 5700: 2.0}
"""From a round on. The text's; and those of MNIST_dpsgd_norm_2.py in Antonious-Grigis/
Shuffled-Model-of-Differential-Privacy-in-Federated-Learning, 08508a5."""


def paper_runs(
    train: TensorDataset, test: TensorDataset, seeds: int, size: Size, authors: bool = False
) -> Iterator[Run]:
    """Cohorts of 2,000, epsilon0 = 2, 200 epochs, clipping at 0.005."""
    steps, cap = (AUTHORS_STEPS, 0.5) if authors else (PAPER_STEPS, None)
    for seed in range(seeds):
        torch.manual_seed(seed)
        model = small_cnn(16 if authors else 32).to(train.tensors[0].device)
        optimizer = torch.optim.SGD(model.parameters(), lr=12.0)
        scheduler = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda t: steps[max(start for start in steps if start <= t)] / 12.0
        )
        trainer = ShuffledTrainer(
            model,
            train,
            nn.functional.cross_entropy,
            randomizer=PrivUnit(parameter_count(model), epsilon0=2.0, radius=0.005, cap_probability=cap),
            cohort=len(train) // 30,
            optimizer=optimizer,
            scheduler=scheduler,
            seed=seed,
        )
        rounds = size.rounds or 6_000
        name = "authors" if authors else "paper"
        yield Run("mnist", name, 5.8, seed, trainer, rounds, 75, test, (12.0, 0.005, 0.0))


def falling(decay: float, rounds: int, last: int) -> Callable[[int], float]:
    """The factor of the step in round t: it falls by ``decay`` in ``rounds`` rounds, up to ``last``."""
    return lambda t: 1.0 - decay * min(t, last) / rounds


def network_runs(train: TensorDataset, test: TensorDataset, seeds: int, size: Size) -> Iterator[Run]:
    """The paper's kind of network with the budget spent as budget.py advises: epsilon = 3 certified.

    The step is that of an earlier probe, not searched for."""
    for seed in range(seeds):
        torch.manual_seed(seed)
        model = small_cnn().to(train.tensors[0].device)
        randomizer = PrivUnit(parameter_count(model), 3.0, 0.005, cap_probability=0.065)
        cohort = len(train) // 10
        one = Shuffled(randomizer, n=cohort).sampled_from(len(train))
        rounds = size.rounds or rounds_for(one, epsilon=3.0, delta=DELTA)
        optimizer = torch.optim.SGD(model.parameters(), lr=10.0)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, falling(0.9, rounds, rounds))
        trainer = ShuffledTrainer(
            model,
            train,
            nn.functional.cross_entropy,
            randomizer=randomizer,
            cohort=cohort,
            optimizer=optimizer,
            scheduler=scheduler,
            seed=seed,
        )
        every = max(1, rounds // 40)
        yield Run("mnist", "network", 3.0, seed, trainer, rounds, every, test, (10.0, 0.005, 0.9))


@dataclass(frozen=True)
class Vectors:
    """The fixed features of everybody, before directions are chosen."""

    features: Representation
    train: Tensor
    test: Tensor

    def turned(self, kept: int, power: float) -> tuple[Tensor, Tensor]:
        return self.features.turned(self.train, kept, power), self.features.turned(self.test, kept, power)


def best_runs(
    task: str,
    vectors: Vectors,
    labels: tuple[Tensor, Tensor],
    plan: Plan,
    choice: Choice,
    seeds: range,
    size: Size,
) -> Iterator[Run]:
    turned = vectors.turned(choice.kept, choice.power)
    clients, held = (TensorDataset(*pair) for pair in zip(turned, labels, strict=True))
    for seed in seeds:
        model = linear(choice.kept + 1).to(turned[0].device)
        rounds = plan.rounds(parameter_count(model), size)
        # The step of the search is per unit vector; reports have length ``clip``.
        optimizer = torch.optim.SGD(model.parameters(), lr=choice.step / choice.clip)
        falls = falling(choice.decay, rounds, rounds - 1)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, falls)
        trainer = ShuffledTrainer(
            model,
            clients,
            nn.functional.cross_entropy,
            randomizer=plan.randomizer(parameter_count(model), choice.clip),
            cohort=len(clients),
            optimizer=optimizer,
            scheduler=scheduler,
            budget=Budget(plan.epsilon, DELTA) if size == WHOLE else None,  # few hide too little
            seed=seed,
        )
        settings = (choice.step, choice.clip, choice.decay)
        every = max(1, rounds // 20)
        yield Run(task, "best", plan.epsilon, seed, trainer, rounds, every, held, settings)


def curator_lines(asked: argparse.Namespace) -> Iterator[list[object]]:
    """Lines of results.csv: the same features and rounds with a trusted server, and without noise; also with
    normal noise in place of reports, which should change nothing."""
    size = QUICK if asked.quick else WHOLE
    task, vectors, labels = represented(asked, size)
    for plan, noise in itertools.product(PLANS, NOISES):
        # Without noise once, with the rounds of epsilon = 3.
        if plan.epsilon not in wanted(asked) or (noise == "none" and plan.epsilon != 3.0):
            continue
        choice = chosen(asked.search, task.name, plan.epsilon, asked.kept, noise)
        train, test = vectors.turned(choice.kept, choice.power)
        dimension, people, start = 10 * train.shape[1], len(train), time.monotonic()
        rounds = plan.rounds(dimension, size)
        deviation = deviation_of(noise, plan, dimension, people, rounds)
        settings = (choice.step, choice.clip, choice.decay)
        data = Data(train, labels[0], test, labels[1])
        found = trained(data, rounds, deviation, asked.seeds if deviation else 1, [settings])[0]
        seconds = round((time.monotonic() - start) / len(found), 1)
        for seed, right in enumerate(found.tolist()):
            head = (task.name, noise, plan.epsilon, plan.epsilon, "", "", people, rounds)
            yield [*head, *settings, dimension, seed, round(right, 6), seconds]


def arguments_of(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--task", choices=TASKS, default="mnist")
    parser.add_argument("--data", type=Path, required=True, help="folder of the idx files")
    parser.add_argument("--search", type=Path, default=HERE / "search.csv")
    parser.add_argument("--network", type=Path, help="file of the features' network; made if it is missing")
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--only", choices=("best", "curator", "paper", "authors", "network"))
    parser.add_argument("--epsilon", type=float, action="append", help="of best, all by default")
    parser.add_argument(
        "--kept", type=int, help="directions; those of the best line of the search by default"
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="seed, of best: to add to earlier ones")
    parser.add_argument("--quick", action="store_true", help="a glance, to see that it runs")
    asked = parser.parse_args(given)
    if asked.quick and asked.out == HERE:
        parser.error("--quick needs --out, another folder than that of the results")
    if asked.task != "mnist" and asked.only not in ("best", "curator"):
        parser.error("--task fashion needs --only best or curator: the paper is about MNIST")
    return asked


def main(given: list[str] | None = None) -> None:
    asked = arguments_of(given)
    with (
        open(asked.out / "results.csv", "w", newline="") as results,
        open(asked.out / "curves.csv", "w", newline="") as curves,
    ):
        result, curve = (csv.writer(file, lineterminator="\n") for file in (results, curves))
        result.writerow(RESULTS)
        curve.writerow(CURVES)
        for line, points in lines(asked):
            print(*line, flush=True)
            result.writerow(line)
            curve.writerows(points)
            results.flush()
            curves.flush()


def lines(asked: argparse.Namespace) -> Iterator[tuple[list[object], list[list[object]]]]:
    yield from (run.lines() for run in runs(asked))
    if asked.only in (None, "curator"):
        yield from ((line, []) for line in curator_lines(asked))


def wanted(asked: argparse.Namespace) -> list[float]:
    return asked.epsilon or [plan.epsilon for plan in PLANS]


def images(asked: argparse.Namespace, size: Size) -> tuple[TensorDataset, TensorDataset]:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    load = TASKS[asked.task].load
    train, test = (
        TensorDataset(*(part[: size.clients].to(device) for part in load(asked.data, name)))
        for name in ("train", "test")
    )
    return train, test


def represented(asked: argparse.Namespace, size: Size) -> tuple[Task, Vectors, tuple[Tensor, Tensor]]:
    """The task, everybody's features, and the labels of clients and test images."""
    task, (train, test) = TASKS[asked.task], images(asked, size)
    device = str(train.tensors[0].device)
    features = Representation(task, body_of(task, asked.network, size, device), size, device)
    vectors = Vectors(features, *(features.raw(part.tensors[0]) for part in (train, test)))
    return task, vectors, (train.tensors[1], test.tensors[1])


def runs(asked: argparse.Namespace) -> Iterator[Run]:
    size = QUICK if asked.quick else WHOLE
    if asked.only in (None, "best"):
        task, vectors, labels = represented(asked, size)
        for plan in PLANS:
            if plan.epsilon in wanted(asked):
                choice = chosen(asked.search, task.name, plan.epsilon, asked.kept)
                seeds = range(asked.first, asked.first + asked.seeds)
                yield from best_runs(task.name, vectors, labels, plan, choice, seeds, size)
    if asked.only in ("best", "curator"):
        return
    # Networks take a channel.
    train, test = (TensorDataset(part.tensors[0][:, None], part.tensors[1]) for part in images(asked, size))
    if asked.only in (None, "paper"):
        yield from paper_runs(train, test, asked.seeds, size)
    if asked.only == "authors":
        yield from paper_runs(train, test, asked.seeds, size, authors=True)
    if asked.only in (None, "network"):
        yield from network_runs(train, test, 1, size)


if __name__ == "__main__":
    main()
