"""``shuffledp epsilon``: the smallest epsilon at a delta."""

from __future__ import annotations

from typing import Any

from shuffledp.cli.options import PROBABILITY, command, option
from shuffledp.cli.questions import ask, question_options

EXAMPLE = """
$ shuffledp epsilon --krr 16 --epsilon0 4 --n 1e6 --rounds 30 --delta 1e-8
epsilon <= 0.23754 at delta = 1e-8
"""
QUESTION = "The delta at which epsilon is asked for."


@command(section="Accounting", example=EXAMPLE)
@option("--delta", PROBABILITY, QUESTION, group="Question", required=True)
@question_options
def epsilon(delta: float, **given: Any) -> None:
    """The smallest epsilon at a given delta."""
    ask("epsilon", "delta", delta, given)
