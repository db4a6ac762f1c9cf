"""Randomizers as JSON: their name and the arguments that make them again.

Constructors round to whole weights, so the arguments that are read off a randomizer might make one
that differs in the last bits. ``canonical`` is the one that makes itself again: clients and analyst
then agree on every probability.

>>> from shuffledp.randomizers import KaryRandomizedResponse
>>> describe(KaryRandomizedResponse(k=4, epsilon0=2.0))
{'kind': 'KaryRandomizedResponse', 'k': 4, 'epsilon0': 2.0}
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "BinaryRandomizedResponse": ("binary", ("epsilon0",)),
    "DiscreteGaussian": ("gaussian", ("sigma", "low", "high", "levels")),
    "DiscreteLaplace": ("laplace", ("epsilon0", "low", "high", "levels")),
    "HadamardResponse": ("hadamard", ("k", "epsilon0")),
    "KaryRandomizedResponse": ("kary", ("k", "epsilon0")),
    "OptimisedLocalHashing": ("hashing", ("k", "epsilon0", "symbols")),
    "OptimisedUnaryEncoding": ("unary", ("k", "epsilon0")),
    "SubsetSelection": ("subset", ("k", "epsilon0", "size")),
    "SymmetricUnaryEncoding": ("unary", ("k", "epsilon0")),
}
"""Name -> (module, arguments)."""
_ATTEMPTS = 16


def describe(randomizer: Any) -> dict[str, Any]:
    """Its name and arguments."""
    kind = type(randomizer).__name__
    if kind not in _KINDS:
        raise TypeError(f"randomizer must be one of {', '.join(_KINDS)}, got {randomizer!r}")
    return {"kind": kind, **{name: getattr(randomizer, name) for name in _KINDS[kind][1]}}


def restore(description: Any) -> Any:
    """The randomizer of a description."""
    kind = description.get("kind") if isinstance(description, dict) else None
    if kind not in _KINDS:
        raise ValueError(f"randomizer must be a description with a known kind, got {description!r}")
    module, names = _KINDS[kind]
    if set(description) != {"kind", *names}:
        raise ValueError(f"the description of {kind} must hold {names}, got {description!r}")
    make = getattr(import_module(f"shuffledp.randomizers.{module}"), kind)
    return make(**{name: description[name] for name in names})


def canonical(randomizer: Any) -> Any:
    """The randomizer that its own description makes; its epsilon0 is not larger."""
    for _ in range(_ATTEMPTS):
        again = restore(describe(randomizer))
        if again == randomizer:
            return again
        randomizer = again
    raise ArithmeticError(f"the description of {randomizer!r} does not settle; please report this")
