"""Files that appear whole or not at all, also where they take the place of another."""

import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from shuffledp._files import atomic_file, write_bytes, write_text


def test_a_file_is_refused_or_replaced_as_asked(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("old")
    with pytest.raises(FileExistsError, match="must not exist yet"), atomic_file(file):
        pass
    with atomic_file(file, replace=True) as partial:
        partial.write_text("new")
        assert file.read_text() == "old"
    assert file.read_text() == "new"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path, error: type[BaseException]) -> None:
    file = tmp_path / "a.txt"
    file.write_text("old")
    with suppress(error), atomic_file(file, replace=True) as partial:
        partial.write_text("half")
        raise error
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_texts_are_the_same_bytes_on_every_system(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    write_text(file, "größer\n")
    assert file.read_bytes() == b"gr\xc3\xb6\xc3\x9fer\n"
    write_bytes(str(file), b"\x00\xff")
    assert file.read_bytes() == b"\x00\xff"
    assert list(tmp_path.iterdir()) == [file]


def test_file_and_folder_are_forced_to_the_disk_around_the_renaming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []
    renamed = os.replace

    def rename(old: Path, new: Path) -> None:
        happened.append("rename")
        renamed(old, new)

    monkeypatch.setattr(os, "fsync", lambda descriptor: happened.append("fsync"))
    monkeypatch.setattr(os, "replace", rename)
    write_text(tmp_path / "a.txt", "kept")
    assert happened == ["fsync", "rename", "fsync"][: 3 if os.name == "posix" else 2]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    with atomic_file(pipe, replace=True) as partial:
        partial.write_text("all of it")
    reader.join(timeout=10)
    assert read == ["all of it"]
    assert pipe.is_fifo()
