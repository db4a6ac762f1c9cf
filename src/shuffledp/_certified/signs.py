"""How far the mean of fair signs exceeds a threshold, on average: E[(Y - y)_+], with an error bound."""

from __future__ import annotations

import numpy as np

from shuffledp._certified.binomial import log1p_minus, stirling_remainder
from shuffledp._certified.rounding import CALL, TINY, Floats, gamma
from shuffledp._certified.tails import CLOSE, ROUGH, TAIL_RATIO_ERROR, TailRule, cut_at, quadrature

_SHORT, _TERMS = 1 / 16, 8  # soundness
_POWERS = -np.cumprod(np.tile(ROUGH.x[:, None], _TERMS), axis=1) / np.arange(1.0, _TERMS + 1.0)
"""Of the nodes: -x^k / k."""
_CELLS_AT_ONCE = 2000  # speed: integrals whose nodes are in one array
_NEAR = 0.3  # soundness: below, the series of 17 terms has all digits

Excess = tuple[Floats, Floats, Floats, Floats, Floats]


def signs_excess(count: Floats, y: Floats, short: Floats, rule: TailRule = CLOSE) -> Excess:
    """mean_of_signs_excess for a 1-d ``count`` and rows of y, the cheaper way."""
    if float(count.max()) < 16.0 * len(y):
        return signs_excess_table(count, y, short)
    return mean_of_signs_excess(count, y, short, rule)


def mean_of_signs_excess(count: Floats, y: Floats, short: Floats, rule: TailRule = CLOSE) -> Excess:
    """For the mean Y of ``count`` fair signs and 0 <= y: (E[(Y - y)_+], error, Pr[Y > y], jump, relative).

    ``short`` is 1 - y, given apart: near one it decides, and y itself has lost it to rounding.

    With B ~ Bin(N, 1/2), a = floor(N (1 + y) / 2) + 1, f = Pr[B = a], S = Pr[B >= a] the sum
    telescopes: E[(Y - y)_+] = a f / N - y S. ``jump`` is a f / N = E[Y; Y > y]. The error is
    absolute and covers rounding of y by a few units; ``relative`` is that of the tail and the jump.

    Rounding of N (1 + y) / 2 by 2.5 N units may miss an a whose Y - y is below 5 units: f(a - 1) is at most
    N f(a) / (N - a + 1), so that is 5 N / (N - a + 1) units of jump, less than log_error or 8 columns. But
    next to the top outcome, where only tail (1 - y) remains, it is added (``_excess``)."""
    half = 0.5 * count
    a = np.maximum(np.floor(half * (1.0 + y)), np.floor(half)) + 1.0
    a = np.minimum(a, count)
    log_f, log_error = _log_half_pmf(count, a)
    ratio = _half_tail_ratio(count, a, rule)
    f = np.where(short > 0.0, np.exp(log_f), 0.0)
    jump = a * f / count
    tail = f * ratio
    # The rule's error twice: once is more than exp, products and the difference cost (CALL + 8 units).
    relative = log_error + 2.0 * rule.error
    return *_excess(count, a, jump, tail, y, short, relative), tail, jump, relative


def _excess(
    count: Floats, a: Floats, jump: Floats, tail: Floats, y: Floats, short: Floats, relative: Floats
) -> tuple[Floats, Floats]:
    """(jump - y tail, error): exact up to the errors of the two terms.

    Where only the top outcome exceeds y it is tail (1 - y), which does not cancel. The outcome before it,
    N times as likely, has Y = y where N (1 - y) = 2: to either side it counts by a few units."""
    rest = y * tail
    value, error = np.maximum(jump - rest, 0.0), (jump + rest) * relative
    top = a >= count
    if top.any():
        at = np.nonzero(top)
        n, left, last, part = (np.broadcast_to(of, top.shape)[at] for of in (count, short, tail, relative))
        value[at] = last * left
        tied = np.abs(n * left - 2.0) <= gamma(32) * n
        error[at] = last * left * part + np.where(tied, gamma(32) * n * last, 0.0)
    return value, error


def signs_excess_table(count: Floats, y: Floats, short: Floats) -> Excess:
    """mean_of_signs_excess for a 1-d ``count`` and rows of y, by one table per count.

    Probabilities are running products from the middle outwards and tails running sums from the far
    end inwards, all of positive terms: N roundings each. Cheaper where counts are small and the y
    are many."""
    middle = np.floor(0.5 * count) + 1.0
    columns = int(count.max() - middle.min()) + 2
    steps = middle[:, None] + np.arange(columns)
    log_first, log_error = _log_half_pmf(count, middle)
    ratio = np.maximum(count[:, None] - steps[:, :-1], 0.0) / (steps[:, :-1] + 1.0)
    table = np.empty((count.size, columns))
    table[:, 0] = np.exp(log_first)
    table[:, 1:] = ratio
    with np.errstate(under="ignore"):
        np.cumprod(table, axis=1, out=table)
    tails = np.cumsum(table[:, ::-1], axis=1)[:, ::-1]
    a = np.clip(np.floor(0.5 * count * (1.0 + y)) + 1.0, middle, count)
    column = (a - middle).astype(np.int64)
    row = np.arange(count.size)
    some = short > 0.0
    jump = np.where(some, a / count * table[row, column], 0.0)
    tail = np.where(some, tails[row, column], 0.0)
    # Two units a column in the products and one in the sums; five for what is missed (see above).
    relative = log_error + gamma(8 * columns) + 2.0 * TAIL_RATIO_ERROR
    value, error = _excess(count, a, jump, tail, y, short, relative)
    error = error + np.where(some, TINY, 0.0)  # what underflows
    return value, error, tail, jump, np.broadcast_to(relative, tail.shape)


