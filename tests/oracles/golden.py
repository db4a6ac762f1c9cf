"""The stored reference values, by name."""

import json
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from flint import arb

_FILE = Path(__file__).parent.parent / "data" / "golden.json"


@dataclass(frozen=True)
class Golden:
    """One value: which quantity, at which parameters (decimal strings and whole numbers)."""

    name: str
    params: dict[str, Any]
    value: str
    method: str
    note: str = ""

    def __str__(self) -> str:
        settings = ",".join(f"{key}={value}" for key, value in self.params.items())
        return f"{self.name}[{settings}]"

    def number(self, parameter: str) -> float:
        """A parameter as a float."""
        return float(self.params[parameter])

    def ball(self, parameter: str) -> arb:
        """A parameter as a ball around its decimal value."""
        return arb(self.params[parameter])

    def rational_exp(self, parameter: str) -> Fraction:
        """e^parameter as a fraction, right to 45 digits."""
        scaled = self.ball(parameter).exp() * arb(2) ** 150
        return Fraction(int(scaled.mid().floor().unique_fmpz()), 2**150)

    @property
    def delta(self) -> float:
        """The value as a float."""
        return float(self.value)

    @property
    def backwards(self) -> bool:
        """Whether the value is for (Q, P)."""
        return self.params.get("direction") == "Q||P"


@cache
def _all() -> list[Golden]:
    return [Golden(**entry) for entry in json.loads(_FILE.read_text())["entries"]]


def entries(*names: str) -> list[Golden]:
    """All entries of the given names."""
    found = [entry for entry in _all() if entry.name in names]
    assert found, f"no golden value is called {names}"
    return found
