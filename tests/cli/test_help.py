"""The help: every command is found by its file, and every example in it runs and prints what it says."""

import math
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli.example_files import write_example_files
from click import Context
from click.testing import Result

import shuffledp as sdp
from shuffledp.cli import commands
from shuffledp.cli.main import cli
from shuffledp.randomizers.registry import Registration, registered

Run = Callable[..., Result]

FILES = sorted(Path(commands.__path__[0]).glob("[a-z]*.py"))
COMMANDS = [file.stem.replace("_", "-") for file in FILES]
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")


def examples(text: str) -> Iterator[tuple[str, list[str]]]:
    """The example lines of a help page, each with the lines it is said to print."""
    section = text.split("\nExample:\n")[1].replace("\n  ", "\n")[2:]
    for block in re.split(r"^\$ ", section, flags=re.MULTILINE)[1:]:
        line, *printed = block.rstrip("\n").split("\n")
        yield line, [each for each in printed if each]


def same_text_and_nearly_the_same_numbers(printed: str, promised: str) -> bool:
    """Numbers may differ by 1%, which is more than any analysis may move without a new example, and by
    one of their last decimal."""
    texts = [NUMBER.sub("#", line).split() for line in (printed, promised)]
    numbers = [[number.replace(",", "") for number in NUMBER.findall(line)] for line in (printed, promised)]
    return texts[0] == texts[1] and all(
        math.isclose(float(a), float(b), rel_tol=0.01, abs_tol=last_decimal(b))
        for a, b in zip(*numbers, strict=True)
    )


def last_decimal(number: str) -> float:
    """1.001 of the last printed decimal; nothing for whole numbers and powers of ten."""
    _, point, decimals = number.partition(".")
    return 1.001 * 10.0 ** -len(decimals) if point and decimals.isdigit() else 0.0


def test_every_file_is_a_command_with_a_line_in_the_help(shuffledp: Run) -> None:
    assert cli.list_commands(Context(cli)) == COMMANDS
    result = shuffledp("--help")
    assert result.exit_code == 0
    for name in COMMANDS:
        assert re.search(rf"^  {name}  +\S", result.stdout, re.MULTILINE)
    for width in (60, 80):
        commands = shuffledp("--help", terminal_width=width).stdout.split("\n\nCollecting:")[1]
        assert "..." not in commands, "a summary is cut"
        assert width < 80 or "\n     " not in commands, "a summary is too long for its line"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_runs_and_prints_what_the_help_says(
    shuffledp: Run, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "web":
        pytest.skip("serves until it is stopped: tests/web runs it")
    if name == "train":
        pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    write_example_files(tmp_path, name)
    page = shuffledp(f"{name} --help")
    assert page.exit_code == 0
    found = list(examples(page.stdout))
    assert found
    for line, promised in found:
        program, called, *rest = shlex.split(line.split(">")[0])
        assert (program, called) == ("shuffledp", name)
        result = shuffledp(shlex.join([called, *rest]))
        assert result.exit_code == 0, result.output
        printed = [each for each in result.stdout.splitlines() if each]
        assert len(printed) >= len(promised)
        for one, other in zip(printed, promised, strict=False):
            assert same_text_and_nearly_the_same_numbers(one, other), (one, other)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_eighty_columns(shuffledp: Run, name: str) -> None:
    page = shuffledp(f"{name} --help", terminal_width=80)
    assert max(map(len, page.stdout.splitlines())) <= 88  # examples are not wrapped


@pytest.mark.parametrize("entry", registered(), ids=lambda entry: entry.option)
def test_every_randomizer_of_the_help_can_be_described(shuffledp: Run, entry: Registration) -> None:
    known = {"k": 4, "dimension": 4, "sigma": 1.0, "matrix": [[1.0], [1.0]]}
    given = {} if entry.takes is None else {entry.takes.name: known[entry.takes.name]}
    made = entry.load()(**given, **dict.fromkeys(entry.local[:1], 1.0))
    assert made.epsilon0 >= 0.0
    assert f"  --{entry.option} " in shuffledp("epsilon --help").stdout


def test_no_arguments_show_the_help(shuffledp: Run) -> None:
    assert shuffledp("").stdout == shuffledp("--help").stdout
    assert shuffledp("").exit_code == 0


def test_the_version_is_that_of_the_library(shuffledp: Run) -> None:
    result = shuffledp("--version")
    assert (result.exit_code, result.stdout) == (0, f"shuffledp {sdp.__version__}\n")


def test_colour_is_for_terminals_that_want_it(shuffledp: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "epsilon --krr 4 --epsilon0 1 --n 1000 --delta 1e-6"
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[1m" in shuffledp(line, color=True).stdout  # as on a terminal
    assert "\x1b" not in shuffledp(line).stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in shuffledp(line, color=True).stdout
