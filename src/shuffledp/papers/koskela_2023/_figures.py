"""Koskela, Heikkila, Honkela 2023, "Numerical accounting in the shuffle model", Figures 1 to 4.

``stored.json`` has what the authors keep in a public repository: with their parameters the figures can be
compared number by number."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import numpy as np

from shuffledp._certified.rounding import Floats
from shuffledp.accounting._curves.foreign_loss import KnownLossProfile, LossLaw
from shuffledp.accounting.mechanism import KnownLoss, Mechanism, Shuffled
from shuffledp.literature.as_published import koskela_2023 as printed
from shuffledp.literature.cohorts import koskela_2023_cohort
from shuffledp.literature.composition import kairouz_oh_viswanath_delta
from shuffledp.literature.girgis import girgis_2021_epsilon
from shuffledp.literature.renyi import delta_from_renyi, epsilon_from_renyi, renyi_divergence
from shuffledp.papers._result import Curve, Panel, Result, Setting, Table, item
from shuffledp.plotting._style import LABELS
from shuffledp.randomizers.kary import KaryRandomizedResponse
from shuffledp.randomizers.local import LocalRandomizer

STORED: dict[str, Any] = json.loads((files(__package__) / "stored.json").read_text(encoding="utf-8"))
N, K, GAMMA = 1000, 4, 0.25
"""Of Figure 4."""
LEVELS = np.logspace(-4, -7, 5)
COUNTS = (1, 4, 16)


def _apart(curve: Curve, other: Curve) -> float:
    """The largest relative difference of the values of a curve from another's, in per cent."""
    return 100.0 * float(np.nanmax(np.abs(curve.over(other).y - 1.0)))


def _rounds(count: int) -> str:
    return f"{count} round{'s' * (count > 1)}"


@item
def figure_1(setting: Setting) -> Result:
    """delta(epsilon) of any 4-LDP randomizer, n = 10^4, one to four rounds."""
    kept, counts = STORED["figure-1"], (1, 2, 3, 4)
    epsilon = setting.choose(np.linspace(0.1, 1.0, 60), np.array(kept["epsilon"]))
    one = Shuffled(LocalRandomizer(epsilon0=4.0), n=10**4, analysis="clones")
    old = Shuffled(LocalRandomizer(epsilon0=4.0), n=10**4, analysis="clones-2021")
    orders = np.geomspace(1.5, 100.0, setting.choose(40, 10)).tolist()
    known = [(L, renyi_divergence(one.round.profile, L).upper) for L in orders]

    def renyi(rounds: int) -> Callable[[float], float]:
        return lambda e: min(delta_from_renyi(rounds * D, L, e) for L, D in known)

    ours = [Curve.delta(_rounds(c), c * one, epsilon, str(c)) for c in counts]
    theirs, numerical = (
        [
            Curve(f"{name}{_rounds(c)}", "stored", kept["epsilon"], kept[key][str(c)], hue=str(c))
            for c in counts
        ]
        for name, key in (("", "pld"), ("Renyi, ", "feldman"))
    )
    first = Panel("2022 clones, any ε₀-LDP randomizer, n = 10⁴, ε₀ = 4", [*ours, *theirs], floor=1e-16)
    pairs = list(zip(theirs, ours, strict=True))
    inner = np.linspace(0.02, 1.0, setting.choose(150, 40))
    ways = {f"Renyi, {_rounds(c)}": renyi(c) for c in counts[:2]}
    ways |= {f"2021 clones, {_rounds(c)}": _composed(old, c, inner) for c in counts[:2]}
    dashes = ("--", "--", "-.", "-.")  # colour is the number of rounds, dashes the way
    others = Curve.each("sound", epsilon, ways, ["1", "2", "1", "2"], dashes)
    panels = [
        first,
        first.ratio("stored over certified", pairs, "ratio of δ"),
        Panel("the same by other ways", [*ours[:2], *others, *numerical[:2]], floor=1e-12),
    ]
    above = numerical[0].over(ours[0]).y
    once, twice = (stored.over(mine).y for stored, mine in zip(numerical, others[:2], strict=False))
    coded = [
        Curve("the script", "unsound", kept["epsilon"], again)
        for c in counts
        for again in [printed.renyi_figure_as_published(4.0, 10**4, c, np.array(kept["epsilon"]))]
    ]
    numbers = {
        "apart": max(_apart(*pair) for pair in pairs),
        "above": (float(above.min()), float(above.max())),
        "loose": (float(twice.min()), float(twice.max())),
        "below": float(numerical[0].y[once < 1.0][0]),
        "script": max(_apart(*pair) for pair in zip(numerical, coded, strict=True)),
        "two": (2 * one).epsilon(delta=1e-6),
        "renyi": min(epsilon_from_renyi(2 * D, L, 1e-6) for L, D in known),
    }
    return Result(panels, numbers)


