"""Questions to the accountant: the randomizer and the rounds that the options describe, the answer in words.

Every entry of the registry has an option. Without a choice the answer is for any randomizer with the given
epsilon0."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shuffledp._digits import rounded_down, rounded_up, written
from shuffledp._progress import Progress
from shuffledp.cli.files import output_option, read_matrix, write_text
from shuffledp.cli.options import (
    AUTO,
    EPSILON0,
    EXISTING_FILE,
    OUTPUT,
    POSITIVE_PROBABILITY,
    WHOLE,
    Given,
    Real,
    RealOrAuto,
    Whole,
    option,
    stacked,
    wrong_usage,
)
from shuffledp.cli.output import json_option, print_answer, print_json, warn
from shuffledp.randomizers.registry import Parameter, Registration, registered

if TYPE_CHECKING:
    from shuffledp.accounting.mechanism import Mechanism
    from shuffledp.accounting.statement import PlannedStatement
    from shuffledp.bound import Bound
    from shuffledp.verifying.verification import Verification

RANDOMIZER = "Randomizer (one of these; none: any epsilon0-LDP randomizer)"
DETAILS = "Its parameters"

FOUND = ("sigma",)
"""What a randomizer's own option takes and a calibration finds."""
_LOCAL = {
    "epsilon0": (EPSILON0, "Local epsilon of one report."),
    "gamma": (POSITIVE_PROBABILITY, "Instead of epsilon0: the chance of a uniformly random report."),
}


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _kind(parameter: Parameter) -> Any:
    if parameter.type == "file":
        return EXISTING_FILE
    if parameter.type is int:
        return Whole(int(parameter.least), int(min(parameter.most, 2**53)))
    return Real(float(parameter.least), float(parameter.most))


def _choice(entry: Registration, found: bool) -> Callable[[Any], Any]:
    """Its option; where its value can be ``found``, it may be left out."""
    if entry.takes is None:
        return option(f"--{entry.option}", None, entry.summary, group=RANDOMIZER)
    kind, metavar = _kind(entry.takes), entry.takes.metavar
    auto: Given = {}
    if found and entry.takes.name in FOUND:
        kind, metavar, auto = RealOrAuto(kind), f"[{metavar}]", {"is_flag": False, "flag_value": AUTO}
    return option(f"--{entry.option}", kind, entry.summary, group=RANDOMIZER, metavar=metavar, **auto)


def _details() -> dict[str, tuple[Any, str]]:
    """Type and help of every parameter that some randomizer may be given."""
    known = {one.name: one for entry in registered() for one in entry.details}
    return _LOCAL | {name: (_kind(one), one.help) for name, one in known.items()}


def _randomizer_options(found: bool) -> Callable[[Any], Any]:
    details = (
        option(_flag(name), kind, text, group=DETAILS, metavar="X")
        for name, (kind, text) in _details().items()
    )
    return stacked(*(_choice(entry, found) for entry in registered()), *details)


randomizer_options = _randomizer_options(found=False)


def chosen(given: Given) -> Registration:
    """The one choice that was made."""
    every = {entry.option: entry for entry in registered()}
    typed = {name: given.get(name.replace("-", "_")) for name in every}
    made = [every[name] for name, value in typed.items() if value is not None and value is not False]
    if len(made) > 1:
        flags = " and ".join(f"--{entry.option}" for entry in made)
        raise click.UsageError(f"choose one randomizer, got {flags}.")
    return made[0] if made else every["local"]


def parameters(entry: Registration, given: Given, unknown: str | None = None) -> Given:
    """The keyword arguments of the class, but for the ``unknown`` that a calibration solves for."""
    details = {name: given[name] for name in _details() if given.get(name) is not None}
    for name in details:
        if name not in (*entry.local, *(one.name for one in entry.details)):
            raise click.UsageError(f"{_flag(name)} does not go with --{entry.option}.")
    local = [name for name in entry.local if name in details]
    if unknown is not None:
        _check_unknown(entry, unknown, local, given)
    elif entry.local and len(local) != 1:
        wanted = " or ".join(map(_flag, entry.local))
        if entry.option == "local" and not given.get("local"):
            raise click.UsageError(f"describe the randomizer: {wanted}, or one of its own options.")
        raise click.UsageError(f"--{entry.option} needs {wanted}{', not both' if local else ''}.")
    if entry.takes is not None and entry.takes.name != unknown:
        value = given[entry.option.replace("-", "_")]
        if value == AUTO:
            raise click.UsageError(
                f"--{entry.option} needs its {entry.takes.metavar}, which is not to be found."
            )
        details[entry.takes.name] = read_matrix(value) if entry.takes.type == "file" else value
    return details


