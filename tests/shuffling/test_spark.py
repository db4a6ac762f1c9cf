"""The Spark engine, on a real local Spark: the embedded engine's results in distribution.

One session serves all tests. Randomness is secure, so nothing can be seeded: every statistical test
fails by chance at most about once in 10^9 runs.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shuffledp as sdp
from shuffledp.collecting.histogram import HistogramProtocol
from shuffledp.errors import DomainError, TooFewReportsError
from shuffledp.randomizers.frequency import two_probabilities
from shuffledp.shuffling.engine import EmbeddedEngine, RandomizeAndCount, collect, tallied
from shuffledp.shuffling.spark import SparkEngine, _local_session

pytest.importorskip("pyspark")
pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # sockets to the Java side
]
needs_java = pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java")

CATS, DOGS = 300, 2700


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        # What the workers of Spark must find.
        patch.setenv("PYTHONPATH", str(Path(sdp.__file__).parents[1]))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        spark = builder.config("spark.sql.shuffle.partitions", "4").getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        yield spark
        spark.stop()


@pytest.fixture(scope="module")
def pet_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Sorted, with an id, in several row groups."""
    path = tmp_path_factory.mktemp("pets") / "pets.parquet"
    table = pa.table({"id": range(CATS + DOGS), "pet": ["cat"] * CATS + ["dog"] * DOGS})
    pq.write_table(table, path, row_group_size=500)
    return str(path)


@needs_java
def test_both_engines_draw_from_the_same_law(session: Any, pets: HistogramProtocol, pet_path: str) -> None:
    p, q = two_probabilities(pets.randomizer) or (0.0, 0.0)
    truth = np.array([CATS, DOGS, 0])
    mean = truth * p + (truth.sum() - truth) * q
    spread = np.sqrt(truth * p * (1 - p) + (truth.sum() - truth) * q * (1 - q))
    for engine in (SparkEngine(session), EmbeddedEngine()):
        done = tallied(pets, pet_path, "pet", engine)
        assert done.n == CATS + DOGS
        assert done.tally is not None
        assert (np.abs(done.tally - mean) < 6.5 * spread).all()
        assert done.tally.sum() == done.n


@needs_java
def test_a_collection_gives_the_protocols_result(
    session: Any, pets: HistogramProtocol, pet_path: str
) -> None:
    frame = session.read.parquet(pet_path).repartition(3)
    result = collect(pets, frame, column="pet", engine=SparkEngine(), minimum=3000)
    assert result.n == 3000
    with pytest.raises(TooFewReportsError, match=r"at least 3001 .* got 3000"):
        collect(pets, frame, column="pet", engine=SparkEngine(session), minimum=3001)


@needs_java
def test_raw_reports_lose_their_order_and_everything_else_and_are_drawn_once(
    session: Any, pets: HistogramProtocol, pet_path: str
) -> None:
    n, engine = CATS + DOGS, SparkEngine(session)
    frame = engine.reports(pets, pet_path, column="pet", minimum=n)
    assert frame.columns == ["report"]
    first, again = ([ord(bytes(row[0])) for row in frame.collect()] for _ in range(2))
    # Drawn again, some of the 60 random answers would differ but for a chance of 1e-10.
    assert first == again
    assert "MapInArrow" not in frame._jdf.queryExecution().toString()  # nothing to draw again
    # The input is sorted, and hardly randomized.
    assert abs(np.corrcoef(first, np.arange(n))[0, 1]) * np.sqrt(n) < 6.2
    done = engine.tally(pets, frame)
    assert done.n == n
    assert done.tally is not None
    assert done.tally.tolist() == np.bincount(first, minlength=3).tolist()
    with pytest.raises(TooFewReportsError, match=f"at least {n + 1} "):
        engine.reports(pets, pet_path, column="pet", minimum=n + 1)


@needs_java
def test_partial_tallies_cannot_be_drawn_again(session: Any, pets: HistogramProtocol, pet_path: str) -> None:
    engine = SparkEngine(session)
    partials = engine.map_batches(RandomizeAndCount(pets), pet_path, "pet")
    assert "MapInArrow" not in partials._jdf.queryExecution().toString()
    first, again = (engine.merge(partials).tally for _ in range(2))
    assert first is not None
    assert again is not None
    assert first.tolist() == again.tolist()


