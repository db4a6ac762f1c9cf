"""Biswas, Jung, Palamidessi 2022, "Tight differential privacy guarantees": Tables II and IV, Figure 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from shuffledp._certified.rounding import Floats
from shuffledp.accounting.mechanism import Shuffled
from shuffledp.bound import Bound
from shuffledp.literature.as_published.biswas_2022 import (
    one_bin_delta_as_published,
    one_bin_deltas_with_the_right_loss_as_published,
)
from shuffledp.papers._result import Curve, Map, Panel, Result, Setting, Table, item
from shuffledp.plotting._style import LABELS
from shuffledp.randomizers.kary import KaryRandomizedResponse

TABLE_2_EPSILON = (0.01, 0.1, 0.2, 0.3, 0.4)
TABLE_2 = {
    100: {
        "[11]": (0.999, 0.97, 0.89, 0.77, 0.62),
        "[10]": (0.996, 0.68, 0.22, 0.03, 2.2e-3),
        "[12]": (0.984, 0.2, 1.78e-3, 6.580e-7, 1.02e-11),
        "ours": (1.18e-14, 1.26e-28, 2.69e-43, 1.39e-57, 9.46e-73),
    },
    1000: {
        "[11]": (0.997, 0.75, 0.32, 0.08, 0.01),
        "[10]": (0.963, 0.02, 4.06e-7, 4.17e-15, 2.73e-26),
        "[12]": (0.853, 2.02e-7, 1.66e-27, 5.60e-61, 7.69e-108),
        "ours": (6.66e-58, 3.82e-93, 6.02e-143, 4.46e-207, 3.61e-292),
    },
}
TABLE_4_EPSILON = (0.1, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
# (epsilon0, n, k) -> the printed row.
TABLE_4 = {
    (1.0, 100, 10): (2.08e-20, 3.42e-43, 0, 0, 0, 0, 0),
    (2.0, 100, 10): (2.49e-15, 3.25e-22, 2.20e-30, 1.57e-40, 0, 0, 0),
    (3.0, 100, 10): (8.79e-11, 5.73e-13, 3.52e-16, 4.49e-20, 1.09e-25, 4.52e-33, 0),
    (2.0, 50, 10): (1.91e-8, 5.02e-12, 2.40e-15, 4.49e-21, 0, 0, 0),
    (2.0, 150, 10): (6.58e-22, 7.83e-32, 2.75e-44, 6.99e-59, 0, 0, 0),
    (2.0, 100, 5): (1.96e-10, 2.51e-14, 1.08e-19, 2.02e-27, 0, 0, 0),
    (2.0, 100, 15): (1.66e-18, 7.13e-28, 1.49e-38, 7.35e-50, 0, 0, 0),
}
_FLOOR = 1e-80


def _right(epsilon0: float, n: int, n_x0: int, k: int, epsilon: float) -> float:
    """Equation (6) with the right loss, the larger direction."""
    return max(one_bin_deltas_with_the_right_loss_as_published(epsilon0, n, n_x0, k, epsilon))


def _worst(epsilon0: float, n: int, k: int, epsilon: float) -> float:
    """The same, the largest over n_x0 (on a grid)."""
    others = np.unique(np.linspace(0, n - 1, 12).astype(int))
    return max(_right(epsilon0, n, int(m), k, epsilon) for m in others)


def _curves(at: Sequence[float], truth: Bound, printed: list[float], right: list[float]) -> list[Curve]:
    return [
        Curve("certified", "certified", at, truth.upper, truth.lower, "certified"),
        Curve("Theorem IV.1 as printed", "unsound", at, printed, hue="printed"),
        Curve("one bin, right loss", "lower", at, right),
    ]


@item
def table_2(setting: Setting) -> Result:
    """delta of one bin against the literature, n = 100 and 1000."""
    panels, tables = [], []
    below: dict[str, Any] = {}
    # epsilon0 of the columns, and of the paper's own delta with k and n_x0: found by searching for a match.
    cases = {100: (0.49, 10, 80), 1000: (0.5, 2, 1)}
    at = np.array(TABLE_2_EPSILON)
    for n, (epsilon0, k, n_x0) in cases.items():
        E, shown = math.exp(epsilon0), TABLE_2[n]
        again = [one_bin_delta_as_published(epsilon0, n, n_x0, k, e) for e in at]
        right = [_right(epsilon0, n, n_x0, k, e) for e in at]
        truth = Shuffled(KaryRandomizedResponse(k=k, epsilon0=epsilon0), n=n).delta(epsilon=at)
        rivals = {
            "[10]": np.exp(-n * at**2 / E**2),
            "[11]": np.exp(-n * at**2 / (144.0 * epsilon0**2)),
            "[12]": np.exp(-n * at**2 / (E - 1.0)),
        }
        curves = [
            *_curves(TABLE_2_EPSILON, truth, again, right),
            Curve("Table II, this paper's δ", "published", at, shown["ours"], hue="printed"),
            *(
                Curve(f"Table II, column {name}", "published", at, shown[name], hue=hue)
                for name, hue in (("[10]", "clones"), ("[11]", "strong"), ("[12]", "clones-2021"))
            ),
        ]
        panels.append(Panel(f"n = {n}, ε₀ = {epsilon0}, k = {k}, n(x₀) = {n_x0}", curves))
        columns = {
            "Table II": shown["ours"],
            "as printed": again,
            "one bin, right loss": right,
            "certified lower": truth.lower,
            "certified upper": truth.upper,
        }
        for name, values in rivals.items():
            columns |= {f"Table II {name}": shown[name], f"{name}, formula": values}
        rows = [(f"{e:g}", *(f"{column[i]:.3g}" for column in columns.values())) for i, e in enumerate(at)]
        tables.append(Table(f"n = {n}", ("epsilon", *columns), rows))
        orders = np.log10(truth.lower / np.array(shown["ours"]))
        below[f"n{n}"] = [float(orders.min()), float(orders.max())]
        below[f"bin{n}"] = float(np.log10(np.array(right) / np.array(shown["ours"])).max())
        below[f"most{n}"] = float(100.0 * np.max(np.abs(np.divide(again, shown["ours"]) - 1.0)))
        below[f"off{n}"] = (100.0 * np.abs(np.divide(again, shown["ours"]) - 1.0)).tolist()
    return Result(
        panels, {"below": below, "odd": one_bin_delta_as_published(0.49, 1000, 10, 2, 0.01)}, tables
    )


def _printed_early(n: int, k: int) -> float:
    """The printed formula at epsilon = 0.9, epsilon0 = 2."""
    return one_bin_delta_as_published(2.0, n, int(0.8 * n), k, 0.9)


@item
def table_4(setting: Setting) -> Result:
    """delta for various epsilon0, n and k."""
    rows: list[tuple[str, ...]] = []
    panels: list[Panel] = []
    orders: list[float] = []
    for (epsilon0, n, k), shown in TABLE_4.items():
        n_x0 = int(0.8 * n)
        inside = [e for e in TABLE_4_EPSILON if e < epsilon0]
        survey = Shuffled(KaryRandomizedResponse(k=k, epsilon0=epsilon0), n=n)
        truth = survey.delta(epsilon=np.array(inside))
        again = [one_bin_delta_as_published(epsilon0, n, n_x0, k, e) for e in inside]
        right = [_right(epsilon0, n, n_x0, k, e) for e in inside]
        worst = [_worst(epsilon0, n, k, e) for e in inside]
        columns = (shown[: len(inside)], again, right, worst, truth.lower, truth.upper)
        for epsilon, *values in zip(inside, *columns, strict=True):
            name = (f"{epsilon0:g}", str(n), str(k), f"{epsilon:g}")
            rows.append((*name, *(f"{value:.3g}" for value in values)))
        orders += np.log10(truth.lower / np.array(shown[: len(inside)])).tolist()
        odd = [(e, y) for e, y, own in zip(inside, shown, again, strict=False) if abs(y / own - 1.0) > 0.01]
        curves = [
            *_curves(inside, truth, again, right),
            Curve("Table IV", "published", inside, shown[: len(inside)], hue="printed"),
        ]
        if odd:
            x, y = np.array(odd).T
            curves.append(Curve("not the formula's", "check", x, y, hue="certified"))
        title = f"ε₀ = {epsilon0:g}, n = {n}, k = {k}, n(x₀) = {n_x0}"
        # Of the three odd entries one has an explanation: it is the formula's value at another epsilon.
        early = {e: "the formula at ε = 0.9" for e, y in odd if abs(y / _printed_early(n, k) - 1.0) < 0.01}
        panels.append(Panel(title, curves, floor=_FLOOR, marks=early))
    numbers = {
        "same": sum(abs(float(row[4]) / float(row[5]) - 1.0) < 0.01 for row in rows),
        "entries": len(rows),
        "first": rows[0],
        "second": rows[1],
        "orders": (min(orders), max(orders)),
        "early": _printed_early(50, 10),
    }
    names = ("epsilon0", "n", "k", "epsilon", "Table IV", "as printed", "one bin, right loss",
             "one bin, worst n_x0", "certified lower", "certified upper")  # fmt: skip
    return Result(panels, numbers, [Table("Table IV, as published and corrected", names, rows)])


@item
def figure_1(setting: Setting) -> Result:
    """delta against epsilon and epsilon0."""
    side = setting.choose(25, 7)
    grid = _LEAST + (np.arange(side) + 0.5) * (3.0 - _LEAST) / side
    printed, right, ours = (np.full((side, side), np.nan) for _ in range(3))
    for i, epsilon0 in enumerate(grid):
        survey = Shuffled(KaryRandomizedResponse(k=10, epsilon0=float(epsilon0)), n=100)
        inside = grid[grid < epsilon0]
        if inside.size:
            ours[: inside.size, i] = survey.upper_delta(epsilon=inside)
        for j, epsilon in enumerate(inside):
            at = (float(epsilon0), 100, 80, 10, float(epsilon))
            printed[j, i] = one_bin_delta_as_published(*at)
            right[j, i] = _right(*at)
    maps = [
        _map("Theorem IV.1 as printed (no upper bound)", _log(printed)),
        _map("one bin, right loss (a lower bound)", _log(right)),
        _map("certified upper end", _log(ours)),
    ]
    gap = maps[2].values - maps[0].values
    return Result(
        [*maps, _map("certified over printed", gap, "decades", 0.0, 30.0)], {"gap": float(np.nanmax(gap))}
    )


_LEAST = 0.1  # the paper's epsilon and epsilon0 begin here


def _log(delta: Floats) -> Floats:
    return np.log10(np.where(delta > 0.0, delta, np.nan))


def _map(title: str, values: Floats, scale: str = "log10 δ", low: float = -40.0, high: float = 0.0) -> Map:
    extent = (_LEAST, 3.0, _LEAST, 3.0)
    return Map(title, LABELS["epsilon0"], LABELS["epsilon"], values, extent, scale, low, high)
