"""Girgis, Data, Diggavi 2021, supplement: Figures 4, 5, 6, Theorem 3, the claim of a factor of 17."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from shuffledp._certified.rounding import CALL, up
from shuffledp.accounting.mechanism import Shuffled
from shuffledp.literature import closed_forms, composition
from shuffledp.literature.as_published.girgis_2021 import coarse_clones_as_published
from shuffledp.literature.girgis import (
    girgis_2021_epsilon,
    girgis_2021_excess_loss,
    girgis_2021_lower,
    girgis_shuffle_2021_upper,
    wang_2019_subsampled,
)
from shuffledp.literature.renyi import epsilon_from_renyi
from shuffledp.papers._result import Curve, Panel, Result, Setting, Table, item, power_of_ten, whole_numbers
from shuffledp.plotting._style import LABELS
from shuffledp.randomizers.local import LocalRandomizer
from shuffledp.randomizers.privunit import PrivUnit

DELTA = 1e-8
EPSILON_AT_DELTA = f"{LABELS['epsilon']} at δ = 10⁻⁸"
ROUNDS = 10**5
CLONES_COMPOSED, LOCAL_COMPOSED = "2021 clones, strong composition", "ε₀ itself, strong composition"
DIMENSION = 1000
CONVEX = {
    1: 0.23278,
    3: 0.173998,
    10: 0.07464,
    30: 0.029277,
    100: 0.017823,
    200: 0.011193,
    400: 0.009192,
    600: 0.006659,
}
"""Rounds -> mean excess loss, from ``studies/convex/convergence.csv`` (written by ``logistic.py`` there)."""
KOV, DRV = "ε₀, subsampled, Kairouz-Oh-Viswanath", "ε₀, subsampled, Dwork-Rothblum-Vadhan"
ANY = "certified, any 3-LDP randomizer"
ORDERS = (*range(2, 65), *(round(65 * 1.18**i) for i in range(30)))
"""Whole orders to 8000: few rounds need large ones."""
MNIST = {
    75: 0.1793, 150: 0.4071, 300: 0.6355, 450: 0.6947, 600: 0.7295, 900: 0.7817, 1200: 0.7965,
    1500: 0.8076, 1800: 0.8183, 2400: 0.8368, 3000: 0.8532, 3600: 0.8688, 4200: 0.8817, 4800: 0.8927,
    5400: 0.9028, 6000: 0.9093,
}  # fmt: skip
AUTHORS = {
    75: 0.2190, 150: 0.3946, 300: 0.5874, 450: 0.6840, 600: 0.7285, 900: 0.7819, 1200: 0.7980,
    1500: 0.8151, 1800: 0.8288, 2400: 0.8488, 3000: 0.8644, 3600: 0.8759, 4200: 0.8843, 4800: 0.8920,
    5400: 0.8984, 6000: 0.9040,
}  # fmt: skip
"""Rounds -> mean test accuracy of five runs, from ``studies/mnist/curves.csv`` (the paper's setting with our
network and cap) and ``authors.csv`` (with those of the authors' code); ``run.py`` there needs MNIST."""
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
    orders = (*map(float, ORDERS), *(ORDERS[-1] * 1.3**i for i in range(1, 12)))  # few rounds need large ones
    return [(L, girgis_2021_lower(epsilon0, cohort, population, L)) for L in orders]


def _theorem_2(epsilon0: float, cohort: int, population: int, rounds: int) -> float:
    known = _lower_divergences(epsilon0, cohort, population)
    return min(epsilon_from_renyi(rounds * D, L, DELTA) for L, D in known)


@lru_cache(maxsize=2)
def _shuffle_divergences(epsilon0: float, cohort: int) -> list[float]:
    """Of the whole shuffle, orders 2 to 1200: reference [29]."""
    return [girgis_shuffle_2021_upper(epsilon0, cohort, L) for L in range(2, 1201)]


@lru_cache(maxsize=32)
def _subsampled_divergences(epsilon0: float, cohort: int, population: int) -> list[tuple[int, float]]:
    """The same with the subsampling theorem of [43]."""
    known = _shuffle_divergences(epsilon0, cohort)
    orders = (*range(2, 33), *range(36, 1201, 36))
    return [(L, wang_2019_subsampled(known[: L - 1], epsilon0, cohort / population)) for L in orders]


def _references_29_43(epsilon0: float, cohort: int, population: int, rounds: int) -> float:
    known = _subsampled_divergences(epsilon0, cohort, population)
    return min(epsilon_from_renyi(rounds * D, L, DELTA) for L, D in known)


def _against_rounds(epsilon0: float, cohort: int, population: int, points: int) -> Panel:
    title = f"ε₀ = {epsilon0:g}, γ = {cohort / population:g}, n = {power_of_ten(population)}"
    rounds = whole_numbers(100, ROUNDS, points)
    return _panel(title, LABELS["rounds"], rounds, lambda T: (epsilon0, cohort, population, T))


def _against_n(epsilon0: float, cohort: int, points: int) -> Panel:
    title = f"ε₀ = {epsilon0:g}, γn = {power_of_ten(cohort)}, T = 10⁵"
    sizes = whole_numbers(10**5, 10**8, points)
    return _panel(title, "clients, n", sizes, lambda n: (epsilon0, cohort, n, ROUNDS))


def _panel(title: str, x_label: str, x: list[int], at: Callable[[int], tuple[float, int, int, int]]) -> Panel:
    """The bounds against x; ``at`` gives epsilon0, cohort, population, rounds. For epsilon0 = 3 the closed
    form says nothing, so epsilon0 itself is composed, and the paper shows two bounds more."""
    large = at(x[0])[0] > 1.0
    composed = LOCAL_COMPOSED if large else CLONES_COMPOSED
    sound: dict[str, Any] = {
        "Theorem 1": lambda v: _theorem_1(*at(v)),
        composed: lambda v: _composed_clones(*at(v)),
    }
    hues = ["Theorem 1", "composition"]
    if large:
        sound["reference 29, subsampled by 43"] = lambda v: _references_29_43(*at(v))
        hues.append("[29]")
    lower = {"Theorem 2, converted": lambda v: _theorem_2(*at(v))} if large else {}
    mechanisms = [rounds * _round(*one) for *one, rounds in map(at, x)]
    curves = [
        Curve.epsilon("certified", x, mechanisms, DELTA, "certified"),
        *Curve.each("sound", x, sound, hues),
        *Curve.each("lower", x, lower, ["Theorem 2"] if lower else []),
    ]
    return Panel(title, curves, x_label, EPSILON_AT_DELTA, x_log=True)


@item
def figure_4(setting: Setting) -> Result:
    """epsilon0 = 1: Theorem 1 against composed clones."""
    points = setting.choose(19, 5)
    panels = [
        _against_rounds(1.0, 10**3, 10**6, points),
        _against_rounds(1.0, 10**4, 10**7, points),
        _against_n(1.0, 10**4, points),
    ]
    # 16 e^epsilon0 log(2/delta) <= cohort, delta = DELTA/2 spread over the sampled rounds.
    last = 0.5 * DELTA * math.exp(10**3 / (16.0 * math.e)) / (2.0 * 1e-3)
    panels[0] = replace(panels[0], marks={last: "closed form ends"})
    end = panels[0].last
    return Result(panels, {"end": end, "saved": end["Theorem 1"] / end["certified"], "kink": last})


@item
def figure_5(setting: Setting) -> Result:
    """epsilon0 = 3, where the closed forms say nothing."""
    points = setting.choose(19, 5)
    panels = [
        _against_rounds(3.0, 10**3, 10**6, points),
        _against_rounds(3.0, 10**3, 10**7, points),
        _against_n(3.0, 10**3, points),
    ]
    lower = float(panels[0].curves[0].lower[-1])
    return Result(panels, {"end": panels[0].last, "lower": lower})


@item
def theorem_3(setting: Setting) -> Result:
    """Convergence against privacy: the excess loss that is guaranteed, and the epsilon it costs."""
    rounds = whole_numbers(10, 10**5, setting.choose(17, 5))
    cohort, population = 10**4, 10**6
    losses, curves, ends = [], [], {}
    for epsilon0, hue in ((0.5, "1"), (1.0, "2"), (2.0, "3")):
        excess = [girgis_2021_excess_loss(epsilon0, cohort, T, dimension=DIMENSION) for T in rounds]
        losses.append(Curve(f"ε₀ = {epsilon0:g}", "sound", rounds, excess, hue=hue))
        one = _round(epsilon0, cohort, population)
        certified = [(T * one).upper_epsilon(delta=DELTA) for T in rounds]
        theorem = [_theorem_1(epsilon0, cohort, population, T) for T in rounds]
        curves.append(Curve(f"certified, ε₀ = {epsilon0:g}", "certified", certified, excess, hue=hue))
        curves.append(Curve(f"Theorem 1, ε₀ = {epsilon0:g}", "sound", theorem, excess, None, hue, "--"))
        ends[f"{epsilon0:g}"] = {"excess": excess[-1], "certified": certified[-1], "theorem": theorem[-1]}
    study = list(CONVEX)
    bound = [girgis_2021_excess_loss(1.0, 500, T, dimension=10, diameter=6.0) for T in study]
    seen = Curve("measured, mean of four runs", "measured", study, list(CONVEX.values()), hue="clones")
    label = "excess loss, guaranteed"
    panels = [
        Panel(f"10⁴ of 10⁶ clients, d = {DIMENSION}, L = D = 1", losses, LABELS["rounds"], label, x_log=True),
        Panel("the same against what it costs", curves, EPSILON_AT_DELTA, label, x_log=True),
        Panel(
            "logistic regression, 500 of 2,000 clients, d = 10, ε₀ = 1",
            [Curve("Theorem 3", "sound", study, bound, hue="certified"), seen],
            LABELS["rounds"], "excess loss", x_log=True,
        ),
    ]  # fmt: skip
    numbers = {
        "end": ends["2"],
        "saved": ends["2"]["theorem"] / ends["2"]["certified"],
        "used": 100.0 * CONVEX[study[-1]] / bound[-1],
        "dimension": DIMENSION,
    }
    return Result(panels, numbers)


@item
def figure_6(setting: Setting) -> Result:
    """MNIST: accuracy against epsilon for three analyses of the same run."""
    rounds = list(MNIST)
    if setting.quick:
        rounds = [rounds[i] for i in (0, 4, 7, -1)]
    theirs, ours = ([100.0 * known[T] for T in rounds] for known in (AUTHORS, MNIST))
    asked = MNIST_EPSILON0, MNIST_COHORT, MNIST_USERS
    best = Shuffled(PrivUnit(dimension=26_010, epsilon0=MNIST_EPSILON0), n=MNIST_COHORT).sampled_from(
        MNIST_USERS
    )
    epsilons = {
        "Theorem 1": [girgis_2021_epsilon(*asked, T, MNIST_DELTA) for T in rounds],
        "2021 clones, composed": [_composed_numerically(T) for T in rounds],
        "certified, any randomizer": [(T * _round(*asked)).upper_epsilon(delta=MNIST_DELTA) for T in rounds],
        "certified, PrivUnit's best cap": [(T * best).upper_epsilon(delta=MNIST_DELTA) for T in rounds],
    }
    looks = (("Theorem 1", "--"), ("composition", "--"), ("certified", "-"), ("certified", ":"))
    curves = [
        Curve(name, "measured", x, ours if "cap" in name else theirs, hue=hue, line=line)
        for (name, x), (hue, line) in zip(epsilons.items(), looks, strict=True)
    ]
    curves.append(Curve("this paper's analysis", "published", [3.0, 5.8], [81.15, 89.7], hue="Theorem 1"))
    curves.append(Curve("[24] with composition", "published", [3.0, 18.3], [76.46, 89.7], hue="composition"))
    panel = Panel(
        "MNIST, 60,000 clients, cohorts of 2,000, PrivUnit, ε₀ = 2", curves,
        f"{LABELS['epsilon']} at δ = 10⁻⁵", "test accuracy (%)", x_log=True, y_log=False, floor=60.0,
        marks={18.3: "18.3: likely a search that stops early"},
    )  # fmt: skip
    rows = [
        (f"{T:,}", f"{a:.2f}%", f"{b:.2f}%", *(f"{x[i]:.3f}" for x in epsilons.values()))
        for i, (T, a, b) in enumerate(zip(rounds, theirs, ours, strict=True))
    ]
    names = ("rounds", "accuracy, authors' network and hemispheres", "ours", *epsilons)
    epochs = rounds[-1] * MNIST_COHORT // MNIST_USERS
    crowd = Shuffled(LocalRandomizer(MNIST_EPSILON0), n=MNIST_COHORT)
    first, second = list(epsilons.values())[:2]
    ahead = [T for T, theorem, clones in zip(rounds, first, second, strict=True) if clones < theorem]
    numbers = {
        "end": {name: x[-1] for name, x in epsilons.items()},
        "accuracy": theirs[-1],
        "ours": ours[-1],
        "saved": epsilons["Theorem 1"][-1] / epsilons["certified, any randomizer"][-1],
        "three": {name: float(np.interp(3.0, x, theirs)) for name, x in epsilons.items()},
        "ahead": max(ahead, default=0),
        "epochs": epochs,
        "leaked": (rounds[-1] * replace(_round(*asked), analysis="best-leaked")).upper_epsilon(
            delta=MNIST_DELTA
        ),
        "notebook": _as_in_the_notebook(rounds[-1]),
        "uncounted": (epochs * crowd).upper_epsilon(delta=MNIST_DELTA),
    }
    return Result([panel], numbers, [Table("The same rounds", names, rows)])


def _composed_numerically(rounds: int) -> float:
    """The 2021 clones of a cohort, evaluated numerically; subsampled; optimally composed."""
    share, each = _split(rounds)
    local = _subsampled(_clones_2021(each), share)
    return composition.kairouz_oh_viswanath_epsilon(local, share * each, rounds, MNIST_DELTA)


def _split(rounds: int) -> tuple[float, float]:
    """The share that is asked, and the delta of each shuffle, if the rounds get half of it."""
    share = MNIST_COHORT / MNIST_USERS
    return share, 0.5 * MNIST_DELTA / (rounds * share)


def _clones_2021(delta: float) -> float:
    crowd = Shuffled(LocalRandomizer(MNIST_EPSILON0), n=MNIST_COHORT, analysis="clones-2021")
    return crowd.upper_epsilon(delta=delta)


def _as_in_the_notebook(rounds: int) -> dict[str, float]:
    """One shuffle by the coarse search and by a full one, and both composed by the closed form."""
    share, each = _split(rounds)
    ways = {
        "coarse": coarse_clones_as_published(MNIST_EPSILON0, MNIST_COHORT, each),
        "full": _clones_2021(each),
    }
    totals = {
        f"{name} total": composition.kairouz_oh_viswanath_closed_epsilon(
            _subsampled(one, share), share * each, rounds, MNIST_DELTA
        )
        for name, one in ways.items()
    }
    return ways | totals


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
    certified = Curve.epsilon(ANY, times, [T * one for T in times], DELTA, "certified")
    curves = [certified, *Curve.each("sound", times, bounds, ["Theorem 1", "composition", "printed"])]
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