def local_unknowns(entry: Registration) -> tuple[str, ...]:
    """The parameters of a randomizer that can be found, the usual one first."""
    own = () if entry.takes is None or entry.takes.name not in FOUND else (entry.takes.name,)
    return (*own, *entry.local)


def _check_unknown(entry: Registration, unknown: str, local: list[str], given: Given) -> None:
    if unknown not in local_unknowns(entry):
        known = ", ".join([*local_unknowns(entry), "n", "rounds"])
        raise click.UsageError(
            f"--solve-for {unknown} does not go with --{entry.option}: {known} and cohort do."
        )
    if unknown not in entry.local and given[entry.option.replace("-", "_")] != AUTO:
        raise click.UsageError(
            f"{unknown} is to be found: leave out the value of --{entry.option}, or find something else "
            "(--solve-for n, rounds or cohort)."
        )
    if local:
        raise click.UsageError(f"{unknown} is to be found: leave out {_flag(local[0])}.")


def randomizer_of(given: Given) -> Any:
    """The randomizer that the options describe."""
    entry = chosen(given)
    arguments = parameters(entry, given)
    with wrong_usage():
        return entry.load()(**arguments)


ROUNDS = "Rounds"
ANALYSES = ("best", "best-leaked", "exact", "crowd", "blanket", "clones", "clones-2021", "strong")
"""Those of the accountant (a test compares them): importing its table would load NumPy for the help."""
_UNCOVERED, _BUT = "  covers no leaked coin flip of anybody", " (--analysis best-leaked does)"

honest_option = option(
    "--honest-fraction",
    POSITIVE_PROBABILITY,
    "At least this share of all people randomizes as told; the rest hides nobody.",
    group=ROUNDS,
    default=1.0,
    show_default=False,
)
size_options = stacked(
    option("--n", WHOLE, "Reports in one shuffle.", group=ROUNDS),
    option("--rounds", WHOLE, "Adaptive rounds.  [default: 1]", group=ROUNDS, metavar="T"),
    option(
        "--population", WHOLE, "The n users are a fresh random cohort of so many, each round.", group=ROUNDS
    ),
    option(
        "--poisson",
        None,
        "Each of --population flips a coin of their own; n reports are expected.",
        group=ROUNDS,
    ),
    option("--rate", POSITIVE_PROBABILITY, "The same with this probability, in place of --n.", group=ROUNDS),
    honest_option,
)
rounds_options = stacked(
    size_options,
    option(
        "--analysis",
        click.Choice(ANALYSES),
        f"One of {', '.join(ANALYSES)}. best-leaked: it may leak which of the others answered at random; "
        "strong: also whether you did. exact and crowd, which best may take, cover no such leak.",
        group=ROUNDS,
        default="best",
        metavar="NAME",
    ),
    option(
        "--tolerance",
        Real(low=1e-7, high=0.5),
        "Numerical looseness allowed, relative.  [default: 0.001; 0.0001 for the epsilon of one round]",
        group=ROUNDS,
    ),
)
verify_options = stacked(
    option("--verify", None, "Derive the answer a second time, in ball arithmetic.", group=OUTPUT),
    output_option("--certificate certificate_file", "Write what `shuffledp verify` needs (.json)."),
)
question_options = stacked(randomizer_options, rounds_options, json_option)
calibration_options = stacked(_randomizer_options(found=True), rounds_options, json_option)


def mechanism_of(given: Given) -> Mechanism:
    """All rounds; errors of usage where the options do not describe any."""
    check_sizes(given)
    randomizer = randomizer_of(given)
    from shuffledp import Shuffled

    with wrong_usage():
        one = Shuffled(
            randomizer,
            n=given["n"] or 1,
            analysis=given.get("analysis", "best"),
            honest_fraction=given["honest_fraction"],
        )
        if given["population"] is not None:
            one = one.sampled_from(given["population"], poisson=given["poisson"], rate=given["rate"])
        return one * (given["rounds"] or 1)


def tolerance_of(given: Given) -> dict[str, float]:
    """As an argument, if there is one."""
    return {} if given["tolerance"] is None else {"tolerance": given["tolerance"]}


def check_sizes(given: Given, unknown: str | None = None) -> None:
    """Errors of usage where not exactly one of --n and --rate is there, or what they need is not."""
    for name in ("poisson", "rate"):
        if given[name] and given["population"] is None:
            raise click.UsageError(f"--{name} needs --population.")
    if given["rate"] is not None and unknown in ("n", "cohort"):
        raise click.UsageError(f"--rate does not go with --solve-for {unknown}.")
    if given["rate"] is not None and (given["n"] is not None or given["poisson"]):
        raise click.UsageError("--rate stands in place of --n, and for itself: leave out the others.")
    if given["n"] is None and given["rate"] is None and unknown not in ("n", "cohort"):
        raise click.UsageError("Missing option '--n'.")


