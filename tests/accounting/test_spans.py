"""Rows that span a randomizer (T16, section 9): random randomizers of which a span is true, by definition."""

import math
from dataclasses import replace
from itertools import combinations_with_replacement, product, repeat

import numpy as np
import pytest

from oracles.spans import (
    Floats,
    cohort,
    counted,
    described,
    hockey_stick,
    neighbours,
    polled,
    shuffled,
    some_span,
)
from shuffledp._spans.span import Span
from shuffledp.accounting._curves import blanket, crowd, crowd_family
from shuffledp.accounting._curves.blanket import from_the_span
from shuffledp.accounting._curves.crowd import CrowdProfile
from shuffledp.accounting._curves.crowd_family import Family, Places, log_bennett
from shuffledp.accounting._curves.crowd_laws import Taking
from shuffledp.accounting._hints.crowds import CrowdHints

EPSILONS = np.array([0.0, 0.02, 0.1, 0.3, 0.6, 1.0, 1.6, 2.5, 4.0])
ROUNDED = 1e-12  # of sums of floats here


# The laws of triples of rows


def mixture(span: Span, weights: list[Floats], alpha: float) -> tuple[Floats, Floats]:
    """Values of X and their masses: of all triples of rows, for the weights of x, y and z."""
    places = np.array(list(product(range(len(span.rows)), repeat=3)))
    x, y, z = places.T
    gap, other, clone = span.laws(x, y, z, alpha)
    masses = (
        clone * np.prod([part[place] for part, place in zip(weights, places.T, strict=True)], axis=0)[:, None]
    )
    some = clone > 0.0
    return ((gap - (alpha - 1.0) * other) / np.where(some, clone, 1.0))[some], masses[some]


def three(family: Family) -> tuple[Places, Places, Places]:
    """Rows of own, other and clone."""
    x, y, z = family.places
    return x, y, z


def stop_loss(value: Floats, mass: Floats, t: Floats) -> Floats:
    return np.asarray(np.maximum(value - t[:, None], 0.0) @ mass)


def above(span: Span, drawn: tuple[Floats, Floats, list[int]], alpha: float) -> float:
    """By how much the stop-loss of X of any triple of inputs exceeds that of the span's laws, at most: the
    one is convex, the other a line between its values, so that these are enough, and one far below."""
    (laws, weights, _), most = drawn, -math.inf
    for x, y, z in product(range(len(laws)), repeat=3):
        value, mass = mixture(span, [weights[x], weights[y], weights[z]], alpha)
        t = np.append(value, [value.min() - 10.0, 0.0])
        truth = stop_loss((laws[x] - alpha * laws[y]) / laws[z], laws[z], t)
        most = max(most, float(((truth - stop_loss(value, mass, t)) / (1.0 + np.abs(t))).max()))
    return most


@pytest.mark.parametrize("missed", [1e-6, 0.01, 0.1, 0.4])
def test_x_of_any_three_inputs_is_below_the_laws_of_triples_of_rows(missed: float) -> None:
    """And not if less than half is missed or spread than is."""
    rng, seen = np.random.default_rng(9), 0
    for _ in range(40):
        span = some_span(rng, int(rng.integers(1, 4)), int(rng.integers(1, 5)), missed)
        drawn = described(rng, span, 3, int(rng.choice([2, 3])))
        assert all(above(span, drawn, alpha) <= ROUNDED for alpha in (0.5, 1.0, 1.2, 3.0))
        closer = Span(span.rows, 0.3 * span.spread, 0.4 * span.missed)
        seen += above(closer, drawn, 1.2) > 1e-9
    assert seen >= 15


