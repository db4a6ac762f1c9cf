"""Rounds of shuffled learning per second, beside a loop over the clients.

    python benchmarks/learn.py [--output docs/performance-learn.md]

A network of 26,010 parameters and PrivUnit reports, the same clients in both: the trainer takes all
per-example gradients at once; the loop takes one client's gradient, clips and randomizes it, then the
next. On a GPU, where there is one, cohorts are larger, and a linear model on fixed features with all
of 60,000 clients in every round (the MNIST study's best setting) is timed as well. Rounds on the CPU, seeded
and secure, and single secure reports follow on every machine.
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from platform import python_version
from statistics import median
from time import perf_counter, process_time

import numpy as np
import torch
from report import ROW_HEADER, Row, table
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from shuffledp.learning import ShuffledTrainer, parameter_count
from shuffledp.learning._reports import simulated_sum
from shuffledp.randomizers.privunit import PrivUnit

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
COHORT = 2_000 if GPU else 200
REPEATS = 5


PAGE = """\
# Performance of learning{where}

Written by `make bench-learn`, which measures everything again; do not edit.

Wall seconds of one round, the median of {repeats} measurements in which the two take turns. The loop takes
one client's gradient with plain autograd, clips and randomizes it, then the next one's. Reports are
PrivUnit's, simulated with a seed; where "secure" is said they are drawn as a client draws them, on the CPU
(single reports: processor seconds).
{machine}. {versions}.

{rows}

| what | rounds per second | clients per second |
| --- | --- | --- |
{rates}
"""


def main() -> None:
    """Measure; write the page, or print it."""
    parser = argparse.ArgumentParser(description="Benchmarks of learning.")
    parser.add_argument("--output", type=Path, help="write the page here instead of printing it")
    output = parser.parse_args().output
    page = measured_page()
    if output is None:
        print(page)
        return
    output.parent.mkdir(exist_ok=True)
    output.write_text(page, encoding="utf-8")
    print(f"wrote {output}")


def measured_page() -> str:
    """Run every benchmark, a line on the terminal for each figure."""
    figures = []
    for cohort, row in measured():
        print("  ".join(cell for cell in row.cells() if cell), flush=True)
        figures.append((cohort, row))
    return PAGE.format(
        repeats=REPEATS,
        where="" if GPU else ", on a CPU",
        machine=torch.cuda.get_device_name() if GPU else f"CPU, {torch.get_num_threads()} threads",
        versions=f"Python {python_version()}, NumPy {np.__version__}, PyTorch {torch.__version__}",
        rows=table(ROW_HEADER, [row.cells() for _, row in figures]),
        rates="\n".join(
            f"| {row.what} | {1.0 / row.ours:.3g} | {cohort / row.ours:,.0f} |" for cohort, row in figures
        ),
    )


def measured() -> Iterator[tuple[int, Row]]:
    """A round's number of clients, and its figure."""
    model, clients = network().to(DEVICE), images(60_000 if GPU else 2_000)
    trainer = trainer_of(model, clients, COHORT)
    ours, loop = in_turn(trainer.step, lambda: looped_round(model, clients, COHORT))
    what = f"network of 26,010 parameters, cohort of {COHORT:,}"
    yield COHORT, Row(what, ours, loop, "a loop over clients", at_least=5.0)
    if GPU:
        linear = nn.Linear(301, 10, bias=False).to(DEVICE)
        full = trainer_of(linear, vectors(60_000), 60_000)
        wall(full.step, 3)
        each = median(wall(full.step, 20) for _ in range(REPEATS))
        yield 60_000, Row("linear model of 3,010 parameters, cohort of 60,000", each)
    yield from on_the_cpu()


def on_the_cpu() -> Iterator[tuple[int, Row]]:
    """A seeded round, a secure one, and single secure reports."""
    people = TensorDataset(torch.rand(2_000, 784), torch.randint(10, (2_000,)))
    for how, seed in (("seeded", 0), ("secure", None)):
        trainer = trainer_of(nn.Linear(784, 10), people, 200, seed)
        each = median(wall(trainer.step) for _ in range(REPEATS))
        yield 200, Row(f"linear model of 7,850 parameters, cohort of 200, on the CPU, {how}", each)
    vector = np.full((20, 7_850), 0.011)
    for epsilon0, sampler in product((0.5, 2.0, 4.0, 8.0), ("rejection", "seeds")):
        randomizer = PrivUnit(7_850, epsilon0, sampler=sampler)
        randomizer.randomize(vector[:1])
        each = median(wall(partial(randomizer.randomize, vector), clock=process_time) for _ in range(REPEATS))
        what = f"one secure report of 7,850 numbers, epsilon0 = {epsilon0:g}, {sampler}"
        yield 1, Row(what, each / len(vector), within=1e-3 if sampler == "rejection" else None)


def network() -> nn.Module:
    """Two convolutions, two dense layers: 26,010 parameters."""
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 8, stride=2, padding=3), nn.Tanh(), nn.MaxPool2d(2, 1)),
        *(nn.Conv2d(16, 32, 4, stride=2), nn.Tanh(), nn.MaxPool2d(2, 1), nn.Flatten()),
        *(nn.Linear(512, 32), nn.Tanh(), nn.Linear(32, 10)),
    )


def images(count: int) -> TensorDataset:
    return TensorDataset(torch.rand(count, 1, 28, 28, device=DEVICE), labels(count))


def vectors(count: int) -> TensorDataset:
    rows = torch.randn(count, 301, device=DEVICE)
    return TensorDataset(nn.functional.normalize(rows), labels(count))


def labels(count: int) -> Tensor:
    return torch.randint(10, (count,), device=DEVICE)


def trainer_of(
    model: nn.Module, clients: TensorDataset, cohort: int, seed: int | None = 0
) -> ShuffledTrainer:
    return ShuffledTrainer(
        model,
        clients,
        nn.functional.cross_entropy,
        randomizer=PrivUnit(parameter_count(model), epsilon0=2.0, radius=0.005),
        cohort=cohort,
        optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
        seed=seed,
    )


def looped_round(model: nn.Module, clients: TensorDataset, cohort: int) -> Tensor:
    """The reports of the first clients, summed one by one."""
    randomizer = PrivUnit(parameter_count(model), epsilon0=2.0, radius=0.005)
    generator = torch.Generator(DEVICE).manual_seed(0)
    total = torch.zeros(randomizer.dimension, device=DEVICE)
    for index in range(cohort):
        example, target = clients[index]
        loss = nn.functional.cross_entropy(model(example[None]), target[None])
        parts = torch.autograd.grad(loss, list(model.parameters()))
        row = torch.cat([part.reshape(-1) for part in parts])
        total += simulated_sum(randomizer, row[None], generator)
    return total


def in_turn(ours: Callable[[], object], baseline: Callable[[], object]) -> tuple[float, float]:
    """Median wall seconds of two tasks, run alternately so that both see the same machine."""
    wall(ours, 3)
    pairs = [(wall(ours, 10) if GPU else wall(ours), wall(baseline)) for _ in range(REPEATS)]
    return median(a for a, _ in pairs), median(b for _, b in pairs)


def wall(task: Callable[[], object], times: int = 1, clock: Callable[[], float] = perf_counter) -> float:
    """Wall seconds of one call, the device's work included (or by another clock)."""
    synchronize()
    start = clock()
    for _ in range(times):
        task()
    synchronize()
    return (clock() - start) / times


def synchronize() -> None:
    if GPU:
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
