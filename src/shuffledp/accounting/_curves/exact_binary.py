"""Binary randomized response, exactly: the worst case over all other data (T12, docs/proofs/binary.md).

Each of m others holds x, l = n - 1 - m hold x'. With q = e^epsilon0/(e^epsilon0 + 1) the number of reports
"x" among them is F ~ Bin(m, q) + Bin(l, 1 - q), and

    H_alpha(m, l) = max over t of  c1 Pr[F >= t - 1] + c2 Pr[F >= t],
    c1 = q - alpha (1 - q) > 0,   c2 = (1 - q) - alpha q < 0.

The objective is unimodal in t, its maximum near the mean of F tilted by log(-c2/c1). H falls when m or l
grows, so H(m1, n - 1 - m2) bounds H(m, n - 1 - m) for all m in [m1, m2]. Intervals are split until their
bound meets ``resolution``: the cost does not depend on n. Of a large crowd H is smooth along the ridge
m + l = n - 1: there a few blocks of m are bounded by their Taylor polynomials (``TwoBinomials.ridge``).

All of it holds if the others have a q of their own: F is of theirs, c1 and c2 of the person's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from shuffledp._certified.frequencies import DEPTH, Ints
from shuffledp._certified.lattice_sum import Result
from shuffledp._certified.rounding import CALL, Floats, down, gamma, positive, up
from shuffledp._certified.two_binomials import Ridge, TwoBinomials
from shuffledp.accounting._curves.profile import Bools, PrivacyProfile, SupportingLines
from shuffledp.accounting._hints.starts import BinaryHints
from shuffledp.errors import NoCertificateError

Places = npt.NDArray[np.intp]
_Blocks = tuple[Ints, Ints, Floats]

_AT_ONCE = 64  # speed: epsilons of one tilt
_FIRST_INTERVALS = 16
_SPLIT = 8
_MOST_INTERVALS = 80_000
_FEW_INTERVALS = 256  # speed: more take longer than the ridge
_ROWS_AT_ONCE = 2048
_SAMPLE = 16
_TABULATED = 256
_MOST_RECENTERINGS = 4  # speed
_MOST_BLOCKS = 512  # speed
_SMOOTH = 100.0  # speed: variance of the count from which on its being whole hardly shows
_FEWEST_FOR_RIDGE = 1000  # speed: fewer users are looked at in intervals
_OPERATIONS_PER_USER = 2 * CALL + 8  # soundness
"""Of the tabulated probabilities: the larger count of ``keep`` and ``lie``, a product and a sum."""
_STEEPEST = 100.0  # speed: the bar of a likelihood ratio, in logarithms
_STEEPEST_TILT, _FLATTEST_TILT = 200.0, 1e-9  # soundness: nothing overflows in between
_FARTHEST = 600.0  # soundness: likewise, for epsilon
_DEPTH = 24.0  # tightness: of sums, for a resolution of one: what they leave out is far below it
_NUDGE = gamma(64)  # soundness: units of 1 + epsilon that alpha - 1 is moved by

_BAR_UNITS = 4 * CALL  # soundness
"""Of an objective: tanh(epsilon0/2), a common factor of c1 and c2 (the rest of their error is in the nudge);
of an event: ``lie``, two calls and three operations. Then the scale's exponential, a product and a sum."""

EXACT_LIMIT = 10**8
"""Up to this n the best threshold can be told from its neighbours in double precision."""


