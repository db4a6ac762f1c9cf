"""Koskela, Heikkila, Honkela 2023, "Numerical accounting in the shuffle model of differential privacy".

What is printed for shuffled k-ary randomized response, with p = 1/(E + k - 1), E = e^epsilon0, gamma =
k p, a = e^epsilon:

* Theorem 13 and (4.2), strong adversary: delta = Pr[N1/N2 >= a], N1 - 1 and N2 binomial (n - 1, gamma/k).
  A tail probability is not a hockey stick: never tight. Read as written, with N1 and N2 independent, it is
  *not an upper bound*; with their true joint law it is one, a loose one.
* Theorems 15 and 16, weak adversary: the same for (1-gamma) N_i + (gamma/k)(B + 1).
* Figure 4's strong curve: the hockey stick without the mass gamma of harmless outcomes; loose.
* (3.1)-(3.2) with p = 1/(E + k - 1), the "specific clones": *not an upper bound* for any k >= 3.

>>> strong_tail_as_published(n=1000, k=2, gamma=0.9, epsilon=0.3) < 6.19e-9  # the truth there
True
"""

from __future__ import annotations

import math

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import Floats
from shuffledp.papers._tables import (
    binomial_table,
    require_small,
    trinomial_excess,
    trinomial_table,
)


def strong_tail_as_published(n: int, k: int, gamma: float, epsilon: float) -> float:
    """Theorem 13 / (4.2) as written: N1 and N2 independent. UNSOUND."""
    users, symbols, blanket, a = _checked(n, k, gamma, epsilon)
    law = binomial_table(users - 1, blanket / symbols)
    count = np.arange(users, dtype=np.float64)
    # N1 >= a N2, with N1 = count + 1.
    above = np.append(np.cumsum(law[::-1])[::-1], 0.0)
    first = np.clip(np.ceil(a * count - 1.0 - 1e-12 * a * count), 0.0, float(users))
    return float((law * above[first.astype(np.int64)]).sum())


def strong_tail_joint_as_published(n: int, k: int, gamma: float, epsilon: float) -> float:
    """Theorem 13 / (4.2) with the true joint law of N1 and N2. Sound, never tight."""
    users, symbols, blanket, a = _checked(n, k, gamma, epsilon)
    i, j, law = trinomial_table(users - 1, blanket / symbols)
    return float(law[i + 1.0 >= a * j * (1.0 - 1e-12)].sum())


def strong_figure_as_published(n: int, k: int, gamma: float, epsilon: float) -> float:
    """The strong curve of Figure 4: sum (P - a Q)_+ given that the user answered truthfully. Loose."""
    users, symbols, blanket, a = _checked(n, k, gamma, epsilon)
    i, j, law = trinomial_table(users - 1, blanket / symbols)
    # P counts (i + 1, j), Q counts (i, j + 1): at P's outcome Q/P = j/(i + 1).
    return float((law * np.maximum(1.0 - a * j / (i + 1.0), 0.0)).sum())


def weak_tail_as_published(n: int, k: int, gamma: float, epsilon: float) -> float:
    """Theorems 15 and 16 as written: N1 and N2 independent given B. UNSOUND."""
    users, symbols, blanket, a = _checked(n, k, gamma, epsilon)
    hit = 1.0 / symbols
    own = 1.0 - blanket + blanket * hit, blanket * hit
    total = 0.0
    for b, weight in enumerate(binomial_table(users - 1, blanket)):
        if weight > 1e-30:
            first, second = (_plus_one(binomial_table(b, hit), p) for p in own)
            total += weight * _weak_tail(first[:, None] * second[None, :], b, blanket, hit, a)
    return float(total)


def weak_tail_joint_as_published(n: int, k: int, gamma: float, epsilon: float) -> float:
    """Theorems 15 and 16 with the true joint law. Sound, never tight."""
    users, symbols, blanket, a = _checked(n, k, gamma, epsilon)
    hit = 1.0 / symbols
    own = 1.0 - blanket + blanket * hit, blanket * hit
    total = 0.0
    for b, weight in enumerate(binomial_table(users - 1, blanket)):
        if weight > 1e-30:
            crowd = _joint(b, hit)
            law = np.zeros((b + 2, b + 2))
            law[1:, :-1] += own[0] * crowd
            law[:-1, 1:] += own[1] * crowd
            law[:-1, :-1] += (1.0 - own[0] - own[1]) * crowd
            total += weight * _weak_tail(law, b, blanket, hit, a)
    return float(total)


def _weak_tail(law: Floats, b: int, gamma: float, hit: float, a: float) -> float:
    value = (1.0 - gamma) * np.arange(b + 2.0) + gamma * hit * (b + 1.0)
    return float(law[value[:, None] >= a * value[None, :] * (1.0 - 1e-12)].sum())


def _plus_one(law: Floats, p: float) -> Floats:
    """The law of a count plus an independent Bernoulli(p)."""
    return np.append(law, 0.0) * (1.0 - p) + np.append(0.0, law) * p


def _joint(b: int, hit: float) -> Floats:
    """Pr[(N1, N2) = (i, j)] of b uniform values, as a (b + 1, b + 1) table."""
    table = np.zeros((b + 1, b + 1))
    i, j, law = trinomial_table(b, hit)
    table[i.astype(np.int64), j.astype(np.int64)] = law
    return table


def specific_clones_as_published(k: int, epsilon0: float, n: int, epsilon: float) -> float:
    """The hockey stick of the pair (3.1)-(3.2) with p = 1/(E + k - 1). UNSOUND for k >= 3.

    The adversary counts two reports and "neither": the truth of one dataset with those merged."""
    symbols, users = _validate.count("k", k, least=2), require_small(n)
    E = math.exp(_validate.epsilon0(epsilon0))
    a = math.exp(float(_validate.non_negative("epsilon", epsilon).reshape(())))
    p = 1.0 / (E + symbols - 1.0)
    neither = (1.0 - a) * (symbols - 2.0) / (E + symbols - 3.0) if symbols > 2 else 0.0
    return trinomial_excess(users, p, E - a, 1.0 - a * E, neither)


def _checked(n: int, k: int, gamma: float, epsilon: float) -> tuple[int, int, float, float]:
    return (
        require_small(n),
        _validate.count("k", k, least=2),
        _validate.probability("gamma", gamma, positive=True),
        math.exp(float(_validate.non_negative("epsilon", epsilon).reshape(()))),
    )
