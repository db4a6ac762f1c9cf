"""The true answer, for simulations: what no private collection ever sees."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shuffledp.collecting._protocol import Protocol


def true_answer(protocol: Protocol, data: Any, column: str | None) -> Any:
    """Counts per category, or the sum or mean of the numbers of a column."""
    from shuffledp.collecting.histogram import HistogramProtocol
    from shuffledp.shuffling._contract import reads_text
    from shuffledp.shuffling.columns import open_column

    batches = open_column(data, column, text=reads_text(protocol))
    counts = isinstance(protocol, HistogramProtocol)
    return _true_counts(protocol, batches) if counts else _true_number(protocol, batches)


def _true_counts(protocol: Any, batches: Any) -> Any:
    import numpy as np

    places = (np.bincount(protocol.encode(batch), minlength=protocol.k) for batch in batches)
    return sum(places, start=np.zeros(protocol.k, dtype=np.int64))


def _true_number(protocol: Any, batches: Any) -> float:
    """Each number is in [low, high], or is moved to an end where the protocol moves it."""
    import numpy as np

    sums, rows = [], 0
    for batch in batches:
        numbers = np.asarray(batch, dtype=np.float64)
        sums.append(math.fsum(np.clip(numbers, protocol.low, protocol.high)))
        rows += len(numbers)
    return math.fsum(sums) / (rows if protocol.name == "mean" else 1)
