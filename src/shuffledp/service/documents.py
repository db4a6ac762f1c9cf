"""The task: what clients, shuffler and analyst agree on, in one signed document.

    plan       the text of the plan: what is hashed to its fingerprint (``collecting.plan``)
    sampler    the whole-number weights that a client draws with, for clients in other languages
    analyst    the key that reports are sealed to
    shuffler   the identity (Ed25519) that signs the shuffler's keys of the day, so that they can change
    nonce      random: two tasks with the same plan take no reports of each other

The signature (Ed25519) is over the *bytes* of the text: nobody has to agree how numbers are written.
Whoever reads a task checks the signer that they know beforehand, perhaps the plan's fingerprint, and that
the sampler is that of the plan. ``Task.id``, the SHA-256 of the text, is what seals are bound to.
"""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Self

from shuffledp import _json
from shuffledp._lazy import needed
from shuffledp.collecting import described_protocol, protocol_from_dict
from shuffledp.collecting.plan import check_plan, plan_text
from shuffledp.errors import PlanError
from shuffledp.randomizers._grid import GridRandomizer
from shuffledp.randomizers.kary import KaryRandomizedResponse
from shuffledp.randomizers.unary import UnaryEncoding
from shuffledp.service.sealing import PublicKey, body_size, key_id
from shuffledp.shuffling._batches import bytes_per_report

if TYPE_CHECKING:
    from shuffledp.collecting._protocol import Protocol

FORMAT, KEYS_FORMAT = "shuffledp task", "shuffledp shuffler key"
VERSION = 1
_PURPOSE = b"shuffledp task 1\0"  # a signature of something else is none of a task
_ELSEWHERE = ("histogram", "sum", "mean")  # what clients in other languages can encode
_FIELDS = {"format", "version", "name", "plan", "sampler", "report_bytes", "analyst", "shuffler", "nonce"}
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_MOST_BYTES = 1 << 16  # of what a person submits: one bit for each of half a million categories


@dataclass(frozen=True)
class Signed:
    """A text, who says so, and their signature of its bytes."""

    text: str
    signer: bytes
    signature: bytes

    @classmethod
    def by(cls, private: Any, text: str) -> Self:
        """Signed with an Ed25519 private key."""
        return cls(text, private.public_key().public_bytes_raw(), private.sign(_PURPOSE + text.encode()))

    def checked(self, signer: bytes) -> dict[str, Any]:
        """The content, if ``signer`` signed it."""
        ed25519 = needed("cryptography.hazmat.primitives.asymmetric.ed25519", extra="client")
        invalid = needed("cryptography.exceptions", extra="client").InvalidSignature
        if self.signer != signer:
            raise PlanError(f"signed by {self.signer.hex()}, expected {signer.hex()}")
        try:
            ed25519.Ed25519PublicKey.from_public_bytes(signer).verify(
                self.signature, _PURPOSE + self.text.encode()
            )
        except (invalid, ValueError):
            raise PlanError(f"the signature of {signer.hex()} does not fit the text") from None
        content = json.loads(self.text)
        if not isinstance(content, dict):
            raise PlanError("a signed text must be a JSON object")
        return content

    def to_dict(self) -> dict[str, str]:
        """For JSON."""
        return {"text": self.text, "signer": self.signer.hex(), "signature": self.signature.hex()}

    @classmethod
    def from_dict(cls, entries: Any) -> Self:
        """What ``to_dict`` wrote."""
        try:
            text, signer, signature = (entries[name] for name in ("text", "signer", "signature"))
            if not isinstance(text, str):
                raise TypeError
            return cls(text, bytes.fromhex(signer), bytes.fromhex(signature))
        except (KeyError, TypeError, ValueError):
            raise PlanError("a signed text must have text, signer and signature") from None


