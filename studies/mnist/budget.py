"""What a budget buys before any training: total information against epsilon0, cohort and rounds.

A de-biased PrivUnit report of a unit vector has variance v = second_moment/d per coordinate. T rounds
of n reports average to a noise of variance v/(T n) per coordinate: "information" T n / v. At a fixed
certified epsilon the best cap is searched for every epsilon0 and cohort, and the most rounds.

    python studies/mnist/budget.py --out studies/mnist/budget.csv [--quick]
"""

from __future__ import annotations

import argparse
import csv
import itertools
from dataclasses import dataclass
from pathlib import Path

import shuffledp as sdp
from shuffledp.learning import rounds_for
from shuffledp.randomizers.privunit import PrivUnit

POPULATION, DIMENSION, DELTA = 60_000, 3010, 1e-5
EPSILONS = (0.667, 3.0, 5.8)
LOCAL = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)
COHORTS = (500, 2_000, 6_000, 60_000)
CAPS = (0.3, 0.4, 0.6, 0.8, 1.0)
"""Shares of the cap of least variance."""


@dataclass(frozen=True)
class Line:
    epsilon: float
    epsilon0: float
    cohort: int
    cap: float
    rounds: int
    information: float


def line(epsilon: float, epsilon0: float, cohort: int, cap: float) -> Line:
    randomizer = PrivUnit(DIMENSION, epsilon0, cap_probability=cap)
    one = sdp.Shuffled(randomizer, n=cohort).sampled_from(POPULATION)
    rounds = rounds_for(one, epsilon=epsilon, delta=DELTA)
    information = rounds * cohort * DIMENSION / randomizer.second_moment
    share = float(f"{information / POPULATION**2:.6g}")
    return Line(epsilon, epsilon0, cohort, round(cap, 4), rounds, share)


def best_line(epsilon: float, epsilon0: float, cohort: int) -> Line:
    """Over caps below the one of least variance: smaller caps are more private after shuffling."""
    widest = PrivUnit(DIMENSION, epsilon0).cap.probability
    lines = [line(epsilon, epsilon0, cohort, share * widest) for share in CAPS]
    return max(lines, key=lambda found: found.information)


def settings(quick: bool) -> list[tuple[float, int, float]]:
    """(epsilon, cohort, epsilon0), one of each if that is enough."""
    every = list(itertools.product(EPSILONS, COHORTS, LOCAL))
    return [(3.0, POPULATION, 4.0)] if quick else every


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--quick", action="store_true", help="one line, to see that it runs")
    asked = parser.parse_args(arguments)
    names = ("epsilon", "epsilon0", "cohort", "cap", "rounds", "information_per_population_squared")
    with open(asked.out, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        for epsilon, cohort, epsilon0 in settings(asked.quick):
            found = best_line(epsilon, epsilon0, cohort)
            writer.writerow(vars(found).values())
            file.flush()
            print(found, flush=True)


if __name__ == "__main__":
    main()
