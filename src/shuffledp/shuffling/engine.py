"""Engines run one protocol over one column, wherever the column is: randomize, forget, count.

A tally of reports says nothing about their order or senders: counting is the shuffle, and the most
thorough one. An engine therefore needs two verbs, and a new engine is one file that defines them:

    map_batches(step, data, column)    step(batch) for every batch of the column, in any order
    merge(partials)                    the sum of what they gave

The privacy logic (``step``) knows no engine. Every call of it draws its own key from the operating
system, so no two batches, threads or machines share random words.

>>> import shuffledp as sdp
>>> from shuffledp.collecting.histogram import HistogramProtocol
>>> pets = HistogramProtocol(["cat", "dog"], epsilon=1.0, delta=1e-6, n=2000)
>>> collect(pets, ["cat", "dog"] * 1000).n
2000
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from shuffledp.shuffling._contract import Collectable, rows_per_batch
from shuffledp.shuffling._partial import Partial, Step, Tally, counted
from shuffledp.shuffling.permutation import check_enough


class Engine(ABC):
    """Where a collection runs."""

    @abstractmethod
    def map_batches(self, step: Step, data: Any, column: str | None, *, text: bool = False) -> Any:
        """Partial results of ``step`` over all batches, in whatever form ``merge`` takes.

        ``text``: fields of CSV files stay strings."""

    @abstractmethod
    def merge(self, partials: Any) -> Partial:
        """The sum of partial results. Evaluates ``partials`` once: every evaluation of a randomizer is
        another release."""


def collect(
    protocol: Collectable,
    data: Any,
    *,
    column: str | None = None,
    engine: Engine | None = None,
    minimum: int = 1,
    **assumptions: Any,
) -> Any:
    """Randomize, shuffle (by counting) and analyze a column: the protocol's result.

    ``data`` is a file, frame or array (``io.columns.open_column``), or what the engine reads besides.
    Refuses fewer than ``minimum`` rows. ``assumptions`` go to the protocol's ``analyze``.
    """
    done = tallied(protocol, data, column, engine)
    check_enough(done.n, minimum)
    return protocol.analyze(tally=done.tally, n=done.n, **assumptions)


def tallied(
    protocol: Collectable, data: Any, column: str | None = None, engine: Engine | None = None
) -> Partial:
    """The tally of fresh reports of a column, and their number."""
    if engine is None:
        from shuffledp.shuffling.embedded import EmbeddedEngine

        engine = EmbeddedEngine()
    step = RandomizeAndCount(protocol)
    partials = engine.map_batches(step, data, column, text=protocol.reads_text)
    return engine.merge(partials).checked()


class RandomizeAndCount:
    """What happens to a batch: it leaves as a tally."""

    def __init__(self, protocol: Collectable) -> None:
        self.protocol = protocol
        self.rows = rows_per_batch(protocol.report_dtype, protocol.report_shape)

    def __call__(self, batch: npt.NDArray[Any]) -> Tally:
        starts = range(0, max(1, len(batch)), self.rows)
        parts = (counted(self._tally, batch[i : i + self.rows], i) for i in starts)
        done = sum(parts, start=Partial()).checked()
        assert done.tally is not None
        return done.tally

    def _tally(self, batch: npt.NDArray[Any]) -> Tally:
        return np.asarray(self.protocol.count(self.protocol.randomize(batch)))
