"""The analyst's side: open a released batch, count it, state.

What does not open, or lies outside the domain, is counted and left out: it hides nobody and says nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shuffledp._lazy import needed
from shuffledp._progress import Progress
from shuffledp.errors import DamagedReportsError, ReportFileError, SealError
from shuffledp.service.documents import Signed, Task
from shuffledp.service.sealing import inner_size, open_inner
from shuffledp.shuffling._batches import available_cores, tally_of_possible
from shuffledp.shuffling.permutation import check_enough
from shuffledp.shuffling.report_files import COLUMN, StoredReports, from_binary, open_reports

if TYPE_CHECKING:
    from shuffledp.collecting._protocol import Protocol
    from shuffledp.service.keys import AnalystKey
    from shuffledp.shuffling.engine import Engine

_ROWS = 1 << 12  # opened at once
_WORTH = 1 << 14  # reports for which further processes are worth their start; speed


class Opened(NamedTuple):
    """A batch, counted: ``n`` reports (of several messages a person: messages), and those left out."""

    task: Task
    batch: str
    tally: npt.NDArray[np.int64]
    n: int
    not_opened: int
    outside: int


def analyze_batch(
    path: str | os.PathLike[str],
    key: AnalystKey,
    *,
    fingerprint: str | None = None,
    engine: Engine | None = None,
    **assumptions: Any,
) -> Any:
    """The plan's result from a released batch; ``assumptions`` as for ``analyze`` of a protocol."""
    return result_of(open_batch(path, key, fingerprint=fingerprint, engine=engine), **assumptions)


def result_of(opened: Opened, **assumptions: Any) -> Any:
    """The plan's result from an opened batch."""
    check_enough(opened.n, 1)
    if assumptions.get("ledger") is not None:
        assumptions["batch"] = opened.batch
    assumptions["set_aside"] = opened.not_opened + opened.outside
    protocol = opened.task.protocol
    return protocol.analyze(tally=opened.tally, n=protocol.people(opened.n), **assumptions)


def open_batch(
    path: str | os.PathLike[str],
    key: AnalystKey,
    *,
    fingerprint: str | None = None,
    engine: Engine | None = None,
) -> Opened:
    """Open and count. The task must be signed with the same key file (and have the ``fingerprint``).

    ``engine``: where, if not in processes of this machine; the key that opens goes there, too."""
    stored = open_reports(path)
    task = task_of(stored, key, fingerprint)
    counts = _Counts(task.protocol, task.id, key.opens.private_bytes_raw(), stored.header.shape[0])
    if engine is None:
        total = counts.of([], 0)
        with Progress(stored.n, what="reports") as progress:
            for found, lost in opened_reports(stored, task, key):
                total += counts.of(found, lost)
                progress.advance(len(found) + lost)
    else:
        done = engine.merge(engine.map_batches(counts, os.fspath(path), COLUMN))
        if done.n != stored.n or done.tally is None:  # the checksum is over their order, which is gone
            raise DamagedReportsError(f"{str(path)!r} has {done.n} reports, not {stored.n} as it says")
        total = done.tally
    n, not_opened, outside = (int(count) for count in total[-3:])
    return Opened(task, stored.header.batch, total[:-3], n, not_opened, outside)


@dataclass(frozen=True)
class _Counts:
    """What an engine runs: rows of seals become a tally, followed by (counted, not opened, outside)."""

    protocol: Protocol
    task: bytes
    secret: bytes
    width: int

    def __call__(self, sealed: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
        return self.of(*_open((self.secret, self.task, sealed.tobytes(), self.width)))

    def decoded(self, array: Any) -> npt.NDArray[np.uint8]:
        """The rows of a column of bytes."""
        return from_binary(array, np.dtype(np.uint8), (self.width,))

    def of(self, found: list[bytes], lost: int) -> npt.NDArray[np.int64]:
        """The counts of opened reports."""
        rows = np.frombuffer(b"".join(found), self.protocol.report_dtype.newbyteorder("<"))
        tally, wrong = tally_of_possible(self.protocol, rows.reshape(-1, *self.protocol.report_shape))
        return np.array([*tally, len(found) - wrong, lost, wrong], dtype=np.int64)


def task_of(stored: StoredReports, key: AnalystKey, fingerprint: str | None = None) -> Task:
    """The signed task of a batch."""
    header = stored.header
    if header.stage != "sealed":
        raise ReportFileError(f"{str(stored.path)!r} holds no sealed reports: analyze it without a key")
    task = Task.checked(
        Signed.from_dict(header.protocol.get("task")), signer=key.signer, fingerprint=fingerprint
    )
    if header.shape != (inner_size(task.report_bytes),) or header.dtype != np.dtype(np.uint8):
        raise ReportFileError(f"{str(stored.path)!r} holds no reports of its task's size")
    return task


def opened_reports(stored: StoredReports, task: Task, key: AnalystKey) -> Iterator[tuple[list[bytes], int]]:
    """(reports, how many did not open), in pieces."""
    secret, task_id = key.opens.private_bytes_raw(), task.id
    pieces = (
        (secret, task_id, batch[start : start + _ROWS].tobytes(), batch.shape[1])
        for batch in stored.batches()
        for start in range(0, len(batch), _ROWS)
    )
    with ExitStack() as stack:
        if stored.n < _WORTH:
            yield from map(_open, pieces)
            return
        pool = stack.enter_context(ProcessPoolExecutor(available_cores(), get_context("spawn")))
        under_way = []
        for piece in pieces:
            under_way.append(pool.submit(_open, piece))
            if len(under_way) > 2 * available_cores():
                yield under_way.pop(0).result()
        for future in under_way:
            yield future.result()


def _open(piece: tuple[bytes, bytes, bytes, int]) -> tuple[list[bytes], int]:
    secret, task_id, sealed, width = piece
    x25519 = needed("cryptography.hazmat.primitives.asymmetric.x25519", extra="service")
    private = x25519.X25519PrivateKey.from_private_bytes(secret)
    found, lost = [], 0
    for start in range(0, len(sealed), width):
        try:
            found.append(open_inner(sealed[start : start + width], task_id, private))
        except SealError:
            lost += 1
    return found, lost
