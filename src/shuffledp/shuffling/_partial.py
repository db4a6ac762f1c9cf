"""What is known after some of the batches: a tally and a number of rows, or what was wrong with them.

Partial results add up in any order, which is all that an engine has to do with them.

>>> import numpy as np
>>> (Partial(np.array([1, 2]), 3) + Partial(np.array([0, 1]), 1)).tally
array([1, 3])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from shuffledp.shuffling._rejected import Rejected, attempt

Tally = npt.NDArray[np.int64]
Step = Callable[[npt.NDArray[Any]], Tally]


@dataclass(frozen=True, eq=False)
class Partial:
    """The tally of ``n`` rows (None before the first batch), unless some were rejected."""

    tally: Tally | None = None
    n: int = 0
    rejected: Rejected | None = None

    def __add__(self, other: Partial) -> Partial:
        return Partial(
            _sum(self.tally, other.tally),
            self.n + other.n,
            _sum(self.rejected, other.rejected),
        )

    def checked(self) -> Partial:
        """Itself, unless some value was rejected: then the error that counts all of them."""
        if self.rejected is not None:
            raise self.rejected.error(self.n)
        return self


def counted(step: Step, batch: npt.NDArray[Any], first_row: int) -> Partial:
    """The tally of one batch, whose first row has the number ``first_row``."""
    done = attempt(step, batch, first_row)
    if isinstance(done, Rejected):
        return Partial(None, len(batch), done)
    return Partial(done, len(batch))


def _sum(first: Any, second: Any) -> Any:
    if first is None or second is None:
        return second if first is None else first
    return first + second
