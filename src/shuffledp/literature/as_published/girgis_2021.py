"""Girgis, Data, Diggavi 2021, "Renyi differential privacy of the subsampled shuffle model".

In the proof of Theorem 2, below (37), the law of the count of ones for the dataset (0, ..., 0, 1) has its
weights exchanged: (1 - g) mu1 + g mu0, where a cohort includes the differing user with probability g =
cohort/population, so that it must be g mu1 + (1 - g) mu0. (The theorem itself uses the right one.)

And what the paper compares with, the 2021 clones under composition, as the authors' notebook evaluates it
(Privacy_Analysis.ipynb of Antonious-Grigis/Shuffled-Model-of-Differential-Privacy-in-Federated-Learning,
08508a5; it is gone in the next commit): valid, and coarse.

>>> import numpy as np
>>> np.round(32 * count_law_as_published(epsilon0=np.log(3), cohort=2, population=8), 9).tolist()
[9.0, 18.0, 5.0]
"""

from __future__ import annotations

import math

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import Floats
from shuffledp.literature.as_published._tables import binomial_table, hockey_sticks, require_small

_GROUP, _HALVINGS = 100, 3


def count_law_as_published(epsilon0: float, cohort: int, population: int) -> Floats:
    """The law of the number of ones among the cohort's reports, as printed. WRONG unless g = 1/2."""
    local = _validate.epsilon0(epsilon0)
    everyone = _validate.count("population", population)
    asked = _validate.count("cohort", cohort, most=min(everyone, 10**6))
    lie = math.exp(-local) / (1.0 + math.exp(-local))
    crowd = binomial_table(asked - 1, lie)
    zero = np.append(crowd, 0.0) * (1.0 - lie) + np.append(0.0, crowd) * lie
    one = np.append(crowd, 0.0) * lie + np.append(0.0, crowd) * (1.0 - lie)
    share = asked / everyone
    return np.asarray((1.0 - share) * one + share * zero)


def coarse_clones_as_published(epsilon0: float, cohort: int, delta: float) -> float:
    """epsilon of one shuffle by the 2021 clones, as the notebook asks for it: clones are counted in groups of
    100, and epsilon0 is halved three times (``numericalanalysis(n, eps0, delta, 3, 100, True)`` of Feldman et
    al.'s code, apple/ml-shuffling-amplification, 993d285). Valid and coarse; for an epsilon0 outside of the
    range of the closed form, with which that code begins otherwise."""
    local = _validate.epsilon0(epsilon0)
    n = require_small(cohort)
    crowd = binomial_table(n - 1, math.exp(-local))
    middle = math.ceil((n - 1) * math.exp(-local))
    groups = np.split(crowd, range(middle % _GROUP or _GROUP, n, _GROUP))
    first = np.cumsum([0, *(group.size for group in groups)])[:-1]
    low, high = 0.0, local
    for _ in range(_HALVINGS):
        point = 0.5 * (low + high)
        found = sum(
            float(g.sum()) * _one_count(int(c), local, point) for g, c in zip(groups, first, strict=True)
        )
        low, high = (low, point) if found < delta else (point, high)
    return high


def _one_count(count: int, epsilon0: float, epsilon: float) -> float:
    """The hockey stick where so many clones are known to be there."""
    crowd, truth = binomial_table(count, 0.5), 1.0 / (1.0 + math.exp(-epsilon0))
    own, other = np.append(crowd, 0.0), np.append(0.0, crowd)
    p, q = truth * own + (1.0 - truth) * other, (1.0 - truth) * own + truth * other
    return hockey_sticks(p, q, math.exp(epsilon))[0]
