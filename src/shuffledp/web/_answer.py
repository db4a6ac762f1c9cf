"""Answers to the calculator's questions, each part by itself so that the number comes first.

Numbers are in full beside the texts that are shown, which are rounded outward by ``_digits``. Errors are
those of the randomization, for the people who report; 95 of 100 surveys are within the margin (a normal
approximation, for the worst shares or values).
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from shuffledp import __version__
from shuffledp._digits import as_typed, rounded_down, rounded_up, written
from shuffledp._json import plain
from shuffledp.accounting.calibration import Calibration, calibrate
from shuffledp.accounting.statement import factor
from shuffledp.collecting._intervals import quantile
from shuffledp.errors import LongWorkWarning, QuestionError, ShuffledpError
from shuffledp.randomizers.frequency import two_probabilities
from shuffledp.web._question import Question, offered, parameters, python, read, shell

SHARES = ("1", "0.95", "0.9", "0.8", "0.5")
"""Of honest people, in the table of what-ifs."""
DEFAULT = {"krr": "5", "epsilon0": "3", "n": "20000", "rounds": "12", "delta": "1e-7"}
"""The question that the page opens with."""
_MOST_LOCAL = 12.0  # for a wanted error: beyond, reports are not protected in any useful sense
_CONFIDENCE = 0.95
_VALUES = 8  # values tried between two grid points
_POINTS, _BEYOND, _CURVE_TOLERANCE = 33, 1.6, 0.01  # of the curve: how many, up to which epsilon, how fine


def answer(question: Mapping[str, Any]) -> dict[str, Any]:
    """The part ``question["ask"]`` of the answer: epsilon (the default), curve, compare, honest or target.

    A question without an answer gets ``{"refusal": sentence, "knob": what is to blame}``."""
    start = time.perf_counter()
    try:
        if not isinstance(question, Mapping):
            raise QuestionError("A question is an object of names and values.")
        ask = str(question.get("ask", "epsilon"))
        if ask not in _PARTS:
            raise QuestionError(f"ask must be one of {', '.join(_PARTS)}, got {ask[:40]!r}.")
        read_question = read(question)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LongWorkWarning)  # the page shows that it works, and for how long
            found = _PARTS[ask](read_question, question)
    except QuestionError as error:
        return {"refusal": str(error), "knob": error.knob, "version": __version__}
    except (ShuffledpError, ValueError, TypeError, OverflowError, ArithmeticError) as error:
        return {"refusal": _sentence(error), "knob": "", "version": __version__}
    seconds = time.perf_counter() - start
    whole: dict[str, Any] = plain(
        found | {"link": read_question.link, "version": __version__, "seconds": seconds}
    )
    return whole


def catalogue() -> list[dict[str, Any]]:
    """The randomizers and their parameters, for the page's knobs."""

    def described(one: Any, optional: bool) -> dict[str, Any]:
        kind = {"whole": one.type is int, "most": None if math.isinf(one.most) else one.most}
        return {"name": one.name, "help": one.help, "least": one.least, "optional": optional} | kind

    return [
        {
            "option": entry.option,
            "summary": entry.summary,
            "takes": entry.takes.name if entry.takes else None,
            "parameters": [described(one, one in entry.details) for one in parameters(entry)],
        }
        for entry in offered()
    ]


