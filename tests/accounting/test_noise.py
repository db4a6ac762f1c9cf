"""T11: the ends of an interval are the worst pair of log-concave noise; its law, cell by cell."""

import math
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, permutations, product
from random import Random
from typing import Any

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.facts import Facts
from shuffledp.noise import facts_of_noise


def laplace(epsilon0: float) -> Any:
    return lambda y: 0.5 * epsilon0 * math.exp(-epsilon0 * abs(y))


def gaussian(sigma: float) -> Any:
    return lambda y: math.exp(-0.5 * (y / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi))


def laplace_facts(epsilon0: float, error: float = 1e-13) -> Facts:
    return facts_of_noise(
        lambda t: math.log(0.5 * epsilon0) - epsilon0 * t,
        lambda t: 0.5 * np.exp(-epsilon0 * t),
        epsilon0=epsilon0,
        error=error,
    )


def gaussian_facts(sigma: float, error: float = 1e-13) -> Facts:
    erfc = np.vectorize(math.erfc)
    return facts_of_noise(
        lambda t: -0.5 * (t / sigma) ** 2 - math.log(sigma * math.sqrt(2.0 * math.pi)),
        lambda t: 0.5 * erfc(t / (sigma * math.sqrt(2.0))),
        error=error,
    )


def two_users(density: Any, alpha: float, reach: float) -> Any:
    """(1/2) E[(X1 + X2)_+] by quadrature of the definition: two iid X, zero outside the blanket."""

    def blanket(y: Any) -> Any:
        return min(density(y), density(y - 1))

    def x(y: Any) -> Any:
        return (density(y) - alpha * density(y - 1)) / blanket(y)

    grid = np.linspace(-reach, 1 + reach, 4001)
    middle = 0.5 * (grid[1:] + grid[:-1])
    values = np.array([x(y) for y in middle])
    masses = np.array([blanket(y) for y in middle]) * np.diff(grid)
    rest = 1 - masses.sum()
    order = np.argsort(values)
    values, masses = values[order], masses[order]
    # E[(X1 + X2)_+]: both in the blanket, or one of them.
    above = np.concatenate([np.cumsum(masses[::-1])[::-1], [0]])
    first = np.concatenate([np.cumsum((masses * values)[::-1])[::-1], [0]])
    at = np.searchsorted(values, -values)
    both = float(masses @ (values * above[at] + first[at]))
    one = float(masses @ np.maximum(values, 0))
    return 0.5 * (both + 2 * rest * one)


@pytest.mark.parametrize("epsilon", [0.5, 0.8])
@pytest.mark.parametrize(
    ("facts", "density", "reach"),
    [(laplace_facts(3.0), laplace(3.0), 9.0), (gaussian_facts(1.0), gaussian(1.0), 5.0)],
)
def test_the_blanket_of_two_users_agrees_with_quadrature(
    facts: Facts, density: Any, reach: float, epsilon: float
) -> None:
    exact = two_users(density, math.exp(epsilon), reach)
    profile = sdp.Shuffled(facts, n=2, analysis="blanket").round.profile
    upper = float(profile.upper(np.array([epsilon]), 5e-3)[0])
    assert exact * (1 - 2e-3) <= upper <= exact * (1 + 1e-2)


def test_one_user_hides_nothing_next_to_epsilon_zero_either() -> None:
    """Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu), mu = 1/sigma = 1."""
    one = sdp.Shuffled(gaussian_facts(1.0), n=1)
    for epsilon in (0.0, 1e-12, 1e-9, 0.3):
        own, other = (0.5 * math.erfc((epsilon + side / 2) / math.sqrt(2.0)) for side in (-1.0, 1.0))
        truth, bound = own - math.exp(epsilon) * other, one.delta(epsilon=epsilon)
        assert bound.lower <= truth * (1 + 1e-12)
        assert truth * (1 - 1e-12) <= bound.upper <= truth * 1.01


