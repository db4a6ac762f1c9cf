"""Closed forms: the printed values, their ranges, and that they lie above the numerical clones."""

import math
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from flint import arb

from oracles.golden import Golden, entries
from response import krr_blanket
from shuffledp.accounting._curves.clones import clones_2021, strong_adversary, strong_clones
from shuffledp.accounting._curves.profile import PrivacyProfile
from shuffledp.errors import OutsideRangeError
from shuffledp.literature import closed_forms as forms
from shuffledp.literature.closed_forms import usable

pytestmark = pytest.mark.quick

EPSILON_FORMS = {
    "efmrtt_eps": forms.erlingsson_2019_epsilon,
    "closed_fmt21_eps": forms.feldman_2021_epsilon,
    "closed_fmt22_eps": forms.feldman_2022_epsilon,
}
DELTA_FORMS = {
    "efmrtt_delta": forms.erlingsson_2019_delta,
    "p2_thm53_generic": forms.balle_2019_generic_delta,
}


def lower(profile: PrivacyProfile, epsilon: float) -> float:
    """A certified lower bound of the curve."""
    return float(profile.support(np.array([epsilon]), 1e-3).value[0])


@pytest.mark.parametrize("golden", entries(*EPSILON_FORMS), ids=str)
def test_epsilon_is_the_printed_formula_rounded_up(golden: Golden) -> None:
    found = EPSILON_FORMS[golden.name](golden.number("eps0"), golden.params["n"], golden.number("delta"))
    assert golden.delta <= found <= golden.delta * (1 + 1e-11)


@pytest.mark.parametrize("golden", entries(*DELTA_FORMS), ids=str)
def test_delta_is_the_printed_formula_rounded_up(golden: Golden) -> None:
    found = DELTA_FORMS[golden.name](golden.number("eps0"), golden.params["n"], golden.number("eps"))
    assert golden.delta <= found <= golden.delta * (1 + 1e-9)


def ball_forms(epsilon0: float, k: int, n: int, level: float) -> dict[str, arb]:
    """The formulas of the module docstring in ball arithmetic; ``level`` is delta, or epsilon for a delta."""
    E, d, a = arb(epsilon0).exp(), arb(level), arb(level).exp()
    p, s, C = 1 / (E + k - 1), E - 1 / E, 1 - arb(-2).exp()
    share = 1 / ((n - 1) * p)
    root21 = (a - 1) * (E + 1) / (E - 1) - 8 * E / n
    root22 = (a - 1) / (E - 1) - arb(4) / n
    rate = C * n * min(1 / E, (a - 1) ** 2 / ((a + 1) * s) ** 2)
    return {
        "erlingsson_2019_epsilon": 12 * arb(epsilon0) * ((1 / d).log() / n).sqrt(),
        "erlingsson_2019_delta": (-n * (d / (12 * arb(epsilon0))) ** 2).exp(),
        "balle_2019_krr_epsilon": max((14 * share * (2 / d).log()).sqrt(), 27 * share),
        "balle_2019_krr_delta": 2 * (-d * d / (14 * share)).exp(),
        "balle_2019_generic_delta": ((a + 1) * s) ** 2 / (4 * n * (a - 1)) * (-rate).exp(),
        "feldman_2021_epsilon": (
            1 + (E - 1) / (E + 1) * (8 * (E * (4 / d).log() / n).sqrt() + 8 * E / n)
        ).log(),
        "feldman_2021_delta": 4 * (-(root21**2) * n / (64 * E)).exp(),
        "feldman_2022_epsilon": (
            1 + (E - 1) * (4 * (2 * (4 / d).log() / ((E + 1) * n)).sqrt() + arb(4) / n)
        ).log(),
        "feldman_2022_delta": 4 * (-(root22**2) * (E + 1) * n / 32).exp(),
    }


def test_no_form_is_below_its_formula_in_ball_arithmetic() -> None:
    rng = Random(7)
    seen = Counter[str]()
    for _ in range(400):
        epsilon0, n = 10 ** rng.uniform(-3, 1), int(10 ** rng.uniform(3, 12))
        k, level = rng.choice([2, 5, 1000]), 10 ** rng.uniform(-12, -0.5)
        for name, exact in ball_forms(epsilon0, k, n, level).items():
            sizes = (k, n) if "krr" in name else (n,)
            try:
                found = getattr(forms, name)(epsilon0, *sizes, level)
            except OutsideRangeError:
                continue
            if found < 1.0 and exact > 1e-290:
                seen[name] += 1
                assert exact <= found <= exact * (1 + 1e-9), (name, epsilon0, k, n, level)
    assert min(seen[name] for name in ball_forms(1.0, 2, 1000, 0.1)) >= 5, seen


