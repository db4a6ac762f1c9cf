"""What the paper prints for k-ary randomized response: reproduced, and below the truth where it is."""

import math
from fractions import Fraction

import numpy as np
import pytest

import shuffledp as sdp
from oracles import pairs
from oracles.brute import k_ary, shuffled_pairs, worst
from oracles.golden import Golden, entries
from oracles.hockey import hockey_stick
from response import krr_blanket, krr_witnesses
from shuffledp.accounting._curves.clones import strong_adversary, strong_clones
from shuffledp.accounting._curves.profile import PrivacyProfile
from shuffledp.literature._solve import smallest_below
from shuffledp.literature.as_published.koskela_2023 import (
    clones_figure_as_published,
    renyi_figure_as_published,
    specific_clones_as_published,
    strong_figure_as_published,
    strong_tail_as_published,
    strong_tail_joint_as_published,
    subsampled_curve_as_published,
    subsampled_delta_as_published,
    subsampled_epsilon_as_published,
    subsampled_pair_as_published,
    weak_tail_as_published,
    weak_tail_joint_as_published,
)
from shuffledp.literature.cohorts import koskela_2023_cohort
from shuffledp.literature.girgis import girgis_2021_epsilon
from shuffledp.papers.koskela_2023._figures import STORED

pytestmark = pytest.mark.quick

CLOSE = 1e-9


def lower(profile: PrivacyProfile, epsilon: float) -> float:
    """A certified lower bound of the curve."""
    return float(profile.support(np.array([epsilon]), 1e-4).value[0])


def upper(profile: PrivacyProfile, epsilon: float) -> float:
    return float(profile.upper(np.array([epsilon]), 1e-4)[0])


def epsilon0_of(k: int, gamma: float) -> float:
    return math.log(k * (1 - gamma) / gamma + 1)


@pytest.mark.parametrize("golden", entries("strong_tail_indep", "strong_tail_joint"), ids=str)
def test_strong_tails_have_their_golden_values(golden: Golden) -> None:
    joint = golden.name == "strong_tail_joint"
    tail = strong_tail_joint_as_published if joint else strong_tail_as_published
    at = golden.params
    found = tail(at["n"], at["k"], golden.number("gamma"), golden.number("eps"))
    assert found == pytest.approx(golden.delta, rel=CLOSE)


@pytest.mark.parametrize("golden", entries("weak_tail_joint"), ids=str)
def test_the_weak_tail_has_its_golden_value(golden: Golden) -> None:
    n, k, E = golden.params["n"], golden.params["k"], math.exp(golden.number("eps0"))
    found = weak_tail_joint_as_published(n, k, k / (E + k - 1), golden.number("eps"))
    assert found == pytest.approx(golden.delta, rel=CLOSE)


@pytest.mark.parametrize("golden", entries("fmt22_krr2d_delta"), ids=str)
def test_specific_clones_have_their_golden_values(golden: Golden) -> None:
    at = golden.params
    found = specific_clones_as_published(at["k"], golden.number("eps0"), at["n"], golden.number("eps"))
    assert found == pytest.approx(golden.delta, rel=CLOSE)


@pytest.mark.parametrize(
    ("k", "gamma", "epsilon", "truth", "printed"),
    [(2, 0.9, 0.3, 6.19e-9, 1.47e-9), (2, 0.9, 0.5, 9.2e-17, 1.9e-22), (3, 0.9, 0.5, 1.57e-12, 9.1e-13)],
)
def test_independent_counts_fall_below_the_strong_adversary(
    k: int, gamma: float, epsilon: float, truth: float, printed: float
) -> None:
    found = strong_tail_as_published(1000, k, gamma, epsilon)
    assert found == pytest.approx(printed, rel=0.02)
    certified = lower(strong_adversary(k, gamma, 1 - gamma, 1000), epsilon)
    assert certified == pytest.approx(truth, rel=0.02)
    assert found < certified


def test_joint_tails_stay_above_the_adversaries_and_are_never_tight() -> None:
    for n, k, gamma, epsilon in ((20, 2, 0.9, 0.1), (60, 4, 0.4, 0.3), (200, 3, 0.9, 0.2)):
        strong = upper(strong_adversary(k, gamma, 1 - gamma, n), epsilon)
        assert strong_tail_joint_as_published(n, k, gamma, epsilon) > 1.5 * strong
        weak = upper(krr_blanket(k, epsilon0_of(k, gamma), n), epsilon)
        assert weak_tail_joint_as_published(n, k, gamma, epsilon) > 1.5 * weak


def test_independent_counts_given_the_blanket_fall_below_a_concrete_dataset() -> None:
    """n = 1000, k = 2, gamma = 1/2, epsilon = 0.2: the exact mechanism has 1.07e-9."""
    found = weak_tail_as_published(1000, 2, 0.5, 0.2)
    assert found == pytest.approx(2.3e-10, rel=0.02)
    truth = max(lower(pair, 0.2) for pair in krr_witnesses(2, epsilon0_of(2, 0.5), 1000))
    assert truth == pytest.approx(1.07e-9, rel=0.02)
    assert found < truth


