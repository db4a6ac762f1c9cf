"""The result of a comparison: rows for terminals, notebooks and pandas."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from shuffledp._digits import rounded_down, rounded_up

_COLUMNS = ("bound", "value", "soundness", "seconds", "theorem", "note")


@dataclass(frozen=True)
class Row:
    """One bound: its value, where it comes from, whether it can be relied on."""

    bound: str
    value: float
    soundness: str
    seconds: float
    theorem: str
    note: str = ""

    def cells(self) -> tuple[str, ...]:
        """As text. Values are rounded up, like the bounds themselves."""
        shown = rounded_up(self.value)
        return (
            self.bound,
            shown,
            self.soundness,
            f"{self.seconds:.2g}",
            self.theorem,
            self.note,
        )


@dataclass(frozen=True)
class Comparison:
    """Bounds of one quantity of one mechanism, the smallest first.

    ``lower`` is attained by concrete neighbouring datasets: what lies below it is wrong."""

    mechanism: str
    quantity: str
    given: str
    level: float
    lower: float
    rows: tuple[Row, ...]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, bound: str) -> Row:
        """The row of a bound, by its name."""
        for row in self.rows:
            if row.bound == bound:
                return row
        raise KeyError(f"no bound {bound!r}; there are {', '.join(r.bound for r in self.rows)}")

    @property
    def best(self) -> Row:
        """The smallest sound bound."""
        return next(row for row in self.rows if row.soundness != "unsound")

    @property
    def title(self) -> str:
        return f"{self.quantity} at {self.given} = {self.level:g}"

    def __str__(self) -> str:
        rows = [_COLUMNS, *(row.cells() for row in self.rows)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(_COLUMNS))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        lines.insert(1, "  ".join("-" * width for width in widths))
        truth = f"the truth is at least {rounded_down(self.lower)} (concrete neighbouring datasets)"
        return "\n".join([f"{self.title}: {self.mechanism}", *lines, truth])

    def _repr_html_(self) -> str:
        def line(tag: str, cells: tuple[str, ...]) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

        body = "".join(line("td", row.cells()) for row in self.rows)
        caption = html.escape(
            f"{self.title}: {self.mechanism}. The truth is at least {rounded_down(self.lower)}."
        )
        head = line("th", _COLUMNS)
        return (
            f"<table><caption>{caption}</caption><thead>{head}</thead><tbody>{body}</tbody></table>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    def to_pandas(self) -> Any:
        """A pandas DataFrame, one row per bound (needs pandas)."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("pandas is needed for this: pip install pandas") from error
        frame = pandas.DataFrame([asdict(row) for row in self.rows], columns=list(_COLUMNS))
        frame.attrs.update(title=self.title, mechanism=self.mechanism, lower=self.lower)
        return frame

    def plot(self, ax: Any = None) -> Any:
        """The bounds and the truth's lower end on one axis (needs the extra ``plot``)."""
        from shuffledp.plotting._comparison import bounds_compared

        rows = [(row.bound, row.value, row.soundness) for row in self.rows]
        return bounds_compared(rows, quantity=self.quantity, lower=self.lower, ax=ax)
