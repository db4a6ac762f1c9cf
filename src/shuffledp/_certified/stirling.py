"""Stirling's remainder, log(1 + x) - x and deviances, without cancellation."""

from __future__ import annotations

from typing import Any

import numpy as np

from shuffledp._certified.rounding import Floats

_STIRLING_TABLE_SIZE = 20
_FAR = 1000.0


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


def deviance(k: Floats, mean: Floats) -> Floats:
    """k log(k/mean) + mean - k >= 0 for k > 0, mean > 0."""
    e = (k - mean) / mean
    near = np.abs(e) < 1.0
    en = np.where(near, e, 0.0)
    close = mean * ((1.0 + en) * log1p_minus(en) + en * en)
    far = k * np.log(np.where(near, 1.0, k / mean)) + mean - k
    return np.asarray(np.where(near, close, far))
