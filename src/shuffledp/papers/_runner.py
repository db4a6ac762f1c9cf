"""Runs items and writes three files for each: NAME.png, NAME.csv and, last, NAME.md; a page for each paper.

A page names the parameters it was made with, its template among them. An item whose three files exist and
whose page has the same parameters is finished and is not run again, so an interrupted run goes on where it
stopped. An interruption leaves no half a file. Page and picture also keep a digest of the numbers they were
made from, and the page one of its own text: who changes one of the three by hand, or the drawing, is found
out (``stale``); the picture also one of its labels and colours, for whoever runs the item again.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from shuffledp._files import write_text
from shuffledp._progress import Progress
from shuffledp.papers import _template
from shuffledp.papers._drawing import draw, looks, made_from
from shuffledp.papers._page import body, index, made_with, numbers, overview, page
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
        near = get_close_matches(unknown[0], BY_NAME, 3, 0.5)
        known = f"near are {', '.join(near)}" if near else f"there are {', '.join(BY_NAME)}"
        raise ValueError(f"NAME must be one that --list shows, got {', '.join(map(repr, unknown))}; {known}")
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
        _lead(folder)
    return [folder / f"{item.name}.md" for item in items]


def _lead(folder: Path) -> None:
    """The page of every paper of which something is there, and the index of them."""
    leading = leading_pages(folder)
    for name, text in leading.items():
        write_text(folder / f"{name}.md", text)
    write_text(folder / INDEX, index(leading))


def leading_pages(folder: Path) -> dict[str, str]:
    """Name and text of the page of every paper of which something is in the folder."""
    found = {}
    for paper in PAPERS:
        pages = {item: folder / f"{item.name}.md" for item in _items(paper)}
        texts = {item: page.read_text(encoding="utf-8") for item, page in pages.items() if page.is_file()}
        if texts:
            template = _template.read(f"{__package__}.{paper}", "_paper.md")
            found[paper.replace("_", "-")] = overview(template, texts)
    return found


def stamp(item: Item, setting: Setting) -> dict[str, Any]:
    """The parameters that decide what an item's files contain."""
    known = {"item": item.name, "quick": setting.quick, "version": setting.version}
    known["template"] = _sha(item.template.encode())
    if item.uses_data and setting.data is not None:
        known["data"] = _digest(setting.data)
    return known


def stale(item: Item, folder: Path) -> str:
    """What of an item's three files does not fit the others or the current template, if anything."""
    png, csv, md = _files(item, folder)
    made = made_with(text := md.read_text(encoding="utf-8")) or {}
    if made.get("template") != _sha(item.template.encode()):
        return f"{md.name} was made from another template"
    if made.get("numbers") != _sha(csv.read_bytes()):
        return f"{md.name} was made from other numbers than {csv.name}"
    if made.get("text") != _sha(body(text).encode()):
        return f"{md.name} was changed after it was made"
    if made_from(csv.read_text(encoding="utf-8")).encode() not in png.read_bytes():
        return f"{png.name} was drawn from other numbers than {csv.name}, or otherwise"
    return ""


def _files(item: Item, folder: Path) -> list[Path]:
    return [folder / f"{item.name}{suffix}" for suffix in (".png", ".csv", ".md")]


def is_finished(item: Item, setting: Setting, folder: Path) -> bool:
    """Whether all three files are there, made with the same parameters."""
    files = _files(item, folder)
    if not all(file.is_file() for file in files):
        return False
    made = made_with(files[2].read_text(encoding="utf-8")) or {}
    return {key: made[key] for key in made.keys() - {"numbers", "text"}} == stamp(item, setting)


def _run(item: Item, setting: Setting, folder: Path) -> None:
    # The page goes first and comes back last: while it is missing, the item is unfinished.
    (folder / f"{item.name}.md").unlink(missing_ok=True)
    result = item.run(setting)
    table = numbers(result)
    made = {**stamp(item, setting), "numbers": _sha(table.encode())}
    made["text"] = _sha(body(page(item, result, made)).encode())
    text = page(item, result, made)
    draw(result, folder / f"{item.name}.png", f"{made_from(table)} {looks(result)}")
    write_text(folder / f"{item.name}.csv", table)
    write_text(folder / f"{item.name}.md", text)


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _digest(path: Path) -> str:
    """Of a file, or of all files of a folder."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    whole = hashlib.sha256()
    for file in files:
        if file.is_file():
            whole.update(file.name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return whole.hexdigest()[:16]
