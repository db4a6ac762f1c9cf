"""The inverse problem: which parameter meets a central (epsilon, delta)?"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from shuffledp import _html, _validate
from shuffledp._certified.rounding import positive
from shuffledp._digits import rounded_down, rounded_up, written
from shuffledp._progress import evaluated
from shuffledp.accounting.mechanism import DEFAULT_TOLERANCE, Mechanism, Shuffled
from shuffledp.bound import Bound
from shuffledp.errors import CoarserBoundWarning, NoCertificateError

_LOCAL = ("epsilon0", "gamma", "sigma")
_SOLVABLE = (*_LOCAL, "n", "rounds", "cohort")
_MAX_ROUNDS = 2**40
_RECHECKS = 8
_MOST_STEPS = 60
_NEAR = 0.15
"""Of the target, relative: where answers are asked for at the tolerance."""


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

    value = _SOLVERS[unknown](target.meets(build), target, population)
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

    def meets(self, build: Callable[[float], Mechanism]) -> Callable[[float], float]:
        """value -> certified epsilon / target: at most 1 where the target is met."""

        known: dict[float, float] = {}
        near = False  # once a value was near the target, a coarse answer says nothing new

        def ratio(value: float) -> float:
            nonlocal near
            if value not in known:
                evaluated()
                known[value] = self._ratio(build(value), near)
                near = near or abs(known[value] - 1.0) < _NEAR
            return known[value]

        return ratio

    def recheck(self, mechanism: Mechanism) -> Bound:
        """The answer's enclosure; a warning says where it is coarser than the tolerance."""
        return mechanism.epsilon(delta=self.delta, tolerance=self.tolerance)

    @property
    def _coarse(self) -> float:
        return max(0.02, self.tolerance)

    def _ratio(self, mechanism: Mechanism, near: bool) -> float:
        pure = mechanism.upper_epsilon(delta=0.0)
        if pure <= self.epsilon:
            return pure / self.epsilon  # met whatever the crowd adds
        bound = math.inf  # what cannot be certified does not meet the target
        with warnings.catch_warnings(), suppress(NoCertificateError):
            warnings.simplefilter("ignore", CoarserBoundWarning)  # the answer itself is checked once more
            # A coarse answer settles what is far from the target, and is cheaper.
            for tolerance in (self.tolerance,) if near else (self._coarse, self.tolerance):
                bound = mechanism.upper_epsilon(delta=self.delta, tolerance=tolerance)
                if abs(bound / self.epsilon - 1.0) >= _NEAR:
                    break
        return bound / self.epsilon


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


Ratio = Callable[[float], float]


def _largest_epsilon0(ratio: Ratio, target: _Target, population: int | None) -> float:
    return _stepped(ratio, max(1.0, target.epsilon), target.most_epsilon0, target.tolerance)


def _smallest_gamma(ratio: Ratio, target: _Target, population: int | None) -> float:
    """Larger gamma is more private; gamma = 1 is independent of the input. In -log(gamma)."""
    steps = _stepped(lambda u: ratio(math.exp(-u)), 1.0, target.most_epsilon0, target.tolerance)
    return math.exp(-steps)


def _smallest_sigma(ratio: Ratio, target: _Target, population: int | None) -> float:
    """Larger sigma is more private. In 1 / sigma, from the deviation that noise alone would need on."""
    first = target.epsilon / math.sqrt(2.0 * math.log(1.25 / positive(target.delta)))
    return 1.0 / _stepped(lambda u: ratio(1.0 / u), first, math.inf, target.tolerance)


def _stepped(ratio: Ratio, first: float, most: float, tolerance: float) -> float:
    """The largest value up to ``most`` that meets the target: in steps, then by secants."""
    low, high = 0.0, min(first, most)
    while (value := ratio(high)) <= 1.0:
        if high == most:
            return high
        # Epsilon grows about like e^(epsilon0 / 2), once epsilon0 is large. Not far beyond: where a large
        # local epsilon can be certified at all, it takes long.
        low, high = high, min(high + min(max(2.2 * math.log(1.0 / positive(value)), 0.2), high, 3.0), most)
    found = _narrowed(ratio, low, high, tolerance)
    if found == 0.0:
        raise ValueError("no local parameter above zero meets the target")
    return found


