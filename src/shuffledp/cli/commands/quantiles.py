from __future__ import annotations

from typing import Any

from shuffledp.cli.collecting import ORDERED, collect, ordered_options, question, typed
from shuffledp.cli.options import command

EXAMPLE = """
$ shuffledp quantiles ages.csv --low 0 --high 100 --bins 50 --epsilon 1 --delta 1e-6
quantiles of 100,000 reports, epsilon <= 0.99735 at delta = 1e-6
"""


@command(section="Collecting", example=EXAMPLE)
@question("--quantiles", "Q,Q,...", "Shares of the people.", default="0.25,0.5,0.75")
@ordered_options
def quantiles(quantiles: str, **given: Any) -> None:
    """Median, quartiles and the like of people's numbers.

    DATA is a .csv, .tsv, .parquet, .arrow or .feather file with a row per person. Everybody reports one level
    of a tree over the bins, drawn at random; the tree is chosen for the smallest error."""
    collect("QuantileProtocol", ORDERED, given, quantiles=typed(quantiles))
