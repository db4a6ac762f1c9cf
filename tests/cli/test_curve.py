"""``shuffledp curve``: the same numbers in a table, in JSON, in a CSV file and in a picture."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

import shuffledp as sdp
from shuffledp.cli.commands.curve import numbers, whole_numbers

pytestmark = pytest.mark.quick

Run = Callable[..., Result]

FOUR = sdp.KaryRandomizedResponse(k=4, epsilon0=1.0)
LINE = "curve --krr 4 --epsilon0 1 --n 1000 --from 0 --to 0.2 --points 5"
MAGIC = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


def test_the_csv_file_holds_the_numbers_of_the_library_in_full(shuffledp: Run, tmp_path: Path) -> None:
    file = tmp_path / "curve.csv"
    result = shuffledp(f"{LINE} --csv {file}")
    assert result.exit_code == 0, result.output
    header, *rows = csv.reader(file.read_text().splitlines())
    assert header == ["epsilon", "delta_lower", "delta_upper"]
    found = np.array(rows, dtype=float)
    expected = sdp.Shuffled(FOUR, n=1000).delta(epsilon=found[:, 0])
    assert np.array_equal(found[:, 0], np.linspace(0.0, 0.2, 5))
    assert np.array_equal(found[:, 1], expected.lower)
    assert np.array_equal(found[:, 2], expected.upper)
    assert result.stderr == f"wrote {file}\n"
    assert "delta upper" in result.stdout


def test_a_dash_writes_the_csv_alone_to_standard_output(shuffledp: Run) -> None:
    result = shuffledp(f"{LINE} --csv -")
    assert result.exit_code == 0
    assert result.stdout.startswith("epsilon,delta_lower,delta_upper\n0.0,")
    assert len(result.stdout.splitlines()) == 6
    assert result.stderr == ""


def test_the_table_encloses_the_numbers_of_the_json(shuffledp: Run) -> None:
    exact = json.loads(shuffledp(LINE + " --json").stdout)
    table = shuffledp(LINE).stdout.splitlines()[1:6]
    assert exact["quantity"] == "delta"
    assert (exact["inputs"]["from"], exact["inputs"]["to"]) == (0.0, 0.2)
    for line, point in zip(table, exact["points"], strict=True):
        _, low, high = map(float, line.split())
        assert low <= point["lower"] <= point["upper"] <= high


def test_the_usual_curve_goes_from_zero_to_a_delta_of_a_trillionth(shuffledp: Run) -> None:
    points = json.loads(shuffledp("curve --krr 4 --epsilon0 1 --n 1000 --json").stdout)["points"]
    assert len(points) == 21
    assert points[0]["at"] == 0.0
    assert 1e-14 < points[-1]["upper"] <= 1e-12


@pytest.mark.parametrize(
    ("options", "values"),
    [
        ("--against n --krr 4 --epsilon0 1 --from 10 --to 1e3 --points 3", [10, 100, 1000]),
        ("--against rounds --krr 4 --epsilon0 1 --n 1000 --to 4 --points 9", [1, 2, 3, 4]),
        ("--against epsilon0 --krr 4 --n 1000 --from 1 --to 2 --points 3", [1.0, 1.5, 2.0]),
    ],
)
def test_epsilon_against_a_parameter_is_the_answer_at_each_value(
    shuffledp: Run, options: str, values: list[float]
) -> None:
    result = shuffledp(f"curve {options} --delta 1e-5 --json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [point["at"] for point in found["points"]] == values
    against = found["inputs"]["against"]
    for point in found["points"]:
        given = {"n": 1000, "rounds": 1, "epsilon0": 1.0, against: point["at"]}
        answer = sdp.KaryRandomizedResponse(k=4, epsilon0=given["epsilon0"])
        mechanism = given["rounds"] * sdp.Shuffled(answer, n=given["n"])
        assert point["upper"] == mechanism.epsilon(delta=1e-5).upper
        limit = mechanism.gaussian_limit()
        assert point["gaussian_limit_mu"] == {"lower": limit.lower, "upper": limit.upper}
    assert "gaussian_limit_mu" not in found


def test_every_row_of_a_sweep_ends_with_its_gaussian_limit(shuffledp: Run) -> None:
    line = "curve --against rounds --krr 4 --epsilon0 1 --n 1000 --delta 1e-6 --from 1e3 --to 1e6 --points 3"
    points = json.loads(shuffledp(f"{line} --json").stdout)["points"]
    header, *rows = csv.reader(shuffledp(f"{line} --csv -").stdout.splitlines())
    assert header == ["rounds", "epsilon_lower", "epsilon_upper", "limit_mu", "shuffle_index"]
    for row, point in zip(rows, points, strict=True):
        assert [*map(float, row[3:])] == [point["gaussian_limit_mu"]["upper"], point["shuffle_index"]]
    table = shuffledp(line).stdout.splitlines()
    assert table[0].split()[-4:] == ["limit", "mu", "shuffle", "index"]
    assert max(map(len, table)) < 80


@pytest.mark.parametrize("kind", MAGIC)
@pytest.mark.parametrize("against", ["epsilon", "n --delta 1e-5 --to 1e4"])
def test_the_picture_is_drawn_in_the_format_of_its_suffix(
    shuffledp: Run, tmp_path: Path, kind: str, against: str
) -> None:
    file = tmp_path / f"curve.{kind.upper()}"
    size = "--n 1000 " if against == "epsilon" else ""
    line = f"curve --krr 4 --epsilon0 1 {size}--points 3 --against {against} --plot {file}"
    result = shuffledp(line)
    assert result.exit_code == 0, result.output
    assert result.stderr == f"wrote {file}\n"
    assert file.read_bytes().startswith(MAGIC[kind])


def test_without_matplotlib_the_error_names_the_extra(
    shuffledp: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    result = shuffledp(f"{LINE} --plot {tmp_path / 'curve.png'}")
    assert result.exit_code == 1
    assert result.stderr == ("shuffledp: error: plots need matplotlib: pip install 'shuffledp[plot]'\n")


def test_grids_keep_both_ends_and_repeat_nothing() -> None:
    assert numbers(0.0, 0.3, 4)[-1] == 0.3
    assert numbers(0.1, 0.7, 3) == pytest.approx([0.1, 0.4, 0.7], rel=1e-15)
    for low, high, points in [(1, 10**15 + 1, 20), (1, 3, 50), (5, 6, 2), (7, 2**53, 2)]:
        found = whole_numbers(low, high, points)
        assert (found[0], found[-1]) == (low, high)
        assert found == sorted(set(found))
        assert all(isinstance(value, int) for value in found)
