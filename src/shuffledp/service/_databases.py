"""The two stores: SQLite, embedded, and PostgreSQL.

SQLite is one file, with nothing to install. Write-ahead log with ``synchronous = FULL``: a commit is on the
disk when it returns. Deleted rows are overwritten (``secure_delete``), and the log is emptied after a
release. Rows are kept by id, which is random: neither the file's order nor a row number tells who came when.

PostgreSQL is for several ingest processes on several hosts. Groups are inserted in the order of their ids, so
that processes which take the same reports wait for each other and do not block each other. A release sees one
snapshot (``REPEATABLE READ``) and locks its task.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

from shuffledp._lazy import needed
from shuffledp.service.keys import private_folder
from shuffledp.service.sealing import ID_BYTES
from shuffledp.service.store import Report, Store, Transaction

_WAIT = 60.0  # seconds for another process, say a release
_EACH = "WITH RECURSIVE each(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM each WHERE i + 1 < ?2) "
_ID = f"substr(?3, {ID_BYTES} * i + 1, {ID_BYTES})"
_KNOWN = f"{_EACH}SELECT id FROM each JOIN ids ON task = ?1 AND id = {_ID}"
_NEW_IDS = f"{_EACH}INSERT INTO ids SELECT ?1, {_ID} FROM each"
_NEW_PENDING = f"{_EACH}INSERT INTO pending SELECT ?1, {_ID}, substr(?5, ?4 * i + 1, ?4) FROM each"
"""?1 task, ?2 how many, ?3 their ids, ?4 the width of a seal, ?5 the seals."""


class SqliteStore(Store):
    """Sealed reports in a file."""

    BEGIN = BEGIN_RELEASE = "BEGIN IMMEDIATE"
    WORDS: ClassVar = {"WHOLE": "INTEGER", "BYTES": "BLOB", "BY_KEY": "WITHOUT ROWID"}

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
        """A few statements for all: each takes its rows from one value, and lets other threads run."""
        new = set[tuple[int, bytes]]()
        for (task, width), group in groupby(reports, lambda one: (one.task, len(one.sealed))):
            given = list(group)
            names = [one.id for one in given]
            known = {row[0] for row in t.run(_KNOWN, task, len(names), b"".join(names)).fetchall()}
            fresh = [one for one in given if one.id not in known] if known else given
            if fresh:
                names = [one.id for one in fresh]
                seals = b"".join([one.sealed for one in fresh])
                t.run(_NEW_IDS, task, len(names), b"".join(names))
                t.run(_NEW_PENDING, task, len(names), b"".join(names), width, seals)
                new.update((task, name) for name in names)
        return new

    def forget(self) -> None:
        """Empty the write-ahead log, which has copies of what was deleted."""
        with closing(self._connect()) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


_LOCK = 0x5D9  # advisory: two processes that start at once make the tables one after the other


class PostgresStore(Store):
    """Sealed reports in a database."""

    BEGIN_RELEASE = "BEGIN ISOLATION LEVEL REPEATABLE READ"
    LOCK = " FOR UPDATE"
    WORDS: ClassVar = {"WHOLE": "BIGINT", "BYTES": "BYTEA", "BY_KEY": ""}

    def __init__(self, address: str) -> None:
        self.address = address
        super().__init__()

    def _create(self, t: Transaction) -> None:
        t.run("SELECT pg_advisory_xact_lock(?)", _LOCK)
        if t.value("SELECT to_regclass('parts')") is None:
            super()._create(t)

    def _connect(self) -> Any:
        return needed("psycopg", extra="postgres").connect(self.address, autocommit=True)

    @staticmethod
    def text(statement: str) -> str:
        return statement.replace("?", "%s")

    def streamed(self, connection: Any, text: str, values: Sequence[Any], rows: int) -> Iterable[list[Any]]:
        with connection.cursor(name="pending", binary=True) as cursor:
            cursor.execute(text, values)
            yield from iter(lambda: cursor.fetchmany(rows), [])

    def _insert(self, t: Transaction, reports: Sequence[Report]) -> set[tuple[int, bytes]]:
        columns = [list(column) for column in zip(*reports, strict=True)] or [[], [], []]
        rows = t.run(
            "WITH new AS (INSERT INTO ids SELECT * FROM unnest(?::bigint[], ?::bytea[]) "
            "ON CONFLICT DO NOTHING RETURNING task, id) "
            "INSERT INTO pending SELECT task, id, sealed FROM unnest(?::bigint[], ?::bytea[], ?::bytea[]) "
            "AS given (task, id, sealed) JOIN new USING (task, id) RETURNING task, id",
            *columns[:2],
            *columns,
        )
        return {(int(task), bytes(name)) for task, name in rows.fetchall()}

    def forget(self) -> None:
        """Give the room of deleted rows back to the system."""
        with closing(self._connect()) as connection:
            for table in ("pending", "parts"):
                connection.execute(f"VACUUM {table}")
