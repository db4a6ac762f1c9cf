"""Engines run one protocol over one column, wherever the column is: randomize, forget, count.

A tally of reports says nothing about their order or senders: counting is the shuffle, and the most
thorough one. An engine therefore needs two verbs, and a new engine is one file that defines them:

    map_batches(step, data, column)    step(batch) for every batch of the column, in any order
    merge(partials)                    the sum of what they gave

The privacy logic (``step``) knows no engine. Every call of it draws its own key from the operating
system, so no two batches, threads or machines share random words.

>>> from shuffledp.collecting.histogram import HistogramProtocol
>>> pets = HistogramProtocol(["cat", "dog"], epsilon=1.0, delta=1e-6, n=2000)
>>> collect(pets, ["cat", "dog"] * 1000, engine=EmbeddedEngine(threads=2, rows=300)).n
2000
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from shuffledp import _validate
from shuffledp._progress import Progress
from shuffledp.errors import DomainError
from shuffledp.shuffling._batches import (
    Collectable,
    attempt,
    available_cores,
    both_rejected,
    parallel_map,
    values_per_batch,
)
from shuffledp.shuffling.columns import ROWS, Name, named, open_column
from shuffledp.shuffling.permutation import check_enough

Tally = npt.NDArray[np.int64]
Step = Callable[[npt.NDArray[Any]], Tally]


@dataclass(frozen=True, eq=False)
class Partial:
    """What is known after some batches: the tally of ``n`` rows, or what was rejected of them.

    Partial results add up in any order, which is all that an engine has to do with them.

    >>> (Partial(np.array([1, 2]), 3) + Partial(np.array([0, 1]), 1)).tally
    array([1, 3])
    """

    tally: Tally | None = None
    n: int = 0
    rejected: DomainError | None = None
    note: str = ""

    def __add__(self, other: Partial) -> Partial:
        return Partial(
            _sum(self.tally, other.tally, np.add),
            self.n + other.n,
            _sum(self.rejected, other.rejected, both_rejected),
            self.note or other.note,
        )

    def checked(self) -> Partial:
        """Itself, unless some value was rejected: then the error that counts all of them."""
        if self.rejected is None:
            return self
        told = self.rejected
        error = DomainError(self.n, told.missing, told.outside, told.examples)
        if self.note:
            error.add_note(self.note)
        raise error


def _sum(first: Any, second: Any, plus: Callable[[Any, Any], Any]) -> Any:
    if first is None or second is None:
        return second if first is None else first
    return plus(first, second)


def counted(step: Step, batch: npt.NDArray[Any], first_row: int) -> Partial:
    """The tally of one batch, whose first row has the number ``first_row``."""
    done = attempt(step, batch, first_row)
    if isinstance(done, DomainError):
        return Partial(None, len(batch), done)
    return Partial(done, len(batch))


class Engine(ABC):
    """Where a collection runs."""

    @abstractmethod
    def map_batches(self, step: Step, data: Any, column: Name, *, text: bool = False) -> Any:
        """Partial results of ``step`` over all batches, in whatever form ``merge`` takes.

        ``text``: fields of CSV files stay strings."""

    @abstractmethod
    def merge(self, partials: Any) -> Partial:
        """The sum of partial results. Evaluates ``partials`` once: every evaluation of a randomizer is
        another release."""


@dataclass(frozen=True)
class EmbeddedEngine(Engine):
    """The default: one process that streams, with a few batches (of ``rows`` rows) per thread in memory.

    ``threads``: how many; None for one per core."""

    threads: int | None = None
    rows: int = ROWS

    def __post_init__(self) -> None:
        _validate.count("rows", self.rows)
        if self.threads is not None:
            _validate.count("threads", self.threads, most=4096)

    def map_batches(self, step: Step, data: Any, column: Name, *, text: bool = False) -> Generator[Partial]:
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

    def merge(self, partials: Generator[Partial]) -> Partial:
        """Their sum."""
        with closing(partials):  # ends the progress line, also with Ctrl-C
            return sum(partials, start=Partial())


def collect(
    protocol: Collectable,
    data: Any,
    *,
    column: Name = None,
    engine: Engine | None = None,
    minimum: int = 1,
    show_values: bool = False,
    **assumptions: Any,
) -> Any:
    """Randomize, shuffle (by counting) and analyze a column: the protocol's result.

    ``data`` is a file, frame or array (``columns.open_column``), or what the engine reads besides.
    Refuses fewer than ``minimum`` rows. ``assumptions`` go to the protocol's ``analyze``. ``show_values``:
    errors may show values that are not in the domain.
    """
    done = tallied(protocol, data, column, engine, show_values=show_values)
    check_enough(done.n, minimum)
    return protocol.analyze(tally=done.tally, n=done.n, **assumptions)


def tallied(
    protocol: Collectable,
    data: Any,
    column: Name = None,
    engine: Engine | None = None,
    *,
    show_values: bool = False,
) -> Partial:
    """The tally of fresh reports of a column, and their number."""
    used = EmbeddedEngine() if engine is None else engine
    step = RandomizeAndCount(protocol, show_values)
    partials = used.map_batches(step, data, named(protocol, column), text=protocol.reads_text)
    return used.merge(partials).checked()


class RandomizeAndCount:
    """What happens to a batch: it leaves as a tally."""

    def __init__(self, protocol: Collectable, show_values: bool = False) -> None:
        self.protocol, self.show_values = protocol, show_values
        self.rows = values_per_batch(protocol)

    def __call__(self, batch: npt.NDArray[Any]) -> Tally:
        starts = range(0, max(1, len(batch)), self.rows)
        parts = (counted(self._tally, batch[i : i + self.rows], i) for i in starts)
        done = sum(parts, start=Partial()).checked()
        assert done.tally is not None
        return done.tally

    def _tally(self, batch: npt.NDArray[Any]) -> Tally:
        reports = self.protocol.randomize(batch, show_values=self.show_values)
        return np.asarray(self.protocol.count(reports))
