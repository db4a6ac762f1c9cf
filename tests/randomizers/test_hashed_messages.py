"""Hashed blanket messages (T23) by their definition: all collisions, all messages of all people."""

import math
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.collecting._accounted import Target
from shuffledp.collecting._choice import calibrated_response, largest_error, mean_error
from shuffledp.collecting._intervals import noisy_intervals
from shuffledp.collecting._several_messages import best_counts, best_hashed

pytestmark = pytest.mark.quick

Seen = dict[tuple[int, ...], Fraction]


def hashed(x: int, direction: int, p: int) -> int:
    return x // p if direction == p else (x % p + direction * (x // p)) % p


@pytest.mark.parametrize("p", [3, 5, 7])
def test_every_two_categories_collide_in_exactly_one_direction(p: int) -> None:
    for x, y in combinations(range(p * p), 2):
        assert sum(hashed(x, s, p) == hashed(y, s, p) for s in range(p + 1)) == 1


def test_messages_are_the_cells_that_are_said_and_support_is_counted_by_the_definition() -> None:
    p, k = 5, 23
    words = sdp.HashedMessages(k=k, rate=0.5, slots=2, buckets=p)
    rows = np.asarray(words.randomize(np.repeat([7, 22], 6000), rng=np.random.default_rng(4))).reshape(-1, 3)
    for x, own in ((7, rows[:6000, 0]), (22, rows[6000:, 0])):
        cells = {s * p + hashed(x, s, p) for s in range(p + 1)}
        assert set(own.tolist()) == cells
        counts = np.bincount(own, minlength=30)[sorted(cells)]
        assert ((counts - 1000.0) ** 2 / 1000.0).sum() < 40.0
    counts = np.bincount(rows[:, 1:].ravel(), minlength=31)
    expected = 24_000 * np.array([0.5 / 30] * 30 + [0.5])
    assert ((counts - expected) ** 2 / expected).sum() < 90.0
    by_definition = [
        sum(int((rows == s * p + hashed(x, s, p)).sum()) for s in range(p + 1)) for x in range(k)
    ]
    assert np.array_equal(words.support(rows.ravel()), by_definition)
    pieces = words.support(rows.ravel()[:1000]) + words.support(rows.ravel()[1000:])
    assert np.array_equal(pieces, by_definition)


def view(held: tuple[int, ...], p: int, clone: Fraction, fixed: bool) -> Seen:
    """The law of all messages, one slot each; ``fixed``: the others' directions are known, namely 0."""
    cells = p * (p + 1)
    chances = [clone / (p + 1)] * cells + [1 - p * clone]
    seen: Seen = {}
    ways = [range(p + 1), *[range(1) if fixed else range(p + 1)] * (len(held) - 1)]
    for directions in product(*ways):
        own = [s * p + hashed(x, s, p) for x, s in zip(held, directions, strict=True)]
        weight = Fraction(1, math.prod(len(way) for way in ways))
        for drawn in product(range(cells + 1), repeat=len(held)):
            key = tuple(sorted((*own, *drawn)))
            mass = weight * math.prod((chances[d] for d in drawn), start=Fraction(1))
            seen[key] = seen.get(key, Fraction(0)) + mass
    return seen


@pytest.mark.parametrize("epsilon", [0.0, 0.7])
def test_both_ends_hold_for_all_neighbours_of_two_people(epsilon: float) -> None:
    p, clone, alpha = 3, Fraction(1, 4), Fraction(math.exp(epsilon))
    found = sdp.BlanketCounts(n=2, slots=1, clone=0.25, buckets=p).delta(epsilon=epsilon)

    def exact(x: int, y: int, other: int, fixed: bool) -> float:
        first, second = (view((one, other), p, clone, fixed) for one in (x, y))
        terms = (mass - alpha * second.get(key, Fraction(0)) for key, mass in first.items())
        return float(sum((term for term in terms if term > 0), Fraction(0)))

    for x, y, other in ((0, 1, 2), (0, 4, 8), (3, 7, 1), (5, 2, 2)):
        told = exact(x, y, other, fixed=True)
        assert told == pytest.approx(found.upper, rel=2e-3)  # T23 is an equality for who knows directions
        assert exact(x, y, other, fixed=False) <= found.upper * (1 + 1e-12)
    on_a_line = exact(0, 1, 2, fixed=False)
    assert found.lower <= on_a_line * (1 + 1e-12)
    assert found.lower > 0.8 * found.upper


def test_hashing_costs_no_privacy_and_hardly_gains_any() -> None:
    plain = sdp.BlanketCounts(n=10**5, slots=1, clone=43e-5).epsilon(delta=1e-6)
    lines = sdp.BlanketCounts(n=10**5, slots=1, clone=43e-5, buckets=2309).epsilon(delta=1e-6)
    assert 0.99 * plain.upper < lines.lower <= lines.upper <= plain.upper


@pytest.mark.parametrize("n", [10**4, pytest.param(10**6, marks=pytest.mark.slow)])
def test_a_million_categories_in_few_messages_with_an_error_that_is_known(n: int) -> None:
    made = best_counts(10**6, Target(1.0, 1e-6, n), messages=None, most=12)
    assert isinstance(made, sdp.HashedMessages)
    assert made.messages <= 8
    empty = np.zeros(10**6)
    assert math.sqrt(made.variance(empty, n)[0]) < 7.2
    certified = sdp.BlanketCounts(n=n, slots=made.slots, clone=made.clone, buckets=made.buckets)
    assert certified.epsilon(delta=1e-6).upper <= 1.0


