"""f-DP and Renyi-DP of a mechanism, against closed forms and against all datasets of small rounds."""

import math
from fractions import Fraction
from itertools import product
from statistics import NormalDist

import numpy as np
import pytest

import shuffledp as sdp

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("epsilon0", [0.5, 2.0])
def test_one_user_s_trade_off_is_that_of_randomized_response(epsilon0: float) -> None:
    alone = sdp.Shuffled(sdp.BinaryRandomizedResponse(epsilon0=epsilon0), n=1)
    a = np.linspace(0.0, 1.0, 21)
    exact = np.maximum.reduce([1.0 - math.exp(epsilon0) * a, math.exp(-epsilon0) * (1.0 - a), 0.0 * a])
    found = alone.trade_off(a)
    assert np.all(found.lower <= exact + 1e-12)
    assert np.all(exact <= found.upper + 1e-12)
    assert np.asarray(found.upper) == pytest.approx(np.asarray(found.lower), abs=0.03)
    assert alone.trade_off(0.25).lower == pytest.approx(float(np.interp(0.25, a, np.asarray(found.lower))))


def smallest_miss(p: np.ndarray, q: np.ndarray, a: float) -> float:
    """Neyman-Pearson: the least type II error at type I error a, for laws p (accused) and q."""
    order = np.argsort(-(q / np.maximum(p, 1e-300)))
    false, caught = np.cumsum(p[order]), np.cumsum(q[order])
    return 1.0 - float(np.interp(a, np.append(0.0, false), np.append(0.0, caught)))


def test_no_test_between_small_datasets_beats_the_guarantee() -> None:
    k, n, e = 3, 3, Fraction(5)
    truth, lie = e / (e + k - 1), 1 / (e + k - 1)
    shuffled = sdp.Shuffled(sdp.KaryRandomizedResponse(k=k, epsilon0=math.log(5.0)), n=n)

    def law(data: tuple[int, ...]) -> dict[tuple[int, ...], float]:
        seen: dict[tuple[int, ...], float] = {}
        for reports in product(range(k), repeat=n):
            chance = math.prod(
                (truth if r == x else lie for r, x in zip(reports, data, strict=True)), start=Fraction(1)
            )
            key = tuple(sorted(reports))
            seen[key] = seen.get(key, 0.0) + float(chance)
        return seen

    a = np.array([0.01, 0.1, 0.3, 0.6])
    guaranteed = np.asarray(shuffled.trade_off(a).lower)
    for others in product(range(k), repeat=n - 1):
        p, q = (law((x, *others)) for x in (0, 1))
        rows = np.array([(p[key], q[key]) for key in p]).T
        misses = np.array([smallest_miss(rows[0], rows[1], float(level)) for level in a])
        assert np.all(guaranteed <= misses + 1e-12)


def test_what_some_reports_give_away_is_missed_by_no_test() -> None:
    rows = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
    shuffled = sdp.Shuffled(sdp.FiniteRandomizer(rows), n=2)
    a = np.array([0.0, 1e-6, 0.1, 0.3, 0.5, 0.9])

    def law(data: tuple[int, int]) -> np.ndarray:
        both = np.outer(rows[data[0]], rows[data[1]])
        return (both + np.tril(both, -1).T)[np.triu_indices(3)]

    misses = [
        [smallest_miss(law((x, z)), law((1 - x, z)), float(level)) for level in a]
        for x, z in product(range(2), repeat=2)
    ]
    exact = np.min(misses, axis=0)
    found = shuffled.trade_off(a)
    assert np.all(found.lower <= exact + 1e-12)
    assert np.all(exact <= found.upper + 1e-12)
    assert found.upper[0] == pytest.approx(0.5)  # no test that never errs finds more
    assert np.asarray(found.upper) == pytest.approx(np.asarray(found.lower), abs=0.03)


