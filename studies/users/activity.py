"""People who hold many records each: what they do, from twelve sensors.

The data is simulated. Each of ``PEOPLE`` has one to sixty records (the whole part of an exponential, cut),
does five things in shares of their own (Dirichlet, 0.5), and carries the sensors in a way of their own (a
shift of deviation 0.7 that all of their records have). A record is the middle of its activity, the shift,
and unit noise. Accuracy is measured on the records of other people, drawn in the same way.

In every round everybody takes ``LOCAL_STEPS`` on their own records and sends *one* clipped and randomized
report of where that led: epsilon is for one person's records, all of them, replaced by another's.

    python studies/users/activity.py [--out FILE] [--seeds 3] [--quick]
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from shuffledp import Shuffled
from shuffledp.learning import Budget, ShuffledTrainer, parameter_count, rounds_for
from shuffledp.randomizers.privunit import PrivUnit

PEOPLE, SENSORS, ACTIVITIES, MOST_RECORDS = 6_000, 12, 5, 60
EPSILONS, EPSILON0, DELTA = (1.0, 3.0), 2.0, 1e-6
LOCAL_STEPS, LOCAL_RATE, CLIP, STEP = 3, 0.5, 0.5, 1.0
COLUMNS = (
    "people",
    "epsilon",
    "certified",
    "epsilon0",
    "rounds",
    "seed",
    "accuracy",
    "largest_class",
    "no_privacy",
)
User = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class World:
    """What all people share: where each activity lies among the sensors."""

    middles: Tensor

    @classmethod
    def of(cls, generator: torch.Generator) -> World:
        return cls(torch.randn(ACTIVITIES, SENSORS, generator=generator))

    def person(self, generator: torch.Generator) -> User:
        size = int(torch.empty(()).exponential_(1.0 / 12.0, generator=generator).clamp(1.0, MOST_RECORDS))
        # A Dirichlet draw of 0.5 each: squares of normals over their sum.
        shares = torch.randn(ACTIVITIES, generator=generator) ** 2
        labels = torch.multinomial(shares, size, replacement=True, generator=generator)
        shift = 0.7 * torch.randn(SENSORS, generator=generator)
        noise = torch.randn(size, SENSORS, generator=generator)
        return self.middles[labels] + shift + noise, labels


def model() -> nn.Module:
    linear = nn.Linear(SENSORS, ACTIVITIES)
    for parameter in linear.parameters():
        nn.init.zeros_(parameter)
    return linear


def accuracy(trained: nn.Module, records: User) -> float:
    with torch.no_grad():
        return float((trained(records[0]).argmax(dim=1) == records[1]).double().mean())


def pooled(people: list[User]) -> User:
    return torch.cat([x for x, _ in people]), torch.cat([y for _, y in people])


def without_privacy(people: list[User], others: User) -> float:
    """All records in one place, and the best linear model of them."""
    trained, (inputs, labels) = model(), pooled(people)
    optimizer = torch.optim.LBFGS(trained.parameters(), max_iter=100)

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = nn.functional.cross_entropy(trained(inputs), labels)
        torch.autograd.backward(value)
        return value

    step: Callable[[Callable[[], Tensor]], object] = optimizer.step
    step(loss)
    return accuracy(trained, others)


def private(
    people: list[User], others: User, epsilon: float, rounds: int | None, seed: int
) -> tuple[float, float, int]:
    """(accuracy, certified epsilon, rounds) of training by reports of people, everybody in every round."""
    trained = model()
    randomizer = PrivUnit(parameter_count(trained), EPSILON0, radius=CLIP)
    one = Shuffled(randomizer, n=len(people))
    rounds = rounds or rounds_for(one, epsilon=epsilon, delta=DELTA)
    trainer = ShuffledTrainer(
        trained,
        people,
        nn.functional.cross_entropy,
        randomizer=randomizer,
        cohort=len(people),
        optimizer=torch.optim.SGD(trained.parameters(), lr=STEP),
        budget=Budget(epsilon, DELTA) if len(people) == PEOPLE else None,
        local_steps=LOCAL_STEPS,
        local_rate=LOCAL_RATE,
        seed=seed,
    )
    trainer.run(rounds)
    return accuracy(trained, others), trainer.spending.upper_epsilon(delta=DELTA), rounds


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "activity.csv")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="two rounds of few people, to see that it runs")
    asked = parser.parse_args(arguments)
    count, rounds = (60, 2) if asked.quick else (PEOPLE, None)
    generator = torch.Generator().manual_seed(0)
    world = World.of(generator)
    people = [world.person(generator) for _ in range(count)]
    others = pooled([world.person(generator) for _ in range(count)])
    largest = float(others[1].bincount().max()) / len(others[1])
    free = without_privacy(people, others)
    with open(asked.out, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for epsilon in EPSILONS:
            for seed in range(asked.seeds):
                found, certified, took = private(people, others, epsilon, rounds, seed)
                measured = (f"{value:.4f}" for value in (found, largest, free))
                row = (count, epsilon, f"{certified:.6f}", EPSILON0, took, seed, *measured)
                writer.writerow(row)
                print(*row, flush=True)


if __name__ == "__main__":
    main()
