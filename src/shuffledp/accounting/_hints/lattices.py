"""Tilts, lattices, cuts and jumps for (1/n) E[(X_1 + ... + X_n)_+]: see ``_curves.lattice_law``, ``jumps``.

Values x and weights w are rows; values are in units of the largest one where a lattice is asked for."""

from __future__ import annotations

import math

import numpy as np

from shuffledp._certified.lattice_sum import Group, log_transform
from shuffledp._certified.rounding import Floats, positive
from shuffledp.accounting._hints.alike import Alike, heaviest, merged, merged_upward
from shuffledp.accounting._hints.jump_split import Split, decisive, far_enough, typical
from shuffledp.accounting._hints.saddle import TOO_LOW, log_saddle, saddle

_CELLS_OF_THE_LARGEST = np.unique(np.geomspace(1, 20_000, 100).round())  # speed
_CELLS_OF_THE_SECOND = np.array([1.0, 2.0, 3.0, 4.0, 6.0, 8.0])  # speed
_FEW_SUMMANDS = 64  # tightness: their sum is far from normal, and a steeper tilt costs whole percents
_STEEP_IN_DEVIATIONS = 3.0  # speed: of the sum, one over the flattest tilt
_FEW_TYPES = 6  # speed: below, values are neither cut nor told apart
_RARE_POSITIVE_VALUES = 0.01  # speed: expected number among n
_TILTS_OF_JUMPS = np.geomspace(0.05, 400.0, 90)[:, None]  # speed: in units of the largest jump
_FINEST_DECIDED, _WIDE = (2.0**-14, 2.0**-18), 2.0**-7  # speed: of the cap
"""Sums of typical crowds that are that wide need few frequencies on any lattice; others more on finer ones"""
_NEAREST = 60.0  # tightness: deviations of what is spread, to where a value would be just enough
_BLUR = 2.0  # tightness: of the variance, in resolutions
_NEAREST_SCORE, _BLUR_OF_SCORES = 6.0, 8.0  # tightness: the same of scores, of which only a test is made
_SPACINGS_DECIDED = np.geomspace(2.0**-20, 0.02, 110)  # speed
"""In units of the cap, from the finest lattice whose sums take seconds."""
_SPACINGS_OF_JUMPS = _SPACINGS_DECIDED[_SPACINGS_DECIDED >= 2.0**-14]  # speed: of several sums


