"""Buckets of a binomial variable: a partition whose probabilities are enclosed."""

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import arb

from oracles import balls
from shuffledp._certified.buckets import binomial_buckets

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("resolution", [1.2e-3, 1e-4, 1e-5, 0.5])
@pytest.mark.parametrize(("trials", "rate"), [(0, 0.3), (1, 0.3), (30, 0.5), (300, 0.1), (350, 0.9)])
def test_every_bucket_encloses_the_sum_of_its_probabilities(
    trials: int, rate: float, resolution: float
) -> None:
    p = Fraction(rate)
    buckets = binomial_buckets(trials, rate, float(1 - p), resolution)
    assert buckets.edges[0] == 0.0
    assert buckets.edges[-1] == trials + 1.0
    term, probability = (1 - p) ** trials, []
    for k in range(trials + 1):
        probability.append(term)
        term = term * (trials - k) * p / ((k + 1) * (1 - p))
    total = [float(sum(probability[int(a) : int(b)])) for a, b in pairwise(buckets.edges)]
    assert np.all(buckets.low <= np.array(total) * (1 + 1e-13))
    assert np.all(np.array(total) <= buckets.high * (1 + 1e-13))
    assert buckets.low.sum() >= 1.0 - 1e-9


@pytest.mark.parametrize(("trials", "rate"), [(10**6, 0.0366), (10**9, 1e-5), (10**12, 0.3)])
@pytest.mark.parametrize("resolution", [1.2e-3, 1e-5])
def test_large_variables_have_few_buckets_that_hold_everything(
    trials: int, rate: float, resolution: float
) -> None:
    buckets = binomial_buckets(trials, rate, 1.0 - rate, resolution)
    assert np.all(np.diff(buckets.edges) > 0.0)
    assert buckets.edges[0] == 0.0
    assert buckets.edges[-1] == trials + 1.0
    assert buckets.low.sum() <= 1.0 <= buckets.high.sum()
    assert buckets.high.sum() - buckets.low.sum() < 1e-4
    if resolution > 1e-3:
        assert buckets.low.size < 400


@pytest.mark.parametrize("resolution", [1e-3, 3e-4, 1.5e-4])
def test_widths_loosen_as_even_ones_would_but_are_half_as_many(resolution: float) -> None:
    trials, rate = 10**6, 0.0366
    buckets = binomial_buckets(trials, rate, 1.0 - rate, resolution)
    even, spread = np.floor(resolution * trials * rate), np.sqrt(trials * rate * (1.0 - rate))
    away = np.diff(buckets.edges) - 1.0
    assert float(buckets.high @ away) <= 1.01 * (even - 1.0)
    assert buckets.low.size <= 0.6 * 10.0 * spread / even + 40


def bucket_cases() -> Iterator[tuple[int, float, float, float]]:
    """(trials, rate, rest, resolution)."""
    rng = random.Random(3)
    for trials in (0, 1, 2, 7, 40, 500, 3000, 20_000):
        for rate in (1e-130, 1e-9, 0.01, 0.3, rng.random(), 1.0 - 1e-12):
            yield trials, rate, 1.0 - rate, 10.0 ** rng.uniform(-5.0, -0.5)
    for trials in (10**6, 10**9, 10**12):
        for mean in (3.0, 300.0, 3e4):
            yield trials, mean / trials, 1.0 - mean / trials, 10.0 ** rng.uniform(-5.0, -1.0)


def test_buckets_cover_every_value_and_enclose_their_probabilities() -> None:
    rng = random.Random(4)
    for trials, rate, rest, resolution in bucket_cases():
        buckets = binomial_buckets(trials, rate, rest, resolution)
        edges = [int(edge) for edge in buckets.edges]
        assert (edges[0], edges[-1]) == (0, trials + 1)
        assert sorted(set(edges)) == edges
        whole = dict(balls.window(trials, arb(rate), arb(10) ** -140))
        last = len(edges) - 2
        for i in {0, last, *(rng.randint(0, last) for _ in range(12))}:
            values = range(max(edges[i], min(whole)), min(edges[i + 1], max(whole) + 1))
            mass = sum((whole[c] for c in values), arb(0))
            # The window leaves out less than this.
            assert buckets.low[i] <= float(mass.upper()) + 1e-130
            assert buckets.high[i] >= float(mass.lower())
