"""CONTRIBUTING.md shows a new randomizer in one file: it is run as printed, in processes of its own."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from test_readme import ROOT, blocks, check_output, commands, promised_outputs

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
START, END = PAGE.index("## How to add a randomizer"), PAGE.index("## How to add an analysis")
SECTION = PAGE[START:END]


def run(*command: str | Path, cwd: Path) -> str:
    """What a command prints, with the package as it is here."""
    home = {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(cwd)])}
    done = subprocess.run(
        command, cwd=cwd, env=os.environ | home, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Holds the new file, the first block of the section."""
    first = next(block for block in blocks(SECTION) if block.language == "python")
    (tmp_path / "quiet.py").write_text(first.text, encoding="utf-8")
    return tmp_path


def test_the_new_randomizer_accounts_calibrates_and_runs_a_survey(folder: Path) -> None:
    _, use = (block for block in blocks(SECTION) if block.language == "python")
    printed = run(sys.executable, "-W", "error", "-c", use.text, cwd=folder)
    check_output(printed, promised_outputs(SECTION)[use.start])


def test_the_new_randomizer_has_its_option_on_the_command_line(folder: Path) -> None:
    shown = [line for block in blocks(SECTION) for line in commands(block)]
    assert shown
    for line, promised in shown:
        _, *arguments = shlex.split(line)
        check_output(run(sys.executable, "-m", "shuffledp", *arguments, cwd=folder), promised)


def test_the_new_randomizer_has_its_row_in_the_reference(folder: Path) -> None:
    code = "import quiet; from shuffledp.randomizers import registry; print(registry.reference_table())"
    assert "| `--quiet K` | `QuietResponse` |" in run(sys.executable, "-c", code, cwd=folder)


def test_the_new_file_is_in_the_house_format(folder: Path) -> None:
    pytest.importorskip("ruff")
    for check in (["check"], ["format", "--check"]):
        settings = str(ROOT / "pyproject.toml")
        run(sys.executable, "-m", "ruff", *check, "--config", settings, "quiet.py", cwd=folder)
