"""The permutation is uniform, exactly: also where random keys collide, whatever the reports are."""

from collections import Counter
from fractions import Fraction
from itertools import permutations, product
from math import factorial
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from shuffledp._randomness.words import Uint64s, Words
from shuffledp.errors import TooFewReportsError
from shuffledp.shuffling.permutation import _tied, in_random_order, permuted, shuffle

FALSE_ALARM = 1e-6
"""Of each chi-square test, for a fresh seed."""


class ScriptedWords(Words):
    """Gives the listed words, one list per draw."""

    def __init__(self, *draws: tuple[int, ...]) -> None:
        self._draws = [np.array(draw, dtype=np.uint64) for draw in draws]

    def draw(self, count: int) -> Uint64s:
        words = self._draws.pop(0)
        assert len(words) == count
        return words


class FewBits(Words):
    """Words of which only the leading bits are random: their keys collide all the time."""

    def __init__(self, bits: int, seed: int) -> None:
        self._bits, self._rng = bits, np.random.default_rng(seed)

    def draw(self, count: int) -> Uint64s:
        leading = self._rng.integers(0, 2**self._bits, size=count, dtype=np.uint64)
        return leading << np.uint64(64 - self._bits)


def chi_square(seen: Counter[tuple[int, ...]], n: int) -> float:
    """Against the uniform law on all orders of n things."""
    expected = sum(seen.values()) / factorial(n)
    orders = permutations(range(n))
    return sum((seen[order] - expected) ** 2 / expected for order in orders)


def as_tuple(rows: np.ndarray) -> tuple[int, ...]:
    return tuple(int(row) for row in rows.reshape(len(rows), -1)[:, 0])


def tied(keys: tuple[int, ...]) -> int:
    often = Counter(keys)
    return sum(often[key] > 1 for key in keys)


def test_every_order_of_three_has_probability_one_sixth_over_all_keys_of_two_bits() -> None:
    # Enumerates all first keys, and after a tie all orders of different second words.
    weight: Any = Counter()
    for keys in product(range(4), repeat=3):
        first = tuple(key << 62 for key in keys)
        ties = tied(keys)
        for second in permutations(range(ties)):
            words = ScriptedWords(first, second) if ties else ScriptedWords(first)
            order = in_random_order(np.arange(3, dtype=np.uint64), 2, words)
            weight[as_tuple(order)] += Fraction(1, 4**3 * factorial(ties))
    assert weight == dict.fromkeys(permutations(range(3)), Fraction(1, 6))


@pytest.mark.parametrize("bits", [1, 2, 3])
def test_orders_of_five_stay_uniform_when_most_keys_collide(bits: int) -> None:
    words = FewBits(bits, seed=20 + bits)
    things = np.arange(5, dtype=np.uint64)
    seen = Counter(as_tuple(in_random_order(things, 3, words)) for _ in range(9_000))
    assert chi_square(seen, 5) < chi2.isf(FALSE_ALARM, factorial(5) - 1)


@pytest.mark.parametrize("dtype", ["u1", "i2", ">u2", "f4", "u8", "f8"])
def test_orders_of_four_reports_of_any_type_are_uniform(dtype: str) -> None:
    rng = np.random.default_rng(7)
    reports = np.arange(4).astype(dtype)
    seen = Counter(as_tuple(shuffle(reports, rng=rng)) for _ in range(4_000))
    assert chi_square(seen, 4) < chi2.isf(FALSE_ALARM, factorial(4) - 1)


def test_orders_of_four_rows_are_uniform_and_rows_stay_together() -> None:
    rng = np.random.default_rng(8)
    reports = np.arange(4)[:, None] + np.array([0, 10, 20])
    seen: Counter[tuple[int, ...]] = Counter()
    for _ in range(4_000):
        shuffled = shuffle(reports, rng=rng)
        assert (shuffled - shuffled[:, :1] == [0, 10, 20]).all()
        seen[as_tuple(shuffled)] += 1
    assert chi_square(seen, 4) < chi2.isf(FALSE_ALARM, factorial(4) - 1)


def test_the_secure_shuffle_is_uniform_too() -> None:
    # No seed: this one can fail by chance, once in 10^9 runs.
    seen = Counter(as_tuple(shuffle(np.arange(4, dtype=np.uint8))) for _ in range(4_000))
    assert chi_square(seen, 4) < chi2.isf(1e-9, factorial(4) - 1)


def test_ties_are_found_wherever_they_are() -> None:
    # The search goes in pieces of 2^16.
    words = np.arange(2**17 + 3, dtype=np.uint64) << np.uint64(8)
    for start, end in ((0, 2), (2**16 - 1, 2**16 + 1), (2**16 - 2, 2**16 + 3), (2**17, 2**17 + 3)):
        keys = words.copy()
        keys[start:end] = words[start]
        assert _tied(keys, np.uint64(8)).tolist() == list(range(start, end))
    assert _tied(words, np.uint64(8)).size == 0


def test_neighbours_do_not_stay_in_the_order_of_their_payloads_when_keys_collide() -> None:
    # 2^17 reports and keys of 32 bits of which 20 are random: thousands of ties.
    reports = np.arange(2**17, dtype=np.uint32)
    shuffled = permuted(reports, FewBits(20, seed=3))
    assert (np.sort(shuffled) == reports).all()
    steps = np.diff(shuffled.astype(np.int64))
    # Ties left in payload order would make more neighbours rise than fall. 2^17 pairs: 6 sigma.
    assert abs((steps > 0).mean() - 0.5) < 6 / np.sqrt(12 * len(steps))


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8"])
def test_no_residue_of_order_is_left(dtype: str) -> None:
    n = 30_000
    reports = (np.arange(n) * 250 // n).astype(dtype)
    shuffled = shuffle(reports, rng=np.random.default_rng(5)).astype(float)
    assert (np.sort(shuffled) == reports).all()
    correlation = np.corrcoef(shuffled, np.arange(n))[0, 1]
    assert abs(correlation) * np.sqrt(n) < 5.5  # false alarm 4e-8


@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_handful_of_reports_can_be_permuted(n: int) -> None:
    for reports in (np.arange(n, dtype=np.uint8), np.arange(2 * n).reshape(n, 2)):
        assert sorted(permuted(reports, FewBits(1, 0)).tolist()) == reports.tolist()


def test_the_input_is_left_alone() -> None:
    reports = np.arange(100, dtype=np.uint16)
    shuffle(reports)
    assert (reports == np.arange(100)).all()


def test_batches_below_the_minimum_are_refused() -> None:
    with pytest.raises(TooFewReportsError, match=r"at least 3 reports .* got 2"):
        shuffle(np.zeros(2, dtype=np.uint8), minimum=3)
    with pytest.raises(TooFewReportsError, match=r"at least 1 report is .* got 0"):
        shuffle([])
    with pytest.raises(ValueError, match="minimum must be in"):
        shuffle([1, 2], minimum=0)


def test_a_single_number_is_no_batch_of_reports() -> None:
    with pytest.raises(ValueError, match="at least one dimension"):
        shuffle(3)
