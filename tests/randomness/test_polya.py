"""Shares of noise: the law of their sum, from the very weights that words are compared with."""

import math
from itertools import pairwise

import numpy as np
import pytest

from shuffledp._certified.rounding import Floats
from shuffledp._randomness.noise_shares import NoiseShares
from shuffledp._randomness.words import source

pytestmark = pytest.mark.quick


def probabilities(thresholds: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> Floats:
    """Of 0, 1, ...: word u gives the number of thresholds up to u."""
    ends = [0, *map(int, thresholds), 2**64]
    assert ends == sorted(ends)
    return np.array([(b - a) / 2**64 for a, b in pairwise(ends)])


def law_of_the_sum(noise: NoiseShares, reach: int) -> Floats:
    """P(-reach), ..., P(reach) of the sum of all shares, by convolution."""
    sizes = probabilities(noise._sizes)
    cluster = np.zeros(2 * reach + 1)
    for less, mass in enumerate(sizes):
        cluster[reach + less + 1] += 0.5 * mass
        cluster[reach - less - 1] += 0.5 * mass
    share, power = np.zeros(2 * reach + 1), np.zeros(2 * reach + 1)
    power[reach] = 1.0
    for mass in probabilities(noise._clusters):
        share += mass * power
        power = np.convolve(power, cluster, mode="same")
    total = power = share
    for _ in range(noise.people - 1):
        total = np.convolve(total, power, mode="same")
    return np.asarray(total)


@pytest.mark.parametrize(("scale", "people"), [(0.8, 1), (1.5, 3), (4.0, 7)])
def test_the_sum_of_all_shares_is_discrete_laplace_within_the_distance(scale: float, people: int) -> None:
    noise, reach = NoiseShares(scale, people), 700
    a = math.exp(-1.0 / scale)
    wanted = (1.0 - a) / (1.0 + a) * a ** np.abs(np.arange(-reach, reach + 1.0))
    found = law_of_the_sum(noise, reach)
    assert 0.5 * np.abs(found - wanted).sum() <= noise.distance + 2e-14  # convolutions in floats
    assert noise.distance < 1e-12
    assert noise.variance == pytest.approx(2.0 * a / (1.0 - a) ** 2)
    for size in (3, 20):
        beyond = float(wanted[np.abs(np.arange(-reach, reach + 1)) > size].sum())
        assert beyond <= noise.tail(size)


def test_the_distance_stays_small_for_many_people() -> None:
    assert NoiseShares(6_500.0, 10**8).distance < 1e-9
    assert NoiseShares(650.0, 10**6).distance < 1e-11


def test_sampled_shares_follow_the_words() -> None:
    noise = NoiseShares(3.0, 5)
    sums = noise.sample(5 * 40_000, source(np.random.default_rng(5))).reshape(-1, 5).sum(axis=1)
    a = math.exp(-1.0 / 3.0)
    k = np.arange(-9, 10)
    expected = sums.size * (1.0 - a) / (1.0 + a) * a ** np.abs(k)
    counts = np.array([(sums == value).sum() for value in k])
    assert (((counts - expected) ** 2) / expected).sum() < 60.0  # 19 cells: beyond, one in a million
    secure = noise.sample(1000, source())
    assert secure.shape == (1000,)
