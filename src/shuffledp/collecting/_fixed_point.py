"""Sums from reports about fixed-point numbers: decode, and know the variance.

A number in [low, high] is moved at random to one of the two neighbouring points of a grid of levels + 1
points, keeping its mean, and the grid point z is randomized. A decoded report has the mean z; its
variance is v[z], in squared grid steps. At a number between two grid points, the share f of the way
from z to z + 1,

    variance = (1 - f) v[z] + f v[z + 1] + f (1 - f),                                (exact)

the last term being the rounding. For k-ary randomized response with blanket mass g (Balle, Bell, Gascon,
Nissim 2019, Algorithms 2 and 3) this is, with L = levels,

    v[z] = (g (1 - g) (z^2 - z L) + g L (2 L + 1) / 6 - g^2 L^2 / 4) / (1 - g)^2.

Which numbers people hold is not known, so neither is the variance of a sum of n reports: it is estimated
from the reports themselves, with 1/4 for every rounding, which it can not exceed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from shuffledp._certified.rounding import Floats
from shuffledp.randomizers._categories import Counts, checked_symbols, histogram
from shuffledp.randomizers._grid import GridRandomizer
from shuffledp.randomizers.kary import KaryRandomizedResponse


@dataclass(frozen=True, eq=False)
class FixedPointDecoder:
    """``values[y]`` is what report y stands for; ``spread[z]`` the variance at grid point z.

    ``spread_values[y]`` has the mean spread[z]: decodes the variance. All in grid steps."""

    values: Floats
    spread: Floats
    spread_values: Floats

    @classmethod
    def of(cls, randomizer: KaryRandomizedResponse | GridRandomizer) -> FixedPointDecoder:
        if isinstance(randomizer, GridRandomizer):
            return _grid_decoder(randomizer)
        return _kary_decoder(randomizer)

    def count(self, reports: Any) -> Counts:
        """How often each report came."""
        return histogram(checked_symbols(reports, self.values.size), self.values.size)

    def sent(self, tally: Counts) -> int:
        """How many reports were counted."""
        return int(tally.sum())

    def people(self, tally: Counts, n: int | None) -> int:
        """How many sent a report: one each."""
        received = self.sent(tally)
        if n is not None and received != n:
            raise ValueError(f"tally must sum to n = {n}, got {received}")
        return received

    @property
    def ends(self) -> tuple[float, float]:
        """What one report can stand for, at least and at most."""
        return float(self.values.min()), float(self.values.max())

    def worst_variance(self, n: int = 1) -> float:
        """Of n decoded reports, over all numbers in the interval; in squared steps."""
        return n * float(highest_between(self.spread[:-1], self.spread[1:]).max())

    def total(self, tally: Counts) -> float:
        """The estimated sum of the grid points that people hold."""
        return float(tally @ self.values)

    def variance(self, tally: Counts) -> float:
        """An estimate, not below the truth in the mean, of the variance of ``total``."""
        n = int(tally.sum())
        estimate = float(tally @ self.spread_values) / n
        plausible = min(max(estimate, float(self.spread.min())), float(self.spread.max()))
        return n * min(plausible + 0.25, self.worst_variance())


def highest_between(below: Floats, above: Floats) -> Floats:
    """The largest variance between two grid points of variances ``below`` and ``above``."""
    rise = above - below
    share = np.clip(0.5 + 0.5 * rise, 0.0, 1.0)  # where the parabola is highest
    return np.asarray(below + share * rise + share * (1.0 - share))


def _kary_decoder(randomizer: KaryRandomizedResponse) -> FixedPointDecoder:
    levels, (truth, other_value) = randomizer.k - 1, randomizer.weights
    words = truth + levels * other_value
    keep, other = (truth - other_value) / words, other_value / words
    blanket = other_value * randomizer.k / words
    z = np.arange(levels + 1.0)
    spread = response_spread(z, levels, blanket, keep)
    return FixedPointDecoder(
        (z - 0.5 * blanket * levels) / keep, spread, (spread - other * float(spread.sum())) / keep
    )


def response_spread(z: Any, levels: Any, blanket: Any, keep: Any) -> Floats:
    """v[z] of k-ary randomized response (see module): g = blanket, 1 - g = keep."""
    uniform = blanket * levels * (2.0 * levels + 1.0) / 6.0 - (0.5 * blanket * levels) ** 2
    return np.asarray((blanket * keep * (z * z - z * levels) + uniform) / keep**2)


def _grid_decoder(randomizer: GridRandomizer) -> FixedPointDecoder:
    """Grid noise spreads about equally everywhere: the largest variance is taken."""
    places = np.arange(randomizer.levels + 1.0)
    points = np.minimum(randomizer.low + places * randomizer.step, randomizer.high)
    spread = np.asarray(randomizer.variance(points)) / randomizer.step**2
    return FixedPointDecoder(randomizer.positions, spread, np.full(randomizer.outputs, float(spread.max())))
