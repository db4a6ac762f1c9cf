from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click

from shuffledp._digits import rounded_down, rounded_up, written
from shuffledp._files import as_csv
from shuffledp._progress import Progress
from shuffledp.cli.files import output_option, plot_option, write_picture, write_text
from shuffledp.cli.options import EPSILON, PROBABILITY, Given, Whole, command, option
from shuffledp.cli.output import inputs, print_json, print_table
from shuffledp.cli.questions import limit_fields, limit_row, mechanism_of, question_options, tolerance_of

if TYPE_CHECKING:
    from shuffledp.accounting.mechanism import Mechanism
    from shuffledp.bound import Bound

GROUP = "Question"
RANGES: dict[str, tuple[float, float]] = {"n": (1e3, 1e7), "rounds": (1, 1000), "epsilon0": (0.5, 6.0)}
"""What may be swept, and where the curve begins and ends unless the user says so."""
COUNTS = ("n", "rounds")

EXAMPLE = """
$ shuffledp curve --krr 16 --epsilon0 4 --n 1e6 --csv curve.csv --plot curve.png

$ shuffledp curve --against n --epsilon0 2 --delta 1e-6 --from 1e3 --to 1e6 --points 4
          n  epsilon lower  epsilon upper  limit mu  shuffle index
      1,000        0.37195         0.3971    0.0932          0.339
     10,000        0.10766        0.11138    0.0295          0.339
    100,000       0.031223        0.03151   0.00932          0.339
  1,000,000      0.0089472      0.0089815   0.00295          0.339
"""


@dataclass(frozen=True)
class Curve:
    """What was evaluated: ``quantity`` enclosed at each of ``values`` of ``against``.

    ``mechanisms``: the one of the whole curve, or one for each value."""

    against: str
    quantity: str
    values: list[float]
    bound: Bound
    analysis: str
    mechanisms: list[Mechanism]

    @property
    def swept(self) -> bool:
        """Whether every value is another mechanism, with a Gaussian limit of its own."""
        return self.against != "epsilon"

    def ends(self) -> Iterator[tuple[float, float, float]]:
        """(value, lower, upper) at each place."""
        lower, upper = self.bound.lower.tolist(), self.bound.upper.tolist()
        return zip(self.values, lower, upper, strict=True)

    @cached_property
    def limits(self) -> list[dict[str, Any]]:
        """The Gaussian limit of each mechanism."""
        return [limit_fields(mechanism) for mechanism in self.mechanisms]

    def rows(self) -> Iterator[tuple[float, ...]]:
        """The numbers of a table: the ends, and the limits where they differ."""
        if not self.swept:
            return self.ends()
        limits = ((one["gaussian_limit_mu"]["upper"], one["shuffle_index"]) for one in self.limits)
        return (ends + limit for ends, limit in zip(self.ends(), limits, strict=True))

    @property
    def header(self) -> tuple[str, ...]:
        """The names of a row's numbers."""
        ends = self.against, f"{self.quantity}_lower", f"{self.quantity}_upper"
        return (*ends, "limit_mu", "shuffle_index") if self.swept else ends

    def points(self) -> list[dict[str, Any]]:
        """For JSON."""
        named = [dict(zip(("at", "lower", "upper"), ends, strict=True)) for ends in self.ends()]
        return [a | b for a, b in zip(named, self.limits, strict=True)] if self.swept else named


@command(section="Accounting", example=EXAMPLE)
@option(
    "--against",
    click.Choice(["epsilon", *RANGES]),
    "delta against epsilon (default), or epsilon against n, rounds or epsilon0.",
    group=GROUP,
    default="epsilon",
    show_default=False,
    metavar="NAME",
)
@option("--delta", PROBABILITY, "For epsilon against something.", group=GROUP)
@option("--from start", EPSILON, "Where the curve begins.", group=GROUP)
@option("--to stop", EPSILON, "Where it ends.", group=GROUP)
@option("--points", Whole(least=2, most=100_000), "How many points.", group=GROUP, default=21)
@question_options
@output_option("--csv csv_file", "Write the numbers in full; - is standard output.", dash=True)
@plot_option
def curve(as_json: bool, csv_file: str | None, plot_file: str | None, **given: Any) -> None:
    """The privacy curve, or epsilon against n, rounds or epsilon0."""
    if as_json and csv_file == "-":
        raise click.UsageError("--json and --csv - both write to standard output.")
    found = _privacy_curve(given) if given["against"] == "epsilon" else _sweep(given)
    if plot_file is not None:
        _draw(found, given, plot_file)
    if csv_file not in (None, "-"):
        write_text(csv_file, as_csv([found.header, *found.rows()]))
    if as_json:
        limit = {} if found.swept else found.limits[0]
        print_json(quantity=found.quantity, points=found.points(), **limit, analysis=found.analysis)
    elif csv_file == "-":
        click.echo(as_csv([found.header, *found.rows()]), nl=False)
    else:
        _print(found)


