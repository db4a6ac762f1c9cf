"""One column of anything, as a stream of NumPy arrays.

    a path     .csv, .tsv (also .gz), .parquet, .arrow / .ipc / .feather     read piece by piece
    a frame    pandas, polars, pyarrow, duckdb: whatever exports Arrow streams or arrays
    an array   NumPy (also structured, also masked), lists, tuples, ranges: work without pyarrow

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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shuffledp import _validate
from shuffledp.shuffling import _arrow as arrow

Batch = npt.NDArray[Any]

ROWS = 1 << 18
"""Rows of one batch: a few MB, and long enough for the cost of a call to vanish."""


@dataclass(frozen=True)
class Column:
    """A stream of batches that can be read once or more.

    Attributes:
        batches: starts the stream.
        length: the number of rows, or None where only reading can tell.
    """

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


def open_column(
    data: Any, name: str | None = None, *, text: bool = False, rows: int = ROWS
) -> Column:
    """The column ``name`` of ``data`` in batches of at most ``rows`` rows.

    ``name`` may be left out where there is one column only. ``text`` keeps the fields of CSV files as
    they are written ("007" is no number); without it their types are inferred."""
    size = _validate.count("rows", rows)
    if isinstance(data, (str, os.PathLike)):
        return _of_path(Path(data), name, text, size)
    if isinstance(data, (list, tuple, range, np.ndarray)):
        return _of_array(_as_array(data), name, size)
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return Column(*arrow.of_object(data, name, size))
    if hasattr(data, "__array__"):
        return _of_array(np.asarray(data), name, size)
    raise TypeError(
        "data must be a path, a NumPy array, a list, or a frame that exports Arrow "
        f"(pandas, polars, pyarrow), got {type(data).__module__}.{type(data).__qualname__}"
    )


def _of_path(path: Path, name: str | None, text: bool, rows: int) -> Column:
    if not path.is_file():
        raise FileNotFoundError(f"data must be an existing file, got {str(path)!r}")
    suffixes = [s.lower() for s in path.suffixes if s.lower() != ".gz"]
    kind = suffixes[-1] if suffixes else ""
    if kind in (".csv", ".tsv"):
        delimiter = "," if kind == ".csv" else "\t"
        return Column(*arrow.of_csv(path, name, rows, delimiter, text))
    if kind in (".parquet", ".pq"):
        return Column(*arrow.of_parquet(path, name, rows))
    if kind in (".arrow", ".ipc", ".feather"):
        return Column(*arrow.of_ipc(path, name, rows))
    raise ValueError(
        "data must be a file named .csv, .tsv, .parquet, .arrow, .ipc or .feather, "
        f"got {str(path)!r}"
    )


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
            raise ValueError(f"data must be one-dimensional, got a list that holds {value!r}")
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _of_array(array: Batch, name: str | None, rows: int) -> Column:
    if array.dtype.names is not None:
        array = array[arrow.chosen(name, list(array.dtype.names))]
    elif name is not None:
        raise ValueError(f"column must be None for data without named columns, got {name!r}")
    if array.ndim != 1:
        raise ValueError(f"data must be one-dimensional, got shape {array.shape}")

    def batches() -> Iterator[Batch]:
        return (array[start : start + rows] for start in range(0, len(array), rows))

    return Column(batches, len(array))
