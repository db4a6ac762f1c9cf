"""Mixtures of mean-of-signs pairs: strong clones (T2), 2021 clones and the strong adversary (T3).

The pair F(kappa, N): N fair signs with mean Y; P weighs an outcome by 1 + kappa Y, Q by
1 - kappa Y. Its privacy loss is 2 atanh(kappa Y) and, with y = tanh(epsilon/2)/kappa,

    H_alpha = (1 + alpha) kappa E[(Y - y)_+],       Q(loss > epsilon) = E[1 - kappa Y; Y > y].

A user hides among C ~ Bin(n - 1, rate) others who sent what looks like one of the user's two
reports; given C (revealed) the pair is F(kappa, C + 1), met with probability ``weight``:

| analysis      | theorem                               | rate          | kappa           | weight    |
|---------------|---------------------------------------|---------------|-----------------|-----------|
| clones        | Feldman, McMillan, Talwar 2022        | 2/(e^e0 + 1)  | tanh(epsilon0/2)| 1         |
| clones-2021   | Feldman, McMillan, Talwar 2021        | 1/e^e0        | tanh(epsilon0/2)| 1         |
| strong        | Koskela et al. 2023, strong adversary | 2 gamma/k     | 1               | 1 - gamma |

The first two bound any epsilon0-LDP randomizer from above (substitution neighbours, adversary
knows everybody else's data and sees the shuffled reports); "strong" is exact for an adversary who
also learns who answered at random, you included. Clones need p = 1/(e^epsilon0 + 1): smaller p is
unsound. All are symmetric: H_alpha(P, Q) = H_alpha(Q, P).

Evaluation: F(kappa, N + 1) is a post-processing of F(kappa, N), so the curve is decreasing in C,
and giving each bucket of C the value at its first (last) element bounds it from above (below).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp._certified.buckets import Buckets, binomial_buckets
from shuffledp._certified.rounding import CALL, Floats, capped, down, gamma, up
from shuffledp._certified.signs import Excess, signs_excess
from shuffledp._certified.tails import CLOSE, ROUGH, TailRule
from shuffledp.accounting._curves.profile import Bools, PrivacyProfile, SupportingLines
from shuffledp.accounting._hints.starts import SignsHints

_CELLS_AT_ONCE = 1 << 17
_ROUGHLY = 2e-4
"""From this resolution on, rough tails will do."""
_LARGE = 9.0
_UNITS = 8 * CALL  # soundness
"""Of weight, kappa and what is made of them: each an input of a few calls, an exponential, a few products."""


@dataclass(frozen=True)
class CloneProfile(PrivacyProfile):
    """Mixture over C ~ Bin(n - 1, rate) of F(kappa, C + 1), with probability ``weight``.

    ``rest`` is 1 - rate, given apart so that it is accurate when the rate is near one; likewise
    ``epsilon0``, of which kappa = tanh(epsilon0/2) keeps little when it is large."""

    n: int
    rate: float
    rest: float
    kappa: float
    weight: float = 1.0
    epsilon0: float = math.inf

    @property
    def epsilon_max(self) -> float:
        return self.epsilon0 if self.weight > 0.0 else 0.0

    @cached_property
    def hints(self) -> SignsHints:
        return SignsHints(
            2.0 * self.kappa / math.sqrt(1.0 + (self.n - 1) * self.rate),
            trials=self.n - 1,
            rate=self.rate,
            kappa=self.kappa,
            weight=self.weight,
            curve=lambda epsilon: self.upper(epsilon, 1e-3),
        )

    @property
    def infinite_loss(self) -> float:
        """With kappa = 1, all signs equal gives the input away: no clone sent the other report."""
        if math.isfinite(self.epsilon0):
            return 0.0
        others = (self.n - 1) * math.log1p(-0.5 * self.rate)
        # The exponent, off by so many units of itself, and the weight (its input, and a product).
        return down(self.weight * math.exp(others), operations=(CALL + 4) * (1.0 - others))

    @property
    def directions(self) -> tuple[CloneProfile, ...]:
        """Exchanging x and x' exchanges the signs: nothing changes."""
        return (self,)

    def other_side(self) -> CloneProfile:
        """It bounds the same pair from above and from below."""
        return self

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        return self.both(epsilon, resolution)[0]

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        return self.both(epsilon, resolution)[1]

    def both_or_crude(self, epsilon: Floats, resolution: float) -> tuple[Floats, Bools, SupportingLines]:
        crude = np.zeros(epsilon.size, bool)
        if self.kappa == 0.0 or self.weight == 0.0:
            return np.zeros(epsilon.size), crude, SupportingLines(epsilon, *np.zeros((3, epsilon.size)))
        buckets = binomial_buckets(self.n - 1, self.rate, self.rest, resolution)
        # Q of the events is smaller than P by up to e^-epsilon0: a rough tail would hide it.
        rough = resolution >= _ROUGHLY and not _LARGE < self.epsilon0 < math.inf
        rule = ROUGH if rough else CLOSE
        pieces = 1 + epsilon.size * buckets.first.size // _CELLS_AT_ONCE
        parts = [epsilon] if pieces == 1 else np.array_split(epsilon, pieces)
        values = np.concatenate([self._values(part, buckets, rule) for part in parts], axis=1)
        return values[0], crude, SupportingLines(epsilon, *values[1:])

    def _values(self, epsilon: Floats, buckets: Buckets, rule: TailRule) -> Floats:
        """Rows: upper value, line value, lower and upper slope."""
        excess, error, tail, jump, relative = self._excess(epsilon, buckets, rule)
        # All signs equal: its Q is known without a difference (and zero for kappa = 1).
        top = jump >= tail
        decay = math.exp(-self.epsilon0)
        sure = tail * (2.0 * decay / (1.0 + decay))
        event = np.where(top, sure, np.maximum(tail - self.kappa * jump, 0.0))
        doubt = (relative + gamma(_UNITS)) * np.where(top, sure, tail + jump)
        low, high = buckets.for_last(buckets.low), buckets.for_last(buckets.high)
        factor = self.weight * (1.0 + np.exp(capped(epsilon))) * self.kappa
        count = buckets.first.size + 1 + _UNITS
        return np.stack(
            [
                up(factor * ((excess + error) @ buckets.high), count),
                down(factor * (np.maximum(excess - error, 0.0) @ low), count),
                down(self.weight * (np.maximum(event - doubt, 0.0) @ low), count),
                up(self.weight * ((event + doubt) @ high), count),
            ]
        )

    def _excess(self, epsilon: Floats, buckets: Buckets, rule: TailRule) -> Excess:
        y = np.tanh(0.5 * epsilon) / self.kappa
        count = buckets.first + 1.0
        short = self._short(epsilon)
        return signs_excess(count, y[:, None], short[:, None], rule)

    def _short(self, epsilon: Floats) -> Floats:
        """1 - y without cancellation: sinh((e0 - e)/2) / (sinh(e0/2) cosh(e/2))."""
        at = capped(epsilon)
        if math.isinf(self.epsilon0):
            return np.asarray(2.0 / (1.0 + np.exp(at)))
        half = np.sinh(0.5 * (self.epsilon0 - at)) / math.sinh(0.5 * self.epsilon0)
        return np.asarray(half / np.cosh(0.5 * at))