def _composed(one: Mechanism, rounds: int, inner: Floats) -> Callable[[float], float]:
    """The best of many (epsilon1, delta1) of one round, composed by Kairouz et al. 2015."""
    pairs = list(zip(inner.tolist(), one.upper_delta(epsilon=inner).tolist(), strict=True))
    return lambda target: min(kairouz_oh_viswanath_delta(e, d, rounds, target) for e, d in pairs)


@item
def figure_2(setting: Setting) -> Result:
    """2000 rounds of the discretised subsampled pair, by the number of points of its grid."""
    epsilon, rounds, sizes = np.linspace(0.2, 1.13, setting.choose(32, 6)), 2000, (100, 500, 3000)
    hues = dict(zip(sizes, ("4", "2", "16"), strict=True))
    panels: list[Panel] = []
    numbers: dict[str, Any] = {}
    attained: list[float] = []
    for cohort, where in ((100, "small"), (10**4, "large")):
        population = 100 * cohort
        tight = Shuffled(LocalRandomizer(3.0), n=cohort, analysis="clones").sampled_from(population)
        one = koskela_2023_cohort(tight)
        truth = Curve.upper("Lemma 7, the accountant's grid", rounds * one, epsilon, hue="Lemma 7")
        certified = Curve.delta("certified", rounds * tight, epsilon, "certified")
        attained.append(float(certified.lower[-1]))
        grids = [_on_grid(one, size, rounds, epsilon, hue) for size, hue in hues.items()]
        title = f"a random {cohort:,} of {population:,} users, ε₀ = 3, {rounds} rounds"
        panels.append(Panel(title, [certified, truth, *grids], floor=1e-20))
        if where == "small":
            pairs = [(grid, truth) for grid in grids]
            panels.append(panels[0].ratio("over Lemma 7 itself", pairs, "ratio of δ"))
        middle = epsilon.size // 3
        numbers[where] = {"at": float(epsilon[middle]), "lemma": float(truth.y[middle])}
        numbers[where]["certified"] = float(certified.y[middle])
        numbers[where] |= {size: float(grid.y[middle]) for size, grid in zip(sizes, grids, strict=True)}
    kept, at = STORED["figure-2"], np.array(STORED["figure-2"]["epsilon"])
    coded = [
        Curve(f"the script, {size} α", "unsound", at, again, hue=hues[size])
        for size in sizes[1:]
        for again in [printed.subsampled_delta_as_published(3.0, 10**4, 0.01, size, rounds, at)]
    ]
    alone = printed.subsampled_pair_as_published(3.0, 10**4, 0.01, rounds, at)
    coded.append(Curve("the script, one form alone", "unsound", at, alone, hue="1"))
    drawn = [
        Curve(f"{size} α, as drawn", "stored", at, kept[str(size)], hue=hues[size]) for size in sizes[1:]
    ]
    drawn.append(Curve("one form alone, as drawn", "stored", at, kept["one form"], hue="1"))
    panels.append(Panel("what the script computes, and what it drew", [*coded, *drawn]))
    numbers["drawn"] = {
        "apart": max(_apart(*pair) for pair in zip(drawn, coded, strict=True)),
        "there": float(np.interp(numbers["small"]["at"], at, kept["3000"])),
        "end": kept["3000"][-1],
        "attained": attained[0],
    }
    return Result(panels, numbers)


