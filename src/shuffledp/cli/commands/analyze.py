"""``shuffledp analyze``: what shuffled reports say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from shuffledp.cli.collecting import honest_option, round_option
from shuffledp.cli.command import command, option
from shuffledp.cli.ledgers import both_or_neither, open_ledger, reservation_options
from shuffledp.cli.protocol_files import PROTOCOL_FILE, read_protocol
from shuffledp.cli.reporting import one_line_each
from shuffledp.cli.results import present, result_options

if TYPE_CHECKING:
    from shuffledp.collecting._protocol import Protocol

EXAMPLE = """
$ shuffledp analyze shuffled.parquet --plot pets.png --statement privacy.txt
histogram of 100,000 reports, epsilon <= 0.9995 at delta = 1e-6

  category     count  std. error  95% from        to
  cat       50,000.3         8.0  49,985.0  50,016.0
  dog       34,994.1         7.6  34,979.0  35,009.0
  fish      15,005.6         7.1  14,992.0  15,019.0
"""


@command(section="Collecting", example=EXAMPLE)
@click.argument("reports", metavar="SHUFFLED")
@option(
    "--protocol",
    "protocol_file",
    type=PROTOCOL_FILE,
    metavar="FILE",
    help="Refuse reports of another protocol.  [default: what the reports say]",
    group="Privacy",
)
@honest_option
@round_option
@reservation_options
@result_options
def analyze(reports: str, protocol_file: str | None, **given: Any) -> None:
    """Estimates and privacy statement from shuffled reports.

    The last of three roles. Fewer honest reports than planned weaken the statement, which says so."""
    both_or_neither(given["ledger_file"], given["reservation"], "--reservation")
    from shuffledp.shuffling.roles import analyze_file

    with one_line_each():
        protocol = _protocol_of(reports) if protocol_file is None else read_protocol(protocol_file)
        assumptions = {"honest_fraction": given["honest_fraction"], "rounds": given["round"]}
        if given["ledger_file"] is not None:
            assumptions["ledger"] = open_ledger(given["ledger_file"])
            assumptions["reservation"] = given["reservation"]
        result = analyze_file(protocol, reports, confidence=given["confidence"], **assumptions)
        present(result, given)


def _protocol_of(path: str) -> Protocol:
    """What the reports say of themselves."""
    from shuffledp.collecting import protocol_from_dict
    from shuffledp.shuffling.files import open_reports

    return protocol_from_dict(open_reports(path).header.protocol)
