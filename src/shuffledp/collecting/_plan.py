"""The plan of a collection: (epsilon, delta) for ``rounds`` shuffles of n honest reports each."""

from __future__ import annotations

from typing import Any

from shuffledp import _validate
from shuffledp.collecting._certificate import certified_epsilon
from shuffledp.collecting._protocol import MOST_USERS, Protocol

_MOST_ROUNDS = 2**20


def checked_plan(epsilon: Any, delta: Any, n: Any, rounds: Any) -> dict[str, Any]:
    """The four numbers, checked."""
    level = _validate.probability("delta", delta, positive=True)
    if level == 1.0:
        raise ValueError(f"delta must be in (0, 1), got {delta!r}")
    return {
        "epsilon": _validate.positive("epsilon", epsilon),
        "delta": level,
        "n": _validate.count("n", n, most=MOST_USERS),
        "rounds": _validate.count("rounds", rounds, most=_MOST_ROUNDS),
    }


def require_target(protocol: Protocol) -> None:
    """ValueError unless the protocol as planned is certified to meet its own target."""
    certified = certified_epsilon(protocol.mechanism(), protocol.delta)
    if certified > protocol.epsilon:
        raise ValueError(
            f"randomizer must meet epsilon = {protocol.epsilon!r} at delta = {protocol.delta!r} for "
            f"n = {protocol.n} and rounds = {protocol.rounds}, but {protocol.randomizer!r} is "
            f"certified for {certified!r} only"
        )
