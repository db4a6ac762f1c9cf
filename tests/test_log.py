"""The append-only file: crashes, tampering, writers at the same time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from shuffledp._log import locked
from shuffledp.errors import LogCorruptError, TornLineWarning

pytestmark = pytest.mark.quick

SOURCE = Path(__file__).parents[1] / "src"


def python(code: str, *arguments: object) -> subprocess.Popen[bytes]:
    """Another process."""
    command = [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(SOURCE)})


def write(path: Path, count: int) -> None:
    path.touch()
    with locked(path, write=True) as log:
        for i in range(count):
            log.append({"value": i})


def values(path: Path) -> list[int]:
    with locked(path, write=False) as log:
        return [record.content["value"] for record in log.records]


def test_what_was_appended_is_read_back_in_order(tmp_path: Path) -> None:
    write(tmp_path / "log", 3)
    write(tmp_path / "log", 2)
    assert values(tmp_path / "log") == [0, 1, 2, 0, 1]


def test_a_line_cut_anywhere_is_skipped_with_a_notice_and_then_replaced(tmp_path: Path) -> None:
    path = tmp_path / "log"
    write(path, 3)
    whole = path.read_bytes()
    last = len(whole[:-1].rsplit(b"\n", 1)[0]) + 1
    for end in range(last + 1, len(whole)):
        path.write_bytes(whole[:end])
        with pytest.warns(TornLineWarning, match="cut by a crash"):
            assert values(path) == [0, 1]
        if end % 50 == 0:
            with pytest.warns(TornLineWarning):
                write(path, 1)
            assert values(path) == [0, 1, 0]


def test_zeros_that_a_power_cut_left_are_no_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    write(path, 2)
    path.write_bytes(path.read_bytes() + bytes(100))
    with pytest.warns(TornLineWarning):
        assert values(path) == [0, 1]


def test_a_torn_line_longer_than_the_next_one_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "log"
    write(path, 1)
    path.write_bytes(path.read_bytes() + b'{"content":' + b"x" * 5000)
    with pytest.warns(TornLineWarning):
        write(path, 1)
    assert values(path) == [0, 0]


def test_every_changed_byte_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    write(path, 3)
    whole = path.read_bytes()
    for place in range(len(whole) - 1):
        changed = bytearray(whole)
        changed[place] ^= 1
        path.write_bytes(bytes(changed))
        with pytest.raises(LogCorruptError, match="is not what was written"):
            values(path)


def test_removed_repeated_and_exchanged_lines_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    write(path, 4)
    a, b, c, d = path.read_bytes().splitlines(keepends=True)
    for lines in ([b, c, d], [a, c, d], [a, b, b, c, d], [a, c, b, d], [a, b, c, d, a]):
        path.write_bytes(b"".join(lines))
        with pytest.raises(LogCorruptError):
            values(path)


def test_a_line_that_is_right_in_itself_but_rewritten_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    write(path, 2)
    first, second = path.read_text().splitlines(keepends=True)
    spaced = json.dumps(json.loads(second)) + "\n"
    path.write_text(first + spaced)
    with pytest.raises(LogCorruptError):
        values(path)


def test_nothing_is_written_to_a_corrupt_file(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"not a log\n")
    with pytest.raises(LogCorruptError), locked(path, write=True) as log:
        log.append({"value": 1})
    assert path.read_bytes() == b"not a log\n"


FULL = """
import resource, sys
from pathlib import Path
from shuffledp._log import locked
path = Path(sys.argv[1])
room = path.stat().st_size + int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
try:
    with locked(path, write=True) as log:
        log.append({"value": 9})
except OSError as error:
    sys.exit(str(error).count("too large"))
"""


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
@pytest.mark.parametrize("room", [0, 1, 60])
def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path, room: int) -> None:
    path = tmp_path / "log"
    write(path, 2)
    before = path.read_bytes()
    assert python(FULL, path, room).wait() == 1
    assert path.read_bytes() == before
    write(path, 1)
    assert values(path) == [0, 1, 0]


DIES_HALFWAY = """
import os, signal, sys
from pathlib import Path
from shuffledp import _log as chained_log

def half(record, previous, line=chained_log._line):
    text = line(record, previous)
    if not hasattr(half, "armed"):
        return text
    os.write(half.file.fileno(), text[: len(text) // 2])
    os.kill(os.getpid(), signal.SIGKILL)

chained_log._line = lambda record, previous: half(record, previous)
with chained_log.locked(Path(sys.argv[1]), write=True) as log:
    log.append({"value": 0})
    chained_log._line = half
    half.armed, half.file = True, log._file
    log.append({"value": 1})
"""


def test_a_process_killed_halfway_through_a_line_loses_that_line_only(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.touch()
    assert python(DIES_HALFWAY, path).wait() == -signal.SIGKILL
    assert not path.read_bytes().endswith(b"\n")
    with pytest.warns(TornLineWarning):
        assert values(path) == [0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TornLineWarning)
        write(path, 2)
    assert values(path) == [0, 0, 1]


APPENDS_FOR_EVER = """
import sys
from pathlib import Path
from shuffledp._log import locked
i = 0
while True:
    with locked(Path(sys.argv[1]), write=True) as log:
        log.append({"value": len(log.records), "padding": "x" * 20000})
        print(len(log.records), file=open(sys.argv[2], "w"), flush=True)
"""


def test_killing_a_writer_at_any_time_leaves_every_confirmed_line(tmp_path: Path) -> None:
    path, confirmed = tmp_path / "log", tmp_path / "confirmed"
    path.touch()
    for attempt in range(3):
        writer = python(APPENDS_FOR_EVER, path, confirmed)
        while not confirmed.exists() or not confirmed.read_text().strip():
            time.sleep(0.01)
        time.sleep(0.05 * attempt)
        writer.kill()
        writer.wait()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TornLineWarning)
            found = values(path)
        assert found == list(range(len(found)))
        assert len(found) >= int(confirmed.read_text() or 0)
        confirmed.unlink()


APPENDS_MANY = """
import sys
from pathlib import Path
from shuffledp._log import locked
for i in range(25):
    with locked(Path(sys.argv[1]), write=True) as log:
        log.append({"value": int(sys.argv[2])})
"""


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.touch()
    writers = [python(APPENDS_MANY, path, who) for who in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    found = values(path)
    assert sorted(found) == sorted([0, 1, 2] * 25)
