"""Three roles that pass files: the right reports arrive, and nothing but them."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shuffledp as sdp
from shuffledp.collecting.histogram import HistogramProtocol
from shuffledp.collecting.ledger import Ledger
from shuffledp.errors import (
    DomainError,
    LogCorruptError,
    MixedReportsError,
    ReportFileError,
    TooFewReportsError,
)
from shuffledp.shuffling import _sieve
from shuffledp.shuffling.report_files import Header, create_reports, open_reports
from shuffledp.shuffling.roles import analyze_file, randomize_file, shuffle_files, write_reports
from shuffledp.shuffling.used import Memory, opened

pytestmark = pytest.mark.quick

TRUTH = ["cat"] * 1500 + ["dog"] * 1000 + ["fish"] * 500


@pytest.fixture
def used(tmp_path: Path) -> Path:
    """An empty memory."""
    (tmp_path / "used").mkdir()
    return tmp_path / "used"


def shuffle(protocol: HistogramProtocol, inputs: Any, output: Path, **options: Any) -> int:
    """How many reports are mixed, by a shuffler with a memory of its own for each output."""
    if "used" not in options:
        options["used"] = output.with_name(f"used-{output.name}")
        options["used"].mkdir()
    return shuffle_files(protocol, inputs, output, **{"minimum": 1, **options}).reports


def all_reports(path: Path) -> np.ndarray:
    return np.concatenate(list(open_reports(path).batches()))


def test_three_roles_end_to_end_give_the_counts(pets: HistogramProtocol, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,pet\n" + "".join(f"{i},cat\n" for i in range(1500)))
    frame = pd.DataFrame({"pet": TRUTH[1500:], "secret": range(1500)})
    a, b, shuffled = (tmp_path / f"{name}.parquet" for name in ("a", "b", "shuffled"))
    assert randomize_file(pets, tmp_path / "a.csv", a, column="pet") == 1500
    assert randomize_file(pets, frame, b, column="pet") == 1500
    assert shuffle(pets, [a, b], shuffled, minimum=3000) == 3000
    result = analyze_file(pets, shuffled)
    # 2% random answers: a standard error is about 6; false alarm below 1e-9 at 7 of them.
    truth = np.array([1500, 1000, 500])
    spread = np.sqrt(pets.randomizer.variance(truth, 3000))
    assert (np.abs(result.counts - truth) < 7 * spread).all()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.csv", "a.parquet", "b.parquet", "shuffled.parquet", "used-shuffled.parquet",
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
        assert shuffle(pets, inputs, output, bytes_in_memory=room) == 9000
        expected = sum(pets.count(all_reports(path)) for path in inputs)
        assert (pets.count(all_reports(output)) == expected).all()
    assert [path.read_bytes() for path in inputs] == before


def test_order_ids_times_further_columns_and_metadata_are_gone(
    pets: HistogramProtocol, tmp_path: Path
) -> None:
    randomize_file(pets, TRUTH, tmp_path / "plain.parquet")
    stored = open_reports(tmp_path / "plain.parquet")
    ids = np.concatenate([ids for ids, _ in stored.identified() if ids is not None])
    assert len({bytes(one) for one in ids}) == 3000
    shuffle(pets, tmp_path / "plain.parquet", tmp_path / "shuffled.parquet")
    after = pq.ParquetFile(tmp_path / "shuffled.parquet")
    assert after.schema_arrow.names == ["report"]
    assert {key for key in after.metadata.metadata if key != b"ARROW:schema"} == {
        b"shuffledp.header", b"shuffledp.reports", b"shuffledp.checksum",
    }  # fmt: skip
    whole = (tmp_path / "shuffled.parquet").read_bytes()
    for trace in (stored.header.batch.encode(), *map(bytes, ids[:100])):
        assert trace not in whole
    reports = all_reports(tmp_path / "shuffled.parquet").astype(float)
    # TRUTH is sorted, and hardly randomized. False alarm 4e-8 (no seed: secure randomness).
    assert abs(np.corrcoef(reports, np.arange(3000))[0, 1]) * np.sqrt(3000) < 5.5


def test_reports_of_single_clients_can_be_shuffled_together(pets: HistogramProtocol, tmp_path: Path) -> None:
    paths = [tmp_path / f"{i}.parquet" for i in range(20)]
    for path in paths:
        assert write_reports(pets, pets.randomize("dog"), path) == 1
    assert shuffle(pets, paths, tmp_path / "all.parquet", minimum=20, most_per_file=1) == 20


def test_rows_of_bits_travel_as_well_as_numbers(tmp_path: Path) -> None:
    from shuffledp.randomizers.unary import OptimisedUnaryEncoding

    oracle = OptimisedUnaryEncoding(k=20, epsilon0=3.0)
    protocol = HistogramProtocol(range(20), epsilon=3.0, delta=1e-6, n=500, randomizer=oracle)
    reports = protocol.randomize(np.arange(500) % 20)
    write_reports(protocol, reports, tmp_path / "r.parquet")
    shuffle(protocol, tmp_path / "r.parquet", tmp_path / "s.parquet", minimum=500, bytes_in_memory=1000)
    shuffled = all_reports(tmp_path / "s.parquet")
    assert sorted(map(bytes, shuffled)) == sorted(map(bytes, reports))
    assert (protocol.count(shuffled) == protocol.count(reports)).all()
    assert analyze_file(protocol, tmp_path / "s.parquet").n == 500


def test_two_protocols_are_never_mixed(pets: HistogramProtocol, tmp_path: Path) -> None:
    answer = sdp.KaryRandomizedResponse(k=3, gamma=0.03)
    other = HistogramProtocol(pets.categories, epsilon=8.0, delta=1e-6, n=3000, randomizer=answer)
    randomize_file(pets, TRUTH, tmp_path / "a.parquet")
    randomize_file(other, TRUTH, tmp_path / "b.parquet")
    with pytest.raises(TooFewReportsError, match=r"got 3000.*b.parquet' is of another plan: randomizer is"):
        shuffle(pets, [tmp_path / "a.parquet", tmp_path / "b.parquet"], tmp_path / "s.parquet", minimum=3001)
    assert not (tmp_path / "s.parquet").exists()
    shuffle(other, tmp_path / "b.parquet", tmp_path / "t.parquet")
    with pytest.raises(MixedReportsError, match="another protocol than the one given"):
        analyze_file(pets, tmp_path / "t.parquet")


def test_the_same_reports_are_never_taken_twice(pets: HistogramProtocol, tmp_path: Path, used: Path) -> None:
    """In one batch, in a later one, after a restart (the memory is a folder), and from a restored copy."""
    a, copy = tmp_path / "a.parquet", tmp_path / "copy.parquet"
    randomize_file(pets, TRUTH, a)
    copy.write_bytes(a.read_bytes())
    done = shuffle_files(pets, [a, copy, a], tmp_path / "s.parquet", minimum=1, used=used)
    assert (done.reports, done.set_aside) == (3000, {"twice in these files": 6000})
    with pytest.raises(TooFewReportsError, match="got 0; set aside: 3000 reports of an earlier batch"):
        shuffle_files(pets, copy, tmp_path / "t.parquet", minimum=1, used=used)
    with pytest.raises(TooFewReportsError, match="was shuffled already"):
        shuffle_files(pets, tmp_path / "s.parquet", tmp_path / "t.parquet", minimum=1, used=used)
    assert not (tmp_path / "t.parquet").exists()


def test_a_single_report_is_never_in_two_batches(pets: HistogramProtocol, tmp_path: Path, used: Path) -> None:
    """Also where somebody puts it into another file: its ID gives it away, twice in one file as well."""
    randomize_file(pets, TRUTH[:10], tmp_path / "a.parquet")
    shuffle_files(pets, tmp_path / "a.parquet", tmp_path / "s.parquet", minimum=10, used=used)
    ((ids, reports),) = open_reports(tmp_path / "a.parquet").identified()
    forged(pets, tmp_path / "b.parquet", [ids[3], *fresh_ids(5), *fresh_ids(1) * 3], list(reports[:9]))
    done = shuffle_files(pets, tmp_path / "b.parquet", tmp_path / "t.parquet", minimum=1, used=used)
    assert done.reports == 6
    assert done.set_aside == {"twice in these files": 2, "of an earlier batch": 1}
    assert str(done).endswith("2 reports twice in these files; 1 reports of an earlier batch")


def fresh_ids(count: int) -> list[Any]:
    return list(np.frombuffer(os.urandom(16 * count), dtype=np.uint8).reshape(-1, 16))


def forged(protocol: HistogramProtocol, path: Path, ids: list[Any], reports: list[Any]) -> None:
    """A report file with IDs of somebody's choice, and the right checksum."""
    header = Header.new("randomized", protocol.to_dict(), protocol.report_dtype, protocol.report_shape)
    with create_reports(path, header) as writer:
        words = np.array(ids, dtype=np.uint8).reshape(-1).view(np.uint64)
        writer._words = type("Given", (), {"draw": lambda self, count: words})()
        writer.write(np.array(reports, dtype=protocol.report_dtype))


