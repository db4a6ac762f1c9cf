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
    from shuffledp.numerics.frequencies import NoCertificateError
    from shuffledp.randomizers.binary import BinaryRandomizedResponse
    from shuffledp.randomizers.finite import FiniteRandomizer
    from shuffledp.randomizers.kary import KaryRandomizedResponse
    from shuffledp.randomizers.local import LocalRandomizer

__version__ = "0.1.0"

_HOMES = {
    "BinaryRandomizedResponse": "randomizers.binary",
    "Bound": "bound",
    "Calibration": "accounting.calibration",
    "Composition": "accounting.mechanism",
    "FiniteRandomizer": "randomizers.finite",
    "KaryRandomizedResponse": "randomizers.kary",
    "KnownLoss": "accounting.mechanism",
    "LocalRandomizer": "randomizers.local",
    "Mechanism": "accounting.mechanism",
    "NoCertificateError": "numerics.frequencies",
    "Shuffled": "accounting.mechanism",
    "calibrate": "accounting.calibration",
}

__all__ = [
    "BinaryRandomizedResponse",
    "Bound",
    "Calibration",
    "Composition",
    "FiniteRandomizer",
    "KaryRandomizedResponse",
    "KnownLoss",
    "LocalRandomizer",
    "Mechanism",
    "NoCertificateError",
    "Shuffled",
    "calibrate",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'shuffledp' has no attribute {name!r}")
    value = getattr(import_module(f"shuffledp.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
