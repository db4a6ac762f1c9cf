from __future__ import annotations

from typing import Any

from shuffledp.cli.collecting import NUMBER, collect, number_options
from shuffledp.cli.options import command

EXAMPLE = """
$ shuffledp sum ages.csv --low 0 --high 100 --epsilon 1 --delta 1e-6
sum of 100,000 reports, epsilon <= 0.99739 at delta = 1e-6

  quantity      value  std. error  1% lies   95% from         to
  sum       4,998,919       1,404  100,679  4,996,167  5,001,671
"""


@command(section="Collecting", example=EXAMPLE)
@number_options
def sum(**given: Any) -> None:
    """The sum of people's numbers in [low, high].

    DATA is a .csv, .tsv, .parquet, .arrow or .feather file with a row per person. The estimate is
    unbiased; grid and noise are chosen for the smallest error at the certified privacy."""
    collect("SumProtocol", NUMBER, given)
