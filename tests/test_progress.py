"""The progress line: what a terminal sees, and that nobody else sees anything."""

import io
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import shuffledp as sdp
from shuffledp import _progress
from shuffledp._progress import Progress, expected, line, quiet, working
from shuffledp.accounting._curves.profile import PrivacyProfile
from shuffledp.accounting._rounds.loss import Samples
from shuffledp.cli.main import cli
from shuffledp.errors import LongWorkWarning

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


def test_a_clock_counts_steps_and_a_bar_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(_progress, "_SECONDS_BEFORE_A_CLOCK", 0.0)
    with Progress.clock("calibrating", stream=terminal), expected(8, "bounding") as step:
        step()
        step()
        time.sleep(0.15)
    assert "calibrating, 2 evaluations, 0:00" in terminal.getvalue()
    with Progress(2, stream=terminal) as progress, expected(2, "bounding") as step:
        step()
    assert progress.done == 0


def all_is_work(monkeypatch: pytest.MonkeyPatch, seconds: Callable[[], float]) -> None:
    """A clock, by which this thread never waits."""
    monkeypatch.setattr(_progress, "_worked", seconds)
    monkeypatch.setattr(_progress, "monotonic", seconds)


@pytest.mark.parametrize(
    ("share", "said"), [(0.01, []), (0.25, ["bounding epsilon will take about 25 s, of which 5 s are over"])]
)
def test_waiting_on_a_busy_machine_is_not_counted(
    monkeypatch: pytest.MonkeyPatch, share: float, said: list[str]
) -> None:
    passed = 0.0
    monkeypatch.setattr(_progress, "monotonic", lambda: passed)
    monkeypatch.setattr(_progress, "_worked", lambda: share * passed)
    with warnings.catch_warnings(record=True) as seen, expected(5, "bounding epsilon") as step:
        warnings.simplefilter("always", LongWorkWarning)
        for _ in range(5):
            passed += 20.0
            step()
    assert [str(one.message) for one in seen] == said


def test_long_work_is_announced_after_its_first_step_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    worked = 0.0
    all_is_work(monkeypatch, lambda: worked)
    with expected(4, "calibrating") as step:
        for _ in range(4):
            worked += 1.0
            step()
    with warnings.catch_warnings(record=True) as seen, expected(3, "calibrating") as step:
        warnings.simplefilter("always", LongWorkWarning)
        for _ in range(3):
            with expected(2, "bounding epsilon") as inner:
                worked += 20.0
                inner()
                worked += 30.0
                inner()
            step()
    assert [str(one.message) for one in seen] == [
        "bounding epsilon will take about 40 s, of which 20 s are over",
        "calibrating will take about 2 minutes, of which 50 s are over",
    ]


def test_work_that_no_step_foretells_is_announced_before_ten_seconds_and_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worked = 0.0
    all_is_work(monkeypatch, lambda: worked)
    with warnings.catch_warnings(record=True) as seen, expected(3, "bounding epsilon"):
        warnings.simplefilter("always", LongWorkWarning)
        for _ in range(9):
            with expected(1, "comparing pairs of inputs") as inner:
                worked += 1.5
                inner()
    assert [str(one.message) for one in seen] == ["bounding epsilon has taken 8 s, and may take long"]


def test_long_work_between_steps_is_announced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    worked = 0.0
    all_is_work(monkeypatch, lambda: worked)
    working()  # part of nothing
    with warnings.catch_warnings(record=True) as seen, expected(3, "bounding epsilon"):
        warnings.simplefilter("always", LongWorkWarning)
        for _ in range(9):
            worked += 2.0
            working()
    assert [str(one.message) for one in seen] == ["bounding epsilon has taken 8 s, and may take long"]


def test_a_short_first_step_that_prepares_the_others_is_not_taken_for_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worked = 0.0
    all_is_work(monkeypatch, lambda: worked)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", LongWorkWarning)
        for first, others, prepared in (
            (0.5, 0.01, True),
            (0.5, 0.01, False),
            (0.5, 0.3, True),
            (2.0, 0.01, True),
        ):
            with expected(50, "answers", prepared) as step:
                for place in range(3):
                    worked += first if place == 0 else others
                    step()
    assert [str(one.message) for one in seen] == [
        "answers will take about 25 s, of which 0 s are over",
        "answers will take about 15 s, of which 1 s are over",
        "answers will take about 100 s, of which 2 s are over",
    ]


def test_many_points_of_rounds_are_announced_after_the_first_few(monkeypatch: pytest.MonkeyPatch) -> None:
    worked, evaluated = 0.0, Samples.at.__func__  # type: ignore[attr-defined]

    def at(cls: type[Samples], profile: PrivacyProfile, index: np.ndarray, *rest: Any) -> Samples:
        nonlocal worked
        worked += 0.01 * index.size
        found: Samples = evaluated(cls, profile, index, *rest)
        return found

    all_is_work(monkeypatch, lambda: worked)
    monkeypatch.setattr(Samples, "at", classmethod(at))
    for n in (10**4, 10**6):  # points are cut again, or chosen once
        worked, rounds = 0.0, 10 * sdp.Shuffled(sdp.KaryRandomizedResponse(k=10, epsilon0=3.0), n=n)
        with warnings.catch_warnings():
            warnings.simplefilter("error", LongWorkWarning)
            with pytest.raises(LongWorkWarning, match="composing rounds will take"):
                rounds.epsilon(delta=1e-6, tolerance=1e-7)
        assert worked < 0.6


_ANSWER = sdp.KaryRandomizedResponse(k=4, epsilon0=1.0)
LONG_QUESTIONS: dict[str, Callable[[], object]] = {
    "answers": lambda: sdp.Shuffled(_ANSWER, n=4000).epsilon(delta=[1e-5, 1e-6]),
    "composing rounds": lambda: (2 * sdp.Shuffled(_ANSWER, n=4000)).epsilon(delta=1e-6),
    "bounding epsilon": lambda: sdp.Shuffled(sdp.DiscreteLaplace(1.0, levels=3), n=4000).epsilon(delta=1e-6),
    "bounding crowds": lambda: sdp.Shuffled(sdp.DiscreteLaplace(1.0, levels=3), n=4000).delta(epsilon=0.1),
    "bounding delta": lambda: sdp.Shuffled(sdp.BinaryRandomizedResponse(3.9), n=6071).delta(epsilon=[0.5, 1]),
    "integrating the curve": lambda: sdp.Shuffled(_ANSWER, n=4000).renyi(2.0),
    "calibrating": lambda: sdp.calibrate(
        sdp.KaryRandomizedResponse, k=4, n=4000, epsilon=0.5, delta=1e-6, tolerance=0.1
    ),
}


@pytest.mark.parametrize("what", LONG_QUESTIONS)
def test_questions_that_take_long_say_so(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_progress, "_LONG", 0.0)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        LONG_QUESTIONS[what]()
    assert any(str(one.message).startswith(f"{what} will take about ") for one in seen)


def test_the_command_line_says_it_on_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_progress, "_LONG", 0.0)
    call = ["calibrate", "--krr", "16", "--n", "1e4", "--epsilon", "1", "--delta", "1e-8"]
    assert "shuffledp: warning: calibrating will take about " in CliRunner().invoke(cli, call).stderr


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
