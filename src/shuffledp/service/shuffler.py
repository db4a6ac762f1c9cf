"""The shuffler: takes sealed reports, waits for enough, mixes, forgets.

A folder holds all that is its own: ``keys``, ``released`` (the journal), ``batches`` (what the analyst
fetches) and, unless another store is named, ``store.sqlite``.

A batch has at least ``minimum`` reports, which is the shuffler's own number and not below the plan's n. With
a ``spread``, a secret number in [0, spread] is drawn for every batch: so many more reports are waited for,
and so many, chosen at random, are kept back for the next one. Then the size of a batch does not tell
how many reports had come.

Of a plan with several messages a person, one row of the store holds all messages of a person, encrypted
under a key that is not in the store: they count, wait and are kept back together. When a batch is mixed, the
messages of all people in it are torn apart and permuted together.
"""

from __future__ import annotations

import json
import math
import secrets
import threading
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from shuffledp import _validate
from shuffledp._randomness.words import source
from shuffledp.collecting._accounted import certified_epsilon
from shuffledp.collecting.plan import short_fingerprint
from shuffledp.errors import PlanError, SealError, TooFewReportsError, UnknownKeyError
from shuffledp.service._journal import Journal
from shuffledp.service.documents import Signed, Task
from shuffledp.service.keys import KeyRing, private_folder
from shuffledp.service.sealing import at_rest, body_size, inner_size, open_outer
from shuffledp.service.store import Bytes, Report, Store, StoredTask, open_store
from shuffledp.shuffling.permutation import permuted
from shuffledp.shuffling.report_files import Header, create_reports

_REREAD = 1.0  # seconds, at least, between two looks at keys and tasks
_MOST_SPREAD = 2**20


@dataclass(frozen=True)
class Collection:
    """A task that is being collected."""

    task: Task
    stored: StoredTask

    @classmethod
    def of(cls, stored: StoredTask) -> Collection:
        signed = Signed.from_dict(json.loads(stored.signed))
        return cls(Task.checked(signed, signer=signed.signer), stored)  # certified when it was created

    @property
    def key(self) -> int:
        return self.stored.key

    @property
    def messages(self) -> int:
        """Of each person."""
        return self.task.protocol.messages

    @cached_property
    def width(self) -> int:
        """Of a message that is sealed to the analyst."""
        return inner_size(self.task.report_bytes)

    @cached_property
    def body_bytes(self) -> int:
        """The one size of what is submitted."""
        return body_size(self.task.report_bytes, self.messages)

    @cached_property
    def epsilon(self) -> float:
        """What the plan is certified for."""
        return certified_epsilon(self.task.protocol.mechanism(), self.task.protocol.delta)


def key_of(task: Task) -> int:
    """The number of a task in the store: the beginning of its fingerprint."""
    return int.from_bytes(task.id[:8]) >> 1


