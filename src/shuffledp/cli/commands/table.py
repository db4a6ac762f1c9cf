from __future__ import annotations

from typing import Any

import click

from shuffledp.cli.collecting import (
    collect,
    collecting_options,
    data_argument,
    messages_option,
    question,
    written_options,
)
from shuffledp.cli.options import command

EXAMPLE = """
$ shuffledp table folk.csv --by pet=cat,dog --by home=in,out --epsilon 1 --delta 1e-6
table of 85,000 reports, epsilon <= 0.99744 at delta = 1e-6
"""


@command(section="Collecting", example=EXAMPLE)
@data_argument
@written_options
@question(
    "--by attributes", "NAME=A,B,...", "A column and its categories; two or three of them.", multiple=True
)
@messages_option
@collecting_options
def table(attributes: tuple[str, ...], **given: Any) -> None:
    """Count people by combinations of two or three attributes.

    DATA is a .csv, .tsv, .parquet, .arrow or .feather file with a row per person and a column per attribute.
    Estimates are unbiased and consistent; in Python, result.marginal has all sums."""
    listed = {}
    for written in attributes:
        name, found, categories = written.partition("=")
        if not found or name in listed:
            raise click.UsageError("--by must be NAME=A,B,... with a name of its own each.")
        listed[name] = [each.strip() for each in categories.split(",")]
    collect("TableProtocol", ["messages"], given | {"column": tuple(listed)}, attributes=listed)