def test_laplace_is_the_limit_of_its_grids() -> None:
    for epsilon0 in (1.0, 4.0):
        line = sdp.Shuffled(laplace_facts(epsilon0), n=10**6, analysis="blanket")
        grid = sdp.Shuffled(sdp.DiscreteLaplace(epsilon0=epsilon0, levels=16), n=10**6, analysis="blanket")
        assert line.upper_epsilon(delta=1e-8) == pytest.approx(grid.upper_epsilon(delta=1e-8), rel=0.02)


def test_gaussian_noise_of_one_range_hides_among_a_million() -> None:
    """Seen before by another algorithm: epsilon in [0.00691777, 0.0069208] at delta = 1e-8."""
    crowd = sdp.Shuffled(gaussian_facts(1.0), n=10**6, analysis="blanket")
    assert crowd.upper_epsilon(delta=1e-8) == pytest.approx(0.00692, rel=2e-3)


def log_concave(rng: Any, size: int) -> Any:
    """Whole numbers f[0] >= f[1] >= ... with f[d]^2 >= f[d - 1] f[d + 1]."""
    f = [rng.randint(20, 400)]
    f.append(rng.randint(f[0] // 4, f[0]))
    while len(f) < size and f[-1] > 0:
        most = f[-1] ** 2 // f[-2]
        f.append(rng.choice([most, rng.randint(0, most)]))
    return [value for value in f if value]


def excess_of_other_pairs(f: Any, m: int, alpha: Fraction) -> Any:
    """max over pairs and t of F(x, x', t) - F(0, m, t), in whole numbers (times the denominators).

    Between its corners F(0, m, t) is a line and the others are convex: corners are enough."""

    def density(d: Any) -> Any:
        return f[abs(d)] if abs(d) < len(f) else 0

    p, q = alpha.numerator, alpha.denominator
    reports = range(-len(f), m + len(f) + 1)
    rows = [[density(w - x) for w in reports] for x in range(m + 1)]
    least = [min(column) for column in zip(*rows, strict=True)]

    def curve(x: Any, y: Any, top: Any, bottom: Any) -> Any:
        return sum(
            max(0, (q * u - p * v) * bottom - top * c)
            for u, v, c in zip(rows[x], rows[y], least, strict=True)
        )

    corners = {(q * u - p * v, c) for u, v, c in zip(rows[0], rows[m], least, strict=True) if c}
    corners |= {(0, 1), (10**9, 1), (-(10**9), 1)}
    return max(curve(x, y, *t) - curve(0, m, *t) for t in corners for x, y in product(range(m + 1), repeat=2))


SHAPES = [
    [2 ** (7 - d) for d in range(8)],  # geometric
    [10**6, 882497, 606531, 324652, 135335, 43937, 11109, 2187, 335, 40, 4],  # Gaussian
    [6, 5, 4, 3, 2, 1],  # triangular
    [3, 3, 3],  # uniform
    [1],
]


@pytest.mark.parametrize("m", [1, 2, 3, 6])
def test_the_ends_are_above_all_pairs_in_the_convex_order_for_log_concave_noise(m: int) -> None:
    rng = Random(m)
    shapes = SHAPES + [log_concave(rng, rng.randint(2, 8)) for _ in range(12)]
    for f, alpha in product(shapes, (Fraction(1), Fraction(11, 10), Fraction(2), Fraction(60))):
        assert excess_of_other_pairs(f, m, alpha) == 0


def test_without_symmetry_or_a_single_peak_the_ends_need_not_be_the_worst_pair() -> None:
    """The hypotheses matter: noise with two peaks hides the ends better than their middle."""
    assert excess_of_other_pairs([1, 0, 8], 4, Fraction(1)) > 0


@pytest.mark.parametrize("noise", [laplace(2.0), gaussian(0.4)])
@pytest.mark.parametrize("alpha", [1.0, 1.5, 20.0])
def test_the_ends_are_above_all_pairs_of_the_unit_interval(noise: Any, alpha: float) -> None:
    """Fine grids: sums over reports stand for integrals, to the given accuracy."""
    w = np.linspace(-14.0, 15.0, 29 * 320 + 1)
    inputs = np.linspace(0.0, 1.0, 9)
    rows = np.array([[noise(v - x) for v in w] for x in inputs]) * (w[1] - w[0])
    least = rows.min(axis=0)
    for t in (-300.0, -20.0, -3.0, -0.5, 0.0, 0.4, 5.0, 100.0):
        curves = np.maximum(rows[:, None] - alpha * rows[None] - t * least, 0.0).sum(axis=2)
        assert curves.max() <= curves[0, -1] * (1.0 + 1e-9) + 1e-12


def logistic_facts(scale: float) -> Facts:
    return facts_of_noise(
        lambda t: -t / scale - 2 * np.log1p(np.exp(-t / scale)) - math.log(scale),
        lambda t: 1 / (1 + np.exp(t / scale)),
        epsilon0=1 / scale,
    )


def logistic(scale: float) -> Any:
    return lambda y: math.exp(-abs(y) / scale) / scale / (1 + math.exp(-abs(y) / scale)) ** 2


def test_no_population_of_four_is_worse_than_crowds_of_noise_say() -> None:
    """A cohort of two, whose reports are told in bins: all populations on five inputs."""
    epsilon0, inputs, bins = 2.0, np.linspace(0.0, 1.0, 5), np.array([0.0, 0.3, 0.5, 0.7, 1.0])
    away = bins[None, :] - inputs[:, None]
    below = np.where(away < 0, 0.5 * np.exp(epsilon0 * away), 1 - 0.5 * np.exp(-epsilon0 * away))
    rows = np.diff(np.pad(below, ((0, 0), (1, 1)), constant_values=((0, 0), (0, 1))), axis=1)
    cohort = sdp.Shuffled(laplace_facts(epsilon0), n=2, analysis="crowd").sampled_from(4)
    for epsilon in (0.05, 0.3, 0.8):
        alpha, worst = math.exp(epsilon), 0.0
        for others in combinations_with_replacement(range(5), 3):
            pairs = ([np.outer(rows[a], rows[b]) for a, b in combinations((x, *others), 2)] for x in range(5))
            seen = [sum(pair + pair.T for pair in some) / 12 for some in pairs]
            worst = max(worst, *(np.maximum(p - alpha * q, 0.0).sum() for p, q in permutations(seen, 2)))
        assert 0.0 < worst <= cohort.delta(epsilon=epsilon).upper < 1.0


@pytest.mark.parametrize(
    ("n", "epsilon0", "width"), [(10**4, 0.5, 1.045), (10**6, 0.5, 1.045), (10**6, 1.0, 1.09)]
)
def test_the_ends_of_laplace_noise_on_the_line_are_close(n: int, epsilon0: float, width: float) -> None:
    found = sdp.Shuffled(laplace_facts(epsilon0), n=n).epsilon(delta=1e-6)
    assert found.lower <= found.upper <= width * found.lower


def test_the_tail_is_asked_for_distances_alone() -> None:
    """Where masses are hardly known, too: some tails are no probabilities below zero."""
    tail = np.vectorize(lambda t: 1.0 / (1.0 + math.exp(t)) if t >= 0.0 else math.nan, otypes=[float])
    facts_of_noise(lambda t: -t - 2 * np.log1p(np.exp(-t)), tail, epsilon0=1.0, error=1e-9)


@pytest.mark.parametrize("error", [1e-9, 1e-8, 1e-7, 1e-6])
def test_densities_that_are_hardly_known_are_answered_too(error: float) -> None:
    """With wider ends, down to the local epsilon alone, which is no bound of what is unbounded."""
    for made, size in ((laplace_facts, 2.0), (gaussian_facts, 1.0)):
        facts = made(size, error)
        rough, close = (sdp.Shuffled(each, n=10**4).epsilon(delta=1e-6) for each in (facts, made(size)))
        assert close.lower * (1.0 - 1e-3) <= rough.upper <= facts.epsilon0.upper
        assert rough.lower <= close.upper


def test_noise_may_be_uniform_and_narrow() -> None:
    facts_of_noise(
        lambda t: np.where(t <= 0.05, math.log(10.0), -math.inf), lambda t: 0.5 - np.minimum(10.0 * t, 0.5)
    )
