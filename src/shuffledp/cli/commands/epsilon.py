from __future__ import annotations

from typing import Any

from shuffledp.cli.files import output_option
from shuffledp.cli.options import PROBABILITY, command, option
from shuffledp.cli.questions import ask, question_options, verify_options

EXAMPLE = """
$ shuffledp epsilon --krr 16 --epsilon0 4 --n 1e6 --rounds 30 --delta 1e-8
epsilon <= 0.23748 at delta = 1e-8

$ shuffledp epsilon --krr 5 --epsilon0 3 --n 2e4 --delta 1e-7 --statement policy.txt
epsilon <= 0.16539 at delta = 1e-7
"""
QUESTION = "The delta at which epsilon is asked for."


@command(section="Accounting", example=EXAMPLE)
@option("--delta", PROBABILITY, QUESTION, group="Question", required=True)
@question_options
@output_option(
    "--statement statement_file",
    "Write what may be said: text, .json, or .yaml (OpenDP Deployments Registry).",
)
@verify_options
def epsilon(delta: float, **given: Any) -> None:
    """The smallest epsilon at a given delta."""
    ask("epsilon", "delta", delta, given)
