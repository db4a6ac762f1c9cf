"""Is every directed rounding noticed? Turn each one off, or the wrong way, and ask again.

Each call of ``up``, ``down`` and ``gamma``, and each ``TINY``, of the kernel, and of the facts, randomizers
and mechanisms beside it, is changed, one at a time, and those questions of ``charged.py`` that reach its
function are asked, each in turn: is it charged other units than are recorded? Where none is, the counts of
``test_counts.py`` run. What neither notices must have its reason in slack.json, keyed by module, function and
expression. The table is written to docs/mutation.md.
It ends with 1 if a rounding is neither noticed nor explained, or if one that is explained is noticed or gone.
NumPy, click and pytest are all that it needs.

    python tests/mutation/mutate.py [--only NAME ...] [--questions NAME ...] [--jobs 16] [--no-table]
"""

import argparse
import ast
import contextlib
import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import numpy as np  # noqa: F401 (before the processes part)
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from certified import charged

A = TypeVar("A")
B = TypeVar("B")
ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "shuffledp"
SLACK = Path(__file__).with_name("slack.json")
TABLE = ROOT / "docs" / "mutation.md"
COUNTS = "tests/certified/test_counts.py"
PATIENCE = 300  # CPU seconds for one mutation: a search that does not end has been noticed

KERNEL = ("_certified/*", "accounting/_curves/*", "accounting/_ends/*", "accounting/_rounds/*")
BESIDE = ("accounting/*", "facts", "noise", "_spans/*", "randomizers/*", "_randomness/*")
MODULES = [
    path.relative_to(SOURCE).as_posix()
    for room in (*KERNEL, *BESIDE)
    for path in sorted(SOURCE.glob(f"{room}.py"))
    if path.name != "rounding.py"  # its own tests are exact
]

CHANGES = {
    "up": {"off": "({first})", "wrong way": "down({all})"},
    "down": {"off": "({first})", "wrong way": "up({all})"},
    "gamma": {"off": "(0.0 * gamma({all}))", "wrong way": "(-gamma({all}))"},
    "TINY": {"off": "0.0", "wrong way": "(-TINY)"},
}


@dataclass(frozen=True)
class Mutation:
    module: str
    function: str
    line: int
    expression: str
    kind: str
    text: str  # of the whole module

    @property
    def site(self) -> str:
        return f"{self.module}:{self.function}: {self.expression}"


def mutations(module: str) -> Iterator[Mutation]:
    text = (SOURCE / module).read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    starts = [sum(len(line.encode()) for line in lines[:i]) for i in range(len(lines))]
    raw = text.encode()
    for node, function in places(ast.parse(text), "module"):
        first = starts[node.lineno - 1] + node.col_offset
        last = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        name = node.id if isinstance(node, ast.Name) else ast.unparse(node.func)
        parts = (
            [ast.unparse(part) for part in (*node.args, *node.keywords)]
            if isinstance(node, ast.Call)
            else [""]
        )
        for kind, pattern in CHANGES[name].items():
            changed = raw[:first] + pattern.format(first=parts[0], all=", ".join(parts)).encode() + raw[last:]
            new = changed.decode().replace(
                "from __future__ import annotations\n",
                "from __future__ import annotations; from shuffledp._certified.rounding import down, up\n",
                1,
            )
            yield Mutation(module, function, node.lineno, ast.unparse(node), kind, new)


