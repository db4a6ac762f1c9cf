"""Laws that share a bound, and matrices of extreme entries, against enumeration in exact rationals."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations_with_replacement, permutations

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp import FiniteRandomizer
from shuffledp.accounting._curves.all_pairs import FiniteBlanketProfile
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.accounting._curves.many_laws import ManyLaws
from shuffledp.accounting._curves.stop_loss import LawOrder
from shuffledp.facts import Matrix


def _enumerated(law: AmplificationProfile, epsilon: float) -> float:
    """(1/n) E[(X_1 + ... + X_n)_+] over all outcomes, in rationals, for clones that hide every type."""
    alpha = Fraction(math.exp(epsilon))
    rows = [tuple(map(Fraction, row)) for row in zip(law.own, law.other, law.clone, strict=True)]
    atoms = [((own - alpha * other) / clone, clone) for own, other, clone in rows]
    atoms.append((Fraction(0), 1 - sum(clone for _, _, clone in rows)))
    total = Fraction(0)
    for outcome in combinations_with_replacement(range(len(atoms)), law.n):
        value = sum(atoms[i][0] for i in outcome)
        if value > 0:
            ways = math.factorial(law.n)
            for i in set(outcome):
                ways //= math.factorial(outcome.count(i))
            total += ways * value * math.prod(atoms[i][1] for i in outcome)
    return float(total / law.n)


def _matrix(seed: int, rows: int, columns: int, decades: float) -> FiniteRandomizer:
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.ones(columns), size=rows) + 0.02
    matrix *= 10.0 ** rng.uniform(-decades, 0.0, size=columns)
    return FiniteRandomizer(matrix / matrix.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 0.8])
@pytest.mark.parametrize("seed", range(4))
def test_bounds_of_all_laws_at_once_are_above_each(seed: int, share: float) -> None:
    profile = FiniteBlanketProfile(_matrix(seed, 4, 5, 3.0 * (seed % 2)).table, 3)
    epsilon = share * profile.epsilon_max
    bounds = ManyLaws.of(profile.laws).bounds(epsilon)
    for law, bound in zip(profile.laws, bounds, strict=True):
        assert bound >= _enumerated(law, epsilon) * (1.0 - 1e-12)
    at = np.array([epsilon, 0.5 * epsilon])
    exact = [max(_enumerated(law, float(e)) for law in profile.laws) for e in at]
    assert (ManyLaws.of(profile.laws).largest(at) >= np.array(exact) * (1.0 - 1e-12)).all()


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("n", [30, 10**5])
def test_bounds_of_all_laws_at_once_hold_in_a_crowd_and_are_close(n: int, hidden: bool) -> None:
    rows = _matrix(0, 5, 6, 0.0).table.rows.copy()
    if not hidden:  # outputs that some inputs never send are seen by everybody
        rows[0, 1] = rows[2, 1] = 0.0
    profile = FiniteBlanketProfile(Matrix(rows / rows.sum(axis=1, keepdims=True)), n)
    for away in (0.0, 1.0, 4.0):
        at = np.array([away * profile.hints.scale])
        bounds = ManyLaws.of(profile.laws).bounds(float(at[0]))
        curves = np.array([law.support(at, 1e-4).value[0] for law in profile.laws])
        assert (curves <= bounds).all()
        largest = ManyLaws.of(profile.laws).largest(at)[0]
        assert curves.max() <= largest
        assert n < 10**5 or not hidden or max(bounds.max(), largest) <= 1.15 * curves.max()


def test_of_many_laws_the_largest_is_found() -> None:
    profile = FiniteBlanketProfile(_matrix(1, 7, 9, 0.0).table, 500)
    for resolution, points in ((1e-3, 1), (0.01, 9)):
        at = np.linspace(0.0, 6.0, points + 2)[1:-1] * profile.hints.scale
        largest, found = profile.largest.upper(at, resolution), profile.upper(at, resolution)
        assert (found >= profile.largest.support(at, resolution).value).all()
        assert (found <= largest * (1.0 + 8.0 * resolution)).all()
        assert (profile.support(at, resolution).value <= largest).all()


def test_laws_exceed_the_leader_by_no_more_than_their_excess() -> None:
    below = 0
    for seed in range(12):
        profile = FiniteBlanketProfile(_matrix(seed, 4, 4, 0.0).table, 2)
        epsilon = (0.1 + 0.05 * seed) * profile.epsilon_max
        leader, *others = profile.laws
        excess = LawOrder(tuple(profile.laws)).excess(epsilon * (1.0 - 1e-4), epsilon)
        top = _enumerated(leader, epsilon * (1.0 - 1e-4))
        below += int((excess == 0.0).sum())
        for law, paid in zip(others, excess, strict=True):
            assert _enumerated(law, epsilon) <= top + paid
    assert below > 20


@pytest.mark.parametrize("seed", range(6))
def test_columns_of_a_millionth_are_enclosed(seed: int) -> None:
    profile = FiniteBlanketProfile(_matrix(seed, 3, 6, 6.0).table, 3)
    rows = profile.matrix.rows
    assert len(profile.laws) == len(list(permutations(range(len(rows)), 2)))
    for share in (0.05, 0.5, 0.95):
        epsilon = share * profile.epsilon_max
        truth = max(_enumerated(law, epsilon) for law in profile.laws)
        at = np.array([epsilon])
        assert profile.upper(at, 5e-4)[0] >= truth * (1.0 - 1e-12)
        assert profile.support(at, 5e-4).value[0] <= truth * (1.0 + 1e-12)


def test_a_wide_margin_of_privunit_is_taken_back_from_the_lower_end() -> None:
    """The law is rounded up by the margin (7e-5 here); the truth at the nominal cap is 2.9007e-7."""
    wide = sdp.PrivUnit(dimension=3, epsilon0=8.0, cap_probability=1e-10)
    assert sdp.Shuffled(wide, n=20).delta(epsilon=1.6).lower < 2.9006849e-07
    steep = sdp.PrivUnit(dimension=2, epsilon0=10.0, cap_probability=3e-6)
    assert sdp.Shuffled(steep, n=5).epsilon(delta=0.0).lower < 10.0 - 1.6e-4


@pytest.mark.parametrize("seed", range(40))
def test_nearly_equal_rows_give_no_value_below_the_truth(seed: int) -> None:
    """Rows that differ by 3e-16: the law's transform is nearly zero at the tilt that is wanted."""
    b = np.random.default_rng(seed).dirichlet(np.ones(44))
    w, n, epsilon = 3e-18, 5, 0.998 * math.log(100)
    own, other = np.r_[100 * w, b * (1 - 100 * w)], np.r_[w, b * (1 - w)]
    law = AmplificationProfile(n, tuple(own), tuple(other), tuple(own - other), tuple(np.minimum(own, other)))
    upper = float(law.upper(np.array([epsilon]), 5e-4)[0])
    # Only sums of rare reports and of reports that hide nothing are positive: all n of them.
    rest = float(1 - sum(map(Fraction, np.minimum(own, other))))
    rare = (own[0] - math.exp(epsilon) * other[0]) / w
    assert upper >= rare * w * (w + max(rest, 0.0)) ** (n - 1) * (1 - 1e-9)
