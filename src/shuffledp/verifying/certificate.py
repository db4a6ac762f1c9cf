"""A certificate: all that is needed to check a number again, as plain JSON (docs/reference/certificates.md).

It says what is claimed (delta(epsilon) <= delta), of which rounds, and for several rounds on which grid the
accountant put them. ``verify`` believes none of its numbers: they are hints, or they are what the claim is
about.

>>> made = Certificate.made(0.5, 1e-6, [{"count": 1, "curve": {"kind": "clones", "n": 10, "epsilon0": 0.5}}])
>>> Certificate.from_json(made.to_json()) == made
True
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from shuffledp._files import PathLike, write_text
from shuffledp._json import canonical, fingerprint

if TYPE_CHECKING:
    from shuffledp.verifying.verification import Verification


class HasRounds(Protocol):
    """A mechanism: ``stated`` is what a certificate says of its rounds."""

    def stated(self) -> list[dict[str, Any]]: ...


FORMAT, VERSION = "shuffledp certificate", 1


@dataclass(frozen=True)
class Certificate:
    """The claim that rounds are (epsilon, delta)-DP, and what it rests on; ``text`` is canonical JSON."""

    text: str

    def __post_init__(self) -> None:
        found = json.loads(self.text)
        try:
            _check(found)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"the certificate is not complete: {type(error).__name__} {error}") from error
        object.__setattr__(self, "text", canonical(found))

    @classmethod
    def made(
        cls, epsilon: float, delta: float, rounds: Sequence[dict[str, Any]], spacing: float | None = None
    ) -> Self:
        """Of plain values; the digest is added."""
        content = {
            "format": FORMAT,
            "version": VERSION,
            "claim": {"epsilon": epsilon, "delta": delta},
            "rounds": list(rounds),
            "spacing": spacing,
        }
        return cls(canonical({**content, "digest": fingerprint(content)}))

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(text)

    @classmethod
    def load(cls, path: PathLike) -> Self:
        return cls(Path(path).read_text(encoding="utf-8"))

    def to_json(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        return dict(json.loads(self.text))

    def save(self, path: PathLike) -> None:
        write_text(path, self.text + "\n")

    @property
    def epsilon(self) -> float:
        return float(self.to_dict()["claim"]["epsilon"])

    @property
    def delta(self) -> float:
        return float(self.to_dict()["claim"]["delta"])

    @property
    def about(self) -> str:
        """The rounds, in words."""
        rounds = self.to_dict()["rounds"]
        return "; ".join(f"{part['count']} x {_in_words(part['curve'])}" for part in rounds) or "nothing"

    def is_about(self, rounds: Sequence[dict[str, Any]]) -> bool:
        """Whether it is about these rounds, as ``Mechanism.stated`` has them."""
        found = [{k: v for k, v in part.items() if k != "grid"} for part in self.to_dict()["rounds"]]
        return canonical(found) == canonical(list(rounds))

    def verify(self, *, bits: int = 256, of: HasRounds | None = None) -> Verification:
        """The claim, derived again in ball arithmetic (needs the extra ``verify``); ``of``: as a claim about
        this mechanism, whose rounds must be those of the certificate."""
        from shuffledp.verifying.verification import verify

        return verify(self, bits=bits, of=of)

    def __repr__(self) -> str:
        return f"<Certificate: delta({self.epsilon!r}) <= {self.delta!r}>"


def _in_words(curve: dict[str, Any]) -> str:
    inner = [*curve.get("curves", []), *([curve["base"]] if isinstance(curve.get("base"), dict) else [])]
    size = f" n = {curve['n']}" if "n" in curve else ""
    if curve.get("fraction", 1.0) != 1.0:
        size += f" in a cohort of {curve['fraction']:g} of all"
    return f"{curve['kind']}{size}" + (f" ({', '.join(map(_in_words, inner))})" if inner else "")


def _check(content: Any) -> None:
    """What can be seen without any mathematics."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"a certificate must be a JSON object with format {FORMAT!r}")
    if content.get("version") != VERSION:
        raise ValueError(
            f"version must be {VERSION}, the one this release knows, got {content.get('version')!r}"
        )
    digest = content.get("digest")
    if digest != fingerprint({name: value for name, value in content.items() if name != "digest"}):
        raise ValueError("the certificate was changed: its digest is not that of its content")
    claim, rounds = content["claim"], content["rounds"]
    if not (0.0 <= claim["epsilon"] < math.inf and 0.0 <= claim["delta"] <= 1.0):
        raise ValueError(f"the claim must have epsilon >= 0 and delta in [0, 1], got {claim!r}")
    for part in rounds:
        if isinstance(part["count"], bool) or not isinstance(part["count"], int) or part["count"] < 1:
            raise ValueError(f"count must be a whole number of at least 1, got {part['count']!r}")
