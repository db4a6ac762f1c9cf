"""Apache Spark as an engine (the extra ``spark``; Spark 4 needs Java 17 or later).

    result = collect(protocol, frame, column="pet", engine=SparkEngine())        # tallies only
    reports = SparkEngine().reports(protocol, frame, column="pet", minimum=n)    # shuffled raw reports

Every task randomizes Arrow batches with random words of its own (keyed by the operating system of the
machine it runs on) and gives a partial tally; Spark adds them up.

Each evaluation of a randomizer is another draw, and Spark evaluates again whatever it has lost or is asked
for twice. So randomized results are stored on the executors at once, cut off from the data they came from,
before anything is computed from them: what is lost after that is an error, never a second draw. While they
are computed, a task that fails or whose worker dies is run again (``spark.task.maxFailures``), with fresh
randomness: its rows are drawn twice, and one of the draws is stored. The other has gone with the task that
made it, and nothing was computed from it; whoever can read the memory of executors could have seen both,
and he can read the data. Of speculative execution, which runs the same task twice at once, the engine wants
nothing to do.

The shuffle of raw reports draws two random 64-bit words per report, repartitions by them and sorts by
them inside partitions. Where all n pairs differ every order is equally likely, so the distance to a
uniformly random permutation is at most n (n - 1) / 2^129: below 2^-69 for 2^30 reports.
"""

from __future__ import annotations

import os
import pickle
import shutil
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from shuffledp._lazy import needed
from shuffledp._randomness.words import source
from shuffledp.errors import DomainError
from shuffledp.shuffling._batches import Collectable, attempt
from shuffledp.shuffling.columns import Name, chosen, named, side_by_side, to_numpy
from shuffledp.shuffling.engine import Engine, Partial, Step, Tally, counted
from shuffledp.shuffling.permutation import check_enough
from shuffledp.shuffling.report_files import from_binary, to_binary

JAVA = "Apache Spark needs Java 17 or later: install it, or set JAVA_HOME to where it is"

_PARTIAL_SCHEMA = "place long, count long, rejected binary"
_REPORT_SCHEMA = "report binary, key0 long, key1 long, rejected binary"
_KEYS = ("key0", "key1")
_ROWS = -1
"""The place in a partial result that counts the rows."""


