"""Where sealed reports wait: the same tables and promises on SQLite (embedded) and PostgreSQL.

    tasks     signed document, the shuffler's own threshold, how many batches were released
    ids       every report id that was ever taken, unique per task: what came once never comes again
    pending   sealed reports, by their random id: the order of arrival is not kept
    batches   released ones, and
    parts     their mixed reports until they are in a file

A report's id and its seal are written in one transaction, and so are a batch and the deletion of what went
into it. There are no times, no addresses and no counters per client in here.

    store = open_store("sqlite:shuffler/store.sqlite")        or postgresql://...
"""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from shuffledp.service.sealing import ID_BYTES

Bytes = npt.NDArray[np.uint8]
"""Rows of bytes."""

SCHEMA_VERSION = 1
PART_ROWS = 1 << 16  # of a batch in one value: a few megabytes
_ROWS = 1 << 13  # read at once


class Report(NamedTuple):
    """A sealed report of a task."""

    task: int
    id: bytes
    sealed: bytes


class StoredTask(NamedTuple):
    """A task as the shuffler keeps it.

    ``minimum`` is the least number of reports in a batch, ``spread`` and ``held`` how many more are waited
    for, at random (see ``shuffler``), ``batches`` how many were released."""

    key: int
    signed: str
    minimum: int
    spread: int
    held: int
    batches: int


class Batch(NamedTuple):
    """A released batch of ``n`` people; ``waiting`` while it is not in a file."""

    number: int
    name: str
    n: int
    waiting: bool


