"""The figures and tables of the papers: what is drawn, written, skipped and said."""

import csv
import gzip
import json
import math
import os
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import shuffledp as sdp
from shuffledp.cli.main import cli
from shuffledp.collecting._gaussian import gaussian_delta
from shuffledp.collecting.number import least_single_message_error
from shuffledp.literature.as_published.biswas_2022 import one_bin_delta_as_published
from shuffledp.literature.girgis import girgis_2021_epsilon, girgis_2021_mixed_upper
from shuffledp.papers import _runner as runner, _template
from shuffledp.papers._drawing import HUES, looks
from shuffledp.papers._page import body, index, made_with, numbers, page, summary
from shuffledp.papers._result import Curve, Item, Panel, Result as Figure, Setting
from shuffledp.papers._runner import BY_NAME, ITEMS, PAPERS, named
from shuffledp.papers.balle_2019._summation import Plan, simulated
from shuffledp.papers.biswas_2022 import _cities as cities
from shuffledp.papers.girgis_2021 import _figures as girgis_2021
from shuffledp.papers.koskela_2021._figures import transcribed_2021
from shuffledp.papers.koskela_2023._gaussian import shuffled_gaussians

QUICK = Setting(quick=True)

ASKED = {
    *(f"koskela-2023-figure-{i}" for i in range(1, 6)),
    *("koskela-2021-figure-1", "koskela-2021-figure-2", "koskela-2021-supplement"),
    *("balle-2019-figure-2", "balle-2019-figure-3", "balle-2019-summation"),
    *(f"biswas-2022-table-{i}" for i in (2, 4, 5, 6)),
    *(f"biswas-2022-figure-{i}" for i in range(1, 8)),
    *(f"girgis-2021-figure-{i}" for i in (4, 5, 6)),
    *("girgis-2021-factor", "girgis-2021-theorem-3"),
}


