"""The Renyi divergence of a profile, against exact sums; conversion to (epsilon, delta) (T15)."""

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import pytest

from oracles import pairs
from oracles.brute import k_ary, random_matrices, shuffled_pairs
from oracles.golden import Golden, entries
from oracles.hockey import Atoms, hockey_stick, pair_of_curve, subsampled_curve, swapped, upper_envelope
from response import krr_blanket
from shuffledp import FiniteRandomizer
from shuffledp._certified.rounding import Floats
from shuffledp.accounting import _renyi
from shuffledp.accounting._curves.all_pairs import FiniteBlanketProfile
from shuffledp.accounting._curves.clones import clones_2021, strong_adversary, strong_clones
from shuffledp.accounting._curves.combined import BestProfile
from shuffledp.accounting._curves.profile import Bools, PrivacyProfile, SupportingLines
from shuffledp.accounting._curves.subsampled import SubsampledProfile
from shuffledp.accounting._witnesses import finite_pair
from shuffledp.errors import NoCertificateError
from shuffledp.literature.renyi import delta_from_renyi, epsilon_from_renyi, renyi_divergence

pytestmark = pytest.mark.quick


def divergence(pair: Atoms, order: int) -> float:
    """log(sum P^order Q^(1 - order)) / (order - 1), from the definition, for a whole order."""
    moment = sum((p**order / q ** (order - 1) for p, q in pair if p), Fraction(0))
    return math.log(moment) / (order - 1)


def worst_divergence(all_pairs: Iterable[Atoms], order: int) -> float:
    return max(divergence(pair, order) for pair in all_pairs)


@pytest.mark.parametrize("golden", entries("rdp_fmt22", "rdp_weak"), ids=str)
@pytest.mark.parametrize("tolerance", [1e-2, 1e-4])
def test_golden_divergences_lie_inside(golden: Golden, tolerance: float) -> None:
    n, epsilon0 = golden.params["n"], golden.number("eps0")
    if golden.name == "rdp_fmt22":
        profile: PrivacyProfile = strong_clones(epsilon0, n)
    else:
        profile = krr_blanket(golden.params["k"], epsilon0, n)
    bound = renyi_divergence(profile, golden.number("order"), tolerance=tolerance)
    assert golden.delta in bound
    assert bound.upper <= bound.lower * (1 + tolerance)


@pytest.mark.parametrize("E", [Fraction(3, 2), Fraction(6)])
@pytest.mark.parametrize("n", [1, 2, 5, 9])
@pytest.mark.parametrize("order", [2, 3, 11])
def test_clones_of_a_few_users_are_enclosed(E: Fraction, n: int, order: int) -> None:
    epsilon0 = math.log(E)
    exact = divergence(pairs.clones(n, E), order)
    assert exact in renyi_divergence(strong_clones(epsilon0, n), order)
    exact = divergence(pairs.clones_2021(n, E), order)
    assert exact in renyi_divergence(clones_2021(epsilon0, n), order)


class Window(PrivacyProfile):
    """The curve of a pair inside of a few epsilons, nothing known outside."""

    def __init__(self, inner: PrivacyProfile) -> None:
        self.inner, self.hints = inner, inner.hints

    @property
    def epsilon_max(self) -> float:
        return self.inner.epsilon_max

    def _known(self, epsilon: Floats) -> Bools:
        return np.abs(epsilon / self.epsilon_max - 0.3) < 0.02

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        return np.where(self._known(epsilon), self.inner.upper(epsilon, resolution), 1.0)

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        known, ones = self.inner.support(epsilon, resolution), np.ones(epsilon.size)
        return SupportingLines(epsilon, ones, ones, ones).chosen(known, self._known(epsilon))


@pytest.mark.parametrize("order", [2, 8, 30])
def test_the_best_of_two_analyses_has_an_upper_end_though_it_is_no_curve_of_a_pair(order: int) -> None:
    exact = divergence(pairs.clones(40, Fraction(9)), order)
    tight, loose = strong_clones(math.log(9), 40), strong_clones(math.log(9), 20)
    best = BestProfile(("window", "loose"), (Window(tight), loose), rivals=2)
    (found,), (looser,) = (_renyi.renyi_uppers(curve, [order]) for curve in (best, loose))
    assert exact <= found < looser


