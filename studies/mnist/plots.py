"""The figures and the tables of docs/mnist.md, from results.csv, curves.csv, search.csv and budget.csv.

python studies/mnist/plots.py [--folder DIR]
"""

from __future__ import annotations

import argparse
import csv
import itertools
from collections import defaultdict
from pathlib import Path
from statistics import mean, stdev

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from plan import DELTA, POPULATION

import shuffledp as sdp
from shuffledp.literature.girgis import girgis_2021_epsilon
from shuffledp.randomizers.privunit import PrivUnit

HERE = Path(__file__).parent
PUBLISHED = {3.0: 0.8115, 5.8: 0.897}
Rows = list[dict[str, str]]


def read(path: Path) -> Rows:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def spread(values: list[float]) -> tuple[float, float]:
    return mean(values), stdev(values) if len(values) > 1 else 0.0


def validated(search: Rows, task: str, noise: str) -> dict[float, tuple[float, float]]:
    """Epsilon -> mean and deviation over noise seeds of the validation accuracy of the best setting."""
    found: dict[float, tuple[float, float]] = {}
    for row in search:
        if (row["task"], row["noise"]) == (task, noise):
            epsilon, value = float(row["epsilon"]), (float(row["validation"]), float(row["deviation"]))
            found[epsilon] = max(found.get(epsilon, value), value)
    return dict(sorted(found.items()))


def by_epsilon(results: Rows, run: str, task: str = "mnist") -> dict[float, tuple[float, float]]:
    """Certified epsilon -> mean and deviation of the final test accuracy over seeds."""
    found: dict[float, list[float]] = defaultdict(list)
    for row in results:
        if (row["task"], row["run"]) == (task, run):
            found[float(row["epsilon_certified"])].append(float(row["test_accuracy"]))
    return {epsilon: spread(values) for epsilon, values in sorted(found.items())}


def paper_curve(curves: Rows) -> list[tuple[int, float, float]]:
    """(round, mean, deviation) of the paper's setting."""
    found: dict[int, list[float]] = defaultdict(list)
    for row in curves:
        if row["run"] == "paper":
            found[int(row["round"])].append(float(row["test_accuracy"]))
    return [(at, *spread(values)) for at, values in sorted(found.items())]


def paper_epsilons(rounds: list[int]) -> tuple[list[float], list[float]]:
    """Of the paper's setting after so many rounds: its Theorem 1, and certified."""
    one = sdp.Shuffled(PrivUnit(26_010, 2.0), n=2_000).sampled_from(POPULATION)
    published = [girgis_2021_epsilon(2.0, 2_000, POPULATION, rounds=t, delta=DELTA) for t in rounds]
    return published, [(t * one).upper_epsilon(delta=DELTA) for t in rounds]


def accuracy_figure(results: Rows, curves: Rows, folder: Path) -> None:
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    curve = paper_curve(curves)[::4]
    heights, bars = [y for _, y, _ in curve], [e for _, _, e in curve]
    published, certified = paper_epsilons([t for t, _, _ in curve])
    axes.errorbar(published, heights, bars, label="paper's setting, its Theorem 1", color="tab:gray")
    axes.errorbar(certified, heights, bars, label="paper's setting, certified", color="tab:blue")
    for run, label, color in (
        ("network", "same network, budget respent (one seed)", "tab:orange"),
        ("best", "linear model on fixed features, certified", "tab:green"),
    ):
        points = by_epsilon(results, run)
        values, deviations = zip(*points.values(), strict=True)
        axes.errorbar(list(points), values, deviations, marker="o", label=label, color=color)
    axes.plot(list(PUBLISHED), list(PUBLISHED.values()), "x", color="black", label="as published")
    axes.set(xscale="log", ylim=(0.6, 1.0), xlabel="epsilon (delta = 1e-5)", ylabel="test accuracy")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower center", fontsize=8)
    figure.savefig(folder / "accuracy.svg", metadata={"Date": None})


NOISES = {
    "shuffled": ("shuffled, nobody trusted with data", "tab:green"),
    "curator, substitution": ("trusted server, one image replaced", "tab:blue"),
    "curator, add/remove": ("trusted server, one more or less", "tab:cyan"),
}


def curator_figure(search: Rows, results: Rows, folder: Path) -> None:
    """Beside a trusted server and no noise: MNIST on the test set, with real reports; Fashion-MNIST on the
    validation images, and its real reports on the test set."""
    figure, (digits, clothes) = plt.subplots(1, 2, figsize=(8, 3.8), layout="constrained")
    for noise, (label, color) in NOISES.items():
        tested = by_epsilon(results, "best" if noise == "shuffled" else noise)
        for axes, points in ((digits, tested), (clothes, validated(search, "fashion", noise))):
            values, deviations = zip(*points.values(), strict=True)
            axes.errorbar(list(points), values, deviations, marker=".", label=label, color=color)
    (free,), (other, *_) = by_epsilon(results, "none").values(), validated(search, "fashion", "none").values()
    real = by_epsilon(results, "best", "fashion")
    values, deviations = zip(*real.values(), strict=True)
    style = {"fmt": "s", "color": "black", "label": "real reports, test set", "zorder": 3}
    clothes.errorbar(list(real), values, deviations, **style)
    for axes, (height, _), title in (
        (digits, free, "MNIST, test set"),
        (clothes, other, "Fashion-MNIST, validation images"),
    ):
        axes.axhline(height, color="tab:gray", linestyle="--", label="no noise")
        axes.set(xscale="log", title=title, xlabel="epsilon (delta = 1e-5)", ylabel="accuracy")
        axes.grid(alpha=0.3)
        axes.legend(loc="lower right", fontsize=8)
    figure.savefig(folder / "curator.svg", metadata={"Date": None})


def budget_figure(budget: Rows, folder: Path) -> None:
    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    for cohort in sorted({int(row["cohort"]) for row in budget}):
        rows = [r for r in budget if int(r["cohort"]) == cohort and float(r["epsilon"]) == 3.0]
        axes.plot(
            [float(row["epsilon0"]) for row in rows],
            [float(row["information_per_population_squared"]) for row in rows],
            marker="o",
            label=f"cohorts of {cohort:,}",
        )
    axes.set(yscale="log", xlabel="epsilon0", ylabel="information / population²")
    axes.set_title("What epsilon = 3 buys", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(folder / "budget.svg", metadata={"Date": None})


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--folder", type=Path, default=HERE, help="of the CSV files, and to write to")
    folder = parser.parse_args(arguments).folder
    matplotlib.rcParams["svg.hashsalt"] = "shuffledp"
    results, curves, search, budget = (
        read(folder / f"{name}.csv") for name in ("results", "curves", "search", "budget")
    )
    for task, run in sorted({(row["task"], row["run"]) for row in results}):
        for epsilon, (middle, deviation) in by_epsilon(results, run, task).items():
            print(f"{task:8} {run:22} {epsilon:.4f} {100 * middle:.2f} ± {100 * deviation:.2f}")
    for task, noise in itertools.product(("mnist", "fashion"), (*NOISES, "none")):
        for epsilon, (middle, deviation) in validated(search, task, noise).items():
            print(f"{task:8} {noise:22} {epsilon:5} validation {100 * middle:.2f} ± {100 * deviation:.2f}")
    at = [75 * i for i in (4, 8, 20, 40, 60, 80)]
    for row in zip(at, *paper_epsilons(at), strict=True):
        print("paper's setting, rounds, Theorem 1, certified:", *row)
    accuracy_figure(results, curves, folder)
    curator_figure(search, results, folder)
    budget_figure(budget, folder)


if __name__ == "__main__":
    main()
