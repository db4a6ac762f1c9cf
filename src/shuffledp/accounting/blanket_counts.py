"""One round of a histogram with blanket messages: what its shuffled messages give away."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
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

    With ``buckets``, a prime number p, categories are hashed: a person sends one of p + 1 cells at random,
    every two categories share one of them, and ``clone`` is the probability that a slot holds any cell of a
    given category (Theorem T23; three categories or more).

    >>> BlanketCounts(n=10**6, slots=1, clone=43e-6).epsilon(delta=1e-6)  # doctest: +ELLIPSIS
    Bound(lower=0.994..., upper=0.99...)
    """

    n: int
    slots: int
    clone: float
    buckets: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("n", "slots"):
            object.__setattr__(self, name, _validate.count(name, getattr(self, name)))
        share = _validate.probability("clone", self.clone, positive=True)
        if share > 0.5:
            raise ValueError(f"clone must be in (0, 1/2]: two categories or more, got {self.clone!r}")

    @cached_property
    def round(self) -> Round:
        if self.buckets is None:
            law = self._law(1.0, self.clone, 1.0 - 2.0 * self.clone)
            return Round(law, (law,), math.inf, 0.0)
        share = self.buckets / (self.buckets + 1.0)
        own, shared = self.clone * share, self.clone / (self.buckets + 1.0)
        law = self._law(share, own, 1.0 - 2.0 * own - shared, shared)
        # All others on a line with the two: their cells, the shared one among them, count as anything else.
        seen = self._law(share, own, 1.0 - 2.0 * own)
        return Round(law, (seen,), math.inf, 0.0)

    def _law(self, own: float, clone: float, rest: float, *shared: float) -> AmplificationProfile:
        """One message that is x's (or that of x') with probability ``own``, else of a type that both have."""
        more = [0.0] * len(shared)
        both = [1.0 - own, *more] if not shared else [0.0, 1.0 - own]
        return AmplificationProfile(
            self.n * self.slots + 1,
            (own, 0.0, *both),
            (0.0, own, *both),
            (own, -own, 0.0, *more),
            (clone, clone, rest, *shared),
        )
