"""The inverse problem: which parameter meets a central (epsilon, delta)?"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from shuffledp import _html, _validate
from shuffledp._certified.rounding import TINY, positive
from shuffledp._digits import rounded_down, rounded_up, written
from shuffledp._progress import expected
from shuffledp.accounting._ends.upper import glance
from shuffledp.accounting._hints.inverse import Path, normal_distance, normal_steepness, power_law
from shuffledp.accounting._rounds.round import is_single
from shuffledp.accounting.mechanism import DEFAULT_TOLERANCE, Mechanism, Shuffled
from shuffledp.bound import Bound
from shuffledp.errors import NoCertificateError

_LOCAL = ("epsilon0", "gamma", "sigma")
_SOLVABLE = (*_LOCAL, "n", "rounds", "cohort")
_MAX_ROUNDS = 2**40
_MOST_STEPS, _MOST_GLANCES = 60, 12
_USUAL_STEPS = 5  # speed: looks and evaluations that a warning of long work counts on
_ROUGHLY, _CLOSE_BY = 0.01, 0.03  # speed: how near one coarse glance comes, and the later of two
_NOT_HIDDEN = 2.0  # tightness: of the pure epsilon; where losses deviate by more, that is what is left
_NEAR = 0.9  # tightness: of the tolerance, how near a value comes to the best one
_TELL = 3.0  # speed: tolerances, between values of epsilon that tell how it changes
_ASIDE = 0.02  # speed: of the distance of two ends, the least distance from either
_SLOPES = 0.2, 500.0  # speed: of epsilon in the value, in logarithms, that are believed


@dataclass(frozen=True)
class Calibration:
    """The answer: ``value`` of ``parameter``, the mechanism it gives and its re-checked epsilon.

    ``epsilon.upper`` never exceeds the target. ``float(calibration)`` is the value."""

    parameter: str
    value: float
    mechanism: Mechanism
    epsilon: Bound
    delta: float

    def __float__(self) -> float:
        return float(self.value)

    def _repr_html_(self) -> str:
        # To the safe side: a smaller epsilon0, a larger gamma or sigma; counts are whole.
        safe = {"epsilon0": rounded_down, "gamma": rounded_up, "sigma": rounded_up}.get(
            self.parameter, lambda count: f"{count:,.0f}"
        )
        met = f"epsilon <= {rounded_up(self.epsilon.upper)} at delta = {written(self.delta)}"
        return _html.table([], [[self.parameter, safe(self.value)], ["meets", met]], "calibration")


def calibrate(
    randomizer: Any,
    *,
    epsilon: float,
    delta: float,
    n: int | None = None,
    rounds: int = 1,
    population: int | None = None,
    cohort: int | None = None,
    poisson: bool = False,
    rate: float | None = None,
    honest_fraction: float = 1.0,
    solve_for: str | None = None,
    analysis: str = "best",
    tolerance: float = DEFAULT_TOLERANCE,
    **parameters: Any,
) -> Calibration:
    """Solve for one parameter so that the mechanism is (epsilon, delta)-DP, on the safe side.

    * ``calibrate(KaryRandomizedResponse, k=16, n=10**6, rounds=30, epsilon=1, delta=1e-8)`` finds the
      largest epsilon0 (``solve_for="gamma"``: the smallest gamma; of ``DiscreteGaussian`` the smallest
      sigma); give the randomizer's class, or a function that gives a randomizer or its facts, and its
      other parameters. A class may say by ``MOST_EPSILON0`` which local epsilon it accepts at most, and by
      ``CALIBRATED`` which parameter is meant where none is named.
    * ``calibrate(answer, solve_for="n", ...)`` finds the smallest n, ``"rounds"`` the most rounds,
      ``"cohort"`` the largest cohort of ``population`` (``cohort=`` stands for n then). The truth rises with
      the cohort, so every smaller one meets the target, too (and n of a population is not asked for).

    ``poisson`` (everybody of the population flips a coin of their own), ``rate`` (of that probability, in
    place of n) and ``honest_fraction`` are those of ``Shuffled`` and ``sampled_from``.

    The answer is re-checked by evaluating it; a local epsilon is within ``tolerance`` of the best one,
    a count is exact up to the looseness ``tolerance`` of the evaluation. ValueError if nothing meets
    the target.

    >>> from shuffledp import KaryRandomizedResponse
    >>> found = calibrate(KaryRandomizedResponse, k=4, n=10_000, epsilon=0.5, delta=1e-6)
    >>> found.parameter, float(found.epsilon) <= 0.5
    ('epsilon0', True)
    """
    if isinstance(randomizer, (str, int, float)):
        raise TypeError(f"randomizer must be a randomizer's class, or a randomizer, got {randomizer!r}")
    unknown = _unknown(randomizer, solve_for, parameters)
    target = Target(
        _validate.positive("epsilon", epsilon),
        _validate.probability("delta", delta),
        _validate.tolerance(tolerance),
    )
    if unknown != "rounds":
        _validate.count("rounds", rounds)
    _check_coins(rate, unknown, population, n=n, cohort=cohort, poisson=poisson or None)
    size = 1 if rate is not None else _size(n, population, cohort, unknown)

    @cache
    def build(value: float) -> Mechanism:
        named = {unknown: _written(unknown, value)}
        described = randomizer(**parameters, **named) if _makes(randomizer) else randomizer
        users = int(value) if unknown in ("n", "cohort") else size
        one = Shuffled(described, n=users, analysis=analysis, honest_fraction=honest_fraction)
        if population is not None:
            one = one.sampled_from(population, poisson=poisson, rate=rate)
        return one * (int(value) if unknown == "rounds" else rounds)

    @cache
    def upper(value: float) -> tuple[float, str]:
        return build(value)._upper_end(target.delta, target.tolerance, near=target.epsilon)

    reach = reach_of(unknown, target, population, _most_epsilon0(randomizer))
    value = solve(build, lambda value: upper(value)[0], target, reach)
    checked = build(value)._enclosed(target.delta, target.tolerance, upper(value))
    return Calibration(unknown, _written(unknown, value), build(value), checked, target.delta)


def _makes(randomizer: Any) -> bool:
    """Whether it makes randomizers (a class, or a function that gives one, or its facts)."""
    return isinstance(randomizer, type) or (callable(randomizer) and not hasattr(randomizer, "facts"))


def _takes(make: Any, name: str) -> bool:
    """Whether it takes an argument of this name, as far as is known."""
    try:
        taken = inspect.signature(make).parameters
    except (TypeError, ValueError):  # nothing is known
        return True
    return name in taken or any(one.kind is inspect.Parameter.VAR_KEYWORD for one in taken.values())


def _name(make: Any) -> str:
    return str(make.__name__) if isinstance(make, type) else repr(make)


def _most_epsilon0(randomizer: Any) -> float:
    """The largest local epsilon that a class says it accepts."""
    try:
        return float(randomizer.MOST_EPSILON0)
    except AttributeError:
        return _validate.MAX_EPSILON0


def _usual(randomizer: Any) -> str:
    """The parameter that a class says is calibrated."""
    try:
        return str(randomizer.CALIBRATED)
    except AttributeError:
        return "epsilon0"


def _unknown(randomizer: Any, solve_for: str | None, parameters: dict[str, Any]) -> str:
    """The parameter to be found, which must suit what was given of the randomizer."""
    makes = _makes(randomizer)
    usual = _usual(randomizer) if makes else None
    unknown = _validate.one_of("solve_for", solve_for or usual, _SOLVABLE)
    if makes != (unknown in _LOCAL):
        kind = "the randomizer's class" if unknown in _LOCAL else "a randomizer"
        raise ValueError(f"solve_for={unknown!r} needs {kind}, got {randomizer!r}")
    if makes and not _takes(randomizer, unknown):
        known = [name for name in _SOLVABLE if name not in _LOCAL or _takes(randomizer, name)]
        raise ValueError(
            f"solve_for must be one of {', '.join(map(repr, known))} for {_name(randomizer)} (the last three "
            f"of a randomizer, not of its class), got {unknown!r}"
        )
    if parameters and not makes:
        raise TypeError(f"unexpected parameters {sorted(parameters)} for the randomizer {randomizer!r}")
    return unknown


@dataclass(frozen=True)
class Target:
    """What is to be met, and how near."""

    epsilon: float
    delta: float
    tolerance: float

    def likely(self, mechanism: Mechanism) -> float:
        """The distance of two normal laws, over that of the target: as if losses were normal."""
        pure = mechanism.upper_epsilon(delta=0.0) / self.epsilon
        return min(float(mechanism.gaussian_limit().upper) / self._distance, pure)

    def glanced(self, mechanism: Mechanism) -> tuple[float, float]:
        """The same of normal laws whose curve is as high at epsilon as a look sees that of the mechanism; and
        how much faster epsilon changes than it."""
        pure, likely = mechanism.upper_epsilon(delta=0.0), self.likely(mechanism)
        if pure <= self.epsilon or mechanism.gaussian_limit().upper > _NOT_HIDDEN * pure:
            return min(likely, pure / self.epsilon), 1.0
        found, steep = glance(mechanism._rounds(), self.epsilon, self.delta, self.tolerance)
        distance = normal_distance(self.epsilon, found) / self._distance
        return distance, normal_steepness(self.epsilon, self.delta) / positive(steep)

    @property
    def _distance(self) -> float:
        return max(TINY, normal_distance(self.epsilon, self.delta))


@dataclass(frozen=True)
class Reach:
    """The values of a parameter, from the ``safe`` to the ``rash`` end, and a ``first`` guess."""

    first: float
    safe: float
    rash: float
    whole: bool
    none: str
    """What is said if no value meets the target."""


def _size(n: Any, population: Any, cohort: Any, unknown: str) -> int:
    """The users of one round, where that is not the unknown."""
    if cohort is not None and population is None:
        raise ValueError(f"cohort={cohort!r} needs population")
    if unknown == "cohort" and population is None:
        raise ValueError("solve_for='cohort' needs population")
    if unknown == "n" and population is not None:
        raise ValueError(
            f"population must be left out where n is to be found, got {population!r}: a cohort tells the "
            'more the larger it is, so n = 1 would do, if any does (solve_for="cohort" finds the largest)'
        )
    if unknown in ("n", "cohort"):
        if n is not None or cohort is not None:
            raise ValueError(f"{unknown} is to be found: n and cohort must be left out")
        return 0
    given = [value for value in (n, cohort) if value is not None]
    if len(given) != 1:
        raise ValueError(f"give one of n and cohort, got {n=} and {cohort=}")
    return _validate.count("n" if cohort is None else "cohort", given[0])


def _check_coins(rate: Any, unknown: str, population: Any, **others: Any) -> None:
    """There are people who flip them; and of what a rate says nothing else is given, or to be found."""
    given = [f"{name}={value!r}" for name, value in others.items() if value is not None]
    if population is None and (rate is not None or others["poisson"]):
        coins = given[-1] if rate is None else f"{rate=}"
        raise ValueError(f"{coins} needs population, the people who flip a coin")
    if rate is not None and unknown in ("n", "cohort"):
        raise ValueError(f"rate must be left out where {unknown} is to be found, got {rate!r}")
    if rate is not None and given:
        raise ValueError(f"{rate=} stands in place of n, cohort and poisson, got {', '.join(given)}, too")


def solve(
    build: Callable[[float], Mechanism], upper: Callable[[float], float], target: Target, reach: Reach
) -> float:
    """The last value, on the way from the safe end to the rash one, whose ``upper`` end meets the target.

    A few looks at delta, which is smooth also where epsilon has cliffs, say where to look. Then values
    are evaluated, each a little to the safe side of where the target may be."""

    def safely(question: Callable[[Mechanism], Any], otherwise: Any) -> Callable[[float], Any]:
        def asked(value: float) -> Any:
            with suppress(NoCertificateError, ValueError):
                return question(build(value))
            return otherwise

        return cache(asked)

    glanced = safely(target.glanced, (math.inf, 1.0))
    likely = safely(target.likely, math.nan)
    fine = is_single(build(reach.first)._rounds())
    with expected(_USUAL_STEPS, "calibrating") as evaluated:

        def seen(value: float) -> tuple[float, float]:
            height, faster = glanced(value)
            evaluated()
            return height, faster

        start, slope = _first(seen, Path(likely, reach.safe, reach.rash), reach, target.tolerance, fine)

        def ratio(value: float) -> float:
            found = math.inf  # what cannot be certified does not meet the target
            with suppress(NoCertificateError):
                found = upper(value) / target.epsilon
            evaluated()
            return found

        line = power_law(start, slope if reach.safe < reach.rash else -slope)
        path = Path(line, reach.safe, reach.rash, slope, _TELL * target.tolerance)
        found = best(ratio, path, replace(reach, first=start), _NEAR * target.tolerance)
    if found is None:
        raise ValueError(reach.none)
    return found


def _first(
    glanced: Callable[[float], tuple[float, float]], path: Path, reach: Reach, tolerance: float, fine: bool
) -> tuple[float, float]:
    """A little to the safe side of where values may begin to miss the target, and how epsilon changes there,
    in logarithms. ``fine``: glances are as close as the tolerance."""
    good, bad, faster = (reach.safe, False), (reach.rash, False), 1.0
    value = reach.first if reach.first == reach.rash else path.start(reach.first)
    for step in range(_MOST_GLANCES):
        value = _between(value if step % 6 < 5 else math.nan, good, bad, _ROUGHLY, reach.whole)
        height, faster = glanced(value)
        found = math.log(positive(height))
        good, bad = ((value, True), bad) if found <= 0.0 else (good, (value, True))
        if reach.rash == good[0] or reach.safe == bad[0]:
            break
        after = path.after(value, found, -0.5 * tolerance * path.slope_at(value))
        near = tolerance if fine else _CLOSE_BY if step else _ROUGHLY
        if abs(found) <= near or _met(good, bad, max(tolerance * value, float(reach.whole))):
            value = _between(after, (reach.safe, False), (reach.rash, False), 0.0, reach.whole)
            break
        value = after
    slope = path.slope_at(value) * faster
    return value, min(max(slope, _SLOPES[0]), _SLOPES[1]) if math.isfinite(slope) else 1.0


Tried = tuple[float, bool]
"""A value, and whether it was evaluated: else it is the end of a range."""


def best(ratio: Callable[[float], float], path: Path, reach: Reach, near: float) -> float | None:
    """The last value whose ``ratio`` is at most one, on the way from the safe end; None if none is.

    Of large counts the last digits are within the looseness of the evaluation."""
    good, bad, value = (reach.safe, False), (reach.rash, False), reach.first
    for step in range(_MOST_STEPS):
        value = _between(math.nan if step % 6 == 5 else value, good, bad, near, reach.whole)
        found = math.log(positive(ratio(value)))
        good, bad = ((value, True), bad) if found <= 0.0 else (good, (value, True))
        after = path.after(value, found, -0.5 * near * path.slope)
        close = -near * path.slope <= found <= 0.0
        if reach.rash == good[0] or reach.safe == bad[0] or close:
            break
        if _met(good, bad, max(near * value, float(reach.whole))):
            break
        value = after
    return good[0] if good[1] else None


def _between(value: float, good: Tried, bad: Tried, near: float, whole: bool) -> float:
    """The value, or another one inside the range and away from what was tried already."""
    (low, below), (high, above) = sorted([good, bad])
    if below and above:
        aside = min(_ASIDE * (high - low), 0.2 * near * high)
        value = min(max(value, low + aside), high - aside) if low < value < high else math.sqrt(low * high)
    elif below and not value > low:
        value = 2.0 * low
    elif above and not value < high:
        value = 0.5 * high
    if whole:
        return min(max(round(value), low + below), high - above)
    return min(max(value, low), high)


def _met(good: Tried, bad: Tried, width: float) -> bool:
    return good[1] and bad[1] and abs(good[0] - bad[0]) <= width


def _written(unknown: str, value: float) -> float:
    """The parameter of a value: gamma is found as -log(gamma), which is zero if reports tell nothing."""
    return math.exp(-value) if unknown == "gamma" else value


def reach_of(
    unknown: str, target: Target, population: int | None = None, most_epsilon0: float = _validate.MAX_EPSILON0
) -> Reach:
    """Of each parameter. Larger sigma is more private; the truth rises with the cohort (T5' of
    docs/proofs/cohorts.md), and where numbers do not, all will do if all meet the target."""
    most = population if population is not None else 2**53
    none = "no local parameter above zero meets the target"
    # The deviation that noise alone would need.
    deviation = math.sqrt(2.0 * math.log(1.25 / positive(target.delta))) / target.epsilon
    return {
        "epsilon0": Reach(max(1.0, target.epsilon), 0.0, most_epsilon0, False, none),
        "gamma": Reach(1.0, 0.0, most_epsilon0, False, none),
        "sigma": Reach(deviation, math.inf, 0.0, False, none),
        "n": Reach(min(1024, most), most, 1, True, f"no n up to {most} meets the target epsilon"),
        "rounds": Reach(16, 1, _MAX_ROUNDS, True, "not even rounds = 1 meets the target epsilon"),
        "cohort": Reach(most, 1, most, True, "not even cohort = 1 meets the target epsilon"),
    }[unknown]
