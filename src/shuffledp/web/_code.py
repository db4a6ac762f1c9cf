"""The same question as code: it gives the same number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shuffledp._digits import written

if TYPE_CHECKING:
    from shuffledp.web._question import Question


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
    own = f" {_typed(named.pop(takes.name))}" if takes else ""
    words = ["shuffledp", "epsilon", f"--{question.entry.option}{own}"]
    words += [f"--{name.replace('_', '-')} {_typed(value)}" for name, value in named.items()]
    words.append(f"--n {question.received}")
    if question.rounds > 1:
        words.append(f"--rounds {question.rounds}")
    if question.crowd is not None:
        words.append(f"--population {question.crowd}")
    if question.honest_fraction != 1:
        words.append(f"--honest-fraction {_typed(float(question.honest_fraction))}")
    return " ".join([*words, f"--delta {_typed(question.delta)}"]) + "\n"


def _literal(value: Any) -> str:
    return f"{value:_}" if isinstance(value, int) else repr(value)


def _typed(value: Any) -> str:
    return str(value) if isinstance(value, int) else written(value)