def test_estimates_are_unbiased_with_the_stated_variance_also_beside_a_heavy_category() -> None:
    words = sdp.HashedMessages(k=100, rate=0.8, slots=2, buckets=11)
    truth = np.zeros(100, dtype=int)
    truth[[3, 14, 99]] = 500, 200, 100  # 3 and 14 collide in one direction of twelve, as all do
    values = np.repeat(np.arange(100), truth)
    rng = np.random.default_rng(6)
    found = np.array(
        [words.estimate(words.support(words.randomize(values, rng=rng)), 800) for _ in range(400)]
    )
    spread = np.sqrt(words.variance(truth, 800))
    assert np.all(np.abs(found.mean(axis=0) - truth) < 5.0 * spread / 20.0)
    assert found.std(axis=0) / spread == pytest.approx(np.ones(100), abs=0.2)


def coverage(n: int, c: int, noise: tuple[float, int, float], confidence: float) -> float:
    def law(trials: int, chance: float) -> Any:
        j = range(trials + 1)
        return np.array([math.comb(trials, i) * chance**i * (1 - chance) ** (trials - i) for i in j])

    q, trials, chance = noise
    support = np.convolve(law(n - c, q), law(trials, chance))
    low, high = noisy_intervals(c + np.arange(support.size), n, noise, confidence)
    return float(support[(low <= c) & (c <= high)].sum())


@pytest.mark.parametrize("noise", [(0.0, 30, 0.2), (0.1, 30, 0.2), (0.25, 12, 0.05), (0.01, 200, 0.1)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_intervals_hold_including_collisions(noise: tuple[float, int, float], confidence: float) -> None:
    for n in (1, 40):
        for c in (0, 1, n // 2, n):
            assert coverage(n, c, noise, confidence) >= confidence - 1e-9
    if confidence == 0.95:  # and are not much wider than they must be
        low, high = noisy_intervals([20], 40, noise, confidence)
        q, trials, chance = noise
        spread = math.sqrt(40 * q * (1 - q) + trials * chance * (1 - chance))
        assert high[0] - low[0] <= (4.6 * spread + 3.0) / (1.0 - q)


def test_many_random_messages_have_normal_intervals() -> None:
    low, high = noisy_intervals([12_000], 10**6, (1e-3, 10**6, 0.01), 0.95)
    middle = (12_000 - 11_000) / 0.999
    assert low[0] < middle < high[0]
    assert high[0] - low[0] == pytest.approx(2 * 1.96 * math.sqrt(1000 + 9900), rel=0.02)


@pytest.mark.slow
def test_auto_hashes_where_that_errs_less_and_never_errs_more_than_one_message() -> None:
    ask = {"categories": range(5000), "epsilon": 1.0, "delta": 1e-6, "n": 2000}
    one = sdp.HistogramProtocol(**ask)
    worst, mean = (sdp.HistogramProtocol(**ask, messages="auto", prefer=by) for by in ("worst", "error"))
    assert isinstance(worst.randomizer, sdp.HashedMessages)
    assert worst.worst_standard_error < 0.1 * one.worst_standard_error
    assert mean.standard_error <= one.standard_error


def test_a_survey_of_hashed_categories_finds_the_frequent_ones() -> None:
    words = [f"word {i}" for i in range(5000)]
    plan = {"epsilon": 1.0, "delta": 1e-6, "n": 2000}
    made = best_hashed(5000, Target(**plan), messages=7)
    survey = sdp.HistogramProtocol(words, **plan, randomizer=made)
    assert sdp.load_plan(survey.to_dict()) == survey
    truth = ["word 7"] * 1500 + ["word 4999"] * 500
    result = survey.analyze(survey.randomize(truth))
    for word, count in (("word 7", 1500), ("word 4999", 500), ("word 8", 0)):
        found = result[word]
        assert abs(found.count - count) < 7 * found.standard_error
    low, high = result.interval(1 - 1e-9)
    assert low[7] <= 1500 <= high[7]
    assert [each.category for each in result.top(2)] == ["word 7", "word 4999"]
    # In the mean over all categories, most of them empty, one message errs less; in a large one far more.
    one = calibrated_response(5000, Target(**plan))
    assert largest_error(one, 2000) > 15 * survey.worst_standard_error
    assert mean_error(one, 2000) < survey.standard_error < 7.1
    assert survey.one_dishonest == pytest.approx(survey.messages, rel=0.01)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"buckets": 15}, "buckets must be a prime"),
        ({"k": 122}, "k must be"),
        ({"slots": 0}, "slots must be"),
        ({"rate": 0.0}, "rate must be"),
        ({"rate": 1e-19}, "rate must be at least"),
    ],
)
def test_parameters_out_of_range(change: dict[str, Any], words: str) -> None:
    parameters: dict[str, Any] = {"k": 100, "rate": 0.5, "slots": 1, "buckets": 11}
    with pytest.raises(ValueError, match=words):
        sdp.HashedMessages(**(parameters | change))


def test_a_crowd_too_small_to_hide_so_many_is_told() -> None:
    with pytest.raises(ValueError, match="n must be larger, or messages more"):
        best_hashed(10**6, Target(1.0, 1e-6, n=100), messages=1)