def _on_grid(one: Mechanism, size: int, rounds: int, epsilon: Floats, hue: str) -> Curve:
    """The pair of Doroshenko et al. 2022 on a logarithmic grid of alpha, from e^-0.5 to e^0.5, composed: its
    curve is the chord of the subsampled one, so its masses are the bends of the chord."""
    loss = np.linspace(-0.5, 0.5, size)
    alpha, value = np.exp(loss), one.profile(np.exp(loss)).upper
    slope = np.diff(np.append(1.0, value)) / np.diff(np.append(0.0, alpha))
    bend = np.diff(np.append(slope, 0.0))  # Q's masses, up to what lies beyond the grid
    law = LossLaw(loss, np.maximum(bend, 0.0) * alpha, float(value[-1]))
    upper = (rounds * KnownLoss(KnownLossProfile((law,)))).upper_delta(epsilon=epsilon)
    return Curve(f"grid of {size} α", "sound", epsilon, upper, hue=hue)


@item
def figure_3(setting: Setting) -> Result:
    """epsilon against the number of compositions of subsampled shufflers."""
    kept, delta, at = STORED["figure-3"], 1e-5, (3.0, 1000, 10**5)
    rounds = kept["rounds"]
    one = Shuffled(LocalRandomizer(3.0), n=1000, analysis="clones").sampled_from(10**5)
    ours = Curve.epsilon("certified", rounds, [T * one for T in rounds], delta, "certified")
    orders = (*range(2, 65), *(round(65 * 1.18**i) for i in range(30)))
    published = koskela_2023_cohort(one)
    bounds = {
        "Girgis et al., Theorem 1": lambda T: girgis_2021_epsilon(*at, T, delta, orders),
        "Lemma 7": lambda T: (T * published).upper_epsilon(delta=delta),
    }
    upper, lemma = Curve.each("sound", rounds, bounds, ["Theorem 1", "Lemma 7"])
    theirs = Curve("Fourier accountant", "stored", rounds, kept["pld"], hue="Lemma 7")
    girgis = Curve("Girgis et al., upper bound", "stored", rounds, kept["girgis"], hue="Theorem 1")
    label = f"{LABELS['epsilon']} at δ = 10⁻⁵"
    first = Panel(
        "ε₀ = 3, a random 1,000 of 10⁵ users",
        [ours, lemma, upper, theirs, girgis],
        LABELS["rounds"],
        label,
        x_log=True,
    )
    low = Curve("certified lower end", "lower", rounds, ours.lower)
    pairs = [(low, ours), (theirs, ours), (girgis, upper)]
    second = first.ratio("stored over ours", pairs, "ratio of ε")
    rows = [
        (f"{T:,}", f"{low:.4f}", *(f"{value:.4f}" for value in row))
        for T, low, *row in zip(
            rounds, ours.lower, ours.y, lemma.y, kept["pld"], upper.y, kept["girgis"], strict=True
        )
    ]
    columns = (
        "rounds",
        "certified lower",
        "upper",
        "Lemma 7",
        "accountant, stored",
        "Theorem 1",
        "upper bound, stored",
    )
    below = [T for T, mine, stored in zip(rounds, ours.lower, kept["pld"], strict=True) if stored < mine]
    coded = [printed.subsampled_epsilon_as_published(3.0, 1000, 0.01, T, delta) for T in rounds]
    numbers = {
        "coded": 100.0 * float(np.abs(np.divide(coded, kept["pld"]) - 1.0).max()),
        "drift": coded[-1] / rounds[-1],
        "below": max(below, default=0),
        "small": float(kept["pld"][0] / ours.y[0]),
        "large": float(kept["pld"][-1] / ours.y[-1]),
        "linear": float(kept["pld"][-1] / kept["pld"][0]),
        "removed": 100.0 * (1.0 - min(np.divide(kept["removed"], kept["pld"]))),
        "times": rounds[-1] // rounds[0],
        "girgis": _apart(girgis, upper),
        "end": {"upper": float(ours.y[-1]), "theorem": float(upper.y[-1])},
    }
    return Result([first, second], numbers, [Table("epsilon at delta = 1e-5", columns, rows)])


