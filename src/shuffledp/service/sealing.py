"""Two seals around every report, at one size per task (HPKE, RFC 9180: X25519, HKDF-SHA256, AES-128-GCM).

    inner = seal to the analyst (report)
    body  = version, key, seal to the shuffler (id, inner)       what travels, and nothing else does

Where a plan has several messages a person, each has an inner seal of its own, and one body holds them all:
they arrive together or not at all, under one id, and the shuffler tears them apart when it mixes.

Both seals are bound to the task's id: a body, or an inner seal, of another task does not open. The
``id`` is 16 random bytes of the client: resent bodies are recognised by it, and nobody on the way sees it.

>>> from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
>>> analyst, shuffler, task = X25519PrivateKey.generate(), X25519PrivateKey.generate(), bytes(32)
>>> key = PublicKey(bytes(8), shuffler.public_key().public_bytes_raw())
>>> body = seal(b"hi", task, analyst.public_key().public_bytes_raw(), key, new_id())
>>> len(body) == body_size(2)
True
>>> name, inner = open_outer(body, task, {bytes(8): shuffler})
>>> open_inner(inner, task, analyst)
b'hi'
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from typing import Any, NamedTuple

from shuffledp._lazy import needed
from shuffledp.errors import SealError, UnknownKeyError

VERSION = 1
ID_BYTES = 16
KEY_ID_BYTES = 8
_SEAL = 32 + 16  # an X25519 key in front, a tag behind
_TO_SHUFFLER, _TO_ANALYST = b"shuffledp 1 to the shuffler\0", b"shuffledp 1 to the analyst\0"


class PublicKey(NamedTuple):
    """The shuffler's key of the day: its name, and 32 bytes."""

    id: bytes
    raw: bytes


def inner_size(report_bytes: int) -> int:
    """The width of a report that is sealed to the analyst."""
    return report_bytes + _SEAL


def body_size(report_bytes: int, messages: int = 1) -> int:
    """The width of what one person submits."""
    return 1 + KEY_ID_BYTES + _SEAL + ID_BYTES + messages * inner_size(report_bytes)


def new_id() -> bytes:
    """The random name of a report."""
    return secrets.token_bytes(ID_BYTES)


def key_id(raw: bytes) -> bytes:
    """The name of a public key: the beginning of its hash."""
    return sha256(raw).digest()[:KEY_ID_BYTES]


def seal(
    report: bytes | Sequence[bytes], task: bytes, analyst: bytes, shuffler: PublicKey, name: bytes
) -> bytes:
    """What a client submits: a report, or all messages of a person; a resent one keeps its id, ``name``."""
    messages = [report] if isinstance(report, bytes) else report
    inner = b"".join(_suite().encrypt(one, _public(analyst), _TO_ANALYST + task) for one in messages)
    outer = _suite().encrypt(name + inner, _public(shuffler.raw), _TO_SHUFFLER + task)
    return bytes([VERSION]) + shuffler.id + bytes(outer)


def open_outer(body: bytes, task: bytes, keys: Mapping[bytes, Any]) -> tuple[bytes, bytes]:
    """(id, inner seals) of a body; ``keys`` are the shuffler's private ones by name."""
    if len(body) <= 1 + KEY_ID_BYTES or body[0] != VERSION:
        raise SealError("not a report of this version")
    private = keys.get(body[1 : 1 + KEY_ID_BYTES])
    if private is None:
        raise UnknownKeyError("sealed to a key that is not in use")
    opened = _opened(body[1 + KEY_ID_BYTES :], private, _TO_SHUFFLER + task)
    if len(opened) <= ID_BYTES:
        raise SealError("no report inside")
    return opened[:ID_BYTES], opened[ID_BYTES:]


def open_inner(inner: bytes, task: bytes, private: Any) -> bytes:
    """The report that was sealed to the analyst."""
    return _opened(inner, private, _TO_ANALYST + task)


def at_rest(inner: bytes, name: bytes, key: bytes) -> bytes:
    """Inner seals of one person as the store has them, and back: AES-128-CTR, with a key for every id."""
    ciphers = needed("cryptography.hazmat.primitives.ciphers", extra="service")
    alone = hmac.digest(key, name, "sha256")[:16]
    cipher = ciphers.Cipher(ciphers.algorithms.AES(alone), ciphers.modes.CTR(bytes(16)))
    return bytes(cipher.encryptor().update(inner))


def _opened(sealed: bytes, private: Any, info: bytes) -> bytes:
    try:
        return bytes(_suite().decrypt(sealed, private, info))
    except (needed("cryptography.exceptions", extra="service").InvalidTag, ValueError):
        raise SealError("sealed to another key or for another task, or changed") from None


@cache
def _suite() -> Any:
    hpke = needed("cryptography.hazmat.primitives.hpke", extra="service")
    return hpke.Suite(hpke.KEM.X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_128_GCM)


@cache
def _public(raw: bytes) -> Any:
    return needed(
        "cryptography.hazmat.primitives.asymmetric.x25519", extra="service"
    ).X25519PublicKey.from_public_bytes(raw)
