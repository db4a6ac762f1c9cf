"""The amplification law of any two inputs of a matrix, from its whole weights."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from shuffledp.randomizers.kary import KaryRandomizedResponse
from shuffledp.randomizers.matrix import FiniteRandomizer

pytestmark = pytest.mark.quick

MATRIX = [[0.5, 0.25, 0.125, 0.125], [0.125, 0.625, 0.125, 0.125], [0.25, 0.25, 0.25, 0.25]]
"""Dyadic: what is realised is what is given."""
ZEROS = [[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.125, 0.375, 0.5]]


def values(matrix: list[list[float]], x: int, y: int, alpha: Fraction) -> dict[Fraction, Fraction]:
    """X = (own - alpha other) / clone with probability clone, 0 with the rest, report by report."""
    clone = [min(column) for column in zip(*matrix, strict=True)]
    law: dict[Fraction, Fraction] = {}
    for own, other, hidden in zip(matrix[x], matrix[y], clone, strict=True):
        if hidden:
            at = (Fraction(own) - alpha * Fraction(other)) / Fraction(hidden)
            law[at] = law.get(at, Fraction(0)) + Fraction(hidden)
    return law


@pytest.mark.parametrize("matrix", [MATRIX, ZEROS])
def test_the_law_of_a_pair_is_that_of_its_reports(matrix: list[list[float]]) -> None:
    randomizer = FiniteRandomizer(matrix)
    for x, y in permutations(range(3), 2):
        law = randomizer.law((x, y))
        for alpha in (Fraction(1, 2), Fraction(1), Fraction(3)):
            found: dict[Fraction, Fraction] = {}
            for own, other, clone in zip(law.own, law.other, law.clone, strict=True):
                if clone:
                    at = (Fraction(own) - alpha * Fraction(other)) / Fraction(clone)
                    found[at] = found.get(at, Fraction(0)) + Fraction(clone)
            assert found == values(matrix, x, y, alpha)
        assert sum(map(Fraction, law.own)) == sum(map(Fraction, law.other)) == 1


def test_the_worst_pair_has_the_largest_variance() -> None:
    def variance(x: int, y: int) -> Fraction:
        law = values(MATRIX, x, y, Fraction(1))
        return sum((p * v * v for v, p in law.items()), Fraction(0))

    randomizer = FiniteRandomizer(MATRIX)
    largest = max(variance(x, y) for x, y in permutations(range(3), 2))
    assert variance(*randomizer.worst_pair) == largest > variance(0, 2)
    assert randomizer.law() == randomizer.law(randomizer.worst_pair)


def test_what_some_input_never_sends_outweighs_everything() -> None:
    assert set(FiniteRandomizer(ZEROS).worst_pair) == {0, 2}


def test_randomized_response_as_a_matrix_has_the_law_of_randomized_response() -> None:
    asked = KaryRandomizedResponse(k=4, epsilon0=1.5)
    a, b = (weight / 2.0**64 for weight in asked.weights)
    matrix = np.full((4, 4), b) + (a - b) * np.eye(4)
    law, known = FiniteRandomizer(matrix).law(), asked.law()
    rows = [sorted(zip(found.own, found.other, found.clone, strict=True)) for found in (law, known)]
    assert np.array(rows[0]) == pytest.approx(np.array(rows[1]), rel=1e-12)


@pytest.mark.parametrize("pair", [(0, 3), (-1, 0)])
def test_inputs_that_do_not_exist_are_named(pair: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"pair\[[01]\] must be in \[0, 2\]"):
        FiniteRandomizer(MATRIX).law(pair)