def test_a_memory_that_was_set_back_is_noticed(pets: HistogramProtocol, tmp_path: Path, used: Path) -> None:
    """By its head, kept elsewhere, and by the ledger, which knows the batch's number."""
    ledger = Ledger(tmp_path / "ledger", (9.0, 1e-6), create=True, populations=["owners"])
    randomize_file(pets, TRUTH, tmp_path / "a.parquet")
    first = shuffle_files(pets, tmp_path / "a.parquet", tmp_path / "s.parquet", minimum=1, used=used)
    ticket = ledger.reserve(pets, population="owners")
    analyze_file(pets, tmp_path / "s.parquet", ledger=ledger, reservation=ticket)
    assert ledger.collections[0].memory[1] == 1
    kept = used / "memory.jsonl"
    kept.write_bytes(kept.read_bytes().splitlines(keepends=True)[0])  # an old copy is restored
    with opened(used) as memory:
        assert first.head not in memory.heads
    shuffle_files(pets, tmp_path / "a.parquet", tmp_path / "t.parquet", minimum=1, used=used)
    again = ledger.reserve(pets, population="owners")
    with pytest.raises(ValueError, match="memory was set back"):
        analyze_file(pets, tmp_path / "t.parquet", ledger=ledger, reservation=again)


@pytest.mark.parametrize("harm", ["changed", "cut", "gone", "no log"])
def test_a_memory_with_a_part_missing_is_refused(
    harm: str, pets: HistogramProtocol, tmp_path: Path, used: Path
) -> None:
    randomize_file(pets, TRUTH, tmp_path / "a.parquet")
    shuffle_files(pets, tmp_path / "a.parquet", tmp_path / "s.parquet", minimum=1, used=used)
    (ids,) = used.glob("*.ids")
    whole = ids.read_bytes()
    if harm == "no log":
        (used / "memory.jsonl").unlink()
    elif harm == "gone":
        ids.unlink()
    else:
        ids.write_bytes(whole[:-8] if harm == "cut" else whole[:-8] + bytes(8))
    with pytest.raises(LogCorruptError):
        shuffle_files(pets, tmp_path / "a.parquet", tmp_path / "t.parquet", minimum=1, used=used)
    with pytest.raises(FileNotFoundError, match="existing folder"):
        shuffle_files(pets, tmp_path / "a.parquet", tmp_path / "t.parquet", minimum=1, used=tmp_path / "usde")
    assert not (tmp_path / "t.parquet").exists()


