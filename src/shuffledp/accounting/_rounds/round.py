"""One shuffled round as the accountant sees it.

A mechanism is a list of rounds with counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shuffledp.accounting._curves.clones import CloneProfile
from shuffledp.accounting._curves.cohort_pair import CohortPair
from shuffledp.accounting._curves.groups import GroupsProfile
from shuffledp.accounting._curves.near import NearProfile
from shuffledp.accounting._curves.profile import PrivacyProfile
from shuffledp.accounting._witnesses import Witness

SMALLEST_DELTA = 1e-280
"""Below this, numbers under- or overflow: the pure bound is given instead."""
EXACT = 1e-10
"""Relative: the accuracy for a single user."""


@dataclass(frozen=True)
class Round:
    """One round: its profile, its witnesses and its pure epsilon (delta = 0 from there on).

    ``attained``: the loss of some outcome of the witnesses, rounded down (the answer at delta = 0).
    ``alone``: a single user. There is no crowd to sum over and answers are exact."""

    profile: PrivacyProfile
    witnesses: tuple[Witness | CloneProfile | GroupsProfile | NearProfile | CohortPair, ...]
    pure: float
    attained: float
    alone: bool = False


Rounds = Sequence[tuple[Round, int]]


def is_single(rounds: Rounds) -> bool:
    return len(rounds) == 1 and rounds[0][1] == 1
