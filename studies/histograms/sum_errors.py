"""The error of a shuffled sum: certified calibration against the constants of the paper.

Root of the worst-case mean squared error of the sum of n numbers in [0, 1], exact in every column (the
variance formula of ``collecting._fixed_point``), at (epsilon, 1e-6):

    paper     Balle, Bell, Gascon, Nissim (2019), Theorems 3.1 and 4.1: c = max(14 ln(2/delta)/epsilon^2,
              27/epsilon), k = (n/c)^(1/3) levels, gamma = c (k + 1)/(n - 1);
    same k    the paper's levels, the noise calibrated by the accountant;
    ours      levels and noise as SumProtocol chooses them;
    central   a curator's Gaussian noise;  local: no shuffler, epsilon0 = epsilon.

    python studies/histograms/sum_errors.py --output sum_errors.csv
"""

from __future__ import annotations

import argparse
import csv
import math
from dataclasses import asdict, dataclass
from pathlib import Path

from shuffledp.collecting._choice import relative_variance
from shuffledp.collecting.baselines import central_baseline, local_baseline
from shuffledp.collecting.number import SumProtocol
from shuffledp.randomizers.kary import KaryRandomizedResponse

DELTA = 1e-6
SETTINGS = [(n, epsilon) for epsilon in (1.0, 0.5, 0.1) for n in (10**4, 10**5, 10**6, 10**7)]


@dataclass(frozen=True)
class Row:
    """Root mean squared errors of one setting; None where the paper's theorem does not apply."""

    n: int
    epsilon: float
    paper_levels: int | None
    paper_gamma: float | None
    paper: float | None
    same_levels: float | None
    levels: int
    gamma: float
    ours: float
    central: float
    local: float


def paper_response(n: int, epsilon: float) -> KaryRandomizedResponse | None:
    """With the paper's own constants; None where gamma >= 1."""
    c = max(14.0 * math.log(2.0 / DELTA) / epsilon**2, 27.0 / epsilon)
    levels = max(1, round((n / c) ** (1.0 / 3.0)))
    gamma = c * (levels + 1) / (n - 1)
    return KaryRandomizedResponse(k=levels + 1, gamma=gamma) if gamma < 1.0 else None


def row(n: int, epsilon: float) -> Row:
    """One line of the table."""
    ours = SumProtocol(0.0, 1.0, epsilon, DELTA, n)
    response = ours.randomizer
    assert isinstance(response, KaryRandomizedResponse)  # what a sum chooses by itself
    printed = paper_response(n, epsilon)
    error = same = None
    if printed is not None:
        error = math.sqrt(n * relative_variance(printed))
        same_levels = SumProtocol(0.0, 1.0, epsilon, DELTA, n, levels=printed.k - 1)
        same = same_levels.worst_standard_error
    return Row(
        n,
        epsilon,
        None if printed is None else printed.k - 1,
        None if printed is None else printed.gamma,
        error,
        same,
        ours.levels,
        response.gamma,
        ours.worst_standard_error,
        central_baseline(ours).standard_error,
        local_baseline(ours).standard_error,
    )


def table(rows: list[Row]) -> str:
    """As Markdown."""
    lines = [
        "| epsilon | n | paper: levels, gamma | paper | same levels | ours: levels, gamma | ours "
        "| smaller by | central | local |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for r in rows:
        paper = ["none (gamma >= 1)", "", ""]
        smaller = ""
        if r.paper is not None:
            paper = [f"{r.paper_levels}, {r.paper_gamma:.3g}", f"{r.paper:.1f}", f"{r.same_levels:.1f}"]
            smaller = f"{r.paper / r.ours:.1f}"
        ours = [f"{r.levels}, {r.gamma:.3g}", f"{r.ours:.1f}", smaller]
        others = [f"{r.central:.2f}", f"{r.local:.0f}"]
        lines.append("| " + " | ".join([f"{r.epsilon:g}", f"{r.n:,}", *paper, *ours, *others]) + " |")
    return "\n".join(lines)


def main() -> None:
    """Compute and print the table."""
    parser = argparse.ArgumentParser(description="errors of shuffled sums")
    parser.add_argument("--output", type=Path, help="write all rows to this CSV file")
    chosen = parser.parse_args()
    rows = [row(n, epsilon) for n, epsilon in SETTINGS]
    print(table(rows))
    if chosen.output is not None:
        with chosen.output.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(asdict(rows[0])), lineterminator="\n")
            writer.writeheader()
            writer.writerows(
                {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in asdict(r).items()} for r in rows
            )


if __name__ == "__main__":
    main()
