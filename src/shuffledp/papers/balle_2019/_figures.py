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
from shuffledp.bound import Bound
from shuffledp.facts import Facts
from shuffledp.literature.as_published.balle_2019 import bennett_krr_delta_as_published
from shuffledp.literature.closed_forms import (
    balle_2019_generic_delta,
    balle_2019_generic_epsilon,
    erlingsson_2019_epsilon,
)
from shuffledp.literature.concentration import (
    AnyBlanket,
    Blanket,
    KaryBlanket,
    LaplaceBlanket,
    bennett_delta,
    bennett_epsilon,
    hoeffding_delta,
    hoeffding_epsilon,
)
from shuffledp.literature.continuous import laplace_pair
from shuffledp.papers._result import Curve, Panel, Result, Setting, item, whole_numbers
from shuffledp.plotting._style import LABELS
from shuffledp.randomizers.kary import KaryRandomizedResponse
from shuffledp.randomizers.local import LocalRandomizer

LOCAL, EPSILON, DELTA = 0.4, 0.1, 1e-6
"""epsilon0 of panel (i); epsilon of the others; delta of (i) to (iii). The captions do not give them."""
_STEPS = 18  # speed: of a search
_LARGEST = 20.0  # nats

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
    curves = [Curve("blanket ω", "certified", y, smallest / gamma)]
    for x in (0.0, 0.5, 1.0):
        rest = (_laplace(y, x) - smallest) / (1.0 - gamma)
        curves.append(Curve(f"ν of x = {x:g}", "sound", y, rest))
    fine = np.linspace(-40.0, 41.0, 810_001)
    mass = float(np.minimum(_laplace(fine, 0.0), _laplace(fine, 1.0)).sum() * (fine[1] - fine[0]))
    title = "Laplace noise of scale 1, inputs in [0, 1]"
    panel = Panel(title, curves, "report y", "density", y_log=False)
    return Result([panel], {"mass": mass, "gamma": gamma})


def _laplace(y: Floats, x: float) -> Floats:
    return np.asarray(0.5 * np.exp(-np.abs(y - x)))


@item
def figure_3(setting: Setting) -> Result:
    """Amplification bounds compared, four panels."""
    sizes = whole_numbers(10**3, 10**6, setting.choose(13, 3))
    panels = (_panel_1(sizes), _panel_2(sizes), _panel_3(sizes), _panel_4(sizes))
    printed = panels[2].curves[-1]
    n = int(printed.x[-1])
    numbers = {
        "first": panels[0].last,
        "second": panels[1].last,
        "printed": float(printed.y[-1]),
        "n": n,
        "allowed": _calibrated(100, n, DELTA),
        "epsilon0": LOCAL,
        "epsilon": EPSILON,
    }
    return Result(panels, numbers)


def _panel_1(sizes: list[int]) -> Panel:
    rounds = [Shuffled(LocalRandomizer(LOCAL), n=n, analysis="clones") for n in sizes]
    bounds = {
        "EFMRTT'19 (Theorem 5.1)": lambda n: erlingsson_2019_epsilon(LOCAL, n, DELTA),
        "Hoeffding, Generic (Theorem 5.3)": lambda n: balle_2019_generic_epsilon(LOCAL, n, DELTA),
        "Hoeffding, refined range": lambda n: hoeffding_epsilon(AnyBlanket(LOCAL), n, DELTA),
        "Bennett, Generic, corrected": lambda n: bennett_epsilon(AnyBlanket(LOCAL), n, DELTA),
    }
    certified = Curve.epsilon("certified, any randomizer", sizes, rounds, DELTA)
    curves = [certified, *Curve.each("sound", sizes, bounds)]
    title = f"(i) ε₀ = {LOCAL}, δ = 10⁻⁶"
    return Panel(title, curves, LABELS["n"], LABELS["epsilon"], x_log=True)