@needs_java
def test_no_two_tasks_share_their_randomness(session: Any) -> None:
    coin = HistogramProtocol(
        [0, 1], epsilon=1.0, delta=1e-6, n=1000,
        randomizer=sdp.KaryRandomizedResponse(k=2, epsilon0=0.5),
    )  # fmt: skip
    from shuffledp.shuffling.spark import _REPORT_SCHEMA, _KeyedReports, _stored

    zeros = session.range(1000, numPartitions=2).selectExpr("id * 0 as v")
    keyed = _stored(zeros.mapInArrow(_KeyedReports(coin), _REPORT_SCHEMA)).collect()
    halves = [[(bytes(row[0]), row[1]) for row in part] for part in (keyed[:500], keyed[500:])]
    assert [report for report, _ in halves[0]] != [report for report, _ in halves[1]]
    assert len({row[1] for row in keyed}) == 1000  # the keys: equal ones have probability 3e-14


@needs_java
def test_missing_and_unknown_values_are_counted(session: Any, pets: HistogramProtocol) -> None:
    frame = session.createDataFrame([("cat",), (None,), ("cow",), ("dog",)] * 5, "pet string")
    for step in (
        lambda: collect(pets, frame, engine=SparkEngine(session)),
        lambda: SparkEngine(session).reports(pets, frame, minimum=1),
    ):
        with pytest.raises(DomainError) as caught:
            step()
        error = caught.value
        assert (error.total, error.missing, error.outside) == (20, 5, 5)
        assert error.examples == ()
        assert "cow" not in str(error)
        assert "within a task" in error.__notes__[0]
    with pytest.raises(DomainError) as caught:
        collect(pets, frame, engine=SparkEngine(session), show_values=True)
    assert {value for _, value in caught.value.examples} == {None, "cow"}


@needs_java
def test_several_partitions_of_sorted_rows_come_out_in_random_order(
    session: Any, pets: HistogramProtocol
) -> None:
    """Which partition a report is in, and where in it, says nothing about its row."""
    n, before = 6000, session.conf.get("spark.sql.adaptive.enabled")
    frame = session.createDataFrame([("cat",)] * (n // 2) + [("dog",)] * (n // 2), "pet string").repartition(
        3
    )
    session.conf.set("spark.sql.adaptive.enabled", "false")  # which would make one partition of it
    try:
        mixed = SparkEngine(session).reports(pets, frame.sort("pet"), minimum=n)
        parts = [[row[0][0] for row in part] for part in mixed.rdd.glom().collect()]
    finally:
        session.conf.set("spark.sql.adaptive.enabled", before)
    assert len([part for part in parts if part]) == 4
    assert sum(map(len, parts)) == n
    for part in parts:  # half of each are cats; false alarm below 1e-7 (no seed: secure randomness)
        cats = np.array(part) == 0
        assert abs(cats.mean() - 0.5) < 5.5 * 0.5 / np.sqrt(len(part))
        assert abs(np.corrcoef(cats, np.arange(len(part)))[0, 1]) * np.sqrt(len(part)) < 5.5


@needs_java
@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_handful_of_rows_is_counted(n: int, session: Any, pets: HistogramProtocol) -> None:
    frame = session.createDataFrame([("cat",), ("dog",)][:n], "pet string")
    done = tallied(pets, frame, engine=SparkEngine(session))
    assert done.n == n
    if n == 0:
        with pytest.raises(TooFewReportsError, match="got 0"):
            collect(pets, frame, engine=SparkEngine(session))


@needs_java
def test_text_in_csv_files_stays_text(session: Any, tmp_path: Path) -> None:
    codes = HistogramProtocol(
        ["01", "1"], epsilon=30.0, delta=1e-6, n=3,
        randomizer=sdp.KaryRandomizedResponse(k=2, epsilon0=30.0),
    )  # fmt: skip
    (tmp_path / "codes.csv").write_text("code\n01\n1\n1\n")
    done = tallied(codes, tmp_path / "codes.csv", engine=SparkEngine(session))
    assert done.tally is not None
    assert done.tally.tolist() == [1, 2]


@needs_java
def test_a_table_reads_its_own_columns(session: Any) -> None:
    sure = sdp.KaryRandomizedResponse(k=4, epsilon0=30.0)
    lists = {"pet": ["cat", "dog"], "age": [1, 2]}
    table = sdp.TableProtocol(lists, epsilon=30.0, delta=1e-6, n=3, randomizer=sure)
    frame = session.createDataFrame(
        [(2, "x", "cat"), (2, "y", "cat"), (1, "z", "dog")], "age int, id string, pet string"
    )
    done = tallied(table, frame, engine=SparkEngine(session))
    assert done.tally is not None
    assert done.tally.tolist() == [0, 2, 1, 0]
    mixed = SparkEngine(session).reports(table, frame, minimum=3)
    assert SparkEngine(session).tally(table, mixed).n == 3


class Settings:
    """A session with these settings only."""

    def __init__(self, **settings: str) -> None:
        self.conf, self._settings = self, settings

    def get(self, name: str, default: str) -> str:
        return self._settings.get(name.replace(".", "_"), default)


def test_speculative_execution_is_refused(pets: HistogramProtocol) -> None:
    engine = SparkEngine(Settings(spark_speculation="true"))
    with pytest.raises(ValueError, match=r"spark\.speculation must be false"):
        tallied(pets, "pets.parquet", engine=engine)


def test_data_that_spark_cannot_read_is_named(pets: HistogramProtocol) -> None:
    with pytest.raises(TypeError, match="Spark DataFrame or a path, got list"):
        tallied(pets, ["cat"], engine=SparkEngine(Settings()))


@pytest.mark.parametrize("home", [None, "/nowhere"])
def test_without_java_the_error_says_what_to_install(
    home: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path) if home is None else os.environ["PATH"])
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if home is not None:
        monkeypatch.setenv("JAVA_HOME", home)
    with pytest.raises(RuntimeError, match="needs Java 17 or later"):
        _local_session(None)


