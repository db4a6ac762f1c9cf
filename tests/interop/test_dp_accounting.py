"""To and from dp_accounting, with the real package."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as plds

import shuffledp as sdp
from oracles.brute import k_ary, shuffled_pairs, worst
from shuffledp.interop.dp_accounting import (
    ShuffleAccountant,
    ShuffledDpEvent,
    from_dp_accounting,
    to_dp_accounting,
)

SURVEY = sdp.Shuffled(sdp.KaryRandomizedResponse(k=16, epsilon0=4.0), n=100_000)
GENERIC = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=2.0), n=20_000)
MECHANISMS = {
    "kary": SURVEY,
    "generic": GENERIC,
    "strong": sdp.Shuffled(sdp.KaryRandomizedResponse(k=4, epsilon0=2.0), n=5_000, analysis="strong"),
    "few users": sdp.Shuffled(sdp.LocalRandomizer(epsilon0=1.0), n=5),
    "one user": sdp.Shuffled(sdp.LocalRandomizer(epsilon0=1.0), n=1),
    "cohort": 100 * GENERIC.sampled_from(1_000_000),
    "rounds": 30 * SURVEY,
    "mix": 3 * SURVEY + 2 * GENERIC,
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_distribution_lies_above_the_mechanism_and_close_to_it(name: str) -> None:
    mechanism = MECHANISMS[name]
    found = to_dp_accounting(mechanism, discretization=1e-4)
    for delta in (1e-3, 1e-6, 1e-10):
        ours = mechanism.epsilon(delta=delta)
        theirs = found.get_epsilon_for_delta(delta)
        assert theirs >= ours.lower * (1 - 1e-12)
        assert theirs <= ours.upper * 1.01 + 2e-4
    epsilon = np.linspace(0.0, float(mechanism.epsilon(delta=1e-10)), 23)[1:]
    lower = mechanism.delta(epsilon=epsilon).lower
    assert np.all(found.get_delta_for_epsilon(epsilon) >= lower * (1 - 1e-9))


@pytest.mark.quick
def test_the_grid_follows_the_losses() -> None:
    huge = sdp.Shuffled(sdp.KaryRandomizedResponse(k=16, epsilon0=2.0), n=10**8)
    exact = huge.epsilon(delta=1e-8)
    assert exact.lower <= huge.to_dp_accounting().get_epsilon_for_delta(1e-8) <= 1.002 * exact.upper
    with pytest.warns(sdp.CoarserBoundWarning, match="discretization=0.0001 is coarse"):
        coarse = huge.to_dp_accounting(discretization=1e-4)
    assert coarse.get_epsilon_for_delta(1e-8) >= exact.lower


@pytest.mark.quick
@pytest.mark.parametrize(("k", "n"), [(2, 4), (3, 3)])
def test_the_distribution_covers_every_dataset_of_a_few_users(k: int, n: int) -> None:
    mechanism = sdp.Shuffled(sdp.KaryRandomizedResponse(k=k, epsilon0=math.log(3)), n=n)
    found = mechanism.to_dp_accounting(discretization=1e-3)
    pairs = shuffled_pairs(k_ary(k, 3), n)
    for alpha in (Fraction(21, 20), Fraction(4, 3), Fraction(2), Fraction(5, 2)):
        truth = worst(pairs, alpha)
        assert found.get_delta_for_epsilon(math.log(alpha)) >= truth * (1 - Fraction(1, 10**12))


@pytest.mark.quick
def test_it_composes_there_with_itself_and_with_others() -> None:
    one = to_dp_accounting(SURVEY)
    ours = (30 * SURVEY).epsilon(delta=1e-8)
    there = one.self_compose(30).get_epsilon_for_delta(1e-8)
    assert ours.lower <= there <= ours.upper * 1.01
    noise = plds.from_gaussian_mechanism(3.0, value_discretization_interval=1e-4)
    both = noise.compose(one).get_epsilon_for_delta(1e-6)
    assert both > noise.get_epsilon_for_delta(1e-6)


@pytest.mark.thorough
@pytest.mark.quick
def test_there_and_back_loses_little() -> None:
    back = from_dp_accounting(to_dp_accounting(GENERIC))
    for delta in (1e-3, 1e-6, 1e-9):
        assert GENERIC.epsilon(delta=delta).lower <= back.epsilon(delta=delta).upper
        assert float(back.epsilon(delta=delta)) <= float(GENERIC.epsilon(delta=delta)) * 1.01


@pytest.mark.quick
@pytest.mark.parametrize(
    "distribution",
    [
        plds.from_gaussian_mechanism(1.0, value_discretization_interval=1e-3),
        plds.from_gaussian_mechanism(
            1.0, value_discretization_interval=1e-3, sampling_prob=0.1
        ),  # its two directions differ
        plds.from_laplace_mechanism(2.0, value_discretization_interval=1e-3),
        plds.from_randomized_response(0.3, 5, value_discretization_interval=1e-3),
    ],
    ids=["gaussian", "subsampled gaussian", "laplace", "randomized response"],
)
def test_a_foreign_distribution_gives_the_same_answers_here(distribution: Any) -> None:
    here = from_dp_accounting(distribution)
    for epsilon in (0.0, 0.1, 0.4, 1.5):
        theirs = distribution.get_delta_for_epsilon(epsilon)
        assert float(here.delta(epsilon=epsilon)) == pytest.approx(theirs, rel=1e-9, abs=1e-15)
    for delta in (1e-2, 1e-5):
        theirs = distribution.get_epsilon_for_delta(delta)
        ours = float(here.epsilon(delta=delta))
        assert theirs * (1 - 1e-9) <= ours <= theirs * (1 + 1.1e-3) + 1e-12


def test_foreign_rounds_compose_with_ours_as_they_do_there() -> None:
    noise = plds.from_gaussian_mechanism(5.0, value_discretization_interval=1e-4)
    here = from_dp_accounting(noise) + 30 * SURVEY
    there = noise.compose(to_dp_accounting(30 * SURVEY)).get_epsilon_for_delta(1e-6)
    assert float(here.epsilon(delta=1e-6)) == pytest.approx(there, rel=5e-3)
    assert here.epsilon(delta=1e-6).lower == 0.0  # nothing is known of foreign datasets
    ten = float((10 * from_dp_accounting(noise)).epsilon(delta=1e-6))
    assert ten == pytest.approx(noise.self_compose(10).get_epsilon_for_delta(1e-6), rel=2e-3)


@pytest.mark.quick
def test_the_accountant_answers_like_the_mechanism() -> None:
    event = ShuffledDpEvent(SURVEY)
    accountant = ShuffleAccountant()
    assert accountant.get_epsilon(1e-8) == 0.0
    accountant.compose(event).compose(dp_accounting.SelfComposedDpEvent(event, 9))
    accountant.compose(dp_accounting.ComposedDpEvent([event, dp_accounting.NoOpDpEvent(), event]), 10)
    assert accountant.mechanism == 30 * SURVEY
    assert accountant.get_epsilon(1e-8) == (30 * SURVEY).epsilon(delta=1e-8).upper
    assert accountant.get_delta(0.5) == (30 * SURVEY).delta(epsilon=0.5).upper
    assert isinstance(accountant.ledger, dp_accounting.DpEvent)
    relation = dp_accounting.NeighboringRelation.REPLACE_ONE
    assert accountant.neighboring_relation is relation


@pytest.mark.quick
def test_the_accountant_knows_cohorts() -> None:
    event = dp_accounting.SampledWithoutReplacementDpEvent(
        source_dataset_size=1_000_000, sample_size=20_000, event=ShuffledDpEvent(GENERIC)
    )
    accountant = ShuffleAccountant().compose(event, 100)
    expected = (100 * GENERIC.sampled_from(1_000_000)).epsilon(delta=1e-6).upper
    assert accountant.get_epsilon(1e-6) == expected


@pytest.mark.quick
@pytest.mark.parametrize(
    "event",
    [
        dp_accounting.PoissonSampledDpEvent(0.1, dp_accounting.LaplaceDpEvent(1.0)),
        dp_accounting.PoissonSampledDpEvent(0.1, ShuffledDpEvent(SURVEY)),
        dp_accounting.SampledWithoutReplacementDpEvent(10**6, 7, ShuffledDpEvent(SURVEY)),
        dp_accounting.SampledWithoutReplacementDpEvent(10**6, 7, dp_accounting.GaussianDpEvent(1)),
        dp_accounting.ComposedDpEvent([ShuffledDpEvent(SURVEY), dp_accounting.ZCDpEvent(1.0)]),
    ],
)
def test_the_accountant_refuses_what_it_does_not_know(event: Any) -> None:
    accountant = ShuffleAccountant()
    assert not accountant.supports(event)
    with pytest.raises(dp_accounting.UnsupportedEventError):
        accountant.compose(event)
    assert accountant.get_epsilon(1e-8) == 0.0


@pytest.mark.thorough
@pytest.mark.quick
def test_the_accountant_mixes_shuffled_rounds_with_their_events() -> None:
    """Alone, an event of theirs costs what their accountant says, up to rounding; mixed, it costs more."""
    gaussian, sampled = dp_accounting.GaussianDpEvent(20.0), dp_accounting.GaussianDpEvent(5.0)
    sampled = dp_accounting.PoissonSampledDpEvent(0.01, sampled)
    theirs = dp_accounting.pld.PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_ONE)
    alone = theirs.compose(gaussian, 10).compose(sampled, 20).get_epsilon(1e-6)
    ours = ShuffleAccountant().compose(gaussian, 10).compose(sampled, 20)
    assert alone * (1.0 - 1e-6) <= ours.get_epsilon(1e-6) <= 1.01 * alone
    mixed = ShuffleAccountant().compose(
        dp_accounting.ComposedDpEvent(
            [gaussian, dp_accounting.SelfComposedDpEvent(ShuffledDpEvent(SURVEY), 3)]
        )
    )
    parts = (ShuffleAccountant().compose(gaussian), ShuffleAccountant().compose(ShuffledDpEvent(SURVEY), 3))
    least, most = max(part.get_epsilon(1e-6) for part in parts), sum(part.get_epsilon(5e-7) for part in parts)
    assert least < mixed.get_epsilon(1e-6) <= most * 1.001
    assert ShuffleAccountant().compose(dp_accounting.GaussianDpEvent(0.0)).get_epsilon(1e-6) == math.inf


@pytest.mark.quick
def test_laplace_noise_costs_what_the_replacement_of_a_record_costs() -> None:
    """Two densities that are 2 apart, and whole numbers by enumeration; up to that library's rounding."""
    accountant = ShuffleAccountant().compose(dp_accounting.LaplaceDpEvent(4.0))
    for epsilon in (0.1, 0.3, 0.49):
        exact = -math.expm1((epsilon - 0.5) / 2.0)
        assert exact * (1.0 - 1e-9) <= accountant.get_delta(epsilon) <= exact + 1e-3
    assert accountant.get_delta(0.5001) < 1e-12
    accountant = ShuffleAccountant().compose(dp_accounting.dp_event.DiscreteLaplaceDpEvent(0.25, 3), 2)
    weights = np.exp(-0.25 * np.abs(np.arange(-200, 207))) * math.tanh(0.125)
    moved = np.exp(-0.25 * np.abs(np.arange(-206, 201))) * math.tanh(0.125)
    twice, other = np.outer(weights, weights), np.outer(moved, moved)
    for epsilon in (0.5, 1.0, 2.0):
        exact = float(np.maximum(twice - math.exp(epsilon) * other, 0.0).sum())
        assert exact * (1.0 - 1e-9) <= accountant.get_delta(epsilon) <= exact + 1e-3
    assert ShuffleAccountant().compose(dp_accounting.LaplaceDpEvent(0.0)).get_epsilon(1e-6) == math.inf


@pytest.mark.quick
def test_a_non_private_event_is_remembered() -> None:
    accountant = ShuffleAccountant().compose(dp_accounting.NonPrivateDpEvent())
    assert accountant.get_epsilon(1e-6) == math.inf
    assert accountant.get_delta(5.0) == 1.0


@pytest.mark.quick
def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="discretization"):
        SURVEY.to_dp_accounting(discretization=0.0)
    with pytest.raises(ValueError, match="discretization must be at least"):
        (10_000 * SURVEY).to_dp_accounting(discretization=1e-9)
    with pytest.raises(TypeError, match="distribution"):
        from_dp_accounting(SURVEY)
    optimistic = plds.from_gaussian_mechanism(
        1.0, pessimistic_estimate=False, value_discretization_interval=1e-2
    )
    with pytest.raises(ValueError, match="pessimistic"):
        from_dp_accounting(optimistic)
