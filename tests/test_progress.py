"""The progress line: what a terminal sees, and that nobody else sees anything."""

import io
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from shuffledp import _progress
from shuffledp._progress import Progress, evaluated, line, quiet

pytestmark = pytest.mark.quick


@pytest.fixture(autouse=True)
def terminal_that_can_rewrite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


class Terminal(io.StringIO):
    """Says that it is one."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_rows_rate_and_time_left() -> None:
    terminal = Terminal()
    with Progress(1000, stream=terminal) as progress:
        progress.advance(1000)
    assert "100% 1,000 rows" in terminal.getvalue()
    assert terminal.getvalue().endswith("\n")
    assert line(250, 1000, 10.0).endswith("25% 250 rows, 25 rows/s, 0:30 left")
    assert line(0, 1000, 0.0).endswith("? left")
    assert line(5_000_000, None, 3661.0) == "5,000,000 rows, 1,366 rows/s, 1:01:01"


@pytest.mark.parametrize("progress", [Progress, lambda **out: Progress.clock("working", **out)])
def test_whatever_is_no_terminal_sees_nothing(progress: Callable[..., Progress]) -> None:
    stream = io.StringIO()
    with progress(stream=stream) as counting:
        counting.advance(1000)
        time.sleep(0.2)
    assert stream.getvalue() == ""


def test_whoever_does_not_ask_sees_nothing() -> None:
    terminal = Terminal()
    with Progress(1000, stream=terminal, shown=False) as progress:
        progress.advance(1000)
    assert terminal.getvalue() == ""


def test_the_latest_numbers_are_shown_beside_the_count() -> None:
    terminal = Terminal()
    with Progress(2, what="rounds", stream=terminal) as progress:
        progress.advance(2, {"accuracy": 0.97})
    assert terminal.getvalue().rstrip().endswith("accuracy=0.97")


def test_the_line_is_rewritten_while_a_step_takes_long() -> None:
    terminal = Terminal()
    with Progress(2, what="steps", stream=terminal):
        time.sleep(0.35)
    assert terminal.getvalue().count("\r") >= 2


def test_ctrl_c_ends_the_line_and_the_thread() -> None:
    terminal = Terminal()
    with suppress(KeyboardInterrupt), Progress(2, stream=terminal) as progress:
        progress.advance()
        raise KeyboardInterrupt
    said = terminal.getvalue()
    assert said.endswith("\n")
    time.sleep(0.25)
    assert terminal.getvalue() == said
    assert not progress._thread.is_alive()


def test_a_clock_shows_long_work_and_is_gone_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    with Progress.clock("calibrating", stream=terminal):
        pass
    assert terminal.getvalue() == ""
    monkeypatch.setattr(_progress, "_SECONDS_BEFORE_A_CLOCK", 0.0)
    with Progress.clock("calibrating", stream=terminal):
        time.sleep(0.15)
    lines = terminal.getvalue().split("\r")
    assert lines[1] == "calibrating, 0:00"
    assert (lines[-2].strip(), lines[-1]) == ("", "")


def test_a_clock_counts_evaluations_and_a_bar_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    evaluated()  # where nothing is shown, nothing happens
    monkeypatch.setattr(_progress, "_SECONDS_BEFORE_A_CLOCK", 0.0)
    with Progress.clock("calibrating", stream=terminal):
        evaluated()
        evaluated()
        time.sleep(0.15)
    assert "calibrating, 2 evaluations, 0:00" in terminal.getvalue()
    with Progress(2, stream=terminal) as progress:
        evaluated()
    assert progress.done == 0


def test_nobody_sees_anything_who_wants_quiet_or_cannot_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    with quiet(), Progress(1000, stream=terminal) as progress:
        progress.advance(1000)
    monkeypatch.setenv("TERM", "dumb")
    with Progress(1000, stream=terminal) as progress:
        progress.advance(1000)
    assert terminal.getvalue() == ""


def test_the_line_is_no_longer_than_the_terminal_is_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(_progress, "_USUAL_COLUMNS", 40)
    with Progress(1000, stream=terminal) as progress:
        progress.advance(1000)
    assert max(map(len, terminal.getvalue().strip().split("\r"))) < 40


def test_inside_another_line_there_is_no_second_one() -> None:
    terminal = Terminal()
    with Progress(1, what="surveys", stream=terminal), Progress(1, what="rows", stream=terminal) as p:
        p.advance()
    assert "rows" not in terminal.getvalue()
    with Progress(1, what="rows", stream=terminal):
        pass
    assert "rows" in terminal.getvalue()
