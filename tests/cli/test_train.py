"""``shuffledp train``: learns, stays within its budget, goes on where it stopped, and says so."""

import csv
import json
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

import shuffledp as sdp

torch = pytest.importorskip("torch")
learning = pytest.importorskip("shuffledp.learning")

CALIBRATED = cache(learning.epsilon0_for)

Run = Callable[..., Result]

LINE = "train a.csv --label y --classes no,yes --epsilon 2 --delta 1e-5 --rounds 6 --cohort 300"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two clouds of points, told apart by a line: a.csv to learn from, b.csv to test with."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(learning, "epsilon0_for", CALIBRATED)  # once for all tests
    rng = np.random.default_rng(7)
    for name, people in (("a.csv", 1_000), ("b.csv", 500)):
        classes = rng.integers(0, 2, people)
        points = rng.normal(scale=0.5, size=(people, 2)) + (2 * classes - 1)[:, None]
        rows = (f"{u},{v},{['no', 'yes'][c]}" for (u, v), c in zip(points, classes, strict=True))
        (tmp_path / name).write_text("\n".join(["u,v,y", *rows, ""]))
    return tmp_path


def answer(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(result: Result, status: int, *words: str) -> None:
    assert result.exit_code == status, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    for word in (": error: ", *words):
        assert word in result.stderr


def test_it_learns_within_its_budget_and_measures_on_public_examples(shuffledp: Run) -> None:
    found = answer(shuffledp(LINE + " --test b.csv --seed 1 --json"))
    assert found["accuracy"] > 0.9
    assert found["lower"] <= found["upper"] <= 2.0
    assert (found["rounds"], found["parameters"]) == (6, 6)


def test_dishonest_people_hide_nobody(shuffledp: Run) -> None:
    result = shuffledp(LINE.replace("--cohort 300", "--cohort 1000 --seed 1 --honest-fraction 0.5"))
    assert result.exit_code == 0, result.output
    assert "1,000 of 1,000 in each round, 500 of them relied on" in result.stdout
    local, spent = (
        float(re.findall(word, result.stdout)[0]) for word in (r"epsilon0=([\d.]+)", r"<= ([\d.]+)")
    )
    among = [sdp.Shuffled(sdp.PrivUnit(6, local), n=n) for n in (500, 1_000)]
    half, everybody = ((6 * one).upper_epsilon(delta=1e-5) for one in among)
    assert everybody < half <= spent <= 2.0


def test_the_table_names_what_was_certified_and_measured(shuffledp: Run) -> None:
    result = shuffledp(LINE + " --test b.csv --seed 1")
    assert result.stdout.startswith("SIMULATED epsilon <= ")
    assert "which protects nobody" in result.stdout
    assert "certified" not in result.stdout
    assert " at delta = 1e-5 after 6 rounds\n" in result.stdout
    assert "on b.csv" in result.stdout
    assert "300 of 1,000 in each round" in result.stdout
    assert "PrivUnit(dimension=6," in result.stdout


def test_without_public_examples_nothing_is_measured(shuffledp: Run) -> None:
    found = answer(shuffledp(LINE + " --json"))
    assert (found["accuracy"], found["simulated"]) == (None, False)
    refused(shuffledp(LINE + " --plot curve.png"), 2, "--plot", "--test")


def test_model_history_and_picture_are_written(shuffledp: Run, folder: Path) -> None:
    line = LINE + " --test b.csv --every 2 --model m.pt --history h.csv --plot curve.png"
    result = shuffledp(line)
    assert result.exit_code == 0, result.output
    assert result.stderr == "wrote m.pt\nwrote h.csv\nwrote curve.png\n"
    weights = torch.load(folder / "m.pt", weights_only=True)
    assert sum(value.numel() for value in weights.values()) == 6
    rows = list(csv.DictReader((folder / "h.csv").read_text().splitlines()))
    assert [row["round"] for row in rows] == ["2", "4", "6"]
    assert 0.0 < float(rows[0]["epsilon"]) < float(rows[-1]["epsilon"]) <= 2.0
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_a_checkpoint_is_gone_on_from(shuffledp: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = answer(shuffledp(LINE + " --seed 3 --test b.csv --model whole.pt --json"))
    step = learning.ShuffledTrainer._step
    steps: list[bool] = []

    def interrupted(self: Any, stopped: Any) -> bool:
        if len(steps) == 3:
            raise KeyboardInterrupt
        steps.append(step(self, stopped))
        return steps[-1]

    with monkeypatch.context() as patch:
        patch.setattr(learning.ShuffledTrainer, "_step", interrupted)
        line = LINE + " --seed 3 --test b.csv --every 1 --checkpoint c.pt"
        result = shuffledp(line)
        assert result.exit_code == 130
        kept = "c.pt is kept: the same command goes on from there"
        assert result.stderr == f"{kept}\nshuffledp: error: interrupted\n"
    resumed = answer(shuffledp(line + " --model resumed.pt --json"))
    assert resumed["rounds"] == 6
    assert (resumed["upper"], resumed["accuracy"]) == (whole["upper"], whole["accuracy"])
    first, second = (torch.load(f, weights_only=True) for f in ("whole.pt", "resumed.pt"))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert answer(shuffledp(line + " --json"))["rounds"] == 6  # nothing is left to do


def test_a_hidden_layer_has_as_many_units_as_asked_for(shuffledp: Run) -> None:
    line = LINE.replace("--rounds 6 --cohort 300", "--rounds 1")
    assert answer(shuffledp(line + " --hidden 3 --json"))["parameters"] == 3 * 3 + 2 * 4


def test_a_public_range_becomes_minus_one_to_one(folder: Path) -> None:
    from shuffledp.cli.commands.train import Layout, read_labelled

    (folder / "c.csv").write_text("u,v,y\n0,5,no\n10,-3,yes\n12,2.5,no\n")
    layout = Layout("y", ("no", "yes"), None, (0.0, 10.0))
    inputs, targets = read_labelled("c.csv", layout, "train").tensors
    assert inputs.tolist() == [[-1.0, 0.0], [1.0, -1.0], [1.0, -0.5]]
    assert targets.tolist() == [0, 1, 0]
    only = Layout("y", ("yes", "no"), ("v",), None)
    inputs, targets = read_labelled("c.csv", only, "train").tensors
    assert inputs.tolist() == [[5.0], [-3.0], [2.5]]
    assert targets.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("line", "status", "words"),
    [
        (LINE.replace("--label y", ""), 2, ["--label"]),
        (LINE.replace("no,yes", "no,maybe"), 1, ["of 1000 values"]),
        (LINE + " --features u,w", 1, ["'w'"]),
        (LINE + " --features u,y", 1, ["'y'", "must be numbers"]),
        (LINE + " --low 0", 2, ["--low", "--high"]),
        (LINE + " --low 1 --high 0", 2, ["--low", "--high"]),
        (LINE.replace("--cohort 300", "--cohort 5000"), 2, ["--cohort", "1,000"]),
        (LINE.replace("a.csv", "none.csv"), 2, ["none.csv"]),
        (LINE + " --test none.csv", 2, ["none.csv"]),
        (LINE + " --model none/m.pt", 1, ["none/m.pt"]),
        (LINE.replace("a.csv", "."), 1, ["train-images"]),
    ],
)
def test_what_cannot_be_learned_from_is_said_on_one_line(
    shuffledp: Run, line: str, status: int, words: list[str]
) -> None:
    refused(shuffledp(line), status, *words)


def test_missing_features_are_counted(shuffledp: Run, folder: Path) -> None:
    with (folder / "a.csv").open("a") as file:
        file.write(",1.0,no\n")
    refused(shuffledp(LINE), 1, "1 of 1001 values", "1 missing")


def test_without_torch_the_error_names_the_extra(shuffledp: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("shuffledp.learning")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    refused(shuffledp(LINE), 1, "shuffledp[learn]")
