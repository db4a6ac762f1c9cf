"""The collecting commands: the library's results, its privacy, and nothing half done."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result

import shuffledp as sdp
from shuffledp._json import canonical
from shuffledp.collecting import protocol_from_dict
from shuffledp.collecting.histogram import HistogramProtocol
from shuffledp.collecting.ledger import Ledger
from shuffledp.collecting.number import MeanProtocol
from shuffledp.collecting.plan import short_fingerprint, sign_plan, signing_keys
from shuffledp.randomizers.kary import KaryRandomizedResponse
from shuffledp.shuffling.engine import EmbeddedEngine
from shuffledp.shuffling.report_files import open_reports
from shuffledp.shuffling.roles import write_reports

Run = Callable[..., Result]

PETS = ["cat"] * 1500 + ["dog"] * 1000 + ["fish"] * 500
TARGET = "--epsilon 1 --delta 1e-6"
SHUFFLER = "--protocol survey.json --used used"
COUNT = f"histogram pets.csv --column pet --categories cat,dog,fish {TARGET}"
# Errors of this many standard errors: false alarm below 1e-9 for each of the few numbers compared.
FAR = 6.5


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where every test runs: pets.csv has a pet, an age and an id per person."""
    monkeypatch.chdir(tmp_path)
    rows = (f"{i},{pet},{20 + i % 61}" for i, pet in enumerate(PETS))
    (tmp_path / "pets.csv").write_text("\n".join(["id,pet,age", *rows, ""]))
    (tmp_path / "used").mkdir()
    return tmp_path


@pytest.fixture(scope="module")
def survey() -> HistogramProtocol:
    """A protocol for 3,000 people."""
    return HistogramProtocol(["cat", "dog", "fish"], epsilon=1.0, delta=1e-6, n=3000)


def write(protocol: HistogramProtocol, path: str = "survey.json") -> None:
    Path(path).write_text(canonical(protocol.to_dict()))


def answer(result: Result) -> Any:
    """The JSON object of a run that went well."""
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(result: Result, status: int, *words: str) -> None:
    """One line on standard error with these words, nothing on standard output."""
    assert result.exit_code == status, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    for word in (": error: ", *words):
        assert word in result.stderr


def names(folder: Path) -> set[str]:
    """All files but the data."""
    return {path.name for path in folder.iterdir()} - {"pets.csv", "used"}


def near(entries: Any, truth: Any, key: str = "count") -> bool:
    """All estimates within FAR standard errors of the truth."""
    return all(
        abs(entry[key] - true) < FAR * entry["standard_error"]
        for entry, true in zip(entries, truth, strict=True)
    )


def test_a_histogram_is_near_the_truth_and_meets_the_target(shuffledp: Run) -> None:
    found = answer(shuffledp(COUNT + " --json"))
    assert [entry["category"] for entry in found["estimates"]] == ["cat", "dog", "fish"]
    assert near(found["estimates"], [1500, 1000, 500])
    assert found["privacy"]["epsilon"] <= 1.0
    assert found["privacy"]["n_honest"] == found["n"] == 3000
    assert not found["privacy"]["weakened"]


def test_the_table_encloses_what_the_csv_file_holds_in_full(shuffledp: Run, folder: Path) -> None:
    result = shuffledp(COUNT + " --csv pets-counts.csv --confidence 0.9")
    assert result.exit_code == 0, result.output
    header, *rows = csv.reader((folder / "pets-counts.csv").read_text().splitlines())
    assert header == ["category", "count", "standard_error", "one_percent_dishonest", "lower", "upper"]
    assert "90% from" in result.stdout
    for name, *numbers in rows:
        count, error, lies, low, high = map(float, numbers)
        shown = re.search(rf"^  {name} +(\S+) +(\S+) +(\S+) +(\S+) +(\S+)$", result.stdout, re.MULTILINE)
        assert shown, result.stdout
        texts = [float(text.replace(",", "")) for text in shown.groups()]
        assert texts[0] == pytest.approx(count, abs=0.051)
        assert error <= texts[1] <= error + 0.1
        assert lies <= texts[2] <= lies + 0.1
        assert low - 0.1 <= texts[3] <= low
        assert high <= texts[4] <= high + 0.1


