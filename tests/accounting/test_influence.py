"""Where curves of rounds matter for their sum: beside sums over all outcomes."""

from __future__ import annotations

import math
from itertools import pairwise, product
from statistics import NormalDist

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.accounting._hints.influence import (
    Decided,
    NormalPart,
    NormalSum,
    Part,
    Tilted,
    influence,
    normal_places,
)
from shuffledp.accounting._hints.tilt import Tilts

pytestmark = pytest.mark.quick

LOSS = np.array([-0.3, -0.02, 0.0, 0.02, 0.3, 2.5])
MASS = np.array([0.01, 0.4, 0.15, 0.42, 0.0199, 1e-4])


def others(count: int) -> list[tuple[float, float]]:
    """(loss, mass) of all outcomes of so many rounds."""
    atoms = list(zip(LOSS.tolist(), MASS.tolist(), strict=True))
    return [
        (sum(loss for loss, _ in outcome), math.prod(mass for _, mass in outcome))
        for outcome in product(atoms, repeat=count)
    ]


def falls(epsilon: float) -> float:
    """How much delta of three rounds falls as epsilon grows e-fold."""
    return epsilon * sum(mass * math.exp(epsilon - loss) for loss, mass in others(3) if loss > epsilon)


def test_single_losses_that_decide_a_sum_count_with_the_probability_of_the_others() -> None:
    epsilon, edges = 1.003, np.array([0.0, 0.101, 0.605, 0.905, 1.105, 1.505])
    decided = Decided([Part(LOSS, MASS, 3)], 1.0, epsilon, None)
    for low, high, found in zip(edges[:-1], edges[1:], decided.ahead(0, edges), strict=True):
        expected = sum(mass for loss, mass in others(2) if low < epsilon - loss < high)
        assert found == pytest.approx(3.0 * expected / falls(epsilon), rel=0.02, abs=1e-9)
    behind = sum(mass for loss, mass in others(2) if 1.105 < loss - epsilon < 1.505)
    assert decided.behind(0, edges)[-1] == pytest.approx(
        3.0 * behind * math.exp(-1.105) / falls(epsilon), rel=0.02
    )


def test_sums_that_are_nearly_normal_are_tilted_and_others_are_not() -> None:
    even = Part(np.array([-0.01, 0.01]), np.array([0.495, 0.505]), 1000)
    assert isinstance(influence([even], 3.0, 1.0, None), Tilted)
    assert isinstance(influence([Part(LOSS, MASS, 3)], 1.0, 1.0, None), Decided)


def test_absurd_tilts_are_no_obstacle() -> None:
    for theta in (-1.0, 0.0, 1e300, math.inf, math.nan):
        found = influence([Part(LOSS, MASS, 3)], theta, 1.0, 1e-6)
        with np.errstate(all="ignore"):
            assert found.ahead(0, np.array([0.0, 1.0, 2.0])).shape == (2,)


@pytest.mark.thorough
def test_two_rounds_of_which_one_tells_most_are_enclosed_closely() -> None:
    """The upper end was 1.384, without a word on how close it is, from many more points."""
    two = 2 * sdp.Shuffled(sdp.DiscreteGaussian(sigma=0.556, levels=8), n=63_649)
    bound = two.epsilon(delta=1e-9)
    assert 1.36 < bound.lower < bound.upper < 1.378


@pytest.mark.parametrize(
    ("scale", "count", "delta"), [(0.01, 1000, 1e-8), (0.05, 3, 1e-6), (1e-4, 10**6, 1e-30)]
)
def test_places_of_normal_losses_add_as_much_as_is_allowed(scale: float, count: int, delta: float) -> None:
    """The curve of a normal pair, and its chords: what they add to the moment of the tilted sum."""
    parts, allowed = [NormalPart(scale, count)], 1e-4
    theta, epsilon = Tilts(NormalSum(parts[0].variance)).for_delta(delta)
    asked = [Tilted(parts, theta, epsilon)]
    (places,) = normal_places(parts, asked, allowed)
    normal = NormalDist()

    def curve(at: float) -> float:
        near, far = at / scale - 0.5 * scale, at / scale + 0.5 * scale
        return normal.cdf(-near) - math.exp(at) * normal.cdf(-far)

    # E[e^(theta L)] is theta (theta + 1) times the integral of the curve times alpha^(theta - 1), and that of
    # the reversed pair, which is the same, times alpha^-(theta + 2); here in steps of epsilon.
    added = 0.0
    for low, high in pairwise(places.tolist()):
        inside = np.linspace(low, high, 41)
        ends = np.exp([low, high])
        chord = np.interp(np.exp(inside), ends, [curve(low), curve(high)])
        gap = chord - np.array([curve(at) for at in inside.tolist()])
        rate = np.exp(theta * inside) + np.exp(-(theta + 1.0) * inside)
        added += float((gap * rate).mean()) * (high - low)
    log_moment = 0.5 * scale**2 * theta * (theta + 1.0)
    found = count * theta * (theta + 1.0) * added * math.exp(-log_moment) / (theta * epsilon)
    assert found == pytest.approx(allowed, rel=0.15)
    assert places[0] == 0.0
    assert curve(float(places[-1])) < 1e-17 * scale
