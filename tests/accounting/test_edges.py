"""Where rounding decides: near epsilon0, certain reports, matrices with zeros, contradictions."""

import math

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.accounting._curves.all_pairs import FiniteBlanketProfile
from shuffledp.accounting._curves.inexact import InexactProfile
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.accounting._ends import upper as answers
from shuffledp.facts import Matrix

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("epsilon0", [0.001, 1.0, 4.0, 8.0, 15.0, 30.0, 36.5, 60.0])
@pytest.mark.parametrize("share", [0.5, 0.99, 1.0 - 1e-6, 1.0 - 1e-12])
def test_one_user_near_epsilon0_has_the_local_delta(epsilon0: float, share: float) -> None:
    """(E - alpha)/(E + 1), written without cancellation."""
    epsilon = epsilon0 * share
    exact = -math.expm1(epsilon - epsilon0) / (1.0 + math.exp(-epsilon0))
    for randomizer in (sdp.LocalRandomizer(epsilon0), sdp.BinaryRandomizedResponse(epsilon0)):
        bound = sdp.Shuffled(randomizer, n=1).delta(epsilon=epsilon)
        # The float epsilon0 * share itself is exact to a unit of epsilon0.
        doubt = 4.0 * np.spacing(epsilon0)
        assert bound.upper >= exact - doubt
        assert bound.lower <= exact + doubt
        assert bound.upper <= exact * (1.0 + 1e-3) + 1e3 * doubt


@pytest.mark.parametrize("epsilon0", [15.0, 30.0, 36.5])
def test_large_local_epsilons_are_not_rounded_away(epsilon0: float) -> None:
    bound = sdp.Shuffled(sdp.KaryRandomizedResponse(k=2, epsilon0=epsilon0), n=1).epsilon(delta=1e-3)
    exact = epsilon0 + math.log1p(-1e-3 * (1.0 + math.exp(-epsilon0)))
    assert bound.lower * (1.0 - 1e-9) <= exact <= bound.upper


def test_the_strong_adversary_at_delta_zero() -> None:
    free = sdp.Shuffled(sdp.KaryRandomizedResponse(k=4, epsilon0=0.0), n=10, analysis="strong")
    assert free.epsilon(delta=0.0) == sdp.Bound(0.0, 0.0)
    some = sdp.Shuffled(sdp.KaryRandomizedResponse(k=4, epsilon0=1.0), n=10, analysis="strong")
    assert some.epsilon(delta=0.0) == sdp.Bound(math.inf, math.inf)


@pytest.mark.parametrize("gap", [2.0**-30, 3.3e-9])
def test_the_local_epsilon_of_a_matrix_is_rounded_up(gap: float) -> None:
    matrix = [[0.5 + gap, 0.5 - gap], [0.5 - gap, 0.5 + gap]]
    exact = 2.0 * math.atanh(2.0 * gap)
    assert exact <= sdp.FiniteRandomizer(matrix).epsilon0 <= exact * (1.0 + 1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_the_blanket_of_a_matrix_with_zeros_is_above_each_of_its_laws(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.random((5, 5))
    weights[rng.integers(5, size=3), rng.integers(5, size=3)] = 0.0
    matrix = weights / weights.sum(axis=1, keepdims=True)
    profile = FiniteBlanketProfile(Matrix(matrix), 1000)
    assert len(profile.laws) > 16
    epsilon = np.array([0.3])
    upper = profile.upper(epsilon, 1e-3)
    for law in profile.laws:
        assert law.support(epsilon, 1e-3).value[0] <= upper[0]


def test_a_report_that_gives_the_input_away_has_no_finite_epsilon() -> None:
    mechanism = sdp.Shuffled(sdp.FiniteRandomizer([[0.5, 0.5, 0.0], [0.3, 0.3, 0.4]]), n=100)
    assert mechanism.epsilon(delta=1e-3).upper == math.inf
    assert mechanism.delta(epsilon=5.0).lower == pytest.approx(0.4, rel=1e-6)


def test_small_crowds_with_large_epsilon0_compose() -> None:
    randomizer = sdp.KaryRandomizedResponse(k=4, epsilon0=3.38113769279408)
    bound = (4 * sdp.Shuffled(randomizer, n=21)).epsilon(delta=1e-6, tolerance=1e-2)
    assert 0.0 < bound.lower <= bound.upper <= 4 * 3.39


def test_a_lower_end_above_the_upper_one_is_an_error_and_not_clipped() -> None:
    with pytest.raises(ArithmeticError, match="contradiction"):
        answers._agreed(1.1, 1.0)
    assert answers._agreed(1.0 + 1e-12, 1.0) == 1.0


@pytest.mark.parametrize("n", [1, 3])
def test_what_hardly_ever_happens_counts_at_delta_zero(n: int) -> None:
    """A report of probability 2^-999 or 2^-1000 tells inputs apart by a factor 2, for any n."""
    rare, local = 2.0**-1000, math.log(2.0)
    law = sdp.AmplificationLaw((2.0 * rare, 1.0), (rare, 1.0), (rare, 1.0))
    back = sdp.AmplificationLaw((rare, 1.0), (2.0 * rare, 1.0), (rare, 1.0))
    for facts in (
        sdp.Facts.of_matrix([[2.0 * rare, 1.0], [rare, 1.0]]),
        sdp.Facts(local * (1.0 + 1e-15), total_variation=rare),
        sdp.Facts(local * (1.0 + 1e-15), above=(law, back)),
    ):
        mechanism = sdp.Shuffled(facts, n=n)
        assert local <= mechanism.upper_epsilon(delta=0.0) <= local * (1.0 + 1e-12)
        assert 2.0 * local <= (2 * mechanism).upper_epsilon(delta=0.0)
        assert mechanism.upper_delta(epsilon=0.0) >= rare
        assert (2 * mechanism).upper_epsilon(delta=1e-9) == 0.0


def test_an_epsilon0_next_to_zero_is_an_answer() -> None:
    for epsilon0 in (5e-324, 1e-300):
        twice = 2 * sdp.Shuffled(sdp.Facts(epsilon0), n=3)
        assert 0.0 <= twice.upper_epsilon(delta=1e-9) <= 3.0 * epsilon0
        assert twice.upper_epsilon(delta=0.0) >= 2.0 * epsilon0


def test_no_distance_is_no_loss() -> None:
    nothing = sdp.Shuffled(sdp.Facts(1.0, total_variation=0.0), n=3)
    assert nothing.upper_epsilon(delta=0.0) == (2 * nothing).upper_epsilon(delta=0.0) == 0.0


@pytest.mark.parametrize("error", [1e-3, 1e-9])
def test_masses_known_up_to_a_factor_may_differ_where_they_seem_alike(error: float) -> None:
    """One report of (1 +- error)/2 against (1 -+ error)/2, either of them known as 1/2."""
    half = (0.5, 0.5)
    alike = InexactProfile(AmplificationProfile(1, half, half, (0.0, 0.0), half), error)
    for epsilon in (0.0, error, 1.9 * error):
        truth = 0.5 * (1.0 + error - math.exp(epsilon) * (1.0 - error))
        assert alike.upper(np.array([epsilon]), 1e-3)[0] >= truth
