"""The registry: one entry per randomizer, and everybody who needs a list of them reads this one.

An entry gives a randomizer its option on the command line (``--krr 16``), its form in JSON, its place among
the candidates of a survey and its row in the reference. A randomizer of your own is registered in the file
that defines it:

    sdp.register(sdp.Registration("coin", NoisyCoin, "A noisy coin.", fields=("epsilon0",)))

and then works wherever ours do, once that file is imported (``shuffledp --load coin.py ...`` does that).

Constructors round to whole weights, so the arguments that are read off a randomizer might make one that
differs in the last bits. ``canonical`` is the one that makes itself again: clients and analyst then agree
on every probability.

>>> from shuffledp import KaryRandomizedResponse
>>> describe(KaryRandomizedResponse(k=4, epsilon0=2.0))
{'kind': 'KaryRandomizedResponse', 'k': 4, 'epsilon0': 2.0}
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

_SETTLES = 16  # descriptions of descriptions
_OPTION, _AS_CODE = re.compile(r"--[a-z0-9-]+"), r"`\g<0>`"


@dataclass(frozen=True)
class Parameter:
    """A parameter of a randomizer, as it is given on the command line.

    Attributes:
        name: of the constructor's argument.
        type: int, float or "file" (a matrix).
        metavar: how the help calls its value.
        help: one line; of the parameter that the randomizer's own option takes, none is needed.
        least, most: the range of values.
    """

    name: str
    type: type[int] | type[float] | str
    metavar: str = "X"
    help: str = ""
    least: float = 0
    most: float = math.inf


CATEGORIES = Parameter("k", int, "K", least=2, most=2**40)
DIMENSION = Parameter("dimension", int, "D", least=1, most=2**40)


@dataclass(frozen=True)
class Registration:
    """One randomizer.

    Attributes:
        option: its name on the command line, without dashes.
        kind: the class (ours: module and class, loaded when used).
        summary: one line, for the help and the reference.
        takes: the parameter that is the value of its option; None for a bare flag.
        local: the arguments of which exactly one gives the local guarantee.
        details: further parameters that may be given.
        fields: the arguments that make it again, for JSON; without any it cannot be written.
        survey: the most categories for which it is tried when a survey is planned; 0: never. It must be a
            class of ``k`` and ``epsilon0`` whose objects have ``support_probability``, ``estimate`` and so on
            (see FrequencyRandomizer).
    """

    option: str
    kind: type[Any] | str
    summary: str
    takes: Parameter | None = None
    local: tuple[str, ...] = ("epsilon0",)
    details: tuple[Parameter, ...] = ()
    fields: tuple[str, ...] = ()
    survey: int = 0

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9-]*", self.option):
            raise ValueError(f"option must be lower-case letters, digits and dashes, got {self.option!r}")

    @property
    def name(self) -> str:
        """The name of the class: its kind in JSON."""
        return self.kind.split(".")[1] if isinstance(self.kind, str) else self.kind.__name__

    def load(self) -> type[Any]:
        """The class."""
        if not isinstance(self.kind, str):
            return self.kind
        module, name = self.kind.split(".")
        found: type[Any] = getattr(import_module(f"shuffledp.randomizers.{module}"), name)
        return found


_MOST_SET = 4096  # categories of a report that is a set, one bit each
_MOST = 2**40


def _oracle(
    option: str, kind: str, summary: str, survey: int, *details: Parameter, **settings: Any
) -> Registration:
    """A randomizer of K categories, made again by ``k``, ``epsilon0`` and its details."""
    fields = ("k", "epsilon0", *(one.name for one in details))
    return Registration(
        option, kind, summary, CATEGORIES, details=details, fields=fields, survey=survey, **settings
    )


_CAP = ("cap_probability", "sampler")


def _vector(
    option: str, kind: str, summary: str, *more: str, details: tuple[Parameter, ...] = ()
) -> Registration:
    """A randomizer of vectors."""
    fields = ("dimension", "epsilon0", "radius", *more)
    return Registration(option, kind, summary, DIMENSION, details=details, fields=fields)


def _whole(name: str, text: str, least: int = 1) -> Parameter:
    return Parameter(name, int, help=text, least=least)


def _share(name: str, text: str) -> Parameter:
    return Parameter(name, float, help=text, most=1)


_SIZE = _whole("size", "Values in a reported subset, with --subset.  [default: the best]")
_SYMBOLS = _whole("symbols", "Prime number of hash values, with --hashing.  [default: the best]")
_LEVELS = _whole("levels", "Steps of the grid, with --laplace (default 16) and --gaussian (default 8).")
_BRANCHING = _whole("branching", "Children of a node, with --leveled.  [default: one level]", 2)
_CAPS = _share(
    "cap_probability",
    "Probability of the cap under the uniform law, with --privunit; groups share one.  [default: the best]",
)
_LEAKED = "With --local: what a report's probability may exceed e^epsilon0 times another input's by."
_LEAK = _share("delta0", _LEAKED)
_DISTANCE = "Largest total variation distance between the reports of two inputs, with --local."
_APART = _share("total_variation", _DISTANCE)
_EITHER = ("epsilon0", "gamma")
_INTERVAL = ("low", "high", "levels")

_REGISTERED = [
    _oracle("krr", "kary.KaryRandomizedResponse", "Randomized response over K values.", _MOST, local=_EITHER),
    Registration(
        "binary",
        "kary.BinaryRandomizedResponse",
        "Randomized response of one bit, analysed exactly.",
        local=_EITHER,
        fields=("epsilon0",),
    ),
    _oracle("subset", "subset.SubsetSelection", "A random subset of K values.", _MOST_SET, _SIZE),
    _oracle("unary", "unary.SymmetricUnaryEncoding", "One noisy bit per value (basic RAPPOR).", _MOST_SET),
    _oracle("oue", "unary.OptimisedUnaryEncoding", "One noisy bit per value, optimised (OUE).", _MOST_SET),
    _oracle("hadamard", "hadamard.HadamardResponse", "Hadamard response over K values.", _MOST),
    _oracle(
        "hashing", "hashing.OptimisedLocalHashing", "Optimised local hashing of K values.", _MOST, _SYMBOLS
    ),
    _oracle("leveled", "levels.LeveledResponse", "One level of a tree over K values.", 0, _BRANCHING),
    Registration(
        "laplace",
        "laplace.DiscreteLaplace",
        "Laplace noise on a bounded interval, on a grid.",
        details=(_LEVELS,),
        fields=("epsilon0", *_INTERVAL),
    ),
    Registration(
        "gaussian",
        "gaussian.DiscreteGaussian",
        "Gaussian noise on a bounded interval, on a grid; SIGMA in lengths of the interval.",
        Parameter("sigma", float, "SIGMA"),
        local=(),
        details=(_LEVELS,),
        fields=("sigma", *_INTERVAL),
    ),
    _vector(
        "privunit", "privunit.PrivUnit", "PrivUnit on the l2 ball of dimension D.", *_CAP, details=(_CAPS,)
    ),
    _vector("ramp", "leaning.RampUnit", "RampUnit on the l2 ball of dimension D.", "start"),
    _vector("gaussian-unit", "leaning.GaussianUnit", "Gaussian noise on vectors of dimension D.", "signal"),
    _vector("linf", "signs.LInfinityRandomizer", "One sign of one coordinate out of D."),
    _vector("l1", "signs.L1Randomizer", "One sign of one Hadamard row, dimension D."),
    Registration(
        "matrix",
        "matrix.FiniteRandomizer",
        "Output probabilities from a .csv, .json or .npy file, one row per input.",
        Parameter("matrix", "file", "FILE"),
        local=(),
    ),
    Registration(
        "local",
        "local.LocalRandomizer",
        "Any randomizer, known by --epsilon0 and perhaps --total-variation or --delta0.",
        details=(_APART, _LEAK),
    ),
]


_SEVERAL_MESSAGES = [
    Registration(
        "shares",
        "split_and_mix.SplitAndMix",
        "Random shares of a number with a share of noise.",
        fields=("levels", "scale", "people", "messages", "modulus"),
    ),
    Registration(
        "vector-shares",
        "split_vectors.SplitVectors",
        "Random shares of a vector with a share of noise.",
        fields=("dimension", "norm", "levels", "variance", "shares", "modulus"),
    ),
    Registration(
        "blanket-messages",
        "blanket_messages.BlanketMessages",
        "The own category, and random ones beside it.",
        fields=("k", "rate", "slots"),
    ),
    Registration(
        "hashed-messages",
        "hashed_messages.HashedMessages",
        "The own category's hash, and random ones beside it.",
        fields=("k", "rate", "slots", "buckets"),
    ),
]
"""What no command accounts for by itself, as it protects nobody alone: only written in plans."""


def register(entry: Registration) -> None:
    """Add a randomizer of your own; the same one again changes nothing."""
    for known in _REGISTERED:
        if known == entry:
            return
        if entry.option == known.option or entry.name == known.name:
            raise ValueError(
                f"a randomizer is registered once by option and class name, got {entry.option!r} and "
                f"{entry.name!r}, which {known.kind!r} has"
            )
    _REGISTERED.append(entry)


def registered() -> tuple[Registration, ...]:
    """All of them, ours first."""
    return tuple(_REGISTERED)


def survey_candidates(k: int) -> Iterator[type[Any]]:
    """The classes that a survey of k categories may choose among, the smallest reports first."""
    found = [entry for entry in _REGISTERED if entry.survey >= k]
    return (entry.load() for entry in sorted(found, key=lambda entry: -min(entry.survey, _MOST)))


def describe(randomizer: Any) -> dict[str, Any]:
    """Its name and arguments."""
    entry = _entry_of(randomizer)
    if entry is None:
        raise TypeError(
            f"randomizer must be one of {', '.join(_writable())} to be written as JSON (others after "
            f"shuffledp.register), got {randomizer!r}"
        )
    return {"kind": entry.name, **{name: getattr(randomizer, name) for name in entry.fields}}


def restore(description: Any) -> Any:
    """The randomizer of a description."""
    kind = description.get("kind") if isinstance(description, dict) else None
    entry = _writable().get(str(kind))
    if entry is None:
        raise ValueError(f"randomizer must be a description with a known kind, got {description!r}")
    if set(description) != {"kind", *entry.fields}:
        raise ValueError(f"the description of {kind} must hold {entry.fields}, got {description!r}")
    return entry.load()(**{name: description[name] for name in entry.fields})


def canonical(randomizer: Any) -> Any:
    """The randomizer that its own description makes; its epsilon0 is not larger.

    One that cannot be written is taken as it is."""
    if _entry_of(randomizer) is None:
        return randomizer
    for _ in range(_SETTLES):
        again = restore(describe(randomizer))
        if again == randomizer:
            return again
        randomizer = again
    raise ArithmeticError(f"the description of {randomizer!r} does not settle; please report this")


def reference_table() -> str:
    """The rows of the reference, in Markdown."""
    head = "| option | class | what it is | in JSON | candidate of a survey |\n|---|---|---|---|---|"
    rows = (
        f"| `--{entry.option}{f' {entry.takes.metavar}' if entry.takes else ''}` | `{entry.name}` | "
        f"{_OPTION.sub(_AS_CODE, entry.summary)} | {'yes' if entry.fields else 'no'} | "
        f"{_candidate(entry.survey)} |"
        for entry in _REGISTERED
    )
    return "\n".join([head, *rows])


def _candidate(most: int) -> str:
    return "no" if most == 0 else "yes" if most >= _MOST else f"up to {most:,} categories"


def _entry_of(randomizer: Any) -> Registration | None:
    """The entry that its class is registered with, if it can be written; a name alone is not enough."""
    entry = _writable().get(type(randomizer).__name__)
    return entry if entry is not None and entry.load() is type(randomizer) else None


def _writable() -> dict[str, Registration]:
    return {entry.name: entry for entry in [*_REGISTERED, *_SEVERAL_MESSAGES] if entry.fields}
