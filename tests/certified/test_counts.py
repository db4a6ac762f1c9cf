"""Every stated error is at least what the count of operations says: no directed rounding is off or reversed.

T8 of docs/proofs.

True rounding errors are far below their worst case, so that comparing with the truth would not notice a step
that is missing. These tests state each count again, by other means; tests/mutation checks that they do."""

import math
from fractions import Fraction

import numpy as np
import pytest

from shuffledp._certified import binomial, caps, frequencies, lattice_sum, signs, tails
from shuffledp._certified.lattice_sum import Group, Own, tail_sum
from shuffledp._certified.two_binomials import TwoBinomials
from shuffledp._spans.span import Sides
from shuffledp.accounting._curves.crowd_family import _cut
from shuffledp.accounting._hints.tilt import Tilts
from shuffledp.accounting._rounds import loss
from shuffledp.accounting._rounds.compose import ComposedLoss
from shuffledp.accounting._rounds.loss import LossDistribution, Samples
from shuffledp.accounting.statement import factor

U = 2.0**-53
C = 8  # units of a library call


def one(x: float) -> np.ndarray:
    return np.array([float(x)])


@pytest.mark.parametrize(("k", "mean"), [(110.0, 100.0), (250.0, 100.0), (40.0, 100.0), (3.0, 100.0)])
def test_deviances(k: float, mean: float) -> None:
    value, error = binomial.deviance(one(k), one(mean))
    far = abs(k / mean - 1.0) >= 0.3
    assert error[0] >= U * (17.0 * value[0] + far * 13.0 * abs(k - mean))


@pytest.mark.parametrize("k", [0.0, 260.0, 300.0, 500.0, 1000.0])
def test_logarithms_of_binomial_probabilities(k: float) -> None:
    n, p = 1000, 0.3
    value, error = binomial.log_pmf(n, one(k), p, 0.7)
    apart = sum(
        float(binomial.deviance(one(at), one(mean))[1][0]) if 0 < k < n else 4 * U * abs(value[0])
        for at, mean in ((k or 1.0, 300.0), (n - k or 1.0, 700.0))
    )
    known = apart + U * ((C + 4) * abs(value[0]) + 10.0 * abs(k - n * p) + 32.0)
    assert error[0] >= known * (1.0 - 1e-12)


def test_ratios_of_tails() -> None:
    n, p = 10**6, 0.3
    _, error = binomial.tail_ratio(n, one(302_000.0), p, 1.0 - p)
    assert tails.TAIL_RATIO_ERROR >= 400 * U
    slope = 2000.0 / (1.0 - p)
    assert error[0] >= 400 * U + 6 * U * n * p * (10.0 / slope) / (1.0 - p)


def test_differences_of_tails_and_what_underflows() -> None:
    edges = np.array([0.0, 45.0, 56.0, 101.0])
    low, high = binomial.interval_probabilities(100, 0.5, 0.5, edges)
    _, doubt = binomial.log_upper_tail(100, one(56.0), 0.5, 0.5)
    tail = float(low[2])
    assert high[1] - low[1] >= 2 * (2 * 2 * float(doubt[0]) * tail + 4 * U * (1 + 2 * tail)) * 0.999
    far = np.array([0.0, 1.0, 2.0, 3.0])
    low, high = binomial.interval_probabilities(10**5, 0.5, 0.5, far)
    assert np.all(low == 0.0)
    assert np.all(high == 1e-300)
    below, above = binomial.tail_bounds(10**5, 0.5, 0.5, far, 10.0**5)
    assert np.all(below == 1e-300)
    assert above == 1e-300
    # What is computed next to an underflow is not certain from below, either.
    low, high = binomial.interval_probabilities(1000, 1e-160, 1.0, np.array([0.0, 2.0, 3.0]))
    assert low[1] == 0.0 < high[1]


def test_windows() -> None:
    n, p = 10**6, 0.3
    edges = np.arange(298_000.0, 302_001.0, 100.0)
    low, high = binomial.window_probabilities(n, p, 0.7, edges, 0.0)
    far = np.maximum(np.abs(edges[:-1] - n * p), np.abs(edges[1:] - n * p))
    middle = 0.5 * (low + high)
    assert np.all(high - middle >= U * (12.0 * far + 100.0) * middle)
    assert np.all(middle - low >= U * (12.0 * far + 100.0) * middle)


