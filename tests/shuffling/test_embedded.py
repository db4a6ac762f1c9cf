"""The embedded engine: right tallies, whole errors, bounded memory, and a progress line."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shuffledp
from shuffledp.collecting.histogram import HistogramProtocol
from shuffledp.errors import DomainError, TooFewReportsError
from shuffledp.randomizers.frequency import two_probabilities
from shuffledp.shuffling import _batches as batches
from shuffledp.shuffling._batches import parallel_map
from shuffledp.shuffling.engine import EmbeddedEngine, RandomizeAndCount, collect, tallied

pytestmark = pytest.mark.quick

THREE_PERCENT_CATS = np.array(["cat"] * 90 + ["dog"] * 2910)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("rows", [1, 7, 10**6])
def test_every_row_is_counted_once(threads: int, rows: int) -> None:
    column = np.arange(500) % 7
    engine = EmbeddedEngine(threads=threads, rows=rows)
    partials = engine.map_batches(lambda batch: np.bincount(batch, minlength=7), column, None)
    done = engine.merge(partials)
    assert done.n == 500
    assert done.tally is not None
    assert done.tally.tolist() == np.bincount(column).tolist()


def test_a_collection_estimates_the_counts(pets: HistogramProtocol) -> None:
    result = collect(pets, THREE_PERCENT_CATS, minimum=3000)
    truth = np.array([90, 2910, 0])
    spread = np.sqrt(pets.randomizer.variance(truth, 3000))
    assert (np.abs(result.counts - truth) < 7 * spread).all()  # false alarm below 1e-9


@pytest.mark.thorough
def test_the_tallies_of_many_collections_have_the_exact_mean_and_variance(pets: HistogramProtocol) -> None:
    # "cat" is supported by n p c + n q (1 - c) reports on average, with the binomial variances.
    runs, n, cats = 400, 3000, 90
    engine = EmbeddedEngine(rows=1000)
    seen = np.array([tallied(pets, THREE_PERCENT_CATS, engine=engine).tally[0] for _ in range(runs)])
    p, q = two_probabilities(pets.randomizer) or (0.0, 0.0)
    mean = cats * p + (n - cats) * q
    variance = cats * p * (1 - p) + (n - cats) * q * (1 - q)
    # Secure randomness, no seed: each of the two fails by chance about once in 10^9 runs.
    assert abs(seen.mean() - mean) < 6.2 * np.sqrt(variance / runs)
    assert abs(seen.var() / variance - 1) < 6.5 * np.sqrt(2 / runs)


def test_missing_and_unknown_values_are_counted_over_all_batches(pets: HistogramProtocol) -> None:
    column = np.array(["cat"] * 1000, dtype=object)
    column[[3, 500, 501, 999]] = [None, "cow", None, "hen"]
    with pytest.raises(DomainError) as caught:
        collect(pets, column, engine=EmbeddedEngine(rows=10))
    assert caught.value.examples == ()  # nobody's answer, unless that is asked for
    assert not {"cow", "500"} & set(str(caught.value).split())
    with pytest.raises(DomainError) as caught:
        collect(pets, column, engine=EmbeddedEngine(rows=10), show_values=True)
    error = caught.value
    assert (error.total, error.missing, error.outside) == (1000, 2, 2)
    assert error.examples == ((3, None), (500, "cow"), (501, None), (999, "hen"))


@pytest.mark.parametrize("n", [0, 1, 2])
def test_too_few_rows_are_refused(n: int, pets: HistogramProtocol) -> None:
    with pytest.raises(TooFewReportsError, match=f"got {n}"):
        collect(pets, ["cat", "dog"][:n], minimum=3)


def test_a_column_of_missing_values_is_an_error(pets: HistogramProtocol) -> None:
    with pytest.raises(DomainError, match="6 of 6 values"):
        collect(pets, [None] * 6)


def test_a_column_of_missing_values_can_have_a_category_of_its_own() -> None:
    answer = shuffledp.KaryRandomizedResponse(k=3, epsilon0=30.0)
    lenient = HistogramProtocol(["a", "b"], 30.0, 1e-6, n=6, randomizer=answer, other="unknown")
    # A random answer has probability 1e-12.
    assert tallied(lenient, [None] * 6).tally.tolist() == [0, 0, 6]


def test_wide_reports_are_made_a_few_at_a_time_and_rows_keep_their_numbers(
    pets: HistogramProtocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_BYTES", 100)
    step = RandomizeAndCount(pets, show_values=True)
    assert step.rows == 100
    assert step(np.array(["cat"] * 1050)).sum() == 1050
    assert step(np.array([], dtype="U3")).tolist() == [0, 0, 0]
    with pytest.raises(DomainError) as caught:
        step(np.array(["cat"] * 500 + ["cow"] + ["dog"] * 500))
    assert (caught.value.total, caught.value.examples) == (1001, ((500, "cow"),))


def test_other_errors_of_a_step_come_through() -> None:
    def step(batch: np.ndarray) -> np.ndarray:
        raise ValueError("impossible")

    engine = EmbeddedEngine(threads=2)
    with pytest.raises(ValueError, match="impossible"):
        engine.merge(engine.map_batches(step, np.arange(5), None))


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="threads must be in"):
        EmbeddedEngine(threads=0)
    with pytest.raises(ValueError, match="rows must be in"):
        EmbeddedEngine(rows=0)


def test_only_two_batches_per_thread_are_ever_held() -> None:
    read = []

    def items() -> Iterator[Any]:
        for i in range(100):
            read.append(i)
            yield i

    stream = parallel_map(lambda item: item, items(), threads=3)
    assert next(stream) == 0
    assert len(read) == 6
    assert list(stream) == list(range(1, 100))


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from Linux")
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    # 128 MiB of numbers: holding the column would take that much and more.
    code = f"""
import resource, numpy as np, pyarrow as pa, pyarrow.parquet as pq, shuffledp as sdp
from shuffledp.collecting.histogram import HistogramProtocol
from shuffledp.shuffling.engine import tallied
answer = sdp.KaryRandomizedResponse(k=3, gamma=0.02)
protocol = HistogramProtocol([0, 1, 2], epsilon=8.0, delta=1e-6, n=3000, randomizer=answer)
tallied(protocol, np.zeros(10**6, dtype=np.int64))
path = {str(tmp_path / "big.parquet")!r}
schema = pa.schema([("v", pa.int64())])
part = pa.table({{"v": np.random.default_rng(0).integers(0, 3, 2**20)}}, schema=schema)
with pq.ParquetWriter(path, schema, use_dictionary=False, compression="none") as writer:
    for _ in range(16):
        writer.write_table(part)
del part
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert tallied(protocol, path).n == 16 * 2**20
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(shuffledp.__file__).parents[1])}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 64 * 1024  # KiB; the file has 128 MiB
