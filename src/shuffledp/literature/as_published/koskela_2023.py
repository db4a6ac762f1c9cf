"""Koskela, Heikkila, Honkela 2023, "Numerical accounting in the shuffle model of differential privacy".

What is printed for shuffled k-ary randomized response, with p = 1/(E + k - 1), E = e^epsilon0, gamma =
k p, a = e^epsilon:

* Theorem 13 and (4.2), strong adversary: delta = Pr[N1/N2 >= a], N1 - 1 and N2 binomial (n - 1, gamma/k).
  A tail probability is not a hockey stick: never tight. The joint law is not stated (4.3 gives marginals):
  with N1 and N2 independent it is *not an upper bound*; with their true joint law it is one, a loose one.
* Theorems 15 and 16, weak adversary: the same for (1-gamma) N_i + (gamma/k)(B + 1).
* Figure 4's strong curve (stored by the authors, DPBayes/numerical-shuffler-experiments, 75068f3): the
  hockey stick without the mass gamma of harmless outcomes; sound, loose.
* The clone pair (3.1)-(3.2) with p = 1/(E + k - 1), *not an upper bound* for any k >= 3. The paper's text has
  p = 1/(E + 1), which is right; the smaller p is in its code for Figure 4, in Feldman, McMillan, Talwar 2022
  (whose erratum is about it) and in Wang et al. 2024 (variation ratio).
* The Renyi curves of Figure 1, Figures 2, 3 and the clones of Figure 4 as the authors' scripts compute them
  (same repository): slips of the scripts alone.

>>> strong_tail_as_published(n=1000, k=2, gamma=0.9, epsilon=0.3) < 6.19e-9  # the truth there
True
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import Floats, down
from shuffledp.literature.as_published._tables import (
    alpha,
    binomial_table,
    log_factorials,
    require_small,
    trinomial_table,
)

_TIES = down(1.0, operations=2**13)  # ratios that differ by rounding alone are equal

_MOST_IN_SCRIPTS = 10**4

_Counts = Callable[[int, float, tuple[float, float]], Floats]


def strong_tail_as_published(n: int, k: int, gamma: float, epsilon: float) -> float:
    """Theorem 13 / (4.2) with N1 and N2 independent. UNSOUND."""
    users, symbols, blanket, a = _checked(n, k, gamma, epsilon)
    law = binomial_table(users - 1, blanket / symbols)
    count = np.arange(users, dtype=np.float64)
    # N1 >= a N2, with N1 = count + 1.
    above = np.append(np.cumsum(law[::-1])[::-1], 0.0)
    first = np.clip(np.ceil(a * count * _TIES - 1.0), 0.0, float(users))
    return float((law * above[first.astype(np.int64)]).sum())


def strong_tail_joint_as_published(n: int, k: int, gamma: float, epsilon: float) -> float:
    """Theorem 13 / (4.2) with the true joint law of N1 and N2. Sound, never tight."""
    users, symbols, blanket, a = _checked(n, k, gamma, epsilon)
    i, j, law = trinomial_table(users - 1, blanket / symbols)
    return float(law[i + 1.0 >= a * j * _TIES].sum())


def strong_figure_as_published(n: int, k: int, gamma: float, epsilon: float) -> float:
    """The strong curve of Figure 4: sum (P - a Q)_+ given that the user answered truthfully. Loose."""
    users, symbols, blanket, a = _checked(n, k, gamma, epsilon)
    i, j, law = trinomial_table(users - 1, blanket / symbols)
    # P counts (i + 1, j), Q counts (i, j + 1): at P's outcome Q/P = j/(i + 1).
    return float((law * np.maximum(1.0 - a * j / (i + 1.0), 0.0)).sum())


def weak_tail_as_published(n: int, k: int, gamma: float, epsilon: float) -> float:
    """Theorems 15 and 16 with N1 and N2 independent given B. UNSOUND."""
    return _weak_tail(n, k, gamma, epsilon, _independent)


def weak_tail_joint_as_published(n: int, k: int, gamma: float, epsilon: float) -> float:
    """Theorems 15 and 16 with the true joint law. Sound, never tight."""
    return _weak_tail(n, k, gamma, epsilon, _joint)


def _weak_tail(n: int, k: int, gamma: float, epsilon: float, counts: _Counts) -> float:
    users, symbols, blanket, a = _checked(n, k, gamma, epsilon)
    hit = 1.0 / symbols
    total = 0.0
    for b, weight in enumerate(binomial_table(users - 1, blanket)):
        if weight > 1e-30:
            law = counts(b, hit, (1.0 - blanket + blanket * hit, blanket * hit))
            value = (1.0 - blanket) * np.arange(b + 2.0) + blanket * hit * (b + 1.0)
            above = value[:, None] >= a * value[None, :] * _TIES
            total += weight * float(law[above].sum())
    return float(total)


def _independent(b: int, hit: float, own: tuple[float, float]) -> Floats:
    """Counts of b uniform values, each plus a Bernoulli(own), all independent."""
    law = binomial_table(b, hit)
    first, second = (np.append(law, 0.0) * (1.0 - p) + np.append(0.0, law) * p for p in own)
    return np.asarray(first[:, None] * second[None, :])


def _joint(b: int, hit: float, own: tuple[float, float]) -> Floats:
    """Counts of two symbols among b uniform values and the user's own report."""
    crowd, law = np.zeros((b + 1, b + 1)), np.zeros((b + 2, b + 2))
    i, j, mass = trinomial_table(b, hit)
    crowd[i.astype(np.int64), j.astype(np.int64)] = mass
    law[1:, :-1] += own[0] * crowd
    law[:-1, 1:] += own[1] * crowd
    law[:-1, :-1] += (1.0 - own[0] - own[1]) * crowd
    return law


