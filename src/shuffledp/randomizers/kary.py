"""k-ary randomized response."""

from __future__ import annotations

import math
from dataclasses import dataclass

from shuffledp import _validate


@dataclass(frozen=True, init=False)
class KaryRandomizedResponse:
    """Report the truth with probability e^epsilon0 p, any other of k values with p = 1/(e^epsilon0 + k - 1).

    Equivalently: with probability gamma = k p a uniformly random value (the blanket), else the
    truth. Give epsilon0 or gamma.

    >>> round(KaryRandomizedResponse(k=4, gamma=0.5).epsilon0, 12)
    1.609437912434
    """

    k: int
    epsilon0: float
    gamma: float

    def __init__(self, k: int, epsilon0: float | None = None, gamma: float | None = None) -> None:
        if (epsilon0 is None) == (gamma is None):
            raise ValueError(f"give one of epsilon0 and gamma, got {epsilon0=} and {gamma=}")
        whole = _validate.count("k", k, least=2, most=2**40)
        if gamma is not None:
            blanket = _validate.probability("gamma", gamma, positive=True)
            # Rounded up: a larger epsilon0 is a weaker guarantee.
            local = math.log1p(whole * (1.0 - blanket) / blanket) * (1.0 + 2.0**-50)
            if local > _validate.MAX_EPSILON0:
                raise ValueError(
                    f"gamma must be at least k e^-{_validate.MAX_EPSILON0:g} for a certificate, "
                    f"got {gamma!r}"
                )
        else:
            local = _validate.epsilon0(epsilon0)
            decay = math.exp(-local)
            blanket = min(1.0, whole * decay / (1.0 + (whole - 1) * decay))
        object.__setattr__(self, "k", whole)
        object.__setattr__(self, "epsilon0", local)
        object.__setattr__(self, "gamma", blanket)

    @property
    def total_variation(self) -> float:
        """Total variation distance between the reports of two inputs, 1 - gamma."""
        decay = math.exp(-self.epsilon0)
        return -math.expm1(-self.epsilon0) / (1.0 + (self.k - 1) * decay)