TINY = """# A tiny figure

{picture}

## Why

It is {number:.3f}
because.
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["reproduce", *arguments], prog_name="shuffledp")


def tiny(name: str = "tiny", count: list[int] | None = None, **settings: Any) -> Item:
    """An item that takes no time and counts its runs."""

    def draw(setting: Setting) -> Figure:
        if count is not None:
            count.append(1)
        curves = (Curve("line", "sound", [1.0, 2.0], [3.0, math.nan]),)
        panel = Panel("a panel", curves, "x", "y", y_log=False)
        return Figure([panel], {"number": 0.25})

    return Item(name, TINY, draw, **settings)


def missing_on_the_page(name: str, setting: Setting) -> str:
    """What the page of an item says is missing."""
    text = page(BY_NAME[name], BY_NAME[name].run(setting), {})
    return text.partition("## What is missing\n")[2]


@cache
def quickly(name: str) -> Figure:
    """An item on coarse grids, run once for all tests."""
    return BY_NAME[name].run(QUICK)


def rows_of(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(numbers(quickly(name)).splitlines()))


def at(rows: list[dict[str, str]], series: str, x: float) -> dict[str, str]:
    """The row of a series nearest to x."""
    known = [row for row in rows if row["series"] == series]
    return min(known, key=lambda row: abs(float(row["x"]) - x))


def test_every_figure_and_table_that_was_asked_for_is_listed() -> None:
    listed = run("--list")
    assert listed.exit_code == 0
    names = {line.split()[0] for line in listed.stdout.splitlines()}
    assert names == {item.name for item in ITEMS} == ASKED


@pytest.mark.parametrize("name", ["koskela-2023-figure-4", "biswas-2022-table-4", "biswas-2022-figure-4"])
def test_an_item_gets_a_picture_its_numbers_and_a_page(tmp_path: Path, name: str) -> None:
    found = run(name, "--quick", "--output", str(tmp_path))
    assert found.exit_code == 0, found.output
    assert found.stdout.strip() == str(tmp_path / f"{name}.md")
    assert "1/1" in found.stderr
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    text = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
    for heading in ("What the paper shows", "What we compute", "The difference", "Why"):
        assert f"## {heading}\n" in text
    assert f"({name}.png)" in text
    assert "nan" not in text
    header, *rows = csv.reader((tmp_path / f"{name}.csv").read_text(encoding="utf-8").splitlines())
    assert header == ["panel", "series", "kind", "x", "y", "value", "lower"]
    assert len(rows) > 10
    paper = "-".join(name.split("-")[:2])
    overview = (tmp_path / f"{paper}.md").read_text(encoding="utf-8")
    verdict, agreement = summary(text)
    assert verdict
    assert agreement
    assert f"({name}.md) | {verdict} | {agreement} |" in overview
    assert f"({paper}.md)" in (tmp_path / "index.md").read_text(encoding="utf-8")
    assert not list(tmp_path.glob("*.partial"))


def test_every_paper_is_listed_and_every_template_is_the_page_of_an_item() -> None:
    folder = Path(runner.__file__).parent
    papers = {path.parent.name for path in folder.glob("*/__init__.py")}
    assert set(PAPERS) == papers
    pages = {
        f"{path.parent.name}-{path.stem}".replace("_", "-")
        for path in folder.glob("*/*.md")
        if not path.stem.startswith("_")
    }
    assert pages == ASKED
    included = {path.name for path in folder.glob("*/_*.md")} - {"_paper.md"}
    assert all((folder / paper / "_paper.md").is_file() for paper in papers)
    texts = [path.read_text(encoding="utf-8") for path in folder.glob("*/*.md")]
    assert all(any(f"<!-- include: {name} -->" in text for text in texts) for name in included)
    assert not any("include:" in item.template for item in ITEMS)


def test_a_page_is_its_template_with_the_numbers_in_their_places() -> None:
    item = tiny()
    text = page(item, item.run(QUICK), {"quick": True})
    assert text.startswith("# A tiny figure\n\n![A tiny figure](tiny.png)\n\nCoarse grids")
    assert "\n\n## Why\n\nIt is 0.250 because.\n\n<!--" in text


def test_a_number_without_a_place_and_a_place_without_a_number_are_errors() -> None:
    with pytest.raises(ValueError, match="must be given tail"):
        _template.rendered("{truth.lower:.2f} and {tail}", {"truth": sdp.Bound(0.0, 1.0)})
    with pytest.raises(ValueError, match="must name tail"):
        _template.rendered("{end[Theorem 1]}", {"end": {"Theorem 1": 1.0}, "tail": 2.0})


def test_what_is_finished_with_the_same_parameters_is_skipped(tmp_path: Path) -> None:
    ran: list[int] = []
    item = tiny(count=ran)
    runner.reproduce([item], QUICK, tmp_path)
    runner.reproduce([item], QUICK, tmp_path)
    assert len(ran) == 1
    runner.reproduce([item], Setting(quick=False), tmp_path)
    assert len(ran) == 2
    runner.reproduce([item], Setting(quick=False), tmp_path, force=True)
    assert len(ran) == 3


@pytest.mark.parametrize("suffix", [".png", ".csv", ".md"])
def test_an_item_with_a_missing_file_is_run_again(tmp_path: Path, suffix: str) -> None:
    ran: list[int] = []
    item = tiny(count=ran)
    runner.reproduce([item], QUICK, tmp_path)
    (tmp_path / f"tiny{suffix}").unlink()
    runner.reproduce([item], QUICK, tmp_path)
    assert len(ran) == 2


def test_other_data_is_another_parameter_of_items_that_use_data(tmp_path: Path) -> None:
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    one.write_text("latitude,longitude\n1,2\n")
    other.write_text("latitude,longitude\n1,3\n")
    item = tiny(uses_data=True)
    stamps = [runner.stamp(item, Setting(True, data)) for data in (None, one, other)]
    assert len({json.dumps(each, sort_keys=True) for each in stamps}) == 3
    indifferent = [runner.stamp(tiny(), Setting(True, data)) for data in (None, one, other)]
    assert indifferent[0] == indifferent[1] == indifferent[2]


def test_an_interruption_leaves_what_is_finished_and_nothing_by_halves(tmp_path: Path) -> None:
    def interrupted(setting: Setting) -> Figure:
        raise KeyboardInterrupt

    items = [tiny("first"), Item("second", TINY, interrupted), tiny("third")]
    with pytest.raises(KeyboardInterrupt):
        runner.reproduce(items, QUICK, tmp_path)
    assert runner.is_finished(items[0], QUICK, tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"first.png", "first.csv", "first.md", "index.md"}  # tiny items are of no paper


def test_an_interruption_while_a_file_is_written_leaves_the_item_unfinished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = tiny()
    runner.reproduce([item], QUICK, tmp_path)

    whole = (tmp_path / "tiny.png").read_bytes()

    def stopped(figure: Any, path: Path, **how: Any) -> None:
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", stopped)
    with pytest.raises(KeyboardInterrupt):
        runner.reproduce([item], QUICK, tmp_path, force=True)
    assert not runner.is_finished(item, QUICK, tmp_path)
    assert (tmp_path / "tiny.png").read_bytes() == whole
    assert not list(tmp_path.glob("*.partial"))


def test_ctrl_c_ends_the_command_with_status_130(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any, **settings: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "reproduce", interrupted)
    assert run("balle-2019-figure-2", "--output", str(tmp_path)).exit_code == 130


def test_a_page_without_a_stamp_or_with_a_broken_one_is_not_finished() -> None:
    assert made_with("# A page\n") is None
    assert made_with("# A page\n<!-- shuffledp reproduce {broken -->\n") is None
    assert made_with("# A page\n<!-- shuffledp reproduce [1] -->\n") is None


def test_wrong_usage_is_status_2_and_names_what_was_wrong() -> None:
    for arguments in ([], ["--all", "--list"], ["balle-2019-figure-2", "--all"]):
        assert run(*arguments).exit_code == 2
    unknown = run("no-such-figure")
    assert unknown.exit_code == 2
    assert "'no-such-figure'" in unknown.stderr
    with pytest.raises(ValueError, match="koskela-2023-figure-1"):
        named(("nothing",))


def test_a_curve_of_an_unknown_kind_or_of_uneven_length_is_refused() -> None:
    with pytest.raises(ValueError, match="kind must be one of certified"):
        Curve("a", "true", [1.0], [1.0])
    with pytest.raises(ValueError, match="equally long"):
        Curve("a", "guide", [1.0, 2.0], [1.0])


def test_stored_curves_are_recognised_and_unsound_ones_are_below_the_truth() -> None:
    every = rows_of("koskela-2023-figure-4")
    rows = [row for row in every if row["panel"] == "formulas, one round"]
    truth = at(rows, "weak", 1.0)
    for series in ("Theorem 16, independent counts", "clones with p = 1/(E+k-1)"):
        found = at(rows, series, 1.0)
        assert found["kind"] == "unsound"
        assert float(found["x"]) == float(truth["x"])
        assert float(found["value"]) < float(truth["lower"])
    from shuffledp.literature.as_published.koskela_2023 import strong_figure_as_published

    stored = [row for row in every if row["kind"] == "stored" and row["panel"].endswith(" 1 round")]
    points = [row for row in stored if row["series"] == "strong"]
    assert len(points) == 5
    weak = [float(row["value"]) for row in every if row["series"] == "weak, 1 round"]
    assert weak == pytest.approx([1.0] * 5, abs=2e-3)  # the stored weak epsilons are the blanket's
    for row in points:
        again = strong_figure_as_published(1000, 4, 0.25, float(row["x"]))
        assert again == pytest.approx(float(row["value"]), rel=2e-3)


def test_table_4_comes_back_from_the_printed_formula_and_is_far_below_the_truth() -> None:
    result = quickly("biswas-2022-table-4")
    (table,) = result.tables
    printed, again, lower = (
        np.array([float(row[i]) for row in table.rows])
        for i in map(table.columns.index, ("Table IV", "as printed", "certified lower"))
    )
    assert np.count_nonzero(np.abs(printed / again - 1.0) < 0.01) == 25
    assert len(table.rows) == 28
    assert (again < 1e-4 * lower).all()


def test_table_2_for_a_hundred_users_comes_back_from_the_printed_formula() -> None:
    result = quickly("biswas-2022-table-2")
    rows = result.tables[0].rows
    assert all(float(row[2]) == pytest.approx(float(row[1]), rel=0.02) for row in rows)
    assert all(float(row[2]) < 1e-10 * float(row[5]) for row in rows)


def test_the_factor_of_17_is_that_of_advanced_composition() -> None:
    result = quickly("girgis-2021-factor")
    factors = {row[0]: float(row[2]) for row in result.tables[0].rows}
    assert factors["ε₀, subsampled, Dwork-Rothblum-Vadhan"] == pytest.approx(17.7, abs=0.05)
    assert factors["the same, closed form (their Theorem 3.4)"] == pytest.approx(13.25, abs=0.02)
    assert factors["certified, any 3-LDP randomizer"] < 0.1


def test_the_mnist_page_has_both_numbers_of_the_paper_s_analysis() -> None:
    rows = rows_of("girgis-2021-figure-6")
    ends = [row for row in rows if row["series"] == "Theorem 1"]
    assert float(ends[-1]["x"]) == pytest.approx(5.7946, abs=1e-3)
    certified = [row for row in rows if row["series"] == "certified, PrivUnit's best cap"]
    assert float(certified[-1]["x"]) < 0.6


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.8])
def test_one_gaussian_report_has_the_closed_form_of_the_gaussian_mechanism(epsilon: float) -> None:
    lower, upper = (float(end[0]) for end in shuffled_gaussians(2.0, 1, 400, np.array([epsilon])))
    assert lower <= gaussian_delta(epsilon, 2.0) <= upper
    assert upper - lower < 5e-4


def test_two_shuffled_gaussians_are_enclosed_as_a_double_integral_says() -> None:
    """Midpoint rule on the plane: error below 1e-6."""
    t = np.linspace(-16.0, 17.0, 3301)
    t = 0.5 * (t[1:] + t[:-1])
    density = np.exp(-(t**2) / 8.0) / math.sqrt(8.0 * math.pi) * (t[1] - t[0])
    ratio = np.exp((2.0 * t - 1.0) / 8.0)
    for epsilon in (0.1, 0.5):
        mean = 0.5 * (ratio[:, None] + ratio[None, :])
        excess = np.maximum(mean - math.exp(epsilon), 0.0)
        truth = float(density @ excess @ density)
        lower, upper = (float(end[0]) for end in shuffled_gaussians(2.0, 2, 80, np.array([epsilon])))
        assert lower <= truth + 1e-6
        assert truth - 1e-6 <= upper <= truth * 1.03


@pytest.mark.parametrize(("epsilon0", "n"), [(1.0, 50), (4.0, 300)])
def test_the_pair_of_2021_is_that_of_the_enumerated_laws(epsilon0: float, n: int) -> None:
    from shuffledp.literature.as_published.koskela_2021 import clones_as_published

    pair = transcribed_2021(epsilon0, n)
    for epsilon in (0.1, 0.5):
        truth = clones_as_published(epsilon0, n, epsilon)
        upper = pair.upper_delta(epsilon=epsilon)
        assert truth * (1.0 - 1e-9) <= upper <= truth * 1.01


def test_the_variance_of_a_sum_is_that_of_its_enumerated_reports() -> None:
    plan = Plan(n=7, k=3, gamma=0.4)
    for x in (0.0, 0.4, 0.5, 1.0):
        below = math.floor(x * 3)
        law = np.full(4, 0.1)
        law[below] += 0.6 * (1.0 - (3 * x - below))
        if 3 * x > below:
            law[below + 1] += 0.6 * (3 * x - below)
        value = np.arange(4) / 3.0
        variance = law @ value**2 - (law @ value) ** 2
        expected = 7 * variance / 0.6**2
        assert plan.variance(np.array([x]))[0] == pytest.approx(expected, rel=1e-12)


def test_the_simulated_error_of_a_sum_is_the_exact_one() -> None:
    """400 runs: the ratio of squared errors is within 0.3 of one except once in 10^5 times."""
    plan = Plan(n=2000, k=6, gamma=0.1)
    found = simulated(plan, 400)
    assert (found / plan.worst[1]) ** 2 == pytest.approx(1.0, abs=0.3)


def test_certified_sums_lie_between_the_lower_bound_and_the_paper_s() -> None:
    rows = rows_of("balle-2019-summation")
    ours = [row for row in rows if row["series"].startswith("calibrated")]
    theirs = [row for row in rows if row["series"].startswith("with Theorem 3.1")]
    for mine, yours in zip(ours, theirs, strict=True):
        least = least_single_message_error(int(float(mine["x"])), 1.0, 1e-6)
        assert least < float(mine["value"]) < float(yours["value"])


def test_places_are_counted_in_the_paper_s_cells_or_in_a_box_of_their_own(tmp_path: Path) -> None:
    south, north, west, east = cities.SAN_FRANCISCO
    file = tmp_path / "somewhere.csv.gz"
    with gzip.open(file, "wt") as out:
        out.write("latitude,longitude,checkins\n")
        out.write(f"{south},{west},3\n{north},{east},5\n")
    city = cities.read(file)
    assert (city.name, city.grid, city.total) == ("San Francisco", (24, 17), 8)
    assert city.counts[0] == 3
    assert city.counts[-1] == 5
    assert city.as_map(city.counts)[-1, -1] == 5
    assert np.array(city.places) == pytest.approx(np.array([[0.0, 24.0], [0.0, 17.0]]))
    other = tmp_path / "new_town.csv"
    other.write_text("latitude,longitude\n0,0\n0,0\n1,1\n")
    town = cities.read(other)
    assert (town.name, town.counts[0], town.counts[-1]) == ("New Town", 2, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lat,long\n1,2\n", "latitude, longitude"),
        ("latitude,longitude\n", "at least one place"),
        ("latitude,longitude\nnorth,2\n", "could not convert"),
    ],
)
def test_a_file_that_is_no_list_of_places_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "bad.csv"
    file.write_text(text)
    with pytest.raises(ValueError, match=message):
        cities.cities(file)


def test_an_empty_folder_of_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="folder with csv files"):
        cities.cities(tmp_path)


def test_a_synthetic_city_says_so_on_its_page_and_is_the_same_every_time() -> None:
    assert (cities.synthetic().counts == cities.synthetic().counts).all()
    assert "synthetic" in missing_on_the_page("biswas-2022-table-6", QUICK)


def test_given_data_is_named_on_the_page(tmp_path: Path) -> None:
    south, _, west, _ = cities.SAN_FRANCISCO
    file = tmp_path / "sf.csv"
    rng = np.random.default_rng(3)
    places = rng.uniform([south, west], [south + 0.07, west + 0.13], size=(600, 2))
    rows = "".join(f"{a},{b},10\n" for a, b in places)
    file.write_text("latitude,longitude,checkins\n" + rows)
    missing = missing_on_the_page("biswas-2022-figure-6", Setting(True, file))
    assert "San Francisco (sf.csv, 6,000 check-ins)" in missing
    assert "public subset" in missing
    assert "not the paper's data" in missing


def test_the_paper_s_comparison_has_delta_zero() -> None:
    """Biswas et al. compare at epsilon = epsilon0, where no Gaussian mechanism exists."""
    survey = sdp.Shuffled(sdp.KaryRandomizedResponse(k=15, epsilon0=4.0), n=1000)
    assert survey.delta(epsilon=4.0).upper == 0.0
    for n_x0 in (0, 1, 70, 500, 999):  # by the printed formula, too
        assert one_bin_delta_as_published(4.0, 1000, n_x0, 15, 4.0) == 0.0


DOCUMENTED = Path(__file__).parents[2] / "docs" / "papers"
LONG = {
    *("balle-2019-figure-3", "balle-2019-summation", "koskela-2023-figure-1"),
    *("girgis-2021-figure-4", "girgis-2021-figure-5"),
}
QUICKLY = ("balle-2019-figure-2", "biswas-2022-table-2")
DATA = {item.name for item in ITEMS if item.uses_data}


@pytest.mark.quick
def test_page_numbers_and_picture_in_the_documentation_belong_together() -> None:
    """Each was made in full from the current template, and drawn by the current code from those numbers."""
    assert [why for item in ITEMS if (why := runner.stale(item, DOCUMENTED))] == []
    for item in ITEMS:
        stamp = made_with((DOCUMENTED / f"{item.name}.md").read_text(encoding="utf-8")) or {}
        assert (stamp["item"], stamp["quick"]) == (item.name, False)


@pytest.mark.quick
def test_papers_and_index_in_the_documentation_say_what_their_items_say() -> None:
    found = runner.leading_pages(DOCUMENTED)
    assert len(found) == len(PAPERS)
    for name, text in found.items():
        assert (DOCUMENTED / f"{name}.md").read_text(encoding="utf-8") == text
    assert (DOCUMENTED / "index.md").read_text(encoding="utf-8") == index(found)
    known = {path.stem for path in DOCUMENTED.glob("*.md")}
    assert known == {item.name for item in ITEMS} | set(found) | {"index"}
    assert sum(path.stat().st_size for path in DOCUMENTED.glob("*.png")) < 4_000_000


@pytest.mark.quick
def test_every_page_that_speaks_of_the_authors_code_names_a_commit() -> None:
    named = 0
    for item in ITEMS:
        text = body((DOCUMENTED / f"{item.name}.md").read_text(encoding="utf-8"))
        theirs = re.sub(r"studies/[\w/]+\.py", "", text)
        if re.search(r"\w\.(?:py|ipynb|p)\b|\bscript|\bnotebook|authors' code|repository", theirs):
            named += 1
            assert re.search(r"\b(?=\w*\d)[0-9a-f]{7}\b", text), item.name
    assert named > 7


def fresh(name: str, data: Path | None = None) -> None:
    """The committed page is what the code makes today: values within 0.2% of their decades, the same prose
    but for digits, the same labels, colours and marks in the picture; simulations (seeded) within 15%."""
    item = BY_NAME[name]
    result = item.run(Setting(False, data, sdp.__version__))
    committed = list(csv.DictReader((DOCUMENTED / f"{name}.csv").read_text(encoding="utf-8").splitlines()))
    today = list(csv.DictReader(numbers(result).splitlines()))
    assert len(committed) == len(today)
    for old, new in zip(committed, today, strict=True):
        assert [old[key] for key in ("panel", "series", "kind")] == [
            new[key] for key in ("panel", "series", "kind")
        ]
        loose = 0.15 if new["kind"] in ("measured", "check") else 0.0
        assert all(close(old[key], new[key], loose) for key in ("x", "y", "value", "lower")), (old, new)
    assert looks(result).encode() in (DOCUMENTED / f"{name}.png").read_bytes()
    text = page(item, result, {})
    then, now = body((DOCUMENTED / f"{name}.md").read_text(encoding="utf-8")), body(text)
    assert PRINTED.sub("#", then) == PRINTED.sub("#", now)
    loose = 0.15 if any(row["kind"] in ("measured", "check") for row in today) else 0.0
    said = zip(PRINTED.findall(then), PRINTED.findall(now), strict=True)
    assert [(a, b) for a, b in said if not alike(a, b, loose)] == []


PRINTED = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?")


def alike(old: str, new: str, loose: float) -> bool:
    """Numbers as printed: the same, one apart in the last digit, or as close as the values behind them."""
    old, new = old.replace(",", ""), new.replace(",", "")
    digits, _, power = new.partition("e")
    last = 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
    return abs(float(old) - float(new)) <= 1.01 * last or close(old, new, loose)


def close(old: str, new: str, loose: float) -> bool:
    if not (old and new):
        return old == new
    a, b = float(old), float(new)
    if a == b:
        return True
    if a * b <= 0.0:
        return False
    decades = abs(math.log10(a / b))
    return decades <= 0.002 * (1.0 + abs(math.log10(abs(b)))) + math.log10(1.0 + loose)


@pytest.fixture(scope="module")
def checkins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the check-ins are, as SHUFFLEDP_CHECKINS says. They are not in the repository, but their places
    are, and how many are in each cell, in the numbers of Figure 3: the first place of a cell has all but one
    of each other."""
    if given := os.environ.get("SHUFFLEDP_CHECKINS"):
        return Path(given)
    folder = tmp_path_factory.mktemp("checkins")
    with (DOCUMENTED / "biswas-2022-figure-3.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    for name, ((south, north, west, east), (columns, wide)) in cities.BOXES.items():
        with gzip.open(folder / f"{name.lower().replace(' ', '_')}.csv.gz", "wt") as out:
            out.write("latitude,longitude,checkins\n")
            left = {}
            for row in rows:
                found = re.fullmatch(rf"\([cd]\) {name}, ([\d,]+) check-ins", row["panel"])
                if found and row["value"]:
                    count = int(found[1].replace(",", "")) * 10.0 ** float(row["value"])
                    left[int(float(row["x"])), int(float(row["y"]))] = round(count)
            places = [
                (float(row["x"]), float(row["value"]))
                for row in rows
                if re.fullmatch(rf"\([ab]\) {name}, .* places", row["panel"])
            ]
            others = Counter((int(x), int(y)) for x, y in places)
            for x, y in places:
                count = left.pop((int(x), int(y)), others[int(x), int(y)]) - others[int(x), int(y)] + 1
                latitude, longitude = south + (north - south) * y / wide, west + (east - west) * x / columns
                out.write(f"{latitude},{longitude},{count}\n")
            assert not left
    return folder


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=[pytest.mark.quick] * (name in QUICKLY) + [pytest.mark.slow] * (name in LONG)
        )
        for name in sorted(BY_NAME)
    ],
)
def test_the_committed_numbers_are_today_s(name: str, checkins: Path) -> None:
    fresh(name, checkins if name in DATA else None)