@dataclass(frozen=True)
class _BinaryProfile(PrivacyProfile):
    """What both have in common: a person of epsilon0 among n - 1 others of epsilon0 = ``_crowd``."""

    n: int
    epsilon0: float

    @property
    def _crowd(self) -> float:
        return self.epsilon0

    @property
    def epsilon_max(self) -> float:
        return self.epsilon0

    @cached_property
    def hints(self) -> BinaryHints:
        # Chi-square of a shift by one of a variable with variance n q (1 - q).
        spread = 0.5 / math.cosh(0.5 * self._crowd)
        return BinaryHints(math.tanh(0.5 * self.epsilon0) / math.sqrt(1.0 + self.n * spread * spread))

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        if self.n <= _TABULATED:
            return np.array([self._tabulated(float(e))[0] for e in epsilon])
        return self._maxima(epsilon, resolution, None)

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        if self.n <= _TABULATED:
            lines = [self._tabulated(float(e))[1:] for e in epsilon]
            return SupportingLines(epsilon, *np.array(lines).reshape(-1, 3).T)
        found = np.zeros((3, epsilon.size))
        for places, bars in self._bars(epsilon, _NUDGE, resolution):
            m = _sample(self.n, _SAMPLE, max(1, int(0.5 / (_SAMPLE * bars.lie))))
            found[:, places] = bars.tests(m)
        return SupportingLines(epsilon, *found)

    def both_or_crude(self, epsilon: Floats, resolution: float) -> tuple[Floats, Bools, SupportingLines]:
        if self.n <= _TABULATED:
            return super().both_or_crude(epsilon, resolution)
        lines = self.support(epsilon, resolution)
        return self._maxima(epsilon, resolution, lines), np.zeros(epsilon.size, bool), lines

    def _maxima(self, epsilon: Floats, resolution: float, lines: SupportingLines | None) -> Floats:
        """Upper bounds of the maxima over m: along the ridge, or of intervals that are split until they are
        good enough, below what the lines reach at a slightly smaller epsilon. Few suffice in the tail."""
        found = np.zeros(epsilon.size)
        for places, bars in self._bars(epsilon, -_NUDGE, resolution):
            smooth = self.n * bars.keep * bars.lie > _SMOOTH
            blocks = self._blocks(bars, resolution) if smooth else self._intervals(bars)
            if np.isfinite(blocks[2]).all():
                found[places] = blocks[2].max(axis=1)
                continue
            lines = lines or self.support(epsilon, resolution)
            back = np.exp(np.minimum(epsilon, _FARTHEST)) * -np.expm1(-0.5 * resolution * epsilon)
            enough = np.maximum(lines.value + lines.slope_low * back, lines.value * (1.0 + resolution))[
                places
            ]
            few = self.n > _FEWEST_FOR_RIDGE and not smooth
            found[places], many = self._split_up(
                bars, blocks, enough, _FEW_INTERVALS if few else _MOST_INTERVALS
            )
            if few and many.any():
                rows = np.flatnonzero(many)
                blocks = self._blocks(bars[rows], resolution)
                found[places[rows]] = self._split_up(bars[rows], blocks, enough[rows], _MOST_INTERVALS)[0]
        return up(found, operations=_BAR_UNITS)

    def _bars(self, epsilon: Floats, nudge: float, resolution: float) -> Iterator[tuple[Places, _Bars]]:
        """Those of every epsilon whose curve is not zero, a few that have about the same tilt at once."""
        c1, c2 = np.array([_bar(float(e), self.epsilon0, nudge) for e in epsilon]).reshape(-1, 2).T
        live = np.flatnonzero(c1 > 0.0)
        depth = min(DEPTH, _DEPTH - math.log(resolution))
        coins = *_coin(self._crowd), _coin(self.epsilon0)
        bars = _Bars(*coins, c1[live], c2[live], self.n - 1, self.hints, depth)
        tilts = bars.tilts
        order = np.argsort(tilts)
        while order.size:
            most = self.hints.alike(float(tilts[order[0]]), bars.keep, bars.lie, bars.users)
            like = min(max(int((tilts[order] <= most).sum()), 1), _AT_ONCE)
            yield live[order[:like]], bars[order[:like]]
            order = order[like:]

    def _tabulated(self, epsilon: float) -> tuple[float, float, float, float]:
        """(upper, value, Q(A) low, Q(A) high) for few users: every dataset, every count."""
        above, below = (_bar(epsilon, self.epsilon0, nudge) for nudge in (-_NUDGE, _NUDGE))
        if above[0] <= 0.0:
            return 0.0, 0.0, 0.0, 0.0
        table, (keep, lie) = _counts(self.n, *_coin(self._crowd)), _coin(self.epsilon0)
        before, here = table[:, :-1], table[:, 1:]
        count = _OPERATIONS_PER_USER * self.n + 4
        slack = gamma(count) * (above[0] * before - above[1] * here)
        sums = np.maximum(above[0] * before + above[1] * here + slack, 0.0).sum(axis=1)
        terms = np.maximum(below[0] * before + below[1] * here - slack, 0.0)
        best = int(terms.sum(axis=1).argmax())
        event = terms[best] > 0.0
        q = float((lie * before[best] + keep * here[best])[event].sum())
        # Sums of up to n + 1 terms that are >= 0, each of two products, a sum and the slack.
        return (
            up(min(float(sums.max()), above[0]), operations=self.n + 8),
            down(float(terms[best].sum()), operations=self.n + 8, tiny=0.0),
            down(q, operations=count + self.n, tiny=0.0),
            up(q, operations=count + self.n, tiny=0.0),
        )

    def _split_up(self, bars: _Bars, blocks: _Blocks, enough: Floats, most: int) -> tuple[Floats, Bools]:
        """The largest bound of all intervals, those that are not good ``enough`` being split; and where more
        than so many were open, so that all counted as they were."""
        low, high, bound = blocks
        result = np.where(bound <= enough[:, None], bound, 0.0).max(axis=1)
        row, place = np.nonzero(bound > enough[:, None])
        low, high, many = low[place], high[place], np.zeros(enough.size, bool)
        while row.size:
            found = bars[row].maximise(low.astype(np.float64), (self.n - 1 - high).astype(np.float64))
            # Single datasets are exact.
            open_ = (found > enough[row]) & (high > low)
            many |= np.bincount(row[open_], minlength=enough.size) > most // _SPLIT
            open_ &= ~many[row]
            np.maximum.at(result, row[~open_], found[~open_])
            row, low, high = _split(row[open_], low[open_], high[open_])
        return result, many

    def _blocks(self, bars: _Bars, resolution: float) -> _Blocks:
        """Intervals along the ridge, each with bounds (rows), infinite where none was proved."""
        if self.n > _FEWEST_FOR_RIDGE:
            with suppress(NoCertificateError):
                low, high, bound = bars.ridge(resolution)
                return low, high, np.where(np.isfinite(bound), np.minimum(bound, bars.c1[:, None]), np.inf)
        return self._intervals(bars)

    def _intervals(self, bars: _Bars) -> _Blocks:
        """A few that hold all m, without bounds."""
        edges = np.unique(np.linspace(0, self.n, _FIRST_INTERVALS + 1).astype(np.int64))
        return edges[:-1], edges[1:] - 1, np.full((bars.c1.size, edges.size - 1), np.inf)


