"""Renyi divergences of a curve (``accounting._renyi``), and their conversion to (epsilon, delta).

Conversion (Canonne, Kamath, Steinke 2020, Proposition 12): a divergence D of order L implies

    epsilon = D + log((L-1)/L) - (log(delta) + log(L))/(L-1).

>>> round(epsilon_from_renyi(0.5, order=10, delta=1e-6), 6)
1.673853
"""

from __future__ import annotations

import math

from shuffledp import _validate
from shuffledp._certified.rounding import LARGEST_EXPONENT, gamma
from shuffledp.accounting._renyi import log1p_exp, renyi_divergence

__all__ = ["delta_from_renyi", "epsilon_from_renyi", "log1p_exp", "renyi_divergence"]


def epsilon_from_renyi(divergence: float, order: float, delta: float) -> float:
    """epsilon at delta from a Renyi divergence of an order > 1, rounded up."""
    size = float(_validate.non_negative("divergence", divergence).reshape(()))
    L = _validate.above("order", order, 1.0)
    level = _validate.probability("delta", delta, positive=True)
    epsilon = size + math.log1p(-1.0 / L) - (math.log(level) + math.log(L)) / (L - 1.0)
    slack = gamma(8) * (size + 1.0 / (L - 1.0) + (800.0 + math.log(L)) / (L - 1.0) + abs(epsilon))
    return max(0.0, epsilon + slack)


def delta_from_renyi(divergence: float, order: float, epsilon: float) -> float:
    """delta at epsilon from a Renyi divergence of an order > 1, rounded up, at most 1."""
    size = float(_validate.non_negative("divergence", divergence).reshape(()))
    L = _validate.above("order", order, 1.0)
    target = float(_validate.non_negative("epsilon", epsilon).reshape(()))
    log_delta = (L - 1.0) * (size - target) + (L - 1.0) * math.log1p(-1.0 / L) - math.log(L)
    slack = gamma(16) * ((L - 1.0) * (size + target) + math.log(L) + 2.0)
    return math.exp(max(min(0.0, log_delta + slack), -LARGEST_EXPONENT))
