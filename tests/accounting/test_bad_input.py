"""What bad input gets, and that the edges of the allowed ranges are valid and exact."""

import re
from collections.abc import Callable
from functools import partial
from math import inf, log, log1p, nan
from typing import Any

import numpy as np
import pytest

import shuffledp as sdp

ANY = sdp.LocalRandomizer(epsilon0=1.0)
EIGHT = sdp.KaryRandomizedResponse(k=8, epsilon0=2.0)
COIN = sdp.BinaryRandomizedResponse(epsilon0=1.0)
DAILY = sdp.Shuffled(EIGHT, n=1000)

RANGE = re.compile(r"[<>=]|between|at least|at most|in [\[(]|sum to|whole|one of|finite")


def refuses(call: Callable[[], object], parameter: str, shown: str) -> None:
    """The error names the parameter and the value, and says what is allowed."""
    with pytest.raises((ValueError, TypeError)) as refused:
        call()
    message = str(refused.value)
    assert re.search(rf"\b{parameter}\b", message), f"{parameter!r} is not named in {message!r}"
    assert shown in message, f"the value {shown!r} is not in {message!r}"
    assert RANGE.search(message), f"no allowed range in {message!r}"


def result_or_refusal(call: Callable[[], Any]) -> tuple[Any, str]:
    """For input that may be refused: the result, or the message of the ValueError."""
    try:
        return call(), ""
    except ValueError as error:
        return None, str(error)


# Whole numbers


@pytest.mark.parametrize(
    ("n", "shown"),
    [
        (0, "0"),
        (-5, "-5"),
        (1.5, "1.5"),
        (nan, "nan"),
        (inf, "inf"),
        (True, "True"),
        ("10", "10"),
        (None, "None"),
        (10**400, "1"),
    ],
)
def test_n_must_be_a_whole_number_of_users(n: Any, shown: str) -> None:
    for randomizer in (ANY, EIGHT, COIN):
        refuses(partial(sdp.Shuffled, randomizer, n=n), "n", shown)


@pytest.mark.parametrize("n", [1e3, np.int64(1000), np.float64(1000.0), np.int32(1000), 1000])
def test_whole_numbers_may_come_in_any_type(n: Any) -> None:
    assert sdp.Shuffled(EIGHT, n=n).epsilon(delta=1e-6) == DAILY.epsilon(delta=1e-6)


@pytest.mark.parametrize(("k", "shown"), [(1, "1"), (0, "0"), (2.5, "2.5"), (True, "True")])
def test_k_must_be_a_whole_number_of_at_least_two_values(k: Any, shown: str) -> None:
    refuses(lambda: sdp.KaryRandomizedResponse(k=k, epsilon0=1.0), "k", shown)


@pytest.mark.parametrize("rounds", [-1, 1.5, nan, True])
def test_rounds_must_be_a_whole_number(rounds: Any) -> None:
    refuses(lambda: rounds * DAILY, "rounds", str(rounds))
    refuses(lambda: DAILY * rounds, "rounds", str(rounds))


def test_rounds_may_come_as_whole_floats_and_numpy_numbers() -> None:
    three = (3 * DAILY).epsilon(delta=1e-6)
    assert (np.int64(3) * DAILY).epsilon(delta=1e-6) == three
    assert (DAILY * 3).epsilon(delta=1e-6) == three


@pytest.mark.parametrize(("population", "shown"), [(999, "999"), (0, "0"), (1000.5, "1000.5"), (nan, "nan")])
def test_a_population_must_hold_the_cohort(population: Any, shown: str) -> None:
    refuses(lambda: DAILY.sampled_from(population), "population", shown)


# Real numbers


@pytest.mark.parametrize("epsilon0", [-0.1, nan, inf, -inf])
def test_epsilon0_must_be_finite_and_not_negative(epsilon0: float) -> None:
    shown = str(epsilon0)
    refuses(lambda: sdp.LocalRandomizer(epsilon0=epsilon0), "epsilon0", shown)
    refuses(lambda: sdp.KaryRandomizedResponse(k=4, epsilon0=epsilon0), "epsilon0", shown)
    refuses(lambda: sdp.BinaryRandomizedResponse(epsilon0=epsilon0), "epsilon0", shown)


@pytest.mark.parametrize("epsilon0", ["1", None, [1.0, 2.0], 1j])
def test_epsilon0_must_be_a_number(epsilon0: Any) -> None:
    for make in (sdp.LocalRandomizer, sdp.BinaryRandomizedResponse):
        with pytest.raises((ValueError, TypeError), match="epsilon0"):
            make(epsilon0=epsilon0)


