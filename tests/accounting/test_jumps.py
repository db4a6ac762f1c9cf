"""Rare large values told apart, against enumeration in exact rationals and against plain sums (T13)."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest

from shuffledp import DiscreteGaussian, Shuffled
from shuffledp._certified.rounding import Floats
from shuffledp.accounting._curves.all_pairs import FiniteBlanketProfile
from shuffledp.accounting._curves.jumps import Jumps
from shuffledp.accounting._curves.lattice_law import Apart, SpreadLaw, complete
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.accounting._hints.jump_split import Split
from shuffledp.accounting._hints.lattices import LatticeHints
from shuffledp.accounting._witnesses import finite_pair
from shuffledp.facts import Matrix

pytestmark = pytest.mark.quick


class ToldApart(LatticeHints):
    """Values are never cut where they decide: the jumps are told apart instead."""

    def decisive(self, x: Floats, w: Floats, n: int, budget: Floats) -> Floats:
        return np.asarray(x.max(axis=1))


def law_with_jumps(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Values and weights: a crowd near zero, one value each of a few sizes with tiny weights."""
    rng = np.random.default_rng(seed)
    jumps = 10.0 ** rng.uniform(1.0, 2.5, 2)
    rare = 10.0 ** rng.uniform(-9.0, -4.0, 2)
    x = np.append(rng.uniform(-3.0, 1.0, 2), jumps)
    w = np.append(rng.dirichlet(np.ones(2)) * (1.0 - rare.sum()), rare)
    return x, w / math.fsum(w)


def split_by_jumps(x: np.ndarray, w: np.ndarray, n: int, b: float) -> tuple[Fraction, Fraction]:
    """(1/n) E[S_+] over outcomes without and with values above b, by enumeration in rationals."""
    atoms = [(Fraction(float(v)), Fraction(float(p))) for v, p in zip(x, w, strict=True)]
    parts = [Fraction(0), Fraction(0)]
    for outcome in combinations_with_replacement(range(len(atoms)), n):
        value = sum(atoms[i][0] for i in outcome)
        if value > 0:
            ways = math.factorial(n)
            for i in set(outcome):
                ways //= math.factorial(outcome.count(i))
            mass = math.prod((atoms[i][1] for i in outcome), start=Fraction(1))
            parts[any(atoms[i][0] > b for i in outcome)] += ways * value * mass / n
    return parts[0], parts[1]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("budget", [1e-3, 1e-9])
def test_outcomes_with_jumps_are_enclosed_tightly(seed: int, budget: float) -> None:
    x, w = law_with_jumps(seed)
    n, b = 12, 5.0
    _, exact = split_by_jumps(x, w, n, b)
    law = Jumps.of(x, w, b, n, 1e-2, budget * float(exact), LatticeHints())
    high = law.upper()
    assert Fraction(high) >= exact * (1 - Fraction(1, 10**12))
    assert high <= float(exact) * (1.0 + 2e-2)
    assert law.crude() >= float(exact) * (1.0 - 1e-12)
    # The same tests seen from below: x' never sends what x sends more often.
    low = law.lower(x * w, np.zeros(x.size))
    assert Fraction(float(low[0])) <= exact * (1 + Fraction(1, 10**12))
    assert low[0] >= float(exact) * (1.0 - 5e-2)


@pytest.mark.parametrize("most", [1, 2])
def test_what_more_jumps_add_is_bounded_by_the_rest(most: int) -> None:
    """With many jumps and few told apart the bound must still hold."""
    x, w = np.array([-1.0, 0.5, 20.0]), np.array([0.6, 0.35, 0.05])
    n = 14
    _, exact = split_by_jumps(x, w, n, 5.0)
    law = Jumps.of(x, w, 5.0, n, 1e-2, 1.0, LatticeHints())
    law = Jumps(law.n, law.top, law.beyond, law.x, law.w, law.jump, law.origin, law.h, most)
    assert law.upper() >= float(exact)


def test_a_cap_below_the_largest_value_is_paid_for() -> None:
    x, w = np.array([-1.0, 0.5, 20.0, 4000.0]), np.array([0.6, 0.399, 9e-4, 1e-4])
    n = 10
    _, exact = split_by_jumps(x, w, n, 5.0)
    law = Jumps.of(x, w, 5.0, n, 1e-2, 1.0, LatticeHints())
    assert law.top < 4000.0
    assert law.upper() >= float(exact)