def test_many_parts_of_keys_find_the_same_reports(
    pets: HistogramProtocol, tmp_path: Path, used: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_sieve, "_PART", 100)
    for name in "ab":
        randomize_file(pets, TRUTH, tmp_path / f"{name}.parquet")
    damaged = (tmp_path / "b.parquet").read_bytes()
    place = damaged.rindex(all_reports(tmp_path / "b.parquet")[-20:].astype("<u4").tobytes())
    (tmp_path / "c.parquet").write_bytes(damaged[:place] + bytes([damaged[place] ^ 1]) + damaged[place + 1 :])
    files = [tmp_path / f"{name}.parquet" for name in "acb"]
    done = shuffle_files(pets, files, tmp_path / "s.parquet", minimum=1, used=used)
    assert (done.reports, list(done.files_set_aside)) == (6000, [str(tmp_path / "c.parquet")])
    (ids,) = used.glob("*.ids")
    keys = np.fromfile(ids, dtype="<u8")
    assert len(keys) == 6000
    assert (keys[1:] > keys[:-1]).all()
    with pytest.raises(TooFewReportsError, match="6000 reports of an earlier batch"):
        shuffle_files(pets, [files[0], files[2]], tmp_path / "t.parquet", minimum=1, used=used)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX permissions")
def test_nobody_else_reads_reports_or_the_memory(pets: HistogramProtocol, tmp_path: Path, used: Path) -> None:
    randomize_file(pets, TRUTH, tmp_path / "a.parquet")
    shuffle_files(pets, tmp_path / "a.parquet", tmp_path / "s.parquet", minimum=1, used=used)
    for path in (tmp_path / "a.parquet", tmp_path / "s.parquet", *used.iterdir()):
        assert path.stat().st_mode & 0o077 == 0, path


