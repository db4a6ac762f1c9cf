"""The commands answer what the library answers, rounded outward, or in full for machines."""

import json
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

import shuffledp as sdp
from shuffledp import HadamardResponse, SubsetSelection
from shuffledp.accounting._analyses import NAMES
from shuffledp.cli.questions import ANALYSES

Run = Callable[..., Result]

SIXTEEN = sdp.KaryRandomizedResponse(k=16, epsilon0=4.0)
NOISE = [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]]


def answer(result: Result) -> Any:
    """The JSON object of a run that went well and said nothing else."""
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return json.loads(result.stdout)


def shown(result: Result, name: str) -> str:
    """The first word beside a name in the table."""
    found = re.search(rf"^  {name} +(\S+)", result.stdout, re.MULTILINE)
    assert found, result.output
    return found[1]


@pytest.mark.parametrize(
    ("options", "randomizer"),
    [
        ("--krr 16 --epsilon0 4", SIXTEEN),
        ("--krr 4 --gamma 0.25", sdp.KaryRandomizedResponse(k=4, gamma=0.25)),
        ("--binary --epsilon0 1", sdp.BinaryRandomizedResponse(epsilon0=1.0)),
        ("--subset 8 --size 3 --epsilon0 2", SubsetSelection(k=8, epsilon0=2.0, size=3)),
        ("--hadamard 8 --epsilon0 2", HadamardResponse(k=8, epsilon0=2.0)),
        ("--laplace --epsilon0 2 --levels 4", sdp.DiscreteLaplace(epsilon0=2.0, levels=4)),
        ("--gaussian 1.5", sdp.DiscreteGaussian(sigma=1.5)),
        ("--local --epsilon0 2", sdp.LocalRandomizer(epsilon0=2.0)),
        ("--epsilon0 2", sdp.LocalRandomizer(epsilon0=2.0)),
        ("--epsilon0 2 --total-variation 0.3", sdp.LocalRandomizer(2.0, 0.3)),
    ],
)
def test_every_randomizer_gets_the_answer_of_the_library(
    shuffledp: Run, options: str, randomizer: Any
) -> None:
    found = answer(shuffledp(f"epsilon {options} --n 5_000 --delta 1e-6 --json"))
    expected = sdp.Shuffled(randomizer, n=5000).epsilon(delta=1e-6)
    assert (found["lower"], found["upper"]) == (expected.lower, expected.upper)


def test_rounds_cohorts_analysis_and_tolerance_reach_the_library(shuffledp: Run) -> None:
    line = (
        "delta --krr 16 --epsilon0 4 --n 1e4 --population 1e6 --rounds 30 --analysis clones "
        "--tolerance 0.01 --epsilon 0.03 --json"
    )
    one = sdp.Shuffled(SIXTEEN, n=10**4, analysis="clones").sampled_from(10**6)
    expected = (30 * one).delta(epsilon=0.03, tolerance=0.01)
    found = answer(shuffledp(line))
    assert (found["lower"], found["upper"]) == (expected.lower, expected.upper)
    assert found["analysis"] == "clones"
    assert found["inputs"] == {
        "epsilon": 0.03,
        "krr": 16,
        "epsilon0": 4.0,
        "n": 10_000,
        "rounds": 30,
        "population": 1_000_000,
        "honest_fraction": 1.0,
        "analysis": "clones",
        "tolerance": 0.01,
    }
    assert found["version"] == sdp.__version__


@pytest.mark.parametrize(
    ("options", "described"),
    [
        ("--n 1e3 --population 1e5 --honest-fraction 0.9", {"n": 1000, "honest_fraction": 0.9}),
        ("--n 1e3 --population 1e5 --poisson", {"n": 1000, "rate": 0.01}),
        (
            "--rate 0.01 --population 1e5 --honest-fraction 0.5",
            {"n": 1000, "rate": 0.01, "honest_fraction": 0.5},
        ),
    ],
)
def test_who_takes_part_and_who_is_honest_reach_the_library(
    shuffledp: Run, options: str, described: dict[str, Any]
) -> None:
    expected = sdp.Shuffled(SIXTEEN, population=10**5, **described)
    line = f"epsilon --krr 16 --epsilon0 4 {options} --delta 1e-6"
    found = answer(shuffledp(line + " --json"))
    bound = expected.epsilon(delta=1e-6)
    assert (found["lower"], found["upper"]) == (bound.lower, bound.upper)
    assert found["inputs"]["honest_fraction"] == expected.honest_fraction
    said = shuffledp(line).stdout
    assert ("coin" in said) == (expected.rate is not None)
    assert (f"{expected.honest:,} users are honest" in said) == (expected.honest_fraction < 1.0)


