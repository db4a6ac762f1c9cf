"""Killed, interrupted, out of disk: no output that looks whole, inputs untouched, a rerun succeeds.

Each step runs in a process of its own that is killed (or interrupted) from inside at a chosen point,
so the tests do not depend on time. "Disk full" is a limit on the size of files, which every system
grants, and a real file system of 128 KiB where mounting one is permitted.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shuffledp
from shuffledp.collecting.histogram import HistogramProtocol
from shuffledp.collecting.ledger import Ledger
from shuffledp.errors import ReportFileError
from shuffledp.shuffling.report_files import open_reports
from shuffledp.shuffling.roles import analyze_file, randomize_file, shuffle_files

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")

TRUTH = ["cat"] * 1500 + ["dog"] * 1500

PRELUDE = """
import itertools, os, resource, signal, sys
import numpy as np
import shuffledp as sdp
from shuffledp.collecting.histogram import HistogramProtocol
from shuffledp import _files as atomic
from shuffledp.shuffling import permutation
from shuffledp.shuffling import report_files
from shuffledp import _log
from shuffledp.shuffling import roles, used

answer = sdp.KaryRandomizedResponse(k=3, gamma=0.02)
pets = HistogramProtocol(
    ("cat", "dog", "fish"), epsilon=8.0, delta=1e-6, n=3000, randomizer=answer
)
calls = itertools.count()

def then_die(function, call, how):
    def wrapped(*arguments, **named):
        if next(calls) == call:
            os.kill(os.getpid(), how)
        return function(*arguments, **named)
    return wrapped
"""
STEPS = {
    "randomize": "roles.randomize_file(pets, {input!r}, {output!r}, column='pet')",
    "shuffle": (
        "roles.shuffle_files(pets, {input!r}, {output!r}, minimum=1, used={used!r}, bytes_in_memory=3000)"
    ),
    "analyze": "print(roles.analyze_file(pets, {input!r}).n)",
}
POINTS = {
    "randomize": {
        "before the first reports are written": ("report_files.ReportWriter.write", 0),
        "before the end of the file": ("report_files.ReportWriter.finish", 0),
        "before it is forced to the disk": ("os.fsync", 0),
        "before it gets its name": ("os.link", 0),
    },
    "shuffle": {
        "while reports go to buckets": ("permutation.uniform", 0),
        "between two buckets": ("permutation.permuted", 3),
        "before some reports are written": ("report_files.ReportWriter.write", 5),
        "before its reports count as used": ("used.Memory.remember", 0),
        "before they are on record": ("_log.OpenLog.append", 0),
        "before it gets its name": ("os.link", 2),  # after the memory and the keys
    },
    "analyze": {"while reports are counted": ("HistogramProtocol.count", 0)},
}


@pytest.fixture
def inputs(pets: HistogramProtocol, tmp_path: Path) -> dict[str, Path]:
    """What each step reads."""
    (tmp_path / "in").mkdir()
    paths = {
        step: tmp_path / "in" / name
        for step, name in {"randomize": "a.csv", "shuffle": "r.pq", "analyze": "s.pq"}.items()
    }
    paths["randomize"].write_text("pet\n" + "\n".join(TRUTH) + "\n")
    randomize_file(pets, paths["randomize"], paths["shuffle"])
    for name in ("first", "used"):
        (tmp_path / "in" / name).mkdir()
    shuffle_files(pets, paths["shuffle"], paths["analyze"], minimum=1, used=tmp_path / "in" / "first")
    return paths


def run(code: str) -> subprocess.CompletedProcess[str]:
    source = str(Path(shuffledp.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source}
    command = [sys.executable, "-c", PRELUDE + code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)


def step_code(step: str, inputs: dict[str, Path], output: Path) -> str:
    used = inputs["shuffle"].with_name("used")
    return STEPS[step].format(input=str(inputs[step]), output=str(output), used=str(used))


def contents(paths: dict[str, Path]) -> list[bytes]:
    return [path.read_bytes() for path in paths.values()]


def check_output(step: str, pets: HistogramProtocol, output: Path) -> None:
    """The rerun's file is whole, and has all reports."""
    if step == "randomize":
        assert sum(map(len, open_reports(output).batches())) == 3000
    if step == "shuffle":
        assert analyze_file(pets, output).n == 3000


@pytest.mark.parametrize(
    ("step", "point"), [(step, point) for step, points in POINTS.items() for point in points]
)
def test_a_killed_step_leaves_nothing_that_looks_whole_and_can_be_run_again(
    step: str, point: str, inputs: dict[str, Path], pets: HistogramProtocol, tmp_path: Path
) -> None:
    before = contents(inputs)
    where, call = POINTS[step][point]
    output = tmp_path / "out" / "o.parquet"
    output.parent.mkdir()
    code = step_code(step, inputs, output)
    died = run(f"{where} = then_die({where}, {call}, signal.SIGKILL)\n{code}")
    assert died.returncode == -signal.SIGKILL, died.stderr
    left = list(output.parent.iterdir())
    assert not output.exists()
    assert all(path.name.startswith("o.parquet.") for path in left)
    assert all(path.name.endswith(".partial") for path in left)
    assert contents(inputs) == before
    again = run(code)
    assert again.returncode == 0, again.stderr
    assert contents(inputs) == before
    check_output(step, pets, output)


@pytest.mark.parametrize("step", ["randomize", "shuffle"])
def test_an_interrupted_step_leaves_nothing_behind(
    step: str, inputs: dict[str, Path], tmp_path: Path
) -> None:
    before = contents(inputs)
    output = tmp_path / "out" / "o.parquet"
    output.parent.mkdir()
    where = "report_files.ReportWriter.finish"
    code = step_code(step, inputs, output)
    died = run(f"{where} = then_die({where}, 0, signal.SIGINT)\n{code}")
    # Python turns the interrupt into an exception, cleans up, and then dies of the same signal.
    assert died.returncode == -signal.SIGINT, died.stderr
    assert not list(output.parent.iterdir())
    assert contents(inputs) == before


