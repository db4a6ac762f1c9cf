"""Local randomizers: what a client runs, and the facts about it that an analysis needs.

One file each: exact sampling, the tight epsilon0, the law of the amplification variable, unbiased
estimates. Names are loaded on first use.

>>> from shuffledp.randomizers import HadamardResponse
>>> HadamardResponse(k=10, epsilon0=1.0)
HadamardResponse(k=10, epsilon0=1.0)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shuffledp.randomizers.binary import BinaryRandomizedResponse
    from shuffledp.randomizers.frequency import FrequencyRandomizer
    from shuffledp.randomizers.gaussian import DiscreteGaussian
    from shuffledp.randomizers.hadamard import HadamardResponse
    from shuffledp.randomizers.hashing import OptimisedLocalHashing
    from shuffledp.randomizers.kary import KaryRandomizedResponse
    from shuffledp.randomizers.l1 import L1Randomizer
    from shuffledp.randomizers.laplace import DiscreteLaplace
    from shuffledp.randomizers.linf import LInfinityRandomizer
    from shuffledp.randomizers.local import LocalRandomizer
    from shuffledp.randomizers.matrix import FiniteRandomizer
    from shuffledp.randomizers.privunit import PrivUnit
    from shuffledp.randomizers.subset import SubsetSelection
    from shuffledp.randomizers.unary import OptimisedUnaryEncoding, SymmetricUnaryEncoding
    from shuffledp.randomizers.vectors import VectorRandomizer

_HOMES = {
    "BinaryRandomizedResponse": "binary",
    "DiscreteGaussian": "gaussian",
    "DiscreteLaplace": "laplace",
    "FiniteRandomizer": "matrix",
    "FrequencyRandomizer": "frequency",
    "HadamardResponse": "hadamard",
    "KaryRandomizedResponse": "kary",
    "L1Randomizer": "l1",
    "LInfinityRandomizer": "linf",
    "LocalRandomizer": "local",
    "OptimisedLocalHashing": "hashing",
    "OptimisedUnaryEncoding": "unary",
    "PrivUnit": "privunit",
    "SubsetSelection": "subset",
    "SymmetricUnaryEncoding": "unary",
    "VectorRandomizer": "vectors",
}

__all__ = [
    "BinaryRandomizedResponse",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "FiniteRandomizer",
    "FrequencyRandomizer",
    "HadamardResponse",
    "KaryRandomizedResponse",
    "L1Randomizer",
    "LInfinityRandomizer",
    "LocalRandomizer",
    "OptimisedLocalHashing",
    "OptimisedUnaryEncoding",
    "PrivUnit",
    "SubsetSelection",
    "SymmetricUnaryEncoding",
    "VectorRandomizer",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'shuffledp.randomizers' has no attribute {name!r}")
    value = getattr(import_module(f"shuffledp.randomizers.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
