"""One column of anything, as a stream of NumPy arrays.

    a path     .csv, .tsv (also .gz), .parquet, .arrow / .ipc / .feather     read piece by piece
    a frame    pandas, polars, pyarrow, duckdb: whatever exports Arrow streams or arrays
    an array   NumPy (also structured, also masked), lists, tuples, ranges: work without pyarrow
    vectors    a NumPy array of two dimensions, an .npy file, a column of lists of one length: rows of numbers

Files and frames come by way of Arrow (the extra ``collect``): streamed, never read whole. Without it, files
of separated values are read by the standard library.

Missing values stay missing, for the protocol to report: None in an array of objects (nan where the
column holds floats). They never become a number. A batch of integers without missing values keeps
its own integer type.

>>> source = open_column([3, 1, None, 2], rows=3)
>>> source.length
4
>>> list(source)
[array([3, 1, None], dtype=object), array([2], dtype=object)]
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shuffledp import _validate
from shuffledp._lazy import needed
from shuffledp.shuffling._separated import Separated, objects

Batch = npt.NDArray[Any]
Name = str | tuple[str, ...] | None
Stream = tuple[Callable[[], Iterator[Batch]], int | None]
"""What a ``Column`` is made of."""

ROWS = 1 << 18
"""Of one batch: a few MB, and long enough for the cost of a call to vanish (speed)."""
_BLOCK_BYTES = 1 << 22  # of a file, read at a time; speed and memory


@dataclass(frozen=True)
class Column:
    """A stream of batches that can be read once or more: ``batches`` starts it.

    ``length``: the number of rows, or None where only reading can tell."""

    batches: Callable[[], Iterator[Batch]]
    length: int | None = None

    def __iter__(self) -> Iterator[Batch]:
        return self.batches()

    def numbered(self) -> Iterator[tuple[Batch, int]]:
        """Every batch with the number of its first row."""
        first_row = 0
        for batch in self:
            yield batch, first_row
            first_row += len(batch)


def open_column(data: Any, name: Name = None, *, text: bool = False, rows: int = ROWS) -> Column:
    """The column ``name`` of ``data`` in batches of at most ``rows`` rows.

    ``name`` may be left out where there is one column only; of several names the batches are structured
    arrays. ``text`` keeps the fields of CSV files as they are written ("007" is no number); without it their
    types are inferred."""
    size = _validate.count("rows", rows)
    if isinstance(name, tuple):
        return _joined(data, name, text, size)
    if isinstance(data, Separated):
        return _of_separated(data, name, text, size)
    if isinstance(data, (str, os.PathLike)):
        return _of_path(Path(data), name, text, size)
    if isinstance(data, (list, tuple, range, np.ndarray)):
        return _of_array(_as_array(data), name, size)
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return Column(*_of_object(data, name, size))
    if hasattr(data, "__array__"):
        return _of_array(np.asarray(data), name, size)
    raise TypeError(
        "data must be a path, a NumPy array, a list, or a frame that exports Arrow "
        f"(pandas, polars, pyarrow), got {type(data).__module__}.{type(data).__qualname__}"
    )


def _joined(data: Any, names: tuple[str, ...], text: bool, rows: int) -> Column:
    """Several columns side by side; rows of values are in the order of the names."""
    if isinstance(data, Mapping):
        parts = [open_column(data[each], text=text, rows=rows) for each in names]
    elif isinstance(data, (list, tuple)):
        if any(isinstance(row, str) or np.size(row) != len(names) for row in data):
            raise ValueError(f"data must be rows of {len(names)} values: {', '.join(names)}")
        parts = [open_column([row[i] for row in data], rows=rows) for i in range(len(names))]
    else:
        parts = [open_column(data, each, text=text, rows=rows) for each in names]

    def batches() -> Iterator[Batch]:
        streams, held = [iter(part) for part in parts], [np.empty(0)] * len(parts)
        while True:
            held = [
                left if len(left) else next(stream, left) for left, stream in zip(held, streams, strict=True)
            ]
            length = min(map(len, held))
            if length == 0:
                break
            yield side_by_side({name: left[:length] for name, left in zip(names, held, strict=True)})
            held = [left[length:] for left in held]
        if any(len(left) for left in held):
            raise ValueError(f"the columns {', '.join(names)} must be of equal lengths")

    return Column(batches, parts[0].length)


def side_by_side(columns: Mapping[str, Batch]) -> Batch:
    """A structured array of columns of one length."""
    length = len(next(iter(columns.values())))
    whole = np.empty(length, [(name, column.dtype) for name, column in columns.items()])
    for name, column in columns.items():
        whole[name] = column
    return whole


def named(protocol: Any, column: Name) -> Name:
    """What a protocol reads: the columns that it names itself, or the one asked for."""
    own: tuple[str, ...] | None = getattr(protocol, "columns", None)
    if own is not None and column not in (None, own):
        raise ValueError(f"column must be None: this protocol reads {', '.join(own)}, got {column!r}")
    return column if own is None else own


def _of_path(path: Path, name: str | None, text: bool, rows: int) -> Column:
    if not path.is_file():
        raise FileNotFoundError(f"data must be an existing file, got {str(path)!r}")
    suffixes = [s.lower() for s in path.suffixes if s.lower() != ".gz"]
    kind = suffixes[-1] if suffixes else ""
    if kind in (".csv", ".tsv"):
        delimiter = "," if kind == ".csv" else "\t"
        if find_spec("pyarrow") is None:
            return _of_separated(Separated(path, delimiter), name, text, rows)
        return Column(*_of_csv(path, name, rows, delimiter, text))
    if kind in (".parquet", ".pq"):
        return Column(*_of_parquet(path, name, rows))
    if kind in (".arrow", ".ipc", ".feather"):
        return Column(*_of_ipc(path, name, rows))
    if kind == ".npy":
        return _of_array(_npy(path), name, rows)
    raise ValueError(
        f"data must be a file named .csv, .tsv, .parquet, .arrow, .ipc, .feather or .npy, got {str(path)!r}"
    )


def _npy(path: Path) -> Batch:
    """The array of a file, read as it is used."""
    try:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{str(path)!r} cannot be read: {error}") from error


def _of_separated(file: Separated, name: str | None, text: bool, rows: int) -> Column:
    column = chosen(name, file.names())
    return Column(lambda: file.column(column, text=text, rows=rows))


def _as_array(values: Any) -> Batch:
    """Lists keep None as None and never turn numbers into text; masked values become None."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        known = np.asarray(values.data).astype(object)
        known[np.ma.getmaskarray(values)] = None
        return known
    if isinstance(values, (np.ndarray, range)):
        return np.asarray(values)
    kinds = set(map(type, values))
    if len(kinds) == 1 and kinds <= {int, float, bool}:
        numbers = np.asarray(values)
        if kinds != {int} or numbers.dtype.kind in "iu":  # else some do not fit one type of 64 bits
            return numbers
    for value in values:
        if np.ndim(value):
            raise ValueError(f"data must be one-dimensional, got a list that holds a {type(value).__name__}")
    return objects(values)


