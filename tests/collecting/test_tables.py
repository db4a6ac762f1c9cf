"""Results as objects: by name, as rows, in files and frames, in notebooks."""

import csv
import io
import json

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.collecting.result import HistogramResult

pytestmark = pytest.mark.quick
PETS = ["cat", "dog", "fish"]


@pytest.fixture(scope="module")
def result() -> HistogramResult:
    survey = sdp.HistogramProtocol(
        PETS, epsilon=1.0, delta=1e-6, n=3000, randomizer=sdp.KaryRandomizedResponse(k=3, epsilon0=1.0)
    )
    return survey.analyze(sdp.shuffle(survey.randomize(["cat"] * 2000 + ["dog"] * 900 + ["fish"] * 100)))


def test_a_category_is_found_by_its_name_and_all_in_order(result: HistogramResult) -> None:
    assert len(result) == 3
    assert [each.category for each in result] == PETS
    cat = result["cat"]
    low, high = result.interval()
    assert (cat.count, cat.lower, cat.upper) == (result.counts[0], low[0], high[0])
    assert cat.standard_error == result.standard_errors[0]
    assert [each.category for each in result.top(2)] == ["cat", "dog"]
    with pytest.raises(KeyError, match="no category 'cow'; there are 3"):
        result["cow"]


def test_every_form_holds_the_same_numbers(result: HistogramResult) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    wide = result.interval(0.999).upper.tolist()
    assert [row["upper"] for row in json.loads(result.to_json(confidence=0.999))["estimates"]] == wide
    assert [
        float(row["upper"]) for row in csv.DictReader(io.StringIO(result.to_csv(confidence=0.999)))
    ] == wide
    assert result.to_pandas(confidence=0.999)["upper"].tolist() == wide
    assert result.to_pandas().index.tolist() == PETS
    assert result.to_polars(confidence=0.999)["upper"].to_list() == wide
    assert result.to_polars()["category"].to_list() == PETS
    assert result.to_dict()["privacy"] == result.privacy.to_dict()


def test_a_mean_has_the_same_forms() -> None:
    pytest.importorskip("polars")
    ages = sdp.MeanProtocol(0.0, 100.0, epsilon=1.0, delta=1e-6, n=1000)
    mean = ages.analyze(sdp.shuffle(ages.randomize([50.0] * 1000)))
    assert float(mean) == mean.value == mean.to_polars()["value"][0]
    assert json.loads(mean.to_json())["estimates"][0]["upper"] == mean.interval().upper
    assert mean._repr_html_().startswith("<table>")


@pytest.mark.thorough
def test_notebooks_show_tables_and_texts_and_no_markup_of_the_data() -> None:
    survey = sdp.HistogramProtocol(
        ["<b>", "&"], epsilon=1.0, delta=1e-6, n=300, randomizer=sdp.KaryRandomizedResponse(k=2, epsilon0=0.5)
    )
    result = survey.analyze(sdp.shuffle(survey.randomize(["<b>"] * 300)))
    shown = result._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown
    mechanism = 2 * sdp.Shuffled(sdp.KaryRandomizedResponse(k=4, epsilon0=1.0), n=1000)
    found = sdp.calibrate(sdp.KaryRandomizedResponse, k=4, n=1000, epsilon=0.1, delta=1e-6)
    bound = mechanism.epsilon(delta=1e-6)
    for each in (survey, result.privacy, mechanism, found, bound, mechanism.delta(epsilon=[0.1, 0.2])):
        assert each._repr_html_().startswith("<")
    assert "2 ×" in mechanism._repr_html_()


def test_a_lazy_frame_is_told_from_a_column() -> None:
    polars = pytest.importorskip("polars")
    survey = sdp.HistogramProtocol(PETS, epsilon=1.0, delta=1e-3, n=100)
    with pytest.raises(TypeError, match=r"got a LazyFrame: take \.collect\(\)\[name\]"):
        survey.randomize(polars.LazyFrame({"pet": PETS}))


def test_an_estimate_beyond_what_is_possible_is_explained() -> None:
    survey = sdp.HistogramProtocol(["cat", "dog"], epsilon=1.0, delta=1e-3, n=100)
    beyond = survey.analyze(tally=np.array([100, 0]), n=100)
    assert beyond["cat"].count > 100 >= beyond["cat"].upper
    assert "may lie beyond what is possible; intervals do not" in str(beyond)
    assert "may lie beyond" not in str(survey.analyze(tally=np.array([50, 50]), n=100))
