"""Numerics against ball arithmetic and plain enumeration."""

import itertools
import math

import numpy as np
import pytest
from flint import arb, ctx

from shuffledp.numerics import binomial
from shuffledp.numerics.convex import lower_hull
from shuffledp.numerics.lattice_sum import Group, HockeyStick, Own, tail_sum
from shuffledp.numerics.multinomial import enumerate_multinomial, outcomes
from shuffledp.numerics.two_binomials import TwoBinomials


@pytest.fixture(autouse=True)
def precision() -> None:
    ctx.prec = 300


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


def test_interval_probabilities_enclose_and_sum_to_one() -> None:
    edges = np.array([0.0, 5.0, 6.0, 20.0, 31.0, 32.0, 60.0, 101.0])
    low, high = binomial.interval_probabilities(100, 0.3, 0.7, edges)
    for i in range(edges.size - 1):
        inside = range(int(edges[i]), int(edges[i + 1]))
        exact = sum((ball_log_pmf(100, k, 0.3).exp() for k in inside), arb(0))
        assert arb(float(low[i])) <= exact * (1 + arb(1e-13))
        assert exact <= arb(float(high[i])) * (1 + arb(1e-13))
    assert low.sum() <= 1.0 <= high.sum()


@pytest.mark.parametrize("count", [1.0, 2.0, 7.0, 30.0, 101.0])
def test_the_excess_of_a_mean_of_signs_is_its_sum(count: float) -> None:
    y = np.array([0.0, 0.1, 0.4, 0.9, 1.0 - 1e-12])
    n = int(count)
    a = np.arange(n + 1)
    weight = np.array([math.comb(n, int(k)) for k in a]) / 2.0**n
    exact = (np.maximum((2 * a - n) / n - y[:, None], 0.0) * weight).sum(axis=1)
    counts = np.array([count])
    for value, error, _, _ in (
        binomial.mean_of_signs_excess(counts, y[:, None], 1.0 - y[:, None]),
        binomial.signs_excess_table(counts, y[:, None], 1.0 - y[:, None]),
        binomial.mean_of_signs_excess(counts, y[:, None], 1.0 - y[:, None], binomial.ROUGH),
    ):
        assert np.all(np.abs(value[:, 0] - exact) <= error[:, 0] + 1e-14 * exact)


def test_the_lower_hull_drops_what_lies_above() -> None:
    x = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    assert lower_hull(x, np.array([4.0, 1.0, 2.0, 0.0, 0.0])).tolist() == [0, 1, 3, 4]


def test_a_multinomial_is_enumerated_whole() -> None:
    counts, p = enumerate_multinomial(6, np.array([0.2, 0.3, 0.5]))
    assert len(counts) == outcomes(6, 3) == 28
    assert p.sum() == pytest.approx(1.0, rel=1e-13)
    assert (counts * p[:, None]).sum(axis=0) == pytest.approx([1.2, 1.8, 3.0], rel=1e-12)


def brute_tail(z: list[int], w: list[float], count: int, own: dict[int, float], k0: int) -> float:
    total = 0.0
    for atoms in itertools.product(range(len(z)), repeat=count):
        weight = math.prod(w[i] for i in atoms)
        total += sum(c * weight for at, c in own.items() if sum(z[i] for i in atoms) + at >= k0)
    return total


@pytest.mark.parametrize("theta", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("k0", [-3, 0, 2, 6])
def test_tails_of_lattice_sums_are_enclosed(theta: float, k0: int) -> None:
    z, w = [-2, 0, 1, 3], [0.2, 0.4, 0.3, 0.1]
    own = {0: 0.7, 2: -0.4}
    exact = brute_tail(z, w, 5, own, k0)
    group = Group(np.array([z], float), np.array([w]), np.array([5.0]))
    measure = Own(np.array([[0.0, 2.0]]), np.array([[[0.7], [-0.4]]]))
    result = tail_sum([group], measure, np.array([float(k0)]), np.array([theta]))
    scale = math.exp(result.log_scale[0])
    assert abs(scale * result.value[0, 0] - exact) <= scale * result.error[0, 0] + 1e-15
    assert result.error[0, 0] <= 1e-11  # relative to the tilted total


def test_shifted_thresholds_are_those_thresholds() -> None:
    z, w = [0, 1, 5], [0.5, 0.3, 0.2]
    group = Group(np.array([z], float), np.array([w]), np.array([4.0]))
    measure = Own(np.zeros((1, 1)), np.ones((1, 1, 1)))
    result = tail_sum([group], measure, np.array([6.0]), np.array([0.2]), shifts=(-2, 0, 3))
    exact = [brute_tail(z, w, 4, {0: 1.0}, k) for k in (4, 6, 9)]
    assert math.exp(result.log_scale[0]) * result.value[0] == pytest.approx(exact, rel=1e-10)


def test_the_hockey_stick_payoff_of_wide_laws_by_transform() -> None:
    """More than 24 atoms: the Fourier transform is used; against plain convolution."""
    rng = np.random.default_rng(7)
    w = rng.random(41)
    w /= w.sum()
    law = np.convolve(np.convolve(w, w), w)
    index = np.arange(law.size) - 60
    h, epsilon = 0.01, 0.123
    exact = float((law * np.maximum(-np.expm1(epsilon - h * index), 0.0)).sum())
    k0 = math.ceil(epsilon / h)
    group = Group((np.arange(41.0) - 20.0)[None, :], w[None, :], np.array([3.0]))
    payoff = HockeyStick(np.array([-math.expm1(epsilon - h * k0)]), np.array([h]))
    measure = Own(np.zeros((1, 1)), np.ones((1, 1, 1)))
    result = tail_sum([group], measure, np.array([float(k0)]), np.array([0.1]), payoff)
    scale = math.exp(result.log_scale[0])
    assert abs(scale * result.value[0, 0] - exact) <= scale * result.error[0, 0] + 1e-15
    assert scale * result.error[0, 0] <= 1e-10


@pytest.mark.parametrize("m", [0, 3, 40, 300])
def test_two_binomials_are_their_convolution(m: int) -> None:
    others, keep = 60, 0.8

    def law(n: int, p: float) -> np.ndarray:
        return np.array([math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])

    both = np.convolve(law(m, keep), law(others, 1 - keep))
    t = int(0.8 * m + 0.2 * others) + 3
    exact = 0.7 * both[t - 1 :].sum() - 0.5 * both[t:].sum()
    laws = TwoBinomials(np.array([float(m)]), np.array([float(others)]), keep, 1 - keep, 0.4)
    (result,) = laws.tails(np.array([0.7]), np.array([-0.5]), np.array([float(t)]))
    scale = math.exp(result.log_scale[0])
    assert abs(scale * result.value[0, 0] - exact) <= scale * result.error[0, 0] + 1e-14
    assert scale * result.error[0, 0] <= 1e-9


@pytest.mark.parametrize(
    ("n", "p"),
    [(50, 0.3), (999, 0.036), (10**6, 0.036), (10**6, 0.5), (10**7, 1e-4), (10**9, 1e-7)],
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
