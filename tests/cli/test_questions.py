"""Quantiles, ranges, tables and strings as commands: alone, and in three roles."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]
TARGET = "--epsilon 1 --delta 1e-6"
AGES = "--low 0 --high 100 --bins 10 --branching 10"

pytestmark = pytest.mark.quick


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """people.csv has a number and two attributes for each of 1,000 people, and a word."""
    monkeypatch.chdir(tmp_path)
    rows = (
        f"{i % 80},{'old' if i % 80 > 40 else 'young'},{'cat' if i % 3 else 'dog'},{'ab'[i % 2]}"
        for i in range(1000)
    )
    (tmp_path / "people.csv").write_text("\n".join(["years,age,pet,word", *rows, ""]))
    (tmp_path / "used").mkdir()
    return tmp_path


def done(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout


def in_three_roles(shuffledp: Run, plan: str, column: str = "") -> str:
    done(shuffledp(f"randomize people.csv {column} --protocol {plan} -o r-{plan}.parquet"))
    given = f"--protocol {plan} --used used --minimum 9 --most-per-file 1e4"
    done(shuffledp(f"shuffle r-{plan}.parquet {given} -o s-{plan}.parquet"))
    return f"s-{plan}.parquet"


def test_quantiles_alone_and_in_three_roles(shuffledp: Run) -> None:
    line = f"quantiles {AGES} {TARGET} --quantiles 0.1,0.5"
    told = json.loads(done(shuffledp(f"{line} people.csv --column years --json --simulation --plot q.png")))
    assert [row["quantile"] for row in told["estimates"]] == [0.1, 0.5]
    assert 30.0 <= told["estimates"][1]["truth"] <= 40.0
    assert Path("q.png").exists()
    done(shuffledp(f"{line} --n 1000 --plan q.json"))
    found = done(shuffledp(f"analyze {in_three_roles(shuffledp, 'q.json', '--column years')} --csv q.csv"))
    assert found.startswith("quantiles of 1,000 reports, epsilon <= ")
    assert Path("q.csv").read_text().startswith("quantile,value,")
    done(shuffledp(f"quantiles --low 0 --high 9 --branching 100 {TARGET} --n 1000 --plan usual.json"))
    assert json.loads(Path("usual.json").read_text())["bins"] == 100


def test_ranges_as_typed(shuffledp: Run) -> None:
    line = f"ranges people.csv --column years {AGES} {TARGET} --json"
    told = json.loads(done(shuffledp(f"{line} --ranges 0:40,20:100")))
    assert [row["category"] for row in told["estimates"]] == ["[0, 40)", "[20, 100]"]
    for wrong, word in (
        ("0:41", "edge of bins"),
        ("a:b", "could not convert"),
        ("0:1:2", "pairs of numbers"),
    ):
        refused = shuffledp(f"{line} --ranges {wrong}")
        assert refused.exit_code == 2
        assert word in refused.stderr


def test_tables_alone_and_in_three_roles(shuffledp: Run) -> None:
    line = f"table --by age=young,old --by pet=cat,dog {TARGET}"
    told = json.loads(done(shuffledp(f"{line} people.csv --json --simulation --plot t.png")))
    assert [row["age, pet"] for row in told["estimates"]] == [
        "young, cat",
        "young, dog",
        "old, cat",
        "old, dog",
    ]
    assert sum(row["truth"] for row in told["estimates"]) == 1000
    done(shuffledp(f"{line} --n 1000 --messages 2 --plan t.json"))
    assert done(shuffledp(f"analyze {in_three_roles(shuffledp, 't.json')}")).startswith(
        "table of 1,000 reports"
    )
    done(shuffledp("randomize --value old,cat --protocol t.json -o one.parquet"))
    for wrong, word in (
        ("--by age", "NAME=A,B"),
        ("--by age=a,b --by age=a,b", "name of its own"),
        ("", "2 to 3"),
    ):
        refused = shuffledp(f"table people.csv {wrong} {TARGET}")
        assert refused.exit_code == 2
        assert word in refused.stderr


def test_strings_alone_and_cohort_by_cohort(shuffledp: Run) -> None:
    line = f"strings --alphabet a-c --length 2 {TARGET}"
    told = json.loads(done(shuffledp(f"{line} people.csv --column word --json --simulation")))
    assert {row["category"]: row["truth"] for row in told["estimates"]} == {"a": 500, "b": 500}
    done(shuffledp(f"{line} --n 1000 --plan 1.json"))
    first = in_three_roles(shuffledp, "1.json", "--column word")
    assert "a*" in done(shuffledp(f"analyze {first} --next 2.json"))
    last = in_three_roles(shuffledp, "2.json", "--column word")
    assert "\n  a  " in done(shuffledp(f"analyze {last}"))
    over = shuffledp(f"analyze {last} --next 3.json")
    assert over.exit_code == 1
    assert "nothing follows" in over.stderr
    refused = shuffledp(f"{line} people.csv --column word --rounds 2")
    assert refused.exit_code == 2
    assert "no option --rounds" in refused.stderr
