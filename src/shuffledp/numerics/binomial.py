"""Binomial probabilities and tails with proved relative accuracy, vectorised, for n up to 2^53.

Every function returns the logarithm or the value itself together with a bound on its error, so
that callers can round outward. Two ideas carry the file:

*Probability function* (Loader 2000): Stirling's remainder plus deviances. The deviance
``k log(k/m) + m - k`` is computed from ``k - m`` (never as a difference of large logarithms), so
the error of ``log pmf`` is a few units in the last place of the *deviance*, plus what a relative
change of the odds by one unit does, ``|k - n p| u``.

*Tail ratio*. With ``o = p/q`` and ``X ~ Bin(n, p)``,

    Pr[X >= a] = Pr[X = a] * a * int_0^1 exp(phi(v)) dv,
    phi(v) = (a - 1) log(1 - v) + (n - a) log(1 + o v),

(substitute x = p (1 - v) in the incomplete beta integral). Beyond the mean phi is concave and
decreasing, so the integral is cut where phi = -CUT (relative loss e^-CUT) and the rest is done by
Gauss-Legendre. The integrand is a polynomial of degree n - 1: for n <= 2 * NODES the rule is
exact. Otherwise on the Bernstein ellipse rho = 3 of [0, V], Re phi(x + iy) <= phi(x) -
y^2 phi''(x) / 2, and y^2 |phi''| / 2 <= CUT (rho - 1/rho)^2 / 16 < 17.8, hence the quadrature
error is at most about e^17.8 * CUT * 3^(-2 NODES) < 1e-16 relative for NODES = 26. All sums are
of positive terms, and phi itself is a sum of terms of one sign, so rounding costs CUT units at most.
Where a rough answer will do, 14 nodes and a cut at 18: rho = 3.2 gives e^9.4 * 18 * 3 * 3.2^-28 < 5e-9,
and e^-18 < 1.6e-8 for the cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

UNIT = 2.0**-53
"""Unit round-off of IEEE double precision."""

MAX_COUNT = 2**53
"""Largest integer up to which counts are exact doubles."""

CUT = 40.0
NODES = 26

TAIL_RATIO_ERROR = 1e-13
"""Relative error bound of the tail integral for p = 1/2 (quadrature, cut and rounding).

CUT * 4 units for the exponent (1.8e-14), NODES units for the sum, 1e-16 for cut and quadrature."""

_STIRLING_TABLE_SIZE = 20
_FEW = 4096
_FAR = 1000.0


def _gauss_legendre(count: int) -> tuple[Floats, Floats]:
    """Nodes and weights on [0, 1]: eigenvalues of the Jacobi matrix (Golub-Welsch), then Newton."""
    k = np.arange(1, count)
    off = k / np.sqrt(4.0 * k * k - 1.0)
    x = np.linalg.eigvalsh(np.diag(off, 1) + np.diag(off, -1))
    for _ in range(2):
        previous, current = np.ones_like(x), x.copy()
        for j in range(2, count + 1):
            previous, current = current, ((2 * j - 1) * x * current - (j - 1) * previous) / j
        slope = count * (x * current - previous) / (x * x - 1.0)
        x = x - current / slope
    weights = 2.0 / ((1.0 - x * x) * slope * slope)
    return (x + 1.0) / 2.0, weights / 2.0


@dataclass(frozen=True)
class TailRule:
    """Nodes and weights on [0, 1], where to cut, and the relative error bound for p = 1/2."""

    x: Floats
    w: Floats
    cut: float
    error: float


CLOSE = TailRule(*_gauss_legendre(NODES), CUT, TAIL_RATIO_ERROR)
ROUGH = TailRule(*_gauss_legendre(14), 18.0, 3e-8)


def _stirling_table() -> Floats:
    """log(k!) - (k + 1/2) log k + k - log(2 pi)/2 for k = 1 .. size - 1 (index 0 is unused)."""
    # 1/(12 k) - ... evaluated at k + 30 and brought down by the exact recurrence
    # s(k) = s(k+1) + (k + 1/2) log1p(1/k) - 1, whose terms are all positive.
    table = np.zeros(_STIRLING_TABLE_SIZE)
    value = float(_stirling_series(np.asarray(_STIRLING_TABLE_SIZE + 30.0)))
    for k in range(_STIRLING_TABLE_SIZE + 29, 0, -1):
        # (k + 1/2) log((k+1)/k) - 1 = sum_{i>=1} v^(2i) / (2i+1), v = 1/(2k+1).
        v2 = 1.0 / (2.0 * k + 1.0) ** 2
        value += sum(v2**i / (2 * i + 1) for i in range(1, 40))
        if k < _STIRLING_TABLE_SIZE:
            table[k] = value
    return table


def _stirling_series(k: Any) -> Any:
    """Stirling's remainder for k >= 20; the first omitted term is below 1e-18."""
    s = 1.0 / (k * k)
    if np.min(k, initial=_FAR) >= _FAR:
        return (1 / 12 - s * (1 / 360)) / k
    return (
        1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s * (1 / 1188 - s * 691 / 360360))))
    ) / k