@pytest.mark.parametrize(
    ("line", "sign"),
    [
        ("epsilon --krr 4 --epsilon0 2 --n 1e3 --delta 1e-6", 1),
        ("epsilon --krr 4 --epsilon0 2 --n 54000 --population 1.2e6 --delta 1e-6", 1),
        ("epsilon --krr 4 --epsilon0 2 --rate 0.05 --population 1e5 --delta 1e-6", 1),
        ("delta --krr 4 --epsilon0 2 --n 1e3 --rounds 3 --epsilon 0.2", 1),
        ("compare --epsilon0 2 --n 1e3 --delta 1e-6", 1),
        ("groups 1:500 2:500 --krr 4 --delta 1e-6", 1),
        ("calibrate --krr 4 --n 1e3 --epsilon 0.2 --delta 1e-6", -1),
    ],
)
def test_dishonest_people_never_make_an_answer_better(shuffledp: Run, line: str, sign: int) -> None:
    found = [answer(shuffledp(f"{line} --honest-fraction {share} --json")) for share in (1, 0.9, 0.5)]
    values = [sign * (one["upper"] if sign > 0 else one["value"]) for one in found]
    assert values[0] < values[1] < values[2]


@pytest.mark.parametrize("noise", ["gaussian", "matrix"])
def test_groups_that_epsilon0_does_not_tell_are_refused_in_words(
    shuffledp: Run, tmp_path: Path, noise: str
) -> None:
    written = tmp_path / "noise.json"
    written.write_text(json.dumps(NOISE), encoding="utf-8")
    given = 1 if noise == "gaussian" else written
    said = shuffledp(f"groups 1:500 2:2000 --{noise} {given} --delta 1e-6")
    assert said.exit_code == 2
    assert f"told by epsilon0, which --{noise} does not take" in said.stderr


@pytest.mark.parametrize(
    ("line", "analysis"),
    [
        ("epsilon --binary --epsilon0 1 --n 1000 --delta 1e-6", "exact"),
        ("epsilon --krr 4 --epsilon0 1 --n 1000 --delta 1e-6 --rounds 3", "blanket"),
        ("epsilon --krr 4 --epsilon0 1 --n 1000 --delta 1e-6", "blanket"),
        ("epsilon --krr 4 --epsilon0 1 --n 1000 --delta 1e-6 --population 1e6", "blanket"),
        ("epsilon --krr 4 --epsilon0 1 --n 1000 --delta 1e-6 --analysis strong", "strong"),
        ("epsilon --epsilon0 1 --n 1000 --delta 1e-6", "crowd"),
        ("epsilon --epsilon0 1 --n 100 --delta 1e-6", "clones"),
        ("delta --binary --epsilon0 1 --n 1000 --epsilon 5", "exact"),
    ],
)
def test_the_analysis_that_answered_is_named(shuffledp: Run, line: str, analysis: str) -> None:
    assert answer(shuffledp(line + " --json"))["analysis"] == analysis
    assert shown(shuffledp(line), "analysis") == analysis


def test_every_analysis_of_the_library_can_be_chosen() -> None:
    assert ANALYSES == NAMES


def test_the_table_shows_both_ends_rounded_outward(shuffledp: Run) -> None:
    bound = (30 * sdp.Shuffled(SIXTEEN, n=10**6)).epsilon(delta=1e-8)
    result = shuffledp("epsilon --krr 16 --epsilon0 4 --n 1e6 --rounds 30 --delta 1e-8")
    upper, lower = shown(result, "upper"), shown(result, "lower")
    assert bound.upper <= float(upper) <= bound.upper * 1.0001
    assert bound.lower * 0.9999 <= float(lower) <= bound.lower
    assert result.stdout.startswith(f"epsilon <= {upper} at delta = 1e-8\n")
    assert shown(result, "rounds") == "30"
    assert shown(result, "randomizer").startswith("KaryRandomizedResponse(k=16,")


