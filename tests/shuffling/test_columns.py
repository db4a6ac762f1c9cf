"""Columns of everything: the same values, in order, in batches; what is missing stays missing."""

import gzip
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from shuffledp._lazy import needed
from shuffledp.shuffling.columns import open_column

pytestmark = pytest.mark.quick

NUMBERS = [5, 3, 9, 2**62 + 1, -4]
WORDS = ["b", "", "ä", "b", "c"]
HOLES = [5, None, 2**62 + 1, None, 7]


def values(data: Any, name: str | None = None, **options: Any) -> list[Any]:
    return [value for batch in open_column(data, name, **options) for value in batch.tolist()]


def frames(column: list[Any]) -> dict[str, Any]:
    table = pa.table({"id": range(len(column)), "v": column})
    return {
        "pyarrow table": table,
        "record batch": table.to_batches()[0],
        "batch reader": table.to_reader(),
        "pandas": table.to_pandas(types_mapper=pd.ArrowDtype),
        "polars": pl.from_arrow(table),
    }


def files(column: list[Any], folder: Path) -> dict[str, Path]:
    table = pa.table({"id": range(len(column)), "v": column})
    pq.write_table(table, folder / "v.parquet", row_group_size=2)
    pyarrow.feather.write_feather(table, folder / "v.feather", chunksize=2)
    with pa.ipc.new_stream(folder / "v.arrow", table.schema) as stream:
        stream.write_table(table, max_chunksize=3)
    return {path.suffix: path for path in folder.iterdir()}


@pytest.mark.parametrize("column", [NUMBERS, WORDS, HOLES, ["a", None], [True, False]])
def test_all_frames_give_the_same_values(column: list[Any]) -> None:
    for name, frame in frames(column).items():
        assert values(frame, "v", rows=2) == column, name


@pytest.mark.parametrize("column", [NUMBERS, WORDS, HOLES, ["a", None], [True, False]])
def test_all_files_give_the_same_values(column: list[Any], tmp_path: Path) -> None:
    for name, path in files(column, tmp_path).items():
        assert values(path, "v", rows=2) == column, name
        assert values(str(path), "v") == column, name


@pytest.mark.parametrize("column", [NUMBERS, WORDS, HOLES])
def test_series_arrays_and_lists_need_no_name(column: list[Any]) -> None:
    for data in (
        column,
        tuple(column),
        pa.array(column),
        pa.chunked_array([column[:2], column[2:]]),
        pl.Series(column),
        pd.Series(column, dtype=pd.ArrowDtype(pa.array(column).type)),
    ):
        assert values(data, rows=2) == column


@pytest.mark.parametrize("dtype", ["u1", "i4", "i8", "f4", "U3"])
def test_numpy_arrays_keep_their_type(dtype: str) -> None:
    array = np.array([1, 2, 3]).astype(dtype)
    (batch,) = open_column(array)
    assert batch.dtype == array.dtype
    assert (batch == array).all()


def test_columns_of_categories_become_their_values() -> None:
    words = ["x", None, "y", "x"]
    assert values(pd.Series(words, dtype="category")) == words
    assert values(pl.Series(words, dtype=pl.Categorical)) == words
    assert values(pa.array(words).dictionary_encode()) == words
    full = pa.DictionaryArray.from_arrays(pa.array([127, None], pa.int8()), list(range(128)))
    assert values(full) == [127, None]


def test_missing_numbers_never_become_numbers() -> None:
    masked = np.ma.array([1, 2, 3], mask=[False, True, False])
    assert values(masked) == [1, None, 3]
    assert values(np.ma.array([1, 2, 3])) == [1, 2, 3]
    assert values(pa.nulls(2)) == [None, None]
    assert values([1, None, "a"]) == [1, None, "a"]
    floats = values(pa.array([1.5, None]))
    assert floats[0] == 1.5
    assert np.isnan(floats[1])
    assert np.isnan(values(pd.DataFrame({"v": [1.0, None]}), "v")[1])


def test_large_integers_stay_exact() -> None:
    assert values([2**63, -1]) == [2**63, -1]
    assert values(HOLES)[2] == 2**62 + 1
    assert values(pa.array(HOLES))[2] == 2**62 + 1


