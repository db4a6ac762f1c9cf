"""Girgis, Data, Diggavi 2021, supplement: Figures 4, 5, 6 and the claim of a factor of 17."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from shuffledp._certified.rounding import CALL, up
from shuffledp.accounting.mechanism import Shuffled
from shuffledp.literature import closed_forms, composition
from shuffledp.literature.girgis import girgis_2021_epsilon, girgis_2021_lower
from shuffledp.literature.renyi import epsilon_from_renyi
from shuffledp.papers._result import Curve, Panel, Result, Setting, Table, item, power_of_ten, whole_numbers
from shuffledp.plotting._style import LABELS
from shuffledp.randomizers.local import LocalRandomizer
from shuffledp.randomizers.privunit import PrivUnit

DELTA = 1e-8
EPSILON_AT_DELTA = f"{LABELS['epsilon']} at δ = 10⁻⁸"
ROUNDS = 10**5
KOV, DRV = "ε₀, subsampled, Kairouz-Oh-Viswanath", "ε₀, subsampled, Dwork-Rothblum-Vadhan"
ANY = "certified, any 3-LDP randomizer"
ORDERS = (*range(2, 65), *(round(65 * 1.18**i) for i in range(30)))
"""Whole orders to 8000: few rounds need large ones."""
MNIST = {
    75: 0.1793, 150: 0.4071, 300: 0.6355, 450: 0.6947, 600: 0.7295, 900: 0.7817, 1200: 0.7965,
    1500: 0.8076, 1800: 0.8183, 2400: 0.8368, 3000: 0.8532, 3600: 0.8688, 4200: 0.8817, 4800: 0.8927,
    5400: 0.9028, 6000: 0.9093,
}  # fmt: skip
"""Rounds -> mean test accuracy of five runs of the paper's setting, from ``studies/mnist/curves.csv``
(written by ``studies/mnist/run.py``, which needs the MNIST files)."""
MNIST_EPSILON0, MNIST_COHORT, MNIST_USERS, MNIST_DELTA = 2.0, 2000, 60_000, 1e-5


@lru_cache(maxsize=4)
def _round(epsilon0: float, cohort: int, population: int) -> Shuffled:
    return Shuffled(LocalRandomizer(epsilon0), n=cohort).sampled_from(population)


def _subsampled(epsilon0: float, share: float) -> float:
    """Amplification by subsampling, rounded up."""
    return up(math.log1p(share * math.expm1(epsilon0)), operations=2 * CALL + 4)


def _composed_clones(epsilon0: float, cohort: int, population: int, rounds: int) -> float:
    """The 2021 closed form (epsilon0 outside its range), subsampled, optimally composed.

    Half of delta is spent on the rounds' own deltas."""
    share = cohort / population
    each = 0.5 * DELTA / (rounds * share)
    closed = closed_forms.usable(closed_forms.feldman_2021_epsilon)
    local = closed(epsilon0=epsilon0, n=cohort, delta=min(each, 0.5))
    leak = 0.0 if local == epsilon0 else share * each
    shrunk = _subsampled(local, share)
    return composition.kairouz_oh_viswanath_epsilon(shrunk, leak, rounds, DELTA)


def _theorem_1(epsilon0: float, cohort: int, population: int, rounds: int) -> float:
    return girgis_2021_epsilon(epsilon0, cohort, population, rounds, DELTA, ORDERS)


@lru_cache(maxsize=1)
def _lower_divergences(epsilon0: float, cohort: int, population: int) -> list[tuple[float, float]]:
    orders = map(float, ORDERS)
    return [(L, girgis_2021_lower(epsilon0, cohort, population, L)) for L in orders]


def _theorem_2(epsilon0: float, cohort: int, population: int, rounds: int) -> float:
    known = _lower_divergences(epsilon0, cohort, population)
    return min(epsilon_from_renyi(rounds * D, L, DELTA) for L, D in known)


def _against_rounds(epsilon0: float, cohort: int, population: int, points: int, lower: bool = False) -> Panel:
    title = f"ε₀ = {epsilon0:g}, γ = {cohort / population:g}, n = {power_of_ten(population)}"
    rounds = whole_numbers(100, ROUNDS, points)
    return _panel(title, LABELS["rounds"], rounds, lambda T: (epsilon0, cohort, population, T), lower)


def _against_n(epsilon0: float, cohort: int, points: int, lower: bool = False) -> Panel:
    title = f"ε₀ = {epsilon0:g}, γn = {power_of_ten(cohort)}, T = 10⁵"
    sizes = whole_numbers(10**5, 10**8, points)
    return _panel(title, "clients, n", sizes, lambda n: (epsilon0, cohort, n, ROUNDS), lower)


def _panel(
    title: str, x_label: str, x: list[int], at: Callable[[int], tuple[float, int, int, int]], lower: bool
) -> Panel:
    """The bounds against x; ``at`` gives epsilon0, cohort, population and rounds."""
    sound = {
        "Theorem 1": lambda v: _theorem_1(*at(v)),
        "2021 clones, strong composition": lambda v: _composed_clones(*at(v)),
    }
    unsound = {"Theorem 2, converted": lambda v: _theorem_2(*at(v))} if lower else {}
    mechanisms = [rounds * _round(*one) for *one, rounds in map(at, x)]
    curves = [
        Curve.epsilon("certified", x, mechanisms, DELTA),
        *Curve.each("sound", x, sound),
        *Curve.each("unsound", x, unsound),
    ]
    return Panel(title, curves, x_label, EPSILON_AT_DELTA, x_log=True)


