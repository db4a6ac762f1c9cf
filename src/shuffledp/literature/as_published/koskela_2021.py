"""Koskela, Heikkila, Honkela 2021, "Tight accounting in the shuffle model of differential privacy".

* Section 4.1: the hockey sticks of the one-dimensional counts Ps = 1 + Bin(n-1, gamma/k), Qs = Bin(n-1,
  gamma/k) are said to bound the strong adversary. They are those of a marginal: *lower* bounds.
* Theorems 8, 10 and 11 are Theorems 13 and 16 of the 2023 paper: see ``koskela_2023``.
* (5.1)-(5.2), a misreading of the 2021 clones: P = (A + D, C - A), Q = (A, C - A + D), so that the
  adversary sees whether the user's own report is missing. Sound but looser.

>>> marginals_as_published(n=1000, k=4, gamma=0.25, epsilon=0.5)[0] < 1.68e-4  # the truth there
True
"""

from __future__ import annotations

import math

import numpy as np

from shuffledp import _validate
from shuffledp.literature.as_published._tables import (
    alpha,
    binomial_table,
    hockey_sticks,
    require_small,
    trinomial_table,
)


def marginals_as_published(n: int, k: int, gamma: float, epsilon: float) -> tuple[float, float]:
    """H of (Ps, Qs) and of (Qs, Ps), as for the strong adversary in Section 4.1. UNSOUND."""
    users, symbols = require_small(n), _validate.count("k", k, least=2)
    blanket = _validate.probability("gamma", gamma, positive=True)
    law = binomial_table(users - 1, blanket / symbols)
    return hockey_sticks(np.append(0.0, law), np.append(law, 0.0), alpha(epsilon))


def clones_as_published(epsilon0: float, n: int, epsilon: float) -> float:
    """The hockey stick of (5.1)-(5.2). Sound, looser than the 2021 clones it transcribes."""
    users, local = require_small(n), _validate.epsilon0(epsilon0)
    truth, lie = 1.0 / (1.0 + math.exp(-local)), math.exp(-local) / (1.0 + math.exp(-local))
    i, j, crowd = trinomial_table(users - 1, 0.5 * math.exp(-local))
    shape = (users + 1, users + 1)
    p, q = np.zeros(shape), np.zeros(shape)
    i, j = i.astype(np.int64), j.astype(np.int64)
    for table, x, y in ((p, 1, 0), (q, 0, 1)):
        table[i, j] += lie * crowd
        table[i + x, j + y] += truth * crowd
    return hockey_sticks(p, q, alpha(epsilon))[0]