def test_trade_offs_of_losses_without_end_and_of_many_rounds_are_followed_where_they_fall() -> None:
    told = sdp.Shuffled(sdp.KaryRandomizedResponse(k=4, epsilon0=1.0), n=100, analysis="strong")
    found = told.trade_off(np.array([0.01, 0.1, 0.5]))
    assert np.asarray(found.upper) == pytest.approx(np.asarray(found.lower), abs=2e-3)
    no_privacy = sdp.Shuffled(sdp.KaryRandomizedResponse(k=4, epsilon0=60.0), n=4)
    assert no_privacy.trade_off(0.0).lower == pytest.approx(1.0)  # pure
    assert no_privacy.trade_off(0.01).upper < 1e-6


@pytest.mark.parametrize("order", [1.5, 4.0, 20.0])
def test_one_user_s_renyi_divergence_is_a_formula_and_rounds_add_up(order: float) -> None:
    k, epsilon0 = 4, 1.2
    lie = 1.0 / (math.exp(epsilon0) + k - 1)
    truth = lie * math.exp(epsilon0)
    total = truth**order * lie ** (1 - order) + lie**order * truth ** (1 - order) + (k - 2) * lie
    exact = math.log(total) / (order - 1)
    alone = sdp.Shuffled(sdp.KaryRandomizedResponse(k=k, epsilon0=epsilon0), n=1)
    found = alone.renyi(order)
    assert found.lower * (1 - 1e-9) <= exact <= found.upper * (1 + 1e-9)
    assert found.upper <= 1.01 * exact
    three = (3 * alone).renyi(order)
    assert three.upper == pytest.approx(3 * found.upper)


@pytest.mark.thorough
def test_renyi_of_a_crowd_bounds_its_epsilon() -> None:
    crowd = sdp.Shuffled(sdp.KaryRandomizedResponse(k=5, epsilon0=2.0), n=1000)
    found = crowd.renyi(8.0)
    assert 0.0 < found.lower <= found.upper <= 1.05 * found.lower
    with pytest.raises(ValueError, match="order must be"):
        crowd.renyi(1.0)
    for outside in (1.5, -0.1, math.nan, [0.5, -math.inf]):
        with pytest.raises(ValueError, match=r"alpha must be in \[0, 1\], got"):
            crowd.trade_off(outside)


@pytest.mark.thorough
def test_renyi_of_gaussian_noise_has_a_lower_end_though_its_far_tail_has_no_certificate() -> None:
    noisy = sdp.Shuffled(sdp.DiscreteGaussian(sigma=1.0, levels=4), n=2000)
    found = noisy.renyi(2.0)
    assert 0.8 * found.upper <= found.lower <= found.upper
    # Of many people the losses are about normal, and so is the divergence: order * mu^2 / 2.
    assert found.lower == pytest.approx(noisy.gaussian_limit().lower ** 2, rel=0.05)


def normal_epsilon(mu: float, delta: float) -> float:
    """Of N(0, 1) and N(mu, 1), by bisection."""
    phi = NormalDist().cdf
    low, high = 0.0, 60.0 * mu
    for _ in range(100):
        e = 0.5 * (low + high)
        less = phi(-e / mu + 0.5 * mu) - math.exp(e) * phi(-e / mu - 0.5 * mu) <= delta
        low, high = (low, e) if less else (e, high)
    return high


@pytest.mark.parametrize(
    "randomizer",
    [
        sdp.KaryRandomizedResponse(k=16, epsilon0=2.0),
        sdp.BinaryRandomizedResponse(epsilon0=1.0),
        sdp.LocalRandomizer(epsilon0=1.0),
    ],
)
def test_large_crowds_are_near_their_gaussian_limit(randomizer: object) -> None:
    one = sdp.Shuffled(randomizer, n=10**6)
    for mechanism in (one, 30 * one, one.sampled_from(10**7)):
        limit, found = mechanism.gaussian_limit(), mechanism.epsilon(delta=1e-6)
        assert found.lower == pytest.approx(normal_epsilon(limit.lower, 1e-6), rel=0.02)
        assert found.upper == pytest.approx(normal_epsilon(limit.upper, 1e-6), rel=0.04)


