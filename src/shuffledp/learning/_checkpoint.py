"""To stop and to go on: checkpoints, and a Ctrl-C that waits for one.

A crash leaves no half checkpoint, but it can lose rounds whose reports were already sent: their privacy
is spent. If the run is not repeatable (secure randomness), a checkpoint written *during* a run therefore
charges, when it is loaded, all the rounds that may have followed it; the one written at the end charges
none. A trainer that has sent reports of its own and then loads a checkpoint is charged for both, and a
run that goes on from a checkpoint goes on writing it. What no file can see is a copy of it: go on from a
checkpoint once. Two runs from the same one spend twice, and each budget knows of one.

A seeded run repeats the lost rounds, random numbers and all, so they cost nothing more. It is a
simulation: the same random numbers beside another model or other data would cancel, and show the
gradients as they are.
"""

from __future__ import annotations

import pickle
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

import torch

from shuffledp._files import atomic_file

FORMAT = 2


def write(path: str | Path, state: dict[str, Any]) -> None:
    """In the place of an older one, whole or not at all."""
    with atomic_file(path, replace=True, private=True) as partial:
        torch.save({"format": FORMAT} | state, partial)


def read(path: str | Path) -> dict[str, Any]:
    """Tensors and plain values only: loading a checkpoint runs no code from it."""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, pickle.UnpicklingError):
        state = None
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise ValueError(f"path must name a checkpoint of format {FORMAT}, got {str(path)!r}")
    return state


def random_state(generator: torch.Generator | None) -> dict[str, Any]:
    """The states of the clients' generator and of PyTorch's own (dropout)."""
    own = None if generator is None else generator.get_state()
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {"clients": own, "cpu": torch.get_rng_state(), "cuda": cuda}


def refuse_other_randomness(state: dict[str, Any], generator: torch.Generator | None) -> None:
    """A repeatable checkpoint needs a generator, a secure one must have none."""
    if (generator is None) != (state["clients"] is None):
        kind = "seeded" if generator is None else "secure"
        raise ValueError(
            f"the checkpoint is {kind} but the trainer is not: give the same generator= or seed="
        )


def refuse_other_settings(path: str | Path, stored: str, own: str) -> None:
    """A checkpoint of another plan; what differs is said, and nothing else."""
    there, here = stored.split(", "), own.split(", ")
    if there != here:
        only = ", ".join(each for each in there if each not in here) or stored
        ours = ", ".join(each for each in here if each not in there) or own
        raise ValueError(
            f"the checkpoint {str(path)!r} is of another plan: it has {only}, the trainer has {ours}. Name "
            "another file, or build the trainer as it was"
        )


def restore_random_state(state: dict[str, Any], generator: torch.Generator | None) -> None:
    """The inverse of ``random_state`` (a secure run has nothing to restore)."""
    if generator is not None:
        try:
            generator.set_state(state["clients"])
        except RuntimeError:
            raise ValueError(
                f"the checkpoint's generator was not one of {generator.device.type!r}: go on with "
                "the model on the device where it was"
            ) from None
        torch.set_rng_state(state["cpu"])
        if len(state["cuda"]) == torch.cuda.device_count():
            torch.cuda.set_rng_state_all(state["cuda"])


class Interruptible:
    """Ctrl-C waits for a moment at which model, spending and checkpoint agree.

    Inside the block the first one only sets ``asked``; the second one interrupts at once. Outside the
    main thread, where no handler can be set, it does nothing."""

    def __init__(self) -> None:
        self.asked = False
        self._before: Callable[[int, FrameType | None], Any] | int | None = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._ask)
        return self

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
