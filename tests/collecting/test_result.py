"""Projection onto the simplex, against the definition."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from shuffledp.collecting.result import project_to_simplex


def nearest_point(values: list[Fraction], total: Fraction) -> list[Fraction]:
    """The nearest of the projections onto all faces of the simplex, exactly."""
    best: list[Fraction] = []
    distance: Fraction | None = None
    for size in range(1, len(values) + 1):
        for face in combinations(range(len(values)), size):
            shift = (sum(values[i] for i in face) - total) / size
            point = [values[i] - shift if i in face else Fraction(0) for i in range(len(values))]
            squared = sum(((a - b) ** 2 for a, b in zip(point, values, strict=True)), Fraction(0))
            if min(point) >= 0 and (distance is None or squared < distance):
                best, distance = point, squared
    return best


@given(st.lists(st.integers(-40, 40), min_size=1, max_size=6), st.integers(1, 60))
def test_no_point_of_the_simplex_is_nearer(values: list[int], total: int) -> None:
    exact = nearest_point([Fraction(v, 8) for v in values], Fraction(total, 8))
    found = project_to_simplex(np.array(values) / 8, total / 8)
    assert np.allclose(found, [float(v) for v in exact], rtol=0, atol=1e-12)


def test_a_histogram_stays_as_it_is() -> None:
    assert project_to_simplex([3.0, 0.0, 5.0], total=8.0).tolist() == [3.0, 0.0, 5.0]


@pytest.mark.parametrize("values", [[], [[1.0]], [np.nan, 1.0], [np.inf]])
def test_what_is_no_list_of_finite_numbers_is_refused(values: object) -> None:
    with pytest.raises(ValueError, match="values must be finite"):
        project_to_simplex(values)
