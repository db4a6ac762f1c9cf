"""Local randomizers: what a client runs. Here each is a description, the facts an analysis needs."""

from shuffledp.randomizers.binary import BinaryRandomizedResponse
from shuffledp.randomizers.finite import FiniteRandomizer
from shuffledp.randomizers.kary import KaryRandomizedResponse
from shuffledp.randomizers.local import LocalRandomizer

__all__ = [
    "BinaryRandomizedResponse",
    "FiniteRandomizer",
    "KaryRandomizedResponse",
    "LocalRandomizer",
]
