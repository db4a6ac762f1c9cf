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


def between(rng: np.random.Generator, high: Floats, low: Floats) -> Floats:
    """A law of mass one between two rows, next to one of them wherever there is room."""
    room = np.where(rng.random(high.size) < 0.5, high - low, 0.0)
    left = 1.0 - low.sum()
    if room.sum() > left:
        return np.asarray(low + room * left / room.sum())
    rest = high - low - room
    return np.asarray(low + room + rest * (left - room.sum()) / rest.sum())


@pytest.mark.thorough
@pytest.mark.parametrize("missed", [1e-9, 1e-6, 1e-4, 0.01])
def test_no_law_between_two_rows_is_beyond_the_farthest(missed: float) -> None:
    """Rows are mixtures of a far one and its mirror image, so that some are nearer."""
    rng, nearer = np.random.default_rng(11), 0
    for _ in range(40):
        size, count = int(rng.integers(2, 6)), int(rng.integers(2, 5))
        end = rng.dirichlet(np.ones(size))
        shares = np.append(1.0, rng.random(count - 1))[:, None]
        rows = shares * end + (1.0 - shares) * (
            rng.dirichlet(np.ones(size)) if rng.random() < 0.3 else end[::-1]
        )
        by = missed * rng.uniform(0.2, 1.0, size)
        high, low = rows * (1.0 + by), rows * (1.0 - by)
        clone = low.min(axis=0) * rng.uniform(0.5, 1.0)
        centre = clone / clone.sum()
        pairs = farthest_pairs(high, low, clone, centre)
        own, other = pairs[0][0], pairs[1][1]
        kept = [first.tolist() for first, second in pairs[2:] if np.array_equal(second, centre)]
        for top, bottom in zip(high, low, strict=True):
            if top.tolist() in kept:
                continue
            nearer += 1
            for law in (between(rng, top, bottom) for _ in range(5)):
                t = np.concatenate([own / clone, other / clone, law / clone, [0.0, -1.0]])[:, None]
                assert (
                    np.maximum(law - t * clone, 0.0).sum(axis=1)
                    <= np.maximum(own - t * clone, 0.0).sum(axis=1) + 1e-13
                ).all()
                assert (
                    np.maximum(t * clone - law, 0.0).sum(axis=1)
                    <= np.maximum(t * clone - other, 0.0).sum(axis=1) + 1e-13
                ).all()
    assert nearer > 60
