"""Compositions whose rounds may give a user away for certain, and other ends of the number line."""

import math
import warnings
from collections import Counter
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.accounting._curves.clones import strong_adversary
from shuffledp.accounting._rounds.loss import Lattice, dominated, sample

ZEROS = [
    [0.2518911361694336, 0.2518911361694336, 0.4962177276611328],
    [0.0, 0.6648969650268555, 0.33510303497314453],
    [0.25, 0.5, 0.25],
]


def reports(matrix: Any, data: Any) -> Any:
    """The law of the shuffled reports: how often each output was sent."""
    law: Counter = Counter()
    for outputs in product(range(len(matrix[0])), repeat=len(data)):
        law[tuple(sorted(outputs))] += math.prod(matrix[x][y] for x, y in zip(data, outputs, strict=True))
    return law


def twice(matrix: Any, epsilon: float) -> Any:
    """The largest delta of two rounds, over all neighbouring datasets of two users."""
    inputs = range(len(matrix))
    worst = 0.0
    for (x, y), z in product(permutations(inputs, 2), inputs):
        p, q = (reports(matrix, data) for data in ((x, z), (y, z)))
        total = sum(
            max(p[a] * p[b] - math.exp(epsilon) * q[a] * q[b], 0.0) for a, b in product(p | q, repeat=2)
        )
        worst = max(worst, total)
    return worst


def once(matrix: Any, epsilon: float) -> float:
    """The same of one round."""
    inputs, worst = range(len(matrix)), 0.0
    for (x, y), z in product(permutations(inputs, 2), inputs):
        p, q = (reports(matrix, data) for data in ((x, z), (y, z)))
        worst = max(worst, sum(max(p[a] - math.exp(epsilon) * q[a], 0.0) for a in p))
    return worst


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.2746, 0.8, 2.0])
def test_outputs_that_some_input_never_sends_compose(epsilon: float) -> None:
    two = 2 * sdp.Shuffled(sdp.FiniteRandomizer(ZEROS), n=2)
    bound = two.delta(epsilon=epsilon, tolerance=0.01)
    truth = twice(ZEROS, epsilon)
    assert 0.25 * truth < bound.lower <= truth * (1 + 1e-9)
    assert truth <= bound.upper * (1 + 1e-9)


NO_BLANKET = [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.25, 0.75, 0.0]]
ALIKE_WHERE_HIDDEN = [
    [0.25, 0.5, 0.25, 0.0],
    [0.25, 0.0, 0.5, 0.25],
    [0.25, 0.75, 0.0, 0.0],
    [0.25, 0.25, 0.0, 0.5],
]


@pytest.mark.parametrize("matrix", [NO_BLANKET, ALIKE_WHERE_HIDDEN])
@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_matrices_whose_hidden_reports_tell_nothing_are_answered(matrix: Any, epsilon: float) -> None:
    one = sdp.Shuffled(sdp.FiniteRandomizer(matrix), n=2)
    for rounds in (1, 2):
        bound = (rounds * one).delta(epsilon=[epsilon, 3.0])
        truth = twice(matrix, epsilon) if rounds == 2 else once(matrix, epsilon)
        assert bound.lower[0] <= truth * (1 + 1e-9)
        assert truth <= bound.upper[0] * (1 + 1e-9)


TINY = [
    [0.29015802751534564, 0.015559213531165765, 0.6942827589534887],
    [0.3199494825748519, 0.0013500876841538675, 0.6787004297409943],
    [0.0009357209862939121, 0.12770440234069824, 0.8713598766730078],
]


@pytest.mark.parametrize("epsilon", [1.0, 6.0, 9.0, 10.12094632759154, 10.9])
def test_nearly_certain_reports_compose(epsilon: float) -> None:
    bound = (2 * sdp.Shuffled(sdp.FiniteRandomizer(TINY), n=2)).delta(epsilon=epsilon)
    truth = twice(TINY, epsilon)
    assert bound.lower <= truth * (1 + 1e-9)
    assert truth <= bound.upper * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_two_rounds_of_any_matrix_are_enclosed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.full(3, rng.choice([0.2, 0.5, 2.0])), 3)
    randomizer = sdp.FiniteRandomizer(matrix)
    two = 2 * sdp.Shuffled(randomizer, n=2)
    at = np.array([0.0, 0.3, 0.9]) * randomizer.realised.epsilon0
    bound = two.delta(epsilon=at, tolerance=0.01)
    for place, epsilon in enumerate(at):
        truth = twice(randomizer.realised.matrix.tolist(), float(epsilon))
        assert bound.lower[place] <= truth * (1 + 1e-9) + 1e-15
        assert truth <= bound.upper[place] * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize(("epsilon0", "n"), [(10.0, 2), (9.0, 1), (12.0, 1)])
