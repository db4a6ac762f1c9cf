"""(1/n) E[(X_1 + ... + X_n)_+] from above, in ball arithmetic: Theorem V1 (docs/proofs/verifier.md).

All outcomes where these are few; else frequencies (``TiltedSum``); rare large values by their number (T13).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from flint import arb

from shuffledp.verifying._tilted_sum import TiltedSum, normal_height
from shuffledp.verifying._two_values import TwoValues
from shuffledp.verifying._variable import Variable

_TRIALS = 8  # speed
_MOST_FREQUENCIES = 300_000  # speed
_FEW_OUTCOMES = 2_000, 60_000  # speed: enumerated at once, and where frequencies do not do
_FEW_COUNTS = 60_000, 120_000  # speed: of two values, the same
_JUMP_LOSSES = 2e-3, 1e-4  # speed: of the blur
_SHARES_OF_MORE = 1e-3, 1e-4, 1e-5, 1e-6, 1e-9  # tightness: of what is enough, what several jumps may add
_NEXT_TO_NOTHING = 1e-7  # speed: of what is enough
_CHORD = 1e-5  # tightness: of what is enough, what a chord may cost
_FAR, _CLOSE, _IN_VAIN = 1.0, 1.01, 1.001  # speed: where jumps are looked at first, and where it is in vain
_FINEST = 1e-12  # speed: of the blur, relative
_FEW_VALUES, _SPREAD = 16, 5e-3  # speed: of coarser laws, where a bound is not refined
_ABOUT = 1e-2  # speed: of the blur, there
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
    best, loss, before = alone, 2e-3, math.inf
    if not enough > 0:
        return alone.min(About.of(law, n).upper(law, n, enough))
    for trial in range(_TRIALS):
        part, beyond = law.cut(0.1 * loss * float(enough))
        sum_ = TiltedSum.of(part, n, loss)
        if sum_.frequencies > _MOST_FREQUENCIES:
            break
        best = best.min(sum_.upper() + beyond)
        if best <= enough:
            return best
        if counted is not None and counted.outcomes <= _FEW_COUNTS[1]:
            return best.min(counted.upper())
        # A blur that is smaller by r takes away r of what it cost, or its root (atoms at zero).
        excess = float((best / enough).mid()) - 1.0
        if trial == 0 and excess > _FAR and (jumped := _with_jumps(law, n, enough)) < best:
            return jumped
        hopeless = excess > 100.0 * loss and excess > 0.6 * (before - excess)
        if hopeless or loss <= _FINEST:
            break
        loss, before = max(0.05 * loss if before < math.inf else 0.1 * loss, _FINEST), excess
    if _outcomes(n, len(law.values)) <= _FEW_OUTCOMES[1]:
        best = best.min(_enumerated(law, n))
    return best if best <= enough else best.min(_with_jumps(law, n, enough))


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
        return TiltedSum.at(self.theta, part, n, _ABOUT).upper() + beyond


def _with_jumps(law: Variable, n: int, enough: arb) -> arb:
    """The best of several thresholds, or the first that is good enough."""
    rows, best = sorted(zip(law.values, law.masses, strict=True), key=lambda row: float(row[0])), arb(1)
    for small in dict.fromkeys(_thresholds(rows, n, enough)):
        found = _with_some_jumps(rows[:small], rows[small:], law.rest, n, enough)
        best = best.min(found)
        # Where it is close, what is not of several jumps is much the same at all thresholds.
        alike = found - _several(rows[:small], rows[small:], n) > _IN_VAIN * enough
        if best <= enough or (found <= _CLOSE * enough and alike):
            break
    return best


def _thresholds(rows: _Rows, n: int, enough: arb) -> Iterator[int]:
    """How many values are small, so that several jumps add about a share of what is enough."""
    for share in _SHARES_OF_MORE:
        fits = partial(_few_jumps, rows, n, share * enough)
        if (small := 1 + bisect_left(range(1, len(rows)), True, key=fits)) < len(rows):
            yield small


def _few_jumps(rows: _Rows, n: int, most: arb, small: int) -> bool:
    return bool(_several(rows[:small], rows[small:], n) <= most)


def _several(small: _Rows, jumps: _Rows, n: int) -> arb:
    """What more than one jump adds at most: what they tell alone."""
    p = sum((m for _, m in jumps), arb(0))
    far, near = (sum((v.max(arb(0)) * m for v, m in part), arb(0)) for part in (jumps, small))
    return (n - 1) * p * far + (n - 1) * (n - 2) * p**2 / 2 * near


def _with_some_jumps(small: _Rows, jumps: _Rows, rest: arb, n: int, enough: arb) -> arb:
    """Rare values above a threshold, jumps, by their number (T13): none; one, of each size; more."""
    part, more = Variable([v for v, _ in small], [m for _, m in small], rest), _several(small, jumps, n)
    tiny, best = _NEXT_TO_NOTHING * enough / len(jumps), arb(1)
    for loss in _JUMP_LOSSES:

        def height(users: int, shift: arb, often: arb, loss: float = loss) -> arb:
            """Of the sum of so many and the shift: crude where that is next to nothing."""
            if shift <= 0 and all(x <= 0 for x in part.values):
                return arb(0)
            theta = part.guess.tilt(users, float(shift))
            crude, made = (
                part.chernoff(users, theta) * (theta * shift).exp(),
                TiltedSum.at(theta, part, users, loss),
            )
            if crude * often <= tiny or made.frequencies > _MOST_FREQUENCIES:
                return crude
            return replace(made, shift=shift).upper()

        found = more + height(n, arb(0), arb(1))
        if found <= _CLOSE * enough:
            one = [(v, m * (n - 1)) for v, m in jumps]
            found += _of_jumps(lambda v, often: height(n - 1, v, often), one, _CHORD * enough)
        best = best.min(found)
        if best <= enough or not found <= _CLOSE * enough:
            break
    return best


def _of_jumps(height: Callable[[arb, arb], arb], jumps: _Rows, spare: arb) -> arb:
    """Of jumps that grow, and how often: heights are convex in them, so that chords are above.

    Where the middle shows that chords cost more than can be spared, they are halved."""
    known = {place: height(*jumps[place]) for place in (0, len(jumps) - 1)}

    def at(low: int, high: int, place: int) -> arb:
        """On the chord, if it is sure to be between."""
        (start, _), (end, _), (v, _) = jumps[low], jumps[high], jumps[place]
        if not start <= v <= end or not start < end:
            return height(*jumps[place])
        return known[low] + (known[high] - known[low]) * (v - start) / (end - start)

    def between(low: int, high: int) -> arb:
        """What lies between, without the ends."""
        if high - low < 2:
            return arb(0)
        middle, often = (low + high) // 2, sum((m for _, m in jumps[low + 1 : high]), arb(0))
        known[middle] = height(*jumps[middle])
        parts = (low, middle), (middle, high)
        if (at(low, high, middle) - known[middle]) * often <= spare:
            inner = [(a, b, i) for a, b in parts for i in range(a + 1, b)]
            rest = sum((jumps[i][1] * at(a, b, i) for a, b, i in inner), arb(0))
        else:
            rest = sum((between(a, b) for a, b in parts), arb(0))
        return rest + jumps[middle][1] * known[middle]

    ends = sum((jumps[place][1] * value for place, value in known.items()), arb(0))
    return ends + between(0, len(jumps) - 1)


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
