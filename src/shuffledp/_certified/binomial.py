"""Binomial probabilities and tails with proved relative accuracy, vectorised, for n up to 2^53.

Every function returns the logarithm or the value itself together with a bound on its error, so
that callers can round outward; units of rounding are counted as in _certified.rounding, and what a
bound loses by its own rounding (a few units of itself) is covered because callers double it. Two ideas
carry the file:

*Probability function* (Loader 2000): Stirling's remainder plus deviances. The deviance
``k log(k/m) + m - k`` is computed from ``k - m`` (never as a difference of large logarithms), so
the error of ``log pmf`` is some units in the last place of the *deviance*, plus what a relative
change of the odds by one unit does, ``|k - n p| u``.

*Tail ratio*: Pr[X >= a] / Pr[X = a] is an integral of a concave exponent (``tail_integral``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shuffledp._certified.rounding import CALL, TINY, Floats, down, gamma, positive, up
from shuffledp._certified.tails import CLOSE, CUT, TAIL_RATIO_ERROR, cut_at, quadrature, quadrature_error

MAX_WINDOW = 1 << 15  # speed: values in window_probabilities

_TABLE_SIZE = 20  # soundness: from here on Stirling's series is below 1e-18 off
_TWO_TERMS_FROM = 1000.0  # soundness: the third term is below 1e-18
_TERMS_AT_ONCE = 256  # speed
_NEAR = 0.3  # soundness: the series of log1p_minus converges to all digits


def _stirling_table() -> Floats:
    """log(k!) - (k + 1/2) log k + k - log(2 pi)/2 for k = 1 .. size - 1 (index 0 is unused)."""
    # 1/(12 k) - ... evaluated at k + 30 and brought down by the exact recurrence
    # s(k) = s(k+1) + (k + 1/2) log1p(1/k) - 1, whose terms are all positive.
    table = np.zeros(_TABLE_SIZE)
    value = float(_stirling_series(np.asarray(_TABLE_SIZE + 30.0)))
    for k in range(_TABLE_SIZE + 29, 0, -1):
        # (k + 1/2) log((k+1)/k) - 1 = sum_{i>=1} v^(2i) / (2i+1), v = 1/(2k+1).
        v2 = 1.0 / (2.0 * k + 1.0) ** 2
        value += sum(v2**i / (2 * i + 1) for i in range(1, 40))
        if k < _TABLE_SIZE:
            table[k] = value
    return table


def _stirling_series(k: Any) -> Any:
    """Stirling's remainder for k >= 20; the first omitted term is below 1e-18."""
    s = 1.0 / (k * k)
    if np.asarray(k).min(initial=_TWO_TERMS_FROM) >= _TWO_TERMS_FROM:
        return (1 / 12 - s * (1 / 360)) / k
    return (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s * (1 / 1188 - s * 691 / 360360))))) / k


_STIRLING = _stirling_table()


def stirling_remainder(k: Floats) -> Floats:
    """log(k!) - log(sqrt(2 pi k) (k/e)^k) for whole k >= 1, to nine units of one.

    It is below 1/12: a sum of 49 terms (each of 40) in the table costs 100 units of that at most."""
    few = k < _TWO_TERMS_FROM
    found = np.asarray(_stirling_series(np.maximum(k, _TWO_TERMS_FROM)))
    if few.any():
        some = k[few]
        small = some < _TABLE_SIZE
        series = _stirling_series(np.maximum(some, float(_TABLE_SIZE)))
        found[few] = np.where(small, _STIRLING[np.where(small, some, 1.0).astype(np.int64)], series)
    return found


def log1p_minus(x: Floats) -> Floats:
    """log(1 + x) - x for x > -1, without cancellation.

    To 5 units where |x| < 0.3, else to ``CALL`` units of log(1 + x) and one of the difference."""
    size = np.abs(x)
    largest = float(size.max(initial=0.0))
    if largest < _NEAR:
        return _log1p_minus_near(x, 13 if largest < 0.05 else 27)
    near = size < _NEAR
    with np.errstate(divide="ignore"):
        far = np.log1p(np.where(near, 1.0, x)) - x
    return np.asarray(np.where(near, _log1p_minus_near(np.where(near, x, 0.0), 27), far))