@pytest.mark.parametrize("gamma", [-0.1, 0.0, 1.1, nan])
def test_gamma_must_be_a_probability_above_zero(gamma: float) -> None:
    refuses(lambda: sdp.KaryRandomizedResponse(k=4, gamma=gamma), "gamma", str(gamma))


def test_either_epsilon0_or_gamma_describes_randomized_response() -> None:
    with pytest.raises((ValueError, TypeError), match=r"epsilon0.*gamma|gamma.*epsilon0"):
        sdp.KaryRandomizedResponse(k=4)
    with pytest.raises((ValueError, TypeError), match=r"epsilon0.*gamma|gamma.*epsilon0"):
        sdp.KaryRandomizedResponse(k=4, epsilon0=1.0, gamma=0.5)


@pytest.mark.parametrize("delta", [-1e-9, 1.0000001, nan, inf])
def test_delta_must_be_a_probability(delta: float) -> None:
    for mechanism in (DAILY, 3 * DAILY, DAILY.sampled_from(10**4)):
        refuses(partial(mechanism.epsilon, delta=delta), "delta", str(delta))


@pytest.mark.parametrize("epsilon", [-0.1, nan])
def test_epsilon_must_not_be_negative(epsilon: float) -> None:
    for mechanism in (DAILY, 3 * DAILY, DAILY.sampled_from(10**4)):
        refuses(partial(mechanism.delta, epsilon=epsilon), "epsilon", str(epsilon))
        refuses(partial(mechanism.delta, epsilon=np.array([0.1, epsilon])), "epsilon", str(epsilon))


@pytest.mark.parametrize("alpha", [-0.1, nan])
def test_alpha_must_not_be_negative(alpha: float) -> None:
    for mechanism in (DAILY, 3 * DAILY, DAILY.sampled_from(10**4)):
        refuses(partial(mechanism.profile, alpha), "alpha", str(alpha))
        refuses(partial(mechanism.profile, np.array([1.0, alpha])), "alpha", str(alpha))


@pytest.mark.parametrize("tolerance", [0.0, -1e-3, nan, inf])
def test_tolerance_must_be_positive(tolerance: float) -> None:
    for mechanism in (DAILY, 3 * DAILY):
        refuses(partial(mechanism.epsilon, delta=1e-6, tolerance=tolerance), "tolerance", str(tolerance))
        refuses(partial(mechanism.delta, epsilon=0.1, tolerance=tolerance), "tolerance", str(tolerance))


@pytest.mark.parametrize("total_variation", [-0.1, 1.5, nan])
def test_total_variation_must_be_a_probability(total_variation: float) -> None:
    refuses(
        lambda: sdp.LocalRandomizer(epsilon0=1.0, total_variation=total_variation),
        "total_variation",
        str(total_variation),
    )


def test_total_variation_cannot_exceed_what_epsilon0_allows() -> None:
    """(e^epsilon0 - 1) / (e^epsilon0 + 1) is the most; more is refused or changes nothing."""
    most = np.tanh(0.5)
    at_most = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=1.0, total_variation=most), n=50)
    clones = sdp.Shuffled(ANY, n=50)
    assert at_most.epsilon(delta=1e-4).upper == pytest.approx(clones.epsilon(delta=1e-4).upper, rel=2e-3)
    beyond, refusal = result_or_refusal(
        lambda: sdp.Shuffled(sdp.LocalRandomizer(epsilon0=1.0, total_variation=0.9), n=50)
    )
    if beyond is None:
        assert "total_variation" in refusal
    else:
        assert beyond.epsilon(delta=1e-4).upper >= clones.epsilon(delta=1e-4).upper / 1.001


# Matrices and names


@pytest.mark.parametrize(
    ("matrix", "shown"),
    [
        ([[1.1, -0.1], [0.5, 0.5]], "-0.1"),
        ([[0.5, 0.6], [0.5, 0.5]], "1.1"),
        ([[0.5, 0.4], [0.5, 0.5]], "0.9"),
        ([[0.5, nan], [0.5, 0.5]], "nan"),
    ],
)
def test_rows_of_a_matrix_must_be_probabilities(matrix: Any, shown: str) -> None:
    refuses(lambda: sdp.FiniteRandomizer(matrix), "matrix", shown)


@pytest.mark.parametrize("matrix", [[], [[]], [0.5, 0.5], [[0.5, 0.5], [1.0]], "ab", None])
def test_a_matrix_must_have_two_dimensions(matrix: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="matrix"):
        sdp.FiniteRandomizer(matrix)


