"""Three roles that pass files: the right reports arrive, and nothing but them."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shuffledp as sdp
from shuffledp.collecting.histogram import HistogramProtocol
from shuffledp.errors import (
    DamagedReportsError,
    DomainError,
    MixedReportsError,
    ReportFileError,
    TooFewReportsError,
)
from shuffledp.shuffling.report_files import open_reports
from shuffledp.shuffling.roles import analyze_file, randomize_file, shuffle_files, write_reports

pytestmark = pytest.mark.quick

TRUTH = ["cat"] * 1500 + ["dog"] * 1000 + ["fish"] * 500


def all_reports(path: Path) -> np.ndarray:
    return np.concatenate(list(open_reports(path).batches()))


def test_three_roles_end_to_end_give_the_counts(pets: HistogramProtocol, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,pet\n" + "".join(f"{i},cat\n" for i in range(1500)))
    frame = pd.DataFrame({"pet": TRUTH[1500:], "secret": range(1500)})
    a, b, shuffled = (tmp_path / f"{name}.parquet" for name in ("a", "b", "shuffled"))
    assert randomize_file(pets, tmp_path / "a.csv", a, column="pet") == 1500
    assert randomize_file(pets, frame, b, column="pet") == 1500
    assert shuffle_files([a, b], shuffled, minimum=3000) == 3000
    result = analyze_file(pets, shuffled)
    # 2% random answers: a standard error is about 6; false alarm below 1e-9 at 7 of them.
    truth = np.array([1500, 1000, 500])
    spread = np.sqrt(pets.randomizer.variance(truth, 3000))
    assert (np.abs(result.counts - truth) < 7 * spread).all()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.csv", "a.parquet", "b.parquet", "shuffled.parquet",
    ]  # fmt: skip


def test_the_shuffled_file_holds_exactly_the_reports_of_its_inputs(
    pets: HistogramProtocol, tmp_path: Path
) -> None:
    inputs = [tmp_path / f"{i}.parquet" for i in range(3)]
    for path in inputs:
        randomize_file(pets, TRUTH, path)
    before = [path.read_bytes() for path in inputs]
    # A report and its key have 9 bytes: hundreds of reports, a thousand, and all in memory.
    for room in (2_000, 10_000, 10**9):
        output = tmp_path / f"shuffled-{room}.parquet"
        assert shuffle_files(inputs, output, minimum=1, bytes_in_memory=room) == 9000
        expected = sum(pets.count(all_reports(path)) for path in inputs)
        assert (pets.count(all_reports(output)) == expected).all()
    assert [path.read_bytes() for path in inputs] == before


def test_order_ids_times_further_columns_and_metadata_are_gone(
    pets: HistogramProtocol, tmp_path: Path
) -> None:
    randomize_file(pets, TRUTH, tmp_path / "plain.parquet")
    stored = pq.read_table(tmp_path / "plain.parquet")
    kept = pq.ParquetFile(tmp_path / "plain.parquet").metadata.metadata
    told = {key: value for key, value in kept.items() if key.startswith(b"shuffledp")}
    told[b"sender"] = b"carol"
    table = (
        stored.append_column("id", pa.array([f"person-{i}" for i in range(3000)]))
        .append_column("time", pa.array(np.arange(3000)))
        .replace_schema_metadata(told)
    )
    pq.write_table(table, tmp_path / "told.parquet")
    shuffle_files(tmp_path / "told.parquet", tmp_path / "shuffled.parquet", minimum=1)
    after = pq.ParquetFile(tmp_path / "shuffled.parquet")
    assert after.schema_arrow.names == ["report"]
    assert {key for key in after.metadata.metadata if key != b"ARROW:schema"} == {
        b"shuffledp.header", b"shuffledp.reports", b"shuffledp.checksum",
    }  # fmt: skip
    whole = (tmp_path / "shuffled.parquet").read_bytes()
    batch = open_reports(tmp_path / "plain.parquet").header.batch.encode()
    for trace in (b"person-", b"carol", b"time", batch):
        assert trace not in whole
    reports = all_reports(tmp_path / "shuffled.parquet").astype(float)
    # TRUTH is sorted, and hardly randomized. False alarm 4e-8 (no seed: secure randomness).
    assert abs(np.corrcoef(reports, np.arange(3000))[0, 1]) * np.sqrt(3000) < 5.5


def test_reports_of_single_clients_can_be_shuffled_together(pets: HistogramProtocol, tmp_path: Path) -> None:
    paths = [tmp_path / f"{i}.parquet" for i in range(20)]
    for path in paths:
        assert write_reports(pets, pets.randomize("dog"), path) == 1
    assert shuffle_files(paths, tmp_path / "all.parquet", minimum=20) == 20


def test_rows_of_bits_travel_as_well_as_numbers(tmp_path: Path) -> None:
    from shuffledp.randomizers.unary import OptimisedUnaryEncoding

    oracle = OptimisedUnaryEncoding(k=20, epsilon0=3.0)
    protocol = HistogramProtocol(range(20), epsilon=3.0, delta=1e-6, n=500, randomizer=oracle)
    reports = protocol.randomize(np.arange(500) % 20)
    write_reports(protocol, reports, tmp_path / "r.parquet")
    shuffle_files(tmp_path / "r.parquet", tmp_path / "s.parquet", minimum=500, bytes_in_memory=1000)
    shuffled = all_reports(tmp_path / "s.parquet")
    assert sorted(map(bytes, shuffled)) == sorted(map(bytes, reports))
    assert (protocol.count(shuffled) == protocol.count(reports)).all()
    assert analyze_file(protocol, tmp_path / "s.parquet").n == 500


def test_two_protocols_are_never_mixed(pets: HistogramProtocol, tmp_path: Path) -> None:
    answer = sdp.KaryRandomizedResponse(k=3, gamma=0.03)
    other = HistogramProtocol(pets.categories, epsilon=8.0, delta=1e-6, n=3000, randomizer=answer)
    randomize_file(pets, TRUTH, tmp_path / "a.parquet")
    randomize_file(other, TRUTH, tmp_path / "b.parquet")
    with pytest.raises(MixedReportsError, match="different protocols: randomizer is"):
        shuffle_files([tmp_path / "a.parquet", tmp_path / "b.parquet"], tmp_path / "s.parquet", minimum=1)
    assert not (tmp_path / "s.parquet").exists()
    shuffle_files(tmp_path / "b.parquet", tmp_path / "s.parquet", minimum=1)
    with pytest.raises(MixedReportsError, match="another protocol than the one given"):
        analyze_file(pets, tmp_path / "s.parquet")


def test_the_same_reports_are_never_taken_twice(pets: HistogramProtocol, tmp_path: Path) -> None:
    randomize_file(pets, TRUTH, tmp_path / "a.parquet")
    (tmp_path / "copy.parquet").write_bytes((tmp_path / "a.parquet").read_bytes())
    for again in ("a.parquet", "copy.parquet"):
        with pytest.raises(MixedReportsError, match="hold the same reports"):
            shuffle_files([tmp_path / "a.parquet", tmp_path / again], tmp_path / "s.parquet", minimum=1)
    shuffle_files(tmp_path / "a.parquet", tmp_path / "s.parquet", minimum=1)
    with pytest.raises(ReportFileError, match="was shuffled already"):
        shuffle_files([tmp_path / "a.parquet", tmp_path / "s.parquet"], tmp_path / "t.parquet", minimum=1)


def test_reports_that_were_not_shuffled_are_not_analyzed(pets: HistogramProtocol, tmp_path: Path) -> None:
    randomize_file(pets, TRUTH, tmp_path / "a.parquet")
    with pytest.raises(ReportFileError, match="not shuffled yet"):
        analyze_file(pets, tmp_path / "a.parquet")


def test_batches_below_the_minimum_are_refused(pets: HistogramProtocol, tmp_path: Path) -> None:
    randomize_file(pets, TRUTH, tmp_path / "a.parquet")
    with pytest.raises(TooFewReportsError, match=r"at least 3001 .* got 3000"):
        shuffle_files(tmp_path / "a.parquet", tmp_path / "s.parquet", minimum=3001)
    with pytest.raises(ValueError, match="minimum must be in"):
        shuffle_files(tmp_path / "a.parquet", tmp_path / "s.parquet", minimum=0)
    with pytest.raises(ValueError, match="at least one report file"):
        shuffle_files([], tmp_path / "s.parquet", minimum=1)
    assert not (tmp_path / "s.parquet").exists()


@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_handful_of_rows_goes_through(n: int, pets: HistogramProtocol, tmp_path: Path) -> None:
    few = HistogramProtocol(pets.categories, epsilon=8.0, delta=1e-6, n=max(n, 1), randomizer=pets.randomizer)
    assert randomize_file(few, ["cat", "dog"][:n], tmp_path / "a.parquet") == n
    if n == 0:
        with pytest.raises(TooFewReportsError, match="got 0"):
            shuffle_files(tmp_path / "a.parquet", tmp_path / "s.parquet", minimum=1)
        return
    assert shuffle_files(tmp_path / "a.parquet", tmp_path / "s.parquet", minimum=n) == n
    assert analyze_file(few, tmp_path / "s.parquet").n == n


def test_missing_and_unknown_values_are_counted_over_the_whole_column(
    pets: HistogramProtocol, tmp_path: Path
) -> None:
    rows = 2**18  # one batch: the bad values lie in the first and in the third
    column = np.array(["cat"] * (2 * rows + 100), dtype=object)
    column[[7, 2 * rows + 1, 2 * rows + 2]] = [None, "cow", None]
    with pytest.raises(DomainError) as caught:
        randomize_file(pets, column, tmp_path / "a.parquet")
    error = caught.value
    assert (error.total, error.missing, error.outside) == (2 * rows + 100, 2, 1)
    assert error.examples == ((7, None), (2 * rows + 1, "cow"), (2 * rows + 2, None))
    assert not list(tmp_path.iterdir())


def test_a_column_of_missing_values_gives_no_file(pets: HistogramProtocol, tmp_path: Path) -> None:
    with pytest.raises(DomainError, match=r"5 of 5 .* 5 missing"):
        randomize_file(pets, pa.table({"pet": pa.nulls(5)}), tmp_path / "a.parquet")
    assert not list(tmp_path.iterdir())


def test_categories_that_look_like_numbers_stay_what_they_are(tmp_path: Path) -> None:
    codes = HistogramProtocol(
        ["01", "1", "NA"], epsilon=30.0, delta=1e-6, n=3,
        randomizer=sdp.KaryRandomizedResponse(k=3, epsilon0=30.0),
    )  # fmt: skip
    (tmp_path / "codes.csv").write_text("code\n01\n1\nNA\n")
    randomize_file(codes, tmp_path / "codes.csv", tmp_path / "r.parquet")
    # A random answer has probability 2e-13.
    assert all_reports(tmp_path / "r.parquet").tolist() == [0, 1, 2]


def test_a_damaged_input_gives_no_output(pets: HistogramProtocol, tmp_path: Path) -> None:
    randomize_file(pets, TRUTH, tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet")
    metadata = pq.ParquetFile(tmp_path / "a.parquet").metadata.metadata
    changed = table.slice(1).replace_schema_metadata(metadata)
    pq.write_table(changed, tmp_path / "b.parquet")
    for room in (2_000, 10**9):
        with pytest.raises(DamagedReportsError, match=re.escape("b.parquet")):
            shuffle_files(tmp_path / "b.parquet", tmp_path / "s.parquet", minimum=1, bytes_in_memory=room)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.parquet", "b.parquet"]


def test_impossible_reports_are_refused_by_the_analyst(pets: HistogramProtocol, tmp_path: Path) -> None:
    write_reports(pets, np.array([0, 1, 200], dtype=np.uint8), tmp_path / "a.parquet")
    shuffle_files(tmp_path / "a.parquet", tmp_path / "s.parquet", minimum=1)
    with pytest.raises(ValueError, match=r"reports must be in \[0, 2\]"):
        analyze_file(pets, tmp_path / "s.parquet")


def test_a_generator_makes_the_files_repeatable(pets: HistogramProtocol, tmp_path: Path) -> None:
    seen = []
    for i in (1, 2):
        rng = np.random.default_rng(5)
        randomize_file(pets, TRUTH, tmp_path / f"r{i}.parquet", rng=rng)
        shuffle_files(tmp_path / f"r{i}.parquet", tmp_path / f"s{i}.parquet", minimum=1, rng=rng)
        seen.append(all_reports(tmp_path / f"s{i}.parquet").tolist())
    assert seen[0] == seen[1]