def _log_half_pmf(n: Floats, a: Floats) -> tuple[Floats, Floats]:
    """(log Pr[Bin(n, 1/2) = a], error) for arrays of n, which may lack the first axes of a; n/2 < a <= n."""
    top, inner, rest = a >= n, a, n - a
    some = bool(top.any())
    if some:
        half = np.maximum(np.floor(0.5 * n), 1000.0)  # in place of the top outcome any number will do
        inner, rest = np.where(top, half, a), np.where(top, half, rest)
    y = np.abs(inner - rest) / n
    log_inner = stirling_remainder(n) - stirling_remainder(inner) - stirling_remainder(rest)
    log_inner -= 0.5 * n * _even_deviance(y)
    log_inner -= 0.5 * np.log(2.0 * np.pi * inner * (rest / n))
    value = np.where(top, -n * np.log(2.0), log_inner) if some else log_inner
    # All terms have one sign. The deviance (below), its factor and two sums, or the logarithm and as
    # much; constants: three remainders of nine units, two of the logarithm's argument.
    near, far = gamma(14.0 + CALL), gamma(72.0 + CALL)
    relative = near if float(y.max(initial=0.0)) < _NEAR else np.where(y < _NEAR, near, far)
    return value, relative * np.abs(value) + gamma(32)


def _even_deviance(y: Floats) -> Floats:
    """E = (1+y) log(1+y) + (1-y) log(1-y) for 0 <= y < 1: the sum of y^(2j) / (j (2j - 1)), j >= 1.

    Units, with one in y: 8 by the series. With the linear parts cancelled by hand, 14 where y < 0.3 (each
    log1p_minus has 7 of half of y^2), else ``CALL`` of (1+y) log(1+y) + (1-y) |log(1-y)|, one of
    y log((1+y)/(1-y)) for y, and four sums: 67 at y = 0.3, less than 45 beyond 1/2 (y < 1 - 2^-52)."""
    largest = float(y.max(initial=0.0))
    if largest >= _NEAR:
        return np.asarray((1.0 + y) * log1p_minus(y) + (1.0 - y) * log1p_minus(-y) + 2.0 * y * y)
    square = y * y
    last = 7 if largest < 0.05 else 17
    series = square * (1.0 / (last * (2 * last - 1)))
    for j in range(last - 1, 0, -1):
        series += 1.0 / (j * (2 * j - 1))
        series *= square
    return np.asarray(series)


def _half_tail_ratio(n: Floats, a: Floats, rule: TailRule) -> Floats:
    """Pr[Bin(n, 1/2) >= a] / Pr[Bin(n, 1/2) = a] for a > n/2, within the rule's relative error."""
    # (1-v)^(a-1) (1+v)^(n-a) = (1-v^2)^(n-a) (1-v)^(2a-1-n): both exponents are >= 0.
    square, line = n - a, 2.0 * a - 1.0 - n

    def phi(v: Floats) -> Floats:
        return np.asarray(square * np.log1p(-v * v) + line * np.log1p(-v))

    top = a >= n
    cut, some = cut_at(line, 2.0 * square, rule.cut), bool(top.any())
    cut = np.where(top, 0.0, cut) if some else cut
    short = rule is ROUGH and float(cut.max(initial=0.0)) <= _SHORT
    value = _short_integral(n, line, cut) if short else quadrature(phi, cut, rule)
    return np.where(top, 1.0, a * value) if some else np.asarray(a * value)


def _short_integral(n: Floats, line: Floats, cut: Floats) -> Floats:
    """That of ``ROUGH`` for cuts V <= 1/16, with the exponent's series up to v^8.

    -phi(v) is the sum of line v^k / k over odd k and of (n - 1) v^k / k over even ones. line V + (n - a) V^2
    is at most 18, so (n - 1) V^2 at most 38: what is left out of the exponent is below 6 V^8, 1.4e-9."""
    whole, straight, flat = np.broadcast_to(n - 1.0, cut.shape).ravel(), line.ravel(), cut.ravel()
    total, most = np.empty(cut.size), min(cut.size, _CELLS_AT_ONCE)
    terms, nodes = np.empty((_TERMS, most)), np.empty((ROUGH.x.size, most))  # once: memory takes long
    for first in range(0, cut.size, _CELLS_AT_ONCE):
        some = slice(first, first + _CELLS_AT_ONCE)
        v = flat[some]
        square, rows, values = v * v, terms[:, : v.size], nodes[:, : v.size]
        np.multiply(straight[some], v, out=rows[0])
        np.multiply(whole[some], square, out=rows[1])
        np.multiply(rows[:2], square, out=rows[2:4])
        np.multiply(rows[:4], square * square, out=rows[4:])
        np.matmul(_POWERS, rows, out=values)
        total[some] = ROUGH.w @ np.exp(values, out=values)
    return np.asarray(total.reshape(cut.shape) * cut)
