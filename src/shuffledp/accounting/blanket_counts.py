"""One round of a histogram with blanket messages: what its shuffled messages give away."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from shuffledp import _validate
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.accounting._rounds.round import Round
from shuffledp.accounting.mechanism import OneRound


@dataclass(frozen=True)
class BlanketCounts(OneRound):
    """n honest people send a category as it is, and ``slots`` further messages each that hide it.

    A slot holds any given category with probability ``clone``. *Adversary*: sees all shuffled messages and
    knows everybody else's category; *neighbours*: one person's category is another one. Both ends are those
    of one pair of laws, which is the truth for every pair of neighbours (Theorem T19).

    >>> BlanketCounts(n=10**6, slots=1, clone=43e-6).epsilon(delta=1e-6)  # doctest: +ELLIPSIS
    Bound(lower=0.994..., upper=0.99...)
    """

    n: int
    slots: int
    clone: float

    def __post_init__(self) -> None:
        for name in ("n", "slots"):
            object.__setattr__(self, name, _validate.count(name, getattr(self, name)))
        share = _validate.probability("clone", self.clone, positive=True)
        if share > 0.5:
            raise ValueError(f"clone must be in (0, 1/2]: two categories or more, got {self.clone!r}")

    @cached_property
    def round(self) -> Round:
        rest = 1.0 - 2.0 * self.clone
        law = AmplificationProfile(
            self.n * self.slots + 1,
            (1.0, 0.0, 0.0),
            (0.0, 1.0, 0.0),
            (1.0, -1.0, 0.0),
            (self.clone, self.clone, rest),
        )
        return Round(law, (law,), math.inf, 0.0)
