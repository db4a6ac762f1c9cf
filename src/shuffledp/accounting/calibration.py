"""The inverse problem: which parameter meets a central (epsilon, delta)?"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from shuffledp import _html, _validate
from shuffledp._certified.rounding import positive
from shuffledp._digits import rounded_down, rounded_up, written
from shuffledp._progress import expected
from shuffledp.accounting._hints.inverse import Path, normal_epsilon
from shuffledp.accounting.mechanism import DEFAULT_TOLERANCE, Mechanism, Shuffled
from shuffledp.bound import Bound
from shuffledp.errors import NoCertificateError

_LOCAL = ("epsilon0", "gamma", "sigma")
_SOLVABLE = (*_LOCAL, "n", "rounds", "cohort")
_MAX_ROUNDS = 2**40
_RECHECKS = 8
_MOST_STEPS = 60
_USUAL_STEPS = 5  # speed: that a warning of long work counts on
_COARSE, _CLOSE_BY = 0.02, 0.1  # speed: a tolerance, and how far from the target it is of use
_HARDLY_HIDDEN = 1.0  # speed: a deviation of the loss from which on close answers may take long
_NOT_HIDDEN = 2.0  # tightness: of the pure epsilon; where losses deviate by more, that is what is left
_NEAR = 0.25  # tightness: of the tolerance, how near a value comes to the best one
_ASIDE = 0.02  # speed: of the distance of two ends, the least distance from either


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
        # To the safe side: a smaller epsilon0, a larger gamma; counts are whole.
        safe = {"epsilon0": rounded_down, "gamma": rounded_up}.get(
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
      the cohort, so every smaller one meets the target, too.

    ``poisson`` (everybody of the population flips a coin of their own) and ``honest_fraction`` are those of
    ``Shuffled`` and ``sampled_from``.

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
    makes = _makes(randomizer)
    unknown = _unknown(randomizer, solve_for, parameters)
    target = _Target(
        _validate.positive("epsilon", epsilon),
        _validate.probability("delta", delta),
        _validate.tolerance(tolerance),
        _most_epsilon0(randomizer),
    )
    if unknown != "rounds":
        _validate.count("rounds", rounds)
    size = _size(n, population, cohort, unknown)

    def build(value: float) -> Mechanism:
        described = randomizer(**parameters, **{unknown: value}) if makes else randomizer
        users = int(value) if unknown in ("n", "cohort") else size
        one = Shuffled(described, n=users, analysis=analysis, honest_fraction=honest_fraction)
        if population is not None:
            one = one.sampled_from(population, poisson=poisson)
        return one * (int(value) if unknown == "rounds" else rounds)

    with expected(_USUAL_STEPS, "calibrating") as evaluated:
        value = _SOLVERS[unknown](target.meets(build, evaluated), target, population)
    for _ in range(_RECHECKS):
        mechanism = build(value)
        checked = target.recheck(mechanism)
        if checked.upper <= target.epsilon:
            return Calibration(unknown, value, mechanism, checked, target.delta)
        # The search was coarser than the re-check: step back within the tolerance.
        value = _safer(unknown, value, 0.5 * target.tolerance)
    raise ArithmeticError(f"{unknown}={value!r} failed its re-check: {checked}")


def _makes(randomizer: Any) -> bool:
    """Whether it makes randomizers (a class, or a function that gives one, or its facts)."""
    return isinstance(randomizer, type) or (callable(randomizer) and not hasattr(randomizer, "facts"))


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
    if parameters and not makes:
        raise TypeError(f"unexpected parameters {sorted(parameters)} for the randomizer {randomizer!r}")
    return unknown


def _safer(unknown: str, value: float, share: float) -> float:
    """A little more private."""
    if unknown == "epsilon0":
        return value * (1.0 - share)
    if unknown == "sigma":
        return value * (1.0 + share)
    if unknown == "gamma":
        return 1.0 - (1.0 - value) * (1.0 - share)
    if unknown == "n":
        return math.ceil(value * (1.0 + share))
    return max(1, min(int(value) - 1, math.floor(value * (1.0 - share))))


@dataclass(frozen=True)
class _Target:
    epsilon: float
    delta: float
    tolerance: float
    most_epsilon0: float
    """The largest local epsilon that the randomizer accepts."""

    def meets(self, build: Callable[[float], Mechanism], evaluated: Callable[[], None]) -> _Ratio:
        """Of every value of the parameter."""

        near = False  # once a value was near the target, a coarse answer says nothing new

        @cache
        def certified(value: float) -> float:
            nonlocal near
            found = self._certified(build(value), near)
            near = near or abs(found - 1.0) <= _CLOSE_BY
            evaluated()
            return found

        return _Ratio(certified, cache(lambda value: self._likely(build, value)), self.tolerance)

    def recheck(self, mechanism: Mechanism) -> Bound:
        """The answer's enclosure; a warning says where it is coarser than the tolerance."""
        return mechanism.epsilon(delta=self.delta, tolerance=self.tolerance)

    def _certified(self, mechanism: Mechanism, near: bool) -> float:
        pure = mechanism.upper_epsilon(delta=0.0)
        if pure <= self.epsilon:
            return pure / self.epsilon  # met whatever the crowd adds
        with suppress(NoCertificateError):
            deviation = mechanism.gaussian_limit().upper
            if deviation > _NOT_HIDDEN * pure:
                return pure / self.epsilon
            # Where points take long, a coarse answer settles what is far from the target.
            slow = any(part.round.profile.hints.apart for part, _ in mechanism.parts)
            slow = slow or deviation > _HARDLY_HIDDEN
            for tolerance in (_COARSE, self.tolerance) if slow and not near else (self.tolerance,):
                found = mechanism.upper_epsilon(delta=self.delta, tolerance=tolerance) / self.epsilon
                if abs(found - 1.0) > 2.0 * _COARSE:
                    break
            return found
        return math.inf  # what cannot be certified does not meet the target

    def _likely(self, build: Callable[[float], Mechanism], value: float) -> float:
        """As if losses were normal; nothing where the randomizer refuses the value."""
        with suppress(ValueError):
            mechanism = build(value)
            likely = normal_epsilon(mechanism.gaussian_limit().upper, self.delta)
            return min(likely, mechanism.upper_epsilon(delta=0.0)) / self.epsilon
        return math.nan