def _log1p_minus_near(x: Floats, last: int) -> Floats:
    """The same for |x| < 0.3 (last = 27) or 0.05 (last = 13), the last odd power that counts.

    log1p(x) = 2 atanh(v) and 2 v - x = -x v: what remains are terms of one small size. v costs two
    units, the series little (its second term is below a 50th of the first), the bracket two."""
    v = x / (2.0 + x)
    v2 = v * v
    series = v2 * (1 / last) + 1 / (last - 2)
    for odd in range(last - 4, 1, -2):
        series *= v2
        series += 1 / odd
    return np.asarray(v * (2.0 * v2 * series - x))


def deviance(k: Floats, mean: Floats) -> tuple[Floats, Floats]:
    """(D = k log(k/mean) + mean - k, absolute error bound) for k > 0 and mean > 0, taken as given.

    With e = (k - mean)/mean, D = mean f(e), f = (1 + e) log(1 + e) - e. Units of rounding:

    * |e| < 0.3: e has 2, which f takes as 2 |e log(1 + e)| <= 4.4 f; log1p_minus and its factor 7 of
      1.2 f; e^2 is 2.2 f; sum and mean one each: 17 D.
    * -0.9 < e < 1 else: likewise 10 D, and 2 |e| |log(1 + e)| <= 4.6 |e| left or 1.4 |e| right, and
      ``CALL`` of (1 + e) |log(1 + e)| <= |e| left or 1.4 |e| right: 13 |k - mean|.
    * k >= 2 mean: 1 + (CALL + 1) log(k/mean) in k log(k/mean), two sums: 11 D + 13 |k - mean|.
    * k <= mean/10: the same terms, where k |log(k/mean)| <= 0.24 mean: 5 |k - mean|."""
    e = (k - mean) / mean
    direct = (e > -0.9) & (e < 1.0)
    en = np.where(direct, e, 0.0)
    close = mean * ((1.0 + en) * log1p_minus(en) + en * en)
    far = k * np.log(np.where(direct, 1.0, k / mean)) + mean - k
    value = np.asarray(np.where(direct, close, far))
    apart = np.where(np.abs(e) < _NEAR, 0.0, np.abs(k - mean))
    return value, gamma(17) * np.abs(value) + gamma(13) * apart


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
    (apart_k, doubt_k), (apart_rest, doubt_rest) = (
        deviance(ki, np.full_like(ki, n * p)),
        deviance(rest, np.full_like(ki, n * q)),
    )
    log_inner = (
        stirling_remainder(np.full_like(ki, float(n)))
        - stirling_remainder(np.maximum(ki, 1.0))
        - stirling_remainder(np.maximum(rest, 1.0))
        - (apart_k + apart_rest)
        - 0.5 * np.log(2.0 * np.pi * ki * (rest / n))
    )
    log_p = np.log(p) if p < 0.5 else np.log1p(-q)
    log_q = np.log(q) if q < 0.5 else np.log1p(-p)
    value = np.where(inner, log_inner, np.where(k == 0, n * log_q, n * log_p))
    # The deviances and half the logarithm have one sign, so what is added to them is counted in units of
    # the value: CALL + 1 for the logarithm, three sums. Ends: CALL + 1, and 8 for four units of p or q.
    # 5 units of n p and of n q change the deviances by (5 + 5) |k - n p|. Constant: three remainders of
    # nine units, half of the logarithm's argument (4), one for log_upper_tail's sum.
    deviances = np.where(inner, doubt_k + doubt_rest, gamma(8) * np.abs(value))
    error = deviances + gamma(CALL + 4) * np.abs(value) + gamma(10) * np.abs(k - n * p)
    return value, error + gamma(32)


def _integral(exponent: Any, cut: Floats) -> tuple[Floats, Floats]:
    """(int_0^1 e^exponent, relative truncation) by Gauss-Legendre on [0, cut]."""
    total = quadrature(exponent, cut, CLOSE)
    with np.errstate(divide="ignore"):
        end = np.where(cut >= 1.0, -np.inf, exponent(np.minimum(cut, np.nextafter(1.0, 0.0))))
    lost = np.exp(end)
    return total, lost / (1.0 - np.minimum(lost, 0.5))


