"""Binary randomized response, exactly: the worst case over all other data (T12, docs/proofs/binary.md).

Each of m others holds x, l = n - 1 - m hold x'. With q = e^epsilon0/(e^epsilon0 + 1) the number of reports
"x" among them is F ~ Bin(m, q) + Bin(l, 1 - q), and

    H_alpha(m, l) = max over t of  c1 Pr[F >= t - 1] + c2 Pr[F >= t],
    c1 = q - alpha (1 - q) > 0,   c2 = (1 - q) - alpha q < 0.

The objective is unimodal in t, its maximum near the mean of F tilted by log(-c2/c1). H falls when m or l
grows, so H(m1, n - 1 - m2) bounds H(m, n - 1 - m) for all m in [m1, m2]. Intervals are split until their
bound meets ``resolution``: the cost does not depend on n. Of a large crowd H is smooth along the ridge
m + l = n - 1: there a few blocks of m are bounded by their Taylor polynomials (``TwoBinomials.ridge``).
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from shuffledp._certified.frequencies import Ints
from shuffledp._certified.lattice_sum import Result
from shuffledp._certified.rounding import CALL, Floats, down, gamma, positive, up
from shuffledp._certified.two_binomials import Ridge, TwoBinomials
from shuffledp.accounting._curves.profile import PrivacyProfile, SupportingLines
from shuffledp.accounting._hints.starts import BinaryHints
from shuffledp.errors import NoCertificateError

_FIRST_INTERVALS = 16
_SPLIT = 4
_MOST_INTERVALS = 20_000
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
_NUDGE = gamma(64)  # soundness: units of 1 + epsilon that alpha - 1 is moved by

_BAR_UNITS = 4 * CALL  # soundness
"""Of an objective: tanh(epsilon0/2), a common factor of c1 and c2 (the rest of their error is in the nudge);
of an event: ``lie``, two calls and three operations. Then the scale's exponential, a product and a sum."""

EXACT_LIMIT = 10**8
"""Up to this n the best threshold can be told from its neighbours in double precision."""


