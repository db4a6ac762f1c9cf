"""Reports as Arrow arrays: numbers as numbers, rows of numbers as bytes of fixed width.

>>> import numpy as np
>>> rows = np.arange(6, dtype=np.uint16).reshape(3, 2)
>>> bool((from_arrow(to_arrow(rows), rows.dtype, (2,)) == rows).all())
True
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from shuffledp.shuffling._extras import needed


def arrow_type(dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    """The Arrow type of a report."""
    pyarrow = needed("pyarrow", extra="collect")
    if not shape and dtype.kind != "b":
        return pyarrow.from_numpy_dtype(dtype)
    return pyarrow.binary(width(dtype, shape))


def width(dtype: np.dtype[Any], shape: tuple[int, ...]) -> int:
    """The bytes of a report."""
    return dtype.itemsize * math.prod(shape)


def to_arrow(reports: npt.NDArray[Any]) -> Any:
    """Contiguous reports, without a copy."""
    pyarrow = needed("pyarrow", extra="collect")
    kind = arrow_type(reports.dtype, reports.shape[1:])
    data = pyarrow.py_buffer(reports)
    return pyarrow.Array.from_buffers(kind, len(reports), [None, data])


def from_arrow(array: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Reports of an Arrow array; ValueError where one is missing or of another type."""
    wanted = arrow_type(dtype, shape)
    if array.type != wanted:
        raise ValueError(f"reports must be of type {wanted}, got {array.type}")
    return _rows(array, dtype, shape)


def to_binary(reports: npt.NDArray[Any]) -> Any:
    """Reports as bytes, the least significant one first, in an Arrow array of any width."""
    plain = np.ascontiguousarray(reports, dtype=reports.dtype.newbyteorder("<"))
    size = width(plain.dtype, plain.shape[1:])
    pyarrow = needed("pyarrow", extra="collect")
    fixed = [None, pyarrow.py_buffer(plain)]
    return pyarrow.Array.from_buffers(pyarrow.binary(size), len(plain), fixed).cast("binary")


def from_binary(array: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Reports of an Arrow array of bytes; ValueError where one is missing or of another width."""
    binary = needed("pyarrow", extra="collect").binary
    return _rows(array.cast(binary(width(dtype, shape))), dtype, shape)


def _rows(array: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    if array.null_count:
        raise ValueError(f"{array.null_count} reports are missing")
    data = np.frombuffer(array.buffers()[1] or b"", dtype=np.uint8)
    size = width(dtype, shape)
    part = data[array.offset * size : (array.offset + len(array)) * size]
    return part.view(dtype).reshape(len(array), *shape)
