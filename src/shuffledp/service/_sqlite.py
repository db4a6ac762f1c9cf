"""The embedded store: one file, nothing to install.

Write-ahead log with ``synchronous = FULL``: a commit is on the disk when it returns. Deleted rows are
overwritten (``secure_delete``), and the log is emptied after a release. Rows are kept by id, which is
random: neither the file's order nor a row number tells who came when.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from shuffledp.service.keys import private_folder
from shuffledp.service.store import Report, Store, Transaction

_WAIT = 60.0  # seconds for another process, say a release


class SqliteStore(Store):
    """Sealed reports in a file."""

    BEGIN = BEGIN_RELEASE = "BEGIN IMMEDIATE"
    SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (version INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS tasks (key INTEGER PRIMARY KEY, signed TEXT NOT NULL, minimum INTEGER NOT NULL,
  spread INTEGER NOT NULL, held INTEGER NOT NULL, batches INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS ids (task INTEGER, id BLOB, PRIMARY KEY (task, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pending (task INTEGER, id BLOB, sealed BLOB NOT NULL,
  PRIMARY KEY (task, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batches (task INTEGER, number INTEGER, name TEXT NOT NULL, n INTEGER NOT NULL,
  waiting INTEGER NOT NULL, PRIMARY KEY (task, number));
CREATE TABLE IF NOT EXISTS parts (task INTEGER, number INTEGER, part INTEGER, content BLOB NOT NULL,
  PRIMARY KEY (task, number, part))"""

    def __init__(self, path: Path) -> None:
        self.path = path
        private_folder(path.parent)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        path.chmod(0o600)
        super().__init__()

    def _connect(self) -> sqlite3.Connection:
        made = sqlite3.connect(self.path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
        for setting in (
            "journal_mode = WAL",
            "synchronous = FULL",
            "secure_delete = ON",
            "cache_size = -16384",
        ):
            made.execute(f"PRAGMA {setting}")
        return made

    def streamed(self, connection: Any, text: str, values: Sequence[Any], rows: int) -> Iterable[list[Any]]:
        cursor = connection.execute(text, values)
        return iter(lambda: cursor.fetchmany(rows), [])

    def _insert(self, t: Transaction, reports: Sequence[Report]) -> set[tuple[int, bytes]]:
        new = set()
        for task, name, sealed in reports:
            if t.run("INSERT OR IGNORE INTO ids VALUES (?, ?)", task, name).rowcount:
                new.add((task, name))
                t.run("INSERT INTO pending VALUES (?, ?, ?)", task, name, sealed)
        return new

    def forget(self) -> None:
        """Empty the write-ahead log, which has copies of what was deleted."""
        with closing(self._connect()) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