def tail_ratio(n: float, a: Floats, p: float, q: float) -> tuple[Floats, Floats]:
    """(Pr[X >= a] / Pr[X = a], relative error bound) for X ~ Bin(n, p), a >= (n-1) p + 1."""
    a = np.asarray(a, dtype=np.float64)
    odds = p / q
    slope = np.maximum((a - 1.0 - (n - 1.0) * p) / q, 0.0)
    curvature = (a - 1.0) + (n - a) * odds * odds

    def phi(v: Floats) -> Floats:
        return np.asarray((a - 1.0) * log1p_minus(-v) + (n - a) * log1p_minus(odds * v) - slope * v)

    cut = cut_at(slope, curvature, CUT)
    for _ in range(3):  # Newton on phi(cut) = -CUT; accuracy does not matter, the loss is computed
        inside = np.minimum(cut, 0.999)
        derivative = (n - a) * odds / (1.0 + odds * inside) - (a - 1.0) / (1.0 - inside)
        step = (phi(inside) + CUT) / np.minimum(derivative, -TINY)
        cut = np.clip(inside - step, inside / 4.0, inside * 4.0)
    cut = np.minimum(cut * 1.02, 1.0)
    value, lost = _integral(phi, cut)
    missed = quadrature_error(slope, a - 1.0, n - a, odds, cut) / positive(value)
    # slope v carries the cancellation in a - 1 - (n-1) p: 5 units of n p (4 of p, the product) times cut.
    error = TAIL_RATIO_ERROR + lost + 2.0 * missed + gamma(6) * (n * p) * cut / q
    value, error = np.where(a >= n, [np.ones_like(a), np.zeros_like(a)], [a * value, error])
    if (short := (a < n) & (missed > TAIL_RATIO_ERROR)).any():
        value[short], error[short] = _summed_ratio(n, a[short], odds)
    return value, error


def _summed_ratio(n: float, a: Floats, odds: float) -> tuple[Floats, Floats]:
    """The same term by term: for few of them, where the cut is not small (n p or n q below some 10^4).

    A ratio of neighbours carries 11 units (p and q at most four each), and a product one more; so a term has
    12 units for each step, the sum their mean and one for each addition. What is left out is geometric."""
    total, weighted, last = np.ones_like(a), np.zeros_like(a), np.ones_like(a)
    start = 0.0
    while True:
        step = start + np.arange(1.0, _TERMS_AT_ONCE + 1.0)
        ratio = np.maximum(n - a[:, None] - step + 1.0, 0.0) / (a[:, None] + step) * odds
        with np.errstate(under="ignore"):
            terms = last[:, None] * np.cumprod(ratio, axis=1)
        total, weighted = total + terms.sum(axis=1), weighted + terms @ step
        start, last = step[-1], terms[:, -1]
        left = last * ratio[:, -1] / positive(1.0 - ratio[:, -1])  # ratios fall
        if np.all((left <= gamma(1) * total) | (last == 0.0)) and np.all(ratio[:, -1] < 1.0):
            return total, gamma(12.0 * weighted / total + start + 8.0) + 2.0 * left / total


def log_upper_tail(n: float, a: Floats, p: float, q: float) -> tuple[Floats, Floats]:
    """(log Pr[Bin(n, p) >= a], absolute error bound) for whole a beyond the mean, a <= n + 1."""
    a = np.asarray(a, dtype=np.float64)
    beyond = a > n
    inside = np.where(beyond, float(n), a)
    log_f, error = log_pmf(n, inside, p, q)
    if n == 0 or p == 0.0 or q == 0.0:
        return np.where(beyond, -np.inf, log_f), error
    ratio, relative = tail_ratio(n, inside, p, q)
    # Doubled: log(ratio) costs CALL units of at most log(n) < 37, less than TAIL_RATIO_ERROR.
    return np.where(beyond, -np.inf, log_f + np.log(ratio)), error + 2.0 * relative


