"""Binary randomized response, exactly: the worst case over everybody else's data.

Each of m others holds x, l = n - 1 - m hold x'. With q = e^epsilon0/(e^epsilon0 + 1) the number of
reports "x" among them is F ~ Bin(m, q) + Bin(l, 1 - q), log-concave, and Neyman-Pearson gives

    H_alpha(m, l) = max over t of  c1 Pr[F >= t - 1] + c2 Pr[F >= t],
    c1 = q - alpha (1 - q) > 0,   c2 = (1 - q) - alpha q < 0;

the likelihood ratio F(t - 1)/F(t) rises with t, so the objective is unimodal in t and its maximum is
where the ratio passes -c2/c1: near the mean of F tilted by log(-c2/c1). The other direction is the
same with m and l exchanged. So the profile is the maximum over m of one function.

Maximum over m: forgetting a report is a post-processing, so H falls when m or l grows, and
H(m1, n - 1 - m2) bounds H(m, n - 1 - m) for all m in [m1, m2]. Intervals are split until they are
so narrow that ``resolution`` is met, or cannot hold the maximum: the cost does not depend on n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shuffledp.accounting.profile import Floats, PrivacyProfile, SupportingLines
from shuffledp.numerics.binomial import UNIT
from shuffledp.numerics.lattice_sum import Group, Ints, Own, tail_sum

_FIRST_INTERVALS = 16
_SPLIT = 4
_ROWS_AT_ONCE = 2048
_SAMPLE = 12
_STEEPEST = 100.0

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

    @property
    def scale(self) -> float:
        # Chi-square of a shift by one of a variable with variance n q (1 - q).
        spread = 0.5 / math.cosh(0.5 * self.epsilon0)
        return math.tanh(0.5 * self.epsilon0) / math.sqrt(1.0 + self.n * spread * spread)

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        result = np.zeros(epsilon.size)
        live = np.flatnonzero(epsilon * (1.0 - 64.0 * UNIT) < self.epsilon0)
        if live.size:
            result[live] = self._maximum(epsilon[live], resolution)
        return np.asarray(result * (1.0 + 1e-14) + 1e-300)

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        lines = np.zeros((3, epsilon.size))
        live = np.flatnonzero(epsilon * (1.0 + 64.0 * UNIT) < self.epsilon0)
        if live.size:
            lines[:, live] = self._best_test(epsilon[live])
        return SupportingLines(epsilon, lines[0], lines[1], lines[2])

    def _best_test(self, epsilon: Floats) -> Floats:
        """(value, Q(A) low, Q(A) high) of the best test found over a sample of datasets."""
        sample = np.unique(
            np.concatenate(
                [
                    np.linspace(0, self.n - 1, _SAMPLE).astype(np.int64),
                    np.maximum(self.n - 1 - np.arange(_SAMPLE), 0),
                ]
            )
        ).astype(np.float64)
        m, many = np.tile(sample, epsilon.size), np.repeat(epsilon, sample.size)
        theta, threshold = self._threshold(many, m, self.n - 1.0 - m)
        c1, c2 = self._coefficients(many, 1.0 + 64.0 * UNIT)
        value, error, log_scale = self._objective(m, self.n - 1.0 - m, theta, threshold, c1, c2)
        sure = value - error
        threshold = threshold + sure.argmax(axis=1) - 2.0
        height = log_scale + np.log(np.maximum(sure.max(axis=1), 1e-300))
        best = height.reshape(epsilon.size, sample.size).argmax(axis=1)
        best += np.arange(epsilon.size) * sample.size
        return self._test(m[best], theta[best], threshold[best], c1[best], c2[best])

    def _maximum(self, epsilon: Floats, resolution: float) -> Floats:
        """Upper bound of the maximum over m, for each epsilon."""
        # Good enough is what the true curve reaches at a slightly smaller epsilon.
        enough = np.maximum(
            self._best_test(epsilon * (1.0 - 0.5 * resolution))[0],
            self._best_test(epsilon)[0] * (1.0 + resolution),
        )
        narrow = max(1, math.floor(0.25 * resolution * self.n))
        edges = np.unique(np.linspace(0, self.n, _FIRST_INTERVALS + 1).astype(np.int64))
        rows = np.repeat(np.arange(epsilon.size), edges.size - 1)
        low, high = np.tile(edges[:-1], epsilon.size), np.tile(edges[1:] - 1, epsilon.size)
        result = np.zeros(epsilon.size)
        while rows.size:
            bound = self._bounds(epsilon[rows], low.astype(np.float64), self.n - 1.0 - high)
            closed = (bound <= enough[rows]) | (high - low < narrow)
            np.maximum.at(result, rows[closed], bound[closed])
            rows, low, high = _split(rows[~closed], low[~closed], high[~closed])
        return result

    def _bounds(self, epsilon: Floats, m: Floats, others: Floats) -> Floats:
        """Upper bounds of H(m, l) for rows of (epsilon, m, l)."""
        parts = np.array_split(np.arange(m.size), 1 + m.size // _ROWS_AT_ONCE)
        return np.concatenate([self._maximise(epsilon[p], m[p], others[p])[1] for p in parts])

    def _maximise(self, epsilon: Floats, m: Floats, others: Floats) -> tuple[Floats, Floats]:
        """Enclosure of the maximum over thresholds, by unimodality from five neighbours."""
        theta, threshold = self._threshold(epsilon, m, others)
        c1, c2 = self._coefficients(epsilon, 1.0 - 64.0 * UNIT)
        if self.n == 1:
            return np.maximum(c1, 0.0), np.maximum(c1, 0.0)
        low, high = np.zeros(m.size), np.zeros(m.size)
        todo = np.arange(m.size)
        for _ in range(100):
            value, error, log_scale = self._objective(
                m[todo], others[todo], theta[todo], threshold[todo], c1[todo], c2[todo]
            )
            found, best, top = _unimodal_maximum(value - error, value + error)
            here, scale = todo[found], np.exp(log_scale[found])
            low[here], high[here] = scale * best[found], scale * top[found]
            threshold[todo] += (value - error).argmax(axis=1) - 2.0
            todo = todo[~found]
            if not todo.size:
                return np.maximum(low, 0.0), np.maximum(high, 0.0)
        # Not told apart from its neighbours: H <= c1 always, since c2 < 0.
        high[todo] = c1[todo]
        return np.maximum(low, 0.0), np.maximum(high, 0.0)

    def _objective(
        self, m: Floats, others: Floats, theta: Floats, threshold: Floats, c1: Floats, c2: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """(values, errors, log scale) of the objective at threshold - 2, ..., threshold + 2."""
        own = Own(np.tile([1.0, 0.0], (m.size, 1)), np.stack([c1, c2], axis=1)[:, :, None])
        result = tail_sum(self._groups(m, others), own, threshold, theta, shifts=(-2, -1, 0, 1, 2))
        return result.value, result.error, result.log_scale

    def _test(
        self, m: Floats, theta: Floats, threshold: Floats, c1: Floats, c2: Floats
    ) -> Floats:
        """(value, Q(A) low, Q(A) high) of the event "at least ``threshold`` reports x"."""
        keep = self._keep()
        lie = keep * math.exp(-self.epsilon0)
        z = np.tile([1.0, 0.0], (m.size, 1))
        flat = np.broadcast_to([lie, keep], (m.size, 2))
        own = Own(z, np.stack([np.stack([c1, c2], axis=1), flat], axis=2))
        result = tail_sum(self._groups(m, self.n - 1.0 - m), own, threshold, theta)
        scale = np.exp(result.log_scale)[:, None]
        low = scale * np.maximum(result.value - result.error, 0.0)
        high = scale * (result.value + result.error)
        return np.stack([low[:, 0], low[:, 1] * (1.0 - 1e-14), high[:, 1] * (1.0 + 1e-14)])

    def _keep(self) -> float:
        return 1.0 / (1.0 + math.exp(-self.epsilon0))

    def _coefficients(self, epsilon: Floats, nudge: float) -> tuple[Floats, Floats]:
        """c1 and c2, from q - (1 - q) and alpha - 1 so that neither cancels."""
        gap, keep = math.tanh(0.5 * self.epsilon0), self._keep()
        lie = keep * math.exp(-self.epsilon0)
        growth = np.expm1(epsilon) * nudge
        return np.asarray(gap - growth * lie), np.asarray(-gap - growth * keep)

    def _threshold(self, epsilon: Floats, m: Floats, others: Floats) -> tuple[Floats, Floats]:
        """The tilt at which the likelihood ratio passes the bar, and the count it points to."""
        c1, c2 = self._coefficients(epsilon, 1.0 + 64.0 * UNIT)
        keep = self._keep()
        lie = keep * math.exp(-self.epsilon0)
        ratio = np.log(-c2 / np.maximum(c1, 1e-280))
        spread = np.sqrt(1.0 + (m + others) * keep * lie)
        theta = np.clip(ratio, 0.3 / spread, _STEEPEST)
        grown = keep * np.exp(np.minimum(ratio, _STEEPEST))
        mean = m * grown / (grown + lie)
        grown = lie * np.exp(np.minimum(ratio, _STEEPEST))
        mean = mean + others * grown / (grown + keep)
        # The count itself lies in [0, m + l]; a threshold t uses F >= t - 1 and F >= t.
        return theta, np.clip(np.rint(mean + 0.5), 0.0, m + others + 1.0)

    def _groups(self, m: Floats, others: Floats) -> list[Group]:
        keep = self._keep()
        lie = keep * math.exp(-self.epsilon0)
        z = np.tile([0.0, 1.0], (m.size, 1))
        return [
            Group(z, np.tile([lie, keep], (m.size, 1)), m),
            Group(z, np.tile([keep, lie], (m.size, 1)), others),
        ]


def _unimodal_maximum(
    bottom: Floats, top: Floats
) -> tuple[npt.NDArray[np.bool_], Floats, Floats]:
    """(found, lower, upper) of the maximum of a unimodal sequence enclosed at neighbouring places.

    It is found if on both sides of the best place some place is certainly lower: the maximum then
    lies strictly between the nearest such two, whatever the errors farther out."""
    columns = np.arange(bottom.shape[1])
    place = bottom.argmax(axis=1)[:, None]
    best = bottom.max(axis=1)
    lower = top < best[:, None]
    left = np.where(lower & (columns < place), columns, -1).max(axis=1)[:, None]
    right = np.where(lower & (columns > place), columns, columns.size).min(axis=1)[:, None]
    between = np.where((columns > left) & (columns < right), top, -np.inf).max(axis=1)
    found = (left[:, 0] >= 0) & (right[:, 0] < columns.size)
    return found, best, between


def _split(rows: Ints, low: Ints, high: Ints) -> tuple[Ints, Ints, Ints]:
    """Every interval [low, high] in up to four parts."""
    part = np.tile(np.arange(_SPLIT), rows.size)
    rows, low, high = (np.repeat(v, _SPLIT) for v in (rows, low, high))
    size = high - low + 1
    first, last = low + part * size // _SPLIT, low + (part + 1) * size // _SPLIT - 1
    keep = last >= first
    return rows[keep], first[keep], last[keep]
