"""The exchanged weights in the proof of Theorem 2, and how the notebook evaluates the clones."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import shuffledp as sdp
from oracles.brute import cohort_law, k_ary
from shuffledp.literature.as_published.girgis_2021 import coarse_clones_as_published, count_law_as_published
from shuffledp.literature.composition import kairouz_oh_viswanath_closed_epsilon

pytestmark = pytest.mark.quick


def count_law(E: Fraction, cohort: int, population: int, own: int) -> np.ndarray:
    """The law of the number of ones, all others holding 0, from the definition."""
    law = cohort_law(k_ary(2, E), (own, *(0,) * (population - 1)), cohort)
    found = np.zeros(cohort + 1)
    outcomes: Any = law.items()
    for (_, ones), mass in outcomes:
        found[ones] += float(mass)
    return found


def test_the_printed_law_is_not_that_of_the_dataset() -> None:
    """Eight users, two asked, e^epsilon0 = 3."""
    assert count_law(Fraction(3), 2, 8, own=1) == pytest.approx([15 / 32, 7 / 16, 3 / 32])
    printed = count_law_as_published(math.log(3), 2, 8)
    assert printed == pytest.approx([9 / 32, 9 / 16, 5 / 32])


def test_for_large_cohorts_the_printed_law_hides_the_user_better_than_the_truth() -> None:
    without = count_law(Fraction(3), 6, 8, own=0)
    alpha = 1.2
    truth = np.maximum(count_law(Fraction(3), 6, 8, own=1) - alpha * without, 0).sum()
    printed = np.maximum(count_law_as_published(math.log(3), 6, 8) - alpha * without, 0).sum()
    assert printed < 0.5 * truth


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="cohort must be in"):
        count_law_as_published(1.0, 9, 8)


def test_a_search_of_three_halvings_gives_about_18_in_the_setting_of_mnist() -> None:
    """2000 of 60,000, epsilon0 = 2, 6000 rounds, delta = 1e-5; the paper prints 18.3."""
    share, rounds, delta = 2000 / 60_000, 6000, 1e-5
    each = 0.5 * delta / (share * rounds)
    coarse = coarse_clones_as_published(2.0, 2000, each)
    assert coarse == 0.75
    clones = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=2.0), n=2000, analysis="clones-2021")
    assert clones.upper_epsilon(delta=each) < 0.45
    asked = math.log1p(share * math.expm1(coarse))
    total = kairouz_oh_viswanath_closed_epsilon(asked, share * each, rounds, delta)
    assert total == pytest.approx(18.0, abs=0.01)


def test_the_coarse_clones_are_valid() -> None:
    for epsilon0, n, delta in ((2.0, 300, 1e-3), (3.0, 2000, 1e-6), (1.0, 60, 1e-2)):
        clones = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=epsilon0), n=n, analysis="clones-2021")
        assert clones.upper_epsilon(delta=delta) <= coarse_clones_as_published(epsilon0, n, delta)
