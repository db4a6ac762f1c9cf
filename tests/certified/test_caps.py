"""Spherical caps against ball arithmetic, an independent library and a plain search."""

import math

import numpy as np
import pytest
from flint import acb, arb, ctx
from scipy import special

from shuffledp._certified.caps import SphericalCap, best_cap, cap_at, cap_of, overlap

pytestmark = pytest.mark.quick

DIMENSIONS = [2, 3, 4, 7, 64, 65, 66, 1000, 10**6, 10**8]


@pytest.fixture(autouse=True)
def precision() -> None:
    ctx.prec = 300


def thresholds(dimension: int) -> list[float]:
    """In standard deviations of a coordinate, and two near the pole."""
    many = [tau / math.sqrt(dimension) for tau in (0.0, 1e-7, 0.01, 0.7, 1.3, 3.0, 8.0, 30.0)]
    return [t for t in many if t < 1.0] + [0.9, 1.0 - 1e-9]


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_the_probability_of_a_cap_is_within_its_relative_error(dimension: int) -> None:
    for t in thresholds(dimension):
        cap = cap_at(dimension, t)
        exact = (1 - arb(t) ** 2).beta_lower(arb(dimension - 1) / 2, arb(0.5), regularized=True) / 2
        if exact > arb(1e-300):
            assert abs(arb(cap.small) / exact - 1) <= arb(cap.error)
            assert cap.error < 1e-11


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_the_moment_of_a_cap_is_within_its_relative_error(dimension: int) -> None:
    a = arb(dimension - 1) / 2
    constant = (a + arb(0.5)).lgamma() - a.lgamma() - arb.pi().sqrt().log() - (2 * a).log()
    for t in thresholds(dimension):
        exact = (a * (1 - arb(t) ** 2).log() + constant).exp()
        if exact > arb(1e-300):
            cap = cap_at(dimension, t)
            assert abs(arb(cap.moment) / exact - 1) <= arb(cap.error)


@pytest.mark.parametrize("dimension", [2, 3, 10, 1000, 10**6])
def test_the_probability_of_a_cap_agrees_with_the_incomplete_beta_of_scipy(dimension: int) -> None:
    for t in (0.0, 0.1 / math.sqrt(dimension), 0.9 / math.sqrt(dimension)):
        inside = 0.5 * special.betainc(0.5 * (dimension - 1), 0.5, 1.0 - t * t)
        assert cap_at(dimension, t).probability == pytest.approx(inside, rel=1e-9)
        assert cap_at(dimension, -t).probability == pytest.approx(1.0 - inside, rel=1e-9)


@pytest.mark.parametrize("dimension", [2, 5, 1000, 10**6])
@pytest.mark.parametrize("probability", [1e-6, 0.003, 0.4, 0.5, 0.6, 0.999])
def test_a_cap_of_a_given_probability_has_it(dimension: int, probability: float) -> None:
    cap = cap_of(dimension, probability)
    # Between the two caps whose thresholds are the neighbouring doubles.
    around = 1e-13 + cap.hazard * 2.0**-52
    small = min(probability, 1.0 - probability)
    assert abs(cap.small - small) <= around * max(small, cap.small) + cap.error
    assert (cap.threshold >= 0.0) == (probability <= 0.5)


def mean_length(cap: SphericalCap, epsilon0: float) -> float:
    growth = math.expm1(epsilon0)
    return cap.moment * growth / (1.0 + growth * cap.probability)


@pytest.mark.parametrize("dimension", [2, 3, 50, 10**4, 10**6])
@pytest.mark.parametrize("epsilon0", [1e-4, 0.5, 2.0, 8.0, 32.0])
def test_no_cap_on_a_grid_is_better_than_the_best_one(dimension: int, epsilon0: float) -> None:
    best = mean_length(best_cap(dimension, epsilon0), epsilon0)
    grid = [i / 100 * min(1.0, 10.0 / math.sqrt(dimension)) for i in range(-99, 100)]
    assert max(mean_length(cap_at(dimension, t), epsilon0) for t in grid) <= best * (1.0 + 1e-12)
    near = best_cap(dimension, epsilon0).threshold
    assert mean_length(cap_at(dimension, near), epsilon0) == pytest.approx(near, rel=1e-6)


