"""A density of noise on the line, symmetric and log-concave, as it is stated: its logarithm and its tail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from shuffledp._certified.rounding import Floats

Function = Callable[[Floats], Any]


@dataclass(frozen=True)
class Density:
    """``log_density`` is off by ``error`` (1 + |log f|), ``tail`` by a factor 1 +- ``error``, at most;
    no log-ratio f(w)/f(w - 1) exceeds ``epsilon0``."""

    log_density: Function
    tail: Function
    error: float
    epsilon0: float

    def log_f(self, t: Floats) -> Floats:
        return self._called("log_density", self.log_density, np.abs(t))

    def beyond(self, t: Floats) -> Floats:
        """The probability of noise from t on."""
        return self._called("tail", self.tail, t)

    def log_rho(self, w: Floats) -> Floats:
        """log f(w)/f(w - 1), of the inputs 0 and 1."""
        with np.errstate(invalid="ignore"):  # where both are zero
            return self.log_f(w) - self.log_f(1.0 - w)

    @staticmethod
    def _called(name: str, function: Function, t: Floats) -> Floats:
        with np.errstate(all="ignore"):
            found = np.asarray(function(t), dtype=np.float64)
        if found.shape != t.shape or np.isnan(found).any():
            raise ValueError(f"{name} must give one number for every number of an array of distances")
        return found