@pytest.mark.parametrize("share", [Fraction(1, 10), Fraction(1, 2)])
def test_cohorts_are_enclosed(share: Fraction) -> None:
    """The two-sided curve of a cohort: its pair is enumerated from the curve's corners."""
    E, n = Fraction(4), 4
    pair = pair_of_curve(subsampled_curve(upper_envelope([pairs.clones(n, E)]), share))
    profile = SubsampledProfile(strong_clones(math.log(E), n), float(share))
    for order in (2, 5, 20):
        assert divergence(pair, order) in renyi_divergence(profile, order)


def test_both_directions_of_an_asymmetric_pair_are_enclosed() -> None:
    for matrix in random_matrices(8, seed=2):
        common = [min(column) for column in zip(*matrix, strict=True)]
        exact = pairs.blanket(matrix, 0, 1, 4)
        own, other, clone = (np.array([float(x) for x in row]) for row in (*matrix[:2], common))
        forward, backward = finite_pair(own, other, clone, 4), finite_pair(other, own, clone, 4)
        for order in (2, 6):
            bound = renyi_divergence(forward, order, backward=backward)
            assert divergence(exact, order) in bound
            bound = renyi_divergence(backward, order, backward=forward)
            assert divergence(swapped(exact), order) in bound


@pytest.mark.thorough
def test_the_upper_end_covers_every_dataset_of_random_randomizers() -> None:
    for matrix in random_matrices(5, seed=3):
        randomizer = FiniteRandomizer([[float(x) for x in row] for row in matrix])
        for n, order in ((2, 2), (3, 2), (3, 7)):
            truth = worst_divergence(shuffled_pairs(matrix, n), order)
            profile = FiniteBlanketProfile(randomizer.table, n)
            assert renyi_divergence(profile, order).upper >= truth * (1 - 1e-12)


def test_divergences_are_ordered_as_the_curves_are() -> None:
    """Exact, blanket, strong clones, 2021 clones."""
    for k, E, n, order in ((3, Fraction(3), 4, 2), (2, Fraction(2), 6, 5), (4, Fraction(8), 3, 3)):
        epsilon0 = math.log(E)
        exact = worst_divergence(shuffled_pairs(k_ary(k, E), n), order)
        blanket = renyi_divergence(krr_blanket(k, epsilon0, n), order)
        clones = renyi_divergence(strong_clones(epsilon0, n), order)
        older = renyi_divergence(clones_2021(epsilon0, n), order)
        assert exact <= blanket.upper
        assert blanket.lower <= clones.upper
        assert clones.lower <= older.upper


@pytest.mark.thorough
def test_orders_from_near_one_to_thousands_stay_between_zero_and_epsilon0() -> None:
    for epsilon0, n in ((0.1, 10), (4.0, 10**4), (60.0, 10**3)):
        last = 0.0
        for order in (1.001, 1.5, 10.0, 300.0, 5000.0):
            bound = renyi_divergence(strong_clones(epsilon0, n), order, tolerance=1e-2)
            assert last * (1 - 2e-2) <= bound.lower <= bound.upper <= epsilon0
            last = bound.lower


def test_infinite_losses_are_infinite_divergence() -> None:
    bound = renyi_divergence(strong_adversary(4, 0.25, 0.75, 100), 2)
    assert bound.upper == math.inf
    assert 0.0 < bound.lower < math.inf


def test_nothing_leaks_nothing() -> None:
    bound = renyi_divergence(strong_clones(0.0, 100), 2)
    assert (bound.lower, bound.upper) == (0.0, 0.0)


