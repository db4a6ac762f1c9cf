"""shuffledp: differential privacy in the shuffle model, certified.

>>> import shuffledp as sdp
>>> daily = sdp.Shuffled(sdp.KaryRandomizedResponse(k=16, epsilon0=4.0), n=1_000_000)
>>> float((30 * daily).epsilon(delta=1e-8)) < 0.24
True

Names are loaded on first use: importing the package costs next to nothing.
"""

from typing import Any

from shuffledp._lazy import PublicNames

__version__ = "0.1.0"

_PUBLIC = PublicNames(__name__)


def __getattr__(name: str) -> Any:
    return _PUBLIC.names if name == "__all__" else _PUBLIC.load(name)


def __dir__() -> list[str]:
    return sorted({name for name in globals() if name != "Any"} | set(_PUBLIC.names))
