"""A bound as a number: everything that loses digits goes outward."""

import math

import pytest
from hypothesis import given, strategies as some

import shuffledp as sdp

pytestmark = pytest.mark.quick
ends = some.floats(0.0, 1e6)


@given(ends, ends, some.integers(0, 12))
def test_what_is_shown_is_never_inside(a: float, b: float, digits: int) -> None:
    bound = sdp.Bound(min(a, b), max(a, b))
    for form in (f".{digits}f", f".{digits}e", f".{digits + 1}g"):
        assert float(f"{bound:{form}}") >= bound.upper
    outer = round(bound, digits)
    assert outer.lower <= bound.lower
    assert outer.upper >= bound.upper
    assert outer.upper - bound.upper <= 10.0**-digits * 1.0001


def test_the_upper_end_is_compared() -> None:
    bound = sdp.Bound(0.9, 1.0)
    assert bound < 1.01
    assert not bound < 1.0
    assert bound <= 1.0
    assert bound > 0.95
    assert bound >= sdp.Bound(0.1, 1.0)
    low, high = bound
    assert (low, high) == (0.9, 1.0)
    assert f"{sdp.Bound(0.0, math.inf):.3f}" == "inf"
    assert f"{bound}" == str(bound)


def test_rounds_are_summed_and_deltas_may_be_an_array() -> None:
    one, two = (sdp.Shuffled(sdp.LocalRandomizer(1.0), n=n) for n in (1000, 2000))
    assert sum([one, two, one]) == one + two + one
    found = one.epsilon(delta=[1e-6, 1e-3])
    assert found.upper.tolist() == [one.epsilon(delta=d).upper for d in (1e-6, 1e-3)]
    with pytest.raises(ValueError, match="delta must be in"):
        one.epsilon(delta=[2.0])
