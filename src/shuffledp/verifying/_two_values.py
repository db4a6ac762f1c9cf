"""Sums of two values, by how often either occurs: exact up to rare counts (docs/proofs/verifier.md, V1).

How probable counts are depends on the masses alone, so that one table serves at all alpha."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from flint import arb, ctx

_DEPTH, _SPARE_DEPTH = 64, 32.0  # tightness: nats at which counts are rare, or a power of two times that
_SMALL = 20_000  # speed: outcomes of tables, some megabytes, of which many are kept
_NOTHING = 1e-8  # tightness: of a mass, what may be left for zero

_Digits = tuple[tuple[int, int], tuple[int, int]]
_Row = tuple[Sequence[arb], Sequence[arb]]


@dataclass(frozen=True)
class TwoValues:
    """(S + shift)_+ for the sum S of ``n`` that are ``high``, ``low`` or zero, ``masses`` being those of
    the three; high > 0 > low, and the shift is not positive."""

    n: int
    high: arb
    low: arb
    masses: tuple[arb, arb, arb]
    shift: arb
    depth: int

    @classmethod
    def of(
        cls, values: Sequence[arb], masses: Sequence[arb], rest: arb, n: int, enough: arb
    ) -> TwoValues | None:
        """Of a law of two values and zero; or of three if next to nothing is left for zero: the middle one is
        taken off all, and zero is spread to that and to the largest one."""
        rows, shift = sorted(zip(values, masses, strict=True), key=lambda row: float(row[0].mid())), arb(0)
        if not 2 <= len(rows) <= 3:
            return None
        (low, q), *between, (high, p) = rows
        for middle, mass in between:
            if not (middle <= 0 < high and rest <= _NOTHING * p):
                return None
            some = rest * arb(0.5, 0.5)  # which part of it depends on the values, and a table is for all
            low, high, p, rest, shift = low - middle, high - middle, p + some, mass + some, n * middle
        if not low < 0 < high:
            return None
        depth = _DEPTH
        while enough > 0 and depth < _SPARE_DEPTH - math.log(max(float(enough), 1e-300)):
            depth *= 2
        return cls(n, high, low, (p, q, rest), shift, depth)

    @property
    def outcomes(self) -> int:
        """How many counts there are but for rare ones."""
        return math.prod(len(one) for one in self._windows)

    @property
    def _windows(self) -> tuple[range, range]:
        p, q, _ = self.masses
        return _window(self.n, float(p.mid()), self.depth), _window(self.n, float(q.mid()), self.depth)

    def upper(self) -> arb:
        """An upper bound of (1/n) E[(S + shift)_+]."""
        table = _counts(self.n, ctx.prec, self._windows, *map(_digits, self.masses))
        often, others = self._windows
        total = arb(0)
        for i, (below, sums) in zip(often, table, strict=True):
            start, count = self.shift + self.high * i, min(len(others), self.n - i - others.start + 1)
            js = others[: max(count, 0)]
            sure = bisect_left(js, True, key=lambda j: not start + self.low * j > 0)
            last = bisect_left(js, True, key=lambda j: bool(start + self.low * j <= 0))
            total += start * below[sure] + self.low * sums[sure]
            for j in range(sure, last):  # balls cannot tell
                total += (start + self.low * js[j]).max(arb(0)) * (below[j + 1] - below[j])
        return total / self.n + self.high * self.masses[0] * self._rare()

    def _rare(self) -> arb:
        """Given that somebody has the larger value, the probability of counts that were left out, at most."""
        (p, q, _), (often, others), users = self.masses, self._windows, self.n - 1
        found = arb(0)
        for mass, low, high in ((p, often.start - 2, often.stop - 1), (q, others.start - 1, others.stop)):
            mean = users * mass
            if low >= 0:
                found += _tail(mean, low) if low <= mean else arb(1)
            if high <= users:
                found += _tail(mean, high) if high >= mean else arb(1)
        return found


def _tail(mean: arb, count: int) -> arb:
    """Of a binomial law of this mean: so many or less, if that is below the mean; or more, if above."""
    if count == 0:
        return (-mean).exp()
    return (count - mean - count * (count / mean).log()).exp() if mean > 0 else arb(1)


def _window(n: int, mass: float, depth: int) -> range:
    """Counts but for those about ``depth`` nats away: any range is valid whose mean is inside."""
    mean = n * mass

    def rare(count: int) -> bool:
        return count * math.log(count / mean) - count + mean >= depth if count else mean >= depth

    if not mean > 0.0:
        return range(n + 1)
    middle = min(math.ceil(mean) + 1, n)
    # Below the mean counts become rare downward, above it upward.
    low = bisect_left(range(max(math.floor(mean) - 1, 0)), True, key=lambda count: not rare(count))
    high = middle + bisect_left(range(middle, n), True, key=rare)
    return range(low, min(high, n) + 1)


def _digits(ball: arb) -> _Digits:
    """All of it, as what can be told apart: mantissas and exponents of the middle and the radius."""
    (a, b), (c, d) = ball.mid().man_exp(), ball.rad().man_exp()
    return (int(a), int(b)), (int(c), int(d))


def _table(n: int, bits: int, windows: tuple[range, range], *masses: _Digits) -> list[_Row]:
    """For every number i of one value, and all j: the probability of i and less than j of the other, from
    the first on; and the sum of these numbers, each times its probability. ``bits`` are those at hand:
    others know it less well."""
    often, others = windows
    p, q, r = (arb(*of) for of in masses)
    left = range(max(n - often[-1] - others[-1], 0), n - often.start - others.start + 1)
    ps, qs, rs = (_powers(base, exponents) for base, exponents in ((p, often), (q, others), (r, left)))
    found = list[_Row]()
    for i in often:
        below, sums = [arb(0)], [arb(0)]
        if others.start <= n - i:
            ways = ps[i - often.start] * arb.bin_uiui(n, i) * arb.bin_uiui(n - i, others.start)
        for j in others:
            if (rest := n - i - j) < 0:
                break
            mass = qs[j - others.start] * rs[rest - left.start] * ways
            below.append(below[-1] + mass)
            sums.append(sums[-1] + j * mass)
            ways = ways * rest / (j + 1)
        found.append((below, sums))
    return found


_kept_few, _kept_many = lru_cache(maxsize=2)(_table), lru_cache(maxsize=64)(_table)


def _counts(n: int, bits: int, windows: tuple[range, range], *masses: _Digits) -> list[_Row]:
    """``_table``, of which the last ones are kept: small ones for all kinds of a round."""
    kept = _kept_many if math.prod(map(len, windows)) <= _SMALL else _kept_few
    return kept(n, bits, windows, *masses)


def _powers(base: arb, exponents: range) -> list[arb]:
    found = [base**exponents.start]
    for _ in exponents[1:]:
        found.append(found[-1] * base)
    return found
