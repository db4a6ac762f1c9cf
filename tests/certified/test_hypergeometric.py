"""Tails of the hypergeometric law against exact counts."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from shuffledp._certified.hypergeometric import _chernoff, at_least

pytestmark = pytest.mark.quick
CASES = [(10, 6, 5), (7, 7, 3), (40, 1, 40), (200, 150, 60), (5000, 4500, 300), (30, 10, 29)]


def exact(population: int, honest: int, drawn: int, count: int) -> Fraction:
    ways = sum(
        comb(honest, k) * comb(population - honest, drawn - k) for k in range(max(count, 0), drawn + 1)
    )
    return Fraction(ways, comb(population, drawn))


@pytest.mark.parametrize(("population", "honest", "drawn"), CASES)
def test_tails_are_enclosed_closely(population: int, honest: int, drawn: int) -> None:
    counts = np.arange(-1, drawn + 2)
    low, high = at_least(population, honest, drawn, counts)
    for count, below, above in zip(counts.tolist(), low, high, strict=True):
        truth = exact(population, honest, drawn, count)
        assert below <= truth <= above
        assert above - below <= 1e-9 * truth + 1e-290


@pytest.mark.parametrize(("population", "honest", "drawn"), CASES)
def test_wide_laws_are_bounded_by_chernoff(population: int, honest: int, drawn: int) -> None:
    for count in range(-1, drawn + 2):
        low, high = _chernoff(count, drawn, honest / population)
        assert low <= exact(population, honest, drawn, count) <= high


def test_a_law_too_wide_to_be_summed_is_still_enclosed() -> None:
    low, high = at_least(10**14, 6 * 10**13, 10**12, np.array([5 * 10**11, 6 * 10**11, 7 * 10**11]))
    assert np.all(low <= high)
    assert low[0] > 0.999
    assert high[2] < 1e-9
