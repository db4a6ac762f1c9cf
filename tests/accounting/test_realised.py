"""What is sampled is what is enclosed: weights out of 2^64, in exact rationals."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb, fmpq

import shuffledp as sdp
from response import krr_witnesses
from shuffledp._randomness.uniform import exponential

EPSILON = 1.5
CASES = [(2, 4.0), (2, 30.0), (2, 36.5), (3, 1e-3), (1000, 36.0), (10**6, 0.5), (10**6, 4.0)]
CASES += [(10**8, 1.0), (2**40, 2.0), (2**40, 30.0)]


def sampled(randomizer: sdp.KaryRandomizedResponse) -> tuple[Fraction, Fraction]:
    """The probabilities of the truth and of another value, from the whole numbers alone."""
    a, b = randomizer.weights
    total = a + (randomizer.k - 1) * b
    return Fraction(a, total), Fraction(b, total)


def log(ratio: Fraction) -> arb:
    return arb(fmpq(ratio.numerator, ratio.denominator)).log()


@pytest.mark.parametrize(("k", "epsilon0"), CASES)
def test_the_largest_loss_of_one_sampled_report_is_enclosed(k: int, epsilon0: float) -> None:
    randomizer = sdp.KaryRandomizedResponse(k=k, epsilon0=epsilon0)
    truth, other = sampled(randomizer)
    bound = sdp.Shuffled(randomizer, n=1).epsilon(delta=0.0)
    # A unit of rounding is left to numbers that are asked for as doubles.
    assert arb(bound.lower) * (1 - arb(2) ** -49) <= log(truth / other) <= arb(bound.upper)
    assert bound.upper == epsilon0


@pytest.mark.parametrize(("k", "epsilon0"), CASES)
def test_the_delta_of_one_sampled_report_is_enclosed(k: int, epsilon0: float) -> None:
    randomizer = sdp.KaryRandomizedResponse(k=k, epsilon0=epsilon0)
    truth, other = sampled(randomizer)
    for share in (0.5, 0.999):
        low, high = exponential(share * epsilon0)
        bound = sdp.Shuffled(randomizer, n=1).delta(epsilon=share * epsilon0)
        exact = max(truth - low * other, Fraction(0))
        assert Fraction(bound.lower) * (1 - Fraction(1, 10**10)) <= exact
        assert truth - high * other <= Fraction(bound.upper)


@pytest.mark.parametrize(("k", "epsilon0"), [(10**6, 4.0), (10**8, 1.0), (2, 36.5)])
def test_the_realised_description_has_the_sampled_ratio_from_below(k: int, epsilon0: float) -> None:
    asked = sdp.KaryRandomizedResponse(k=k, epsilon0=epsilon0)
    truth, other = sampled(asked)
    realised = asked.realised
    assert realised is not asked
    assert arb(realised.epsilon0) <= log(truth / other) <= arb(epsilon0)
    assert arb(realised.epsilon0) >= log(truth / other) * (1 - arb(2) ** -46)


def test_the_lower_end_is_that_of_the_sampled_law_and_not_of_what_was_asked() -> None:
    """Two users, the other one holding x, x' or a third value: all outcomes, both directions."""
    randomizer = sdp.KaryRandomizedResponse(k=3 * 10**8, epsilon0=2.0)
    truth, p = sampled(randomizer)

    def law(value: int) -> list[Fraction]:
        """x, x', the third value, and all others as one (it never tells x from x')."""
        rest = (randomizer.k - 3) * p
        return [truth if value == place else p for place in range(3)] + [rest]

    def outcomes(own: int, held: int) -> dict[tuple[int, int], Fraction]:
        found: dict[tuple[int, int], Fraction] = {}
        for (i, u), (j, v) in product(enumerate(law(own)), enumerate(law(held))):
            key = (min(i, j), max(i, j))
            found[key] = found.get(key, Fraction(0)) + u * v
        return found

    def delta(alpha: Fraction) -> Fraction:
        pairs = [(outcomes(x, z), outcomes(1 - x, z)) for x in range(2) for z in range(3)]
        zero = Fraction(0)
        return max(sum((max(u[key] - alpha * v[key], zero) for key in u), zero) for u, v in pairs)

    bound = sdp.Shuffled(randomizer, n=2).delta(epsilon=EPSILON)
    low, high = exponential(EPSILON)
    assert 0 < delta(high) <= Fraction(bound.upper)
    assert Fraction(bound.lower) <= delta(low) < Fraction(bound.upper)
    # The datasets of what was asked would have shown more than what is sampled does.
    asked = [d for w in krr_witnesses(randomizer.k, 2.0, 2) for d in w.directions]
    shown = max(float(d.support(np.array([EPSILON]), 1e-4).value[0]) for d in asked)
    assert Fraction(shown) > delta(low)


def test_descriptions_that_differ_by_rounding_alone_are_their_own_realisation() -> None:
    for k, epsilon0 in [(2, 0.0), (2, 4.0), (16, 4.0), (1000, 8.0), (2, 60.0)]:
        randomizer = sdp.KaryRandomizedResponse(k=k, epsilon0=epsilon0)
        assert randomizer.realised is randomizer
