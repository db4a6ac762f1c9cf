"""Estimates: unbiased and with the stated variance, by expectation over exact probabilities."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from shuffledp.randomizers.hadamard import HadamardResponse
from shuffledp.randomizers.hashing import OptimisedLocalHashing
from shuffledp.randomizers.kary import KaryRandomizedResponse
from shuffledp.randomizers.matrix import FiniteRandomizer
from shuffledp.randomizers.subset import SubsetSelection
from shuffledp.randomizers.unary import OptimisedUnaryEncoding, SymmetricUnaryEncoding

pytestmark = pytest.mark.quick

RANDOMIZERS = [
    KaryRandomizedResponse(k=2, epsilon0=0.01),
    KaryRandomizedResponse(k=6, epsilon0=2.0),
    SymmetricUnaryEncoding(k=5, epsilon0=2.0),
    OptimisedUnaryEncoding(k=5, epsilon0=1.0),
    SubsetSelection(k=6, epsilon0=1.0),
    SubsetSelection(k=5, epsilon0=1.0, size=4),
    HadamardResponse(k=4, epsilon0=1.0),
    HadamardResponse(k=11, epsilon0=2.0),
    OptimisedLocalHashing(k=5, epsilon0=1.0, symbols=3),
    OptimisedLocalHashing(k=9, epsilon0=0.5, symbols=2),
]


def name(randomizer: Any) -> str:
    return repr(randomizer)


def supported(randomizer: Any, all_reports: Any) -> list[list[int]]:
    """[y][v]: whether report y speaks for category v, as the package counts."""
    return [
        randomizer.support(report).tolist()
        for report in all_reports.reports.astype(randomizer.randomize([0]).dtype)
    ]


@pytest.mark.parametrize("randomizer", RANDOMIZERS, ids=name)
def test_every_report_supports_exactly_the_categories_of_its_definition(
    randomizer: Any, known: Callable[..., Any]
) -> None:
    exact = known(randomizer)
    for row, chosen in zip(supported(randomizer, exact), exact.sets, strict=True):
        assert row == [int(v in chosen) for v in range(randomizer.k)]


@pytest.mark.parametrize("randomizer", RANDOMIZERS, ids=name)
def test_the_own_category_is_supported_with_probability_p_and_every_other_with_q(
    randomizer: Any, known: Callable[..., Any]
) -> None:
    exact = known(randomizer)
    p, q = randomizer.support_probability
    for x, row in enumerate(exact.matrix):
        for v in range(randomizer.k):
            chance = sum(
                (mass for mass, chosen in zip(row, exact.sets, strict=True) if v in chosen), Fraction(0)
            )
            assert float(chance) == (p if v == x else q)


@pytest.mark.parametrize("randomizer", RANDOMIZERS, ids=name)
def test_estimates_from_expected_supports_are_the_true_counts(
    randomizer: Any, known: Callable[..., Any]
) -> None:
    exact, k = known(randomizer), randomizer.k
    counts = [(7 * v * v + 3) % 41 for v in range(k)]
    expected = [
        sum(
            c * mass
            for c, row in zip(counts, exact.matrix, strict=True)
            for mass, chosen in zip(row, exact.sets, strict=True)
            if v in chosen
        )
        for v in range(k)
    ]
    estimates = randomizer.estimate([float(e) for e in expected], n=sum(counts))
    assert estimates == pytest.approx(counts, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("randomizer", RANDOMIZERS, ids=name)
def test_the_variance_is_that_of_independent_users(randomizer: Any, known: Callable[..., Any]) -> None:
    exact, k = known(randomizer), randomizer.k
    counts = [(5 * v + 2) % 17 for v in range(k)]
    n = sum(counts)
    # What one more supporting report adds to an estimate, by the package itself.
    unit = np.zeros(k)
    per_report = (randomizer.estimate(unit + 1.0, n) - randomizer.estimate(unit, n))[0]
    stated = randomizer.variance(counts, n)
    for v in range(k):
        variance = Fraction(0)
        for c, row in zip(counts, exact.matrix, strict=True):
            chance = sum(
                (mass for mass, chosen in zip(row, exact.sets, strict=True) if v in chosen), Fraction(0)
            )
            variance += c * chance * (1 - chance)
        assert stated[v] == pytest.approx(float(variance) * per_report**2, rel=1e-9)


MATRICES = [
    [[0.75, 0.25], [0.25, 0.75]],
    [[0.5, 0.3, 0.2, 0.0], [0.1, 0.2, 0.3, 0.4], [0.25, 0.5, 0.125, 0.125]],
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.25, 0.25, 0.5]],
]


@pytest.mark.parametrize("matrix", MATRICES, ids=["2x2", "3x4", "3x3"])
def test_estimates_by_least_squares_are_unbiased_and_have_the_stated_variance(
    matrix: list[list[float]],
) -> None:
    randomizer = FiniteRandomizer(matrix)
    rows = [[Fraction(w, 2**64) for w in row] for row in randomizer.weights]
    outputs = len(rows[0])
    # The estimate is linear in the histogram: what one report of each kind adds.
    adds = np.array([randomizer.estimate(np.eye(outputs)[y], n=1) for y in range(outputs)])
    counts = [3, 5, 2][: len(rows)]
    expected = [float(sum(c * row[y] for c, row in zip(counts, rows, strict=True))) for y in range(outputs)]
    assert sum(expected) == 10.0 or len(rows) == 2
    assert np.array(expected) @ adds == pytest.approx(counts, abs=1e-12)
    stated = randomizer.variance(counts, n=sum(counts))
    for v in range(len(rows)):
        variance = 0.0
        for c, row in zip(counts, rows, strict=True):
            first = sum(float(p) * adds[y, v] for y, p in enumerate(row))
            second = sum(float(p) * adds[y, v] ** 2 for y, p in enumerate(row))
            variance += c * (second - first**2)
        assert stated[v] == pytest.approx(variance, abs=1e-9)


def test_a_matrix_whose_rows_are_dependent_has_no_estimate() -> None:
    blind = FiniteRandomizer([[0.5, 0.5], [0.25, 0.75], [0.375, 0.625]])
    with pytest.raises(ValueError, match="3 rows of the matrix are linearly dependent"):
        blind.estimate([1, 1], n=2)


def test_the_realised_matrix_is_that_of_the_weights_and_next_to_the_given_one() -> None:
    given = FiniteRandomizer([[0.1, 0.2, 0.7], [1e-30, 0.5, 0.5], [0.0, 1.0, 0.0]])
    assert all(sum(row) == 2**64 for row in given.weights)
    assert given.weights[1][0] == 1
    assert given.weights[2] == (0, 2**64, 0)
    assert np.abs(given.realised.matrix - given.matrix).max() < 2**-53
    for row, weights in zip(given.realised.matrix, given.weights, strict=True):
        assert row == pytest.approx([float(Fraction(w, 2**64)) for w in weights], rel=1e-15)


def test_supports_of_a_matrix_are_the_histogram_of_its_outputs() -> None:
    randomizer = FiniteRandomizer([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]])
    assert (randomizer.k, randomizer.outputs) == (2, 3)
    assert randomizer.support([2, 2, 0]).tolist() == [1, 0, 2]


def test_default_sizes_minimise_the_variance_of_a_rare_category() -> None:
    for epsilon0 in (0.2, 1.0, 2.5, 4.0):

        def spread(randomizer: Any) -> npt.NDArray[np.float64]:
            return randomizer.variance(np.zeros(randomizer.k), n=1)[0]

        sizes = [SubsetSelection(k=20, epsilon0=epsilon0, size=s) for s in range(1, 20)]
        assert spread(SubsetSelection(k=20, epsilon0=epsilon0)) == min(map(spread, sizes))
        primes = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73]
        hashes = [OptimisedLocalHashing(k=20, epsilon0=epsilon0, symbols=g) for g in primes]
        assert spread(OptimisedLocalHashing(k=20, epsilon0=epsilon0)) == min(map(spread, hashes))


def test_estimates_of_reports_that_say_nothing_are_refused() -> None:
    silent = KaryRandomizedResponse(k=3, epsilon0=0.0)
    with pytest.raises(ValueError, match="do not depend on the values"):
        silent.estimate([1, 1, 1], n=3)
    with pytest.raises(ValueError, match="do not depend on the values"):
        silent.variance([1, 1, 1], n=3)


def test_secure_reports_of_many_users_give_their_counts_back() -> None:
    # Six estimates within 7 standard deviations: a false alarm has probability 2e-11.
    randomizer = KaryRandomizedResponse(k=6, epsilon0=1.0)
    values = np.repeat(np.arange(6), [0, 1000, 20_000, 50_000, 100_000, 29_000])
    counts = np.bincount(values, minlength=6)
    estimates = randomizer.estimate(randomizer.support(randomizer.randomize(values)), values.size)
    assert (np.abs(estimates - counts) < 7 * np.sqrt(randomizer.variance(counts, values.size))).all()
