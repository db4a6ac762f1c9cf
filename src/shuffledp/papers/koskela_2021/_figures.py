"""Koskela, Heikkila, Honkela 2021, "Tight accounting in the shuffle model": Figures 1, 2, supplement."""

from __future__ import annotations

import math

import numpy as np

from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.accounting.mechanism import KnownLoss, Shuffled
from shuffledp.literature.as_published import koskela_2021 as printed, koskela_2023 as tails
from shuffledp.literature.closed_forms import balle_2019_krr_delta, feldman_2021_delta
from shuffledp.literature.composition import dwork_rothblum_vadhan_delta
from shuffledp.papers._result import Curve, Panel, Result, Setting, Table, item, power_of_ten
from shuffledp.randomizers.kary import KaryRandomizedResponse
from shuffledp.randomizers.local import LocalRandomizer

N, K, GAMMA = 1000, 4, 0.25
SURVEY = KaryRandomizedResponse(k=K, gamma=GAMMA)
MESSAGES = (1, 2, 4)
LOCAL = LocalRandomizer(epsilon0=4.0)
FLOOR = 1e-12
"""Of the axes."""


@item
def figure_1(setting: Setting) -> Result:
    """k-ary randomized response: strong and weak adversary, several messages."""
    weak, strong = Shuffled(SURVEY, n=N), Shuffled(SURVEY, n=N, analysis="strong")
    epsilon = np.linspace(0.05, 2.0, setting.choose(60, 12))
    curves = []
    for count in MESSAGES:
        curves.append(Curve.delta(f"weak, {_messages(count)}", count * weak, epsilon, str(count)))
        name = f"strong, {_messages(count)}"
        curves.append(Curve.upper(name, count * strong, epsilon, hue=str(count), line="--"))
    panels = [Panel("4-ary randomized response, n = 1000, γ = 0.25", curves, floor=FLOOR)]
    epsilon = np.linspace(0.05, 1.2, setting.choose(47, 9))
    truth = Curve.upper("strong, 1 message", strong, epsilon, hue="1", line="--")
    analytic = {"Balle et al. 2019, Theorem 3.1": lambda e: balle_2019_krr_delta(SURVEY.epsilon0, K, N, e)}
    wrong = {
        # Indistinguishability asks for both directions.
        "one-dimensional counts P_s, Q_s": (lambda e: max(printed.marginals_as_published(N, K, GAMMA, e))),
        "Theorem 8, independent counts": lambda e: tails.strong_tail_as_published(N, K, GAMMA, e),
    }
    others = [
        *Curve.each("sound", epsilon, analytic, ["analytic"]),
        *Curve.each("unsound", epsilon, wrong, ["printed", "1"]),
    ]
    formulas = Panel("the strong adversary's formulas, 1 message", [truth, *others], floor=FLOOR)
    panels += [
        formulas,
        formulas.ratio("over the divergence", [(each, truth) for each in others], "ratio of δ"),
    ]
    numbers = {
        "truth": strong.upper_delta(epsilon=0.5),
        "tail": tails.strong_tail_as_published(N, K, GAMMA, 0.5),
        "counts": printed.marginals_as_published(N, K, GAMMA, 0.5),
        "analytic": balle_2019_krr_delta(SURVEY.epsilon0, K, N, 1.0),
        "exact": strong.upper_delta(epsilon=1.0),
    }
    return Result(panels, numbers)


@item
def figure_2(setting: Setting) -> Result:
    """delta(epsilon) of any 4-LDP randomizer, n = 10^4."""
    panels, table = _any_randomizer(setting, 10**4)
    return Result(panels, {"looser": _looser(table)}, [table])