def test_chernoffs_bound_is_above_itself() -> None:
    n, p, k = 10**6, 0.3, 290_000.0
    near, away = k * math.log(k / (n * p)), (n - k) * math.log((n - k) / (n * 0.7))
    below, _ = binomial.tail_bounds(n, p, 0.7, one(k + 1.0), 310_000.0)
    units = (C + 4) * (abs(near) + abs(away)) + 6.0 * n + C
    assert math.log(below[0]) + near + away >= 0.8 * U * units
    small, _ = binomial.tail_bounds(10, 0.5, 0.5, one(1.0), 10.0)  # k = 0
    assert small[0] >= 0.5**10 * (1.0 + U * ((C + 4) * 10 * math.log(2.0) + 60.0))


def test_caps() -> None:
    t, d = 0.2, 100
    a = 0.5 * (d - 1)
    falling = a * math.log1p(-t * t)
    _, moment_error = caps._log_moment(d, t)
    units = 136.0 + 16.0 * math.log(2.0 * a)
    assert moment_error >= U * ((C + 10) * -falling + units)
    _, series_error = caps._series(d, 0.4)
    terms, term = [], 1.0
    for i in range(400):
        terms.append(term)
        term *= (d - 1.0 + i) / (0.5 * (d + 1) + i) * 0.4
    assert series_error >= U * (4.0 * sum(i * x for i, x in enumerate(terms)) / sum(terms) + 8.0)
    assert caps.cap_at(d, t).error >= moment_error + caps._series(d, 0.4)[1] + (C + 4) * U


def test_fair_signs() -> None:
    for n, a in ((1000.0, 510.0), (1000.0, 900.0), (1000.0, 1000.0)):
        value, error = signs._log_half_pmf(one(n), one(a))
        near = a < n and (2 * a - n) / n < 0.3
        assert error[0] >= U * ((14.0 if near or a == n else 72.0) + C) * abs(value[0]) + 32 * U
    # Next to the top outcome a tie costs what the outcome before it counts; elsewhere not.
    for short, tied in ((2.0 / 60.0, 1.0), (math.nextafter(2.0 / 60.0, 0.0), 1.0), (1.0 / 60.0, 0.0)):
        at = one(60.0), np.array([[1.0 - short]]), np.array([[short]])
        value, error, tail, *_ = signs.mean_of_signs_excess(*at)
        assert value[0, 0] == tail[0, 0] * short
        relative = float(signs._log_half_pmf(one(60.0), one(60.0))[1][0]) + 800 * U
        known = relative * value[0, 0] + tied * 32.0 * 60.0 * U * tail[0, 0]
        assert known <= error[0, 0] <= 1.001 * known
    _, error, tail, jump, _ = signs.signs_excess_table(one(2001.0), np.array([[0.01]]), np.array([[0.99]]))
    assert error[0, 0] >= (8.0 * 1001.0 * U + 800 * U) * (jump[0, 0] + 0.01 * tail[0, 0])
    _, error, *_ = signs.signs_excess_table(one(3000.0), np.array([[0.999]]), np.array([[0.001]]))
    assert error[0, 0] >= 1e-300


def example_sum(count: float, theta: float, k0: float) -> lattice_sum.Result:
    group = Group(np.array([[-2.0, 0.0, 1.0, 3.0]]), np.array([[0.2, 0.4, 0.3, 0.1]]), one(count))
    own = Own(np.zeros((1, 1)), np.ones((1, 1, 1)))
    return tail_sum([group], own, one(k0), one(theta))


def test_sums_on_a_lattice() -> None:
    assert lattice_sum.ERROR_UNITS >= 64 * U
    group = Group(np.array([[-2.0, 300.0]]), np.array([[0.5, 0.5]]), one(5.0))
    tilted, log_phi = lattice_sum._tilt(group, one(0.5), 0.0)
    assert tilted.error[0] >= 2 * U * (2.0 + abs(log_phi[0]))
    # Without errors of the weights, what remains is that of the prefactor and of the terms.
    result = example_sum(20.0, 0.3, 30.0)
    log_total = float(result.log_scale[0]) + 0.3 * 30.0
    relative = U * (4.0 * abs(log_total) + 4.0 * 9.0 + C)
    law = Group(np.array([[-2.0, 0.0, 1.0, 3.0]]), np.array([[0.2, 0.4, 0.3, 0.1]]), one(20.0))
    weights = 20.0 * 0.3 * float(lattice_sum._tilt(law, one(0.3), 64 * U)[0].slack[0])
    assert result.error[0, 0] >= 2.0 * (relative + weights) * result.value[0, 0]


