"""What a repeatable generator made is marked, so that nobody takes it for private.

Reports made with ``rng=`` are arrays of this class, and so are parts, sums and permutations of them; a
statement about them says that they are simulated.

>>> import numpy as np
>>> reports = marked(np.array([1, 2, 3]), True)
>>> is_simulated(reports), is_simulated(np.concatenate([np.array([0]), reports[1:]]))
(True, True)
>>> is_simulated(marked([1], False))
False
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class Simulated(np.ndarray[Any, Any]):
    """An array that was made with repeatable randomness, which protects nobody."""

    __array_priority__ = 1.0  # joined with others, the whole is simulated


def marked(array: Any, simulated: bool) -> npt.NDArray[Any]:
    """The array, marked if it is simulated."""
    return np.asarray(array).view(Simulated) if simulated else np.asarray(array)


def is_simulated(array: object) -> bool:
    """Whether the array comes from repeatable randomness."""
    return isinstance(array, Simulated)