def _privacy_curve(given: Given) -> Curve:
    """delta against epsilon; by default from 0 to where delta has fallen to 1e-12."""
    from shuffledp.plotting._curves import epsilon_grid

    if given["delta"] is not None:
        raise click.UsageError("--delta does not go with --against epsilon.")
    mechanism = mechanism_of(given)
    with Progress.clock("bounding delta"):
        high = float(epsilon_grid(mechanism)[-1]) if given["stop"] is None else given["stop"]
        epsilons = numbers(given["start"] or 0.0, high, given["points"])
        bound = mechanism.delta(epsilon=epsilons, **tolerance_of(given))
        from shuffledp.accounting.statement import analysis_used

        analysis = analysis_used(mechanism, epsilons[len(epsilons) // 2])
    return Curve("epsilon", "delta", epsilons, bound, analysis, [mechanism])


def _sweep(given: Given) -> Curve:
    """epsilon at delta against a parameter, a mechanism for each value."""
    against = given["against"]
    if given["delta"] is None:
        raise click.UsageError(f"--against {against} needs --delta.")
    if given[against] is not None:
        raise click.UsageError(f"--{against} is what varies: leave it out.")
    values = _grid(against, given["start"], given["stop"], given["points"])
    mechanisms = [mechanism_of({**given, against: value}) for value in values]
    bounds = []
    with Progress(len(values), what="points") as progress:
        for mechanism in mechanisms:
            bounds.append(mechanism.epsilon(delta=given["delta"], **tolerance_of(given)))
            progress.advance()
    middle = len(values) // 2
    from shuffledp.accounting.statement import analysis_used

    analysis = analysis_used(mechanisms[middle], bounds[middle].upper)
    return Curve(against, "epsilon", values, _together(bounds), analysis, mechanisms)


def _together(bounds: list[Bound]) -> Bound:
    """Numbers as one enclosure of arrays."""
    import numpy as np

    from shuffledp import Bound

    return Bound(np.array([b.lower for b in bounds]), np.array([b.upper for b in bounds]))


def _grid(against: str, start: float | None, stop: float | None, points: int) -> list[float]:
    """The values of the swept parameter."""
    low, high = (
        usual if asked is None else asked for asked, usual in zip((start, stop), RANGES[against], strict=True)
    )
    if against in COUNTS:
        return [*whole_numbers(_whole(low), _whole(high), points)]
    return numbers(low, high, points)


def _whole(value: float) -> int:
    if value < 1 or value % 1:
        raise click.UsageError(f"--from and --to must be whole numbers here, got {written(value)}.")
    return int(value)


def numbers(low: float, high: float, points: int) -> list[float]:
    """Evenly spaced, both ends included."""
    _check_order(low, high)
    step = (high - low) / (points - 1)
    return [low + step * i for i in range(points - 1)] + [high]


def whole_numbers(low: int, high: int, points: int) -> list[int]:
    """Evenly spaced in the logarithm, both ends included, none twice.

    >>> whole_numbers(1, 100, 5)
    [1, 3, 10, 32, 100]
    """
    _check_order(low, high)
    ratio = (high / low) ** (1.0 / (points - 1))
    inner = (round(low * ratio**i) for i in range(1, points - 1))
    return sorted({low, high, *(min(max(value, low), high) for value in inner)})


def _check_order(low: float, high: float) -> None:
    if not low < high:
        raise click.UsageError(f"--from must be less than --to, got {written(low)} and {written(high)}.")


def _draw(found: Curve, given: Given, path: str) -> None:
    from shuffledp import plotting

    ax = plotting.new_axes()
    if found.against == "epsilon":
        plotting.delta_against_epsilon(found.values, found.bound, ax=ax)
    else:
        plotting.epsilon_against(found.against, found.values, found.bound, delta=given["delta"], ax=ax)
    ax.set_title(_title(found), parse_math=False)
    write_picture(path, ax)


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
        (
            f"{at:,}" if isinstance(at, int) else f"{at:.6g}",
            rounded_down(low),
            rounded_up(high),
            *(f"{number:.3g}" for number in limit),
        )
        for at, low, high, *limit in found.rows()
    )
    print_table([header, *shown])
    click.echo()
    whole = [] if found.swept else [limit_row(found.mechanisms[0])]
    print_table([("analysis", found.analysis), *whole], align="<")