def _panel_2(sizes: list[int]) -> Panel:
    bounds = {"Hoeffding, Generic (Theorem 5.3)": _solved(balle_2019_generic_delta, float)}
    for name, make in _MAKERS.items():
        bounds[f"Hoeffding, {name}"] = _solved(hoeffding_delta, make)
    certified = {
        "certified, RR-2": lambda n: _calibrated(2, n, DELTA),
        "certified, Laplace": _certified_laplace,
        "certified, RR-100": lambda n: _calibrated(100, n, DELTA),
    }
    curves = [*Curve.each("certified", sizes, certified), *Curve.each("sound", sizes, bounds)]
    return _local_panel(f"(ii) ε = {EPSILON}, δ = 10⁻⁶", curves)


def _panel_3(sizes: list[int]) -> Panel:
    bounds = {
        f"{label}, {name}": _solved(bound, make)
        for name, make in _MAKERS.items()
        for label, bound in (("Hoeffding", hoeffding_delta), ("Bennett", bennett_delta))
    }
    printed = {
        f"Bennett as printed, RR-{k}": _solved(partial(bennett_krr_delta_as_published, k), float)
        for k in (2, 100)
    }
    small = [n for n in sizes if n <= 10**5]
    curves = [*Curve.each("sound", sizes, bounds), *Curve.each("unsound", small, printed)]
    return _local_panel(f"(iii) ε = {EPSILON}, δ = 10⁻⁶", curves)


def _panel_4(sizes: list[int]) -> Panel:
    def symbols(n: int) -> int:
        return max(2, round(math.cbrt(n)))

    def solved(bound: DeltaBound) -> Callable[[int], float]:
        return lambda n: largest_epsilon0(lambda e0: bound(KaryBlanket(symbols(n), e0), n, EPSILON), n**-2.0)

    certified = {"certified": lambda n: _calibrated(symbols(n), n, n**-2.0)}
    bounds = {"Hoeffding": solved(hoeffding_delta), "Bennett, corrected": solved(bennett_delta)}
    curves = [*Curve.each("certified", sizes, certified), *Curve.each("sound", sizes, bounds)]
    return _local_panel(f"(iv) randomized response, k = n^(1/3), ε = {EPSILON}, δ = n⁻²", curves)


def _local_panel(title: str, curves: list[Curve]) -> Panel:
    return Panel(title, curves, LABELS["n"], LABELS["epsilon0"], x_log=True, y_log=False)


def largest_epsilon0(
    delta_of: Callable[[float], float],
    level: float = DELTA,
    low: float = EPSILON,
    high: float = _LARGEST,
    steps: int = _STEPS,
) -> float:
    """The largest local epsilon0 seen whose bound of delta is at most ``level``; ``low`` must be one."""
    for _ in range(steps):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if delta_of(middle) <= level else (low, middle)
    return low


def _solved(bound: DeltaBound, make: Callable[[float], Any]) -> Callable[[int], float]:
    """n -> the largest epsilon0, for a bound of delta that is asked with make(epsilon0), n, epsilon."""
    return lambda n: largest_epsilon0(lambda e0: bound(make(e0), n, EPSILON))


def _calibrated(k: int, n: int, delta: float) -> float:
    found = calibrate(KaryRandomizedResponse, k=k, n=n, epsilon=EPSILON, delta=delta)
    return float(found.value)


def _certified_laplace(n: int) -> float:
    """First by the total variation alone, which is quick and never too large, then by the law itself."""
    at = np.array([EPSILON])

    def known_variation(e0: float) -> float:
        facts = Facts(Bound(0.0, e0), total_variation=-math.expm1(-0.5 * e0))
        crowd = Shuffled(facts, n=n, analysis="blanket").round.profile
        return float(crowd.upper(at, 1e-3)[0])

    def known_law(e0: float) -> float:
        return float(laplace_pair(e0, n).upper(at, 1e-2)[0])

    low = largest_epsilon0(known_variation)
    return largest_epsilon0(known_law, DELTA, low, 1.3 * low, steps=6)