def specific_clones_as_published(k: int, epsilon0: float, n: int, epsilon: float) -> float:
    """The hockey stick of the pair (3.1)-(3.2) with p = 1/(E + k - 1). UNSOUND for k >= 3.

    The adversary counts two reports and "neither": the truth of one dataset with those merged."""
    symbols, users = _validate.count("k", k, least=2), require_small(n)
    E = math.exp(_validate.epsilon0(epsilon0))
    a = alpha(epsilon)
    neither = (1.0 - a) * (symbols - 2.0) / (E + symbols - 3.0) if symbols > 2 else 0.0
    i, j, law = trinomial_table(users, 1.0 / (E + symbols - 1.0))
    excess = (E - a) * i + (1.0 - a * E) * j + neither * (users - i - j)
    return float((law * np.maximum(excess, 0.0)).sum()) / users


def renyi_figure_as_published(epsilon0: float, n: int, rounds: int, epsilon: Floats) -> Floats:
    """The Renyi curves of Figure 1 (deltas_feldman.p), as delta_shuffler_renyi.py has them. UNSOUND.

    Its divergence of the order L has the mean of e^(L w), w the loss, where e^((L - 1) w) belongs, which is
    loose; and it leaves out what is far from the mean, and all outcomes without a report of one kind, which
    at large orders are most of the divergence."""
    users, q = _validate.count("n", n, least=2, most=_MOST_IN_SCRIPTS), 1.0 / (1.0 + math.exp(-epsilon0))
    lie, logs = 1.0 - q, log_factorials(users)
    wide = math.sqrt(25.0 * (users - 1))
    mean = 2.0 * lie * (users - 1)
    log_law, loss = [], []
    for c in range(max(0, math.floor(mean - wide)), min(users, math.ceil(mean + wide))):
        wide = math.sqrt(25.0 / (c + 1))
        first = np.arange(max(0, math.floor(c * (0.5 - wide))), min(c, math.ceil(c * (0.5 + wide))))
        ratio = (c - first) / (first + 1.0)
        own, other = q + (1.0 - q) * ratio, q * ratio + (1.0 - q)
        crowd = logs[users - 1] - logs[users - 1 - c] - logs[first] - logs[c - first]
        crowd = crowd + c * math.log(lie) + (users - 1 - c) * math.log1p(-2.0 * lie)
        log_law.append(crowd + np.log(own))
        loss.append(np.log(own / other))
    mass, w, orders = np.concatenate(log_law), np.concatenate(loss), np.arange(2.0, 257.0)
    with np.errstate(over="ignore", under="ignore"):
        divergence = np.array([math.log(np.exp(mass + L * w).sum()) / (L - 1.0) for L in orders])
        exponent = (orders - 1.0) * (rounds * divergence - np.asarray(epsilon)[:, None])
        deltas = np.exp(exponent) / orders * (1.0 - 1.0 / orders) ** (orders - 1.0)
    return np.asarray(deltas.min(axis=1))