@pytest.mark.parametrize("rare", [1e-7, 1e-9])
def test_where_only_jumps_are_positive_the_others_add_nothing(rare: float) -> None:
    """Against the law of the sum in rationals, report by report."""
    x = np.array([-40.0, -5.0, -1.0, 0.0, 17.0, 90.0, 600.0])
    w = np.append([0.02, 0.3, 0.4], rare * np.array([0.2, 0.03, 0.01]))
    w = np.insert(w, 3, 1.0 - math.fsum(w))
    n = 24
    sums = {0: Fraction(1)}
    for _ in range(n):
        after: dict[int, Fraction] = {}
        for total, p in sums.items():
            for value, q in zip(x, w, strict=True):
                after[total + int(value)] = after.get(total + int(value), Fraction(0)) + p * Fraction(
                    float(q)
                )
        sums = after
    exact = sum((total * p for total, p in sums.items() if total > 0), Fraction(0)) / n
    weight = (x * w)[None]
    found = SpreadLaw.of(weight, w, n, 1e-3, LatticeHints())
    assert isinstance(found, Apart)
    assert not (found.bulk.x > 0.0).any()
    assert (
        exact * (1 - Fraction(1, 10**12)) <= Fraction(float(found.upper()[0])) <= exact * Fraction(101, 100)
    )
    assert exact * Fraction(95, 100) <= Fraction(float(found.lower(weight, np.zeros(7))[0, 0])) <= exact
    assert found.chernoff()[0] >= float(exact)


def heavy_profile(n: int) -> AmplificationProfile:
    return FiniteBlanketProfile(DiscreteGaussian(0.35, levels=4).finite.table, n).laws[0]


@pytest.mark.parametrize(("n", "epsilon"), [(10**4, 6.0), (10**4, 8.0), (10**6, 3.4)])
def test_jumps_make_the_two_ends_meet_where_no_tilt_does(n: int, epsilon: float) -> None:
    profile = heavy_profile(n)
    at = np.array([epsilon])
    weight = profile._weights(at, 0.0)
    lattice = SpreadLaw.of(weight, np.array(profile.clone), n, 1e-3, ToldApart())
    assert isinstance(lattice, Apart)
    for curve in (profile, profile.with_hints(replace(profile.hints, lattice=ToldApart()))):
        upper, lower = curve.upper(at, 1e-3)[0], curve.support(at, 1e-3).value[0]
        assert lower <= upper <= lower * 1.02


@pytest.mark.parametrize("n", [1000, 10**6])
def test_cut_where_they_decide_or_told_apart_values_give_the_same_curve(n: int) -> None:
    profile = heavy_profile(n)
    apart = profile.with_hints(replace(profile.hints, lattice=ToldApart()))
    at = np.linspace(0.2, 6.0, 9)
    upper, lines = profile.both(at, 1e-3)
    assert np.all(apart.support(at, 1e-3).value <= upper)
    assert np.all(lines.value <= apart.upper(at, 1e-3))


@pytest.mark.parametrize("scales", [0.0, 0.5, 1.0, 2.0, 8.0])
def test_the_two_ends_meet_at_every_epsilon_that_rounds_look_at(scales: float) -> None:
    profile = FiniteBlanketProfile(DiscreteGaussian(0.5, levels=16).finite.table, 10**5).laws[0]
    at = np.array([scales * profile.hints.scale])
    upper, lower = profile.upper(at, 5e-4)[0], profile.support(at, 5e-4).value[0]
    assert lower <= upper <= lower * 1.03


@pytest.mark.parametrize("epsilon", [3.9, 4.9, 6.0, 6.8])
def test_one_tilt_that_rounding_blurs_gives_way_to_jumps(epsilon: float) -> None:
    matrix = DiscreteGaussian(sigma=0.3, levels=8).facts().matrix
    assert matrix is not None
    law = FiniteBlanketProfile(matrix, 10**4).laws[0]
    upper, lines = law.both(np.array([epsilon, 0.99 * epsilon]), 0.005)
    assert (lines.value <= upper).all()
    assert (upper <= 1.01 * lines.value).all()


