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
    u = (a - 1.0) * top / c
    phi = (1.0 + u) * math.log1p(u) - u
    m = np.arange(1, users + 1, dtype=np.float64)
    log_weight, _ = log_pmf(users, m, gamma, 1.0 - gamma)
    printed = top / ((a - 1.0) * m * math.log1p(u))
    with np.errstate(under="ignore"):
        terms = np.exp(log_weight - m * c / top**2 * phi)
    return float((terms * printed).sum()) / (gamma * users)
