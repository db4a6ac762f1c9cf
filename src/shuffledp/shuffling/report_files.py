"""Reports in Parquet files that say what they are and whether they are whole.

A column ``report``: a number, or the bytes of a row of numbers; before the shuffle also a column ``id``, 16
random bytes for each report, by which a shuffler knows it again. The file's metadata has

    shuffledp.header      JSON: format version, stage ("randomized" or "shuffled"), the protocol with all
                          its parameters, type and shape of a report, a random name of the batch, whether it
                          is simulated, and the memory of the shuffler (``used``) with the batch's number
    shuffledp.reports     how many reports there are
    shuffledp.checksum    BLAKE2b of header, number and all IDs and reports in their order

The checksum finds damage, truncation and edits of reports or parameters. It is no signature: somebody
who computes it anew can write any reports, as any dishonest client can.

A file is as large as what it holds: nothing in it is compressed or encoded, its pieces are small, and it has
as many rows as it says. So nobody can make a reader take more memory than a few pieces, or more time than
the bytes that he sent. (Files of version 1 were compressed; of them only shuffled ones are still used.)

>>> import numpy as np, tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder) / "reports.parquet"
...     header = Header.new("randomized", {"protocol": "x"}, np.dtype(np.uint8), ())
...     with create_reports(path, header) as writer:
...         writer.write(np.array([3, 1, 2], dtype=np.uint8))
...     stored = open_reports(path)
...     stored.header == header, stored.n, [list(map(int, batch)) for batch in stored.batches()]
(True, 3, [[3, 1, 2]])
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from shuffledp import _json
from shuffledp._files import atomic_file
from shuffledp._lazy import needed
from shuffledp._randomness.words import source
from shuffledp.errors import DamagedReportsError, ReportFileError, UnknownVersionError, short
from shuffledp.shuffling._batches import bytes_per_report, rows_per_batch
from shuffledp.shuffling._footer import Piece, pieces_of
from shuffledp.shuffling.used import ID_BYTES

VERSION = 2
FORMAT = "shuffledp reports"
STAGES = ("randomized", "shuffled", "sealed")
COLUMN, IDS = "report", "id"
_HEADER, _REPORTS, _CHECKSUM = "shuffledp.header", "shuffledp.reports", "shuffledp.checksum"
_MOST_BYTES = 2**31 - 1  # of one report: what Arrow can hold in one value
_MOST_HEADER = 2**26  # characters; memory
_PAGES = 1 << 20  # bytes of the headers of a piece's pages, at most
_MOST_DIGITS = 18  # of the number of reports


@dataclass(frozen=True)
class Header:
    """The self-description of a report file.

    Attributes:
        stage: "randomized" (in the senders' order) or "shuffled".
        protocol: the protocol's ``to_dict()``.
        dtype, shape: of one report, the least significant byte first.
        batch: a random name, so that the same reports are not taken twice.
        simulated: made with a repeatable generator.
        memory: of a shuffled batch, the name of the shuffler's memory and the batch's number there.
        version: of the format.
    """

    stage: str
    protocol: dict[str, Any]
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    batch: str
    simulated: bool = False
    memory: tuple[str, int] | None = None
    version: int = VERSION

    @classmethod
    def new(
        cls,
        stage: str,
        protocol: dict[str, Any],
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        *,
        simulated: bool = False,
        memory: tuple[str, int] | None = None,
    ) -> Self:
        """A header for a new batch."""
        as_read = json.loads(_json.canonical(protocol))  # tuples become lists, as they do in files
        kind = dtype.newbyteorder("<")
        return cls(stage, as_read, kind, shape, secrets.token_hex(16), simulated, memory)

    @property
    def has_ids(self) -> bool:
        """Whether each report has an ID: until it is shuffled."""
        return self.stage == "randomized" and self.version >= 2

    def to_json(self) -> str:
        """One text for equal headers."""
        entries = {
            "format": FORMAT,
            "version": self.version,
            "stage": self.stage,
            "protocol": self.protocol,
            "dtype": self.dtype.str,
            "shape": self.shape,
            "batch": self.batch,
        }
        later = {"simulated": self.simulated, "memory": self.memory} if self.version >= 2 else {}
        return _json.canonical(entries | later)

    @classmethod
    def from_json(cls, text: str, path: str | os.PathLike[str]) -> Self:
        """The header of the file ``path``."""
        name = os.fspath(path)
        try:
            entries = json.loads(text)
            if entries["format"] != FORMAT:
                raise ValueError(f"format {entries['format']!r}")
            if entries["version"] in (1, VERSION):
                return cls._checked(entries)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise DamagedReportsError(f"{name!r} has a damaged header: {short(str(error))}") from error
        raise UnknownVersionError(
            f"{name!r} has version {short(entries['version'])} of the report format; this release of "
            f"shuffledp reads versions 1 and {VERSION}"
        )

    @classmethod
    def _checked(cls, entries: dict[str, Any]) -> Self:
        stage, protocol, batch = entries["stage"], entries["protocol"], entries["batch"]
        dtype, shape = np.dtype(entries["dtype"]), tuple(entries["shape"])
        if stage not in STAGES or not isinstance(protocol, dict) or not isinstance(batch, str):
            raise ValueError("stage, protocol or batch is not what it should be")
        if dtype.kind not in "iufb" or not all(isinstance(s, int) and s >= 1 for s in shape):
            raise ValueError(f"reports cannot have dtype {dtype} and shape {shape}")
        if bytes_per_report(dtype, shape) > _MOST_BYTES:
            raise ValueError(f"reports of shape {shape} are too large")
        kind, version = dtype.newbyteorder("<"), int(entries["version"])
        if version == 1:
            return cls(stage, protocol, kind, shape, batch, version=1)
        simulated, memory = entries["simulated"], entries["memory"]
        if memory is not None:
            memory = (str(memory[0]), int(memory[1]))
        if not isinstance(simulated, bool):
            raise ValueError("simulated is neither true nor false")
        return cls(stage, protocol, kind, shape, batch, simulated, memory)

    def describes(self, other: Header) -> bool:
        """Whether the reports of both are of the same protocol with the same parameters."""
        same = (self.dtype, self.shape) == (other.dtype, other.shape)
        # As texts: Python takes True for 1, and 1 for 1.0.
        return same and _json.canonical(self.protocol) == _json.canonical(other.protocol)


def differences(first: dict[str, Any], second: dict[str, Any]) -> str:
    """The parameters in which two protocols differ, in words.

    >>> differences({"n": 1, "epsilon": 1.0}, {"n": 2, "epsilon": 1.0})
    'n is 1 and 2'
    """
    texts = [{key: _json.canonical(value) for key, value in d.items()} for d in (first, second)]
    names = [key for key in first | second if texts[0].get(key) != texts[1].get(key)]
    told = [f"{k} is {short(first.get(k))} and {short(second.get(k))}" for k in names[:3]]
    return "; ".join(told) or "the type of their reports"


class Checksum:
    """BLAKE2b of a header, reports and their number."""

    def __init__(self, header: str) -> None:
        self.n, self._hash = 0, blake2b(header.encode() + b"\0", digest_size=32)

    def update(self, reports: npt.NDArray[Any], ids: npt.NDArray[np.uint8] | None = None) -> None:
        """Some more reports, in C order, after their IDs."""
        self.n += len(reports)
        if ids is not None:
            self._hash.update(ids.reshape(-1).data)
        self._hash.update(reports.reshape(-1).view(np.uint8).data)

    def hexdigest(self) -> str:
        """Of everything so far."""
        whole = self._hash.copy()
        whole.update(self.n.to_bytes(8, "little"))
        return whole.hexdigest()


class ReportWriter:
    """Writes batches of reports, and their checksum in the end."""

    def __init__(self, parquet_writer: Any, header: Header) -> None:
        self._writer, self._header, self._words = parquet_writer, header, source()
        self._rows = rows_per_batch(header.dtype, header.shape)
        self._checksum = Checksum(header.to_json())

    @property
    def n(self) -> int:
        """How many reports were written."""
        return self._checksum.n

    def write(self, reports: npt.NDArray[Any]) -> None:
        """Append reports of the header's type and shape."""
        wanted = (self._header.dtype, self._header.shape)
        if (reports.dtype.newbyteorder("<"), reports.shape[1:]) != wanted:
            raise ValueError(
                f"reports must have dtype {wanted[0]} and shape (n, *{wanted[1]}), "
                f"got {reports.dtype} and {reports.shape}"
            )
        if len(reports) == 0:
            return
        plain = np.ascontiguousarray(reports, dtype=self._header.dtype)
        for start in range(0, len(plain), self._rows):
            self._write(plain[start : start + self._rows])

    def _write(self, reports: npt.NDArray[Any]) -> None:
        """One small piece: what a reader holds at once."""
        pyarrow, ids, columns = needed("pyarrow", extra="collect"), None, [to_arrow(reports)]
        if self._header.has_ids:
            ids = self._words.draw(2 * len(reports)).view(np.uint8).reshape(-1, ID_BYTES)
            columns.insert(0, to_arrow(ids))
        self._checksum.update(reports, ids)
        self._writer.write_batch(pyarrow.record_batch(columns, schema=self._writer.schema))

    def finish(self) -> None:
        """Number and checksum, at the end of the file."""
        ending = {_REPORTS: str(self.n), _CHECKSUM: self._checksum.hexdigest()}
        self._writer.add_key_value_metadata(ending)


@contextmanager
def create_reports(
    path: str | os.PathLike[str], header: Header, confirm: Callable[[Path], None] = lambda partial: None
) -> Iterator[ReportWriter]:
    """A writer of a report file that appears, whole, when the block ends without an error.

    ``confirm``: see ``shuffledp._files.atomic_file``."""
    pyarrow = needed("pyarrow", extra="collect")
    parquet = needed("pyarrow.parquet", extra="collect")
    schema = pyarrow.schema(_fields(header), metadata={_HEADER: header.to_json()})
    plain = {"compression": "NONE", "use_dictionary": False, "write_statistics": False}
    # A file of Python's: its errors (no space left, say) keep their number and their text.
    with (
        atomic_file(Path(path), private=True, confirm=confirm) as partial,
        open(partial, "wb") as file,
        parquet.ParquetWriter(file, schema, **plain) as parquet_writer,
    ):
        writer = ReportWriter(parquet_writer, header)
        yield writer
        writer.finish()


def _fields(header: Header) -> list[Any]:
    """The columns of a file, none of which may have holes."""
    pyarrow = needed("pyarrow", extra="collect")
    report = pyarrow.field(COLUMN, _arrow_type(header.dtype, header.shape), nullable=False)
    return [pyarrow.field(IDS, pyarrow.binary(ID_BYTES), nullable=False)] * header.has_ids + [report]


@dataclass(frozen=True)
class StoredReports:
    """A report file whose header was read: ``n`` reports, as it says, which must give the ``checksum``."""

    path: Path
    header: Header
    n: int
    checksum: str

    def batches(self) -> Iterator[npt.NDArray[Any]]:
        """The reports in pieces. Only the end of the stream proves that they are whole.

        DamagedReportsError there (or before): release nothing that was computed from them earlier."""
        return (reports for _, reports in self.identified())

    def identified(self) -> Iterator[tuple[npt.NDArray[np.uint8] | None, npt.NDArray[Any]]]:
        """The reports in pieces, as ``batches``, with their IDs, rows of bytes, where they have some."""
        checksum = Checksum(self.header.to_json())
        for ids, reports in self._read(rows_per_batch(self.header.dtype, self.header.shape)):
            checksum.update(reports, ids)
            yield ids, reports
        if (checksum.n, checksum.hexdigest()) != (self.n, self.checksum):
            raise DamagedReportsError(
                f"{str(self.path)!r} is damaged or was changed: its reports and header do not give "
                "its checksum"
            )

    def _read(self, rows: int) -> Iterator[tuple[npt.NDArray[np.uint8] | None, npt.NDArray[Any]]]:
        header, names = self.header, [IDS] * self.header.has_ids + [COLUMN]
        with _opened(self.path) as file:
            for batch in file.iter_batches(batch_size=rows, columns=names):
                try:
                    columns = [batch.column(name) for name in names]
                    reports = from_arrow(columns[-1], header.dtype, header.shape)
                    if header.has_ids:
                        yield from_arrow(columns[0], np.dtype(np.uint8), (ID_BYTES,)), reports
                    else:
                        yield None, reports
                except ValueError as error:
                    raise DamagedReportsError(f"{str(self.path)!r}: {error}") from error


def open_reports(path: str | os.PathLike[str]) -> StoredReports:
    """A report file, its header checked: ReportFileError with the reason where it is none."""
    where = Path(path)
    if not where.is_file():
        raise FileNotFoundError(f"report file not found: {str(where)!r}")
    pieces = pieces_of(where)
    with _opened(where) as file:
        metadata = file.metadata.metadata or {}
        for key in (_HEADER, _REPORTS, _CHECKSUM):
            if key.encode() not in metadata:
                raise ReportFileError(f"{str(where)!r} is no whole report file: it has no {key}")
        header, n, checksum = (
            metadata[key.encode()].decode(errors="replace") for key in (_HEADER, _REPORTS, _CHECKSUM)
        )
        if not n.isascii() or not n.isdigit() or len(n) > _MOST_DIGITS:
            raise DamagedReportsError(f"{str(where)!r} is damaged: its number of reports is {short(n)}")
        if len(header) > _MOST_HEADER:
            raise DamagedReportsError(f"{str(where)!r} has a header of {len(header)} characters")
        stored = StoredReports(where, Header.from_json(header, where), int(n), checksum)
        _check_layout(file, stored, pieces)
    return stored


def _check_layout(file: Any, stored: StoredReports, pieces: tuple[Piece, ...]) -> None:
    """DamagedReportsError unless the file holds the rows that it says, each with all its bytes."""

    def wrong(what: str) -> DamagedReportsError:
        return DamagedReportsError(f"{str(stored.path)!r} is damaged or was not written here: {what}")

    header, kept = stored.header, file.metadata
    if kept.num_rows != stored.n:
        raise wrong(f"it says {stored.n} reports and has {kept.num_rows}")
    if file.schema_arrow.names.count(COLUMN) != 1:
        raise wrong(f"it has no column {COLUMN!r}")
    if header.version == 1:
        return
    fields = _fields(header)
    if list(file.schema_arrow) != fields:
        raise wrong(f"its columns must be {', '.join(map(str, fields))}")
    widths = [ID_BYTES] * header.has_ids + [stored_bytes(header.dtype, header.shape)]
    rows = rows_per_batch(header.dtype, header.shape)
    for piece in pieces:
        if not 0 <= piece.rows <= rows or len(piece.chunks) != len(widths):
            raise wrong("its pieces are too large")
        for chunk, width in zip(piece.chunks, widths, strict=True):
            if not chunk.plain or not 0 <= chunk.size <= width * rows + _PAGES:
                raise wrong("its reports are compressed or encoded")
    if stored.n * sum(widths) > stored.path.stat().st_size:
        raise wrong(f"its bytes cannot be {stored.n} reports")


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """An open Parquet file; what goes wrong inside is damage."""
    pyarrow = needed("pyarrow", extra="collect")
    parquet = needed("pyarrow.parquet", extra="collect")
    try:
        limits = {"thrift_string_size_limit": 2 * _MOST_HEADER, "thrift_container_size_limit": 1 << 20}
        with parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 22, **limits) as file:
            yield file
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        said = short(str(error))
        raise DamagedReportsError(f"{str(path)!r} is damaged or no Parquet file: {said}") from error


