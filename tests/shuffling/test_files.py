"""Report files: what goes in comes out, and nothing else passes for it."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shuffledp.errors import DamagedReportsError, ReportFileError, UnknownVersionError
from shuffledp.shuffling.report_files import Header, create_reports, open_reports

pytestmark = pytest.mark.quick

PROTOCOL = {"protocol": "test", "epsilon": 0.1, "categories": ["ä", 2, True]}


def written(path: Path, reports: np.ndarray, stage: str = "shuffled") -> Path:
    header = Header.new(stage, PROTOCOL, reports.dtype, reports.shape[1:])
    with create_reports(path, header) as writer:
        for part in np.array_split(reports, 3):
            writer.write(part)
    return path


def read(path: Path) -> tuple[Header, np.ndarray]:
    stored = open_reports(path)
    return stored.header, np.concatenate(list(stored.batches()))


def rewritten(path: Path, table: pa.Table, **changes: str) -> Path:
    """The same file again with another table and other entries of the metadata."""
    old = pq.ParquetFile(path).metadata.metadata
    entries = {key: value for key, value in old.items() if key.startswith(b"shuffledp")}
    entries |= {f"shuffledp.{key}".encode(): value.encode() for key, value in changes.items()}
    target = path.with_name("rewritten.parquet")
    fields = [field.with_nullable(table.column(field.name).null_count > 0) for field in table.schema]
    plain = table.cast(pa.schema(fields)).replace_schema_metadata(entries)
    pq.write_table(plain, target, compression="NONE", use_dictionary=False)
    return target


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8", "i8", "f4", "f8", ">u2", "?"])
@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3)])
def test_reports_of_any_type_and_shape_come_back_in_order(
    dtype: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    reports = rng.integers(0, 200, size=(1000, *shape)).astype(dtype)
    header, again = read(written(tmp_path / "r.parquet", reports))
    assert again.shape == reports.shape
    assert again.dtype == reports.dtype.newbyteorder("<")
    assert (again == reports).all()
    assert header.protocol == PROTOCOL


def test_a_file_without_reports_is_whole(tmp_path: Path) -> None:
    path = written(tmp_path / "r.parquet", np.zeros(0, dtype=np.uint8))
    assert open_reports(path).n == 0
    assert list(open_reports(path).batches()) == []


@pytest.mark.thorough
def test_no_changed_byte_goes_unnoticed_unless_it_changes_nothing(tmp_path: Path) -> None:
    path = written(tmp_path / "r.parquet", np.arange(40, dtype=np.uint8))
    whole, truth = path.read_bytes(), read(path)
    noticed = 0
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        try:
            header, reports = read(path)
        except ReportFileError:
            noticed += 1
        else:
            assert header == truth[0]
            assert reports.tolist() == truth[1].tolist()
    assert noticed > len(whole) // 2


def test_every_truncated_file_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "r.parquet", np.arange(200, dtype=np.uint16))
    whole = path.read_bytes()
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        with pytest.raises(DamagedReportsError):
            read(path)


def test_a_changed_swapped_or_lost_report_breaks_the_checksum(tmp_path: Path) -> None:
    path = written(tmp_path / "r.parquet", np.arange(9, dtype=np.uint8))
    values = list(range(9))
    for wrong in ([5, *values[1:]], [1, 0, *values[2:]], values[:-1], [*values, 1]):
        table = pa.table({"report": pa.array(wrong, pa.uint8())})
        with pytest.raises(DamagedReportsError, match=r"checksum|says 9 reports"):
            read(rewritten(path, table))


def test_changed_parameters_break_the_checksum(tmp_path: Path) -> None:
    path = written(tmp_path / "r.parquet", np.arange(9, dtype=np.uint8))
    header = json.loads(open_reports(path).header.to_json())
    header["protocol"]["epsilon"] = 0.01
    with pytest.raises(DamagedReportsError, match="checksum"):
        read(rewritten(path, pq.read_table(path), header=json.dumps(header)))


def test_a_file_of_a_later_version_is_refused_by_name(tmp_path: Path) -> None:
    path = written(tmp_path / "r.parquet", np.arange(9, dtype=np.uint8))
    header = json.loads(open_reports(path).header.to_json()) | {"version": 3, "stage": "new"}
    with pytest.raises(UnknownVersionError, match=r"has version 3 .* reads versions 1 and 2"):
        read(rewritten(path, pq.read_table(path), header=json.dumps(header)))


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "|O"},
        {"dtype": "nonsense"},
        {"shape": [-1]},
        {"shape": [2**40]},
        {"stage": "analyzed"},
        {"protocol": "histogram"},
        {"batch": 3},
        {"format": "something else"},
    ],
)
def test_a_header_that_makes_no_sense_is_damage(change: dict, tmp_path: Path) -> None:
    path = written(tmp_path / "r.parquet", np.arange(9, dtype=np.uint8))
    header = json.loads(open_reports(path).header.to_json()) | change
    with pytest.raises(DamagedReportsError, match="damaged header"):
        open_reports(rewritten(path, pq.read_table(path), header=json.dumps(header)))


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"format":'])
def test_a_header_that_is_no_object_is_damage(text: str, tmp_path: Path) -> None:
    path = written(tmp_path / "r.parquet", np.arange(9, dtype=np.uint8))
    with pytest.raises(DamagedReportsError, match="damaged header"):
        open_reports(rewritten(path, pq.read_table(path), header=text))


def test_a_column_of_another_type_or_with_holes_is_damage(tmp_path: Path) -> None:
    path = written(tmp_path / "r.parquet", np.arange(3, dtype=np.uint8))
    for column, said in (
        (pa.array([0, 1, 2], pa.int64()), "its columns must be"),
        (pa.array([0, None, 2], pa.uint8()), "its columns must be"),
    ):
        with pytest.raises(DamagedReportsError, match=said):
            read(rewritten(path, pa.table({"report": column})))
    with pytest.raises(DamagedReportsError, match="no column 'report'"):
        read(rewritten(path, pa.table({"other": [1, 2, 3]})))
    with pytest.raises(DamagedReportsError, match="its columns must be"):
        read(rewritten(path, pq.read_table(path).append_column("sender", pa.array(["a", "b", "c"]))))


def test_other_parquet_files_are_no_report_files(tmp_path: Path) -> None:
    pq.write_table(pa.table({"report": [1, 2]}), tmp_path / "other.parquet")
    with pytest.raises(ReportFileError, match=r"has no shuffledp\.header"):
        open_reports(tmp_path / "other.parquet")
    with pytest.raises(FileNotFoundError, match="not found"):
        open_reports(tmp_path / "nowhere.parquet")


def test_an_output_that_exists_is_never_replaced(tmp_path: Path) -> None:
    path = written(tmp_path / "r.parquet", np.arange(3, dtype=np.uint8))
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="must not exist"):
        written(path, np.arange(4, dtype=np.uint8))
    assert path.read_bytes() == before
    with pytest.raises(FileNotFoundError, match="existing folder"):
        written(tmp_path / "no" / "r.parquet", np.arange(4, dtype=np.uint8))


def test_reports_of_another_type_than_announced_are_refused(tmp_path: Path) -> None:
    header = Header.new("randomized", PROTOCOL, np.dtype(np.uint8), ())
    with (
        pytest.raises(ValueError, match="reports must have dtype uint8"),
        create_reports(tmp_path / "r.parquet", header) as writer,
    ):
        writer.write(np.zeros(3))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_an_error_or_interrupt_leaves_nothing_behind(error: type[BaseException], tmp_path: Path) -> None:
    header = Header.new("randomized", PROTOCOL, np.dtype(np.uint8), ())

    def interrupted() -> None:
        with create_reports(tmp_path / "r.parquet", header) as writer:
            writer.write(np.zeros(3, dtype=np.uint8))
            assert [path.suffix for path in tmp_path.iterdir()] == [".partial"]
            raise error

    with pytest.raises(error):
        interrupted()
    assert not list(tmp_path.iterdir())
