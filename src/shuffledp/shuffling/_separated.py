"""Files of separated values, read by the standard library: where pyarrow is missing, where the delimiter or
the encoding is another one, and what comes through a pipe.

>>> file = Separated(b"pet;age\\ncat;3\\n;4\\n", delimiter=";")
>>> [list(values) for values in file.column("pet", text=True, rows=10)]
[['cat', None]]
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

# In columns of numbers; among texts only the empty one.
_MISSING = ("", "NA", "N/A", "NULL", "NaN", "nan", "null")


@dataclass(frozen=True)
class Separated:
    """Where the values are, and how they are written; the first line names the columns."""

    source: Path | bytes
    delimiter: str = ","
    encoding: str = "utf-8-sig"

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        return "the standard input" if isinstance(self.source, bytes) else str(self.source)

    def _opened(self) -> TextIO:
        if isinstance(self.source, bytes):
            return io.TextIOWrapper(io.BytesIO(self.source), self.encoding, newline="")
        if self.source.suffix.lower() == ".gz":
            return gzip.open(self.source, "rt", encoding=self.encoding, newline="")
        return self.source.open(encoding=self.encoding, newline="")

    def names(self) -> list[str]:
        """Of the columns."""
        return next(self._rows(), [])

    def _rows(self) -> Iterator[list[str]]:
        try:
            with self._opened() as file:
                yield from csv.reader(file, delimiter=self.delimiter)
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.name} is not written in {self.encoding}: name its encoding") from error
        except (csv.Error, OSError, LookupError) as error:
            raise ValueError(f"{self.name} cannot be read: {error}") from error

    def column(self, name: str, *, text: bool, rows: int) -> Iterator[npt.NDArray[Any]]:
        """A column in batches. A blank line is a missing value where there is one column, else nothing."""
        lines = self._rows()
        header = next(lines)
        place, missing = header.index(name), _MISSING[:1] if text else _MISSING

        def values() -> Iterator[str | None]:
            for number, line in enumerate(lines, start=2):
                if not line and len(header) > 1:
                    continue
                if len(line or [""]) != len(header):
                    raise ValueError(
                        f"{self.name}: row {number} has {len(line)} fields, the first {len(header)}"
                    )
                value = (line or [""])[place]
                yield None if value in missing else value

        every = values()
        while batch := list(islice(every, rows)):
            yield objects(batch) if text else _numbers(batch)


def objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    """An array of the values as they are."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _numbers(values: list[str | None]) -> npt.NDArray[Any]:
    """Whole numbers or floats where all are, else the texts, which the protocol then refuses."""
    kinds: tuple[Callable[[str], Any], ...] = (int, float)
    for kind in kinds:
        try:
            found = [None if value is None else kind(value) for value in values]
        except ValueError:
            continue
        return objects(found) if None in found else np.asarray(found)
    return objects(values)
