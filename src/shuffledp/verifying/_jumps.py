"""Rare large values, jumps, by their number (T13): the sum of Theorem V1 of outcomes with at most so many.

Sums of n copies of X with j jumps, j up to K, are a measure of the transform

    sum over j <= K of C(n, j) small(s)^(n - j) jump(s)^j,

and no tilt is too steep for it, as many jumps are left out: what these add at most is added. Values beyond
the reach of all others decide alone, and are cut. Floats choose threshold, K, cut and tilt: any are valid."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from flint import arb

from shuffledp.verifying._guesses import Guess, lowest
from shuffledp.verifying._tilted_sum import Jumps, TiltedSum
from shuffledp.verifying._variable import Variable

_MOST = 2  # speed: jumps that are told by their number
_REACH = 8.0  # tightness: deviations of the others, beyond which a jump decides alone
_SHARE = 0.1  # tightness: of the blur, what more jumps, aliases and frequencies left out may add
_STEEPER = 1.2, 1.5, 2.0, 3.0, 5.0, 10.0  # speed: tilts that tell how far sums reach
_PER_JUMP = 0.2  # speed: what one more costs
_FAR = 5.0  # speed: the last frequency, in units of the blur's
_UNKNOWN = 2.0**-50  # tightness: of masses
_LARGEST_LOG = 600.0  # nothing overflows

_Floats = Sequence[float]


def sum_with_jumps(law: Variable, n: int, enough: float, loss: float) -> tuple[TiltedSum, arb]:
    """The one that is likely to be cheapest, of a blur that costs about ``loss``; and what is to be added."""
    rows, rest, spare = law.ordered(), float(law.rest.mid()), max(loss * enough, 1e-300)
    made = [_Split.of(rows, rest, n, most, spare) for most in range(min(_MOST, n - 1) + 1)]
    known = [split for split in made if split is not None]
    blur = math.sqrt(2.0 * loss) / max(split.theta for split in known)
    return min(known, key=lambda split: split.cost).made(law, blur)


@dataclass(frozen=True)
class _Split:
    """Into ``small`` of all values, that are cut at ``end``, and jumps of which at most ``most`` are told;
    about ``spare`` may be added to (1/n) E[S_+]."""

    values: _Floats
    masses: _Floats
    rest: float
    n: int
    small: int
    most: int
    end: float
    spare: float

    @classmethod
    def of(
        cls, rows: Sequence[tuple[float, float]], rest: float, n: int, most: int, spare: float
    ) -> _Split | None:
        """None if jumps are not rare enough."""
        values, masses, small, end = [v for v, _ in rows], [m for _, m in rows], len(rows), math.inf
        for _ in range(2):  # the cut depends on those that are small, and so do these on the cut
            values = [min(v, end) for v in values]
            if most and (small := _threshold(values, masses, n, most, _SHARE * spare)) == len(rows):
                return None
            end = max(_reach(values[:small], masses[:small], rest, n), values[small] if most else 0.0)
        return cls([min(v, end) for v in values], masses, rest, n, small, most, end, spare)

    @cached_property
    def _guesses(self) -> tuple[Guess, Guess]:
        rows = list(zip(self.values, self.masses, strict=True))
        return Guess.of([*rows[: self.small], (0.0, self.rest)]), Guess.of(rows[self.small :])

    @cached_property
    def _alone(self) -> float:
        """The tilt at which sums without jumps are seen to add next to nothing; zero if they are not."""
        if not self.most:
            return 0.0
        small = self._guesses[0]
        theta = small.tilt(self.n)
        log = self.n * small.cumulants(theta)[0] - math.log(self.n * theta) - 1.0
        return theta if log <= self._log_spare or self.values[self.small - 1] <= 0.0 else 0.0

    def _log_transform(self, theta: float) -> float:
        small, jump = (guess.cumulants(theta)[0] if guess.values else 0.0 for guess in self._guesses)
        numbers = range(int(self._alone > 0.0), self.most + 1)
        logs = [_log_ways(self.n, j) + (self.n - j) * small + j * jump for j in numbers]
        top = max(logs)
        return top + math.log(math.fsum(math.exp(one - top) for one in logs))

    @cached_property
    def _largest(self) -> float:
        """Of sizes of values, or of those that are positive."""
        return (self.values[-1] if self.values[-1] > 0.0 else abs(self.values[0])) or 1.0

    @cached_property
    def theta(self) -> float:
        high = math.log(_LARGEST_LOG / self._largest)
        return math.exp(lowest(lambda x: self._log_transform(math.exp(x)) - 2.0 * x, high))

    @cached_property
    def _log_spare(self) -> float:
        return math.log(_SHARE * self.spare)

    @cached_property
    def window(self) -> float:
        """Sums that are so far away add about what can be spared."""
        log, right = self._log_spare + math.log(self.n), 1.0
        for _ in range(4):
            right = max((math.log(1.0 + right) - log) / self.theta, 1.0 / self.theta)
        tilts = (self.theta * steeper for steeper in _STEEPER)
        left = [
            (self._log_transform(tilt) - 1.0 - math.log(tilt) - log) / (tilt - self.theta)
            for tilt in tilts
            if tilt * self._largest <= _LARGEST_LOG
        ]
        return max(right, min(left, default=right))

    @cached_property
    def _log_crude(self) -> float:
        """Of Chernoff's bound, which is a few times too large."""
        return self._log_transform(self.theta) - math.log(self.n * self.theta) - 1.0

    @property
    def cost(self) -> float:
        """That of frequencies, about, for one and the same blur, where masses are known well enough."""
        digits = self._log_crude + math.log(self.n * _UNKNOWN) - self._log_spare
        return (1.0 + _PER_JUMP * self.most) * self.window * math.exp(min(max(digits, 0.0), _LARGEST_LOG))

    def made(self, law: Variable, blur: float) -> tuple[TiltedSum, arb]:
        cut, beyond = law.cut_at(self.end)
        rows = sorted(zip(cut.values, cut.masses, strict=True), key=lambda row: float(row[0].mid()))
        values, masses = [v for v, _ in rows], [m for _, m in rows]
        small = Variable(values[: self.small], masses[: self.small], law.rest)
        jumps = Variable(values[self.small :], masses[self.small :], arb(0))
        told = Jumps(jumps, int(self._alone > 0.0), self.most) if self.most else None
        # All frequencies that are left out are counted at the kernel of the first.
        depth = self._log_crude - self._log_spare + math.log1p(_FAR / (blur * self.theta))
        step = 2.0 * math.pi / self.window
        found = TiltedSum(small, self.n, self.theta, step, blur, max(depth, 1.0), jumps=told)
        if self.most:
            beyond += more_jumps(small, jumps, self.n, self.most)
        if self._alone and not all(v <= 0 for v in small.values):
            beyond += small.chernoff(self.n, self._alone)
        return found, beyond


