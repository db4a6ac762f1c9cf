"""What happened during training, as rows of numbers, to CSV or JSON.

Only what the caller's ``evaluate`` measures is recorded beside the round and its epsilon. The
clients' own losses are private data and are not.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from shuffledp import _html
from shuffledp._files import as_csv, write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = dict[str, float]


class History:
    """Rows of named numbers, in order. ``delta`` is where their epsilon was taken.

    >>> history = History([{"round": 1, "epsilon": 0.1, "accuracy": 0.5}])
    >>> history.last["accuracy"], len(history)
    (0.5, 1)
    """

    def __init__(self, rows: list[Row] | None = None, *, delta: float | None = None) -> None:
        self.rows: list[Row] = list(rows or [])
        self.delta = delta

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {value:.4g}" for name, value in self.last.items())
        return f"History of {len(self.rows)} rows" + (f", the last: {shown}" if shown else "")

    def _repr_html_(self) -> str:
        names = self._names
        rows = [[f"{row[name]:.4g}" if name in row else "" for name in names] for row in self.rows]
        return _html.table(names, rows, "training")

    @property
    def _names(self) -> list[str]:
        return list(dict.fromkeys(name for row in self.rows for name in row))

    @property
    def last(self) -> Row:
        """The latest row (empty before the first)."""
        return self.rows[-1] if self.rows else {}

    def add(self, row: Mapping[str, float]) -> None:
        self.rows.append({name: _number(name, value) for name, value in row.items()})

    def plot(self, measure: str | None = None, *, against: str | None = None, ax: Axes | None = None) -> Axes:
        """What was measured (by default the first of it) against "epsilon" or "round".

        Against epsilon where there was a budget, else against rounds. Needs ``shuffledp[plot]``."""
        from shuffledp.plotting._curves import learning_curve

        known = "epsilon" if "epsilon" in self.last else "round"
        return learning_curve(self, measure=measure, against=against or known, delta=self.delta, ax=ax)

    def to_csv(self, path: str | Path) -> None:
        names = self._names
        write_text(path, as_csv([names, *([row.get(name, "") for name in names] for row in self.rows)]))

    def to_json(self, path: str | Path) -> None:
        """What is not finite (a loss that diverged) becomes null: JSON has no such numbers."""
        rows = [
            {name: value if math.isfinite(value) else None for name, value in row.items()}
            for row in self.rows
        ]
        write_text(path, json.dumps(rows, indent=1, allow_nan=False) + "\n")


def _number(name: str, value: float) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"evaluate must return numbers, got {name} = {value!r}") from None
    return int(number) if number.is_integer() and name == "round" else number