def test_reports_that_were_not_shuffled_are_not_analyzed(pets: HistogramProtocol, tmp_path: Path) -> None:
    randomize_file(pets, TRUTH, tmp_path / "a.parquet")
    with pytest.raises(ReportFileError, match="not shuffled yet"):
        analyze_file(pets, tmp_path / "a.parquet")


def test_batches_below_the_minimum_are_refused(pets: HistogramProtocol, tmp_path: Path, used: Path) -> None:
    randomize_file(pets, TRUTH, tmp_path / "a.parquet")
    with pytest.raises(TooFewReportsError, match=r"at least 3001 .* got 3000"):
        shuffle_files(pets, tmp_path / "a.parquet", tmp_path / "s.parquet", minimum=3001, used=used)
    with pytest.raises(ValueError, match="minimum must be in"):
        shuffle_files(pets, tmp_path / "a.parquet", tmp_path / "s.parquet", minimum=0, used=used)
    with pytest.raises(ValueError, match="at least one report file"):
        shuffle_files(pets, [], tmp_path / "s.parquet", minimum=1, used=used)
    assert not (tmp_path / "s.parquet").exists()


@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_handful_of_rows_goes_through(n: int, pets: HistogramProtocol, tmp_path: Path) -> None:
    few = HistogramProtocol(pets.categories, epsilon=8.0, delta=1e-6, n=max(n, 1), randomizer=pets.randomizer)
    assert randomize_file(few, ["cat", "dog"][:n], tmp_path / "a.parquet") == n
    if n == 0:
        with pytest.raises(TooFewReportsError, match="got 0"):
            shuffle(few, tmp_path / "a.parquet", tmp_path / "s.parquet")
        return
    assert shuffle(few, tmp_path / "a.parquet", tmp_path / "s.parquet", minimum=n) == n
    assert analyze_file(few, tmp_path / "s.parquet").n == n


def test_missing_and_unknown_values_are_counted_over_the_whole_column(
    pets: HistogramProtocol, tmp_path: Path
) -> None:
    rows = 2**18  # one batch: the bad values lie in the first and in the third
    column = np.array(["cat"] * (2 * rows + 100), dtype=object)
    column[[7, 2 * rows + 1, 2 * rows + 2]] = [None, "cow", None]
    with pytest.raises(DomainError) as caught:
        randomize_file(pets, column, tmp_path / "a.parquet")
    assert caught.value.examples == ()
    assert "cow" not in str(caught.value)
    with pytest.raises(DomainError) as caught:
        randomize_file(pets, column, tmp_path / "a.parquet", show_values=True)
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


