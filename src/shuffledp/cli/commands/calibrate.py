from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from shuffledp._digits import rounded_down, rounded_up, written
from shuffledp._progress import Progress
from shuffledp.cli.options import POSITIVE, PROBABILITY, Given, command, option, wrong_usage
from shuffledp.cli.output import print_answer, print_json, warn
from shuffledp.cli.questions import (
    as_fields,
    calibration_options,
    certificate,
    check_sizes,
    chosen,
    limit_fields,
    local_unknowns,
    parameters,
    randomizer_of,
    refuse_unverified,
    shown,
    tolerance_of,
    verification,
    verify_options,
)

if TYPE_CHECKING:
    from shuffledp.accounting.calibration import Calibration
    from shuffledp.randomizers.registry import Registration

GROUP = "Question"
LOCAL = {"epsilon0": 30.0, "gamma": 0.5, "sigma": 1.0}
"""Parameters of the randomizer that can be found, with a value at which every description is valid."""
COUNTS = ("n", "rounds", "cohort")

EXAMPLE = """
$ shuffledp calibrate --krr 16 --n 1e6 --rounds 30 --epsilon 1 --delta 1e-8
epsilon0 = 6.4852 meets epsilon <= 1 at delta = 1e-8

$ shuffledp calibrate --solve-for n --krr 16 --epsilon0 4 --epsilon 0.1 --delta 1e-8
n = 174,694 meets epsilon <= 0.1 at delta = 1e-8

$ shuffledp calibrate --gaussian --n 1e4 --epsilon 1 --delta 1e-6
sigma = 0.5534 meets epsilon <= 1 at delta = 1e-6
"""


@command(section="Accounting", example=EXAMPLE)
@option("--epsilon", POSITIVE, "Central epsilon.", group=GROUP, required=True)
@option("--delta", PROBABILITY, "Central delta.", group=GROUP, required=True)
@option(
    "--solve-for",
    click.Choice([*LOCAL, *COUNTS]),
    "The largest epsilon0 (default), rounds or cohort (of --population), or the smallest gamma, n or sigma "
    "(default with --gaussian, which is then given no SIGMA).",
    group=GROUP,
    metavar="NAME",
)
@calibration_options
@verify_options
def calibrate(as_json: bool, **given: Any) -> None:
    """The parameter that meets a wanted (epsilon, delta).

    The answer errs on the safe side and is checked by evaluating it."""
    from shuffledp.accounting.statement import analysis_used, cautions

    with Progress.clock("calibrating"):
        found = _solve(given)
        bound, analysis = found.epsilon, analysis_used(found.mechanism, found.epsilon.upper)
        warned = cautions(found.mechanism, bound, found.delta)
    verified = verification(bound, given)
    if as_json:
        answer = {"parameter": found.parameter, "value": found.value, "quantity": "epsilon"}
        ends = {"lower": bound.lower, "upper": bound.upper, **as_fields(verified)}
        limit = limit_fields(found.mechanism)
        print_json(**answer, **ends, **limit, analysis=analysis, warnings=list(warned))
        return refuse_unverified(verified)
    warn(warned)
    target = f"epsilon <= {written(given['epsilon'])} at delta = {written(given['delta'])}"
    headline = f"{found.parameter} = {_shown(found)} meets {target}"
    print_answer(headline, certificate(found.mechanism, bound, analysis) + shown(verified))
    return refuse_unverified(verified)


def _solve(given: Given) -> Calibration:
    from shuffledp import calibrate

    choice = chosen(given)
    given = given | {"solve_for": given["solve_for"] or [*local_unknowns(choice), "epsilon0"][0]}
    _check_counts(given)
    target = {name: given[name] for name in ("epsilon", "delta", "analysis")} | tolerance_of(given)
    sizes = {name: given[name] for name in ("n", "population", "poisson", "rate", "honest_fraction")}
    rounds = {} if given["rounds"] is None else {"rounds": given["rounds"]}
    subject, arguments = _subject(choice, given)
    return calibrate(subject, solve_for=given["solve_for"], **target, **sizes, **rounds, **arguments)


def _check_counts(given: Given) -> None:
    """Nothing is given that is to be found, and nothing is missing."""
    unknown = given["solve_for"]
    if unknown == "cohort" and given["population"] is None:
        raise click.UsageError("--solve-for cohort needs --population.")
    if unknown == "n" and given["population"] is not None:
        raise click.UsageError(
            "--solve-for n does not go with --population: a cohort tells the more the larger it is, so "
            "n = 1 would do, if any does (--solve-for cohort finds the largest)."
        )
    taken = "n" if unknown == "cohort" else unknown
    if unknown in COUNTS and given[taken] is not None:
        raise click.UsageError(f"{unknown} is to be found: leave out --{taken}.")
    check_sizes(given, unknown)
    if given["n"] and given["population"] and given["population"] < given["n"]:
        raise click.UsageError(f"--population must be at least --n {given['n']}.")


def _subject(choice: Registration, given: Given) -> tuple[Any, Given]:
    """What is calibrated: a class with its other parameters, or a randomizer; checked on one user."""
    from shuffledp import Shuffled

    unknown = given["solve_for"]
    arguments: Given = {}
    if unknown in COUNTS:
        subject = randomizer_of(given)
    else:
        subject, arguments = choice.load(), parameters(choice, given, unknown)
    with wrong_usage():
        trial = subject if unknown in COUNTS else subject(**arguments, **{unknown: LOCAL[unknown]})
        Shuffled(trial, n=1, analysis=given["analysis"])
    return subject, arguments


def _shown(found: Calibration) -> str:
    """Rounded to the safe side: a smaller epsilon0, a larger gamma or sigma."""
    if found.parameter in COUNTS:
        return f"{int(found.value):,}"
    return (rounded_down if found.parameter == "epsilon0" else rounded_up)(found.value)
