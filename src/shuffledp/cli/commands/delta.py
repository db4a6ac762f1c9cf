from __future__ import annotations

from typing import Any

from shuffledp.cli.options import EPSILON, command, option
from shuffledp.cli.questions import ask, question_options, verify_options

EXAMPLE = """
$ shuffledp delta --binary --epsilon0 2 --n 10_000 --epsilon 0.1
delta <= 1.0956e-7 at epsilon = 0.1
"""
QUESTION = "The epsilon at which delta is asked for."


@command(section="Accounting", example=EXAMPLE)
@option("--epsilon", EPSILON, QUESTION, group="Question", required=True)
@question_options
@verify_options
def delta(epsilon: float, **given: Any) -> None:
    """The smallest delta at a given epsilon."""
    ask("delta", "epsilon", epsilon, given)