@pytest.mark.parametrize("dimension", [2, 3, 1000, 10**6])
@pytest.mark.parametrize("tau", [0.1, 0.5, 0.9])
def test_the_hazard_is_the_relative_slope_of_the_probability(dimension: int, tau: float) -> None:
    t, step = tau / math.sqrt(dimension), 1e-5 / math.sqrt(dimension)
    low, high = cap_at(dimension, t - step), cap_at(dimension, t + step)
    slope = math.log(low.small / high.small) / (2.0 * step)
    assert cap_at(dimension, t).hazard == pytest.approx(slope, rel=1e-6)


def exact_probability(dimension: int, t: arb) -> arb:
    half = (1 - t**2).beta_lower(arb(dimension - 1) / 2, arb(0.5), regularized=True) / 2
    return half if t >= 0 else 1 - half


@pytest.mark.parametrize("dimension", [2, 3, 4, 5, 10, 1000, 10**6])
@pytest.mark.parametrize("height", [2.0**-53, 2.0**-46, 1e-9, 1e-4])
def test_a_moved_threshold_changes_the_probability_by_no_more_than_stated(
    dimension: int, height: float
) -> None:
    known, ratios = 0, []
    for t in [*thresholds(dimension), 0.5 * height, height, 1.0 - 10.0 * height, 1.0 - 5.0 * height]:
        cap = cap_at(dimension, t)
        if cap.small == 0.0 or (bound := cap.change(height)) == math.inf:
            continue
        known += 1
        exact = exact_probability(dimension, arb(t))
        moves = [exact_probability(dimension, arb(t) + h) / exact - 1 for h in (-height, height)]
        # The hazard is known to twice the error of the cap.
        assert all(abs(move) <= arb(bound * (1.0 + 3.0 * cap.error)) for move in moves)
        ratios.append(float(abs(moves[0])) / bound)
    assert known >= 3
    assert max(ratios) > 0.9  # no more than it has to be


@pytest.mark.parametrize("dimension", [2, 3, 10**8])
def test_the_change_is_infinite_where_the_threshold_is_too_near_the_pole(dimension: int) -> None:
    assert cap_at(dimension, 1.0 - 2.0**-50).change(2.0**-46) == math.inf
    assert cap_at(dimension, 1e-9).change(2.0**-46) < 1e-9


def exact_overlap(dimension: int, t: float, tangent: float) -> arb:
    """Of an even dimension, integrated over the angle (not its tangent)."""
    square, power = arb(t) ** 2, dimension // 2 - 1

    def inside(angle: acb, _: bool) -> acb:
        return (1 - square / angle.cos() ** 2) ** power

    return acb.integral(inside, acb(arb(tangent).atan()), acb(arb(t).acos())).real / arb.pi()


@pytest.mark.parametrize("dimension", [2, 4, 10, 100, 1000, 26_010])
@pytest.mark.parametrize("tau", [0.05, 0.4, 0.8, 1.3, 2.5])
@pytest.mark.parametrize("tangent", [0.3, 1.0, 1.7])
def test_the_overlap_of_two_caps_is_within_its_error(dimension: int, tau: float, tangent: float) -> None:
    t = min(tau / math.sqrt(dimension), 0.5)
    found, error = overlap(dimension, t, tangent)
    exact = exact_overlap(dimension, t, tangent)
    assert abs(arb(found) - exact).upper() <= error <= 1e-11 * found


def test_orthogonal_caps_in_three_dimensions_and_at_the_ends() -> None:
    # Odd dimensions have a root at the end of the integral: compared with a sum over heights.
    t = 0.5
    found, error = overlap(3, t)
    height = arb(t)
    slices = acb.integral(
        lambda z, _: (height / (1 - z * z).sqrt()).acos(), acb(height), acb(arb(3).sqrt() / 2 - arb(1e-9))
    )
    assert float(slices.real / (2 * arb.pi())) == pytest.approx(found, abs=1e-9)
    assert error <= 1e-11 * found
    assert overlap(3, 0.75) == (0.0, 0.0)
    assert overlap(3, 0.5, 1.8) == (0.0, 0.0)
    assert overlap(50, 1e-9)[0] == pytest.approx(0.25, rel=1e-6)


def test_nodes_and_weights_of_the_rule_are_known_well_enough() -> None:
    nodes, weights = np.polynomial.legendre.leggauss(20)
    for index, (node, weight) in enumerate(zip(nodes[::-1], weights[::-1], strict=True)):
        exact_node, exact_weight = arb.legendre_p_root(20, index, weight=True)
        assert abs(arb(float(node)) - exact_node).upper() <= 8 * 2.0**-53
        assert (abs(arb(float(weight)) - exact_weight) / exact_weight).upper() <= 1024 * 2.0**-53
