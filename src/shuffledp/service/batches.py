"""The analyst's side: open a released batch, count it, state.

What does not open, or lies outside the domain, is counted and left out: it hides nobody and says nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shuffledp._extras import needed
from shuffledp._progress import Progress
from shuffledp.errors import ReportFileError, SealError
from shuffledp.service.documents import Signed, Task
from shuffledp.service.sealing import inner_size, open_inner
from shuffledp.shuffling._batches import available_cores, tally_of_possible
from shuffledp.shuffling.permutation import check_enough
from shuffledp.shuffling.report_files import StoredReports, open_reports

if TYPE_CHECKING:
    from shuffledp.service.keys import AnalystKey

_ROWS = 1 << 12  # opened at once
_WORTH = 1 << 14  # reports for which further processes are worth their start; speed


class Opened(NamedTuple):
    """A batch, counted: ``n`` reports, and those that were left out."""

    task: Task
    batch: str
    tally: npt.NDArray[np.int64]
    n: int
    not_opened: int
    outside: int


def analyze_batch(
    path: str | os.PathLike[str], key: AnalystKey, *, fingerprint: str | None = None, **assumptions: Any
) -> Any:
    """The plan's result from a released batch; ``assumptions`` as for ``analyze`` of a protocol."""
    return result_of(open_batch(path, key, fingerprint=fingerprint), **assumptions)


def result_of(opened: Opened, **assumptions: Any) -> Any:
    """The plan's result from an opened batch."""
    check_enough(opened.n, 1)
    if assumptions.get("ledger") is not None:
        assumptions["batch"] = opened.batch
    assumptions["set_aside"] = opened.not_opened + opened.outside
    return opened.task.protocol.analyze(tally=opened.tally, n=opened.n, **assumptions)


def open_batch(path: str | os.PathLike[str], key: AnalystKey, *, fingerprint: str | None = None) -> Opened:
    """Open and count. The task must be signed with the same key file (and have the ``fingerprint``)."""
    stored = open_reports(path)
    task = task_of(stored, key, fingerprint)
    protocol = task.protocol
    tally = np.zeros(protocol.tally_size, dtype=np.int64)
    n = not_opened = outside = 0
    with Progress(stored.n, what="reports") as progress:
        for reports in opened_reports(stored, task, key):
            rows = np.frombuffer(b"".join(reports[0]), protocol.report_dtype.newbyteorder("<"))
            counted, wrong = tally_of_possible(protocol, rows.reshape(-1, *protocol.report_shape))
            tally += counted
            n += len(reports[0]) - wrong
            not_opened += reports[1]
            outside += wrong
            progress.advance(len(reports[0]) + reports[1])
    return Opened(task, stored.header.batch, tally, n, not_opened, outside)


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