def test_tilted_integrals_are_accurate() -> None:
    """int_0^d e^{r t} (e^t - 1) dt by the midpoint rule."""
    for rate in (0.01, 1.0, 40.0, -1.01, -1.6, -30.0):
        for step in (1e-3, 0.05, 0.4, 2.0, -0.05, -2.0):
            t = step * (np.arange(200_000) + 0.5) / 200_000
            exact = float((np.exp(rate * t) * np.expm1(t)).mean() * step)
            found = float(_renyi._tilted(rate, np.array([step]))[0])
            assert found == pytest.approx(exact, rel=1e-6)


# Conversion


@pytest.mark.parametrize("golden", entries("rdp_to_dp_eps"), ids=str)
def test_conversion_has_the_golden_value_rounded_up(golden: Golden) -> None:
    found = epsilon_from_renyi(golden.number("rdp"), golden.params["order"], golden.number("delta"))
    assert golden.delta <= found <= golden.delta * (1 + 1e-12)


def test_converted_divergences_lie_above_the_exact_curve() -> None:
    for matrix in random_matrices(10, seed=4):
        for pair in list(shuffled_pairs(matrix, 2))[:10]:
            for order in (2, 4, 9):
                size = max(divergence(pair, order), 0.0)
                for epsilon in (0.0, 0.1, 0.5):
                    exact = float(hockey_stick(pair, Fraction(math.exp(epsilon))))
                    assert delta_from_renyi(size, order, epsilon) >= exact * (1 - 1e-12)


def test_the_two_conversions_are_inverse() -> None:
    for size, order in ((0.5, 10), (0.01, 300), (3.0, 1.5)):
        for delta in (1e-2, 1e-9):
            epsilon = epsilon_from_renyi(size, order, delta)
            assert epsilon > 0.0
            assert delta_from_renyi(size, order, epsilon) == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize("order", [1.0, 0.5, math.inf, math.nan])
def test_bad_orders_are_named(order: float) -> None:
    with pytest.raises(ValueError, match=r"order must be in \(1, inf\)"):
        renyi_divergence(strong_clones(1.0, 10), order)
    with pytest.raises(ValueError, match=r"order must be in \(1, inf\)"):
        epsilon_from_renyi(1.0, order, 1e-6)


def test_orders_beyond_any_certificate_are_refused() -> None:
    with pytest.raises(ValueError, match=r"order must be in \(1, 500000\]"):
        renyi_divergence(strong_clones(1.0, 10), 1e9)


class Counted(PrivacyProfile):
    """A curve that counts the points at which it is asked, and has no certificate beyond an epsilon."""

    def __init__(self, inner: PrivacyProfile, certified: float = math.inf) -> None:
        self.inner, self.hints, self.certified, self.asked = inner, inner.hints, certified, 0

    @property
    def epsilon_max(self) -> float:
        return self.inner.epsilon_max

    def _count(self, epsilon: Floats) -> None:
        self.asked += epsilon.size
        if (epsilon > self.certified).any():
            raise NoCertificateError("too far")

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        self._count(epsilon)
        return self.inner.upper(epsilon, resolution)

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        self._count(epsilon)
        return self.inner.support(epsilon, resolution)


def test_large_orders_need_no_more_of_a_curve_than_small_ones() -> None:
    """A divergence is a logarithm: where it is large, the integral need not be known to the tolerance."""
    for order in (2.0, 64.0, 200.0):
        curve = Counted(krr_blanket(16, 4.0, 10_000))
        bound = renyi_divergence(curve, order)
        assert bound.upper <= bound.lower * 1.001
        assert curve.asked < 2_500
    curve = Counted(strong_clones(4.0, 10_000))  # loose where it is 1e-60: halves of cells do not help
    renyi_divergence(curve, 64.0)
    assert curve.asked < 2_500


def test_a_lower_end_needs_no_certificate_where_the_curve_is_next_to_nothing() -> None:
    whole = strong_clones(4.0, 10_000)
    for order in (1.5, 2.0, 8.0):
        (exact,) = _renyi.renyi_lowers([(whole, whole)], [order], 1e-3)
        cut = Counted(whole, 3.5)
        (found,) = _renyi.renyi_lowers([(cut, cut)], [order], 1e-3)
        assert 0.999 * exact <= found <= renyi_divergence(whole, order).upper
