"""Laws of X against every third input, made as they are asked for; most are seen to tell less by E X^2 alone.

With X <= c, E X <= m and E X^2 <= s, E e^(tau X) <= 1 + tau m + s (e^(tau c) - 1 - tau c) / c^2 (Bennett)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial, reduce
from itertools import permutations
from typing import NamedTuple

from flint import arb, arb_mat

from shuffledp.verifying._balls import max_of, near, positive
from shuffledp.verifying._moments import ORDER, Moments
from shuffledp.verifying._variable import Variable

_CUTS, _NARROWER = 60, 0.8  # speed: values beyond which laws are cut
_WIDEST = 64  # speed: laws among which leaders are looked for

Rows = list[list[arb]]


@dataclass(frozen=True)
class Family:
    """``seconds``: E X^2 of each law, at most, the largest first; no value is above ``most``, and ``mean``
    holds all means."""

    make: Callable[[int], Variable]
    seconds: Sequence[float]
    mean: arb
    most: arb
    moments: Callable[[int], Moments] | None = None
    """Of each law, where they are known."""

    @classmethod
    def of(cls, laws: Sequence[Variable]) -> Family:
        """Of some laws as they are."""
        seconds = [_above(law.total(lambda v: v * v)) for law in laws]
        order = sorted(range(len(laws)), key=lambda i: -seconds[i])
        mean = reduce(arb.union, (law.total(lambda v: v) for law in laws))
        most = max_of(v for law in laws for v in law.values)
        return cls(lambda i: laws[order[i]], [seconds[i] for i in order], mean, most)

    @classmethod
    def cut(cls, laws: Sequence[Variable], budget: float) -> tuple[Family, arb]:
        """Without rare large values, and what they add at most."""
        parts = [law.cut(budget) for law in laws]
        return cls.of([law for law, _ in parts]), max_of(added for _, added in parts)

    def shared(self, share: arb, away: arb) -> Family:
        """X of random cohorts: share X + (1 - share) away (T5')."""
        rest = (1 - share) * away

        @cache
        def make(place: int) -> Variable:
            law = self.make(place)
            # Zero would be moved, too, and down: it stays.
            return Variable([share * x + rest for x in law.values], law.masses, law.rest)

        seconds = [_above(share**2 * arb(s) + 2 * share * rest * self.mean + rest**2) for s in self.seconds]
        moments, most = self.moments, share * self.most + rest
        moved = None if moments is None or not most > 0 else lambda place: moments(place).moved(share, rest)
        return Family(make, seconds, share * self.mean + rest, positive(most), moved)

    @cached_property
    def widest(self) -> list[Variable]:
        return [self.make(i) for i in range(min(_WIDEST, len(self.seconds)))]

    def unless(self, bound: Callable[[float], arb], enough: arb) -> tuple[arb, range]:
        """Where all laws are but for those of a second moment whose ``bound``, which holds for smaller ones,
        too, is small enough; and, first, a bound of those."""
        low, high, known = 0, len(self.seconds), arb(0)
        while low < high:
            middle = (low + high) // 2
            found = bound(self.seconds[middle])
            if found <= enough:
                high, known = middle, known.max(found)
            else:
                low = middle + 1
        return known, range(high)

    def moment(self, tau: arb, second: float) -> arb:
        """E e^(tau X) of all laws of at most that second moment, from above."""
        if not self.most > 0:
            return arb(1)
        y = tau * self.most
        return 1 + tau * self.mean + arb(second) * (y.expm1() - y) / self.most**2


def known(rows: list[list[float]]) -> tuple[Rows, bool]:
    """Rows, and whether they are their own mirror image, with balls that hold the entries of both."""
    found = [[near(entry) for entry in row] for row in rows]
    both = list(zip(found, [row[::-1] for row in found[::-1]], strict=True))
    if not all(a.overlaps(b) for one, other in both for a, b in zip(one, other, strict=True)):
        return found, False
    return [[a.union(b) for a, b in zip(one, other, strict=True)] for one, other in both], True


@dataclass(frozen=True)
class _Triple:
    """Rows x, x' and z; sums of (x - x')^2/z, (x - x') x'/z and x'^2/z."""

    places: tuple[int, int, int]
    sums: tuple[arb, arb, arb]


class Sides(NamedTuple):
    """Own, other and clone of rows, and how far a report may lie above or below its type's mass: of a matrix
    all three are its rows."""

    own: Rows
    other: Rows
    clone: Rows
    spread: list[arb]

    @classmethod
    def of(cls, rows: Rows) -> Sides:
        return cls(rows, rows, rows, [arb(0)] * len(rows[0]))

    @classmethod
    def spanned(cls, rows: Rows, missed: list[arb], spread: list[arb]) -> Sides:
        """Of rows of which all inputs are mixtures, up to what is missed (T16, section 9)."""
        own, other = (
            [[u * (1 + sign * m) for u, m in zip(row, missed, strict=True)] for row in rows]
            for sign in (1, -1)
        )
        return cls(own, other, other, spread)


@lru_cache(maxsize=8)
def triples(text: str) -> Triples:
    """Of rows as JSON, or of rows that span."""
    found = json.loads(text)
    if not isinstance(found, dict):
        rows, mirrored = known(found)
        return Triples(Sides.of(rows), mirrored)
    (rows, mirrored), others = known(found["rows"]), (found["missed"], found["spread"])
    missed, spread = ([near(one) for one in part] for part in others)
    return Triples(
        Sides.spanned(rows, missed, spread), mirrored and all(part == part[::-1] for part in others)
    )


@dataclass(frozen=True)
class Triples:
    """The laws of all rows x, x' and z of a matrix; of two mirrored triples one. A type with a spread is two
    values of X, of half of its mass each."""

    sides: Sides
    mirrored: bool

    @cached_property
    def _inverse(self) -> Rows:
        return [[1 / entry for entry in row] for row in self.sides.clone]

    @cached_property
    def _cells(self) -> list[tuple[int, int, arb]]:
        """A type, by which sign its spread counts, and which part of the type it is."""
        wide = [place for place, by in enumerate(self.sides.spread) if by > 0]
        plain = [place for place, by in enumerate(self.sides.spread) if not by > 0]
        half = arb(1) / 2
        return [(k, 0, arb(1)) for k in plain] + [(k, sign, half) for sign in (1, -1) for k in wide]

    @cached_property
    def _pairs(self) -> list[tuple[int, int]]:
        """Two inputs that are mixtures of one row still differ inside its types."""
        found = list(permutations(range(len(self.sides.own)), 2))
        alike = any(by > 0 for by in self.sides.spread)
        return found + [(x, x) for x in range(len(self.sides.own)) if alike]

    @cached_property
    def _all(self) -> list[_Triple]:
        last, found = len(self.sides.own) - 1, list[_Triple]()
        squares = [by**2 for by in self.sides.spread]
        for x, y in self._pairs:
            rows = list(zip(self.sides.own[x], self.sides.other[y], squares, strict=True))
            # Of the spread at most both squares: max(u, alpha v)^2 <= u^2 + alpha^2 v^2.
            products = [
                ((u - v) * (u - v) + s * (u * u + v * v), (u - v) * v - s * v * v, (1 + s) * v * v)
                for u, v, s in rows  # no power: that of a ball around zero is no number
            ]
            for z in range(last + 1):
                if not self.mirrored or (x, y, z) <= (last - x, last - y, last - z):
                    a, b, c = (
                        sum((row[i] * w for row, w in zip(products, self._inverse[z], strict=True)), arb(0))
                        for i in range(3)
                    )
                    found.append(_Triple((x, y, z), (a, b, c)))
        return found

    @cached_property
    def _weights(self) -> list[arb_mat]:
        """Parts of 1/R_z^(j - 1), a column for every z, a row for every cell: for j from 0 on."""
        rows = [[row[k] * part for k, _, part in self._cells] for row in self.sides.clone]
        inverse = [[row[k] for k, *_ in self._cells] for row in self._inverse]
        found = [rows]
        while len(found) <= ORDER:
            pairs = zip(found[-1], inverse, strict=True)
            found.append([[a * b for a, b in zip(*pair, strict=True)] for pair in pairs])
        return [arb_mat([list(column) for column in zip(*each, strict=True)]) for each in found]

    def _gaps(self, x: int, y: int, growth: arb) -> list[arb]:
        """Of every cell: X times what hides it."""
        own, other = self.sides.own[x], [(1 + growth) * v for v in self.sides.other[y]]
        return [
            own[k] - other[k] + sign * self.sides.spread[k] * own[k].max(other[k])
            if sign
            else own[k] - other[k]
            for k, sign, _ in self._cells
        ]

    def _moments(self, x: int, y: int, growth: arb, cap: arb) -> list[Moments]:
        """For all z, of X before it is cut, which raises none. Inside are reports where nothing is cut."""
        gaps, columns = self._gaps(x, y, growth), [self._columns[k] for k, *_ in self._cells]
        inside = [bool(high <= (1 + growth + cap) * low) for high, low in columns]
        power, found = [arb(1)] * len(gaps), list[list[arb]]()
        for weights in self._weights:
            part = [value if kept else arb(0) for value, kept in zip(power, inside, strict=True)]
            found.append((arb_mat([power, part]) * weights).entries())
            power = [a * b for a, b in zip(power, gaps, strict=True)]
        count = len(self.sides.clone)
        found[0][:count] = [mass.max(arb(1)) for mass in found[0][:count]]  # what is missing is at zero
        return [Moments([s[z] for s in found], [s[count + z] for s in found]) for z in range(count)]

    @cached_property
    def _columns(self) -> list[tuple[arb, arb]]:
        """The largest and the smallest mass of each type, anywhere in it."""
        own, other, clone = (list(zip(*rows, strict=True)) for rows in self.sides[:3])
        top = [reduce(arb.max, column) * (1 + by) for column, by in zip(own, self.sides.spread, strict=True)]
        least = [
            reduce(arb.min, column) * (1 - by) for column, by in zip(other, self.sides.spread, strict=True)
        ]
        return [
            (high, low.min(reduce(arb.min, column)))
            for high, low, column in zip(top, least, clone, strict=True)
        ]

    def family(self, growth: arb, budget: float) -> tuple[Family, arb]:
        """At alpha = 1 + growth, without rare large values, and what they add at most, in all laws."""
        end = max_of(high / low for high, low in self._columns)
        beyond = arb(0)
        if budget > 0.0:
            for _ in range(_CUTS):
                nearer = _NARROWER * end
                added = self._beyond(nearer)
                if not added <= budget:
                    break
                end, beyond = nearer, added
        cap = arb(end.upper())
        seconds = [
            _above(a - 2 * growth * b + growth**2 * c) for a, b, c in (triple.sums for triple in self._all)
        ]
        order = sorted(range(len(seconds)), key=lambda i: -seconds[i])
        own, other = (reduce(arb.union, (sum(row, arb(0)) for row in rows)) for rows in self.sides[:2])
        mean = own - (1 + growth) * other
        mean = mean.union(mean - beyond)

        @cache
        def make(place: int) -> Variable:
            x, y, z = self._all[order[place]].places
            hidden, clone = self._inverse[z], self.sides.clone[z]
            cells = zip(self._gaps(x, y, growth), self._cells, strict=True)
            values = [(gap * hidden[k]).min(cap) for gap, (k, *_) in cells]
            return Variable(values, [clone[k] * part for k, _, part in self._cells])

        pair = cache(partial(self._moments, growth=growth, cap=cap))

        def moments(place: int) -> Moments:
            x, y, z = self._all[order[place]].places
            return pair(x, y)[z]

        return Family(make, [seconds[i] for i in order], mean, cap, moments), beyond

    @cached_property
    def _beyond(self) -> Callable[[arb], arb]:
        """E[(X - end)_+] of every triple is at most this: X is at most own/clone. Some are kept.

        In a type with a spread own is up to 1 +- spread of its mass, half of it each (T16, section 9)."""
        spread, kept = self.sides.spread, dict[float, arb]()
        halves = [
            [u * (1 + sign * s) for u, s in zip(row, spread, strict=True)]
            for row in self.sides.own
            for sign in (1, -1)
        ]

        def at(end: arb) -> arb:
            if (key := float(end.upper())) not in kept:
                hidden = [[end * w for w in row] for row in self.sides.clone]
                added = [
                    [
                        sum((positive(u - w) for u, w in zip(half, row, strict=True)), arb(0))
                        for half in halves
                    ]
                    for row in hidden
                ]
                both = [(row[i] + row[i + 1]) / 2 for row in added for i in range(0, len(row), 2)]
                kept[key] = arb(reduce(arb.max, both).upper())
            return kept[key]

        return at


def _above(value: arb) -> float:
    """A double that is not below, nor negative."""
    number = float(value.upper())
    return math.inf if math.isnan(number) else math.nextafter(max(number, 0.0), math.inf)