def test_the_headline_is_the_certified_epsilon_rounded_up(shuffledp: Run) -> None:
    result = shuffledp(COUNT + " --statement privacy.json")
    headline = result.stdout.splitlines()[0]
    words = re.fullmatch(r"histogram of 3,000 reports, epsilon <= (\S+) at delta = 1e-6", headline)
    assert words, headline
    certified = json.loads(Path("privacy.json").read_text())["epsilon"]
    assert certified <= float(words[1]) <= certified * 1.0001


def test_the_statement_is_written_as_text_or_json(shuffledp: Run) -> None:
    shuffledp(COUNT + " --statement privacy.txt")
    text = Path("privacy.txt").read_text()
    assert "differential privacy, certified" in text
    assert "substitution" in text


def test_an_honest_fraction_is_planned_for_and_stated(shuffledp: Run) -> None:
    found = answer(shuffledp(COUNT + " --honest-fraction 0.5 --json"))
    privacy = found["privacy"]
    assert (privacy["n_planned"], privacy["n_honest"], privacy["n_received"]) == (1500, 1500, 3000)
    assert privacy["epsilon"] <= 1.0


def test_fewer_reports_than_planned_are_warned_about_on_one_line(shuffledp: Run) -> None:
    result = shuffledp(COUNT + " --n 1e4")
    assert result.exit_code == 0
    assert "WEAKER THAN PLANNED" in result.stdout
    line, note = result.stderr.splitlines()
    assert note.startswith("shuffledp: note: this was a release")
    assert line.startswith("shuffledp: warning: 3000 honest reports instead of 10000")


def test_what_is_not_in_the_list_is_an_error_or_another_category(shuffledp: Run) -> None:
    line = COUNT.replace(",fish", "")
    result = shuffledp(line)
    refused(result, 1, "500 of 3000 values", "500 outside")
    assert "fish" not in result.output
    assert "2500" not in result.output
    refused(shuffledp(line + " --show-values"), 1, "[2500] 'fish'")
    found = answer(shuffledp(line + " --other 'something else' --json"))
    assert [entry["category"] for entry in found["estimates"]][-1] == "something else"
    assert near(found["estimates"], [1500, 1000, 500])


def test_categories_come_from_a_file_and_may_be_numbers(shuffledp: Run, folder: Path) -> None:
    pq.write_table(pa.table({"answer": np.arange(3000) % 3}), folder / "answers.parquet")
    (folder / "list.json").write_text("[0, 1, 2]")
    (folder / "list.txt").write_text("0\n1\n\n2\n")
    for options in ("--categories-file list.json", "--categories-file list.txt --numeric"):
        found = answer(shuffledp(f"histogram answers.parquet {options} {TARGET} --json"))
        assert [entry["category"] for entry in found["estimates"]] == [0, 1, 2]
        assert near(found["estimates"], [1000, 1000, 1000])
    line = f"histogram answers.parquet --categories-file list.txt {TARGET}"
    refused(shuffledp(line), 1, "3000 of 3000 values are not in the domain")


@pytest.mark.parametrize(("command", "scale"), [("sum", 1), ("mean", 3000)])
def test_sums_and_means_are_near_the_truth(shuffledp: Run, command: str, scale: int) -> None:
    line = f"{command} pets.csv --column age --low 0 --high 100 {TARGET} --json --simulation"
    found = answer(shuffledp(line))
    (entry,) = found["estimates"]
    truth = sum(20 + i % 61 for i in range(3000)) / scale
    assert entry["quantity"] == command
    assert entry["truth"] == pytest.approx(truth, rel=1e-12)
    assert near([entry], [truth], key="value")
    assert entry["lower"] <= entry["value"] <= entry["upper"]
    assert found["privacy"]["epsilon"] <= 1.0


