"""Three roles, three processes: client side, shuffler, analyst. They pass report files.

    randomize_file(protocol, "answers.csv", "reports-1.parquet", column="pet")       where the data is
    shuffle_files(protocol, ["reports-1.parquet", ...], "shuffled.parquet",           a trusted third party
                  minimum=10_000, used="used")
    analyze_file(protocol, "shuffled.parquet")                                       whoever wants to know

The shuffler keeps the reports and nothing else: their order, IDs and batches are gone. It trusts the clients'
side for nothing but honest randomizing. What does not belong is set aside and counted, and costs itself
only: files that are damaged or of another plan, too many reports of one file, reports that the randomizer
cannot have sent, and reports that came before, in this batch or in any other that the shuffler remembers
(``used``). Every output appears atomically; inputs are only read. All three stream: memory does not grow with
the number of reports.

>>> import tempfile
>>> from shuffledp.collecting.histogram import HistogramProtocol
>>> pets = HistogramProtocol(["cat", "dog"], epsilon=1.0, delta=1e-6, n=2000)
>>> with tempfile.TemporaryDirectory() as folder:
...     reports, shuffled, used = (Path(folder) / name for name in ("r.parquet", "s.parquet", "used"))
...     used.mkdir()
...     _ = randomize_file(pets, ["cat", "dog"] * 1000, reports)
...     print(shuffle_files(pets, [reports], shuffled, minimum=2000, used=used))
...     analyze_file(pets, shuffled).n
2000 reports mixed
2000
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shuffledp import _json, _validate
from shuffledp._files import check_place, partial_folder
from shuffledp._progress import Progress
from shuffledp._randomness.words import is_simulated, source
from shuffledp.errors import DomainError, MixedReportsError, ReportFileError
from shuffledp.shuffling._batches import (
    Collectable,
    attempt,
    available_cores,
    bytes_per_report,
    parallel_map,
    tally_of_possible,
    values_per_batch,
)
from shuffledp.shuffling._sieve import Sieve
from shuffledp.shuffling.columns import named, open_column
from shuffledp.shuffling.engine import Partial
from shuffledp.shuffling.permutation import check_enough, shuffled_batches
from shuffledp.shuffling.report_files import (
    Header,
    ReportWriter,
    StoredReports,
    create_reports,
    differences,
    open_reports,
)
from shuffledp.shuffling.used import opened

PathLike = str | os.PathLike[str]

BYTES_IN_MEMORY = 1 << 27
"""Of keys and reports that the shuffler permutes at once; sorting needs about twice as much."""
_KEY_BYTES = 8  # of a random key beside each report
_TOLD = 10  # files that are named


def randomize_file(
    protocol: Collectable,
    data: Any,
    output: PathLike,
    *,
    column: str | None = None,
    rng: np.random.Generator | None = None,
    show_values: bool = False,
) -> int:
    """Randomize a column (of a file, frame or array) into a report file; gives the number of reports.

    Missing and unknown values are the protocol's error, which counts them all, and with ``show_values`` shows
    some with their rows. ``rng`` makes the reports repeatable, for simulations only."""
    rows_at_once = values_per_batch(protocol)
    values = open_column(data, named(protocol, column), text=protocol.reads_text, rows=rows_at_once)
    threads = available_cores() if rng is None else 1  # a generator serves one thread

    def randomized(batch: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.asarray(protocol.randomize(batch, rng=rng, show_values=show_values))

    def reports(item: tuple[npt.NDArray[Any], int]) -> tuple[int, npt.NDArray[Any] | DomainError]:
        return len(item[0]), attempt(randomized, *item)

    so_far = Partial()
    with Progress(values.length) as progress, _created(protocol, output, rng is not None) as writer:
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
    with _created(protocol, output, is_simulated(reports)) as writer:
        writer.write(rows[None] if single else rows)
    return writer.n


def _created(
    protocol: Collectable, output: PathLike, simulated: bool
) -> AbstractContextManager[ReportWriter]:
    kind = (protocol.report_dtype, protocol.report_shape)
    return create_reports(output, Header.new("randomized", protocol.to_dict(), *kind, simulated=simulated))


@dataclass(frozen=True)
class Mixed:
    """What a shuffle did: how many ``reports`` are in the batch, how many were ``set_aside`` and why, and
    which files. ``head``: of the shuffler's memory; elsewhere it shows that an old copy was restored."""

    reports: int
    set_aside: dict[str, int]
    files_set_aside: dict[str, str]
    head: str

    def __str__(self) -> str:
        return f"{self.reports} reports mixed{told_aside(self.set_aside, self.files_set_aside)}"


def told_aside(reports: Mapping[str, int], files: Mapping[str, str]) -> str:
    """What was set aside, in words: counts, and files by the names that the shuffler gave."""
    parts = [f"{count} reports {reason}" for reason, count in reports.items()]
    parts += [f"{path!r} {reason}" for path, reason in list(files.items())[:_TOLD]]
    more = f"; {len(files) - _TOLD} more files" if len(files) > _TOLD else ""
    return f"; set aside: {'; '.join(parts)}{more}" if parts else ""