@needs_java
@pytest.mark.parametrize("kind", ["sum", "histogram", "vectors"])
def test_several_messages_a_person_come_out_mixed_and_add_up(session: Any, kind: str) -> None:
    """Raw messages, and tallies of all of them; the threshold counts people."""
    numbers = [3.0] * 40 + [9.0] * 20
    protocol: Any = sdp.SumProtocol(0, 10, 2.0, 1e-3, 60, messages="auto")
    if kind == "histogram":
        protocol = sdp.HistogramProtocol(
            [3.0, 9.0], 2.0, 1e-2, 60, randomizer=sdp.BlanketMessages(k=2, rate=0.5, slots=2)
        )
    frame = session.createDataFrame([(number,) for number in numbers], "number double").repartition(3)
    if kind == "vectors":
        protocol = sdp.VectorMeanProtocol(dimension=2, radius=1.0, epsilon=3.0, delta=1e-3, n=60)
        frame = session.createDataFrame([([0.6, -0.8],)] * 60, "move array<double>").repartition(3)
    m = protocol.messages
    assert m > 1
    assert frame.rdd.getNumPartitions() == 3
    engine = SparkEngine(session)
    with pytest.raises(TooFewReportsError, match="got 60"):
        engine.reports(protocol, frame, minimum=61)
    reports = engine.reports(protocol, frame, minimum=60)
    done = engine.tally(protocol, reports)
    assert done.n == 60 * m
    for result in (
        protocol.analyze(tally=done.tally, n=protocol.people(done.n)),
        collect(protocol, frame, engine=engine, minimum=60),
    ):
        assert result.n == 60
        low, high = result.interval(confidence=1 - 1e-9)
        if kind == "sum":
            assert low <= sum(numbers) <= high
        elif kind == "vectors":
            assert np.all((low <= [0.6, -0.8]) & (high >= [0.6, -0.8]))
        else:
            assert low[0] <= 40 <= high[0]


@needs_java
def test_spark_opens_released_batches_in_several_partitions(session: Any, tmp_path: Path) -> None:
    """The shuffler's file, as it is: the same counts as on one machine, and what is wrong is left out."""
    pytest.importorskip("fcntl", reason="the shuffler runs on POSIX systems")
    from service.running import Setting, public_key, sealed, sealed_report, survey

    from shuffledp.service.batches import analyze_batch, open_batch

    ages = sdp.SumProtocol(0, 10, 2.0, 1e-3, 60, messages="auto")
    setting = Setting(tmp_path)
    for name, protocol, values in (("pets", survey(), ["yes"] * 300), ("ages", ages, [7.0] * 60)):
        task = setting.create(name, protocol)
        with setting.shuffler() as shuffler:
            bodies = sealed(setting, task, values)
            if name == "pets":
                key = public_key(setting, task)
                bodies += [sealed_report(task, key, b"\xc8") for _ in range(4)]  # outside the domain
            opened = [shuffler.opened(shuffler.collection(name), body) for body in bodies]
            garbage = [opened[0]._replace(id=bytes(16), sealed=bytes(len(opened[0].sealed)))]
            shuffler.store.add(opened + garbage * (name == "pets"))
            path = shuffler.release(name)
        session.conf.set("spark.sql.files.maxPartitionBytes", "4096")
        try:
            assert session.read.parquet(str(path)).rdd.getNumPartitions() > 1
            found = open_batch(path, setting.key, engine=SparkEngine(session))
            alone = open_batch(path, setting.key)
            assert found[1:2] + found[3:] == alone[1:2] + alone[3:]
            assert (found.tally == alone.tally).all()
            assert (found.not_opened, found.outside) == ((1, 4) if name == "pets" else (0, 0))
            result = analyze_batch(path, setting.key, engine=SparkEngine(session))
            assert result.n == len(values)
        finally:
            session.conf.unset("spark.sql.files.maxPartitionBytes")