def test_a_handful_of_users_is_seen_round_after_round(epsilon0: float, n: int) -> None:
    one = sdp.Shuffled(sdp.KaryRandomizedResponse(k=3, epsilon0=epsilon0), n=n)
    assert (2 * one).epsilon(delta=1e-3).lower > 1.98 * epsilon0


def test_deltas_next_to_one_are_answered() -> None:
    ten = 10 * sdp.Shuffled(sdp.BinaryRandomizedResponse(4.0), n=5)
    bound = ten.delta(epsilon=0.0)
    assert 0.999 < bound.lower <= bound.upper < 1.0


@pytest.mark.parametrize(("k", "epsilon0", "n"), [(3, 0.4544409778, 4), (4, 2.0, 6), (2, 1.0, 3)])
def test_the_pair_from_below_is_below_the_curve_with_infinite_losses(k: int, epsilon0: float, n: int) -> None:
    randomizer = sdp.KaryRandomizedResponse(k=k, epsilon0=epsilon0)
    curve = strong_adversary(k, randomizer.gamma, randomizer.total_variation, n)
    assert curve.infinite_loss > 0.0
    for spacing in (0.3, 0.05, 0.01):
        lattice = Lattice(spacing, 4)
        found = sample(curve, lattice, 1e-12, 1e-3)
        law = dominated(found, found, spacing)
        assert math.fsum(law.mass) + law.infinity == pytest.approx(1.0, abs=1e-12)
        at = np.linspace(0.0, 6.0, 121)
        loss = law.index * spacing
        below = [law.infinity + float(law.mass @ np.maximum(-np.expm1(e - loss), 0.0)) for e in at]
        assert np.all(below <= curve.upper(at, 1e-6) * (1.0 + 1e-9))


def test_a_loss_that_is_nearly_always_infinite_is_not_subtracted() -> None:
    certain = 4 * sdp.Shuffled(sdp.BinaryRandomizedResponse(15.0), n=2, analysis="strong")
    both = sdp.Shuffled(sdp.LocalRandomizer(15.0), n=2, analysis="clones") + certain
    assert both.delta(epsilon=0.0).upper == 1.0


def test_below_the_sum_of_infinite_losses_no_epsilon_is_finite() -> None:
    one = sdp.Shuffled(sdp.KaryRandomizedResponse(k=4, gamma=0.25), n=100, analysis="strong")
    seen = one.round.profile.infinite_loss
    assert (30 * one).epsilon(delta=0.5 * -math.expm1(30 * math.log1p(-seen))).upper == math.inf
    assert (30 * one).upper_delta(epsilon=50.0) >= -math.expm1(30 * math.log1p(-seen))


@pytest.mark.parametrize(
    "mechanism",
    [
        2 * sdp.Shuffled(sdp.KaryRandomizedResponse(k=1000, epsilon0=0.04), 3, "strong"),
        2 * sdp.Shuffled(sdp.BinaryRandomizedResponse(1e-3), 2, "strong"),
        sdp.Shuffled(sdp.LocalRandomizer(1.0), 2)
        + sdp.Shuffled(sdp.KaryRandomizedResponse(k=4, epsilon0=1.0), 3, "strong"),
        sdp.Shuffled(sdp.KaryRandomizedResponse(k=4, epsilon0=33.0), 19, "strong", 12318),
    ],
)
def test_small_crowds_of_the_strong_adversary_are_answered(mechanism: Any) -> None:
    bound = mechanism.epsilon(delta=1e-5, tolerance=0.1)
    assert 0.0 <= bound.lower <= bound.upper
    assert 0.0 <= mechanism.delta(epsilon=1.0, tolerance=0.1).upper <= 1.0


