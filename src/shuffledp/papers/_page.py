"""The Markdown page of a result, and its numbers as CSV.

The last line of a page is a comment that says how it was made; ``made_with`` reads it back, which is how
the runner knows what is finished.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from shuffledp.papers._result import Curve, Item, Map, Panel, Result, Table

_MARK = "<!-- shuffledp reproduce "
COLUMNS = ("panel", "series", "kind", "x", "y", "value", "lower")


def page(item: Item, result: Result, stamp: dict[str, Any]) -> str:
    """The page; ``stamp`` says how it was made."""
    coarse = "Coarse grids (`--quick`). " if stamp.get("quick") else ""
    parts = [
        f"# {item.title}",
        f"![{item.title}]({item.name}.png)",
        f"{coarse}Every number of the picture: [{item.name}.csv]({item.name}.csv). "
        f"Again: `shuffledp reproduce {item.name}`.",
        f"## What the paper shows\n\n{_prose(result.shows)}",
        f"## What we compute\n\n{_prose(result.computed)}",
        f"## The difference\n\n{_prose(result.difference)}",
        *map(_table, result.tables),
        f"## Why\n\n{_prose(result.why)}",
    ]
    if result.missing:
        parts.append(f"## What is missing\n\n{_prose(result.missing)}")
    parts.append(f"{_MARK}{json.dumps(stamp, sort_keys=True)} -->")
    return "\n\n".join(parts) + "\n"


def made_with(text: str) -> dict[str, Any] | None:
    """The stamp of a page, or None if it has none.

    >>> made_with('# A page\\n\\n<!-- shuffledp reproduce {"quick": true} -->\\n')
    {'quick': True}
    """
    _, mark, rest = text.rpartition(_MARK)
    try:
        found = json.loads(rest.strip().removesuffix("-->")) if mark else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def index(items: list[Item], finished: set[str]) -> str:
    """A page that lists what has been reproduced."""
    rows = [f"| [{item.title}]({item.name}.md) |" for item in items if item.name in finished]
    intro = (
        "# The papers, computed again\n\nEvery figure and table below was made by `shuffledp "
        "reproduce`. Solid lines with a band are certified enclosures, dashed lines valid bounds of "
        "the literature, dotted lines with crosses formulas as published that do not hold."
    )
    return "\n".join([intro, "", "| figure or table |", "|---|", *rows, ""])


def numbers(result: Result) -> str:
    """All panels as CSV, one row for each value."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for panel in result.panels:
        writer.writerows(_map_rows(panel) if isinstance(panel, Map) else _panel_rows(panel))
    return out.getvalue()


def _panel_rows(panel: Panel) -> Iterator[tuple[str, ...]]:
    for curve in panel.curves:
        for place, (x, y) in enumerate(zip(curve.x, curve.y, strict=True)):
            lower = "" if curve.lower is None else _number(curve.lower[place])
            yield panel.title, curve.name, curve.kind, _number(x), "", _number(y), lower


def _map_rows(panel: Map) -> Iterator[tuple[str, ...]]:
    values = np.asarray(panel.values)
    left, right, bottom, top = panel.extent
    rows, columns = values.shape
    for i in range(rows):
        for j in range(columns):
            x = left + (j + 0.5) * (right - left) / columns
            y = bottom + (i + 0.5) * (top - bottom) / rows
            yield panel.title, panel.scale, "", _number(x), _number(y), _number(values[i, j]), ""


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.10g}"


def _prose(text: str) -> str:
    """Paragraphs of a triple-quoted text, each on its own line."""
    paragraphs = [" ".join(part.split()) for part in text.strip().split("\n\n")]
    return "\n\n".join(paragraphs)


def _table(table: Table) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in (table.columns, *table.rows)]
    lines.insert(1, "|" + "---|" * len(table.columns))
    return f"**{table.title}**\n\n" + "\n".join(lines)


def value_at(curve: Curve, x: float) -> float:
    """The value of a curve at the place nearest to x: for texts."""
    return float(curve.y[int(np.argmin(np.abs(curve.x - x)))])
