"""The gallery: every notebook runs, and every cell still shows the kinds of output that are stored.

``REWRITE=1`` stores what they show today."""

import os
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

NOTEBOOKS = sorted((Path(__file__).parents[1] / "examples" / "notebooks").glob("*.ipynb"))
NEEDED = {
    "survey": ("pandas", "polars", "matplotlib"),
    "train": ("torch",),
    "compare": ("matplotlib",),
    "service": ("fcntl", "starlette", "uvicorn", "httptools", "cryptography", "pyarrow"),
}


def kinds(book: Any) -> list[set[str]]:
    """What each cell shows: tables, pictures, texts."""
    return [
        {kind for out in cell.get("outputs", []) for kind in out.get("data", {"text": ""})}
        for cell in book.cells
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_showed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NEEDED.get(path.stem, ()):
        pytest.importorskip(name)
    source = str(Path(__file__).parents[1] / "src")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]))
    stored, book = (nbformat.read(path, as_version=4) for _ in range(2))
    nbclient.NotebookClient(book, timeout=600, kernel_name="python3").execute()
    assert kinds(book) == kinds(stored)
    if "REWRITE" in os.environ:
        for cell in book.cells:
            cell.metadata.pop("execution", None)  # times
        nbformat.write(book, path)


def test_all_notebooks_are_in_the_gallery() -> None:
    page = (Path(__file__).parents[1] / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert NOTEBOOKS
    assert all(f"notebooks/{path.name})" in page for path in NOTEBOOKS)
