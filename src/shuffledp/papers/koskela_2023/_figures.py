"""Koskela, Heikkila, Honkela 2023, "Numerical accounting in the shuffle model", Figures 1 to 4."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shuffledp._certified.rounding import Floats
from shuffledp.accounting._curves.clones import strong_clones
from shuffledp.accounting.mechanism import Mechanism, Shuffled
from shuffledp.literature.composition import kairouz_oh_viswanath_delta
from shuffledp.literature.girgis import ORDERS, girgis_2021_epsilon, girgis_2021_lower
from shuffledp.literature.renyi import (
    delta_from_renyi,
    epsilon_from_renyi,
    renyi_divergence,
)
from shuffledp.papers._result import (
    Curve,
    Item,
    Panel,
    Result,
    Setting,
    Table,
    delta_curve,
    epsilon_curve,
    evaluated,
    upper_curve,
)
from shuffledp.papers.koskela_2023 import as_published as printed
from shuffledp.plotting._style import LABELS
from shuffledp.randomizers.kary import KaryRandomizedResponse
from shuffledp.randomizers.local import LocalRandomizer

DELTA, EPSILON = LABELS["delta"], LABELS["epsilon"]
STRONG_CURVE = (0.5473, 0.6415, 0.7288, 0.8113, 0.8903)
"""The paper's strong curve of Figure 4 at delta = 1e-4, 10^-4.75, ..., 1e-7."""
STRONG_LEVELS = tuple(10.0**-power for power in (4.0, 4.75, 5.5, 6.25, 7.0))


def _one_round_composed(one: Mechanism, rounds: int, epsilon: Floats, points: int) -> Curve:
    """The best of many (epsilon1, delta1) of one round, composed by Kairouz et al. 2015."""
    inner = np.linspace(0.02, float(epsilon[-1]), points)
    leaks = one.upper_delta(epsilon=inner)

    def total(target: float) -> float:
        pairs = zip(inner, leaks, strict=True)
        return min(kairouz_oh_viswanath_delta(float(e), float(d), rounds, target) for e, d in pairs)

    return evaluated(f"2021 clones, {rounds} rounds, optimal composition", "sound", epsilon, total)


def _renyi_curves(rounds: tuple[int, ...], epsilon: Floats, orders: Floats) -> list[Curve]:
    profile = strong_clones(4.0, 10**4)
    known = [(float(L), renyi_divergence(profile, float(L)).upper) for L in orders]

    def at(count: int) -> Callable[[float], float]:
        return lambda e: min(delta_from_renyi(count * D, L, e) for L, D in known)

    names = {1: "1 round", 2: "2 rounds"}
    return [evaluated(f"Renyi, {names[count]}", "sound", epsilon, at(count)) for count in rounds]


