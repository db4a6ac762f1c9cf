"""A paper's prose: Markdown beside its figures, numbers by name.

A page is a template ``figure_4.md`` in the paper's folder. ``{tail:.3e}`` is a number in Python's format
language, ``{truth.lower:.3e}`` an attribute, ``{end[Theorem 1]:.3f}`` an entry; ``{picture}`` and
``{tables}`` are filled in for every page. A line ``<!-- include: _why.md -->`` stands for that file of
the same folder. Lines are broken where it suits the author: a paragraph becomes one line.

>>> rendered("# A page\\n\\nIt is {x:.2f},\\nnot {y}.", {"x": 1.0, "y": 2})
'# A page\\n\\nIt is 1.00, not 2.'
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from string import Formatter
from typing import Any

_INCLUDE = re.compile(r"^<!-- include: (\w+\.md) -->$", re.MULTILINE)


def read(package: str, name: str) -> str:
    """The template ``name`` of a paper's package, with what it includes."""
    text = (files(package) / name).read_text(encoding="utf-8").strip()
    return _INCLUDE.sub(lambda found: read(package, found[1]), text)


def rendered(template: str, values: Mapping[str, Any]) -> str:
    """The text with its values; a ValueError where a name has no value, or a value no place."""
    named = {re.split(r"[.\[]", field)[0] for _, field, *_ in Formatter().parse(template) if field}
    if missing := named - values.keys():
        raise ValueError(f"the page must be given {', '.join(sorted(missing))}, got no such value")
    if unused := values.keys() - named:
        raise ValueError(f"the page must name {', '.join(sorted(unused))}, got a text without")
    paragraphs = (" ".join(part.split()) for part in re.split(r"\n\s*\n", template.strip()))
    return "\n\n".join(paragraphs).format_map(values)
