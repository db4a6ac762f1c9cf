"""The Python in README.md and docs/ runs as printed: the blocks of a page share one namespace."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def python_blocks(page: Path) -> list[str]:
    """The Python blocks of a page, each shifted to its own line number for readable tracebacks."""
    text = page.read_text(encoding="utf-8")
    return ["\n" * text.count("\n", 0, m.start(1)) + m[1] for m in BLOCK.finditer(text)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_python_block_of_the_page_runs(page: Path) -> None:
    namespace: dict[str, object] = {"__name__": "__page__"}
    for block in python_blocks(page):
        exec(compile(block, str(page), "exec"), namespace)


def test_the_readme_shows_python() -> None:
    assert python_blocks(ROOT / "README.md")