def stored_bytes(dtype: np.dtype[Any], shape: tuple[int, ...]) -> int:
    """The bytes of a report in a file: Parquet has no number of less than four."""
    least = 1 if shape or dtype.kind == "b" else 4
    return max(least, bytes_per_report(dtype, shape))


def _arrow_type(dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    """The Arrow type of a report."""
    pyarrow = needed("pyarrow", extra="collect")
    if not shape and dtype.kind != "b":
        return pyarrow.from_numpy_dtype(dtype)
    return pyarrow.binary(bytes_per_report(dtype, shape))


def to_arrow(reports: npt.NDArray[Any]) -> Any:
    """Contiguous reports, without a copy."""
    pyarrow = needed("pyarrow", extra="collect")
    kind = _arrow_type(reports.dtype, reports.shape[1:])
    data = pyarrow.py_buffer(reports)
    return pyarrow.Array.from_buffers(kind, len(reports), [None, data])


def from_arrow(array: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Reports of an Arrow array; ValueError where one is missing or of another type."""
    wanted = _arrow_type(dtype, shape)
    if array.type != wanted:
        raise ValueError(f"reports must be of type {wanted}, got {array.type}")
    return _rows(array, dtype, shape)


def to_binary(reports: npt.NDArray[Any]) -> Any:
    """Reports as bytes, the least significant one first, in an Arrow array of any width."""
    plain = np.ascontiguousarray(reports, dtype=reports.dtype.newbyteorder("<"))
    size = bytes_per_report(plain.dtype, plain.shape[1:])
    pyarrow = needed("pyarrow", extra="collect")
    fixed = [None, pyarrow.py_buffer(plain)]
    return pyarrow.Array.from_buffers(pyarrow.binary(size), len(plain), fixed).cast("binary")


def from_binary(array: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Reports of an Arrow array of bytes; ValueError where one is missing or of another width."""
    binary = needed("pyarrow", extra="collect").binary
    return _rows(array.cast(binary(bytes_per_report(dtype, shape))), dtype, shape)


def _rows(array: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    if array.null_count:
        raise ValueError(f"{array.null_count} reports are missing")
    data = np.frombuffer(array.buffers()[1] or b"", dtype=np.uint8)
    size = bytes_per_report(dtype, shape)
    part = data[array.offset * size : (array.offset + len(array)) * size]
    return part.view(dtype).reshape(len(array), *shape)
