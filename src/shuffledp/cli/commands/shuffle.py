from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from shuffledp.cli.files import check_options, protocol_option, read_protocol, reports_option
from shuffledp.cli.options import WHOLE, command, option
from shuffledp.cli.output import json_option, print_answer, print_json

GROUP = "Shuffle"
EXAMPLE = """
$ shuffledp shuffle a.pq b.pq --protocol survey.json --used used -o all.parquet
100,000 reports in all.parquet, in a fresh random order
"""


@command(section="Collecting", example=EXAMPLE)
@click.argument("reports", nargs=-1, required=True, metavar="REPORTS...")
@reports_option("A new .parquet file.")
@option(
    "--used",
    click.Path(exists=True, file_okay=False),
    "Your memory of reports that were mixed before: a folder, empty at first.",
    group=GROUP,
    required=True,
)
@option("--minimum", WHOLE, "Refuse fewer reports.  [default: as many as planned]", group=GROUP)
@option("--most-per-file", WHOLE, "Set larger files aside.  [default: as planned]", group=GROUP)
@option("--head", "HASH", "A line that your memory must still have.", group=GROUP)
@protocol_option
@check_options
@json_option
def shuffle(reports: tuple[str, ...], output: str, used: str, **given: Any) -> None:
    """Mix files of reports and forget everything else.

    The second of three roles: order, files and IDs are gone. Run it where neither clients nor analysts
    can look on, with your own copy of the plan and your own folder --used, and delete REPORTS afterwards.
    Damaged and foreign files, impossible reports and those that came before are set aside and counted."""
    from shuffledp.shuffling.roles import shuffle_files, told_aside
    from shuffledp.shuffling.used import opened

    protocol, head = read_protocol(given["protocol_file"], given), given["head"]
    least = given["minimum"] or protocol.n
    if head is not None:
        with opened(Path(used)) as memory:
            if head not in memory.heads:
                raise click.ClickException(f"{used}: the line {head} is missing: an old copy was restored")
    done = shuffle_files(
        protocol, reports, output, minimum=least, used=used, most_per_file=given["most_per_file"]
    )
    aside: dict[str, Any] = {"set_aside": done.set_aside, "files_set_aside": done.files_set_aside}
    if given["as_json"]:
        print_json(reports=done.reports, output=output, minimum=least, head=done.head, **aside)
        return
    told = told_aside(done.set_aside, done.files_set_aside)
    print_answer(
        f"{done.reports:,} reports in {output}, in a fresh random order",
        [
            ("inputs", f"{len(reports):,}"),
            ("minimum", f"{least:,}"),
            ("set aside", told.removeprefix("; set aside: ") or "nothing"),
            ("head", f"{done.head} of {used}"),
        ],
    )