def parts_of_a_sum(units: float) -> tuple[np.ndarray, np.ndarray]:
    """A sum of 500 terms of a certain variable: nothing is off but the arithmetic of frequencies."""
    group = Group(np.zeros((1, 1)), np.ones((1, 1)), one(1.0))
    theta = one(0.5)
    tilted, _ = lattice_sum._tilt(group, theta, 0.0)
    own_z = np.arange(40.0)[None, :]
    own_w = np.ones((1, 40, 1))
    problem = lattice_sum._Problem(
        [tilted], own_z, own_w, one(3.0), theta, np.array([999]), None, np.zeros(1), units
    )
    rows = np.zeros(500, dtype=np.int64)
    return lattice_sum._sum(problem, frequencies.Chosen(rows, np.arange(500), []))


def test_frequencies_and_numerators() -> None:
    value, error = parts_of_a_sum(0.0)
    assert error[0, 0] >= (160 + 36) * U * value[0, 0]
    # At the frequency zero alone: term and numerator, each with its count, and the step outward.
    group = Group(np.zeros((1, 1)), np.ones((1, 1)), one(1.0))
    tilted, _ = lattice_sum._tilt(group, one(0.5), 0.0)
    problem = lattice_sum._Problem(
        [tilted],
        np.zeros((1, 9)),
        np.ones((1, 9, 1)),
        one(0.0),
        one(0.5),
        np.array([3]),
        None,
        np.zeros(1),
        0.0,
    )
    zero = np.zeros(1, dtype=np.int64)
    value, error = lattice_sum._sum(problem, frequencies.Chosen(zero, zero, []))
    term = float(value[0, 0])
    spilled = (160 + 1 + 1) * U * term
    summed = 9 * U * term
    assert error[0, 0] >= (spilled + summed) * (1.0 + 150 * U)


def test_dropped_frequencies() -> None:
    group = Group(np.array([[-1.0, 1.0]]), np.array([[0.5, 0.5]]), one(2.0))
    tilted, _ = lattice_sum._tilt(group, one(1e-12), 0.0)
    half = np.array([10**9])
    assert frequencies._edge_error(half)[0] >= 1e-6 + 32 * U * 1e9
    # phi vanishes at a quarter turn: the bound is what rounding leaves.
    quarter = np.array([(2.0 * 10**9 + 1.0) / 4.0])
    bound = frequencies._log_bound([tilted], np.zeros(1, dtype=np.int64), quarter, quarter, half)
    reach = 2.0 * math.pi / (2e9 + 1.0) * (1e-6 + 32 * U * 1e9)
    assert math.exp(bound[0]) >= reach**2 + 4 * (2 + C + 8) * U
    _, error = frequencies.transformed(tilted.z[0], tilted.w[0], 1029)
    assert error >= U * (16.0 * math.log2(1029) + 1)
    # Of what a transform leaves out, the size is known with its error: here it is nothing but that.
    (chosen,) = frequencies.choose_frequencies([tilted], np.array([1029]), True)
    left_out = np.setdiff1d(np.arange(513), chosen.r)
    exact = 2.0 * np.log(np.abs(np.cos(2.0 * np.pi * left_out / 1029)) + error)
    assert np.all(exact <= -frequencies.DEPTH)
    assert chosen.tables[0].error[0] == error


def test_two_binomials() -> None:
    laws = TwoBinomials(one(50.0), one(60.0), 0.8, 0.2, 0.4)
    total = laws._log_total(0.4)
    relative = laws._prefactor_error(one(70.0), total)
    first, second = laws._roughness()
    weights = 64 * U * 0.4 * (50.0 * first + 60.0 * second)
    assert relative[0, 0] >= weights + U * (4.0 * abs(total[0]) + 4.0 * 0.4 * 70.0 + C)
    omega, _, doubt = laws._powers(301, 2.0)
    assert doubt[0] >= 2 * 110 * 64 * U * 0.4 * max(first, second) + (160 + 64 + omega.size) * U


def composed(infinity: float, rounds: int) -> ComposedLoss:
    law = LossDistribution(0.1, np.array([-3.0, 0.0, 3.0]), np.array([0.3, 0.3, 0.4 - infinity]), infinity)
    return ComposedLoss(((law, rounds),), Tilts)


def test_infinite_and_largest_losses() -> None:
    together = composed(1e-3, 7)
    exact = 1 - (1 - Fraction(1e-3)) ** 7
    low, high = together.infinities
    assert Fraction(low) <= exact * (1 - 17 * Fraction(U))
    assert Fraction(high) >= exact * (1 + 17 * Fraction(U))
    assert Fraction(together.largest) > Fraction(0.1) * 21 * (1 + Fraction(U))


