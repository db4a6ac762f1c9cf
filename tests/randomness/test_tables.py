"""Tables of whole-number weights."""

from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings, strategies as st

from shuffledp._randomness.tables import WeightTable, integer_weights
from shuffledp._randomness.words import Words, source

pytestmark = pytest.mark.quick

WORD = 2**64
MASSES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12).filter(lambda p: sum(p) > 1e-3)


class Script(Words):
    """Given words."""

    def __init__(self, words: Any) -> None:
        self.words = np.array(words, dtype=np.uint64)

    def draw(self, count: int) -> npt.NDArray[np.uint64]:
        assert count == self.words.size
        return self.words


def naive(weights: tuple[int, int, int, int], word: int) -> int:
    """The outcome of a word: how many cumulative weights it has passed."""
    return bisect_right(list(accumulate(weights)), word)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(MASSES)
def test_weights_sum_to_two_to_the_64_and_are_within_one_of_their_share_but_never_lost(
    masses: list[float],
) -> None:
    weights = integer_weights(masses)
    total = sum(map(Fraction, masses))
    shares = [Fraction(mass) / total * WORD for mass in masses]
    assert sum(weights) == WORD
    assert all((weight > 0) == (share > 0) for weight, share in zip(weights, shares, strict=True))
    off = sorted(abs(weight - share) for weight, share in zip(weights, shares, strict=True))
    # Only the heaviest may pay for weights that were raised to one.
    assert all(gap <= 1 for gap in off[:-1])
    assert off[-1] <= len(masses)


def test_a_certain_outcome_has_all_the_weight() -> None:
    assert integer_weights([0.0, 1.0, 0.0]) == (0, WORD, 0)


def test_outcomes_far_below_the_resolution_keep_a_weight_of_one() -> None:
    assert integer_weights([1.0, 1e-300, 1e-25]) == (WORD - 2, 1, 1)


def test_equal_remainders_go_to_the_first() -> None:
    third = integer_weights([1.0, 1.0, 1.0])
    assert third == (WORD // 3 + 1, WORD // 3, WORD // 3)


ROWS = [
    integer_weights([0.5, 0.25, 0.25, 0.0]),
    integer_weights([0.0, 0.0, 1.0, 0.0]),
    integer_weights([0.0, 1e-30, 0.7, 0.3]),
    (1, 1, WORD - 3, 1),
    (WORD - 3, 1, 1, 1),
    (0, WORD - 1, 0, 1),
]


@pytest.mark.parametrize("copies", [1, 40_000])
def test_every_outcome_begins_and_ends_at_its_own_word(copies: int) -> None:
    """``copies`` make the guide fine or coarse."""
    table = WeightTable.of((ROWS * copies)[: max(len(ROWS), copies)])
    for x, weights in enumerate(ROWS):
        ends = list(accumulate(weights))
        for outcome, (weight, end) in enumerate(zip(weights, ends, strict=True)):
            if weight:
                got = table.sample(np.array([x, x]), Script([end - weight, end - 1]))
                assert got.tolist() == [outcome, outcome]


def test_random_words_give_what_bisection_gives_also_with_many_outcomes_in_a_cell() -> None:
    rng = np.random.default_rng(11)
    skew = integer_weights(rng.random(2000) ** 8 * 1e-9)
    tail = (WORD - 3 * 1999, *[3] * 1999)
    words = rng.integers(0, WORD - 1, 3000, dtype=np.uint64, endpoint=True)
    words[:1000] |= np.uint64(WORD - 2**13)  # in the tail
    table = WeightTable.of([skew, tail])
    for x, weights in enumerate((skew, tail)):
        got = table.sample(np.full(3000, x), Script(words))
        sums = list(accumulate(weights))
        assert got.tolist() == [bisect_right(sums, int(word)) for word in words]


def test_rows_that_do_not_sum_to_two_to_the_64_are_refused() -> None:
    with pytest.raises(ValueError, match=r"row 1 sums to 5"):
        WeightTable.of([(WORD - 1, 1), (2, 3)])


def test_a_million_outcomes_follow_the_weights() -> None:
    # Chi-square with 3 degrees of freedom: beyond 35 once in 8 million seeds.
    p = np.array([0.1, 0.2, 0.3, 0.4])
    table = WeightTable.of([integer_weights(p)])
    seen = np.bincount(table.sample(np.zeros(10**6, int), source(np.random.default_rng(12))))
    assert ((seen - 1e6 * p) ** 2 / (1e6 * p)).sum() < 35


def test_bisection_of_the_oracle_and_of_the_table_agree_on_the_smallest_and_largest_word() -> None:
    table = WeightTable.of(ROWS)
    for x, weights in enumerate(ROWS):
        got = table.sample(np.array([x, x]), Script([0, WORD - 1]))
        assert got.tolist() == [naive(weights, 0), naive(weights, WORD - 1)]
