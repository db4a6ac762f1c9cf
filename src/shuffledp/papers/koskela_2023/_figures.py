"""Koskela, Heikkila, Honkela 2023, "Numerical accounting in the shuffle model", Figures 1 to 4."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shuffledp._certified.rounding import Floats
from shuffledp.accounting.mechanism import Mechanism, Shuffled
from shuffledp.literature.as_published import koskela_2023 as printed
from shuffledp.literature.cohorts import koskela_2023_cohort
from shuffledp.literature.composition import kairouz_oh_viswanath_delta
from shuffledp.literature.girgis import ORDERS, girgis_2021_epsilon, girgis_2021_lower
from shuffledp.literature.renyi import delta_from_renyi, epsilon_from_renyi, renyi_divergence
from shuffledp.papers._result import Curve, Panel, Result, Setting, Table, item, whole_numbers
from shuffledp.plotting._style import LABELS
from shuffledp.randomizers.kary import KaryRandomizedResponse
from shuffledp.randomizers.local import LocalRandomizer

N, K, GAMMA = 1000, 4, 0.25
"""Of Figure 4."""
STRONG_CURVE = (0.5473, 0.6415, 0.7288, 0.8113, 0.8903)
"""The paper's strong curve of Figure 4 at delta = 1e-4, 10^-4.75, ..., 1e-7."""
STRONG_LEVELS = tuple(10.0**-power for power in (4.0, 4.75, 5.5, 6.25, 7.0))


@item
def figure_1(setting: Setting) -> Result:
    """delta(epsilon) of any 4-LDP randomizer, n = 10^4, one round and two."""
    epsilon = np.linspace(0.02, 1.2, setting.choose(60, 13))
    one = Shuffled(LocalRandomizer(epsilon0=4.0), n=10**4, analysis="clones")
    old = Shuffled(LocalRandomizer(epsilon0=4.0), n=10**4, analysis="clones-2021")
    orders = np.geomspace(1.5, 100.0, setting.choose(40, 10)).tolist()
    known = [(L, renyi_divergence(one.round.profile, L).upper) for L in orders]

    def renyi(rounds: int) -> Callable[[float], float]:
        return lambda e: min(delta_from_renyi(rounds * D, L, e) for L, D in known)

    others = {
        "2021 clones, 2 rounds, optimal composition": _one_round_composed(
            old, 2, np.linspace(0.02, float(epsilon[-1]), setting.choose(200, 40))
        ),
        "Renyi, 1 round": renyi(1),
        "Renyi, 2 rounds": renyi(2),
    }
    curves = [
        Curve.delta("2022 clones, 1 round", one, epsilon),
        Curve.delta("2022 clones, 2 rounds", 2 * one, epsilon),
        Curve.upper("2021 clones, 1 round", old, epsilon),
        *Curve.each("sound", epsilon, others),
    ]
    numbers = {
        "two": (2 * one).epsilon(delta=1e-6),
        "renyi": min(epsilon_from_renyi(2 * D, L, 1e-6) for L, D in known),
    }
    return Result([Panel("any ε₀-LDP randomizer, n = 10⁴, ε₀ = 4", curves, floor=1e-12)], numbers)


def _one_round_composed(one: Mechanism, rounds: int, inner: Floats) -> Callable[[float], float]:
    """The best of many (epsilon1, delta1) of one round, composed by Kairouz et al. 2015."""
    pairs = list(zip(inner.tolist(), one.upper_delta(epsilon=inner).tolist(), strict=True))
    return lambda target: min(kairouz_oh_viswanath_delta(e, d, rounds, target) for e, d in pairs)


@item
def figure_2(setting: Setting) -> Result:
    """Convergence of the discretised subsampled pair with the grid of alpha."""
    cohort = Shuffled(LocalRandomizer(epsilon0=3.0), n=100, analysis="clones").sampled_from(10**4)
    one = koskela_2023_cohort(cohort)
    epsilon = np.linspace(0.0, 0.17, setting.choose(171, 35))
    curve = Curve.upper("Lemma 7, no grid", one, epsilon)
    chords = [_chords(one, size, epsilon) for size in (10, 20, 40, 100)]
    crowd = Shuffled(LocalRandomizer(epsilon0=3.0), n=10**4, analysis="clones")
    mistaken = 0.01 * crowd.round.profile.upper(np.log1p(np.expm1(epsilon) / 0.01), 1e-3)
    wrong = Curve("Lemma 7 with 10⁴ users in the shuffle", "unsound", epsilon, mistaken)
    tight = Curve.upper("certified now, T5'", cohort, epsilon)
    panel = Panel("ε₀ = 3, a random 100 of 10⁴ users", [curve, *chords, wrong, tight], floor=1e-9)
    at = 0.05
    shown = {"coarse": chords[0], "fine": chords[-1], "exact": curve, "tight": tight}
    numbers = {name: float(np.interp(at, epsilon, each.y)) for name, each in shown.items()}
    return Result([panel], {"at": at, **numbers})


