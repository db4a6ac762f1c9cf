"""The rounds that the options describe, and which analysis answered for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from shuffledp.cli.command import option, stacked
from shuffledp.cli.numbers import TOLERANCE, WHOLE
from shuffledp.cli.randomizers import Given, described, randomizer_of

if TYPE_CHECKING:
    from shuffledp.accounting.mechanism import Mechanism

GROUP = "Rounds"
ANALYSES = ("best", "exact", "blanket", "clones", "clones-2021", "strong")

size_options = stacked(
    option("--n", type=WHOLE, metavar="N", help="Honest reports in one shuffle.", group=GROUP),
    option("--rounds", type=WHOLE, metavar="T", help="Adaptive rounds.  [default: 1]", group=GROUP),
    option(
        "--population",
        type=WHOLE,
        metavar="N",
        help="The n users are a fresh random cohort of so many, each round.",
        group=GROUP,
    ),
)

rounds_options = stacked(
    size_options,
    option(
        "--analysis",
        type=click.Choice(ANALYSES),
        default="best",
        metavar="NAME",
        help=f"One of {', '.join(ANALYSES)}.  [default: best]",
        group=GROUP,
    ),
    option(
        "--tolerance",
        type=TOLERANCE,
        default=1e-3,
        metavar="X",
        help="Numerical looseness allowed, relative.  [default: 0.001]",
        group=GROUP,
    ),
)


def mechanism_of(given: Given) -> Mechanism:
    """All rounds; errors of usage where the options do not describe any."""
    if given.get("n") is None:
        raise click.UsageError("Missing option '--n'.")
    return rounds_of(randomizer_of(given), given)


def rounds_of(randomizer: Any, given: Given) -> Mechanism:
    """The rounds of a randomizer."""
    from shuffledp import Shuffled

    def build() -> Mechanism:
        one = Shuffled(
            randomizer,
            n=given["n"],
            analysis=given.get("analysis", "best"),
            population=given["population"],
        )
        return one * (given["rounds"] or 1)

    mechanism: Mechanism = described(build)
    return mechanism


def analysis_used(mechanism: Mechanism, epsilon: float) -> str:
    """The analysis that is tightest for a round's share of a total ``epsilon``.

    The analyses that apply form a chain, each below the next for every epsilon: the share matters
    only where two of them agree, as all do from epsilon0 on, where delta is zero."""
    from shuffledp import NoCertificateError, Shuffled
    from shuffledp.accounting._curves.subsampled import subsampled_epsilon

    ((part, rounds),) = mechanism.parts
    assert isinstance(part, Shuffled)
    inside = subsampled_epsilon(0.5 * part.randomizer.epsilon0, part.fraction)
    try:
        return part.analysis_at(min(epsilon / rounds, inside, 700.0))
    except NoCertificateError:
        return part.analysis
