"""The laws of X for k-ary randomized response and for randomizers of known total variation."""

from __future__ import annotations

import math

from shuffledp.accounting.amplification import AmplificationProfile


def krr_blanket(k: int, epsilon0: float, n: int) -> AmplificationProfile:
    d = math.exp(-epsilon0)
    total = 1.0 + (k - 1) * d
    small, large, gap = d / total, 1.0 / total, -math.expm1(-epsilon0) / total
    rest = (k - 2) * small
    own=[large, small]; other=[small, large]; g=[gap,-gap]; c=[small,small]
    if k>2:
        own.append(rest);other.append(rest);g.append(0.0);c.append(rest)
    return AmplificationProfile(n, tuple(own),tuple(other),tuple(g),tuple(c))