def test_the_weak_adversary_at_the_settings_of_the_paper() -> None:
    """n = 1000, k = 4, gamma = 1/4, epsilon = 1: printed 6.17e-15, exact mechanism at least 4.75e-14."""
    epsilon0 = epsilon0_of(4, 0.25)
    truth = max(lower(pair, 1.0) for pair in krr_witnesses(4, epsilon0, 1000))
    assert truth == pytest.approx(4.75e-14, rel=0.01)
    assert weak_tail_as_published(1000, 4, 0.25, 1.0) == pytest.approx(6.17e-15, rel=0.01)
    assert weak_tail_joint_as_published(1000, 4, 0.25, 1.0) == pytest.approx(2.31e-12, rel=0.01)
    assert upper(krr_blanket(4, epsilon0, 1000), 1.0) == pytest.approx(5.23e-14, rel=0.01)


def test_figure_4_shows_the_hockey_stick_given_a_truthful_answer_not_the_theorem() -> None:
    """Five values of delta from 10^-4 to 10^-7, evenly spaced in their logarithms."""
    setting = 1000, 4, 0.25
    stored = (0.5473, 0.6415, 0.7288, 0.8113, 0.8903)
    for delta, epsilon in zip(np.geomspace(1e-4, 1e-7, 5), stored, strict=True):
        found = smallest_below(lambda e: strong_figure_as_published(*setting, e), delta, 3.0, 1e-4)
        assert found == pytest.approx(epsilon, abs=2e-4)
        truth = 0.75 * strong_figure_as_published(*setting, epsilon)
        certified = strong_adversary(4, 0.25, 0.75, 1000)
        assert lower(certified, epsilon) * 0.999 <= truth <= upper(certified, epsilon) * 1.001
    for delta, epsilon in ((1e-4, 0.7066), (1e-7, 1.0296)):
        theorem = smallest_below(lambda e: strong_tail_joint_as_published(*setting, e), delta, 3.0, 1e-3)
        alone = smallest_below(lambda e: strong_tail_as_published(*setting, e), delta, 3.0, 1e-3)
        assert min(abs(theorem - epsilon), abs(alone - epsilon)) < 2e-3


def test_the_curves_of_figure_4_at_its_fourth_delta() -> None:
    """Weak .5755, clones .6254, strong .7978 where delta is 5.6e-7."""
    epsilon0, delta = epsilon0_of(4, 0.25), 10**-6.25
    for profile, epsilon in (
        (krr_blanket(4, epsilon0, 1000), 0.5755),
        (strong_clones(epsilon0, 1000), 0.6254),
        (strong_adversary(4, 0.25, 0.75, 1000), 0.7978),
    ):
        assert upper(profile, epsilon + 2e-4) <= delta * 1.001
        assert lower(profile, epsilon - 2e-4) >= delta * 0.999


def test_specific_clones_are_below_the_exact_value_of_two_users() -> None:
    """k = 3, e^epsilon0 = 2, alpha = 5/3: the pair gives 1/48, the mechanism has 1/24."""
    E, alpha = Fraction(2), Fraction(5, 3)
    assert worst(shuffled_pairs(k_ary(3, E), 2), alpha) == Fraction(1, 24)
    assert hockey_stick(pairs.two_count_as_published(2, 3, E), alpha) == Fraction(1, 48)
    found = specific_clones_as_published(3, math.log(2), 2, math.log(5 / 3))
    assert found == pytest.approx(1 / 48, rel=1e-12)


@pytest.mark.parametrize(
    ("n", "k", "epsilon0", "epsilon", "printed", "truth"),
    [
        (1000, 16, 4.0, 1.4, 7.304e-7, 7.740e-7),
        (1000, 4, math.log(13), 1.0, 4.363e-14, 4.747e-14),
        (100, 4, 2.0, 1.5, 5.90e-10, 3.61e-9),
    ],
)
def test_specific_clones_fall_below_a_concrete_dataset(
    n: int, k: int, epsilon0: float, epsilon: float, printed: float, truth: float
) -> None:
    found = specific_clones_as_published(k, epsilon0, n, epsilon)
    assert found == pytest.approx(printed, rel=2e-3)
    certified = max(lower(pair, epsilon) for pair in krr_witnesses(k, epsilon0, n))
    assert certified == pytest.approx(truth, rel=5e-3)
    assert found < certified


def test_specific_clones_of_three_users_miss_by_a_twentieth() -> None:
    """k = 3, e^epsilon0 = 5: some alpha has an exact value larger by 0.055."""
    truth = shuffled_pairs(k_ary(3, Fraction(5)), 3)
    gaps = [
        float(worst(truth, Fraction(math.exp(e)))) - specific_clones_as_published(3, math.log(5), 3, e)
        for e in np.linspace(0.0, 1.6, 81)
    ]
    assert max(gaps) == pytest.approx(0.055, abs=2e-3)


