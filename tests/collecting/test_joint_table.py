"""Joint tables: cells, marginals of exact law, data in every form, files, clear errors."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp import plotting
from shuffledp.shuffling.columns import open_column
from shuffledp.shuffling.roles import analyze_file, randomize_file, shuffle_files

pytestmark = pytest.mark.quick

TARGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
LISTS = {"age": ["young", "old"], "pet": ["cat", "dog", "fish"], "home": ["town", "land"]}
ROWS = [("young", "cat", "town")] * 600 + [("old", "dog", "land")] * 300 + [("old", "fish", "town")] * 100


@pytest.fixture(scope="module")
def people() -> sdp.TableProtocol:
    return sdp.TableProtocol(LISTS, **TARGET, n=1000)


def test_marginals_add_up_and_have_the_exact_law(people: sdp.TableProtocol) -> None:
    """The covariance of cells, by definition, gives the variance of every sum of cells."""
    reports = np.asarray(people.randomize(ROWS, rng=np.random.default_rng(4)))
    result = people.analyze(reports)
    p, q = people.randomizer._support_fractions()  # type: ignore[attr-defined]
    truth = np.bincount(people.encode(ROWS), minlength=12)
    law = np.full((12, 12), float(q)) + np.eye(12) * float(p - q)
    covariance = sum(
        count * (np.diag(row) - np.outer(row, row)) for count, row in zip(truth, law, strict=True)
    )
    cube = np.arange(12).reshape(2, 3, 2)
    for name, axis in (("age", 0), ("pet", 1), ("home", 2)):
        sides = result.marginal(name)
        assert sides.categories == tuple(LISTS[name])
        others = tuple(i for i in range(3) if i != axis)
        np.testing.assert_allclose(sides.counts, result.table().sum(axis=others))
        held = truth.reshape(2, 3, 2).sum(axis=others)
        for place, variance in enumerate(sides.randomizer.variance(held, 1000)):
            chosen = np.isin(np.arange(12), np.take(cube, place, axis=axis)).astype(float)
            assert variance == pytest.approx(chosen @ covariance @ chosen / float(p - q) ** 2)
    both = result.marginal("pet", "age")
    np.testing.assert_allclose(both.counts.reshape(3, 2), result.table().sum(axis=2).T)
    assert both["cat", "young"].lower <= 600 <= both["cat", "young"].upper


def test_intervals_of_marginals_hold(people: sdp.TableProtocol) -> None:
    rng, runs = np.random.default_rng(6), 100
    missed = 0
    for _ in range(runs):
        low, high = people.analyze(people.randomize(ROWS, rng=rng)).marginal("pet").interval()
        missed += int(((low > [600, 300, 100]) | (high < [600, 300, 100])).sum())
    assert missed / (3 * runs) < 0.08


def test_several_messages_have_marginals_too() -> None:
    table = sdp.TableProtocol({"a": [0, 1], "b": [0, 1, 2]}, **TARGET, n=2000, messages=3)
    result = table.analyze(table.randomize([(0, 2)] * 1500 + [(1, 0)] * 500))
    side = result.marginal("b")
    np.testing.assert_allclose(side.counts, result.table().sum(axis=0))
    assert abs(side.counts[2] - 1500) < 8.0 * side.standard_errors[2]
    assert side.standard_errors[0] > result.standard_errors[0]
    assert (side.poisoning(1) >= 1.0).all()


def test_data_in_every_form_give_the_same_cells(people: sdp.TableProtocol) -> None:
    pandas = pytest.importorskip("pandas")
    columns = dict(zip(LISTS, map(list, zip(*ROWS, strict=True)), strict=True))
    expected = people.encode(ROWS)
    structured = next(iter(open_column(columns, tuple(LISTS))))
    for data in (columns, structured, pandas.DataFrame(columns), [list(row) for row in ROWS]):
        np.testing.assert_array_equal(people.encode(data), expected)
    assert people.encode(("old", "fish", "land")) == 11
    assert people.encode({"home": "land", "age": "old", "pet": "fish"}) == 11
    joined = open_column(pandas.DataFrame(columns), tuple(LISTS), rows=300)
    assert [len(batch) for batch in joined] == [300, 300, 300, 100]
    with pytest.raises(ValueError, match="equal lengths"):
        list(open_column({"a": [1, 2], "b": [1]}, ("a", "b")))


def test_three_roles_with_files(people: sdp.TableProtocol, tmp_path: Path) -> None:
    lines = ["id,home,pet,age", *(f"{i},{home},{pet},{age}" for i, (age, pet, home) in enumerate(ROWS))]
    (tmp_path / "people.csv").write_text("\n".join([*lines, ""]))
    (tmp_path / "used").mkdir()
    plan = sdp.protocol_from_dict(json.loads(json.dumps(people.to_dict())))
    assert plan == people
    assert randomize_file(plan, tmp_path / "people.csv", tmp_path / "r.parquet") == 1000
    shuffle_files(plan, tmp_path / "r.parquet", tmp_path / "s.parquet", minimum=1000, used=tmp_path / "used")
    result = analyze_file(plan, tmp_path / "s.parquet", confidence=1 - 1e-9)
    assert result.marginal("age")["young"].lower <= 600 <= result.marginal("age")["young"].upper
    assert result.privacy.protocol == "table"
    assert sdp.collect(people, tmp_path / "people.csv").n == 1000
    with pytest.raises(ValueError, match="this protocol reads age, pet, home"):
        sdp.collect(people, tmp_path / "people.csv", column="pet")


def test_clients_in_other_languages_are_told_no_sampler_of_an_encoding_they_lack(
    people: sdp.TableProtocol,
) -> None:
    documents = pytest.importorskip("shuffledp.service.documents")
    assert documents.sampler_of(people) is None
    plain = sdp.HistogramProtocol(range(12), **TARGET, n=1000, randomizer=people.randomizer)
    assert documents.sampler_of(plain)["kind"] == "response"


def test_a_result_says_it_in_every_form(people: sdp.TableProtocol, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = people.analyze(people.randomize(ROWS))
    assert result.to_csv().startswith("age,pet,home,count,standard_error,")
    assert len(json.loads(result.to_json())["estimates"]) == 12
    assert "<table" in result._repr_html_()
    assert "young" in str(result)
    ax = plotting.table(result.marginal("pet", "home"), ax=plotting.new_axes())
    assert [label.get_text() for label in ax.get_yticklabels()] == LISTS["pet"]
    assert len(ax.texts) == 6
    plotting.save(ax, tmp_path / "table.png")
    assert result.plot(ax=plotting.new_axes()).get_title().startswith("table of 1,000 reports")
    with pytest.raises(ValueError, match="two attributes"):
        plotting.table(result)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"a": [1, 2]}, "2 to 3"),
        ({"a": [1, 2], "b": [1, 1]}, "different"),
        ({"a": [1, 2], "b": [1]}, "2 to"),
        ({name: [1, 2] for name in "abcd"}, "2 to 3"),
        ({"a": range(2000), "b": range(2000)}, "combinations"),
    ],
)
def test_bad_attributes_are_told(attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sdp.TableProtocol(attributes, **TARGET, n=100)


def test_bad_rows_and_names_are_told(people: sdp.TableProtocol) -> None:
    with pytest.raises(TypeError, match="must map names"):
        sdp.TableProtocol(["a", "b"], **TARGET, n=100)
    with pytest.raises(TypeError, match="KaryRandomizedResponse or BlanketMessages"):
        sdp.TableProtocol(LISTS, **TARGET, n=100, randomizer=sdp.HadamardResponse(k=12, epsilon0=1.0))
    with pytest.raises(sdp.DomainError, match="1 of 2 values") as caught:
        people.encode([("old", "cat", "town"), ("old", "axolotl", "town")])
    assert caught.value.__notes__ == ["in the attribute 'pet'"]
    with pytest.raises(ValueError, match="rows of 3 values"):
        people.encode([("old", "cat")])
    with pytest.raises(ValueError, match="must have the columns age, pet, home"):
        people.encode({"age": ["old"]})
    result = people.analyze(people.randomize(ROWS))
    for names in ((), ("age", "age"), ("height",)):
        with pytest.raises(ValueError, match="names must be different ones of"):
            result.marginal(*names)
    alone = sdp.TableProtocol(LISTS, **TARGET, n=1)
    assert alone.analyze(alone.randomize(("old", "cat", "town"))).n == 1
