"""How little shuffled shares of a sum reveal besides the sum (Theorem T17, docs/proofs/split-and-mix.md).

Each of n people splits a number modulo q into m >= 3 uniformly random shares; all n m shares are shuffled.
Whatever the numbers, the total variation between the shuffled shares and n m shuffled uniform ones with the
same sum is at most (1/2) sqrt(A_n - 1), A_n = E[q^(c - 1)], c the number of connected components of a random
bipartite graph with n + n vertices of degree m. Splitting off the components without a given vertex,

    A_n <= 1 + sum over 0 < j < n of  t_j(n) (q - 1) A_j,     t_j(n) = C(n-1, j) C(n, j) / C(n m, j m).

All t_j(n), and t_(n-i)(n) for fixed i, fall with n, and so does what lies between: once the sum is below one
it stays so. Everything is a sum of positive terms, in logarithms.

>>> mixing_distance(10_000, messages=8, modulus=2**40) < 1e-7
True
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from shuffledp._certified.rounding import CALL, Floats, capped, gamma, up

_MOST_RECURSION = 1200  # speed: sizes whose A_j is computed one by one
_FEWEST_MESSAGES = 3  # soundness: from here on the parts of the sum fall with n
_LOG_LARGE = math.log(2.0)  # soundness: of what A_j is shown to stay below


@lru_cache(maxsize=1024)
def mixing_distance(n: int, messages: int, modulus: int) -> float:
    """Upper bound of the distance of n people's shuffled shares from shares that depend on the sum alone."""
    if n == 1 or modulus == 1:
        return 0.0  # the shares of one number are uniform but for their sum
    if messages < _FEWEST_MESSAGES:
        return 1.0
    log_q = math.log(modulus - 1.0)
    excess, settled = _small_sizes(min(n, _MOST_RECURSION), messages, log_q)
    if n <= len(excess):
        log_excess = excess[n - 1]
    elif settled is None:
        return 1.0
    else:
        log_excess = _log_excess(n, messages, log_q, excess, settled)
    return min(1.0, up(0.5 * math.exp(0.5 * capped(log_excess)), operations=CALL + 2))


def _small_sizes(most: int, m: int, log_q: float) -> tuple[list[float], int | None]:
    """log (A_j - 1) for j = 1, 2, ... (upper bounds), and the first size from which on A_j <= 2 is proved."""
    excess = [-math.inf]
    for size in range(2, most + 1):
        k = np.arange(1, size)
        excess.append(_summed(_log_t(size, m, k) + log_q + np.logaddexp(0.0, excess)))
        quarter = size // 4
        # Settled from a quarter to here; for larger sizes every part of the sum falls.
        settled = size % 4 == 0 and max(excess[quarter - 1 :]) <= 0.0
        if settled and _log_excess(size, m, log_q, excess, quarter) <= 0.0:
            return excess, quarter
    return excess, None


def _log_excess(n: int, m: int, log_q: float, excess: list[float], settled: int) -> float:
    """log of the sum that bounds A_n - 1, given A_j <= 2 for j >= ``settled``; n >= 4 ``settled``.

    Up to 2 ``settled`` from either end term by term; between, each term is at most C(n, e)^2 / C(n m, e m) at
    that end e."""
    edge = 2 * settled
    k = np.arange(1, edge + 1)
    known = np.append(np.logaddexp(0.0, excess[: settled - 1]), np.full(edge + 1 - settled, _LOG_LARGE))
    near = _log_t(n, m, k) + log_q + known
    far = _log_t(n, m, k, from_top=True) + log_q + _LOG_LARGE
    end = 2.0 * _log_choose(n, edge)[-1] - _log_choose(n * m, edge * m)[-1]
    return _summed(np.concatenate([near, far, [end + log_q + _LOG_LARGE + math.log(n)]]))


def _log_t(n: int, m: int, k: npt.NDArray[np.int64], from_top: bool = False) -> Floats:
    """log t_k(n), or of t_(n - k)(n): C(n - 1, n - k) = C(n - 1, k - 1)."""
    top = int(k.max())
    own = _log_choose(n - 1, top)[k - from_top]
    return np.asarray(own + _log_choose(n, top)[k] - _log_choose(n * m, top * m)[k * m])


def _log_choose(n: int, most: int) -> Floats:
    """log C(n, 0), ..., log C(n, most)."""
    r = np.arange(float(most))
    with np.errstate(divide="ignore"):
        return np.concatenate([[0.0], np.cumsum(np.log(np.maximum(n - r, 0.0) / (r + 1.0)))])


def _summed(logs: Floats) -> float:
    """log of a sum, rounded up: each is a sum of up to 10^5 logarithms of at most 100."""
    return float(np.logaddexp.reduce(logs)) + gamma(2.0**17 * 100.0)
