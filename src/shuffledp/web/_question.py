"""A question of the calculator: names are those of the command line's options, values as people type them.

And the same question as code, which gives the same number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

from shuffledp._digits import as_typed, written
from shuffledp.accounting.mechanism import Mechanism, Shuffled
from shuffledp.errors import QuestionError
from shuffledp.randomizers.registry import Parameter, Registration, registered

VERSION = 1
"""Of the format of questions, which links carry."""
_MOST_ROUNDS = 10**6
_MOST_LEVELS = 64  # speed: of noise on a grid
_KNOBS = {  # name: (label, whole number, least, most, default)
    "n": ("People in one round", True, 1, 2**53, None),
    "rounds": ("Rounds", True, 1, _MOST_ROUNDS, 1),
    "population": ("The population", True, 1, 2**53, ""),
    "delta": ("delta", False, 0, 1, None),
    "honest_fraction": ("The honest share", False, 0, 1, 1),
    "dropout": ("The share that drops out", False, 0, 1, 0),
}
_EPSILON0 = Parameter("epsilon0", float, help="Local epsilon of one report", most=300)
_NOT_KNOBS = ("v", "ask", "target")


@dataclass(frozen=True)
class Question:
    """What was asked, read and checked."""

    entry: Registration
    arguments: tuple[tuple[str, Any], ...]
    n: int
    rounds: int
    population: int | None
    delta: float
    honest_fraction: Fraction
    dropout: Fraction

    @property
    def received(self) -> int:
        """Reports that arrive in a round."""
        return math.floor(self.n * (1 - self.dropout))

    @property
    def honest(self) -> int:
        """Reports of a round that hide somebody."""
        return math.floor(self.received * self.honest_fraction)

    @property
    def crowd(self) -> int | None:
        """The population, smaller like the cohort: nobody is asked more rarely because others are silent."""
        return None if self.population is None else self.population * self.received // self.n

    @cached_property
    def randomizer(self) -> Any:
        return self.entry.load()(**dict(self.arguments))

    @property
    def mechanism(self) -> Mechanism:
        """All rounds."""
        if self.honest < 1:
            raise QuestionError(
                "No honest report is left in a round: nobody hides anybody.", "honest_fraction"
            )
        honest = float(self.honest_fraction)
        one = Shuffled(self.randomizer, n=self.received, population=self.crowd, honest_fraction=honest)
        return self.rounds * one

    @property
    def link(self) -> dict[str, str]:
        """The question in few words, for a link: read again, it is the same question."""
        takes = self.entry.takes
        named = dict(self.arguments)
        found = {self.entry.option: _text(named.pop(takes.name)) if takes else "1"}
        found |= {name.replace("_", "-"): _text(value) for name, value in named.items()}
        found |= {"n": str(self.n), "rounds": str(self.rounds), "delta": _text(self.delta)}
        if self.population is not None:
            found["population"] = str(self.population)
        if self.honest_fraction != 1:
            found["honest-fraction"] = _text(float(self.honest_fraction))
        if self.dropout:
            found["dropout"] = _text(float(self.dropout))
        return {"v": str(VERSION), **found}


def _text(value: Any) -> str:
    return str(value) if isinstance(value, int) else written(value)


def offered() -> list[Registration]:
    """The randomizers that can be asked about: all but those that are read from a file."""
    return [entry for entry in registered() if not (entry.takes and entry.takes.type == "file")]


def parameters(entry: Registration) -> list[Parameter]:
    """What is asked about a randomizer, its own number first."""
    own = [] if entry.takes is None else [entry.takes]
    return [*own, *([_EPSILON0] if "epsilon0" in entry.local else []), *entry.details]


def read(given: Mapping[str, Any]) -> Question:
    """The question; QuestionError with a sentence where it is none."""
    asked = {str(name).replace("-", "_"): value for name, value in given.items()}
    if (version := asked.pop("v", VERSION)) not in (VERSION, str(VERSION)):
        raise QuestionError(
            f"This is a question of format {str(version)[:20]!r}; format {VERSION} is known here."
        )
    for name in _NOT_KNOBS:
        asked.pop(name, None)
    chosen = [entry for entry in offered() if entry.option.replace("-", "_") in asked]
    if len(chosen) != 1:
        names = ", ".join(entry.option for entry in chosen) or "none"
        raise QuestionError(f"Choose one randomizer; chosen: {names}.", "randomizer")
    (entry,) = chosen
    arguments = dict(_arguments(entry, asked))
    knobs = {name: _knob(name, asked.pop(name, None)) for name in _KNOBS}
    if asked:
        raise QuestionError(f"{sorted(asked)[0][:40]!r} does not go with {entry.option}.")
    question = Question(entry, tuple(arguments.items()), **knobs)
    if question.population is not None and question.population < question.n:
        raise QuestionError("The population must be at least the people in one round.", "population")
    return question


def _arguments(entry: Registration, asked: dict[str, Any]) -> list[tuple[str, Any]]:
    """Arguments of the class; those that are read are taken out of ``asked``."""
    flag = asked.pop(entry.option.replace("-", "_"))
    found = []
    for one in parameters(entry):
        value = flag if one is entry.takes else asked.pop(one.name, None)
        optional = one in entry.details
        if optional and value in (None, ""):
            continue
        label = {"epsilon0": "Local epsilon of one report", "k": "The number of answers"}.get(
            one.name, one.name
        )
        most = _MOST_LEVELS if one.name == "levels" else one.most
        found.append((one.name, _number(value, label, one.type is int, one.least, most, one.name)))
    return found


def _knob(name: str, value: Any) -> Any:
    label, whole, least, most, default = _KNOBS[name]
    if value in (None, ""):
        if default is None:
            raise QuestionError(f"{label} must be given.", name)
        value = default
    if value == "":
        return None
    number = _number(value, label, whole, least, most, name)
    return _share(value) if name in ("honest_fraction", "dropout") else number


def _share(value: Any) -> Fraction:
    """Exactly what was typed: 0.9 of 20,000 is 18,000."""
    return Fraction(as_typed(value))


def _number(value: Any, label: str, whole: bool, least: float, most: float, knob: str) -> Any:
    number = Decimal("nan") if isinstance(value, bool) else as_typed(value)
    if number.is_nan() or not least <= number <= most or (whole and number % 1):
        kind = "a whole number" if whole else "a number"
        top = (
            ""
            if math.isinf(most)
            else f" to {'2^53' if most == 2**53 else '2^40' if most == 2**40 else f'{most:,}'}"
        )
        raise QuestionError(f"{label} must be {kind} from {least:,}{top}, got {str(value)[:40]}.", knob)
    return int(number) if whole else float(number)


def python(question: Question, shown: str) -> str:
    """A program that prints the number."""
    arguments = ", ".join(f"{name}={_literal(value)}" for name, value in question.arguments)
    cohort = "" if question.crowd is None else f", population={question.crowd:_}"
    if question.honest_fraction != 1:
        cohort += f", honest_fraction={float(question.honest_fraction)!r}"
    rounds = "one" if question.rounds == 1 else f"({question.rounds:_} * one)"
    return (
        "import shuffledp as sdp\n\n"
        f"randomizer = sdp.{question.entry.name}({arguments})\n"
        f"one = sdp.Shuffled(randomizer, n={question.received:_}{cohort})\n"
        f"bound = {rounds}.epsilon(delta={question.delta!r})\n"
        f"print(float(bound))  # the upper end, at most {shown}\n"
    )


def shell(question: Question) -> str:
    """A command."""
    named = dict(question.arguments)
    takes = question.entry.takes
    own = f" {_text(named.pop(takes.name))}" if takes else ""
    words = ["shuffledp", "epsilon", f"--{question.entry.option}{own}"]
    words += [f"--{name.replace('_', '-')} {_text(value)}" for name, value in named.items()]
    words.append(f"--n {question.received}")
    if question.rounds > 1:
        words.append(f"--rounds {question.rounds}")
    if question.crowd is not None:
        words.append(f"--population {question.crowd}")
    if question.honest_fraction != 1:
        words.append(f"--honest-fraction {_text(float(question.honest_fraction))}")
    return " ".join([*words, f"--delta {_text(question.delta)}"]) + "\n"


def _literal(value: Any) -> str:
    return f"{value:_}" if isinstance(value, int) else repr(value)
