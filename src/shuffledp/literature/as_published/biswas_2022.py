"""Biswas, Jung, Palamidessi 2022, "Tight differential privacy guarantees for the shuffle model with k-RR".

Equation (6) is the hockey stick of *one bin* of the histogram, the count of x0, for the user's values x0
and x1 when n_x0 of the other users hold x0. For k > 2 the adversary sees more: a lower bound, not a
guarantee. For k = 2 it is exact for that n_x0 and one direction only.

Theorem IV.1 moreover prints a wrong privacy loss v_s (C(n-1-n_x0, s-1-r) for C(n-n_x0, s-r)); Tables II
(n = 100) and IV were computed with it. They are too small by 12 to 27 orders of magnitude (Table II,
n = 100), 55 to 168 (n = 1000) and 7 to 33 (Table IV).

>>> at = dict(epsilon0=2.0, n=100, n_x0=80, k=10, epsilon=0.1)
>>> f"{one_bin_delta_as_published(**at):.3g}"  # Table IV says 2.49e-15
'2.48e-15'
>>> f"{one_bin_deltas_with_the_right_loss_as_published(**at)[0]:.3g}"
'0.00615'
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import Floats
from shuffledp.literature.as_published._tables import alpha, hockey_sticks, log_chooses, require_small


@dataclass(frozen=True)
class _Bin:
    """Logarithms of the law of the count s = 0, ..., n of x0, and of the printed ratio's second term.

    ``p`` if the user holds x0, ``q`` if x1; ``printed`` is e^{v_s} as in Theorem IV.1."""

    p: Floats
    q: Floats
    printed: Floats


def _one_bin(epsilon0: float, n: int, n_x0: int, k: int) -> _Bin:
    users, symbols = require_small(n), _validate.count("k", k, least=2)
    same = _validate.count("n_x0", n_x0, least=0, most=users - 1)
    E = math.exp(_validate.epsilon0(epsilon0))
    log_k1 = math.log(E * (E + symbols - 2.0) / (symbols - 1.0))
    k2 = (symbols - 1.0) / (E + symbols - 2.0)
    others = users - same
    s, r = np.arange(users + 1)[:, None], np.arange(same + 1)[None, :]
    weight = _choose(log_chooses(same), r) + r * log_k1
    left = _log_sum(weight + _choose(log_chooses(others), s - r))
    # (s - r) C(others, s - r) = others C(others - 1, s - r - 1), where the paper keeps both.
    right = math.log(others) + _log_sum(weight + _choose(log_chooses(others - 1), s - r - 1))
    with np.errstate(divide="ignore"):
        times = np.log(np.maximum(s - r, 0))
    wrong = _log_sum(weight + times + _choose(log_chooses(others - 1), s - r - 1))
    log_k3 = same * math.log(symbols - 1.0) + (others - s[:, 0]) * math.log(E + symbols - 2.0)
    log_k3 = log_k3 - users * math.log(E + symbols - 1.0)
    factor = (E - k2) / others
    with np.errstate(under="ignore", invalid="ignore"):
        ratio, printed = k2 + factor * np.exp(right - left), k2 + factor * np.exp(wrong - left)
    return _Bin(log_k3 + left + np.log(ratio), log_k3 + left, printed)


def one_bin_delta_as_published(epsilon0: float, n: int, n_x0: int, k: int, epsilon: float) -> float:
    """Equation (6) with v_s as printed in Theorem IV.1. WRONG, far too small."""
    law = _one_bin(epsilon0, n, n_x0, k)
    with np.errstate(under="ignore"):
        return float((np.exp(law.p) * np.maximum(1.0 - alpha(epsilon) / law.printed, 0.0)).sum())


def one_bin_deltas_with_the_right_loss_as_published(
    epsilon0: float, n: int, n_x0: int, k: int, epsilon: float
) -> tuple[float, float]:
    """Equation (6) with v_s = log P/Q, and the same for (Q, P). For k > 2 a LOWER bound of the truth."""
    law = _one_bin(epsilon0, n, n_x0, k)
    with np.errstate(under="ignore"):
        return hockey_sticks(np.exp(law.p), np.exp(law.q), alpha(epsilon))


def _choose(logs: Floats, index: np.ndarray) -> Floats:
    """log C(m, index) from the table of a row of Pascal's triangle; -inf outside it."""
    inside = (index >= 0) & (index < logs.size)
    return np.where(inside, logs[np.where(inside, index, 0)], -np.inf)


def _log_sum(terms: Floats) -> Floats:
    """log of the sum over the last axis; -inf for an empty one."""
    top = terms.max(axis=1, keepdims=True)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(under="ignore", divide="ignore"):
        return np.asarray(np.log(np.exp(terms - safe).sum(axis=1)) + safe[:, 0])
