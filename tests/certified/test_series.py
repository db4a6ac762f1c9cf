"""Series at their branch points, against ball arithmetic."""

import math

import numpy as np
import pytest
from flint import arb

from shuffledp._certified.binomial import log1p_minus, stirling_remainder
from shuffledp._certified.rounding import CALL, UNIT
from shuffledp._certified.signs import _even_deviance

pytestmark = pytest.mark.quick

HALF = arb(1) / 2
BRANCHES = [0.05, 0.3]
"""Where the series for log1p and the deviance change their length."""


def around(x: float) -> list[float]:
    return [math.nextafter(x, 0.0), x, math.nextafter(x, 1.0)]


def relative(found: float, exact: arb) -> float:
    return abs(float((arb(float(found)) - exact) / exact))


def allowed(x: float) -> float:
    """Units. From 0.3 on one call of log1p is in it, which NumPy before 2 rounds less well."""
    if abs(x) < 0.3 or np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        return 8.0
    return 8.0 + CALL * abs(math.log1p(x) / (math.log1p(x) - x))


@pytest.mark.parametrize("x", [s * v for b in BRANCHES for v in around(b) for s in (1.0, -1.0)])
def test_log1p_minus_keeps_a_few_units_where_its_series_changes(x: float) -> None:
    exact = (1 + arb(x)).log() - arb(x)
    for others in ([], [0.01], [0.9]):  # the largest of an array chooses the series
        assert relative(log1p_minus(np.array([x, *others]))[0], exact) < allowed(x) * UNIT


@pytest.mark.parametrize("y", [v for b in BRANCHES for v in around(b)] + [1e-9, 1e-3, 0.7, 0.99])
def test_the_deviance_of_fair_signs_keeps_a_few_units_where_its_series_changes(y: float) -> None:
    exact = (1 + arb(y)) * (1 + arb(y)).log() + (1 - arb(y)) * (1 - arb(y)).log()
    for others in ([], [0.01], [0.9]):
        assert relative(_even_deviance(np.array([y, *others]))[0], exact) < 16.0 * UNIT


@pytest.mark.parametrize("k", [1, 2, 19, 20, 21, 999, 1000, 1001, 10**6, 10**12])
def test_stirlings_remainder_is_off_by_far_less_than_a_unit(k: int) -> None:
    exact = arb(k + 1).lgamma() - (k + HALF) * arb(k).log() + k - (2 * arb.pi()).log() / 2
    assert abs(float(arb(float(stirling_remainder(np.array([float(k)]))[0])) - exact)) < UNIT
