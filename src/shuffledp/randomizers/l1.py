"""The l1 randomizer: one noisy sign of one random row of a Hadamard matrix.

As in the shuffled learning of Girgis, Data, Diggavi, Kairouz, Suresh 2021 (their R_p for p = 1): H is
the Hadamard matrix whose size D is the least power of two >= d, H[j, i] = (-1)^popcount(i & j). For a
vector x of l1 norm at most radius (padded with zeros) every entry of H x / radius lies in [-1, 1].
A row j is drawn uniformly, a sign of mean (H x)_j / radius is sent through binary randomized response,
and the report is decoded to the first d entries of

    radius gain sign H[j],   gain = (e^epsilon0 + 1)/(e^epsilon0 - 1),

whose mean is x because H H = D I, and whose squared norm is d (radius gain)^2. Probabilities, law and
what is exact: ``vectors_sign``. The law is that of binary randomized response, attained by
radius e_i and -radius e_i, whose images are opposite corners of the cube.

>>> L1Randomizer(dimension=10, epsilon0=2.0).variance()  # doctest: +ELLIPSIS
17.24...
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from shuffledp._certified.rounding import Floats
from shuffledp._randomness.words import Uint64s
from shuffledp.randomizers._signs import SignRandomizer


@dataclass(frozen=True)
class L1Randomizer(SignRandomizer):
    """Vectors of l1 norm at most ``radius`` (see module)."""

    norm: ClassVar[str] = "l1"

    @property
    def size(self) -> int:
        return 1 << (self.dimension - 1).bit_length()

    @property
    def second_moment(self) -> float:
        return self.dimension * (self.radius * self.gain) ** 2

    @property
    def longest(self) -> float:
        return self.radius

    def mean(self, reports: Any) -> Floats:
        total = hadamard_transform(self._averaged(reports))
        return np.asarray(total[: self.dimension] * (self.radius * self.gain))

    def _norms(self, rows: Floats) -> Floats:
        return np.asarray(np.abs(rows).sum(axis=1))

    def _entry(self, rows: Floats, chosen: Uint64s) -> Floats:
        signs = hadamard_rows(chosen, self.dimension)
        return np.asarray(np.einsum("ij,ij->i", rows, signs))

    def _decoded(self, reports: npt.NDArray[Any]) -> Floats:
        row, sign = self.unpack(reports)
        return hadamard_rows(row, self.dimension) * (sign * (self.radius * self.gain))[:, None]


def hadamard_rows(chosen: Uint64s, width: int) -> Floats:
    """The first ``width`` entries of rows of the Hadamard matrix: each bit of j doubles them."""
    signs = np.ones((chosen.size, width))
    done, bit = 1, 0
    while done < width:
        more = min(done, width - done)
        flip = np.where((chosen >> np.uint64(bit)) & np.uint64(1), -1.0, 1.0)
        np.multiply(signs[:, :more], flip[:, None], out=signs[:, done : done + more])
        done, bit = 2 * done, bit + 1
    return signs


def hadamard_transform(values: Floats) -> Floats:
    """H values, for a power of two of them, in O(D log D)."""
    result = values.copy()
    half = 1
    while half < result.size:
        pairs = result.reshape(-1, 2, half)
        result = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(
            -1
        )
        half *= 2
    return result