@item
def supplement(setting: Setting) -> Result:
    """The same for n = 10^5 and 10^6; two comparisons that the text defers to the supplement."""
    panels, table = _any_randomizer(setting, 10**5, 10**6)
    strong, weak = Shuffled(SURVEY, n=N, analysis="strong"), Shuffled(SURVEY, n=N)
    epsilon = np.linspace(0.05, 6.0, setting.choose(60, 12))
    inner = np.linspace(27.0 * K / ((N - 1) * GAMMA) + 1e-9, 1.0, 40).tolist()
    once = [(e, balle_2019_krr_delta(SURVEY.epsilon0, K, N, e)) for e in inner]
    curves = []
    for count in MESSAGES:
        name, view = f"strong, {_messages(count)}", count * strong
        # Beyond the picture's floor the accountant would work long for what is not drawn.
        drawn = epsilon[epsilon < view.upper_epsilon(delta=0.01 * FLOOR)]
        curves.append(Curve.upper(name, view, drawn, hue=str(count)))

        def composed(target: float, count: int = count) -> float:
            return min(dwork_rothblum_vadhan_delta(e, d, count, target) for e, d in once)

        name = f"Theorem 3.1, advanced, {_messages(count)}"
        curves += Curve.each("sound", epsilon, {name: composed}, [str(count)], ["-."])
    advanced = Panel("k-RR, n = 1000: Balle et al., composed", curves, floor=FLOOR)
    epsilon, pair = np.linspace(0.05, 2.5, setting.choose(50, 10)), transcribed_2021(SURVEY.epsilon0, N)
    curves = []
    for count in MESSAGES:
        curves.append(Curve.upper(f"weak, {_messages(count)}", count * weak, epsilon, hue=str(count)))
        name = f"(5.1)-(5.2), {_messages(count)}"
        curves.append(Curve.upper(name, count * pair, epsilon, "sound", str(count), "-."))
    general = Panel("k-RR, n = 1000: the pair for any randomizer", curves, floor=FLOOR)
    numbers = {
        "looser": _looser(table),
        "advanced": min(d for _, d in once),
        "strong": strong.upper_epsilon(delta=1e-6),
        "weak": weak.upper_epsilon(delta=1e-6),
        "general": pair.upper_epsilon(delta=1e-6),
    }
    return Result([*panels, advanced, general], numbers, [table])


def _messages(count: int) -> str:
    return f"{count} message{'s' * (count > 1)}"


def _looser(table: Table) -> float:
    """How much larger the printed pair's epsilon is than that of the clones it transcribes, in per cent."""
    return 100.0 * max(float(row[3]) / float(row[2]) - 1.0 for row in table.rows)


def _any_randomizer(setting: Setting, *sizes: int) -> tuple[list[Panel], Table]:
    panels = [_any_randomizer_panel(n, setting.choose(40, 9)) for n in sizes]
    rows = []
    for n in sizes:
        new, old = (Shuffled(LOCAL, n=n, analysis=name) for name in ("clones", "clones-2021"))
        rounds = new, old, transcribed_2021(4.0, n)
        rows.append((f"{n:,}", *(f"{part.upper_epsilon(delta=1e-6):.4f}" for part in rounds)))
    columns = ("n", "2022 clones", "2021 clones", "(5.1)-(5.2) as printed")
    return panels, Table("epsilon at delta = 1e-6, one message", columns, rows)


def _any_randomizer_panel(n: int, points: int) -> Panel:
    """Colour is the number of messages, dashes the pair."""
    epsilon = np.linspace(0.02, 1.2, points) * math.sqrt(10**4 / n)
    old, pair = Shuffled(LOCAL, n=n, analysis="clones-2021"), transcribed_2021(4.0, n)
    curves = [
        Curve.delta("2022 clones, 1 message", Shuffled(LOCAL, n=n, analysis="clones"), epsilon, "certified")
    ]
    for count in MESSAGES:
        for name, way, line in (("2021 clones", old, "--"), ("(5.1)-(5.2)", pair, "-.")):
            called = f"{name}, {_messages(count)}"
            curves.append(Curve.upper(called, count * way, epsilon, "sound", str(count), line))
    closed = {"2021 clones, closed form": lambda e: feldman_2021_delta(4.0, n, e)}
    curves += Curve.each("sound", epsilon, closed, ["analytic"])
    return Panel(f"any ε₀-LDP randomizer, n = {power_of_ten(n)}, ε₀ = 4", curves, floor=FLOOR)


def transcribed_2021(epsilon0: float, n: int) -> KnownLoss:
    """P = (A + D, C - A), Q = (A, C - A + D); C ~ Bin(n-1, e^-epsilon0), A ~ Bin(C, 1/2).

    (5.1)-(5.2). Its outcomes are counts of three types of reports, so it is itself a shuffled round,
    with the law below. Sound and loose."""
    truth, rate = 1.0 / (1.0 + math.exp(-epsilon0)), math.exp(-epsilon0)
    lie = truth * rate
    profile = AmplificationProfile(
        n,
        own=(truth, 0.0, lie),
        other=(0.0, truth, lie),
        gap=(truth, -truth, 0.0),
        clone=(0.5 * rate, 0.5 * rate, -math.expm1(-epsilon0)),
    )
    return KnownLoss(profile)
