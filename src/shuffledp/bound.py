"""A certified enclosure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Bound:
    """The true value lies in [lower, upper]. ``float(bound)`` is the upper, safe end.

    Vectorised questions give arrays in both fields.

    >>> float(Bound(lower=0.9, upper=1.0))
    1.0
    >>> 0.95 in Bound(lower=0.9, upper=1.0)
    True
    """

    lower: Any
    upper: Any

    def __post_init__(self) -> None:
        if not np.all(np.asarray(self.lower) <= np.asarray(self.upper)):
            raise ValueError(f"lower must not exceed upper, got {self.lower!r} and {self.upper!r}")

    def __float__(self) -> float:
        return float(self.upper)

    def __contains__(self, value: float) -> bool:
        return bool(np.all((np.asarray(self.lower) <= value) & (value <= np.asarray(self.upper))))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Bound):
            return NotImplemented
        return bool(np.array_equal(self.lower, other.lower) and np.array_equal(self.upper, other.upper))

    def __hash__(self) -> int:
        return hash((self.lower, self.upper))

    @classmethod
    def of(cls, lower: npt.NDArray[np.float64], upper: npt.NDArray[np.float64], like: Any) -> Bound:
        """Shaped like the question: floats for a number, arrays for an array."""
        shape = np.shape(like)
        if shape == ():
            return cls(float(lower.reshape(())), float(upper.reshape(())))
        return cls(lower.reshape(shape), upper.reshape(shape))
