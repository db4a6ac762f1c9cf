"""The randomizers of the command line: one entry of ``CHOICES`` each.

An entry says how the randomizer is chosen (``--krr 16``), which class of the library it is, and
which options give its local guarantee. Without a choice the answer is for any randomizer with the
given epsilon0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click

from shuffledp.cli.files import read_matrix
from shuffledp.cli.options import (
    EPSILON0,
    EXISTING_FILE,
    POSITIVE,
    POSITIVE_PROBABILITY,
    PROBABILITY,
    WHOLE,
    Given,
    Whole,
    option,
    stacked,
    wrong_usage,
)

GROUP = "Randomizer (one of these; none: any epsilon0-LDP randomizer)"
DETAILS = "Its parameters"


@dataclass(frozen=True)
class Choice:
    """A randomizer that can be chosen.

    Attributes:
        name: the option without its dashes.
        kind: module and class in ``shuffledp.randomizers``.
        help: one line.
        parameter: what the option's value is called by the class; None for a bare flag.
        type: the type of that value.
        metavar: how the help calls it.
        local: the options of which exactly one gives the local guarantee.
        extra: further options that may be given.
        read: from the option's value to the parameter.
    """

    name: str
    kind: str
    help: str
    parameter: str | None = None
    type: Any = None
    metavar: str | None = None
    local: tuple[str, ...] = ("epsilon0",)
    extra: tuple[str, ...] = ()
    read: Callable[[Any], Any] = lambda value: value

    @property
    def flag(self) -> str:
        """As it is typed."""
        return f"--{self.name}"

    def option(self) -> Callable[[Any], Any]:
        """The command line option."""
        return option(self.flag, self.type, self.help, group=GROUP, metavar=self.metavar)


CATEGORIES = Whole(least=2, most=2**40)
DIMENSION = Whole(most=2**40)


def _over_categories(name: str, kind: str, text: str, **settings: Any) -> Choice:
    """A randomizer of values out of K."""
    return Choice(name, kind, text, "k", CATEGORIES, "K", **settings)


def _over_vectors(name: str, kind: str, text: str) -> Choice:
    """A randomizer of vectors of dimension D."""
    return Choice(name, kind, text, "dimension", DIMENSION, "D")


ANY = Choice(
    "local",
    "local.LocalRandomizer",
    "Any randomizer, known by --epsilon0 and perhaps --total-variation.",
    extra=("total_variation",),
)

CHOICES = (
    _over_categories(
        "krr",
        "kary.KaryRandomizedResponse",
        "Randomized response over K values.",
        local=("epsilon0", "gamma"),
    ),
    Choice(
        "binary",
        "binary.BinaryRandomizedResponse",
        "Randomized response of one bit, analysed exactly.",
        local=("epsilon0", "gamma"),
    ),
    _over_categories(
        "unary", "unary.SymmetricUnaryEncoding", "One noisy bit per value (basic RAPPOR)."
    ),
    _over_categories(
        "oue", "unary.OptimisedUnaryEncoding", "One noisy bit per value, optimised (OUE)."
    ),
    _over_categories(
        "subset",
        "subset.SubsetSelection",
        "A random subset of K values.",
        extra=("size",),
    ),
    _over_categories("hadamard", "hadamard.HadamardResponse", "Hadamard response over K values."),
    _over_categories(
        "hashing",
        "hashing.OptimisedLocalHashing",
        "Optimised local hashing of K values.",
        extra=("symbols",),
    ),
    Choice(
        "laplace",
        "laplace.DiscreteLaplace",
        "Laplace noise on a bounded interval, on a grid.",
        extra=("levels",),
    ),
    Choice(
        "gaussian",
        "gaussian.DiscreteGaussian",
        "Gaussian noise on a bounded interval, on a grid; SIGMA in lengths of the interval.",
        parameter="sigma",
        type=POSITIVE,
        metavar="SIGMA",
        local=(),
        extra=("levels",),
    ),
    _over_vectors("privunit", "privunit.PrivUnit", "PrivUnit on the l2 ball of dimension D."),
    _over_vectors("linf", "linf.LInfinityRandomizer", "One sign of one coordinate out of D."),
    _over_vectors("l1", "l1.L1Randomizer", "One sign of one Hadamard row, dimension D."),
    Choice(
        "matrix",
        "matrix.FiniteRandomizer",
        "Output probabilities from a .csv, .json or .npy file, one row per input.",
        parameter="matrix",
        type=EXISTING_FILE,
        metavar="FILE",
        local=(),
        read=read_matrix,
    ),
    ANY,
)

DETAIL_OPTIONS = {
    "epsilon0": (EPSILON0, "Local epsilon of one report."),
    "gamma": (
        POSITIVE_PROBABILITY,
        "Instead of epsilon0: the chance of a uniformly random report.",
    ),
    "total_variation": (
        PROBABILITY,
        "Largest total variation distance between the reports of two inputs, with --local.",
    ),
    "size": (WHOLE, "Values in a reported subset, with --subset.  [default: the best]"),
    "levels": (WHOLE, "Steps of the grid, with --laplace (default 16) and --gaussian (default 8)."),
    "symbols": (WHOLE, "Prime number of hash values, with --hashing.  [default: the best]"),
}


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


randomizer_options = stacked(
    *(choice.option() for choice in CHOICES),
    *(
        option(_flag(name), kind, text, group=DETAILS, metavar="X")
        for name, (kind, text) in DETAIL_OPTIONS.items()
    ),
)


def chosen(given: Given) -> Choice:
    """The one choice that was made."""
    made = [choice for choice in CHOICES if given.get(choice.name) not in (None, False)]
    if len(made) > 1:
        flags = " and ".join(choice.flag for choice in made)
        raise click.UsageError(f"choose one randomizer, got {flags}.")
    return made[0] if made else ANY


def parameters(choice: Choice, given: Given, unknown: str | None = None) -> Given:
    """The keyword arguments of the class, but for the ``unknown`` that a calibration solves for."""
    details = {name: given[name] for name in DETAIL_OPTIONS if given.get(name) is not None}
    for name in details:
        if name not in (*choice.local, *choice.extra):
            raise click.UsageError(f"{_flag(name)} does not go with {choice.flag}.")
    local = [name for name in choice.local if name in details]
    if unknown is not None:
        _check_unknown(choice, unknown, local)
    elif choice.local and len(local) != 1:
        wanted = " or ".join(map(_flag, choice.local))
        raise click.UsageError(f"{choice.flag} needs {wanted}{', not both' if local else ''}.")
    if choice.parameter is not None:
        details[choice.parameter] = choice.read(given[choice.name])
    return details


def _check_unknown(choice: Choice, unknown: str, local: list[str]) -> None:
    if unknown not in choice.local:
        raise click.UsageError(f"--solve-for {unknown} does not go with {choice.flag}.")
    if local:
        raise click.UsageError(f"{unknown} is to be found: leave out {_flag(local[0])}.")


def kind_of(choice: Choice) -> type[Any]:
    """The class of the library."""
    module, name = choice.kind.split(".")
    kind: type[Any] = getattr(import_module(f"shuffledp.randomizers.{module}"), name)
    return kind


def randomizer_of(given: Given) -> Any:
    """The randomizer that the options describe."""
    choice = chosen(given)
    arguments = parameters(choice, given)
    with wrong_usage():
        return kind_of(choice)(**arguments)
