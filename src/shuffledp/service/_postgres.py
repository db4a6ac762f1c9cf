"""PostgreSQL, for several ingest processes on several hosts.

Groups are inserted in the order of their ids, so that processes which take the same reports wait for each
other and do not block each other. A release sees one snapshot (``REPEATABLE READ``) and locks its task.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Any

from shuffledp._extras import needed
from shuffledp.service.store import Report, Store, Transaction

_LOCK = 0x5D9  # advisory: two processes that start at once make the tables one after the other


class PostgresStore(Store):
    """Sealed reports in a database."""

    BEGIN_RELEASE = "BEGIN ISOLATION LEVEL REPEATABLE READ"
    LOCK = " FOR UPDATE"
    SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (version INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS tasks (key BIGINT PRIMARY KEY, signed TEXT NOT NULL, minimum BIGINT NOT NULL,
  spread BIGINT NOT NULL, held BIGINT NOT NULL, batches BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS ids (task BIGINT, id BYTEA, PRIMARY KEY (task, id));
CREATE TABLE IF NOT EXISTS pending (task BIGINT, id BYTEA, sealed BYTEA NOT NULL, PRIMARY KEY (task, id));
CREATE TABLE IF NOT EXISTS batches (task BIGINT, number BIGINT, name TEXT NOT NULL, n BIGINT NOT NULL,
  waiting INTEGER NOT NULL, PRIMARY KEY (task, number));
CREATE TABLE IF NOT EXISTS parts (task BIGINT, number BIGINT, part INTEGER, content BYTEA NOT NULL,
  PRIMARY KEY (task, number, part))"""

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