def test_a_changed_number_picture_or_template_is_found_out(tmp_path: Path) -> None:
    item = BY_NAME["balle-2019-figure-2"]
    runner.reproduce([item], QUICK, tmp_path)
    assert runner.stale(item, tmp_path) == ""
    table = tmp_path / f"{item.name}.csv"
    whole = table.read_text(encoding="utf-8")
    table.write_text(whole.replace("0.5", "0.6", 1), encoding="utf-8")
    assert "other numbers" in runner.stale(item, tmp_path)
    table.write_text(whole, encoding="utf-8")
    (tmp_path / f"{item.name}.png").write_bytes(b"\x89PNG")
    assert "was drawn" in runner.stale(item, tmp_path)
    assert "template" in runner.stale(replace(item, template=item.template + " More."), tmp_path)
    (tmp_path / f"{item.name}.png").unlink()
    runner.reproduce([item], QUICK, tmp_path)
    said = tmp_path / f"{item.name}.md"
    said.write_text(said.read_text(encoding="utf-8").replace("0.606531", "0.616531", 1), encoding="utf-8")
    assert "was changed" in runner.stale(item, tmp_path)
    assert not alike("0.2804", "0.2904", 0.0)
    assert alike("0.2804", "0.2805", 0.0)
    assert not alike("1.2e-30", "1.2e-31", 0.0)
    assert alike("17,700", "17,701", 0.0)
    assert not close("0.5", "0.51", 0.0)
    assert close("0.5", "0.501", 0.0)
    assert not close("1e-30", "1e-31", 0.0)


