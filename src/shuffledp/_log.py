"""One append-only file of records that survives crashes and shows tampering.

Every line is a JSON object with its number, its content, the hash of the line before and its own hash
(SHA-256 of the canonical text of all else). A line counts once its newline is on the disk: it is
written in one piece and synchronised before ``append`` returns. What a crash left without a newline is no
line: readers skip it with a notice, the next writer removes it. Anything else that does not fit (a
changed, missing, repeated or exchanged line) is an error, and nothing is written then.

Not visible is the removal of whole lines at the end: keep ``head`` elsewhere to notice that.

A lock on the file (released by the operating system when its process dies) keeps writers apart. A file
that was replaced or deleted meanwhile is noticed, before a line and after it. Reading needs no more than
the right to read.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

from shuffledp import _json
from shuffledp._files import atomic_file
from shuffledp.errors import LogCorruptError, TornLineWarning

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_START = "0" * 64
_FAR = 2**62
"""Where Windows locks a byte: beyond the end, so that reading is not hindered."""


@dataclass(frozen=True)
class Record:
    """One line: its number from 0, its content, its hash."""

    number: int
    content: dict[str, Any]
    hash: str


class OpenLog:
    """The file while it is locked."""

    def __init__(self, path: Path, file: FileIO) -> None:
        self._path, self._file = path, file
        self.records, self._end = _read(path, file)

    def append(self, content: dict[str, Any]) -> Record:
        """Write one more line, and return once it is on the disk."""
        previous = self.records[-1].hash if self.records else _START
        record = _record(len(self.records), content, previous)
        self._cut()
        try:
            self._file.seek(self._end)
            _write_all(self._file, _line(record, previous))
            self._synchronise()
        except OSError:
            self._cut()  # a full disk: take back what was written of the line
            raise
        self._end = self._file.tell()
        self.records.append(record)
        return record

    def _cut(self) -> None:
        """Remove what lies behind the last whole line."""
        if self._file.seek(0, os.SEEK_END) > self._end:
            self._file.truncate(self._end)

    def _synchronise(self) -> None:
        """On the disk, in the file that others will read: else the line is not confirmed."""
        os.fsync(self._file.fileno())
        try:
            kept = _is_at(self._path, self._file)
        except FileNotFoundError:
            kept = False
        if not kept:
            raise LogCorruptError(
                f"{self._path} was replaced or deleted while a line was written: it does not count"
            )


def create(path: Path, content: dict[str, Any]) -> None:
    """A new file with a first line, whole or not at all; FileExistsError where there is one."""
    with atomic_file(path, private=True) as partial:
        partial.write_bytes(_line(_record(0, content, _START), _START))


@contextmanager
def locked(path: Path, *, write: bool) -> Iterator[OpenLog]:
    """The file at ``path``: for this process alone to write, or shared with others who read.

    A file that takes its place (a copy that is restored, say) while this process waits is locked instead."""
    while True:
        descriptor = os.open(path, (os.O_RDWR if write else os.O_RDONLY) | getattr(os, "O_BINARY", 0))
        # Unbuffered: nothing of a line that failed waits to be written later.
        with os.fdopen(descriptor, "r+b" if write else "rb", buffering=0) as file:
            _lock(file, write)
            try:
                if _is_at(path, file):
                    yield OpenLog(path, file)
                    return
            finally:
                _unlock(file)


def _is_at(path: Path, file: FileIO) -> bool:
    """Whether the open file is still the one at ``path``. Once deleted it is at none: FileNotFoundError."""
    return os.path.samestat(os.stat(path), os.fstat(file.fileno()))


def _write_all(file: FileIO, line: bytes) -> None:
    """An unbuffered write may stop short, where a disk fills up for instance."""
    rest = memoryview(line)
    while rest:
        rest = rest[file.write(rest) :]


def _lock(file: FileIO, write: bool) -> None:
    if sys.platform == "win32":
        file.seek(_FAR)
        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
    else:
        fcntl.flock(file, fcntl.LOCK_EX if write else fcntl.LOCK_SH)


def _unlock(file: FileIO) -> None:
    if sys.platform == "win32":
        file.seek(_FAR)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)
    # Elsewhere closing the file releases the lock.


def _record(number: int, content: dict[str, Any], previous: str) -> Record:
    fields = {"number": number, "content": content, "previous": previous}
    return Record(number, content, _json.fingerprint(fields))


def _line(record: Record, previous: str) -> bytes:
    fields = {"number": record.number, "content": record.content}
    return _json.canonical(fields | {"previous": previous, "hash": record.hash}).encode() + b"\n"


def _read(path: Path, file: FileIO) -> tuple[list[Record], int]:
    """All whole lines, checked, and where they end."""
    file.seek(0)
    *lines, rest = file.read().split(b"\n")
    records: list[Record] = []
    end = 0
    for number, line in enumerate(lines):
        previous = records[-1].hash if records else _START
        records.append(_checked(path, number, line, previous))
        end += len(line) + 1
    if rest:
        warnings.warn(
            f"{path}: the last line ({len(rest)} bytes) was cut by a crash and does not count",
            TornLineWarning,
            stacklevel=2,
        )
    return records, end


def _checked(path: Path, number: int, line: bytes, previous: str) -> Record:
    """The record of a line; LogCorruptError unless it is exactly what would be written."""
    try:
        content = json.loads(line)["content"]
        record = _record(number, content, previous)
        good = isinstance(content, dict) and _line(record, previous) == line + b"\n"
    except (ValueError, KeyError, TypeError, RecursionError):
        good = False
    if not good:
        raise LogCorruptError(
            f"{path}: line {number + 1} is not what was written there; restore the file from a copy"
        )
    return record
