"""Binomial probabilities and tails against ball arithmetic."""

import math
import random
from collections.abc import Callable

import numpy as np
import pytest
from flint import arb

from shuffledp._certified import binomial
from shuffledp._certified.tails import TAIL_RATIO_ERROR


def ball_log_pmf(n: int, k: int, p: float) -> arb:
    chosen = arb(n + 1).lgamma() - arb(k + 1).lgamma() - arb(n - k + 1).lgamma()
    return chosen + k * arb(p).log() + (n - k) * (1 - arb(p)).log()


@pytest.mark.parametrize("n", [1, 2, 3, 20, 49, 80, 500, 10**4, 10**7, 10**12])
@pytest.mark.parametrize("p", [0.001, 0.1, 0.5, 0.9])
def test_probabilities_are_within_their_error(n: int, p: float) -> None:
    spread = math.sqrt(n * p * (1 - p))
    for t in (-8.0, -2.0, 0.0, 1.0, 6.0, 12.0):
        k = min(max(round(n * p + t * spread), 0), n)
        value, error = binomial.log_pmf(n, np.array([float(k)]), p, 1.0 - p)
        assert abs(float(arb(float(value[0])) - ball_log_pmf(n, k, p))) <= error[0]


@pytest.mark.parametrize("n", [2, 30, 60, 200, 10**3, 10**6])
@pytest.mark.parametrize("p", [0.01, 0.3, 0.5, 0.9])
def test_tails_are_within_their_error(n: int, p: float) -> None:
    for t in (0.2, 1.0, 4.0, 9.0):
        a = min(math.floor(n * p + 1 + t * math.sqrt(n * p * (1 - p))) + 1, n)
        value, error = binomial.log_upper_tail(n, np.array([float(a)]), p, 1.0 - p)
        exact = arb(p).beta_lower(a, n - a + 1, regularized=True).log()
        assert abs(float(arb(float(value[0])) - exact)) <= error[0]


def test_tail_ratios_of_few_and_of_many_terms_are_within_their_error() -> None:
    rng = random.Random(7)
    worst = 0.0
    for _ in range(60):
        n = int(10 ** rng.uniform(0.5, 4.5))
        p = rng.choice([rng.random(), 10.0 ** rng.uniform(-4, -1), 1.0 - 10.0 ** rng.uniform(-4, -1)])
        first = math.floor((n - 1) * p + 1) + 1
        a = min(first + int(rng.uniform(0.0, 9.0) * math.sqrt(n * p * (1.0 - p))), n - 1)
        if a < first:
            continue
        value, error = binomial.tail_ratio(n, np.array([float(a)]), p, 1.0 - p)
        tail = arb(p).beta_lower(a, n - a + 1, regularized=True)
        exact = tail / ball_log_pmf(n, a, p).exp()
        assert abs(float(arb(float(value[0])) / exact - 1)) <= error[0]
        worst = max(worst, float(error[0]))
    assert 2.0 * TAIL_RATIO_ERROR < worst < 1e-10  # some were summed term by term


def test_the_ellipse_of_the_proof() -> None:
    """On the whole ellipse, not on a sample: arcs are balls, split until the claim holds on each."""
    for rho, most in ((2.8, 0.3555), (2.9, 0.406)):
        on_every_arc(rho, most, lambda x, y: y**2 - x**2 + (x**2 + y**2) ** 2 / 2)
        on_every_arc(rho, most, lambda x, y: (x**2 + y**2) / 2 - x)
    on_every_arc(2.8, 1.29, lambda x, y: (x**2 + y**2).sqrt())
    on_every_arc(2.8, 0.294, lambda x, y: -x)
    on_every_arc(2.8, 0.294, lambda x, y: y**2 - x**2)
    assert 64 / 15 / 2.0 / (1.0 - 2.8**-2) < 2.5


def on_every_arc(rho: float, most: float, value: Callable[[arb, arb], arb]) -> None:
    """The value is below ``most`` on the upper half of the ellipse; the lower one is its mirror image."""
    wide, high = (arb(rho) + 1 / arb(rho)) / 4, (arb(rho) - 1 / arb(rho)) / 4
    todo = [(k, 6) for k in range(64)]  # pi [k, k + 1] / 2^depth
    while todo:
        k, depth = todo.pop()
        angle = arb.pi() * (arb(2 * k + 1) + arb(0, 1)) / arb(2) ** (depth + 1)
        if not value(arb(1) / 2 + wide * angle.cos(), high * angle.sin()) < arb(most):
            assert depth < 40, (rho, most, k, depth)
            todo += [(2 * k, depth + 1), (2 * k + 1, depth + 1)]


def test_interval_probabilities_enclose_and_sum_to_one() -> None:
    edges = np.array([0.0, 5.0, 6.0, 20.0, 31.0, 32.0, 60.0, 101.0])
    low, high = binomial.interval_probabilities(100, 0.3, 0.7, edges)
    for i in range(edges.size - 1):
        inside = range(int(edges[i]), int(edges[i + 1]))
        exact = sum((ball_log_pmf(100, k, 0.3).exp() for k in inside), arb(0))
        assert arb(float(low[i])) <= exact * (1 + arb(1e-13))
        assert exact <= arb(float(high[i])) * (1 + arb(1e-13))
    assert low.sum() <= 1.0 <= high.sum()


@pytest.mark.parametrize(
    ("n", "p"), [(50, 0.3), (999, 0.036), (10**6, 0.036), (10**6, 0.5), (10**7, 1e-4), (10**9, 1e-7)]
)
def test_windows_of_binomial_probabilities_enclose_the_truth(n: int, p: float) -> None:
    spread = math.sqrt(n * p * (1 - p))
    low = max(0, math.floor(n * p - 9 * spread - 20))
    edges = np.arange(low, min(n, math.ceil(n * p + 8 * spread + 20)), 7, dtype=np.float64)
    below, above = binomial.tail_bounds(n, p, 1 - p, edges[:1], edges[-1])
    lost = float(below[0]) + above
    assert lost < 1e-12
    lower, upper = binomial.window_probabilities(n, p, 1 - p, edges, lost)
    assert np.all(upper - lower <= 1e-8 * upper + 1e-300)
    for i in {0, 1, edges.size // 2, edges.size - 3, edges.size - 2}:
        values = range(int(edges[i]), int(edges[i + 1]))
        exact = sum((ball_log_pmf(n, k, p).exp() for k in values), arb(0))
        assert arb(float(lower[i])) <= exact
        assert exact <= arb(float(upper[i]))
    fewer = np.array([max(0.0, low - 11.0), float(low)])
    below, above = binomial.tail_bounds(n, p, 1 - p, fewer, edges[-1])
    for edge, bound in zip(fewer, below, strict=True):
        values = range(max(0, int(edge) - 300), int(edge))
        tail = sum((ball_log_pmf(n, k, p).exp() for k in values), arb(0))
        assert tail <= arb(float(bound))
    last = int(edges[-1])
    tail = sum((ball_log_pmf(n, k, p).exp() for k in range(last, min(n, last + 300) + 1)), arb(0))
    assert tail <= arb(above)
