"""What was released, outside of the store: a store that is restored from a backup is told of it.

One file per batch: its name and the ids of its reports. It is written before the transaction that releases
the batch, as ``.intent``, and renamed after it; only then does the batch leave the shuffler. So after a
crash, or in front of an older store,

    .intent, and the store has the batch       the crash came after the transaction: rename
    .intent, and the store has it not          nothing was released: delete
    .ids, and the store has the batch not      the store is older than the release: mark the ids as used
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shuffledp._files import atomic_file, force_to_disk
from shuffledp.errors import LostJournalError
from shuffledp.service.keys import private_folder, write_private
from shuffledp.service.sealing import ID_BYTES
from shuffledp.service.store import Bytes, Store

NAME_BYTES = 16


class Journal:
    """The releases of one task in a folder."""

    def __init__(self, folder: Path, key: int) -> None:
        self.folder, self.key = folder / f"{key:016x}", key

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One process at a time."""
        private_folder(self.folder)
        descriptor = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def intend(self, number: int, name: str, ids: Bytes) -> None:
        """Before the transaction."""
        write_private(self._file(number, "intent"), bytes.fromhex(name) + ids.tobytes())

    def confirm(self, number: int) -> None:
        """After it."""
        os.replace(self._file(number, "intent"), self._file(number, "ids"))
        force_to_disk(self.folder)

    def reconcile(self, store: Store) -> None:
        """Make journal and store agree (see module)."""
        known = {batch.number: batch.name for batch in store.batches(self.key)}
        for file in sorted(self.folder.glob("*.intent")):
            if known.get(int(file.stem)) == _name_in(file):
                self.confirm(int(file.stem))
            else:
                file.unlink()
        own = {int(file.stem): file for file in sorted(self.folder.glob("*.ids"))}
        for number in sorted(known):
            if number not in own:
                raise LostJournalError(
                    f"batch {number} was released elsewhere: release where its journal is, or copy "
                    f"{self.folder.name} from there to {str(self.folder.parent)!r}"
                )
        for number, file in own.items():
            if number not in known:
                store.mark_released(self.key, number, _name_in(file), _ids_in(file))
            elif known[number] != _name_in(file):
                raise LostJournalError(f"batch {number} of the store is not the one in {str(file)!r}")

    @property
    def closed(self) -> bool:
        """Whether the task was deleted: its reports must not be taken again."""
        return (self.folder / "deleted").exists()

    def close(self) -> None:
        """The task was deleted."""
        for file in self.folder.glob("*.ids"):
            file.unlink()
        with atomic_file(self.folder / "deleted", replace=True) as partial:
            partial.touch(0o600)

    def _file(self, number: int, suffix: str) -> Path:
        return self.folder / f"{number:06}.{suffix}"


def _name_in(file: Path) -> str:
    with file.open("rb") as opened:
        return opened.read(NAME_BYTES).hex()


def _ids_in(file: Path) -> list[bytes]:
    data = file.read_bytes()
    return [data[start : start + ID_BYTES] for start in range(NAME_BYTES, len(data), ID_BYTES)]
