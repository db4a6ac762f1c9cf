"""The history on disk."""

import csv
import json
from pathlib import Path

import pytest

from shuffledp.learning._history import History

pytestmark = pytest.mark.quick

ROWS = [{"round": 1, "epsilon": 0.25}, {"round": 2, "epsilon": 0.5, "accuracy": 0.75}]


def test_csv_holds_every_row_and_every_name(tmp_path: Path) -> None:
    History(ROWS).to_csv(tmp_path / "history.csv")
    with open(tmp_path / "history.csv", newline="") as file:
        back = list(csv.DictReader(file))
    assert back == [
        {"round": "1", "epsilon": "0.25", "accuracy": ""},
        {"round": "2", "epsilon": "0.5", "accuracy": "0.75"},
    ]


def test_json_holds_the_rows(tmp_path: Path) -> None:
    History(ROWS).to_json(tmp_path / "history.json")
    assert json.loads((tmp_path / "history.json").read_text()) == ROWS


def test_what_diverged_is_null_in_json(tmp_path: Path) -> None:
    History([{"round": 1, "loss": float("nan")}]).to_json(tmp_path / "history.json")
    assert json.loads((tmp_path / "history.json").read_text()) == [{"round": 1, "loss": None}]


def test_a_history_with_epsilons_is_drawn_against_them() -> None:
    rows = [{"round": 1, "epsilon": 0.25, "accuracy": 0.5}, ROWS[1]]
    ax = History(rows, delta=1e-5).plot()
    (curve,) = ax.get_lines()
    assert curve.get_xydata().tolist() == [[0.25, 0.5], [0.5, 0.75]]
    assert "1e-5" in ax.get_xlabel()


def test_a_history_without_epsilons_is_drawn_against_rounds() -> None:
    ax = History([{"round": 3, "loss": 1.0, "accuracy": 0.5}]).plot("accuracy")
    (curve,) = ax.get_lines()
    assert curve.get_xydata().tolist() == [[3.0, 0.5]]


def test_an_empty_history_has_no_last_row() -> None:
    assert History().last == {}
