"""Binary randomized response (Warner 1965). Sampled exactly, like every k-ary randomized response."""

from __future__ import annotations

from dataclasses import dataclass

from shuffledp.randomizers.kary import KaryRandomizedResponse


@dataclass(frozen=True, init=False)
class BinaryRandomizedResponse(KaryRandomizedResponse):
    """Report one bit truthfully with probability e^epsilon0/(e^epsilon0 + 1).

    >>> BinaryRandomizedResponse(epsilon0=1.0).k
    2
    """

    def __init__(self, epsilon0: float | None = None, gamma: float | None = None) -> None:
        super().__init__(k=2, epsilon0=epsilon0, gamma=gamma)
