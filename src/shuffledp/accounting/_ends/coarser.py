"""What is said where an answer is coarser than was asked for."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from shuffledp._certified.rounding import Floats
from shuffledp.errors import CoarserBoundWarning, NoCertificateError


def say(what: str) -> None:
    warnings.warn(what, CoarserBoundWarning, stacklevel=2)


def not_certified(tolerance: float) -> NoCertificateError:
    return NoCertificateError(
        f"tolerance {tolerance:g} could not be certified for these parameters: ask for a larger one"
    )


def with_loose(result: Floats, places: npt.NDArray[np.int64], high: Floats, tolerance: float) -> Floats:
    """Upper ends that are right, though it could not be certified that they are close."""
    say(f"{places.size} of {result.size} upper ends of delta could not be certified to {tolerance:g}")
    result[places] = high
    return result
