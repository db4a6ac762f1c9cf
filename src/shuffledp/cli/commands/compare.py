from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from shuffledp._digits import rounded_down, rounded_up, written
from shuffledp._files import as_csv
from shuffledp.cli.files import output_option, plot_option, write_picture, write_text
from shuffledp.cli.options import POSITIVE, POSITIVE_PROBABILITY, command, option
from shuffledp.cli.output import json_option, print_headline, print_json, print_table
from shuffledp.cli.questions import limit_fields, limit_row, mechanism_of, randomizer_options, size_options

if TYPE_CHECKING:
    from shuffledp.literature.compare import Comparison

GROUP = "Question (one of these)"

EXAMPLE = """
$ shuffledp compare --krr 4 --epsilon0 2 --n 1000 --delta 1e-6 --plot bounds.png
"""


@command(section="Accounting", example=EXAMPLE)
@option("--delta", POSITIVE_PROBABILITY, "Compare bounds of epsilon at this delta.", group=GROUP)
@option("--epsilon", POSITIVE, "Compare bounds of delta at this epsilon.", group=GROUP)
@randomizer_options
@size_options
@json_option
@output_option("--csv csv_file", "Write all bounds in full.")
@plot_option
def compare(
    delta: float | None,
    epsilon: float | None,
    as_json: bool,
    csv_file: str | None,
    plot_file: str | None,
    **given: Any,
) -> None:
    """Every bound that applies, sound or not, side by side."""
    if (delta is None) == (epsilon is None):
        raise click.UsageError("give one of --delta and --epsilon.")
    from shuffledp import compare as compared

    mechanism = mechanism_of(given)
    found = compared(mechanism, delta=delta, epsilon=epsilon)
    if csv_file is not None:
        rows = [asdict(row) for row in found]
        write_text(csv_file, as_csv([list(rows[0]), *(list(row.values()) for row in rows)]))
    if plot_file is not None:
        _draw(found, plot_file)
    if as_json:
        best = {"upper": found.best.value, "analysis": found.best.bound}
        known = {"lower": found.lower, **best, **limit_fields(mechanism), "left_out": found.left_out}
        print_json(quantity=found.quantity, **known, bounds=found.to_dict()["rows"])
    else:
        _print(found)
        click.echo(f"  the limit of many people: {limit_row(mechanism)[1]}")


def _draw(found: Comparison, path: str) -> None:
    from shuffledp import plotting
    from shuffledp.plotting._rows import height_of

    write_picture(path, found.plot(plotting.new_axes(height_of(len(found)))))


def _print(found: Comparison) -> None:
    """The table, the reasons of what is not simply sound, and the lower end of the truth."""
    print_headline(f"bounds of {found.quantity} at {found.given} = {written(found.level)}")
    rows = [(rounded_up(row.value), row.soundness, row.bound, row.theorem) for row in found]
    print_table([("value", "soundness", "bound", "theorem"), *rows], align="<")
    click.echo()
    for row in found:
        if row.soundness != "sound" and row.note:
            click.echo(f"  {row.bound}: {row.note}")
    looked = "looked for more finely than by `shuffledp epsilon`"
    click.echo(f"  the truth is at least {rounded_down(found.lower)} ({looked})")
    if found.left_out:
        click.echo(f"  {found.left_out}")
