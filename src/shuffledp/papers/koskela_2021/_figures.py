"""Koskela, Heikkila, Honkela 2021, "Tight accounting in the shuffle model": Figures 1, 2, supplement."""

from __future__ import annotations

import math

import numpy as np

from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.accounting.mechanism import KnownLoss, Shuffled
from shuffledp.literature.as_published import koskela_2021 as printed, koskela_2023 as tails
from shuffledp.literature.closed_forms import balle_2019_krr_delta, feldman_2021_delta
from shuffledp.papers._result import Curve, Panel, Result, Setting, Table, item, power_of_ten
from shuffledp.randomizers.kary import KaryRandomizedResponse
from shuffledp.randomizers.local import LocalRandomizer

N, K, GAMMA = 1000, 4, 0.25
LOCAL = LocalRandomizer(epsilon0=4.0)


@item
def figure_1(setting: Setting) -> Result:
    """k-ary randomized response: strong and weak adversary, several messages."""
    survey = KaryRandomizedResponse(k=K, gamma=GAMMA)
    weak, strong = Shuffled(survey, n=N), Shuffled(survey, n=N, analysis="strong")
    panels = []
    for rounds, end in ((1, 1.2), (2, 1.6), (4, 2.0)):
        epsilon = np.linspace(0.05, end, setting.choose(47, 9))
        curves = [
            Curve.upper("strong adversary", rounds * strong, epsilon),
            Curve.delta("weak adversary", rounds * weak, epsilon),
        ]
        if rounds == 1:
            curves += _published(epsilon, survey.epsilon0)
        messages = f"{rounds} message{'s' * (rounds > 1)}"
        title = f"4-ary randomized response, n = 1000, γ = 0.25, {messages}"
        panels.append(Panel(title, curves, floor=1e-12))
    numbers = {
        "truth": strong.upper_delta(epsilon=0.5),
        "tail": tails.strong_tail_as_published(N, K, GAMMA, 0.5),
        "counts": printed.marginals_as_published(N, K, GAMMA, 0.5),
        "analytic": balle_2019_krr_delta(survey.epsilon0, K, N, 1.0),
        "exact": strong.upper_delta(epsilon=1.0),
    }
    return Result(panels, numbers)


def _published(epsilon: np.ndarray, epsilon0: float) -> list[Curve]:
    analytic = {"Balle et al. 2019, Theorem 3.1": lambda e: balle_2019_krr_delta(epsilon0, K, N, e)}
    wrong = {
        "one-dimensional counts P_s, Q_s": (lambda e: printed.marginals_as_published(N, K, GAMMA, e)[0]),
        "Theorem 8, independent counts": lambda e: tails.strong_tail_as_published(N, K, GAMMA, e),
    }
    return Curve.each("sound", epsilon, analytic) + Curve.each("unsound", epsilon, wrong)


@item
def figure_2(setting: Setting) -> Result:
    """delta(epsilon) of any 4-LDP randomizer, n = 10^4."""
    return _any_randomizer(setting, 10**4)


@item
def supplement(setting: Setting) -> Result:
    """The same for n = 10^5 and 10^6."""
    return _any_randomizer(setting, 10**5, 10**6)


def _any_randomizer(setting: Setting, *sizes: int) -> Result:
    panels = [_any_randomizer_panel(n, setting.choose(40, 9)) for n in sizes]
    rows = []
    for n in sizes:
        rounds = (
            Shuffled(LOCAL, n=n),
            Shuffled(LOCAL, n=n, analysis="clones-2021"),
            clones_of_2021_as_transcribed(4.0, n),
        )
        rows.append((f"{n:,}", *(f"{part.upper_epsilon(delta=1e-6):.4f}" for part in rounds)))
    columns = ("n", "2022 clones", "2021 clones", "(5.1)-(5.2) as printed")
    return Result(panels, tables=[Table("epsilon at delta = 1e-6, one message", columns, rows)])


def _any_randomizer_panel(n: int, points: int) -> Panel:
    epsilon = np.linspace(0.02, 1.2, points) * math.sqrt(10**4 / n)
    old = Shuffled(LOCAL, n=n, analysis="clones-2021")
    pair = clones_of_2021_as_transcribed(4.0, n)
    names = {1: "1 message", 2: "2 messages", 4: "4 messages"}
    closed = {"2021 clones, closed form": lambda e: feldman_2021_delta(4.0, n, e)}
    curves = [
        Curve.delta("2022 clones, 1 message", Shuffled(LOCAL, n=n), epsilon),
        *(Curve.upper(f"2021 clones, {names[c]}", c * old, epsilon) for c in names),
        *(Curve.upper(f"(5.1)-(5.2), {names[c]}", c * pair, epsilon, "sound") for c in names),
        *Curve.each("sound", epsilon, closed),
    ]
    title = f"any ε₀-LDP randomizer, n = {power_of_ten(n)}, ε₀ = 4"
    return Panel(title, curves, floor=1e-12)


def clones_of_2021_as_transcribed(epsilon0: float, n: int) -> KnownLoss:
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