def places(node: ast.AST, function: str) -> Iterator[tuple[ast.Call | ast.Name, str]]:
    """The roundings below a node, with the function they are in."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield from places(child, child.name)
            continue
        match child:
            case ast.Call(func=ast.Name(id="up" | "down" | "gamma")):
                yield child, function
            case ast.Name(id="TINY", ctx=ast.Load()):
                yield child, function
        yield from places(child, function)


@dataclass(frozen=True)
class Asked:
    """What is known of the package as it is: answers with the true unit, and what each question reaches."""

    true: charged.Answers
    reached: dict[str, set[tuple[str, int]]]  # module and line, of every function that was called
    seconds: dict[str, float]

    def of(self, mutation: Mutation) -> list[str]:
        """The questions that reach it, quick ones first; all of them if it is in no function."""
        inside = ast.parse(mutation.text)
        here = mutation.module, mutation.line
        known = any(
            node.lineno <= mutation.line <= (node.end_lineno or 0)
            for node in ast.walk(inside)
            if isinstance(node, ast.FunctionDef | ast.Lambda)
        )
        names = [name for name in self.true if not known or here in self.reached[name]]
        return sorted(names, key=self.seconds.__getitem__)


def traced(name: str) -> tuple[tuple[float, ...], set[tuple[str, int]], float]:
    """One question alone, with the enlarged unit: its answer, what it reaches, and how long it takes."""
    charged.enlarge(charged.LARGE)
    seen = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            seen.add(frame.f_code)

    sys.setprofile(note)  # what makes the questions is reached by all of them
    ask = charged.questions()[name]
    started = time.process_time()
    answer = tuple(map(float, ask()))
    seconds = time.process_time() - started
    sys.setprofile(None)
    lines = {
        (Path(code.co_filename).relative_to(SOURCE).as_posix(), line)
        for code in seen
        if code.co_filename.startswith(str(SOURCE))
        for _, _, line in code.co_lines()
        if line is not None
    }
    return answer, lines, seconds


def true_answers(parts: list[str]) -> charged.Answers:
    questions = charged.questions()
    chosen = [name for name in questions if any(part in name for part in parts)]
    return {name: tuple(map(float, questions[name]())) for name in chosen}


def charged_by(asked: tuple[Mutation, list[str], charged.Answers]) -> str:
    """The first question that is charged other units than are recorded, or nothing."""
    mutation, names, true = asked
    charged.enlarge(charged.LARGE)
    charged.exchange(dotted(mutation.module), lambda _: mutation.text)
    try:
        with patience():
            questions = charged.questions()
            for name in names:
                answer = tuple(map(float, questions[name]()))
                if charged.changed(charged.units(true, {name: answer})):
                    return f"test_charged.py: {name}"
    except Exception as error:
        return f"test_charged.py: no answer ({type(error).__name__})"
    return ""


class FirstFailure:
    """Of a run of pytest: the test that failed first."""

    name = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid.split("/")[-1]


def counted_by(mutation: Mutation) -> str:
    """The first test of the counts that fails, or nothing."""
    charged.exchange(dotted(mutation.module), lambda _: mutation.text)
    os.chdir(ROOT)
    first = FirstFailure()
    options = ["-q", "-x", "--tb=no", "--no-header", "-p", "no:cacheprovider", "-o", "addopts="]
    options += ["--noconftest", "--import-mode=importlib"]
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
        failed = pytest.main([*options, COUNTS], plugins=[first]) != 0
    return (first.name or "an import that fails") if failed else ""


def dotted(module: str) -> str:
    return "shuffledp." + module.removesuffix(".py").replace("/", ".")


@contextlib.contextmanager
def patience() -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)


def apart(jobs: int, work: Callable[[A], B], tasks: list[A]) -> Iterator[B]:
    """Each in a process of its own, forked from this one, which has NumPy but not yet shuffledp."""
    with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=1) as pool:
        yield from pool.imap(work, tasks, chunksize=1)


def asked(jobs: int, parts: list[str]) -> Asked:
    (true,) = apart(1, true_answers, [parts])
    found = dict(zip(true, apart(jobs, traced, list(true)), strict=True))
    wrong = charged.changed(charged.units(true, {name: answer for name, (answer, _, _) in found.items()}))
    assert not wrong, f"without a mutation, too, {wrong} are charged other units than are recorded"
    reached = {name: lines for name, (_, lines, _) in found.items()}
    return Asked(true, reached, {name: seconds for name, (_, _, seconds) in found.items()})


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*", default=[""], help="modules whose name contains one of these")
    parser.add_argument("--questions", nargs="*", default=[""], help="those whose name contains one of these")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--no-table", action="store_true")
    chosen = parser.parse_args()
    found = [m for name in MODULES if any(part in name for part in chosen.only) for m in mutations(name)]
    whole = chosen.only == chosen.questions == [""]
    known = asked(chosen.jobs, chosen.questions)
    tasks = [(mutation, known.of(mutation), known.true) for mutation in found]
    by_answers = list(shown(tasks, apart(chosen.jobs, charged_by, tasks)))
    left = [m for m, test in zip(found, by_answers, strict=True) if not test]
    by_counts = dict(zip(map(id, left), apart(chosen.jobs, counted_by, left), strict=True))
    rows = [(m, test or by_counts[id(m)]) for m, test in zip(found, by_answers, strict=True)]
    slack = json.loads(SLACK.read_text(encoding="utf-8"))
    if whole and not chosen.no_table:
        TABLE.write_text(table(rows, slack), encoding="utf-8")
    unclear = [f"{m.site} ({m.kind})" for m, test in rows if not (test or m.site in slack)]
    idle = [] if not whole else sorted(slack.keys() - {m.site for m, test in rows if not test})
    noticed = sum(bool(test) for _, test in rows)
    print(f"{len(rows)} mutations, {noticed} noticed, {len(unclear)} neither noticed nor explained")
    print("\n".join(unclear))
    print("\n".join(f"explained, but noticed or gone: {site}" for site in idle))
    return int(bool(unclear or idle))


def shown(tasks: list[tuple[Mutation, list[str], charged.Answers]], found: Iterator[str]) -> Iterator[str]:
    for i, ((mutation, names, _), test) in enumerate(zip(tasks, found, strict=True), 1):
        asked_of = test or f"- ({len(names)} questions)"
        print(f"{i}/{len(tasks)} {mutation.site} ({mutation.kind}): {asked_of}", flush=True)
        yield test


def table(rows: list[tuple[Mutation, str]], slack: dict[str, str]) -> str:
    noticed = sum(bool(test) for _, test in rows)
    unclear = sum(not test and m.site not in slack for m, test in rows)
    head = [
        "# Directed roundings, turned off and the wrong way",
        "",
        f"Written by `make mutation`: {len(rows)} mutations of the kernel, and of the facts, randomizers and",
        f"mechanisms beside it; {noticed} noticed by a test, {len(rows) - noticed - unclear} slack for the",
        f"reason given, {unclear} not explained yet.",
        "A site is a call of a helper of `rounding`.",
        "",
        "| module | function | rounding | mutation | noticed by, or slack because |",
        "|---|---|---|---|---|",
    ]
    body = [
        f"| {m.module} | `{m.function}` | `{m.expression}` | {m.kind} | "
        + (f"`{test}`" if test else f"*slack*: {slack.get(m.site, 'not explained yet')}")
        + " |"
        for m, test in rows
    ]
    return "\n".join([*head, *body, ""])


if __name__ == "__main__":
    sys.exit(main())
