"""Balle, Bell, Gascon, Nissim 2019, "The privacy blanket of the shuffle model".

Lemma 5.6 (Bennett) is printed with a factor 1/(A m) that does not follow, A = e^epsilon - 1. With it the
bound for k-ary randomized response falls below the exact delta of the mechanism. The right form is
``shuffledp.literature.concentration.bennett_delta``. The authors' code had the factor in 2019 (BorjaBalle/
amplification-by-shuffling, 89a5085) and has not since 2020-07-06 (7994ad3).

>>> bennett_krr_delta_as_published(k=4, epsilon0=1.0, n=1000, epsilon=0.1) < 8.5e-6  # the truth there
True
"""

from __future__ import annotations

import math

import numpy as np

from shuffledp import _validate
from shuffledp._certified.binomial import log_pmf


def bennett_krr_delta_as_published(k: int, epsilon0: float, n: int, epsilon: float) -> float:
    """Lemmas 5.3, 5.6 (as printed) and 5.7 for k-ary randomized response. UNSOUND."""
    symbols, users = _validate.count("k", k, least=2), _validate.count("n", n, most=10**7)
    a = math.exp(_validate.positive("epsilon", epsilon))
    gamma = symbols / (math.exp(_validate.epsilon0(epsilon0)) + symbols - 1.0)
    top = gamma * (1.0 - a) + (1.0 - gamma) * symbols
    if top <= 0.0:
        return 0.0
    c = gamma * (2.0 - gamma) * (1.0 - a) ** 2 + (1.0 - gamma) ** 2 * symbols * (1.0 + a * a)
    return _lemma_56(users, gamma, a - 1.0, top, c, factor=True)


def bennett_laplace_delta_as_published(epsilon0: float, n: int, epsilon: float) -> float:
    """Lemmas 5.1, 5.3, 5.6 (as printed) and 5.8 for Laplace noise on [0, 1]. UNSOUND."""
    local, users, e = _checked(epsilon0, n, epsilon)
    a, gamma = math.exp(e), math.exp(-0.5 * local)
    top = (1.0 - math.exp(e - local)) / gamma
    c = (a * a + 1.0) / 3.0 * (2.0 / gamma + gamma**2) - 2.0 * a * (2.0 * gamma - gamma**2)
    return _lemma_56(users, gamma, a - 1.0, top, c, factor=True) if top > 0.0 else 0.0


def bennett_generic_delta_as_published(epsilon0: float, n: int, epsilon: float, factor: bool = True) -> float:
    """Figure 3, "Bennett, Generic": Lemmas 5.2, 5.3, 5.4 and 5.6 as in the authors' code (gamma is 1/E or
    1, whichever is worse). With the printed ``factor`` (2019) UNSOUND, without (since 2020) loose."""
    local, users, e = _checked(epsilon0, n, epsilon)
    top = math.exp(local) - math.exp(e - local)
    c = math.exp(local) * (math.exp(2.0 * e) + 1.0) - 2.0 * math.exp(e - 3.0 * local)
    return _lemma_56(users, math.exp(-local), math.expm1(e), top, c, factor) if top > 0.0 else 0.0


def hoeffding_generic_delta_as_published(epsilon0: float, n: int, epsilon: float) -> float:
    """Figure 3, "Hoeffding, Generic": the same with Lemma 5.5. Sound, loose (closed form: Theorem 5.3)."""
    local, users, e = _checked(epsilon0, n, epsilon)
    A, gamma = math.expm1(e), math.exp(-local)
    width = (math.exp(e) + 1.0) * 2.0 * math.sinh(local)
    kept = 1.0 - gamma + gamma * math.exp(-2.0 * (A / width) ** 2)
    return width**2 / (4.0 * A) * kept**users / (gamma * users)


def _checked(epsilon0: float, n: int, epsilon: float) -> tuple[float, int, float]:
    users = _validate.count("n", n, most=10**7)
    return _validate.epsilon0(epsilon0), users, _validate.positive("epsilon", epsilon)


def _lemma_56(n: int, gamma: float, A: float, top: float, c: float, factor: bool) -> float:
    """Lemma 5.3 with Lemma 5.6: A = -E[L], L <= top, E[L^2] <= c; with or without the factor 1/(A m)."""
    u = A * top / c
    phi = (1.0 + u) * math.log1p(u) - u
    m = np.arange(1, n + 1, dtype=np.float64)
    log_weight, _ = log_pmf(n, m, gamma, 1.0 - gamma)
    front = top / math.log1p(u) / (A * m if factor else 1.0)
    with np.errstate(under="ignore"):
        terms = np.exp(log_weight - m * c / top**2 * phi)
    return float((terms * front).sum()) / (gamma * n)
