"""Formulas known to be wrong cannot be reached from the rest of the library."""

import ast
import inspect
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

import shuffledp
from shuffledp import papers

pytestmark = pytest.mark.quick

ROOT = Path(shuffledp.__file__).parent
PAPERS = ROOT / "papers"
DOOR = ROOT / "literature" / "_as_published.py"
COMMAND = ROOT / "cli" / "commands" / "reproduce.py"
MODULES = [module.name for module in iter_modules([str(PAPERS)]) if module.ispkg]


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


def test_no_other_package_imports_the_papers() -> None:
    """Two doors: the comparison, which shows these formulas beside the sound ones and labels them, and
    the command that draws the papers' figures."""
    for path in sorted(ROOT.rglob("*.py")):
        if PAPERS not in path.parents and path not in (DOOR, COMMAND):
            barred = ("shuffledp.papers", "shuffledp.literature._as_published")
            reached = {name for name in imported(path) if name.startswith(barred)}
            if DOOR.parent in path.parents:
                reached = {name for name in reached if name.startswith("shuffledp.papers")}
            assert not reached, f"{path.relative_to(ROOT)} imports {reached}"


@pytest.mark.parametrize(
    "line",
    [
        "import shuffledp.papers._tables",
        "from shuffledp import papers",
        "from shuffledp.papers.balle_2019.as_published import x",
        "from .. import papers",
        "from ..papers import koskela_2023",
    ],
)
def test_the_check_would_see_an_import(line: str) -> None:
    found = imported_by(line, package=["shuffledp", "accounting"])
    assert any(name.startswith("shuffledp.papers") for name in found)


@pytest.mark.parametrize("name", MODULES)
def test_every_function_of_a_paper_says_that_it_is_as_published(name: str) -> None:
    module = import_module(f"{papers.__name__}.{name}.as_published")
    own = [
        label
        for label, value in inspect.getmembers(module, inspect.isfunction)
        if value.__module__ == module.__name__ and not label.startswith("_")
    ]
    assert own
    assert all(label.endswith("_as_published") for label in own), own
