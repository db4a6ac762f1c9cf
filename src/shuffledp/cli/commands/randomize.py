from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from shuffledp._digits import rounded_up
from shuffledp.cli.files import PLAN, check_options, protocol_option, read_protocol, reports_option
from shuffledp.cli.options import POSITIVE, Given, command, option
from shuffledp.cli.output import json_option, print_answer, print_json

if TYPE_CHECKING:
    from shuffledp.collecting._protocol import Protocol

GROUP = "What is randomized"

EXAMPLE = """
$ shuffledp randomize pets.csv --protocol survey.json -o reports-3.parquet
100,000 reports in reports-3.parquet

$ shuffledp randomize --value cat --max-epsilon0 8 --protocol survey.json -o 1.parquet
1 report in 1.parquet
"""


@command(section="Collecting", example=EXAMPLE)
@click.argument("data", required=False, metavar="[DATA]")
@option("--column", "NAME", "Needed if there are several.", group=GROUP)
@option(
    "--value",
    "X",
    "Instead of DATA: one person's value (of a table: A,B); - to read it from standard input.",
    group=GROUP,
)
@option("--show-values", None, "Let errors show values and rows that are not in the domain.", group=GROUP)
@protocol_option
@check_options
@option("--max-epsilon0", POSITIVE, "The most that one report may reveal alone.", group=PLAN)
@reports_option("A new .parquet file of reports.")
@json_option
def randomize(data: str | None, value: str | None, output: str, **given: Any) -> None:
    """Randomize answers where they are; only reports leave.

    The first of three roles that pass files: randomize, shuffle, analyze. DATA is a .csv, .tsv,
    .parquet, .arrow or .feather file. Randomize everybody's value once: a second report about the
    same value is another disclosure. A value on the command line can be seen by others (`ps`) and stays in
    the shell's history: --value - reads it from standard input."""
    if (data is None) == (value is None):
        raise click.UsageError("give either DATA or --value.")
    protocol = read_protocol(given["protocol_file"], given)
    n = _written(protocol, data, value, output, given)
    from shuffledp.collecting.plan import short_fingerprint

    epsilon0 = protocol.randomizer.facts().epsilon0.upper
    if given["as_json"]:
        print_json(reports=n, output=output, epsilon0=epsilon0, fingerprint=protocol.fingerprint)
        return
    alone = f"alone is {rounded_up(epsilon0)}-differentially private"
    if protocol.messages > 1:
        alone = f"is one of {protocol.messages} messages of a person, which together reveal the answer"
    print_answer(
        f"{n:,} report{'s' * (n != 1)} in {output}",
        [
            ("plan", short_fingerprint(protocol)),
            ("one report", alone),
            ("next", "shuffledp shuffle: until then their order can tell who sent what"),
        ],
    )


def _written(protocol: Protocol, data: str | None, value: str | None, output: str, given: Given) -> int:
    from shuffledp.shuffling.roles import randomize_file, write_reports

    try:
        if value is None:
            shown = given["show_values"]
            return randomize_file(protocol, data, output, column=given["column"], show_values=shown)
        text = sys.stdin.readline().rstrip("\r\n") if value == "-" else value
        parts = [text] if getattr(protocol, "columns", None) is None else text.split(",")  # of a table
        typed: list[Any] = parts if protocol.reads_text else [_number(part) for part in parts]
        report = protocol.randomize(typed[0] if len(typed) == 1 else typed, show_values=given["show_values"])
        return write_reports(protocol, report, output)
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
        raise click.UsageError("--value must be a number here.") from None  # and is not shown
