"""``--ledger FILE``: an existing ledger, whose budget stands in its first line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shuffledp.cli.command import option, stacked

if TYPE_CHECKING:
    from shuffledp.collecting.ledger import Ledger

GROUP = "Ledger"
LEDGER_FILE = click.Path(exists=True, dir_okay=False)

ledger_option = option(
    "--ledger",
    "ledger_file",
    type=LEDGER_FILE,
    metavar="FILE",
    help="Record this collection; see `shuffledp ledger`.",
    group=GROUP,
)
population_options = stacked(
    ledger_option,
    option("--population", metavar="NAME", help="The people who are asked.", group=GROUP),
)
reservation_options = stacked(
    ledger_option,
    option("--reservation", metavar="ID", help="Made by `shuffledp ledger reserve`.", group=GROUP),
)


def open_ledger(path: str) -> Ledger:
    """The ledger of a file that exists, every line of it checked."""
    from shuffledp.collecting.ledger import Ledger

    with Path(path).open("rb") as file:
        first = file.readline()
    try:
        content = json.loads(first)["content"]
        budget = (content["epsilon"], content["delta"])
    except (KeyError, TypeError, ValueError) as error:
        raise click.ClickException(f"{path} is no ledger: its first line has no budget") from error
    return Ledger(path, budget)


def both_or_neither(ledger: Any, other: Any, name: str) -> None:
    """A ledger goes with a population or a reservation."""
    if (ledger is None) != (other is None):
        raise click.UsageError(f"--ledger and {name} go together.")
