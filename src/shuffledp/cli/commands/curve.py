"""``shuffledp curve``: a whole curve as a table, JSON, CSV or picture."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import IO, TYPE_CHECKING, Any

import click

from shuffledp._digits import rounded_down, rounded_up, written
from shuffledp.cli.command import command, option
from shuffledp.cli.grids import RANGES, epsilon_grid, grid
from shuffledp.cli.mechanisms import analysis_used, mechanism_of, rounds_options
from shuffledp.cli.numbers import EPSILON, PROBABILITY, Whole
from shuffledp.cli.pictures import plot_option, save_picture
from shuffledp.cli.printing import OUTPUT, inputs, json_option, print_json, print_table
from shuffledp.cli.randomizers import Given, randomizer_options

if TYPE_CHECKING:
    from shuffledp.bound import Bound

GROUP = "Question"

EXAMPLE = """
$ shuffledp curve --krr 16 --epsilon0 4 --n 1e6 --csv curve.csv --plot curve.png

$ shuffledp curve --against n --epsilon0 2 --delta 1e-6 --from 1e3 --to 1e6 --points 4
          n  epsilon lower  epsilon upper
      1,000        0.37192        0.39719
     10,000        0.10766        0.11442
    100,000       0.031223       0.033197
  1,000,000      0.0089491      0.0095201
"""


@dataclass(frozen=True)
class Curve:
    """What was evaluated: ``quantity`` enclosed at each of ``values`` of ``against``."""

    against: str
    quantity: str
    values: list[float]
    bound: Bound
    analysis: str

    def rows(self) -> Iterator[tuple[float, float, float]]:
        """(value, lower, upper) at each place."""
        lower, upper = self.bound.lower.tolist(), self.bound.upper.tolist()
        return zip(self.values, lower, upper, strict=True)

    @property
    def header(self) -> tuple[str, str, str]:
        """The names of a row's numbers."""
        return self.against, f"{self.quantity}_lower", f"{self.quantity}_upper"


@command(section="Accounting", example=EXAMPLE)
@option(
    "--against",
    type=click.Choice(["epsilon", *RANGES]),
    default="epsilon",
    metavar="NAME",
    help="delta against epsilon (default), or epsilon against n, rounds or epsilon0.",
    group=GROUP,
)
@option(
    "--delta", type=PROBABILITY, metavar="X", help="For epsilon against something.", group=GROUP
)
@option("--from", "start", type=EPSILON, metavar="X", help="Where the curve begins.", group=GROUP)
@option("--to", "stop", type=EPSILON, metavar="X", help="Where it ends.", group=GROUP)
@option(
    "--points",
    type=Whole(least=2, most=100_000),
    default=21,
    show_default=True,
    metavar="N",
    help="How many points.",
    group=GROUP,
)
@randomizer_options
@rounds_options
@json_option
@option(
    "--csv",
    "csv_file",
    type=click.Path(dir_okay=False, writable=True, allow_dash=True),
    metavar="FILE",
    help="Write the numbers in full; - is standard output.",
    group=OUTPUT,
)
@plot_option
def curve(as_json: bool, csv_file: str | None, plot_file: str | None, **given: Any) -> None:
    """The privacy curve, or epsilon against n, rounds or epsilon0."""
    if as_json and csv_file == "-":
        raise click.UsageError("--json and --csv - both write to standard output.")
    found = _privacy_curve(given) if given["against"] == "epsilon" else _sweep(given)
    if plot_file is not None:
        _draw(found, given, plot_file)
    if csv_file is not None:
        _write_csv(found, csv_file)
    if as_json:
        points = [dict(zip(("at", "lower", "upper"), row, strict=True)) for row in found.rows()]
        print_json(quantity=found.quantity, points=points, analysis=found.analysis)
    elif csv_file != "-":
        _print(found)


def _privacy_curve(given: Given) -> Curve:
    """delta against epsilon."""
    if given["delta"] is not None:
        raise click.UsageError("--delta does not go with --against epsilon.")
    mechanism = mechanism_of(given)
    epsilons = epsilon_grid(mechanism, given["start"], given["stop"], given["points"])
    bound = mechanism.delta(epsilon=epsilons, tolerance=given["tolerance"])
    analysis = analysis_used(mechanism, epsilons[len(epsilons) // 2])
    return Curve("epsilon", "delta", epsilons, bound, analysis)


def _sweep(given: Given) -> Curve:
    """epsilon at delta against a parameter, a mechanism for each value."""
    against = given["against"]
    if given["delta"] is None:
        raise click.UsageError(f"--against {against} needs --delta.")
    if given[against] is not None:
        raise click.UsageError(f"--{against} is what varies: leave it out.")
    values = grid(against, given["start"], given["stop"], given["points"])
    mechanisms = [mechanism_of({**given, against: value}) for value in values]
    with _progress(mechanisms) as each:
        bounds = [m.epsilon(delta=given["delta"], tolerance=given["tolerance"]) for m in each]
    middle = len(values) // 2
    analysis = analysis_used(mechanisms[middle], bounds[middle].upper)
    return Curve(against, "epsilon", values, _together(bounds), analysis)


def _together(bounds: list[Bound]) -> Bound:
    """Numbers as one enclosure of arrays."""
    import numpy as np

    from shuffledp import Bound

    return Bound(np.array([b.lower for b in bounds]), np.array([b.upper for b in bounds]))


@contextmanager
def _progress(items: list[Any]) -> Iterator[Any]:
    """A bar on standard error, where somebody can see it."""
    with click.progressbar(items, file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        yield bar


def _write_csv(found: Curve, path: str) -> None:
    """Every number as Python writes it, so that reading it back gives the same number."""
    with click.open_file(path, "w", encoding="utf-8") as file:
        _write_rows(file, found)
    if path != "-":
        click.echo(f"wrote {path}", err=True)


def _write_rows(file: IO[Any], found: Curve) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(found.header)
    writer.writerows(found.rows())


def _draw(found: Curve, given: Given, path: str) -> None:
    from shuffledp import plotting

    ax = plotting.new_axes()
    if found.against == "epsilon":
        plotting.delta_against_epsilon(found.values, found.bound, ax=ax)
    else:
        plotting.epsilon_against(
            found.against, found.values, found.bound, delta=given["delta"], ax=ax
        )
    ax.set_title(_title(found), parse_math=False)
    save_picture(ax, path)


def _title(found: Curve) -> str:
    """The options of the randomizer and its rounds, and the analysis."""
    left_out = ("against", "points", "tolerance", "analysis", "delta", "from", "to")
    shown = [_shown(*item) for item in inputs().items() if item[0] not in left_out]
    return fill(", ".join([*shown, f"analysis {found.analysis}"]), width=60)


def _shown(name: str, value: Any) -> str:
    """One option in words that stay on one line: ``binary``, ``n 1e6``, ``matrix noise.csv``."""
    words = name.split("_")
    if value is not True:
        words.append(Path(value).name if isinstance(value, str) else written(value))
    return "\N{NO-BREAK SPACE}".join(words)


def _print(found: Curve) -> None:
    header = tuple(name.replace("_", " ") for name in found.header)
    shown = (
        (f"{at:,}" if isinstance(at, int) else f"{at:.6g}", rounded_down(low), rounded_up(high))
        for at, low, high in found.rows()
    )
    print_table([header, *shown])
    click.echo(f"\n  analysis  {found.analysis}")
