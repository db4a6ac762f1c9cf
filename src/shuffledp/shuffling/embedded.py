"""The default engine: one process that streams, with a thread per core.

Memory holds a few batches per thread, however long the column is.

>>> import numpy as np
>>> from shuffledp.shuffling._partial import Partial
>>> engine = EmbeddedEngine(threads=2, rows=300)
>>> column = np.arange(1000) % 3
>>> partials = engine.map_batches(lambda batch: np.bincount(batch, minlength=3), column, None)
>>> engine.merge(partials).tally
array([334, 333, 333])
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from shuffledp import _validate
from shuffledp._progress import Progress
from shuffledp.shuffling._parallel import available_cores, parallel_map
from shuffledp.shuffling._partial import Partial, Step, counted
from shuffledp.shuffling.columns import ROWS, open_column
from shuffledp.shuffling.engine import Engine


@dataclass(frozen=True)
class EmbeddedEngine(Engine):
    """One process.

    Attributes:
        threads: how many; None for one per core.
        rows: of a batch.
    """

    threads: int | None = None
    rows: int = ROWS

    def __post_init__(self) -> None:
        _validate.count("rows", self.rows)
        if self.threads is not None:
            _validate.count("threads", self.threads, most=4096)

    def map_batches(
        self, step: Step, data: Any, column: str | None, *, text: bool = False
    ) -> Iterator[Partial]:
        """A partial result for every batch, in order, while a progress line runs."""
        source = open_column(data, column, text=text, rows=self.rows)
        with Progress(source.length) as progress:
            for done in parallel_map(
                lambda item: counted(step, *item),
                source.numbered(),
                threads=self.threads or available_cores(),
            ):
                progress.advance(done.n)
                yield done

    def merge(self, partials: Iterable[Partial]) -> Partial:
        """Their sum."""
        return sum(partials, start=Partial())