def _chords(one: Mechanism, size: int, epsilon: Floats) -> Curve:
    grid = np.linspace(-0.25, 0.25, size)
    alpha = np.concatenate([[0.0], np.exp(grid)])
    values = np.concatenate([[1.0], one.profile(np.exp(grid)).upper])
    return Curve(f"grid of {size} α", "sound", epsilon, np.interp(np.exp(epsilon), alpha, values))


@item
def figure_3(setting: Setting) -> Result:
    """epsilon against the number of compositions of subsampled shufflers."""
    rounds = whole_numbers(1, 10**5, setting.choose(26, 8))
    panels = [_subsampled_panel(cohort, rounds) for cohort in (10**4, 10**3)]
    ours, _, _, lower = panels[0].curves
    crossed = [T for T, low, high in zip(rounds, lower.y, ours.y, strict=True) if low < high]
    where = f"it is below from {crossed[0]:,} rounds on" if crossed else "not on this grid"
    return Result(panels, {"end": panels[0].last, "where": where})


def _subsampled_panel(cohort: int, rounds: list[int]) -> Panel:
    at, delta = (3.0, cohort, 10**6), 1e-6
    one = Shuffled(LocalRandomizer(3.0), n=cohort, analysis="clones").sampled_from(10**6)
    published = koskela_2023_cohort(one)
    orders = whole_numbers(ORDERS[0], ORDERS[-1], 60)
    known = [(float(L), girgis_2021_lower(*at, float(L))) for L in orders]

    def converted(T: int) -> float:
        return min(epsilon_from_renyi(T * D, L, delta) for L, D in known)

    def lemma_7(T: int) -> float:
        return (T * published).upper_epsilon(delta=delta)

    def theorem_1(T: int) -> float:
        return girgis_2021_epsilon(*at, T, delta)

    curves = [
        *Curve.each("sound", rounds, {"clones and Lemma 7": lemma_7}),
        Curve.epsilon("certified now, T5'", rounds, [T * one for T in rounds], delta),
        *Curve.each("sound", rounds, {"Girgis et al., Theorem 1": theorem_1}),
        *Curve.each("unsound", rounds, {"Girgis et al., Theorem 2, converted": converted}),
    ]
    title = f"ε₀ = 3, n = 10⁶, γ = {one.fraction:g}"
    return Panel(title, curves, LABELS["rounds"], f"{LABELS['epsilon']} at δ = 10⁻⁶", x_log=True)


@item
def figure_4(setting: Setting) -> Result:
    """k-ary randomized response: strong and weak adversary, and the clones."""
    survey = KaryRandomizedResponse(k=K, gamma=GAMMA)
    names = {"strong": "strong adversary", "blanket": "weak adversary", "clones": "2022 clones"}
    views = {names[how]: Shuffled(survey, n=N, analysis=how) for how in names}
    panels = []
    for rounds, end in ((1, 1.2), (4, 2.0)):
        epsilon = np.linspace(0.05, end, setting.choose(47, 9))
        curves = [
            (Curve.delta if name == names["blanket"] else Curve.upper)(name, rounds * view, epsilon)
            for name, view in views.items()
        ]
        if rounds == 1:
            curves += Curve.each("unsound", epsilon, _published(survey.epsilon0))
            curves.append(Curve("Figure 4, strong", "published", STRONG_CURVE, STRONG_LEVELS))
        count = f"{rounds} round{'s' * (rounds > 1)}"
        title = f"4-ary randomized response, n = 1000, γ = 0.25, {count}"
        panels.append(Panel(title, curves, floor=1e-14))
    rows = []
    for level, shown in zip(STRONG_LEVELS, STRONG_CURVE, strict=True):
        again = printed.strong_figure_as_published(N, K, GAMMA, shown)
        ours = (f"{view.upper_epsilon(delta=level):.4f}" for view in views.values())
        rows.append((f"{level:.3g}", f"{shown:.4f}", f"{again:.3g}", *ours))
    certified = (f"{name}, certified" for name in views)
    columns = ("delta", "paper, strong", "its formula there", *certified)
    numbers = {
        "weak": Shuffled(survey, n=N).delta(epsilon=1.0),
        "tail": printed.weak_tail_as_published(N, K, GAMMA, 1.0),
        "pair": printed.specific_clones_as_published(K, survey.epsilon0, N, 1.0),
    }
    return Result(panels, numbers, [Table("The strong curve of the figure (one round)", columns, rows)])


def _published(epsilon0: float) -> dict[str, Callable[[float], float]]:
    return {
        "Theorem 16, independent counts": (lambda e: printed.weak_tail_as_published(N, K, GAMMA, e)),
        "clones with p = 1/(E+k-1)": (lambda e: printed.specific_clones_as_published(K, epsilon0, N, e)),
        "Theorem 13, independent counts": (lambda e: printed.strong_tail_as_published(N, K, GAMMA, e)),
    }
