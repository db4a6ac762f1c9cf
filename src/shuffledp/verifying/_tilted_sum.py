"""Frequencies at a tilt: the sum of Theorem V1 (docs/proofs/verifier.md),

    E[S_+] <= (step / 2 pi) sum over all k of phi(s_k)^n e^{(blur s_k)^2/2} / s_k^2,  s_k = theta + i k step,

for S = X_1 + ... + X_n, phi(s) = E e^{sX} and *any* theta > 0, step > 0, blur > 0. So floats may choose them.
Frequencies are left out where |phi|^n is proved to be tiny, and what they add up to at most is added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from itertools import repeat
from typing import TypeVar

from flint import acb, arb, ctx

from shuffledp.verifying._variable import Tilted, Variable

_SPARE_DEPTH = 3.0  # speed: frequencies so many nats below the loss are only bounded
_REACH, _FINER = 0.5, 4  # speed: how far one size tells, as a share; and into how many parts of that next
_SEEN = 64  # speed: bits, where a size is only to be seen to be small
_NORMAL = 0.05, 0.2, 0.4  # speed: how much less than those of a normal law sizes fall up to a frequency

_Ball = TypeVar("_Ball", arb, acb)


@dataclass(frozen=True)
class Jumps:
    """Values of X beside those of a law, their masses: sums with ``fewest`` to ``most`` of them are told."""

    law: Variable
    fewest: int
    most: int

    def composed(self, small: _Ball, jump: _Ball, n: int) -> _Ball:
        """The sum of C(n, j) small^(n - j) jump^j over these numbers j."""
        found = type(small)(0)
        for j in range(self.most, -1, -1):
            ways = math.comb(n, j) if j >= self.fewest else 0
            found = found * jump + ways * small ** (self.most - j)
        return found * small ** (n - self.most)


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
    jumps: Jumps | None = None
    """Some more values, in sums with few of them: these alone are told."""
    coin: tuple[arb, arb] | None = None
    """(g, c): |phi| is replaced by g (|phi|^2 / phi + phi) / 2 + (1 - g) c, phi that of theta (V5)."""
    absolute: bool = False
    """Sizes are summed in place of real parts: more than the integral of sizes (V5)."""

    @classmethod
    def of(cls, law: Variable, n: int, loss: float, span: arb | None = None) -> TiltedSum:
        """With a blur that costs about ``loss``, relative, and a step that costs less."""
        return cls.at(law.guess.tilt(n), law, n, loss, span)

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
        """An upper bound of (1/n) E[(X_1 + ... + X_n)_+]."""
        theta, last = arb(self.theta), self.frequencies
        step = arb(self.step) if self.span is None else arb.pi() / (last * self.span)
        tilted = self.law.tilted(theta)
        first = tilted.first
        # |phi(theta + iw)|/phi(theta) moves with w by the tilted deviation at most.
        slope, falling = tilted.variance.upper().sqrt().upper(), min(_whole(tilted.falls / step), last)
        others = self.n if self.jumps is None else self.n - self.jumps.most
        dead = (arb(-self.depth) / others).exp()
        odd = self.absolute and self.coin is None and self.n % 2  # one size is (size^2 + 1)/2 or less (V5)
        whole = first if self.coin is None else self.coin[0] * first + (1 - self.coin[0]) * self.coin[1]
        jumps = self.jumps
        top = whole**self.n if jumps is None else jumps.composed(first, jumps.law.moment(theta), self.n)
        total, left_out, below = self._kernel(acb(theta)).real, arb(0), dead ** (others - odd)

        def term(k: int, value: acb, jump: acb) -> arb:
            s, ratio = acb(theta, k * step), value / first
            size = self._sized(arb(ratio.abs_upper()) ** 2, first)
            if jumps is None:
                found = (ratio if self.coin is None else acb(size)) ** (others - odd) * self._kernel(s)
            else:
                found = jumps.composed(value, jump, self.n) / top * self._kernel(s)
            if odd:
                found *= (size**2 + 1) / 2
            once = self.span is not None and k == last
            return (1 if once else 2) * (arb(found.abs_upper()) if self.absolute else found.real)

        def fallen(k: int) -> bool:
            return bool(self._sized(tilted.fallen(k * step), first) <= dead)

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
            along = acb(theta, middle * step), width * step, count
            told = repeat(acb(0), count) if jumps is None or width > 1 else jumps.law.along(*along)
            with ctx.workprec(ctx.prec if width == 1 else min(ctx.prec, _SEEN)):
                values = list(self.law.along(*along))
            for place, (value, jump) in enumerate(zip(values, told, strict=True)):
                begin = low + place * width
                users, size = min(width, high + 1 - begin), arb(value.abs_upper())
                if size <= small if self.coin is None else self._sized((size / first) ** 2, first) <= least:
                    quiet += users
                elif width == 1:
                    total += term(begin, value, jump)
                elif cells and cells[-1][1] == begin - 1 and cells[-1][2] < width:
                    cells[-1] = cells[-1][0], begin + users - 1, cells[-1][2]
                else:
                    cells.append((begin, begin + users - 1, max(width // _FINER, 1)))
            left_out += quiet * below * self._most(theta, low * step)
        if self.span is None:
            beyond, blur = last * step, arb(self.blur)
            left_out += self._most(theta, beyond) / (1 - (-(blur**2) * beyond * step).exp())
        scale = top * step / (2 * arb.pi() * self.n)
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


def crude_height(moment: arb, users: int, tilt: arb) -> arb:
    """Above the integral of sizes (V5), and of (1/n) E[S_+]: sizes are at most the first, and 1/|s|^2 has
    the integral pi/tau."""
    return moment**users / (2 * users * tilt)


def normal_height(moment: arb, law: Tilted, share: arb, users: int, tilt: arb) -> arb:
    """The same, where sizes fall as those of a normal law do up to a frequency; ``share``: of those who have
    the law."""
    if not (law.variance > 0 and law.fourth > 0):
        return crude_height(moment, users, tilt)

    def shape(part: float) -> arb:
        fall = users * share * law.variance * (1 - arb(part)) / 2
        inside = (fall * tilt**2).exp() * (tilt * fall.sqrt()).erfc()
        return inside + 2 * (tilt * (law.fourth / (12 * part * law.variance)).sqrt()).atan() / arb.pi()

    return crude_height(moment, users, tilt) * reduce(arb.min, map(shape, _NORMAL), arb(1))


def _whole(steps: arb) -> int:
    """No more than there are; 0 where that is not known."""
    least = float(steps.floor().lower())
    return int(least) if math.isfinite(least) else 0