def test_blanket_mass_of_theorem_31_is_the_larger_of_its_two_terms() -> None:
    # 14 * 4 * log(2e6) / (9999 * 0.25) and 27 * 4 / (9999 * 0.5).
    assert forms.balle_2019_krr_gamma(4, 10_000, 0.5, 1e-6) == pytest.approx(0.3250, abs=1e-4)
    # At delta = 1 the second term is the larger one.
    assert forms.balle_2019_krr_gamma(2, 1001, 0.9, 1.0) == pytest.approx(0.06, rel=1e-9)


def test_theorem_31_solved_for_epsilon_and_for_delta_agrees_with_its_gamma() -> None:
    gamma = forms.balle_2019_krr_gamma(4, 10_000, 0.5, 1e-6)
    epsilon0 = math.log(4 * (1 - gamma) / gamma + 1)
    assert forms.balle_2019_krr_epsilon(epsilon0, 4, 10_000, 1e-6) == pytest.approx(0.5, rel=1e-9)
    assert forms.balle_2019_krr_delta(epsilon0, 4, 10_000, 0.5) == pytest.approx(1e-6, rel=1e-6)


@pytest.mark.parametrize(
    ("epsilon_form", "delta_form", "epsilon0", "n"),
    [
        (forms.erlingsson_2019_epsilon, forms.erlingsson_2019_delta, 0.4, 5000),
        (forms.balle_2019_generic_epsilon, forms.balle_2019_generic_delta, 1.0, 10**6),
        (forms.feldman_2021_epsilon, forms.feldman_2021_delta, 3.0, 10**6),
        (forms.feldman_2022_epsilon, forms.feldman_2022_delta, 3.0, 10**6),
    ],
)
def test_the_two_forms_of_a_bound_are_inverse(
    epsilon_form: Callable[..., Any], delta_form: Callable[..., Any], epsilon0: float, n: int
) -> None:
    for delta in (1e-3, 1e-6, 1e-12):
        epsilon = epsilon_form(epsilon0, n, delta)
        assert delta_form(epsilon0, n, epsilon) == pytest.approx(delta, rel=1e-6)


def test_closed_forms_lie_above_the_numerical_clones() -> None:
    rng = Random(20)
    for _ in range(60):
        n = int(10 ** rng.uniform(3, 7))
        delta = 10 ** rng.uniform(-12, -2)
        room = n / (16 * math.log(2 / delta))
        if room > 1.01:
            epsilon0 = rng.uniform(0.0, 1.0) * math.log(room)
            epsilon = forms.feldman_2021_epsilon(epsilon0, n, delta)
            assert lower(clones_2021(epsilon0, n), epsilon) <= delta
            epsilon = forms.feldman_2022_epsilon(epsilon0, n, delta)
            assert lower(strong_clones(epsilon0, n), epsilon) <= delta
            epsilon = usable(forms.balle_2019_generic_epsilon)(epsilon0=epsilon0, n=n, delta=delta)
            assert lower(strong_clones(epsilon0, n), epsilon) <= delta
        if delta < 0.01:
            epsilon0 = rng.uniform(0.0, 0.5)
            epsilon = forms.erlingsson_2019_epsilon(epsilon0, n, delta)
            assert lower(strong_clones(epsilon0, n), epsilon) <= delta


def test_theorem_31_lies_above_the_strong_adversary_it_is_proved_for() -> None:
    for k, n, epsilon, delta in [(4, 10_000, 0.5, 1e-6), (2, 1000, 1.0, 1e-3), (16, 10**5, 0.3, 1e-4)]:
        gamma = forms.balle_2019_krr_gamma(k, n, epsilon, delta)
        assert lower(strong_adversary(k, gamma, 1 - gamma, n), epsilon) <= delta
        epsilon0 = math.log(k * (1 - gamma) / gamma + 1)
        assert lower(krr_blanket(k, epsilon0, n), epsilon) <= delta


def test_theorem_31_is_very_loose() -> None:
    """At n = 10^4, k = 4, epsilon = 1/2, delta = 10^-6 the strong adversary has 1.4e-25."""
    gamma = forms.balle_2019_krr_gamma(4, 10_000, 0.5, 1e-6)
    found = float(strong_adversary(4, gamma, 1 - gamma, 10_000).upper(np.array([0.5]), 1e-4)[0])
    assert found == pytest.approx(1.4e-25, rel=0.05)


