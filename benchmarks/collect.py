"""How fast collections are: beside only reading the column, a plain sort, Spark and pure-ldp.

    python benchmarks/collect.py [--rows 1e8] [--output docs/performance-collect.md]

A Parquet column of whole numbers in [0, 16) is randomized (16-ary randomized response, epsilon0 = 4),
shuffled (counting is the shuffle) and counted. Times are CPU seconds of all threads, medians of
alternating runs; beside Spark, whose work is done by other processes, they are wall-clock seconds.
Needs the extras ``collect`` and ``spark``; pure-ldp is measured where it can be imported (it also
needs scikit-learn and statsmodels, which it does not name).
"""

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from report import CHECK_HEADER, ROW_HEADER, Check, Row, seconds, short, table
from timing import Task, cpu, in_turn

import shuffledp as sdp
from shuffledp.collecting.histogram import HistogramProtocol
from shuffledp.shuffling.columns import open_column
from shuffledp.shuffling.engine import tallied
from shuffledp.shuffling.permutation import shuffle
from shuffledp.shuffling.roles import analyze_file, randomize_file, shuffle_files

CATEGORIES = 16
EPSILON0 = 4.0
ROWS = 10**8
SHUFFLED = 10**7
SPARK_ROWS = 10**7
LOOPED = 10**5
GIBIBYTE = 2**30
COLUMN = "v"


PAGE = """# Performance of collections

Written by `make bench-collect`, which measures everything again; do not edit.

A Parquet column of whole numbers in [0, {categories}) is randomized ({categories}-ary randomized response,
epsilon0 = {epsilon0:g}), shuffled (counting is the shuffle) and counted. Times are CPU seconds of all
threads, medians of alternating runs, warm; where "wall" is said they are wall-clock seconds of one run. A
ratio compares two times of the same run. {setting}
{load}

## Goals

{goals}

{checks}

## How time grows with the rows

{growth}
{left_out}"""
"""The page, to be filled in."""

PACKAGES = ("shuffledp", "numpy", "pyarrow", "cryptography", "pyspark", "pure-ldp")
LEFT_OUT: list[str] = []
"""What could not be measured, and why."""


def main() -> None:
    """Measure everything; print the page, or write it."""
    parser = argparse.ArgumentParser(description="Benchmarks of collections.")
    parser.add_argument("--rows", type=float, default=ROWS, help="of the largest file")
    parser.add_argument("--output", type=Path, help="write the page here instead of printing it")
    chosen = parser.parse_args()
    text = page(int(chosen.rows))
    if chosen.output is None:
        print(text)
        return
    chosen.output.write_text(text, encoding="utf-8")
    print(f"wrote {chosen.output}")


def page(rows: int) -> str:
    """Everything measured, as Markdown."""
    before = os.getloadavg()[0]
    figures = list(collections(rows))
    grown = table(["rows", "reading and counting", "collecting", "ratio", "per row"], growth(rows))
    load = (
        f"{os.cpu_count()} cores; mean load of the machine {before:.1f} before and "
        f"{os.getloadavg()[0]:.1f} after (other work shares it: wall-clock seconds suffer, CPU "
        "seconds and ratios hardly)."
    )
    return PAGE.format(
        categories=CATEGORIES,
        epsilon0=EPSILON0,
        setting=setting(),
        load=load,
        goals=table(ROW_HEADER, [f.cells() for f in figures if isinstance(f, Row)]),
        checks=table(CHECK_HEADER, [f.cells() for f in figures if isinstance(f, Check)]),
        growth=grown,
        left_out="".join(f"\n{reason}\n" for reason in LEFT_OUT),
    )


def setting() -> str:
    """Versions and processor."""
    return f"Python {platform.python_version()}, {', '.join(map(named, PACKAGES))}, {platform.machine()}."


def named(package: str) -> str:
    """A package with its version."""
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} not installed"


def collections(rows: int = ROWS) -> Iterator[Row | Check]:
    """Every figure with its goal."""
    with TemporaryDirectory(prefix="shuffledp-bench-") as folder:
        big = write_column(Path(folder) / "big.parquet", rows)
        yield from embedded(big, rows)
        big.unlink()
        small = write_column(Path(folder) / "small.parquet", SPARK_ROWS)
        yield from permutations()
        yield from three_roles(small, Path(folder))
        yield from spark(small)
    yield from against_pure_ldp()


def growth(rows: int = ROWS) -> list[list[str]]:
    """Cells of a table: how time grows with the number of rows, from 1e5 to ``rows``."""
    lines = []
    with TemporaryDirectory(prefix="shuffledp-bench-") as folder:
        n = 10**5
        while n <= rows:
            path = write_column(Path(folder) / f"{n}.parquet", n)
            ours, reading = in_turn(collecting(path, n), counting(path))
            cells = [short(n), seconds(reading), seconds(ours), f"{ours / reading:.3g}"]
            lines.append([*cells, f"{1e9 * ours / n:.3g} ns"])
            path.unlink()
            n *= 10
    return lines


# What is asked.


def protocol(n: int, repetition: int = 0) -> HistogramProtocol:
    """Each repetition moves epsilon0 by a millionth."""
    epsilon0 = EPSILON0 * (1 + 1e-6 * repetition)
    answer = sdp.KaryRandomizedResponse(k=CATEGORIES, epsilon0=epsilon0)
    target: dict[str, Any] = {"epsilon": 1.01 * EPSILON0, "delta": 1e-8}
    return HistogramProtocol(range(CATEGORIES), n=n, randomizer=answer, **target)


