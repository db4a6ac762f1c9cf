"""Binomial probabilities and tails with proved relative accuracy, vectorised, for n up to 2^53.

Every function returns the logarithm or the value itself together with a bound on its error, so
that callers can round outward. Two ideas carry the file:

*Probability function* (Loader 2000): Stirling's remainder plus deviances. The deviance
``k log(k/m) + m - k`` is computed from ``k - m`` (never as a difference of large logarithms), so
the error of ``log pmf`` is a few units in the last place of the *deviance*, plus what a relative
change of the odds by one unit does, ``|k - n p| u``.

*Tail ratio*: Pr[X >= a] / Pr[X = a] is an integral of a concave exponent (``tail_integral``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shuffledp._certified.rounding import UNIT, Floats
from shuffledp._certified.stirling import deviance, log1p_minus, stirling_remainder
from shuffledp._certified.tails import CLOSE, CUT, TAIL_RATIO_ERROR, cut_at, quadrature


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
    apart = deviance(ki, np.full_like(ki, n * p)) + deviance(rest, np.full_like(ki, n * q))
    log_inner = (
        stirling_remainder(np.full_like(ki, float(n)))
        - stirling_remainder(np.maximum(ki, 1.0))
        - stirling_remainder(np.maximum(rest, 1.0))
        - apart
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
    total = quadrature(exponent, cut, CLOSE)
    with np.errstate(divide="ignore"):
        end = np.where(cut >= 1.0, -np.inf, exponent(np.minimum(cut, 1.0 - 2.0**-53)))
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
        step = (phi(inside) + CUT) / np.minimum(derivative, -1e-300)
        cut = np.clip(inside - step, inside / 4.0, inside * 4.0)
    cut = np.minimum(cut * 1.02, 1.0)
    value, lost = _integral(phi, cut)
    # slope v carries the cancellation in a - 1 - (n-1) p: one unit of n p times v <= cut.
    error = TAIL_RATIO_ERROR + lost + 8.0 * UNIT * (np.abs(a) + n * p) * cut / q
    return np.where(a >= n, 1.0, a * value), error


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
