"""What shuffling needs to know of a protocol: how its clients randomize and how its reports are counted.

The classes in ``shuffledp.collecting`` have this shape. Nothing here imports them.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

BATCH_BYTES = 1 << 24
BATCH_ROWS = 1 << 18


class Collectable(Protocol):
    """A protocol as an engine sees it; see ``shuffledp.collecting._protocol.Protocol``.

    ``randomize`` tells of values that it rejects by a ``DomainError`` about its own batch; ``_rejected``
    makes one about the whole column of them."""

    @property
    def report_dtype(self) -> np.dtype[Any]: ...

    @property
    def report_shape(self) -> tuple[int, ...]: ...

    @property
    def reads_text(self) -> bool:
        """Whether values are strings: then fields of a CSV file must stay as they are written."""
        ...

    def randomize(self, column: Any, *, rng: np.random.Generator | None = None) -> Any: ...

    def count(self, reports: Any) -> npt.NDArray[np.int64]: ...

    def analyze(
        self, reports: Any = None, *, tally: Any = None, n: int | None = None, **assumptions: Any
    ) -> Any: ...

    def to_dict(self) -> dict[str, Any]: ...


def rows_per_batch(dtype: np.dtype[Any], shape: tuple[int, ...]) -> int:
    """How many reports to hold at once: many, but not many wide ones.

    >>> rows_per_batch(np.dtype(np.uint8), ()), rows_per_batch(np.dtype(np.uint8), (1024,))
    (262144, 16384)
    """
    width = dtype.itemsize * math.prod(shape)
    return max(1, min(BATCH_ROWS, BATCH_BYTES // max(width, 1)))