_STIRLING = _stirling_table()


def stirling_remainder(k: Floats) -> Floats:
    """log(k!) - log(sqrt(2 pi k) (k/e)^k) for whole k >= 1, to a few units or 1e-18."""
    small = k < _STIRLING_TABLE_SIZE
    if not small.any():
        return np.asarray(_stirling_series(k))
    series = _stirling_series(np.where(small, float(_STIRLING_TABLE_SIZE), k))
    table = _STIRLING[np.where(small, k, 1.0).astype(np.int64)]
    return np.asarray(np.where(small, table, series))


def log1p_minus(x: Floats) -> Floats:
    """log(1 + x) - x for x > -1, to a few units (no cancellation for small x)."""
    size = np.abs(x)
    largest = float(size.max(initial=0.0))
    if largest < 0.3:
        return _log1p_minus_near(x, 13 if largest < 0.05 else 27)
    near = size < 0.3
    with np.errstate(divide="ignore"):
        far = np.log1p(np.where(near, 1.0, x)) - x
    return np.asarray(np.where(near, _log1p_minus_near(np.where(near, x, 0.0), 27), far))


def _log1p_minus_near(x: Floats, last: int) -> Floats:
    """The same for |x| < 0.3 (last = 27) or 0.05 (last = 13), the last odd power that counts.

    log1p(x) = 2 atanh(v) and 2 v - x = -x v: what remains are terms of one small size."""
    v = x / (2.0 + x)
    v2 = v * v
    series = v2 * (1 / last) + 1 / (last - 2)
    for odd in range(last - 4, 1, -2):
        series *= v2
        series += 1 / odd
    return np.asarray(v * (2.0 * v2 * series - x))


def _deviance(k: Floats, mean: Floats) -> Floats:
    """k log(k/mean) + mean - k >= 0 for k > 0, mean > 0."""
    e = (k - mean) / mean
    near = np.abs(e) < 1.0
    en = np.where(near, e, 0.0)
    close = mean * ((1.0 + en) * log1p_minus(en) + en * en)
    far = k * np.log(np.where(near, 1.0, k / mean)) + mean - k
    return np.asarray(np.where(near, close, far))


def log_pmf(n: float, k: Floats, p: float, q: float) -> tuple[Floats, Floats]:
    """(log Pr[Bin(n, p) = k], absolute error bound), for whole 0 <= k <= n and p + q = 1.

    p and q must each carry at most four units of relative error: the bound covers that."""
    k = np.asarray(k, dtype=np.float64)
    if n == 0 or p == 0.0 or q == 0.0:
        certain = n if q == 0.0 else 0.0
        return np.where(k == certain, 0.0, -np.inf), np.zeros(k.shape)
    inner = (k > 0) & (k < n)
    ki = np.where(inner, k, 1.0 if n > 1 else 0.5)
    rest = n - ki
    deviance = _deviance(ki, np.full_like(ki, n * p)) + _deviance(rest, np.full_like(ki, n * q))
    log_inner = (
        stirling_remainder(np.full_like(ki, float(n)))
        - stirling_remainder(np.maximum(ki, 1.0))
        - stirling_remainder(np.maximum(rest, 1.0))
        - deviance
        - 0.5 * np.log(2.0 * np.pi * ki * (rest / n))
    )
    log_p = np.log(p) if p < 0.5 else np.log1p(-q)
    log_q = np.log(q) if q < 0.5 else np.log1p(-p)
    value = np.where(inner, log_inner, np.where(k == 0, n * log_q, n * log_p))
    # 16 units of the value and of the deviance, and the effect of 8 units on the odds.
    error = UNIT * (16.0 * np.abs(value) + 8.0 * np.abs(k - n * p) + 64.0)
    return value, error


