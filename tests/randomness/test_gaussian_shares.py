"""Discrete Gaussian shares: their law, and how near their sums are to Gaussian noise (the lemma of T22)."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from shuffledp._certified.gaussian_shares import conversion, tail
from shuffledp._certified.rounding import Floats
from shuffledp._randomness.noise_shares import GaussianShares
from shuffledp._randomness.words import Uint64s, Words, source

pytestmark = pytest.mark.quick

REACH = 60


def discrete(variance: float) -> Floats:
    """The law on -REACH, ..., REACH."""
    k = np.arange(-REACH, REACH + 1)
    law = np.exp(-0.5 * k * k / variance)
    return np.asarray(law / law.sum())


def total_variation(first: Floats, second: Floats) -> float:
    return float(0.5 * np.abs(first - second).sum())


def summed(variance: float, people: int) -> Floats:
    one, law = discrete(variance), discrete(variance)
    for _ in range(people - 1):
        law = np.convolve(law, one)[REACH:-REACH]
    return law


@pytest.mark.parametrize("variance", [1.0, 1.3, 2.0])
@pytest.mark.parametrize("people", [2, 3, 5])
def test_sums_of_shares_are_as_near_to_discrete_and_to_rounded_noise_as_is_said(
    variance: float, people: int
) -> None:
    law, bound = summed(variance, people), conversion(variance, people)
    sums = total_variation(law, discrete(people * variance))
    k, x = np.arange(-REACH, REACH + 1), np.arange(-REACH, REACH, 1 / 64)
    # Continuous noise that is rounded at random: trapezoids of a smooth function are exact enough.
    width = people * variance - 0.5 * variance
    density = np.exp(-0.5 * x * x / width) / math.sqrt(2 * math.pi * width) / 64
    rule = np.exp(-((k[:, None] - x) ** 2) / variance)
    rounded = rule / rule.sum(axis=0) @ density
    assert total_variation(rounded, discrete(people * variance)) + sums <= bound + 1e-14
    assert total_variation(rounded, law) <= bound + 1e-14
    # And back: noise added makes it continuous.
    smooth = np.exp(-0.5 * (x[:, None] - k) ** 2 / variance) / math.sqrt(2 * math.pi * variance) @ law
    spread = (people + 1) * variance
    normal = np.exp(-0.5 * x * x / spread) / math.sqrt(2 * math.pi * spread)
    assert 0.5 * np.abs(smooth - normal).sum() / 64 <= bound + 1e-14
    if variance == 1.0 and people == 2:
        assert total_variation(rounded, law) >= 0.01 * bound  # not far below


def test_tails_hold_and_nothing_is_far_off_for_the_shares_that_plans_use() -> None:
    law, k = summed(2.0, 4), np.abs(np.arange(-REACH, REACH + 1))
    for size in (3, 7, 12):
        exact = law[k >= size].sum()
        assert exact <= tail(2.0, 4, size) <= 30 * exact
    assert conversion(5.0, 10**8) < 1e-20
    assert tail(5.0, 10**4, 1e9) <= 1e-290


def test_the_table_is_the_law_to_the_last_bits() -> None:
    shares = GaussianShares(5.0)
    ends = [0, *shares._ends, 2**128]
    weights = np.diff([float(end) / 2.0**128 for end in ends])
    k = np.arange(-shares._largest, shares._largest + 1)
    exact = np.exp(-0.1 * k * k) / np.exp(-0.1 * k * k).sum()
    assert weights == pytest.approx(exact, rel=1e-9, abs=1e-16)
    assert shares.distance < 1e-34
    lowest = ends[1] / 2.0**128  # far below a word, and still there
    assert lowest == pytest.approx(exact[0], rel=1e-9)


class Given(Words):
    """Words that are known."""

    def __init__(self, *words: int) -> None:
        self.words = list(words)

    def draw(self, count: int) -> Uint64s:
        drawn, self.words = self.words[:count], self.words[count:]
        return np.array(drawn, dtype=np.uint64)


def test_a_word_on_an_end_is_followed_by_a_second_one() -> None:
    shares = GaussianShares(5.0)
    place = shares._largest  # the end of outcome zero
    top, low = divmod(shares._ends[place], 2**64)
    assert list(shares.sample(2, Given(top, top, low - 1, low))) == [0, 1]
    assert list(shares.sample(2, Given(top - 1, top + 1))) == [0, 1]
    assert list(shares.sample(2, Given(2**64 - 1, 2**63, 2**64 - 1))) == [shares._largest, 0]


@pytest.mark.parametrize("variance", [1.0, 40.0])
def test_samples_have_the_law(variance: float) -> None:
    drawn = GaussianShares(variance).sample(60_000, source(np.random.default_rng(5)))
    wide = int(2.5 * math.sqrt(variance))
    for end in (-wide, -1, 0, wide):
        k = np.arange(-2000, 2001)
        law = np.exp(-0.5 * k * k / variance)
        chance = law[k <= end].sum() / law.sum()
        spread = math.sqrt(chance * (1 - chance) / drawn.size)
        assert abs(np.mean(drawn <= end) - chance) < NormalDist().inv_cdf(1 - 1e-7) * spread
