"""Shares of vectors (T22): they add up, tallies add up, norms hold, errors name what is wrong."""

from typing import Any

import numpy as np
import pytest

from shuffledp._randomness.words import source
from shuffledp.randomizers.split_vectors import SplitVectors

pytestmark = pytest.mark.quick

EASY = SplitVectors(dimension=3, norm="l2", levels=40, variance=9.0, shares=5, modulus=2**16)


def test_messages_add_up_to_the_noisy_sums_and_tallies_to_the_whole() -> None:
    values = np.array([[10, -20, 0], [-39, 3, 5]] * 200)
    messages = EASY.randomize(values)
    assert messages.dtype == EASY.report_dtype == np.uint32
    assert messages.shape == (400 * EASY.messages,)
    mixed = np.random.default_rng(1).permutation(messages)
    pieces = EASY.tally(mixed[:777]) + EASY.tally(mixed[777:])
    assert np.array_equal(pieces, EASY.tally(messages))
    assert EASY.people(pieces) == EASY.people(pieces, 400) == 400
    assert np.all(np.abs(EASY.totals(pieces) - values.sum(axis=0)) < 8 * 3 * 20)


def test_wide_messages_keep_every_bit() -> None:
    wide = SplitVectors(dimension=1000, norm="linf", levels=2**30, variance=5.0, shares=3, modulus=2**48)
    values = np.full((3, 1000), 2**30)
    values[:, ::2] *= -1
    messages = wide.randomize(values)
    assert messages.dtype == np.uint64
    assert np.all(np.abs(wide.totals(wide.tally(messages)) - values.sum(axis=0)) < 100)


def test_all_but_one_of_a_coordinate_s_shares_are_uniform() -> None:
    small = SplitVectors(dimension=2, norm="linf", levels=1, variance=1.0, shares=4, modulus=8)
    rows = small.randomize([[1, -1]] * 20_000, rng=np.random.default_rng(3)).reshape(-1, 2, 4)
    assert np.array_equal(np.unique(rows[:, 0]), np.arange(8))
    assert np.array_equal(np.unique(rows[:, 1]), np.arange(8, 16))
    for columns in ((0, 1), (1, 3), (0, 3)):
        place = rows[:, 0, columns[0]].astype(int) * 8 + rows[:, 0, columns[1]]
        counts = np.bincount(place, minlength=64)
        expected = len(rows) / 64
        assert ((counts - expected) ** 2 / expected).sum() < 64 + 6 * np.sqrt(128) + 20


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_rounding_is_unbiased_and_no_vector_leaves_the_norm_that_is_counted_on(norm: str) -> None:
    vectors = SplitVectors(dimension=50, norm=norm, levels=7, variance=5.0, shares=3, modulus=2**20)
    rng = np.random.default_rng(4)
    steps = rng.standard_normal(50)
    steps *= 7 / (np.linalg.norm(steps) if norm == "l2" else np.abs(steps).max())
    rows = vectors.rounded(np.tile(steps, (4000, 1)), source(rng))
    assert np.all(np.abs(rows.mean(axis=0) - steps) < 6 * 0.5 / np.sqrt(4000))
    assert np.abs(rows).max() <= 7
    if norm == "l2":
        assert (rows**2).sum(axis=1).max() <= vectors.longest**2
        assert vectors.farthest == 4 * 15**2 > vectors.attained == 4 * 49
        # Whatever the scaling's rounding: what would be longer is cut towards zero.
        short = SplitVectors(dimension=4, norm="l2", levels=2, variance=5.0, shares=3, modulus=2**10)
        assert short.longest == 4
        assert (short.rounded(np.full((500, 4), 1.9), source(rng)) ** 2).sum(axis=1).max() <= 16
    else:
        assert vectors.farthest == vectors.attained == 4 * 50 * 49


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"modulus": 24}, "modulus must be a power of two"),
        ({"levels": 2**15}, "levels must be"),
        ({"variance": 0.5}, "variance must be in"),
        ({"variance": 1e12}, "variance must be in"),
        ({"shares": 1}, "shares must be"),
        ({"norm": "l1"}, "norm must be"),
        ({"dimension": 2**60}, "dimension must be"),
    ],
)
def test_parameters_out_of_range(change: dict[str, Any], words: str) -> None:
    parameters = {"dimension": 3, "norm": "l2", "levels": 40, "variance": 9.0, "shares": 5, "modulus": 2**16}
    with pytest.raises(ValueError, match=words):
        SplitVectors(**(parameters | change))


def test_values_and_messages_out_of_range() -> None:
    for values, words in (
        ([[41, 0, 0]], "values must be in"),
        ([[30, 30, 30]], "l2 norm of at most 42"),
        ([[1, 2]], "shape"),
        ([[0.5, 0.0, 0.0]], "whole numbers"),
    ):
        with pytest.raises(ValueError, match=words):
            EASY.randomize(values)
    with pytest.raises(ValueError, match="messages must be whole numbers in"):
        EASY.tally(np.array([3 * 2**16]))
    with pytest.raises(TypeError, match="messages must be"):
        EASY.tally(np.array([0.5]))
    tally = EASY.tally(EASY.randomize([[1, 2, 3]] * 4))
    for place in (6, 7):
        spoilt = tally.copy()
        spoilt[place] -= 1
        with pytest.raises(ValueError, match="of every person in every coordinate"):
            EASY.people(spoilt)
    assert EASY.facts().epsilon0.upper == float("inf")
