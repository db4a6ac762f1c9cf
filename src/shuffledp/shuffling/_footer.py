"""The footer of a Parquet file, read without trust: how its columns are stored, before anything is opened.

pyarrow ends the process on some footers that are wrong, and believes sizes that are made up. This reader (of
Thrift's compact protocol, as Parquet's own description lays it down) knows just enough to refuse them first.

>>> _Compact(bytes([0x15, 0x06, 0x00])).struct()  # field 1 is the whole number 3
{1: 3}
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from shuffledp.errors import DamagedReportsError

_MAGIC = b"PAR1"
_MOST_BYTES = 1 << 27
_MOST_ITEMS = 1 << 21  # fields and entries; memory
_MOST_DEPTH = 12
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_WHOLE = (4, 5, 6)


class Chunk(NamedTuple):
    """One column of one piece: ``plain`` if it is neither compressed nor encoded."""

    plain: bool
    size: int


class Piece(NamedTuple):
    """One row group."""

    rows: int
    chunks: tuple[Chunk, ...]


def pieces_of(path: Path) -> tuple[Piece, ...]:
    """The row groups of a Parquet file; DamagedReportsError where it is none."""
    try:
        metadata = _Compact(_footer(path)).struct()
        return tuple(_piece(group) for group in metadata[4])
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise DamagedReportsError(f"{str(path)!r} is damaged or no Parquet file: {error}") from error


def _footer(path: Path) -> bytes:
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - 8))
        tail = file.read(8)
        size = int.from_bytes(tail[:4], "little")
        if len(tail) < 8 or tail[4:] != _MAGIC or not 0 < size <= min(end - 12, _MOST_BYTES):
            raise ValueError("it has no footer")
        file.seek(end - 8 - size)
        return file.read(size)


def _piece(group: dict[int, Any]) -> Piece:
    return Piece(int(group[3]), tuple(_chunk(column[3]) for column in group[1]))


def _chunk(column: dict[int, Any]) -> Chunk:
    """Codec 0 is none; encoding 0 is plain, 3 that of levels."""
    plain = column[4] == 0 and set(column[2]) <= {0, 3} and 11 not in column
    return Chunk(plain and column[6] == column[7], int(column[7]))


class _Compact:
    """Thrift's compact protocol: structs as dicts by the numbers of their fields."""

    def __init__(self, data: bytes) -> None:
        self._data, self._place, self._left = data, 0, _MOST_ITEMS

    def struct(self, depth: int = 0) -> dict[int, Any]:
        if depth > _MOST_DEPTH:
            raise ValueError("its footer is nested too deeply")
        fields: dict[int, Any] = {}
        last = 0
        while head := self._bytes(1)[0]:
            step, kind = head >> 4, head & 15
            last = last + step if step else self._zigzag()
            fields[last] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            raise ValueError("its footer has too many fields")
        if kind in _WHOLE:
            return self._zigzag()
        if kind == _BINARY:
            return self._bytes(self._varint())
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in (_LIST, _SET):
            return self._list(depth)
        if kind in (_TRUE, _FALSE, _BYTE):
            return self._bytes(1)[0]
        if kind == _DOUBLE:
            return self._bytes(8)
        if kind == _MAP and self._varint() == 0:
            return {}
        raise ValueError("its footer has a field of an unknown kind")

    def _list(self, depth: int) -> list[Any]:
        head = self._bytes(1)[0]
        size = head >> 4 if head >> 4 != 15 else self._varint()
        return [self._value(head & 15, depth + 1) for _ in range(min(size, _MOST_ITEMS + 1))]

    def _bytes(self, count: int) -> bytes:
        start, self._place = self._place, self._place + count
        if self._place > len(self._data):
            raise ValueError("its footer is cut")
        return self._data[start : self._place]

    def _varint(self) -> int:
        number = 0
        for shift in range(0, 70, 7):
            byte = self._bytes(1)[0]
            number |= (byte & 127) << shift
            if byte < 128:
                return number
        raise ValueError("its footer has a number that is too long")

    def _zigzag(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)