def test_a_damaged_file_costs_itself_only(pets: HistogramProtocol, tmp_path: Path) -> None:
    for name in ("a", "b"):
        randomize_file(pets, TRUTH, tmp_path / f"{name}.parquet")
    whole = (tmp_path / "b.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(whole.replace(b'"epsilon":8.0', b'"epsilon":9.0'))
    (tmp_path / "c.parquet").write_bytes(whole[:-100])
    (tmp_path / "d.parquet").write_bytes(b"")
    place = whole.index(bytes(all_reports(tmp_path / "a.parquet")[:0]) or whole[200:201], 200)
    (tmp_path / "e.parquet").write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    files = [tmp_path / f"{name}.parquet" for name in "abcde"]
    for room in (2_000, 10**9):
        used = tmp_path / f"used-{room}"
        used.mkdir()
        output = tmp_path / f"s-{room}.parquet"
        done = shuffle_files(pets, files, output, minimum=3000, used=used, bytes_in_memory=room)
        assert done.reports == 3000
        assert sorted(done.files_set_aside) == [str(path) for path in files[1:]]
        assert analyze_file(pets, output).n == 3000


def test_an_impossible_report_costs_itself_only(pets: HistogramProtocol, tmp_path: Path) -> None:
    write_reports(pets, np.array([0, 1, 200, 2, 3], dtype=np.uint8), tmp_path / "a.parquet")
    used = tmp_path / "used"
    used.mkdir()
    done = shuffle_files(pets, tmp_path / "a.parquet", tmp_path / "s.parquet", minimum=3, used=used)
    assert (done.reports, done.set_aside) == (3, {"outside the domain": 2})
    # The analyst does not rely on the shuffler for that.
    header = Header.new("shuffled", pets.to_dict(), pets.report_dtype, ())
    with create_reports(tmp_path / "t.parquet", header) as writer:
        writer.write(np.array([0] * 3000 + [200], dtype=np.uint8))
    result = analyze_file(pets, tmp_path / "t.parquet")
    assert (result.n, result.privacy.n_set_aside) == (3000, 1)


def test_one_file_holds_only_so_many_reports(pets: HistogramProtocol, tmp_path: Path, used: Path) -> None:
    write_reports(pets, pets.randomize("cat"), tmp_path / "one.parquet")
    write_reports(pets, pets.randomize(["cat"] * 2), tmp_path / "two.parquet")
    files = [tmp_path / "one.parquet", tmp_path / "two.parquet"]
    done = shuffle_files(pets, files, tmp_path / "s.parquet", minimum=1, used=used, most_per_file=1)
    assert done.reports == 1
    assert "holds 2 reports; most_per_file is 1" in done.files_set_aside[str(files[1])]


def test_a_name_taken_meanwhile_gives_the_reports_back(
    pets: HistogramProtocol, tmp_path: Path, used: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two shuffles to one output: one wins, and the other's reports are not lost."""
    randomize_file(pets, TRUTH, tmp_path / "a.parquet")
    output, remember = tmp_path / "s.parquet", Memory.remember

    def then_taken(*arguments: Any) -> None:
        remember(*arguments)
        output.write_bytes(b"somebody else's")

    monkeypatch.setattr(Memory, "remember", then_taken)
    with pytest.raises(FileExistsError, match="must not exist yet"):
        shuffle_files(pets, tmp_path / "a.parquet", output, minimum=1, used=used)
    monkeypatch.undo()
    assert output.read_bytes() == b"somebody else's"
    assert (
        shuffle_files(pets, tmp_path / "a.parquet", tmp_path / "t.parquet", minimum=1, used=used).reports
        == 3000
    )


def test_a_generator_makes_the_files_repeatable(pets: HistogramProtocol, tmp_path: Path) -> None:
    seen = []
    for i in (1, 2):
        rng = np.random.default_rng(5)
        randomize_file(pets, TRUTH, tmp_path / f"r{i}.parquet", rng=rng)
        shuffle(pets, tmp_path / f"r{i}.parquet", tmp_path / f"s{i}.parquet", rng=rng)
        result = analyze_file(pets, tmp_path / f"s{i}.parquet")
        assert result.privacy.simulated
        assert "certified" not in str(result)
        seen.append(all_reports(tmp_path / f"s{i}.parquet").tolist())
    assert seen[0] == seen[1]
