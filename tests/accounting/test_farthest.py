"""Inputs that are farthest from the blanket: the order in rationals, and the curves of all of them (T16)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from shuffledp import DiscreteGaussian, DiscreteLaplace
from shuffledp._certified.rounding import Floats
from shuffledp.accounting._curves.all_pairs import FiniteBlanketProfile
from shuffledp.accounting._curves.combined import LargestProfile
from shuffledp.accounting._curves.farthest import farthest_pairs
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.facts import Matrix

pytestmark = pytest.mark.quick

GRIDS = [
    DiscreteGaussian(sigma=0.3, levels=8),
    DiscreteGaussian(sigma=1.0, levels=5),
    DiscreteGaussian(sigma=3.0, levels=2),
    DiscreteLaplace(epsilon0=2.0, levels=6),
]


def calls(row: Floats, clone: Floats, t: Fraction) -> Fraction:
    """Sum of (R - t m)_+ in rationals."""
    return sum(
        (max(Fraction(r) - t * Fraction(m), Fraction(0)) for r, m in zip(row, clone, strict=True)),
        Fraction(0),
    )


def puts(row: Floats, clone: Floats, t: Fraction) -> Fraction:
    """Sum of (t m - R)_+ in rationals."""
    return calls(-row, -clone, t)


def centre_of(rows: Floats) -> tuple[Floats, Floats]:
    clone = rows.min(axis=0)
    return clone, clone / clone.sum()


@pytest.mark.parametrize("grid", GRIDS, ids=repr)
def test_an_end_of_a_grid_is_farthest_at_every_threshold(grid: DiscreteGaussian | DiscreteLaplace) -> None:
    rows = grid.matrix
    clone, centre = centre_of(rows)
    pairs = farthest_pairs(rows, rows, clone, centre)
    assert len(pairs) == 2
    above, below = pairs[0][0].tolist(), pairs[1][1].tolist()
    for row in rows.tolist():
        values = {
            Fraction(r) / Fraction(m)
            for part in (row, above, below)
            for r, m in zip(part, clone, strict=True)
        }
        for t in values:
            assert calls(np.array(row), clone, t) <= calls(np.array(above), clone, t)
            assert puts(np.array(row), clone, t) <= puts(np.array(below), clone, t)


@pytest.mark.parametrize("seed", range(6))
def test_rows_that_no_other_row_is_beyond_are_kept(seed: int) -> None:
    rows = np.random.default_rng(seed).dirichlet(np.ones(5), 4)
    clone, centre = centre_of(rows)
    pairs = farthest_pairs(rows, rows, clone, centre)
    kept = [own.tolist() for own, other in pairs[2:] if np.array_equal(other, centre)]
    above, below = pairs[0][0], pairs[1][1]
    for row in rows:
        values = {
            Fraction(r) / Fraction(m)
            for part in (row, above, below)
            for r, m in zip(part, clone, strict=True)
        }
        nearer = all(
            calls(row, clone, t) <= calls(above, clone, t) and puts(row, clone, t) <= puts(below, clone, t)
            for t in values
        )
        assert nearer or row.tolist() in kept


@pytest.mark.parametrize("n", [2, 30, 1000])
def test_no_input_has_a_larger_curve_than_the_farthest(n: int) -> None:
    rows = DiscreteGaussian(sigma=0.8, levels=6).matrix
    clone, centre = centre_of(rows)
    every = [
        AmplificationProfile(n, *(tuple(part.tolist()) for part in (own, other, own - other, clone)))
        for row in rows
        for own, other in ((row, centre), (centre, row))
    ]
    at = np.linspace(0.0, 3.0, 7)
    found = FiniteBlanketProfile(Matrix(rows), n, centred=True)
    assert len(found.laws) == 2
    lower = LargestProfile(tuple(every)).support(at, 1e-3).value
    upper = found.upper(at, 1e-3)
    assert np.all(lower <= upper)
    assert np.all(upper <= 1.05 * lower + 1e-14)
