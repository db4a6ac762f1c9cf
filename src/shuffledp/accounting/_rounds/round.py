"""One shuffled round as the accountant sees it, and the lattice on which rounds are composed.

A mechanism is a list of rounds with counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shuffledp.accounting._curves.profile import PrivacyProfile
from shuffledp.accounting._rounds.loss import Lattice
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
    witnesses: tuple[Witness, ...]
    pure: float
    attained: float
    alone: bool = False


Rounds = Sequence[tuple[Round, int]]


def is_single(rounds: Rounds) -> bool:
    return len(rounds) == 1 and rounds[0][1] == 1


def lattice(rounds: Rounds, resolution: float, stride: int) -> Lattice:
    """One lattice for all rounds.

    Sampling at distance d adds about d^2/8 to the variance of a round's loss (d times its deviation
    if that is smaller): keep the sum below a share of the total. The largest loss is put on it."""
    scales = np.array(
        [min(part.profile.hints.scale, part.profile.epsilon_max / 8.0) for part, _ in rounds]
    )
    counts = np.array([count for _, count in rounds], dtype=np.float64)
    total = float((counts * scales * scales).sum())
    h = float(scales.max()) or 1e-3  # rounds whose every difference is seen at once have no scale
    for _ in range(200):
        added = float((counts * np.minimum(h * h, 8.0 * scales * h)).sum())
        if added <= 6.0 * resolution * total:
            break
        h *= 0.9
    h /= stride
    top = max(part.profile.epsilon_max for part, _ in rounds)
    on = 0.0 < top < math.inf and top / h < 1e7
    return Lattice(top / (stride * math.ceil(top / (h * stride))) if on else h, stride)
