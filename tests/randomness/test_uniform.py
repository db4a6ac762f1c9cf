"""Exactly uniform whole numbers."""

import numpy as np
import numpy.typing as npt
import pytest

from shuffledp._randomness.uniform import rounded_at_random, uniform, words_below
from shuffledp._randomness.words import Words, source

pytestmark = pytest.mark.quick


class Script(Words):
    """Given words, in order."""

    def __init__(self, words: list[int]) -> None:
        self.words = list(words)

    def draw(self, count: int) -> npt.NDArray[np.uint64]:
        drawn, self.words = self.words[:count], self.words[count:]
        return np.array(drawn, dtype=np.uint64)


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 6, 2**32 + 1, 2**63, 2**63 + 1, 2**64 - 1])
def test_the_words_that_are_kept_are_a_whole_number_of_rounds(bound: int) -> None:
    kept = 2**64 - 2**64 % bound
    last = kept - 1
    assert uniform(Script([last]), bound, 1).tolist() == [bound - 1]
    if kept < 2**64:
        script = Script([kept, 5, 2**64 - 1, kept, 7])
        assert uniform(script, bound, 2).tolist() == [7 % bound, 5 % bound]


def test_a_full_range_draws_every_word_once() -> None:
    assert words_below(Script([0, 2**64 - 1]), 2**64, 2).tolist() == [0, 2**64 - 1]


def test_rejected_words_are_drawn_again_until_all_are_below_the_limit() -> None:
    few = words_below(source(np.random.default_rng(5)), 2**56, 50)
    assert few.max() < 2**56


def test_a_million_throws_of_a_die_are_fair() -> None:
    # Chi-square with 5 degrees of freedom: beyond 38 once in 3 million seeds.
    seen = np.bincount(uniform(source(np.random.default_rng(6)), 6, 10**6).astype(int))
    assert ((seen - 10**6 / 6) ** 2 / (10**6 / 6)).sum() < 38


def test_numbers_are_rounded_to_their_neighbours_also_the_tiny_negative_ones() -> None:
    steps = np.array([0.25, -0.25, 3.0, -3.0, -1e-20, -5e-324, 1e-20])
    for words, expected in (([0] * 7, [1, 0, 3, -3, 0, 0, 0]), ([2**63] * 7, [0, 0, 3, -3, 0, 0, 0])):
        assert rounded_at_random(steps, Script(words)).tolist() == expected
    assert rounded_at_random(steps[:2], Script([2**62, 2**64 - 2**62])).tolist() == [0, -1]
