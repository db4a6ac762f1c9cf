"""Balle, Bell, Gascon, Nissim 2019, "The privacy blanket of the shuffle model": Figures 2 and 3."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from shuffledp._certified.rounding import Floats
from shuffledp.accounting.calibration import calibrate
from shuffledp.accounting.mechanism import Shuffled
from shuffledp.literature._solve import smallest_below
from shuffledp.literature.as_published import balle_2019 as printed
from shuffledp.literature.closed_forms import erlingsson_2019_epsilon
from shuffledp.literature.concentration import (
    AnyBlanket,
    Blanket,
    KaryBlanket,
    LaplaceBlanket,
    bennett_delta,
    bennett_epsilon,
    hoeffding_delta,
)
from shuffledp.noise import facts_of_noise
from shuffledp.papers._result import Curve, Panel, Result, Setting, Table, item, whole_numbers
from shuffledp.plotting._style import LABELS
from shuffledp.randomizers.kary import KaryRandomizedResponse
from shuffledp.randomizers.local import LocalRandomizer

LOCAL, EPSILON, DELTA = 0.5, 0.1, 1e-6
"""epsilon0 of panel (i), epsilon of the others, delta, as in the authors' notebook (BorjaBalle/
amplification-by-shuffling at 89a5085, the same today)."""
_STEPS = 18  # speed: of a search
_LARGEST = 20.0  # nats

_ERLINGSSON, _DASHES = "EFMRTT'19 (Theorem 5.1)", (":", "--", "-.", "-.")
"""In all panels dashes are Hoeffding's, with dots Bennett's."""
DeltaBound = Callable[[Any, int, float], float]
_MAKERS: dict[str, Callable[[float], Blanket]] = {
    "RR-2": lambda e0: KaryBlanket(2, e0),
    "Laplace": LaplaceBlanket,
    "RR-100": lambda e0: KaryBlanket(100, e0),
}


@item
def figure_2(setting: Setting) -> Result:
    """The blanket of Laplace noise on [0, 1], epsilon0 = 1."""
    y = np.linspace(-2.0, 3.0, setting.choose(501, 101))
    gamma = math.exp(-0.5)
    smallest = np.minimum(_laplace(y, 0.0), _laplace(y, 1.0))
    densities = [
        Curve(f"report of x = {x:g}", "sound", y, _laplace(y, x), hue=hue)
        for x, hue in ((0.0, "2"), (1.0, "3"))
    ]
    below = Curve("γω, their common part", "certified", y, smallest, hue="certified")
    names = {0.0: "ν of x = 0", 0.5: "ν of x = 1/2, the same line", 1.0: "ν of x = 1"}
    curves = [Curve("blanket ω", "certified", y, smallest / gamma, hue="certified")]
    for (x, name), hue in zip(names.items(), ("2", "printed", "3"), strict=True):
        curves.append(Curve(name, "sound", y, (_laplace(y, x) - smallest) / (1.0 - gamma), hue=hue))
    fine = np.linspace(-40.0, 41.0, 810_001)
    mass = float(np.minimum(_laplace(fine, 0.0), _laplace(fine, 1.0)).sum() * (fine[1] - fine[0]))
    panels = [
        Panel(
            "Laplace noise of scale 1, inputs in [0, 1]",
            [below, *densities],
            "report y",
            "density",
            y_log=False,
        ),
        Panel("blanket and remainders", curves, "report y", "density", y_log=False),
    ]
    return Result(panels, {"mass": mass, "gamma": gamma})


def _laplace(y: Floats, x: float) -> Floats:
    return np.asarray(0.5 * np.exp(-np.abs(y - x)))


@item
def figure_3(setting: Setting) -> Result:
    """Amplification bounds compared, four panels, with the parameters of the authors' notebook."""
    points = setting.choose(13, 4)
    sizes = whole_numbers(100, 10**5, points)
    panels = (
        _panel_1(whole_numbers(10**3, 10**6, points)),
        _panel_2(sizes),
        _panel_3(sizes),
        _panel_4(sizes),
    )
    first = panels[0]
    rows = [
        (f"{int(n):,}", *(f"{curve.y[i]:.5f}" for curve in first.curves))
        for i, n in enumerate(first.curves[0].x)
        if i % setting.choose(4, 1) == 0
    ]
    third = {curve.name: np.asarray(curve.y) for curve in panels[2].curves}
    better = {name: third[f"Bennett, {name}"] / third[f"Hoeffding, {name}"] for name in _MAKERS}
    said = [third[f"Bennett as printed, {name}"] > third[f"Hoeffding, {name}"] for name in _MAKERS]
    numbers = {
        "always": _from_where_on(sizes, said),
        "turn": panels[2].curves[0].x[int(np.argmax(better["Laplace"] > 1.0))],
        "least": better["RR-2"][0],
        "first": first.last,
        "second": panels[1].last,
        "third": panels[2].last,
        "printed": panels[2].last["Bennett as printed, RR-100"],
        "allowed": panels[1].last["certified, RR-100"],
    }
    table = Table("(i) epsilon at delta = 1e-6", ("n", *(curve.name for curve in first.curves)), rows)
    return Result(panels, numbers, [table])