def _sentence(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def _epsilon(question: Question, _: Mapping[str, Any]) -> dict[str, Any]:
    """The one number, what it means and rests on, and what can be copied."""
    statement = question.mechanism.statement(delta=question.delta)
    low, high = statement.bound
    short, long = error_sentence(question.randomizer, question.received)
    local = question.randomizer.facts().epsilon0.upper
    return {
        "epsilon": {"lower": low, "upper": high, "shown": rounded_up(high), "shown_lower": rounded_down(low)},
        "delta": written(question.delta),
        "analysis": statement.analysis,
        "meaning": statement.meaning,
        "assumption": statement.assumption,
        "without": _without(local, question.rounds),
        "honest": question.honest,
        **_limit(question),
        "warnings": list(statement.warnings),
        "error": {
            "shown": short,
            "sentence": long,
            "margin": error_margin(question.randomizer, question.received),
        },
        "statement": {"plain": statement.plain, "formal": statement.formal},
        "registry": statement.registry(),
        "python": python(question, rounded_up(high)),
        "shell": shell(question),
    }


def _without(local: float, rounds: int) -> str:
    if math.isinf(local):
        return "Without the shuffler nothing could be promised: a single report may give its sender away."
    return f"Without the shuffler the same reports would allow a factor of {factor(rounds * local)}."


def _limit(question: Question) -> dict[str, Any]:
    """The Gaussian limit of many people, as the command line shows it. No certificate."""
    mu, index = question.mechanism.gaussian_limit(), float(question.one.shuffle_index)
    return {
        "limit": f"mu {mu.upper:.3g}, shuffle index {index:.3g}",
        "gaussian_limit_mu": {"lower": mu.lower, "upper": mu.upper},
        "shuffle_index": index,
    }


def _curve(question: Question, _: Mapping[str, Any]) -> dict[str, Any]:
    """delta over epsilon, with its band."""
    mechanism = question.mechanism
    top = mechanism.upper_epsilon(delta=question.delta, tolerance=_CURVE_TOLERANCE)
    if not 0.0 < top < math.inf:
        return {"points": [], "at": {"epsilon": top, "delta": question.delta}}
    grid = [_BEYOND * top * i / (_POINTS - 1) for i in range(_POINTS)]
    low, high = mechanism.delta(epsilon=grid, tolerance=_CURVE_TOLERANCE)
    points = [list(point) for point in zip(grid, low.tolist(), high.tolist(), strict=True)]
    return {"points": points, "at": {"epsilon": top, "delta": question.delta}}


def _compare(question: Question, _: Mapping[str, Any]) -> dict[str, Any]:
    """Every published bound beside ours, the smallest first."""
    from shuffledp.literature._case import UNSOUND
    from shuffledp.literature.compare import compare

    if question.delta == 0.0:
        raise QuestionError("Published bounds are compared at a delta above zero.", "delta")
    found = compare(question.mechanism, delta=question.delta)
    rows = [
        {
            "bound": row.bound,
            "value": row.value,
            "shown": rounded_up(row.value, 4),
            "soundness": row.soundness,
            "unsound": row.soundness == UNSOUND,
            "certified": row.note == "certified numerically",
            "theorem": row.theorem,
            "note": row.note,
        }
        for row in found
    ]
    ends = {"lower": found.lower, "shown_lower": rounded_down(found.lower, 4)}
    return {"rows": rows, "left_out": found.left_out, **ends}


def _honest(question: Question, _: Mapping[str, Any]) -> dict[str, Any]:
    """epsilon where fewer people are honest: dishonest people and drop-outs together."""

    def row(share: str) -> dict[str, Any]:
        here = replace(question, honest_fraction=Fraction(1), dropout=1 - Fraction(share))
        upper = here.mechanism.upper_epsilon(delta=question.delta)
        return {"share": share, "honest": here.honest, "upper": upper, "shown": rounded_up(upper)}

    return {"rows": [row(share) for share in SHARES if Fraction(share) * question.n >= 1]}


def _target(question: Question, given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameter that meets a wanted epsilon, or a wanted error of the survey."""
    wanted = given.get("target")
    if not isinstance(wanted, Mapping):
        raise QuestionError("A target is an object with epsilon or margin.", "target")
    if "margin" in wanted:
        return _from_error(question, _positive(wanted["margin"], "The wanted error"))
    epsilon = _positive(wanted.get("epsilon"), "The wanted epsilon")
    unknown = str(wanted.get("solve_for", "epsilon0"))
    if unknown not in ("epsilon0", "n", "rounds"):
        raise QuestionError("solve_for must be one of epsilon0, n and rounds.", "target")
    found = _calibrated(question, unknown, epsilon)
    value, shown = _solution(question, unknown, found)
    upper = found.epsilon.upper
    name = {"epsilon0": "Local epsilon", "n": "People in one round", "rounds": "Rounds"}[unknown]
    sentence = f"{name} {shown}: epsilon is at most {rounded_up(upper)}."
    return _solved(unknown, value, shown, sentence, upper)


def _solved(*found: Any) -> dict[str, Any]:
    return dict(zip(("parameter", "value", "shown", "sentence", "upper"), found, strict=True))


def _calibrated(question: Question, unknown: str, epsilon: float) -> Calibration:
    target: dict[str, Any] = {"epsilon": epsilon, "delta": question.delta, "solve_for": unknown}
    if unknown == "n" and question.crowd is not None:
        raise QuestionError(
            "The more of a population are asked, the more is told: the fewest that will do are one, or none. "
            "Leave the population empty, or find something else.",
            "target",
        )
    counts: dict[str, Any] = {"n": question.received, "rounds": question.rounds, "population": question.crowd}
    counts |= {"poisson": question.poisson, "rate": question.coin}
    counts.pop(unknown, None)
    if question.coin is not None:
        del counts["n"]
    counts["honest_fraction"] = float(question.honest_fraction)
    if unknown != "epsilon0":
        return calibrate(question.randomizer, **target, **counts)
    if "epsilon0" not in question.entry.local:
        raise QuestionError(f"{question.entry.option} has no local epsilon to be found.", "target")
    others = {name: value for name, value in question.arguments if name != "epsilon0"}
    return calibrate(question.entry.load(), **target, **counts, **others)


def _solution(question: Question, unknown: str, found: Calibration) -> tuple[Any, str]:
    """To the safe side: a local epsilon is rounded down; enough people are asked that enough are honest."""
    if unknown == "epsilon0":
        shown = rounded_down(found.value)
        return float(shown), shown
    value = int(found.value)
    if unknown == "n":
        value = math.ceil(value / (1 - question.dropout))
    return value, f"{value:,}"


def _from_error(question: Question, wanted: float) -> dict[str, Any]:
    """The smallest local epsilon with at most this error (a share: 0.01 is one point), and its epsilon."""
    if "epsilon0" not in question.entry.local or error_variance(question.randomizer) is None:
        raise QuestionError(
            "The error of this randomizer is not known: choose one that estimates something.", "target"
        )
    kind, others = question.entry.load(), dict(question.arguments)

    def make(epsilon0: float) -> Any:
        return kind(**others | {"epsilon0": epsilon0})

    found = least_epsilon0(make, question.received, wanted, _MOST_LOCAL)
    if found is None:
        raise QuestionError(
            f"{question.received:,} reports cannot have so small an error, not even at a local epsilon of "
            f"{_MOST_LOCAL:g}, where they are hardly random.",
            "target",
        )
    shown = rounded_up(found)
    there = replace(question, arguments=tuple((others | {"epsilon0": float(shown)}).items()))
    upper = there.mechanism.upper_epsilon(delta=question.delta)
    sentence = f"Local epsilon {shown} has this error: it costs epsilon {rounded_up(upper)}."
    return _solved("epsilon0", float(shown), shown, sentence, upper)


def _positive(value: Any, label: str) -> float:
    number = as_typed(value)
    if number.is_nan() or not 0 < number < 10**6:
        raise QuestionError(f"{label} must be a number above 0, got {str(value)[:40]}.", "target")
    return float(number)


def error_variance(randomizer: Any) -> float | None:
    """Of what one report says about a share, a mean (of the range), or a mean vector; None: not known."""
    known = two_probabilities(randomizer)
    if known is not None:
        p, q = known
        return max(p * (1.0 - p), q * (1.0 - q)) / (p - q) ** 2 if p > q else math.inf
    if hasattr(randomizer, "levels"):
        values = np.linspace(randomizer.low, randomizer.high, _VALUES * randomizer.levels + 1)
        return float(np.max(randomizer.variance(values)) / (randomizer.high - randomizer.low) ** 2)
    if hasattr(randomizer, "second_moment"):
        return float(randomizer.variance())
    return None


def error_margin(randomizer: Any, n: int) -> float | None:
    """Of 95 in 100 surveys of n reports; for vectors the typical length of the error."""
    known = error_variance(randomizer)
    if known is None or n < 1:
        return None
    scale = 1.0 if hasattr(randomizer, "second_moment") else quantile(_CONFIDENCE)
    return scale * math.sqrt(known / n)


def error_sentence(randomizer: Any, n: int) -> tuple[str, str]:
    """(the error in a word, what it means)."""
    off = error_margin(randomizer, n)
    if off is None:
        return "", "Nothing is known of the error of a randomizer that is known by its local epsilon alone."
    if math.isinf(off):
        return "", "Reports do not depend on the answers: the survey learns nothing."
    if hasattr(randomizer, "second_moment"):
        return f"{rounded_up(off, 2)}", (
            f"The mean of {n:,} vectors of length at most {rounded_up(randomizer.longest, 3)} is estimated "
            f"in each round with an error of length {rounded_up(off, 2)} (root mean square)."
        )
    if two_probabilities(randomizer) is None:
        return f"± {rounded_up(100.0 * off, 2)} %", (
            f"The mean of {n:,} numbers is estimated in each round to within {rounded_up(100.0 * off, 2)} % "
            "of their range, 95 times in 100."
        )
    return f"± {rounded_up(100.0 * off, 2)} points", (
        f"Each share is estimated in each round to within {rounded_up(100.0 * off, 2)} percentage points, 95 "
        f"times in 100, from {n:,} reports."
    )


def least_epsilon0(make: Callable[[float], Any], n: int, wanted: float, most: float) -> float | None:
    """The smallest local epsilon with a margin of at most ``wanted``; None if even ``most`` misses it."""

    def good(epsilon0: float) -> bool:
        off = error_margin(make(epsilon0), n)
        return off is not None and off <= wanted

    if not good(most):
        return None
    low, high = 0.0, most
    while high - low > 1e-4 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if good(middle) else (middle, high)
    return high


_PARTS: dict[str, Callable[[Question, Mapping[str, Any]], dict[str, Any]]] = {
    "epsilon": _epsilon,
    "curve": _curve,
    "compare": _compare,
    "honest": _honest,
    "target": _target,
}
