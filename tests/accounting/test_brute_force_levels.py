"""One level of a tree per person, and disjoint cohorts, by enumeration (T25, T26)."""

from collections import defaultdict
from fractions import Fraction
from itertools import product
from math import log

import numpy as np
import pytest

import shuffledp as sdp
from oracles import brute
from oracles.brute import Matrix
from oracles.claims import assert_at_least, assert_at_most
from oracles.hockey import Atoms, atoms, between, hockey_stick, ratios
from shuffledp.randomizers.levels import Tree

pytestmark = pytest.mark.quick

TREES = [(3, 2, Fraction(5), 2), (4, 2, Fraction(3, 2), 3), (4, 2, Fraction(20), 3), (5, 3, Fraction(4), 2)]


def leveled(k: int, branching: int, E: Fraction) -> Matrix:
    """By definition: a level at random, then randomized response on the block of the value."""
    blocks = [1]
    while blocks[-1] * branching < k:
        blocks.append(blocks[-1] * branching)
    rows = []
    for x in range(k):
        row: list[Fraction] = []
        for block in reversed(blocks):
            nodes = -(-k // block)
            own = [E if node == x // block else Fraction(1) for node in range(nodes)]
            row += [weight / (E + nodes - 1) / len(blocks) for weight in own]
        rows.append(tuple(row))
    return tuple(rows)


@pytest.mark.parametrize(("k", "branching", "E", "n"), TREES)
def test_all_datasets_lie_inside_the_bounds_of_one_level_per_person(
    k: int, branching: int, E: Fraction, n: int
) -> None:
    truth = brute.shuffled_pairs(leveled(k, branching, E), n)
    randomizer = sdp.LeveledResponse(k=k, epsilon0=log(E), branching=branching)
    middles = between([Fraction(0), *ratios(truth)])
    alphas = np.array([float(alpha) for alpha in middles[:: max(1, len(middles) // 24)]])
    bound = sdp.Shuffled(randomizer, n=n).profile(alphas)
    for alpha, lower, upper in zip(alphas, bound.lower, bound.upper, strict=True):
        exact = brute.worst(truth, Fraction(alpha))
        assert_at_most(lower, exact)
        assert_at_least(upper, exact)


def test_what_is_sampled_has_the_probabilities_of_the_definition() -> None:
    randomizer = sdp.LeveledResponse(k=5, epsilon0=log(4.0), branching=3)
    row = np.array([float(p) for p in leveled(5, 3, Fraction(4))[3]])
    reports = randomizer.randomize(np.full(60_000, 3), rng=np.random.default_rng(5))
    seen = randomizer.support(reports)
    assert seen.sum() == 60_000
    np.testing.assert_array_less(np.abs(seen - 60_000 * row), 5.0 * np.sqrt(60_000 * row))


@pytest.mark.parametrize(("k", "branching", "data"), [(3, 2, (0, 1, 2)), (3, 2, (1, 1, 1)), (4, 2, (0, 3))])
def test_estimates_are_unbiased_and_of_the_stated_variance(
    k: int, branching: int, data: tuple[int, ...]
) -> None:
    """All draws of levels and all reports, given how many are of each level."""
    randomizer = sdp.LeveledResponse(k=k, epsilon0=log(3.0), branching=branching)
    tree, n = Tree(k, branching), len(data)
    law = np.array([[float(p) for p in row] for row in leveled(k, branching, Fraction(3))])
    found: dict[tuple[int, ...], list[tuple[float, np.ndarray]]] = defaultdict(list)
    for reports in product(range(law.shape[1]), repeat=n):
        tally = np.bincount(reports, minlength=law.shape[1])
        sent = tuple(int(part.sum()) for part in tree.levels(tally))
        if sent[-1]:
            mass = float(np.prod([law[x, y] for x, y in zip(data, reports, strict=True)]))
            found[sent].append((mass, randomizer.estimate(tally, n)))
    counts = np.bincount(data, minlength=k)
    sums = np.vstack([np.eye(k), np.tri(k)])
    assert len(found) > 1
    for sent, outcomes in found.items():
        chances = np.array([m for m, _ in outcomes]) / sum(m for m, _ in outcomes)
        values = np.array([estimates for _, estimates in outcomes]) @ sums.T
        mean = chances @ values
        np.testing.assert_allclose(mean, sums @ counts, atol=1e-9)
        exact = chances @ (values - mean) ** 2
        np.testing.assert_allclose(randomizer.variance(counts, n, sums=sums, sent=sent), exact, atol=1e-9)
        np.testing.assert_allclose(values[:, k - 1 + k], n, atol=1e-9)  # all leaves together


@pytest.mark.parametrize(("k", "branching"), [(5, 2), (27, 3), (10, 4), (7, 7), (2, 2)])
def test_least_squares_solves_the_normal_equations(k: int, branching: int) -> None:
    tree, rng = Tree(k, branching), np.random.default_rng(k)
    weights = rng.random(len(tree.sizes)) + 0.1
    blocks = [
        np.arange(k) // stride == np.arange(size)[:, None]
        for size, stride in zip(tree.sizes, tree.strides, strict=True)
    ]
    matrix = sum(w * (block.T.astype(float) @ block) for w, block in zip(weights, blocks, strict=True))
    right = rng.random((3, k))
    found = tree.solve(list(weights), right, total=2.0)
    np.testing.assert_allclose(found.sum(axis=1), 2.0)
    left = right - found @ matrix  # the multiplier of the known total
    np.testing.assert_allclose(left, left[:, :1] * np.ones(k), atol=1e-9)
    for total, block in zip(tree.totals(right), blocks, strict=True):
        np.testing.assert_allclose(total, right @ block.T)


def test_cohorts_asked_one_after_the_other_cost_the_largest_of_them() -> None:
    """Two cohorts of two people; the first one's histogram decides what the second is asked (T26)."""
    first, second = brute.k_ary(3, Fraction(4)), brute.k_ary(2, Fraction(6))

    def asked(value: int, seen: tuple[int, ...]) -> int:
        return int(value == int(np.argmax(seen)))

    def law(data: tuple[int, ...]) -> dict[object, Fraction]:
        whole: dict[object, Fraction] = {}
        for seen, mass in brute.shuffled_law(first, data[:2]).items():
            answers = [asked(value, tuple(seen)) for value in data[2:]]
            for after, chance in brute.shuffled_law(second, answers).items():
                whole[seen, after] = mass * chance
        return whole

    laws = {data: law(data) for data in product(range(3), repeat=4)}
    pairs: set[Atoms] = set()
    for data, own in laws.items():
        for place, other in product(range(4), range(3)):
            changed = (*data[:place], other, *data[place + 1 :])
            pairs.add(atoms(own, laws[changed]))
    alone = [brute.shuffled_pairs(first, 2), brute.shuffled_pairs(second, 2)]
    for alpha in (Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3), Fraction(4)):
        worst = max(hockey_stick(pair, alpha) for pair in pairs)
        assert brute.worst(alone[0], alpha) <= worst <= max(brute.worst(one, alpha) for one in alone)
