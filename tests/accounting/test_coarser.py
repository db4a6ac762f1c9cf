"""Where a certificate cannot be given, a coarser one is, and a warning says so."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp._certified.rounding import Floats
from shuffledp.accounting._curves.clones import strong_clones
from shuffledp.accounting._curves.profile import PrivacyProfile, SupportingLines
from shuffledp.accounting.mechanism import KnownLoss

pytestmark = pytest.mark.quick

CURVE = strong_clones(2.0, 1000)


@dataclass(frozen=True)
class Patchy(PrivacyProfile):
    """The curve of 1000 clones, with an interval of epsilon where no sum can be had."""

    first: float
    last: float

    @property
    def epsilon_max(self) -> float:
        return CURVE.epsilon_max

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        self._check(epsilon)
        return CURVE.upper(epsilon, resolution)

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        self._check(epsilon)
        return CURVE.support(epsilon, resolution)

    def _check(self, epsilon: Floats) -> None:
        if np.any((epsilon >= self.first) & (epsilon <= self.last)):
            raise sdp.NoCertificateError("too many frequencies carry mass")


def test_one_point_without_a_certificate_spoils_no_other() -> None:
    points = np.linspace(0.0, 1.0, 11)
    plain = KnownLoss(CURVE).delta(epsilon=points).upper
    with pytest.warns(sdp.CoarserBoundWarning, match=r"delta\(0.3\) is what the pure epsilon alone says"):
        patchy = KnownLoss(Patchy(0.295, 0.305)).delta(epsilon=points).upper
    others = points != points[3]
    assert patchy[others] == pytest.approx(plain[others], rel=1e-10)
    most = (math.exp(2.0) - math.exp(0.3)) / (math.exp(2.0) + 1.0)
    assert plain[3] < most <= patchy[3] <= most * (1.0 + 1e-14)


@pytest.mark.parametrize("rounds", [1, 3])
def test_the_pure_epsilon_is_an_answer(rounds: int) -> None:
    nowhere = rounds * KnownLoss(Patchy(-1.0, 10.0))
    with pytest.warns(sdp.CoarserBoundWarning, match="the upper end is the pure epsilon"):
        answer = nowhere.epsilon(delta=1e-6)
    assert 2.0 * rounds <= answer.upper <= 2.0 * rounds * (1.0 + 1e-14)


@dataclass(frozen=True)
class Unbounded(Patchy):
    """The same with losses that may be infinite, rarely; and no lines below it."""

    @property
    def epsilon_max(self) -> float:
        return math.inf

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        return CURVE.upper(epsilon, resolution) + 1e-12

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        raise sdp.NoCertificateError("no line")


@pytest.mark.parametrize("rounds", [1, 3])
def test_rounds_by_themselves_are_an_answer(rounds: int) -> None:
    """Basic composition: (epsilon_1, delta/T) each."""
    with pytest.warns(sdp.CoarserBoundWarning, match="of every round by itself"):
        found = (rounds * KnownLoss(Unbounded(0.0, 0.0))).epsilon(delta=3e-6)
    each = KnownLoss(CURVE).epsilon(delta=3e-6 / rounds).upper
    assert rounds * each * (1.0 - 1e-4) <= found.upper <= rounds * each * 1.05


def test_one_delta_without_an_answer_spoils_no_other() -> None:
    with pytest.warns(sdp.CoarserBoundWarning) as said:
        found = KnownLoss(Unbounded(0.0, 0.0)).epsilon(delta=[1e-6, 1e-13])
    assert found.upper[0] < 1.0
    assert found.upper[1] == math.inf
    assert "at 1e-13 nothing is known" in str(said[-1].message)
    assert "ask for a larger delta" in str(said[-1].message)


def test_one_mechanism_without_an_answer_spoils_no_other() -> None:
    known = sdp.Shuffled(sdp.KaryRandomizedResponse(k=4, epsilon0=1.0), n=1000)
    with pytest.warns(sdp.CoarserBoundWarning, match="nothing is known"):
        found = sdp.epsilon_of_each([known, KnownLoss(Unbounded(0.0, 0.0))], delta=1e-13)
    assert found.upper[0] == pytest.approx(known.epsilon(delta=1e-13).upper, rel=1e-9)
    assert (found.lower[1], found.upper[1]) == (0.0, math.inf)


def test_two_outcomes_of_odds_e_tell_the_most() -> None:
    """(E - alpha)/(E + 1) by brute force: random pairs with ratios in [1/E, E]."""
    rng = np.random.default_rng(5)
    for _ in range(300):
        limit = math.exp(rng.uniform(0.1, 4.0))
        q = rng.dirichlet(np.ones(6))
        ratio = np.exp(rng.choice([-1.0, 1.0, 0.3], 6) * math.log(limit))
        p = q * ratio
        p /= p.sum()
        worst = max((p / q).max(), (q / p).max())
        for alpha in (1.0, 1.5, 0.9 * worst):
            told = np.maximum(p - alpha * q, 0.0).sum()
            assert told <= max((worst - alpha) / (worst + 1.0), 0.0) + 1e-15


def test_rounds_that_were_refused_are_answered() -> None:
    """Two rounds of a large alphabet: nearly all frequencies carry mass, and one transform has them all."""
    twice = 2 * sdp.Shuffled(sdp.KaryRandomizedResponse(k=256, epsilon0=4.81), n=4900)
    at = twice.delta(epsilon=0.0756, tolerance=0.01)
    assert 0.0411 < at.lower <= at.upper < 0.0417


def test_clones_of_few_people_are_summed_closely() -> None:
    """The stored number of a peer, at its own precision, is not below ours at the default tolerance."""
    assert sdp.Shuffled(sdp.LocalRandomizer(1.0), n=100).upper_epsilon(delta=1e-6) <= 0.5160515
