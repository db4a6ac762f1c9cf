"""Numbers that are read exactly, and numbers that are shown on the safe side."""

import math
from collections.abc import Callable

import pytest
from click.testing import Result
from hypothesis import given, strategies as st

from shuffledp._digits import rounded_down, rounded_up, written
from shuffledp.cli.options import WHOLE, Real

Run = Callable[..., Result]

FLOATS = st.floats(min_value=0.0, allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize("text", ["1000000", "1_000_000", "1e6", "1E6", "1.0e6", "0.001e9"])
def test_a_million_can_be_written_in_many_ways(shuffledp: Run, text: str) -> None:
    assert WHOLE.convert(text, None, None) == 1_000_000
    result = shuffledp(f"epsilon --krr 4 --epsilon0 1 --n {text} --delta 1e-6")
    assert "1,000,000 in each round" in result.stdout


@given(st.integers(min_value=1, max_value=WHOLE.most))
def test_whole_numbers_are_read_exactly(number: int) -> None:
    for text in (str(number), f"{number:_}", f"{number}e0", f"{number}0e-1"):
        assert WHOLE.convert(text, None, None) == number


@given(FLOATS)
def test_real_numbers_are_read_as_python_reads_them(number: float) -> None:
    assert Real().convert(repr(number), None, None) == number


@given(FLOATS)
def test_shown_ends_enclose_the_number_and_are_near_it(number: float) -> None:
    low, high = float(rounded_down(number)), float(rounded_up(number))
    assert low <= number <= high
    if 1e-300 < number < 1e300:
        assert high - low <= 1.1e-4 * number


def test_a_number_of_few_digits_is_shown_as_it_is() -> None:
    for text in ("0.2", "0.1", "1e-8", "12345", "0"):
        assert rounded_up(float(text)) == rounded_down(float(text)) == text


@given(FLOATS)
def test_a_written_number_is_the_number(number: float) -> None:
    assert float(written(number)) == number


def test_infinity_is_shown_as_such() -> None:
    assert rounded_up(math.inf) == rounded_down(math.inf) == "inf"
