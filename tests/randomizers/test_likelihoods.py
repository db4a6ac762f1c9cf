"""What an audit weighs reports by, and the inputs of the concrete laws: against all reports, and samples."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.facts import AmplificationLaw
from shuffledp.randomizers.hadamard import HadamardResponse
from shuffledp.randomizers.hashing import OptimisedLocalHashing
from shuffledp.randomizers.levels import LeveledResponse
from shuffledp.randomizers.subset import SubsetSelection
from shuffledp.randomizers.unary import OptimisedUnaryEncoding, SymmetricUnaryEncoding

pytestmark = pytest.mark.quick

ORACLES = [
    sdp.KaryRandomizedResponse(k=4, epsilon0=2.0),
    sdp.BinaryRandomizedResponse(epsilon0=1.0),
    SymmetricUnaryEncoding(k=3, epsilon0=3.0),
    OptimisedUnaryEncoding(k=9, epsilon0=2.0),
    SubsetSelection(k=9, epsilon0=2.0, size=3),
    HadamardResponse(k=2, epsilon0=1.0),
    HadamardResponse(k=5, epsilon0=2.5),
    OptimisedLocalHashing(k=3, epsilon0=1.0, symbols=2),
    OptimisedLocalHashing(k=12, epsilon0=1.3, symbols=3),
    OptimisedLocalHashing(k=4, epsilon0=4.0, symbols=7),
]
NUMBERED = [
    LeveledResponse(k=13, epsilon0=2.0, branching=3),
    LeveledResponse(k=3, epsilon0=1.0),
    LeveledResponse(k=2, epsilon0=1.0),
]
VECTORS = [
    sdp.PrivUnit(dimension=8, epsilon0=2.0),
    sdp.PrivUnit(dimension=8, epsilon0=2.0, cap_probability=0.7),
    sdp.RampUnit(dimension=5, epsilon0=3.0),
    sdp.GaussianUnit(dimension=4, epsilon0=2.0),
    sdp.LInfinityRandomizer(dimension=5, epsilon0=2.0, radius=3.0),
    sdp.LInfinityRandomizer(dimension=1, epsilon0=2.0),
    sdp.L1Randomizer(dimension=6, epsilon0=2.0),
]
SAMPLE = 40_000


def chi_square(law: AmplificationLaw) -> float:
    """The variance of X at alpha = 1."""
    return sum(g * g / c for g, c in zip(law.gap, law.clone, strict=True) if c > 0.0)


def assert_datasets_are_those_of(law: AmplificationLaw, rows: Any, held: Any) -> None:
    own, other, clone = (np.asarray(rows[value], np.float64) for value in held)
    stated = chi_square(law), sum(map(abs, law.gap))
    found = float(((own - other) ** 2 / clone).sum()), float(np.abs(own - other).sum())
    assert found == pytest.approx(stated, rel=1e-9)


@pytest.mark.parametrize("oracle", ORACLES, ids=repr)
def test_oracles_know_how_likely_every_report_is_and_what_their_lower_ends_hold(
    oracle: Any, known: Callable[..., Any]
) -> None:
    everything = known(oracle)
    exact = np.array([[float(p) for p in row] for row in everything.matrix])
    found = oracle.likelihoods(everything.reports, range(oracle.k))
    assert found / found[:, :1] == pytest.approx(exact.T / exact.T[:, :1], rel=1e-9)
    every = np.arange(oracle.k)
    usual = sdp.FrequencyRandomizer._supports(oracle, everything.reports, every)
    assert np.array_equal(usual, oracle._supports(everything.reports, every))
    for held, law in zip(oracle.concrete_inputs(), oracle.facts().concrete, strict=True):
        assert_datasets_are_those_of(law, exact, held)


@pytest.mark.parametrize("randomizer", NUMBERED, ids=repr)
def test_levels_do_too(randomizer: Any) -> None:
    found = randomizer.likelihoods(np.arange(randomizer.outputs), range(randomizer.k))
    rows = (found / found.sum(axis=0)).T
    for held, law in zip(randomizer.concrete_inputs(), randomizer.facts().concrete, strict=True):
        assert_datasets_are_those_of(law, rows, held)
    seen = np.bincount(randomizer.randomize([1] * SAMPLE, rng=np.random.default_rng(1)))
    assert seen / SAMPLE == pytest.approx(rows[1], abs=0.02)


def test_rows_of_a_matrix_and_of_a_grid_are_the_likelihoods_of_their_inputs() -> None:
    rows = np.array([[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]])
    table = sdp.FiniteRandomizer(rows)
    assert np.array_equal(table.likelihoods([0, 1, 2, 2], list(table.row_inputs))[2:], rows.T[[2, 2]])
    noisy = sdp.DiscreteLaplace(epsilon0=2.0, low=10.0, high=20.0, levels=4)
    all_reports = np.arange(noisy.outputs)
    assert np.array_equal(noisy.likelihoods(all_reports, noisy.row_inputs), noisy.matrix.T)
    between = noisy.likelihoods(all_reports, [11.0])[:, 0]
    assert between == pytest.approx(0.6 * noisy.matrix[0] + 0.4 * noisy.matrix[1])


@pytest.mark.parametrize("randomizer", VECTORS, ids=repr)
def test_samples_of_vectors_agree_with_their_likelihoods_and_laws(randomizer: Any) -> None:
    """Under the law of the others, ratios have mean one, and X the variance of the concrete law."""
    rng = np.random.default_rng(2)
    inside = 0.3 * randomizer._corner
    pairs = zip(randomizer.concrete_inputs(), randomizer.facts().concrete, strict=True)
    fixed = [(held, law) for held, law in pairs if held is not None]
    assert fixed
    for (own, other, others), law in fixed:
        reports = randomizer.randomize(np.tile(others, (SAMPLE, 1)), rng=rng)
        u, v, w, z = randomizer.likelihoods(reports, np.stack([own, other, inside, others])).T
        for part in (u, v, w):
            off = 5.0 * (part / z).std() / SAMPLE**0.5
            assert (part / z).mean() == pytest.approx(1.0, abs=off)
        square = ((u - v) / z) ** 2
        assert square.mean() == pytest.approx(chi_square(law), abs=5.0 * square.std() / SAMPLE**0.5, rel=0.02)


@pytest.mark.parametrize("randomizer", [*ORACLES[:1], *NUMBERED[:1], VECTORS[0]], ids=repr)
def test_what_cannot_be_sent_or_held_is_refused(randomizer: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="reports"):
        randomizer.likelihoods("sent", np.zeros((1, 8)) if randomizer is VECTORS[0] else [0])
    with pytest.raises((ValueError, TypeError), match="values"):
        randomizer.likelihoods([0], [randomizer.dimension] if randomizer is VECTORS[0] else [randomizer.k])
