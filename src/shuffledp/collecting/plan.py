"""A plan that is handed on: its fingerprint, its signature, and what is checked before it is used.

A plan is the description of a protocol (``to_dict``). Whoever runs it first decides whether to trust it:

    load_plan(plan)                              certified anew: the randomizer meets its own target
    load_plan(plan, public_key=key)              signed with that key (Ed25519), certified by its signer
    load_plan(plan, fingerprint="3f2a...")       the very plan that was published, read out or pinned
    load_plan(plan, max_epsilon0=6.0)            what one report reveals alone is bounded by its owner

What is hashed and signed is one text, the canonical JSON of the description, which a signed plan carries
as it is: any language checks its bytes, and nobody has to write numbers as Python does.

The short fingerprint has 128 bits of SHA-256: nobody makes a second plan with the fingerprint of a given
one. It is compared without dashes and capitals, and all 64 digits may be given instead.

>>> from shuffledp import HistogramProtocol
>>> survey = HistogramProtocol([1, 2, 3], epsilon=1.0, delta=1e-6, n=1000)
>>> load_plan(survey.to_dict(), fingerprint=short_fingerprint(survey)) == survey
True
>>> private, public = signing_keys()
>>> load_plan(sign_plan(survey, private), public_key=public) == survey
True
"""

from __future__ import annotations

import json
from typing import Any

from shuffledp import _json, _validate
from shuffledp._lazy import needed
from shuffledp.collecting._protocol import Protocol, require_target
from shuffledp.errors import PlanError

SIGNED_VERSION = 1
"""Of a signed plan. A reader refuses what it does not know."""
_SHORT = 32  # hexadecimal digits: soundness, of a pinned fingerprint
_PURPOSE = b"shuffledp plan 1\0"  # a signature of something else is none of a plan
_SIGNED_KEYS = {"signed_plan", "plan", "signature"}


def plan_text(protocol: Protocol) -> str:
    """The canonical text of a plan, plain ASCII: what is hashed and signed."""
    return _json.canonical(protocol.to_dict())


def short_fingerprint(protocol: Protocol) -> str:
    """The first 32 digits of ``protocol.fingerprint``, in four groups: to print, read out and pin."""
    return "-".join(protocol.fingerprint[i : i + 8] for i in range(0, _SHORT, 8))


def load_plan(
    description: Any,
    *,
    public_key: str | None = None,
    fingerprint: str | None = None,
    max_epsilon0: float | None = None,
    n: int | None = None,
) -> Protocol:
    """The protocol of a plan, signed or not, if it passes every check that is asked for (see module).

    With ``public_key`` the signature must be of that key; without it the plan is certified anew. ``n``:
    the honest reports it must count on. PlanError says what is wrong."""
    signed = isinstance(description, dict) and "signed_plan" in description
    if signed:
        text = _signed_text(description, public_key)
    elif public_key is not None:
        raise PlanError("the plan must be signed, and it is not")
    plan = _parsed(text) if signed else description
    protocol = _restored(plan)
    if signed and plan_text(protocol) != text:
        raise PlanError("the plan is not written as it was signed")
    check_plan(protocol, fingerprint=fingerprint, max_epsilon0=max_epsilon0, n=n)
    if public_key is None:
        try:
            require_target(protocol)
        except ValueError as error:
            raise PlanError(str(error)) from error
    return protocol


def check_plan(
    protocol: Protocol,
    *,
    fingerprint: str | None = None,
    max_epsilon0: float | None = None,
    n: int | None = None,
) -> None:
    """PlanError unless the plan has this fingerprint, reveals no more, and counts on n reports."""
    if fingerprint is not None and not _same(fingerprint, protocol.fingerprint):
        raise PlanError(
            f"the plan has the fingerprint {short_fingerprint(protocol)}, not {fingerprint!r} as it must"
        )
    if max_epsilon0 is not None:
        alone, most = protocol.randomizer.facts(), _validate.epsilon0(max_epsilon0, "max_epsilon0")
        if alone.epsilon0.upper > most or alone.delta0 > protocol.delta:
            raise PlanError(
                f"one report of this plan is ({alone.epsilon0.upper!r}, {alone.delta0!r})-differentially "
                f"private; max_epsilon0 is {most!r}"
            )
    if n is not None and protocol.n != n:
        raise PlanError(f"the plan counts on n = {protocol.n} honest reports, not on {n} as it must")


def signing_keys() -> tuple[str, str]:
    """A new private key and its public one, 64 hexadecimal digits each (extra ``collect``)."""
    key = _ed25519().Ed25519PrivateKey.generate()
    return key.private_bytes_raw().hex(), key.public_key().public_bytes_raw().hex()


def sign_plan(protocol: Protocol, private_key: str) -> dict[str, Any]:
    """The plan with a signature, ready for JSON; certified anew before anybody signs it."""
    require_target(protocol)
    text = plan_text(protocol)
    key = _ed25519().Ed25519PrivateKey.from_private_bytes(_key_bytes("private_key", private_key))
    signature = key.sign(_PURPOSE + text.encode())
    return {"signed_plan": SIGNED_VERSION, "plan": text, "signature": signature.hex()}


def _signed_text(signed: dict[str, Any], public_key: str | None) -> str:
    """What was signed, once the signature is that of the key; without a key it says nothing."""
    if signed["signed_plan"] != SIGNED_VERSION:
        raise PlanError(
            f"signed_plan must be {SIGNED_VERSION} for this release, got {signed['signed_plan']!r}"
        )
    text, signature = signed.get("plan"), signed.get("signature")
    if set(signed) != _SIGNED_KEYS or not isinstance(text, str) or not isinstance(signature, str):
        raise PlanError(f"a signed plan must hold {', '.join(sorted(_SIGNED_KEYS))} and nothing else")
    if public_key is not None:
        key = _ed25519().Ed25519PublicKey.from_public_bytes(_key_bytes("public_key", public_key))
        try:
            key.verify(bytes.fromhex(signature), _PURPOSE + text.encode())
        except (ValueError, needed("cryptography.exceptions", extra="collect").InvalidSignature):
            raise PlanError("the plan was not signed with this key, or was changed since") from None
    return text


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise PlanError("the plan is no JSON") from None


def _restored(description: Any) -> Protocol:
    from shuffledp.collecting import described_protocol

    try:
        return described_protocol(description)
    except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise PlanError(f"no plan: {error}") from error


def _same(pinned: Any, fingerprint: str) -> bool:
    if not isinstance(pinned, str):
        raise TypeError(f"fingerprint must be a string, got {pinned!r}")
    digits = pinned.replace("-", "").lower()
    if len(digits) < _SHORT or not set(digits) <= set("0123456789abcdef"):
        raise ValueError(f"fingerprint must have {_SHORT} to 64 hexadecimal digits, got {pinned!r}")
    return fingerprint.startswith(digits)


def _key_bytes(name: str, text: Any) -> bytes:
    try:
        key = bytes.fromhex(text)
    except (TypeError, ValueError):
        key = b""
    if len(key) != 32:
        raise ValueError(f"{name} must be 64 hexadecimal digits")  # never shown: it may be private
    return key


def _ed25519() -> Any:
    return needed("cryptography.hazmat.primitives.asymmetric.ed25519", extra="collect")
