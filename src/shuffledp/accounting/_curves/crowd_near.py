"""Moments of many laws of X at every alpha, from those at alpha = 1 (T16, section 6, "nearby alphas").

Triples of rows are thousands, and so are those that second moments alone do not settle. As alpha grows X
falls by (alpha - 1) R_y/R_z, so that D = X + alpha - 1 moves by no more than (alpha - 1) (R_y/R_z + 1), also
where X is cut (in a cohort, where it is cut, by alpha - 1 at most or by a share of that). Norms differ by no
more than the norm of that. So moments that are taken once, of laws in blocks, the largest first, tell of all
alphas what settles most laws. Those of which they do not are looked at themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from shuffledp._certified.rounding import CALL, LARGEST_EXPONENT, Floats, down, gamma, positive, up
from shuffledp.accounting._curves.crowd_family import Family, Places
from shuffledp.accounting._curves.crowd_moments import Moments

_UNITS = 64  # soundness: operations of a norm or a bound
_BLOCK = 256  # speed: laws whose moments are taken together
_MOST = 1 << 17  # speed: of these, times types
_KEPT = 1024  # speed: blocks
_NORMS = 2, 3, 4, 6
_CLOSE = 2.0**20  # soundness: units, far more than a value is off by


class _Block(NamedTuple):
    """Moments at alpha = 1; norms, rounded up, of what X + alpha - 1 moves by from there to alpha = 2; and
    ``mean`` + b ``slope`` is within ``off`` (1 + b) of the mean of X + b at alpha = 1 + b, without a cut."""

    moments: Moments
    moves: Floats
    mean: Floats
    slope: Floats
    off: Floats

    def some(self, rows: Places) -> _Block:
        mean, slope, off = (part[rows] for part in (self.mean, self.slope, self.off))
        return _Block(self.moments.some(rows), self.moves[:, rows], mean, slope, off)

    @classmethod
    def joined(cls, parts: list[_Block]) -> _Block:
        low, high, top, doubts = zip(*(part.moments for part in parts), strict=True)
        doubt = doubts[0][0], np.concatenate([each for _, each in doubts])
        moments = Moments(
            np.concatenate(low, axis=1), np.concatenate(high, axis=1), np.concatenate(top), doubt
        )
        moves = np.concatenate([part.moves for part in parts], axis=1)
        return cls(
            moments, moves, *(np.concatenate(each) for each in zip(*(p[2:] for p in parts), strict=True))
        )


@dataclass(frozen=True, eq=False)
class Nearby:
    """Of a ``family``, in cohorts that are a ``fraction`` of all."""

    family: Family
    fraction: float

    @cached_property
    def _order(self) -> Places:
        """The largest second moments first."""
        return np.argsort(-self.family.seconds.flat, kind="stable")

    @cached_property
    def _rank(self) -> Places:
        found = np.empty_like(self._order)
        found[self._order] = np.arange(found.size)
        return found

    @property
    def _size(self) -> int:
        return max(1, min(_BLOCK, _MOST // self.family.types))

    @cached_property
    def _block(self) -> Callable[[float, int], _Block]:
        """Some are kept, as long as this value is."""
        return lru_cache(maxsize=_KEPT)(self._block_of)

    def _block_of(self, cap: float, number: int) -> _Block:
        some = self._order[number * self._size : (number + 1) * self._size]
        laws, share = self.family.pick(some, 0.0, self.fraction, cap), self.fraction
        unit, terms = gamma(_UNITS + 4 * self.family.types), 8 * self.family.types + _UNITS
        # A share of R_y/R_z + 1, and one at least where X may be cut.
        move = np.maximum(laws.ratio + (2.0 * share - 1.0), 0.0) + unit * (laws.ratio + 2.0)
        move = np.where(up(laws.size, _CLOSE) >= cap, np.maximum(move, 1.0), move)
        moves = np.stack([_root((laws.p * move**power).sum(axis=1), power, terms) for power in _NORMS])
        told = np.where(laws.x > 0.0, laws.size, laws.x)
        mean, slope = (laws.p * told).sum(axis=1), (laws.p * (1.0 - laws.ratio)).sum(axis=1)
        off = unit * (1.0 + (laws.p * (laws.size + laws.ratio + 1.0)).sum(axis=1))
        found = moves[:, :, None], mean[:, None], slope[:, None], off[:, None]
        return _Block(Moments.of(laws, 0.0), *found)

    def at(
        self, some: Places, growth: float, cap: float, second: Floats, variance: Floats, cut: float
    ) -> Moments:
        """Of these laws at alpha = 1 + growth, cut at ``cap``, which takes up to ``cut`` of the mean of X; of
        its square that is at most ``second``, and the variance of X, cut, at least ``variance``."""
        order = np.argsort(self._rank[some])
        rank = self._rank[some][order]
        numbers = rank // self._size
        block = _Block.joined(
            [
                self._block(cap, number).some(rank[numbers == number] - number * self._size)
                for number in np.unique(numbers).tolist()
            ]
        )
        back = block.some(np.argsort(order))
        unit = 16.0 * gamma(_UNITS + 4 * self.family.types)
        return _moved(back, growth, second[:, None], variance[:, None], cut, cap, unit)


@np.errstate(over="ignore", invalid="ignore")  # of huge values nothing is said
def _moved(
    block: _Block, growth: float, second: Floats, variance: Floats, cut: float, cap: float, unit: float
) -> Moments:
    base, (two, three, four, six) = block.moments, growth * block.moves
    mean = block.mean + growth * block.slope
    off = block.off * (1.0 + growth)  # several times what is needed
    # E[D^2] = E[X^2] - growth^2 + 2 growth E[D]; cutting takes of its size.
    square = second - growth**2 + 2.0 * growth * np.maximum(mean, 0.0)
    square = np.maximum(square, 0.0) + 2.0 * growth * off + gamma(_UNITS) * (second + growth**2)
    fourth, sixth = (_root(base.high[power - 1], power, _UNITS) for power in (4, 6))
    fourth, sixth = up(fourth + four, _UNITS), up(sixth + six, _UNITS)
    least = np.sqrt(np.sqrt(down(np.maximum(base.low[3], 0.0), _UNITS)))
    least = down(np.maximum(least - up(four, _UNITS), 0.0), _UNITS)
    # |u^3 - v^3| <= 3 |u - v| max^2, |u^5 - v^5| <= 5 |u - v| max^4, and Hoelder's inequality.
    cubic, fifth = up(3.0 * two * fourth**2, _UNITS), up(5.0 * three * sixth**4, _UNITS)
    low = [mean - off - cut, variance, base.low[2] - cubic, least**4, base.low[4] - fifth, 0.0 * square]
    high = [mean + off, square, base.high[2] + cubic, fourth**4, base.high[4] + fifth, sixth**6]
    slack = gamma(_UNITS)
    low, high = [part - slack * np.abs(part) for part in low], [part + slack * np.abs(part) for part in high]
    top = np.minimum(up(base.top + growth, _UNITS), up(cap + growth, _UNITS))
    doubt = base.doubt[1] + unit * (two + 2.0 * growth)  # likewise
    return Moments(np.stack(low), np.stack(high), top, (base.doubt[0], doubt))


def _root(x: Floats, power: int, units: float) -> Floats:
    """Rounded up: a logarithm is off by units of up to LARGEST_EXPONENT, about."""
    return up(np.exp(np.log(positive(up(x, units))) / power), 2 * CALL * (1.0 + LARGEST_EXPONENT))
