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


def test_of_two_writers_of_one_new_file_exactly_one_wins_and_the_other_is_told(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    with pytest.raises(FileExistsError, match="must not exist yet"), atomic_file(file) as first:  # noqa: PT012
        first.write_text("first")
        with atomic_file(file) as second:
            second.write_text("second")
    assert file.read_text() == "second"
    assert list(tmp_path.iterdir()) == [file]


def test_a_race_of_many_writers_has_one_winner(tmp_path: Path) -> None:
    for turn in range(20):
        file = tmp_path / f"{turn}.txt"
        won: list[str] = []
        told: list[str] = []
        start = threading.Barrier(4)

        def write(name: str, file=file, won=won, told=told, start=start) -> None:  # type: ignore[no-untyped-def]
            try:
                with atomic_file(file) as partial:
                    partial.write_text(name)
                    start.wait()
                won.append(name)
            except FileExistsError:
                told.append(name)

        threads = [threading.Thread(target=write, args=(str(i),)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(won), len(told)) == (1, 3)
        assert file.read_text() == won[0]


def test_a_file_system_without_hard_links_has_one_winner_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(old: Path, new: Path) -> None:
        raise PermissionError("no hard links here")

    monkeypatch.setattr(os, "link", refuse)
    test_of_two_writers_of_one_new_file_exactly_one_wins_and_the_other_is_told(tmp_path)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX permissions")
def test_a_private_file_is_never_readable_by_others(tmp_path: Path) -> None:
    with atomic_file(tmp_path / "a", private=True) as partial:
        assert partial.stat().st_mode & 0o777 == 0o600
        partial.write_text("secret")
        assert partial.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
