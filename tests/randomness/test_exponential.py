"""Exponentials with a known side, against ball arithmetic."""

from fractions import Fraction

import pytest
from flint import arb, fmpq

from shuffledp._randomness.uniform import exponential, log_rounded_up

pytestmark = pytest.mark.quick


def ball(number: Fraction | float) -> arb:
    fraction = Fraction(number)
    return arb(fmpq(fraction.numerator, fraction.denominator))


@pytest.mark.parametrize(
    "exponent", [0.0, 1e-17, 1e-6, 0.1, 1.0, 36.0, 300.0, -0.3, -300.0, Fraction(1, 3), Fraction(-7, 11)]
)
def test_the_two_ends_enclose_the_exponential_closely(exponent: Fraction | float) -> None:
    low, high = exponential(exponent)
    truth = ball(exponent).exp()
    assert ball(low) < truth < ball(high)
    assert (high - low) / low < Fraction(1, 10**54)


@pytest.mark.parametrize("excess", [0, Fraction(1, 2**64), Fraction(1, 3), 1, 10**9, 2**60])
def test_logarithms_are_never_too_small_and_hardly_too_large(excess: Fraction | int) -> None:
    value = log_rounded_up(Fraction(1 + excess))
    truth = ball(1 + Fraction(excess)).log()
    if excess == 0:
        assert value == 0.0
        return
    assert truth <= ball(value)
    assert ball(value) < truth * (1 + ball(Fraction(2, 10**15)))
