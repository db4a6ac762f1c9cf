"""Is every directed rounding noticed? Turn each one off, or the wrong way, and run the sharp tests.

Each call of ``up``, ``down`` and ``gamma``, and each ``TINY``, in the kernel is changed, one at a time, in a
copy of the package; then the tests that compare counts with ball arithmetic run, where the module has such,
and the questions of ``charged.py`` are asked: has an answer moved? What neither notices must have its reason
in slack.json, keyed by module, function and expression. The table is written to docs/mutation.md.
``make mutation`` runs it for the modules that are counted (some minutes on two cores), with ``--all`` for the
whole kernel (half an hour); it ends with 1 if a rounding is neither noticed nor explained.

    python tests/mutation/mutate.py [--only NAME] [--all] [--no-table]
"""

import argparse
import ast
import contextlib
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import flint  # noqa: F401 (before the processes part)
import numpy as np  # noqa: F401
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from certified import charged

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
SLACK = Path(__file__).with_name("slack.json")
TABLE = ROOT / "docs" / "mutation.md"
WORKERS = 2  # speed

COUNTS = "tests/certified/test_counts.py"
COUNTED = (
    *("binomial", "caps", "frequencies", "lattice_sum", "signs", "tails", "two_binomials"),
    *("compose", "loss"),
)
"""Modules whose counts are compared with ball arithmetic."""
ROOMS = ("_certified", "accounting/_curves", "accounting/_ends", "accounting/_rounds")
MODULES = [
    f"{room}/{path.name}"
    for room in ROOMS
    for path in sorted((SOURCE / "shuffledp" / room).glob("*.py"))
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
    text = (SOURCE / "shuffledp" / module).read_text(encoding="utf-8")
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
                "from __future__ import annotations\nfrom shuffledp._certified.rounding import down, up\n",
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


class FirstFailure:
    """Of a run of pytest: the test that failed first."""

    name = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid.split("/")[-1]


def noticed_by(mutation: Mutation) -> str:
    """The first test that fails, or nothing. To be called in a process of its own, without shuffledp."""
    with tempfile.TemporaryDirectory() as folder:
        ignored = shutil.ignore_patterns("__pycache__", "*.md", "*.csv", "*.json")
        shutil.copytree(SOURCE, folder, ignore=ignored, dirs_exist_ok=True)
        (Path(folder) / "shuffledp" / mutation.module).write_text(mutation.text, encoding="utf-8")
        sys.path.insert(0, folder)
        sys.dont_write_bytecode = True
        os.chdir(ROOT)
        return counted_by(mutation.module, folder) or charged_by(Path(folder))


def counted_by(module: str, folder: str) -> str:
    if Path(module).stem not in COUNTED:
        return ""
    first = FirstFailure()
    options = ["-q", "-x", "-n", "0", "--tb=no", "--no-header", "-p", "no:cacheprovider"]
    options += ["-o", f"pythonpath={folder} tests"]
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
        failed = pytest.main([*options, COUNTS], plugins=[first]) != 0
    return (first.name or "an import that fails") if failed else ""


def charged_by(folder: Path) -> str:
    try:
        moved = charged.changed(charged.units(TRUE_ANSWERS, charged.asked_with(charged.LARGE, folder)))
    except AssertionError:
        return "test_charged.py: no answer"
    return f"test_charged.py: {moved[0]}" if moved else ""


TRUE_ANSWERS: charged.Answers = {}
"""Of the package as it is; filled before the processes part."""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="modules whose name contains this")
    parser.add_argument("--all", action="store_true", help="of the kernel, not only those that are counted")
    parser.add_argument("--no-table", action="store_true")
    chosen = parser.parse_args()
    named = [name for name in MODULES if chosen.only in name and (chosen.all or Path(name).stem in COUNTED)]
    found = [m for name in named for m in mutations(name)]
    TRUE_ANSWERS.update(charged.asked_with(charged.TRUE, SOURCE))
    slack = json.loads(SLACK.read_text(encoding="utf-8"))
    rows = []
    # A new process for each, forked from this one, which has NumPy but not yet shuffledp.
    with multiprocessing.get_context("fork").Pool(WORKERS, maxtasksperchild=1) as pool:
        for mutation, test in zip(found, pool.imap(noticed_by, found, chunksize=1), strict=True):
            rows.append((mutation, test))
            print(f"{len(rows)}/{len(found)} {mutation.site} ({mutation.kind}): {test or '-'}", flush=True)
    open_ = [f"{m.site} ({m.kind})" for m, test in rows if not (test or m.site in slack)]
    if not chosen.no_table:
        TABLE.write_text(table(rows, slack), encoding="utf-8")
    noticed = sum(bool(test) for _, test in rows)
    print(f"{len(rows)} mutations, {noticed} noticed, {len(open_)} neither noticed nor explained")
    print("\n".join(open_))
    return int(bool(open_))


def table(rows: list[tuple[Mutation, str]], slack: dict[str, str]) -> str:
    noticed = sum(bool(test) for _, test in rows)
    unclear = sum(not test and m.site not in slack for m, test in rows)
    head = [
        "# Directed roundings, turned off and the wrong way",
        "",
        f"Written by `make mutation`: {len(rows)} mutations of the certified modules, {noticed} noticed by a",
        f"test, {len(rows) - noticed - unclear} slack for the reason given, {unclear} not explained yet.",
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
