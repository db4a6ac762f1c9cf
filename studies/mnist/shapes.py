"""Which shape of noise tells most about a vector at epsilon = 3: a cap, a ramp, or mixed Gaussian noise.

    python studies/mnist/shapes.py --out studies/mnist/shapes.csv

For 60,000 people at delta = 1e-5 the accountant says how many rounds a randomizer may run. Rounds over the
variance of one entry of a decoded report is its information; PrivUnit's, with a good cap, is one. The
Gaussian randomizer sends noise alone with probability ``noise`` and else the vector with noise, ``signal``
being the vector's length over the noise's deviation; it is accounted by its law (T27, docs/proofs/ramp.md),
here in plain doubles: good for a comparison, no certificate.
"""

from __future__ import annotations

import argparse
import csv
import math
from pathlib import Path
from typing import Any

import numpy as np

import shuffledp as sdp

DIMENSION, PEOPLE, EPSILON, DELTA = 3010, 60_000, 3.0, 1e-5
SHAPES: list[tuple[sdp.PrivUnit, sdp.RampUnit, tuple[float, float]]] = [
    (sdp.PrivUnit(DIMENSION, 2.0, cap_probability=0.115), sdp.RampUnit(DIMENSION, 3.06), (0.41, 1.14)),
    (
        sdp.PrivUnit(DIMENSION, 1.0, cap_probability=0.185),
        sdp.RampUnit(DIMENSION, 1.834, start=0.25),
        (0.62, 0.885),
    ),
    (
        sdp.PrivUnit(DIMENSION, 0.5, cap_probability=0.23),
        sdp.RampUnit(DIMENSION, 1.085, start=0.125),
        (0.77, 0.755),
    ),
]


def mixed_gaussian(noise: float, signal: float) -> sdp.Facts:
    """Heights in cells of 1/8, each sent to both ends and a corner, so that both ratios keep their means."""
    t = (np.arange(-576, 576) + 0.5) / 64
    cell = np.floor(8 * t) / 8
    mass = np.exp(-t * t / 2) / np.exp(-t * t / 2).sum()
    up, down = (np.expm1(signal * part) / math.expm1(signal / 8) for part in (t - cell, cell + 0.125 - t))
    ends = ((down, cell, cell), (up, cell + 0.125, cell + 0.125), (1.0 - up - down, cell, cell + 0.125))
    parts, own_at, other_at = (
        np.concatenate(column) for column in zip(*((mass * share, i, j) for share, i, j in ends), strict=True)
    )
    ratios = np.stack([np.exp(signal * at - signal**2 / 2) for at in (own_at, -other_at)])
    types, place = np.unique(noise + (1.0 - noise) * ratios, axis=1, return_inverse=True)
    parts = np.bincount(place.ravel(), parts)
    own, other, clone = (tuple((parts * each).tolist()) for each in (*types, np.full(parts.size, noise)))
    return sdp.Facts(sdp.Bound(0.0, math.inf), above=(sdp.AmplificationLaw(own, other, clone),))


def rounds(randomizer: Any, people: int = PEOPLE) -> int:
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
    for cap, ramp, (noise, signal) in SHAPES[: 1 if given.quick else None]:
        known = rounds(cap, people)
        unit = known / cap.second_moment
        for name, randomizer, variance in (
            (f"PrivUnit, epsilon0 = {cap.epsilon0:g}", cap, cap.second_moment),
            (f"RampUnit, start = {ramp.start:g}", ramp, ramp.second_moment),
            (
                f"Gaussian, noise = {noise:g}",
                mixed_gaussian(noise, signal),
                DIMENSION / ((1 - noise) * signal) ** 2,
            ),
        ):
            allowed = known if randomizer is cap else rounds(randomizer, people)
            rows.append((name, allowed, f"{allowed / variance / unit:.3f}"))
            print(*rows[-1], flush=True)
    with given.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("randomizer", "rounds", "information"))
        writer.writerows(rows)


if __name__ == "__main__":
    main()
