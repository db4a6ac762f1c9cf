"""Which values belong, and what is said about those that do not."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from shuffledp.collecting._domain import MOST_CATEGORIES, CategoryIndex, checked_categories
from shuffledp.errors import DomainError

pytestmark = pytest.mark.quick

MIXED = ["a", 1, 2.5]


@pytest.mark.parametrize(
    ("categories", "column"),
    [
        (["b", "a", "c"], ["a", "b", "c", "c"]),
        (["b", "a", "c"], np.array(["a", "b"], dtype=object)),
        ([7, -3, 5], [5, 7, -3]),
        ([7, -3, 5], np.array([5, 7], dtype=np.uint8)),
        ([7, -3, 5], np.array([5.0, 7.0])),
        (range(10), np.arange(10, dtype=np.int16)),
        (range(-5, 5), np.arange(-5, 5)),
        ([False, True], np.array([True, False])),
        (MIXED, ["a", 1, 2.5, 1]),
    ],
)
def test_every_value_is_found_at_its_place(categories: Any, column: Any) -> None:
    listed = checked_categories(categories)
    places = CategoryIndex.of(listed).places(column)
    assert [listed[i] for i in places] == list(column)


@pytest.mark.parametrize("value", ["b", np.str_("b"), np.array("b")])
def test_one_value_gives_one_place(value: Any) -> None:
    assert CategoryIndex.of(("a", "b")).places(value).shape == ()
    assert int(CategoryIndex.of(("a", "b")).places(value)) == 1


@pytest.mark.parametrize(
    ("categories", "column", "missing", "outside"),
    [
        (("a", "b"), ["a", None, "c", "b", float("nan")], 2, 1),
        (("a", "b"), np.array(["a", "z"]), 0, 1),
        (("a", "b"), [["a"], "b"], 0, 1),
        ((0, 1, 2), np.array([0, 3, -1, 2]), 0, 2),
        ((0, 1, 2), np.array([0.0, np.nan, 0.5]), 1, 1),
        ((0, 1, 2), np.array([2**64 - 1], dtype=np.uint64), 0, 1),
        ((1, 5), np.ma.array([1, 5, 5], mask=[0, 1, 0]), 1, 0),
        ((1, 5), np.array(["NaT"], dtype="datetime64[s]"), 1, 0),
        (MIXED, [None] * 9, 9, 0),
    ],
)
def test_what_does_not_belong_is_counted_and_shown(
    categories: tuple[object, ...], column: Any, missing: int, outside: int
) -> None:
    with pytest.raises(DomainError, match="not in the domain") as caught:
        CategoryIndex.of(categories).places(column, show_values=True)
    assert (caught.value.missing, caught.value.outside) == (missing, outside)
    assert len(caught.value.examples) == min(5, missing + outside)


def test_examples_name_index_and_value() -> None:
    with pytest.raises(DomainError) as caught:
        CategoryIndex.of((0, 1)).places(np.array([0, 1, 9, 1, -2]), show_values=True)
    assert caught.value.examples == ((2, 9), (4, -2))
    assert "2 of 5 values" in str(caught.value)
    assert "[2] 9, [4] -2" in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_values_are_shown_only_where_that_is_asked_for() -> None:
    with pytest.raises(DomainError) as caught:
        CategoryIndex.of(("no", "yes")).places(["yes", "HIV positive"])
    assert caught.value.examples == ()
    assert "HIV" not in repr(caught.value) + str(caught.value.__dict__)


def test_whatever_does_not_belong_goes_to_the_other_category_if_there_is_one() -> None:
    found = CategoryIndex.of(("a", "b", "rest")).places(["a", None, "zzz", "b"], other=2)
    assert found.tolist() == [0, 2, 2, 1]


@pytest.mark.parametrize(
    ("categories", "message"),
    [
        (range(10**9), f"2 to {MOST_CATEGORIES} values, got 1000000000"),
        (["a"], "2 to"),
        (["a", "a"], "different, got 'a' again at 1"),
        ([1, True], "different"),
        ([0.5, 1, 0.5], "different"),
    ],
)
def test_unusable_lists_of_categories_are_refused(categories: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        checked_categories(categories)


@pytest.mark.parametrize("categories", ["ab", 3, [None, 1], [float("nan"), 1.0], [(1,), (2,)]])
def test_categories_must_be_plain_values(categories: Any) -> None:
    with pytest.raises(TypeError, match="categories must be"):
        checked_categories(categories)


def test_two_dimensional_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="one-dimensional"):
        CategoryIndex.of((0, 1)).places(np.zeros((2, 2), dtype=int))