def test_for_two_symbols_specific_clones_are_the_clones() -> None:
    for epsilon in (0.1, 1.0):
        found = specific_clones_as_published(2, 2.0, 50, epsilon)
        profile = strong_clones(2.0, 50)
        assert lower(profile, epsilon) * (1 - 1e-6) <= found <= upper(profile, epsilon) * (1 + 1e-6)


def test_the_script_without_its_slip_is_lemma_7_and_with_it_every_loss_is_too_large() -> None:
    """Losses are rounded up by a step at most; the slip adds about gamma q (1 - q), q = E/(E + 1)."""
    one = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=3.0), n=1000, analysis="clones").sampled_from(10**5)
    lemma, step, epsilon = koskela_2023_cohort(one), 1e-7, np.array([0.001, 0.005, 0.01])
    truth = lemma.upper_delta(epsilon=epsilon)
    found = subsampled_curve_as_published(3.0, 1000, 0.01, np.exp(epsilon), step, slip=False)
    assert found == pytest.approx(truth, rel=3e-3)
    assert (subsampled_curve_as_published(3.0, 1000, 0.01, np.exp(epsilon), step) > 1.1 * truth).all()
    drift = 0.01 * math.exp(3.0) / (math.exp(3.0) + 1.0) ** 2
    assert drift < subsampled_epsilon_as_published(3.0, 1000, 0.01, 1, 0.0) < 1.2 * drift


def test_the_slips_of_the_scripts_give_back_what_they_stored_and_drew() -> None:
    kept = STORED["figure-1"]
    for rounds, stored in kept["feldman"].items():
        again = renyi_figure_as_published(4.0, 10**4, int(rounds), np.array(kept["epsilon"]))
        assert again == pytest.approx(stored, rel=5e-5)
    kept = STORED["figure-3"]
    for rounds, stored in zip(kept["rounds"], kept["pld"], strict=True):
        found = subsampled_epsilon_as_published(3.0, 1000, 0.01, rounds, 1e-5)
        assert found == pytest.approx(stored, rel=5e-5 if rounds < 10**4 else 2e-3)
    kept = STORED["figure-2"]
    for size in (500, 3000):
        drawn = subsampled_delta_as_published(3.0, 10**4, 0.01, size, 2000, np.array(kept["epsilon"]))
        assert drawn == pytest.approx(kept[str(size)], rel=1e-3)
    alone = subsampled_pair_as_published(3.0, 10**4, 0.01, 2000, np.array(kept["epsilon"]))
    assert alone == pytest.approx(kept["one form"], rel=2e-3)
    for rounds, stored in STORED["figure-4"]["clones"].items():
        levels = clones_figure_as_published(1000, 4, 0.25, int(rounds), np.array(stored))
        assert levels == pytest.approx(np.geomspace(1e-4, 1e-7, 5), rel=0.01)  # they stopped within 1e-9


def test_the_stored_bound_of_girgis_has_half_of_its_last_term() -> None:
    """girgis_upper.py: Theorem 1, (47), with (E^2 - 1)/(2 E) in the last term; orders to 1000."""
    E, gamma, k, delta = math.exp(3.0), 0.01, 1000, 1e-5
    counted = math.floor((k - 1) / (2 * E)) + 1

    def epsilon(rounds: int, order: int) -> float:
        first = 4 * math.comb(order, 2) * gamma**2 * (E - 1) ** 2 / (counted * E)
        sums = math.fsum(
            math.comb(order, j)
            * gamma**j
            * j
            * math.gamma(j / 2)
            * (2 * (E**2 - 1) ** 2 / (counted * E**2)) ** (j / 2)
            for j in range(3, order + 1)
        )
        share = gamma * (E**2 - 1) / (2 * E)
        last = ((1 + share) ** order - 1 - order * share) * math.exp(-(k - 1) / (8 * E))
        renyi = math.log(1 + first + sums + last) / (order - 1)
        return rounds * renyi + math.log(1 - 1 / order) - math.log(delta * order) / (order - 1)

    for rounds, stored in zip(STORED["figure-3"]["rounds"], STORED["figure-3"]["girgis"], strict=True):
        found = min(epsilon(rounds, order) for order in range(2, 40))
        assert found == pytest.approx(stored, rel=1e-5)
        assert found < girgis_2021_epsilon(3.0, 1000, 10**5, rounds, delta)


def test_renyi_divergences_of_the_windows_of_figure_1_are_no_bound() -> None:
    found = renyi_figure_as_published(4.0, 100, 1, np.array([2.0]))[0]
    assert found < 0.01 * lower(strong_clones(4.0, 100), 2.0)


def test_too_many_users_are_refused() -> None:
    with pytest.raises(ValueError, match="n must be in"):
        strong_tail_as_published(10**6, 2, 0.5, 0.1)
