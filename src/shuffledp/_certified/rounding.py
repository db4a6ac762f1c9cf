"""Double precision: arrays of it, and its unit."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

UNIT = 2.0**-53
"""Unit round-off of IEEE double precision."""
