"""Randomizers of two inputs: binary randomized response, processed (T12, docs/proofs/two-inputs.md)."""

from fractions import Fraction
from math import log
from pathlib import Path

import numpy as np
import pytest

import shuffledp as sdp
from oracles import brute
from oracles.claims import assert_encloses
from oracles.hockey import between, ratios

F = Fraction
SYMMETRIC = ((F(3, 4), F(1, 4)), (F(1, 4), F(3, 4)))
TWO_ROWS = ((F(1, 2), F(1, 4), F(1, 4)), (F(1, 8), F(3, 8), F(1, 2)))
TWO_COLUMNS = ((F(1, 4), F(3, 4)), (F(5, 8), F(3, 8)), (F(1, 2), F(1, 2)))


@pytest.mark.parametrize("matrix", [SYMMETRIC, TWO_ROWS, TWO_COLUMNS])
@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("analysis", ["best", "exact"])
def test_every_dataset_is_covered(matrix: brute.Matrix, n: int, analysis: str) -> None:
    truth = brute.shuffled_pairs(matrix, n)
    randomizer = sdp.FiniteRandomizer([[float(entry) for entry in row] for row in matrix])
    middles = between([F(0), *ratios(truth)])
    alphas = np.array([float(alpha) for alpha in middles[:: max(1, len(middles) // 12)]])
    bound = sdp.Shuffled(randomizer, n=n, analysis=analysis).profile(alphas)
    for alpha, lower, upper in zip(alphas, bound.lower, bound.upper, strict=True):
        assert_encloses(sdp.Bound(lower, upper), brute.worst(truth, F(alpha)))


def same_as_binary(randomizer: object, epsilon0: float, n: int) -> None:
    binary = sdp.Shuffled(sdp.BinaryRandomizedResponse(epsilon0=epsilon0), n=n).epsilon(delta=1e-6)
    found = sdp.Shuffled(randomizer, n=n)
    assert found.analysis_at(binary.upper) == "exact"
    assert found.epsilon(delta=1e-6).upper == pytest.approx(binary.upper, rel=1e-4)
    assert found.epsilon(delta=1e-6).lower == pytest.approx(binary.lower, rel=2e-4)


@pytest.mark.parametrize(("epsilon0", "n"), [(1.0, 200), (2.0, 10_000), (4.0, 1_000_000)])
def test_the_same_mechanism_gets_the_same_answer(epsilon0: float, n: int) -> None:
    same_as_binary(sdp.DiscreteLaplace(epsilon0=epsilon0, levels=1), epsilon0, n)
    same_as_binary(sdp.LInfinityRandomizer(dimension=1, epsilon0=epsilon0), epsilon0, n)
    same_as_binary(sdp.L1Randomizer(dimension=1, epsilon0=epsilon0), epsilon0, n)


def test_a_symmetric_matrix_is_binary_response() -> None:
    same_as_binary(sdp.FiniteRandomizer([[0.75, 0.25], [0.25, 0.75]]), log(3.0), 1000)


def test_of_two_analyses_without_an_order_the_smaller_one_counts() -> None:
    skewed = sdp.FiniteRandomizer([[float(entry) for entry in row] for row in TWO_ROWS])
    both = [
        sdp.Shuffled(skewed, n=1000, analysis=name).upper_epsilon(delta=1e-6) for name in ("exact", "blanket")
    ]
    assert sdp.Shuffled(skewed, n=1000).upper_epsilon(delta=1e-6) <= min(both) * (1.0 + 1e-3)


def test_three_rows_of_three_reports_are_not_two_inputs() -> None:
    matrix = sdp.FiniteRandomizer([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]])
    with pytest.raises(ValueError, match="analysis must be one of"):
        sdp.Shuffled(matrix, n=10, analysis="exact")


def test_what_the_blanket_loses_is_what_the_page_says() -> None:
    text = (Path(__file__).parents[2] / "docs" / "proofs" / "two-inputs.md").read_text(encoding="utf-8")
    losses = []
    for n, epsilon0 in ((10**4, 1.0), (10**6, 4.0)):  # the least and the most of n and epsilon0 there
        answer = sdp.BinaryRandomizedResponse(epsilon0=epsilon0)
        exact, blanket = (
            sdp.Shuffled(answer, n=n, analysis=name).upper_epsilon(delta=1e-6)
            for name in ("exact", "blanket")
        )
        losses.append(round(100 * (blanket / exact - 1)))
    assert f"{losses[0]} to {losses[1]}% larger" in text
