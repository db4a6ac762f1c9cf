"""One round of a sum by split and mix: what its shuffled messages give away."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

from shuffledp import _validate
from shuffledp._certified.mixing import mixing_distance
from shuffledp._certified.rounding import CALL, up
from shuffledp.accounting._curves.noisy_sum import NoisySumProfile
from shuffledp.accounting._curves.thinned_sum import ThinnedSumProfile, tabled as tabled
from shuffledp.accounting._rounds.round import Round
from shuffledp.accounting.mechanism import OneRound


@dataclass(frozen=True)
class MixedSum(OneRound):
    """n honest people send numbers in 0, ..., ``levels``, each as ``messages`` shares modulo ``modulus``.

    Together they add discrete Laplace noise of ``scale``, up to a total variation of ``noise_distance``; more
    noise of others only helps. *Adversary*: sees all shuffled messages, knows everybody else's data, and may
    be any number of further people who send what they like. *Neighbours*: one person's number is another
    one. The upper end is the trusted curator's curve plus (1 + e^epsilon) times what the messages add
    (Theorems T17 and T18), the lower end what their sum alone gives away. ``sized``: the people whose shares
    together are that noise (default: n); fewer have added less, and epsilon is larger.

    >>> one = MixedSum(n=10_000, levels=100, scale=101.0, messages=9, modulus=2**24)
    >>> one.epsilon(delta=1e-6)  # doctest: +ELLIPSIS
    Bound(lower=0.990..., upper=0.990...)
    >>> fewer = MixedSum(n=9_000, levels=100, scale=101.0, messages=9, modulus=2**24, sized=10_000)
    >>> fewer.epsilon(delta=1e-6)  # doctest: +ELLIPSIS
    Bound(lower=1.17..., upper=1.17...)
    """

    n: int
    levels: int
    scale: float
    messages: int
    modulus: int
    noise_distance: float = field(default=0.0, kw_only=True)
    sized: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for name, least in (("n", 1), ("levels", 1), ("messages", 2), ("modulus", 2)):
            object.__setattr__(self, name, _validate.count(name, getattr(self, name), least=least))
        object.__setattr__(self, "scale", _validate.positive("scale", self.scale))
        _validate.probability("noise_distance", self.noise_distance)
        if self.sized is not None:
            object.__setattr__(self, "sized", _validate.count("sized", self.sized))
            if self.n < self.sized and not tabled(self.levels, self.scale):
                raise ValueError(f"levels and scale must be smaller where shares are missing, got {self!r}")

    @cached_property
    def mixing(self) -> float:
        """How far the messages are from what could be made from their sum alone, at most."""
        return mixing_distance(self.n, self.messages, self.modulus)

    @cached_property
    def round(self) -> Round:
        off = up(self.noise_distance + self.mixing, operations=1)
        # From the residues the sum is known unless the noise leaves half of what the modulus has to spare.
        room = max(0.5 * (self.modulus - self.levels) - 2.0, 0.0) / self.scale
        wrapped = 2.0 * math.exp(-room) if self.modulus > self.levels else 1.0
        lost = up(self.noise_distance + wrapped, operations=2 * CALL + 4 * (1.0 + room))
        made_of = self.n, self.messages, self.modulus, self.noise_distance
        if self.sized is not None and self.n < self.sized:
            thinned = self.levels, self.scale, self.n / self.sized
            above = ThinnedSumProfile(*thinned, off, (*made_of, self.sized))
            below = ThinnedSumProfile(*thinned, -min(lost, 1.0))
            return Round(above, (below,), above.epsilon_max, 0.0, alone=True)
        seen = NoisySumProfile(self.levels, self.scale, -min(lost, 1.0))
        profile = NoisySumProfile(self.levels, self.scale, off, made_of)
        return Round(profile, (seen,), profile.epsilon_max, 0.0, alone=True)  # a formula: exact answers