def test_another_label_colour_or_mark_is_another_look() -> None:
    (panel,) = tiny().run(QUICK).panels
    assert isinstance(panel, Panel)
    (curve,) = panel.curves
    others = (
        replace(panel, x_label="z"),
        replace(panel, marks={1.0: "here"}),
        replace(panel, y_log=True),
        replace(panel, curves=[replace(curve, hue="certified")]),
        replace(panel, curves=[replace(curve, line=":")]),
    )
    assert len({looks(Figure([each])) for each in (panel, *others)}) == 6
    moved = replace(panel, curves=[replace(curve, y=2.0 * curve.y)])
    assert looks(Figure([moved])) == looks(Figure([panel]))  # numbers have a digest of their own


def test_a_method_has_one_colour_in_all_pictures_and_no_lower_bound_is_called_wrong() -> None:
    seen: dict[str, set[str]] = {}
    for name in (
        "koskela-2023-figure-3",
        "girgis-2021-figure-5",
        "girgis-2021-factor",
        "biswas-2022-table-5",
    ):
        for panel in quickly(name).panels:
            assert isinstance(panel, Panel)
            for curve in panel.curves:
                if curve.hue:
                    seen.setdefault(curve.name, set()).add(HUES[curve.hue])
                if curve.name.startswith("Theorem 2"):
                    assert curve.kind == "lower"
    assert all(len(colours) == 1 for colours in seen.values()), seen