def _integral(exponent: Any, cut: Floats) -> tuple[Floats, Floats]:
    """(int_0^1 e^exponent, relative truncation) by Gauss-Legendre on [0, cut]."""
    total = _quadrature(exponent, cut, CLOSE)
    with np.errstate(divide="ignore"):
        end = np.where(cut >= 1.0, -np.inf, exponent(np.minimum(cut, 1.0 - 2.0**-53)))
    lost = np.exp(end)
    return total, lost / (1.0 - np.minimum(lost, 0.5))


def _quadrature(exponent: Any, cut: Floats, rule: TailRule) -> Floats:
    """int e^exponent over [0, cut]."""
    if cut.size <= _FEW:  # all nodes in one array: fewer calls
        flat = np.exp(exponent(np.multiply.outer(rule.x, cut))).reshape(rule.x.size, -1)
        return np.asarray((rule.w @ flat).reshape(cut.shape) * cut)
    total = np.zeros_like(cut)
    for x, w in zip(rule.x, rule.w, strict=True):
        total += w * np.exp(exponent(cut * x))
    return np.asarray(total * cut)


def tail_ratio(n: float, a: Floats, p: float, q: float) -> tuple[Floats, Floats]:
    """(Pr[X >= a] / Pr[X = a], relative error bound) for X ~ Bin(n, p), a >= (n-1) p + 1."""
    a = np.asarray(a, dtype=np.float64)
    odds = p / q
    slope = np.maximum((a - 1.0 - (n - 1.0) * p) / q, 0.0)
    curvature = (a - 1.0) + (n - a) * odds * odds

    def phi(v: Floats) -> Floats:
        return np.asarray((a - 1.0) * log1p_minus(-v) + (n - a) * log1p_minus(odds * v) - slope * v)

    cut = _cut(slope, curvature, CUT)
    for _ in range(3):  # Newton on phi(cut) = -CUT; accuracy does not matter, the loss is computed
        inside = np.minimum(cut, 0.999)
        derivative = (n - a) * odds / (1.0 + odds * inside) - (a - 1.0) / (1.0 - inside)
        step = (phi(inside) + CUT) / np.minimum(derivative, -1e-300)
        cut = np.clip(inside - step, inside / 4.0, inside * 4.0)
    cut = np.minimum(cut * 1.02, 1.0)
    value, lost = _integral(phi, cut)
    # slope v carries the cancellation in a - 1 - (n-1) p: one unit of n p times v <= cut.
    error = TAIL_RATIO_ERROR + lost + 8.0 * UNIT * (np.abs(a) + n * p) * cut / q
    return np.where(a >= n, 1.0, a * value), error


def _cut(slope: Floats, curvature: Floats, depth: float) -> Floats:
    """Where slope v + curvature v^2 / 2 = depth, at most 1."""
    root = slope + np.sqrt(slope * slope + 2.0 * depth * curvature)
    return np.minimum(2.0 * depth / np.maximum(root, 1e-300), 1.0)


def log_upper_tail(n: float, a: Floats, p: float, q: float) -> tuple[Floats, Floats]:
    """(log Pr[Bin(n, p) >= a], absolute error bound) for whole a beyond the mean, a <= n + 1."""
    a = np.asarray(a, dtype=np.float64)
    beyond = a > n
    inside = np.where(beyond, float(n), a)
    log_f, error = log_pmf(n, inside, p, q)
    if n == 0 or p == 0.0 or q == 0.0:
        return np.where(beyond, -np.inf, log_f), error
    ratio, relative = tail_ratio(n, inside, p, q)
    return np.where(beyond, -np.inf, log_f + np.log(ratio)), error + 2.0 * relative


