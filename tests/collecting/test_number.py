"""Sums and means from end to end. Seeds are fixed; limits would fail a right program once in a million."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Any

import numpy as np
import pytest

from shuffledp import KaryRandomizedResponse
from shuffledp.collecting import protocol_from_dict
from shuffledp.collecting._accounted import Target
from shuffledp.collecting._choice import best_levels, calibrated_response, relative_variance
from shuffledp.collecting.number import MeanProtocol, NumberProtocol, SumProtocol, least_single_message_error
from shuffledp.errors import DomainError
from shuffledp.randomizers.laplace import DiscreteLaplace
from shuffledp.randomizers.unary import OptimisedUnaryEncoding

N = 800


@cache
def mean(kind: str = "response") -> MeanProtocol:
    noise = DiscreteLaplace(epsilon0=3.0, low=-2.0, high=6.0, levels=6)
    given: Any = noise if kind == "laplace" else None
    return MeanProtocol(low=-2.0, high=6.0, epsilon=1.5, delta=1e-5, n=N, randomizer=given)


DATA = {
    "all at an end": np.full(N, -2.0),
    "between the grid points": np.full(N, 0.123),
    "spread": np.linspace(-2.0, 6.0, N),
    "two groups": np.repeat([-1.9, 5.0], [N // 4, 3 * N // 4]),
}


def exact_variance(protocol: NumberProtocol, numbers: Any) -> float:
    """Of the estimated mean: the formula of each number, rounding included."""
    place = (numbers - protocol.low) / protocol.step
    z = np.minimum(np.floor(place), protocol.levels - 1).astype(int)
    f, v = place - z, protocol.decoder.spread
    each = (1 - f) * v[z] + f * v[z + 1] + f * (1 - f)
    return float(each.sum()) * protocol.step**2 / len(numbers) ** 2


@pytest.mark.parametrize("kind", ["response", "laplace"])
@pytest.mark.parametrize("name", DATA)
def test_means_are_unbiased_with_the_exact_variance_and_are_covered(kind: str, name: str) -> None:
    protocol, rng, runs = mean(kind), np.random.default_rng(21), 600
    numbers, truth = DATA[name], float(DATA[name].mean())
    results = [protocol.analyze(protocol.randomize(numbers, rng=rng)) for _ in range(runs)]
    values = np.array([result.value for result in results])
    variance = exact_variance(protocol, numbers)
    assert abs(values.mean() - truth) < 5.5 * np.sqrt(variance / runs)
    assert abs(values.var(ddof=1) / variance - 1) < 6 * np.sqrt(2 / runs)
    # The error bar is not below the truth in the mean, and never above the worst case.
    errors = np.array([result.standard_error for result in results])
    assert errors.mean() > 0.98 * np.sqrt(variance)
    assert errors.max() <= protocol.worst_standard_error * (1 + 1e-12)
    inside = [r.interval(0.9).lower <= truth <= r.interval(0.9).upper for r in results]
    assert np.mean(inside) >= 0.9 - 5 * np.sqrt(0.09 / runs)


def test_a_sum_is_n_times_the_mean() -> None:
    average = mean()
    total = SumProtocol(-2.0, 6.0, 1.5, 1e-5, N, randomizer=average.randomizer)
    reports = average.randomize(DATA["spread"], rng=np.random.default_rng(3))
    a, b = average.analyze(reports), total.analyze(reports)
    assert b.value == pytest.approx(N * a.value)
    assert b.standard_error == pytest.approx(N * a.standard_error)
    assert b.interval().lower == pytest.approx(N * a.interval().lower)


def test_rounding_keeps_the_mean_and_takes_neighbours_only() -> None:
    protocol = SumProtocol(0, 1, 5.0, 1e-3, 10, randomizer=KaryRandomizedResponse(k=5, epsilon0=2.0))
    rng = np.random.default_rng(4)
    for number, share in [(0.0, 0.0), (0.25, 0.0), (0.3, 0.2), (0.99, 0.96), (1.0, 0.0), (1e-30, 0.0)]:
        levels = protocol.encode(np.full(20_000, number), rng=rng)
        below = np.floor(number * 4)
        assert set(levels.tolist()) <= {below, below + 1} & set(range(5))
        limit = 5.5 * np.sqrt(share * (1 - share) / 20_000)
        assert abs((levels - below).mean() - share) <= limit + 1e-12


@pytest.mark.parametrize(("n", "epsilon"), [(50, 1.0), (20_000, 2.0)])
def test_no_other_number_of_levels_is_much_better(n: int, epsilon: float) -> None:
    target = Target(epsilon, 1e-6, n)
    chosen = best_levels(target)
    error = relative_variance(calibrated_response(chosen + 1, target, 0.01))
    for levels in {1, 3, max(1, chosen - 1), chosen + 2, 2 * chosen}:
        assert error <= 1.03 * relative_variance(calibrated_response(levels + 1, target, 0.01))


def test_protocols_meet_their_target() -> None:
    for protocol in (mean(), MeanProtocol(0, 1, 0.8, 1e-6, 3000, levels=3)):
        certified = protocol.mechanism().upper_epsilon(delta=protocol.delta)
        assert certified <= protocol.epsilon
    assert mean("laplace").mechanism().upper_epsilon(delta=1e-5) <= 1.5


@pytest.mark.parametrize("kind", ["response", "laplace"])
def test_descriptions_travel_as_json(kind: str) -> None:
    protocol = mean(kind)
    again = protocol_from_dict(json.loads(json.dumps(protocol.to_dict())))
    assert again == protocol
    assert type(again) is MeanProtocol


def test_a_sum_is_no_mean() -> None:
    with pytest.raises(ValueError, match="protocol must be 'sum', got 'mean'"):
        SumProtocol.from_dict(mean().to_dict())


def test_numbers_are_shown_only_where_that_is_asked_for() -> None:
    with pytest.raises(DomainError) as caught:
        mean().randomize([0.0, 123456.78])
    assert caught.value.examples == ()
    assert "123456" not in repr(caught.value) + str(caught.value.__dict__)


def test_numbers_that_do_not_belong_are_counted_and_shown() -> None:
    with pytest.raises(DomainError, match="1 missing, 2 outside") as caught:
        mean().randomize([0.0, None, 7.0, -2.5, 6.0], show_values=True)
    assert caught.value.examples == ((1, None), (2, 7.0), (3, -2.5))
    with pytest.raises(DomainError, match="1 missing, 1 outside"):
        mean().randomize(np.array([np.nan, np.inf]))
    for column in (["a", "b"], np.array([True]), [1 + 2j]):
        with pytest.raises(TypeError, match="column must be real numbers"):
            mean().randomize(column)


def test_numbers_beyond_the_ends_are_clipped_only_when_asked() -> None:
    clipping = SumProtocol(
        0, 4, 5.0, 1e-3, 10, randomizer=KaryRandomizedResponse(k=5, epsilon0=2.0), outside="clip"
    )
    assert clipping.encode([-3.0, 9.0, float("inf"), 2.0]).tolist() == [0, 4, 4, 2]
    assert int(clipping.encode(3)) == 3
    with pytest.raises(DomainError, match="1 missing, 0 outside"):
        clipping.encode([None, 1.0])


def test_impossible_plans_are_refused() -> None:
    response = KaryRandomizedResponse(k=3, epsilon0=0.5)
    with pytest.raises(ValueError, match="low must be below high"):
        SumProtocol(1, 1, 1.0, 1e-6, 100)
    with pytest.raises(ValueError, match="matter of the randomizer"):
        SumProtocol(0, 1, 1.0, 1e-6, 100, levels=2, randomizer=response)
    with pytest.raises(ValueError, match="outside must be one of"):
        SumProtocol(0, 1, 1.0, 1e-6, 100, randomizer=response, outside="drop")
    with pytest.raises(ValueError, match="randomizer must be on"):
        SumProtocol(0, 2, 1.0, 1e-6, 100, randomizer=DiscreteLaplace(epsilon0=0.5))
    with pytest.raises(TypeError, match="KaryRandomizedResponse or noise"):
        SumProtocol(0, 1, 1.0, 1e-6, 100, randomizer=OptimisedUnaryEncoding(3, 0.5))
    with pytest.raises(ValueError, match="levels must be in"):
        SumProtocol(0, 1, 1.0, 1e-6, 100, levels=10**9)
    with pytest.raises(ValueError, match="tally must sum to n"):
        mean().analyze(tally=[1] * (mean().levels + 1), n=N)


def test_results_are_drawn_with_their_intervals() -> None:
    pytest.importorskip("matplotlib").use("agg")
    result = mean().analyze(mean().randomize(DATA["spread"]))
    ax = result.plot()
    assert ax.lines[0].get_xdata()[0] == pytest.approx(result.value)


def test_results_print_and_become_frames() -> None:
    pandas = pytest.importorskip("pandas")
    result = mean().analyze(mean().randomize(DATA["spread"]))
    assert str(result).startswith("mean  ")
    assert isinstance(result.to_pandas(), pandas.DataFrame)


@pytest.mark.parametrize(("epsilon", "n"), [(0.1, 50_000), (1.0, 1_000), (3.0, 10)])
def test_no_protocol_is_below_the_least_error_of_single_messages(epsilon: float, n: int) -> None:
    """Balle et al. 2019, Theorem 4.2: also one message in the local model, which needs no shuffler."""
    total = SumProtocol(low=-2, high=3, epsilon=epsilon, delta=1e-6, n=n)
    mean = MeanProtocol(low=-2, high=3, epsilon=epsilon, delta=1e-6, n=n)
    least = least_single_message_error(n, epsilon, 1e-6)
    assert 0 < total.least_standard_error < total.worst_standard_error
    assert total.least_standard_error == pytest.approx(5 * least)
    assert mean.least_standard_error == pytest.approx(5 * least / n)
    p = 1 / (math.exp(epsilon) + 1)  # of a lie; the worst data are all ones
    assert least < math.sqrt(n * p * (1 - p)) / (1 - 2 * p)


def test_the_least_error_is_that_of_the_formula_and_grows_as_the_sixth_root() -> None:
    n, K = 10**6, 100
    one = n * K * min(math.exp(-1) / (8 * K**3), (1 - K**-2) * (0.5 - 1e-6) / (48 * n))
    assert math.sqrt(one) * (1 - 1e-12) <= least_single_message_error(n, 1.0, 1e-6)
    ratio = least_single_message_error(10**12, 1.0, 1e-6) / least_single_message_error(10**6, 1.0, 1e-6)
    assert ratio == pytest.approx(10, rel=0.02)
    assert least_single_message_error(n, 1.0, 0.5) == 0.0
