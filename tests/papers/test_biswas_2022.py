"""One bin of the histogram: Tables II and IV reproduced with the wrong loss, and what is right."""

import math
from fractions import Fraction

import numpy as np
import pytest

from oracles.brute import k_ary, shuffled_pairs, worst
from oracles.golden import Golden, entries
from response import krr_witnesses
from shuffledp.literature.as_published.biswas_2022 import (
    one_bin_delta_as_published,
    one_bin_deltas_with_the_right_loss_as_published,
)

pytestmark = pytest.mark.quick


def arguments(golden: Golden) -> tuple[float, int, int, int, float]:
    at = golden.params
    return golden.number("eps0"), at["n"], at["n_x0"], at["k"], golden.number("eps")


@pytest.mark.parametrize("golden", entries("p3_eq6_as_printed"), ids=str)
def test_the_printed_loss_has_its_golden_values(golden: Golden) -> None:
    assert one_bin_delta_as_published(*arguments(golden)) == pytest.approx(golden.delta, rel=1e-8)


@pytest.mark.parametrize("golden", entries("p3_eq6_delta"), ids=str)
def test_the_right_loss_has_its_golden_values(golden: Golden) -> None:
    forward, backward = one_bin_deltas_with_the_right_loss_as_published(*arguments(golden))
    found = backward if golden.backwards else forward
    assert found == pytest.approx(golden.delta, rel=1e-8, abs=1e-30)


TABLE_2 = [(0.01, 1.18e-14), (0.1, 1.26e-28), (0.2, 2.69e-43), (0.3, 1.39e-57), (0.4, 9.46e-73)]


@pytest.mark.parametrize(("epsilon", "printed"), TABLE_2)
def test_table_2_is_reproduced_by_the_wrong_loss(epsilon: float, printed: float) -> None:
    """n = 100, epsilon0 = 0.49; k = 10 and 80 others that hold x0 are not stated there."""
    found = one_bin_delta_as_published(0.49, 100, 80, 10, epsilon)
    assert abs(math.log10(found / printed)) < 0.006


TABLE_4 = [  # epsilon0, n, k, epsilon, delta as printed; 80% of the others hold x0
    (1.0, 100, 10, 0.1, 2.08e-20),
    (1.0, 100, 10, 0.5, 3.42e-43),
    (2.0, 100, 10, 0.1, 2.49e-15),
    (2.0, 100, 10, 0.5, 3.25e-22),
    (2.0, 100, 10, 1.0, 2.20e-30),
    (3.0, 100, 10, 0.1, 8.79e-11),
    (3.0, 100, 10, 1.0, 3.52e-16),
    (2.0, 50, 10, 0.5, 5.02e-12),
    (2.0, 150, 10, 0.1, 6.58e-22),
    (2.0, 100, 5, 0.1, 1.96e-10),
    (2.0, 100, 15, 0.1, 1.66e-18),
]


@pytest.mark.parametrize(("epsilon0", "n", "k", "epsilon", "printed"), TABLE_4)
def test_table_4_is_reproduced_by_the_wrong_loss_and_far_below_the_right_one(
    epsilon0: float, n: int, k: int, epsilon: float, printed: float
) -> None:
    setting = epsilon0, n, n * 4 // 5, k, epsilon
    assert one_bin_delta_as_published(*setting) == pytest.approx(printed, rel=0.01)
    assert one_bin_deltas_with_the_right_loss_as_published(*setting)[0] > 1e3 * printed


def test_the_right_numbers_of_the_first_entry_of_table_4() -> None:
    """Table 2.49e-15; one bin 6.15e-3; largest over the others' data 2.78e-2; whole histogram 5.02e-2."""
    bins = [one_bin_deltas_with_the_right_loss_as_published(2.0, 100, m, 10, 0.1) for m in range(100)]
    assert bins[80][0] == pytest.approx(6.15e-3, rel=1e-3)
    # The largest is over the data in the direction of the table; the other one reaches 2.91e-2.
    assert max(forward for forward, _ in bins) == pytest.approx(2.78e-2, rel=5e-3)
    assert max(backward for _, backward in bins) == pytest.approx(2.91e-2, rel=5e-3)
    histogram = max(
        float(pair.support(np.array([0.1]), 1e-4).value[0]) for pair in krr_witnesses(10, 2.0, 100)
    )
    assert histogram == pytest.approx(5.02e-2, rel=0.02)
    assert histogram > max(max(pair) for pair in bins)


def test_the_right_numbers_of_table_2() -> None:
    """epsilon = 0.1: table 1.26e-28, one bin 1.35e-9, whole histogram at least 8.5e-7."""
    one_bin = one_bin_deltas_with_the_right_loss_as_published(0.49, 100, 80, 10, 0.1)[0]
    assert one_bin == pytest.approx(1.35e-9, rel=0.01)
    histogram = max(
        float(pair.support(np.array([0.1]), 1e-4).value[0]) for pair in krr_witnesses(10, 0.49, 100)
    )
    assert histogram >= 8.4e-7


@pytest.mark.parametrize(("k", "ratio"), [(2, 1.0), (3, 1.2156), (4, 1.7221)])
def test_one_bin_is_less_than_the_histogram_for_more_than_two_symbols(k: int, ratio: float) -> None:
    """e^epsilon0 = 3, n = 6, epsilon = 0.4: the exact worst case over the largest one-bin value of any
    number of others and either direction."""
    n, epsilon = 6, 0.4
    truth = float(worst(shuffled_pairs(k_ary(k, Fraction(3)), n), Fraction(math.exp(epsilon))))
    bins = [one_bin_deltas_with_the_right_loss_as_published(math.log(3), n, m, k, epsilon) for m in range(n)]
    assert truth / max(max(pair) for pair in bins) == pytest.approx(ratio, abs=1e-4)
    if k == 3:  # in the direction of the paper alone
        assert truth / max(forward for forward, _ in bins) == pytest.approx(2.02, abs=6e-3)


def test_the_worst_number_of_others_is_needed_even_for_two_symbols() -> None:
    """For k = 2 one n_x0 is exact for that dataset, and below the worst one."""
    truth = float(worst(shuffled_pairs(k_ary(2, Fraction(3)), 6), Fraction(math.exp(0.4))))
    assert one_bin_deltas_with_the_right_loss_as_published(math.log(3), 6, 0, 2, 0.4)[0] < 0.99 * truth


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="n_x0 must be in"):
        one_bin_delta_as_published(1.0, 10, 10, 3, 0.1)