def test_erlingsson_is_extremely_loose() -> None:
    epsilon = forms.erlingsson_2019_epsilon(0.3, 10_000, 1e-6)
    assert float(strong_clones(0.3, 10_000).upper(np.array([epsilon]), 1e-3)[0]) < 1e-130


@pytest.mark.parametrize(
    ("bound", "arguments", "condition"),
    [
        (forms.erlingsson_2019_epsilon, (0.5, 1000, 1e-3), "epsilon0 < 1/2"),
        (forms.erlingsson_2019_epsilon, (0.4, 999, 1e-3), "n >= 1000"),
        (forms.erlingsson_2019_epsilon, (0.4, 1000, 0.01), "delta < 1/100"),
        (forms.erlingsson_2019_delta, (0.4, 1000, 0.1), "1/100"),
        (forms.balle_2019_krr_gamma, (4, 10_000, 1.1, 1e-6), "epsilon <= 1"),
        (forms.balle_2019_krr_gamma, (4, 100, 0.5, 1e-6), "gamma < 1"),
        (forms.balle_2019_krr_epsilon, (3.0, 4, 100, 1e-6), "epsilon <= 1"),
        (forms.balle_2019_krr_delta, (3.0, 4, 100, 0.5), "27 k"),
        (forms.balle_2019_generic_epsilon, (5.0, 100, 1e-6), "epsilon <= epsilon0"),
        (forms.feldman_2021_epsilon, (4.0, 1000, 1e-6), "16 log"),
        (forms.feldman_2021_delta, (4.0, 10**5, 1e-4), "larger epsilon"),
        (forms.feldman_2022_epsilon, (4.0, 1000, 1e-6), "8 log"),
        (forms.feldman_2022_delta, (2.0, 1000, 1.5), "8 log"),
    ],
)
def test_outside_its_range_a_bound_says_which_condition_fails(
    bound: Callable[..., Any], arguments: tuple[Any, ...], condition: str
) -> None:
    with pytest.raises(OutsideRangeError, match="the bound needs") as error:
        bound(*arguments)
    assert condition in str(error.value)


def test_a_usable_bound_is_epsilon0_outside_the_range_and_never_above_it() -> None:
    assert usable(forms.feldman_2022_epsilon)(epsilon0=4.0, n=1000, delta=1e-6) == 4.0
    assert usable(forms.erlingsson_2019_epsilon)(epsilon0=0.2, n=1000, delta=1e-9) == 0.2
    inside = usable(forms.feldman_2022_epsilon)(epsilon0=2.0, n=10**6, delta=1e-6)
    assert inside == forms.feldman_2022_epsilon(2.0, 10**6, 1e-6)


def test_ranges_end_where_the_papers_say() -> None:
    n, delta = 10**5, 1e-6
    edge = math.log(n / (16 * math.log(2 / delta)))
    forms.feldman_2021_epsilon(edge - 1e-9, n, delta)
    with pytest.raises(OutsideRangeError):
        forms.feldman_2021_epsilon(edge + 1e-9, n, delta)
    edge = math.log(n / (8 * math.log(2 / delta)) - 1)
    forms.feldman_2022_epsilon(edge - 1e-9, n, delta)
    with pytest.raises(OutsideRangeError):
        forms.feldman_2022_epsilon(edge + 1e-9, n, delta)


def test_nothing_happens_at_epsilon0_zero() -> None:
    for bound in (forms.erlingsson_2019_epsilon, forms.feldman_2021_epsilon):
        assert bound(0.0, 10**5, 1e-6) == 0.0
    for leak in (forms.feldman_2021_delta, forms.feldman_2022_delta, forms.balle_2019_generic_delta):
        assert leak(0.0, 10**5, 0.1) == 0.0


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, 0.0])
def test_bad_epsilon_is_named(bad: float) -> None:
    with pytest.raises(ValueError, match="epsilon must be in"):
        forms.balle_2019_generic_delta(1.0, 1000, bad)


@pytest.mark.parametrize("bad", [-1.0, math.nan, 301.0])
def test_bad_epsilon0_is_named(bad: float) -> None:
    for bound in EPSILON_FORMS.values():
        with pytest.raises(ValueError, match="epsilon0 must be in"):
            bound(bad, 1000, 1e-6)


@pytest.mark.parametrize("bad", [0.0, 1.5, math.nan])
def test_bad_delta_is_named(bad: float) -> None:
    for bound in EPSILON_FORMS.values():
        with pytest.raises(ValueError, match="delta must be in"):
            bound(0.3, 1000, bad)
