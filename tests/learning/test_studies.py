"""The studies run: small versions of their scripts, with made-up digits that pass for the originals."""

import csv
import gzip
import hashlib
import importlib
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import pytest
import torch

from shuffledp.learning import mnist

STUDIES = Path(__file__).resolve().parents[2] / "studies"

pytestmark = pytest.mark.skipif(not STUDIES.exists(), reason="the studies are not in a package")


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Imports a script by folder and name, and forgets it afterwards."""
    before = set(sys.modules)

    def load(folder: Any, name: str) -> Any:
        monkeypatch.syspath_prepend(str(STUDIES / folder))
        return importlib.import_module(name)

    yield load
    for name in set(sys.modules) - before:
        if str(STUDIES) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def digits(study: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A folder of idx files: random strokes, whose label is how much ink there is."""
    generator = torch.Generator().manual_seed(1)
    strokes = study("mnist", "strokes")
    drawn = strokes.view(strokes.prototypes(300, generator), generator).numpy()
    images = np.round(255 * drawn).astype(np.uint8)
    labels = np.argsort(np.argsort(drawn.sum(axis=(1, 2)))) * 10 // len(drawn)
    for prefix in ("train", "t10k"):
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            name = f"{prefix}-{kind}-ubyte"
            header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
            data = header + array.astype(np.uint8).tobytes()
            (tmp_path / f"{name}.gz").write_bytes(gzip.compress(data))
            monkeypatch.setitem(mnist.SHA256, name, hashlib.sha256(data).hexdigest())
    return tmp_path


def rows(path: Any) -> Any:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_the_mnist_study_runs_from_idx_files_to_results(study: Any, digits: Any, tmp_path: Path) -> None:
    where = ["--data", str(digits), "--quick"]
    study("mnist", "search").main([*where, "--out", str(tmp_path / "search.csv")])
    tried = rows(tmp_path / "search.csv")
    assert len(tried) == (2 + 5 + 6 + 6 + 1) * 16  # representations, budgets, servers, no noise
    options = ["--search", str(tmp_path / "search.csv"), "--seeds", "1", "--epsilon", "3.0"]
    study("mnist", "run").main([*where, *options, "--out", str(tmp_path)])
    results = rows(tmp_path / "results.csv")
    servers = ["shuffled", "curator, substitution", "curator, add/remove", "none"]
    assert [row["run"] for row in results] == ["best", "paper", "network", *servers]
    shuffled = (r for r in tried if (r["epsilon"], r["noise"]) == ("3.0", "shuffled"))
    best = max(shuffled, key=lambda r: float(r["validation"]))
    assert [results[0][name] for name in ("step", "clip", "decay")] == [
        best[name] for name in ("step", "clip", "decay")
    ]
    ends = {(row["run"], row["seed"]): row["test_accuracy"] for row in rows(tmp_path / "curves.csv")}
    assert ends == {(row["run"], row["seed"]): row["test_accuracy"] for row in results[:3]}


