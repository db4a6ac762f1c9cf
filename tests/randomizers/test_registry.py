"""A described randomizer is the same randomizer, to the last probability."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from shuffledp import BinaryRandomizedResponse, FiniteRandomizer, KaryRandomizedResponse
from shuffledp.randomizers.gaussian import DiscreteGaussian
from shuffledp.randomizers.hadamard import HadamardResponse
from shuffledp.randomizers.hashing import OptimisedLocalHashing
from shuffledp.randomizers.laplace import DiscreteLaplace
from shuffledp.randomizers.registry import canonical, describe, restore
from shuffledp.randomizers.subset import SubsetSelection
from shuffledp.randomizers.unary import OptimisedUnaryEncoding, SymmetricUnaryEncoding

pytestmark = pytest.mark.quick

CATEGORICAL = [
    HadamardResponse,
    KaryRandomizedResponse,
    OptimisedLocalHashing,
    OptimisedUnaryEncoding,
    SubsetSelection,
    SymmetricUnaryEncoding,
]


@pytest.mark.parametrize("kind", CATEGORICAL)
@given(epsilon0=st.floats(1e-3, 34.0), k=st.integers(2, 300))
@settings(max_examples=25, deadline=None)
def test_a_canonical_randomizer_survives_json_exactly(kind: Any, epsilon0: float, k: int) -> None:
    asked = kind(k=k, epsilon0=epsilon0)
    settled = canonical(asked)
    assert settled.epsilon0 <= asked.epsilon0
    again = restore(json.loads(json.dumps(describe(settled))))
    assert again == settled
    assert again.support_probability == settled.support_probability


@pytest.mark.parametrize(
    "randomizer",
    [
        KaryRandomizedResponse(k=7, gamma=0.3),
        BinaryRandomizedResponse(epsilon0=1.7),
        DiscreteLaplace(epsilon0=3.3, low=-1.0, high=2.0, levels=10),
        DiscreteGaussian(sigma=0.7, low=0.0, high=2.0, levels=8),
    ],
    ids=repr,
)
def test_every_kind_settles(randomizer: Any) -> None:
    settled = canonical(randomizer)
    assert restore(json.loads(json.dumps(describe(settled)))) == settled


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(TypeError, match="to be written as JSON"):
        describe(FiniteRandomizer([[0.5, 0.5], [0.4, 0.6]]))
    with pytest.raises(ValueError, match="known kind"):
        restore({"kind": "os.system", "k": 2})
    with pytest.raises(ValueError, match="must hold"):
        restore({"kind": "KaryRandomizedResponse", "k": 2, "epsilon0": 1.0, "gamma": 0.1})
