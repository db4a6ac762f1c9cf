"""How far are estimated histograms from the truth? The utility study of Biswas et al. (2022), done again.

Total variation distance between the true distribution of n people over k categories and

    raw        the shuffled reports as they are,
    inverted   the unbiased estimate, projected onto the simplex ("shuffle+INV" in the paper),
    central    a curator's Gaussian mechanism at the same certified (epsilon, delta), projected as well,
    local      the best local randomizer at the same epsilon, inverted and projected.

Two questions are asked, for n = 1,000 to 100,000, ten runs each, as in the paper's Figures 2 and 6:

* "response 4": k-ary randomized response with the paper's epsilon0 = 4. Its certified epsilon at
  delta = 1e-6 is what the curator gets. (The paper compares at epsilon = epsilon0 = 4, where the delta of
  the shuffled mechanism is zero and no Gaussian mechanism exists; its deltas come from a formula that
  is wrong, see the errata. So its own numbers can not be reproduced; the comparison can.)
* "epsilon E": the protocol that shuffledp calibrates to (E, 1e-6), E = 1, 4, 6.

Synthetic data: 15 bins of N(0, 2) as in the paper. Locations: Gowalla check-ins on a grid of 24 x 17 cells,
n of them drawn with replacement. The paper's San Francisco data held 123,108 check-ins; the public
subset used here holds 48,831 (and New York 100,992), so figures differ in more than luck.

    python studies/histograms/total_variation.py --output synthetic.csv
    python studies/histograms/total_variation.py --places new_york.csv.gz --output new_york.csv

A places file has the columns latitude, longitude, checkins.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shuffledp._certified.rounding import Floats
from shuffledp.accounting.mechanism import Shuffled
from shuffledp.collecting.baselines import central_baseline, local_baseline
from shuffledp.collecting.histogram import HistogramProtocol
from shuffledp.collecting.result import project_to_simplex
from shuffledp.randomizers.kary import KaryRandomizedResponse

DELTA = 1e-6
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
RUNS = 10
GRID = (24, 17)


@dataclass(frozen=True)
class Row:
    """Mean total variation distances of one setting."""

    setting: str
    k: int
    n: int
    randomizer: str
    epsilon0: float
    epsilon: float
    raw: float
    inverted: float
    central: float
    local: float


def synthetic_distribution(k: int = 15) -> Floats:
    """Probabilities of k equal bins over +-3 deviations of N(0, 2), from a large fixed sample."""
    sample = np.random.default_rng(0).normal(0.0, 2.0, 10**6)
    counts, _ = np.histogram(np.clip(sample, -6.0, 6.0), bins=k, range=(-6.0, 6.0))
    return np.asarray(counts / counts.sum())


def place_distribution(path: Path) -> Floats:
    """Shares of the check-ins in the cells of a grid over the file's bounding box."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    rows = [tuple(map(float, row.values())) for row in csv.DictReader(text.splitlines())]
    latitude, longitude, checkins = np.array(rows).T
    counts, _, _ = np.histogram2d(longitude, latitude, bins=GRID, weights=checkins)
    return np.asarray(counts.ravel() / counts.sum())


def protocols(k: int, n: int) -> dict[str, HistogramProtocol]:
    """The settings that are compared."""
    answer = KaryRandomizedResponse(k=k, epsilon0=4.0)
    certified = Shuffled(answer, n=n).upper_epsilon(delta=DELTA)
    found = {"response 4": HistogramProtocol(range(k), certified, DELTA, n, randomizer=answer)}
    for epsilon in (1.0, 4.0, 6.0):
        found[f"epsilon {epsilon:g}"] = HistogramProtocol(range(k), epsilon, DELTA, n)
    return found


def total_variation(counts: Any, truth: Floats) -> float:
    """Between two histograms of n people."""
    return float(np.abs(counts - truth).sum() / (2.0 * truth.sum()))


def one_run(protocol: HistogramProtocol, values: Any, rng: np.random.Generator) -> tuple[float, ...]:
    """(raw, inverted, central, local)."""
    n, k = len(values), protocol.k
    truth = np.bincount(values, minlength=k).astype(np.float64)
    tally = protocol.count(protocol.randomize(values, rng=rng))
    answers = [
        tally * n / tally.sum(),
        protocol.analyze(tally=tally, n=n).projected(),
        project_to_simplex(central_baseline(protocol).simulate(values, rng), float(n)),
        project_to_simplex(local_baseline(protocol).simulate(values, rng), float(n)),
    ]
    return tuple(total_variation(answer, truth) for answer in answers)


def study(distribution: Floats, sizes: tuple[int, ...], seed: int) -> list[Row]:
    """All settings and sizes."""
    k, rows = distribution.size, []
    for n in sizes:
        for setting, protocol in protocols(k, n).items():
            rng = np.random.default_rng([seed, n])
            runs = []
            for _ in range(RUNS):
                values = rng.choice(k, size=n, p=distribution)
                runs.append(one_run(protocol, values, rng))
            kind = type(protocol.randomizer).__name__
            local = protocol.randomizer.facts().epsilon0.upper
            means = np.mean(runs, axis=0).tolist()
            rows.append(Row(setting, k, n, kind, local, protocol.epsilon, *means))
    return rows


def table(rows: list[Row]) -> str:
    """As Markdown."""
    lines = [
        "| setting | n | epsilon0 | certified epsilon | raw | inverted | central | local |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        distances = (row.raw, row.inverted, row.central, row.local)
        lines.append(
            f"| {row.setting} | {row.n:,} | {row.epsilon0:.2f} | {row.epsilon:.4f} | "
            + " | ".join(f"{distance:.4f}" for distance in distances)
            + " |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run the study and print its table."""
    parser = argparse.ArgumentParser(description="total variation of estimated histograms")
    parser.add_argument("--places", type=Path, help="a file of check-ins instead of synthetic data")
    parser.add_argument("--output", type=Path, help="write all rows to this CSV file")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--seed", type=int, default=2022)
    chosen = parser.parse_args()
    known = synthetic_distribution() if chosen.places is None else place_distribution(chosen.places)
    rows = study(known, tuple(chosen.sizes), chosen.seed)
    print(table(rows))
    if chosen.output is not None:
        with chosen.output.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(asdict(rows[0])), lineterminator="\n")
            writer.writeheader()
            writer.writerows({k: _rounded(v) for k, v in asdict(row).items()} for row in rows)


def _rounded(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


if __name__ == "__main__":
    main()
