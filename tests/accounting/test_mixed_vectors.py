"""Vectors by shuffled shares (T22): the curve, and the whole protocol with all shares enumerated."""

import math
from itertools import product
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import shuffledp as sdp
from oracles.shares import Law, mixed, shuffled_shares
from shuffledp._certified.rounding import Floats
from shuffledp.accounting._curves.cohort_pair import CohortPair
from shuffledp.accounting._curves.gaussian_sum import GaussianSumProfile
from shuffledp.accounting._curves.noisy_sum import NoisySumProfile
from shuffledp.accounting._curves.subsampled import SubsampledProfile

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("shift", [1e-3, 0.24, 1.7, 9.0])
def test_the_curve_is_that_of_two_normal_laws(shift: float) -> None:
    flint = pytest.importorskip("flint")
    epsilon = np.linspace(0.0, min(8.0 * shift + 2.0, 40.0), 33)
    lines = GaussianSumProfile(shift).support(epsilon, 0.0)
    upper = GaussianSumProfile(shift).upper(epsilon, 0.0)
    flint.ctx.prec = 300

    def phi(x: Any) -> Any:
        return (-x / flint.arb(2).sqrt()).erfc() / 2

    for e, high, low, few, many in zip(
        epsilon, upper, lines.value, lines.slope_low, lines.slope_high, strict=True
    ):
        mu, at = flint.arb(shift), flint.arb(float(e))
        event = phi(-mu / 2 - at / mu)
        exact = phi(mu / 2 - at / mu) - at.exp() * event
        assert flint.arb(float(low)) <= exact <= flint.arb(float(high))
        assert flint.arb(float(few)) <= event <= flint.arb(float(many)) + 1e-290
        if exact > 1e-250:
            assert high <= low * (1.0 + 1e-9) + 1e-16


def test_far_tails_and_slack_keep_the_curve_above_and_its_lines_below() -> None:
    far = GaussianSumProfile(30.0)
    points = np.array([600.0, 680.0])
    assert (far.support(points, 0.0).value <= far.upper(points, 0.0)).all()
    raised = GaussianSumProfile(1.0, 1e-4)
    epsilon = np.linspace(0.0, 12.0, 61)
    upper = raised.upper(epsilon, 0.0)
    plain = GaussianSumProfile(1.0).upper(epsilon, 0.0) + 1e-4 * (1.0 + np.exp(epsilon))
    assert np.all(upper >= np.minimum.accumulate(plain) * (1.0 - 1e-9) - 1e-3 * plain.min())
    assert np.all(upper <= plain * (1.0 + 1e-9))
    assert raised.infinite_loss <= upper.min()


def folded(variance: float, q: int) -> Floats:
    k = np.arange(-200 * q, 200 * q)
    law = np.exp(-0.5 * k * k / variance)
    return np.asarray(np.bincount(k % q, weights=law / law.sum(), minlength=q))


@pytest.mark.parametrize("alpha", [1.0, 1.2, 2.0])
def test_the_whole_protocol_gives_away_no_more_and_no_less_than_is_said(alpha: float) -> None:
    """Two people, two coordinates of -1, 0, 1, three shares modulo four: noise and shares enumerated."""
    n, m, q, variance = 2, 3, 4, 1.0
    noise = folded(variance, q)
    shown = {x: shuffled_shares(x, m, q) for x in product(range(q), repeat=n)}

    def coordinate(x: int, y: int) -> Law:
        """What is seen of one coordinate; noise is folded modulo q."""
        pairs = product(range(q), repeat=2)
        return mixed((noise[a] * noise[b], shown[(x + a) % q, (y + b) % q]) for a, b in pairs)

    def whole(x: tuple[int, int], y: tuple[int, int]) -> tuple[Floats, Floats]:
        laws = (sorted(coordinate(a, b).items()) for a, b in zip(x, y, strict=True))
        first, second = (np.array([float(mass) for _, mass in law]) for law in laws)
        return first, second

    one = sdp.MixedVectors(n=n, dimension=2, farthest=8, variance=variance, messages=m, modulus=q)
    found = one.delta(epsilon=math.log(alpha))
    vectors = list(product((-1, 0, 1), repeat=2))
    for x, other in (((1, 1), (-1, -1)), ((1, 0), (-1, 0)), ((0, 0), (1, 1))):
        for y in vectors[:3]:
            p, r = (np.outer(*whole(v, y)) for v in (x, other))
            assert np.maximum(p - alpha * r, 0.0).sum() <= found.upper
    p, r = (np.outer(*whole(v, (0, 0))) for v in ((1, 1), (-1, -1)))
    assert found.lower <= np.maximum(p - alpha * r, 0.0).sum()


def test_hockey_sticks_of_one_coordinate_lie_between_the_ends_of_the_noisy_sum() -> None:
    """One coordinate, noise wide enough for the lemma, against the exact law of the sum."""
    variance, n, levels = 5.0, 3, 6
    k = np.arange(-400, 401)
    share = np.exp(-0.5 * k * k / variance)
    share /= share.sum()
    law = np.convolve(np.convolve(share, share), share)
    moved = np.roll(law, levels)
    one = sdp.MixedVectors(
        n=n, dimension=1, farthest=levels**2, variance=variance, messages=40, modulus=2**20
    )
    for epsilon in (0.0, 0.5, 1.5, 3.0):
        exact = np.maximum(moved - math.exp(epsilon) * law, 0.0).sum()
        bound = one.delta(epsilon=epsilon)
        assert bound.lower <= exact <= bound.upper + 1e-15