def test_rows_may_miss_one_by_rounding_only() -> None:
    third = 1 / 3
    randomizer = sdp.FiniteRandomizer([[0.1, 0.2, 0.7], [third, third, third]])
    assert randomizer.epsilon0 == pytest.approx(log(third / 0.1), rel=1e-12)
    with pytest.raises(ValueError, match="matrix"):
        sdp.FiniteRandomizer([[0.3333, 0.3333, 0.3333], [0.1, 0.2, 0.7]])


def test_an_output_that_reveals_the_value_is_refused_or_accounted() -> None:
    """A zero next to a positive probability: no finite epsilon0."""
    randomizer, refusal = result_or_refusal(lambda: sdp.FiniteRandomizer([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]))
    if randomizer is None:
        assert "matrix" in refusal
    else:
        assert randomizer.epsilon0 == inf
        bound = sdp.Shuffled(randomizer, n=2).delta(epsilon=5.0)
        assert bound.upper >= 0.5 * (1 - 1e-12)  # the first user sends 0 half of the time


def test_a_matrix_is_copied() -> None:
    matrix = np.array([[0.75, 0.25], [0.25, 0.75]])
    randomizer = sdp.FiniteRandomizer(matrix)
    matrix[:] = 0.5
    assert randomizer.epsilon0 == pytest.approx(log(3), rel=1e-12)


def test_an_unknown_analysis_is_refused_by_name() -> None:
    refuses(lambda: sdp.Shuffled(EIGHT, n=10, analysis="tail"), "analysis", "tail")


@pytest.mark.parametrize("analysis", ["exact", "strong"])
def test_an_analysis_that_does_not_apply_is_refused(analysis: str) -> None:
    """Of a randomizer of which only epsilon0 is known."""
    refuses(lambda: sdp.Shuffled(ANY, n=10, analysis=analysis), "analysis", analysis)


def test_only_randomizers_can_be_shuffled() -> None:
    with pytest.raises(TypeError, match="randomizer"):
        sdp.Shuffled(1.0, n=10)


def test_only_mechanisms_can_be_added() -> None:
    with pytest.raises(TypeError):
        DAILY + 1
    with pytest.raises(TypeError):
        DAILY + "weekly"
    with pytest.raises(TypeError):
        DAILY * DAILY


# Calibration


@pytest.mark.parametrize(
    ("settings", "parameter", "shown"),
    [
        ({"epsilon": -1.0, "delta": 1e-6, "n": 100}, "epsilon", "-1.0"),
        ({"epsilon": 1.0, "delta": 2.0, "n": 100}, "delta", "2.0"),
        ({"epsilon": 1.0, "delta": 1e-6, "n": 0}, "n", "0"),
        ({"epsilon": 1.0, "delta": 1e-6, "n": 100, "rounds": -1}, "rounds", "-1"),
        ({"epsilon": 1.0, "delta": 1e-6, "n": 100, "population": 50}, "population", "50"),
        ({"epsilon": 1.0, "delta": 1e-6, "n": 100, "solve_for": "colour"}, "solve_for", "colour"),
        ({"epsilon": 1.0, "delta": 1e-6, "population": 500, "rate": 1.5}, "rate", "1.5"),
    ],
)
def test_calibrate_names_what_is_wrong(settings: dict[str, Any], parameter: str, shown: str) -> None:
    refuses(lambda: sdp.calibrate(sdp.KaryRandomizedResponse, k=4, **settings), parameter, shown)


