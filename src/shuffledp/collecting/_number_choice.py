"""How many grid points for a sum? As many as give the smallest exact worst-case error.

For each number of levels, k-ary randomized response on levels + 1 points is calibrated to the certified
(epsilon, delta) by the accountant; what is compared is the exact variance of one decoded report, rounding
included, for the worst number in the interval (``collecting._fixed_point``). More levels round less and
are noisier. The probability q of a given false report hardly depends on the number of levels, so a few
calibrations and interpolation between them find the best number (the error is flat around it).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shuffledp.collecting import _response_choice as response_choice
from shuffledp.collecting._fixed_point import FixedPointDecoder, highest_between, response_spread
from shuffledp.randomizers.kary import KaryRandomizedResponse

MOST_LEVELS = 2**14
_COARSE = 0.01
_FIRST = 4
_NEAR = 0.03
_MOST_CALIBRATIONS = 8


def relative_variance(randomizer: KaryRandomizedResponse) -> float:
    """The worst variance of one decoded report, in units of (high - low)^2."""
    return FixedPointDecoder.of(randomizer).worst_variance / (randomizer.k - 1) ** 2


def best_response(
    levels: int | None, epsilon: float, delta: float, n: int, rounds: int
) -> KaryRandomizedResponse:
    """The certified randomized response on levels + 1 points, with the best ``levels`` if not given."""
    target = {"epsilon": epsilon, "delta": delta, "n": n, "rounds": rounds}
    chosen = best_levels(**target) if levels is None else levels
    return calibrated_response(chosen, **target)


def calibrated_response(levels: int, **target: Any) -> KaryRandomizedResponse:
    """With the largest epsilon0 that meets the target (see ``response_choice``)."""
    return response_choice.calibrated_response(levels + 1, **target)


def best_levels(**target: Any) -> int:
    """The number of levels of smallest error, to a few per cent (see module)."""
    false_report: dict[int, float] = {}
    levels = _FIRST
    while len(false_report) < _MOST_CALIBRATIONS:
        response = calibrated_response(levels, tolerance=_COARSE, **target)
        false_report[levels] = response.support_probability[1]
        levels = _best_given(false_report)
        if any(abs(levels - tried) <= _NEAR * tried for tried in false_report):
            break
    return levels


def _best_given(false_report: dict[int, float]) -> int:
    """The best number of levels if log q is linear in log k between the known ones."""
    known = sorted(false_report)
    levels = np.arange(1.0, MOST_LEVELS + 1.0)
    logs = np.interp(np.log1p(levels), np.log1p(known), np.log([false_report[i] for i in known]))
    blanket = (levels + 1.0) * np.exp(logs)
    levels, blanket = levels[blanket < 1.0], blanket[blanket < 1.0]
    # The worst numbers lie between an end and the grid point next to it: the parabola z^2 - z L is
    # highest at the ends, and rounding is the same everywhere.
    ends = [response_spread(z, levels, blanket, 1.0 - blanket) for z in (0.0, 1.0)]
    return int(levels[np.argmin(highest_between(ends[0], ends[1]) / levels**2)])