def strong_clones(epsilon0: float, n: int) -> CloneProfile:
    """Strong clones (2022) at p = 1/(e^epsilon0 + 1), for any epsilon0-LDP randomizer."""
    kappa = math.tanh(0.5 * epsilon0)
    decay = math.exp(-epsilon0)
    rate = 2.0 * decay / (1.0 + decay)
    return CloneProfile(n, rate=rate, rest=kappa, kappa=kappa, epsilon0=epsilon0)


def clones_2021(epsilon0: float, n: int) -> CloneProfile:
    """The 2021 clones, also for randomizers chosen inside a round if people come in random order."""
    kappa = math.tanh(0.5 * epsilon0)
    rate, rest = math.exp(-epsilon0), -math.expm1(-epsilon0)
    return CloneProfile(n, rate=rate, rest=rest, kappa=kappa, epsilon0=epsilon0)


def strong_adversary(k: int, gamma: float, truthful: float, n: int) -> CloneProfile:
    """k-ary randomized response against the adversary who knows who answered at random.

    ``truthful`` is 1 - gamma, accurate when it is small."""
    rate = 2.0 * gamma / k
    rest = truthful if k == 2 else 1.0 - rate
    return CloneProfile(n, rate=rate, rest=rest, kappa=1.0, weight=truthful)
