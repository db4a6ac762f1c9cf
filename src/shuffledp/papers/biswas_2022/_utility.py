"""Biswas, Jung, Palamidessi 2022: utility against a central Gaussian. Tables V, VI, Figures 2 to 7."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from shuffledp._certified.rounding import Floats
from shuffledp.accounting.mechanism import Shuffled
from shuffledp.collecting._gaussian import analytic_gaussian_sigma
from shuffledp.collecting.result import project_to_simplex
from shuffledp.papers._result import Curve, Map, Panel, Result, Setting, Table, item
from shuffledp.papers.biswas_2022._cities import City, Integers, cities
from shuffledp.plotting._style import LABELS
from shuffledp.randomizers.kary import KaryRandomizedResponse

DELTA = 1e-6
K = 15
SENSITIVITY = math.sqrt(2.0)
"""A substitution moves two counts by one each."""
TABLE_5 = {
    1: (3e-3, 1e-3, 6e-6, 3e-3), 3: (6e-4, 2e-4, 1e-5, 5e-4), 5: (12e-4, 11e-4, 1e-5, 5e-4),
    7: (1e-4, 4e-3, 8e-6, 3e-5), 9: (9e-4, 3e-3, 7e-6, 8e-4), 11: (6e-4, 1e-3, 6e-6, 7e-4),
    13: (15e-4, 15e-4, 2e-5, 4e-4),
}  # fmt: skip
"""x0 -> Gaussian and shuffle+INV at n = 1000, the same at n = 100,000."""
TABLE_6 = {
    "San Francisco": {40: (4e-6, 1e-3), 80: (3e-5, 5e-4), 120: (9e-6, 1e-3), 160: (4e-5, 2e-4),
                      200: (2e-5, 2e-4), 240: (2e-5, 7e-4), 280: (4e-6, 5e-4)},
    "Paris": {20: (2e-6, 3e-4), 40: (3e-5, 2e-3), 60: (4e-5, 2e-3), 80: (5e-5, 4e-4),
              100: (7e-5, 1e-4), 120: (3e-5, 2e-4), 140: (1e-4, 1e-4)},
}  # fmt: skip
FAIR, PAPER = "Gaussian, same certified ε", "Gaussian, ε = ε₀"
METHODS = ("shuffle", "shuffle+INV", FAIR, PAPER)
HUES = dict(zip(METHODS, ("shuffle", "shuffle+INV", "Gaussian", "Gaussian at ε₀"), strict=True))
TEXT = {PAPER: ([1000, 100_000], [0.014, 0.0001]), "shuffle+INV": ([1000, 100_000], [0.026, 0.0048])}
"""Distances that the text gives beside Figure 2: the Gaussian's and that of shuffle+INV."""
_LOCAL = 4.0  # nats
_AXES = ("cell, west to east", "cell, south to north")


@dataclass(frozen=True)
class Contest:
    """Shuffled randomized response against a curator's Gaussian noise."""

    randomizer: KaryRandomizedResponse
    n: int
    epsilon: float
    """What the shuffled round has at delta = 1e-6, certified."""

    @classmethod
    def of(cls, k: int, epsilon0: float, n: int) -> Contest:
        randomizer = KaryRandomizedResponse(k=k, epsilon0=epsilon0)
        return cls(randomizer, n, Shuffled(randomizer, n=n).upper_epsilon(delta=DELTA))

    @property
    def fair_sigma(self) -> float:
        return analytic_gaussian_sigma(self.epsilon, DELTA, SENSITIVITY)

    @property
    def paper_sigma(self) -> float:
        return analytic_gaussian_sigma(self.randomizer.epsilon0, DELTA, SENSITIVITY)

    def run(self, values: Integers, rng: np.random.Generator) -> dict[str, Floats]:
        """One run: distributions by name."""
        k = self.randomizer.k
        true = np.bincount(values, minlength=k).astype(np.float64)
        support = self.randomizer.support(self.randomizer.randomize(values, rng=rng))
        noise = rng.standard_normal(k)
        inverted = self.randomizer.estimate(support, self.n)
        estimates = {
            "true": true,
            "shuffle": np.asarray(support, dtype=np.float64),
            "shuffle+INV": project_to_simplex(inverted, total=float(self.n)),
            FAIR: project_to_simplex(true + self.fair_sigma * noise, self.n),
            PAPER: project_to_simplex(true + self.paper_sigma * noise, self.n),
        }
        return {name: counts / self.n for name, counts in estimates.items()}


