"""Mixtures of mean-of-signs pairs: strong clones, 2021 clones, the strong adversary.

The pair F(kappa, N): N fair signs with mean Y; P weighs an outcome by 1 + kappa Y, Q by
1 - kappa Y. Its privacy loss is 2 atanh(kappa Y) and, with y = tanh(epsilon/2)/kappa,

    H_alpha = (1 + alpha) kappa E[(Y - y)_+],       Q(loss > epsilon) = E[1 - kappa Y; Y > y].

A user hides among C ~ Bin(n - 1, rate) others who sent what looks like one of the user's two
reports; given C (revealed) the pair is F(kappa, C + 1), met with probability ``weight``:

| analysis      | theorem                               | rate          | kappa           | weight    |
|---------------|---------------------------------------|---------------|-----------------|-----------|
| clones        | Feldman, McMillan, Talwar 2022        | 2/(e^e0 + 1)  | tanh(epsilon0/2)| 1         |
| clones-2021   | Feldman, McMillan, Talwar 2021        | 1/e^e0        | tanh(epsilon0/2)| 1         |
| strong        | Koskela et al. 2023, strong adversary | 2 gamma/k     | 1               | 1 - gamma |

The first two bound any epsilon0-LDP randomizer from above (substitution neighbours, adversary
knows everybody else's data and sees the shuffled reports); "strong" is exact for an adversary who
also learns who sent a uniformly random report. Clones need p = 1/(e^epsilon0 + 1): smaller p is
unsound. All are symmetric: H_alpha(P, Q) = H_alpha(Q, P).

Evaluation: F(kappa, N + 1) is a post-processing of F(kappa, N), so the curve is decreasing in C,
and giving each bucket of C the value at its first (last) element bounds it from above (below).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from shuffledp.accounting.profile import Floats, PrivacyProfile, ProfileValues
from shuffledp.numerics.binomial import UNIT, interval_probabilities, mean_of_signs_excess

_CELLS_AT_ONCE = 1 << 17


@dataclass(frozen=True)
class CloneProfile(PrivacyProfile):
    """Mixture over C ~ Bin(n - 1, rate) of F(kappa, C + 1), with probability ``weight``.

    ``rest`` is 1 - rate, given apart so that it is accurate when the rate is near one."""

    n: int
    rate: float
    rest: float
    kappa: float
    weight: float = 1.0

    @property
    def epsilon_max(self) -> float:
        if self.kappa >= 1.0:
            return math.inf if self.weight > 0.0 else 0.0
        return 2.0 * math.atanh(self.kappa) * (1.0 + 8.0 * UNIT)

    @property
    def scale(self) -> float:
        return 2.0 * self.kappa / math.sqrt(1.0 + (self.n - 1) * self.rate)

    def evaluate(self, epsilon: Floats, resolution: float) -> ProfileValues:
        first, low, high, single = _buckets(self.n - 1, self.rate, self.rest, resolution)
        parts = [
            self._evaluate(chunk, first, low, high, single)
            for chunk in np.array_split(epsilon, 1 + epsilon.size * first.size // _CELLS_AT_ONCE)
        ]
        return ProfileValues(epsilon, *np.concatenate(parts, axis=1))

    def _evaluate(
        self, epsilon: Floats, first: Floats, low: Floats, high: Floats, single: Floats
    ) -> Floats:
        if self.kappa == 0.0 or self.weight == 0.0:
            return np.zeros((4, epsilon.size))
        y = (np.tanh(0.5 * epsilon) / self.kappa)[:, None]
        excess, error, tail, jump = mean_of_signs_excess(first + 1.0, y)
        factor = self.weight * (1.0 + np.exp(epsilon)) * self.kappa
        sums_error = 8.0 * UNIT * math.log2(8.0 + first.size)
        upper = factor * ((excess + error) @ high) * (1.0 + sums_error)
        # From below a bucket takes its last element; a wider bucket the next one's first instead.
        lower_excess = _last(np.maximum(excess - error, 0.0), single)
        lower = factor * (lower_excess @ low) * (1.0 - sums_error)
        event = _last(np.maximum(tail - self.kappa * jump, 0.0), single)
        event_error = _last(4e-12 * (tail + jump), single)
        slope_low = self.weight * (np.maximum(event - event_error, 0.0) @ low)
        slope_high = self.weight * ((event + event_error) @ high)
        return np.stack([lower, slope_low, slope_high, upper])


def _last(values: Floats, single: Floats) -> Floats:
    following = np.concatenate([values[:, 1:], np.zeros((values.shape[0], 1))], axis=1)
    return np.asarray(np.where(single, values, following))


@lru_cache(maxsize=32)
def _buckets(
    trials: int, rate: float, rest: float, resolution: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """(first element, lower weight, upper weight, is one element) of each bucket of C.

    Uniform in the bulk, with a width of ``resolution`` times the mean (a bucket of relative width
    w loosens epsilon by about w/2); beyond it towards zero, widths double."""
    mean, spread = trials * rate, math.sqrt(trials * rate * rest)
    width = max(1, math.floor(min(resolution * mean, 0.5 * spread)))
    low = max(0, math.floor(mean - 9.0 * spread - 60.0))
    high = min(trials, math.ceil(mean + 8.0 * spread + 20.0))
    left = []
    step, edge = width, low
    while edge > 0:
        edge = max(0, edge - step)
        left.append(edge)
        step += max(1, step // 4)
    edges = np.concatenate(
        [np.asarray(left[::-1], np.float64), np.arange(low, high + 1, width), [trials + 1.0]]
    )
    weight_low, weight_high = interval_probabilities(trials, rate, rest, edges)
    return edges[:-1], weight_low, weight_high, np.diff(edges) == 1.0


def strong_clones(epsilon0: float, n: int) -> CloneProfile:
    """Strong clones (2022) at p = 1/(e^epsilon0 + 1), for any epsilon0-LDP randomizer."""
    kappa = math.tanh(0.5 * epsilon0)
    decay = math.exp(-epsilon0)
    return CloneProfile(n, rate=2.0 * decay / (1.0 + decay), rest=kappa, kappa=kappa)


def clones_2021(epsilon0: float, n: int) -> CloneProfile:
    """The 2021 clones, also for randomizers chosen adaptively inside a round."""
    kappa = math.tanh(0.5 * epsilon0)
    return CloneProfile(n, rate=math.exp(-epsilon0), rest=-math.expm1(-epsilon0), kappa=kappa)


def strong_adversary(k: int, gamma: float, n: int) -> CloneProfile:
    """k-ary randomized response against the adversary who knows which reports are random."""
    rate = 2.0 * gamma / k
    return CloneProfile(n, rate=rate, rest=1.0 - rate, kappa=1.0, weight=1.0 - gamma)