def ask(quantity: str, at: str, level: float, given: Given) -> None:
    """``quantity`` (epsilon or delta) of all rounds where the other one, ``at``, is ``level``."""
    mechanism = mechanism_of(given)
    from shuffledp.accounting.statement import analysis_used, cautions

    bound: Bound
    statement_file, tolerance = given.get("statement_file"), tolerance_of(given)
    with Progress.clock(f"bounding {quantity}"):
        if statement_file is None:
            bound = getattr(mechanism, quantity)(**{at: level}, **tolerance)
            found = cautions(mechanism, bound, level) if quantity == "epsilon" else ()
        else:
            statement = mechanism.statement(delta=level, **tolerance)
            statement = statement.verified() if given["verify"] else statement
            bound, found = statement.bound, statement.warnings
            write_text(statement_file, as_planned(statement, statement_file))
        analysis = analysis_used(mechanism, bound.upper if quantity == "epsilon" else level)
    verified = verification(bound, given)
    if given["as_json"]:
        ends = {"lower": bound.lower, "upper": bound.upper, **as_fields(verified)}
        print_json(
            quantity=quantity, **ends, **limit_fields(mechanism), analysis=analysis, warnings=list(found)
        )
    else:
        warn(found)
        headline = f"{quantity} <= {rounded_up(bound.upper)} at {at} = {written(level)}"
        print_answer(headline, certificate(mechanism, bound, analysis) + shown(verified))
    refuse_unverified(verified)


def verification(bound: Bound, given: Given) -> Verification | None:
    """What --verify and --certificate ask for."""
    if given["certificate_file"] is not None:
        write_text(given["certificate_file"], bound.certificate().to_json() + "\n")
    return bound.verify() if given["verify"] else None


def as_fields(verified: Verification | None) -> dict[str, Any]:
    """For JSON."""
    return {} if verified is None else {"verified": verified.verified, "found": verified.found}


def shown(verified: Verification | None) -> list[tuple[str, str]]:
    """A row of the answer."""
    if verified is None:
        return []
    name, _, text = str(verified).partition(": ")
    return [(name, text)]


def refuse_unverified(verified: Verification | None) -> None:
    """The status of an answer that was not confirmed."""
    if verified is not None and not verified:
        raise click.exceptions.Exit(1)


def as_planned(statement: PlannedStatement, path: str) -> str:
    """JSON, a registry record or text, by the file's suffix."""
    forms = {".json": statement.to_json, ".yaml": statement.registry, ".yml": statement.registry}
    text = forms.get(Path(path).suffix.lower(), lambda: statement.text)()
    return text.rstrip("\n") + "\n"


def certificate(mechanism: Any, bound: Bound, analysis: str) -> list[tuple[str, str]]:
    """The two ends, what each means, the analysis that gave the upper one, and what was asked about."""
    from shuffledp.accounting.statement import leaks_are_covered

    ((part, rounds),) = mechanism.parts
    high, low = rounded_up(bound.upper), rounded_down(bound.lower)
    width = max(len(high), len(low))
    uncovered = _UNCOVERED + ("" if part.delta0 else _BUT)
    return [
        ("upper", f"{high:<{width}}  holds for every pair of neighbouring datasets"),
        ("lower", f"{low:<{width}}  no analysis can certify less"),
        ("analysis", analysis + ("" if leaks_are_covered(mechanism, analysis) else uncovered)),
        ("randomizer", repr(part.randomizer)),
        ("reports", _reports(part)),
        ("rounds", f"{rounds:,}"),
        limit_row(mechanism),
    ]


def limit_row(mechanism: Any) -> tuple[str, str]:
    """A row of the answer: the Gaussian limit of many people. No certificate."""
    mu = mechanism.gaussian_limit().upper
    return "limit", f"mu {mu:.3g}, shuffle index {shuffle_index(mechanism):.3g}"


def limit_fields(mechanism: Any) -> dict[str, Any]:
    """The same for JSON, in full."""
    mu = mechanism.gaussian_limit()
    ends = {"lower": mu.lower, "upper": mu.upper}
    return {"gaussian_limit_mu": ends, "shuffle_index": shuffle_index(mechanism)}


def shuffle_index(mechanism: Any) -> float:
    """Of the randomizer of all rounds."""
    ((part, _),) = mechanism.parts
    return float(part.shuffle_index)


def _reports(part: Any) -> str:
    """How many, who sends them, and how many of those people are relied on."""
    if part.rate is not None:
        sent = (
            f"about {part.n:,} in each round, {part.population:,} users flip a coin of {written(part.rate)}"
        )
    elif part.population is not None:
        sent = f"{part.n:,} in each round, a fresh cohort of {part.population:,} users"
    else:
        sent = f"{part.n:,} in each round"
    return sent if part.honest_fraction == 1.0 else f"{sent}; {part.honest:,} users are honest"
