"""Files made to harm: each is refused or set aside, soon, with little memory, and costs no other file."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shuffledp
from shuffledp.collecting.histogram import HistogramProtocol
from shuffledp.errors import DamagedReportsError, ReportFileError
from shuffledp.shuffling.report_files import Checksum, Header, create_reports, open_reports
from shuffledp.shuffling.roles import analyze_file, shuffle_files, write_reports

pytestmark = pytest.mark.quick

SOURCE = str(Path(shuffledp.__file__).parents[1])


def table(pets: HistogramProtocol, path: Path, columns: dict[str, Any], n: Any, **how: Any) -> Path:
    """A Parquet file with the header of ``pets`` and whatever else."""
    header = (
        how.pop("header", None) or Header.new("randomized", pets.to_dict(), pets.report_dtype, ()).to_json()
    )
    told = {"shuffledp.header": header, "shuffledp.reports": str(n), "shuffledp.checksum": "0" * 64}
    fields = [pa.field(name, array.type, nullable=array.null_count > 0) for name, array in columns.items()]
    made = pa.table(list(columns.values()), schema=pa.schema(fields, metadata=told))
    pq.write_table(made, path, **{"compression": "NONE", "use_dictionary": False} | how)
    return path


def ids(n: int) -> Any:
    return pa.array([os.urandom(16) for _ in range(n)], pa.binary(16))


def same_id(n: int) -> Any:
    return pa.array([bytes(16)] * n, pa.binary(16))


def symbols(n: int) -> Any:
    return pa.array(np.zeros(n, dtype=np.uint8))


def hostile(pets: HistogramProtocol, folder: Path) -> dict[str, Path]:
    """One file of each kind."""
    plain = {"id": ids(3), "report": symbols(3)}
    many = {"id": same_id(3_000_000), "report": symbols(3_000_000)}
    wide = Header.new("randomized", pets.to_dict(), np.dtype(np.uint8), (1 << 29,)).to_json()
    holes = {"id": pa.nulls(3_000_000, pa.binary(16)), "report": pa.nulls(3_000_000, pa.uint8())}
    made = {
        "a declared count of 2^60": (plain, 2**60, {}),
        "a count of 5,000 digits": (plain, "9" * 5000, {}),
        "a negative count": (plain, -3, {}),
        "three million reports in a few bytes": (
            many,
            3_000_000,
            {"compression": "zstd", "use_dictionary": True},
        ),
        "compressed without a dictionary": (many, 3_000_000, {"compression": "zstd"}),
        "three million holes": (holes, 3_000_000, {}),
        "one report of 512 MiB": (plain, 3, {"header": wide}),
        "a header of nested lists": (plain, 3, {"header": "[" * 200_000}),
        "a header of a long number": (plain, 3, {"header": '{"format": ' + "9" * 100_000 + "}"}),
        "short reports": ({"id": ids(3), "report": pa.array([b"", b"1", b"22"])}, 3, {}),
        "no IDs": ({"report": symbols(3)}, 3, {}),
        "a further column": (plain | {"sender": pa.array(["a", "b", "c"])}, 3, {}),
        "a checksum of nothing": (plain, 3, {}),
        "a piece too large": ({"id": same_id(600_000), "report": symbols(600_000)}, 600_000, {}),
    }
    paths = {}
    for number, (kind, (columns, n, how)) in enumerate(made.items()):
        paths[kind] = table(pets, folder / f"{number}.parquet", columns, n, **how)
    for kind, data in {
        "empty": b"",
        "noise": os.urandom(5000),
        "text": b"PAR1" + b"x" * 100 + b"PAR1",
    }.items():
        (folder / f"{kind}.parquet").write_bytes(data)
        paths[kind] = folder / f"{kind}.parquet"
    paths["a folder"] = folder / "dir.parquet"
    paths["a folder"].mkdir()
    paths["nothing"] = folder / "missing.parquet"
    return paths


CODE = """
import json, resource, sys, time
from pathlib import Path
import shuffledp as sdp
from shuffledp.collecting.histogram import HistogramProtocol
answer = sdp.KaryRandomizedResponse(k=3, gamma=0.02)
pets = HistogramProtocol(("cat", "dog", "fish"), epsilon=8.0, delta=1e-6, n=3000, randomizer=answer)
folder = Path(sys.argv[1])
sdp.shuffle_files(pets, [folder / "good.parquet"], folder / "first.parquet", minimum=1, used=folder / "warm")
before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
files = [Path(path) for path in sys.argv[2:]]
limits = {"minimum": 1, "used": folder / "used", "most_per_file": 10**9}
done = sdp.shuffle_files(pets, [*files, folder / "good.parquet"], folder / "s.parquet", **limits)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([done.reports, done.files_set_aside, after - before, time.process_time() - start]))
"""


@pytest.mark.thorough
def test_hostile_files_cost_themselves_only_and_little_memory(
    pets: HistogramProtocol, tmp_path: Path
) -> None:
    paths = hostile(pets, tmp_path)
    write_reports(pets, pets.randomize(["cat"] * 100), tmp_path / "good.parquet")
    for name in ("warm", "used"):
        (tmp_path / name).mkdir()
    command = [sys.executable, "-c", CODE, str(tmp_path), *map(str, paths.values())]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": SOURCE}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    reports, aside, kib, seconds = json.loads(done.stdout)
    assert reports == 100
    assert set(aside) == {str(path) for path in paths.values()}
    assert kib < 128 * 1024, f"{kib} KiB more"
    assert seconds < 20


@pytest.mark.parametrize("seed", range(3))
def test_random_changes_of_a_file_are_errors_of_ours_or_nothing(
    seed: int, pets: HistogramProtocol, tmp_path: Path
) -> None:
    """Bytes changed, removed or put in at random: a ReportFileError, or the same reports."""
    rng = np.random.default_rng(seed)
    path = tmp_path / "r.parquet"
    write_reports(pets, pets.randomize(["cat"] * 30), path)
    whole = path.read_bytes()
    truth = [batch.tolist() for batch in open_reports(path).batches()]
    for _ in range(150):
        data, place = bytearray(whole), int(rng.integers(len(whole)))
        if (kind := rng.integers(3)) == 0:
            data[place : place + int(rng.integers(1, 9))] = rng.bytes(int(rng.integers(1, 9)))
        elif kind == 1:
            del data[place : place + int(rng.integers(1, 99))]
        else:
            data[place:place] = rng.bytes(int(rng.integers(1, 99)))
        path.write_bytes(data)
        with suppress(ReportFileError):
            assert [batch.tolist() for batch in open_reports(path).batches()] == truth


def version_1(pets: HistogramProtocol, path: Path, stage: str, reports: Any) -> Path:
    """A file as the first release wrote it: compressed, without IDs."""
    header = {
        "format": "shuffledp reports", "version": 1, "stage": stage, "protocol": pets.to_dict(),
        "dtype": "|u1", "shape": [], "batch": "ab" * 16,
    }  # fmt: skip
    text = json.dumps(header, sort_keys=True, separators=(",", ":"))
    checksum = Checksum(text)
    checksum.update(reports)
    told = {"header": text, "reports": str(len(reports)), "checksum": checksum.hexdigest()}
    field = pa.field("report", pa.uint8(), nullable=False)
    schema = pa.schema([field], metadata={f"shuffledp.{key}": value for key, value in told.items()})
    pq.write_table(pa.table([pa.array(reports)], schema=schema), path)
    return path


def test_shuffled_files_of_version_1_are_read_and_randomized_ones_refused(
    pets: HistogramProtocol, tmp_path: Path
) -> None:
    reports = pets.randomize(["cat"] * 3000)
    assert analyze_file(pets, version_1(pets, tmp_path / "s.parquet", "shuffled", reports)).n == 3000
    old = version_1(pets, tmp_path / "r.parquet", "randomized", reports)
    assert open_reports(old).n == 3000
    new = tmp_path / "n.parquet"
    write_reports(pets, reports[:10], new)
    (tmp_path / "used").mkdir()
    done = shuffle_files(pets, [old, new], tmp_path / "t.parquet", minimum=1, used=tmp_path / "used")
    assert done.reports == 10
    assert "without IDs nobody can tell" in done.files_set_aside[str(old)]


def test_a_shuffled_file_is_as_plain_as_the_others(pets: HistogramProtocol, tmp_path: Path) -> None:
    """A million reports in a few bytes are refused by the analyst, too."""
    header = Header.new("shuffled", pets.to_dict(), pets.report_dtype, ()).to_json()
    bomb = table(
        pets, tmp_path / "b.parquet", {"report": symbols(10**6)}, 10**6, header=header, compression="zstd"
    )
    with pytest.raises(DamagedReportsError, match=r"compressed|too large"):
        analyze_file(pets, bomb)
    with create_reports(tmp_path / "s.parquet", Header.from_json(header, "s")) as writer:
        writer.write(np.zeros(10**6, dtype=np.uint8))
    assert analyze_file(pets, tmp_path / "s.parquet").n == 10**6
    assert (tmp_path / "s.parquet").stat().st_size > 10**6
