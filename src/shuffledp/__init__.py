"""shuffledp: differential privacy in the shuffle model, certified.

>>> import shuffledp as sdp
>>> daily = sdp.Shuffled(sdp.KaryRandomizedResponse(k=16, epsilon0=4.0), n=1_000_000)
>>> float((30 * daily).epsilon(delta=1e-8)) < 0.24
True

Names are loaded on first use: importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shuffledp.accounting.calibration import Calibration, calibrate
    from shuffledp.accounting.mechanism import Composition, KnownLoss, Mechanism, Shuffled
    from shuffledp.bound import Bound
    from shuffledp.comparison.compare import compare
    from shuffledp.comparison.table import Comparison
    from shuffledp.numerics.frequencies import NoCertificateError
    from shuffledp.randomizers.binary import BinaryRandomizedResponse
    from shuffledp.randomizers.finite import FiniteRandomizer
    from shuffledp.randomizers.frequency import FrequencyRandomizer
    from shuffledp.randomizers.gaussian import DiscreteGaussian
    from shuffledp.randomizers.hadamard import HadamardResponse
    from shuffledp.randomizers.hashing import OptimisedLocalHashing
    from shuffledp.randomizers.kary import KaryRandomizedResponse
    from shuffledp.randomizers.l1 import L1Randomizer
    from shuffledp.randomizers.laplace import DiscreteLaplace
    from shuffledp.randomizers.law import AmplificationLaw
    from shuffledp.randomizers.linf import LInfinityRandomizer
    from shuffledp.randomizers.local import LocalRandomizer
    from shuffledp.randomizers.privunit import PrivUnit
    from shuffledp.randomizers.subset_selection import SubsetSelection
    from shuffledp.randomizers.unary import OptimisedUnaryEncoding, SymmetricUnaryEncoding
    from shuffledp.randomizers.vectors import VectorRandomizer

__version__ = "0.1.0"

_HOMES = {
    "AmplificationLaw": "randomizers.law",
    "BinaryRandomizedResponse": "randomizers.binary",
    "Bound": "bound",
    "Calibration": "accounting.calibration",
    "Comparison": "comparison.table",
    "Composition": "accounting.mechanism",
    "DiscreteGaussian": "randomizers.gaussian",
    "DiscreteLaplace": "randomizers.laplace",
    "FiniteRandomizer": "randomizers.finite",
    "FrequencyRandomizer": "randomizers.frequency",
    "HadamardResponse": "randomizers.hadamard",
    "KaryRandomizedResponse": "randomizers.kary",
    "KnownLoss": "accounting.mechanism",
    "L1Randomizer": "randomizers.l1",
    "LInfinityRandomizer": "randomizers.linf",
    "LocalRandomizer": "randomizers.local",
    "Mechanism": "accounting.mechanism",
    "NoCertificateError": "numerics.frequencies",
    "OptimisedLocalHashing": "randomizers.hashing",
    "OptimisedUnaryEncoding": "randomizers.unary",
    "PrivUnit": "randomizers.privunit",
    "Shuffled": "accounting.mechanism",
    "SubsetSelection": "randomizers.subset_selection",
    "SymmetricUnaryEncoding": "randomizers.unary",
    "VectorRandomizer": "randomizers.vectors",
    "calibrate": "accounting.calibration",
    "compare": "comparison.compare",
}

__all__ = [
    "AmplificationLaw",
    "BinaryRandomizedResponse",
    "Bound",
    "Calibration",
    "Comparison",
    "Composition",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "FiniteRandomizer",
    "FrequencyRandomizer",
    "HadamardResponse",
    "KaryRandomizedResponse",
    "KnownLoss",
    "L1Randomizer",
    "LInfinityRandomizer",
    "LocalRandomizer",
    "Mechanism",
    "NoCertificateError",
    "OptimisedLocalHashing",
    "OptimisedUnaryEncoding",
    "PrivUnit",
    "Shuffled",
    "SubsetSelection",
    "SymmetricUnaryEncoding",
    "VectorRandomizer",
    "calibrate",
    "compare",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'shuffledp' has no attribute {name!r}")
    value = getattr(import_module(f"shuffledp.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
