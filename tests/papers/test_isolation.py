"""Formulas known to be wrong cannot be reached from the rest of the library."""

import ast
import inspect
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

import shuffledp

pytestmark = pytest.mark.quick

ROOT = Path(shuffledp.__file__).parent
PAPERS = ROOT / "papers"
QUARANTINE = ROOT / "literature" / "as_published"
BARRED = ("shuffledp.papers", "shuffledp.literature.as_published")
DOORS = {
    ROOT / "literature" / "_quarantined.py": "shuffledp.literature.as_published",
    ROOT / "literature" / "compare.py": "shuffledp.literature._quarantined",
    ROOT / "cli" / "commands" / "reproduce.py": "shuffledp.papers",
}
"""Who may import what: the comparison, which shows these formulas beside the sound ones and labels them, and
the command that draws the papers' figures."""
MODULES = [module.name for module in iter_modules([str(QUARANTINE)]) if module.name[0] != "_"]


def imported(path: Path) -> set[str]:
    """The absolute names of all that a file imports."""
    package = ["shuffledp", *path.relative_to(ROOT).parent.parts]
    return imported_by(path.read_text(encoding="utf-8"), package)


def imported_by(source: str, package: list[str]) -> set[str]:
    """The same for source code that stands in a package; relative imports are resolved."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            names.add(start)
            names.update(f"{start}.{alias.name}" for alias in node.names)
    return names


def test_no_other_module_imports_what_is_wrong() -> None:
    barred = (*BARRED, "shuffledp.literature._quarantined")
    for path in sorted(ROOT.rglob("*.py")):
        if PAPERS not in path.parents and QUARANTINE not in path.parents:
            reached = {name for name in imported(path) if name.startswith(barred)}
            reached = {name for name in reached if not name.startswith(DOORS.get(path, "-"))}
            assert not reached, f"{path.relative_to(ROOT)} imports {reached}"


@pytest.mark.parametrize(
    "line",
    [
        "import shuffledp.literature.as_published._tables",
        "from shuffledp.literature import as_published",
        "from shuffledp import papers",
        "from shuffledp.literature.as_published.balle_2019 import x",
        "from .. import papers",
        "from ..papers import koskela_2023",
    ],
)
def test_the_check_would_see_an_import(line: str) -> None:
    found = imported_by(line, package=["shuffledp", "accounting"])
    assert any(name.startswith(BARRED) for name in found)


@pytest.mark.parametrize("name", MODULES)
def test_every_function_of_a_paper_says_that_it_is_as_published(name: str) -> None:
    module = import_module(f"shuffledp.literature.as_published.{name}")
    own = [
        label
        for label, value in inspect.getmembers(module, inspect.isfunction)
        if value.__module__ == module.__name__ and not label.startswith("_")
    ]
    assert own
    assert all(label.endswith("_as_published") for label in own), own
