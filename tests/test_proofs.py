"""The pages of proofs: every number that is cited is a theorem there, and every theorem is cited."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROOFS = ROOT / "docs" / "proofs"
NUMBER = re.compile(r"(?<![\w.])([TV]\d{1,2}'?)(?![\w'])")
HEADING = re.compile(r"^#+ .*$|^\*\*T\d+'?.*$", re.MULTILINE)
PATH = re.compile(r"`((?:src|tests|docs)/[\w./-]+\.(?:py|md|json))`")

pytestmark = pytest.mark.quick


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def theorems() -> dict[str, Path]:
    """The numbers in headings, with their pages."""
    pages = [page for page in sorted(PROOFS.glob("*.md")) if page.name != "index.md"]
    return {
        number: page
        for page in pages
        for heading in HEADING.findall(text(page))
        for number in NUMBER.findall(heading)
    }


def cited(folder: str) -> set[str]:
    here = Path(__file__).name
    return {
        number
        for path in (ROOT / folder).rglob("*.py")
        if path.name != here
        for number in NUMBER.findall(text(path))
    }


def test_every_cited_number_is_a_theorem() -> None:
    known = theorems().keys()
    assert not cited("src") - known
    assert not cited("tests") - known
    for page in (ROOT / "docs").rglob("*.md"):
        if "_build" not in page.parts and page.parent.name != "papers":
            assert not set(NUMBER.findall(text(page))) - known, page


def family(numbers: set[str]) -> set[str]:
    """T5' is of the family of T5."""
    return {number.rstrip("'") for number in numbers}


def test_every_theorem_is_used_and_checked() -> None:
    numbers = family(set(theorems()))
    assert {f"T{i}" for i in range(1, 16)} <= numbers
    assert not numbers - family(cited("src")), "used nowhere"
    assert not numbers - family(cited("tests")), "checked nowhere"


def test_every_theorem_is_in_the_table_and_every_page_names_its_tests() -> None:
    table = set(NUMBER.findall(text(PROOFS / "index.md")))
    assert not set(theorems()) - table
    for page in theorems().values():
        assert "tests/" in text(page), f"{page.name} names no test"


def test_files_that_the_proofs_name_exist() -> None:
    for page in PROOFS.glob("*.md"):
        for name in PATH.findall(text(page)):
            assert (ROOT / name).exists(), f"{page.name} names {name}"
