"""All crowds of one value: which laws of X there are, and which of them can be the worst (T16).

A ``Family`` holds laws that are stated one by one, or all triples (x, x', z) of the rows of a matrix, or of
rows that span a randomizer (section 9 of the proof: own, other and clone are then not the same rows, and a
type is two values of X). Of these there are many, most of which are far from the worst: a law whose second
moment E[X^2] is at most V and whose values are at most b has (Bennett)

    log E e^(tau X) <= -tau (alpha - 1) + V (e^(tau b) - 1 - tau b) / b^2,

which rises with V. So all laws below some V are done at once; only second moments are kept of every triple,
and of those far below the largest one number for all. Among many people a variance from some number on makes
the integral over w small, too: laws between two second moments are done by both (``log_spread``). Where b is
large, X is cut at a cap: that costs at most the local hockey stick H_cap(R_x, R_z), the largest of all pairs;
and values above some b' < b, where X^2 is at most (R_x/R_z)^2, are counted apart: V with b', and the mean of
that square with what b has more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from shuffledp._certified.products import product
from shuffledp._certified.rounding import CALL, LARGEST_EXPONENT, Floats, down, gamma, up
from shuffledp._spans.span import Sides, Span
from shuffledp.accounting._curves.crowd_inside import log_inside
from shuffledp.accounting._curves.crowd_laws import Laws, Taking
from shuffledp.facts import AmplificationLaw, Matrix

Places = npt.NDArray[np.intp]
Table = Matrix | Span

_KEPT = 0.2, 0.4  # speed: of the largest second moment, at alpha = 1; below that one number stands for all
_FEW, _MANY = 5000, 2**18  # speed: so many triples are all kept; of more the second share
_UNITS = 64  # soundness: operations that an exponent carries, beside the sums of moments
_ENTRY = 4  # soundness: operations of an entry of a row
_MIRROR = 8  # soundness: units by which mirror images may differ
_SECOND_ORDER = 1e-14  # soundness: far more than these; covers their square
_LARGEST_TABLE = 2**22  # speed: pairs of inputs times reports
_CAPS = 4  # speed: caps that are tried, in every power of e
_ENDS = tuple(math.exp(0.7 * power) for power in range(1, 16))  # tightness
_STEEP = 20.0  # speed: exponents within which laws may vary so much that nothing is said of them


class Seconds(NamedTuple):
    """E[X^2] = flat + 2 growth tilt + growth^2 bend, each rounded up; ``rest``: of what is left out."""

    flat: Floats
    tilt: Floats
    bend: Floats
    rest: tuple[float, float, float] | None
    doubt: float = math.inf
    """By how much each of the three may exceed the truth."""

    def at(self, taking: Taking, fraction: float) -> tuple[Floats, float]:
        """Of every law, and of what is left out; in a cohort, or among people who flip a coin."""
        found = self._at(self.flat, self.tilt, self.bend, taking, fraction)
        if self.rest is None:
            return found, 0.0
        flat, tilt, bend = map(np.asarray, self.rest)
        return found, float(self._at(flat, tilt, bend, taking, fraction))

    def variance(self, second: Floats, growth: float, fraction: float) -> Floats:
        """At least that of X, of every law that ``at`` gives ``second`` or more (nobody flips a coin).

        E[X] is -growth. What ``at`` adds for its own roundings is less than half of what the three may be off
        by, and some units of growth^2."""
        off = 2.0 * fraction**2 * self.doubt * (1.0 + growth) ** 2
        return np.maximum(second - growth**2 - off - gamma(4 * _UNITS) * (second + growth**2), 0.0)

    @staticmethod
    def _at(flat: Floats, tilt: Floats, bend: Floats, taking: Taking, fraction: float) -> Floats:
        growth, share = taking.growth, fraction * fraction
        told = share * (flat + growth * (2.0 * tilt + growth * (bend - 1.0)))
        doubt = gamma(_UNITS) * (flat + growth * (2.0 * np.abs(tilt) + growth * bend))
        return up(taking.rate * (np.maximum(told, 0.0) + share * doubt) + growth * growth, operations=_UNITS)


@dataclass(frozen=True)
class Family:
    """Laws ``stated`` by their gap, other and clone, or ``places`` x, y, z in a ``table`` of rows."""

    seconds: Seconds
    stated: tuple[Floats, ...] = ()
    places: tuple[Places, ...] = ()
    table: Table | None = None

    @classmethod
    def of_laws(cls, laws: Sequence[AmplificationLaw]) -> Family:
        """These, one by one, filled up to the same number of types."""
        size = max(len(law.own) for law in laws)

        def filled(name: str) -> Floats:
            parts = [getattr(law, name) for law in laws]
            return np.array([(*part, *(0.0,) * (size - len(part))) for part in parts])

        return cls.of_rows(filled("gap"), filled("other"), filled("clone"))

    @classmethod
    def of_rows(cls, gap: Floats, other: Floats, clone: Floats) -> Family:
        """One law a row."""
        size = gap.shape[1]
        least = np.where(clone > 0.0, clone, 1.0)
        off = gamma(4 * size + _UNITS)
        flat = up((gap**2 / least).sum(axis=1), operations=size + 8)
        tilt = -(gap * other / least).sum(axis=1) + off * (np.abs(gap) * other / least).sum(axis=1)
        bend = up((other**2 / least).sum(axis=1), operations=size + 8)
        return cls(Seconds(flat, tilt, bend, None), (gap, other, clone))

    @classmethod
    def of_table(cls, table: Table) -> Family:
        """All triples of its rows, all of whose entries are positive; of mirror images one."""
        places, seconds = _triples(table)
        return cls(seconds, (), places, table)

    @property
    def types(self) -> int:
        return int(self.stated[0].shape[1]) if self.table is None else types_of(self.table)

    @property
    def excess(self) -> float:
        """How much more than 1 - alpha the mean of X may be, over 1 + alpha."""
        return self.table.excess if isinstance(self.table, Span) else 0.0

    def pick(self, some: Places, growth: float, fraction: float, cap: float) -> Laws:
        """The laws of these numbers."""
        if self.table is None:
            gap, other, clone = (part[some] for part in self.stated)
        elif isinstance(self.table, Span):
            x, y, z = (place[some] for place in self.places)
            gap, other, clone = self.table.laws(x, y, z, 1.0 + growth)
        else:
            own, other, clone = (self.table.rows[place[some]] for place in self.places)
            gap = own - other
        return Laws.of(gap, other, clone, growth, fraction, cap)

    def caps(self, most: float) -> list[float]:
        """Where X may be cut, rising; at ``most`` (no law has more) nothing is."""
        if not self._has_pairs:
            return [most]
        caps = math.ceil(_CAPS * math.log1p(most))
        return [*(cap for i in range(caps) if (cap := math.exp(i / _CAPS)) < most), most]

    def cost(self, cap: float, most: float) -> float:
        """At most what cutting X there adds, of any pair."""
        if cap >= most:
            return 0.0
        assert self.table is not None  # laws that are stated are not cut
        return _cost(self.table, cap)

    def ends(self, cap: float) -> list[tuple[float, float]]:
        """Numbers b up to the cap, and at most E[X^2; X > b] of any law."""
        inner = _beyond(self.table) if self._has_pairs and self.table is not None else ()
        return [*((end, beyond) for end, beyond in inner if end < cap), (cap, 0.0)]

    def cut_off(self, cap: float) -> float:
        """At most E[(X - cap)_+^2] of any law."""
        return _square_beyond(self.table, cap) if self.table is not None else math.inf

    @property
    def _has_pairs(self) -> bool:
        return self.table is not None and self.table.rows.size * len(self.table.rows) <= _LARGEST_TABLE


def types_of(table: Table) -> int:
    """Values of X of each law."""
    spread = _sides(table).spread
    return int(spread.size + (spread > 0.0).sum())


def _sides(table: Table) -> Sides:
    """Rows of own, other and clone."""
    if isinstance(table, Span):
        return table.sides
    return Sides(table.rows, table.rows, table.rows, np.zeros(table.rows.shape[1]))


def log_bennett(
    second: Floats, tau: Floats, taking: Taking, ends: Sequence[tuple[float, float]], excess: float = 0.0
) -> Floats:
    """More than log N(tau) / (2 pi) of every law with these second moments (rows).

    ``ends``: numbers b, and what E[X^2; X > b] is at most (rows of the smallest bound are taken); the last is
    never exceeded. ``excess``: of the mean of X, over 1 + alpha. phi is at most its value at w = 0, and then
    N at most pi / tau times its power."""
    end, beyond = np.array(ends).T[:, :, None, None]
    bends = _bend(tau, end)
    more = taking.rate * beyond * np.maximum(bends[-1] - bends, 0.0)
    bend = (second[:, None] * bends + more).min(axis=0)
    drift = tau * taking.growth
    slack = gamma(_UNITS + 2 * CALL) * (drift + bend) * taking.users + gamma(_UNITS)
    more_mean = up(taking.users * tau * excess * (2.0 + taking.growth), 8) if excess else 0.0
    return np.asarray(taking.users * (bend - drift) - np.log(2.0 * tau) + slack + more_mean)


def log_spread(second: Floats, variance: Floats, reach: float, tau: Floats, users: float) -> Floats:
    """More than log of the share of pi / tau that N(tau) / phi(0)^n' is, for laws with |D| up to ``reach``,
    D = X + growth, E[D^2] up to ``second`` and a variance from ``variance`` on (rows); at most 0.

    Under the tilt nothing is more than e^(2 tau reach) times as likely or as rare, so the variance is within
    that factor of these; D lies within ``reach`` of 0 and 0 within a root of E[D^2] of the mean, so that the
    fourth central moment is at most the square of their sum times the variance."""
    turn = 2.0 * tau * reach
    useful, turn = turn < _STEEP, np.minimum(turn, _STEEP)
    units = _UNITS + _UNITS * turn  # a unit of an exponent counts as often as that is large
    least = down(np.outer(variance, np.exp(-turn)), units, tiny=0.0)
    most = up(np.outer(second, np.exp(turn)), units)
    k = up((reach + np.sqrt(most)) ** 2 / 12.0 + 0.25 * most, _UNITS)
    found = log_inside(tau, users * least, k) + np.log(2.0 * tau)
    return np.where(useful, np.minimum(found + gamma(_UNITS) * (1.0 + np.abs(found)), 0.0), 0.0)


def _bend(tau: Floats, end: float | Floats) -> Floats:
    """(e^(tau b) - 1 - tau b) / b^2, rounded up; a unit of tau b counts tau b times."""
    reach = np.minimum(tau * end, LARGEST_EXPONENT)
    rise = np.where(reach < 1.0, _short(np.minimum(reach, 1.0)), np.expm1(reach) - reach)
    return up(rise / end**2, _UNITS + reach)


def _short(y: Floats) -> Floats:
    """e^y - 1 - y from above, for 0 <= y <= 1, without a difference: its series, the last term doubled."""
    term, total = 0.5 * y * y, 0.5 * y * y
    for power in range(3, 16):
        term = term * y / power
        total = total + term
    return np.asarray(up(total + term, operations=64))


@lru_cache(maxsize=16)
def _triples(table: Table) -> tuple[tuple[Places, ...], Seconds]:
    """Places x, y, z of the triples with large second moments, and these."""
    own_rows, other_rows, rows, spread = _sides(table)
    count, off = len(rows), gamma(4.0 * rows.shape[1] + _UNITS)
    a, b, c = (side - rows[0] for side in (own_rows, other_rows, rows))
    images = own_rows, other_rows, rows, spread[None]
    mirrored = all((np.abs(side - side[::-1, ::-1]) <= gamma(_MIRROR) * side).all() for side in images)
    x, y = np.meshgrid(np.arange(count), np.arange(count), indexing="ij")
    # Two inputs that are mixtures of one row still differ inside its types.
    pairs = (x != y) | isinstance(table, Span)
    if mirrored:
        pairs &= (x + y < count - 1) | ((x + y == count - 1) & (x <= y))
    x, y = x[pairs], y[pairs]
    some = [(a[x] - b[y]) ** 2 @ (1.0 / rows[z]) for z in (0, count // 2, count - 1)]
    largest = max(float(part.max(initial=0.0)) for part in some)
    few = isinstance(table, Span) or x.size * count <= _FEW
    least = 0.0 if few else _KEPT[x.size * count > _MANY] * largest
    # Sums that are not one: each of the three is off by no more than some times their excess.
    beside = 8.0 * table.excess if isinstance(table, Span) else 0.0
    kept: list[Floats] = []
    left, most = [0.0, 0.0, 0.0], 0.0
    for z in range(count):
        weighted_a, weighted_b = a / rows[z], b / rows[z]
        cross = product(weighted_a, b.T)[x, y]
        own, other = (weighted_a * a).sum(axis=1)[x], (weighted_b * b).sum(axis=1)[y]
        hidden = float((c[z] / rows[z]) @ c[z])
        # Products are at most the mean of the squares; each is a sum that is off by a share of them.
        doubt = 4.0 * off * (own + other + hidden) + beside
        if mirrored:
            # Entries of the mirror image are off by units of themselves, whatever their differences are.
            norm = _SECOND_ORDER + np.sqrt(own) + np.sqrt(other) + math.sqrt(hidden)
            doubt = doubt + gamma(8 * _MIRROR) * norm * (4.0 + 3.0 * norm)
        most = max(most, 2.0 * float(doubt.max(initial=0.0)))
        seen = weighted_b @ c[z]
        flat = np.maximum(own - 2.0 * cross + other, 0.0) + doubt
        tilt = other - cross + (weighted_a @ c[z])[x] - seen[y] + doubt
        bend = 1.0 + np.maximum(other - 2.0 * seen[y] + hidden, 0.0) + doubt
        if spread.any():  # max(own, alpha other)^2 is at least none, and at most the sum of the squares
            first, second = (
                up(side**2 @ (spread**2 / rows[z]), len(spread)) for side in (own_rows, other_rows)
            )
            flat, tilt, bend = flat + (first[x] + second[y]), tilt + second[y], bend + second[y]
            most = max(most, 2.0 * float((doubt + first[x] + second[y]).max(initial=0.0)))
        far = flat < least
        parts = zip(left, (flat, tilt, bend), strict=True)
        left = [max(known, float(part[far].max(initial=0.0))) for known, part in parts]
        near = ~far
        kept.append(np.stack([x[near], y[near], np.full(near.sum(), z), flat[near], tilt[near], bend[near]]))
    found = np.concatenate(kept, axis=1)
    rest = (left[0], left[1], left[2]) if left[0] > 0.0 else None
    seconds = Seconds(found[3], found[4], found[5], rest, most)
    return tuple(part.astype(np.intp) for part in found[:3]), seconds


@lru_cache(maxsize=256)
def _cost(table: Table, cap: float) -> float:
    return _cut(_sides(table), cap)


def _cut(sides: Sides, cap: float) -> float:
    """The largest sum of (R_x - cap R_z)_+ over all pairs of rows, rounded up: a difference is off by units
    of R_x, the larger of the two where it counts."""
    return _largest(sides, lambda own, row: np.maximum(own - cap * row + gamma(4) * own, 0.0))


def _largest(sides: Sides, measured: Callable[[Floats, Floats], Floats]) -> float:
    """The largest sum over types of any row and clone; inside types the mean of both ends."""
    own, _, clone, spread = sides
    ends = [up(own * (1.0 + spread), _ENTRY), up(own * (1.0 - spread), _ENTRY)] if spread.any() else [own]
    parts = (np.sum([measured(end, row) for end in ends], axis=0).sum(axis=1).max() for row in clone)
    return up(float(max(parts)) / len(ends), operations=own.shape[1] + 12)


@lru_cache(maxsize=16)
def _beyond(table: Table) -> tuple[tuple[float, float], ...]:
    """Numbers b, and ``_square_beyond`` each."""
    return tuple((end, _square_beyond(table, end)) for end in _ENDS)


@lru_cache(maxsize=64)
def _square_beyond(table: Table, end: float) -> float:
    """The largest E[(R_x/R_z)^2; R_x > end R_z] under R_z over all pairs of rows, rounded up."""
    return _largest(_sides(table), lambda own, row: np.where(own > end * row, own**2, 0.0) / row)