def test_rows_of_jumps_and_plain_ones_are_what_they_are_alone() -> None:
    matrix = DiscreteGaussian(sigma=0.3, levels=8).facts().matrix
    assert matrix is not None
    law = FiniteBlanketProfile(matrix, 10**4).laws[0]
    points = np.array([0.2, 6.8, 1.0, 8.0])
    upper, lines = law.both(points, 0.01)
    for i in range(points.size):
        alone, line = law.both(points[i : i + 1], 0.01)
        assert line.value[0] <= upper[i]
        assert lines.value[i] <= alone[0]
        assert upper[i] == pytest.approx(alone[0], rel=0.02)


def test_values_far_below_a_deviation_have_a_lattice_as_coarse_as_that() -> None:
    matrix = DiscreteGaussian(sigma=0.3, levels=64).facts().matrix
    assert matrix is not None
    rows = matrix.rows
    law = finite_pair(rows[0], rows[-1], rows[-1], 10**6).reversed()
    lattice = law._lattice(law._weights(np.array([0.05]), 0.0), np.array(law.clone), 0.01)
    assert isinstance(lattice, SpreadLaw)
    deviation = math.sqrt(float((lattice.w * lattice.x**2).sum()))
    assert lattice.h[0] > 0.01 * deviation
    finer = replace(lattice, h=lattice.h / 16.0)
    weight, other = law._weights(np.array([0.05]), 0.0), np.array(law.other)
    assert lattice.lower(weight, other)[0] == pytest.approx(finer.lower(weight, other)[0], rel=0.01)
    assert lattice.upper() == pytest.approx(finer.upper(), rel=0.01)


@pytest.mark.thorough
def test_rounds_of_gaussian_noise_are_certified() -> None:
    month = 30 * Shuffled(DiscreteGaussian(1.0, levels=8), n=10**5)
    one, bound = month.parts[0][0].epsilon(delta=1e-6), month.epsilon(delta=1e-6)
    assert one.upper < bound.lower < bound.upper < 30 * one.lower


def test_estimates_of_heavy_laws_are_within_a_factor_of_two() -> None:
    profile = heavy_profile(10**4)
    epsilon = np.array([6.0, 7.0, 8.0])
    clone = np.array(profile.clone)
    x, w = complete(profile._weights(epsilon, 0.0), clone)
    truth = profile.upper(epsilon, 1e-3)
    found = Split.best(x, w, 10**4)
    assert np.all(found.heavy)
    assert np.all((found.total > 0.5 * truth) & (found.total < 2.0 * truth))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("sigma", "n", "delta"), [(0.5, 10**5, 1e-6), (0.35, 10**4, 1e-10), (0.25, 10**6, 1e-6)]
)
def test_small_noise_has_two_ends_that_nearly_meet(sigma: float, n: int, delta: float) -> None:
    randomizer = DiscreteGaussian(sigma)
    bound = Shuffled(randomizer, n=n).epsilon(delta=delta)
    assert 0.9 * bound.upper < bound.lower <= bound.upper < randomizer.epsilon0


def test_blankets_of_twenty_users_with_rare_reports_are_enclosed() -> None:
    """Entries of 1e-9; all outcomes of 20 clones, in rationals."""
    rows = np.array([[0.7, 0.3 - 1e-9, 1e-9], [1e-9, 0.3 - 1e-9, 0.7]])
    profile = FiniteBlanketProfile(Matrix(rows), 20)
    for epsilon in (1.0, 5.0, 12.0):
        alpha = Fraction(math.exp(epsilon))
        own, other = ([Fraction(float(v)) for v in profile.matrix.rows[i]] for i in (0, 1))
        clone = [min(u, v) for u, v in zip(own, other, strict=True)]
        x = [(u - alpha * v) / c for u, v, c in zip(own, other, clone, strict=True)]
        rest = 1 - sum(clone)
        total = Fraction(0)
        for a in range(21):
            for b in range(21 - a):
                for c in range(21 - a - b):
                    value = a * x[0] + b * x[1] + c * x[2]
                    if value > 0:
                        ways = math.factorial(20) // math.prod(map(math.factorial, (a, b, c, 20 - a - b - c)))
                        mass = clone[0] ** a * clone[1] ** b * clone[2] ** c
                        total += ways * mass * rest ** (20 - a - b - c) * value / 20
        upper = float(profile.upper(np.array([epsilon]), 1e-4)[0])
        assert float(total) * (1.0 - 1e-12) <= upper <= float(total) * 1.01