@dataclass(frozen=True)
class SparkEngine(Engine):
    """Spark, through a session of the user's own, the active one, or a local one on all cores.

    ``data`` is a Spark DataFrame, or the path of Parquet or CSV data that Spark can read."""

    session: Any = None

    def map_batches(self, step: Step, data: Any, column: Name, *, text: bool = False) -> Any:
        """A DataFrame of partial results, computed and stored once."""
        frame = self._one_column(data, column, text)
        return _stored(_mapped(frame, _PartialTallies(step), _PARTIAL_SCHEMA))

    def merge(self, partials: Any) -> Partial:
        """Their sum, added up by Spark."""
        counts = partials.where("rejected is null").groupBy("place").sum("count").collect()
        totals = {int(place): int(count) for place, count in counts}
        n = totals.pop(_ROWS, 0)
        tally = np.array([totals[place] for place in sorted(totals)], dtype=np.int64)
        return Partial(tally if n else None, n) + _rejected(partials)

    def reports(self, protocol: Collectable, data: Any, *, column: str | None = None, minimum: int) -> Any:
        """Fresh reports of a column, shuffled: a DataFrame whose one column ``report`` holds their bytes.

        Computed and stored once. Refuses fewer people than ``minimum``; of several messages a person, each is
        a row of its own."""
        frame = self._one_column(data, named(protocol, column), protocol.reads_text)
        keyed = _stored(_mapped(frame, _KeyedReports(protocol), _REPORT_SCHEMA))
        n = keyed.where("rejected is null").count()
        (Partial(None, n) + _rejected(keyed)).checked()
        check_enough(n // protocol.messages, minimum)
        mixed = keyed.repartition(*_KEYS).sortWithinPartitions(*_KEYS)
        return _stored(mixed.select("report"))

    def tally(self, protocol: Collectable, reports: Any) -> Partial:
        """Tally and number of the reports (messages) of a DataFrame that ``reports`` gave."""
        return self.merge(self.map_batches(_CountBytes(protocol), reports, "report"))

    def _one_column(self, data: Any, column: Name, text: bool) -> Any:
        session = self._session(data)
        if session.conf.get("spark.speculation", "false") != "false":
            raise ValueError(
                "spark.speculation must be false: it may run a randomizer twice on the same values"
            )
        frame = _as_frame(session, data, text)
        asked = column if isinstance(column, tuple) else (column,)
        names = [chosen(each, frame.columns).replace("`", "``") for each in asked]
        return frame.select(*(f"`{name}`" for name in names))

    def _session(self, data: Any) -> Any:
        if self.session is not None:
            return self.session
        sessions = needed("pyspark.sql", extra="spark").SparkSession
        known = getattr(data, "sparkSession", None) or sessions.getActiveSession()
        return known or _local_session(sessions)


def _mapped(frame: Any, function: Any, schema: str) -> Any:
    """``mapInArrow``, which warns of versions of pandas although it does not use pandas."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
        return frame.mapInArrow(function, schema)


def _stored(frame: Any) -> Any:
    """The rows of a frame, computed now, kept by the executors, without a way to compute them again."""
    return frame.localCheckpoint(eager=True)


def _rejected(frame: Any) -> Partial:
    """What the tasks rejected."""
    told = frame.where("rejected is not null").select("rejected").collect()
    note = "Rows are numbered within a task's part of the column: Spark keeps no order of rows."
    return sum((pickle.loads(bytes(row[0])) for row in told), start=Partial(note=note))


def _as_frame(session: Any, data: Any, text: bool) -> Any:
    if hasattr(data, "mapInArrow"):
        return data
    if not isinstance(data, (str, os.PathLike)):
        raise TypeError(f"data must be a Spark DataFrame or a path, got {type(data).__qualname__}")
    path = os.fspath(data)
    if path.lower().endswith((".csv", ".csv.gz")):
        return session.read.csv(path, header=True, inferSchema=not text)
    return session.read.parquet(path)


def _local_session(sessions: Any) -> Any:
    """A session in this process's machine."""
    home = os.environ.get("JAVA_HOME")
    if not shutil.which("java", path=os.path.join(home, "bin") if home else None):
        raise RuntimeError(JAVA)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = sessions.builder.master("local[*]").appName("shuffledp")
    return builder.config("spark.ui.enabled", "false").getOrCreate()


class _PartialTallies:
    """What a task runs: all its batches become one tally (a row per place) and a number of rows."""

    def __init__(self, step: Step) -> None:
        self.step = step

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        total = Partial()
        for batch in batches:
            total += counted(self.step, _column(batch, self.step), total.n)
        if total.rejected is not None:
            refusal = pickle.dumps(Partial(None, total.n, total.rejected))
            yield _record_batch(_PARTIAL_SCHEMA, [None], [None], [refusal])
        elif total.tally is not None:
            places = [_ROWS, *range(len(total.tally))]
            counts = [total.n, *total.tally.tolist()]
            yield _record_batch(_PARTIAL_SCHEMA, places, counts, _nothing(len(places)))


class _CountBytes:
    """The tally of reports that come as bytes."""

    def __init__(self, protocol: Collectable) -> None:
        self.protocol = protocol

    def __call__(self, reports: npt.NDArray[Any]) -> Tally:
        return self.protocol.count(reports)

    def decoded(self, array: Any) -> npt.NDArray[Any]:
        """Bytes as reports."""
        kind = self.protocol.report_dtype.newbyteorder("<")
        return from_binary(array, kind, self.protocol.report_shape)


class _KeyedReports:
    """What a task runs: every value becomes a report with a random place to go to."""

    def __init__(self, protocol: Collectable) -> None:
        self.protocol = protocol

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        words, first_row = source(), 0
        for batch in batches:
            values = _values(batch)
            reports = attempt(self.protocol.randomize, values, first_row)
            first_row += len(values)
            if isinstance(reports, DomainError):
                refusal = pickle.dumps(Partial(None, len(values), reports))
                yield _record_batch(_REPORT_SCHEMA, [None], [None], [None], [refusal])
            else:
                sent = np.asarray(reports)  # of several messages a person, more than values
                keys = [words.draw(len(sent)).view(np.int64) for _ in _KEYS]
                yield _record_batch(_REPORT_SCHEMA, to_binary(sent), *keys, _nothing(len(sent)))


def _column(batch: Any, step: Step) -> npt.NDArray[Any]:
    """The values of a batch; a step that takes bytes says how they are read."""
    found: npt.NDArray[Any] = step.decoded(batch.column(0)) if hasattr(step, "decoded") else _values(batch)
    return found


def _values(batch: Any) -> npt.NDArray[Any]:
    """The one column of a batch, or several as a structured array."""
    columns = {name: to_numpy(part) for name, part in zip(batch.schema.names, batch.columns, strict=True)}
    return next(iter(columns.values())) if len(columns) == 1 else side_by_side(columns)


def _nothing(rows: int) -> Any:
    pyarrow = needed("pyarrow", extra="spark")
    return pyarrow.nulls(rows, pyarrow.binary())


def _record_batch(schema: str, *columns: Any) -> Any:
    pyarrow = needed("pyarrow", extra="spark")
    kinds = {"long": pyarrow.int64(), "binary": pyarrow.binary()}
    fields = [pair.split() for pair in schema.split(", ")]
    arrays = [
        pyarrow.array(column, type=kinds[kind]) for column, (_, kind) in zip(columns, fields, strict=True)
    ]
    return pyarrow.record_batch(arrays, names=[name for name, _ in fields])