def signs_excess(
    count: Floats, y: Floats, short: Floats, rule: TailRule = CLOSE
) -> tuple[Floats, Floats, Floats, Floats]:
    """mean_of_signs_excess for a 1-d ``count`` and rows of y, the cheaper way."""
    if float(count.max()) < 16.0 * len(y):
        return signs_excess_table(count, y, short)
    return mean_of_signs_excess(count, y, short, rule)


def mean_of_signs_excess(
    count: Floats, y: Floats, short: Floats, rule: TailRule = CLOSE
) -> tuple[Floats, Floats, Floats, Floats]:
    """For the mean Y of ``count`` fair signs and 0 <= y: (E[(Y - y)_+], error, Pr[Y > y], jump).

    ``short`` is 1 - y, given apart: near one it decides, and y itself has lost it to rounding.

    With B ~ Bin(N, 1/2), a = floor(N (1 + y) / 2) + 1, f = Pr[B = a], S = Pr[B >= a] the sum
    telescopes: E[(Y - y)_+] = a f / N - y S. ``jump`` is a f / N = E[Y; Y > y]. The error is
    absolute and covers rounding of y by a few units; the tail carries relative error 1e-12, or
    twice that of the rule."""
    half = 0.5 * count
    a = np.maximum(np.floor(half * (1.0 + y)), np.floor(half)) + 1.0
    a = np.minimum(a, count)
    count = np.broadcast_to(count, a.shape)
    log_f, log_error = _log_half_pmf(count, a)
    ratio = _half_tail_ratio(count, a, rule)
    f = np.where(short > 0.0, np.exp(log_f), 0.0)
    jump = a * f / count
    tail = f * ratio
    return (
        *_excess(a >= count, jump, tail, y, short, log_error + 2.0 * rule.error),
        tail,
        jump,
    )


def _excess(
    top: npt.NDArray[np.bool_],
    jump: Floats,
    tail: Floats,
    y: Floats,
    short: Floats,
    relative: Floats,
) -> tuple[Floats, Floats]:
    """(jump - y tail, error): exact up to the errors of the two terms.

    Where only the top outcome exceeds y it is tail (1 - y), which does not cancel."""
    value = np.where(top, tail * short, np.maximum(jump - y * tail, 0.0))
    error = np.where(top, tail * short, jump + y * tail) * relative
    return value, error


