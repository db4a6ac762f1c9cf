"""Others who send x as often as x': a crowd of fair signs, exactly, in closed form.

Reports are x, x' or neither. The differing user sends x with probability a, x' with probability b and
neither with probability c (input x; a and b exchanged for input x'), every other user x and x' with
probability h each. Given m reports x or x', of which A are x and Y = 2 A / m - 1 is the mean of m signs,

    P(m, A) = 2^-m binom(m, A) [(a + b) w_1 + (a - b) w_1 Y + c w_0],

w_1 = Pr[C = m - 1], w_0 = Pr[C = m], C ~ Bin(n - 1, 2 h): with probability W_m = (a + b) w_1 + c w_0 the
pair F(kappa_m, m) of ``clones``, kappa_m = (a - b) w_1 / W_m. The ratio w_0 / w_1 = (n - m)/m 2h/(1 - 2h)
falls in m, so kappa_m rises. F(kappa, m) is more telling the larger kappa and the smaller m are, so a
bucket of m lies between the pair of its first m and last kappa and that of its last m and first kappa.

This is the curve of one pair of datasets where the others hold a third value of k-ary randomized
response, with all other reports counted as one type (which only hides): for k = 3 there are none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp._certified.buckets import Buckets, binomial_buckets
from shuffledp._certified.rounding import CALL, LARGEST_EXPONENT, Floats, capped, down, gamma, positive, up
from shuffledp._certified.signs import Excess, signs_excess
from shuffledp._certified.tails import CLOSE, ROUGH, TailRule
from shuffledp.accounting._curves.clones import CloneProfile
from shuffledp.accounting._curves.profile import Bools, PrivacyProfile, SupportingLines
from shuffledp.accounting._hints.starts import SignsHints

_CELLS_AT_ONCE = 1 << 17
_ROUGHLY = 2e-4
_RARE = 1e-4
_FINER = 0.3  # speed
_UNITS = 8 * CALL  # soundness
"""Of weights, kappa and y: of inputs that are sums of few products, an exponential, ten operations."""
_MOST_FARTHER = 8192  # speed


@dataclass(frozen=True)
class EvenCrowdProfile(PrivacyProfile):
    """``near`` = a + b, ``gap`` = a - b, ``other`` = b (given apart: it may be a tiny difference of the
    two), ``away`` = c; ``rate`` = 2 h and ``rest`` = 1 - 2 h."""

    n: int
    near: float
    gap: float
    other: float
    away: float
    rate: float
    rest: float
    made_of: tuple[CloneProfile, float] | None = None
    """The clones, and the share of all people that they are of, if it is their cohort: for certificates."""

    @property
    def epsilon_max(self) -> float:
        """log(a / b), rounded up."""
        if self.other <= 0.0:
            return math.inf
        return up(math.log1p(self.gap / self.other), operations=_UNITS)

    @cached_property
    def hints(self) -> SignsHints:
        others = self.n - 1
        return SignsHints(
            2.0 * self.gap / math.sqrt(self.n * self.rate),
            trials=others,
            rate=self.rate,
            kappa=float(self._kappa(np.array([1.0 + others * self.rate]))[0]),
            weight=1.0,
            curve=lambda epsilon: self.support(epsilon, 1e-3).value,
        )

    @property
    def directions(self) -> tuple[EvenCrowdProfile, ...]:
        """The pair is its own reverse."""
        return (self,)

    def subsampled(self, fraction: float) -> EvenCrowdProfile:
        """The differing user takes part with probability ``fraction``, else one of the others."""
        left = 1.0 - fraction
        return EvenCrowdProfile(
            self.n,
            near=fraction * self.near + left * self.rate,
            gap=fraction * self.gap,
            other=fraction * self.other + 0.5 * left * self.rate,
            away=fraction * self.away + left * self.rest,
            rate=self.rate,
            rest=self.rest,
        )

    def polled(self, rate: float) -> EvenCrowdProfile:
        """Everybody's own coin says, with probability ``rate``, that they report: others are away."""
        silent = 1.0 - rate
        near, gap, other, away = (rate * part for part in (self.near, self.gap, self.other, self.away))
        return EvenCrowdProfile(
            self.n, near, gap, other, away + silent, rate * self.rate, rate * self.rest + silent
        )

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        buckets, rule = self._buckets(resolution)
        first, last = buckets.first + 1.0, buckets.beyond
        weight = buckets.high * (self.near + self.away * self._odds(first))
        kappa = self._kappa(last)
        parts = [self._values(part, first, last, rule, 1.0) for part in _parts(epsilon, first.size)]
        high = np.concatenate([(excess + error) @ (kappa * weight) for excess, error, *_ in parts])
        grown = 1.0 + np.exp(capped(epsilon))
        return up(up(high, operations=0) * grown, operations=first.size + 3 * _UNITS)

    def both_or_crude(self, epsilon: Floats, resolution: float) -> tuple[Floats, Bools, SupportingLines]:
        """Of finer buckets: they change kappa, too, on either side."""
        return super().both_or_crude(epsilon, _FINER * resolution)

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        buckets, rule = self._buckets(resolution)
        some = buckets.low > 0.0
        first, last = buckets.first[some] + 1.0, buckets.beyond[some]
        weight = buckets.low[some] * (self.near + self.away * self._odds(last))
        lines = [self._lines(part, first, last, weight, rule) for part in _parts(epsilon, last.size)]
        return SupportingLines.join(epsilon, lines)

    def _lines(self, epsilon: Floats, first: Floats, last: Floats, weight: Floats, rule: TailRule) -> Floats:
        excess, error, tail, jump, relative = self._values(epsilon, last, first, rule, -1.0)
        kappa = self._kappa(first)
        value = np.maximum(excess - error, 0.0) @ (kappa * weight)
        # All signs equal: its Q is known without a difference.
        top, sure = jump >= tail, tail * self._missing(first)
        event = np.where(top, sure, np.maximum(tail - kappa * jump, 0.0))
        doubt = (relative + gamma(_UNITS)) * np.where(top, sure, tail + jump)
        grown = (1.0 + np.exp(capped(epsilon))) * (epsilon <= LARGEST_EXPONENT)
        slopes = np.maximum(event - doubt, 0.0) @ weight, (event + doubt) @ weight
        count = first.size + 3 * _UNITS
        return np.stack([down(value * grown, count), down(slopes[0], count), up(slopes[1], count)])

    def _values(self, epsilon: Floats, count: Floats, m: Floats, rule: TailRule, outward: float) -> Excess:
        """``signs_excess`` of ``count`` signs per epsilon and bucket, with the kappa at m.

        1 - y = (1 - tanh(epsilon/2) - (1 - kappa)) / kappa; both differences are known by themselves."""
        kappa = positive(self._kappa(m))  # 0 for who is always away: y is beyond 1
        y = np.tanh(0.5 * epsilon)[:, None] / kappa
        missing = self._missing(m)
        left = (2.0 / (1.0 + np.exp(capped(epsilon))))[:, None]
        doubt = outward * gamma(_UNITS) * (left + missing)
        short = np.maximum(left - missing + doubt, 0.0) / kappa
        return signs_excess(count, np.minimum(y, 1.0), short, rule)

    def _buckets(self, resolution: float) -> tuple[Buckets, TailRule]:
        # Q of the events is smaller than P by up to b / a: a rough tail would hide it.
        rough = resolution >= _ROUGHLY and self.other > _RARE * self.near
        rule = ROUGH if rough else CLOSE
        # Many reports x or x' say that the user was there: tiny deltas may come from the far right.
        farther = min(600 + int(3.0 * self.n * self.rate), _MOST_FARTHER)
        return binomial_buckets(self.n - 1, self.rate, self.rest, resolution, farther), rule

    def _odds(self, m: Floats) -> Floats:
        """w_0 / w_1."""
        return np.asarray((self.n - m) / m * (self.rate / self.rest))

    def _kappa(self, m: Floats) -> Floats:
        return np.asarray(self.gap / (self.near + self.away * self._odds(m)))

    def _missing(self, m: Floats) -> Floats:
        """1 - kappa."""
        away = self.away * self._odds(m)
        return np.asarray((2.0 * self.other + away) / (self.near + away))


def _parts(epsilon: Floats, buckets: int) -> list[Floats]:
    return np.array_split(epsilon, 1 + epsilon.size * buckets // _CELLS_AT_ONCE)