def test_an_infinite_epsilon_is_an_answer_and_valid_json(shuffledp: Run, tmp_path: Path) -> None:
    file = tmp_path / "revealing.json"
    file.write_text("[[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]")
    line = f"epsilon --matrix {file} --n 3 --delta 1e-8"
    assert answer(shuffledp(line + " --json"))["upper"] == "Infinity"
    assert shuffledp(line).stdout.startswith("epsilon <= inf at delta")


@pytest.mark.parametrize("suffix", [".csv", ".json", ".npy"])
def test_a_matrix_is_read_from_every_kind_of_file(shuffledp: Run, tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"noise{suffix}"
    if suffix == ".npy":
        np.save(file, np.array(NOISE))
    elif suffix == ".json":
        file.write_text(json.dumps(NOISE))
    else:
        file.write_text("\n".join(", ".join(map(str, row)) for row in NOISE) + "\n\n")
    found = answer(shuffledp(f"epsilon --matrix {file} --n 1000 --delta 1e-6 --json"))
    expected = sdp.Shuffled(sdp.FiniteRandomizer(NOISE), n=1000).epsilon(delta=1e-6)
    assert found["upper"] == expected.upper
    assert found["inputs"]["matrix"] == str(file)


@pytest.mark.parametrize(
    ("unknown", "options", "arguments"),
    [
        ("epsilon0", "--krr 4 --n 1e4", {"k": 4, "n": 10**4}),
        ("gamma", "--krr 4 --n 1e4", {"k": 4, "n": 10**4}),
        ("n", "--krr 16 --epsilon0 4", {}),
        ("rounds", "--krr 16 --epsilon0 4 --n 1e4", {"n": 10**4}),
        ("cohort", "--krr 16 --epsilon0 4 --population 1e6", {"population": 10**6}),
        ("epsilon0", "--krr 4 --population 1e6 --rate 0.01", {"k": 4, "population": 10**6, "rate": 0.01}),
        ("rounds", "--krr 16 --epsilon0 4 --population 1e6 --rate 0.01", {"population": 10**6, "rate": 0.01}),
    ],
)
def test_calibrate_finds_every_parameter_that_the_library_finds(
    shuffledp: Run, unknown: str, options: str, arguments: dict[str, Any]
) -> None:
    line = f"calibrate --solve-for {unknown} {options} --epsilon 0.5 --delta 1e-6"
    local = unknown in ("epsilon0", "gamma")
    expected = sdp.calibrate(
        sdp.KaryRandomizedResponse if local else SIXTEEN,
        solve_for=unknown,
        epsilon=0.5,
        delta=1e-6,
        **arguments,
    )
    found = answer(shuffledp(line + " --json"))
    assert (found["parameter"], found["value"]) == (unknown, expected.value)
    assert found["upper"] == expected.epsilon.upper <= 0.5
    headline = shuffledp(line).stdout.splitlines()[0]
    words = re.fullmatch(rf"{unknown} = (\S+) meets epsilon <= 0.5 at delta = 1e-6", headline)
    assert words, headline
    value = Decimal(words[1].replace(",", ""))
    # The shown value is on the safe side of the certified one, and close to it.
    if unknown == "epsilon0":
        assert Decimal(expected.value) * Decimal("0.9999") <= value <= Decimal(expected.value)
    elif unknown == "gamma":
        assert Decimal(expected.value) <= value <= Decimal(expected.value) * Decimal("1.0001")
    else:
        assert value == expected.value


@pytest.mark.parametrize("given", ["--gaussian", "--gaussian auto", "--gaussian --solve-for sigma"])
def test_the_sigma_that_calibrate_shows_meets_the_goal_when_it_is_asked_about(
    shuffledp: Run, given: str
) -> None:
    line = f"calibrate {given} --n 1e4 --rounds 2 --epsilon 1 --delta 1e-6"
    expected = sdp.calibrate(sdp.DiscreteGaussian, n=10**4, rounds=2, epsilon=1.0, delta=1e-6)
    found = answer(shuffledp(line + " --json"))
    assert (found["parameter"], found["value"]) == ("sigma", expected.value)
    words = re.match(r"sigma = (\S+) meets epsilon <= 1 at delta = 1e-6", shuffledp(line).stdout)
    assert words
    assert expected.value <= float(words[1]) <= expected.value * 1.0001
    assert f"<tr><td>sigma</td><td>{words[1]}</td>" in expected._repr_html_()
    shown = answer(shuffledp(f"epsilon --gaussian {words[1]} --n 1e4 --rounds 2 --delta 1e-6 --json"))
    assert 0.98 <= shown["upper"] <= 1.0


@pytest.mark.parametrize("question", ["--delta 1e-6", "--epsilon 0.3"])
def test_compare_lists_what_the_library_compares(shuffledp: Run, tmp_path: Path, question: str) -> None:
    line = f"compare --krr 4 --epsilon0 2 --n 300 {question}"
    name, level = question.removeprefix("--").split()
    four = sdp.Shuffled(sdp.KaryRandomizedResponse(k=4, epsilon0=2.0), n=300)
    expected = sdp.compare(four, **{name: float(level)})
    found = answer(shuffledp(line + " --json"))
    assert found["lower"] == expected.lower
    assert (found["upper"], found["analysis"]) == (expected.best.value, expected.best.bound)
    values = {row["bound"]: (row["value"], row["soundness"]) for row in found["bounds"]}
    assert values == {row.bound: (row.value, row.soundness) for row in expected}
    picture = tmp_path / "bounds.svg"
    result = shuffledp(f"{line} --plot {picture}")
    assert result.exit_code == 0, result.output
    assert picture.exists()
    for row in expected:
        assert row.bound in result.stdout
        if row.soundness == "unsound":
            assert f"{row.bound}: {row.note}" in result.stdout


@pytest.mark.parametrize("options", ["--n 300 --poisson", "--rate 0.1", "--n 300 --honest-fraction 0.9"])
def test_compare_says_why_no_published_bound_is_shown(shuffledp: Run, options: str) -> None:
    line = f"compare --krr 4 --epsilon0 2 --population 3e3 {options} --delta 1e-3"
    result = shuffledp(line)
    assert result.exit_code == 0, result.output
    assert result.stdout.count("  No published bound is shown: they are about ") == 1
    assert answer(shuffledp(line + " --json"))["left_out"] in result.stdout
    assert "No published" not in shuffledp("compare --krr 4 --epsilon0 2 --n 300 --delta 1e-3").stdout


@pytest.mark.parametrize(
    "line",
    [
        "epsilon --krr 4 --epsilon0 2 --n 300 --delta 1e-6",
        "delta --krr 4 --epsilon0 2 --n 300 --epsilon 0.3",
        "compare --krr 4 --epsilon0 2 --n 300 --delta 1e-6",
        "curve --krr 4 --epsilon0 2 --n 300 --points 3",
        "calibrate --solve-for rounds --krr 4 --epsilon0 2 --n 300 --epsilon 0.7 --delta 1e-6",
    ],
)
def test_the_gaussian_limit_stands_beside_every_answer(shuffledp: Run, line: str) -> None:
    mechanism = sdp.Shuffled(sdp.KaryRandomizedResponse(k=4, epsilon0=2.0), n=300)
    limit = mechanism.gaussian_limit()
    found = answer(shuffledp(f"{line} --json"))
    assert found["gaussian_limit_mu"] == {"lower": limit.lower, "upper": limit.upper}
    assert found["shuffle_index"] == pytest.approx(1.0 / (limit.upper * 300**0.5))
    said = f"mu {limit.upper:.3g}, shuffle index {found['shuffle_index']:.3g}"
    assert any(text.endswith(said) and len(text) < 80 for text in shuffledp(line).stdout.splitlines())


def test_a_statement_is_text_json_or_a_registry_record_by_its_suffix(shuffledp: Run, tmp_path: Path) -> None:
    question = "epsilon --krr 4 --epsilon0 1 --n 1,000 --delta 1e-5"
    mechanism = sdp.Shuffled(sdp.KaryRandomizedResponse(k=4, epsilon0=1.0), n=1000)
    statement = mechanism.statement(delta=1e-5)
    for name, text in [
        ("a.txt", statement.text),
        ("a.json", statement.to_json()),
        ("a.yaml", statement.registry()),
    ]:
        assert shuffledp(f"{question} --statement {tmp_path / name}").exit_code == 0
        assert (tmp_path / name).read_text() == text.rstrip("\n") + "\n"


def test_a_large_delta_is_warned_about(shuffledp: Run) -> None:
    question = "epsilon --epsilon0 1 --n 1k --delta 0.01"
    assert "not far below 1/1,000" in shuffledp(question).stderr
    assert json.loads(shuffledp(f"{question} --json").stdout)["warnings"]
