"""The picture of docs/how-to/several-messages.md: the error of a sum against the number of people.

    python tools/error_by_people.py        writes docs/_static/several-messages.png and the numbers beside it

Standard errors of the sum of n numbers in [0, 1], worst data, at a certified epsilon = 1, delta = 1e-6: one
message a person, several, no shuffler (local), a trusted curator's discrete Laplace noise, and what no
protocol of one message can go below (Balle, Bell, Gascon, Nissim 2019, Theorem 4.2; their proof's constants).
"""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

import shuffledp as sdp
from shuffledp.collecting.baselines import local_baseline
from shuffledp.plotting import new_axes
from shuffledp.plotting._style import BLACK, BLUE, GREEN, GREY, VERMILLION, figure_of, save

STATIC = Path(__file__).resolve().parent.parent / "docs" / "_static"
PEOPLE = (10**3, 10**4, 10**5, 10**6, 10**7, 10**8)
TARGET: dict[str, Any] = {"low": 0, "high": 1, "epsilon": 1.0, "delta": 1e-6}
STYLES = {
    "local": ("no shuffler (local)", GREY, "-.", "v"),
    "one": ("one message", VERMILLION, "-", "o"),
    "least": ("no protocol of one message is below", VERMILLION, ":", ""),
    "several": ("several messages", BLUE, "-", "s"),
    "curator": ("trusted curator", GREEN, "--", ""),
}


def errors(n: int) -> dict[str, float]:
    """All of the picture for n people, and the number of messages."""
    one, several = (sdp.SumProtocol(**TARGET, n=n, messages=messages) for messages in (1, "auto"))
    found = {
        "local": local_baseline(one).standard_error,
        "one": one.worst_standard_error,
        "least": one.least_standard_error,
        "several": several.worst_standard_error,
        "curator": math.sqrt(0.5) / math.sinh(0.5 / 1e4) / 1e4,  # discrete Laplace noise on fine levels
    }
    return {"n": n, **found, "messages": several.messages}


def draw(rows: list[dict[str, float]], path: Path) -> None:
    """The picture."""
    ax = new_axes()
    people = [row["n"] for row in rows]
    for name, (label, color, line, marker) in STYLES.items():
        ax.plot(people, [row[name] for row in rows], color=color, linestyle=line, marker=marker, label=label)
    ax.set(xscale="log", yscale="log", xlabel="people", ylabel="standard error of the sum")
    ax.tick_params(colors=BLACK)
    figure_of(ax).legend(loc="outside lower center", ncols=2)
    save(ax, path)


def main() -> None:
    """Both files."""
    rows = [errors(n) for n in PEOPLE]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: f"{value:.6g}" for name, value in row.items()} for row in rows)
    (STATIC / "several-messages.csv").write_text(text.getvalue())
    draw(rows, STATIC / "several-messages.png")


if __name__ == "__main__":
    main()