def _errors(contest: Contest, values: Integers, runs: int, seed: int) -> Floats:
    """|estimate - frequency| by run, method and cell."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(runs):
        laws = contest.run(values, rng)
        found.append([np.abs(laws[method] - laws["true"]) for method in METHODS])
    return np.array(found)


def _distance_curves(
    k: int, epsilon0: float, sizes: list[int], draw: Callable[[int], Integers], runs: int
) -> list[Curve]:
    """Total variation distance against n, by method."""
    errors = (_errors(Contest.of(k, epsilon0, n), draw(n), runs, seed=n) for n in sizes)
    found = np.array([0.5 * each.sum(axis=2) for each in errors])
    ends = zip(METHODS, found.mean(axis=1).T, found.std(axis=1).T, strict=True)
    return [Curve(method, "measured", sizes, mean, spread, HUES[method]) for method, mean, spread in ends]


def normal_bins(n: int) -> Integers:
    """n values of N(0, 2) (variance 2), in 15 equal bins of [-4.5, 4.5]; what is outside to the ends."""
    values = np.random.default_rng(15).normal(0.0, math.sqrt(2.0), size=n)
    return np.clip(np.floor((values + 4.5) / 9.0 * K), 0, K - 1).astype(np.int64)


@item
def figure_2(setting: Setting) -> Result:
    """Total variation distance against n, synthetic data."""
    sizes = [1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000]
    curves = _distance_curves(K, _LOCAL, setting.choose(sizes, sizes[::3]), normal_bins, runs=10)
    texts = [Curve(method, "published", *points, hue=HUES[method]) for method, points in TEXT.items()]
    panels = [
        _distance_panel(f"15 bins of N(0, 2), ε₀ = 4, {word}", [*curves[skip:], *texts])
        for word, skip in (("(a)", 0), ("(b)", 1))
    ]
    first, last = ([float(curve.y[i]) for curve in curves] for i in (0, -1))
    return Result(panels, {"first": first, "last": last})


def _distance_panel(title: str, curves: list[Curve]) -> Panel:
    return Panel(title, curves, LABELS["n"], "total variation distance", x_log=True)


@item
def table_5(setting: Setting) -> Result:
    """The error of single values, synthetic data."""
    runs = setting.choose(100, 10)
    panels, rows, columns, certified, scatter = [], [[f"{x0}"] for x0 in TABLE_5], ["x0"], [], {}
    for place, n in enumerate((1000, 100_000)):
        contest = Contest.of(K, _LOCAL, n)
        every = _errors(contest, normal_bins(n), runs, seed=4)
        errors = dict(zip(METHODS, every.mean(axis=0), strict=True))
        printed = {x0: row[2 * place : 2 * place + 2] for x0, row in TABLE_5.items()}
        panels.append(_error_panel(f"n = {n:,}, k = 15, ε₀ = 4", "value x₀", errors, printed))
        columns += [f"n = {n:,}: paper, Gaussian", "paper, shuffle+INV", *METHODS[1:]]
        for row, (x0, shown) in zip(rows, printed.items(), strict=True):
            row += [f"{value:.2g}" for value in shown]
            row += [f"{errors[m][x0]:.2g}" for m in METHODS[1:]]
        deviation = np.sqrt((every**2).mean(axis=0))
        for column, method in enumerate((PAPER, "shuffle+INV")):
            ratio = [row[column] / deviation[METHODS.index(method)][x0] for x0, row in printed.items()]
            square = float(np.sum(np.square(ratio)))
            scatter[f"{method[0]}{n}"] = {
                "square": square,
                "least": _chi_square_7(square),
                "most": max(ratio),
            }
        certified.append(
            f"n = {n:,}: epsilon = {contest.epsilon:.3f}, sigma = {contest.fair_sigma:.2f} "
            f"(at epsilon = 4: {contest.paper_sigma:.2f})"
        )
    numbers = {"runs": runs, "certified": "; ".join(certified), "scatter": scatter}
    return Result(panels, numbers, [Table("Table V", columns, rows)])


def _chi_square_7(x: float) -> float:
    """The chance that seven squared standard normals add up to x at most."""
    tail = math.sqrt(2.0 * x / math.pi) * math.exp(-0.5 * x) * (1.0 + x / 3.0 + x * x / 15.0)
    return math.erf(math.sqrt(0.5 * x)) - tail


def _error_panel(
    title: str, x_label: str, errors: dict[str, Floats], printed: Mapping[int, tuple[float, ...]]
) -> Panel:
    """Errors of single cells: ours, and the paper's for the Gaussian and for the shuffle."""
    at = list(printed)
    curves = [
        Curve(method, "measured", at, errors[method][at], hue=HUES[method], line="none")
        for method in METHODS[1:]
    ]
    for place, method in enumerate((PAPER, "shuffle+INV")):
        found = [row[place] for row in printed.values()]
        curves.append(Curve(method, "published", at, found, hue=HUES[method]))
    return Panel(title, curves, x_label, "|estimate - frequency|")


def _city(setting: Setting, name: str) -> City:
    """A city of the paper; else the largest there is; without data a synthetic one."""
    known = cities(setting.data)
    return next((city for city in known if city.name == name), max(known, key=lambda city: city.total))


def _source(city: City) -> str:
    return f"{city.name} ({city.source})"