def test_a_glance_never_overwrites_the_results(study: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        study("mnist", "run").main(["--data", "nowhere", "--quick"])
    assert "--quick needs --out" in capsys.readouterr().err


@pytest.mark.parametrize("family", ["strokes", "silhouettes"])
def test_random_images_are_images_and_two_views_are_closer_than_two_prototypes(
    study: Any, family: str
) -> None:
    drawer, generator = study("mnist", family), torch.Generator().manual_seed(3)
    prototypes = drawer.prototypes(60, generator)
    one, other = (drawer.view(prototypes, generator) for _ in range(2))
    assert one.shape == (60, 28, 28)
    assert 0.0 <= float(one.min()) <= float(one.max()) <= 1.0
    apart = torch.cdist(one.flatten(1), other.flatten(1))
    assert float(apart.diagonal().mean()) < 0.9 * float(apart.mean())


def test_a_folder_of_other_images_is_not_taken_for_fashion_mnist(study: Any, digits: Any) -> None:
    with pytest.raises(ValueError, match="not the original of Fashion-MNIST"):
        study("mnist", "tasks").TASKS["fashion"].load(digits, "train")


def test_the_server_beside_us_adds_the_noise_of_its_budget(study: Any) -> None:
    """The textbook's curve of the normal mechanism at the shift found, by quadrature."""
    plan = study("mnist", "plan")
    mu = plan.gaussian_mu(3.0, 1e-5)
    z = np.linspace(-12.0, 12.0, 200_001)
    density = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
    other = np.exp(-0.5 * (z - mu) ** 2) / np.sqrt(2.0 * np.pi)
    delta = np.maximum(other - np.exp(3.0) * density, 0.0).sum() * (z[1] - z[0])
    assert delta == pytest.approx(1e-5, rel=1e-4)


def test_the_committed_results_are_of_the_settings_that_the_committed_search_chose(study: Any) -> None:
    run = study("mnist", "run")
    folder = STUDIES / "mnist"
    kinds = {"best": "shuffled", **{noise: noise for noise in run.NOISES}}
    found = [row for row in rows(folder / "results.csv") if row["run"] in kinds]
    assert {row["run"] for row in found} == set(kinds)
    for row in found:
        at, kept = float(row["epsilon_target"]), int(row["parameters"]) // 10 - 1
        choice = run.chosen(folder / "search.csv", row["task"], at, kept, kinds[row["run"]])
        used = tuple(float(row[name]) for name in ("step", "clip", "decay"))
        assert used == (choice.step, choice.clip, choice.decay)
        assert float(row["epsilon_certified"]) <= float(row["epsilon_target"])


def test_the_page_states_the_committed_results() -> None:
    found = defaultdict(list)
    for row in rows(STUDIES / "mnist" / "results.csv"):
        found[row["task"], row["run"], row["epsilon_target"]].append(100 * float(row["test_accuracy"]))
    page = (STUDIES.parent / "docs" / "mnist.md").read_text(encoding="utf-8").replace("**", "")
    for (_, run, _), values in found.items():
        spread = f" ± {stdev(values):.2f}" if len(values) > 1 else ""
        line, end = f"{mean(values):.2f}%{spread}", "" if run == "none" else f"| {len(values)} |"
        assert any(line in text and text.rstrip().endswith(end) for text in page.splitlines()), line


def test_pages_state_the_committed_errors_and_shapes() -> None:
    docs = STUDIES.parent / "docs"
    collecting = (docs / "collecting.md").read_text(encoding="utf-8")
    for row in rows(STUDIES / "histograms" / "sum_errors.csv"):
        ours = f"{row['levels']}, {float(row['gamma']):.3g} | {float(row['ours']):.1f} |"
        ends = f"| {float(row['central']):.2f} | {float(row['local']):.0f} |"
        start = f"| {row['epsilon']} | {int(row['n']):,} |"
        (line,) = (line for line in collecting.splitlines() if line.startswith(start))
        assert ours in line
        assert line.endswith(ends)
    columns = ("n", "epsilon0", "epsilon", "raw", "inverted", "central", "local")
    known = [
        (row["setting"], *(float(row[each]) for each in columns))
        for name in ("synthetic", "new_york")
        for row in rows(STUDIES / "histograms" / f"{name}.csv")
    ]
    shown = [
        line.split(" | ") for line in collecting.splitlines() if re.match(r"\| (response|epsilon) \d", line)
    ]
    assert len(shown) == 28
    for setting, n, local, *errors in (
        [cell.strip("| ").replace(",", "") for cell in line] for line in shown
    ):
        same = [row for row in known if row[:2] == (setting, float(n))]
        assert any(
            np.allclose([float(local), *map(float, errors)], row[2:], rtol=0.0, atol=[5.1e-3] + [5.6e-5] * 5)
            for row in same
        ), (setting, n)
    shapes = (docs / "how-to" / "federations.md").read_text(encoding="utf-8")
    for row in rows(STUDIES / "mnist" / "shapes.csv"):
        share = "1" if float(row["information"]) == 1.0 else row["information"]
        assert f"{share}, at least {float(row['lower']):.2f}" in shapes


def test_a_trusted_server_is_at_most_a_fifth_of_a_point_ahead() -> None:
    found = defaultdict(list)
    for row in rows(STUDIES / "mnist" / "results.csv"):
        if row["task"] == "mnist":
            found[row["run"], row["epsilon_target"]].append(100 * float(row["test_accuracy"]))
    budgets = {epsilon for run, epsilon in found if run == "best"}
    assert len(budgets) == 6
    for epsilon in budgets:
        ours, server = (found[run, epsilon] for run in ("best", "curator, substitution"))
        assert len(ours) >= 5
        assert 0.0 < mean(server) - mean(ours) <= 0.2


def test_the_page_states_the_best_of_the_committed_search(study: Any) -> None:
    page = (STUDIES.parent / "docs" / "mnist.md").read_text(encoding="utf-8")
    table = page.split("| Fashion-MNIST, epsilon")[1]
    plots, search = study("mnist", "plots"), rows(STUDIES / "mnist" / "search.csv")
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:8]]
    for column, noise in enumerate((*plots.NOISES, "none"), start=1):
        best = plots.validated(search, "fashion", noise)
        stated = {float(line[0]): line[column] for line in lines if line[column]}
        assert stated == {at: f"{100 * mean:.2f}%" for at, (mean, _) in best.items()}


def test_the_study_of_people_with_many_records_runs_and_the_page_states_it(
    study: Any, tmp_path: Path
) -> None:
    study("users", "activity").main(["--quick", "--seeds", "1", "--out", str(tmp_path / "activity.csv")])
    quick = rows(tmp_path / "activity.csv")
    assert [float(row["epsilon"]) for row in quick] == [1.0, 3.0]
    assert all(float(row["accuracy"]) > float(row["largest_class"]) for row in quick)
    found = defaultdict(list)
    for row in rows(STUDIES / "users" / "activity.csv"):
        assert float(row["certified"]) <= float(row["epsilon"])
        found[float(row["epsilon"]), int(row["rounds"]), float(row["no_privacy"])].append(
            float(row["accuracy"])
        )
    page = (STUDIES.parent / "docs" / "mnist.md").read_text(encoding="utf-8")
    for (epsilon, rounds, free), values in found.items():
        ours = f"{100 * mean(values):.2f}% ± {100 * stdev(values):.2f}"
        assert f"| {epsilon:g} | {rounds} | {ours} | {100 * free:.2f}% |" in page


def test_logistic_regression_converges_as_the_lemmas_say(study: Any) -> None:
    """Two runs of 100 rounds: the constants of Lemma 9 and of Lemma 10, and that it converges."""
    logistic = study("convex", "logistic")
    allowed = {kind.__name__: constant for kind, constant, _ in logistic.KINDS}
    used = logistic.constants(logistic.EPSILON0)
    assert all(used[name] <= allowed[name] for name in allowed)
    found = logistic.measured([1, 10, 100], seeds=2)
    assert all(0.0 <= gap <= most and constant <= 2.0 for _, gap, most, constant in found)
    assert found[-1][1] < 0.2 * found[0][1]


def test_the_convex_script_prints_its_constants_and_writes_the_gaps(
    study: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "gaps.csv"
    study("convex", "logistic").main(["--rounds", "3", "--seeds", "1", "--out", str(out)])
    shown = capsys.readouterr().out
    assert "Lemma 9 allows 14" in shown
    assert "T =    3: gap" in shown
    assert [row["rounds"] for row in rows(out)] == ["1", "3"]