def test_numbers_on_the_pages_of_the_papers_are_those_of_their_items() -> None:
    """These pages have no places for numbers; the few that stand there are checked."""
    biswas, girgis = (
        _template.read(f"shuffledp.papers.{name}", "_paper.md") for name in ("biswas_2022", "girgis_2021")
    )
    below = quickly("biswas-2022-table-2").numbers["below"]
    least = quickly("biswas-2022-table-4").numbers["orders"][0]
    assert f"by {least:.0f} to {below['n1000'][1]:.0f} orders of magnitude" in biswas
    at: Any = {"epsilon0": 2.0, "cohort": 2000, "population": 60_000, "rounds": 6000, "delta": 1e-5}
    mixed = girgis_2021_epsilon(**at, orders=range(2, 9), divergence=girgis_2021_mixed_upper)
    assert f"{mixed:.2f} instead of {girgis_2021_epsilon(**at):.2f}" in " ".join(girgis.split())
    saved = []
    for number in (4, 5):
        with (DOCUMENTED / f"girgis-2021-figure-{number}.csv").open(encoding="utf-8", newline="") as lines:
            known = {(row["panel"], row["x"], row["series"]): row["value"] for row in csv.DictReader(lines)}
        at_all = {key[:2] for key in known}
        saved += [float(known[*at, "Theorem 1"]) / float(known[*at, "certified"]) for at in at_all]
    assert f"{min(saved):.0f} to {max(saved):.0f} times less" in girgis