def test_csv_fields_are_inferred_or_left_as_text(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text('id,v\n1,007\n2,\n3,"1"\n')
    assert values(path, "v") == [7, None, 1]
    assert values(path, "v", text=True) == ["007", None, "1"]
    path.write_text('id,v\n1,NA\n2,"two\nlines"\n3,""\n')
    assert values(path, "v", text=True) == ["NA", "two\nlines", ""]


def test_csv_files_may_be_compressed_or_separated_by_tabs(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "v.csv.gz", "wt") as file:
        file.write("id,v\n1,x\n")
    (tmp_path / "v.tsv").write_text("id\tv\n1\ta,b\n")
    assert values(tmp_path / "v.csv.gz", "v") == ["x"]
    assert values(tmp_path / "v.tsv", "v") == ["a,b"]


def test_a_value_of_another_type_late_in_a_csv_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text("v\n" + "1234567\n" * 700_000 + "oops\n")
    with pytest.raises(ValueError, match=r"v\.csv' cannot be read: [^:]*$"):
        values(path)


def test_batches_have_at_most_the_asked_rows(tmp_path: Path) -> None:
    for data in (*files(NUMBERS, tmp_path).values(), *frames(NUMBERS).values()):
        lengths = [len(batch) for batch in open_column(data, "v", rows=2)]
        assert max(lengths) <= 2
        assert sum(lengths) == 5


def test_lengths_are_known_where_they_can_be(tmp_path: Path) -> None:
    assert open_column(files(NUMBERS, tmp_path)[".parquet"], "v").length == 5
    assert open_column(np.arange(5)).length == 5
    assert open_column(frames(NUMBERS)["polars"], "v").length == 5
    assert open_column(frames(NUMBERS)["batch reader"], "v").length is None
    assert [first for _, first in open_column(np.arange(5), rows=2).numbered()] == [0, 2, 4]


def test_other_columns_are_not_converted() -> None:
    frame = pd.DataFrame({"v": [1, 2], "mixed": [object(), "a"]})
    assert values(frame, "v") == [1, 2]
    with pytest.raises(ValueError, match="cannot be converted to Arrow"):
        values(frame, "mixed")


def test_columns_must_be_named_where_there_are_several() -> None:
    for frame in frames(NUMBERS).values():
        with pytest.raises(ValueError, match="column must be given, one of: 'id', 'v'"):
            values(frame)
    table = pa.table({"v": [1]})
    assert values(table) == [1]
    with pytest.raises(ValueError, match=r"got 'w'; the columns are 'v'"):
        values(table, "w")
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["v", "v"])
    with pytest.raises(ValueError, match="several columns have that name"):
        values(twice, "v")
    with pytest.raises(ValueError, match="column must be None"):
        values([1, 2], "v")
    with pytest.raises(ValueError, match="column must be None"):
        values(pl.Series([1]), "v")
    records = np.array([(1, 2.5)], dtype=[("a", int), ("b", float)])
    assert values(records, "b") == [2.5]


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"existing file, got .*nowhere\.csv"):
        open_column(tmp_path / "nowhere.csv")
    (tmp_path / "v.txt").write_text("1")
    with pytest.raises(ValueError, match=r"named \.csv, .* got .*v\.txt"):
        open_column(tmp_path / "v.txt")
    for name in ("v.parquet", "v.arrow", "v.csv"):
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(ValueError, match=f"{name}' cannot be read"):
            values(tmp_path / name)
    with pytest.raises(TypeError, match=r"got builtins\.set"):
        open_column({1, 2})
    for nested in ([[1], [2]], np.zeros((2, 2, 2)), np.full((2, 2), "a")):
        with pytest.raises(ValueError, match="one-dimensional"):
            open_column(nested)
    for lists in ([[1], [2, 3]], [[1], None], [[1], [None]]):
        with pytest.raises(TypeError, match="single values, or lists of numbers of one length, got list"):
            values(pa.array(lists))
    with pytest.raises(TypeError, match="single values, or lists of numbers of one length, got struct"):
        values(pa.array([{"a": 1}]))


def test_vectors_are_rows_of_arrays_files_and_lists_of_one_length(tmp_path: Path) -> None:
    rows = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "v.npy", rows)
    pq.write_table(pa.table({"v": list(rows)}), tmp_path / "v.parquet")
    lists = pa.array(list(rows), pa.list_(pa.float64(), 3))
    for data in (rows, tmp_path / "v.npy", tmp_path / "v.parquet", lists):
        column = open_column(data, rows=3)
        assert np.array_equal(np.concatenate(list(column)), rows)
    (tmp_path / "w.npy").write_bytes(b"no array")
    with pytest.raises(ValueError, match=r"w\.npy' cannot be read"):
        open_column(tmp_path / "w.npy")


def test_a_parquet_file_that_is_damaged_inside_is_named(tmp_path: Path) -> None:
    path = tmp_path / "v.parquet"
    table = pa.table({"v": np.random.default_rng(0).integers(0, 2**60, 10_000)})
    # The first page's own header; and, where pages have checksums, any of its values.
    for damage, checksums in ((slice(4, 40), False), (slice(5000, 5001), True)):
        pq.write_table(table, path, use_dictionary=False, write_page_checksum=checksums)
        whole = bytearray(path.read_bytes())
        whole[damage] = bytes(255 - byte for byte in whole[damage])
        path.write_bytes(whole)
        with pytest.raises(ValueError, match=r"v\.parquet' cannot be read"):
            values(path)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_handful_of_rows_is_read(n: int, tmp_path: Path) -> None:
    column = pa.array([7, 8][:n], pa.int64())
    pq.write_table(pa.table({"v": column}), tmp_path / "v.parquet")
    (tmp_path / "v.csv").write_text("v\n" + "".join(f"{v}\n" for v in column.to_pylist()))
    for data in ([7, 8][:n], column, tmp_path / "v.parquet", tmp_path / "v.csv"):
        assert values(data) == [7, 8][:n]


def test_arrays_and_lists_work_without_pyarrow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.setitem(sys.modules, name, None)
    assert values([1, None]) == [1, None]
    assert values(np.arange(2)) == [0, 1]
    (tmp_path / "v.csv").write_text("v\n1\n")
    assert values(tmp_path / "v.csv") == [1]
    (tmp_path / "v.parquet").touch()
    with pytest.raises(ImportError, match=r"pyarrow is needed .* 'shuffledp\[collect\]'"):
        values(tmp_path / "v.parquet")


def test_a_package_that_is_not_there_is_named_with_its_extra() -> None:
    with pytest.raises(ImportError, match=r"no_such_package .* 'shuffledp\[collect\]'"):
        needed("no_such_package.parquet", extra="collect")
