from __future__ import annotations

from typing import Any

from shuffledp.cli.collecting import ORDERED, collect, ordered_options, question, typed
from shuffledp.cli.options import command

EXAMPLE = """
$ shuffledp ranges ages.csv --low 0 --high 100 --bins 5 --epsilon 1 --delta 1e-6
ranges of 100,000 reports, epsilon <= 0.99738 at delta = 1e-6
"""


@command(section="Collecting", example=EXAMPLE)
@question(
    "--ranges", "A:B,...", "From one edge of bins up to another; they may overlap.  [default: every bin]"
)
@ordered_options
def ranges(ranges: str | None, **given: Any) -> None:
    """Count people in ranges of numbers in [low, high].

    DATA is a .csv, .tsv, .parquet, .arrow or .feather file with a row per person. Estimates are unbiased and
    consistent: ranges that make up another one add up to it."""
    collect("RangeProtocol", ORDERED, given, ranges=None if ranges is None else typed(ranges))
