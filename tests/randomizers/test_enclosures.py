"""What the accountant says of every randomizer, against all datasets of a few users."""

from collections.abc import Callable
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import shuffledp as sdp
from oracles.brute import shuffled_pairs, worst

SLACK = Fraction(1, 10**9)
ALPHAS = [Fraction(11, 10), Fraction(3, 2), Fraction(5, 2)]
FREQUENCY = [
    sdp.KaryRandomizedResponse(k=3, epsilon0=1.0),
    sdp.SymmetricUnaryEncoding(k=3, epsilon0=1.5),
    sdp.OptimisedUnaryEncoding(k=2, epsilon0=1.0),
    sdp.OptimisedUnaryEncoding(k=3, epsilon0=2.0),
    sdp.SubsetSelection(k=4, epsilon0=1.5, size=2),
    sdp.HadamardResponse(k=3, epsilon0=1.2),
    sdp.HadamardResponse(k=4, epsilon0=2.0),
    sdp.OptimisedLocalHashing(k=3, epsilon0=1.5, symbols=2),
    sdp.OptimisedLocalHashing(k=3, epsilon0=1.5, symbols=3),
]
GRID = [
    sdp.DiscreteLaplace(epsilon0=2.0, levels=2),
    sdp.DiscreteLaplace(epsilon0=1.0, levels=3),
    sdp.DiscreteGaussian(sigma=1.0, levels=1),
]
THREE = [
    sdp.SymmetricUnaryEncoding(k=4, epsilon0=1.5),
    sdp.OptimisedUnaryEncoding(k=3, epsilon0=2.0),
    sdp.SubsetSelection(k=5, epsilon0=1.5, size=2),
    sdp.SubsetSelection(k=3, epsilon0=1.5, size=1),
    sdp.HadamardResponse(k=5, epsilon0=2.0),
    sdp.OptimisedLocalHashing(k=5, epsilon0=1.5, symbols=3),
]


def enclosed(randomizer: Any, matrix: tuple[Any, ...], n: int) -> None:
    mechanism = sdp.Shuffled(randomizer, n=n)
    pairs = shuffled_pairs(matrix, n)
    for alpha in ALPHAS:
        truth = worst(pairs, alpha)
        found = mechanism.delta(epsilon=float(np.log(float(alpha))), tolerance=1e-3)
        assert Fraction(found.lower) <= truth * (1 + SLACK)
        assert truth <= Fraction(found.upper) * (1 + SLACK)


@pytest.mark.parametrize("randomizer", FREQUENCY, ids=repr)
def test_the_truth_over_all_datasets_is_inside(randomizer: Any, known: Callable[..., Any]) -> None:
    matrix = known(randomizer).matrix
    for n in (2, 3) if len(matrix[0]) <= 8 else (2,):
        enclosed(randomizer, matrix, n)


@pytest.mark.parametrize("randomizer", GRID, ids=repr)
def test_the_truth_over_all_datasets_of_grid_points_is_inside(randomizer: Any) -> None:
    matrix = tuple(tuple(Fraction(int(weight), 2**64) for weight in row) for row in randomizer.weights)
    enclosed(randomizer, matrix, 2)


@pytest.mark.parametrize("randomizer", THREE, ids=repr)
def test_the_third_law_is_that_of_three_inputs(randomizer: Any, known: Callable[..., Any]) -> None:
    """Merged by what three categories show, some three inputs have exactly this law."""
    all_reports = known(randomizer)
    law = randomizer.third_law()
    stated = sorted(zip(law.own, law.other, law.clone, strict=True))

    def seen(x: int, other: int, third: int) -> list[tuple[float, ...]]:
        total: dict[Any, Any] = {}
        for column, held in zip(zip(*all_reports.matrix, strict=True), all_reports.sets, strict=True):
            ratios = tuple(v in held for v in (x, other, third))
            masses = [column[v] for v in (x, other, third)]
            before = total.get(ratios, [0, 0, 0])
            total[ratios] = [a + b for a, b in zip(before, masses, strict=True)]
        merged: dict[Any, Any] = {}
        for a, b, c in total.values():
            if a + b:
                key = (a / (a + b), c / (a + b))
                u, v, r = merged.get(key, (0, 0, 0))
                merged[key] = (u + a, v + b, r + c)
        return sorted(tuple(map(float, row)) for row in merged.values())

    triples = permutations(range(randomizer.k), 3)
    assert any(
        len(found) == len(stated) and np.allclose(found, stated, rtol=1e-14, atol=0)
        for found in (seen(*triple) for triple in triples)
    )


SPECIFIC = [
    sdp.KaryRandomizedResponse(k=10, epsilon0=2.0),
    sdp.SymmetricUnaryEncoding(k=10, epsilon0=2.0),
    sdp.OptimisedUnaryEncoding(k=10, epsilon0=2.0),
    sdp.SubsetSelection(k=10, epsilon0=2.0),
    sdp.HadamardResponse(k=10, epsilon0=2.0),
    sdp.OptimisedLocalHashing(k=10, epsilon0=2.0),
    sdp.PrivUnit(dimension=50, epsilon0=2.0),
    sdp.LInfinityRandomizer(dimension=50, epsilon0=2.0),
    sdp.L1Randomizer(dimension=50, epsilon0=2.0),
    sdp.DiscreteLaplace(epsilon0=2.0, levels=8),
]


@pytest.mark.parametrize("randomizer", SPECIFIC, ids=repr)
def test_the_specific_analysis_is_at_least_as_tight_as_the_generic_one(randomizer: Any) -> None:
    generic = sdp.LocalRandomizer(epsilon0=2.0)
    for n in (100, 10_000, 10**7):
        ours = sdp.Shuffled(randomizer, n=n).epsilon(delta=1e-6)
        theirs = sdp.Shuffled(generic, n=n).epsilon(delta=1e-6)
        assert 0.0 < ours.lower <= ours.upper <= theirs.upper * (1 + 1e-3)


@pytest.mark.parametrize("randomizer", SPECIFIC, ids=repr)
def test_rounds_cohorts_and_calibration_take_every_randomizer(randomizer: Any) -> None:
    daily = sdp.Shuffled(randomizer, n=1000).sampled_from(50_000)
    found = (20 * daily).epsilon(delta=1e-6)
    assert 0.0 < found.lower <= found.upper < 20 * 2.0
    shape = {
        name: getattr(randomizer, name) for name in ("k", "dimension", "levels") if hasattr(randomizer, name)
    }
    best = sdp.calibrate(type(randomizer), n=10_000, epsilon=0.2, delta=1e-6, **shape)
    assert float(best.epsilon) <= 0.2
    assert float(best) > 2.0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::shuffledp.errors.CoarserBoundWarning")
def test_calibration_stops_at_the_largest_local_epsilon_that_is_sampled() -> None:
    best = sdp.calibrate(
        sdp.SymmetricUnaryEncoding, k=4, n=10_000, epsilon=40.0, delta=1e-6, analysis="blanket"
    )
    assert float(best) == sdp.SymmetricUnaryEncoding.MOST_EPSILON0
    assert best.epsilon.lower < float(best.epsilon) <= 40.0
