"""Keys in files that only their owner reads (0600, in folders 0700).

The analyst has one file: the key that opens reports, and the key that signs tasks. The shuffler has a
folder: its identity, which tasks name, and keys of the day, which change without a new task:

    rotate    a new key; clients get it from now on, the old ones still open what is under way
    retire    the old ones are deleted: what was sealed to them opens no more, for nobody
"""

from __future__ import annotations

import hmac
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from shuffledp._files import atomic_file
from shuffledp._lazy import needed
from shuffledp.service.documents import Signed, key_document
from shuffledp.service.sealing import key_id

_ANALYST = "shuffledp analyst key"
_IDENTITY, _SUFFIX = "identity.key", ".key"


@dataclass(frozen=True)
class AnalystKey:
    """Opens reports (X25519) and signs tasks (Ed25519)."""

    opens: Any
    signs: Any

    @classmethod
    def new(cls, path: str | os.PathLike[str]) -> Self:
        """A new key in a new file."""
        made = cls(_x25519().generate(), _ed25519().generate())
        entries = {"format": _ANALYST, "opens": _raw(made.opens).hex(), "signs": _raw(made.signs).hex()}
        write_private(Path(path), (json.dumps(entries, indent=2) + "\n").encode())
        return made

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """The key of a file."""
        try:
            entries = json.loads(Path(path).read_text(encoding="utf-8"))
            if entries["format"] != _ANALYST:
                raise ValueError
            opens, signs = (bytes.fromhex(entries[name]) for name in ("opens", "signs"))
            return cls(_x25519().from_private_bytes(opens), _ed25519().from_private_bytes(signs))
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"{os.fspath(path)!r} is no analyst's key") from None

    @property
    def public(self) -> bytes:
        """What reports are sealed to."""
        return bytes(self.opens.public_key().public_bytes_raw())

    @property
    def signer(self) -> bytes:
        """What clients pin."""
        return bytes(self.signs.public_key().public_bytes_raw())


@dataclass(frozen=True, eq=False)
class KeyRing:
    """The shuffler's keys in a folder: ``private`` by name, the newest one last."""

    folder: Path
    identity: Any
    private: dict[bytes, Any]

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Self:
        """The keys of a folder; an identity and a first key are made where there are none."""
        where = Path(folder)
        private_folder(where)
        if not (where / _IDENTITY).exists():
            _new_file(where / _IDENTITY, _raw(_ed25519().generate()))
        files = sorted(where.glob(f"[0-9]*{_SUFFIX}"))
        if not files:
            _new_file(where / f"{1:06}{_SUFFIX}", _raw(_x25519().generate()))
            files = sorted(where.glob(f"[0-9]*{_SUFFIX}"))
        keys = [_x25519().from_private_bytes(_read(file)) for file in files]
        named = {key_id(key.public_key().public_bytes_raw()): key for key in keys}
        return cls(where, _ed25519().from_private_bytes(_read(where / _IDENTITY)), named)

    @property
    def public(self) -> bytes:
        """The identity that tasks name."""
        return bytes(self.identity.public_key().public_bytes_raw())

    @cached_property
    def document(self) -> Signed:
        """The newest key, signed."""
        return key_document(self.identity, list(self.private.values())[-1].public_key().public_bytes_raw())

    def at_rest(self, task: bytes) -> bytes:
        """For what waits in the store, of the task with this id: never in the store itself."""
        return hmac.digest(_raw(self.identity), b"shuffledp 1 at rest\0" + task, "sha256")

    def rotated(self) -> KeyRing:
        """With a new key, after the others."""
        last = max(int(file.stem) for file in self.folder.glob(f"[0-9]*{_SUFFIX}"))
        _new_file(self.folder / f"{last + 1:06}{_SUFFIX}", _raw(_x25519().generate()))
        return KeyRing.open(self.folder)

    def retired(self) -> KeyRing:
        """With the newest key alone."""
        for file in sorted(self.folder.glob(f"[0-9]*{_SUFFIX}"))[:-1]:
            file.unlink()
        return KeyRing.open(self.folder)


def private_folder(path: Path) -> None:
    """A folder that only its owner reads; one that is there is closed to others."""
    if not path.parent.exists():
        private_folder(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)
    path.chmod(0o700)


def write_private(path: Path, data: bytes) -> None:
    """A new file that only its owner reads."""
    with atomic_file(path, private=True) as partial:
        partial.write_bytes(data)


def _new_file(path: Path, raw: bytes) -> None:
    """Made by whoever comes first: of two processes that start at once, both read what one wrote."""
    with suppress(FileExistsError):
        write_private(path, raw.hex().encode() + b"\n")


def _read(path: Path) -> bytes:
    return bytes.fromhex(path.read_text(encoding="ascii"))


def _raw(private: Any) -> bytes:
    return bytes(private.private_bytes_raw())


def _x25519() -> Any:
    return needed("cryptography.hazmat.primitives.asymmetric.x25519", extra="service").X25519PrivateKey


def _ed25519() -> Any:
    return needed("cryptography.hazmat.primitives.asymmetric.ed25519", extra="service").Ed25519PrivateKey
