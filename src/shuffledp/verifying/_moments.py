"""Six moments bound a law under a tilt: laws that tell less than the first are settled without exponentials.

For x <= c and even k, e^{tx} is at least its Taylor sum of k terms, and at most g_k(tc) (tx)^k more, with
g_k(y) = 1/k! + y/(k+1)! + ... (V5)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from flint import arb, arb_mat

from shuffledp.verifying._variable import Tilted

ORDER = 6
_FAR = 3.5  # of y: below, a geometric sum bounds g_6, beyond nothing cancels


class Moments(NamedTuple):
    """Of X^j, j from 0 to 6: those of a law that is cut, or more; and sums over reports where nothing is."""

    law: Sequence[arb]
    inside: Sequence[arb]

    def moved(self, share: arb, rest: arb) -> Moments:
        """Of share X + rest."""
        ways = [
            [math.comb(j, i) * share**i * rest ** (j - i) for i in range(j + 1)] for j in range(ORDER + 1)
        ]
        return Moments(
            *([sum((w * m for w, m in zip(row, one, strict=False)), arb(0)) for row in ways] for one in self)
        )


@dataclass(frozen=True)
class Series:
    """At a tilt, for laws of which no value is above ``most``."""

    tilt: arb
    most: arb

    @cached_property
    def _beyond(self) -> list[arb]:
        """g_k(tilt most), from above, for k from 0 to 6."""
        y = self.tilt * self.most
        if y < _FAR:
            last = 1 / (math.factorial(ORDER) * (1 - y / (ORDER + 1)))
        else:
            sums = sum((y**j / math.factorial(j) for j in range(ORDER)), arb(0))
            last = (y.exp() - sums) / y**ORDER
        found = [last]
        for k in range(ORDER - 1, -1, -1):
            found.append(arb(1) / math.factorial(k) + y * found[-1])
        return found[::-1]

    @cached_property
    def _sums(self) -> tuple[arb_mat, list[arb]]:
        """Of moments: Taylor sums of E X^k e^{tilt X}, k from 0 to 4, a column each; and what may be more."""
        rows = [[self._term(j - k) for k in range(5)] for j in range(ORDER)]
        last = [self.tilt ** (ORDER - k) * self._beyond[ORDER - k] for k in range(5)]
        return arb_mat(rows), last

    def _term(self, power: int) -> arb:
        return self.tilt**power / math.factorial(power) if power >= 0 else arb(0)

    def first(self, moments: Moments) -> arb:
        """E e^{tilt X} from above."""
        return sum((w * m for w, m in zip(self._powers, moments.law, strict=True)), arb(0)).upper()

    @cached_property
    def _powers(self) -> list[arb]:
        return [*map(self._term, range(ORDER)), self.tilt**ORDER * self._beyond[ORDER]]

    def tilted(self, moments: Moments) -> Tilted:
        """E e^{tilt X} from above; of the rest, as shares of that, what the part inside has of it."""
        taylor, last = self._sums
        sums, more, first = (
            arb_mat([moments.inside[:ORDER]]) * taylor,
            moments.inside[ORDER],
            self.first(moments),
        )
        a0, a1, a2, a3, a4 = ((at := sums[0, k]).union(at + last[k] * more) for k in range(5))
        second, fourth = a2 * a0 - a1 * a1, a4 * a0 - 4 * a3 * a1 + 3 * a2 * a2
        return Tilted(first, second.max(arb(0)) / first**2, fourth.max(arb(0)) / first**2)