def _of_array(array: Batch, name: str | None, rows: int) -> Column:
    if array.dtype.names is not None:
        array = array[chosen(name, list(array.dtype.names))]
    elif name is not None:
        raise ValueError(f"column must be None for data without named columns, got {name!r}")
    if array.ndim != 1 and (array.ndim != 2 or array.dtype.kind not in "fiu"):
        raise ValueError(f"data must be one-dimensional, or rows of numbers, got shape {array.shape}")

    def batches() -> Iterator[Batch]:
        return (array[start : start + rows] for start in range(0, len(array), rows))

    return Column(batches, len(array))


def _of_parquet(path: Path, name: str | None, rows: int) -> Stream:
    """A column of a Parquet file; other columns are not touched."""
    with _reading(path), _parquet().ParquetFile(path) as file:
        column, length = chosen(name, file.schema_arrow.names), file.metadata.num_rows

    def batches() -> Iterator[Batch]:
        # Unbuffered, a whole column chunk (which may be the whole file) would be held.
        options = {"pre_buffer": False, "buffer_size": _BLOCK_BYTES}
        options["page_checksum_verification"] = True  # where the file has checksums
        with _reading(path), _parquet().ParquetFile(path, **options) as file:
            for batch in file.iter_batches(batch_size=rows, columns=[column]):
                yield to_numpy(batch.column(0))

    return batches, length


def _of_ipc(path: Path, name: str | None, rows: int) -> Stream:
    """A column of an Arrow IPC (Feather) file, or of the stream format in a file."""

    @contextmanager
    def opened() -> Iterator[Any]:
        pyarrow = needed("pyarrow", extra="collect")
        with _reading(path), pyarrow.memory_map(str(path)) as file:
            if file.read(6) == b"ARROW1":
                yield pyarrow.ipc.open_file(file)
            else:
                file.seek(0)
                yield pyarrow.ipc.open_stream(file)

    with opened() as file:
        column = chosen(name, file.schema.names)
        count = getattr(file, "num_record_batches", None)

    def parts() -> Iterator[Any]:
        with opened() as file:
            if count is None:
                yield from (batch.column(column) for batch in file)
            else:
                yield from (file.get_batch(i).column(column) for i in range(count))

    return lambda: _pieces(parts(), rows), None


def _of_csv(path: Path, name: str | None, rows: int, delimiter: str, text: bool) -> Stream:
    """A column of a file of separated values whose first line names the columns."""
    csv = needed("pyarrow.csv", extra="collect")
    layout: dict[str, Any] = {
        "read_options": csv.ReadOptions(block_size=_BLOCK_BYTES),
        "parse_options": csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
    }
    with _reading(path), csv.open_csv(path, **layout) as file:
        column = chosen(name, file.schema.names)
        if len(file.schema.names) == 1:  # a blank line is somebody who did not answer
            layout["parse_options"].ignore_empty_lines = False
    convert = csv.ConvertOptions(include_columns=[column])
    convert.strings_can_be_null = True
    convert.quoted_strings_can_be_null = False
    if text:  # a category may well be called NA: only an empty field is missing
        convert.null_values = [""]
        convert.column_types = {column: needed("pyarrow", extra="collect").string()}

    def parts() -> Iterator[Any]:
        with _reading(path), csv.open_csv(path, convert_options=convert, **layout) as file:
            yield from (batch.column(0) for batch in file)

    return lambda: _pieces(parts(), rows), None


