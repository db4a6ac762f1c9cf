"""All reports of the package's randomizers, by definition."""

from collections.abc import Callable
from typing import Any

import pytest

from oracles import reports
from shuffledp.randomizers.hadamard import HadamardResponse
from shuffledp.randomizers.hashing import OptimisedLocalHashing
from shuffledp.randomizers.kary import KaryRandomizedResponse
from shuffledp.randomizers.subset import SubsetSelection
from shuffledp.randomizers.unary import UnaryEncoding


@pytest.fixture
def known() -> Callable[..., Any]:
    """A function from a randomizer to all its reports, made from its weights alone."""
    return all_reports


def all_reports(r: Any) -> Any:
    match r:
        case KaryRandomizedResponse():
            return reports.kary(r.k, *r.weights)
        case UnaryEncoding():
            return reports.unary(r.k, *r.weights)
        case SubsetSelection():
            return reports.subset_selection(r.k, r.size, r.weight)
        case HadamardResponse():
            return reports.hadamard(r.k, r.weight)
        case OptimisedLocalHashing():
            return reports.local_hashing(r.k, r.symbols, *r.response.weights)
    raise NotImplementedError(r)
