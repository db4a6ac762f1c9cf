"""epsilon(delta) from a bound that may not be monotone."""

import math

import pytest

from shuffledp import _validate
from shuffledp.literature._solve import smallest_below

pytestmark = pytest.mark.quick


def test_a_decreasing_bound_is_solved() -> None:
    found = smallest_below(lambda e: math.exp(-10.0 * e), 1e-3, 5.0)
    assert found == pytest.approx(math.log(1e3) / 10, rel=1e-8)
    assert math.exp(-10.0 * found) <= 1e-3


def test_the_answer_was_seen_to_hold_even_where_the_bound_rises_again() -> None:
    def bound(e: float) -> float:
        return (e - 1.0) ** 2

    found = smallest_below(bound, 0.01, 4.0)
    assert bound(found) <= 0.01
    assert found == pytest.approx(0.9, rel=1e-8)


def test_no_solution_is_infinite() -> None:
    assert smallest_below(lambda e: 1.0, 0.5, 3.0) == math.inf


def test_a_bound_that_always_holds_gives_next_to_nothing() -> None:
    assert 0.0 < smallest_below(lambda e: 0.0, 0.5, 3.0) < 1e-11


@pytest.mark.parametrize("bad", [1.0, -2.0, math.inf, math.nan])
def test_numbers_that_are_not_above_are_named(bad: float) -> None:
    with pytest.raises(ValueError, match=r"order must be in \(1, inf\), got"):
        _validate.above("order", bad, 1.0)
    with pytest.raises(TypeError, match="order must be a real number"):
        _validate.above("order", "two", 1.0)