@pytest.mark.parametrize(
    ("kind", "solve_for", "known"),
    [
        (sdp.DiscreteGaussian, "epsilon0", "'sigma', 'n', 'rounds', 'cohort' for DiscreteGaussian"),
        (sdp.KaryRandomizedResponse, "sigma", "'epsilon0', 'gamma', 'n', 'rounds', 'cohort'"),
        (sdp.FiniteRandomizer, None, "one of 'n', 'rounds', 'cohort' for FiniteRandomizer"),
        (lambda epsilon0: sdp.Facts(epsilon0), "sigma", "one of 'epsilon0', 'n'"),
    ],
)
def test_calibrate_says_what_can_be_found_of_a_kind(kind: Any, solve_for: str | None, known: str) -> None:
    with pytest.raises(ValueError, match="solve_for must be one of") as refused:
        sdp.calibrate(kind, n=100, epsilon=1.0, delta=1e-6, solve_for=solve_for)
    assert known in str(refused.value)
    assert repr(solve_for or "epsilon0") in str(refused.value)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"solve_for": "n", "population": 500}, "population must be left out .* got 500: .*cohort"),
        ({"solve_for": "n", "population": 500, "poisson": True}, "population must be left out"),
        ({"solve_for": "n", "population": 500, "rate": 0.1}, "rate must be left out where n .* got 0.1"),
        ({"solve_for": "cohort", "population": 500, "rate": 0.1}, "rate must be left out where cohort"),
        ({"n": 100, "population": 500, "rate": 0.1}, "rate=0.1 stands in place .* got n=100, too"),
        ({"cohort": 100, "population": 500, "rate": 0.1}, "rate=0.1 .* got cohort=100, too"),
        ({"population": 500, "poisson": True, "rate": 0.1}, "rate=0.1 .* got poisson=True, too"),
        ({"rate": 0.1}, "rate=0.1 needs population"),
        ({"n": 100, "poisson": True}, "poisson=True needs population"),
    ],
)
def test_calibrate_refuses_sizes_that_say_a_thing_twice_or_half(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        sdp.calibrate(EIGHT, epsilon=1.0, delta=1e-6, **{"solve_for": "rounds"} | settings)


# The edges are valid and exact


@pytest.mark.parametrize("analysis", ["best", "blanket", "clones", "clones-2021"])
def test_one_user_has_the_local_guarantee(analysis: str) -> None:
    """H_alpha = (E - alpha) / (E + k - 1) for randomized response, k = 2 for the clones."""
    E = np.exp(2.0)
    k = 2 if analysis.startswith("clones") else 8
    mechanism = sdp.Shuffled(EIGHT, n=1, analysis=analysis)
    for epsilon in (0.0, 0.5, 1.9):
        bound = mechanism.delta(epsilon=epsilon)
        exact = (E - np.exp(epsilon)) / (E + k - 1)
        assert bound.upper == pytest.approx(exact, rel=1e-9)
        assert bound.upper >= exact * (1 - 1e-14)
    delta = 0.01
    assert mechanism.epsilon(delta=delta).upper == pytest.approx(log(E - delta * (E + k - 1)), rel=1e-9)


def test_the_certificate_of_one_user_is_a_point() -> None:
    for randomizer in (EIGHT, COIN):
        bound = sdp.Shuffled(randomizer, n=1).epsilon(delta=0.01)
        assert bound.upper - bound.lower <= 1e-9


@pytest.mark.parametrize("n", [1, 2, 1000, 10**9])
def test_no_local_privacy_loss_is_no_loss(n: int) -> None:
    for randomizer in (
        sdp.LocalRandomizer(epsilon0=0.0),
        sdp.KaryRandomizedResponse(k=5, epsilon0=0.0),
        sdp.KaryRandomizedResponse(k=5, gamma=1.0),
        sdp.BinaryRandomizedResponse(epsilon0=0.0),
        sdp.FiniteRandomizer([[0.25, 0.75], [0.25, 0.75]]),
    ):
        mechanism = sdp.Shuffled(randomizer, n=n)
        for m in (mechanism, 7 * mechanism, mechanism.sampled_from(2 * n)):
            assert (m.epsilon(delta=0.0).lower, m.epsilon(delta=0.0).upper) == (0, 0)
            assert (m.delta(epsilon=0.0).lower, m.delta(epsilon=0.0).upper) == (0, 0)
            assert m.profile(0.5).upper == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("n", [1, 3, 1000, 10**6])
def test_delta_one_asks_for_nothing(n: int) -> None:
    for randomizer in (ANY, EIGHT, COIN):
        mechanism = sdp.Shuffled(randomizer, n=n)
        for m in (mechanism, 5 * mechanism, mechanism.sampled_from(2 * n)):
            bound = m.epsilon(delta=1.0)
            assert (bound.lower, bound.upper) == (0, 0)


@pytest.mark.parametrize("n", [1, 3, 1000, 10**6])
def test_delta_zero_asks_for_the_largest_loss(n: int) -> None:
    """n equal reports of the value have likelihood ratio e^epsilon0 whatever the others hold."""
    for randomizer in (EIGHT, COIN, sdp.FiniteRandomizer([[0.75, 0.25], [0.25, 0.75]])):
        epsilon0 = randomizer.epsilon0
        mechanism = sdp.Shuffled(randomizer, n=n)
        bound = mechanism.epsilon(delta=0.0)
        assert bound.upper == pytest.approx(epsilon0, rel=1e-12)
        assert 0 <= bound.lower <= bound.upper
        rounds = (5 * mechanism).epsilon(delta=0.0)
        assert rounds.upper == pytest.approx(5 * epsilon0, rel=1e-9)
        cohort = mechanism.sampled_from(4 * n).epsilon(delta=0.0)
        assert cohort.upper == pytest.approx(log1p(0.25 * np.expm1(epsilon0)), rel=1e-9)


@pytest.mark.parametrize("n", [1, 3, 1000, 10**6])
def test_beyond_the_largest_loss_delta_is_zero(n: int) -> None:
    for randomizer in (ANY, EIGHT, COIN):
        epsilon0 = randomizer.epsilon0
        for analysis in ("best", "clones", "clones-2021"):
            mechanism = sdp.Shuffled(randomizer, n=n, analysis=analysis)
            for epsilon in (epsilon0, epsilon0 + 1e-9, epsilon0 + 1.0, 1000.0):
                bound = mechanism.delta(epsilon=epsilon)
                assert (bound.lower, bound.upper) == (0, 0)
            rounds = (3 * mechanism).delta(epsilon=3 * epsilon0 + 1e-9)
            assert rounds.lower == 0
            assert rounds.upper <= 1e-30


def test_no_rounds_lose_nothing() -> None:
    nothing = 0 * DAILY
    assert nothing.epsilon(delta=0.0).upper == 0
    assert nothing.delta(epsilon=0.0).upper == 0
    assert (nothing + DAILY).epsilon(delta=1e-6).upper == pytest.approx(
        DAILY.epsilon(delta=1e-6).upper, rel=2e-3
    )


@pytest.mark.parametrize(
    "mechanism",
    [DAILY, 3 * DAILY, DAILY.sampled_from(10**5), sdp.Shuffled(ANY, n=10), sdp.Shuffled(COIN, n=7)],
    ids=["one round", "three rounds", "a cohort", "any randomizer", "binary"],
)
def test_the_profile_starts_at_one_and_vanishes(mechanism: Any) -> None:
    start = mechanism.profile(0.0)
    assert start.upper == 1
    assert start.lower <= 1
    assert mechanism.profile(1e9).upper == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: sdp.Shuffled(sdp.LocalRandomizer(epsilon0=1e5), n=10),
        lambda: sdp.Shuffled(sdp.LocalRandomizer(epsilon0=800.0), n=10**6),
        lambda: sdp.Shuffled(sdp.KaryRandomizedResponse(k=10**9, epsilon0=50.0), n=10**9),
        lambda: sdp.Shuffled(EIGHT, n=10**18),
        lambda: sdp.Shuffled(EIGHT, n=10**30),
        lambda: 10**9 * DAILY,
        lambda: 10**30 * DAILY,
        lambda: DAILY.sampled_from(10**30),
    ],
    ids=["e^1e5", "e^800", "huge domain", "n=1e18", "n=1e30", "1e9 rounds", "1e30 rounds", "1e-27"],
)
@pytest.mark.filterwarnings("ignore::shuffledp.errors.CoarserBoundWarning")
def test_huge_numbers_get_a_bound_or_a_refusal_that_names_them(make: Callable[[], Any]) -> None:
    bound, refusal = result_or_refusal(lambda: make().epsilon(delta=1e-8))
    if bound is None:
        assert re.search(r"\b(n|epsilon0|k|rounds|population)\b", refusal)
    else:
        assert 0 <= bound.lower <= bound.upper


# Shapes


@pytest.mark.parametrize("mechanism", [DAILY, 3 * DAILY, DAILY.sampled_from(10**5)])
def test_arrays_in_arrays_out(mechanism: Any) -> None:
    grid = np.array([[0.0, 0.1, 0.2], [0.3, 0.4, 5.0]])
    bound = mechanism.delta(epsilon=grid)
    assert bound.lower.shape == bound.upper.shape == grid.shape
    assert np.all((bound.lower >= 0) & (bound.lower <= bound.upper) & (bound.upper <= 1))
    assert mechanism.profile([0.5, 1.0, 2.0]).upper.shape == (3,)
    assert mechanism.profile(np.array([])).upper.shape == (0,)


def test_a_scalar_bound_is_a_number() -> None:
    bound = DAILY.delta(epsilon=0.1)
    assert float(bound) == bound.upper
    assert isinstance(bound.upper, float)
    assert isinstance(bound.lower, float)
    assert repr(sdp.Bound(0.25, 0.5)) == "Bound(lower=0.25, upper=0.5)"
