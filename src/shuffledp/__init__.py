"""shuffledp: differential privacy in the shuffle model, certified.

>>> import shuffledp as sdp
>>> daily = sdp.Shuffled(sdp.KaryRandomizedResponse(k=16, epsilon0=4.0), n=1_000_000)
>>> float((30 * daily).epsilon(delta=1e-8)) < 0.24
True
"""

from shuffledp.accounting.calibration import Calibration, calibrate
from shuffledp.accounting.mechanism import Composition, Mechanism, Shuffled
from shuffledp.bound import Bound
from shuffledp.randomizers import (
    BinaryRandomizedResponse,
    FiniteRandomizer,
    KaryRandomizedResponse,
    LocalRandomizer,
)

__version__ = "0.1.0"

__all__ = [
    "BinaryRandomizedResponse",
    "Bound",
    "Calibration",
    "Composition",
    "FiniteRandomizer",
    "KaryRandomizedResponse",
    "LocalRandomizer",
    "Mechanism",
    "Shuffled",
    "calibrate",
]