_ALMOST = math.nextafter(LOCAL, 0.0)  # Theorem 5.1 needs epsilon0 below 1/2


def _from_where_on(sizes: list[int], holds: list[Any]) -> int:
    """The first n from which on all hold."""
    wrong = np.flatnonzero(~np.all(holds, axis=0))
    return sizes[int(wrong[-1]) + 1 if wrong.size else 0]


def _panel_1(sizes: list[int]) -> Panel:
    rounds = [Shuffled(LocalRandomizer(LOCAL), n=n, analysis="clones") for n in sizes]

    def solved(delta: Callable[..., float], *more: Any) -> Callable[[int], float]:
        return lambda n: smallest_below(lambda e: delta(LOCAL, n, e, *more), DELTA, LOCAL, 1e-4)

    sound = {
        _ERLINGSSON: lambda n: erlingsson_2019_epsilon(_ALMOST, n, DELTA),
        "Hoeffding, as in the authors' code": solved(printed.hoeffding_generic_delta_as_published),
        "Bennett, their code since 2020": solved(printed.bennett_generic_delta_as_published, False),
        "Bennett, refined moment": lambda n: bennett_epsilon(AnyBlanket(LOCAL), n, DELTA),
    }
    wrong = {"Bennett, their code of 2019": solved(printed.bennett_generic_delta_as_published)}
    curves = [
        Curve.epsilon("certified, any randomizer", sizes, rounds, DELTA, "certified"),
        *Curve.each("sound", sizes, sound, ["analytic", "strong", "clones", "clones-2021"], _DASHES),
        *Curve.each("unsound", sizes, wrong, ["printed"]),
    ]
    title = f"(i) ε₀ = {LOCAL}, δ = 10⁻⁶"
    return Panel(title, curves, LABELS["n"], LABELS["epsilon"], x_log=True)


def _panel_2(sizes: list[int]) -> Panel:
    certified = {
        "certified, RR-2": lambda n: _calibrated(2, n, DELTA),
        "certified, Laplace": _certified_laplace,
        "certified, RR-100": lambda n: _calibrated(100, n, DELTA),
    }
    curves = Curve.each("certified", sizes, certified, list(_MAKERS))
    bounds = {f"Hoeffding, {name}": _solved(hoeffding_delta, make) for name, make in _MAKERS.items()}
    bounds["Hoeffding, generic"] = _solved(printed.hoeffding_generic_delta_as_published, float)
    curves += Curve.each("sound", sizes, bounds, [*_MAKERS, "generic"], ["--"])
    curves += Curve.each("sound", sizes, {_ERLINGSSON: _erlingsson_epsilon0}, ["analytic"], _DASHES)
    return _local_panel(f"(ii) ε = {EPSILON}, δ = 10⁻⁶", curves)