def subsampled_curve_as_published(
    epsilon0: float, n: int, gamma: float, a: Floats, step: float, slip: bool = True
) -> Floats:
    """h of Lemma 7 as the scripts of Figures 2 and 3 have it, losses rounded up to multiples of ``step``.

    ``get_omega`` of plot_doroshenko_shuffle.py and numerical_subsample_substitute_doroshenko.py divides by
    q b/a + (1 - q)^2, where q b/a + 1 - q belongs, q = E/(E + 1): every loss of that direction is too large,
    by about gamma q (1 - q). Without the ``slip`` it is Lemma 7."""
    ways = _both_forms(epsilon0, n, gamma, slip)
    return np.maximum(*(_hockey_stick(mass, np.ceil(loss / step) * step, a) for mass, loss in ways))


def subsampled_pair_as_published(
    epsilon0: float, n: int, gamma: float, rounds: int, epsilon: Floats
) -> Floats:
    """The third curve of Figure 2, as its script has it: the pair (gamma P + (1 - gamma) Q, Q) alone,
    composed, n users in the shuffle. UNSOUND: neither form of Lemma 7 holds for all alpha."""
    step = 1e-5
    (mass, loss), _ = _both_forms(epsilon0, n, gamma, slip=True)
    return _composed(np.ceil(loss / step) * step, mass / mass.sum(), step, rounds, epsilon)


def _both_forms(epsilon0: float, n: int, gamma: float, slip: bool) -> list[tuple[Floats, Floats]]:
    """(masses, losses) of gamma P + (1 - gamma) Q against Q, and of P against gamma Q + (1 - gamma) P."""
    users = _validate.count("n", n, least=2, most=_MOST_IN_SCRIPTS)
    share = _validate.probability("gamma", gamma, positive=True)
    q = 1.0 / (1.0 + math.exp(-_validate.epsilon0(epsilon0)))
    first, second, law = _crowd(users - 1, 1.0 - q)
    ratio = second / first
    own, other = q + (1.0 - q) * ratio, q * ratio + (1.0 - q)
    divisor = q * ratio + (1.0 - q) ** 2 if slip else other
    return [
        (law * (share * own + (1.0 - share) * other), np.log(share * own / divisor + 1.0 - share)),
        (law * own, -np.log(share * other / own + 1.0 - share)),
    ]


def subsampled_delta_as_published(
    epsilon0: float, n: int, gamma: float, size: int, rounds: int, epsilon: Floats
) -> Floats:
    """Figure 2, as its script has it: a grid of ``size`` values from e^-0.5 to e^0.5, n users in the shuffle;
    to within 1e-12, by a plain Fourier transform. Far too large."""
    step = 1e-5
    loss, mass = _pair_on_grid(epsilon0, n, gamma, np.linspace(-0.5, 0.5, size), step)
    return _composed(loss, mass / mass.sum(), step, rounds, epsilon)


def subsampled_epsilon_as_published(
    epsilon0: float, n: int, gamma: float, rounds: int, delta: float
) -> float:
    """Figure 3, as ``get_epsilon_PQ`` of its script finds it: exactly linear in the rounds. UNSOUND.

    Its sum of 1 - e^(epsilon - loss) begins at index 21 of the grid in place of the loss epsilon (``dx`` was
    set to one), so it is taken over all losses: 1 - e^epsilon (mean of e^-loss)^rounds."""
    loss, mass = _pair_on_grid(epsilon0, n, gamma, np.linspace(-0.2, 0.2, 500), step=2e-5)
    return math.log1p(-delta) - rounds * math.log(float((mass * np.exp(-loss)).sum() / mass.sum()))


