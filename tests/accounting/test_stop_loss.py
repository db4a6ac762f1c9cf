"""Stop-loss curves of all pairs against the leader's, in exact rationals."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from oracles import brute
from shuffledp import DiscreteGaussian, DiscreteLaplace, FiniteRandomizer, Shuffled
from shuffledp.accounting._curves.all_pairs import FiniteBlanketProfile
from shuffledp.accounting._curves.combined import LargestProfile
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.accounting._curves.stop_loss import LawOrder
from shuffledp.facts import Matrix


def matrix(seed: int, rows: int, columns: int, decades: float) -> FiniteRandomizer:
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(columns), size=rows) + 1e-3
    table *= 10.0 ** rng.uniform(-decades, 0.0, size=columns)
    return FiniteRandomizer(table / table.sum(axis=1, keepdims=True))


def atoms(law: AmplificationProfile, alpha: Fraction) -> list[tuple[Fraction, Fraction]]:
    rows = [tuple(map(Fraction, row)) for row in zip(law.own, law.other, law.clone, strict=True)]
    found = [((own - alpha * other) / clone, clone) for own, other, clone in rows]
    return [*found, (Fraction(0), 1 - sum((clone for _, clone in found), Fraction(0)))]


def exact_excess(leader: AmplificationProfile, before: float, law: AmplificationProfile, e: float) -> Any:
    """max over the leader's values of the difference of the curves, and far left of them."""
    top, mine = atoms(leader, Fraction(math.exp(before))), atoms(law, Fraction(math.exp(e)))
    points = [value for value, _ in top] + [min(v for v, _ in top + mine) - 1]

    def curve(law_atoms: Any, t: float) -> Any:
        return sum(p * max(Fraction(0), v - t) for v, p in law_atoms)

    return max(Fraction(0), *(curve(mine, t) - curve(top, t) for t in points))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("decades", [0.0, 9.0])
def test_the_excess_is_the_exact_one_rounded_up(seed: int, decades: float) -> None:
    laws = FiniteBlanketProfile(matrix(seed, 4, 5, decades).table, 10).laws
    epsilon = 0.1 * (seed + 1)
    before = epsilon * (1.0 - 1e-3)
    found = LawOrder(tuple(laws)).excess(before, epsilon)
    for law, excess in zip(laws[1:], found, strict=True):
        exact = exact_excess(laws[0], before, law, epsilon)
        # Rows of the matrix sum to one up to rounding only: that is allowed for.
        assert float(exact) - 1e-15 <= excess <= float(exact) * (1.0 + 1e-7) + 1e-11


@pytest.mark.parametrize("sigma", [0.5, 0.25, 0.15])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0])
def test_grids_are_led_by_their_ends_up_to_next_to_nothing(sigma: float, epsilon: float) -> None:
    laws = FiniteBlanketProfile(DiscreteGaussian(sigma).finite.table, 1000).laws
    excess = LawOrder(tuple(laws)).excess(epsilon * (1.0 - 1e-4), epsilon)
    assert len(excess) == len(laws) - 1 > 30
    assert excess.max() < 1e-13


def test_at_epsilon_zero_the_laws_are_compared_as_well() -> None:
    laws = FiniteBlanketProfile(DiscreteGaussian(1.0).finite.table, 1000).laws
    assert LawOrder(tuple(laws)).excess(0.0, 0.0).max() < 1e-12


def test_outputs_that_nobody_hides_are_never_put_in_order() -> None:
    rows = [[0.5, 0.5, 0.0], [0.3, 0.5, 0.2], [0.2, 0.5, 0.3]]
    laws = FiniteBlanketProfile(Matrix(rows), 10).laws
    assert np.all(np.isinf(LawOrder(tuple(laws)).excess(0.1, 0.2)))


@pytest.mark.parametrize("seed", range(12))
def test_one_leader_bounds_every_law_of_random_matrices(seed: int) -> None:
    """Upper ends are above the lower ends of all laws, and near those of all laws one by one."""
    profile = FiniteBlanketProfile(matrix(seed, 4, 6, 6.0 * (seed % 2)).table, 30 * 10 ** (seed % 3))
    at = np.array([0.1, 0.4]) * profile.epsilon_max
    upper = profile.upper(at, 1e-3)
    for law in profile.laws:
        assert np.all(law.support(at, 1e-3).value <= upper)
    assert np.all(profile.support(at, 1e-3).value <= upper)
    apart = LargestProfile(tuple(profile.laws)).upper(at * (1.0 - 1e-3), 1e-3)
    assert np.all(upper <= apart * 1.01)


@pytest.mark.parametrize("randomizer", [DiscreteGaussian(0.3, levels=2), DiscreteLaplace(4.0, levels=2)])
def test_all_datasets_of_three_users_of_a_grid_are_covered(randomizer: Any) -> None:
    """Outputs beyond the ends are put together: that can only tell less."""
    weights, pad = randomizer.weights.tolist(), randomizer.pad
    first, last = max(pad - 1, 0), min(pad + 3, randomizer.outputs - 1)
    coarse = [[sum(row[: first + 1]), *row[first + 1 : last], sum(row[last:])] for row in weights]
    truth = brute.shuffled_pairs(brute.stochastic(coarse), 3)
    for epsilon in (0.1, 1.0, 3.0):
        upper = float(Shuffled(randomizer, n=3).delta(epsilon=epsilon).upper)
        assert float(brute.worst(truth, Fraction(math.exp(epsilon)))) <= upper
