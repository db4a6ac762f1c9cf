"""One bound of the literature as a line of a comparison."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shuffledp.literature._case import Case

SOUND = "sound"
OUTSIDE = "sound outside its stated range"
UNSOUND = "unsound"

Answer = Callable[[Case, float], float]


def always(case: Case) -> bool:
    """Applies to every case."""
    return True


@dataclass(frozen=True)
class Entry:
    """A bound: ``epsilon(case, delta)`` and ``delta(case, epsilon)``, where it has them.

    ``reason`` says why it is unsound, or what to know about a sound one."""

    name: str
    theorem: str
    epsilon: Answer | None
    delta: Answer | None
    applies: Callable[[Case], bool] = always
    soundness: str = SOUND
    reason: str = ""