@item
def figure_4(setting: Setting) -> Result:
    """epsilon0 = 1: Theorem 1 against composed clones."""
    points = setting.choose(19, 5)
    panels = (
        _against_rounds(1.0, 10**3, 10**6, points),
        _against_rounds(1.0, 10**4, 10**7, points),
        _against_n(1.0, 10**4, points),
    )
    end = panels[0].last
    return Result(panels, {"end": end, "saved": end["Theorem 1"] / end["certified"]})


@item
def figure_5(setting: Setting) -> Result:
    """epsilon0 = 3, where the closed forms say nothing."""
    points = setting.choose(19, 5)
    panels = (
        _against_rounds(3.0, 10**3, 10**6, points, lower=True),
        _against_rounds(3.0, 10**3, 10**7, points, lower=True),
        _against_n(3.0, 10**3, points, lower=True),
    )
    return Result(panels, {"end": panels[0].last})


@item
def figure_6(setting: Setting) -> Result:
    """MNIST: accuracy against epsilon for three analyses of the same run."""
    rounds = list(MNIST)
    if setting.quick:
        rounds = [rounds[i] for i in (0, 4, 7, -1)]
    accuracy = [100.0 * MNIST[T] for T in rounds]
    asked = MNIST_EPSILON0, MNIST_COHORT, MNIST_USERS
    privunit = PrivUnit(dimension=26_010, epsilon0=MNIST_EPSILON0)
    certified = {
        "certified, any randomizer": _round(*asked),
        "certified, PrivUnit": Shuffled(privunit, n=MNIST_COHORT).sampled_from(MNIST_USERS),
    }
    epsilons = {
        "Theorem 1": [girgis_2021_epsilon(*asked, T, MNIST_DELTA) for T in rounds],
        "2021 clones, composed": [_composed_numerically(T) for T in rounds],
    }
    for name, one in certified.items():
        epsilons[name] = [(T * one).upper_epsilon(delta=MNIST_DELTA) for T in rounds]
    curves = [Curve(name, "measured", x, accuracy) for name, x in epsilons.items()]
    curves.append(Curve("this paper's analysis", "published", [3.0, 5.8], [81.15, 89.7]))
    curves.append(Curve("[24] with composition", "published", [3.0, 18.3], [76.46, 89.7]))
    panel = Panel(
        "MNIST, 60,000 clients, cohorts of 2,000, PrivUnit, ε₀ = 2", curves,
        f"{LABELS['epsilon']} at δ = 10⁻⁵", "test accuracy (%)", x_log=True, y_log=False,
    )  # fmt: skip
    rows = [
        (f"{T:,}", f"{a:.2f}%", *(f"{x[i]:.3f}" for x in epsilons.values()))
        for i, (T, a) in enumerate(zip(rounds, accuracy, strict=True))
    ]
    table = Table("The same run", ("rounds", "accuracy", *epsilons), rows)
    return Result([panel], {"end": {name: x[-1] for name, x in epsilons.items()}}, [table])


def _composed_numerically(rounds: int) -> float:
    """The 2021 clones of a cohort, evaluated numerically; subsampled; optimally composed."""
    share = MNIST_COHORT / MNIST_USERS
    each = 0.5 * MNIST_DELTA / (rounds * share)
    crowd = Shuffled(LocalRandomizer(MNIST_EPSILON0), n=MNIST_COHORT, analysis="clones-2021")
    local = _subsampled(crowd.upper_epsilon(delta=each), share)
    return composition.kairouz_oh_viswanath_epsilon(local, share * each, rounds, MNIST_DELTA)


@item
def factor(setting: Setting) -> Result:
    """The claim: a factor of 17 at T = 10^5, gamma = 0.001, epsilon0 = 3, n = 10^6."""
    at = 3.0, 10**3, 10**6
    one, alone = _round(*at), _subsampled(3.0, 1e-3)
    ours = (ROUNDS * one).epsilon(delta=DELTA)
    bounds: dict[str, Any] = {
        "Theorem 1": lambda T: _theorem_1(*at, T),
        KOV: lambda T: composition.kairouz_oh_viswanath_epsilon(alone, 0.0, T, DELTA),
        DRV: lambda T: composition.dwork_rothblum_vadhan_epsilon(alone, 0.0, T, DELTA),
    }
    upper, optimal, advanced = (bound(ROUNDS) for bound in bounds.values())
    closed = composition.kairouz_oh_viswanath_closed_epsilon(alone, 0.0, ROUNDS, DELTA)
    values = {
        DRV: advanced,
        KOV: optimal,
        "the same, closed form (their Theorem 3.4)": closed,
        "Theorem 1": upper,
        ANY: ours.upper,
    }
    times = whole_numbers(100, ROUNDS, setting.choose(19, 5))
    certified = Curve.epsilon(ANY, times, [T * one for T in times], DELTA)
    curves = [certified, *Curve.each("sound", times, bounds)]
    title = "γ = 0.001, ε₀ = 3, n = 10⁶"
    panel = Panel(title, curves, LABELS["rounds"], EPSILON_AT_DELTA, x_log=True)
    rows = [(name, f"{value:.4f}", f"{value / upper:.4g}") for name, value in values.items()]
    table = Table("epsilon at delta = 1e-8", ("bound", "epsilon", "times Theorem 1"), rows)
    numbers = {
        "advanced": advanced / upper,
        "closed": closed / upper,
        "optimal": optimal / upper,
        "ours": ours,
        "saved": upper / ours.upper,
    }
    return Result([panel], numbers, [table])
