"""Split and mix: shares that add up, tallies that add up, errors that name what is wrong."""

from typing import Any

import numpy as np
import pytest

from shuffledp.randomizers.split_and_mix import SplitAndMix

pytestmark = pytest.mark.quick

EASY = SplitAndMix(levels=10, scale=10.0, people=500, messages=9, modulus=2**16)


def test_messages_add_up_to_the_noisy_sum_and_tallies_to_the_whole() -> None:
    values = np.arange(500) % 11
    messages = EASY.randomize(values)
    assert messages.dtype == EASY.report_dtype == np.uint32
    assert messages.shape == (4500,)
    pieces = EASY.tally(messages[:777]) + EASY.tally(messages[777:])
    assert np.array_equal(pieces, EASY.tally(messages))
    assert abs(EASY.total(pieces, 500) - int(values.sum())) < 44 * 10


def test_every_share_is_uniform_and_no_number_shows_in_any_but_all_of_them() -> None:
    small = SplitAndMix(levels=3, scale=0.1, people=10**6, messages=4, modulus=8)
    rows = small.randomize([3] * 40_000, rng=np.random.default_rng(3)).reshape(-1, 4)
    for columns in ([0], [3], [0, 3], [1, 2, 3]):
        cells = 8 ** len(columns)
        place = sum(rows[:, c].astype(np.int64) * 8**i for i, c in enumerate(columns))
        counts = np.bincount(np.asarray(place), minlength=cells)
        expected = len(rows) / cells
        assert ((counts - expected) ** 2 / expected).sum() < cells + 6.0 * np.sqrt(2.0 * cells) + 20.0
    assert np.mean(rows.sum(axis=1) % 8 == 3) > 0.99  # together they do: noise of 10^6 people is rare in one


def test_sums_near_both_ends_and_wide_moduli() -> None:
    wide = SplitAndMix(levels=2**40, scale=5.0, people=100, messages=3, modulus=2**50)
    assert wide.report_dtype == np.uint64
    for value in (0, 2**40):
        found = wide.total(wide.tally(wide.randomize([value] * 100)), 100)
        assert abs(found - 100 * value) < 44 * 5
    assert wide.wrapped(100) < 1e-11
    assert wide.wrapped(2000) == 1.0


def test_the_same_generator_gives_the_same_messages() -> None:
    first, second = (EASY.randomize([5] * 20, rng=np.random.default_rng(9)) for _ in range(2))
    assert np.array_equal(first, second)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"modulus": 24}, "modulus must be a power of two"),
        ({"levels": 2**16}, "levels must be"),
        ({"scale": 1e9}, "scale must be at most"),
        ({"messages": 1}, "messages must be"),
        ({"people": 0}, "people must be"),
    ],
)
def test_parameters_out_of_range(change: dict[str, Any], words: str) -> None:
    parameters: dict[str, Any] = {"levels": 10, "scale": 10.0, "people": 500, "messages": 9, "modulus": 2**16}
    with pytest.raises(ValueError, match=words):
        SplitAndMix(**(parameters | change))


def test_values_and_messages_out_of_range() -> None:
    with pytest.raises(ValueError, match="values must be in 0"):
        EASY.randomize([11])
    with pytest.raises(ValueError, match="messages must be in"):
        EASY.tally(np.array([2**16]))
    with pytest.raises(TypeError, match="messages must be whole numbers"):
        EASY.tally(np.array([0.5]))


def test_one_person_s_messages_hide_nothing() -> None:
    assert EASY.facts().epsilon0.upper == float("inf")
