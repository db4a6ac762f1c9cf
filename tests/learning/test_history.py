"""The history on disk."""

import csv
import json

from shuffledp.learning.history import History

ROWS = [{"round": 1, "epsilon": 0.25}, {"round": 2, "epsilon": 0.5, "accuracy": 0.75}]


def test_csv_holds_every_row_and_every_name(tmp_path):
    History(ROWS).to_csv(tmp_path / "history.csv")
    with open(tmp_path / "history.csv", newline="") as file:
        back = list(csv.DictReader(file))
    assert back == [
        {"round": "1", "epsilon": "0.25", "accuracy": ""},
        {"round": "2", "epsilon": "0.5", "accuracy": "0.75"},
    ]


def test_json_holds_the_rows(tmp_path):
    History(ROWS).to_json(tmp_path / "history.json")
    assert json.loads((tmp_path / "history.json").read_text()) == ROWS


def test_an_empty_history_has_no_last_row():
    assert History().last == {}
