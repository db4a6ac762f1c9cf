"""A result as a table: rows, JSON, CSV, data frames, notebooks."""

from __future__ import annotations

import csv
import io
import json
import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from shuffledp import _html
from shuffledp._digits import rounded_up, written
from shuffledp.collecting._intervals import checked_confidence

if TYPE_CHECKING:
    from shuffledp.collecting.statement import PrivacyStatement

_SHOWN = 50  # rows in a notebook


class Tabular(ABC):
    """What has ``columns``, and n people and their privacy behind it."""

    n: int
    confidence: float
    privacy: PrivacyStatement

    def __post_init__(self) -> None:
        checked_confidence(self.confidence)

    def level(self, confidence: float | None) -> float:
        """The confidence that is asked for, or else the result's own."""
        return checked_confidence(self.confidence if confidence is None else confidence)

    @abstractmethod
    def columns(self, confidence: float | None = None) -> dict[str, list[Any]]:
        """Name -> values, one per row; the first column names the rows."""

    def rows(self, confidence: float | None = None) -> list[dict[str, Any]]:
        """One dictionary per row."""
        columns = self.columns(confidence)
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def to_dict(self, confidence: float | None = None) -> dict[str, Any]:
        """Estimates with their intervals, and the privacy statement, ready for JSON."""
        whole = {"n": self.n, "confidence": self.level(confidence), "estimates": self.rows(confidence)}
        return whole | {"privacy": self.privacy.to_dict()}

    def to_json(self, confidence: float | None = None) -> str:
        """``to_dict`` as text; a category that JSON does not know is written as text, what is infinite (one
        report alone protects nobody) as null."""
        whole = self.to_dict(confidence)
        whole["privacy"] = {k: None if v == math.inf else v for k, v in whole["privacy"].items()}
        return json.dumps(whole, indent=2, default=str, allow_nan=False)

    def to_csv(self, confidence: float | None = None) -> str:
        """The table as text; numbers are written in full."""
        file = io.StringIO()
        columns = self.columns(confidence)
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([list(columns), *zip(*columns.values(), strict=True)])
        return file.getvalue()

    def to_polars(self, confidence: float | None = None) -> Any:
        """A polars data frame (needs polars)."""
        try:
            import polars
        except ImportError as error:
            raise ImportError("polars is needed for this: pip install polars") from error
        return polars.DataFrame(self.columns(confidence), strict=False)

    def to_pandas(self, confidence: float | None = None) -> Any:
        """A pandas data frame whose index is the first column (needs pandas)."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("pandas is needed for this: pip install pandas") from error
        columns = self.columns(confidence)
        return pandas.DataFrame(columns).set_index(next(iter(columns)))

    def _repr_html_(self) -> str:
        columns, level = self.columns(), f"{100 * self.confidence:g}%"
        names = [
            {"lower": f"{level} from", "upper": "to"}.get(name, name.replace("_", " ")) for name in columns
        ]
        cells = [[_cell(each) for each in row] for row in list(zip(*columns.values(), strict=True))[:_SHOWN]]
        more = len(next(iter(columns.values()))) - len(cells)
        rest = f"; {more:,} more rows" if more else ""
        guarantee = f"({rounded_up(self.privacy.epsilon)}, {written(self.privacy.delta)})-DP"
        head = f"{self.n:,} reports, {guarantee}{rest}"
        return _html.table(names, cells, head) + _html.text(self.privacy.text)


def _cell(value: Any) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else str(value)
