"""``shuffledp epsilon``: the smallest epsilon at a delta."""

from __future__ import annotations

from typing import Any

from shuffledp._digits import rounded_up, written
from shuffledp.cli.command import command, option
from shuffledp.cli.mechanisms import analysis_used, mechanism_of, rounds_options
from shuffledp.cli.numbers import PROBABILITY
from shuffledp.cli.printing import (
    certificate,
    described_rounds,
    json_option,
    print_answer,
    print_json,
)
from shuffledp.cli.randomizers import randomizer_options

EXAMPLE = """
$ shuffledp epsilon --krr 16 --epsilon0 4 --n 1e6 --rounds 30 --delta 1e-8
epsilon <= 0.23754 at delta = 1e-8
"""


@command(section="Accounting", example=EXAMPLE)
@option(
    "--delta",
    type=PROBABILITY,
    required=True,
    metavar="X",
    help="The delta at which epsilon is asked for.",
    group="Question",
)
@randomizer_options
@rounds_options
@json_option
def epsilon(delta: float, as_json: bool, **given: Any) -> None:
    """The smallest epsilon at a given delta."""
    mechanism = mechanism_of(given)
    bound = mechanism.epsilon(delta=delta, tolerance=given["tolerance"])
    analysis = analysis_used(mechanism, bound.upper)
    if as_json:
        print_json(quantity="epsilon", lower=bound.lower, upper=bound.upper, analysis=analysis)
        return
    print_answer(
        f"epsilon <= {rounded_up(bound.upper)} at delta = {written(delta)}",
        [*certificate(bound.lower, bound.upper, analysis), *described_rounds(mechanism)],
    )