_TASK = ", ".join(StoredTask._fields)
_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (version INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS tasks (key WHOLE PRIMARY KEY, signed TEXT NOT NULL, minimum WHOLE NOT NULL,
  spread WHOLE NOT NULL, held WHOLE NOT NULL, batches WHOLE NOT NULL);
CREATE TABLE IF NOT EXISTS ids (task WHOLE, id BYTES, PRIMARY KEY (task, id)) BY_KEY;
CREATE TABLE IF NOT EXISTS pending (task WHOLE, id BYTES, sealed BYTES NOT NULL,
  PRIMARY KEY (task, id)) BY_KEY;
CREATE TABLE IF NOT EXISTS batches (task WHOLE, number WHOLE, name TEXT NOT NULL, n WHOLE NOT NULL,
  waiting INTEGER NOT NULL, PRIMARY KEY (task, number));
CREATE TABLE IF NOT EXISTS parts (task WHOLE, number WHOLE, part INTEGER, content BYTES NOT NULL,
  PRIMARY KEY (task, number, part))"""
"""In capitals what every engine has a word of its own for: ``Store.WORDS``."""


@dataclass(frozen=True)
class Transaction:
    """Statements that take effect together; the texts have ? for values."""

    store: Store
    connection: Any

    def run(self, text: str, *values: Any) -> Any:
        """One statement; gives what can be read."""
        return self.connection.execute(self.store.text(text), values)

    def value(self, text: str, *values: Any) -> Any:
        """The first value of the first row, or None."""
        row = self.run(text, *values).fetchone()
        return None if row is None else row[0]

    def task(self, key: int) -> StoredTask | None:
        """The task, which nobody else changes before this transaction ends."""
        row = self.run(f"SELECT {_TASK} FROM tasks WHERE key = ?{self.store.LOCK}", key).fetchone()
        return None if row is None else StoredTask(*row)

    def pending(self, key: int) -> int:
        """How many reports wait."""
        return int(self.value("SELECT count(*) FROM pending WHERE task = ?", key))

    def reports(self, key: int, n: int, width: int) -> tuple[Bytes, Bytes]:
        """(ids, seals) of the n reports that wait."""
        ids, seals = np.empty((n, ID_BYTES), np.uint8), np.empty((n, width), np.uint8)
        done = 0
        text = self.store.text("SELECT id, sealed FROM pending WHERE task = ?")
        for rows in self.store.streamed(self.connection, text, (key,), _ROWS):
            end = done + len(rows)
            ids[done:end] = np.frombuffer(b"".join(bytes(row[0]) for row in rows), np.uint8).reshape(
                -1, ID_BYTES
            )
            seals[done:end] = np.frombuffer(b"".join(bytes(row[1]) for row in rows), np.uint8).reshape(
                -1, width
            )
            done = end
        if done != n:
            raise RuntimeError(f"{n} reports were counted and {done} found")
        return ids, seals

    def write_batch(
        self, task: StoredTask, name: str, n: int, mixed: Bytes, held: tuple[Bytes, Bytes], more: int
    ) -> None:
        """Release the ``mixed`` messages of ``n`` people; of what waits only ``held`` stays.

        ``more``: how many the next batch holds back."""
        number = task.batches + 1
        self.run("INSERT INTO batches VALUES (?, ?, ?, ?, ?)", task.key, number, name, n, 1)
        for part, start in enumerate(range(0, len(mixed), PART_ROWS)):
            content = mixed[start : start + PART_ROWS].tobytes()
            self.run("INSERT INTO parts VALUES (?, ?, ?, ?)", task.key, number, part, content)
        self.run("DELETE FROM pending WHERE task = ?", task.key)
        for name_, sealed in zip(*held, strict=True):
            self.run("INSERT INTO pending VALUES (?, ?, ?)", task.key, name_.tobytes(), sealed.tobytes())
        self.run("UPDATE tasks SET batches = ?, held = ? WHERE key = ?", number, more, task.key)


class Store(ABC):
    """An engine; every method is one transaction, safe to call from any thread."""

    BEGIN: ClassVar[str] = "BEGIN"
    BEGIN_RELEASE: ClassVar[str] = "BEGIN"
    LOCK: ClassVar[str] = ""
    WORDS: ClassVar[dict[str, str]]

    def __init__(self) -> None:
        self._idle: list[Any] = []
        self._lock = threading.Lock()
        with self.transaction() as t:
            self._create(t)
            found = t.value("SELECT version FROM meta")
            if found is None:
                t.run("INSERT INTO meta VALUES (?)", SCHEMA_VERSION)
            elif found != SCHEMA_VERSION:
                raise ValueError(f"the store has version {found}, this release knows {SCHEMA_VERSION}")

    def _create(self, t: Transaction) -> None:
        schema = re.sub("|".join(self.WORDS), lambda word: self.WORDS[word[0]], _SCHEMA)
        for statement in schema.strip().split(";\n"):
            t.run(statement)

    @abstractmethod
    def _connect(self) -> Any:
        """A new connection in which statements commit by themselves outside of BEGIN."""

    @abstractmethod
    def streamed(self, connection: Any, text: str, values: Sequence[Any], rows: int) -> Iterable[list[Any]]:
        """The rows of a query, some at once."""

    @abstractmethod
    def _insert(self, t: Transaction, reports: Sequence[Report]) -> set[tuple[int, bytes]]:
        """Add reports with different ids; gives those that were new."""

    @staticmethod
    def text(statement: str) -> str:
        """In the dialect of the engine."""
        return statement

    @abstractmethod
    def forget(self) -> None:
        """Do what the engine can to remove deleted rows from the disk."""

    @contextmanager
    def transaction(self, begin: str | None = None) -> Iterator[Transaction]:
        """All statements of the block, or none of them."""
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        connection = self._connect() if connection is None else connection
        try:
            connection.execute(begin or self.BEGIN)
            yield Transaction(self, connection)
            connection.execute("COMMIT")
        except BaseException:
            with suppress(Exception):
                connection.close()  # which rolls back, whatever state it is in
            raise
        with self._lock:
            self._idle.append(connection)

    def releasing(self) -> AbstractContextManager[Transaction]:
        """A transaction that sees one state of the store."""
        return self.transaction(self.BEGIN_RELEASE)

    def add(self, reports: Sequence[Report]) -> list[bool]:
        """Keep reports, all in one transaction; False for those whose id came before.

        What is not a task's (any more) is never released."""
        first = {(one.task, one.id): place for place, one in reversed(list(enumerate(reports)))}
        with self.transaction() as t:
            new = self._insert(t, [reports[place] for _, place in sorted(first.items())])
        return [
            (one.task, one.id) in new and first[one.task, one.id] == place
            for place, one in enumerate(reports)
        ]

    def add_task(self, task: StoredTask) -> None:
        """A new task; ValueError where its name or key is taken."""
        with self.transaction() as t:
            if t.value("SELECT count(*) FROM tasks WHERE key = ?", task.key):
                raise ValueError("the task is there already")
            t.run(f"INSERT INTO tasks ({_TASK}) VALUES (?, ?, ?, ?, ?, ?)", *task)

    def tasks(self) -> list[StoredTask]:
        """All of them."""
        with self.transaction("BEGIN") as t:
            return [StoredTask(*row) for row in t.run(f"SELECT {_TASK} FROM tasks ORDER BY key").fetchall()]

    def delete_task(self, key: int) -> None:
        """The task with everything that waits."""
        with self.transaction() as t:
            for table, name in (
                ("pending", "task"),
                ("parts", "task"),
                ("batches", "task"),
                ("ids", "task"),
                ("tasks", "key"),
            ):
                t.run(f"DELETE FROM {table} WHERE {name} = ?", key)
        self.forget()

    def pending(self, key: int) -> int:
        """How many reports of a task wait."""
        with self.transaction("BEGIN") as t:
            return t.pending(key)

    def batches(self, key: int) -> list[Batch]:
        """What was released."""
        with self.transaction("BEGIN") as t:
            rows = t.run("SELECT number, name, n, waiting FROM batches WHERE task = ? ORDER BY number", key)
            return [Batch(int(a), b, int(c), bool(d)) for a, b, c, d in rows.fetchall()]

    def parts(self, key: int, number: int) -> Iterator[bytes]:
        """The reports of a batch that waits, in pieces."""
        with self.transaction("BEGIN") as t:
            count = t.value("SELECT count(*) FROM parts WHERE task = ? AND number = ?", key, number)
        for part in range(count):
            with self.transaction("BEGIN") as t:
                text = "SELECT content FROM parts WHERE task = ? AND number = ? AND part = ?"
                yield bytes(t.value(text, key, number, part))

    def exported(self, key: int, number: int) -> None:
        """The batch is in a file: its reports are deleted here."""
        with self.transaction() as t:
            t.run("DELETE FROM parts WHERE task = ? AND number = ?", key, number)
            t.run("UPDATE batches SET waiting = 0 WHERE task = ? AND number = ?", key, number)
        self.forget()

    def mark_released(self, key: int, number: int, name: str, ids: Sequence[bytes]) -> None:
        """Reports that were released, of which a restored store does not know: they are never taken again."""
        with self.transaction() as t:
            for one in ids:
                t.run("INSERT INTO ids VALUES (?, ?) ON CONFLICT DO NOTHING", key, one)
                t.run("DELETE FROM pending WHERE task = ? AND id = ?", key, one)
            t.run("INSERT INTO batches VALUES (?, ?, ?, ?, ?)", key, number, name, len(ids), 0)
            t.run("UPDATE tasks SET batches = ? WHERE key = ?", number, key)

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            while self._idle:
                self._idle.pop().close()


def open_store(address: str) -> Store:
    """``sqlite:PATH``, or ``postgresql://USER@HOST/DATABASE`` (needs the package psycopg)."""
    from shuffledp.service._databases import PostgresStore, SqliteStore

    if address.startswith("sqlite:"):
        return SqliteStore(Path(address.removeprefix("sqlite:")))
    if address.startswith(("postgresql:", "postgres:")):
        return PostgresStore(address)
    raise ValueError(f"store must be sqlite:PATH or postgresql://..., got {address.split(':')[0]!r}")
