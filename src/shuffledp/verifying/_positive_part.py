"""(1/n) E[(X_1 + ... + X_n)_+] from above, in ball arithmetic: Theorem V1 (docs/proofs/verifier.md),

    E[S_+] <= (step / 2 pi) sum over all k of phi(s_k)^n e^{(blur s_k)^2/2} / s_k^2,  s_k = theta + i k step,

for S = X_1 + ... + X_n, phi(s) = E e^{sX} and *any* theta > 0, step > 0, blur > 0. So floats may choose them.
Frequencies are left out where |phi|^n is proved to be tiny, and what they add up to at most is added.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, reduce
from operator import mul

from flint import acb, acb_mat, arb, arb_mat, ctx

_SPARE_DEPTH = 15.0  # speed: frequencies so many nats below the loss are only bounded
_TRIALS = 8  # speed
_MOST_FREQUENCIES = 300_000  # speed
_FEW_OUTCOMES = 2_000, 60_000  # speed: enumerated at once, and where frequencies do not do
_JUMP_LOSSES = 2e-3, 1e-4  # speed: of the blur
_SHARES_OF_MORE = 1e-3, 1e-4, 1e-5, 1e-6, 1e-9  # tightness: of what is enough, what several jumps may add
_NEXT_TO_NOTHING = 1e-7  # speed: of what is enough
_FAR, _CLOSE = 1.0, 1.01  # speed: where jumps are looked at first, and where it is in vain
_FINEST = 1e-12  # speed: of the blur, relative
_MOST_MULTIPLES = 16  # speed
_POWERS = 24  # speed, tightness: of turns, whose products widen balls
_REACH, _FINER = 0.5, 4  # speed: how far one size tells, as a share; and into how many parts of that next
_NEAR = 1e-13  # speed
_HALVES = 18  # speed: of the logarithm of a tilt
_FALLS = 2.4  # soundness: at most the root of 6
_CELLS, _FEW_VALUES, _SPREAD = 20, 16, 5e-3  # speed: of coarser laws, where a bound is not refined
_CUTS, _CUT, _WORSE = 16, 0.6, 0.7  # speed, there: values beyond which a law is cut, as shares of the largest

_Rows = Sequence[tuple[arb, arb]]


class Variable:
    """A finite law in balls: ``values`` with probabilities ``masses``, and zero with what is left."""

    def __init__(self, values: Sequence[arb], masses: Sequence[arb], rest: arb | None = None) -> None:
        self.values, self.masses = list(values), list(masses)
        self.rest = (1 - sum(self.masses, arb(0))).max(arb(0)) if rest is None else rest

    @cached_property
    def _floats(self) -> list[tuple[float, float]]:
        return [(float(v.mid()), float(m.mid())) for v, m in zip(self.values, self.masses, strict=True)]

    def waves(self, s: acb) -> list[acb]:
        """m e^{sv} of all values."""
        return [m * (s * v).exp() for v, m in zip(self.values, self.masses, strict=True)]

    def transform(self, s: acb) -> acb:
        """E e^{sX}."""
        return sum(self.waves(s), acb(self.rest))

    def along(self, start: acb, stride: arb, count: int) -> Iterator[acb]:
        """E e^{sX} at s = start + i j stride, for all j < count: few powers of e^{i v stride}, and their
        products, as a product of matrices."""
        inner = min(math.isqrt(count - 1) + 1, _POWERS)
        turns = _powers([acb(0, stride * v).exp() for v in self.values], inner + 1)
        leap, at = turns.pop(), self.waves(start)
        near = acb_mat([list(row) for row in zip(*turns, strict=True)])
        for begin in range(0, count, inner * inner):
            rows = []
            for _ in range(begin, min(begin + inner * inner, count), inner):
                rows.append(at)
                at = [wave * turn for wave, turn in zip(at, leap, strict=True)]
            found = (acb_mat(rows) * near).entries()
            yield from (value + self.rest for value in found[: count - begin])
            if begin + inner * inner < count:
                at = self.waves(start + acb(0, (begin + inner * inner) * stride))

    def moment(self, theta: arb) -> arb:
        """E e^{theta X}."""
        return sum(
            (m * (theta * v).exp() for v, m in zip(self.values, self.masses, strict=True)), arb(self.rest)
        )

    def total(self, term: Callable[[arb], arb]) -> arb:
        """The mean of a function that is zero at zero."""
        return sum((term(v) * m for v, m in zip(self.values, self.masses, strict=True)), arb(0))

    def tilted(self, theta: arb) -> tuple[arb, arb]:
        """E e^{theta X}, and the variance of X under that tilt."""
        waves = arb_mat([[m * (theta * v).exp() for v, m in zip(self.values, self.masses, strict=True)]])
        (total, mean, square), away = (waves * self._centred).entries(), -self._centre
        first = total + self.rest
        mean, square = (mean + self.rest * away) / first, (square + self.rest * away**2) / first
        return first, (square - mean * mean).max(arb(0))

    @cached_property
    def _centre(self) -> arb:
        """About the mean: the variance is that of what is away from it."""
        return arb(self.total(lambda v: v).mid())

    @cached_property
    def _centred(self) -> arb_mat:
        """1, d and d^2 of all values that lie d above the centre."""
        return arb_mat([[1, d, d * d] for d in (v - self._centre for v in self.values)])

    def fallen(self, variance: arb, w: arb) -> arb:
        """|phi(theta + iw)|^2 as a share of that of theta, at most (V5): it falls up to w = sqrt(6)/range."""
        return (1 - w**2 * variance * (1 - (w * self.range) ** 2 / 12)).max(arb(0)).upper()

    def chernoff(self, n: int, theta: float) -> arb:
        """(1/n) E[S_+] for the sum S of n, at most: e theta s_+ <= e^(theta s)."""
        return self.moment(arb(theta)) ** n / (n * arb(theta) * arb(1).exp())

    def mean_above(self, cut: arb) -> arb:
        """E[(X - cut)_+] for a cut that is not negative."""
        return self.total(lambda v: (v - cut).max(arb(0)))

    def cut(self, budget: float) -> tuple[Variable, arb]:
        """Without the largest values, which add about ``budget`` to the mean; and what they add at most."""
        rows = sorted(((v, m) for v, m in self._floats if v > 0.0), reverse=True)
        if not rows:
            return self, arb(0)
        seen, mass, at = 0.0, 0.0, rows[0][0]
        for v, m in rows:
            if seen + mass * (at - v) > budget:
                break
            seen, mass, at = seen + mass * (at - v), mass + m, v
        return self.cut_at(math.inf if at == rows[0][0] else at)

    def cut_at(self, end: float) -> tuple[Variable, arb]:
        """No value beyond ``end``, and what that adds at most.

        X <= min(X, c) + (X - c)_+, and positive parts of sums are at most sums of positive parts."""
        if math.isinf(end):
            return self, arb(0)
        cut = arb(end)
        return Variable([v.min(cut) for v in self.values], self.masses, self.rest), self.mean_above(cut)

    def coarser(self, theta: float, share: float) -> Variable:
        """Fewer values, by a spread that keeps the mean: larger in the convex order.

        What lies between two that stay goes to both; the tilted variance grows by about ``share``."""
        order = sorted(range(len(self.values)), key=lambda i: self._floats[i][0])
        top = max(theta * v for v, _ in self._floats)
        tilted = [m * math.exp(max(theta * v - top, -700.0)) for v, m in self._floats]
        spare = share * self.cumulants(theta)[2] * math.fsum(tilted) / _CELLS
        values, masses = [self.values[order[0]]], [self.masses[order[0]]]
        start = 0
        while start < len(order) - 1:
            end, a = start + 1, self._floats[order[start]][0]
            inside = own = square = 0.0  # of what lies between: tilted mass, and its moments from a
            while end < len(order) - 1:
                w, v = tilted[order[end]], self._floats[order[end]][0] - a
                inside, own, square = inside + w, own + w * v, square + w * v * v
                if own * (self._floats[order[end + 1]][0] - a) - square > spare:
                    break
                end += 1
            low, high, inner = values[-1], self.values[order[end]], order[start + 1 : end]
            if not high > low:  # nothing lies between two that are alike: all stay
                values += [self.values[i] for i in inner]
                masses += [self.masses[i] for i in inner]
                inner = []
            values.append(high)
            masses.append(self.masses[order[end]])
            for i in inner:
                up = (self.values[i] - low) / (high - low)
                masses[-2] += self.masses[i] * (1 - up)
                masses[-1] += self.masses[i] * up
            start = end
        return Variable(values, masses, self.rest)

    def on_a_lattice(self) -> tuple[Variable, arb, arb] | None:
        """If all values are next to multiples of the smallest one: a law on these, the span, and how much
        larger the mean of the positive part may be: E[(X - its multiple)_+]."""
        span = min((abs(v) for v, _ in self._floats if v != 0.0), default=0.0)
        if span == 0.0 or any(abs(v) > _MOST_MULTIPLES * span for v, _ in self._floats):
            return None
        whole = [round(v / span) for v, _ in self._floats]
        if any(abs(v - k * span) > _NEAR * span for (v, _), k in zip(self._floats, whole, strict=True)):
            return None
        unit = arb(span)
        values = [k * unit for k in whole]
        rows = zip(self.values, values, self.masses, strict=True)
        added = sum(((v - at).max(arb(0)) * m for v, at, m in rows), arb(0))
        return Variable(values, self.masses), unit, added.upper()

    def cumulants(self, theta: float) -> tuple[float, float, float]:
        """log E e^{theta X} and two derivatives, as floats: guesses only."""
        values, masses = self._guessed
        top = max(theta * v for v in values)
        weights = [m * math.exp(max(theta * v - top, -700.0)) for v, m in zip(values, masses, strict=True)]
        total = sum(weights)
        mean = sum(map(mul, weights, values)) / total
        away = [v - mean for v in values]
        return top + math.log(total), mean, sum(map(mul, map(mul, weights, away), away)) / total

    @cached_property
    def _guessed(self) -> tuple[list[float], list[float]]:
        rows = [*self._floats, (0.0, max(float(self.rest.mid()), 0.0))]
        return [v for v, m in rows if m > 0.0], [m for _, m in rows if m > 0.0]

    @property
    def largest(self) -> float:
        """Of its values; if none is positive, of their sizes."""
        top = max(v for v, _ in self._floats)
        return top if top > 0.0 else -min(v for v, _ in self._floats)

    @cached_property
    def range(self) -> arb:
        """From the smallest to the largest of its values."""
        values = [*self.values, arb(0)]
        return reduce(arb.max, values) - reduce(arb.min, values)

    def tilt(self, n: int, shift: float = 0.0) -> float:
        """Near the minimum of theta shift + n log E e^{theta X} - 2 log theta, which is convex in theta."""
        top = max(shift, max(v for v, _ in self._floats))
        low, high = -200.0, math.log(600.0 / (top if top > 0.0 else self.largest))  # nothing overflows
        for _ in range(_HALVES):
            middle = 0.5 * (low + high)
            theta = math.exp(middle)
            falls = (shift + n * self.cumulants(theta)[1]) * theta < 2.0
            low, high = (middle, high) if falls else (low, middle)
        return math.exp(low)


def lowest(height: Callable[[float], float], high: float) -> float:
    """About where a function that falls and then rises is lowest."""
    low = -60.0
    for _ in range(36):
        a, b = low + 0.382 * (high - low), low + 0.618 * (high - low)
        low, high = (low, b) if height(a) < height(b) else (a, high)
    return 0.5 * (low + high)


def positive_part(law: Variable, n: int, enough: arb) -> arb:
    """An upper bound of (1/n) E[(X_1 + ... + X_n)_+], refined until it is below ``enough`` or no better.

    Where ``enough`` is zero: a good one, not refined."""
    if all(v <= 0 for v in law.values):
        return arb(0)
    alone = law.mean_above(arb(0))
    if n == 1 or alone <= enough:
        return alone
    if enough > 0 and (crude := law.chernoff(n, law.tilt(n))) <= enough:
        return crude
    if len(law.values) == 2 and _outcomes(n, 2) <= _FEW_OUTCOMES[1]:
        return _of_two(law, n)
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
        # A blur that is smaller by r takes away r of what it cost, or its root (atoms at zero).
        excess = float((best / enough).mid()) - 1.0
        if trial == 0 and excess > _FAR and (best := best.min(_with_jumps(law, n, enough))) <= enough:
            return best
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
        chosen, least = cls(math.inf, 1.0), math.inf
        for i in range(_CUTS):
            end = law.largest * _CUT**i if i else math.inf
            part, beyond = law.cut_at(end)
            theta = part.tilt(n)
            height = n * part.cumulants(theta)[0] - math.log(n * theta) - 2.0
            guess = math.exp(min(height, 0.0)) + float(beyond)
            if guess < least:
                chosen, least = cls(end, theta), guess
            if max(float(beyond), _WORSE * guess) > least and guess < 1.0:
                break
        return chosen

    def upper(self, law: Variable, n: int, reached: arb) -> arb:
        """Of (1/n) E[(X_1 + ... + X_n)_+]; crude where that is below ``reached``, else of fewer values."""
        part, beyond = law.cut_at(self.end)
        if (crude := part.chernoff(n, self.theta) + beyond) <= reached:
            return crude
        if reached > 0:
            return About.of(law, n).upper(law, n, arb(0))
        part = part if len(part.values) <= _FEW_VALUES else part.coarser(self.theta, _SPREAD)
        return crude.min(TiltedSum.at(self.theta, part, n, _JUMP_LOSSES[0]).upper() + beyond)


def _with_jumps(law: Variable, n: int, enough: arb) -> arb:
    """The best of several thresholds, or the first that is good enough."""
    rows, best = sorted(zip(law.values, law.masses, strict=True), key=lambda row: float(row[0])), arb(1)
    for small in dict.fromkeys(_thresholds(rows, n, enough)):
        best = best.min(_with_some_jumps(rows[:small], rows[small:], law.rest, n, enough))
        if best <= enough:
            break
    return best


def _thresholds(rows: _Rows, n: int, enough: arb) -> Iterator[int]:
    """How many values are small, so that several jumps add about a share of what is enough."""
    for share in _SHARES_OF_MORE:
        fits = (i for i in range(1, len(rows)) if _several(rows[:i], rows[i:], n) <= share * enough)
        if (small := next(fits, None)) is None:
            return
        yield small


def _several(small: _Rows, jumps: _Rows, n: int) -> arb:
    """What more than one jump adds at most: what they tell alone."""
    p = sum((m for _, m in jumps), arb(0))
    far, near = (sum((v.max(arb(0)) * m for v, m in part), arb(0)) for part in (jumps, small))
    return (n - 1) * p * far + (n - 1) * (n - 2) * p**2 / 2 * near


def _with_some_jumps(small: _Rows, jumps: _Rows, rest: arb, n: int, enough: arb) -> arb:
    """Rare values above a threshold, jumps, by their number (T13): none; one, of each size; more."""
    part = Variable([v for v, _ in small], [m for _, m in small], rest)
    more, tiny = _several(small, jumps, n), _NEXT_TO_NOTHING * enough / len(jumps)
    told = list[tuple[arb, float, int, arb]]()  # how often, the tilt, of how many, and what is added to them
    for often, users, v in ((arb(1), n, arb(0)), *((m * (n - 1), n - 1, v) for v, m in jumps)):
        if v <= 0 and all(x <= 0 for x in part.values):
            continue
        theta = part.tilt(users, float(v))
        crude = often * (arb(theta) * v).exp() * part.chernoff(users, theta)
        if crude <= tiny:
            more += crude
        else:
            told.append((often, theta, users, v))
    best = arb(1)
    for loss in _JUMP_LOSSES:
        sums = [replace(TiltedSum.at(theta, part, users, loss), shift=v) for _, theta, users, v in told]
        if max((one.frequencies for one in sums), default=0) > _MOST_FREQUENCIES:
            break
        found = more
        for (often, *_), one in zip(told, sums, strict=True):
            found += often * one.upper()
            if found > _CLOSE * enough:
                return best
        best = best.min(found)
        if best <= enough:
            break
    return best


@dataclass(frozen=True)
class TiltedSum:
    """The sum of Theorem V1; with a ``span``, of which all values are multiples, that of its second half."""

    law: Variable
    n: int
    theta: float | arb
    step: float
    blur: float
    depth: float
    """In nats: how far below the first other frequencies still count."""
    span: arb | None = None
    shift: arb | None = None
    """What is added to the sum."""
    coin: tuple[arb, arb] | None = None
    """(g, c): |phi| is replaced by g (|phi|^2 / phi + phi) / 2 + (1 - g) c, phi that of theta (V5)."""
    absolute: bool = False
    """Sizes are summed in place of real parts: more than the integral of sizes (V5)."""

    @classmethod
    def of(cls, law: Variable, n: int, loss: float, span: arb | None = None) -> TiltedSum:
        """With a blur that costs about ``loss``, relative, and a step that costs less."""
        return cls.at(law.tilt(n), law, n, loss, span)

    @classmethod
    def at(cls, theta: float, law: Variable, n: int, loss: float, span: arb | None = None) -> TiltedSum:
        """At a given tilt."""
        deviation = math.sqrt(law.cumulants(theta)[2])
        spread, depth = math.sqrt(n) * deviation, math.log(1000.0 / loss)
        window = math.sqrt(2.0 * depth) * spread
        if window > theta * spread**2:
            window = depth / theta + 0.5 * theta * spread**2
        window += 4.0 / theta
        if span is not None:
            window = float(span) * 2 * math.ceil(0.5 * window / float(span))
        blur = 0.0 if span is not None else math.sqrt(2.0 * loss) / theta
        return cls(law, n, theta, 2.0 * math.pi / window, blur, depth + _SPARE_DEPTH, span)

    @property
    def frequencies(self) -> int:
        """How many there are on either side, until the blur has made them tiny, or in all."""
        if self.span is not None:
            return round(math.pi / (self.step * float(self.span)))
        return math.ceil(math.sqrt(2.0 * self.depth) / (self.blur * self.step))

    def upper(self) -> arb:
        """An upper bound of (1/n) E[(X_1 + ... + X_n + shift)_+]."""
        theta, last = arb(self.theta), self.frequencies
        shift = arb(0) if self.shift is None else self.shift
        step = arb(self.step) if self.span is None else arb.pi() / (last * self.span)
        first, variance = self.law.tilted(theta)
        # |phi(theta + iw)|/phi(theta) moves with w by the tilted deviation at most.
        slope, falling = variance.upper().sqrt().upper(), min(_whole(_FALLS / (self.law.range * step)), last)
        dead = (arb(-self.depth) / self.n).exp()
        odd = self.absolute and self.coin is None and self.n % 2  # one size is (size^2 + 1)/2 or less (V5)
        whole = first if self.coin is None else self.coin[0] * first + (1 - self.coin[0]) * self.coin[1]
        total, left_out, below = self._kernel(acb(theta)).real, arb(0), dead ** (self.n - odd)

        def term(k: int, ratio: acb, size: arb) -> arb:
            s = acb(theta, k * step)
            found = (ratio if self.coin is None else acb(size)) ** (self.n - odd) * self._kernel(s)
            if odd:
                found *= (size**2 + 1) / 2
            if self.shift is not None:
                found *= acb(0, k * step * self.shift).exp()
            once = self.span is not None and k == last
            return (1 if once else 2) * (arb(found.abs_upper()) if self.absolute else found.real)

        def fallen(k: int) -> bool:
            return bool(self._sized(self.law.fallen(variance, k * step), first) <= dead)

        start = self._alive(slope, step, last)
        while start <= falling and not fallen(start):
            start += 1 + start // 8
        cells = [(1, min(start - 1, last), 1)]
        if start <= falling:
            left_out += (falling + 1 - start) * below * self._most(theta, start * step)
            start = falling + 1
        cells.append((start, last, self._stride(dead, slope, step)))
        while cells:
            low, high, width = cells.pop()
            if low > high:
                continue
            count = -((low - 1 - high) // width)
            middle = low + width // 2
            quiet, least = 0, dead - slope * (width // 2) * step
            small = (least * first).lower()
            for place, value in enumerate(self.law.along(acb(theta, middle * step), width * step, count)):
                begin = low + place * width
                users, size = min(width, high + 1 - begin), arb(value.abs_upper())
                if size <= small if self.coin is None else self._sized((size / first) ** 2, first) <= least:
                    quiet += users
                elif width == 1:
                    ratio = value / first
                    total += term(begin, ratio, self._sized(arb(ratio.abs_upper()) ** 2, first))
                elif cells and cells[-1][1] == begin - 1 and cells[-1][2] < width:
                    cells[-1] = cells[-1][0], begin + users - 1, cells[-1][2]
                else:
                    cells.append((begin, begin + users - 1, max(width // _FINER, 1)))
            left_out += quiet * below * self._most(theta, low * step)
        if self.span is None:
            beyond, blur = last * step, arb(self.blur)
            left_out += self._most(theta, beyond) / (1 - (-(blur**2) * beyond * step).exp())
        scale = (theta * shift).exp() * whole**self.n * step / (2 * arb.pi() * self.n)
        return scale * (total + 2 * left_out).upper()

    def _alive(self, slope: arb, step: arb, last: int) -> int:
        """About where sizes of a normal law would be dead: any is valid."""
        spread = math.sqrt(self.n) * float(slope * step)
        return min(2 + math.ceil(math.sqrt(2.0 * self.depth) / spread), last) if spread > 0.0 else last

    def _stride(self, dead: arb, slope: arb, step: arb) -> int:
        """Frequencies of which the middle one is likely to tell: any is valid."""
        return max(math.floor(_REACH * float(dead) / max(float(slope * step), 1e-12)), 1)

    def _kernel(self, s: acb) -> acb:
        """The transform of the positive part, blurred; or summed over all s + 2 pi i k / span."""
        if self.span is None:
            return ((arb(self.blur) * s) ** 2 / 2).exp() / s**2
        z = (-self.span * s).exp()
        return self.span**2 * z / (1 - z) ** 2

    def _most(self, theta: arb, w: arb) -> arb:
        """Of the size of the kernel at theta + i w or beyond (up to half of a period): it falls."""
        if self.span is None:
            return (arb(self.blur) ** 2 * (theta**2 - w**2) / 2).exp() / (theta**2 + w**2)
        return arb(self._kernel(acb(theta, w)).abs_upper())

    def _sized(self, square: arb, first: arb) -> arb:
        """Of |phi|^2, as a share of that of theta: the share of |phi|, or of what replaces it."""
        if self.coin is None:
            return square.sqrt()
        told, silent = self.coin[0] * first, (1 - self.coin[0]) * self.coin[1]
        return (told * (square + 1) / 2 + silent) / (told + silent)


def _powers(turns: list[acb], count: int) -> list[list[acb]]:
    """From the zeroth on, by few products each: balls widen with every one."""
    found = [[acb(1)] * len(turns), turns]
    while len(found) < count:
        half, rest = found[len(found) // 2], found[len(found) - len(found) // 2]
        found.append([a * b for a, b in zip(half, rest, strict=True)])
    return found[:count]


def _whole(steps: arb) -> int:
    """No more than there are; 0 where that is not known."""
    least = float(steps.floor().lower())
    return int(least) if math.isfinite(least) else 0


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


def _of_two(law: Variable, n: int) -> arb:
    """Two values, exactly: how often each occurs has one law at all alpha, made once. For every number of the
    larger one, few of the other leave a positive sum, up to one number that balls cannot tell."""
    order = sorted(range(2), key=lambda i: -law._floats[i][0])
    high, low = (law.values[i] for i in order)
    if not low < 0:
        return high.max(arb(0)) * law.masses[order[0]] + low.max(arb(0)) * law.masses[order[1]]
    masses = [law.masses[i] for i in order]
    total = arb(0)
    for i, (below, sums) in enumerate(_counts(n, ctx.prec, *map(_digits, (*masses, law.rest)))):
        others = range(n - i + 1)
        sure = bisect_left(others, True, key=lambda j: not high * i + low * j > 0)
        last = bisect_left(others, True, key=lambda j: bool(high * i + low * j <= 0))
        total += high * i * below[sure] + low * sums[sure]
        for j in others[sure:last]:
            total += (high * i + low * j).max(arb(0)) * (below[j + 1] - below[j])
    return total / n


_Digits = tuple[tuple[int, int], tuple[int, int]]


def _digits(ball: arb) -> _Digits:
    """All of it, as what can be told apart: mantissas and exponents of the middle and the radius."""
    (a, b), (c, d) = ball.mid().man_exp(), ball.rad().man_exp()
    return (int(a), int(b)), (int(c), int(d))


@lru_cache(maxsize=8)
def _counts(n: int, bits: int, *masses: _Digits) -> list[tuple[list[arb], list[arb]]]:
    """For every number i of one value, and all j: the probability of i and less than j of the other; and the
    sum of these numbers, each times its probability. ``bits`` are those at hand: others know it less well."""
    p, q, r = ([arb(*of) ** k for k in range(n + 1)] for of in masses)
    found = []
    for i in range(n + 1):
        ways, below, sums = math.comb(n, i), [arb(0)], [arb(0)]
        for j in range(n - i + 1):
            mass = p[i] * q[j] * r[n - i - j] * ways
            below.append(below[-1] + mass)
            sums.append(sums[-1] + j * mass)
            ways = ways * (n - i - j) // (j + 1)
        found.append((below, sums))
    return found
