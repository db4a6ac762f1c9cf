"""The l1 randomizer: exact probabilities, samples against them, and bad input.

Statistical tests have a fixed seed and a false-alarm rate of 1e-6 each.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import special
from scipy.linalg import hadamard

from oracles.brute import shuffled_pairs, worst
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.randomizers.hadamard import walsh_hadamard
from shuffledp.randomizers.signs import L1Randomizer, hadamard_rows

pytestmark = pytest.mark.quick

FALSE_ALARM = 1e-6


@pytest.mark.parametrize("width", [1, 2, 3, 8, 13, 16])
def test_rows_and_transform_are_those_of_the_hadamard_matrix(width: int) -> None:
    size = 1 << (width - 1).bit_length()
    matrix = hadamard(size)
    rows = hadamard_rows(np.arange(size, dtype=np.uint64), width)
    np.testing.assert_array_equal(rows, matrix[:, :width])
    values = np.random.default_rng(1).integers(-9, 9, size).astype(float)
    np.testing.assert_array_equal(walsh_hadamard(values), matrix @ values)


def probabilities(randomizer: L1Randomizer, vector: np.ndarray) -> list[Fraction]:
    """Of all reports, in exact arithmetic but for the entry of the transform, which is a double."""
    keep = Fraction(randomizer.weight, 2**64)
    table = []
    for y in hadamard(randomizer.size)[:, : vector.size] @ (vector / randomizer.radius):
        up = Fraction(math.floor((1.0 + float(y)) * 2.0**52), 2**53)
        plus = up * keep + (1 - up) * (1 - keep)
        table += [(1 - plus) / randomizer.size, plus / randomizer.size]
    return table


@pytest.mark.parametrize("epsilon0", [1e-4, 0.5, 2.0, 8.0, 32.0])
@pytest.mark.parametrize(
    "vector", [[0.0, 1.0, 0.0, 0.0, 0.0], [0.25, -0.25, 0.125, 0.0, -0.375], [0.1, 0.0, 0, 0, 0]]
)
def test_decoded_reports_have_the_vector_as_their_mean_and_the_stated_variance(
    epsilon0: float, vector: list[float]
) -> None:
    randomizer = L1Randomizer(dimension=5, epsilon0=epsilon0)
    x = np.array(vector)
    decoded = randomizer.decode(np.arange(16))
    p = np.array([float(q) for q in probabilities(randomizer, x)])
    np.testing.assert_allclose(p @ decoded, x, rtol=0, atol=1e-14 * randomizer.gain)
    error = p @ ((decoded - x) ** 2).sum(axis=1)
    assert error == pytest.approx(randomizer.variance(float(np.linalg.norm(x))), rel=1e-11)


def test_a_million_reports_follow_the_exact_probabilities() -> None:
    randomizer = L1Randomizer(dimension=5, epsilon0=1.0, radius=4.0)
    vector = np.array([1.0, -1.0, 0.5, 0.0, -1.5])
    reports = randomizer.randomize(np.broadcast_to(vector, (10**6, 5)), rng=np.random.default_rng(2))
    seen = np.bincount(reports, minlength=16)
    expected = 1e6 * np.array([float(p) for p in probabilities(randomizer, vector)])
    assert special.chdtrc(15, ((seen - expected) ** 2 / expected).sum()) > FALSE_ALARM


def test_the_mean_is_the_mean_of_the_decoded_reports() -> None:
    randomizer = L1Randomizer(dimension=6, epsilon0=1.0, radius=0.5)
    vectors = randomizer.clip(np.random.default_rng(3).normal(size=(1000, 6)))
    reports = randomizer.randomize(vectors, rng=np.random.default_rng(4))
    decoded = randomizer.decode(reports).mean(axis=0)
    np.testing.assert_allclose(randomizer.mean(reports), decoded, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [2, 3])
def test_the_law_covers_every_dataset_of_signed_unit_vectors_and_mixtures(n: int) -> None:
    """Reports of a dimension of 3 (4 rows) by definition, e^epsilon0 = 3."""
    inputs: list[Any] = [(1, 0, 0), (-1, 0, 0), (0, -1, 0), (0, 0, 0), (Fraction(1, 2), Fraction(1, 2), 0)]
    noise = Fraction(1, 2)  # (E - 1)/(E + 1)
    matrix = tuple(
        tuple(
            (1 + s * noise * sum(int(h) * y for h, y in zip(row, x, strict=False))) / 8
            for row in hadamard(4)
            for s in (-1, 1)
        )
        for x in inputs
    )
    law = L1Randomizer(dimension=3, epsilon0=math.log(3.0)).law()
    profile = AmplificationProfile(n, law.own, law.other, law.gap, law.clone)
    pairs = shuffled_pairs(matrix, n)
    for alpha in (Fraction(1), Fraction(5, 4), Fraction(2), Fraction(14, 5)):
        upper = profile.upper(np.array([math.log(alpha)]), 1e-6)[0]
        assert float(worst(pairs, alpha)) <= upper


def test_many_columns_in_many_chunks_are_estimated_without_bias() -> None:
    """At epsilon0 = 30 no sign flips, so a unit vector's report is a row with the right sign."""
    randomizer = L1Randomizer(dimension=100_001, epsilon0=30.0, radius=2.0)
    vectors = np.zeros((7, 100_001))
    vectors[np.arange(7), np.arange(7) * 16_000] = 2.0
    decoded = randomizer.decode(randomizer.randomize(vectors, rng=np.random.default_rng(5)))
    np.testing.assert_allclose((decoded * vectors).sum(axis=1), 4.0)
    np.testing.assert_allclose((decoded**2).sum(axis=1), randomizer.second_moment)


def test_one_column_and_one_vector_are_enough() -> None:
    randomizer = L1Randomizer(dimension=1, epsilon0=30.0)
    assert randomizer.size == 1
    assert randomizer.decode(randomizer.randomize([-1.0])) == pytest.approx([-1.0])


def test_clipped_vectors_are_accepted_and_keep_their_direction() -> None:
    randomizer = L1Randomizer(dimension=3, epsilon0=1.0, radius=2.0)
    clipped = randomizer.clip([[3.0, -1.0, 0.0], [1.0, 0.0, 1.0]])
    np.testing.assert_allclose(clipped, [[1.5, -0.5, 0.0], [1.0, 0.0, 1.0]])
    randomizer.randomize(clipped)


def test_bad_vectors_are_refused_by_row() -> None:
    randomizer = L1Randomizer(dimension=2, epsilon0=1.0)
    with pytest.raises(ValueError, match=r"l1 norm in \[0, 1.0\], row 1 has 1.25"):
        randomizer.randomize([[0.5, 0.5], [0.75, -0.5]])
    with pytest.raises(ValueError, match="row 0 has column 1 = -inf"):
        randomizer.randomize([0.5, -math.inf])
    with pytest.raises(ValueError, match="row 0 has a norm beyond double precision"):
        randomizer.clip([1.7e308, 1.7e308])
    with pytest.raises(ValueError, match=r"norm must be in \[0, 1.0\]"):
        randomizer.variance(1.1)
