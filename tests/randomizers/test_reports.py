"""A randomizer says beforehand what its reports look like; hashing has a prime number of symbols."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shuffledp import (
    BinaryRandomizedResponse,
    DiscreteGaussian,
    DiscreteLaplace,
    FiniteRandomizer,
    HadamardResponse,
    KaryRandomizedResponse,
    OptimisedLocalHashing,
    OptimisedUnaryEncoding,
    SubsetSelection,
    SymmetricUnaryEncoding,
)
from shuffledp.randomizers.hashing import is_prime

pytestmark = pytest.mark.quick

RANDOMIZERS = [
    BinaryRandomizedResponse(epsilon0=1.0),
    DiscreteGaussian(sigma=0.7, low=0.0, high=2.0, levels=8),
    DiscreteLaplace(epsilon0=1.0, low=0.0, high=1.0, levels=300),
    FiniteRandomizer([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]),
    *(
        kind(k=k, epsilon0=2.0)
        for k in (2, 7, 8, 9, 300)
        for kind in (
            HadamardResponse,
            KaryRandomizedResponse,
            OptimisedLocalHashing,
            OptimisedUnaryEncoding,
            SubsetSelection,
            SymmetricUnaryEncoding,
        )
    ),
    KaryRandomizedResponse(k=2**16 + 1, epsilon0=2.0),
]


@pytest.mark.parametrize("randomizer", RANDOMIZERS, ids=repr)
def test_reports_are_as_they_were_announced(randomizer: Any) -> None:
    for values in ([], [0, 1, 1]):
        reports = np.asarray(randomizer.randomize(np.array(values, dtype=np.int64)))
        assert reports.dtype == randomizer.report_dtype
        assert reports.shape == (len(values), *randomizer.report_shape)
    one = np.asarray(randomizer.randomize(1))
    assert (one.dtype, one.shape) == (randomizer.report_dtype, randomizer.report_shape)


def test_prime_numbers_are_told_from_others() -> None:
    most = 2**20 + 2000
    sieve = np.ones(most, dtype=np.bool_)
    sieve[:2] = False
    for d in range(2, 1026):
        sieve[d * d :: d] = False
    for part in (range(50_000), range(2**20 - 20_000, most)):
        assert all(is_prime(number) == sieve[number] for number in part)
