"""Many points of a composed curve share a tilt: each is enclosed, as it is alone."""

import math
from fractions import Fraction

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.accounting._ends.lower import first_look
from shuffledp.accounting._ends.several_rounds import closely, grid_for
from shuffledp.accounting._hints.tilt import Tilts
from shuffledp.accounting._rounds.adapted import at_delta
from shuffledp.accounting._rounds.compose import ComposedLoss, epsilon_within
from shuffledp.accounting._rounds.loss import LossDistribution, Samples, sample

pytestmark = pytest.mark.quick

SPACING = 0.07


def law(index: list[float], mass: list[float], infinity: float) -> LossDistribution:
    whole = np.array(mass) * ((1.0 - infinity) / math.fsum(mass))
    return LossDistribution(SPACING, np.array(index), whole, infinity)


FIRST = law([-3.0, -1.0, 0.0, 1.0, 2.0, 5.0], [0.1, 0.3, 0.2, 0.3, 0.15, 0.02], 0.0)
SECOND = law([-2.0, 0.0, 1.0, 4.0], [0.3, 0.2, 0.4, 0.1], 1e-9)


def exact(parts: list[tuple[LossDistribution, int]], epsilon: np.ndarray) -> list[float]:
    """delta by all sums, one law after the other."""
    sums, first = np.ones(1), 0
    for part, count in parts:
        dense = np.bincount((part.index - part.index[0]).astype(int), part.mass)
        for _ in range(count):
            sums, first = np.convolve(sums, dense), first + int(part.index[0])
    losses = [(SPACING * (first + place), p) for place, p in enumerate(sums.tolist())]
    infinite = -math.expm1(sum(count * math.log1p(-part.infinity) for part, count in parts))
    return [
        math.fsum([infinite, *(-p * math.expm1(e - loss) for loss, p in losses if loss > e)])
        for e in epsilon.tolist()
    ]


@pytest.mark.parametrize("counts", [(1, 0), (2, 3), (40, 12), (150, 0)])
def test_every_point_of_a_curve_is_enclosed(counts: tuple[int, int]) -> None:
    parts = list(zip((FIRST, SECOND), counts, strict=True))
    composed = ComposedLoss(tuple(parts), Tilts)
    some = np.concatenate([np.linspace(0.0, 1.1 * composed.largest, 60), SPACING * np.arange(12.0)])
    low, high = composed.delta(some)
    for place, (epsilon, truth) in enumerate(zip(some, exact(parts, some), strict=True)):
        assert low[place] <= truth * (1.0 + 1e-12) + 1e-300
        assert truth * (1.0 - 1e-12) <= high[place]
        alone = composed.delta(np.array([epsilon]))
        assert high[place] <= (1.0 + 1e-6) * alone[1][0] + 1e-18
        assert low[place] >= (1.0 - 1e-6) * alone[0][0] - 1e-18


def test_a_curve_is_zero_at_points_that_are_beyond_all_losses_also_in_exact_numbers() -> None:
    """index times spacing may be the local epsilon after rounding, and below it before."""
    zeros = 0
    for epsilon0 in np.random.default_rng(8).uniform(0.5, 3.0, 24).tolist():
        part = sdp.Shuffled(sdp.KaryRandomizedResponse(k=3, epsilon0=epsilon0), n=12).round
        for resolution in (1e-2, 1e-3):
            grid, floor = grid_for([(part, 3)], 1e-9, resolution, 8)
            found = sample(part.profile, grid, floor, resolution)
            end = Fraction(grid.spacing) * int(found.index[-1])
            assert found.upper[-1] > 0.0 or end >= Fraction(part.profile.epsilon_max)
            zeros += found.upper[-1] == 0.0
        near = Samples.at(part.profile, np.array([1.0]), part.profile.epsilon_max, 1e-2, both_sides=True)
        assert near.upper[0] == 1.0  # on the point itself nothing is known
    assert zeros > 10


@pytest.mark.parametrize(("rounds", "delta"), [(1000, 1e-8), (300, 1e-20), (30, 1e-6), (3, 1e-6)])
def test_an_epsilon_of_one_look_at_both_sides_is_between_them(rounds: int, delta: float) -> None:
    one = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=4.0), n=10**6)
    tolerance, parts = 1e-3, (rounds * one)._rounds()
    pairs = closely(parts, delta, 0.5 * tolerance, 8, at_delta(delta))
    found = epsilon_within(pairs.above, pairs.below, delta, tolerance, 0.03 * tolerance)
    assert found is not None
    assert pairs.above.delta(np.array([found]))[1][0] <= delta
    assert pairs.below.delta(np.array([found * (1.0 - tolerance)]))[0][0] >= delta
    assert found <= (1.0 + 0.1 * tolerance) * pairs.above.upper_epsilon(delta, 1e-6)
    # What is not within the tolerance, or cannot be, is not found.
    assert epsilon_within(pairs.above, pairs.below, delta, 1e-6, 1e-8) is None
    assert epsilon_within(pairs.above, pairs.below, pairs.above.infinity, tolerance, 1e-5) is None


def test_a_look_beside_others_is_that_alone() -> None:
    delta, parts = 1e-8, (1000 * sdp.Shuffled(sdp.LocalRandomizer(epsilon0=4.0), n=10**6))._rounds()
    pairs = closely(parts, delta, 5e-4, 8, at_delta(delta))
    asked, same = first_look(parts, delta), first_look(parts, delta)
    assert asked is not None
    assert same is not None
    assert epsilon_within(pairs.above, pairs.below, delta, 1e-3, 3e-5, asked) is not None
    witness, epsilon, tilt = asked
    ((low, high),) = witness._seen.values()
    alone = [float(end[0]) for end in same[0].delta(np.array([epsilon]), tilt)]
    assert max(low, alone[0]) <= min(high, alone[1])
    assert [low, high] == pytest.approx(alone, rel=1e-9)
    assert witness.lower_epsilon(delta, 1e-4) == same[0].lower_epsilon(delta, 1e-4)
    assert same[0]._seen == {}
    # Few rounds, or nothing to look for: none.
    assert first_look([(part, 3) for part, _ in parts], delta) is None
    assert first_look(parts, 1.0) is None
