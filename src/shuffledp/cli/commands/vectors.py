from __future__ import annotations

from typing import Any

import click

from shuffledp.cli.collecting import collect, collecting_options, column_option, data_argument, question
from shuffledp.cli.options import POSITIVE, WHOLE, Whole, WholeOrAuto, command

EXAMPLE = """
$ shuffledp vectors steps.npy --dimension 4 --radius 1 --epsilon 1 --delta 1e-6
vector-mean of 10,000 reports, epsilon <= 0.99901 at delta = 1e-6

  entry    value  std. error  1% lies  95% from       to
"""


@command(section="Collecting", example=EXAMPLE)
@data_argument
@column_option
@question("--dimension", WHOLE, "Entries of a vector.", required=True, metavar="D")
@question("--radius", POSITIVE, "Of the ball that vectors lie in.", required=True)
@question("--norm", click.Choice(["l2", "linf"]), "Of that ball.", default="l2", metavar="NORM")
@question(
    "--outside",
    click.Choice(["error", "clip"]),
    "Longer vectors: error, or clip to the ball.",
    default="error",
    metavar="WHAT",
)
@question(
    "--messages",
    WholeOrAuto(most=64),
    "Messages of every entry, or as few as mix well enough.",
    default="auto",
    metavar="M|auto",
)
@question("--max-messages", Whole(most=64), "The most that auto takes.  [default: 12]")
@collecting_options
def vectors(**given: Any) -> None:
    """The mean of people's vectors, by several messages a person.

    DATA is an .npy file with a row per person, or a .parquet or .arrow file with a column of lists. Noise is
    nearly that of a trusted curator; everything rests on the shuffler."""
    names = ("dimension", "radius", "norm", "outside", "messages", "max_messages")
    collect("VectorMeanProtocol", names, given)