def _pair_on_grid(epsilon0: float, n: int, gamma: float, grid: Floats, step: float) -> tuple[Floats, Floats]:
    """(loss, mass) of the pair whose curve is the chord of the script's h on a grid, but for its ends."""
    loss = grid[1:-1]
    a = np.exp(loss)
    value = subsampled_curve_as_published(epsilon0, n, gamma, a, step)
    slope = np.diff(value, prepend=1.0) / np.diff(a, prepend=0.0)
    return np.ceil(loss / step) * step, a * np.diff(slope, append=0.0)


def clones_figure_as_published(
    n: int, k: int, gamma: float, rounds: int, epsilon: Floats, step: float = 2e-5
) -> Floats:
    """The clones of Figure 4, as pld_for_clones.py has them; to within 1e-12. UNSOUND.

    Its ``get_logP2`` is defined twice, so the masses are those of (5.1) of 2021, C ~ Bin(n - 1, 1/E), while
    the losses are those of (3.1) with p = 1/(E + k - 1), with 2 p for p in the third term and (1 - q)^2 for
    1 - q."""
    users, symbols, blanket, _ = _checked(n, k, gamma, 0.0)
    E = (symbols * (1.0 - blanket) + blanket) / blanket
    q, lie = E / (E + symbols - 1.0), 1.0 / (E + symbols - 1.0)
    first, second, law = _crowd(users - 1, 0.5 / E)
    ratio, none = second / first, (users - first - second) / first
    mass = law * (E + none / (2.0 * (E - 1.0))) / (E + 1.0)
    neither = (1.0 - q - lie) * none * 2.0 * lie / (1.0 - 4.0 * lie)
    loss = np.log((q + lie * ratio + neither) / (q * ratio + lie * (1.0 - q) + neither))
    return _composed(np.ceil(loss / step) * step, mass, step, rounds, epsilon)


def _composed(loss: Floats, mass: Floats, step: float, rounds: int, epsilon: Floats) -> Floats:
    """sum (1 - e^(epsilon - L))_+ of the sum L of so many losses, multiples of ``step``; plain arithmetic."""
    points = 1 << 22
    one = np.bincount(np.rint(loss / step).astype(np.int64) % points, mass, points)
    law = np.fft.irfft(np.fft.rfft(one) ** rounds, points)
    sums = np.arange(points // 2) * step  # only those above epsilon >= 0 count
    return np.array([float((law[: sums.size] * -np.expm1(np.minimum(e - sums, 0.0))).sum()) for e in epsilon])


def _crowd(others: int, lie: float) -> tuple[Floats, Floats, Floats]:
    """(A + 1, C - A, probability): C ~ Bin(others, 2 lie) within 15 deviations, A ~ Bin(C, 1/2)."""
    mean, wide = 2.0 * lie * others, 15.0 * math.sqrt(2.0 * lie * others) + 15.0
    count = np.arange(max(0, math.floor(mean - wide)), min(others, math.ceil(mean + wide)) + 1)
    c, first = np.broadcast_arrays(count[:, None], np.arange(count[-1] + 1))
    inside = first <= c
    c, first = c[inside], first[inside]
    logs = log_factorials(others)
    log_law = logs[others] - logs[others - c] - logs[first] - logs[c - first]
    log_law = log_law + c * math.log(lie) + (others - c) * math.log1p(-2.0 * lie)
    with np.errstate(under="ignore"):
        return first + 1.0, np.asarray(c - first, dtype=np.float64), np.exp(log_law)


def _hockey_stick(mass: Floats, loss: Floats, a: Floats) -> Floats:
    """sum of mass (1 - a e^-loss)_+ at each a, masses divided by their sum."""
    order = np.argsort(loss)
    loss, mass = loss[order], mass[order] / mass.sum()
    above, paid = (np.append(np.cumsum(part[::-1])[::-1], 0.0) for part in (mass, mass * np.exp(-loss)))
    first = np.searchsorted(loss, np.log(a), side="right")
    return np.asarray(above[first] - a * paid[first])


def _checked(n: int, k: int, gamma: float, epsilon: float) -> tuple[int, int, float, float]:
    return (
        require_small(n),
        _validate.count("k", k, least=2),
        _validate.probability("gamma", gamma, positive=True),
        alpha(epsilon),
    )
