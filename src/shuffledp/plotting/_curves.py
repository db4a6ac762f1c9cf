"""Curves. Certified ones: the upper end as a line, and the band between both ends, where the truth lies.
Of learning: what was measured against the privacy that it cost.

import shuffledp as sdp
from shuffledp import plotting

daily = sdp.Shuffled(sdp.KaryRandomizedResponse(k=16, epsilon0=4.0), n=1_000_000)
ax = plotting.privacy_curve({"a day": daily, "a month": 30 * daily})
plotting.save(ax, "curve.pdf")
plotting.learning_curve({"seed 1": first.history, "seed 2": second.history}, delta=1e-5)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import Floats
from shuffledp._digits import rounded_up, written
from shuffledp.bound import Bound
from shuffledp.plotting._style import BLACK, COLORS, GREY, LABELS, WIDE, series_style, shown_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from shuffledp.accounting.mechanism import Mechanism

Series = Mapping[str, tuple[Floats, Bound]]
"""By name: where, and what is certified there."""

History = Iterable[Mapping[str, float]]
"""Rows of named numbers."""

LOGARITHMIC = ("n", "rounds")
SMALLEST_DELTA = 1e-12
_LARGEST_EPSILON = 20.0
_FEW = 30  # so many points are shown as such
_INK = 0.02  # relative: a band that no picture shows
_PAID_IN = {"epsilon": LABELS["epsilon"], "round": LABELS["rounds"]}
_UNITS = {"accuracy": "fraction", "loss": "nats"}
"""Of what is often measured."""


def privacy_curve(
    mechanisms: Mechanism | Mapping[str, Mechanism],
    *,
    epsilon: Any = None,
    delta: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """delta against epsilon of one mechanism, or of several by name.

    ``epsilon`` is the grid; by default each curve reaches to where its delta falls below 1e-12. At ``delta``
    every curve is marked with its certified epsilon."""
    grid = None if epsilon is None else _validate.non_negative("epsilon", epsilon)
    series = {}
    for name, mechanism in _named(mechanisms).items():
        x = epsilon_grid(mechanism) if grid is None else grid
        series[name] = (x, mechanism.delta(epsilon=x))
    ax = _privacy_curve(series, ax)
    if delta is not None:
        for mechanism in _named(mechanisms).values():
            _mark(ax, mechanism.upper_epsilon(delta=delta), delta)
    return ax


def _mark(ax: Axes, epsilon: float, delta: float) -> None:
    """A point that was asked about, with its numbers; epsilon is rounded up."""
    ax.plot([epsilon], [delta], "o", color=BLACK, markersize=6, zorder=4)
    text = f"ε ≤ {rounded_up(epsilon, 4)} at δ = {written(delta)}"
    ax.annotate(text, (epsilon, delta), (7, 7), textcoords="offset points", fontsize=9)


def _mark_last(ax: Axes, x: Floats, bound: Bound) -> None:
    """The number at the end of a curve, where the curve leaves room."""
    last = float(bound.upper[-1])
    if np.isfinite(last):
        aside = (-8, 0) if last >= bound.upper[0] else (0, 12)
        place: dict[str, Any] = {"textcoords": "offset points", "ha": "right", "va": "center", "fontsize": 9}
        ax.annotate(f"ε ≤ {rounded_up(last, 4)}", (float(x[-1]), last), aside, **place)


def epsilon_grid(mechanism: Mechanism, points: int = 101) -> Floats:
    """From 0 to where delta has fallen to 1e-12 (to 20 at most)."""
    end = mechanism.upper_epsilon(delta=SMALLEST_DELTA, tolerance=0.01)
    return np.linspace(0.0, min(end, _LARGEST_EPSILON) or 1.0, points)


def delta_against_epsilon(
    epsilon: Any, bounds: Bound | Mapping[str, Bound], *, ax: Axes | None = None
) -> Axes:
    """The privacy curve from values: ``bounds`` hold delta at each ``epsilon``."""
    return _privacy_curve(_at(_validate.non_negative("epsilon", epsilon), bounds), ax)


def epsilon_against(
    parameter: str, values: Any, bounds: Bound | Mapping[str, Bound], *, delta: float, ax: Axes | None = None
) -> Axes:
    """epsilon at ``delta`` against "n", "rounds" or "epsilon0", from values."""
    _validate.one_of("parameter", parameter, ("n", "rounds", "epsilon0"))
    series = _at(_validate.non_negative("values", values), bounds)
    low, high = _range(series)
    ax = shown_axes() if ax is None else ax
    if parameter in LOGARITHMIC:
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:,.0f}")
    if high > WIDE * low:
        _logarithmic(ax, low, high)
    else:
        ax.set_ylim(0.0, 1.05 * high)
    _draw(ax, series)
    if len(series) == 1:
        _mark_last(ax, *next(iter(series.values())))
    ax.set_xlabel(LABELS[parameter])
    ax.set_ylabel(f"{LABELS['epsilon']} at δ = {written(delta)}")
    return ax


def _named(given: Any) -> Mapping[str, Any]:
    return given if isinstance(given, Mapping) else {"": given}


def _at(x: Floats, bounds: Bound | Mapping[str, Bound]) -> Series:
    """Every series at the same places."""
    series = {name: (x, bound) for name, bound in _named(bounds).items()}
    for name, (_, bound) in series.items():
        if np.shape(bound.upper) != x.shape:
            raise ValueError(
                f"bounds must have a value at each of {x.shape} places, "
                f"got {np.shape(bound.upper)} in {name or 'them'!r}"
            )
    return series


def _privacy_curve(series: Series, ax: Axes | None) -> Axes:
    ax = shown_axes() if ax is None else ax
    _logarithmic(ax, *_range(series, SMALLEST_DELTA))
    _draw(ax, series)
    ax.set_xlabel(LABELS["epsilon"])
    ax.set_ylabel(LABELS["delta"])
    return ax


def _draw(ax: Axes, series: Series) -> None:
    """The line and the band of each series, and the legend. A logarithmic line ends before zero."""
    hidden = 0.0 if ax.get_yscale() == "log" else -1.0
    for index, (name, (x, bound)) in enumerate(series.items()):
        style = series_style(index)
        ax.fill_between(x, bound.lower, bound.upper, color=style["color"], alpha=0.25, linewidth=0)
        upper = np.where(bound.upper > hidden, bound.upper, np.nan)
        points: dict[str, Any] = {"marker": "o", "markersize": 4} if x.size <= _FEW else {}
        ax.plot(x, upper, **style, **points, label=name or "certified upper bound")
    band = COLORS[0] if len(series) == 1 else GREY
    ax.fill_between([], [], [], color=band, alpha=0.25, label=f"the truth lies in this band{_thin(series)}")
    ax.legend()


def _thin(series: Series) -> str:
    """Where ink hides the band: how far the lower end is from the upper one."""
    with np.errstate(invalid="ignore", divide="ignore"):
        gaps = [1.0 - bound.lower / bound.upper for _, bound in series.values()]
    widest = max(float(np.max(gap, initial=0.0)) for gap in gaps)
    return f",\nwhich is at most {rounded_up(100.0 * widest, 2)}% wide" if widest < _INK else ""


def _range(series: Series, enough: float = 0.0) -> tuple[float, float]:
    """Smallest and largest positive upper end; below ``enough``, no deeper than the shallowest series.

    Lower ends may be zero, which must not stretch the axis: the band leaves at the bottom."""
    shown = [_positive(bound.upper) for _, bound in series.values()]
    lows = [float(each.min()) for each in shown if each.size] or [1.0]
    highs = [float(each.max()) for each in shown if each.size] or [1.0]
    return max(min(lows), min(max(lows), enough)), max(highs)


def _positive(values: Any) -> Floats:
    """Those that a logarithmic axis can show."""
    flat = np.ravel(np.asarray(values, dtype=np.float64))
    return np.asarray(flat[(flat > 0.0) & np.isfinite(flat)])


def _logarithmic(ax: Axes, low: float, high: float) -> None:
    """A logarithmic axis with some room; lower ends of zero fall to its bottom."""
    room = max(1.3, (high / low) ** 0.05)
    ax.set_yscale("log", nonpositive="clip")
    ax.set_ylim(low / room, high * room)


def learning_curve(
    history: History | Mapping[str, History],
    *,
    measure: str | None = None,
    against: str = "epsilon",
    delta: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """``measure`` (by default the first that was measured) against "epsilon" or "round".

    ``history``: rows of named numbers, or several of them by name. ``delta`` is written on the axis."""
    _validate.one_of("against", against, _PAID_IN)
    runs = {name: [dict(row) for row in rows] for name, rows in _named(history).items()}
    chosen = _measure(runs, measure)
    ax = shown_axes() if ax is None else ax
    for index, (name, rows) in enumerate(runs.items()):
        x, y = _measured(rows, against, chosen)
        ax.plot(x, y, **series_style(index), marker=".", label=name or chosen)
    at = "" if delta is None or against == "round" else f" at δ = {written(delta)}"
    ax.set_xlabel(f"{_PAID_IN[against]}{at}")
    unit = f" ({_UNITS[chosen]})" if chosen in _UNITS else ""
    ax.set_ylabel(f"{chosen}{unit}", parse_math=False)
    ax.set_xlim(left=0.0)
    if len(runs) > 1:
        ax.legend()
    return ax


def _measure(runs: Mapping[str, list[dict[str, float]]], asked: str | None) -> str:
    """The measure asked for, or the first; ValueError with those that there are."""
    found = dict.fromkeys(name for rows in runs.values() for row in rows for name in row)
    measured = [name for name in found if name not in _PAID_IN]
    if not measured:
        raise ValueError(
            "history must hold something measured: give evaluate= to run(), got rows of "
            f"{', '.join(found) or 'nothing'}"
        )
    return measured[0] if asked is None else _validate.one_of("measure", asked, measured)


def _measured(rows: list[dict[str, float]], against: str, chosen: str) -> tuple[Any, Any]:
    """Where, and what was measured there."""
    both = [(row[against], row[chosen]) for row in rows if against in row and chosen in row]
    if not both:
        raise ValueError(f"history must hold {against!r} beside {chosen!r}: epsilon needs a budget, got none")
    x, y = zip(*both, strict=True)
    return x, y
