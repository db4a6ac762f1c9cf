"""Any epsilon0-LDP randomizer, known by its epsilon0 and perhaps its total variation."""

from __future__ import annotations

import math
from dataclasses import dataclass

from shuffledp import _validate


@dataclass(frozen=True)
class LocalRandomizer:
    """Any randomizer R with R(x)(S) <= e^epsilon0 R(x')(S) for all inputs x, x' and sets S.

    ``total_variation``, if known, is the largest total variation distance between R(x) and R(x').
    It is at most tanh(epsilon0/2), the value of binary randomized response.

    >>> LocalRandomizer(epsilon0=1.0)
    LocalRandomizer(epsilon0=1.0, total_variation=None)
    """

    epsilon0: float
    total_variation: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon0", _validate.epsilon0(self.epsilon0))
        if self.total_variation is not None:
            known = _validate.probability("total_variation", self.total_variation)
            most = math.tanh(0.5 * self.epsilon0)
            if known > most * (1.0 + 1e-12):
                raise ValueError(
                    f"total_variation must be in [0, tanh(epsilon0/2)] = [0, {most!r}], "
                    f"got {self.total_variation!r}"
                )
            object.__setattr__(self, "total_variation", min(known, most))
