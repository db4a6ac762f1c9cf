"""Three roles, three processes: client side, shuffler, analyst. They pass report files.

    randomize_file(protocol, "answers.csv", "reports-1.parquet", column="pet")       where the data is
    shuffle_files(["reports-1.parquet", ...], "shuffled.parquet", minimum=10_000)     a trusted third party
    analyze_file(protocol, "shuffled.parquet")                                       whoever wants to know

The shuffler keeps the reports and nothing else: their order, batches, further columns and metadata are
gone. It trusts the clients' side for nothing but honest randomizing: other protocols' reports, damaged
files and the same batch twice (which would let n overstate the crowd) are errors. Every output appears
atomically; inputs are only read. All three stream: memory does not grow with the number of reports.

>>> import tempfile
>>> from shuffledp.collecting.histogram import HistogramProtocol
>>> pets = HistogramProtocol(["cat", "dog"], epsilon=1.0, delta=1e-6, n=2000)
>>> with tempfile.TemporaryDirectory() as folder:
...     reports, shuffled = Path(folder) / "reports.parquet", Path(folder) / "shuffled.parquet"
...     _ = randomize_file(pets, ["cat", "dog"] * 1000, reports)
...     _ = shuffle_files([reports], shuffled, minimum=2000)
...     analyze_file(pets, shuffled).n
2000
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shuffledp import _validate
from shuffledp._files import partial_folder
from shuffledp._progress import Progress
from shuffledp._randomness.words import source
from shuffledp.errors import DomainError, MixedReportsError, ReportFileError
from shuffledp.shuffling._batches import (
    Collectable,
    attempt,
    available_cores,
    bytes_per_report,
    parallel_map,
    people,
    rows_per_batch,
)
from shuffledp.shuffling._external import shuffled_batches
from shuffledp.shuffling.columns import open_column
from shuffledp.shuffling.engine import Partial
from shuffledp.shuffling.permutation import check_enough
from shuffledp.shuffling.report_files import (
    Header,
    ReportWriter,
    StoredReports,
    create_reports,
    differences,
    open_reports,
)

PathLike = str | os.PathLike[str]

BYTES_IN_MEMORY = 1 << 27
"""Of keys and reports that the shuffler permutes at once; sorting needs about twice as much."""
_KEY_BYTES = 8  # of a random key beside each report


def randomize_file(
    protocol: Collectable,
    data: Any,
    output: PathLike,
    *,
    column: str | None = None,
    rng: np.random.Generator | None = None,
) -> int:
    """Randomize a column (of a file, frame or array) into a report file; gives the number of reports.

    Missing and unknown values are the protocol's error, with their rows. ``rng`` makes the reports
    repeatable, for simulations only."""
    rows_at_once = rows_per_batch(protocol.report_dtype, protocol.report_shape)
    values = open_column(data, column, text=protocol.reads_text, rows=rows_at_once)
    threads = available_cores() if rng is None else 1  # a generator serves one thread

    def randomized(batch: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.asarray(protocol.randomize(batch, rng=rng))

    def reports(item: tuple[npt.NDArray[Any], int]) -> tuple[int, npt.NDArray[Any] | DomainError]:
        return len(item[0]), attempt(randomized, *item)

    so_far = Partial()
    with Progress(values.length) as progress, _created(protocol, output) as writer:
        for rows, done in parallel_map(reports, values.numbered(), threads=threads):
            progress.advance(rows)
            so_far += Partial(None, rows, done if isinstance(done, DomainError) else None)
            if not isinstance(done, DomainError) and so_far.rejected is None:
                writer.write(done)
        so_far.checked()  # at the end only, so that the error counts all of them
    return writer.n


def write_reports(protocol: Collectable, reports: Any, output: PathLike) -> int:
    """Reports made with ``protocol.randomize`` as a report file, for instance one per client."""
    rows = np.asarray(reports)
    single = rows.ndim == len(protocol.report_shape)
    with _created(protocol, output) as writer:
        writer.write(rows[None] if single else rows)
    return writer.n


def _created(protocol: Collectable, output: PathLike) -> AbstractContextManager[ReportWriter]:
    header = Header.new("randomized", protocol.to_dict(), protocol.report_dtype, protocol.report_shape)
    return create_reports(output, header)


def shuffle_files(
    inputs: PathLike | Sequence[PathLike],
    output: PathLike,
    *,
    minimum: int,
    bytes_in_memory: int = BYTES_IN_MEMORY,
    rng: np.random.Generator | None = None,
) -> int:
    """All reports of the inputs in one file, in a fresh uniformly random order; gives their number.

    Refuses fewer than ``minimum`` reports: set it to the number the privacy statement is planned for.
    ``rng`` makes the order repeatable, for simulations only."""
    stored = _together(inputs)
    n = sum(file.n for file in stored)
    check_enough(n, minimum)
    old = stored[0].header
    header = Header.new("shuffled", old.protocol, old.dtype, old.shape)
    room = _validate.count("bytes_in_memory", bytes_in_memory, least=1)
    rows = max(1, room // (_KEY_BYTES + bytes_per_report(old.dtype, old.shape)))
    with (
        Progress(n, what="reports") as progress,
        create_reports(output, header) as writer,
        partial_folder(Path(output)) as folder,
    ):
        everything = _advancing(progress, (batch for file in stored for batch in file.batches()))
        for batch in shuffled_batches(everything, n, folder, source(rng), rows_in_memory=rows):
            writer.write(batch)
    return writer.n


def _together(inputs: PathLike | Sequence[PathLike]) -> list[StoredReports]:
    """Report files that may be shuffled together."""
    paths = [inputs] if isinstance(inputs, (str, os.PathLike)) else list(inputs)
    if not paths:
        raise ValueError("inputs must name at least one report file, got none")
    stored = [open_reports(path) for path in paths]
    for file in stored:
        if file.header.stage != "randomized":
            # Their batches have no names any more: nobody could tell that some come twice.
            raise ReportFileError(f"{str(file.path)!r} was shuffled already; give its inputs")
    for first, second in pairwise(stored):
        if not first.header.describes(second.header):
            raise MixedReportsError(
                f"{str(first.path)!r} and {str(second.path)!r} hold reports of different protocols: "
                + differences(first.header.protocol, second.header.protocol)
            )
    seen: dict[str, Path] = {}
    for file in stored:
        if file.header.batch in seen:
            raise MixedReportsError(
                f"{str(seen[file.header.batch])!r} and {str(file.path)!r} hold the same reports"
            )
        seen[file.header.batch] = file.path
    return stored


def analyze_file(protocol: Collectable, path: PathLike, **assumptions: Any) -> Any:
    """The protocol's result from a shuffled report file. ``assumptions`` go to ``protocol.analyze``.

    With a ledger the file is known by the name of its batch: it may be analyzed again, after a crash
    for instance, under the same reservation."""
    stored = open_reports(path)
    if stored.header.stage == "sealed":
        raise ReportFileError(f"{str(stored.path)!r} is sealed: it needs the analyst's key")
    if stored.header.stage != "shuffled":
        raise ReportFileError(f"{str(stored.path)!r} was not shuffled yet: its order can tell who sent what")
    tally, n = tally_file(protocol, stored)
    check_enough(n, 1)
    if assumptions.get("ledger") is not None:
        assumptions["batch"] = stored.header.batch
    return protocol.analyze(tally=tally, n=people(n, protocol), **assumptions)


def tally_file(protocol: Collectable, stored: StoredReports) -> tuple[npt.NDArray[np.int64] | None, int]:
    """(tally, number) of the reports of a file, once all of it is read and whole."""
    own = Header.new(stored.header.stage, protocol.to_dict(), protocol.report_dtype, protocol.report_shape)
    if not stored.header.describes(own):
        raise MixedReportsError(
            f"{str(stored.path)!r} holds reports of another protocol than the one given: "
            + differences(stored.header.protocol, own.protocol)
        )
    tally, n = None, 0
    with Progress(stored.n, what="reports") as progress:
        batches = _advancing(progress, stored.batches())
        for part in parallel_map(protocol.count, batches, threads=available_cores()):
            tally = part if tally is None else tally + part
        n = progress.done
    return tally, n


def _advancing(progress: Progress, batches: Iterable[npt.NDArray[Any]]) -> Iterator[npt.NDArray[Any]]:
    for batch in batches:
        yield batch
        progress.advance(len(batch))
