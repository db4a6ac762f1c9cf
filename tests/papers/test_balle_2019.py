"""Lemma 5.6 as printed: its values, and the truth above them."""

import math
from collections.abc import Callable

import numpy as np
import pytest

import shuffledp as sdp
from oracles.golden import Golden, entries
from response import krr_witnesses
from shuffledp.literature._solve import smallest_below
from shuffledp.literature.as_published.balle_2019 import (
    bennett_generic_delta_as_published,
    bennett_krr_delta_as_published,
    bennett_laplace_delta_as_published,
    hoeffding_generic_delta_as_published,
)
from shuffledp.literature.concentration import AnyBlanket, KaryBlanket, bennett_delta, hoeffding_delta
from shuffledp.noise import facts_of_noise
from shuffledp.papers.balle_2019._figures import _panel_2, _panel_3

pytestmark = pytest.mark.quick


def truth(k: int, epsilon0: float, n: int, epsilon: float) -> float:
    """A certified lower bound: concrete datasets in either direction."""
    pairs = [way for pair in krr_witnesses(k, epsilon0, n) for way in pair.directions]
    return max(float(pair.support(np.array([epsilon]), 1e-4).value[0]) for pair in pairs)


@pytest.mark.parametrize("golden", entries("p2_bennett_rr_as_printed"), ids=str)
def test_the_printed_bound_has_its_golden_values(golden: Golden) -> None:
    at = golden.params
    found = bennett_krr_delta_as_published(at["k"], golden.number("eps0"), at["n"], golden.number("eps"))
    assert found == pytest.approx(golden.delta, rel=1e-9)


@pytest.mark.parametrize(
    ("k", "n", "epsilon", "printed", "exact"),
    [(4, 1000, 0.1, 1.72e-6, 8.52e-6), (2, 10**5, 0.01, 1.29e-7, 1.17e-6)],
)
def test_the_printed_bound_falls_below_a_concrete_dataset(
    k: int, n: int, epsilon: float, printed: float, exact: float
) -> None:
    found = bennett_krr_delta_as_published(k, 1.0, n, epsilon)
    assert found == pytest.approx(printed, rel=0.01)
    certified = truth(k, 1.0, n, epsilon)
    assert certified == pytest.approx(exact, rel=0.03)
    assert found < certified < bennett_delta(KaryBlanket(k, 1.0), n, epsilon)


def test_the_lemma_itself_fails_for_signs() -> None:
    """400 fair signs less 0.05: E[sum_+] is 1.66, the printed bound 0.63, the corrected one 12.6."""
    m, a = 400, 0.05
    heads = np.arange(m + 1)
    log_mass = np.array([math.lgamma(m + 1) - math.lgamma(h + 1) - math.lgamma(m - h + 1) for h in heads])
    mass = np.exp(log_mass - m * math.log(2))
    exact = float((mass * np.maximum(2 * heads - m - a * m, 0)).sum())
    top, c = 1 - a, 1 + a * a
    u = a * top / c
    phi = (1 + u) * math.log1p(u) - u
    corrected = top / math.log1p(u) * math.exp(-m * c / top**2 * phi)
    assert exact == pytest.approx(1.66, abs=0.01)
    assert corrected == pytest.approx(12.6, abs=0.1)
    assert corrected / (a * m) == pytest.approx(0.63, abs=0.01)


def test_beyond_epsilon0_it_is_zero() -> None:
    assert bennett_krr_delta_as_published(4, 1.0, 100, 2.0) == 0.0


@pytest.mark.parametrize(
    ("n", "hoeffding", "with_factor", "without"),
    [
        (10**3, 0.18316, 0.22403, 0.31606),
        (10**4, 0.05400, 0.05541, 0.09065),
        (10**5, 0.01588, 0.01237, 0.02659),
    ],
)
def test_panel_i_of_figure_3_with_the_code_of_2019_and_of_2020(
    n: int, hoeffding: float, with_factor: float, without: float
) -> None:
    """epsilon0 = 0.5, delta = 1e-6: what the two releases of the authors' code give."""

    def solved(delta: Callable[[float], float]) -> float:
        return smallest_below(delta, 1e-6, 0.5, 1e-6)

    assert solved(lambda e: hoeffding_generic_delta_as_published(0.5, n, e)) == pytest.approx(
        hoeffding, rel=1e-3
    )
    for factor, expected in ((True, with_factor), (False, without)):
        found = solved(lambda e, f=factor: bennett_generic_delta_as_published(0.5, n, e, f))  # type: ignore[misc]
        assert found == pytest.approx(expected, rel=1e-3)