def _erlingsson_epsilon0(n: int) -> float:
    """Theorem 5.1, whose epsilon is proportional to epsilon0, solved for it; it needs epsilon0 below 1/2."""
    found = EPSILON * _ALMOST / erlingsson_2019_epsilon(_ALMOST, n, DELTA)
    return found if EPSILON <= found <= _ALMOST else math.nan


def _panel_3(sizes: list[int]) -> Panel:
    """Colour is the randomizer, dashes the inequality."""
    curves = []
    for label, bound, line in (("Hoeffding", hoeffding_delta, "--"), ("Bennett", bennett_delta, "-.")):
        bounds = {f"{label}, {name}": _solved(bound, make) for name, make in _MAKERS.items()}
        curves += Curve.each("sound", sizes, bounds, list(_MAKERS), [line])
    wrong: dict[str, DeltaBound] = {
        "RR-2": partial(printed.bennett_krr_delta_as_published, 2),
        "Laplace": printed.bennett_laplace_delta_as_published,
        "RR-100": partial(printed.bennett_krr_delta_as_published, 100),
    }
    bounds = {f"Bennett as printed, {name}": _solved(bound, float) for name, bound in wrong.items()}
    curves += Curve.each("unsound", sizes, bounds, list(_MAKERS))
    return _local_panel(f"(iii) ε = {EPSILON}, δ = 10⁻⁶", curves)


def _panel_4(sizes: list[int]) -> Panel:
    def symbols(n: int) -> int:
        return max(2, int(n ** (1.0 / 3.0)))

    def solved(bound: Callable[[float, int], float]) -> Callable[[int], float]:
        return lambda n: largest_epsilon0(lambda e0: bound(e0, n), n**-2.0)

    def of(inequality: DeltaBound) -> Callable[[int], float]:
        return solved(lambda e0, n: inequality(KaryBlanket(symbols(n), e0), n, EPSILON))

    certified = {"certified": lambda n: _calibrated(symbols(n), n, n**-2.0)}
    sound = {"Hoeffding": of(hoeffding_delta), "Bennett": of(bennett_delta)}
    wrong = {
        "Bennett as printed": solved(
            lambda e0, n: printed.bennett_krr_delta_as_published(symbols(n), e0, n, EPSILON)
        )
    }
    curves = [
        *Curve.each("certified", sizes, certified, ["certified"]),
        *Curve.each("sound", sizes, sound, ["strong", "clones"]),
        *Curve.each("unsound", sizes, wrong, ["printed"]),
    ]
    return _local_panel(f"(iv) randomized response, k = ∛n, ε = {EPSILON}, δ = n⁻²", curves)


def _local_panel(title: str, curves: list[Curve]) -> Panel:
    return Panel(title, curves, LABELS["n"], LABELS["epsilon0"], x_log=True, y_log=False)


def largest_epsilon0(delta_of: Callable[[float], float], level: float = DELTA, steps: int = _STEPS) -> float:
    """The largest local epsilon0 seen whose bound of delta is at most ``level``; epsilon is one."""
    low, high = EPSILON, _LARGEST
    for _ in range(steps):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if delta_of(middle) <= level else (low, middle)
    return low


def _solved(bound: DeltaBound, make: Callable[[float], Any]) -> Callable[[int], float]:
    """n -> the largest epsilon0, for a bound of delta that is asked with make(epsilon0), n, epsilon."""
    return lambda n: largest_epsilon0(lambda e0: bound(make(e0), n, EPSILON))


def _calibrated(k: int, n: int, delta: float) -> float:
    found = calibrate(KaryRandomizedResponse, k=k, n=n, epsilon=EPSILON, delta=delta)
    return float(found.value)


def _certified_laplace(n: int) -> float:
    """To a part in a thousand."""

    def delta(e0: float) -> float:
        facts = facts_of_noise(
            lambda t: math.log(0.5 * e0) - e0 * t, lambda t: 0.5 * np.exp(-e0 * t), epsilon0=e0
        )
        return float(Shuffled(facts, n=n).round.profile.upper(np.array([EPSILON]), 1e-3)[0])

    return largest_epsilon0(delta, steps=13)
