"""What notebooks show instead of a long line of code.

>>> table(["a"], [["<1"]], caption="c")
'<table><caption>c</caption><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;1</td></tr></tbody></table>'
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any


def table(header: Sequence[Any], rows: Iterable[Sequence[Any]], caption: str = "") -> str:
    """A table; everything in it is text."""

    def line(tag: str, cells: Sequence[Any]) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    above = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    head = f"<thead>{line('th', header)}</thead>" if header else ""
    return f"<table>{above}{head}<tbody>{''.join(line('td', row) for row in rows)}</tbody></table>"


def text(lines: str) -> str:
    """Text as it stands."""
    return f"<pre>{html.escape(lines)}</pre>"
