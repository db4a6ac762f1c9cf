"""Runs items and writes three files for each: NAME.png, NAME.csv and, last, NAME.md.

A page names the parameters it was made with. An item whose three files exist and whose page has the same
parameters is finished and is not run again, so an interrupted run goes on where it stopped. An
interruption leaves no half a file.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from shuffledp._files import atomic_file, write_text
from shuffledp._progress import Progress
from shuffledp.papers._drawing import draw
from shuffledp.papers._page import index, made_with, numbers, page
from shuffledp.papers._result import Item, Setting

PAPERS = ("koskela_2023", "koskela_2021", "balle_2019", "biswas_2022", "girgis_2021")
"""The folders, in the order of the index."""
INDEX = "index.md"


def _items(paper: str) -> Iterator[Item]:
    """The items of a paper: those of its modules, in the order in which they are written."""
    folder = import_module(f"shuffledp.papers.{paper}")
    for found in iter_modules(folder.__path__, f"{folder.__name__}."):
        for value in vars(import_module(found.name)).values():
            if isinstance(value, Item):
                yield value


ITEMS = tuple(item for paper in PAPERS for item in _items(paper))
BY_NAME = {item.name: item for item in ITEMS}


def named(names: Sequence[str]) -> list[Item]:
    """The items of these names, in the order of the list; a ValueError names what is unknown."""
    unknown = [name for name in names if name not in BY_NAME]
    if unknown:
        raise ValueError(f"NAME must be one of {', '.join(BY_NAME)}, got {', '.join(map(repr, unknown))}")
    return [item for item in ITEMS if item.name in names]


def reproduce(
    items: Sequence[Item],
    setting: Setting,
    folder: Path,
    *,
    force: bool = False,
    tell: Callable[[str], Any] = lambda line: None,
) -> list[Path]:
    """The pages of the items, written to ``folder``; ``tell`` gets a line about each."""
    folder.mkdir(parents=True, exist_ok=True)
    for place, item in enumerate(items, start=1):
        start, done = time.monotonic(), "finished before, skipped"
        what = f"{place}/{len(items)} {item.name}"
        if force or not is_finished(item, setting, folder):
            with Progress.clock(what):
                _run(item, setting, folder)
            done = f"done in {time.monotonic() - start:.1f} s"
        tell(f"{what}: {done}")
        present = [each for each in ITEMS if (folder / f"{each.name}.md").is_file()]
        write_text(folder / INDEX, index(present))
    return [folder / f"{item.name}.md" for item in items]


def stamp(item: Item, setting: Setting) -> dict[str, Any]:
    """The parameters that decide what an item's files contain."""
    known = {"item": item.name, "quick": setting.quick, "version": setting.version}
    if item.uses_data and setting.data is not None:
        known["data"] = _digest(setting.data)
    return known


def is_finished(item: Item, setting: Setting, folder: Path) -> bool:
    """Whether all three files are there, made with the same parameters."""
    files = [folder / f"{item.name}{suffix}" for suffix in (".png", ".csv", ".md")]
    if not all(file.is_file() for file in files):
        return False
    return made_with(files[2].read_text(encoding="utf-8")) == stamp(item, setting)


def _run(item: Item, setting: Setting, folder: Path) -> None:
    # The page goes first and comes back last: while it is missing, the item is unfinished.
    (folder / f"{item.name}.md").unlink(missing_ok=True)
    result = item.run(setting)
    text = page(item, result, stamp(item, setting))
    with atomic_file(folder / f"{item.name}.png", replace=True) as partial:
        draw(result, partial)
    write_text(folder / f"{item.name}.csv", numbers(result))
    write_text(folder / f"{item.name}.md", text)


def _digest(path: Path) -> str:
    """Of a file, or of all files of a folder."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    whole = hashlib.sha256()
    for file in files:
        if file.is_file():
            whole.update(file.name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return whole.hexdigest()[:16]