def interval_probabilities(n: float, p: float, q: float, edges: Floats) -> tuple[Floats, Floats]:
    """Enclosures (lower, upper) of Pr[e_i <= Bin(n, p) < e_{i+1}] for increasing whole edges.

    Differences are taken between tails on the same side of the mean, single values by the
    probability function, so the relative error stays small far out. The ends carry TINY for what
    underflows."""
    edges = np.asarray(edges, dtype=np.float64)
    first, last = edges[:-1], edges[1:]
    left = edges <= n * p + q
    single = last - first == 1.0
    wide = np.append(True, ~single) | np.append(~single, True)  # edges whose tail is needed
    tail, slack = np.zeros(edges.size), np.zeros(edges.size)
    for side, at, rate, rest in ((left, n - edges + 1.0, q, p), (~left, edges, p, q)):
        log_tail, doubt = log_upper_tail(n, at[side & wide], rate, rest)
        tail[side & wide] = np.exp(log_tail)  # CALL units, less than the doubt: that is doubled
        slack[side & wide] = 2.0 * doubt * tail[side & wide]
    in_left, in_right = left[1:], ~left[:-1]
    sign_first = np.where(in_right, 1.0, -1.0)
    sign_last = np.where(in_left, 1.0, -1.0)
    whole = np.where(in_left | in_right, 0.0, 1.0)
    middle = whole + sign_first * tail[:-1] + sign_last * tail[1:]
    error = slack[:-1] + slack[1:] + gamma(4) * (whole + tail[:-1] + tail[1:])  # two sums and the last
    lower, upper = middle - error, middle + error
    if single.any():
        log_f, log_error = log_pmf(n, first[single], p, q)
        lower[single] = np.exp(log_f - 2.0 * log_error)
        upper[single] = np.exp(log_f + 2.0 * log_error)
    return np.maximum(lower - TINY, 0.0), upper + TINY


def window_probabilities(n: int, p: float, q: float, edges: Floats, lost: float) -> tuple[Floats, Floats]:
    """The same for edges that span at most MAX_WINDOW values around the mode, cheaper.

    ``lost`` bounds the probability outside. Inside, the probability function is built from the ratios
    (n - k) p / ((k + 1) q) of neighbours, from the mode outward, and divided by its sum. A ratio
    carries at most 11 units (p and q at most four each, three operations), and every step one more."""
    first, end = int(edges[0]), int(edges[-1])
    mode = min(max(int((n + 1) * p), first), end - 1)
    odds = p / q
    above = np.arange(mode, end - 1, dtype=np.float64)
    below = np.arange(mode, first, -1, dtype=np.float64)
    right = np.cumprod((n - above) / (above + 1.0) * odds)
    left = np.cumprod(below / (n - below + 1.0) / odds)
    shape = np.concatenate([left[::-1], [1.0], right])
    total = np.add.reduceat(shape, (edges[:-1] - first).astype(np.intp))
    far = np.maximum(np.abs(edges[:-1] - mode), np.abs(edges[1:] - mode))
    whole = float(total.sum())
    count = 12.0 * far + np.diff(edges)  # of each total; the whole has their mean, and its sums
    count = count + float(total @ count) / whole + edges.size + 4.0  # three operations, and the mean's own
    inside = max(0.0, 1.0 - lost) / whole
    return down(total * inside, count), up(total / whole, count)


def tail_bounds(n: int, p: float, q: float, below: Floats, above: float) -> tuple[Floats, float]:
    """Upper bounds of Pr[Bin(n, p) < below_i] and of Pr[Bin(n, p) >= above], away from the mean.

    Chernoff's: e^-(k log(k / np) + (n - k) log((n - k) / nq)), with what rounding may have cost it."""
    k = np.append(below - 1.0, above)
    rest = n - k
    near = k * np.log(positive(k) / (n * p))  # 0 at 0
    away = rest * np.log(positive(rest) / (n * q))
    # Logarithms (CALL), products and two sums; six units in each argument (four of p or q); exp.
    doubt = gamma(CALL + 4) * (np.abs(near) + np.abs(away)) + gamma(6.0 * n + CALL)
    outward = np.append(below - 1.0 < n * p, above > n * p)
    bound = np.where(outward, np.exp(np.minimum(doubt - near - away, 0.0)), 1.0)
    possible = (k >= 0.0) & (rest >= 0.0)
    return np.where(possible, bound, 0.0)[:-1] + TINY, float(bound[-1] * possible[-1]) + TINY
