"""``shuffledp randomize``: the client side of a collection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from shuffledp._digits import rounded_up
from shuffledp.cli.files import output_option, read_protocol
from shuffledp.cli.options import EXISTING_FILE, command, option
from shuffledp.cli.output import json_option, print_answer, print_json

if TYPE_CHECKING:
    from shuffledp.collecting._protocol import Protocol

GROUP = "What is randomized"

EXAMPLE = """
$ shuffledp randomize pets.csv --protocol survey.json -o reports-3.parquet
100,000 reports in reports-3.parquet

$ shuffledp randomize --value cat --protocol survey.json -o one.parquet
1 report in one.parquet
"""


@command(section="Collecting", example=EXAMPLE)
@click.argument("data", required=False, metavar="[DATA]")
@option("--column", "NAME", "Needed if there are several.", group=GROUP)
@option("--value", "X", "Instead of DATA: one person's value.", group=GROUP)
@option(
    "--protocol protocol_file",
    EXISTING_FILE,
    "From `shuffledp histogram --plan`, or sum or mean.",
    group=GROUP,
    required=True,
)
@output_option("--output -o", "A new .parquet file of reports.", required=True)
@json_option
def randomize(
    data: str | None, column: str | None, value: str | None, protocol_file: str, output: str, as_json: bool
) -> None:
    """Randomize answers where they are; only reports leave.

    The first of three roles that pass files: randomize, shuffle, analyze. DATA is a .csv, .tsv,
    .parquet, .arrow or .feather file. Randomize everybody's value once: a second report about the
    same value is another disclosure."""
    if (data is None) == (value is None):
        raise click.UsageError("give either DATA or --value.")
    protocol = read_protocol(protocol_file)
    n = _written(protocol, data, column, value, output)
    epsilon0 = protocol.randomizer.facts().epsilon0.upper
    if as_json:
        print_json(reports=n, output=output, epsilon0=epsilon0)
        return
    print_answer(
        f"{n:,} report{'s' * (n != 1)} in {output}",
        [
            ("one report", f"alone is {rounded_up(epsilon0)}-differentially private"),
            ("next", "shuffledp shuffle: until then their order can tell who sent what"),
        ],
    )


def _written(protocol: Protocol, data: str | None, column: str | None, value: str | None, output: str) -> int:
    from shuffledp.shuffling.roles import randomize_file, write_reports

    try:
        if value is None:
            return randomize_file(protocol, data, output, column=column)
        typed: Any = value if protocol.reads_text else _number(value)
        return write_reports(protocol, protocol.randomize(typed), output)
    except TypeError as error:  # a column of the wrong type
        raise click.ClickException(str(error)) from error


def _number(value: str) -> float:
    """A whole number where it is one: categories may be such."""
    try:
        return int(value)
    except ValueError:
        pass
    try:
        return float(value)
    except ValueError:
        raise click.UsageError(f"--value must be a number here, got {value!r}.") from None
