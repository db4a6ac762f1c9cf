"""``shuffledp delta``: delta at an epsilon."""

from __future__ import annotations

from typing import Any

from shuffledp._digits import rounded_up, written
from shuffledp.cli.command import command, option
from shuffledp.cli.mechanisms import analysis_used, mechanism_of, rounds_options
from shuffledp.cli.numbers import EPSILON
from shuffledp.cli.printing import (
    certificate,
    described_rounds,
    json_option,
    print_answer,
    print_json,
)
from shuffledp.cli.randomizers import randomizer_options

EXAMPLE = """
$ shuffledp delta --binary --epsilon0 2 --n 10_000 --epsilon 0.1
delta <= 1.0878e-7 at epsilon = 0.1
"""


@command(section="Accounting", example=EXAMPLE)
@option(
    "--epsilon",
    type=EPSILON,
    required=True,
    metavar="X",
    help="The epsilon at which delta is asked for.",
    group="Question",
)
@randomizer_options
@rounds_options
@json_option
def delta(epsilon: float, as_json: bool, **given: Any) -> None:
    """The smallest delta at a given epsilon."""
    mechanism = mechanism_of(given)
    bound = mechanism.delta(epsilon=epsilon, tolerance=given["tolerance"])
    analysis = analysis_used(mechanism, epsilon)
    if as_json:
        print_json(quantity="delta", lower=bound.lower, upper=bound.upper, analysis=analysis)
        return
    print_answer(
        f"delta <= {rounded_up(bound.upper)} at epsilon = {written(epsilon)}",
        [*certificate(bound.lower, bound.upper, analysis), *described_rounds(mechanism)],
    )
