"""Files that appear whole or not at all: whoever writes a file that matters, writes it here.

    with atomic_file(path) as partial: ...    whatever writes to a path
    write_text(path, text), write_bytes(path, data)

What is written goes to a file named ``<name>.<random>.partial`` in the same directory, is forced to
the disk, and is then renamed. An error or Ctrl-C removes it. After ``kill -9`` or a power cut it stays
behind under that name, which no reader of ``<name>`` takes for the real one; it can be deleted. What is
about single people is ``private``: nobody but its owner reads it, not even while it is written.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     with atomic_file(Path(folder) / "a.txt") as partial:
...         _ = partial.write_text("whole")
...     (Path(folder) / "a.txt").read_text()
'whole'
"""

from __future__ import annotations

import csv
import io
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PathLike = str | os.PathLike[str]

SUFFIX = ".partial"
_TAKEN = "output must not exist yet, got {!r}"


@contextmanager
def atomic_file(
    path: PathLike,
    *,
    replace: bool = False,
    private: bool = False,
    confirm: Callable[[Path], None] = lambda partial: None,
) -> Iterator[Path]:
    """A file to write, which becomes ``path`` when the block ends without an error.

    FileExistsError where ``path`` exists, unless it may be replaced: reports never are, silently. Of two who
    write the same new file one wins, and the other gets that error. ``private``: mode 0600. ``confirm`` is
    called with the file when it is whole and on the disk, before it gets its name."""
    path = Path(path)
    if replace and path.exists() and not path.is_file():
        yield path  # a pipe or a device is written to, not replaced
        return
    check_place(path, replace)
    partial = _partial(path)
    try:
        if private:
            os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield partial
        force_to_disk(partial)
        confirm(partial)
        (os.replace if replace else _claim)(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    if os.name == "posix":
        force_to_disk(path.parent)


def write_bytes(path: PathLike, data: bytes) -> None:
    """A file of these bytes, in the place of another one of the name."""
    with atomic_file(path, replace=True) as partial:
        partial.write_bytes(data)


def write_text(path: PathLike, text: str) -> None:
    """A file of this text, the same bytes on every system, in the place of another one of the name."""
    write_bytes(path, text.encode())


def as_csv(rows: Iterable[Sequence[Any]]) -> str:
    """Every number as Python writes it, so that reading it back gives the same number."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


@contextmanager
def partial_folder(path: Path) -> Iterator[Path]:
    """A folder beside ``path`` for intermediate files; removed in the end, whatever happens."""
    folder = _partial(path)
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _partial(path: Path) -> Path:
    return path.with_name(f"{path.name}.{secrets.token_hex(8)}{SUFFIX}")


def _claim(partial: Path, path: Path) -> None:
    """Give a file its name, if nobody else has it: checking first and renaming then would leave a gap."""
    try:
        os.link(partial, path)
    except FileExistsError:
        raise FileExistsError(_TAKEN.format(str(path))) from None
    except OSError:  # a file system without hard links: the name is taken first
        check_place(path, replace=False)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        os.replace(partial, path)
    else:
        partial.unlink()


def check_place(path: Path, replace: bool) -> None:
    """FileExistsError or FileNotFoundError where a file cannot be written, said before any work is done."""
    if path.exists() and not replace:
        raise FileExistsError(_TAKEN.format(str(path)))
    if not path.parent.is_dir():
        raise FileNotFoundError(f"output must be in an existing folder, got {str(path)!r}")


def force_to_disk(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    # Windows forces only what is open for writing, POSIX also folders.
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