class Shuffler:
    """The tasks, keys and reports of a folder."""

    def __init__(self, folder: str | Path, store: str | None = None) -> None:
        self.folder = Path(folder)
        private_folder(self.folder)
        self.store: Store = open_store(store or f"sqlite:{self.folder / 'store.sqlite'}")
        self.keys = KeyRing.open(self.folder / "keys")
        self.collections: dict[str, Collection] = {}
        self._looked = self._looked_for_keys = -math.inf
        self._lock = threading.Lock()
        self.refresh()

    def refresh(self) -> None:
        """Read tasks and keys again, at most once in a second."""
        with self._lock:
            if time.monotonic() - self._looked < _REREAD:
                return
            known = {collection.key: collection for collection in self.collections.values()}
            found = [
                Collection(known[row.key].task, row) if row.key in known else Collection.of(row)
                for row in self.store.tasks()
            ]
            self.collections = {collection.task.name: collection for collection in found}
            self.keys = KeyRing.open(self.folder / "keys")
            self._looked = time.monotonic()

    def refresh_keys(self) -> None:
        """Read the keys again, at most once in a second: no store is waited for."""
        if time.monotonic() - self._looked_for_keys >= _REREAD:
            self._looked_for_keys = time.monotonic()
            self.keys = KeyRing.open(self.folder / "keys")

    def create(self, signed: Signed, *, minimum: int | None = None, spread: int = 0) -> Collection:
        """Collect for a task that was signed for this shuffler."""
        task = Task.checked(signed)
        if task.shuffler != self.keys.public:
            raise PlanError(
                f"the task is for the shuffler {task.shuffler.hex()}, this is {self.keys.public.hex()}"
            )
        planned = task.protocol.n
        least = _validate.count("minimum", planned if minimum is None else minimum, least=planned)
        more = _validate.count("spread", spread, least=0, most=_MOST_SPREAD)
        if task.name in self.collections:
            raise ValueError(f"name must be new, got {task.name!r}")
        journal = self.journal(key_of(task))
        with journal.locked():
            if journal.closed:
                raise ValueError("the task was deleted here: its reports could come again; sign a new one")
            text = json.dumps(signed.to_dict())
            self.store.add_task(StoredTask(key_of(task), text, least, more, secrets.randbelow(more + 1), 0))
        self._looked = -math.inf
        self.refresh()
        return self.collections[task.name]

    def collection(self, name: str) -> Collection:
        """A task by its name."""
        if name not in self.collections:
            self.refresh()
        if name not in self.collections:
            raise ValueError(f"name must be one of {sorted(self.collections)}, got {name!r}")
        return self.collections[name]

    def opened(self, collection: Collection, body: bytes) -> Report:
        """What is kept of a submitted body. SealError where it is not a report of the task."""
        if len(body) != collection.body_bytes:
            raise SealError("not of the task's size")
        try:
            name, inner = open_outer(body, collection.task.id, self.keys.private)
        except UnknownKeyError:
            self.refresh_keys()  # it may be newer than this process
            name, inner = open_outer(body, collection.task.id, self.keys.private)
        if collection.messages > 1:
            inner = at_rest(inner, name, self.keys.at_rest(collection.task.id))
        return Report(collection.key, name, inner)  # a body of the task's size has an inner part of its size

    def reconcile(self) -> None:
        """After a start: finish what a crash left, and tell a restored store what was released."""
        for collection in self.collections.values():
            journal = self.journal(collection.key)
            with journal.locked():
                journal.reconcile(self.store)
                self._export(collection)

    def release(self, name: str) -> Path:
        """Mix all that waits into a new file. TooFewReportsError below the threshold."""
        path = self.release_if_ready(name)
        if path is None:
            raise TooFewReportsError(
                f"a batch of {name!r} has at least {self.collection(name).stored.minimum} reports "
                f"(and some more, at random, if it has a spread); {self.pending(name)} wait"
            )
        return path

    def release_if_ready(self, name: str) -> Path | None:
        """The file of the next batch, or None where too few reports wait."""
        collection = self.collection(name)
        journal = self.journal(collection.key)
        with journal.locked():
            journal.reconcile(self.store)
            number = self._mix(collection, journal)
            if number is not None:
                journal.confirm(number)
            exported = self._export(collection)
        return exported.get(number) if number is not None else None

    def _mix(self, collection: Collection, journal: Journal) -> int | None:
        """One transaction: the batch, and the end of what went into it."""
        with self.store.releasing() as t:
            stored = t.task(collection.key)
            waiting = t.pending(collection.key)
            if stored is None or waiting < stored.minimum + stored.held:
                return None
            ids, seals = t.reports(collection.key, waiting, collection.messages * collection.width)
            order = permuted(np.arange(waiting), source())
            out, held = np.split(order, [waiting - stored.held])
            name, number = secrets.token_hex(16), stored.batches + 1
            journal.intend(number, name, ids[out][np.lexsort(ids[out].T[::-1])])
            more = secrets.randbelow(stored.spread + 1)
            mixed = self._torn_apart(collection, ids[out], seals[out])
            t.write_batch(stored, name, len(out), mixed, (ids[held], seals[held]), more)
        return number

    def _torn_apart(self, collection: Collection, ids: Bytes, seals: Bytes) -> Bytes:
        """The messages of all people in one random order; of one message each, what is mixed already."""
        if collection.messages == 1:
            return seals
        key = self.keys.at_rest(collection.task.id)
        for name, row in zip(ids, seals, strict=True):
            row[:] = np.frombuffer(at_rest(row.tobytes(), name.tobytes(), key), np.uint8)
        return permuted(seals.reshape(-1, collection.width), source())

    def _export(self, collection: Collection) -> dict[int, Path]:
        """Batches that wait for it become files; the names of these."""
        written = {}
        for batch in self.store.batches(collection.key):
            if not batch.waiting:
                continue
            private_folder(self.folder / "batches")
            task = collection.task
            path = self.folder / "batches" / f"{task.name}-{batch.number}-{batch.name[:8]}.parquet"
            width = collection.width
            sealed = {"protocol": "sealed", "task": task.signed.to_dict()}
            header = Header("sealed", sealed, np.dtype(np.uint8), (width,), batch.name)
            if not path.exists():  # else a crash came between the file and this line
                with create_reports(path, header) as writer:
                    for part in self.store.parts(collection.key, batch.number):
                        writer.write(np.frombuffer(part, np.uint8).reshape(-1, width))
            path.chmod(0o600)
            self.store.exported(collection.key, batch.number)
            written[batch.number] = path
        return written

    def pending(self, name: str) -> int:
        """How many people's reports wait."""
        return self.store.pending(self.collection(name).key)

    def status(self, name: str) -> dict[str, Any]:
        """For the shuffler's own eyes: the exact count."""
        collection = self.collection(name)
        protocol, stored = collection.task.protocol, collection.stored
        return {
            "name": name,
            "fingerprint": short_fingerprint(protocol),
            "protocol": protocol.name,
            "n": protocol.n,
            "messages": protocol.messages,
            "minimum": stored.minimum,
            "spread": stored.spread,
            "pending": self.pending(name),
            "batches": [batch.n for batch in self.store.batches(collection.key)],
            "epsilon": collection.epsilon,
            "delta": protocol.delta,
            "epsilon0": protocol.randomizer.facts().epsilon0.upper,
        }

    def delete(self, name: str) -> None:
        """Forget a task and all that waits; what was released stays where it is."""
        collection = self.collection(name)
        journal = self.journal(collection.key)
        with journal.locked():
            journal.close()
            self.store.delete_task(collection.key)
        self._looked = -math.inf
        self.refresh()

    def journal(self, key: int) -> Journal:
        return Journal(self.folder / "released", key)

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