def shuffle_files(
    protocol: Collectable,
    inputs: PathLike | Sequence[PathLike],
    output: PathLike,
    *,
    minimum: int,
    used: PathLike,
    most_per_file: int | None = None,
    bytes_in_memory: int = BYTES_IN_MEMORY,
    rng: np.random.Generator | None = None,
) -> Mixed:
    """All good reports of the inputs in one file, in a fresh uniformly random order.

    Refuses to mix those of fewer people than ``minimum``: set it to the number that is planned for.
    ``used`` is the folder of the shuffler's memory (an empty one in the beginning): what it knows is not
    mixed again. ``most_per_file``: of reports in one input (default: as many as are planned for all
    together); for files of single clients, 1. ``rng`` makes the order repeatable, for simulations only."""
    paths = [inputs] if isinstance(inputs, (str, os.PathLike)) else list(inputs)
    if not paths:
        raise ValueError("inputs must name at least one report file, got none")
    least = _validate.count("minimum", minimum)
    planned = protocol.n * protocol.messages
    most = _validate.count("most_per_file", planned if most_per_file is None else most_per_file)
    room = _validate.count("bytes_in_memory", bytes_in_memory, least=1)
    check_place(Path(output), replace=False)
    with opened(Path(used)) as memory, partial_folder(Path(output)) as folder:
        sieve = Sieve.of(protocol, [Path(path) for path in paths], most, memory, folder)
        check_enough(sieve.n // protocol.messages, least, told_aside(sieve.reasons, sieve.files))
        header = Header.new(
            "shuffled",
            protocol.to_dict(),
            protocol.report_dtype,
            protocol.report_shape,
            simulated=rng is not None or sieve.simulated,
            memory=(memory.name, memory.number),
        )
        _mix(sieve, header, Path(output), folder, room, rng)
        return Mixed(sieve.n, sieve.reasons, sieve.files, memory.head)


def _mix(
    sieve: Sieve, header: Header, output: Path, folder: Path, room: int, rng: np.random.Generator | None
) -> None:
    """The batch, whose reports count as used before it gets its name."""
    rows = max(1, room // (_KEY_BYTES + bytes_per_report(header.dtype, header.shape)))
    recorded = False

    def confirm(partial: Path) -> None:
        nonlocal recorded
        plan = _json.fingerprint(header.protocol)
        sieve.memory.remember(header.batch, plan, sieve.used_keys(), partial)
        recorded = True

    try:
        with Progress(sieve.n, what="reports") as progress, create_reports(output, header, confirm) as writer:
            everything = _advancing(progress, sieve.good_reports())
            for batch in shuffled_batches(everything, sieve.n, folder, source(rng), rows_in_memory=rows):
                writer.write(batch)
    except FileExistsError:
        if recorded:  # somebody else took the name: nobody has seen this batch
            sieve.memory.withdraw(header.batch)
        raise


def analyze_file(protocol: Collectable, path: PathLike, **assumptions: Any) -> Any:
    """The protocol's result from a shuffled report file. ``assumptions`` go to ``protocol.analyze``.

    With a ledger the file is known by the name of its batch: it may be analyzed again, after a crash
    for instance, under the same reservation."""
    stored = open_reports(path)
    if stored.header.stage == "sealed":
        raise ReportFileError(f"{str(stored.path)!r} is sealed: it needs the analyst's key")
    if stored.header.stage != "shuffled":
        raise ReportFileError(f"{str(stored.path)!r} was not shuffled yet: its order can tell who sent what")
    tally, n, aside = tally_file(protocol, stored)
    check_enough(n, 1)
    if assumptions.get("ledger") is not None:
        assumptions |= {"batch": stored.header.batch, "memory": stored.header.memory}
    assumptions |= {"simulated": stored.header.simulated, "set_aside": aside}
    return protocol.analyze(tally=tally, n=protocol.people(n), **assumptions)


def tally_file(protocol: Collectable, stored: StoredReports) -> tuple[npt.NDArray[np.int64] | None, int, int]:
    """Tally and number of the reports of a file, once all of it is read and whole, and how many are none."""
    own = Header.new(stored.header.stage, protocol.to_dict(), protocol.report_dtype, protocol.report_shape)
    if not stored.header.describes(own):
        raise MixedReportsError(
            f"{str(stored.path)!r} holds reports of another protocol than the one given: "
            + differences(stored.header.protocol, own.protocol)
        )
    tally, aside = None, 0
    counted = partial(tally_of_possible, protocol)
    with Progress(stored.n, what="reports") as progress:
        batches = _advancing(progress, stored.batches())
        for part, others in parallel_map(counted, batches, threads=available_cores()):
            tally = part if tally is None else tally + part
            aside += others
        return tally, progress.done - aside, aside


def _advancing(progress: Progress, batches: Iterable[npt.NDArray[Any]]) -> Iterator[npt.NDArray[Any]]:
    for batch in batches:
        yield batch
        progress.advance(len(batch))
