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
    "rate": ("The rate", False, 0, 1, ""),
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
    poisson: bool
    rate: Fraction | None
    delta: float
    honest_fraction: Fraction
    dropout: Fraction

    @property
    def received(self) -> int:
        """Reports that arrive in a round, or are expected."""
        if self.rate is not None:
            return _expected(self.rate, self.crowd or 0)
        return math.floor(self.n * (1 - self.dropout))

    @property
    def honest(self) -> int:
        """Reports of a round that hide somebody."""
        return math.floor(self.received * self.honest_fraction)

    @property
    def crowd(self) -> int | None:
        """The population, smaller like the cohort: nobody is asked more rarely because others are silent."""
        if self.population is None:
            return None
        if self.rate is not None:
            return math.floor(self.population * (1 - self.dropout))
        return self.population * self.received // self.n

    @cached_property
    def randomizer(self) -> Any:
        return self.entry.load()(**dict(self.arguments))

    @property
    def one(self) -> Shuffled:
        """One round."""
        if self.honest < 1:
            raise QuestionError(
                "No honest report is left in a round: nobody hides anybody.", "honest_fraction"
            )
        one = Shuffled(self.randomizer, n=self.received, honest_fraction=float(self.honest_fraction))
        if self.crowd is not None:
            one = one.sampled_from(self.crowd, poisson=self.poisson, rate=self.coin)
        return one

    @property
    def mechanism(self) -> Mechanism:
        """All rounds."""
        return self.rounds * self.one

    @property
    def coin(self) -> float | None:
        """The rate as the library takes it."""
        return None if self.rate is None else float(self.rate)

    @property
    def link(self) -> dict[str, str]:
        """The question in few words, for a link: read again, it is the same question."""
        takes = self.entry.takes
        named = dict(self.arguments)
        found = {self.entry.option: _text(named.pop(takes.name)) if takes else "1"}
        found |= {name.replace("_", "-"): _text(value) for name, value in named.items()}
        found |= {"n": str(self.n)} if self.rate is None else {"rate": _text(float(self.rate))}
        found |= {"rounds": str(self.rounds), "delta": _text(self.delta)}
        if self.population is not None:
            found["population"] = str(self.population)
        if self.poisson:
            found["poisson"] = "1"
        if self.honest_fraction != 1:
            found["honest-fraction"] = _text(float(self.honest_fraction))
        if self.dropout:
            found["dropout"] = _text(float(self.dropout))
        return {"v": str(VERSION), **found}


def _expected(rate: Fraction, people: int) -> int:
    """As many as ``sampled_from`` counts on; none of nobody."""
    return max(1, math.floor(rate * people)) if people else 0


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
    poisson = _flag("poisson", asked.pop("poisson", None))
    if asked.get("rate") not in (None, ""):
        asked["n"] = _expected_of(asked, poisson)
    knobs = {name: _knob(name, asked.pop(name, None)) for name in _KNOBS}
    if asked:
        raise QuestionError(f"{sorted(asked)[0][:40]!r} does not go with {entry.option}.")
    if poisson and knobs["population"] is None:
        raise QuestionError("Those who flip coins are a population: how many are they?", "population")
    question = Question(entry, tuple(arguments.items()), poisson=poisson, **knobs)
    if question.population is not None and question.population < question.n:
        raise QuestionError("The population must be at least the people in one round.", "population")
    return question


def _expected_of(asked: dict[str, Any], poisson: bool) -> int:
    """The people in one round where a rate stands in place of their number."""
    if asked.get("n") not in (None, "") or poisson:
        raise QuestionError("A rate stands in place of n and poisson: leave them out.", "rate")
    people = _knob("population", asked.get("population"))
    if people is None:
        raise QuestionError("Those who flip coins are a population: how many are they?", "population")
    return _expected(_knob("rate", asked["rate"]), people)


def _flag(name: str, value: Any) -> bool:
    if str(value).lower() not in ("none", "", "0", "1", "false", "true"):
        raise QuestionError(f"{name} must be 1 or 0, got {str(value)[:40]}.", name)
    return str(value).lower() in ("1", "true")


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
    if name == "rate" and number == 0:
        raise QuestionError("The rate must be above 0: nobody takes part.", name)
    return _share(value) if name in ("honest_fraction", "dropout", "rate") else number


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
    made = f"n={question.received:_}" if question.rate is None else "n=1"
    if question.honest_fraction != 1:
        made += f", honest_fraction={float(question.honest_fraction)!r}"
    coins = ", poisson=True" if question.poisson else f", rate={question.coin!r}" if question.rate else ""
    cohort = "" if question.crowd is None else f".sampled_from({question.crowd:_}{coins})"
    rounds = "one" if question.rounds == 1 else f"({question.rounds:_} * one)"
    return (
        "import shuffledp as sdp\n\n"
        f"randomizer = sdp.{question.entry.name}({arguments})\n"
        f"one = sdp.Shuffled(randomizer, {made}){cohort}\n"
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
    words.append(f"--n {question.received}" if question.coin is None else f"--rate {_text(question.coin)}")
    if question.rounds > 1:
        words.append(f"--rounds {question.rounds}")
    if question.crowd is not None:
        words.append(f"--population {question.crowd}{' --poisson' if question.poisson else ''}")
    if question.honest_fraction != 1:
        words.append(f"--honest-fraction {_text(float(question.honest_fraction))}")
    return " ".join([*words, f"--delta {_text(question.delta)}"]) + "\n"


def _literal(value: Any) -> str:
    return f"{value:_}" if isinstance(value, int) else repr(value)