def figure_1(setting: Setting) -> Result:
    """delta(epsilon) of any 4-LDP randomizer, n = 10^4, one round and two."""
    epsilon = np.linspace(0.02, 1.2, setting.choose(60, 13))
    one = Shuffled(LocalRandomizer(epsilon0=4.0), n=10**4, analysis="clones")
    old = Shuffled(LocalRandomizer(epsilon0=4.0), n=10**4, analysis="clones-2021")
    certified = [delta_curve("2022 clones, 1 round", one, epsilon)]
    certified.append(delta_curve("2022 clones, 2 rounds", 2 * one, epsilon))
    orders = np.geomspace(1.5, 100.0, setting.choose(40, 10))
    others = [
        upper_curve("2021 clones, 1 round", old, epsilon),
        _one_round_composed(old, 2, epsilon, setting.choose(200, 40)),
        *_renyi_curves((1, 2), epsilon, orders),
    ]
    panel = Panel(
        "any ε₀-LDP randomizer, n = 10⁴, ε₀ = 4", EPSILON, DELTA, (*certified, *others), floor=1e-12
    )
    two = (2 * one).epsilon(delta=1e-6)
    best = min(
        (epsilon_from_renyi(2 * renyi_divergence(strong_clones(4.0, 10**4), L).upper, L, 1e-6), L)
        for L in map(float, orders)
    )
    return Result(
        shows="""delta against epsilon for a general shuffled randomizer with epsilon0 = 4 and n =
        10,000 users: privacy loss distributions (FA) against Renyi accounting and the numerical
        method of Feldman et al. 2021, for one composition and two.""",
        computed="""The same pair of laws (strong clones, p = 1/(e^epsilon0 + 1)), composed by the
        certified accountant; the band reaches down to what a concrete pair of datasets of one
        4-LDP randomizer attains. Renyi divergences are integrals of the same certified curve,
        converted by Canonne, Kamath, Steinke 2020. The 2021 clones for two rounds use optimal
        composition (Kairouz et al. 2015) at the best of many per-round epsilons.""",
        difference=f"""The picture is the same. At delta = 1e-6 two rounds have epsilon <=
        {two.upper:.4f} (and no analysis can certify less than {two.lower:.4f} for every
        randomizer); the Renyi route gives {best[0]:.4f}.""",
        why="""The pair at p = 1/(e^epsilon0 + 1) is right, so is this figure. Three things in the
        paper's text are not used here: equation (2.1) lacks e^epsilon, Lemma A.4 has (1-p) for
        (1-2p) and p for 2p, and Lemma 11's truncation omits outcomes without any clone, so that
        the mass it neglects can be far more than its tau (1.3e-2 for tau = 1e-10 at n = 20,
        epsilon0 = 4). The accountant counts what it leaves out.""",
        panels=(panel,),
        missing="""The picture itself is not in the text we have: curves are compared in shape with
        what the caption says, not point by point.""",
    )


def figure_2(setting: Setting) -> Result:
    """Convergence of the discretised subsampled pair with the grid of alpha."""
    one = Shuffled(LocalRandomizer(epsilon0=3.0), n=100, analysis="clones").sampled_from(10**4)
    epsilon = np.linspace(0.0, 0.17, setting.choose(171, 35))
    curve = upper_curve("Lemma 7, no grid", one, epsilon)
    chords = [_chords(one, size, epsilon) for size in (10, 20, 40, 100)]
    inner = np.log1p(np.expm1(epsilon) / 0.01)
    crowd = 0.01 * strong_clones(3.0, 10**4).upper(inner, 1e-3)
    mistaken = Curve("Lemma 7 with 10⁴ users in the shuffle", "unsound", epsilon, crowd)
    panel = Panel(
        "ε₀ = 3, a random 100 of 10⁴ users", EPSILON, DELTA, (curve, *chords, mistaken), floor=1e-9
    )
    at = 0.05
    coarse, fine = (float(np.interp(at, epsilon, chord.y)) for chord in (chords[0], chords[-1]))
    exact = float(np.interp(at, epsilon, curve.y))
    return Result(
        shows="""How the discretised dominating pair of the subsampled shuffler converges as the
        grid of alpha is refined: epsilon0 = 3, n = 10,000, gamma = 0.01, alpha from e^-0.25 to
        e^0.25.""",
        computed="""h(alpha) of Lemma 7 for a shuffle of gamma n = 100 users, certified, and the
        discrete pairs on logarithmic grids of 10, 20, 40 and 100 points: between grid points their
        curve is the chord (in alpha) of h, so it lies above h and touches it at the grid.""",
        difference=f"""At epsilon = {at}: grid of 10 points {coarse:.3e}, of 100 points {fine:.3e},
        without a grid {exact:.3e}. As in the paper the bounds fall to the curve.""",
        why="""Lemma 7 is right, with three warnings. The pair (P, Q) must be that of gamma n
        users, not n: the curve marked unsound takes n = 10,000 and is far too small. Neither of
        the two forms holds for all alpha alone; composing the pair (gamma P + (1-gamma) Q, Q) by
        itself is unsound. And "f(alpha)" below (2.3) should read h(alpha).""",
        panels=(panel,),
        missing="The grid sizes of the paper's curves are not in the text we have.",
    )


def _chords(one: Shuffled, size: int, epsilon: Floats) -> Curve:
    grid = np.linspace(-0.25, 0.25, size)
    alpha = np.concatenate([[0.0], np.exp(grid)])
    values = np.concatenate([[1.0], one.profile(np.exp(grid)).upper])
    return Curve(f"grid of {size} α", "sound", epsilon, np.interp(np.exp(epsilon), alpha, values))