def rounds_of(randomizer: object) -> dict[str, sdp.Shuffled]:
    """Everybody, cohorts, coins, and the same where half of the people are honest."""
    few, many = (sdp.Shuffled(randomizer, n=n) for n in (10**4, 10**6))
    return {
        "few": few,
        "many": many,
        "half honest": sdp.Shuffled(randomizer, n=10**6, honest_fraction=0.5),
        "small cohort": few.sampled_from(10**6),
        "cohort": many.sampled_from(10**7),
        "half honest cohort": many.sampled_from(10**7, honest_fraction=0.5),
        "coins": many.sampled_from(10**7, poisson=True),
        "many coins": many.sampled_from(2 * 10**6, rate=0.5),
        "half honest coins": many.sampled_from(10**7, rate=0.2, honest_fraction=0.5),
    }


@pytest.mark.parametrize("epsilon0", [1.0, 4.0])
def test_cohorts_coins_and_honest_people_are_near_their_gaussian_limit(epsilon0: float) -> None:
    for name, one in rounds_of(sdp.KaryRandomizedResponse(k=16, epsilon0=epsilon0)).items():
        limit, found = one.gaussian_limit(), one.epsilon(delta=1e-6)
        near = 0.02 if name == "few" else 0.005
        assert found.lower == pytest.approx(normal_epsilon(limit.lower, 1e-6), rel=near), name
        assert found.upper == pytest.approx(normal_epsilon(limit.upper, 1e-6), rel=near), name


@pytest.mark.parametrize("epsilon0", [1.0, 4.0])
@pytest.mark.parametrize("k", [2, 16])
def test_the_shuffle_index_is_that_of_the_randomizer_whoever_is_asked(k: int, epsilon0: float) -> None:
    """The loss of one report among many others who hold a third value, or (k = 2) one of two: chi-square."""
    p = 1.0 / (math.exp(epsilon0) + k - 1.0)
    own, gap = math.exp(epsilon0) * p, (math.exp(epsilon0) - 1.0) * p
    index = math.sqrt(own * p) / gap if k == 2 else math.sqrt(0.5 * p) / gap
    for name, one in rounds_of(sdp.KaryRandomizedResponse(k=k, epsilon0=epsilon0)).items():
        assert one.shuffle_index == pytest.approx(index, rel=0.004), name


@pytest.mark.parametrize(
    "randomizer", [sdp.LocalRandomizer(epsilon0=1.0), sdp.DiscreteLaplace(epsilon0=1.0, levels=4)]
)
def test_the_shuffle_index_does_not_depend_on_who_is_asked(randomizer: object) -> None:
    index = sdp.Shuffled(randomizer, n=10**6).shuffle_index
    for name, one in rounds_of(randomizer).items():
        assert one.shuffle_index == pytest.approx(index, rel=0.004), name


def test_what_reveals_nothing_has_an_infinite_shuffle_index() -> None:
    assert sdp.Shuffled(sdp.KaryRandomizedResponse(k=3, epsilon0=0.0), n=10).shuffle_index == math.inf


def test_reports_that_only_one_input_sends_have_an_infinite_renyi_divergence() -> None:
    zeros = sdp.Shuffled(sdp.FiniteRandomizer([[1.0, 0.0], [0.5, 0.5]]), n=100)
    found = zeros.renyi([1.5, 4.0])
    assert found.lower.tolist() == found.upper.tolist() == [math.inf, math.inf]


@pytest.mark.thorough
def test_a_list_of_renyi_orders_is_what_an_accountant_of_renyi_dp_takes() -> None:
    rdp = pytest.importorskip("dp_accounting.rdp.rdp_privacy_accountant")
    month = 30 * sdp.Shuffled(sdp.KaryRandomizedResponse(k=16, epsilon0=2.0), n=10**5)
    orders = [2.0, 16.0, 64.0, 256.0]
    found = month.renyi(orders)
    assert found.upper.shape == (4,)
    alone = month.renyi(16.0)  # another enclosure of the same: cells are shared in a list
    assert alone.lower <= found.upper[1] == pytest.approx(alone.upper, rel=1e-3)
    assert found.lower[1] <= alone.upper
    theirs, _ = rdp.compute_epsilon(orders, found.upper, 1e-8)
    ours = month.epsilon(delta=1e-8)
    assert ours.lower <= theirs <= 1.4 * ours.upper
