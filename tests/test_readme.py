"""README.md and docs/ run as printed: their Python, their commands, and what these are said to print.

The Python blocks of a page share one namespace and one empty folder. A ``text`` block right after a
Python block is what that block prints. In ``console`` blocks the lines after ``$ shuffledp ...`` are what the
command prints. A line ``...`` stands for any lines; numbers may differ by 1%. ``REWRITE=1`` writes the
digits of today into the pages.
"""

import io
import math
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from shuffledp.cli.main import cli

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts),
]
FENCE = re.compile(r"^(`{3,})(\w+) *\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
SHELLS = ("bash", "console", "sh", "shell")
MODULES = {"shuffledp.learning": "torch", "shuffledp.interop": "dp_accounting"}
"""A page that names the first needs the second, which may be missing."""


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, where it begins and ends, the number of its first line."""

    language: str
    text: str
    start: int
    end: int
    line: int


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found = FENCE.finditer(text)
    return [Block(m[2], m[3], m.start(), m.end(), text.count("\n", 0, m.start(3))) for m in found]


def promised_outputs(text: str) -> dict[int, str]:
    """Start of a Python block -> the text block that follows it at once."""
    return {
        first.start: second.text
        for first, second in pairwise(blocks(text))
        if (first.language, second.language) == ("python", "text")
        and not text[first.end : second.start].strip()
    }


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """Each ``shuffledp`` command of a shell block, and what the lines after it say it prints."""
    joined = block.text.replace("\\\n", " ")
    if block.language == "console":
        for part in re.split(r"^\$ ", joined, flags=re.MULTILINE)[1:]:
            line, _, printed = part.partition("\n")
            if line.startswith("shuffledp "):
                yield line, printed
    else:
        yield from ((line, "") for line in joined.splitlines() if line.startswith("shuffledp "))


def run_command(line: str) -> str:
    """What a ``shuffledp`` line prints; ``> FILE`` writes that to a file."""
    line, _, target = line.partition(" > ")
    _, *arguments = shlex.split(line, comments=True)
    result = CliRunner().invoke(cli, arguments, prog_name="shuffledp")
    assert result.exit_code == 0, f"{line}\n{result.output}"
    if target:
        Path(target.strip()).write_text(result.stdout, encoding="utf-8")
    return "" if target else result.stdout


def alike(printed: str, promised: str) -> bool:
    """The same words, and numbers within 1%."""
    if NUMBER.sub("#", printed).split() != NUMBER.sub("#", promised).split():
        return False
    pairs = zip(NUMBER.findall(printed), NUMBER.findall(promised), strict=True)
    return all(math.isclose(number(a), number(b), rel_tol=0.01) for a, b in pairs)


def number(text: str) -> float:
    return float(text.strip(",").replace(",", ""))


def check_output(printed: str, promised: str) -> str:
    """Every promised line is printed, in order; nothing else is, except where ``...`` stands. Gives what is
    promised, with the digits that were printed."""
    lines = [line for line in printed.splitlines() if line.strip()]
    place, gap, fresh = 0, False, promised
    for line in (line for line in promised.splitlines() if line.strip()):
        if line.strip() == "...":
            gap = True
            continue
        while gap and place < len(lines) and not alike(lines[place], line):
            place += 1
        here = lines[place] if place < len(lines) else ""
        assert alike(here, line), f"{line!r} is not printed, or not there:\n{printed}"
        if NUMBER.findall(line) != NUMBER.findall(here):
            fresh = fresh.replace(f"{line}\n", f"{here}\n", 1)
        place, gap = place + 1, False
    assert gap or place == len(lines), f"more is printed than promised:\n{printed}"
    return fresh


def run_python(block: Block, page: Path, namespace: dict[str, object]) -> str:
    """What a Python block prints; tracebacks show the page's own line numbers."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile("\n" * block.line + block.text, str(page), "exec"), namespace)
    return printed.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_the_page_runs_and_prints_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = page.read_text(encoding="utf-8")
    found = blocks(text)
    code = "".join(block.text for block in found if block.language == "python")
    for ours, theirs in MODULES.items():
        if ours in code:
            pytest.importorskip(theirs)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    outputs = promised_outputs(text)
    namespace: dict[str, object] = {"__name__": "__page__"}
    fresh = text
    for block in found:
        if block.language == "python":
            printed = run_python(block, page, namespace)
            if block.start in outputs:
                promised = outputs[block.start]
                fresh = fresh.replace(promised, check_output(printed, promised), 1)
        elif block.language in SHELLS:
            for line, promised in commands(block):
                printed = run_command(line)
                if promised.strip():
                    fresh = fresh.replace(promised, check_output(printed, promised), 1)
    if "REWRITE" in os.environ:
        page.write_text(fresh, encoding="utf-8")


def test_the_readme_shows_python_and_commands() -> None:
    found = blocks((ROOT / "README.md").read_text(encoding="utf-8"))
    assert any(block.language == "python" for block in found)
    assert any(list(commands(block)) for block in found if block.language in SHELLS)


@pytest.mark.parametrize(
    ("printed", "promised"),
    [
        ("epsilon <= 0.5", "epsilon <= 0.6"),
        ("epsilon <= 0.5", "delta <= 0.5"),
        ("one\ntwo", "one"),
        ("one", "one\ntwo"),
        ("one\ntwo", "...\nthree"),
        ("1e-8", "1e-9"),
    ],
)
def test_what_is_not_printed_is_noticed(printed: str, promised: str) -> None:
    with pytest.raises(AssertionError):
        check_output(printed, promised)


def test_small_differences_of_numbers_and_left_out_lines_are_allowed() -> None:
    check_output("first\na 0.5001\nb 1,000,000\nlast", "...\na 0.5\nb 1,000,000\n...")