def signs_excess_table(
    count: Floats, y: Floats, short: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
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
    relative = log_error + 8.0 * UNIT * columns + 2.0 * TAIL_RATIO_ERROR
    value, error = _excess(a >= count, jump, tail, y, short, relative)
    # What underflows is below 1e-300 times the number of columns.
    return value, error + np.where(some, 1e-300, 0.0), tail, jump


def _log_half_pmf(n: Floats, a: Floats) -> tuple[Floats, Floats]:
    """(log Pr[Bin(n, 1/2) = a], error) for arrays of n; n/2 < a <= n."""
    top = a >= n
    half = np.maximum(np.floor(0.5 * n), 1.0)
    inner = np.where(top, half, a)
    rest = np.where(top, half, n - a)
    y = np.abs(inner - rest) / n
    whole, inside, outside = stirling_remainder(np.stack([n, inner, rest]))
    log_inner = whole - inside - outside - 0.5 * n * _even_deviance(y)
    log_inner -= 0.5 * np.log(2.0 * np.pi * inner * (rest / n))
    value = np.where(top, -n * np.log(2.0), log_inner)
    return value, UNIT * (32.0 * np.abs(value) + 64.0)


def _even_deviance(y: Floats) -> Floats:
    """(1+y) log(1+y) + (1-y) log(1-y) for 0 <= y < 1: the sum of y^(2j) / (j (2j - 1)), j >= 1."""
    largest = float(y.max(initial=0.0))
    if largest >= 0.3:  # with the linear parts cancelled by hand
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

    value = _quadrature(phi, _cut(line, 2.0 * square, rule.cut), rule)
    return np.where(a >= n, 1.0, a * value)


def interval_probabilities(n: float, p: float, q: float, edges: Floats) -> tuple[Floats, Floats]:
    """Enclosures (lower, upper) of Pr[e_i <= Bin(n, p) < e_{i+1}] for increasing whole edges.

    Differences are taken between tails on the same side of the mean, single values by the
    probability function, so the relative error stays small far out. The upper ends carry 1e-300
    for what underflows."""
    edges = np.asarray(edges, dtype=np.float64)
    first, last = edges[:-1], edges[1:]
    left = edges <= n * p + q
    single = last - first == 1.0
    wide = np.append(True, ~single) | np.append(~single, True)  # edges whose tail is needed
    tail, slack = np.zeros(edges.size), np.zeros(edges.size)
    for side, at, rate, rest in ((left, n - edges + 1.0, q, p), (~left, edges, p, q)):
        log_tail, doubt = log_upper_tail(n, at[side & wide], rate, rest)
        tail[side & wide] = np.exp(log_tail)
        slack[side & wide] = 2.0 * doubt * tail[side & wide]
    in_left, in_right = left[1:], ~left[:-1]
    sign_first = np.where(in_right, 1.0, -1.0)
    sign_last = np.where(in_left, 1.0, -1.0)
    whole = np.where(in_left | in_right, 0.0, 1.0)
    middle = whole + sign_first * tail[:-1] + sign_last * tail[1:]
    error = slack[:-1] + slack[1:] + 4.0 * UNIT * (whole + tail[:-1] + tail[1:])
    lower, upper = middle - error, middle + error
    if single.any():
        log_f, log_error = log_pmf(n, first[single], p, q)
        lower[single] = np.exp(log_f - 2.0 * log_error)
        upper[single] = np.exp(log_f + 2.0 * log_error)
    return np.maximum(lower, 0.0), upper + 1e-300


MAX_WINDOW = 1 << 15


def window_probabilities(
    n: int, p: float, q: float, edges: Floats, lost: float
) -> tuple[Floats, Floats]:
    """The same for edges that span at most MAX_WINDOW values around the mode, cheaper.

    ``lost`` bounds the probability outside. Inside, the probability function is built from the ratios
    (n - k) p / ((k + 1) q) of neighbours, from the mode outward, and divided by its sum. A ratio
    carries at most 16 units (p and q at most four each), so the error grows by that with every step."""
    first, end = int(edges[0]), int(edges[-1])
    mode = min(max(int((n + 1) * p), first), end - 1)
    odds = p / q
    up = np.arange(mode, end - 1, dtype=np.float64)
    down = np.arange(mode, first, -1, dtype=np.float64)
    right = np.cumprod((n - up) / (up + 1.0) * odds)
    left = np.cumprod(down / (n - down + 1.0) / odds)
    shape = np.concatenate([left[::-1], [1.0], right])
    total = np.add.reduceat(shape, (edges[:-1] - first).astype(np.int64))
    far = np.maximum(np.abs(edges[:-1] - mode), np.abs(edges[1:] - mode))
    whole = float(total.sum())
    error = UNIT * (20.0 * far + np.diff(edges) + edges.size + 16.0)
    error += float(total @ error) / whole
    inside = max(0.0, 1.0 - lost) / whole
    return total * inside * (1.0 - error), total / whole * (1.0 + error) + 1e-300


def tail_bounds(n: int, p: float, q: float, below: Floats, above: float) -> tuple[Floats, float]:
    """Upper bounds of Pr[Bin(n, p) < below_i] and of Pr[Bin(n, p) >= above], away from the mean.

    Chernoff's: e^-(k log(k / np) + (n - k) log((n - k) / nq)), with what rounding may have cost it."""
    k = np.append(below - 1.0, above)
    rest = n - k
    near = k * np.log(np.maximum(k, 1e-300) / (n * p))  # 0 at 0
    away = rest * np.log(np.maximum(rest, 1e-300) / (n * q))
    doubt = 16.0 * UNIT * (np.abs(near) + np.abs(away) + n)
    outward = np.append(below - 1.0 < n * p, above > n * p)
    bound = np.where(outward, np.exp(np.minimum(doubt - near - away, 0.0)), 1.0)
    possible = (k >= 0.0) & (rest >= 0.0)
    return np.where(possible, bound, 0.0)[:-1] + 1e-300, float(bound[-1] * possible[-1]) + 1e-300