def figure_3(setting: Setting) -> Result:
    """epsilon against the number of compositions of subsampled shufflers."""
    rounds = np.unique(np.geomspace(1, 10**5, setting.choose(26, 8)).round().astype(int))
    panels, last = [], {}
    for cohort in (10**4, 10**3):
        share = cohort / 10**6
        curves = _girgis_curves(3.0, cohort, 10**6, rounds, 1e-6)
        panels.append(
            Panel(
                f"ε₀ = 3, n = 10⁶, γ = {share:g}",
                LABELS["rounds"],
                f"{EPSILON} at δ = 10⁻⁶",
                curves,
                x_log=True,
            )
        )
        last[cohort] = [curve.y for curve in curves]
    ours, upper, lower = last[10**4]
    crossed = rounds[np.flatnonzero(lower < ours)]
    where = f"it is below from {crossed[0]:,} rounds on" if crossed.size else "not on this grid"
    return Result(
        shows="""epsilon(delta) of composed subsampled shufflers against the number of
        compositions: the Fourier accountant with Lemma 7 against "the RDP bounds given in Thm. 2"
        of Girgis et al. 2021. The text remarks that the bounds "seem to cross as the number of
        compositions grows large".""",
        computed="""Certified epsilon of the same composition (clones of the cohort, Lemma 7),
        Theorem 1 of Girgis et al. (a valid upper bound of the Renyi divergence) and Theorem 2 (a
        *lower* bound, what binary randomized response attains), both converted to epsilon at delta
        = 1e-6 at the best whole order up to 256.""",
        difference=f"""With gamma = 0.01 and 100,000 rounds: certified {ours[-1]:.3f}, Theorem 1
        {upper[-1]:.3f}. Theorem 1 never crosses the certified curve. The converted Theorem 2 does:
        {where}.""",
        why="""In the supplement that we have, Theorem 1 is the upper bound and Theorem 2 the lower
        one. A converted lower bound is not a guarantee of anything; that the paper's caption names
        Theorem 2, and that its curves cross, suggests that Figure 3 compares with the lower bound.
        Against the upper bound the numerical accountant wins everywhere. (The converted Theorem 2
        is flat on the left because orders end at 256; with larger orders it lies below
        everywhere.)""",
        panels=tuple(panels),
        missing="""epsilon0, n, gamma and delta of the figure are not in the text we have; epsilon0
        = 3 is that of its Figure 2, n = 10^6 that of Girgis et al.""",
    )


def _girgis_curves(
    epsilon0: float, cohort: int, population: int, rounds: Any, delta: float
) -> tuple[Curve, ...]:
    one = Shuffled(LocalRandomizer(epsilon0), n=cohort, analysis="clones").sampled_from(population)
    certified = epsilon_curve("clones and Lemma 7", rounds, [int(T) * one for T in rounds], delta)
    orders = np.unique(np.geomspace(ORDERS[0], ORDERS[-1], 60).round())
    known = [(L, girgis_2021_lower(epsilon0, cohort, population, float(L))) for L in orders]

    def converted(T: float) -> float:
        return min(epsilon_from_renyi(T * D, float(L), delta) for L, D in known)

    def upper(T: float) -> float:
        return girgis_2021_epsilon(epsilon0, cohort, population, int(T), delta)

    return (
        certified,
        evaluated("Girgis et al., Theorem 1", "sound", rounds, upper),
        evaluated("Girgis et al., Theorem 2, converted", "unsound", rounds, converted),
    )