class LatticeHints:
    """The usual guesses."""

    def tilt(self, x: Floats, w: Floats, n: int | Floats) -> Floats:
        """theta > 0 that suits the sum, or steeper: the window stays short, at the price of a few digits."""
        mean, square = (w * x).sum(axis=1), (w * x * x).sum(axis=1)
        steep = _STEEP_IN_DEVIATIONS / np.sqrt(positive(n * (square - mean * mean)))
        few = merged(x, w)
        best = saddle(*few, n)
        if few[0] is not x:  # exponentials of large values tell them apart
            best = saddle(x, w, n, best)
        if np.max(n) < _FEW_SUMMANDS:
            return best
        # Not so of rare large values: of normal sums it is half of that, and below zero at the best.
        lost = n * (log_transform(x, w, steep) - np.minimum(log_transform(x, w, best), 0.0))
        usual = lost <= _STEEP_IN_DEVIATIONS**2
        return np.asarray(np.where(usual, np.maximum(best, steep), best))

    def split(self, x: Floats, w: Floats, types: int, n: int) -> Split | None:
        """Where to call values jumps, and about how large the result is; None if few types need neither."""
        return Split.best(*merged(x, w), n) if types > _FEW_TYPES else None

    def cut(self, x: Floats, w: Floats, budget: Floats) -> Floats:
        """About the smallest c > 0 per row with sum w (x - c)_+ <= budget (the largest x if none)."""
        x, w = merged_upward(x, w)
        order = np.argsort(-x, axis=1)
        x = np.take_along_axis(x, order, axis=1)
        mass = np.cumsum(np.take_along_axis(w, order, axis=1), axis=1)
        excess = np.cumsum(mass[:, :-1] * -np.diff(x, axis=1), axis=1)
        excess = np.concatenate([np.zeros((len(x), 1)), excess], axis=1)
        usable = (excess <= budget[:, None]) & (x > 0.0)
        last = np.maximum(usable.sum(axis=1) - 1, 0)
        rows = np.arange(len(x))
        found = x[rows, last] - (budget - excess[rows, last]) / positive(mass[rows, last])
        following = x[rows, np.minimum(last + 1, x.shape[1] - 1)]
        found = np.maximum(found, np.maximum(following, 0.5 * x[rows, last]))
        return np.where(usable[:, 0], np.minimum(found, x[:, 0]), x[:, 0])

    def spacing(self, x: Floats, w: Floats, tilted: Floats, n: int | Floats, resolution: float) -> Floats:
        """The coarsest lattice through the most probable value whose spread adds little variance.

        At most ``resolution`` of it, under the tilt. Where positive values are rare, what is spread must
        also be rare against them. The candidates put the largest value, or the second most probable
        one, on the lattice."""
        mean = (tilted * x).sum(axis=1)
        variance = (tilted * (x - mean[:, None]) ** 2).sum(axis=1)
        rows, (first, then) = np.arange(len(x)), heaviest(tilted)
        origin = x[rows, first]
        second = x[rows, then] - origin
        top = x.max(axis=1) - origin
        top = np.where(top > 0.0, top, x.max(axis=1) - x.min(axis=1))
        # Values that differ by rounding alone are one value.
        second = np.where(np.abs(second) > 1e-9 * np.abs(top), np.abs(second), top)
        h = np.concatenate(
            [top[:, None] / _CELLS_OF_THE_LARGEST, second[:, None] / _CELLS_OF_THE_SECOND], axis=1
        )
        h = np.where(top[:, None] > 0.0, np.maximum(h, top[:, None] * 1e-6), 1.0)  # or all values are one
        # Where the largest value is far below a deviation: what adds no more than the resolution in any case.
        wide = 2.0 * np.sqrt(resolution * variance)
        h = np.concatenate([h, np.where(wide > top, wide, h[:, 0])[:, None]], axis=1)
        rare = n * (w * (x > 0.0)).sum(axis=1) < _RARE_POSITIVE_VALUES
        gain = (w * np.maximum(x, 0.0)).sum(axis=1)
        if (kinds := Alike.of(x, w)) is not None:
            x, w, tilted = kinds.some(x), kinds.sums(w), kinds.sums(tilted)
        apart = _between_points((x - origin[:, None])[:, :, None] / h[:, None, :])
        added = np.matmul(tilted[:, None, :], apart)[:, 0] * h * h
        good = added <= resolution * variance[:, None]
        if rare.any():
            moved = np.matmul(w[:, None, :], apart)[:, 0] * h
            good &= ~rare[:, None] | (moved <= resolution * gain[:, None])
        finest = top / _CELLS_OF_THE_LARGEST[-1]
        choice = np.where(good, h, 0.0).max(axis=1)
        return np.asarray(np.where(choice > 0.0, choice, finest))

    def typical_share(self, x: Floats, w: Floats, n: int) -> float:
        """Of one law's second moment, that of values which somebody among n has."""
        mean, variance = typical(x, w, n)
        return float((variance + mean * mean)[0] / positive(float((w * x * x).sum())))

    def decisive(self, x: Floats, w: Floats, n: int, budget: Floats) -> Floats:
        """Where to cut values that bring the sum above zero alone."""
        return decisive(*merged(x, w), n, budget)

    def jump_cap(self, x: Floats, w: Floats, b: float, n: int, budget: float) -> float:
        """Where to cap one law with jumps above b."""
        if n <= _FEW_SUMMANDS:  # other values may outweigh one that decides
            return far_enough(x, w, b, n, budget)
        return max(b, float(decisive(x[None], w[None], n, np.array([budget]))[0]))

    def jump_spacing(self, x: Floats, w: Floats, origin: float, n: int, resolution: float) -> float:
        """The widest h whose spread does not blur where a single jump brings the sum to zero."""
        mean, variance = (float(part[0]) for part in typical(x[None], w[None], n))
        away, spread = n * abs(mean), math.sqrt(n * variance)
        blur = 6.0 * resolution * max(spread * max(away, spread), 0.01 * away**2)
        return self._blurred(x, w, origin, n, blur, _SPACINGS_OF_JUMPS)

    def decided_spacing(
        self, x: Floats, w: Floats, origin: Floats, n: int | Floats, resolution: float
    ) -> Floats:
        """The same for single sums, of rows: no value may come near to where it is just enough."""
        return self._decided(x, w, origin, n, _BLUR * resolution, _NEAREST)

    def score_spacing(
        self, x: Floats, w: Floats, origin: Floats, n: int | Floats, resolution: float, usual: Floats
    ) -> Floats:
        """The same where values are but scores: a test that errs where a sum is about zero loses next to
        nothing there, so that they may come far nearer, and rare ones ask for no finer lattice than that
        (``usual`` does). Benchmark rows: "Gaussian noise on the line"."""
        found = self._decided(x, w, origin, n, _BLUR_OF_SCORES * resolution, _NEAREST_SCORE)
        rare = n * (w * (x > 0.0)).sum(axis=1) < _RARE_POSITIVE_VALUES
        return np.asarray(np.where(rare, found, np.minimum(found, usual)))

    def _decided(
        self, x: Floats, w: Floats, origin: Floats, n: int | Floats, share: float, nearer: float
    ) -> Floats:
        """What is spread adds this share of the variance, or is that much nearer than the nearest value."""
        found = np.empty(len(x))
        for row, (values, weights, first) in enumerate(zip(x, w, origin.tolist(), strict=True)):
            count = int(np.broadcast_to(n, len(x))[row])
            mean, variance = (float(part[0]) for part in typical(values[None], weights[None], count))
            nearest = float(np.abs(values + count * mean)[values > 0.0].min(initial=math.inf))
            blur = max(share * count * variance, min(nearest / nearer, 1.0) ** 2)
            wide = count * variance >= _WIDE**2
            found[row] = max(
                self._blurred(values, weights, first, count, blur, _SPACINGS_DECIDED), _FINEST_DECIDED[wide]
            )
        return found

    def _blurred(self, x: Floats, w: Floats, origin: float, n: int, blur: float, spacings: Floats) -> float:
        """The widest h whose spread adds no more than that to the variance of the sum."""
        cells = (x - origin)[:, None] / spacings
        fraction = cells - np.floor(cells)
        added = (n * (w @ (fraction * (1.0 - fraction))) + 0.25) * spacings**2
        good = spacings[added <= blur]
        return float(good[-1] if good.size else spacings[0])

    def jump_tilt(self, bulk: Group, jumps: Group, many: int, few: int, threshold: int) -> Floats:
        """theta near the minimum of log E[e^(theta (sum - threshold))] - 2 log theta."""
        theta = _TILTS_OF_JUMPS / jumps.z.max()
        exponent = (
            many * log_transform(bulk.z, bulk.w, theta)
            + few * log_transform(jumps.z, jumps.w, theta)
            - theta * threshold
            - 2.0 * np.log(theta)
        )
        return np.asarray(theta[np.argmin(exponent)])

    def log_estimate(self, x: Floats, w: Floats, types: int, n: int) -> Floats:
        """log (1/n) E[(sum)_+], to a few percent (more where jumps decide)."""
        if (split := self.split(x, w, types, n)) is not None:
            return np.log(positive(split.total))
        top = x.max(axis=1)
        with np.errstate(over="ignore"):  # values that are too low are raised
            scaled = np.maximum(x / top[:, None], TOO_LOW)
        return np.asarray(np.log(top / n) + log_saddle(scaled, w, n))


def _between_points(cells: Floats) -> Floats:
    """What spreading adds to the variance of a value, in squares of the spacing; in place, for speed."""
    cells -= np.floor(cells)
    return np.asarray(np.subtract(cells, np.multiply(cells, cells), out=cells))
