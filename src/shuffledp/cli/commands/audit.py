from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import click

from shuffledp.cli.options import POSITIVE_PROBABILITY, PROBABILITY, Whole, command, option, stacked
from shuffledp.cli.output import json_option, print_json
from shuffledp.cli.questions import randomizer_of, randomizer_options

EXAMPLE = """
$ shuffledp audit --krr 4 --epsilon0 1 -- sed s/./0/
not refuted: epsilon0 = 1 is claimed, 0 or more was seen
"""
_LINES = 512  # values given to one start of the client

question = stacked(
    option("--inputs", str, "The two values to tell apart.", group="Question", nargs=2, default=("0", "1")),
    option("--runs", Whole(least=100), "Reports of each.", group="Question", default=4000),
    option("--confidence", POSITIVE_PROBABILITY, "Of what is refuted.", group="Question", default=0.95),
    option(
        "--shuffled", Whole(least=2), "Also test shuffles of so many reports.", group="Question", metavar="N"
    ),
    option("--third", str, "What all others hold there.  [default: the second value]", group="Question"),
    option("--delta", PROBABILITY, "Of the shuffled epsilon.", group="Question", default=1e-3),
)


@command(section="Accounting", example=EXAMPLE)
@click.argument("client", nargs=-1, required=True)
@question
@randomizer_options
@json_option
def audit(client: tuple[str, ...], inputs: tuple[str, str], as_json: bool, **given: Any) -> None:
    """Run a client many times and test what it claims.

    CLIENT is a command that reads values, one a line, and writes as many reports, one a line. What is
    printed as seen is a lower bound of its true epsilon0 (and of the epsilon of shuffled reports, with
    --shuffled) with the given confidence, whatever it does; a client that starts with the same randomness
    twice is found as well. A claim that stands is not proved. Exit status 1 if it is refuted."""
    from shuffledp.auditing import audit as run

    claimed = randomizer_of(given)
    ask, repeats = _reports(client, inputs[0])
    asked = {name: given[name] for name in ("runs", "confidence", "shuffled", "third", "delta")}
    found = run(ask, claimed, inputs=inputs, **asked)
    if as_json:
        shuffled = {"shuffled_claim": found.shuffled_claim, "shuffled_found": found.shuffled_found}
        print_json(
            violated=found.violated or repeats,
            claim=found.claim,
            found=found.found,
            impossible=found.impossible,
            repeats=repeats,
            **(shuffled if found.shuffled_n else {}),
        )
    else:
        click.echo(str(found))
        if repeats:
            click.echo("VIOLATED: two starts of the client sent the same reports: its randomness repeats")
    if found.violated or repeats:
        raise click.exceptions.Exit(1)


def _reports(client: tuple[str, ...], value: str) -> tuple[Callable[[str], Any], bool]:
    """A function that gives the next report of a value; and whether two starts send the same."""
    first, second = (_started(client, value) for _ in range(2))
    waiting: dict[str, list[Any]] = {}

    def ask(value: str) -> Any:
        queue = waiting.setdefault(value, [])
        if not queue:
            queue.extend(_started(client, value))
        return queue.pop()

    return ask, first == second and len(set(first)) > 1


def _started(client: tuple[str, ...], value: str) -> list[Any]:
    """The reports of one start of the client."""
    try:
        done = subprocess.run(
            client, input=f"{value}\n" * _LINES, capture_output=True, text=True, check=False, timeout=600
        )
    except OSError as error:
        raise click.ClickException(f"cannot start {client[0]!r}: {error.strerror}") from None
    reports = done.stdout.split()
    if done.returncode or len(reports) != _LINES:
        raise click.ClickException(
            f"the client must write {_LINES} reports for as many values; it wrote {len(reports)} and ended "
            f"with status {done.returncode}"
        )
    return [_parsed(report) for report in reports]


def _parsed(report: str) -> Any:
    for kind in (int, float):
        try:
            return kind(report)
        except ValueError:
            continue
    return report