def _size(n: Any, population: Any, cohort: Any, unknown: str) -> int:
    """The users of one round, where that is not the unknown."""
    if cohort is not None and population is None:
        raise ValueError(f"cohort={cohort!r} needs population")
    if unknown == "cohort" and population is None:
        raise ValueError("solve_for='cohort' needs population")
    if unknown in ("n", "cohort"):
        if n is not None or cohort is not None:
            raise ValueError(f"{unknown} is to be found: n and cohort must be left out")
        return 0
    given = [value for value in (n, cohort) if value is not None]
    if len(given) != 1:
        raise ValueError(f"give one of n and cohort, got {n=} and {cohort=}")
    return _validate.count("n" if cohort is None else "cohort", given[0])


Tried = tuple[float, bool]
"""A value, and whether it was evaluated: else it is the end of a range."""


@dataclass(frozen=True)
class _Ratio:
    """Of a value: ``certified`` epsilon / target, at most 1 where the target is met; and what that is
    ``likely`` to be, which only says where to look."""

    certified: Callable[[float], float]
    likely: Callable[[float], float]
    tolerance: float

    def best(self, first: float, safe: float, rash: float, whole: bool = False) -> float | None:
        """The last value that meets the target on the way from ``safe`` to ``rash``; None if none does.

        Each step aims a little to the safe side of the root. Of large counts the last digits are within the
        looseness of the evaluation."""
        path, near = Path(self.likely, safe, rash), _NEAR * self.tolerance
        good, bad = (safe, False), (rash, False)
        value, before = path.start(first), (math.nan, math.nan)
        for step in range(_MOST_STEPS):
            value = _between(math.nan if step % 6 == 5 else value, good, bad, near, whole)
            found = math.log(positive(self.certified(value)))
            good, bad = ((value, True), bad) if found <= 0.0 else (good, (value, True))
            close = near * value >= float(whole) and _close(before, (math.log(value), found), near)
            width = max(near * value, float(whole))
            if rash == good[0] or safe == bad[0] or close or _met(good, bad, width):
                break
            before = math.log(value), found
            value = path.after(value, found, -0.5 * near * path.slope)
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


def _close(before: tuple[float, float], now: tuple[float, float], near: float) -> bool:
    """Whether the line through two points (logarithms of value and ratio) passes zero so near the second,
    which is not above."""
    slope = (now[1] - before[1]) / (now[0] - before[0]) if now[0] != before[0] else math.nan
    return -near * abs(slope) <= now[1] <= 0.0


def _largest_epsilon0(ratio: _Ratio, target: _Target, population: int | None) -> float:
    return _local(ratio.best(max(1.0, target.epsilon), 0.0, target.most_epsilon0))


def _smallest_gamma(ratio: _Ratio, target: _Target, population: int | None) -> float:
    """Larger gamma is more private; gamma = 1 is independent of the input. In -log(gamma)."""
    certified, likely = ratio.certified, ratio.likely
    steps = _Ratio(lambda u: certified(math.exp(-u)), lambda u: likely(math.exp(-u)), target.tolerance)
    return math.exp(-_local(steps.best(1.0, 0.0, target.most_epsilon0)))


def _smallest_sigma(ratio: _Ratio, target: _Target, population: int | None) -> float:
    """Larger sigma is more private; from the deviation that noise alone would need on."""
    first = math.sqrt(2.0 * math.log(1.25 / positive(target.delta))) / target.epsilon
    return _local(ratio.best(first, math.inf, 0.0))


def _local(found: float | None) -> float:
    if found is None:
        raise ValueError("no local parameter above zero meets the target")
    return found


def _least_n(ratio: _Ratio, target: _Target, population: int | None) -> float:
    most = population if population is not None else 2**53
    if (found := ratio.best(min(1024, most), most, 1, whole=True)) is None:
        raise ValueError(f"no n up to {most} meets the target epsilon")
    return found


def _most_rounds(ratio: _Ratio, target: _Target, population: int | None) -> float:
    if (found := ratio.best(16, 1, _MAX_ROUNDS, whole=True)) is None:
        raise ValueError("not even rounds = 1 meets the target epsilon")
    return found


def _largest_cohort(ratio: _Ratio, target: _Target, population: int | None) -> float:
    """The truth rises with the cohort (docs/proofs/cohorts.md, T5'); where numbers do not, all will do if all
    meet the target."""
    assert population is not None
    if ratio.certified(population) <= 1.0:
        return population
    if (found := ratio.best(population, 1, population, whole=True)) is None:
        raise ValueError("not even cohort = 1 meets the target epsilon")
    return found


_SOLVERS: dict[str, Callable[[_Ratio, _Target, int | None], float]] = {
    "epsilon0": _largest_epsilon0,
    "gamma": _smallest_gamma,
    "sigma": _smallest_sigma,
    "n": _least_n,
    "rounds": _most_rounds,
    "cohort": _largest_cohort,
}
