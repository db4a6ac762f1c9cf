"""The l-infinity randomizer: one noisy sign of one random coordinate.

Duchi, Jordan, Wainwright 2018 in one bit, as in the shuffled learning of Girgis, Data, Diggavi,
Kairouz, Suresh 2021 (their R_p for p = infinity): a vector x of [-radius, radius]^d, a coordinate j
uniform in 0 .. d - 1, a sign of mean x_j / radius sent through binary randomized response. The report
is decoded to

    d radius gain sign e_j,   gain = (e^epsilon0 + 1)/(e^epsilon0 - 1),

which has mean x and squared norm (d radius gain)^2. Probabilities, law and what is exact:
``vectors_sign``. The law is that of binary randomized response, attained by opposite corners.

>>> LInfinityRandomizer(dimension=10, epsilon0=2.0).variance()  # doctest: +ELLIPSIS
172.4...
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from shuffledp._certified.rounding import Floats
from shuffledp._randomness.words import Uint64s
from shuffledp.randomizers._signs import SignRandomizer


@dataclass(frozen=True)
class LInfinityRandomizer(SignRandomizer):
    """Vectors of the cube [-radius, radius]^dimension (see module)."""

    norm: ClassVar[str] = "l-infinity"

    @property
    def size(self) -> int:
        return self.dimension

    @property
    def second_moment(self) -> float:
        return self._scale**2

    @property
    def longest(self) -> float:
        return self.radius * math.sqrt(self.dimension)

    @property
    def _scale(self) -> float:
        return self.dimension * self.radius * self.gain

    def mean(self, reports: Any) -> Floats:
        return np.asarray(self._averaged(reports) * self._scale)

    def _norms(self, rows: Floats) -> Floats:
        return np.asarray(np.maximum(rows.max(axis=1), -rows.min(axis=1)))

    def _entry(self, rows: Floats, chosen: Uint64s) -> Floats:
        return np.asarray(np.take_along_axis(rows, chosen.astype(np.int64)[:, None], axis=1)[:, 0])

    def _decoded(self, reports: npt.NDArray[Any]) -> Floats:
        row, sign = self.unpack(reports)
        vectors = np.zeros((row.size, self.dimension))
        vectors[np.arange(row.size), row.astype(np.int64)] = sign * self._scale
        return vectors
