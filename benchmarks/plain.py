"""The plain method: straight sums over the terms of a privacy profile, as one writes them first.

Each function returns delta(epsilon) of one shuffled round from its defining sum, vectorised with
NumPy and SciPy, tails cut where their mass is below `tail` and that mass added back. They are the
baseline of the benchmarks; nothing here is certified against floating-point errors.

The strong clones pair (Feldman, McMillan, Talwar, 2022) with E = e^epsilon0, q = E / (E + 1):
C ~ Bin(n - 1, 2 / (E + 1)) clones, and given C = c the number j of "ones" among c + 1 reports is
q Bin(c, 1/2)(j - 1) + (1 - q) Bin(c, 1/2)(j) under P, with q and 1 - q exchanged under Q.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, gammaln

Array = NDArray[np.float64]


def clones_delta_by_atoms(epsilon: float, n: int, epsilon0: float, tail: float = 0.0) -> float:
    """Sum (P - e^epsilon Q)_+ over the pairs (c, j): O(n) terms inside the tails' windows.

    With c + 1 = N, the atom (c, j) has P = pmf (1 + y) and Q = pmf (1 - y), where pmf is that of
    Bin(N, 1/2) at j and y = (2 j - N) / N tanh(epsilon0 / 2).
    """
    alpha, kappa = np.exp(epsilon), np.tanh(epsilon0 / 2)
    probability = 2 / (np.exp(epsilon0) + 1)
    low, high = window(n - 1, probability, tail / 2)
    log_factorial = gammaln(np.arange(high + 3, dtype=float) + 1)
    total = tail
    for c in blocks(low, high, 256):
        N = c.astype(np.int64)[:, None] + 1
        bottom, top = window(int(N[-1, 0]), 0.5, tail / 2)
        j = np.arange(bottom, top + 1)[None, :] + (N - N[-1, 0]) // 2
        inside = (j >= 0) & (j <= N)
        j = np.clip(j, 0, N)
        log_pmf = log_factorial[N] - log_factorial[j] - log_factorial[N - j] - N * np.log(2)
        y = kappa * (2 * j - N) / N
        terms = inside * np.exp(log_pmf) * np.maximum(1 + y - alpha * (1 - y), 0)
        total += float(binomial_pmf(c, n - 1, probability) @ terms.sum(axis=1))
    return total


def clones_delta_by_counts(epsilon: float, n: int, epsilon0: float, tail: float = 0.0) -> float:
    """Sum over c the hockey-stick divergence given C = c, two binomial tails each.

    With tail = 0 the sum has all n terms; with tail > 0 those of a window, O(sqrt n).
    """
    alpha, E = np.exp(epsilon), np.exp(epsilon0)
    if alpha >= E:
        return 0.0
    q = E / (E + 1)
    low, high = window(n - 1, 2 / (E + 1), tail)
    total = tail
    for c in blocks(low, high, 2**18):
        t = np.floor((c + 1) * (alpha * E - 1) / ((E - 1) * (1 + alpha))) + 1
        given_c = (q - alpha * (1 - q)) * fair_coin_tail(c, t - 1)
        given_c += ((1 - q) - alpha * q) * fair_coin_tail(c, t)
        total += float(binomial_pmf(c, n - 1, 2 / (E + 1)) @ given_c)
    return total


def kary_blanket_delta(epsilon: float, n: int, epsilon0: float, k: int, tail: float = 0.0) -> float:
    """The blanket pair of k-ary randomized response, k >= 3: O(n) pairs (S, N3).

    H = ((E - 1) / n) E[(N1 - alpha N2 - tau M)_+] with (N1, N2, N3) ~ Mult(n; p, p, (k - 2) p),
    M = N1 + N2 + N3, tau = (alpha - 1) / (E - 1), summed over S = N1 + N2 and N3; N1 given S is
    Bin(S, 1/2) and its sum is closed.
    """
    alpha, E = np.exp(epsilon), np.exp(epsilon0)
    p = 1 / (E + k - 1)
    tau = (alpha - 1) / (E - 1)
    u, v = 1 - tau, -alpha - tau  # the weights of N1 and N2
    third = (k - 2) * p / (1 - 2 * p)
    low, high = window(n, 2 * p, tail / 2)
    total = tail
    for block in blocks(low, high, 64):
        fewest, _ = window(n - int(block[-1]), third, tail / 2)
        _, most = window(n - int(block[0]), third, tail / 2)
        S, N3 = block[:, None], np.arange(fewest, most + 1, dtype=float)[None, :]
        rest = v * S - tau * N3
        t = np.floor(-rest / (u - v)) + 1
        positive_part = (u - v) * S / 2 * fair_coin_tail(S - 1, t - 1) + rest * fair_coin_tail(S, t)
        given_S = (binomial_pmf(N3, n - S, third) * positive_part).sum(axis=1)
        total += (E - 1) / n * float(binomial_pmf(block, n, 2 * p) @ given_S)
    return total


def epsilon_by_bisection(
    delta_at: Callable[[float], float], delta: float, epsilon0: float, relative: float = 1e-3
) -> float:
    """The smallest epsilon in [0, epsilon0] with delta_at(epsilon) <= delta, rounded up."""
    low, high = 0.0, epsilon0
    while high - low > relative * high:
        middle = (low + high) / 2
        low, high = (low, middle) if delta_at(middle) <= delta else (middle, high)
    return high


def window(trials: int, probability: float, tail: float) -> tuple[int, int]:
    """Ends with Pr[Bin < low] + Pr[Bin > high] <= tail, by Chernoff; everything if tail = 0."""
    if tail == 0:
        return 0, trials
    mean, L = trials * probability, np.log(2 / tail)
    below = np.sqrt(2 * mean * L)
    above = L / 3 + np.sqrt(2 * mean * L + L**2 / 9)
    return max(0, int(np.floor(mean - below))), min(trials, int(np.ceil(mean + above)))


def blocks(low: int, high: int, size: int) -> Iterator[Array]:
    """The numbers low, ..., high in arrays of at most `size`, so that temporaries stay in cache."""
    for start in range(low, high + 1, size):
        yield np.arange(start, min(start + size, high + 1), dtype=float)


def binomial_pmf(x: Array, trials: Array | float, probability: float) -> Array:
    """Pr[Bin(trials, probability) = x], zero outside 0, ..., trials."""
    rest = np.maximum(trials - x, 0)
    log_pmf = gammaln(trials + 1) - gammaln(x + 1) - gammaln(rest + 1)
    log_pmf = log_pmf + x * np.log(probability) + rest * np.log1p(-probability)
    pmf: Array = np.where(x <= trials, np.exp(log_pmf), 0.0)
    return pmf


def fair_coin_tail(trials: Array, t: Array) -> Array:
    """Pr[Bin(trials, 1/2) >= t], elementwise."""
    inside = (t >= 1) & (t <= trials)
    tail = betainc(np.where(inside, t, 1.0), np.where(inside, trials - t + 1, 1.0), 0.5)
    result: Array = np.where(inside, tail, np.where(t < 1, 1.0, 0.0))
    return result