ENDLESS = """
import pyarrow as pa
batch = pa.record_batch({{"pet": ["cat", "dog"] * 500_000}})
endless = pa.RecordBatchReader.from_batches(batch.schema, itertools.repeat(batch))
roles.randomize_file(pets, endless, {output!r}, column="pet")
"""


def test_ctrl_c_in_the_middle_of_the_work_leaves_nothing_behind(tmp_path: Path) -> None:
    # Threads are at work and some of the output is on the disk when the signal comes from outside.
    source = str(Path(shuffledp.__file__).parents[1])
    code = PRELUDE + ENDLESS.format(output=str(tmp_path / "o.parquet"))
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": source},
        stderr=subprocess.PIPE,
        text=True,
    ) as worker:
        try:
            while not any(path.stat().st_size > 1000 for path in tmp_path.iterdir()):
                assert worker.poll() is None
                time.sleep(0.02)
            worker.send_signal(signal.SIGINT)
            _, said = worker.communicate(timeout=60)
        finally:
            worker.kill()
    assert worker.returncode == -signal.SIGINT, said
    assert said.splitlines()[-1] == "KeyboardInterrupt"
    assert not list(tmp_path.iterdir())


def test_an_analysis_killed_after_its_commitment_can_be_run_again_and_counts_once(
    inputs: dict[str, Path], pets: HistogramProtocol, tmp_path: Path
) -> None:
    budget = (9.0, 1e-6)
    ledger = Ledger(tmp_path / "ledger", budget, create=True, populations=["owners"])
    ticket = ledger.reserve(pets, population="owners")
    died = run(f"""
from shuffledp.collecting.ledger import Ledger
ledger, settle = Ledger({str(ledger.path)!r}, {budget}), Ledger.settle

def and_die(*arguments, **named):
    settle(*arguments, **named)
    os.kill(os.getpid(), signal.SIGKILL)

Ledger.settle = and_die
roles.analyze_file(pets, {str(inputs["analyze"])!r}, ledger=ledger, reservation={ticket!r})
""")
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert [found.status for found in ledger.collections] == ["committed"]
    before, spent = ledger.path.read_bytes(), ledger.epsilon("owners")
    result = analyze_file(pets, inputs["analyze"], ledger=ledger, reservation=ticket)
    assert result.n == 3000
    assert result.privacy.total_epsilon == spent
    assert ledger.path.read_bytes() == before


def test_a_reservation_is_not_good_for_other_reports(
    inputs: dict[str, Path], pets: HistogramProtocol, tmp_path: Path
) -> None:
    ledger = Ledger(tmp_path / "ledger", (9.0, 1e-6), create=True, populations=["owners"])
    ticket = ledger.reserve(pets, population="owners")
    analyze_file(pets, inputs["analyze"], ledger=ledger, reservation=ticket)
    used = inputs["shuffle"].with_name("used")  # another shuffler, who knows nothing of the first
    shuffle_files(pets, inputs["shuffle"], tmp_path / "other.parquet", minimum=1, used=used)
    with pytest.raises(ValueError, match="is committed already"):
        analyze_file(pets, tmp_path / "other.parquet", ledger=ledger, reservation=ticket)
    with pytest.raises(ValueError, match="already, with 3000 honest reports; got 2000"):
        analyze_file(pets, inputs["analyze"], ledger=ledger, reservation=ticket, minimum_honest=2000)


def test_what_a_killed_step_leaves_is_no_report_file(inputs: dict[str, Path], tmp_path: Path) -> None:
    output = tmp_path / "o.parquet"
    code = step_code("randomize", inputs, output)
    where = "report_files.ReportWriter.finish"
    run(f"{where} = then_die({where}, 0, signal.SIGKILL)\n{code}")
    (left,) = tmp_path.glob("o.parquet.*.partial")
    with pytest.raises(ReportFileError):
        open_reports(left)


@pytest.mark.parametrize("step", ["randomize", "shuffle"])
@pytest.mark.parametrize("limit", [0, 600])
def test_a_full_disk_is_an_error_that_leaves_nothing_behind(
    step: str, limit: int, inputs: dict[str, Path], tmp_path: Path
) -> None:
    before = contents(inputs)
    output = tmp_path / "out" / "o.parquet"
    output.parent.mkdir()
    lowered = f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
    failed = run(lowered + step_code(step, inputs, output))
    assert failed.returncode == 1
    assert "File too large" in failed.stderr.splitlines()[-1]
    assert not list(output.parent.iterdir())
    assert contents(inputs) == before


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Any]:
    """A file system of 128 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(place)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("mounting a file system is not permitted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("room", [1 << 20, 1 << 27])
def test_a_small_disk_that_is_full_stays_as_it_was(
    room: int, pets: HistogramProtocol, small_disk: Path, tmp_path: Path
) -> None:
    values = np.random.default_rng(0).choice(pets.categories, size=10**6)
    reports = tmp_path / "many.parquet"
    randomize_file(pets, values, reports)
    (tmp_path / "used").mkdir()
    options: Any = {"minimum": 1, "used": tmp_path / "used", "bytes_in_memory": room, "most_per_file": 10**6}
    for step in (
        lambda: randomize_file(pets, values, small_disk / "r.parquet"),
        lambda: shuffle_files(pets, reports, small_disk / "s.parquet", **options),
    ):
        with pytest.raises(OSError, match="No space left"):
            step()
        assert not list(small_disk.iterdir())