def test_without_the_factor_the_generic_bounds_are_above_the_refined_ones() -> None:
    """Which are certified to hold for every randomizer."""
    for epsilon in (0.02, 0.1, 0.3):
        refined = AnyBlanket(0.5)
        assert bennett_generic_delta_as_published(0.5, 1000, epsilon, False) > bennett_delta(
            refined, 1000, epsilon
        )
        assert hoeffding_generic_delta_as_published(0.5, 1000, epsilon) > hoeffding_delta(
            refined, 1000, epsilon
        )


def test_the_printed_bound_of_laplace_noise_falls_below_a_concrete_dataset() -> None:
    """Its second moment and largest value are those of the densities, by quadrature."""
    facts = facts_of_noise(lambda t: math.log(0.5) - t, lambda t: 0.5 * np.exp(-t), epsilon0=1.0)
    found = bennett_laplace_delta_as_published(1.0, 10**5, 0.01)
    assert found < 0.2 * sdp.Shuffled(facts, n=10**5).delta(epsilon=0.01).lower
    y = np.linspace(-30.0, 31.0, 610_001)
    own, other = (0.5 * np.exp(-np.abs(y - x)) for x in (0.0, 1.0))
    blanket, a = np.minimum(own, other), math.exp(0.1)
    gamma = float(blanket.sum() * (y[1] - y[0]))
    L = gamma * (own - a * other) / blanket
    c, top = float((L**2 * blanket).sum() * (y[1] - y[0])) / gamma, float(L.max())
    u = (a - 1.0) * top / c
    alone = top / math.log1p(u) / (a - 1.0) * math.exp(-c / top**2 * ((1.0 + u) * math.log1p(u) - u))
    assert bennett_laplace_delta_as_published(1.0, 1, 0.1) == pytest.approx(alone, rel=1e-6)
    assert bennett_laplace_delta_as_published(0.5, 100, 0.6) == 0.0


def test_panels_have_all_lines_of_the_authors_notebook() -> None:
    """Their Bounds on Privacy Amplification by Shuffling.ipynb, 89a5085: five lines in (ii), six in (iii)."""
    second, third = (panel(sizes=[1000, 10**4]) for panel in (_panel_2, _panel_3))
    names = [{curve.name for curve in panel.curves} for panel in (second, third)]
    mechanisms = ("RR-2", "Laplace", "RR-100")
    assert {"EFMRTT'19 (Theorem 5.1)", "Hoeffding, generic"} <= names[0]
    assert {f"Hoeffding, {m}" for m in mechanisms} <= names[0]
    for inequality in ("Hoeffding", "Bennett", "Bennett as printed"):
        assert {f"{inequality}, {m}" for m in mechanisms} <= names[1]
    (line,) = (curve.y for curve in second.curves if curve.name.startswith("EFMRTT"))
    assert math.isnan(line[0])  # epsilon0 would be below epsilon
    assert 12.0 * line[1] * math.sqrt(math.log(1e6) / 10**4) == pytest.approx(0.1)


def test_laplace_noise_amplifies_best_by_what_is_certified_and_binary_response_least() -> None:
    """Panel (ii) at n = 1e5, where Hoeffding's bounds say the reverse."""
    at = {curve.name: curve.y[-1] for curve in _panel_2(sizes=[10**5]).curves}
    certified, hoeffding = (
        [at[f"{kind}, {m}"] for m in ("Laplace", "RR-100", "RR-2")] for kind in ("certified", "Hoeffding")
    )
    assert certified[0] > certified[1] > certified[2]
    assert hoeffding[2] > hoeffding[0] > hoeffding[1]