def more_jumps(small: Variable, jumps: Variable, n: int, most: int) -> arb:
    """What more than ``most`` jumps add to (1/n) E[S_+] at most: what all tell alone (T13)."""
    p, far, near = sum(jumps.masses, arb(0)), jumps.mean_above(arb(0)), small.mean_above(arb(0))
    return math.comb(n - 1, most) * p**most * (far + p * near * (n - 1 - most) / (most + 1))


def _threshold(values: _Floats, masses: _Floats, n: int, most: int, spare: float) -> int:
    """The fewest values that are small, so that more than ``most`` others add no more than can be spared."""
    told = [max(v, 0.0) * m for v, m in zip(values, masses, strict=True)]
    p, far = (list(accumulate(reversed(part), initial=0.0))[::-1] for part in (masses, told))

    def fits(small: int) -> bool:
        more = far[small] + p[small] * (far[0] - far[small]) * (n - 1 - most) / (most + 1)
        logs = _log_ways(n - 1, most) + most * math.log(max(p[small], 1e-300)) + math.log(max(more, 1e-300))
        return logs <= math.log(spare)

    return 1 + bisect_left(range(1, len(values)), True, key=fits)


def _reach(values: _Floats, masses: _Floats, rest: float, n: int) -> float:
    """How far below zero sums of small values are, but for rare ones."""
    _, mean, variance = Guess.of([*zip(values, masses, strict=True), (0.0, rest)]).cumulants(0.0)
    return _REACH * math.sqrt(n * variance) - n * mean


def _log_ways(n: int, j: int) -> float:
    return math.lgamma(n + 1.0) - math.lgamma(j + 1.0) - math.lgamma(n - j + 1.0)
