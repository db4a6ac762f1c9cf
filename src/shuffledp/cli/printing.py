"""Answers on the terminal, rounded outward, and for machines, in full."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import click

from shuffledp import __version__
from shuffledp._digits import rounded_down, rounded_up
from shuffledp.cli.command import option

OUTPUT = "Output"
_NOT_INPUTS = ("as_json", "csv_file", "plot_file")

json_option = option(
    "--json", "as_json", is_flag=True, help="Print JSON for machines.", group=OUTPUT
)


def inputs() -> dict[str, Any]:
    """The options of the running command that were given or have a default, as they are typed."""
    context = click.get_current_context()
    values = {p: context.params.get(p.name or "") for p in context.command.params}
    return {
        parameter.opts[0].lstrip("-").replace("-", "_"): value
        for parameter, value in values.items()
        if value is not None and value is not False and parameter.name not in _NOT_INPUTS
    }


def print_json(**answer: Any) -> None:
    """One object: the command, its answer, its inputs, our version. JSON has no infinity: a string."""
    command = click.get_current_context().info_name
    whole = {"command": command, **answer, "inputs": inputs(), "version": __version__}
    click.echo(json.dumps(_plain(whole), indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, float) and math.isinf(value):
        return "Infinity"
    return value


def print_answer(headline: str, rows: Iterable[tuple[str, str]]) -> None:
    """A headline, then a line for each (name, text)."""
    click.secho(headline, bold=True)
    click.echo()
    print_table(rows, align="<")


def print_table(rows: Iterable[Sequence[str]], align: str = ">") -> None:
    """Columns as wide as their widest cell."""
    cells = list(rows)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = (f"{cell:{align}{width}}" for cell, width in zip(row, widths, strict=True))
        click.echo(f"  {'  '.join(padded)}".rstrip())


def certificate(lower: float, upper: float, analysis: str) -> list[tuple[str, str]]:
    """The two ends, what each means, and the analysis that gave the upper one."""
    high, low = rounded_up(upper), rounded_down(lower)
    width = max(len(high), len(low))
    return [
        ("upper", f"{high:<{width}}  holds for every pair of neighbouring datasets"),
        ("lower", f"{low:<{width}}  no analysis can certify less"),
        ("analysis", analysis),
    ]


def described_rounds(mechanism: Any) -> list[tuple[str, str]]:
    """Randomizer, users and rounds of the mechanism, in words."""
    ((part, rounds),) = mechanism.parts
    cohort = "" if part.population is None else f", a fresh cohort of {part.population:,} users"
    return [
        ("randomizer", repr(part.randomizer)),
        ("reports", f"{part.n:,} in each round{cohort}"),
        ("rounds", f"{rounds:,}"),
    ]
