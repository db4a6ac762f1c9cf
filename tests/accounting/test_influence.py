"""Where curves of rounds matter for their sum: beside sums over all outcomes."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.accounting._hints.influence import Decided, Part, Tilted, influence

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
