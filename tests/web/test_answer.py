"""``shuffledp.web.answer``: the same numbers as the library, sentences where there is none."""

import json
import re
import shlex
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import shuffledp as sdp
from shuffledp.cli.main import cli
from shuffledp.web import answer
from shuffledp.web._answer import DEFAULT, catalogue
from shuffledp.web._question import read

pytestmark = pytest.mark.quick
SMALL: dict[str, Any] = {"n": "300", "delta": "1e-4"}
VALUES = {"k": "4", "epsilon0": "1.5", "dimension": "8", "sigma": "2"}
THREE = sdp.KaryRandomizedResponse(k=3, epsilon0=1.0)
SHORT = {"laplace": {"levels": "4"}, "gaussian": {"levels": "2", "n": "40"}}


def question_of(entry: dict[str, Any]) -> dict[str, Any]:
    """A small question about a randomizer of the catalogue."""
    needed = {one["name"]: VALUES[one["name"]] for one in entry["parameters"] if not one["optional"]}
    own = needed.pop(entry["takes"]) if entry["takes"] else "1"
    return {entry["option"]: own, **needed, **SMALL, **SHORT.get(entry["option"], {})}


@pytest.mark.parametrize("entry", catalogue(), ids=lambda entry: entry["option"])
def test_every_randomizers_number_is_that_of_the_command_line_and_of_the_copied_code(
    entry: dict[str, Any],
) -> None:
    question = question_of(entry)
    found = answer(question)
    shell = shlex.split(found["shell"])
    printed = CliRunner().invoke(cli, [*shell[1:], "--json"], prog_name=shell[0])
    told = json.loads(printed.stdout)
    names: dict[str, Any] = {}
    exec(found["python"], names)
    assert found["epsilon"]["upper"] == told["upper"] == float(names["bound"])
    assert found["epsilon"]["lower"] == told["lower"]
    assert float(found["epsilon"]["shown"]) >= told["upper"]
    assert float(found["epsilon"]["shown_lower"]) <= told["lower"]
    again = read(found["link"])
    assert again == read(question)  # so that it has the same answer
    assert again.link == found["link"]


def test_no_randomizer_of_the_registry_is_forgotten_but_the_one_that_is_a_file() -> None:
    from shuffledp.randomizers.registry import registered

    assert {entry["option"] for entry in catalogue()} == {entry.option for entry in registered()} - {"matrix"}


def test_the_statement_is_the_librarys_own() -> None:
    found = answer(DEFAULT)
    mechanism = 12 * sdp.Shuffled(sdp.KaryRandomizedResponse(k=5, epsilon0=3.0), n=20_000)
    statement = mechanism.statement(delta=1e-7)
    assert found["statement"] == {"plain": statement.plain, "formal": statement.formal}
    assert found["meaning"] == statement.meaning
    assert found["registry"] == statement.registry()


def test_people_who_hide_nobody_are_counted_down() -> None:
    question = {"krr": 3, "epsilon0": 1, "n": 1001, "delta": 1e-5, "honest_fraction": "90%", "dropout": 0.1}
    found = answer(question)
    assert found["honest"] == 810  # floor(0.9 floor(0.9 * 1001)) = floor(0.9 * 900)
    alone = sdp.Shuffled(sdp.KaryRandomizedResponse(k=3, epsilon0=1.0), n=900, honest_fraction=0.9)
    assert found["epsilon"]["upper"] == alone.epsilon(delta=1e-5).upper
    rows = answer({**question, "ask": "honest"})["rows"]
    assert [row["honest"] for row in rows] == [1001, 950, 900, 800, 500]
    assert [row["upper"] for row in rows] == sorted(row["upper"] for row in rows)


def test_a_cohort_of_which_some_are_silent_is_asked_as_often_as_before() -> None:
    found = answer(
        {"krr": 3, "epsilon0": 1, "n": 1000, "population": 20_000, "delta": 1e-5, "dropout": "10%"}
    )
    asked = sdp.Shuffled(sdp.KaryRandomizedResponse(k=3, epsilon0=1.0), n=900, population=18_000)
    assert asked.fraction >= 1000 / 20_000
    assert found["epsilon"]["upper"] == asked.epsilon(delta=1e-5).upper


