"""The randomizers of the command line: one option for every entry of the registry.

Without a choice the answer is for any randomizer with the given epsilon0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from shuffledp.cli.files import read_matrix
from shuffledp.cli.options import (
    EPSILON0,
    EXISTING_FILE,
    POSITIVE_PROBABILITY,
    Given,
    Real,
    Whole,
    option,
    stacked,
    wrong_usage,
)
from shuffledp.randomizers.registry import Parameter, Registration, registered

GROUP = "Randomizer (one of these; none: any epsilon0-LDP randomizer)"
DETAILS = "Its parameters"

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


def _choice(entry: Registration) -> Callable[[Any], Any]:
    if entry.takes is None:
        return option(f"--{entry.option}", None, entry.summary, group=GROUP)
    kind, metavar = _kind(entry.takes), entry.takes.metavar
    return option(f"--{entry.option}", kind, entry.summary, group=GROUP, metavar=metavar)


def _details() -> dict[str, tuple[Any, str]]:
    """Type and help of every parameter that some randomizer may be given."""
    known = {one.name: one for entry in registered() for one in entry.details}
    return _LOCAL | {name: (_kind(one), one.help) for name, one in known.items()}


randomizer_options = stacked(
    *map(_choice, registered()),
    *(
        option(_flag(name), kind, text, group=DETAILS, metavar="X")
        for name, (kind, text) in _details().items()
    ),
)


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
        _check_unknown(entry, unknown, local)
    elif entry.local and len(local) != 1:
        wanted = " or ".join(map(_flag, entry.local))
        if entry.option == "local" and not given.get("local"):
            raise click.UsageError(f"describe the randomizer: {wanted}, or one of its own options.")
        raise click.UsageError(f"--{entry.option} needs {wanted}{', not both' if local else ''}.")
    if entry.takes is not None:
        value = given[entry.option.replace("-", "_")]
        details[entry.takes.name] = read_matrix(value) if entry.takes.type == "file" else value
    return details


def _check_unknown(entry: Registration, unknown: str, local: list[str]) -> None:
    if unknown not in entry.local:
        raise click.UsageError(f"--solve-for {unknown} does not go with --{entry.option}.")
    if local:
        raise click.UsageError(f"{unknown} is to be found: leave out {_flag(local[0])}.")


def randomizer_of(given: Given) -> Any:
    """The randomizer that the options describe."""
    entry = chosen(given)
    arguments = parameters(entry, given)
    with wrong_usage():
        return entry.load()(**arguments)