def test_numbers_beyond_an_end_are_an_error_or_clipped(shuffledp: Run) -> None:
    line = f"mean pets.csv --column age --low 0 --high 50 --levels 5 {TARGET}"
    refused(shuffledp(line), 1, "of 3000 values are not in the domain")
    found = answer(shuffledp(line + " --outside clip --simulation --json"))
    truth = sum(min(20 + i % 61, 50) for i in range(3000)) / 3000
    assert found["estimates"][0]["truth"] == pytest.approx(truth)
    assert near(found["estimates"], [truth], key="value")


def test_a_simulation_shows_the_truth_and_says_so(shuffledp: Run) -> None:
    result = shuffledp(COUNT + " --simulation")
    assert "not private" in result.stdout
    for name, count in [("cat", "1,500"), ("dog", "1,000"), ("fish", "500")]:
        assert re.search(rf"^  {name} .* {count}(\.0)?$", result.stdout, re.MULTILINE)
    assert answer(shuffledp(COUNT + " --simulation --json"))["simulation"] is True


@pytest.mark.parametrize("command", ["histogram --categories cat,dog,fish", "mean --low 0 --high 99"])
def test_the_picture_is_drawn(shuffledp: Run, folder: Path, command: str) -> None:
    column = "pet" if command.startswith("histogram") else "age"
    result = shuffledp(f"{command} pets.csv --column {column} {TARGET} --plot picture.png")
    assert result.exit_code == 0, result.output
    assert (folder / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert names(folder) == {"picture.png"}


def test_three_roles_agree_on_one_protocol(shuffledp: Run, folder: Path) -> None:
    plan = f"histogram --categories cat,dog,fish --n 3000 {TARGET} --plan survey.json"
    planned = shuffledp(plan).stdout
    assert planned.startswith("histogram planned: epsilon <= 0.99")
    written = protocol_from_dict(json.loads((folder / "survey.json").read_text()))
    assert isinstance(written, HistogramProtocol)
    limit = written.mechanism().gaussian_limit().upper
    assert f"  limit        mu {limit:.3g}, shuffle index " in planned
    again = answer(shuffledp(plan.replace("survey.json", "again.json") + " --json"))
    assert again["gaussian_limit_mu"]["upper"] == pytest.approx(limit, rel=0.01)
    (folder / "again.json").unlink()
    assert written.n == 3000
    for line in (
        "randomize pets.csv --column pet --protocol survey.json -o a.parquet",
        "randomize --value dog --protocol survey.json -o b.parquet",
        f"shuffle a.parquet b.parquet -o all.parquet {SHUFFLER}",
    ):
        assert shuffledp(line).exit_code == 0
    assert open_reports("all.parquet").n == 3001
    found = answer(shuffledp("analyze all.parquet --protocol survey.json --json"))
    assert near(found["estimates"], [1500, 1001, 500])
    assert found["privacy"]["n_received"] == 3001
    assert names(folder) == {"survey.json", "a.parquet", "b.parquet", "all.parquet"}
    refused(shuffledp(f"shuffle a.parquet -o again.parquet {SHUFFLER}"), 1, "of an earlier batch")


def test_a_number_is_randomized_as_a_value(shuffledp: Run, folder: Path) -> None:
    ages = MeanProtocol(0, 100, epsilon=8.0, delta=1e-6, n=50, levels=2)
    Path("ages.json").write_text(canonical(ages.to_dict()))
    found = answer(shuffledp("randomize --value 7.5 --protocol ages.json -o a.parquet --json"))
    assert (found["reports"], found["epsilon0"]) == (1, ages.randomizer.epsilon0)
    for value, status, said in (("old", 2, "must be a number"), ("101.25", 1, "1 outside it")):
        result = shuffledp(f"randomize --value {value} --protocol ages.json -o b.parquet")
        refused(result, status, said)
        assert value not in result.output
    shown = shuffledp("randomize --value 101.25 --show-values --protocol ages.json -o b.parquet")
    refused(shown, 1, "[0] 101.25")
    assert "b.parquet" not in names(folder)


def test_the_shuffler_wants_as_many_reports_as_planned(
    shuffledp: Run, folder: Path, survey: HistogramProtocol
) -> None:
    write(survey)
    shuffledp("randomize --value cat --protocol survey.json -o one.parquet")
    refused(shuffledp(f"shuffle one.parquet -o s.parquet {SHUFFLER}"), 1, "at least 3000", "got 1")
    assert "s.parquet" not in names(folder)
    assert shuffledp(f"shuffle one.parquet -o s.parquet --minimum 1 {SHUFFLER}").exit_code == 0


def test_the_threshold_is_the_shufflers_and_never_a_clients(
    shuffledp: Run, folder: Path, survey: HistogramProtocol
) -> None:
    """A client's file that says n = 1 does not make the shuffler mix two reports."""
    write(survey)
    mine = KaryRandomizedResponse(k=3, epsilon0=1.0)
    small = HistogramProtocol(survey.categories, epsilon=8.0, delta=1e-6, n=1, randomizer=mine)
    for name in "ab":
        write_reports(small, small.randomize("cat"), folder / f"{name}.parquet")
    refused(
        shuffledp(f"shuffle a.parquet b.parquet -o s.parquet {SHUFFLER}"), 1, "at least 3000", "another plan"
    )
    refused(shuffledp("shuffle a.parquet b.parquet -o s.parquet --used used"), 2, "--protocol")


def test_a_memory_that_was_set_back_is_noticed_by_its_head(
    shuffledp: Run, folder: Path, survey: HistogramProtocol
) -> None:
    write(survey)
    shuffledp("randomize pets.csv --column pet --protocol survey.json -o a.parquet")
    head = answer(shuffledp(f"shuffle a.parquet -o s.parquet {SHUFFLER} --json"))["head"]
    kept = folder / "used" / "memory.jsonl"
    lines = kept.read_bytes().splitlines(keepends=True)
    refused(shuffledp(f"shuffle a.parquet -o t.parquet {SHUFFLER} --head {head}"), 1, "earlier batch")
    kept.write_bytes(lines[0])
    refused(
        shuffledp(f"shuffle a.parquet -o t.parquet {SHUFFLER} --head {head}"), 1, "an old copy was restored"
    )


def test_a_value_can_be_read_from_standard_input(
    shuffledp: Run, folder: Path, survey: HistogramProtocol
) -> None:
    write(survey)
    code = "from shuffledp.cli.main import main; main()"
    line = ["randomize", "--value", "-", "--protocol", "survey.json", "-o", "one.parquet"]
    done = subprocess.run(
        [sys.executable, "-c", code, *line], input="cat\n", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert open_reports(folder / "one.parquet").n == 1


def test_a_plan_is_pinned_and_its_cost_is_bounded(
    shuffledp: Run, folder: Path, survey: HistogramProtocol
) -> None:
    write(survey)
    make = "randomize --value cat --protocol survey.json -o one.parquet"
    refused(shuffledp(make + f" --fingerprint {'0' * 32}"), 1, "has the fingerprint")
    refused(shuffledp(make + " --max-epsilon0 0.5"), 1, "max_epsilon0 is 0.5")
    private, public = signing_keys()
    refused(shuffledp(make + f" --public-key {public}"), 1, "must be signed")
    (folder / "signed.json").write_text(json.dumps(sign_plan(survey, private)))
    pinned = f"--public-key {public} --fingerprint {short_fingerprint(survey)} --max-epsilon0 20"
    result = shuffledp(make.replace("survey.json", "signed.json") + f" {pinned}")
    assert result.exit_code == 0, result.output
    assert short_fingerprint(survey) in result.stdout


def test_what_must_not_be_used_is_refused_on_one_line(
    shuffledp: Run, folder: Path, survey: HistogramProtocol
) -> None:
    write(survey)
    make = "randomize pets.csv --column pet --protocol survey.json -o "
    shuffledp(make + "a.parquet")
    refused(shuffledp(make + "a.parquet"), 1, "must not exist yet", "a.parquet")
    refused(shuffledp("analyze a.parquet"), 1, "not shuffled yet")
    twice = f"shuffle a.parquet a.parquet -o s.parquet {SHUFFLER} --minimum 3001"
    refused(shuffledp(twice), 1, "3000 reports twice in these files")
    (folder / "cut.parquet").write_bytes((folder / "a.parquet").read_bytes()[:-20])
    refused(shuffledp(f"shuffle cut.parquet -o s.parquet {SHUFFLER}"), 1, "cut.parquet", "damaged")
    refused(shuffledp(f"shuffle pets.csv -o s.parquet {SHUFFLER}"), 1, "pets.csv")
    refused(shuffledp(make.replace("--column pet", "--column id") + "c.parquet"), 1, "3000 of 3000")
    assert names(folder) == {"survey.json", "a.parquet", "cut.parquet"}


@pytest.fixture
def ledger(survey: HistogramProtocol, folder: Path) -> Ledger:
    """An empty ledger in readers.jsonl, and the protocol in survey.json."""
    write(survey)
    return Ledger(folder / "readers.jsonl", (1.5, 1e-6), create=True, populations=["readers"])


RECORDED = COUNT + " --ledger readers.jsonl --population readers"


def test_a_collection_is_recorded_and_one_too_many_refused(
    shuffledp: Run, folder: Path, ledger: Ledger
) -> None:
    found = answer(shuffledp(RECORDED + " --json"))
    assert found["privacy"]["total_epsilon"] == ledger.epsilon("readers")
    (collection,) = ledger.collections
    assert (collection.status, collection.honest) == ("committed", 3000)
    assert shuffledp(RECORDED).exit_code == 0
    result = shuffledp(RECORDED)  # two collections cost 1.4, three cost 1.7
    refused(result, 1, "'readers'", "the budget is 1.5")
    assert "--debug" not in result.stderr
    assert [each.status for each in ledger.collections] == ["committed", "committed"]
    assert ledger.epsilon("readers") <= 1.5
    others = RECORDED.replace("n readers", "n others")
    refused(shuffledp(others), 1, "one of ['readers'], got 'others'")
    assert answer(shuffledp(others + " --new-population --json"))


def test_a_collection_that_fails_is_given_back(shuffledp: Run, ledger: Ledger) -> None:
    refused(shuffledp(RECORDED.replace(",fish", "")), 1, "not in the domain")
    assert [each.status for each in ledger.collections] == ["released"]
    assert ledger.epsilon("readers") == 0.0


def test_a_reservation_is_committed_by_the_analysis(
    shuffledp: Run, survey: HistogramProtocol, ledger: Ledger
) -> None:
    line = "ledger reserve readers.jsonl --protocol survey.json --population readers --note May"
    ticket = shuffledp(line).stdout.strip()
    assert [(each.id, each.status, each.note) for each in ledger.collections] == [(ticket, "reserved", "May")]
    shuffledp("randomize pets.csv --column pet --protocol survey.json -o a.parquet")
    shuffledp(f"shuffle a.parquet -o s.parquet {SHUFFLER}")
    analyze = f"analyze s.parquet --ledger readers.jsonl --reservation {ticket}"
    assert "all collections on 'readers' together" in shuffledp(analyze).stdout
    assert [each.status for each in ledger.collections] == ["committed"]
    assert shuffledp(analyze).exit_code == 0  # the same file again costs nothing
    Path("forgetful").mkdir()
    shuffledp(f"shuffle a.parquet -o t.parquet {SHUFFLER.replace('used used', 'used forgetful')}")
    refused(shuffledp(analyze.replace("s.parquet", "t.parquet")), 1, "committed already")
    refused(shuffledp(f"ledger release readers.jsonl --reservation {ticket}"), 1, "already")
    again = shuffledp(line).stdout.strip()
    assert shuffledp(f"ledger release readers.jsonl --reservation {again}").exit_code == 0
    assert [each.status for each in ledger.collections] == ["committed", "released"]


def test_the_ledger_shows_what_is_spent_and_left(
    shuffledp: Run, survey: HistogramProtocol, ledger: Ledger
) -> None:
    assert "nothing was collected yet" in shuffledp("ledger show readers.jsonl").stdout
    ticket = ledger.reserve(survey, population="readers")
    spent = ledger.epsilon("readers")
    found = answer(shuffledp("ledger show readers.jsonl --json"))
    assert found["budget"] == {"epsilon": 1.5, "delta": 1e-6}
    (row,) = found["populations"]
    assert (row["population"], row["collections"], row["epsilon"]) == ("readers", 1, spent)
    assert row["left"] == 1.5 - spent
    table = shuffledp("ledger show readers.jsonl").stdout
    shown = re.search(r"^  readers +1 +(\S+) +(\S+)$", table, re.MULTILINE)
    assert shown, table
    assert spent <= float(shown[1]) <= spent * 1.0001
    assert float(shown[2]) <= 1.5 - spent
    assert ticket in table


def test_checking_finds_edits_and_missing_lines_and_says_what_fits(
    shuffledp: Run, folder: Path, survey: HistogramProtocol, ledger: Ledger
) -> None:
    ledger.reserve(survey, population="readers")
    head, file = ledger.head, folder / "readers.jsonl"
    check = "ledger check readers.jsonl --protocol survey.json --population readers --json"
    found = answer(shuffledp(check))
    assert found["fits"]
    assert 1.0 < found["epsilon_with"] <= 1.5
    ledger.reserve(survey, population="readers")
    assert ledger.epsilon("readers") == found["epsilon_with"]
    result = shuffledp(check)
    assert result.exit_code == 1
    assert not json.loads(result.stdout)["fits"]
    assert shuffledp(f"ledger check readers.jsonl --head {head}").exit_code == 0
    lines = file.read_text().splitlines(keepends=True)
    file.write_text(lines[0])
    refused(shuffledp(f"ledger check readers.jsonl --head {head}"), 1, head, "missing")
    file.write_text(lines[0] + lines[1].replace('"honest":3000', '"honest":9000'))
    refused(shuffledp("ledger check readers.jsonl"), 1, "line 2", "not what was written")
    file.write_text("no ledger\n")
    refused(shuffledp("ledger show readers.jsonl"), 1, "not what was written")


def test_a_cut_last_line_is_noticed_on_one_line(shuffledp: Run, ledger: Ledger) -> None:
    with ledger.path.open("a") as file:
        file.write('{"content":{"reser')
    result = shuffledp("ledger show readers.jsonl")
    assert result.exit_code == 0
    assert "nothing was collected yet" in result.stdout
    warned = set(result.stderr.splitlines())
    assert len(warned) == 1
    assert "cut by a crash" in warned.pop()


def test_a_ledger_is_created_once(shuffledp: Run, folder: Path) -> None:
    line = "ledger init new.jsonl --epsilon 2 --delta 1e-6"
    assert shuffledp(line).exit_code == 0
    before = (folder / "new.jsonl").read_bytes()
    refused(shuffledp(line), 1, "exists already")
    assert (folder / "new.jsonl").read_bytes() == before
    refused(shuffledp("ledger show none.jsonl"), 1, "none.jsonl", "ledger init")
    assert "none.jsonl" not in names(folder)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (COUNT.replace("pets.csv", ""), ["DATA", "--plan"]),
        (COUNT + " --plan survey.json", ["DATA", "--plan"]),
        (COUNT.replace("pets.csv", "--plan survey.json"), ["--n"]),
        (COUNT.replace("pets.csv", "--plan p.json --n 9 --csv c.csv"), ["--csv", "DATA"]),
        (COUNT.replace("--categories cat,dog,fish", ""), ["--categories"]),
        (COUNT.replace("cat,dog,fish", "cat"), ["categories", "2"]),
        (COUNT.replace("cat,dog,fish", "cat,dog,cat"), ["categories", "'cat'"]),
        (COUNT + " --numeric", ["--numeric", "'cat'"]),
        (COUNT + " --ledger pets.csv", ["--ledger", "--population"]),
        (COUNT + " --population all", ["--ledger", "--population"]),
        (COUNT + " --simulation --statement s.txt", ["--simulation", "--statement"]),
        (COUNT + " --simulation --ledger pets.csv --population a", ["--simulation", "--ledger"]),
        (COUNT + " --honest-fraction 0", ["--honest-fraction", "'0'"]),
        (COUNT + " --confidence 2", ["--confidence", "'2'"]),
        (COUNT + " --confidence 1", ["confidence", "1 - 1e-9"]),
        (COUNT + " --round 2", ["--round", "--rounds 1"]),
        (COUNT + " --engine hadoop", ["--engine", "hadoop"]),
        (COUNT + " --plot picture.jpg", ["--plot", ".png"]),
        (COUNT.replace("--delta 1e-6", ""), ["--delta"]),
        (f"mean pets.csv --column age --low 5 --high 5 {TARGET}", ["low", "high"]),
        (f"mean pets.csv --column age --low 5 {TARGET}", ["--high"]),
        ("randomize pets.csv -o r.parquet", ["--protocol"]),
        ("shuffle -o s.parquet", ["REPORTS"]),
        ("analyze s.parquet --reservation 7", ["--ledger", "--reservation"]),
        ("ledger init l.jsonl --epsilon 1", ["--delta"]),
        ("ledger spend l.jsonl", ["spend"]),
    ],
)
def test_wrong_usage_has_status_two_and_leaves_nothing_behind(
    shuffledp: Run, folder: Path, line: str, words: list[str]
) -> None:
    refused(shuffledp(line), 2, *words)
    assert names(folder) == set()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (COUNT.replace("pets.csv", "none.csv"), ["none.csv"]),
        (COUNT.replace("--column pet", "--column animal"), ["'animal'", "'id', 'pet', 'age'"]),
        (COUNT.replace(" --column pet", ""), ["column must be given"]),
        (COUNT + " --csv none/c.csv", ["none/c.csv", "cannot be written"]),
        (COUNT + " --plan none/c.json", ["none/c.json", "cannot be written"]),
        (f"mean pets.csv --column pet --low 0 --high 9 --levels 2 {TARGET}", ["real numbers"]),
        (COUNT.replace("--epsilon 1", "--epsilon 1e-9 --round 1").replace("1e-6", "1e-12"), ["epsilon0"]),
    ],
)
def test_what_cannot_be_answered_has_status_one_and_leaves_nothing_behind(
    shuffledp: Run, folder: Path, line: str, words: list[str]
) -> None:
    refused(shuffledp(line), 1, *words)
    assert names(folder) == set()