@pytest.mark.parametrize(
    ("sizes", "asked"),
    [
        ({"n": "200", "population": "20k", "poisson": "1"}, sdp.Shuffled(THREE, n=200)),
        ({"n": 200, "population": 20_000, "poisson": True, "dropout": "10%"}, sdp.Shuffled(THREE, n=180)),
        ({"rate": "1%", "population": "20k"}, sdp.Shuffled(THREE, n=1)),
        (
            {"rate": 0.01, "population": 20_000, "dropout": 0.1, "honest_fraction": "0.9"},
            sdp.Shuffled(THREE, n=1, honest_fraction=0.9),
        ),
    ],
)
def test_people_who_flip_coins_are_asked_about_as_the_command_line_does(
    sizes: dict[str, Any], asked: sdp.Shuffled
) -> None:
    question = {"krr": 3, "epsilon0": 1, "delta": 1e-5, "rounds": 2, **sizes}
    people = 18_000 if "dropout" in sizes else 20_000
    coins = {"rate": 0.01} if "rate" in sizes else {"poisson": True}
    found = answer(question)
    assert found["epsilon"]["upper"] == (2 * asked.sampled_from(people, **coins)).epsilon(delta=1e-5).upper
    assert found["honest"] == round(0.01 * people * (0.9 if "honest_fraction" in sizes else 1.0))
    shell = shlex.split(found["shell"])
    told = json.loads(CliRunner().invoke(cli, [*shell[1:], "--json"], prog_name=shell[0]).stdout)
    names: dict[str, Any] = {}
    exec(found["python"], names)
    assert told["upper"] == float(names["bound"]) == found["epsilon"]["upper"]
    assert read(found["link"]) == read(question)
    assert "coins of their own" in answer({**question, "ask": "compare"})["left_out"]
    most = answer({**question, "ask": "target", "target": {"epsilon": "0.1", "solve_for": "epsilon0"}})
    assert answer({**question, "epsilon0": most["value"]})["epsilon"]["upper"] <= 0.1


def test_the_gaussian_limit_is_that_of_the_command_line() -> None:
    found = answer(DEFAULT)
    shell = shlex.split(found["shell"])
    told = json.loads(CliRunner().invoke(cli, [*shell[1:], "--json"], prog_name=shell[0]).stdout)
    for name in ("gaussian_limit_mu", "shuffle_index"):
        assert found[name] == told[name]
    printed = CliRunner().invoke(cli, shell[1:], prog_name=shell[0]).stdout
    assert f"limit       {found['limit']}\n" in printed


