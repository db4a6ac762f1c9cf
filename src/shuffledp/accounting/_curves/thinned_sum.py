"""A sum with only a part of its discrete Laplace noise, as some who should have added a share did not (T18).

``share`` = r in (0, 1] of the shares add up to Z = G - G', both negative binomial: G = j has probability
p(j) = (1 - a)^r (r)_j/j! a^j, a = e^(-1/scale), and Z = k has f(k) = sum_j p(j) p(j + |k|). That is
symmetric, falls with |k| and is log-convex on either side, so that the largest move of the sum, by
``levels`` = L, is the worst, and no outcome tells more than Z = 0: from epsilon = log f(0)/f(L) on the
curve is zero. Elsewhere it is summed up, over a table of f that is made by Fourier transforms of p. What that
is off by is part of ``off``: see ``near``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from shuffledp._certified.rounding import CALL, Floats, additions, capped, down, gamma, positive, total, up
from shuffledp.accounting._curves.near import NearProfile
from shuffledp.accounting._hints.starts import NearHints, table_turn

_MOST = 2**23  # speed and memory: entries of tables
_DEPTH = 45.0  # soundness: p ends at so many scales, where e^-45 of it is left


def tabled(levels: int, scale: float) -> bool:
    """Whether a table of the noise is not too large."""
    return levels + _DEPTH * scale <= _MOST


class _Table(NamedTuple):
    """Outcomes by falling likelihood ratio, and the masses of all up to each one."""

    ratio: Floats
    own: Floats
    other: Floats
    error: float
    """Of either mass, at most."""


@dataclass(frozen=True)
class ThinnedSumProfile(NearProfile):
    """The curve of the module, for one direction: the other is the same."""

    levels: int
    scale: float
    share: float
    beyond: float = 0.0
    """The distance from the curve of the module; negative for a lower bound."""
    made_of: tuple[int, int, int, float, int] | None = None
    """People, their messages, the modulus, the distance of their noise, and who were to add it: for
    certificates."""

    @cached_property
    def off(self) -> float:
        return math.copysign(up(abs(self.beyond) + self._table.error, 1), self.beyond)

    def other_side(self) -> Self:
        return replace(self, beyond=-self.beyond)

    @cached_property
    def _law(self) -> tuple[Floats, Floats]:
        """p, and the units that each entry was computed with."""
        j = np.arange(float(self.levels + math.ceil(_DEPTH * self.scale)))
        factor = math.exp(-1.0 / self.scale) * ((j[1:] - 1.0 + self.share) / j[1:])
        first = math.exp(self.share * math.log(-math.expm1(-1.0 / self.scale)))
        # A share that is off by a unit counts like one of each factor; of the first, by its exponent.
        units = (CALL + 6.0 + 1.0 / self.scale) * j + 4 * CALL * (1.0 - math.log(first))
        return np.cumprod(np.concatenate([[first], factor])), units

    @cached_property
    def _pure(self) -> float:
        p, units = self._law
        added = additions(p.size) + 1
        most = up(float(total(up(p, units) ** 2)), added) + math.exp(-_DEPTH)
        low = down(p, units)
        least = down(float(total(low[: p.size - self.levels] * low[self.levels :])), added)
        return up(math.log(up(most / positive(least), 2)), CALL)

    @cached_property
    def hints(self) -> NearHints:
        return NearHints(self._pure, turn=lambda off: table_turn(self._table.ratio, self._table.other, off))

    @cached_property
    def _table(self) -> _Table:
        """All outcomes that tell for P: Z = k against Z = k + L, k >= -L/2."""
        p, units = self._law
        size = 1 << (2 * p.size - 1).bit_length()
        f = np.maximum(np.fft.irfft(np.abs(np.fft.rfft(p, size)) ** 2, size)[: p.size], 0.0)
        # Every entry of a transform is off by ``stage`` of the sum of what goes in, one; its square by
        # 2 |X| stage + stage^2, in the root mean square (Parseval) by 2 |p| stage + stage^2; and any sum of N
        # entries by the root of N times the root of the sum of their squares. The way back likewise.
        stage, norm = gamma(16.0 * math.log2(size) + 4 * CALL), float(total(p * p))
        there = math.sqrt(p.size) * (2.0 * math.sqrt(norm) * stage + stage * stage)
        law = 2.0 * (float(total(p * gamma(units))) + math.exp(1.0 - _DEPTH))
        moved = up(2.0 * (there + p.size * stage * norm + law), additions(p.size) + 8 * CALL)
        k = np.arange(-(self.levels // 2), p.size)
        own, other = f[np.abs(k)], np.append(f, np.zeros(self.levels))[k + self.levels]
        ratio = own / positive(other)
        order = np.argsort(-ratio, kind="stable")
        first, second = (np.concatenate([[0.0], np.cumsum(mass[order])]) for mass in (own, other))
        return _Table(ratio[order], first, second, up(moved + gamma(k.size), 2))

    def _central(self, epsilon: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        table, alpha = self._table, np.exp(capped(epsilon))
        count = np.searchsorted(-table.ratio, -alpha)
        live = epsilon < self._pure
        own, event = (np.where(live, mass[count], 0.0) for mass in (table.own, table.other))
        value = np.maximum(own - alpha * event, 0.0)
        error = gamma(4 * CALL) * (own + alpha * event)  # an outcome that is missed tells as little
        return value, error, event, np.zeros_like(event)
