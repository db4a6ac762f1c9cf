"""The privacy blanket of any finite randomizer: the maximum over all ordered pairs of inputs (T1).

The blanket is the part that all inputs share, ``clone[y] = min_x matrix[x][y]``, of total mass gamma. For
inputs x, x' the round is the AmplificationProfile with own = row x, other = row x'; an upper bound for
substitution neighbours. Pairs whose laws are equal up to the order of the outputs are one class (k-ary
randomized response has one, whatever k).

Most families of noise have one worst pair, the leader. At every epsilon the others are compared with it: by
bounds of all at once (``many_laws``), then (a little left of it) by their stop-loss curves, where what they
exceed it by is added if it is a small share of delta (a corollary of T1, docs/proofs/blanket.md). The few
that are left are evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import permutations

import numpy as np

from shuffledp._certified.products import product
from shuffledp._certified.rounding import Floats, positive
from shuffledp._progress import expected
from shuffledp.accounting._curves.combined import LargestProfile
from shuffledp.accounting._curves.farthest import farthest_pairs
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.accounting._curves.many_laws import ManyLaws
from shuffledp.accounting._curves.profile import PrivacyProfile, SupportingLines
from shuffledp.accounting._curves.stop_loss import LawOrder
from shuffledp.accounting._hints.starts import Hints
from shuffledp.errors import NoCertificateError
from shuffledp.facts import Matrix

_FEW_LAWS = 2  # speed: evaluated one by one, without a leader
_MANY_LAWS = 100  # speed: upper bounds are costly
_FEW_LINES = 4  # speed: laws whose lines are looked at
_AT_ONCE = 1 << 17  # speed: pairs times reports, and epsilons
_WORTH = 2  # speed: bounds are one of about so many parts of the work, as a warning of long work counts


@dataclass(frozen=True)
class FiniteBlanketProfile(PrivacyProfile):
    """The blanket of ``matrix`` among n users, over all ordered pairs of inputs."""

    matrix: Matrix
    n: int
    fraction: float = 1.0
    """The share of the population that the n users are, drawn at random (T5', docs/proofs/cohorts.md)."""
    rate: float = 1.0
    """The probability that each of the n users takes part, by a coin of their own."""
    centred: bool = False
    """Of every input and the blanket's own law, both ways, instead of all pairs (T16)."""

    @cached_property
    def laws(self) -> list[AmplificationProfile]:
        """One law per class of pairs, the largest chi-square first."""
        laws = _laws(self.matrix, self.n, self.centred)
        if self.rate < 1.0:
            laws = [law.polled(self.rate) for law in laws]
        return laws if self.fraction == 1.0 else [law.subsampled(self.fraction) for law in laws]

    @cached_property
    def largest(self) -> LargestProfile:
        """All of them, one by one."""
        return LargestProfile(tuple(self.laws))

    @property
    def epsilon_max(self) -> float:
        return self.largest.epsilon_max

    @property
    def infinite_loss(self) -> float:
        return self.largest.infinite_loss

    @cached_property
    def hints(self) -> Hints:
        if not self.laws:
            return Hints(0.0)
        return replace(self.laws[0].hints, costly=len(self.laws) > _MANY_LAWS)

    @property
    def chi(self) -> float:
        """About the largest chi-square of a law, without making any."""
        rows = self.matrix.rows[:, self.matrix.rows.min(axis=0) > 0.0]
        clone = rows.min(axis=0)
        products = product(rows / clone, rows.T)
        if self.centred:
            gamma = clone.sum()
            return float(np.diag(products).max() - 2.0 * rows.sum(axis=1).min() / gamma + 1.0 / gamma)
        sizes = np.diag(products)
        return float((sizes[:, None] - 2.0 * products + sizes).max())

    @property
    def tailed(self) -> bool:
        return bool(self.laws) and self.laws[0].tailed

    @cached_property
    def _order(self) -> LawOrder:
        return LawOrder(tuple(self.laws))

    @cached_property
    def _bounded(self) -> ManyLaws:
        return ManyLaws.of(self.laws)

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        if len(self.laws) <= _FEW_LAWS:
            return self._of_few(epsilon, resolution)
        inside = epsilon * (1.0 - 0.1 * resolution)
        result = self.laws[0].upper(inside, resolution)
        bounds = self._bounds(epsilon)
        places = 1 + np.flatnonzero((bounds[1:] > result).any(axis=1))
        bounds = bounds[places]
        left = bounds > result
        for i in np.flatnonzero(left.any(axis=0)).tolist():
            rows = np.flatnonzero(left[:, i])
            excess = self._order.excess(float(inside[i]), float(epsilon[i]), places[rows])
            small = excess <= 0.1 * resolution * result[i]
            result[i] += excess[small].max(initial=0.0)
            bounds[rows[small], i] = 0.0
        left = bounds > result
        # One by one, each at many points: the largest bounds first, which settle most of the others.
        while left.any():
            row = int(np.argmax((left * bounds / positive(result)).max(axis=1)))
            at = np.flatnonzero(left[row])
            result[at] = np.maximum(result[at], self.laws[places[row]].upper(epsilon[at], resolution))
            bounds[row, at] = 0.0
            left = bounds > result
        return result

    def _bounds(self, epsilon: Floats) -> Floats:
        """No law (rows) is above its bound, at each epsilon."""
        bounded = self._bounded
        if len(self.laws) * epsilon.size * bounded.family.types <= _AT_ONCE:
            return bounded.each(epsilon)
        with expected(_WORTH * epsilon.size, "comparing pairs of inputs") as compared:
            found = []
            for e in epsilon.tolist():
                found.append(bounded.bounds(e))
                compared()
        return np.stack(found, axis=1)

    def _of_few(self, epsilon: Floats, resolution: float) -> Floats:
        """One by one; of inputs and their middle the second law, which has no large values, only where it is
        not known to be below the first."""
        if not (self.centred and len(self.laws) == _FEW_LAWS):
            return self.largest.upper(epsilon, resolution)
        first, second = sorted(self.laws, key=lambda law: -law.epsilon_max)
        result = first.upper(epsilon, resolution)
        above = np.flatnonzero(ManyLaws.of([second]).largest(epsilon) > result)
        if above.size:
            result[above] = np.maximum(result[above], second.upper(epsilon[above], resolution))
        return result

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        if len(self.laws) <= _FEW_LAWS:
            return self.largest.support(epsilon, resolution)
        # Lines below any law will do: the first one, and those that may be the largest.
        middle = float(np.sort(epsilon)[epsilon.size // 2])
        places = np.argsort(-self._bounded.bounds(middle))[:_FEW_LINES].tolist()
        first = self.laws[0].support(epsilon, resolution)
        with suppress(NoCertificateError):
            chosen = tuple(self.laws[place] for place in places if place > 0)
            second = LargestProfile(chosen).support(epsilon, resolution)
            return first.chosen(second, second.value > first.value)
        return first


@lru_cache(maxsize=8)
def _classes(matrix: Matrix, centred: bool) -> list[AmplificationProfile]:
    """One law per class of pairs, of one user, the largest chi-square first."""
    rows = matrix.rows
    clone = rows.min(axis=0)
    hidden = clone > 0.0
    classes: dict[bytes, tuple[float, AmplificationProfile]] = {}
    if centred and clone.all():
        centre = clone / math.fsum(clone)  # two units
        pairs = farthest_pairs(rows, rows, clone, centre)
    else:
        pairs = list(permutations(rows, 2))
    told = [float(((own - other)[hidden] ** 2 / clone[hidden]).sum()) for own, other in pairs]
    for chi, found in zip(told, laws_of_pairs(pairs, clone, 1), strict=True):
        classes.setdefault(found[0], (chi, found[1]))
    return [law for _, law in sorted(classes.values(), key=lambda one: -one[0])]


@lru_cache(maxsize=8)
def _laws(matrix: Matrix, n: int, centred: bool) -> list[AmplificationProfile]:
    """The same, of n users."""
    classes = _classes(matrix, centred)
    return [AmplificationProfile(n, law.own, law.other, law.gap, law.clone) for law in classes]


def laws_of_pairs(
    pairs: Sequence[tuple[Floats, Floats]], clone: Floats, n: int
) -> Iterator[tuple[bytes, AmplificationProfile]]:
    """The law of every ordered pair and a key equal for laws that differ only in rounding or order.

    Keys keep 49 bits: entries that agree differ by at most 8 units, inside ERROR_UNITS."""
    step, ones = max(1, _AT_ONCE // clone.size), np.ones(clone.size)
    for first in range(0, len(pairs), step):
        own, other = (np.array(side) for side in zip(*pairs[first : first + step], strict=True))
        table = np.stack([own, other, own - other, np.broadcast_to(clone, own.shape)])
        mantissa, exponent = np.frexp(table)
        keys = np.ldexp(np.rint(np.ldexp(mantissa, 49)), exponent - 49)
        order = np.lexsort(keys[[0, 1, 3, 2]])
        keys, table = (np.take_along_axis(part, order[None], axis=2) for part in (keys, table))
        fresh = np.asarray(np.any(keys[:, :, 1:] != keys[:, :, :-1], axis=0))
        sent = np.asarray((table[:2] > 0.0).any(axis=0))  # by one of the two
        plain = np.asarray(fresh.all(axis=1) & sent.all(axis=1))
        for row in range(len(own)):
            merged, key, sizes = table[:, row], keys[:, row], ones
            if not plain[row]:
                starts = np.flatnonzero(np.append(True, fresh[row]))
                sizes = np.diff(np.append(starts, clone.size)).astype(np.float64)
                merged, key = np.add.reduceat(merged, starts, axis=1), key[:, starts]
                merged = merged[:, (merged[:2] > 0.0).any(axis=0)]
            law = AmplificationProfile(n, *(tuple(part) for part in merged.tolist()))
            yield np.vstack([key, sizes]).tobytes(), law
