"""What a shuffler remembers: the IDs of all reports that it has ever mixed, so that none is mixed twice.

A report in two batches is seen twice, and the difference of two tallies can show it alone. So every report
file carries a random ID with each report (``report_files``), and a shuffler keeps those that it has used in
a folder of its own:

    memory.jsonl       one line per batch, each with the hash of the line before (``shuffledp._log``)
    <batch>.ids        a keyed 64-bit hash of each ID of the batch, sorted

A report whose ID is known is set aside. Hashes that are equal by chance cost a report (one in 10^19 for each
pair), never privacy, and nobody without the key in the first line can make any.

The IDs are on the disk before the batch gets its name. What a crash leaves in between is settled by the next
shuffle: a batch that never got its name is withdrawn, and its reports may be used again.

A memory that is restored from an old copy has forgotten its last batches. That cannot be seen from inside:
``head`` (the hash of the last line), kept elsewhere, shows it, and so does the analyst's ledger, which
refuses two batches of one number.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder, opened(Path(folder)) as memory:
...     memory.number
1
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shuffledp import _log
from shuffledp._files import atomic_file
from shuffledp.errors import LogCorruptError

Keys = npt.NDArray[np.uint64]
Ids = npt.NDArray[np.uint8]

ID_BYTES = 16
_VERSION = 1
_LOG = "memory.jsonl"
_PIECE = 1 << 20  # bytes hashed at once


@dataclass(frozen=True)
class Memory:
    """The memory of a shuffler, for this process alone while it is open.

    ``name``: its own, at random. ``number``: of the next batch."""

    folder: Path
    name: str
    number: int
    _multipliers: tuple[int, int]
    _log: _log.OpenLog
    _batches: tuple[str, ...]

    @property
    def head(self) -> str:
        """The hash of the last line."""
        return self._log.records[-1].hash

    @property
    def heads(self) -> tuple[str, ...]:
        """The hash of every line."""
        return tuple(record.hash for record in self._log.records)

    def keys(self, ids: Ids) -> Keys:
        """The keyed hashes of IDs, rows of bytes: of equal ones equal."""
        first, last = np.ascontiguousarray(ids).view("<u8").T
        with np.errstate(over="ignore"):
            mixed = first * np.uint64(self._multipliers[0])
            mixed ^= mixed >> np.uint64(29)
            mixed += last
            mixed *= np.uint64(self._multipliers[1])
            return np.asarray(mixed ^ (mixed >> np.uint64(32)), dtype=np.uint64)

    def known(self, keys: Keys) -> npt.NDArray[np.bool_]:
        """Which of these were used before."""
        found = np.zeros(len(keys), dtype=np.bool_)
        for batch in self._batches:
            used = np.memmap(self._ids(batch), dtype="<u8", mode="r")
            found |= used[np.minimum(np.searchsorted(used, keys), len(used) - 1)] == keys
        return found

    def remember(self, batch: str, plan: str, pieces: Iterator[Keys], partial: Path) -> None:
        """Record the sorted keys of a batch that is whole at ``partial`` and has no name yet."""
        digest, n = sha256(), 0
        with atomic_file(self._ids(batch), private=True) as path, path.open("wb") as file:
            for piece in pieces:
                data = np.ascontiguousarray(piece, dtype="<u8").tobytes()
                file.write(data)
                digest.update(data)
                n += len(piece)
        content = {"batch": batch, "number": self.number, "plan": plan, "reports": n}
        self._log.append(content | {"ids": digest.hexdigest(), "partial": str(partial.absolute())})

    def withdraw(self, batch: str) -> None:
        """A batch that never got its name: its reports may be used again."""
        self._log.append({"withdrawn": batch})

    def _ids(self, batch: str) -> Path:
        return self.folder / f"{batch}.ids"


@contextmanager
def opened(folder: Path) -> Iterator[Memory]:
    """The memory in a folder that exists, made where the folder is empty, checked and settled."""
    if not folder.is_dir():
        raise FileNotFoundError(
            f"used must name an existing folder (an empty one for a new memory), got {str(folder)!r}"
        )
    path = folder / _LOG
    if not any(folder.iterdir()):
        pair = [secrets.randbits(64) | 1 for _ in range(2)]
        first: dict[str, Any] = {"memory": _VERSION, "name": secrets.token_hex(16), "multipliers": pair}
        _log.create(path, first)
    if not path.is_file():
        raise LogCorruptError(f"{folder} is no memory of a shuffler: it is not empty and has no {_LOG}")
    with _log.locked(path, write=True) as log:
        yield _checked(folder, log)


def _checked(folder: Path, log: _log.OpenLog) -> Memory:
    first = log.records[0].content if log.records else {}
    if first.get("memory") != _VERSION:
        raise LogCorruptError(f"{folder / _LOG}: not a shuffler's memory of version {_VERSION}")
    lines = [record.content for record in log.records[1:]]
    withdrawn = {line["withdrawn"] for line in lines if "withdrawn" in line}
    batches = [line for line in lines if "batch" in line and line["batch"] not in withdrawn]
    if batches and _never_named(Path(batches[-1]["partial"])):
        log.append({"withdrawn": batches.pop()["batch"]})
    for line in batches:
        file = folder / f"{line['batch']}.ids"
        if not file.is_file() or file.stat().st_size != 8 * line["reports"] or _digest(file) != line["ids"]:
            raise LogCorruptError(f"{file} is not what was written there; restore the folder")
    names = tuple(line["batch"] for line in batches)
    number = 1 + sum("batch" in line for line in lines)
    one, two = first["multipliers"]
    return Memory(folder, first["name"], number, (one, two), log, names)


def _never_named(partial: Path) -> bool:
    """Whether a crash left a batch without its name; what is left of it is removed either way."""
    try:
        links = partial.stat().st_nlink
        partial.unlink()
    except FileNotFoundError:
        return False  # it has its name, or somebody removed it: then it may have been seen
    return links == 1


def _digest(file: Path) -> str:
    digest = sha256()
    with file.open("rb") as data:
        while piece := data.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()
