"""(1/n) E[(X_1 + ... + X_n)_+] from above, in ball arithmetic: Theorem V1 (docs/proofs/verifier.md).

All outcomes where these are few; else frequencies (``TiltedSum``); rare large values by their number (T13).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from flint import arb

from shuffledp.verifying._jumps import sum_with_jumps
from shuffledp.verifying._tilted_sum import TiltedSum, normal_height
from shuffledp.verifying._two_values import TwoValues
from shuffledp.verifying._variable import Variable

_MOST_FREQUENCIES = 300_000  # speed
_FEW_OUTCOMES = 2_000, 60_000  # speed: enumerated at once, and where frequencies do not do
_FEW_COUNTS = 60_000, 120_000  # speed: of two values, the same
_LOSSES = 1e-4, 1e-5, 1e-6, 1e-8, 1e-10, 1e-12  # speed: of blurs
_FINEST = 1e-12  # speed: of the blur, relative
_FEW_VALUES, _SPREAD = 16, 5e-3  # speed: of coarser laws, where a bound is not refined
_ABOUT = 1e-2  # speed: of the blur, there
_DECIDE = 0.1  # speed: of the bound, what values add that are cut; of more, their number is told
_CUTS, _CUT, _WORSE = 16, 0.6, 0.7  # speed, there: values beyond which a law is cut, as shares of the largest

_Rows = Sequence[tuple[arb, arb]]


def positive_part(law: Variable, n: int, enough: arb) -> arb:
    """An upper bound of (1/n) E[(X_1 + ... + X_n)_+], refined until it is below ``enough`` or no better.

    Where ``enough`` is zero: a good one, not refined."""
    if all(v <= 0 for v in law.values):
        return arb(0)
    alone = law.mean_above(arb(0))
    if n == 1 or alone <= enough or all(v >= 0 for v in law.values):
        return alone
    if enough > 0 and (crude := law.chernoff(n, law.guess.tilt(n))) <= enough:
        return crude
    counted = TwoValues.of(law.values, law.masses, law.rest, n, enough)
    if counted is not None and (counted.outcomes if enough > 0 else _outcomes(n, 2)) <= _FEW_COUNTS[0]:
        return counted.upper()
    if _outcomes(n, len(law.values)) <= _FEW_OUTCOMES[0]:
        return _enumerated(law, n)
    if (whole := law.on_a_lattice()) is not None:
        raised, span, added = whole
        sum_ = TiltedSum.of(raised, n, _FINEST, span)
        if sum_.frequencies <= _MOST_FREQUENCIES:
            return sum_.upper() + added
    if not enough > 0:
        return alone.min(About.of(law, n).upper(law, n, enough))
    best = alone.min(_closer_and_closer(law, n, enough))
    if best <= enough:
        return best
    if counted is not None and counted.outcomes <= _FEW_COUNTS[1]:
        best = best.min(counted.upper())
    if _outcomes(n, len(law.values)) <= _FEW_OUTCOMES[1]:
        best = best.min(_enumerated(law, n))
    return best


@dataclass(frozen=True)
class About:
    """Good bounds that are not refined: cut at ``end``, where that costs least, tilted by ``theta``."""

    end: float
    theta: float

    @classmethod
    def of(cls, law: Variable, n: int) -> About:
        chosen, least, whole = cls(math.inf, 1.0), math.inf, law.guess
        for i in range(_CUTS):
            end = whole.largest * _CUT**i if i else math.inf
            part, beyond = whole.cut_at(end), law.guess_above(end)
            theta = part.tilt(n)
            height = n * part.cumulants(theta)[0] - math.log(n * theta) - 2.0
            guess = math.exp(min(height, 0.0)) + beyond
            if guess < least:
                chosen, least = cls(end, theta), guess
            if max(beyond, _WORSE * guess) > least and guess < 1.0:
                break
        return chosen

    def upper(self, law: Variable, n: int, reached: arb) -> arb:
        """Of (1/n) E[(X_1 + ... + X_n)_+]; crude where that is below ``reached``, else a closer one."""
        if not reached > 0:
            return self._close(law, n)
        if (crude := self._crude(law, n)) <= reached:
            return crude
        for own in (replace(self, theta=law.guess.cut_at(self.end).tilt(n)), About.of(law, n)):
            if (crude := own._crude(law, n)) <= reached:
                return crude
        return crude.min(own._close(law, n))

    def _crude(self, law: Variable, n: int) -> arb:
        (part, beyond), tilt = law.cut_at(self.end), arb(self.theta)
        told = part.tilted(tilt)
        chernoff = told.first**n / (n * tilt * arb(1).exp())
        return chernoff.min(normal_height(told.first, told, arb(1), n, tilt)) + beyond

    def _close(self, law: Variable, n: int) -> arb:
        part, beyond = law.cut_at(self.end)
        part = part if len(part.values) <= _FEW_VALUES else part.coarser(self.theta, _SPREAD)
        found = TiltedSum.at(self.theta, part, n, _ABOUT).upper() + beyond
        if beyond > _DECIDE * found:
            made, added = sum_with_jumps(law, n, float(found), _ABOUT)
            found = found.min(made.upper() + added)
        return arb(found)


def _closer_and_closer(law: Variable, n: int, enough: arb) -> arb:
    """Sums of smaller and smaller blurs, rare values by their number, until that is enough or in vain."""
    best, before = arb(1), math.inf
    for loss in _LOSSES:
        made, added = sum_with_jumps(law, n, float(enough), loss)
        if made.frequencies > _MOST_FREQUENCIES:
            break
        best = best.min(made.upper() + added)
        # A blur that is smaller by r takes away r of what it cost, or its root (atoms at zero).
        excess = float((best / enough).mid()) - 1.0
        if best <= enough or (excess > 100.0 * loss and excess > 0.6 * before):
            break
        before = excess
    return best


def _outcomes(n: int, types: int) -> int:
    """How often each of some types, and nothing, can occur among n."""
    return math.comb(n + types, types)


def _enumerated(law: Variable, n: int) -> arb:
    """All outcomes, one by one: exact."""
    values, masses = [*law.values, arb(0)], [*law.masses, law.rest]

    def below(types: int, users: int, value: arb, mass: arb) -> arb:
        if types == 0:
            return mass * masses[0] ** users * (value + users * values[0]).max(arb(0))
        total, p = arb(0), mass
        for count in range(users + 1):
            total += below(types - 1, users - count, value + count * values[types], p)
            p = p * masses[types] * (users - count) / (count + 1)
        return total

    return below(len(values) - 1, n, arb(0), arb(1)) / n