def figure_4(setting: Setting) -> Result:
    """k-ary randomized response: strong and weak adversary, and the clones."""
    survey = KaryRandomizedResponse(k=4, gamma=0.25)
    n, gamma, epsilon0 = 1000, 0.25, survey.epsilon0
    names = {"strong": "strong adversary", "blanket": "weak adversary", "clones": "2022 clones"}
    panels = []
    for rounds, end in ((1, 1.2), (4, 2.0)):
        epsilon = np.linspace(0.05, end, setting.choose(47, 9))
        curves = [
            (delta_curve if analysis == "blanket" else upper_curve)(
                name, rounds * Shuffled(survey, n=n, analysis=analysis), epsilon
            )
            for analysis, name in names.items()
        ]
        if rounds == 1:
            curves += _published_krr(epsilon, n, gamma, epsilon0)
        panels.append(_krr_panel(rounds, curves))
    weak = Shuffled(survey, n=n).delta(epsilon=1.0)
    tail = printed.weak_tail_as_published(n, 4, gamma, 1.0)
    pair = printed.specific_clones_as_published(4, epsilon0, n, 1.0)
    rows = []
    for level, shown in zip(STRONG_LEVELS, STRONG_CURVE, strict=True):
        again = printed.strong_figure_as_published(n, 4, gamma, shown)
        ours = [
            f"{Shuffled(survey, n=n, analysis=analysis).upper_epsilon(delta=level):.4f}"
            for analysis in names
        ]
        rows.append((f"{level:.3g}", f"{shown:.4f}", f"{again:.3g}", *ours))
    columns = (
        "delta",
        "paper, strong",
        "its formula there",
        *(f"{n}, certified" for n in names.values()),
    )
    return Result(
        shows="""delta against epsilon of 4-ary randomized response, n = 1000, gamma = 0.25, for
        the strong adversary, the weak one, and the 2022 clones, for several numbers of
        compositions.""",
        computed="""The true hockey-stick divergences of the three, certified, for one round and
        four. For one round also what is printed: the tails of Theorems 13 and 16 with independent
        counts, and the pair (3.1)-(3.2) with p = 1/(e^epsilon0 + k - 1).""",
        difference=f"""The drawn strong curve is not Theorem 13's expression: it is the hockey
        stick without the mass gamma of harmless outcomes, too large by the factor 1/(1 - gamma)
        (table: its formula gives back the level to three digits). At epsilon = 1 the truth is
        between {weak.lower:.3e} and {weak.upper:.3e}; Theorem 16's tail is {tail:.3e} and the
        specific clones pair {pair:.3e}, both below it.""",
        why="""A tail probability Pr[ratio >= e^epsilon] is not a hockey stick: with the true joint
        law it is above it and never tight; with independent counts, as written, it is no bound at
        all. The clone pair with p < 1/(e^epsilon0 + 1) is below the truth of a concrete dataset
        for every k >= 3. That the weak adversary beats the clones holds, modestly: the weak pair
        is the privacy blanket, which is always the tighter one.""",
        panels=tuple(panels),
        tables=(Table("The strong curve of the figure (one round)", columns, tuple(rows)),),
        missing="The numbers of compositions of the figure are not in the text we have.",
    )


def _published_krr(epsilon: Floats, n: int, gamma: float, epsilon0: float) -> list[Curve]:
    return [
        evaluated(
            "Theorem 16, independent counts",
            "unsound",
            epsilon,
            lambda e: printed.weak_tail_as_published(n, 4, gamma, e),
        ),
        evaluated(
            "clones with p = 1/(E+k-1)",
            "unsound",
            epsilon,
            lambda e: printed.specific_clones_as_published(4, epsilon0, n, e),
        ),
        evaluated(
            "Theorem 13, independent counts",
            "unsound",
            epsilon,
            lambda e: printed.strong_tail_as_published(n, 4, gamma, e),
        ),
        Curve("Figure 4, strong", "published", STRONG_CURVE, STRONG_LEVELS),
    ]


def _krr_panel(rounds: int, curves: list[Curve]) -> Panel:
    title = f"4-ary randomized response, n = 1000, γ = 0.25, {rounds} round{'s' * (rounds > 1)}"
    return Panel(title, EPSILON, DELTA, tuple(curves), floor=1e-14)


ITEMS = (
    Item(
        "koskela-2023-figure-1", "Koskela et al. 2023, Figure 1: any randomizer, composed", figure_1
    ),
    Item("koskela-2023-figure-2", "Koskela et al. 2023, Figure 2: grids for subsampling", figure_2),
    Item("koskela-2023-figure-3", "Koskela et al. 2023, Figure 3: subsampled rounds", figure_3),
    Item(
        "koskela-2023-figure-4",
        "Koskela et al. 2023, Figure 4: strong and weak adversary",
        figure_4,
    ),
)
