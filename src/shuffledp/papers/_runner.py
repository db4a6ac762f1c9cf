"""Runs items and writes three files for each: NAME.png, NAME.csv and, last, NAME.md.

A page names the parameters it was made with. An item whose three files exist and whose page has the same
parameters is finished and is not run again, so an interrupted run goes on where it stopped. Each file
is written beside its place and then renamed: an interruption leaves no half a file.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from shuffledp import __version__
from shuffledp.papers._drawing import draw
from shuffledp.papers._page import index, made_with, numbers, page
from shuffledp.papers._registry import ITEMS
from shuffledp.papers._result import Item, Setting

_BAR = 20
INDEX = "index.md"


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
    pages = []
    for place, item in enumerate(items):
        start = time.monotonic()
        tell(f"{_bar(place, len(items))} {item.name}")
        if force or not is_finished(item, setting, folder):
            _run(item, setting, folder)
            done = f"done in {time.monotonic() - start:.1f} s"
        else:
            done = "finished before, skipped"
        tell(f"{_bar(place + 1, len(items))} {item.name}: {done}")
        pages.append(folder / f"{item.name}.md")
        _write_index(folder)
    return pages


def stamp(item: Item, setting: Setting) -> dict[str, Any]:
    """The parameters that decide what an item's files contain."""
    known: dict[str, Any] = {"item": item.name, "quick": setting.quick, "version": __version__}
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
    target = folder / item.name
    target.with_name(f"{item.name}.md").unlink(missing_ok=True)
    result = item.run(setting)
    _replace(folder / f"{item.name}.png", lambda path: draw(result, path))
    _replace(folder / f"{item.name}.csv", _text(numbers(result)))
    _replace(folder / f"{item.name}.md", _text(page(item, result, stamp(item, setting))))


def _write_index(folder: Path) -> None:
    present = {item.name for item in ITEMS if (folder / f"{item.name}.md").is_file()}
    _replace(folder / INDEX, _text(index(list(ITEMS), present)))


def _text(content: str) -> Callable[[Path], Any]:
    return lambda path: path.write_text(content, encoding="utf-8", newline="\n")


def _replace(path: Path, write: Callable[[Path], Any]) -> None:
    """Write beside ``path``, then rename: whole or not at all."""
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")
    try:
        write(partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _digest(path: Path) -> str:
    """Of a file, or of all files of a folder."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    whole = hashlib.sha256()
    for file in files:
        if file.is_file():
            whole.update(file.name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return whole.hexdigest()[:16]


def _bar(done: int, total: int) -> str:
    full = done * _BAR // total
    return f"[{'#' * full}{' ' * (_BAR - full)}] {done}/{total}"
