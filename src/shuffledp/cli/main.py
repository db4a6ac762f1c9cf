"""Entry point of the ``shuffledp`` command.

Exit status: 0 answered, 1 no answer (no certificate, a target out of reach, a file that cannot be
written), 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import os

import click

from shuffledp import __version__
from shuffledp.cli.group import CommandDirectory


def _color() -> bool | None:
    """None lets click decide: colour on a terminal only. See https://no-color.org."""
    return False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None


@click.group(
    cls=CommandDirectory,
    package="shuffledp.cli.commands",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`shuffledp COMMAND --help` shows a worked example of each.",
)
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
@click.version_option(__version__, prog_name="shuffledp", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Differential privacy in the shuffle model, certified.

    Numbers may be written 1000000, 1_000_000 or 1e6.
    """
    context.color = _color()


def main() -> None:
    """Run the command line and exit with its status."""
    cli.main(prog_name="shuffledp")
