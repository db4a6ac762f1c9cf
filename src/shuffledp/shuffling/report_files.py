"""Reports in Parquet files that say what they are and whether they are whole.

One column, ``report``: a number, or the bytes of a row of numbers. The file's metadata has

    shuffledp.header      JSON: format version, stage ("randomized" or "shuffled"), the protocol with all
                          its parameters, type and shape of a report, a random name of the batch
    shuffledp.reports     how many reports there are
    shuffledp.checksum    BLAKE2b of header, number and all reports in their order

The checksum finds damage, truncation and edits of reports or parameters. It is no signature: somebody
who computes it anew can write any reports, as any dishonest client can.

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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from shuffledp import _json
from shuffledp._extras import needed
from shuffledp._files import atomic_file
from shuffledp.errors import DamagedReportsError, ReportFileError, UnknownVersionError, short
from shuffledp.shuffling._batches import bytes_per_report, rows_per_batch

VERSION = 1
FORMAT = "shuffledp reports"
STAGES = ("randomized", "shuffled", "sealed")
COLUMN = "report"
_HEADER, _REPORTS, _CHECKSUM = "shuffledp.header", "shuffledp.reports", "shuffledp.checksum"
_MOST_BYTES = 2**31 - 1  # of one report: what Arrow can hold in one value


@dataclass(frozen=True)
class Header:
    """The self-description of a report file.

    Attributes:
        stage: "randomized" (in the senders' order) or "shuffled".
        protocol: the protocol's ``to_dict()``.
        dtype, shape: of one report, the least significant byte first.
        batch: a random name, so that the same reports are not taken twice.
    """

    stage: str
    protocol: dict[str, Any]
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    batch: str

    @classmethod
    def new(cls, stage: str, protocol: dict[str, Any], dtype: np.dtype[Any], shape: tuple[int, ...]) -> Self:
        """A header for a new batch."""
        as_read = json.loads(_json.canonical(protocol))  # tuples become lists, as they do in files
        return cls(stage, as_read, dtype.newbyteorder("<"), shape, secrets.token_hex(16))

    def to_json(self) -> str:
        """One text for equal headers."""
        return _json.canonical(
            {
                "format": FORMAT,
                "version": VERSION,
                "stage": self.stage,
                "protocol": self.protocol,
                "dtype": self.dtype.str,
                "shape": self.shape,
                "batch": self.batch,
            }
        )

    @classmethod
    def from_json(cls, text: str, path: str | os.PathLike[str]) -> Self:
        """The header of the file ``path``."""
        name = os.fspath(path)
        try:
            entries = json.loads(text)
            if entries["format"] != FORMAT:
                raise ValueError(f"format {entries['format']!r}")
            if entries["version"] == VERSION:
                return cls._checked(entries)
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedReportsError(f"{name!r} has a damaged header: {error}") from error
        raise UnknownVersionError(
            f"{name!r} has version {entries['version']!r} of the report format; this release of "
            f"shuffledp reads version {VERSION}"
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
        return cls(stage, protocol, dtype.newbyteorder("<"), shape, batch)

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

    def update(self, reports: npt.NDArray[Any]) -> None:
        """Some more reports, in C order."""
        self.n += len(reports)
        self._hash.update(reports.reshape(-1).view(np.uint8).data)

    def hexdigest(self) -> str:
        """Of everything so far."""
        whole = self._hash.copy()
        whole.update(self.n.to_bytes(8, "little"))
        return whole.hexdigest()


class ReportWriter:
    """Writes batches of reports, and their checksum in the end."""

    def __init__(self, parquet_writer: Any, header: Header) -> None:
        self._writer, self._header = parquet_writer, header
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
        self._checksum.update(plain)
        pyarrow = needed("pyarrow", extra="collect")
        column = to_arrow(plain)
        self._writer.write_batch(pyarrow.record_batch([column], schema=self._writer.schema))

    def finish(self) -> None:
        """Number and checksum, at the end of the file."""
        ending = {_REPORTS: str(self.n), _CHECKSUM: self._checksum.hexdigest()}
        self._writer.add_key_value_metadata(ending)


@contextmanager
def create_reports(path: str | os.PathLike[str], header: Header) -> Iterator[ReportWriter]:
    """A writer of a report file that appears, whole, when the block ends without an error."""
    pyarrow = needed("pyarrow", extra="collect")
    parquet = needed("pyarrow.parquet", extra="collect")
    kind = _arrow_type(header.dtype, header.shape)
    field = pyarrow.field(COLUMN, kind, nullable=False)
    schema = pyarrow.schema([field], metadata={_HEADER: header.to_json()})
    # A file of Python's: its errors (no space left, say) keep their number and their text.
    with (
        atomic_file(Path(path), private=True) as partial,
        open(partial, "wb") as file,
        parquet.ParquetWriter(file, schema) as parquet_writer,
    ):
        writer = ReportWriter(parquet_writer, header)
        yield writer
        writer.finish()


@dataclass(frozen=True)
class StoredReports:
    """A report file whose header was read.

    Attributes:
        path: the file.
        header: what its reports are.
        n: how many it says it has.
        checksum: what the reports must give.
    """

    path: Path
    header: Header
    n: int
    checksum: str

    def batches(self) -> Iterator[npt.NDArray[Any]]:
        """The reports in pieces. Only the end of the stream proves that they are whole.

        DamagedReportsError there (or before): release nothing that was computed from them earlier."""
        checksum = Checksum(self.header.to_json())
        for reports in self._read(rows_per_batch(self.header.dtype, self.header.shape)):
            checksum.update(reports)
            yield reports
        if (checksum.n, checksum.hexdigest()) != (self.n, self.checksum):
            raise DamagedReportsError(
                f"{str(self.path)!r} is damaged or was changed: its reports and header do not give "
                "its checksum"
            )

    def _read(self, rows: int) -> Iterator[npt.NDArray[Any]]:
        with _opened(self.path) as file:
            if file.schema_arrow.names.count(COLUMN) != 1:
                raise DamagedReportsError(f"{str(self.path)!r} has no column {COLUMN!r}")
            for batch in file.iter_batches(batch_size=rows, columns=[COLUMN]):
                try:
                    yield from_arrow(batch.column(0), self.header.dtype, self.header.shape)
                except ValueError as error:
                    raise DamagedReportsError(f"{str(self.path)!r}: {error}") from error


def open_reports(path: str | os.PathLike[str]) -> StoredReports:
    """A report file, its header checked: ReportFileError with the reason where it is none."""
    where = Path(path)
    if not where.is_file():
        raise FileNotFoundError(f"report file not found: {str(where)!r}")
    with _opened(where) as file:
        metadata = file.metadata.metadata or {}
    for key in (_HEADER, _REPORTS, _CHECKSUM):
        if key.encode() not in metadata:
            raise ReportFileError(f"{str(where)!r} is no whole report file: it has no {key}")
    header, n, checksum = (
        metadata[key.encode()].decode(errors="replace") for key in (_HEADER, _REPORTS, _CHECKSUM)
    )
    if not n.isascii() or not n.isdigit():
        raise DamagedReportsError(f"{str(where)!r} is damaged: its number of reports is {n!r}")
    return StoredReports(where, Header.from_json(header, where), int(n), checksum)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """An open Parquet file; what goes wrong inside is damage."""
    pyarrow = needed("pyarrow", extra="collect")
    parquet = needed("pyarrow.parquet", extra="collect")
    try:
        with parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 22) as file:
            yield file
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DamagedReportsError(f"{str(path)!r} is damaged or no Parquet file: {error}") from error


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