def values(name: str, panel: str) -> dict[tuple[str, float], float]:
    """(series, x) -> value in the committed numbers of a panel."""
    with (DOCUMENTED / f"{name}.csv").open(encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["panel"].startswith(panel)]
    return {(row["series"], float(row["x"])): float(row["value"]) for row in rows}


def test_prose_of_the_papers_and_of_the_errata_says_what_the_numbers_say() -> None:
    koskela, balle = (
        _template.read(f"shuffledp.papers.{name}", "_paper.md") for name in ("koskela_2023", "balle_2019")
    )
    errata = (DOCUMENTED.parent / "explanation" / "errata.md").read_text(encoding="utf-8")
    ratios = [
        value
        for (series, _), value in values("koskela-2023-figure-4", "stored over").items()
        if "weak" in series
    ]
    assert len(ratios) == 15
    off = f"to {max(abs(100 * (ratio - 1)) for ratio in ratios):.1f}%"
    assert f"4, {off}" in koskela
    assert f"agrees with the blanket {off}" in errata
    drawn = values("koskela-2023-figure-3", "stored over ours")
    assert 7.0 < drawn["Fourier accountant", 1e4] < 8.0
    assert "more than seven times too" in errata
    lower = {x: value for (series, x), value in drawn.items() if series == "certified lower end"}
    assert [drawn["Fourier accountant", x] < lower[x] for x in sorted(lower)] == [True] * 3 + [False] * 4
    allowed = values("balle-2019-figure-3", "(iii)")
    sizes = sorted({x for _, x in allowed})
    better = {
        name: [x for x in sizes if allowed[f"Bennett, {name}", x] > allowed[f"Hoeffding, {name}", x]]
        for name in ("RR-2", "Laplace", "RR-100")
    }
    later = [x for x in sizes if x >= 562]
    assert better == {"RR-2": [], "Laplace": later, "RR-100": sizes}
    assert "n = 562 on" in balle
    below = quickly("biswas-2022-table-2").numbers["below"]
    orders = quickly("biswas-2022-table-4").numbers["orders"]
    few, many = (f"{below[n][0]:.0f} to {below[n][1]:.0f}" for n in ("n100", "n1000"))
    assert f"{few} orders of magnitude (Table II, n = 100), {many} (n = 1000)" in errata
    assert f"{orders[0]:.0f} to {orders[1]:.0f} (Table IV)" in errata
    assert (1 - 1 / (math.exp(4.0) + 1)) ** (10**4 - 1) < 1e-13  # Lemma 11 at n = 10^4