@dataclass(frozen=True)
class ExactBinaryProfile(PrivacyProfile):
    """The profile of n shuffled binary randomized responses, for the adversary who knows the rest."""

    n: int
    epsilon0: float

    @property
    def epsilon_max(self) -> float:
        return self.epsilon0

    @cached_property
    def hints(self) -> BinaryHints:
        # Chi-square of a shift by one of a variable with variance n q (1 - q).
        spread = 0.5 / math.cosh(0.5 * self.epsilon0)
        return BinaryHints(math.tanh(0.5 * self.epsilon0) / math.sqrt(1.0 + self.n * spread * spread))

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        if self.n <= _TABULATED:
            return np.array([self._tabulated(float(e))[0] for e in epsilon])
        return np.array([self._maximum(float(e), resolution) for e in epsilon])

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        if self.n <= _TABULATED:
            lines = [self._tabulated(float(e))[1:] for e in epsilon]
        else:
            lines = [self._best_test(float(e)) for e in epsilon]
        return SupportingLines(epsilon, *np.array(lines).reshape(-1, 3).T)

    def _bar(self, epsilon: float, nudge: float) -> _Bar:
        return _Bar.at(epsilon, self.epsilon0, nudge, self.hints)

    def _tabulated(self, epsilon: float) -> tuple[float, float, float, float]:
        """(upper, value, Q(A) low, Q(A) high) for few users: every dataset, every count."""
        above, below = self._bar(epsilon, -_NUDGE), self._bar(epsilon, _NUDGE)
        if above.c1 <= 0.0:
            return 0.0, 0.0, 0.0, 0.0
        table = _counts(self.n, above.keep, above.lie)
        before, here = table[:, :-1], table[:, 1:]
        count = _OPERATIONS_PER_USER * self.n + 4
        slack = gamma(count) * (above.c1 * before - above.c2 * here)
        sums = np.maximum(above.c1 * before + above.c2 * here + slack, 0.0).sum(axis=1)
        terms = np.maximum(below.c1 * before + below.c2 * here - slack, 0.0)
        best = int(terms.sum(axis=1).argmax())
        event = terms[best] > 0.0
        q = float((below.lie * before[best] + below.keep * here[best])[event].sum())
        # Sums of up to n + 1 terms that are >= 0, each of two products, a sum and the slack.
        return (
            up(min(float(sums.max()), above.c1), operations=self.n + 8),
            down(float(terms[best].sum()), operations=self.n + 8, tiny=0.0),
            down(q, operations=count + self.n, tiny=0.0),
            up(q, operations=count + self.n, tiny=0.0),
        )

    def _maximum(self, epsilon: float, resolution: float) -> float:
        """Upper bound of the maximum over m."""
        bar = self._bar(epsilon, -_NUDGE)
        if bar.c1 <= 0.0:
            return 0.0
        low, high, bound = self._blocks(bar, resolution)
        if low.size and self.n * bar.keep * bar.lie > _SMOOTH:
            return up(float(bound.max()), operations=_BAR_UNITS)
        # Good enough is what the true curve reaches at a slightly smaller epsilon.
        enough = max(
            self._best_test(epsilon * (1.0 - 0.5 * resolution))[0],
            self._best_test(epsilon)[0] * (1.0 + resolution),
        )
        result = float(bound[bound <= enough].max(initial=0.0))
        low, high = low[bound > enough], high[bound > enough]
        if not bound.size:
            edges = np.unique(np.linspace(0, self.n, _FIRST_INTERVALS + 1).astype(np.int64))
            low, high = edges[:-1], edges[1:] - 1
        while low.size:
            bound = bar.maximise(low.astype(np.float64), (self.n - 1 - high).astype(np.float64))
            # Single datasets are exact; where too many intervals stay open, all count as they are.
            closed = (bound <= enough) | (high == low) | (low.size > _MOST_INTERVALS)
            result = max(result, float(bound[closed].max(initial=0.0)))
            low, high = _split(low[~closed], high[~closed])
        return up(result, operations=_BAR_UNITS)

    def _blocks(self, bar: _Bar, resolution: float) -> tuple[Ints, Ints, Floats]:
        """Intervals of m that hold all of them, each with a bound; none where there was none for all."""
        if self.n > _FEWEST_FOR_RIDGE:
            with suppress(NoCertificateError):
                low, high, bound = bar.ridge(self.n - 1, resolution)
                if np.isfinite(bound).all():
                    return low, high, np.minimum(bound, bar.c1)
        none = np.zeros(0, np.int64)
        return none, none, np.zeros(0)

    def _best_test(self, epsilon: float) -> tuple[float, float, float]:
        """(value, Q(A) low, Q(A) high) of the best test found over a sample of datasets."""
        bar = self._bar(epsilon, _NUDGE)
        if bar.c1 <= 0.0:
            return 0.0, 0.0, 0.0
        m = _sample(self.n, _SAMPLE, max(1, int(0.5 / (_SAMPLE * bar.lie))))
        return bar.test(m, self.n - 1.0 - m)


