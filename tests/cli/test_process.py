"""The command as a process of its own: what it loads, how it is stopped, what a shell sees."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import shuffledp as sdp

SOURCE = str(Path(sdp.__file__).parent.parent)
QUESTION = "epsilon --krr 4 --epsilon0 1 --n 1000 --delta 1e-6"


def environment(**extra: str) -> dict[str, str]:
    """This one, with the package under test first on the path."""
    return {**os.environ, "PYTHONPATH": SOURCE, **extra}


def process(*arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
    """``python`` with these arguments, run to its end."""
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environment(**extra),
    )


def test_the_package_runs_as_a_program() -> None:
    result = process("-m", "shuffledp", *QUESTION.split())
    expected = sdp.Shuffled(sdp.KaryRandomizedResponse(k=4, epsilon0=1.0), n=1000)
    assert result.returncode == 0
    assert result.stderr == ""
    first = result.stdout.split()[2]
    assert float(first) == pytest.approx(expected.epsilon(delta=1e-6).upper, rel=1e-4)
    assert "\x1b" not in result.stdout  # a pipe is no terminal


def test_status_two_and_one_line_reach_the_shell() -> None:
    result = process("-m", "shuffledp", "epsilon", "--n", "0")
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("line", ["--help", "epsilon --help", "curve --help", "--version"])
def test_help_loads_neither_numpy_nor_matplotlib(line: str) -> None:
    code = (
        "import atexit, sys\n"
        "heavy = lambda: {'numpy', 'scipy', 'matplotlib'} & sys.modules.keys()\n"
        "atexit.register(lambda: print('loaded', sorted(heavy())))\n"
        "from shuffledp.cli.main import main\n"
        "main()"
    )
    result = process("-c", code, *line.split())
    assert result.returncode == 0
    assert result.stdout.splitlines()[-1] == "loaded []"


def test_ctrl_c_ends_with_status_130_and_one_line() -> None:
    code = (
        "import time, shuffledp\n"
        "from shuffledp.cli.main import main\n"
        "def wait(*_, **__):\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(60)\n"
        "shuffledp.Mechanism.epsilon = wait\n"
        "main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, *QUESTION.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=30)
    assert running.returncode == 130
    assert errors == "shuffledp: error: interrupted\n"


SLOW = (
    "import sys, time, shuffledp\n"
    "from shuffledp import _progress\n"
    "from shuffledp.cli.main import main\n"
    "_progress._SECONDS_BEFORE_A_CLOCK = 0.0\n"
    "asked = shuffledp.Mechanism._enclosed\n"
    "def slowly(*arguments, **named):\n"
    "    sys.stdout.write('ready\\n')\n"
    "    sys.stdout.flush()\n"
    "    time.sleep({seconds})\n"
    "    return asked(*arguments, **named)\n"
    "shuffledp.Mechanism._enclosed = slowly\n"
    "main()"
)


def on_a_terminal(line: str, *, seconds: float = 0.3, stop: bool = False, **extra: str) -> str:
    """What a terminal sees of the standard error of a slow command, Ctrl-C or not."""
    pty = pytest.importorskip("pty")
    terminal, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", SLOW.format(seconds=seconds), *line.split()],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=environment(**{"TERM": "xterm", **extra}),
    ) as running:
        os.close(theirs)
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"
        if stop:
            time.sleep(0.5)
            running.send_signal(signal.SIGINT)
        running.communicate(timeout=30)
    assert running.returncode == (130 if stop else 0)
    seen = b""
    with suppress(OSError):  # how Linux says that nobody else has the terminal open
        while some := os.read(terminal, 4096):
            seen += some
    os.close(terminal)
    return seen.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (QUESTION, "bounding epsilon, 0:0"),
        ("calibrate --krr 4 --n 1000 --epsilon 1 --delta 1e-6", "calibrating, "),
        ("curve --against n --epsilon0 1 --delta 1e-6 --points 2 --to 2e3", "100% 2 points"),
    ],
)
def test_a_terminal_sees_that_long_work_goes_on(line: str, said: str) -> None:
    seen = on_a_terminal(line)
    assert said in seen
    if "points" not in said:  # a clock is gone afterwards
        assert seen.endswith("\r")
        assert seen.split("\r")[-2].strip() == ""
    assert on_a_terminal(line + " --json") == ""
    assert on_a_terminal(line, TERM="dumb") == ""


def test_ctrl_c_takes_the_clock_away() -> None:
    *_, wiped, last = on_a_terminal(QUESTION, seconds=60, stop=True).split("\r")
    assert wiped.strip() == ""
    assert last == "shuffledp: error: interrupted\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_is_for_the_shell(shell: str) -> None:
    result = process("-m", "shuffledp", "completion", shell)
    assert result.returncode == 0
    assert f"_SHUFFLEDP_COMPLETE={shell}_complete" in result.stdout


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("shuffledp ep", {"epsilon"}),
        ("shuffledp epsilon --kr", {"--krr"}),
        ("shuffledp epsilon --analysis clo", {"clones", "clones-2021"}),
    ],
)
def test_tab_completes_commands_options_and_values(words: str, offered: set[str]) -> None:
    typed = words.split()
    result = process(
        "-m",
        "shuffledp",
        _SHUFFLEDP_COMPLETE="bash_complete",
        COMP_WORDS=words,
        COMP_CWORD=str(len(typed) - 1),
    )
    assert {line.split(",")[1] for line in result.stdout.split()} == offered
