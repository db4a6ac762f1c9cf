from __future__ import annotations

from typing import Any

from shuffledp.cli.collecting import NUMBER, collect, number_options
from shuffledp.cli.options import command

EXAMPLE = """
$ shuffledp mean ages.csv --low 0 --high 100 --epsilon 1 --delta 1e-6
mean of 100,000 reports, epsilon <= 0.99739 at delta = 1e-6

  quantity   value  std. error  1% lies  95% from      to
  mean      49.987       0.015    1.007    49.959  50.015
"""


@command(section="Collecting", example=EXAMPLE)
@number_options
def mean(**given: Any) -> None:
    """The mean of people's numbers in [low, high].

    DATA is a .csv, .tsv, .parquet, .arrow or .feather file with a row per person. The estimate is
    unbiased; grid and noise are chosen for the smallest error at the certified privacy."""
    collect("MeanProtocol", NUMBER, given)
