"""The whole-number weights of k-ary randomized response, against ball arithmetic."""

from fractions import Fraction
from math import exp

import pytest
from flint import arb, ctx, fmpq
from hypothesis import example, given, settings, strategies as st

from shuffledp.randomizers.kary import BinaryRandomizedResponse, KaryRandomizedResponse

pytestmark = pytest.mark.quick

WORD = 2**64


def ball(number: float) -> arb:
    fraction = Fraction(number)
    return arb(fmpq(fraction.numerator, fraction.denominator))


@pytest.mark.thorough
@settings(max_examples=300, deadline=None, derandomize=True)
@example(k=2, epsilon0=0.0)
@example(k=3, epsilon0=0.0)
@example(k=3, epsilon0=5e-324)
@example(k=2**40, epsilon0=1e-9)
@example(k=16, epsilon0=300.0)
@given(k=st.integers(2, 2**40), epsilon0=st.floats(0.0, 40.0))
def test_weights_are_the_least_random_ones_that_keep_the_ratio(k: int, epsilon0: float) -> None:
    randomizer = KaryRandomizedResponse(k=k, epsilon0=epsilon0)
    a, b = randomizer.weights
    before, ctx.prec = ctx.prec, 1400
    try:
        E = ball(epsilon0).exp()
        assert b <= a
        if a + (k - 1) * b == WORD:
            assert ball(a) <= E * b  # the realised ratio is not above
            assert not ball(WORD - (k - 1) * (b - 1)) <= E * (b - 1)  # and b is the smallest such
        else:
            assert a == b == WORD // k
            assert WORD % k  # otherwise nothing is left over
            least = WORD // k + 1
            assert WORD - (k - 1) * least < least  # no other weights would do
        stated = randomizer.realised_epsilon0
        assert stated <= epsilon0
        assert ball(a) <= ball(stated).exp() * b
    finally:
        ctx.prec = before


@pytest.mark.parametrize("k", [2, 16, 1000, 10**6])
@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 4.0, 8.0, 30.0])
def test_rounding_loses_no_more_than_stated(k: int, epsilon0: float) -> None:
    realised = KaryRandomizedResponse(k=k, epsilon0=epsilon0).realised_epsilon0
    lost = (k - 1 + exp(epsilon0)) ** 2 / (exp(epsilon0) * WORD)
    assert epsilon0 - 1.001 * lost - 1e-14 <= realised <= epsilon0


def test_binary_response_has_the_weights_of_two_categories() -> None:
    assert BinaryRandomizedResponse(epsilon0=1.0).weights == KaryRandomizedResponse(2, 1.0).weights


def test_an_epsilon0_that_weights_cannot_hold_is_described_but_not_sampled() -> None:
    randomizer = KaryRandomizedResponse(k=4, epsilon0=38.0)
    assert randomizer.law().gamma > 0.0
    with pytest.raises(ValueError, match=r"epsilon0 must be at most about 37 for sampling.* 38\.0"):
        randomizer.randomize([0])


def test_large_epsilon0_up_to_36_is_sampled() -> None:
    assert KaryRandomizedResponse(k=4, epsilon0=36.0).randomize([0, 1, 2, 3]).tolist() == [0, 1, 2, 3]