def test_the_page_of_the_study_states_the_epsilons_of_the_learning_figure() -> None:
    with (DOCUMENTED / "girgis-2021-figure-6.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    study = (DOCUMENTED.parent / "mnist.md").read_text(encoding="utf-8")
    for rounds in (1500, 6000):
        place = list(girgis_2021.MNIST).index(rounds)
        theorem, clones, best = (
            [float(row["x"]) for row in rows if row["series"] == series][place]
            for series in ("Theorem 1", "certified, any randomizer", "certified, PrivUnit's best cap")
        )
        assert f"| {rounds:,} | {theorem:.2f} | {clones:.3f} | {best:.3f} |" in study
    assert f"**{clones:.3f} certified** | 90.40%" in study
    assert f"**{best:.3f} certified** | 90.93%" in study


def test_the_convex_numbers_are_those_of_the_study() -> None:
    path = Path(__file__).resolve().parents[2] / "studies" / "convex" / "convergence.csv"
    with path.open(encoding="utf-8", newline="") as lines:
        rows = {int(row["rounds"]): float(row["mean_gap"]) for row in csv.DictReader(lines)}
    assert rows == girgis_2021.CONVEX


def test_the_accuracies_of_the_learning_figure_are_those_of_the_study() -> None:
    """They are measured by the study, not by the figure: the numbers must not drift apart."""
    folder = Path(__file__).resolve().parents[2] / "studies" / "mnist"
    kept = {"paper": ("curves.csv", girgis_2021.MNIST), "authors": ("authors.csv", girgis_2021.AUTHORS)}
    for run_of, (file, means) in kept.items():
        with (folder / file).open(encoding="utf-8", newline="") as lines:
            rows = [row for row in csv.DictReader(lines) if row["run"] == run_of]
        for rounds, accuracy in means.items():
            seen = [float(row["test_accuracy"]) for row in rows if int(row["round"]) == rounds]
            assert len(seen) == 5
            assert sum(seen) / 5 == pytest.approx(accuracy, abs=6e-5)
