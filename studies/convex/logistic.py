"""Logistic regression by projected, shuffled SGD: the learning paper's convergence, checked.

Girgis et al. 2021, Theorem 3 with Lemmas 9 and 10. F is convex, gradients have l2 norm at most L, the
parameters stay in a ball of diameter D, the step is D/(G sqrt t), and

    E |estimate|^2 <= G^2 = L^2 + (second moment of one report)/cohort
                   <= L^2 (1 + 14 d/cohort ((e^epsilon0 + 1)/(e^epsilon0 - 1))^2)        (Lemma 9)
    E F(theta_T) - min F <= 2 D G (2 + log T)/sqrt T                                     (Lemma 10)

For gradients clipped in l1 or l-infinity the constant is 4 instead of 14, and for l-infinity both terms
have a factor d more. The script prints how much of each bound is used and writes the measured gaps to
convergence.csv.

    python studies/convex/logistic.py [--out FILE] [--rounds 600] [--seeds 4]
"""

from __future__ import annotations

import argparse
import csv
import math
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from shuffledp.learning import ShuffledTrainer
from shuffledp.randomizers.privunit import PrivUnit
from shuffledp.randomizers.signs import L1Randomizer, LInfinityRandomizer

CLIENTS, DIMENSION, COHORT = 2_000, 10, 500
EPSILON0 = 1.0
LIPSCHITZ, DIAMETER = 1.0, 6.0
AT = (1, 3, 10, 30, 100, 200, 400, 600)

# Randomizer, the constant that Lemma 9 allows, and its power of d.
KINDS = ((PrivUnit, 14, 0), (LInfinityRandomizer, 4, 1), (L1Randomizer, 4, 0))


def people() -> TensorDataset:
    """Unit vectors, and labels of a random linear rule that is wrong now and then."""
    generator = torch.Generator().manual_seed(11)
    points = nn.functional.normalize(torch.randn(CLIENTS, DIMENSION, generator=generator))
    rule = torch.randn(DIMENSION, generator=generator)
    chance = torch.sigmoid(6.0 * points @ rule)
    labels = (torch.rand(CLIENTS, generator=generator) < chance).float()
    return TensorDataset(points, labels[:, None])


def objective(weights: Tensor, clients: TensorDataset) -> Tensor:
    points, labels = clients.tensors
    return nn.functional.binary_cross_entropy_with_logits(points @ weights.T, labels)


def least(clients: TensorDataset) -> float:
    """min F over the ball, by plain projected gradient descent."""
    weights = torch.zeros(1, DIMENSION, requires_grad=True)
    for _ in range(3_000):
        (slope,) = torch.autograd.grad(objective(weights, clients), weights)
        with torch.no_grad():
            weights -= 4.0 * slope
            weights *= 0.5 * DIAMETER / max(0.5 * DIAMETER, float(weights.norm()))
    return float(objective(weights.detach(), clients))


def constants(epsilon0: float) -> dict[str, float]:
    """Of the exact second moment of a report: in units of d^(1 + power) gain^2 L^2."""
    gain = 1.0 / math.tanh(0.5 * epsilon0)
    return {
        kind.__name__: kind(DIMENSION, epsilon0, LIPSCHITZ).second_moment
        / (DIMENSION ** (1 + power) * gain**2 * LIPSCHITZ**2)
        for kind, _, power in KINDS
    }


def gaps(clients: TensorDataset, bound: float, lowest: float, rounds: list[int], seed: int) -> list[float]:
    """F(theta_t) - min F at some rounds."""
    model = nn.Linear(DIMENSION, 1, bias=False)
    nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=DIAMETER / bound)
    trainer = ShuffledTrainer(
        model,
        clients,
        nn.functional.binary_cross_entropy_with_logits,
        randomizer=PrivUnit(DIMENSION, EPSILON0, LIPSCHITZ),
        cohort=COHORT,
        optimizer=optimizer,
        scheduler=torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: 1.0 / math.sqrt(t + 1)),
        projection=0.5 * DIAMETER,
        seed=seed,
    )
    found = []
    for at in rounds:
        trainer.run(at - trainer.rounds, every=rounds[-1])
        found.append(float(objective(model.weight.detach(), clients)) - lowest)
    return found


def measured(rounds: list[int], seeds: int) -> list[tuple[int, float, float, float]]:
    """(T, mean gap, what Lemma 10 allows, the constant of D G (2 + log T)/sqrt T that was needed)."""
    clients = people()
    bound = math.sqrt(LIPSCHITZ**2 + PrivUnit(DIMENSION, EPSILON0, LIPSCHITZ).second_moment / COHORT)
    lowest = least(clients)
    runs = [gaps(clients, bound, lowest, rounds, seed) for seed in range(seeds)]
    rows = []
    for at, values in zip(rounds, zip(*runs, strict=True), strict=True):
        rate = DIAMETER * bound * (2.0 + math.log(at)) / math.sqrt(at)
        gap = sum(values) / seeds
        rows.append((at, round(gap, 6), round(2.0 * rate, 4), round(gap / rate, 5)))
    return rows


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "convergence.csv")
    parser.add_argument("--rounds", type=int, default=AT[-1])
    parser.add_argument("--seeds", type=int, default=4)
    asked = parser.parse_args(arguments)
    used = constants(EPSILON0)
    for kind, allowed, power in KINDS:
        print(
            f"second moment of a report, {kind.__name__}: {used[kind.__name__]:.3f} "
            f"d^{1 + power} gain^2 L^2, Lemma 9 allows {allowed}"
        )
    rows = measured([at for at in AT if at <= asked.rounds], asked.seeds)
    for at, gap, _, constant in rows:
        print(f"T = {at:4}: gap {gap:.4f} = {constant:.4f} D G (2 + log T)/sqrt T, allowed 2")
    with open(asked.out, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("rounds", "mean_gap", "lemma_10", "constant"))
        writer.writerows(rows)


if __name__ == "__main__":
    main()
