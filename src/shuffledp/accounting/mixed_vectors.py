"""One round of a sum of vectors by split and mix: what its shuffled messages give away."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

from shuffledp import _validate
from shuffledp._certified.gaussian_shares import LEAST_VARIANCE, conversion, tail
from shuffledp._certified.mixing import mixing_distance
from shuffledp._certified.rounding import down, up
from shuffledp.accounting._curves.gaussian_sum import GaussianSumProfile
from shuffledp.accounting._rounds.round import Round
from shuffledp.accounting.mechanism import OneRound


@dataclass(frozen=True)
class MixedVectors(OneRound):
    """n honest people send vectors of ``dimension`` whole numbers, each number as ``messages`` shares.

    Two vectors are apart by at most the root of ``farthest`` (a squared Euclidean length), and some by that
    of ``attained``. Everybody adds discrete Gaussian noise of ``variance`` to every number, up to a total
    variation of ``noise_distance`` each; shares are modulo ``modulus``. *Adversary*: sees all shuffled
    messages, knows everybody else's data, and may be any number of further people who send what they like.
    *Neighbours*: one person's vector is another one. The upper end is the curve of a trusted curator's
    Gaussian noise plus (1 + e^epsilon) times what the messages add, the lower end what their sums alone give
    away (Theorem T22).

    >>> ball = {"dimension": 100, "farthest": 2000**2}
    >>> one = MixedVectors(n=10_000, **ball, variance=7200.0, messages=9, modulus=2**28)
    >>> one.epsilon(delta=1e-6)  # doctest: +ELLIPSIS
    Bound(lower=0.99..., upper=0.99...)
    """

    n: int
    dimension: int
    farthest: int
    variance: float
    messages: int
    modulus: int
    attained: int | None = field(default=None, kw_only=True)
    noise_distance: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        counts = {"n": 1, "dimension": 1, "farthest": 1, "messages": 2, "modulus": 2}
        for name, least in counts.items():
            object.__setattr__(self, name, _validate.count(name, getattr(self, name), least=least))
        if self.attained is not None:
            _validate.count("attained", self.attained, least=0, most=self.farthest)
        _validate.probability("noise_distance", self.noise_distance)
        if _validate.positive("variance", self.variance) < LEAST_VARIANCE:
            raise ValueError(f"variance must be at least {LEAST_VARIANCE:g}, got {self.variance!r}")

    @cached_property
    def mixing(self) -> float:
        """How far the messages are from what could be made from their sums alone, at most."""
        return min(1.0, up(self.dimension * mixing_distance(self.n, self.messages, self.modulus), 1))

    @cached_property
    def round(self) -> Round:
        sampled = self.n * self.noise_distance
        near = up(self.dimension * (conversion(self.variance, self.n) + sampled), operations=4)
        farthest = up(math.sqrt(self.farthest / ((self.n - 0.5) * self.variance)), operations=4)
        names = "n", "dimension", "farthest", "variance", "messages", "modulus", "noise_distance"
        made_of = tuple((name, getattr(self, name)) for name in names)
        profile = GaussianSumProfile(farthest, min(up(self.mixing + near, operations=2), 1.0), made_of)
        reach = self.farthest if self.attained is None else self.attained
        window = max(0.5 * (self.modulus - math.sqrt(reach)) - 2.0, 0.0)
        lost = up(near + self.dimension * tail(self.variance, self.n, window), operations=4)
        attained = down(math.sqrt(reach / ((self.n + 1.0) * self.variance)), operations=4)
        seen = (GaussianSumProfile(attained, -min(lost, 1.0)),) if attained > 0.0 else ()
        return Round(profile, seen, math.inf, 0.0, alone=True)  # a formula: exact answers