@pytest.mark.quick
@pytest.mark.parametrize("fraction", [1.0, 0.3])
@pytest.mark.parametrize("growth", [0.0, 0.3, 5.0])
def test_second_moments_of_triples_of_rows_are_not_below_those_of_their_laws(
    growth: float, fraction: float
) -> None:
    rng = np.random.default_rng(2)
    for missed in (1e-9, 0.01, 0.1, 0.4) * 10:
        family = Family.of_table(some_span(rng, int(rng.integers(2, 5)), int(rng.integers(1, 5)), missed))
        found, _ = family.seconds.at(Taking(10.0, 1.0, growth), fraction)
        assert isinstance(family.table, Span)
        gap, other, clone = family.table.laws(*three(family), 1.0 + growth)
        x = (gap - growth * other) / np.where(clone > 0.0, clone, 1.0)
        moved = fraction * x - (1.0 - fraction) * growth
        mean, square = (clone * moved).sum(axis=1), (clone * moved**2).sum(axis=1)
        assert (found >= square * (1.0 - ROUNDED)).all()
        variance = family.seconds.variance(found, growth, fraction)
        assert (variance <= (square - mean**2) * (1.0 + 1e-9) + ROUNDED).all()


@pytest.mark.quick
@pytest.mark.parametrize("growth", [0.0, 0.3, 5.0])
def test_large_values_of_triples_of_rows_cost_no_more_than_is_said(growth: float) -> None:
    """Beyond a cap: the mean of what is cut, and of squares."""
    rng, seen = np.random.default_rng(3), 0
    for missed in (1e-9, 0.01, 0.1, 0.4) * 10:
        span = some_span(rng, int(rng.integers(2, 5)), int(rng.integers(1, 5)), missed)
        gap, other, clone = span.laws(*three(Family.of_table(span)), 1.0 + growth)
        x = (gap - growth * other) / np.where(clone > 0.0, clone, 1.0)
        own, _, hidden, _ = span.sides
        farthest = 1.01 * float((own.max(axis=0) / np.where(own.max(axis=0), hidden.min(axis=0), 1.0)).max())
        for end in (0.05, 0.3, 1.0, 3.0, farthest):  # beyond the last one there are parts of types alone
            cut = (clone * np.maximum(x - end, 0.0)).sum(axis=1).max()
            squares = (clone * x**2 * (x > end)).sum(axis=1).max()
            assert cut <= crowd_family._cut(crowd_family._sides(span), end) * (1.0 + ROUNDED)
            assert squares <= crowd_family._square_beyond(span, end) * (1.0 + ROUNDED)
            seen += cut > 1e-3
    assert seen > 5


@pytest.mark.quick
@pytest.mark.parametrize("tau", [0.01, 0.1, 0.5])
def test_second_moments_say_enough_of_laws_whose_mean_is_larger_than_it_should_be(tau: float) -> None:
    rng, users, growth, w = np.random.default_rng(5), 40.0, 0.1, np.linspace(-60.0, 60.0, 60_001)
    for missed in (1e-9, 0.01, 0.1) * 4:
        span = some_span(rng, 2, 3, missed)
        if missed > 0.05:  # rows that are alike: what is missed is all there is
            span = Span(span.rows[:1].repeat(2, axis=0), np.zeros(3), span.missed)
        family, taking = Family.of_table(span), Taking(users, 1.0, growth)
        gap, other, clone = span.laws(*three(family), 1.0 + growth)
        x = (gap - growth * other) / np.where(clone > 0.0, clone, 1.0)
        second = (clone * x**2).sum(axis=1)
        found = log_bennett(
            second, np.array([tau]), taking, [(float(max(x.max(), 1e-9)), 0.0)], family.excess
        )[:, 0]
        for value, mass, most in list(zip(x, clone, found, strict=True))[:6]:
            phi = np.abs(np.exp(np.outer(tau + 1j * w, value)) @ mass)
            fine = (phi**users / (tau**2 + w**2)).sum() * (w[1] - w[0]) / (2.0 * math.pi)
            assert math.log(fine) <= most + 1e-9


# Cohorts, in which every dataset can be enumerated


def covers(bound: Floats, pairs: list[tuple[list[Floats], list[Floats]]]) -> list[float]:
    """The true curve, which is below the bound."""
    truth = [max(hockey_stick(p, q, math.exp(epsilon)) for p, q in pairs) for epsilon in EPSILONS]
    assert (np.array(truth) <= bound * (1.0 + 1e-10) + 1e-15).all()
    return truth