def _of_object(data: Any, name: str | None, rows: int) -> Stream:
    """A column of whatever exports Arrow streams or arrays: frames, series, tables, arrays."""
    pyarrow = needed("pyarrow", extra="collect")
    length = len(data) if hasattr(data, "__len__") else None
    if type(data).__module__.partition(".")[0] in ("pandas", "polars") and hasattr(data, "columns"):
        # Converts no other column: they may be large, or of types that Arrow does not have.
        data = data[[chosen(name, list(data.columns))]]
    reader = _reader(pyarrow, data)
    if reader is None:
        if name is not None:
            raise ValueError(f"column must be None for a single column, got {name!r}")
        whole = pyarrow.chunked_array(data if hasattr(data, "__arrow_c_stream__") else [data])
        return lambda: _pieces(whole.chunks, rows), length
    column = chosen(name, reader.schema.names)
    return lambda: _pieces((batch.column(column) for batch in reader), rows), length


def _reader(pyarrow: Any, data: Any) -> Any:
    """The record batches of a table; None where the data is one column without a name."""
    if hasattr(data, "__arrow_c_array__") and not hasattr(data, "__arrow_c_stream__"):
        if not hasattr(data, "schema"):
            return None
        batch = pyarrow.record_batch(data)
        return pyarrow.RecordBatchReader.from_batches(batch.schema, [batch])
    try:
        return pyarrow.RecordBatchReader.from_stream(data)
    except (pyarrow.ArrowException, TypeError) as error:
        if hasattr(data, "columns"):
            raise ValueError(f"the column cannot be converted to Arrow: {error}") from error
        return None  # a series: its type is no row of columns


def chosen(name: str | None, names: Sequence[str]) -> str:
    """The column asked for, or the only one."""
    known = ", ".join(repr(known) for known in list(names)[:20]) + (", ..." * (len(names) > 20))
    if name is None:
        if len(names) != 1:
            raise ValueError(f"column must be given, one of: {known}")
        return names[0]
    if list(names).count(name) != 1:
        reason = "several columns have that name" if name in names else f"the columns are {known}"
        if len(names) == 1 and any(mark in names[0] for mark in ";|\t"):
            reason += " (is the delimiter another one than the comma?)"
        raise ValueError(f"column must name one column, got {name!r}; {reason}")
    return name


def to_numpy(array: Any) -> Batch:
    """An Arrow array as a NumPy array in which missing values are None (nan among floats)."""
    types = needed("pyarrow", extra="collect").types
    array = getattr(array, "storage", array)
    if types.is_dictionary(array.type):
        return _decoded(array)
    if types.is_nested(array.type):
        return _vectors(array)
    exact = types.is_integer(array.type) or types.is_temporal(array.type)
    if types.is_null(array.type) or (array.null_count and exact):
        return objects(array.to_pylist())  # a float could not hold every integer
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _vectors(array: Any) -> Batch:
    """Lists of one length as rows of numbers."""
    flat = array.flatten()  # a list of columns where rows are no lists
    if isinstance(flat, list) or array.null_count or flat.null_count or len(set(map(len, array))) != 1:
        what = "single values, or lists of numbers of one length"
        raise TypeError(f"the column must hold {what}, got {array.type}")
    return to_numpy(flat).reshape(len(array), -1)


def _decoded(array: Any) -> Batch:
    """The values of an array of categories; what its indices or its dictionary miss is None."""
    values = to_numpy(array.dictionary)
    if array.indices.null_count:
        values = np.concatenate([values.astype(object), np.array([None])])
    wide = array.indices.cast("int64")  # a type that is full has no room for one more
    return np.asarray(values[wide.fill_null(len(values) - 1).to_numpy()])


def _pieces(parts: Iterable[Any], rows: int) -> Iterator[Batch]:
    """Arrow arrays of any length, cut to at most ``rows`` rows."""
    for part in parts:
        for start in range(0, len(part), rows):
            yield to_numpy(part.slice(start, rows))


def _parquet() -> Any:
    return needed("pyarrow.parquet", extra="collect")


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """What goes wrong while reading names the file."""
    pyarrow = needed("pyarrow", extra="collect")
    try:
        yield
    except UnicodeDecodeError:
        raise ValueError(f"{str(path)!r} is not written in utf-8: name its encoding") from None
    except OSError as error:
        raise ValueError(f"{str(path)!r} cannot be read: {error}") from error
    except pyarrow.ArrowException as error:  # whose text may go on with a row of the file
        raise ValueError(f"{str(path)!r} cannot be read: {str(error).partition(':')[0]}") from None
