"""The exchanged weights in the proof of Theorem 2."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from oracles.brute import cohort_law, k_ary
from shuffledp.literature.as_published.girgis_2021 import count_law_as_published

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