@pytest.mark.parametrize("lost", [0.0, 0.01])
@pytest.mark.parametrize(("people", "size"), [(2, 1), (3, 2), (4, 2), (4, 3), (5, 3)])
def test_cohorts_of_people_whom_a_span_describes(people: int, size: int, lost: float) -> None:
    rng, useful = np.random.default_rng(people), 0
    for missed in (1e-9, 0.01, 0.1) * 4:
        span = some_span(rng, int(rng.integers(1, 4)), int(rng.integers(2, 4)), missed, lost)
        laws, *_ = described(rng, span, 2 if people == 5 else 3)
        bound = CrowdProfile(size, (), span.epsilon0, span, fraction=size / people).upper(EPSILONS, 1e-3)
        covers(bound, list(neighbours(cohort(laws, size), len(laws), people)))
        useful += int((bound < 1.0).sum())
    assert useful > 60


@pytest.mark.parametrize("lost", [0.0, 0.01])
@pytest.mark.parametrize(("people", "rate"), [(1, 0.5), (2, 0.9), (3, 0.1), (4, 0.5)])
def test_people_whom_a_span_describes_and_who_flip_coins(people: int, rate: float, lost: float) -> None:
    rng, useful = np.random.default_rng(people), 0
    for missed in (1e-9, 0.01, 0.1) * 3:
        span = some_span(rng, int(rng.integers(1, 4)), int(rng.integers(1, 4)), missed, lost)
        laws, *_ = described(rng, span, 2 if people == 4 else 3)
        bound = CrowdProfile(people, (), span.epsilon0, span, rate=rate).upper(EPSILONS, 1e-3)
        covers(bound, list(neighbours(polled(laws, people, rate), len(laws), people)))
        useful += int((bound < 1.0).sum())
    assert useful > 40


@pytest.mark.quick
@pytest.mark.parametrize("size", [2, 3])
def test_cohorts_of_a_randomizer_that_rows_span_closely_are_close(size: int) -> None:
    """Inputs that are the rows; and rows that are too near to each other are below the truth."""
    rows = np.array([[0.6, 0.4], [0.4, 0.6]])
    span = Span(rows, np.zeros(2), np.full(2, 1e-9))
    curve = CrowdProfile(size, (), span.epsilon0, span, fraction=size / 5)
    bound, pairs = curve.upper(EPSILONS[:2], 1e-3), list(neighbours(cohort(rows, size), 2, 5))
    for epsilon, most in zip(EPSILONS, bound, strict=False):
        assert most <= 2.0 * max(hockey_stick(p, q, math.exp(epsilon)) for p, q in pairs)
    near = Span(0.5 + 0.4 * (rows - 0.5), np.zeros(2), np.full(2, 1e-9))
    with pytest.raises(AssertionError):
        covers(CrowdProfile(size, (), near.epsilon0, near, fraction=size / 5).upper(EPSILONS, 1e-3), pairs)


# With a pool

NARROW = [
    Span(np.array([[0.55, 0.45], [0.45, 0.55]]), np.zeros(2), np.full(2, 1e-7)),
    Span(np.array([[1.0]]), np.array([0.3]), np.full(1, 1e-9)),
    Span(np.array([[0.6, 0.4], [0.4, 0.6]]), np.array([0.1, 0.0]), np.full(2, 1e-3)),
    Span(np.array([[0.6, 0.4], [0.5, 0.5], [0.4, 0.6]]), np.array([0.02, 0.1]), np.full(2, 1e-6), 1e-6),
]
PEOPLE = {2: 400, 3: 150, 4: 40, 5: 12}