@dataclass(frozen=True)
class ExactBinaryProfile(_BinaryProfile):
    """The profile of n shuffled binary randomized responses, for the adversary who knows the rest."""


@dataclass(frozen=True)
class BinaryAmongProfile(_BinaryProfile):
    """Of one of ``epsilon0`` among n - 1 of another one, ``others``."""

    others: float

    @property
    def _crowd(self) -> float:
        return self.others


def _coin(epsilon0: float) -> tuple[float, float]:
    """The probabilities of the truth and of a lie."""
    keep = 1.0 / (1.0 + math.exp(-epsilon0))
    return keep, keep * math.exp(-epsilon0)


def _bar(epsilon: float, epsilon0: float, nudge: float) -> tuple[float, float]:
    """c1 and c2 from q - (1 - q) and alpha - 1, so that neither cancels.

    Their rounding error is that of a few units in epsilon: ``nudge`` steps outward."""
    keep, lie = _coin(epsilon0)
    gap = math.tanh(0.5 * epsilon0)
    growth = math.expm1(min(epsilon, _FARTHEST)) * (1.0 + nudge * (1.0 + epsilon))
    return gap - growth * lie, -gap - growth * keep


@dataclass(frozen=True)
class _Bars:
    """Bars that a likelihood ratio must pass, one a row: the coefficients of the objectives, of ``users``
    who keep their bit or lie; ``own``: those probabilities of the person.

    Any tilt and any threshold to look at first is valid: ``hints`` say which are good. ``depth``: of sums, at
    first; what it does not prove is looked at more deeply."""

    keep: float
    lie: float
    own: tuple[float, float]
    c1: Floats
    c2: Floats
    users: int
    hints: BinaryHints
    depth: float

    def __getitem__(self, rows: Places | slice) -> _Bars:
        return replace(self, c1=self.c1[rows], c2=self.c2[rows])

    def _repeated(self, times: int) -> _Bars:
        return replace(self, c1=np.repeat(self.c1, times), c2=np.repeat(self.c2, times))

    def maximise(self, m: Floats, others: Floats) -> Floats:
        """Upper bounds of H(m, l), row by row: the maximum over thresholds, by unimodality."""
        parts = np.array_split(np.arange(m.size), 1 + m.size // _ROWS_AT_ONCE)
        return np.concatenate([self[part]._maximise(m[part], others[part], self._theta) for part in parts])

    def _maximise(self, m: Floats, others: Floats, theta: float) -> Floats:
        threshold = self._threshold(m, others)
        result = self.c1.copy()  # H <= c1 always, since c2 < 0
        todo, depth = np.arange(m.size), self.depth
        for _ in range(50):
            found = self[todo]._objective(m[todo], others[todo], threshold[todo], theta, depth)
            depth, sure = DEPTH, found.value - found.error
            done, top = _unimodal_maximum(sure, found.value + found.error)
            scaled = np.exp(np.minimum(found.log_scale[done], 300.0)) * np.maximum(top[done], 0.0)
            result[todo[done]] = np.minimum(scaled, self.c1[todo[done]])
            threshold[todo] += sure.argmax(axis=1) - 2.0
            todo = todo[~done]
            if not todo.size:
                break
        return result

    def _objective(self, m: Floats, others: Floats, threshold: Floats, theta: float, depth: float) -> Result:
        """The objective at threshold - 2, ..., threshold + 2 (columns)."""
        law = TwoBinomials(m, others, self.keep, self.lie, theta, depth)
        return law.tails(self.c1[None], self.c2[None], threshold, shifts=(-2, -1, 0, 1, 2))[0]

    def ridge(self, resolution: float) -> tuple[Ints, Ints, Floats]:
        """(low, high, bounds): upper bounds (rows) of H(m, users - m) in intervals that hold all m; inf where
        not proved."""
        theta, least = self._theta, float(self._ratio.min())
        cells = self.hints.ridge(least, theta, self.keep, self.lie, self.users, resolution)
        if not cells.blocks < _MOST_BLOCKS:
            raise NoCertificateError("too many blocks of datasets")
        edges = np.unique(np.linspace(0, self.users + 1, math.ceil(cells.blocks) + 1).astype(np.int64))
        low, high = edges[:-1], edges[1:] - 1
        m = ((low + high) // 2).astype(np.float64)
        half = float(np.maximum(high - m, m - low).max())
        grid = Ridge(half, cells.step, cells.step * np.arange(-cells.columns, cells.columns + 1.0))
        each = max(1, _ROWS_AT_ONCE // m.size)
        parts = [self[at : at + each]._on_ridge(m, grid, theta) for at in range(0, self.c1.size, each)]
        return low, high, np.concatenate(parts)

    def _on_ridge(self, middle: Floats, grid: Ridge, theta: float) -> Floats:
        rows, m = self._repeated(middle.size), np.tile(middle, self.c1.size)
        threshold, result = rows._threshold(m, self.users - m), np.zeros(m.size)
        todo, depth = np.arange(m.size), self.depth
        for _ in range(_MOST_RECENTERINGS):
            law = TwoBinomials(m[todo], self.users - m[todo], self.keep, self.lie, theta, depth)
            bars, depth = rows[todo], DEPTH
            result[todo], threshold[todo] = law.ridge(bars.c1, bars.c2, threshold[todo], grid)
            todo = np.flatnonzero(np.isinf(result))
            if not todo.size:
                break
        return result.reshape(-1, middle.size)

    def tests(self, sample: Floats) -> Floats:
        """(value, Q(A) low, Q(A) high) of "at least t reports x" for the best dataset and t, as columns."""
        rows, m = self._repeated(sample.size), np.tile(sample, self.c1.size)
        threshold, theta = rows._threshold(m, self.users - m), self._theta
        found = rows._objective(m, self.users - m, threshold, theta, self.depth)
        sure = found.value - found.error
        threshold = threshold + sure.argmax(axis=1) - 2.0
        height = found.log_scale + np.log(positive(sure.max(axis=1)))
        best = sample.size * np.arange(self.c1.size) + height.reshape(-1, sample.size).argmax(axis=1)
        law = TwoBinomials(m[best], self.users - m[best], self.keep, self.lie, theta, self.depth)
        keep, lie = np.full((2, best.size), np.array(self.own)[:, None])
        weights = np.stack([self.c1, lie]), np.stack([self.c2, keep])
        value, event = law.tails(*weights, threshold[best])
        scale = np.exp(np.minimum(value.log_scale, 300.0))
        low, *around = (
            scale * np.maximum(end[:, 0], 0.0)
            for end in (value.value - value.error, event.value - event.error, event.value + event.error)
        )
        return np.stack(
            [
                *(down(end, _BAR_UNITS, tiny=0.0) for end in (low, around[0])),
                up(around[1], _BAR_UNITS, tiny=0.0),
            ]
        )

    @property
    def _ratio(self) -> Floats:
        return np.minimum(np.log(-self.c2 / np.maximum(self.c1, 1e-280)), _STEEPEST)

    @property
    def tilts(self) -> Floats:
        """One that suits each."""
        found = self.hints.tilt(self._ratio, self.keep, self.lie, self.users)
        return np.clip(found, _FLATTEST_TILT, _STEEPEST_TILT)

    @property
    def _theta(self) -> float:
        """One for all."""
        tilts = self.tilts
        return 0.5 * float(tilts.min() + tilts.max())

    def _threshold(self, m: Floats, others: Floats) -> Floats:
        """Where to look first."""
        found = self.hints.threshold(self._ratio, self.keep, self.lie, m, others)
        return np.clip(np.rint(found), 0.0, m + others + 1.0)


def _unimodal_maximum(bottom: Floats, top: Floats) -> tuple[npt.NDArray[np.bool_], Floats]:
    """(found, upper bound) of the maximum of a unimodal sequence enclosed at neighbouring places.

    It is found if on both sides of the best place some place is certainly lower: the maximum then
    lies strictly between the nearest such two, whatever the errors farther out."""
    columns = np.arange(bottom.shape[1])
    place = bottom.argmax(axis=1)[:, None]
    lower = top < bottom.max(axis=1)[:, None]
    left = np.where(lower & (columns < place), columns, -1).max(axis=1)[:, None]
    right = np.where(lower & (columns > place), columns, columns.size).min(axis=1)[:, None]
    between = np.where((columns > left) & (columns < right), top, -np.inf).max(axis=1)
    found = (left[:, 0] >= 0) & (right[:, 0] < columns.size)
    return found, between


@lru_cache(maxsize=8)
def _counts(n: int, keep: float, lie: float) -> Floats:
    """Row m: the law of Bin(m, keep) + Bin(n - 1 - m, lie) at -1, 0, ..., n (zero at both ends)."""
    table = np.zeros((n, n + 2))
    table[:, 1] = 1.0
    for users in range(n - 1):
        # Row m gains one more user: of the first kind while users < m.
        first = (np.arange(n) > users)[:, None]
        one, zero = np.where(first, keep, lie), np.where(first, lie, keep)
        table[:, 1:] = zero * table[:, 1:] + one * table[:, :-1]
    return table


@lru_cache(maxsize=8)
def _sample(n: int, size: int, step: int) -> Floats:
    """Values of m: ``size`` evenly spread and as many from the top, where the worst usually is.

    Those are ``step`` apart: where few lie, one more m moves the count's law by nearly a whole place, so that
    neighbours are alike."""
    spread = np.linspace(0, n - 1, size).astype(np.int64)
    top = np.maximum(n - 1 - step * np.arange(size, dtype=np.int64), 0)
    return np.unique(np.concatenate([spread, top])).astype(np.float64)


def _split(row: Places, low: Ints, high: Ints) -> tuple[Places, Ints, Ints]:
    """Every interval [low, high] of a row in up to so many parts."""
    part = np.tile(np.arange(_SPLIT), low.size)
    row, low, high = (np.repeat(each, _SPLIT) for each in (row, low, high))
    size = high - low + 1
    first, last = low + part * size // _SPLIT, low + (part + 1) * size // _SPLIT - 1
    keep = last >= first
    return row[keep], first[keep], last[keep]