def test_a_file_that_is_no_protocol_is_refused(shuffledp: Run, folder: Path) -> None:
    for text in ("{", "[]", '{"protocol": "histogram", "version": 99}', '{"protocol": "census"}'):
        (folder / "p.json").write_text(text)
        line = "randomize pets.csv --column pet --protocol p.json -o r.parquet"
        refused(shuffledp(line), 1, "p.json is no protocol")


def test_no_rows_give_no_answer(shuffledp: Run, folder: Path) -> None:
    (folder / "pets.csv").write_text("id,pet,age\n")
    refused(shuffledp(COUNT), 1, "at least 1 report is", "got 0")


def test_spark_is_an_engine_that_can_be_asked_for(shuffledp: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    asked = []

    class Watched(EmbeddedEngine):
        def map_batches(self, step: Any, data: Any, column: Any, **settings: Any) -> Any:
            asked.append((data, column))
            return super().map_batches(step, data, column, **settings)

    monkeypatch.setattr(sdp, "SparkEngine", Watched)
    assert near(answer(shuffledp(COUNT + " --engine spark --json"))["estimates"], [1500, 1000, 500])
    assert asked == [("pets.csv", "pet")]


@pytest.mark.parametrize("name", ["nonsense", "engine", "../spark"])
def test_an_engine_that_is_none_is_refused(shuffledp: Run, name: str) -> None:
    refused(shuffledp(COUNT + f" --engine {name}"), 2, "no engine")


def test_rounds_meet_the_target_together_and_are_counted(shuffledp: Run) -> None:
    line = COUNT + " --rounds 2 --json"
    first = answer(shuffledp(line))["privacy"]
    last = answer(shuffledp(line + " --round 2"))["privacy"]
    assert (first["rounds"], last["rounds"], last["rounds_planned"]) == (1, 2, 2)
    assert first["epsilon"] < last["epsilon"] <= 1.0


def test_many_categories_are_cut_on_the_terminal_only(shuffledp: Run, folder: Path) -> None:
    pq.write_table(pa.table({"code": np.arange(3000) % 50}), folder / "codes.parquet")
    (folder / "codes.json").write_text(json.dumps(list(range(50))))
    line = f"histogram codes.parquet --categories-file codes.json {TARGET} --csv all.csv"
    result = shuffledp(line)
    assert "... 10 more: --csv and --json have all" in result.stdout
    assert len((folder / "all.csv").read_text().splitlines()) == 51


def test_ctrl_c_leaves_no_file_and_gives_the_reservation_back(
    folder: Path, survey: HistogramProtocol, ledger: Ledger
) -> None:
    code = (
        "import time\n"
        "from shuffledp.shuffling.engine import RandomizeAndCount\n"
        "from shuffledp.cli.main import main\n"
        "def wait(*_, **__):\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(60)\n"
        "from shuffledp.shuffling import engine\n"
        "engine.EmbeddedEngine.merge = wait\n"
        "main()"
    )
    line = RECORDED + " --csv c.csv --statement s.txt --plot p.png"
    source = str(Path(sdp.__file__).parent.parent)
    with subprocess.Popen(
        [sys.executable, "-c", code, *line.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": source},
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=30)
    assert running.returncode == 130
    assert errors == "shuffledp: error: interrupted\n"
    assert names(folder) == {"survey.json", "readers.jsonl"}
    assert [each.status for each in ledger.collections] == ["released"]


def test_a_picture_that_fails_leaves_no_file_but_the_answer(
    shuffledp: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(figure: Any, path: Path, **settings: Any) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", full)
    result = shuffledp(COUNT + " --plot picture.png")
    assert result.exit_code == 1
    assert "No space left" in result.stderr
    assert result.stdout.startswith("histogram of 3,000 reports")
    assert names(folder) == set()


def test_a_report_of_another_protocol_is_not_analyzed(shuffledp: Run, survey: HistogramProtocol) -> None:
    other = HistogramProtocol(
        survey.categories,
        epsilon=8.0,
        delta=1e-6,
        n=3000,
        randomizer=KaryRandomizedResponse(k=3, epsilon0=8.0),
    )
    write(survey)
    write(other, "other.json")
    shuffledp("randomize pets.csv --column pet --protocol survey.json -o a.parquet")
    shuffledp(f"shuffle a.parquet -o s.parquet {SHUFFLER}")
    refused(shuffledp("analyze s.parquet --protocol other.json"), 1, "another protocol")
