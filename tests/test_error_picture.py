"""The picture of several messages: its numbers are those of today, and say what the page says."""

import csv
from pathlib import Path

import pytest

from tools.error_by_people import STATIC, errors

pytestmark = pytest.mark.quick


def rows() -> list[dict[str, float]]:
    with Path(STATIC / "several-messages.csv").open(encoding="utf-8") as file:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


def test_the_numbers_are_those_that_the_tool_makes() -> None:
    first = rows()[0]
    assert errors(1000) == pytest.approx(first, rel=1e-3)
    assert (STATIC / "several-messages.png").stat().st_size > 10_000


def test_several_messages_stay_next_to_a_curator_and_below_any_single_message_of_many() -> None:
    for row in rows():
        assert row["curator"] < row["several"] <= 1.3 * row["curator"]
        assert row["messages"] <= 12
        assert row["least"] < row["one"] < row["local"]
        assert (row["least"] > row["several"]) == (row["n"] > 2e6)
