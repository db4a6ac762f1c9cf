"""A matrix from a file: .csv (numbers separated by commas), .json (a list of rows) or .npy."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


def read_matrix(path: str) -> Any:
    """The rows of the file, not yet checked to be probabilities."""
    file = Path(path)
    reader = _READERS.get(file.suffix.lower())
    if reader is None:
        raise click.UsageError(f"--matrix must be one of {', '.join(_READERS)}, got {path!r}.")
    try:
        return reader(file)
    except (ValueError, EOFError) as error:
        raise click.UsageError(f"--matrix {path}: {error}.") from error


def _read_csv(file: Path) -> list[list[float]]:
    with file.open(newline="", encoding="utf-8-sig") as lines:
        reader = csv.reader(lines)
        return [_numbers(row, reader.line_num) for row in reader if row]


def _numbers(row: list[str], line: int) -> list[float]:
    try:
        return [float(cell) for cell in row]
    except ValueError as error:
        raise ValueError(f"line {line}: {error}") from None


def _read_json(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def _read_npy(file: Path) -> Any:
    import numpy as np

    return np.load(file, allow_pickle=False)


_READERS: dict[str, Callable[[Path], Any]] = {
    ".csv": _read_csv,
    ".json": _read_json,
    ".npy": _read_npy,
}
