"""Choose features, step size and clipping on a validation split: 10,000 of the 60,000 training images.

    python studies/mnist/search.py --task mnist --data DIR --out DIR/search.csv [--network FILE] [--quick]

The test set is not read. To try many settings, PrivUnit's noise is replaced by a normal one of the same
covariance (the sum of tens of thousands of reports), and all settings of one representation are trained side
by side, as the columns of one matrix product, eight times with other noise: a setting is chosen by its mean.
Every representation is tried at epsilon = 3, the best of them at the other budgets, and there also with a
trusted server that adds normal noise (for one image replaced, and for one more or less) and without noise.
``run.py`` then trains the chosen ones with real reports.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from contrast import learned, network
from features import Representation
from plan import PLANS, QUICK, WHOLE, Plan, Size
from tasks import TASKS, Task
from torch import Tensor, nn

POWERS = (0.35, 0.45)
STEPS = (2.0, 4.0, 8.0, 16.0)
CLIPS = (0.01, 0.1)
DECAYS = (0.0, 1.0)
COLUMNS = (
    *("task", "kept", "power", "noise", "epsilon", "rounds"),
    *("step", "clip", "decay", "seeds", "validation", "deviation"),
)
NOISES = ("shuffled", "curator, substitution", "curator, add/remove", "none")
Row = tuple[object, ...]


@dataclass(frozen=True)
class Data:
    train: Tensor
    train_labels: Tensor
    held: Tensor
    held_labels: Tensor


def body_of(task: Task, file: Path | None, size: Size, device: str) -> nn.Sequential:
    """The network learned from random images; kept in the file, if one is named."""
    if file is not None and file.exists():
        body = network(size.width).to(device)
        body.load_state_dict(torch.load(file, map_location=device))
        return body.eval()
    body = learned(task.family, size, device)
    if file is not None:
        torch.save(body.state_dict(), file)
    return body


Setting = tuple[float, float, float]
"""Step, clip, decay."""


def trained(data: Data, rounds: int, deviation: float, seeds: int, settings: list[Setting]) -> Tensor:
    """The accuracy on the images held out of every setting and seed, all trained side by side."""
    device, size = data.train.device, data.train.shape[1]
    columns = [setting for setting in settings for _ in range(seeds)]
    step, clip, decay = (torch.tensor(column, device=device) for column in zip(*columns, strict=True))
    weights = torch.zeros(size, len(columns), 10, device=device)
    truth = torch.nn.functional.one_hot(data.train_labels, 10).float()[:, None, :]
    generator = torch.Generator(device).manual_seed(1)
    for t in range(rounds):
        logits = (data.train @ weights.flatten(1)).reshape(len(data.train), -1, 10)
        residual = torch.softmax(logits, dim=-1).sub_(truth)
        residual /= torch.maximum(residual.norm(dim=-1, keepdim=True), clip[None, :, None])
        mean = (data.train.T @ residual.flatten(1)).reshape(weights.shape) / len(data.train)
        mean += deviation * torch.randn(weights.shape, device=device, generator=generator)
        weights -= (step * (1.0 - decay * t / rounds))[None, :, None] * mean
    guess = (data.held @ weights.flatten(1)).reshape(len(data.held), -1, 10).argmax(dim=-1)
    return (guess == data.held_labels[:, None]).double().mean(dim=0).reshape(-1, seeds)


def validated(data: Data, rounds: int, deviation: float, seeds: int) -> Iterator[Row]:
    """(step, clip, decay, seeds, mean and deviation of the validation accuracy) of every setting."""
    grid = list(itertools.product(STEPS, CLIPS, DECAYS))
    for setting, values in zip(grid, trained(data, rounds, deviation, seeds, grid), strict=True):
        spread = float(values.std()) if seeds > 1 else 0.0
        yield (*setting, seeds, round(float(values.mean()), 6), round(spread, 6))


def deviation_of(noise: str, plan: Plan, dimension: int, people: int, rounds: int) -> float:
    """Of the noise in every coordinate of the mean of unit vectors, in every round."""
    return {
        "shuffled": plan.report_deviation(dimension, people),
        "curator, substitution": plan.curator_deviation(people, rounds, difference=2.0),
        "curator, add/remove": plan.curator_deviation(people, rounds, difference=1.0),
        "none": 0.0,
    }[noise]


@dataclass(frozen=True)
class Search:
    task: Task
    features: Representation
    raw: Tensor
    labels: Tensor
    size: Size

    def data(self, kept: int, power: float) -> Data:
        order = torch.randperm(len(self.raw), generator=torch.Generator().manual_seed(1)).to(self.raw.device)
        vectors, labels = self.features.turned(self.raw, kept, power)[order], self.labels[order]
        held = self.size.validation
        return Data(vectors[:-held], labels[:-held], vectors[-held:], labels[-held:])

    def rows(self, data: Data, kept: int, power: float, noise: str, plan: Plan) -> list[Row]:
        dimension, people = 10 * data.train.shape[1], len(data.train)
        rounds = plan.rounds(dimension, self.size)
        deviation = deviation_of(noise, plan, dimension, people, rounds)
        seeds = self.size.seeds if deviation else 1
        head = (self.task.name, kept, power, noise, plan.epsilon, rounds)
        return [(*head, *found) for found in validated(data, rounds, deviation, seeds)]

    def every_row(self) -> Iterator[list[Row]]:
        main = next(plan for plan in PLANS if plan.epsilon == 3.0)
        tried = []
        for kept, power in itertools.product(self.task.kept, POWERS):
            tried += self.rows(self.data(kept, power), kept, power, "shuffled", main)
            yield tried[-len(STEPS) * len(CLIPS) * len(DECAYS) :]
        best = max(tried, key=_validation)
        kept, power = int(str(best[1])), float(str(best[2]))
        data = self.data(kept, power)
        for plan, noise in itertools.product(PLANS, NOISES):
            # Without noise once; shuffled at epsilon = 3 is done.
            if noise != ("shuffled" if plan is main else "none"):
                yield self.rows(data, kept, power, noise, plan)


def _validation(row: Row) -> float:
    return float(str(row[-2]))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--task", choices=TASKS, default="mnist")
    parser.add_argument("--data", type=Path, required=True, help="folder of the idx files")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--network", type=Path, help="file of the features' network; made if it is missing")
    parser.add_argument("--quick", action="store_true", help="a glance, to see that it runs")
    asked = parser.parse_args(arguments)
    size, task = QUICK if asked.quick else WHOLE, TASKS[asked.task]
    torch.backends.cuda.matmul.allow_tf32 = True
    device = "cuda" if torch.cuda.is_available() else "cpu"
    start = time.monotonic()
    images, labels = (part[: size.clients].to(device) for part in task.load(asked.data, "train"))
    features = Representation(task, body_of(task, asked.network, size, device), size, device)
    search = Search(task, features, features.raw(images), labels, size)
    rows: list[Row] = [COLUMNS]
    for found in search.every_row():
        rows += found
        best = max(found, key=_validation)
        print(*best, f"{time.monotonic() - start:.0f} s", flush=True)
        with open(asked.out, "w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
