"""Work on batches: what is asked of a protocol, how many reports at once, values that it rejects, threads.

>>> list(parallel_map(abs, [-1, 2, -3], threads=2))
[1, 2, 3]
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from shuffledp.errors import DomainError

Item = TypeVar("Item")
Result = TypeVar("Result")
Mask = npt.NDArray[np.bool_]

BATCH_BYTES = 1 << 24  # of reports at once; speed, and memory of a thread
BATCH_ROWS = 1 << 18  # likewise


class Collectable(Protocol):
    """A protocol as the shuffler's side sees it: how clients randomize, how reports are counted.

    ``shuffledp.collecting`` has such protocols; nothing here imports them. ``randomize`` raises a
    DomainError for values that it rejects."""

    @property
    def n(self) -> int: ...

    @property
    def report_dtype(self) -> np.dtype[Any]: ...

    @property
    def report_shape(self) -> tuple[int, ...]: ...

    @property
    def reads_text(self) -> bool: ...

    def randomize(
        self, column: Any, *, rng: np.random.Generator | None = None, show_values: bool = False
    ) -> Any: ...

    def count(self, reports: Any) -> npt.NDArray[np.int64]: ...

    def possible(self, reports: Any) -> Mask: ...

    def analyze(
        self, reports: Any = None, *, tally: Any = None, n: int | None = None, **assumptions: Any
    ) -> Any: ...

    def to_dict(self) -> dict[str, Any]: ...

    @property
    def messages(self) -> int: ...

    def people(self, sent: int) -> int: ...


def tally_of_possible(protocol: Collectable, reports: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], int]:
    """The tally of the reports that the protocol's randomizer can have sent, and the number of others."""
    try:
        return protocol.count(reports), 0
    except ValueError:
        good = protocol.possible(reports)
        return protocol.count(reports[good]), int(len(reports) - good.sum())


def passing(check: Callable[[npt.NDArray[Any]], object], rows: npt.NDArray[Any]) -> Mask:
    """Which rows pass on their own a check that raises a ValueError for any that does not.

    Numbers are sorted first: those out of a range are then neighbours, and halving finds them soon.

    >>> passing(lambda rows: rows.astype(np.uint8).tobytes().decode("ascii"), np.array([65, 200, 66]))
    array([ True, False,  True])
    """
    order = np.argsort(rows, kind="stable") if rows.ndim == 1 else np.arange(len(rows))
    good = np.ones(len(rows), dtype=np.bool_)
    pieces = [order]
    while pieces:
        piece = pieces.pop()
        try:
            check(rows[piece])
        except ValueError:
            half = len(piece) // 2
            if half:
                pieces += [piece[:half], piece[half:]]
            else:
                good[piece] = False
    return good


def bytes_per_report(dtype: np.dtype[Any], shape: tuple[int, ...]) -> int:
    """The width of a report."""
    return dtype.itemsize * math.prod(shape)


def rows_per_batch(dtype: np.dtype[Any], shape: tuple[int, ...]) -> int:
    """How many reports to hold at once: many, but not many wide ones.

    >>> rows_per_batch(np.dtype(np.uint8), ()), rows_per_batch(np.dtype(np.uint8), (1024,))
    (262144, 16384)
    """
    return max(1, min(BATCH_ROWS, BATCH_BYTES // max(bytes_per_report(dtype, shape), 1)))


def values_per_batch(protocol: Collectable) -> int:
    """How many people's values to randomize at once: each becomes ``messages`` reports."""
    return max(1, rows_per_batch(protocol.report_dtype, protocol.report_shape) // protocol.messages)


def attempt(
    function: Callable[[npt.NDArray[Any]], Result], batch: npt.NDArray[Any], first_row: int
) -> Result | DomainError:
    """``function(batch)``, or what it rejects, numbered by the rows of the whole column."""
    try:
        return function(batch)
    except DomainError as error:
        examples = [(first_row + int(row), value) for row, value in error.examples]
        return DomainError(error.total, error.missing, error.outside, examples)


def both_rejected(first: DomainError, second: DomainError) -> DomainError:
    """One error that tells the story of two batches."""
    examples = sorted(first.examples + second.examples, key=lambda example: example[0])
    return DomainError(
        first.total + second.total,
        first.missing + second.missing,
        first.outside + second.outside,
        examples[: DomainError.MOST_EXAMPLES],
    )


def available_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def parallel_map(
    function: Callable[[Item], Result], items: Iterable[Item], *, threads: int
) -> Iterator[Result]:
    """``map``, with at most ``2 threads`` items under way at any time, and results in order.

    NumPy and the cipher let other threads run while they work on a batch, so threads are enough."""
    if threads == 1:
        yield from map(function, items)
        return
    waiting: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(threads)
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) >= 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