@partial(item, uses_data=True)
def figure_3(setting: Setting) -> Result:
    """Places and heat maps of the check-ins of both cities."""
    found = [_city(setting, name) for name in TABLE_6]
    points = [_points(letter, city) for letter, city in zip("ab", found, strict=True)]
    maps = [
        _heat(f"({letter}) {city.name}, {city.total:,} check-ins", city, city.counts / city.total)
        for letter, city in zip("cd", found, strict=True)
    ]
    empty = [int((city.counts == 0).sum()) for city in found]
    return Result([*points, *maps], {"sources": "; ".join(map(_source, found)), "empty": empty})


def _points(letter: str, city: City) -> Panel:
    east, north = city.places
    curve = Curve("a place with check-ins", "measured", east, north, hue="clones-2021", line="none")
    return Panel(f"({letter}) {city.name}, {east.size:,} places", [curve], *_AXES, y_log=False)


@partial(item, uses_data=True)
def figure_4(setting: Setting) -> Result:
    """Heat maps of San Francisco: the original, a curator's estimate, the shuffled one."""
    return _maps(_city(setting, "San Francisco"))


@partial(item, uses_data=True)
def figure_5(setting: Setting) -> Result:
    """The same for Paris."""
    return _maps(_city(setting, "Paris"))


def _maps(city: City) -> Result:
    contest = Contest.of(city.counts.size, _LOCAL, city.total)
    laws = contest.run(city.everybody, np.random.default_rng(4))
    top = float(np.log10(laws["true"].max()))
    names = {"true": "original", FAIR: FAIR, PAPER: PAPER, "shuffle+INV": "shuffle+INV"}
    maps = [_heat(f"{city.name}: {title}", city, laws[name], top) for name, title in names.items()]
    distance = {m: float(0.5 * np.abs(laws[m] - laws["true"]).sum()) for m in METHODS}
    numbers = {
        "source": _source(city),
        "epsilon": contest.epsilon,
        "inverted": distance["shuffle+INV"],
        "fair": distance[FAIR],
        "paper": distance[PAPER],
    }
    return Result(maps, numbers)


def _heat(title: str, city: City, law: Floats, top: float | None = None) -> Map:
    with np.errstate(divide="ignore"):
        values = np.log10(city.as_map(law))
    values = np.where(np.isfinite(values), values, np.nan)
    high = float(np.nanmax(values)) if top is None else top
    extent = (0.0, float(city.grid[0]), 0.0, float(city.grid[1]))
    return Map(
        title, *_AXES, values, extent, "log10 of the share (blank: none)", high - 4.0, high, aspect=1.0
    )


@partial(item, uses_data=True)
def figure_6(setting: Setting) -> Result:
    """Total variation distance against n in San Francisco, epsilon0 = 4 and 6."""
    sizes = setting.choose([10_000, 20_000, 40_000, 60_000, 80_000, 100_000], [10_000, 100_000])
    return _distances(setting, _city(setting, "San Francisco"), sizes)


@partial(item, uses_data=True)
def figure_7(setting: Setting) -> Result:
    """The same in Paris, for smaller n."""
    sizes = setting.choose([1000, 2000, 4000, 6000, 8000, 10_000], [1000, 10_000])
    return _distances(setting, _city(setting, "Paris"), sizes)


def _distances(setting: Setting, city: City, sizes: list[int]) -> Result:
    panels, distances = [], []
    for epsilon0 in (4.0, 6.0):
        draw = partial(city.draw, rng=np.random.default_rng(6))
        curves = _distance_curves(city.counts.size, epsilon0, sizes, draw, setting.choose(10, 4))
        panels.append(_distance_panel(f"{city.name}, ε₀ = {epsilon0:g}", curves))
        first = {curve.name: float(curve.y[0]) for curve in curves}
        distances.append(
            f"epsilon0 = {epsilon0:g}: {first['shuffle+INV']:.3f}, {first[FAIR]:.3f}, {first[PAPER]:.3f}"
        )
    factors = [first["shuffle+INV"] / first[way] for way in (FAIR, PAPER)]  # of the last, epsilon0 = 6
    return Result(panels, {"source": _source(city), "distances": "; ".join(distances), "factors": factors})


@partial(item, uses_data=True)
def table_6(setting: Setting) -> Result:
    """The error of single cells of San Francisco."""
    city, runs = _city(setting, "San Francisco"), setting.choose(50, 5)
    contest = Contest.of(city.counts.size, _LOCAL, city.total)
    errors = dict(zip(METHODS, _errors(contest, city.everybody, runs, seed=4).mean(axis=0), strict=True))
    printed = TABLE_6["San Francisco"]
    title = f"{city.name}, n = {city.total:,}, k = {city.counts.size}, ε₀ = 4"
    rows = [
        (f"{x}", *(f"{v:.0e}" for v in shown), *(f"{errors[m][x]:.1e}" for m in METHODS[1:]))
        for x, shown in printed.items()
    ]
    columns = ("x0", "paper, Gaussian", "paper, shuffle+INV", *METHODS[1:])
    table = Table(f"{city.name}, certified epsilon {contest.epsilon:.3f}", columns, rows)
    panel = _error_panel(title, "cell x₀", errors, printed)
    return Result([panel], {"runs": runs, "source": _source(city), "n": city.total}, [table])