def write_column(path: Path, rows: int) -> Path:
    """Random numbers in row groups of a million."""
    rng = np.random.default_rng(0)
    schema = pa.schema([(COLUMN, pa.int64())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, 10**6):
            values = rng.integers(0, CATEGORIES, min(10**6, rows - start))
            writer.write_table(pa.table({COLUMN: values}, schema=schema))
    return path


def collecting(path: Path, rows: int) -> Task:
    """Randomize, shuffle and count the column."""
    protocols = [protocol(rows, i) for i in range(4)]
    return lambda i: tallied(protocols[i], path, COLUMN)


def counting(path: Path) -> Task:
    """Only read and count it, batch by batch, with the same reader."""

    def task(repetition: int) -> Any:
        batches = open_column(path, COLUMN)
        return sum(np.bincount(batch, minlength=CATEGORIES) for batch in batches)

    return task


# What is measured.


def embedded(path: Path, rows: int) -> Iterator[Row | Check]:
    """A long column: time beside reading it, and peak memory of a fresh process."""
    ours, reading = in_turn(collecting(path, rows), counting(path))
    what = f"randomize, shuffle and count a Parquet column of {short(rows)} rows"
    yield Row(what, ours, reading, "reading and counting it", at_most=4)
    peak = peak_memory(path, rows)
    yield Check(f"{what}: peak memory under 1 GiB", f"{peak / 2**20:.0f} MiB", peak < GIBIBYTE)


def peak_memory(path: Path, rows: int) -> int:
    """Bytes, of a process that does nothing but collect."""
    code = (
        "import resource, collect\n"
        f"collect.collecting(collect.Path({str(path)!r}), {rows})(0)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    folders = [Path(__file__).parent, Path(sdp.__file__).parents[1]]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return 1024 * int(done.stdout.split()[-1])


def permutations() -> Iterator[Row]:
    """A secure uniform order of reports, beside sorting as many numbers."""
    numbers = np.random.default_rng(0).integers(0, 2**63, SHUFFLED, dtype=np.uint64)
    for dtype, what in (("u1", "1 byte"), ("u4", "4 bytes"), ("u8", "8 bytes")):
        reports = (numbers % 251).astype(dtype)
        ours, sort = in_turn(shuffling(reports), sorting(numbers))
        what = f"secure permutation of {short(SHUFFLED)} reports of {what}"
        yield Row(what, ours, sort, "plain sort of as many 64-bit numbers", at_most=5)


def shuffling(reports: np.ndarray) -> Task:
    """The reports in random order."""
    return lambda i: shuffle(reports)


def sorting(numbers: np.ndarray) -> Task:
    """The numbers in their order."""
    return lambda i: np.sort(numbers)


def three_roles(path: Path, folder: Path) -> Iterator[Row]:
    """The three roles through files."""
    parties = protocol(SPARK_ROWS)
    reports, shuffled = folder / "reports.parquet", folder / "shuffled.parquet"
    (folder / "used").mkdir()
    roles: dict[str, Task] = {
        "randomize": lambda i: randomize_file(parties, path, reports, column=COLUMN),
        "shuffle": lambda i: shuffle_files(
            parties, reports, shuffled, minimum=SPARK_ROWS, used=folder / "used"
        ),
        "analyze": lambda i: analyze_file(parties, shuffled),
    }
    for name, role in roles.items():
        yield Row(f"{name}, from file to file, {short(SPARK_ROWS)} reports", cpu(role))


def spark(path: Path) -> Iterator[Row]:
    """The same rows on Spark, its start apart: wall-clock seconds."""
    from shuffledp.shuffling.spark import SparkEngine

    try:
        start = perf_counter()
        session = spark_session()
        started = perf_counter() - start
    except (ImportError, RuntimeError) as error:
        LEFT_OUT.append(f"Spark is left out: {error}")
        return
    yield Row("start of a local Spark session, wall", started)
    engine, parties = SparkEngine(session), protocol(SPARK_ROWS)
    wall(lambda: tallied(parties, path, COLUMN, engine))  # compiles, and starts its workers
    what = f"randomize, shuffle and count {short(SPARK_ROWS)} rows"
    yield Row(f"Spark, warm: {what}, wall", wall(lambda: tallied(parties, path, COLUMN, engine)))
    yield Row(f"embedded: {what}, wall", wall(lambda: tallied(parties, path, COLUMN)))
    raw = wall(lambda: engine.reports(parties, str(path), column=COLUMN, minimum=1))
    what = f"randomize {short(SPARK_ROWS)} rows, repartition raw reports by random keys"
    yield Row(f"Spark, warm: {what}, wall", raw)
    session.stop()


def spark_session() -> Any:
    """Quiet, on all cores, with memory for the raw reports (Spark's default is 1 GiB)."""
    from pyspark.sql import SparkSession

    os.environ["PYTHONPATH"] = str(Path(sdp.__file__).parents[1])  # for its workers
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "4g")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def wall(task: Callable[[], object]) -> float:
    """Wall-clock seconds of one call."""
    start = perf_counter()
    task()
    return perf_counter() - start


def against_pure_ldp() -> Iterator[Row]:
    """Direct encoding, value by value, as pure-ldp does it."""
    try:
        oracle = import_module("pure_ldp.frequency_oracles.direct_encoding")
    except ImportError as error:
        LEFT_OUT.append(f"pure-ldp is left out: {error}")
        return
    values = np.random.default_rng(0).integers(0, CATEGORIES, LOOPED)
    client = oracle.DEClient(EPSILON0, CATEGORIES, lambda value: value)
    parties = [protocol(LOOPED, i) for i in range(4)]
    ours, theirs = in_turn(
        lambda i: parties[i].randomize(values),
        lambda i: [client.privatise(value) for value in values.tolist()],
    )
    yield Row(f"randomize {short(LOOPED)} values in memory", ours, theirs, "pure-ldp DEClient")


if __name__ == "__main__":
    main()
