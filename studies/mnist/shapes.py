"""Which shape of noise tells most about a vector at epsilon = 3: a cap, a ramp, or mixed Gaussian noise.

    python studies/mnist/shapes.py --out studies/mnist/shapes.csv

For 60,000 people at delta = 1e-5 the accountant says how many rounds a randomizer may run, certified. Rounds
over the second moment of a decoded report is its information; PrivUnit's, with a good cap, is one. The
Gaussian's epsilon0 and signal have the most information for about as many rounds (T27, docs/proofs/ramp.md).
With the rounds stands the lower end of their epsilon: an attack that the accountant knows.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import shuffledp as sdp

DIMENSION, PEOPLE, EPSILON, DELTA = 3010, 60_000, 3.0, 1e-5
Randomizer = sdp.PrivUnit | sdp.RampUnit | sdp.GaussianUnit
SHAPES: list[tuple[Randomizer, ...]] = [
    (
        sdp.PrivUnit(DIMENSION, 2.0, cap_probability=0.115),
        sdp.RampUnit(DIMENSION, 3.06),
        sdp.GaussianUnit(DIMENSION, 4.34, signal=1.22),
    ),
    (
        sdp.PrivUnit(DIMENSION, 1.0, cap_probability=0.185),
        sdp.RampUnit(DIMENSION, 1.834, start=0.25),
        sdp.GaussianUnit(DIMENSION, 2.845, signal=0.96),
    ),
    (
        sdp.PrivUnit(DIMENSION, 0.5, cap_probability=0.23),
        sdp.RampUnit(DIMENSION, 1.085, start=0.125),
        sdp.GaussianUnit(DIMENSION, 1.788, signal=0.8),
    ),
]


def rounds(randomizer: Randomizer, people: int = PEOPLE) -> int:
    found = sdp.calibrate(randomizer, solve_for="rounds", epsilon=EPSILON, delta=DELTA, n=people)
    return int(found.value)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--quick", action="store_true", help="the first line only, of 600 people")
    given = parser.parse_args()
    people = 600 if given.quick else PEOPLE
    rows = []
    for shapes in SHAPES[: 1 if given.quick else None]:
        told = []
        for one in shapes:
            allowed = rounds(one, people)
            told.append(allowed / one.second_moment)
            lower = (allowed * sdp.Shuffled(one, n=people)).epsilon(delta=DELTA).lower
            name = f"{type(one).__name__}, epsilon0 = {one.epsilon0:g}"
            rows.append((name, allowed, f"{lower:.3f}", f"{told[-1] / told[0]:.3f}"))
            print(*rows[-1], flush=True)
    with given.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("randomizer", "rounds", "lower", "information"))
        writer.writerows(rows)


if __name__ == "__main__":
    main()