@pytest.mark.parametrize("rounds", [2, 100])
def test_large_local_epsilons_compose_to_nearly_their_sum(rounds: int) -> None:
    """The lines' slopes are e^-epsilon0 of the events' probabilities: no rough tail may hide them."""
    bound = (rounds * sdp.Shuffled(sdp.LocalRandomizer(21.07), n=9307)).epsilon(delta=1e-6)
    assert 0.99 * 21.07 * rounds <= bound.lower <= bound.upper <= 21.07 * rounds * (1 + 1e-9)


def test_rare_values_are_not_spread_onto_ones_that_decide() -> None:
    """A million values and few users: nearly all reports are third ones."""
    randomizer = sdp.KaryRandomizedResponse(k=10**6, epsilon0=2.134843063493305)
    bound = sdp.Shuffled(randomizer, n=1620).delta(epsilon=0.0010256939091843403)
    assert bound.upper <= bound.lower * (1.0 + 1e-3)


@pytest.mark.parametrize(
    "matrix",
    [
        [[0.987, 0.005, 0.008], [0.005, 0.991, 0.004], [0.005, 0.0, 0.995]],
        [[0.99810605, 2.2e-05, 0.00187195], [0.0, 0.998128, 0.001872]],
    ],
)
@pytest.mark.parametrize("n", [3, 10_000])
def test_a_report_that_is_all_but_certain_raises_no_warning(matrix: Any, n: int) -> None:
    rows = np.array(matrix) / np.sum(matrix, axis=1, keepdims=True)
    bound = sdp.Shuffled(sdp.FiniteRandomizer(rows), n=n).epsilon(delta=1e-6)
    assert bound.upper == math.inf


def test_values_whose_powers_are_no_numbers_are_answered() -> None:
    """A report that one input sends once in ten million: a guess must not fail."""
    bound = sdp.Shuffled(sdp.FiniteRandomizer([[1.0, 0.0], [0.9999999, 1e-7]]), n=1000).epsilon(delta=1e-6)
    assert 0.0 <= bound.lower <= bound.upper < 1.0


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0])
def test_cells_wider_than_exponentials_reach_compose(epsilon: float) -> None:
    matrix = sdp.FiniteRandomizer([[1.0, 0.0], [4.6e-10, 1.0 - 4.6e-10]])
    bound = (2 * sdp.Shuffled(matrix, n=2)).delta(epsilon=epsilon)
    truth = twice(matrix.realised.matrix.tolist(), epsilon)
    assert bound.lower <= truth * (1 + 1e-9)
    assert truth <= bound.upper * (1 + 1e-9)


def test_losses_beyond_exponentials_raise_no_warning() -> None:
    randomizer = sdp.KaryRandomizedResponse(k=4, epsilon0=113.7)
    bound = sdp.Shuffled(randomizer, n=20, analysis="strong").delta(epsilon=[1.0, 600.0])
    assert np.all(bound.lower <= bound.upper)


def test_a_delta_that_reports_reach_at_every_epsilon_is_answered_with_what_to_do() -> None:
    """Half of the reports of the second input give it away: at delta = .5 rounding decides."""
    given_away = sdp.Shuffled(sdp.FiniteRandomizer([[1.0, 0.0], [0.5, 0.5]]), n=1000)
    for delta in (0.5, [0.5]):
        with pytest.warns(sdp.CoarserBoundWarning, match="ask for a larger delta"):
            bound = given_away.epsilon(delta=delta)
        assert (bound.lower, bound.upper) == (0.0, math.inf)
    with pytest.warns(sdp.CoarserBoundWarning, match="ask for a larger delta"):
        assert (2 * given_away).epsilon(delta=0.75).upper == math.inf
    with pytest.raises(sdp.NoCertificateError, match="nothing to certify"):
        given_away.certificate(epsilon=math.inf, delta=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert given_away.trade_off(0.5).upper < 1e-12
    assert given_away.epsilon(delta=0.49).lower == math.inf
    assert given_away.epsilon(delta=0.51).upper == 0.0