@pytest.mark.parametrize(
    ("change", "knob", "words"),
    [
        ({"poisson": "1"}, "population", "how many are they"),
        ({"poisson": "maybe"}, "poisson", "1 or 0, got maybe"),
        ({"rate": "0.1"}, "rate", "in place of n"),
        ({"n": "", "rate": "0.1"}, "population", "how many are they"),
        ({"n": "", "rate": "2", "population": "100"}, "rate", "from 0 to 1, got 2"),
        ({"n": "", "rate": "0", "population": "100"}, "rate", "above 0"),
        ({"n": "", "rate": "0.1", "poisson": "1", "population": "100"}, "rate", "leave them out"),
        (
            {"population": "5000", "ask": "target", "target": {"epsilon": "1", "solve_for": "n"}},
            "target",
            "the more is told",
        ),
        ({"n": "0"}, "n", "from 1 to 2\\^53, got 0"),
        ({"n": ""}, "n", "must be given"),
        ({"n": "1.5"}, "n", "whole number"),
        ({"n": "9" * 400}, "n", "whole number"),
        ({"n": "<img src=x onerror=alert(1)>"}, "n", "whole number"),
        ({"n": True}, "n", "whole number"),
        ({"n": [1, 2]}, "n", "whole number"),
        ({"delta": "2"}, "delta", "from 0 to 1"),
        ({"delta": "nan"}, "delta", "a number"),
        ({"epsilon0": "-1"}, "epsilon0", "Local epsilon"),
        ({"rounds": "1e9"}, "rounds", "to 1,000,000"),
        ({"population": "10"}, "population", "at least the people"),
        ({"honest_fraction": "0"}, "honest_fraction", "No honest report"),
        ({"dropout": "100%"}, "honest_fraction", "No honest report"),
        ({"binary": "1"}, "randomizer", "one randomizer; chosen: krr, binary"),
        ({"levels": "4"}, "", "'levels' does not go with krr"),
        ({"v": "7"}, "", "format '7'"),
        ({"ask": "everything"}, "", "ask must be one of"),
        ({"ask": "target"}, "target", "A target is"),
        ({"ask": "target", "target": {"epsilon": "-1"}}, "target", "above 0"),
        ({"ask": "target", "target": {"epsilon": "1", "solve_for": "k"}}, "target", "solve_for"),
        ({"ask": "target", "target": {"margin": "1e-5"}}, "target", "cannot have so small an error"),
    ],
)
def test_what_cannot_be_answered_is_a_sentence(change: dict[str, Any], knob: str, words: str) -> None:
    found = answer({"krr": "4", "epsilon0": "1", "n": "1000", "delta": "1e-5"} | change)
    assert found["knob"] == knob
    assert re.search(words, found["refusal"]), found["refusal"]
    assert "epsilon" not in found


def test_what_is_no_question_at_all_is_a_sentence() -> None:
    nothing: Any = None
    assert "object" in answer(nothing)["refusal"]


def test_all_parts_answer_json() -> None:
    question = {"krr": "4", "epsilon0": "1", "n": "1000", "delta": "1e-5", "rounds": "2"}
    curve = answer({**question, "ask": "curve"})
    assert all(low <= high for _, low, high in curve["points"])
    falling = [high for _, _, high in curve["points"]]
    assert falling == sorted(falling, reverse=True)
    rows = answer({**question, "ask": "compare"})["rows"]
    assert [row["value"] for row in rows] == sorted(row["value"] for row in rows)
    assert all(float(row["shown"]) >= row["value"] for row in rows)
    for part in (curve, rows):
        json.dumps(part, allow_nan=False)


def test_an_unsound_bound_is_told_apart_with_its_reason() -> None:
    found = answer({"krr": "4", "epsilon0": "2", "n": "100", "delta": "1e-4", "ask": "compare"})
    wrong = [row for row in found["rows"] if row["unsound"]]
    assert wrong
    assert all(row["note"] for row in wrong)


def test_targets_are_met_when_asked_again() -> None:
    question = {"krr": "4", "epsilon0": "1", "n": "1000", "delta": "1e-5", "honest_fraction": "0.9"}
    for unknown in ("epsilon0", "n", "rounds"):
        found = answer({**question, "ask": "target", "target": {"epsilon": "0.2", "solve_for": unknown}})
        there = answer({**question, unknown: found["value"]})
        assert there["epsilon"]["upper"] <= 0.2, unknown
    error = answer({**question, "ask": "target", "target": {"margin": "10%"}})
    assert answer({**question, "epsilon0": error["value"]})["error"]["margin"] <= 0.1


def test_the_error_is_that_of_real_surveys() -> None:
    """95 in 100 estimated shares are within the margin, for the worst share of all."""
    found = answer({"krr": "3", "epsilon0": "1", "n": "400", "delta": "1e-4"})
    randomizer = sdp.KaryRandomizedResponse(k=3, epsilon0=1.0)
    rng = np.random.default_rng(5)
    values = np.zeros(400, dtype=np.int64)
    shares = [
        randomizer.estimate(randomizer.support(randomizer.randomize(values, rng=rng)), 400)[0] / 400
        for _ in range(400)
    ]
    inside = np.mean(np.abs(np.array(shares) - 1.0) <= found["error"]["margin"])
    assert 0.92 <= inside <= 0.99
