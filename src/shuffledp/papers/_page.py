"""The Markdown page of a result, its numbers as CSV, and the pages that lead there.

The last line of a page is a comment that says how it was made; ``made_with`` reads it back, which is how
the runner knows what is finished, and a test what is stale. Every page begins with its verdict and how far
the numbers agree: ``summary`` reads these two for the tables of the paper's page and the index.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from shuffledp.papers import _template
from shuffledp.papers._result import Item, Map, Panel, Result, Table

_MARK = "<!-- shuffledp reproduce "
COLUMNS = ("panel", "series", "kind", "x", "y", "value", "lower")


def page(item: Item, result: Result, stamp: dict[str, Any]) -> str:
    """The page; ``stamp`` says how it was made."""
    coarse = "Coarse grids (`--quick`). " if stamp.get("quick") else ""
    picture = (
        f"![{item.title}]({item.name}.png)\n\n{coarse}Every number of the picture: "
        f"[{item.name}.csv]({item.name}.csv). Again: `shuffledp reproduce {item.name}`."
    )
    values = {**result.numbers, "picture": picture}
    if result.tables:
        values["tables"] = "\n\n".join(map(_table, result.tables))
    made = f"{_MARK}{json.dumps(stamp, sort_keys=True)} -->"
    return f"{_template.rendered(item.template, values)}\n\n{made}\n"


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


def body(text: str) -> str:
    """A page without its stamp."""
    return text.rpartition(_MARK)[0]


def summary(text: str) -> tuple[str, str]:
    """What a page says of itself: verdict, agreement."""
    found = (re.search(rf"\*\*{word}:\*\* (.*)", text) for word in ("Verdict", "Agreement"))
    verdict, agreement = (match[1] if match else "" for match in found)
    return verdict, agreement


def overview(template: str, texts: Mapping[Item, str]) -> str:
    """The page of a paper: what holds, what does not, and a table of its items."""
    rows = [(f"[{_short(item.title)}]({item.name}.md)", *summary(text)) for item, text in texts.items()]
    table = _rows(("figure, table or claim", "verdict", "agreement"), rows)
    return _led(template, table, [item.name for item in texts])


def index(papers: Mapping[str, str]) -> str:
    """A page that lists the papers, by the name of their page."""
    rows = []
    for name, text in papers.items():
        opening = text.split("\n\n")
        rows.append((f"[{opening[0].removeprefix('# ')}]({name}.md)", opening[1]))
    table = _rows(("paper", "in short"), rows)
    return _led(_template.read(__package__, "index.md"), table, list(papers))


def _led(template: str, table: str, pages: Sequence[str]) -> str:
    """A page with a table, and the contents of the site below it."""
    contents = "\n".join(("```{toctree}", ":hidden:", "", *pages, "```"))
    return _template.rendered(template, {"table": table, "contents": contents}) + "\n"


def _short(title: str) -> str:
    """A title without the name of its paper.

    >>> _short("Balle et al. 2019, Figure 2: the blanket")
    'Figure 2: the blanket'
    """
    rest = re.sub(r"^[^,:]* \d{4}[,:] ", "", title)
    return rest[0].upper() + rest[1:]


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
    for (i, j), value in np.ndenumerate(values):
        x = left + (j + 0.5) * (right - left) / columns
        y = bottom + (i + 0.5) * (top - bottom) / rows
        yield panel.title, panel.scale, "", _number(x), _number(y), _number(value), ""


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.10g}"


def _table(table: Table) -> str:
    return f"**{table.title}**\n\n{_rows(table.columns, table.rows)}"


def _rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in (columns, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(columns), *lines[1:]])