def test_rounds_are_those_of_gaussian_noise() -> None:
    one = sdp.MixedVectors(
        n=10**4, dimension=50, farthest=2000**2, variance=7200.0, messages=9, modulus=2**28
    )
    for rounds in (1, 4, 25):
        bound = (rounds * one).epsilon(delta=1e-6)
        mu = math.sqrt(rounds * 2000**2 / (1e4 * 7200.0))

        def delta(epsilon: float, mu: float = mu) -> float:
            phi = NormalDist().cdf
            return phi(mu / 2 - epsilon / mu) - math.exp(epsilon) * phi(-mu / 2 - epsilon / mu)

        assert delta(bound.lower) >= 0.99e-6
        assert delta(bound.upper) <= 1.01e-6
        assert bound.upper <= 1.005 * bound.lower
    fewer = sdp.MixedVectors(
        n=9000, dimension=50, farthest=2000**2, variance=7200.0, messages=9, modulus=2**28
    )
    assert one.epsilon(delta=1e-6).upper < fewer.epsilon(delta=1e-6).upper < 1.08


@pytest.mark.parametrize("share", [0.01, 0.3, 0.9])
def test_a_cohort_s_pair_is_its_definition_in_both_directions(share: float) -> None:
    """Discrete Laplace noise: both populations' laws written out."""
    levels, scale = 6, 4.0
    k = np.arange(-400, 420)
    p, q = (np.exp(-np.abs(k - move) / scale) * math.tanh(0.5 / scale) for move in (levels, 0))
    mixture = share * p + (1.0 - share) * q
    pair = CohortPair(NoisySumProfile(levels, scale), share)
    forward, backward = pair.directions
    epsilon = np.linspace(0.0, 1.4, 15)
    for curve, first, second in ((forward, mixture, q), (backward, q, mixture)):
        exact = np.array([np.maximum(first - math.exp(e) * second, 0.0).sum() for e in epsilon])
        lines = curve.support(epsilon, 1e-3)
        assert np.all(lines.value <= exact * (1 + 1e-12) + 1e-15)
        assert lines.value == pytest.approx(exact, abs=1e-9)
        for value, low, high, e in zip(lines.value, lines.slope_low, lines.slope_high, epsilon, strict=True):
            for at, other in zip(np.exp(epsilon), exact, strict=True):
                slope = low if at < math.exp(e) else high
                assert value - slope * (at - math.exp(e)) <= other + 1e-9
    upper = SubsampledProfile(NoisySumProfile(levels, scale), share).upper(epsilon, 1e-3)
    exact = np.array([np.maximum(mixture - math.exp(e) * q, 0.0).sum() for e in epsilon])
    assert np.all(exact <= upper * (1 + 1e-12) + 1e-15)


def test_cohorts_of_vectors_and_of_sums_are_enclosed() -> None:
    vectors = sdp.MixedVectors(
        n=2000, dimension=100, farthest=2000**2, variance=8000.0, messages=12, modulus=2**24
    )
    for one in (
        sdp.Cohort(vectors, population=60_000),
        sdp.Cohort(sdp.MixedSum(n=2000, levels=10, scale=8.0, messages=10, modulus=2**20), population=10_000),
    ):
        for rounds in (1, 20):
            bound = (rounds * one).epsilon(delta=1e-6)
            assert 0.0 < bound.lower <= bound.upper <= 1.25 * bound.lower
        assert one.epsilon(delta=1e-6).upper < one.one.epsilon(delta=1e-6).upper
    assert sdp.Cohort(vectors, population=2000).epsilon(delta=1e-6) == vectors.epsilon(delta=1e-6)
    with pytest.raises(ValueError, match="population must be"):
        sdp.Cohort(vectors, population=1999)
    with pytest.raises(TypeError, match="one must be"):
        sdp.Cohort(sdp.Shuffled(sdp.LocalRandomizer(1.0), n=10), population=20)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"variance": 0.5}, "variance must be at least"),
        ({"attained": 101}, "attained must be"),
        ({"messages": 1}, "messages must be"),
        ({"noise_distance": 2.0}, "noise_distance must be"),
    ],
)
def test_parameters_out_of_range(change: dict[str, Any], words: str) -> None:
    parameters: dict[str, Any] = {
        "n": 10,
        "dimension": 2,
        "farthest": 100,
        "variance": 5.0,
        "messages": 5,
        "modulus": 64,
    }
    with pytest.raises(ValueError, match=words):
        sdp.MixedVectors(**(parameters | change))


def test_few_people_or_few_messages_certify_nothing() -> None:
    tiny = sdp.MixedVectors(n=10, dimension=2, farthest=4, variance=5.0, messages=3, modulus=8)
    assert tiny.epsilon(delta=1e-6).upper == math.inf
    alone = sdp.MixedVectors(n=1, dimension=2, farthest=4, variance=500.0, messages=3, modulus=2**12)
    assert alone.epsilon(delta=1e-6).upper < 1.0  # one person, all of whose noise is enough
