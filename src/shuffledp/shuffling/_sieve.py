"""Which reports of some files may be mixed: one look at every file, before any report goes on.

Files that cannot be read as reports of the plan are set aside whole. In the others every report is looked at:
whether the randomizer can have sent it, and whether its ID came before, in these files (then the first one
counts) or in a batch that the shuffler remembers. Keys of IDs go to parts on disk by their leading bits, so
that one part at a time is sorted in memory; the keys of all good reports come out sorted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shuffledp.errors import ReportFileError
from shuffledp.shuffling._batches import Collectable
from shuffledp.shuffling.report_files import Header, StoredReports, differences, open_reports, stored_bytes
from shuffledp.shuffling.used import ID_BYTES, Keys, Memory

_PART = 1 << 21  # keys sorted at once; memory
_SLACK = 1 << 22  # bytes of a file beside its reports and its header
_ENTRY = np.dtype([("key", "<u8"), ("place", "<u8")])

IMPOSSIBLE, AGAIN, USED = "outside the domain", "twice in these files", "of an earlier batch"


@dataclass
class Sieve:
    """What became of the files: see the module. Good files follow one another in one numbering of places."""

    protocol: Collectable
    memory: Memory
    folder: Path
    stored: list[StoredReports] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    _rejected: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    _parts: int = 1

    @classmethod
    def of(cls, protocol: Collectable, paths: list[Path], most: int, memory: Memory, folder: Path) -> Sieve:
        """Look at all files."""
        self = cls(protocol, memory, folder)
        kind = (protocol.report_dtype, protocol.report_shape)
        own = Header.new("randomized", protocol.to_dict(), *kind)
        candidates = []
        for path in paths:
            try:
                candidates.append(_opened(path, own, most))
            except (ReportFileError, OSError) as error:
                self.files[str(path)] = str(error)
        self._parts = max(1, -(-sum(file.n for file in candidates) // _PART))
        bad: list[npt.NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)]
        for file in candidates:
            impossible = self._look_at(file)
            if impossible is not None:
                bad.append(impossible)
        self._reject(np.concatenate(bad))
        return self

    @property
    def total(self) -> int:
        """Reports of the good files."""
        return sum(file.n for file in self.stored)

    @property
    def n(self) -> int:
        """Good reports."""
        return self.total - len(self._rejected)

    @property
    def simulated(self) -> bool:
        """Whether any of them is."""
        return any(file.header.simulated for file in self.stored)

    def good_reports(self) -> Iterator[npt.NDArray[Any]]:
        """The good reports of the good files, in pieces; what has changed on disk since is an error."""
        place = 0
        for file in self.stored:
            for reports in file.batches():
                first, last = np.searchsorted(self._rejected, (place, place + len(reports)))
                good = (
                    np.delete(reports, self._rejected[first:last] - place, axis=0)
                    if last > first
                    else reports
                )
                place += len(reports)
                yield good

    def used_keys(self) -> Iterator[Keys]:
        """The keys of the good reports, sorted."""
        for part in range(self._parts):
            entries = self._entries(part)
            good = ~np.isin(entries["place"], self._rejected) if len(self._rejected) else slice(None)
            yield np.sort(entries["key"][good])

    def _look_at(self, file: StoredReports) -> npt.NDArray[np.int64] | None:
        """Keys to the parts, and the places of impossible reports; None for a file that is set aside."""
        start, place = self.total, self.total
        impossible = []
        lengths = [path.stat().st_size if (path := self._part(i)).exists() else 0 for i in range(self._parts)]
        try:
            for ids, reports in file.identified():
                assert ids is not None
                self._spill(ids, place)
                impossible.append(place + np.flatnonzero(~_possible(self.protocol, reports)))
                place += len(reports)
        except ReportFileError as error:
            for part, length in enumerate(lengths):  # forget what was noted of it
                if self._part(part).exists():
                    with self._part(part).open("r+b") as entries:
                        entries.truncate(length)
            self.files[str(file.path)] = str(error)
            return None
        assert place - start == file.n
        self.stored.append(file)
        return np.concatenate(impossible) if impossible else np.zeros(0, dtype=np.int64)

    def _spill(self, ids: npt.NDArray[np.uint8], place: int) -> None:
        entries = np.empty(len(ids), dtype=_ENTRY)
        entries["key"] = self.memory.keys(ids)
        entries["place"] = np.arange(place, place + len(ids))
        part = _scaled(entries["key"], self._parts)
        for chosen in range(self._parts):
            mine = entries[part == chosen] if self._parts > 1 else entries
            if len(mine):
                with self._part(chosen).open("ab") as file:
                    file.write(mine.tobytes())

    def _reject(self, impossible: npt.NDArray[np.int64]) -> None:
        """Note which places are not good, and why."""
        found: dict[str, list[npt.NDArray[Any]]] = {IMPOSSIBLE: [impossible], AGAIN: [], USED: []}
        bad = np.zeros(0, dtype=np.int64)
        for part in range(self._parts):
            entries = self._entries(part)
            order = np.argsort(entries["key"], kind="stable")  # places are in their order already
            keys = entries["key"][order]
            again = np.zeros(len(keys), dtype=np.bool_)
            again[1:] = keys[1:] == keys[:-1]
            before = self.memory.known(keys)
            found[USED].append(entries["place"][order[before]])
            found[AGAIN].append(entries["place"][order[again & ~before]])
        for reason, places in found.items():
            fresh = np.setdiff1d(np.concatenate(places).astype(np.int64), bad)
            if len(fresh):
                self.reasons[reason] = len(fresh)
                bad = np.union1d(bad, fresh)
        self._rejected = bad

    def _entries(self, part: int) -> npt.NDArray[Any]:
        path = self._part(part)
        return np.fromfile(path, dtype=_ENTRY) if path.exists() else np.zeros(0, dtype=_ENTRY)

    def _part(self, part: int) -> Path:
        return self.folder / f"keys-{part}"


def _scaled(keys: Keys, parts: int) -> npt.NDArray[np.int64]:
    """The part of each key: larger keys, later parts."""
    return ((keys >> np.uint64(32)).astype(np.int64) * parts) >> 32


def _opened(path: Path, own: Header, most: int) -> StoredReports:
    """The file, if it may hold reports of the plan; nothing but its header is read."""
    width = ID_BYTES + stored_bytes(own.dtype, own.shape)
    if path.is_file() and path.stat().st_size > most * width + 4 * len(own.to_json()) + _SLACK:
        raise ReportFileError(f"has more bytes than {most} reports have")
    file = open_reports(path)
    if file.header.stage != "randomized":
        # Its reports have no IDs any more: nobody could tell that some come twice.
        raise ReportFileError("was shuffled already; give its inputs")
    if not own.describes(file.header):
        raise ReportFileError("is of another plan: " + differences(own.protocol, file.header.protocol))
    if not file.header.has_ids:
        raise ReportFileError(
            "is of an earlier release: without IDs nobody can tell whether reports come twice"
        )
    if file.n > most:
        raise ReportFileError(f"holds {file.n} reports; most_per_file is {most}")
    return file


def _possible(protocol: Collectable, reports: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    try:
        protocol.count(reports)
        return np.ones(len(reports), dtype=np.bool_)
    except ValueError:
        return protocol.possible(reports)