@pytest.mark.parametrize("span", NARROW, ids=repr)
def test_crowds_of_one_value_and_mixed_ones_of_people_whom_a_span_describes(span: Span) -> None:
    rng, useful = np.random.default_rng(4), 0
    for _ in range(2):
        laws, *_ = described(rng, span, 3)
        n = PEOPLE[laws.shape[1]]
        scale = math.sqrt(((laws[0] - laws[1]) ** 2 / np.maximum(laws[0], 1e-3)).sum() / n)
        epsilons = scale * np.array([0.0, 0.5, 1.0, 2.0, 3.0, 4.0])
        bound = CrowdProfile(n, (), span.epsilon0, span).upper(epsilons, 1e-3)
        useful += int((bound < 1.0).sum())
        mixed = [rng.choice(3, n - 1, p=rng.dirichlet(np.ones(3))) for _ in range(2)]
        for others in [*(np.full(n - 1, z) for z in range(3)), *mixed]:
            views = [counted(laws, (*others.tolist(), x)) for x in range(3)]
            for p, q in product(views, repeat=2):
                truth = [hockey_stick([p], [q], math.exp(epsilon)) for epsilon in epsilons]
                assert (np.array(truth) <= bound * (1.0 + 1e-10) + 1e-15).all()
    assert useful > 3


@pytest.mark.parametrize("crowded", [False, True])
@pytest.mark.parametrize("others", [0, 1, 3])
def test_a_report_of_any_input_or_of_the_centre_in_any_pool_of_a_span(
    monkeypatch: pytest.MonkeyPatch, others: int, crowded: bool
) -> None:
    """Inside types the centre is like any one input, here the first."""
    if crowded:
        monkeypatch.setattr(blanket, "_MANY", 0.0)
    rng = np.random.default_rng(others)
    for missed in (1e-9, 0.01, 0.1) * 4:
        span = some_span(rng, int(rng.integers(1, 4)), 2, missed)
        laws, _, types = described(rng, span, 3)
        two = np.concatenate([np.arange(span.spread.size), np.flatnonzero(span.spread)])
        common = np.bincount(two, span.pooled[2], span.spread.size)
        inside = laws[0] / np.bincount(types, laws[0])[types]
        centre = common[types] * inside / common.sum()
        assert (laws >= common[types] * inside * (1.0 - ROUNDED)).all()
        bound = from_the_span(span, others + 1, CrowdHints()).upper(EPSILONS, 1e-3)
        rows = np.concatenate([laws, centre[None]])
        pairs = []
        for pool in combinations_with_replacement(range(3), others):
            hidden = [shuffled(rows, (*pool, 3))]
            for z in range(3):
                told = [shuffled(rows, (*pool, z))]
                pairs += [(told, hidden), (hidden, told)]
        covers(bound, pairs)


@pytest.mark.parametrize(("size", "tilt"), [(3, 1.0), (1, 0.6), (2, 1.5)])
def test_small_pools_of_people_whom_a_span_describes(
    monkeypatch: pytest.MonkeyPatch, size: int, tilt: float
) -> None:
    """Of a size and with a tilt that do not suit: any are valid."""
    chosen = CrowdHints.tilt
    monkeypatch.setattr(CrowdHints, "pool_sizes", lambda *_: repeat(size))
    monkeypatch.setattr(
        CrowdHints, "tilt", lambda *given, **how: (chosen(*given, **how)[0] * tilt, chosen(*given, **how)[1])
    )
    for name, value in (("_LARGEST_SHARE", 1.0), ("_SMALL", 0), ("_HOPELESS", math.inf)):
        monkeypatch.setattr(crowd, name, value)
    rng, useful = np.random.default_rng(size), 0
    for span in NARROW:
        laws, *_ = described(rng, replace(span, missed=np.full(span.missed.size, 0.01)), 3)
        n = 8 if laws.shape[1] > 3 else 14
        wide = replace(span, missed=np.full(span.missed.size, 0.01))
        bound = CrowdProfile(n, (), wide.epsilon0, wide).upper(EPSILONS, 1e-3)
        useful += int((bound < 1.0).sum())
        pairs = []
        for others in combinations_with_replacement(range(3), n - 1):
            if len(set(others)) < 3:
                views = [[counted(laws, (*others, x))] for x in range(3)]
                pairs += [(p, q) for p in views for q in views if p is not q]
        covers(bound, pairs)
    assert useful > 4
    crowd._at.cache_clear()
