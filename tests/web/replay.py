"""A pytest plugin: record the questions that tests ask the accountant, or answer them from a file.

``SHUFFLEDP_REPLAY=record:FILE`` writes (key, question) of every call of ``delta``, ``epsilon`` and
``profile``; ``replay:FILE`` takes the answers from there. A question is what the accountant sees: facts, the
other fields (n, analysis, population, honest_fraction, rate) and count of every round. A mechanism of which
that is not all (a foreign loss) is answered here.
"""

import hashlib
import os
import pickle
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import shuffledp as sdp
from shuffledp.accounting.mechanism import Mechanism

MODE, _, FILE = os.environ.get("SHUFFLEDP_REPLAY", ":").partition(":")
METHODS = ("delta", "epsilon", "profile")
questions: dict[str, bytes] = {}
answers: dict[str, tuple[Any, Any] | str] = {}
Described = tuple[dict[str, Any], dict[str, Any], int]
counted = {"replayed": 0, "here": 0}
inside = [False]  # a method that asks another one: not a question of a test


def described(mechanism: Mechanism) -> list[Described] | None:
    """The rounds in plain values."""
    known = [(part, count) for part, count in mechanism.parts if isinstance(part, sdp.Shuffled)]
    if len(known) < len(mechanism.parts):
        return None
    return [(_values(part.facts), _values(part), count) for part, count in known]


def _values(value: Any) -> dict[str, Any]:
    """What a dataclass was made with, but for the randomizer, of which facts are told."""
    names = [field.name for field in fields(value) if field.init and field.name != "randomizer"]
    return {name: getattr(value, name) for name in names}


def mechanism_of(rounds: list[Described]) -> Mechanism:
    """The mechanism that was described."""
    made = [count * sdp.Shuffled(sdp.Facts(**facts), **values) for facts, values, count in rounds]
    return sum(made[1:], made[0])


def answered(question: bytes) -> tuple[Any, Any] | str:
    """Both ends, or the name of the error: what the other side runs."""
    rounds, name, args, kwargs = pickle.loads(question)
    try:
        found = getattr(mechanism_of(rounds), name)(*args, **kwargs)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return found.lower, found.upper


def _wrapped(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Mechanism, *args: Any, **kwargs: Any) -> Any:
        rounds = None if inside[0] else described(self)
        if not rounds:
            counted["here"] += not inside[0]
            return original(self, *args, **kwargs)
        question = pickle.dumps((rounds, name, args, kwargs), protocol=4)
        key = hashlib.sha256(question).hexdigest()
        if MODE == "record":
            questions[key] = question
        elif key in answers:
            counted["replayed"] += 1
            found = answers[key]
            if isinstance(found, str):
                raise sdp.NoCertificateError(found)
            return sdp.Bound(*found)
        counted["here"] += 1
        inside[0] = True
        try:
            return original(self, *args, **kwargs)
        finally:
            inside[0] = False

    return call


def pytest_configure(config: pytest.Config) -> None:
    if MODE == "replay":
        answers.update(pickle.loads(Path(FILE).read_bytes()))
    if MODE:
        for name in METHODS:
            setattr(Mechanism, name, _wrapped(name, getattr(Mechanism, name)))


def pytest_unconfigure(config: pytest.Config) -> None:
    if MODE == "record":
        Path(FILE).write_bytes(pickle.dumps(questions, protocol=4))
    if MODE == "replay":
        print(f"\nreplayed {counted['replayed']}, answered here {counted['here']}")
