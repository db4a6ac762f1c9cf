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

$ shuffledp audit --oue 8 --epsilon0 2 --shuffled 10 --runs 500 -- sed s/./5/
not refuted: epsilon0 = 2 is claimed, 0 or more was seen
runs        500 of each of two inputs, 0 and 1, confidence 0.95
test        likelihoods of the claim
shuffled    10 reports at delta = 0.001: 1.5561 is certified, 0 or more seen
  others    all hold 2
  test      likelihoods of the claim
"""
_LINES = 512  # values given to one start of the client

question = stacked(
    option(
        "--inputs",
        str,
        "The two values to tell apart.  [default: of the claim's own lower end, else 0 1]",
        group="Question",
        nargs=2,
    ),
    option("--runs", Whole(least=100), "Reports of each.", group="Question", default=4000),
    option("--confidence", POSITIVE_PROBABILITY, "Of what is refuted.", group="Question", default=0.95),
    option(
        "--shuffled", Whole(least=2), "Also test shuffles of so many reports.", group="Question", metavar="N"
    ),
    option(
        "--third",
        str,
        "What all others hold there.  [default: as in the lower end, else the second value]",
        group="Question",
    ),
    option("--delta", PROBABILITY, "Of the shuffled epsilon.", group="Question", default=1e-3),
)


@command(section="Accounting", example=EXAMPLE)
@click.argument("client", nargs=-1, required=True)
@question
@randomizer_options
@json_option
def audit(client: tuple[str, ...], inputs: tuple[str, str] | None, as_json: bool, **given: Any) -> None:
    """Run a client many times and test what it claims.

    CLIENT is a command that reads values, one a line, and writes as many reports, one a line; numbers of one
    value or report (the bytes of a set, a vector) have spaces between them. The test is the best one for the
    claimed randomizer, on the datasets of its own lower end, or one that is learned from the reports: part of
    them decide, the rest are what it is judged by. What is printed as seen is a lower bound of the client's
    true epsilon0 (and of the epsilon of shuffled reports, with --shuffled) with the given confidence,
    whatever it does; a client that starts with the same randomness twice is found as well. A claim that
    stands is not proved. Exit status 1 if it is refuted."""
    from shuffledp.auditing import audit as run

    claimed = randomizer_of(given)
    asked = {name: given[name] for name in ("runs", "confidence", "shuffled", "delta")}
    pair = None if inputs is None else [_value(text) for text in inputs]
    third = None if given["third"] is None else _value(given["third"])
    typed = {_line(_value(text), {}): text for text in (*(inputs or ()), given["third"] or "")}
    found = run(_asks(client, claimed, typed), claimed, inputs=pair, third=third, **asked)
    repeats = _repeats(*(_started(client, _line(found.inputs[0], typed)) for _ in range(2)))
    if as_json:
        shuffled = {
            "shuffled_claim": found.shuffled_claim,
            "shuffled_found": found.shuffled_found,
            "others": _plain(found.others),
            "shuffled_test": found.shuffled_test,
        }
        print_json(
            violated=found.violated or repeats,
            claim=found.claim,
            found=found.found,
            impossible=found.impossible,
            repeats=repeats,
            told_apart=list(map(_plain, found.inputs)),
            test=found.test,
            **(shuffled if found.shuffled_n else {}),
        )
    else:
        click.echo(str(found))
        if repeats:
            click.echo("VIOLATED: two starts of the client sent the same reports: its randomness repeats")
    if found.violated or repeats:
        raise click.exceptions.Exit(1)


def _asks(client: tuple[str, ...], claimed: Any, typed: dict[str, str]) -> Callable[[Any], Any]:
    """A function that gives the next report of a value."""
    waiting: dict[str, list[Any]] = {}

    def ask(value: Any) -> Any:
        asked = _line(value, typed)
        queue = waiting.setdefault(asked, [])
        if not queue:
            queue.extend(_sent(claimed, line) for line in _started(client, asked))
        return queue.pop()

    return ask


def _repeats(first: list[str], second: list[str]) -> bool:
    """Whether two starts sent the same, and it is no constant."""
    return first == second and len(set(first)) > 1


def _started(client: tuple[str, ...], value: str) -> list[str]:
    """The reports of one start of the client, as it wrote them."""
    try:
        done = subprocess.run(
            client, input=f"{value}\n" * _LINES, capture_output=True, text=True, check=False, timeout=600
        )
    except OSError as error:
        raise click.ClickException(f"cannot start {client[0]!r}: {error.strerror}") from None
    reports = [line for line in done.stdout.splitlines() if line.strip()]
    if done.returncode or len(reports) != _LINES:
        raise click.ClickException(
            f"the client must write {_LINES} reports for as many values; it wrote {len(reports)} and ended "
            f"with status {done.returncode}"
        )
    return reports


def _sent(claimed: Any, line: str) -> Any:
    """A report: a number, a word, or numbers in the form that the claimed randomizer sends."""
    import numpy as np

    found = _value(line)
    if getattr(claimed, "report_shape", ()) == ():
        return found
    row = np.atleast_1d(found)
    cast = row.astype(claimed.report_dtype) if row.dtype.kind in "iu" else row
    return cast if np.array_equal(cast, row) else row


def _value(text: str) -> Any:
    """A number or a word, or a vector of numbers."""
    import numpy as np

    parts = [_parsed(part) for part in text.split()]
    if len(parts) > 1 and all(isinstance(part, int | float) for part in parts):
        return np.array(parts)
    return parts[0] if len(parts) == 1 else text


def _line(value: Any, typed: dict[str, str]) -> str:
    """What the client reads: a value as it was typed, if it was."""
    plain = _plain(value)
    line = " ".join(map(str, plain)) if isinstance(plain, list) else str(plain)
    return typed.get(line, line)


def _plain(value: Any) -> Any:
    """For JSON."""
    return value.tolist() if hasattr(value, "tolist") else value


def _parsed(report: str) -> Any:
    for kind in (int, float):
        try:
            return kind(report)
        except ValueError:
            continue
    return report
