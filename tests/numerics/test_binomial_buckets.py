"""Buckets of a binomial variable: a partition whose probabilities are enclosed."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from shuffledp.numerics import binomial
from shuffledp.numerics.binomial_buckets import binomial_buckets


@pytest.mark.parametrize("resolution", [1.2e-3, 1e-4, 1e-5, 0.5])
@pytest.mark.parametrize(
    ("trials", "rate"), [(0, 0.3), (1, 0.3), (30, 0.5), (300, 0.1), (350, 0.9)]
)
def test_every_bucket_encloses_the_sum_of_its_probabilities(trials, rate, resolution) -> None:
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
def test_large_variables_have_few_buckets_that_hold_everything(trials, rate, resolution) -> None:
    buckets = binomial_buckets(trials, rate, 1.0 - rate, resolution)
    assert np.all(np.diff(buckets.edges) > 0.0)
    assert buckets.edges[0] == 0.0
    assert buckets.edges[-1] == trials + 1.0
    assert buckets.low.sum() <= 1.0 <= buckets.high.sum()
    assert buckets.high.sum() - buckets.low.sum() < 1e-4
    if resolution > 1e-3:
        assert buckets.low.size < 400


@pytest.fixture
def precise():
    ctx.prec = 300
    yield
    ctx.prec = 53


@pytest.mark.parametrize("rule", [binomial.CLOSE, binomial.ROUGH], ids=["close", "rough"])
@pytest.mark.parametrize("count", [3, 25, 33, 60, 200, 5000])
def test_tail_ratios_are_within_the_error_of_their_rule(count, rule, precise) -> None:
    middle = count // 2 + 1
    for a in sorted({middle, middle + 1, (middle + count) // 2, count - 1, count}):
        term, total = arb(1), arb(0)
        for k in range(a, count + 1):
            total += term
            term *= arb(fmpq(count - k, k + 1))
        found = binomial._half_tail_ratio(np.array([float(count)]), np.array([float(a)]), rule)
        assert abs(arb(float(found[0])) / total - 1) <= rule.error