def test_deltas_of_composed_losses() -> None:
    for epsilon in (0.6, 0.65):  # on the lattice, and off it
        together = composed(0.0, 7)
        inner = together._delta(one(epsilon), one(2.0))
        low, high = together.delta(one(epsilon), 2.0)
        assert low[0] <= inner[0, 0] * (1.0 - 4 * U)
        assert high[0] >= inner[1, 0] * (1.0 + 4 * U)
        groups = [Group(law.index[None, :], w[None, :], one(7.0)) for law, w, _ in together._laws]
        own = Own(np.zeros((1, 1)), np.ones((1, 1, 1)))
        k0 = math.ceil(epsilon / 0.1)
        payoff = lattice_sum.HockeyStick(one(-math.expm1(min(epsilon - 0.1 * k0, 0.0))), one(0.1))
        plain = tail_sum(groups, own, one(k0), one(0.2), payoff)
        scale = math.exp(plain.log_scale[0])
        slack = 2 * (C + 3) * U * (epsilon + 0.1)
        reach = math.exp(0.2) if epsilon == 0.6 else 1.0
        moved = 0.97 * slack * scale * reach  # the sum is computed in another order: two units
        assert inner[1, 0] >= scale * (plain.value[0, 0] + plain.error[0, 0]) + moved
        assert inner[0, 0] <= scale * (plain.value[0, 0] - plain.error[0, 0]) - moved


def samples() -> Samples:
    index = np.array([0.0, 8.0, 16.0, 24.0])
    value = np.array([0.5, 0.2, 0.05, 0.01])
    slope = np.array([0.6, 0.2, 0.05, 0.004])
    return Samples(index, value * 1.01, value, slope, slope, 1e-3)


def test_polygons_above_and_below() -> None:
    found = samples()
    units = loss.OUTWARD_UNITS
    above = loss.dominating(found, 0.05)
    assert above.infinity >= found.upper[-1] * (1.0 + units * U)
    below = loss._below(found, 0.05)
    assert below.value[0] <= found.value[0] * (1.0 - units * U)
    assert below.value[-1] <= found.least * (1.0 - 2 * units * U)
    # A line that reaches the least height exactly on a lattice point is not followed so far.
    fall = 0.01 - found.least * (1.0 - (units + 4) * U)
    steep = fall / (math.exp(0.05 * 24.0) * math.expm1(0.05 * 4.0))
    edge = Samples(
        found.index, found.upper, found.value, found.slope_low, np.append(found.slope_high[:3], steep), 1e-3
    )
    assert loss._below(edge, 0.05).index[-1] <= 27.0
    points, heights = loss._along_the_lines(found, 0.05)
    for point, height in zip(points[4:], heights[4:], strict=True):
        i = int(np.searchsorted(found.index, point)) - 1
        grown = math.expm1(0.05 * (point - found.index[i]))
        left = found.value[i] - found.slope_high[i] * math.exp(0.05 * found.index[i]) * grown
        shrunk = -math.expm1(0.05 * (point - found.index[i + 1]))
        rise = found.slope_low[i + 1] * math.exp(0.05 * found.index[i + 1]) * shrunk
        lines = (
            left - U * (loss._LINE_UNITS * (found.value[i] - left) + 4 * found.value[i]),
            (found.value[i + 1] + rise) * (1.0 - U * loss._LINE_UNITS),
        )
        assert height <= min(lines) + 2 * U * found.value[i]


def test_masses_add_up_to_one_whatever_rounding_loses() -> None:
    values = np.array([0.5, 0.21, 0.07, 0.01, 1e-3])
    for spacing in np.linspace(0.05, 3.0, 400).tolist():  # refused if no rounding were allowed
        polygon = loss.Polygon(np.arange(5.0), values)
        found = loss._assemble(polygon, polygon, spacing)
        assert abs(math.fsum(found.mass) + found.infinity - 1.0) <= 2 * U
        if spacing < 1.0:  # steeper than any curve: it was lowered
            continue
        beyond = found.index > 0.0  # and the curve is the polygon's
        for j, value in enumerate(values):
            excess = -np.expm1(spacing * (j - found.index[beyond]))
            curve = math.fsum(found.mass[beyond] * np.maximum(excess, 0.0)) + found.infinity
            assert abs(curve - value) <= 64 * U * value


def test_what_a_cap_costs_where_a_difference_cancels() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        cap, z = math.exp(0.25 * rng.integers(1, 9)), float(rng.random())
        x = math.nextafter(cap * z, 1e9)
        exact = max(Fraction(0), Fraction(x) - Fraction(cap) * Fraction(z))
        rows = np.array([[x], [z]])
        assert Fraction(_cut(Sides(rows, rows, rows, np.zeros(1)), cap)) >= exact


def test_a_factor_for_people_is_rounded_up_before_it_is_written() -> None:
    assert factor(0.0) == "1.001"
