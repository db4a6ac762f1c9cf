from __future__ import annotations

from typing import Any

import click

from shuffledp._digits import rounded_down, rounded_up, written
from shuffledp._progress import Progress
from shuffledp.cli.options import EPSILON0, PROBABILITY, WHOLE, command, option, wrong_usage
from shuffledp.cli.output import json_option, print_headline, print_json, print_table
from shuffledp.cli.questions import chosen, honest_option, parameters, randomizer_options

EXAMPLE = """
$ shuffledp groups 1:5000 4:20000 --krr 16 --delta 1e-6
epsilon <= 0.17199 for everybody at delta = 1e-6
"""


def _groups(context: click.Context, parameter: click.Parameter, typed: tuple[str, ...]) -> dict[float, int]:
    """1:5000 4:20000 -> {1.0: 5000, 4.0: 20000}."""
    found: dict[float, int] = {}
    for text in typed:
        local, colon, people = text.partition(":")
        if not colon:
            raise click.BadParameter(f"{text!r} is not EPSILON0:PEOPLE, such as 1:5000.", context, parameter)
        epsilon0 = EPSILON0.convert(local, parameter, context)
        if epsilon0 in found:
            raise click.BadParameter(f"epsilon0 = {written(epsilon0)} is there twice.", context, parameter)
        found[epsilon0] = WHOLE.convert(people, parameter, context)
    return found


@command(section="Accounting", example=EXAMPLE)
@click.argument("groups", nargs=-1, required=True, metavar="EPSILON0:PEOPLE...", callback=_groups)
@option("--delta", PROBABILITY, "The delta at which epsilon is asked for.", group="Question", required=True)
@option("--rounds", WHOLE, "Adaptive rounds.", group="Question", default=1, metavar="T")
@honest_option
@randomizer_options
@json_option
def groups(groups: dict[float, int], delta: float, rounds: int, as_json: bool, **given: Any) -> None:
    """What holds where people use different local epsilons in one round.

    For a person of each group, and for everybody: they share what all reports have in common."""
    from shuffledp import ShuffledGroups

    choice = chosen(given)
    if "epsilon0" not in choice.local:
        raise click.UsageError(
            f"groups are told by epsilon0, which --{choice.option} does not take. Ask for each group alone "
            f"(shuffledp epsilon --{choice.option}), which holds whatever the others send."
        )
    with wrong_usage(), Progress.clock("bounding epsilon"):
        known = parameters(choice, given, "epsilon0") | {"honest_fraction": given["honest_fraction"]}
        survey = ShuffledGroups.of(choice.load(), groups, **known)
        people = {local: rounds * survey.person(group=place) for place, local in enumerate(groups)}
        bounds = {local: one.epsilon(delta=delta) for local, one in people.items()}
        limits = {local: one.gaussian_limit() for local, one in people.items()}
    worst = max(bounds.values(), key=lambda bound: bound.upper)
    if as_json:
        rows = [
            {
                "epsilon0": local,
                "people": groups[local],
                "lower": bound.lower,
                "upper": bound.upper,
                "gaussian_limit_mu": {"lower": limits[local].lower, "upper": limits[local].upper},
            }
            for local, bound in bounds.items()
        ]
        print_json(quantity="epsilon", upper=worst.upper, lower=worst.lower, groups=rows)
        return
    print_headline(f"epsilon <= {rounded_up(worst.upper)} for everybody at delta = {written(delta)}")
    header = ("epsilon0", "people", "epsilon <=", "not below", "limit mu")
    cells = [
        (
            written(local),
            f"{groups[local]:,}",
            rounded_up(bound.upper),
            rounded_down(bound.lower) if bound.lower else "unknown",
            f"{limits[local].upper:.3g}",
        )
        for local, bound in bounds.items()
    ]
    print_table([header, *cells])
