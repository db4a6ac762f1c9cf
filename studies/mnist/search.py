"""Choose features, step size and clipping on a validation split: 10,000 of the 60,000 training images.

Every representation is tried at epsilon = 3, and the ``--chosen`` one, the best of them, at the others.

The test set is not read. To try many settings, PrivUnit's noise is replaced by a normal one of the
same covariance (the sum of tens of thousands of reports), and all settings of one representation are
trained side by side, as the columns of one matrix product. ``run.py`` then trains the chosen ones
with real reports.

    python studies/mnist/search.py --data DIR --out studies/mnist/search.csv [--quick]
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from features import Representation
from plan import PLANS, QUICK, WHOLE, Plan
from torch import Tensor

from shuffledp.learning import load_mnist

FEATURES = [
    (2, 8, 300, 0.25),
    (3, 4, 200, 0.25),
    (3, 4, 300, 0.15),
    (3, 4, 300, 0.25),
    (3, 4, 300, 0.35),
    (3, 4, 500, 0.25),
    (3, 6, 300, 0.25),
    (3, 6, 500, 0.25),
    (3, 8, 300, 0.25),
    (3, 8, 500, 0.25),
]
STEPS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
CLIPS = (1e-3, 1e-2, 0.1, 0.3)
DECAYS = (0.0, 1.0)
COLUMNS = (
    *("scales", "orientations", "kept", "power", "epsilon", "rounds"),
    *("step", "clip", "decay", "validation"),
)


@dataclass(frozen=True)
class Data:
    train: Tensor
    train_labels: Tensor
    held: Tensor
    held_labels: Tensor


def split(images: Tensor, labels: Tensor, features: Representation, held: int) -> Data:
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(1))
    order = order.to(images.device)
    vectors, targets = features(images)[order], labels[order]
    return Data(vectors[:-held], targets[:-held], vectors[-held:], targets[-held:])


def validated(data: Data, plan: Plan, rounds: int, seed: int) -> list[tuple[float, float, float, float]]:
    """(step, clip, decay, validation accuracy) of every setting."""
    grid = list(itertools.product(STEPS, CLIPS, DECAYS))
    device, size = data.train.device, data.train.shape[1]
    step, clip, decay = (torch.tensor(column, device=device) for column in zip(*grid, strict=True))
    weights = torch.zeros(size, len(grid), 10, device=device)
    truth = torch.nn.functional.one_hot(data.train_labels, 10).float()[:, None, :]
    # Per coordinate, of the mean of unit vectors; a report's length is the same for all inputs.
    moment = plan.randomizer(10 * size).second_moment
    deviation = math.sqrt(moment / (10 * size * len(data.train)))
    generator = torch.Generator(device).manual_seed(seed)
    for t in range(rounds):
        logits = (data.train @ weights.flatten(1)).reshape(len(data.train), -1, 10)
        residual = torch.softmax(logits, dim=-1) - truth
        residual /= torch.maximum(residual.norm(dim=-1, keepdim=True), clip[None, :, None])
        mean = (data.train.T @ residual.flatten(1)).reshape(weights.shape) / len(data.train)
        mean += deviation * torch.randn(weights.shape, device=device, generator=generator)
        weights -= (step * (1.0 - decay * t / rounds))[None, :, None] * mean
    guess = (data.held @ weights.flatten(1)).reshape(len(data.held), -1, 10).argmax(dim=-1)
    accuracy = (guess == data.held_labels[:, None]).float().mean(dim=0)
    return [(*setting, round(float(value), 6)) for setting, value in zip(grid, accuracy, strict=True)]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--chosen", type=int, default=4, help="index of the FEATURES tried at every epsilon")
    parser.add_argument("--quick", action="store_true", help="a glance, to see that it runs")
    asked = parser.parse_args(arguments)
    size = QUICK if asked.quick else WHOLE
    torch.backends.cuda.matmul.allow_tf32 = True
    device = "cuda" if torch.cuda.is_available() else "cpu"
    images, labels = (part[: size.clients].to(device) for part in load_mnist(asked.data).tensors)
    rows: list[tuple[object, ...]] = [COLUMNS]
    start = time.monotonic()
    for index, setting in enumerate(FEATURES):
        if asked.quick and index != asked.chosen:
            continue
        features = Representation(*setting, device, size.strokes)
        data = split(images[:, 0], labels, features, size.validation)
        for plan in PLANS:
            if plan.epsilon != 3.0 and index != asked.chosen:
                continue
            rounds = plan.rounds(10 * data.train.shape[1], size)
            found = validated(data, plan, rounds, seed=index)
            rows += [(*setting, plan.epsilon, rounds, *line) for line in found]
            best = max(found, key=lambda line: line[-1])
            print(setting, plan, best, f"{time.monotonic() - start:.0f} s", flush=True)
            with open(asked.out, "w", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