@item
def figure_4(setting: Setting) -> Result:
    """k-ary randomized response: strong and weak adversary, and the clones; 1, 4 and 16 rounds."""
    survey, kept = KaryRandomizedResponse(k=K, gamma=GAMMA), STORED["figure-4"]
    names = {"strong": "strong", "weak": "blanket", "clones": "clones"}
    panels: list[Panel] = []
    rows, pairs = [], []
    apart: dict[str, list[float]] = {}
    for count in setting.choose(COUNTS, COUNTS[:1]):
        curves = []
        for name, analysis in names.items():
            view = count * Shuffled(survey, n=N, analysis=analysis)
            upper = [view.upper_epsilon(delta=level) for level in LEVELS.tolist()]
            stored, called = kept[name][str(count)], f"{name}, {_rounds(count)}"
            curves.append(Curve(name, "certified", upper, LEVELS, hue=analysis))
            curves.append(Curve(name, "stored", stored, LEVELS, hue=analysis))
            theirs, ours = (
                Curve(called, "stored", LEVELS[::-1], e[::-1], hue=analysis, line=_DASH[count])
                for e in (stored, upper)
            )
            pairs.append((theirs, ours))
            apart[name] = [*apart.get(name, []), *np.divide(stored, upper)]
            rows += [
                (name, str(count), f"{level:.2e}", f"{kept_:.4f}", f"{high:.4f}", f"{kept_ / high:.3f}")
                for level, kept_, high in zip(LEVELS, stored, upper, strict=True)
            ]
        panels.append(Panel(f"4-ary randomized response, n = 1000, γ = 0.25, {_rounds(count)}", curves))
    by_level = Panel("", [], LABELS["delta"], "", x_log=True)
    panels.append(by_level.ratio("stored over certified, at the same δ", pairs, "ratio of ε"))
    epsilon = np.linspace(0.05, 1.2, setting.choose(47, 9))
    truth = Curve.delta("weak", Shuffled(survey, n=N), epsilon, "blanket")
    strong = Curve.upper("strong", Shuffled(survey, n=N, analysis="strong"), epsilon, hue="strong")
    wrong = Curve.each("unsound", epsilon, _printed(survey.epsilon0), ["blanket", "strong", "clones"])
    formulas = Panel("formulas, one round", [truth, strong, *wrong], floor=1e-14)
    low = Curve("certified lower end", "lower", epsilon, truth.lower)
    pairs = [(each, truth) for each in (wrong[0], wrong[2], low)] + [(wrong[1], strong)]
    panels += [formulas, formulas.ratio("over weak; Theorem 13 over strong", pairs, "ratio of δ")]
    coded = [
        printed.clones_figure_as_published(N, K, GAMMA, count, np.array(kept["clones"][str(count)])) / LEVELS
        for count in COUNTS
    ]
    any_randomizer = Shuffled(LocalRandomizer(survey.epsilon0), n=N, analysis="clones")
    numbers = {
        "weak": Shuffled(survey, n=N).delta(epsilon=1.0),
        "tail": printed.weak_tail_as_published(N, K, GAMMA, 1.0),
        "pair": printed.specific_clones_as_published(K, survey.epsilon0, N, 1.0),
        "again": printed.strong_figure_as_published(N, K, GAMMA, float(kept["strong"]["1"][0])),
        "attained": any_randomizer.epsilon(delta=float(LEVELS[-1])).lower,
        "stored": kept["clones"]["1"][-1],
        "coded": 100.0 * float(np.abs(np.array(coded) - 1.0).max()),
        "crosses": float(epsilon[np.argmax(wrong[0].y < truth.lower)]),
        "off": {name: [100.0 * (end(ratios) - 1.0) for end in (min, max)] for name, ratios in apart.items()},
    }
    columns = ("adversary", "rounds", "delta", "stored", "certified", "ratio")
    return Result(panels, numbers, [Table("epsilon, stored by the authors and certified", columns, rows)])


_DASH = {1: "-", 4: "--", 16: ":"}


def _printed(epsilon0: float) -> dict[str, Callable[[float], float]]:
    return {
        "Theorem 16, independent counts": (lambda e: printed.weak_tail_as_published(N, K, GAMMA, e)),
        "Theorem 13, independent counts": (lambda e: printed.strong_tail_as_published(N, K, GAMMA, e)),
        "clones with p = 1/(E+k-1)": (lambda e: printed.specific_clones_as_published(K, epsilon0, N, e)),
    }
