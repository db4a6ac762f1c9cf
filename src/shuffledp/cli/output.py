"""Answers on the terminal, rounded outward, and as JSON, in full.

A result of a collection comes with its privacy, and goes into the files that were asked for.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shuffledp import __version__
from shuffledp._digits import rounded_up, written
from shuffledp._files import as_csv
from shuffledp._json import plain
from shuffledp.cli.files import output_option, plot_option, write_picture, write_text
from shuffledp.cli.options import OUTPUT, POSITIVE_PROBABILITY, Given, option, stacked, wrong_usage

if TYPE_CHECKING:
    from shuffledp.collecting.result import HistogramResult, NumberResult
    from shuffledp.collecting.statement import PrivacyStatement

    Result = HistogramResult | NumberResult

_NOT_INPUTS = ("as_json", "csv_file", "plot_file", "statement_file")
_SHOWN = 40
"""Categories on the terminal; files and JSON have all."""
_MOST_DECIMALS = 9

json_option = option("--json as_json", None, "Print JSON for machines.", group=OUTPUT)


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
    click.echo(json.dumps(plain(whole), indent=2, allow_nan=False))


def warn(sentences: Iterable[str]) -> None:
    """One line of standard error each."""
    for sentence in sentences:
        click.echo(f"shuffledp: warning: {sentence}", err=True)


def print_answer(headline: str, rows: Iterable[tuple[str, str]]) -> None:
    """A headline, then a line for each (name, text)."""
    print_headline(headline)
    print_table(rows, align="<")


def print_headline(headline: str) -> None:
    """What matters most, and an empty line."""
    click.secho(headline, bold=True)
    click.echo()


def print_table(rows: Iterable[Sequence[str]], align: str = ">", first: str = "") -> None:
    """Columns as wide as their widest cell; ``first``: how the first one is aligned, if not alike."""
    cells = list(rows)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    ways = [first or align, *[align] * (len(widths) - 1)]
    for row in cells:
        padded = (f"{c:{way}{width}}" for c, way, width in zip(row, ways, widths, strict=True))
        click.echo(f"  {'  '.join(padded)}".rstrip())


def _confidence(context: click.Context, parameter: click.Parameter, level: float) -> float:
    """Refused before anything is collected."""
    from shuffledp.collecting._intervals import checked_confidence

    with wrong_usage():
        return float(checked_confidence(level))


result_options = stacked(
    option(
        "--confidence",
        POSITIVE_PROBABILITY,
        "Of each interval.",
        group=OUTPUT,
        default=0.95,
        callback=_confidence,
    ),
    json_option,
    output_option("--csv csv_file", "Write the numbers in full."),
    plot_option,
    output_option("--statement statement_file", "Write the privacy statement: .json, or text."),
)


def present(result: Result, given: Given, truth: Any = None) -> None:
    """The answer first, then the files that were asked for. ``truth``: of a simulation."""
    header, rows = table_of(result, truth)
    if given["as_json"]:
        entries = [dict(zip(header, row, strict=True)) for row in rows]
        extra = {} if truth is None else {"simulation": True}
        print_json(n=result.n, estimates=entries, privacy=result.privacy.to_dict(), **extra)
    else:
        _print(result, header, rows)
    if given["csv_file"] is not None:
        write_text(given["csv_file"], as_csv([header, *rows]))
    if given["statement_file"] is not None:
        write_text(given["statement_file"], _stated(result.privacy, given["statement_file"]))
    if given["plot_file"] is not None:
        _draw(result, truth, given["plot_file"])


def table_of(result: Result, truth: Any = None) -> tuple[list[str], list[list[Any]]]:
    """Names and rows of numbers: one row per category, or one for a sum or mean."""
    left_out = ("frequency", "projected", "n")
    columns = {name: column for name, column in result.columns().items() if name not in left_out}
    keys = len(getattr(result, "attributes", ())) or 1  # several columns name a row of a table
    names = [", ".join(list(columns)[:keys]), *list(columns)[keys:]]
    first = getattr(result, "labels", []) if keys > 1 else next(iter(columns.values()))
    rows = [first, *list(columns.values())[keys:]]
    if truth is not None:
        names.append("truth")
        rows.append(truth.tolist() if hasattr(truth, "tolist") else [truth])
    return names, [list(row) for row in zip(*rows, strict=True)]


def _stated(statement: PrivacyStatement, path: str) -> str:
    as_json = Path(path).suffix.lower() == ".json"
    return (statement.to_json() if as_json else statement.text) + "\n"


def _draw(result: Any, truth: Any, path: str) -> None:
    from shuffledp import plotting
    from shuffledp.plotting._rows import estimate, height_of, histogram, histogram_height

    if hasattr(result, "l2_error"):
        ax = result.plot(truth=truth, ax=plotting.new_axes())
    elif hasattr(result, "shares"):
        ax = plotting.cumulative(result, truth=truth, ax=plotting.new_axes())
    elif len(getattr(result, "attributes", ())) == 2 and truth is None:
        ax = plotting.table(result, ax=plotting.new_axes(height_of(len(result.attributes[0][1])) + 1.0))
    elif hasattr(result, "categories"):
        ax = plotting.new_axes(histogram_height(len(result.categories)))
        histogram(result, truth=truth, ax=ax)
    else:
        ax = estimate(result, truth=truth, ax=plotting.new_axes(height_of(1)))
    write_picture(path, ax)


def _print(result: Result, header: list[str], rows: list[list[Any]]) -> None:
    """The certified guarantee, the estimates, and what the guarantee rests on."""
    from shuffledp.collecting.result import footnotes

    privacy = result.privacy
    simulated = "SIMULATED " * privacy.simulated
    click.secho(
        f"{simulated}{privacy.protocol} of {result.n:,} reports, epsilon <= {rounded_up(privacy.epsilon)} "
        f"at delta = {written(privacy.delta)}",
        bold=True,
    )
    if "truth" in header:
        click.echo("SIMULATION: the truth is shown, so this output is not private at all")
    click.echo()
    _print_estimates(header, rows, f"{100 * result.confidence:g}% from")
    for line in (*footnotes(result), ""):
        click.echo(f"  {line}".rstrip())
    for line in privacy.text.splitlines():
        click.echo(f"  {line}")


def _print_estimates(header: list[str], rows: list[list[Any]], interval: str) -> None:
    """Two digits of the standard error, and as many of the rest; intervals rounded outward."""
    places = decimals(row[2] for row in rows)
    up = ROUND_CEILING
    rounding = [ROUND_HALF_EVEN, up, up, ROUND_FLOOR, up, ROUND_HALF_EVEN]
    cells = []
    for name, *numbers in rows[:_SHOWN]:
        shown = [fixed(x, places, way) for x, way in zip(numbers, rounding, strict=False)]
        cells.append([str(name), *shown])
    titles = [header[0], header[1], "std. error", "1% lies", interval, "to", *header[6:]]
    print_table([titles, *cells], first="<")
    if len(rows) > _SHOWN:
        click.echo(f"  ... {len(rows) - _SHOWN:,} more: --csv and --json have all")


def decimals(errors: Any) -> int:
    """Places after the point that show two digits of the smallest error above zero.

    >>> decimals([0.0145, 3.0]), decimals([8.0]), decimals([31_000.0]), decimals([0.0])
    (3, 1, 0, 0)
    """
    smallest = min((error for error in errors if error > 0.0), default=math.inf)
    if math.isinf(smallest):
        return 0
    return min(max(0, 1 - math.floor(math.log10(smallest))), _MOST_DECIMALS)


def fixed(value: float, places: int, rounding: str) -> str:
    """So many places after the point.

    >>> fixed(1234.561, 1, ROUND_FLOOR), fixed(-0.04, 1, ROUND_FLOOR)
    ('1,234.5', '-0.1')
    """
    exact = Decimal(repr(float(value)))
    return f"{exact.quantize(Decimal(1).scaleb(-places), rounding):,}"
