"""``shuffledp shuffle``: forget who sent what."""

from __future__ import annotations

import click

from shuffledp.cli.files import output_option, protocol_of_reports
from shuffledp.cli.options import WHOLE, command, option
from shuffledp.cli.output import json_option, print_answer, print_json

EXAMPLE = """
$ shuffledp shuffle reports-1.parquet reports-2.parquet -o all.parquet --minimum 1e5
100,000 reports in all.parquet, in a fresh random order
"""


@command(section="Collecting", example=EXAMPLE)
@click.argument("reports", nargs=-1, required=True, metavar="REPORTS...")
@output_option("--output -o", "A new .parquet file.", required=True)
@option("--minimum", WHOLE, "Refuse fewer reports.  [default: as many as planned]", group="Shuffle")
@json_option
def shuffle(reports: tuple[str, ...], output: str, minimum: int | None, as_json: bool) -> None:
    """Mix files of reports and forget everything else.

    The second of three roles: order, files, further columns and metadata are gone. Run it where
    neither clients nor analysts can look on, and delete REPORTS afterwards. Reports of different
    protocols, damaged files and the same file twice are refused."""
    from shuffledp.shuffling.roles import shuffle_files

    least = protocol_of_reports(reports[0]).n if minimum is None else minimum
    n = shuffle_files(reports, output, minimum=least)
    if as_json:
        print_json(reports=n, output=output, minimum=least)
        return
    print_answer(
        f"{n:,} reports in {output}, in a fresh random order",
        [("inputs", f"{len(reports):,}"), ("minimum", f"{least:,}")],
    )