@dataclass(frozen=True)
class Task:
    """A signed document whose signature and content were checked."""

    signed: Signed
    content: dict[str, Any]
    protocol: Protocol

    @classmethod
    def new(cls, name: str, protocol: Protocol, *, key: Any, analyst: bytes, shuffler: bytes) -> Self:
        """A new task, signed with ``key`` (Ed25519)."""
        text = _json.canonical(
            {
                "format": FORMAT,
                "version": VERSION,
                "name": checked_name(name),
                "plan": plan_text(protocol),
                "sampler": sampler_of(protocol),
                "report_bytes": bytes_per_report(protocol.report_dtype, protocol.report_shape),
                "analyst": analyst.hex(),
                "shuffler": shuffler.hex(),
                "nonce": secrets.token_hex(16),
            }
        )
        return cls.checked(Signed.by(key, text))

    @classmethod
    def checked(cls, signed: Signed, *, signer: bytes | None = None, **plan: Any) -> Self:
        """A task that ``signer`` signed. Without a signer its plan is certified anew.

        ``plan``: fingerprint, max_epsilon0 and n, as for ``check_plan``."""
        content = signed.checked(signed.signer if signer is None else signer)
        if content.get("format") != FORMAT or content.get("version") != VERSION or set(content) != _FIELDS:
            raise PlanError(f"not a task of version {VERSION}")
        try:
            checked_name(content["name"])
            read = protocol_from_dict if signer is None else described_protocol
            task = cls(signed, content, protocol := read(json.loads(content["plan"])))
            size = bytes_per_report(protocol.report_dtype, protocol.report_shape)
            given = (content["plan"], content["sampler"], content["report_bytes"])
            fits = given == (plan_text(protocol), sampler_of(protocol), size)
            if (most := body_size(size, protocol.messages)) > _MOST_BYTES:
                raise ValueError(f"a person would send {most} bytes, more than {_MOST_BYTES}")
            keys = [len(bytes.fromhex(content[name])) for name in ("analyst", "shuffler")]
        except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
            raise PlanError(f"the plan of the task does not hold: {error}") from error
        if not fits or keys != [32, 32]:
            raise PlanError("the task's sampler, size or keys are not those of its plan")
        check_plan(protocol, **plan)
        return task

    @property
    def name(self) -> str:
        """In addresses and file names."""
        return str(self.content["name"])

    @cached_property
    def id(self) -> bytes:
        """SHA-256 of the text."""
        return sha256(self.signed.text.encode()).digest()

    @property
    def report_bytes(self) -> int:
        """The width of a report."""
        return int(self.content["report_bytes"])

    @property
    def analyst(self) -> bytes:
        """Whom reports are sealed to."""
        return bytes.fromhex(self.content["analyst"])

    @property
    def shuffler(self) -> bytes:
        """Who signs the shuffler's keys."""
        return bytes.fromhex(self.content["shuffler"])

    def shuffler_key(self, signed: Signed) -> PublicKey:
        """The key of the day that the task's shuffler signed."""
        entries = signed.checked(self.shuffler)
        try:
            raw = bytes.fromhex(entries["key"])
            if entries["format"] != KEYS_FORMAT or len(raw) != 32:
                raise ValueError
        except (KeyError, TypeError, ValueError):
            raise PlanError("not a key of a shuffler") from None
        return PublicKey(key_id(raw), raw)


def key_document(identity: Any, raw: bytes) -> Signed:
    """The shuffler's key of the day, signed with its identity."""
    return Signed.by(identity, _json.canonical({"format": KEYS_FORMAT, "version": VERSION, "key": raw.hex()}))


def checked_name(name: Any) -> str:
    """A task's name: small letters, digits, dashes."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"name must be up to 63 small letters, digits and dashes, got {name!r}")
    return name


def sampler_of(protocol: Protocol) -> dict[str, Any] | None:
    """The exact weights that a client draws with, as texts; None where only Python has the sampler."""
    if protocol.name not in _ELSEWHERE:
        return None
    randomizer: Any = protocol.randomizer
    if isinstance(randomizer, KaryRandomizedResponse):
        kind = {"kind": "response", "k": randomizer.k}
        return kind | {"weights": [str(weight) for weight in randomizer.weights]}
    if isinstance(randomizer, UnaryEncoding):
        return {"kind": "unary", "k": randomizer.k, "weights": [str(weight) for weight in randomizer.weights]}
    if isinstance(randomizer, GridRandomizer):
        noise = [str(weight) for weight in randomizer.noise]
        return {"kind": "grid", "levels": randomizer.levels, "pad": randomizer.pad, "noise": noise}
    return None
