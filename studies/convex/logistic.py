"""Logistic regression by projected, shuffled SGD: the learning paper's convergence, checked.

Girgis et al. 2021, Theorem 3 with Lemmas 9 and 10. F is convex, gradients have l2 norm at most L, the
parameters stay in a ball of diameter D, the step is D/(G sqrt t), and

    E |estimate|^2 <= G^2 = L^2 + (second moment of one report)/cohort
                   <= L^2 (1 + 14 d/cohort ((e^epsilon0 + 1)/(e^epsilon0 - 1))^2)        (Lemma 9)
    E F(theta_T) - min F <= 2 D G (2 + log T)/sqrt T                                     (Lemma 10)

The script prints how much of each bound is used and writes the measured gaps to convergence.csv.

    python studies/convex/logistic.py
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from shuffledp.learning import ShuffledTrainer
from shuffledp.randomizers.privunit import PrivUnit

CLIENTS, DIMENSION, COHORT = 2_000, 10, 500
ROUNDS, SEEDS, EPSILON0 = 600, 4, 1.0
LIPSCHITZ, DIAMETER = 1.0, 6.0
AT = (1, 3, 10, 30, 100, 200, 400, 600)


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


def gaps(clients: TensorDataset, bound: float, lowest: float, seed: int) -> list[float]:
    """F(theta_t) - min F at the rounds AT."""
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
    for at in AT:
        trainer.run(at - trainer.rounds, every=ROUNDS)
        found.append(float(objective(model.weight.detach(), clients)) - lowest)
    return found


def main() -> None:
    clients = people()
    moment = PrivUnit(DIMENSION, EPSILON0, LIPSCHITZ).second_moment
    bound = math.sqrt(LIPSCHITZ**2 + moment / COHORT)
    gain = 1.0 / math.tanh(0.5 * EPSILON0)
    constant = moment / (DIMENSION * gain**2 * LIPSCHITZ**2)
    print(f"second moment of a report: {constant:.3f} d gain^2 L^2, Lemma 9 allows 14")
    lowest = least(clients)
    runs = [gaps(clients, bound, lowest, seed) for seed in range(SEEDS)]
    rows = [("rounds", "mean_gap", "lemma_10", "constant")]
    for at, values in zip(AT, zip(*runs, strict=True), strict=True):
        rate = DIAMETER * bound * (2.0 + math.log(at)) / math.sqrt(at)
        gap = sum(values) / SEEDS
        rows.append((at, round(gap, 6), round(2.0 * rate, 4), round(gap / rate, 5)))
        print(f"T = {at:4}: gap {gap:.4f} = {gap / rate:.4f} D G (2 + log T)/sqrt T, allowed 2")
    with open(Path(__file__).parent / "convergence.csv", "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
