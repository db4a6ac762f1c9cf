from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shuffledp.cli.collecting import (
    collect_or_plan,
    column_option,
    data_argument,
    honest_option,
    question,
    run_options,
    target_options,
)
from shuffledp.cli.options import POSITIVE_PROBABILITY, WHOLE, Given, command, wrong_usage
from shuffledp.cli.output import present

if TYPE_CHECKING:
    from shuffledp.collecting.strings import PrefixProtocol

EXAMPLE = """
$ shuffledp strings names.csv --alphabet a-z --length 4 --epsilon 1 --delta 1e-6
strings, worst of 4 cohorts of 10,000 reports, epsilon <= 0.99825 at delta = 1e-6
"""


@command(section="Collecting", example=EXAMPLE)
@data_argument
@column_option
@question(
    "--alphabet", "a-z0-9", "The characters of the strings; a-z stands for all from a to z.", required=True
)
@question("--length", WHOLE, "The most characters that are told apart.", required=True)
@question("--stride", WHOLE, "Characters per cohort.", default=1)
@question("--most", WHOLE, "Prefixes that are followed at most.", default=32)
@question(
    "--false-positives",
    POSITIVE_PROBABILITY,
    "Chance that anything is found that nobody holds.",
    default=0.05,
)
@target_options
@honest_option
@run_options
def strings(alphabet: str, **given: Any) -> None:
    """Frequent strings that nobody has a list of.

    DATA is a .csv, .tsv, .parquet, .arrow or .feather file with a row per person. People are put into cohorts
    at random; each is asked how the frequent beginnings go on. With --plan, the plan of the first cohort, of
    --n people in all; `shuffledp analyze --next` then writes the next. For a ledger go cohort by cohort, each
    a population of its own."""
    names = ("length", "stride", "most", "false_positives")
    settings = {name: given.pop(name) for name in names} | {"alphabet": characters(alphabet)}

    def make(n: int, rounds: int, **plan: Any) -> PrefixProtocol:
        from shuffledp.collecting.strings import PrefixProtocol

        with wrong_usage():
            PrefixProtocol.check(**settings)
        steps = -(-settings["length"] // settings["stride"])
        return PrefixProtocol(**settings, **plan, n=max(1, n // steps))

    def search(given: Given) -> None:
        import numpy as np

        from shuffledp.collecting.strings import PrefixProtocol, heavy_hitters
        from shuffledp.shuffling.columns import open_column

        with wrong_usage():
            PrefixProtocol.check(**settings)
        parts = list(open_column(given["data"], given["column"], text=True))
        values = np.concatenate([np.empty(0, dtype=object), *parts])
        names = ("epsilon", "delta", "confidence", "honest_fraction", "show_values", "max_epsilon0")
        found = heavy_hitters(values, **settings, **{name: given[name] for name in names})
        held = dict(zip(*np.unique(values.astype(str), return_counts=True), strict=True))
        truth = np.array([held.get(each, 0) for each in found.categories], dtype=np.int64)
        present(found, given, truth if given["simulation"] else None)

    once = {"rounds": 1, "round": 1, "ledger_file": None, "population": None}
    collect_or_plan(make, given | once, search)


def characters(written: str) -> str:
    """The characters that a-z and the like stand for.

    >>> characters("a-e0-2-")
    'abcde012-'
    """
    found, i = [], 0
    while i < len(written):
        if written[i + 1 : i + 2] == "-" and i + 2 < len(written):
            found += [chr(code) for code in range(ord(written[i]), ord(written[i + 2]) + 1)]
            i += 3
        else:
            found.append(written[i])
            i += 1
    return "".join(found)
