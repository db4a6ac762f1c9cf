"""Files that appear whole or not at all, also where they take the place of another."""

import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from shuffledp._files import atomic_file


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
def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, error: type[BaseException]
) -> None:
    file = tmp_path / "a.txt"
    file.write_text("old")
    with suppress(error), atomic_file(file, replace=True) as partial:
        partial.write_text("half")
        raise error
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


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
