from __future__ import annotations

from typing import Any

import click

from shuffledp.cli.collecting import LEDGER, RUN, ledger_option, privacy, statement_options, with_ledger
from shuffledp.cli.files import (
    check_options,
    open_ledger,
    output_option,
    protocol_of_reports,
    read_protocol,
    write_protocol,
)
from shuffledp.cli.options import EXISTING_FILE, Given, command, option
from shuffledp.cli.output import present, result_options

EXAMPLE = """
$ shuffledp analyze shuffled.parquet --plot pets.png --statement privacy.txt
histogram of 100,000 reports, epsilon <= 0.99738 at delta = 1e-6

  category     count  std. error  1% lies  95% from        to
  cat       50,000.3         8.0  1,001.3  49,985.0  50,016.0
  dog       34,994.1         7.6  1,001.3  34,979.0  35,009.0
  fish      15,005.6         7.1  1,001.3  14,992.0  15,019.0
"""


@command(section="Collecting", example=EXAMPLE)
@click.argument("reports", metavar="SHUFFLED")
@privacy(
    "--protocol protocol_file",
    EXISTING_FILE,
    "Refuse reports of another protocol.  [default: what the reports say]",
)
@check_options
@privacy("--key key_file", EXISTING_FILE, "Opens a batch of `shuffledp serve`: the analyst's key.")
@statement_options
@ledger_option
@output_option("--next next_file", "Of prefixes: write the plan of the next cohort to a new file.", group=RUN)
@option("--reservation", "ID", "Made by `shuffledp ledger reserve`.", group=LEDGER)
@result_options
def analyze(reports: str, protocol_file: str | None, key_file: str | None, **given: Any) -> None:
    """Estimates and privacy statement from shuffled reports.

    The last of three roles. Fewer honest reports than planned weaken the statement, which says so."""
    with_ledger(given, "reservation")
    assumptions: Given = {"honest_fraction": given["honest_fraction"], "rounds": given["round"]}
    if given["ledger_file"] is not None:
        assumptions["ledger"] = open_ledger(given["ledger_file"])
        assumptions["reservation"] = given["reservation"]
    assumptions["confidence"] = given["confidence"]
    if key_file is not None:
        present(_opened(reports, protocol_file, key_file, assumptions, given), given)
        return
    from shuffledp.shuffling.roles import analyze_file

    protocol = read_protocol(protocol_file, given) if protocol_file else protocol_of_reports(reports, given)
    result = analyze_file(protocol, reports, **assumptions)
    last = hasattr(result, "strings") and result.protocol.step == result.protocol.steps
    present(result.strings() if last else result, given)
    if given["next_file"] is not None:
        _write_next(result, given["next_file"])


def _write_next(result: Any, path: str) -> None:
    """The plan of the next cohort of a prefix tree."""
    if not hasattr(result, "next"):
        raise click.ClickException("--next is for prefixes (`shuffledp strings`): no other question goes on")
    following = result.next()
    if following is None:
        raise click.ClickException("nothing follows: this was the last cohort, or no prefix is frequent")
    write_protocol(path, following)


def _opened(batch: str, protocol_file: str | None, key_file: str, assumptions: Given, given: Given) -> Any:
    """A released batch, opened; what was left out is said on standard error."""
    from shuffledp.service.batches import open_batch, result_of
    from shuffledp.service.keys import AnalystKey

    pinned = read_protocol(protocol_file, given).fingerprint if protocol_file else given["fingerprint"]
    found = open_batch(batch, AnalystKey.read(key_file), fingerprint=pinned)
    if found.not_opened or found.outside:
        left_out = (
            f"left out: {found.not_opened:,} reports did not open, {found.outside:,} are outside the domain"
        )
        click.echo(left_out, err=True)
    return result_of(found, **assumptions)
