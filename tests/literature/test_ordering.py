"""exact <= blanket <= strong clones <= 2021 clones, and every bound of the literature above them (T3)."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from oracles.brute import k_ary, shuffled_pairs, worst
from oracles.golden import Golden, entries
from response import krr_blanket
from shuffledp.accounting._curves.clones import CloneProfile, clones_2021, strong_adversary, strong_clones
from shuffledp.accounting._curves.exact_binary import ExactBinaryProfile
from shuffledp.accounting._curves.profile import PrivacyProfile
from shuffledp.errors import OutsideRangeError
from shuffledp.literature.closed_forms import (
    balle_2019_generic_delta,
    balle_2019_krr_delta,
    erlingsson_2019_delta,
    feldman_2021_delta,
    feldman_2022_delta,
)
from shuffledp.literature.concentration import AnyBlanket, KaryBlanket, bennett_delta, hoeffding_delta

pytestmark = pytest.mark.quick

SMALL = [(2, 3, 8), (2, 20, 5), (3, 2, 5), (3, 6, 4), (4, 8, 4), (5, 2, 3)]
SHARES = np.array([0.0, 0.05, 0.2, 0.5, 0.8, 0.99])


@pytest.mark.parametrize(("k", "E", "n"), SMALL)
def test_the_chain_holds_over_all_datasets_of_a_few_users(k: int, E: int, n: int) -> None:
    epsilon0 = math.log(E)
    epsilon = SHARES * epsilon0
    exact = [worst(shuffled_pairs(k_ary(k, Fraction(E)), n), Fraction(math.exp(e))) for e in epsilon]
    truth = np.array([float(value) for value in exact])
    assert np.all(truth <= krr_blanket(k, epsilon0, n).upper(epsilon, 1e-6) * (1 + 1e-12) + 1e-14)


CHAINS = [(k, epsilon0, n) for k in (2, 4, 100) for epsilon0 in (0.2, 1.0, 4.0) for n in (3, 300, 10**6)]


@pytest.mark.parametrize(("k", "epsilon0", "n"), CHAINS)
def test_lower_ends_of_the_tighter_lie_below_upper_ends_of_the_looser(
    k: int, epsilon0: float, n: int
) -> None:
    p = 1 / (math.exp(epsilon0) + k - 1)
    chain: list[PrivacyProfile] = [
        krr_blanket(k, epsilon0, n),
        strong_clones(epsilon0, n),
        clones_2021(epsilon0, n),
    ]
    if k == 2 and n <= 1000:
        chain.insert(0, ExactBinaryProfile(n, epsilon0))
    adversary = strong_adversary(k, k * p, math.expm1(epsilon0) * p, n)
    epsilon = SHARES * epsilon0
    lower = [profile.support(epsilon, 1e-2).value for profile in chain]
    upper = [profile.upper(epsilon, 1e-2) for profile in chain]
    for i in range(len(chain)):
        for above in upper[i:]:
            assert np.all(lower[i] <= above)
    assert np.all(lower[-3] <= adversary.upper(epsilon, 1e-2))


@pytest.mark.parametrize(("k", "epsilon0", "n"), CHAINS)
def test_the_blanket_lies_below_every_bound_of_the_literature(k: int, epsilon0: float, n: int) -> None:
    for epsilon in (0.02 * epsilon0, 0.3 * epsilon0, 0.9 * epsilon0):
        truth = float(krr_blanket(k, epsilon0, n).support(np.array([epsilon]), 1e-2).value[0])
        for bound in (hoeffding_delta, bennett_delta):
            assert truth <= bound(KaryBlanket(k, epsilon0), n, epsilon)
            assert truth <= bound(AnyBlanket(epsilon0), n, epsilon)
        forms: tuple[tuple[Any, tuple[Any, ...]], ...] = (
            (erlingsson_2019_delta, (epsilon0, n)),
            (balle_2019_generic_delta, (epsilon0, n)),
            (balle_2019_krr_delta, (epsilon0, k, n)),
            (feldman_2021_delta, (epsilon0, n)),
            (feldman_2022_delta, (epsilon0, n)),
        )
        for form, settings in forms:
            try:
                assert truth <= form(*settings, epsilon)
            except OutsideRangeError:
                continue


@pytest.mark.parametrize("golden", entries("fmt22_krr_flag_delta"), ids=str)
def test_clones_of_k_ary_reports_with_the_flag_revealed_have_the_golden_value(golden: Golden) -> None:
    """Sound, looser than the blanket: with probability (E + 1) p a clone pair of rate 2 p."""
    n, k, epsilon0 = golden.params["n"], golden.params["k"], golden.number("eps0")
    E = math.exp(epsilon0)
    p = 1 / (E + k - 1)
    profile = CloneProfile(
        n, 2 * p, 1 - 2 * p, math.tanh(epsilon0 / 2), weight=(E + 1) * p, epsilon0=epsilon0
    )
    at = np.array([golden.number("eps")])
    upper, lines = profile.both(at, 1e-7)
    assert lines.value[0] * (1 - 1e-9) <= golden.delta <= upper[0] * (1 + 1e-9)
    assert krr_blanket(k, epsilon0, n).support(at, 1e-3).value[0] <= upper[0]
