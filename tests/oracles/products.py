"""Compositions of the dominating pairs in double precision: many outcomes, or many rounds.

A pair is two arrays of masses. Two ways to compose:

- `hockey_stick_of_two` and `hockey_stick_of_four` sum over all outcomes of the product, sorted by
  likelihood ratio; every sum has positive terms only, so that the relative error stays near 1e-12
  however small the result;
- `composed_between` rounds all privacy losses down to a lattice (never above the truth) and up
  (never below), and adds up many rounds by a Fourier transform; good for results above 1e-9.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

Array = NDArray[np.float64]


class Pair(NamedTuple):
    """The masses of P and of Q, outcome by outcome."""

    p: Array
    q: Array


def clones(n: int, epsilon0: float) -> Pair:
    """The clones of 2022."""
    E = np.exp(epsilon0)
    return _two_reports(n, 2 / (E + 1), E / (E + 1))


def clones_2021(n: int, epsilon0: float) -> Pair:
    """The clones of 2021."""
    E = np.exp(epsilon0)
    return _two_reports(n, 1 / E, E / (E + 1))


def strong(n: int, k: int, gamma: float) -> Pair:
    """The strong adversary of k-ary randomized response."""
    p, q = _two_reports(n, 2 * gamma / k, 1.0)
    return Pair(np.append((1 - gamma) * p, gamma), np.append((1 - gamma) * q, gamma))


def _two_reports(n: int, clone: float, own: float) -> Pair:
    """The victim among C ~ Bin(n - 1, clone) fair reports; only C within 13 sigma is kept."""
    spread = 13 * np.sqrt(n * clone * (1 - clone)) + 30
    first = max(int((n - 1) * clone - spread), 0)
    last = min(int((n - 1) * clone + spread), n - 1)
    c = np.arange(first, last + 1)[:, None]
    j = np.arange(last + 2)[None, :]
    weight = _binomial(n - 1, clone, c)
    with_one, without = weight * _binomial(c, 0.5, j - 1), weight * _binomial(c, 0.5, j)
    p, q = own * with_one + (1 - own) * without, own * without + (1 - own) * with_one
    return _nonzero(p, q)


def blanket(n: int, k: int, epsilon0: float) -> Pair:
    """The blanket of k-ary randomized response: all counts (n1, n2, n3) of up to n clones."""
    E = np.exp(epsilon0)
    p = 1 / (E + k - 1)
    counts = np.indices((n + 1, n + 1, n + 1))

    def crowd(n1: Array, n2: Array, n3: Array) -> Array:
        """The law of the clones among the n - 1 others."""
        rest = n - 1 - n1 - n2 - n3
        possible = np.minimum(np.minimum(n1, n2), np.minimum(n3, rest)) >= 0
        a, b, c, d = (np.where(possible, m, 0) for m in (n1, n2, n3, rest))
        log_mass = (gammaln(n) - gammaln(a + 1) - gammaln(b + 1) - gammaln(c + 1) - gammaln(d + 1)) + (
            (a + b) * np.log(p) + c * np.log(max(k - 2, 1) * p) + d * np.log1p(-k * p)
        )
        return np.where(possible & ((k > 2) | (n3 == 0)), np.exp(log_mass), 0.0)

    n1, n2, n3 = counts
    first, second = p * crowd(n1 - 1, n2, n3), p * crowd(n1, n2 - 1, n3)
    third = (k - 2) * p * crowd(n1, n2, n3 - 1)
    return _nonzero(E * first + second + third, first + E * second + third)


def hockey_stick(pair: Pair, alpha: float) -> float:
    """H_alpha(P, Q)."""
    return float(np.maximum(pair.p - alpha * pair.q, 0.0).sum())


def hockey_stick_of_two(first: Pair, second: Pair, alpha: float) -> float:
    """H_alpha of the product: the sum over outcomes of the first of P H_{alpha Q / P}(second)."""
    order = np.argsort(_loss(second))
    losses = _loss(second)[order]
    p_above = np.append(np.cumsum(second.p[order][::-1])[::-1], 0.0)
    q_above = np.append(np.cumsum(second.q[order][::-1])[::-1], 0.0)
    at = np.searchsorted(losses, np.log(alpha) - _loss(first), side="right")
    return float(np.maximum(first.p * p_above[at] - alpha * first.q * q_above[at], 0.0).sum())


def hockey_stick_of_four(pair: Pair, alpha: float) -> float:
    """H_alpha of the fourfold product."""
    square = Pair(np.outer(pair.p, pair.p).ravel(), np.outer(pair.q, pair.q).ravel())
    return hockey_stick_of_two(square, square, alpha)


def composed_between(
    pair: Pair, rounds: int, epsilon: float, step: float, reach: float
) -> tuple[float, float]:
    """A lower and an upper value of the hockey stick of `rounds` rounds at e^epsilon.

    Losses are multiples of `step`. What lies beyond `reach` is left out of the lower value and
    taken as lost in the upper one.
    """
    half = round(reach / step)
    size = 1 << (2 * half * rounds + 1).bit_length()
    answers = []
    for rounding in (np.floor, np.ceil):
        index = rounding(_loss(pair) / step)
        inside = np.abs(index) <= half
        law = np.bincount((index[inside] + half).astype(int), pair.p[inside], 2 * half + 1)
        total = np.fft.irfft(np.fft.rfft(law, size) ** rounds, size)[: 2 * half * rounds + 1]
        losses = step * (np.arange(total.size) - half * rounds)
        delta = float(total @ -np.expm1(np.minimum(epsilon - losses, 0.0)))
        lost = pair.p[~inside & (index > 0)].sum() if rounding is np.ceil else 0.0
        answers.append(delta - np.expm1(rounds * np.log1p(-lost)))
    return answers[0], answers[1]


def _loss(pair: Pair) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(pair.p) - np.log(pair.q)


def _binomial(n: Array | int, p: float, c: Array) -> Array:
    """Pr[Bin(n, p) = c], zero outside 0..n; 0 < p <= 1/2 or so."""
    possible = (c >= 0) & (c <= n)
    m = np.where(possible, c, 0)
    log_mass = gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1)
    return np.where(possible, np.exp(log_mass + m * np.log(p) + (n - m) * np.log1p(-p)), 0.0)


def _nonzero(p: Array, q: Array) -> Pair:
    some = (p > 0) | (q > 0)
    return Pair(p[some], q[some])