def _narrowed(ratio: Ratio, good: float, bad: float, tolerance: float, whole: bool = False) -> float:
    """The value nearest ``bad`` that was seen to meet the target, as ``good`` does: secants of log(ratio) in
    the value, or in the logarithm of a count.

    Every secant aims a little beyond its root, to either side in turn, so that both ends come near. Of large
    counts the last digits are within the looseness of the evaluation."""
    for step in range(_MOST_STEPS):
        width = abs(bad - good)
        if width <= 0.25 * tolerance * max(good, bad) or (whole and width <= 1):
            break
        middle = 0.5 * (good + bad)
        if good > 0.0 and step % 4 < 3 and math.isfinite(ratio(bad)) and ratio(good) > 0.0:
            share = -math.log(ratio(good)) / (math.log(ratio(bad)) - math.log(ratio(good)))
            aside = 0.1 * tolerance * max(good, bad) / width * (-1 if step % 2 else 1)
            share = min(max(share + aside, 0.02), 0.98)
            middle = good * (bad / good) ** share if whole else good + share * (bad - good)
        elif good > 0.0 and max(good, bad) > 4.0 * min(good, bad):
            middle = math.sqrt(good * bad)
        if whole:
            middle = min(max(round(middle), min(good, bad) + 1), max(good, bad) - 1)
        if ratio(middle) <= 1.0:
            good = middle
        else:
            bad = middle
    return good


def _least_n(ratio: Ratio, target: _Target, population: int | None) -> float:
    """Growing, then secants in log n: epsilon falls about like n^(-1/2)."""
    most = population if population is not None else 2**53
    if ratio(1) <= 1.0:
        return 1
    low, high = 1, min(1024, most)
    while (value := ratio(high)) > 1.0:
        if high >= most:
            raise ValueError(f"no n up to {most} meets the target epsilon")
        low, high = high, min(math.ceil(high * min(max(1.2 * value * value, 1.5), 1e4)), most)
    return _narrowed(ratio, high, low, target.tolerance, whole=True)


def _most_rounds(ratio: Ratio, target: _Target, population: int | None) -> float:
    if ratio(1) > 1.0:
        raise ValueError("not even rounds = 1 meets the target epsilon")
    low, high = 1, 16
    while (value := ratio(high)) <= 1.0:
        if high == _MAX_ROUNDS:
            return _MAX_ROUNDS
        growth = min(max(1.2 / max(value, 1e-3) ** 2, 1.5), 64.0)
        low, high = high, min(math.ceil(high * growth), _MAX_ROUNDS)
    return _narrowed(ratio, low, high, target.tolerance, whole=True)


def _largest_cohort(ratio: Ratio, target: _Target, population: int | None) -> float:
    """From the top: the truth rises with the cohort (docs/proofs/cohorts.md, T5'), and where numbers do not,
    a larger one that meets the target counts."""
    assert population is not None
    high, value = population, ratio(population)
    while value > 1.0:
        if high == 1:
            raise ValueError("not even cohort = 1 meets the target epsilon")
        low = max(1, math.floor(high / min(max(value * value, 1.5), 64.0)))
        if (below := ratio(low)) <= 1.0:
            return _narrowed(ratio, low, high, target.tolerance, whole=True)
        high, value = low, below
    return high


_SOLVERS: dict[str, Callable[[Ratio, _Target, int | None], float]] = {
    "epsilon0": _largest_epsilon0,
    "gamma": _smallest_gamma,
    "sigma": _smallest_sigma,
    "n": _least_n,
    "rounds": _most_rounds,
    "cohort": _largest_cohort,
}
