"""Statements of planned collections: the words say what is certified, the record fits the schema."""

import dataclasses
import datetime
import json
import math
from pathlib import Path
from typing import Any

import pytest

import shuffledp as sdp
from shuffledp.accounting.statement import cautions, factor

yaml = pytest.importorskip("yaml")
jsonschema = pytest.importorskip("jsonschema")
pytestmark = pytest.mark.quick
SCHEMA = Path(__file__).parents[1] / "data" / "deployments-registry" / "deployments-schema.yaml"
YEAR = 12 * sdp.Shuffled(sdp.KaryRandomizedResponse(k=5, epsilon0=3.0), n=20_000)
MIXED = YEAR + sdp.Shuffled(sdp.LocalRandomizer(epsilon0=1.0), n=5000).sampled_from(50_000)
FALSE = sdp.Certificate.made(
    0.01, 1e-9, [{"count": 1, "curve": {"kind": "clones", "n": 100, "epsilon0": 1.0}}]
)
NOISY = sdp.Shuffled(sdp.Facts(epsilon0=1.0, delta0=1e-13), n=1000)


def record(text: str) -> Any:
    """The record, valid by the registry's own schema."""
    found = yaml.safe_load(text)
    schema = yaml.safe_load(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.validate(found, schema, format_checker=jsonschema.FormatChecker())
    return found


@pytest.mark.parametrize("mechanism", [YEAR, MIXED, NOISY, sdp.Shuffled(sdp.LocalRandomizer(1.0), n=10)])
def test_the_registry_record_fits_the_schema(mechanism: sdp.Mechanism) -> None:
    statement = mechanism.statement(delta=1e-7)
    loss = record(statement.registry())["deployment"]["privacy_loss"]["privacy_parameters"]
    assert loss["delta"] == 1e-7
    assert statement.bound.upper <= loss["epsilon"] <= statement.bound.upper * 1.0002


@pytest.mark.thorough
def test_a_statement_may_carry_that_it_was_verified() -> None:
    statement = YEAR.statement(delta=1e-7)
    assert statement.to_dict()["verified"] is None
    checked = statement.verified()
    assert "; verified: delta(" in checked.formal
    assert checked.to_dict()["verified"] == str(checked.verification)
    too_much = dataclasses.replace(
        statement, bound=dataclasses.replace(statement.bound, source=lambda: FALSE)
    )
    with pytest.raises(sdp.NoCertificateError, match="not verified"):
        too_much.verified()


def test_what_is_told_of_a_collection_goes_into_its_record() -> None:
    words = {
        "name": 'Pets: "the" survey',
        "description": "a\nb: #c",
        "region": "größer",
        "intended_use": "- x",
    }
    made = YEAR.statement(delta=1e-7).registry(
        **words, curators=("A", "B"), authors=("C",), date=datetime.date(2026, 1, 2)
    )
    found = record(made)
    basic = found["deployment"]["basic"]
    assert basic["name"] == words["name"]
    assert basic["description"] == words["description"]
    assert basic["data_curators"] == ["A", "B"]
    assert basic["publication_date"] == "2026-01-02"
    assert found["deployment"]["deployment_model"]["model_name"] == "Shuffle"
    assert found["deployment"]["deployment_model"]["release_type"] == "Many releases"


def test_the_words_hold_the_numbers_rounded_outward() -> None:
    statement = YEAR.statement(delta=1e-7)
    low, high = YEAR.epsilon(delta=1e-7)
    assert statement.bound == sdp.Bound(low, high)
    assert float(statement.epsilon) >= high
    told = float(statement.meaning.split(" times")[0].split()[-1])
    assert math.exp(high) <= told <= 1.01 * math.exp(high)
    for text in (statement.formal, statement.registry()):
        assert statement.epsilon in text
    assert "20,000 honest reports" in statement.plain
    assert "1 in 10,000,000" in statement.plain
    again = json.loads(statement.to_json())
    assert again["epsilon"] == high
    assert again["plain"] == statement.plain
    assert statement.plain in str(statement)
    assert "&lt;=" in statement._repr_html_()


def test_a_large_factor_is_a_power_of_e() -> None:
    assert factor(36.0) == "e^36"
    assert float(factor(0.05)) >= math.exp(0.05)


def test_a_mixed_composition_names_every_kind_of_round() -> None:
    statement = MIXED.statement(delta=1e-7)
    assert "12 rounds of KaryRandomizedResponse" in statement.formal
    assert "1 round of LocalRandomizer" in statement.formal
    assert "a fresh random cohort of 50,000 people" in statement.formal


def test_a_statement_says_where_no_leaked_coin_is_covered() -> None:
    """Of several rounds also where the crowd theorem gives a part of the curve only."""
    noise, answer = sdp.DiscreteLaplace(epsilon0=4.0, levels=4), sdp.KaryRandomizedResponse(k=5, epsilon0=2.0)
    for n, named, less in ((3_200, "blanket, crowd", 0.98), (10_000, "crowd", 0.9)):
        leaked = 3 * sdp.Shuffled(noise, n=n, analysis="best-leaked")
        stated = (3 * sdp.Shuffled(noise, n=n)).statement(delta=1e-6)
        assert stated.analysis == named
        assert "no leaked coin of anybody is covered" in stated.formal
        assert stated.bound.upper < less * leaked.upper_epsilon(delta=1e-6)
    for safe in (leaked, 3 * sdp.Shuffled(answer, n=10_000)):
        assert "leaked" not in safe.statement(delta=1e-6).formal
    both = sdp.Shuffled(answer, n=10_000) + sdp.Shuffled(sdp.BinaryRandomizedResponse(epsilon0=1.0), n=1000)
    assert both.statement(delta=1e-6).analysis == "blanket, exact"
    assert "no leaked coin" in both.statement(delta=1e-6).formal


def test_nobody_signs_a_large_delta_or_a_cliff_unwarned() -> None:
    assert YEAR.statement(delta=1e-7).warnings == ()
    (warning,) = sdp.Shuffled(sdp.LocalRandomizer(1.0), n=1000).statement(delta=0.01).warnings
    assert "not far below 1/1,000" in warning
    assert "says nothing" in sdp.Shuffled(sdp.LocalRandomizer(1.0), n=1000).statement(delta=1.0).warnings[0]


def test_ends_far_apart_and_a_steep_place_are_announced() -> None:
    low, high = YEAR.epsilon(delta=1e-7)
    assert cautions(YEAR, sdp.Bound(low, high), 1e-7, steep=True) == ()
    apart, steep = cautions(
        YEAR, sdp.Bound(0.3 * low, 0.9 * high), 1e-7
    )  # fewer reports give 0.5 % more than high
    assert "far apart" in apart
    assert "1 in 100 reports fewer" in steep


def test_rounds_without_a_finite_epsilon_have_no_statement() -> None:
    leak = sdp.FiniteRandomizer([[1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="nothing to state"):
        sdp.Shuffled(leak, n=1).statement(delta=0.0)
