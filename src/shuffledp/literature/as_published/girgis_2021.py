"""Girgis, Data, Diggavi 2021, "Renyi differential privacy of the subsampled shuffle model".

In the proof of Theorem 2, below (37), the law of the count of ones for the dataset (0, ..., 0, 1) has its
weights exchanged: (1 - g) mu1 + g mu0, where a cohort includes the differing user with probability g =
cohort/population, so that it must be g mu1 + (1 - g) mu0. (The theorem itself uses the right one.)

>>> import numpy as np
>>> np.round(32 * count_law_as_published(epsilon0=np.log(3), cohort=2, population=8), 9).tolist()
[9.0, 18.0, 5.0]
"""

from __future__ import annotations

import math

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import Floats
from shuffledp.literature.as_published._tables import binomial_table


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