@dataclass(frozen=True)
class _Bar:
    """The bar that a likelihood ratio must pass at one epsilon: the coefficients of the objective.

    Any tilt and any threshold to look at first is valid: ``hints`` say which are good."""

    keep: float
    lie: float
    c1: float
    c2: float
    hints: BinaryHints

    @classmethod
    def at(cls, epsilon: float, epsilon0: float, nudge: float, hints: BinaryHints) -> _Bar:
        """c1 and c2 from q - (1 - q) and alpha - 1, so that neither cancels.

        Their rounding error is that of a few units in epsilon: ``nudge`` steps outward."""
        keep = 1.0 / (1.0 + math.exp(-epsilon0))
        lie = keep * math.exp(-epsilon0)
        gap = math.tanh(0.5 * epsilon0)
        growth = math.expm1(min(epsilon, 600.0)) * (1.0 + nudge * (1.0 + epsilon))
        return cls(keep, lie, gap - growth * lie, -gap - growth * keep, hints)

    def maximise(self, m: Floats, others: Floats) -> Floats:
        """Upper bounds of H(m, l): the maximum over thresholds, by unimodality."""
        parts = np.array_split(np.arange(m.size), 1 + m.size // _ROWS_AT_ONCE)
        return np.concatenate([self._maximise(m[part], others[part]) for part in parts])

    def _maximise(self, m: Floats, others: Floats) -> Floats:
        threshold = self._threshold(m, others)
        result = np.full(m.size, self.c1)  # H <= c1 always, since c2 < 0
        todo = np.arange(m.size)
        for _ in range(50):
            found = self._objective(m[todo], others[todo], threshold[todo])
            sure = found.value - found.error
            done, top = _unimodal_maximum(sure, found.value + found.error)
            scaled = np.exp(np.minimum(found.log_scale[done], 300.0)) * np.maximum(top[done], 0.0)
            result[todo[done]] = np.minimum(scaled, self.c1)
            threshold[todo] += sure.argmax(axis=1) - 2.0
            todo = todo[~done]
            if not todo.size:
                break
        return result

    def _objective(self, m: Floats, others: Floats, threshold: Floats) -> Result:
        """The objective at threshold - 2, ..., threshold + 2 (columns)."""
        law = TwoBinomials(m, others, self.keep, self.lie, self._theta(m, others))
        weights = np.array([self.c1]), np.array([self.c2])
        return law.tails(*weights, threshold, shifts=(-2, -1, 0, 1, 2))[0]

    def ridge(self, users: int, resolution: float) -> tuple[Ints, Ints, Floats]:
        """(low, high, bound): upper bounds of H(m, users - m) in intervals that hold all m; inf where not
        proved."""
        theta = self._theta(np.array([float(users)]), np.zeros(1))
        cells = self.hints.ridge(self._ratio(), theta, self.keep, self.lie, users, resolution)
        if not cells.blocks < _MOST_BLOCKS:
            raise NoCertificateError("too many blocks of datasets")
        edges = np.unique(np.linspace(0, users + 1, math.ceil(cells.blocks) + 1).astype(np.int64))
        low, high = edges[:-1], edges[1:] - 1
        m = ((low + high) // 2).astype(np.float64)
        half = float(np.maximum(high - m, m - low).max())
        grid = Ridge(half, cells.step, cells.step * np.arange(-cells.columns, cells.columns + 1.0))
        threshold, result = self._threshold(m, users - m), np.zeros(m.size)
        todo = np.arange(m.size)
        for _ in range(_MOST_RECENTERINGS):
            law = TwoBinomials(m[todo], users - m[todo], self.keep, self.lie, theta)
            result[todo], threshold[todo] = law.ridge(self.c1, self.c2, threshold[todo], grid)
            todo = np.flatnonzero(np.isinf(result))
            if not todo.size:
                break
        return low, high, result

    def test(self, m: Floats, others: Floats) -> tuple[float, float, float]:
        """(value, Q(A) low, Q(A) high) of "at least t reports x" for the best row and t."""
        threshold = self._threshold(m, others)
        found = self._objective(m, others, threshold)
        sure = found.value - found.error
        threshold = threshold + sure.argmax(axis=1) - 2.0
        height = found.log_scale + np.log(positive(sure.max(axis=1)))
        best = slice(int(height.argmax()), int(height.argmax()) + 1)
        law = TwoBinomials(m[best], others[best], self.keep, self.lie, self._theta(m, others))
        weights = np.array([self.c1, self.lie]), np.array([self.c2, self.keep])
        value, event = law.tails(*weights, threshold[best])
        low = max(0.0, float((value.value - value.error)[0, 0]))
        around = (event.value + event.error * np.array([[-1.0, 1.0]]))[0]
        scale = math.exp(min(float(value.log_scale[0]), 300.0))
        return (
            down(scale * low, _BAR_UNITS, tiny=0.0),
            down(scale * max(0.0, float(around[0])), _BAR_UNITS, tiny=0.0),
            up(scale * float(around[1]), _BAR_UNITS, tiny=0.0),
        )

    def _ratio(self) -> float:
        return min(math.log(-self.c2 / max(self.c1, 1e-280)), _STEEPEST)

    def _theta(self, m: Floats, others: Floats) -> float:
        users = float((m + others).max())
        theta = self.hints.tilt(self._ratio(), self.keep, self.lie, users)
        return min(max(theta, _FLATTEST_TILT), _STEEPEST_TILT)

    def _threshold(self, m: Floats, others: Floats) -> Floats:
        """Where to look first."""
        found = self.hints.threshold(self._ratio(), self.keep, self.lie, m, others)
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


def _split(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Every interval [low, high] in up to four parts."""
    part = np.tile(np.arange(_SPLIT), low.size)
    low, high = np.repeat(low, _SPLIT), np.repeat(high, _SPLIT)
    size = high - low + 1
    first, last = low + part * size // _SPLIT, low + (part + 1) * size // _SPLIT - 1
    keep = last >= first
    return first[keep], last[keep]
