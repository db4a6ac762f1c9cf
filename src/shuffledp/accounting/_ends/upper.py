"""Answers: certified epsilon and delta of rounds, from their profiles.

The upper end is that of the analysis, evaluated from above; evaluated from below, it certifies how loose
the number is. The lower end is the truth of concrete datasets (``lower_ends``).
"""

from __future__ import annotations

import math
from contextlib import suppress

import numpy as np

from shuffledp._certified.rounding import CALL, Floats, down, positive, up
from shuffledp.accounting._curves.clones import CloneProfile
from shuffledp.accounting._curves.combined import BestProfile
from shuffledp.accounting._curves.crowd import CrowdProfile
from shuffledp.accounting._curves.profile import PrivacyProfile
from shuffledp.accounting._ends.coarser import say
from shuffledp.accounting._ends.lower import first_look, lower_delta, lower_epsilon, seen_at_once
from shuffledp.accounting._ends.one_round import LARGEST_EPSILON, round_epsilon, single_delta
from shuffledp.accounting._ends.several_rounds import (
    STRIDE,
    closely,
    composed_delta,
    composed_epsilon,
    infinite_loss,
)
from shuffledp.accounting._ends.together import Search, alone
from shuffledp.accounting._rounds.adapted import at_epsilon
from shuffledp.accounting._rounds.compose import Look
from shuffledp.accounting._rounds.round import SMALLEST_DELTA, Rounds, is_single
from shuffledp.errors import NoCertificateError

_GLANCE, _GLANCED = 0.008, np.array([1.0, 1.01])  # speed: a resolution, points
_MIDDLE = 0.43  # speed: of two bounds; tangents are nearer to a curve than chords
_ALIKE = 3.0  # speed: bounds of a delta whose mean is a better guess than the upper one
DEFAULT_TOLERANCE = 1e-3
_TAILED = 1e-2  # speed: of rounds in which rare reports tell most
_ONE_ROUND, _ITS_LOWER_END = 1e-4, 2e-4
"""Of the epsilon of one round, where none is asked for: what is tried first, without a promise."""
_FEW_CLONES, _CLOSE = 100, 1e-6  # tightness: those of so few people are summed closely in no time
_FEW_ROUNDS, _OF_THEM = 16, 3e-4  # tightness: few rounds of any randomizer are quick, too
COARSER = (_ONE_ROUND, 1e-3, 1e-2, 1e-1)  # speed: where a smaller tolerance cannot be certified
_AGREEMENT_UNITS = 2**26  # soundness: further apart, the two ends contradict each other
_NO_CROWD = 2.0  # speed: deviations of the loss from which on the crowd hides next to nothing
_FAR_BELOW = 3.0  # speed: in nats, more than an estimate is off by
_ROUGHLY = 0.1  # speed: a resolution that shows about how much is seen
_BEYOND_ROUNDING = 1.000_000_001  # tightness: of what is seen at every epsilon
_LOOKS_APART, _POINTS = 3, 9  # speed: to a percent


def epsilon_of(
    rounds: Rounds,
    delta: float,
    tolerance: float | None,
    accuracy: float | None = None,
    known: tuple[float, str] | None = None,
    local: float = math.inf,
) -> tuple[float, float]:
    """(lower, upper) on the smallest epsilon for which the rounds are (epsilon, delta)-DP.

    ``tolerance``: None for the default; ``accuracy``: of the lower end, if other than the tolerance;
    ``known``: the ``upper_end``, if it was computed already; ``local``: as there."""
    return alone(ends_of(rounds, delta, tolerance, accuracy, known, local))


def ends_of(
    rounds: Rounds,
    delta: float,
    tolerance: float | None,
    accuracy: float | None = None,
    known: tuple[float, str] | None = None,
    local: float = math.inf,
) -> Search[tuple[float, float]]:
    """``epsilon_of``, to be searched for."""
    beside = None
    if known is None and delta > 0.0 and not is_single(rounds):
        beside = first_look(rounds, max(delta, SMALLEST_DELTA))
    upper, coarser = known or (yield from _upper_end(rounds, delta, tolerance, None, local, beside))
    if coarser:
        say(coarser)
    if delta < seen_at_once(rounds):
        lower = math.inf
    elif delta == 0.0:
        lower = sum(count * part.attained for part, count in rounds)
        lower = lower if is_single(rounds) else down(lower, operations=2 * len(rounds), tiny=0.0)
    else:
        usual = max(_ITS_LOWER_END, _usual(rounds))
        least = max(delta, SMALLEST_DELTA)
        lower = yield from lower_epsilon(rounds, least, upper, accuracy or tolerance or usual, beside)
    return _agreed(lower, upper), upper


def _agreed(lower: float, upper: float) -> float:
    """The lower end, after checking that rounding alone can have put it above the upper one."""
    if lower > up(upper, _AGREEMENT_UNITS):
        raise ArithmeticError(
            f"contradiction: the certified lower end {lower!r} exceeds the upper end {upper!r}; "
            "please report this"
        )
    return min(lower, upper)


def upper_end(
    rounds: Rounds, delta: float, tolerance: float | None, near: float | None = None, local: float = math.inf
) -> tuple[float, str]:
    """The certified upper end alone, and in what it is coarser than asked for, in words.

    ``near``: about what it will be, if that is known; ``local``: an epsilon that will do in any case."""
    return alone(_upper_end(rounds, delta, tolerance, near, local))


def _upper_end(
    rounds: Rounds,
    delta: float,
    tolerance: float | None,
    near: float | None,
    local: float,
    beside: Look | None = None,
) -> Search[tuple[float, str]]:
    """``beside``: what will be asked next, which may be looked at on the way."""
    found, said = yield from _crowd_end(rounds, delta, tolerance, near, min(_pure(rounds), local), beside)
    if 0.0 < found == local < _pure(rounds) and not all(part.alone for part, _ in rounds):
        said = "the upper end is coarse: what the local epsilons add up to, whatever the crowd adds"
    return found, said


def _crowd_end(
    rounds: Rounds,
    delta: float,
    tolerance: float | None,
    near: float | None,
    pure: float,
    beside: Look | None,
) -> Search[tuple[float, str]]:
    """At most ``pure``, which is known to do."""
    promised = tolerance or DEFAULT_TOLERANCE
    first = _usual(rounds) if tolerance is None else promised
    if delta >= 1.0 or pure == 0.0:
        return 0.0, ""
    if delta < SMALLEST_DELTA or pure < SMALLEST_DELTA:
        return pure, ""
    if not is_single(rounds) and delta < infinite_loss(rounds):
        return pure, ""
    if _hardly_less(rounds, delta, pure, first):
        return pure, ""
    for allowed in (first, *(coarser for coarser in COARSER if coarser > first)):
        with suppress(NoCertificateError):
            said = f"the upper end is certified to {allowed:g} only, not to {promised:g}"
            said = said if allowed > promised else ""
            if is_single(rounds):
                upper = yield from round_epsilon(rounds[0][0], delta, allowed, near)
            else:
                upper, loose = composed_epsilon(rounds, delta, allowed, pure, beside)
                said = loose or said
            return min(upper, pure), said
    if pure == _pure(rounds) < math.inf:
        said = (
            "the upper end is the pure epsilon, that of every delta: none for this delta could be certified"
        )
        return pure, said
    if (apart := _apart_epsilon(rounds, delta)) >= pure == math.inf:
        said = (
            f"no finite epsilon could be certified at delta = {delta:g}, which reports may reach at every "
            "epsilon: ask for a larger delta"
        )
        if delta > _BEYOND_ROUNDING * infinite_loss(rounds):
            raise NoCertificateError(said)
        return math.inf, said
    said = "the upper end is coarse: of every round by itself, at its share of delta, added up"
    return min(apart, pure), said


def _apart_epsilon(rounds: Rounds, delta: float) -> float:
    """The sum of each round's epsilon at its share of delta (basic composition), after a few looks."""
    share = down(delta / sum(count for _, count in rounds), operations=2)
    total = math.fsum(count * _looked_up(part.profile, share) for part, count in rounds)
    return up(total, operations=2) if math.isfinite(total) else math.inf


def _looked_up(profile: PrivacyProfile, delta: float) -> float:
    """An epsilon at which the curve is certified to be at most delta; inf where none is found."""
    points = min(profile.epsilon_max, LARGEST_EPSILON) * np.append(0.0, np.geomspace(1e-6, 1.0, 4 * _POINTS))
    for _ in range(_LOOKS_APART):
        enough = np.flatnonzero(profile.upper(points, _ROUGHLY) <= delta)
        if not enough.size:
            return profile.epsilon_max
        found = float(points[enough[0]])
        points = np.linspace(points[max(enough[0] - 1, 0)], found, _POINTS)
    return found


def glance(rounds: Rounds, epsilon: float, delta: float, tolerance: float) -> tuple[float, float]:
    """The curve at epsilon as one look sees it, a coarse one of several rounds, and how steeply it falls, in
    logarithms; ``delta`` is about what is expected. For searches: a guess."""
    at = np.minimum(epsilon, LARGEST_EPSILON) * _GLANCED
    if is_single(rounds):
        above, lines = rounds[0][0].profile.both(at[:1], tolerance)
        below = lines.value
        steep = float(lines.slope_high[0] / positive(float(above[0])) * np.exp(at[0]) * at[0])
    else:
        pairs = closely(rounds, delta, _GLANCE, STRIDE, at_epsilon(at[:1]))
        above, below = pairs.above.delta(at)[1], pairs.below.delta(at[:1])[0]
        steep = math.log(positive(above[0]) / positive(above[1])) / math.log(at[1] / at[0])
    high, low = float(above[0]), float(below[0])
    return low * (high / low) ** _MIDDLE if high < _ALIKE * low else high, steep


def _usual(rounds: Rounds) -> float:
    """The tolerance where none is asked for: that of unbounded losses is never the wider part."""
    clones = [_clones(part.profile) for part, _ in rounds]
    if not is_single(rounds):
        if any(part.profile.tailed for part, _ in rounds):
            return _TAILED
        few = sum(count for _, count in rounds) <= _FEW_ROUNDS
        return _OF_THEM if few and all(clones) else DEFAULT_TOLERANCE
    if rounds[0][0].profile.epsilon_max == math.inf:
        return DEFAULT_TOLERANCE
    return _CLOSE if clones[0] is not None and clones[0].n <= _FEW_CLONES else _ONE_ROUND


def _clones(profile: PrivacyProfile) -> CloneProfile | None:
    """Those of a randomizer of which no more than epsilon0 is known."""
    curves = profile.profiles if isinstance(profile, BestProfile) else (profile,)
    last, known = curves[-1], all(isinstance(curve, CloneProfile | CrowdProfile) for curve in curves)
    return last if known and isinstance(last, CloneProfile) else None


def _hardly_less(rounds: Rounds, delta: float, pure: float, tolerance: float) -> bool:
    """Whether datasets of one round with next to no crowd exceed delta just below the pure epsilon."""
    if not is_single(rounds) or pure > LARGEST_EPSILON or not rounds[0][0].witnesses:
        return False
    at = np.array([(1.0 - 0.5 * tolerance) * pure])
    with suppress(NoCertificateError):
        if rounds[0][0].profile.hints.scale < _NO_CROWD:
            return False
        curves = [curve for witness in rounds[0][0].witnesses for curve in witness.directions]
        curves = [curve for curve in curves if _may_exceed(curve, at, delta)]
        looks = [(curve, resolution) for resolution in (_ROUGHLY, tolerance) for curve in curves]
        return any(float(curve.support(at, resolution).value[0]) > delta for curve, resolution in looks)
    return False


def _may_exceed(curve: PrivacyProfile, at: Floats, delta: float) -> bool:
    """Whether an estimate, if there is one, is not far below delta: a look takes long where it is."""
    about = curve.hints.log_about(at)
    return about is None or float(about[0]) > math.log(delta) - _FAR_BELOW


def delta_of(
    rounds: Rounds, epsilon: Floats, tolerance: float, accuracy: float | None = None
) -> tuple[Floats, Floats]:
    """(lower, upper) on delta at every epsilon >= 0 (a 1-d array)."""
    high = upper_delta(rounds, epsilon, tolerance)
    low = np.zeros(epsilon.size)
    live = (epsilon < _pure(rounds)) & (epsilon <= LARGEST_EPSILON)
    if live.any():
        low[live] = lower_delta(rounds, epsilon[live], high[live], accuracy or tolerance)
    agreed = [_agreed(float(a), float(b)) for a, b in zip(low, high, strict=True)]
    return np.array(agreed), high


def upper_delta(rounds: Rounds, epsilon: Floats, tolerance: float) -> Floats:
    """The certified upper ends alone."""
    high = np.zeros(epsilon.size)
    live = epsilon < _pure(rounds)
    if live.any():
        # Exponentials end there: beyond, the curve (which falls) is bounded by its value there.
        reached = np.minimum(epsilon[live], LARGEST_EPSILON)
        high[live] = _each_delta(rounds, reached, tolerance)
    return np.minimum(high, 1.0)


def _each_delta(rounds: Rounds, epsilon: Floats, tolerance: float) -> Floats:
    """Upper ends at every epsilon; where one has no certificate, the others keep theirs."""
    for allowed in (tolerance, *(c for c in COARSER if c > tolerance and epsilon.size == 1)):
        with suppress(NoCertificateError):
            if is_single(rounds):
                high = single_delta(rounds[0][0].profile, epsilon, allowed)
            else:
                high = composed_delta(rounds, epsilon, allowed)
            if allowed > tolerance:
                say(f"delta({epsilon[0]:.6g}) is certified to {allowed:g} only, not to {tolerance:g}")
            return high
    if epsilon.size > 1:
        return np.concatenate([_each_delta(rounds, part, tolerance) for part in np.array_split(epsilon, 2)])
    say(f"delta({epsilon[0]:.6g}) is what the pure epsilon alone says: nothing else could be certified")
    # P <= E Q and Q <= E P: of all such pairs, two outcomes of odds E tell the most, (E - alpha)/(E + 1).
    pure = _pure(rounds)
    return up(-np.expm1(epsilon - pure) / (1.0 + math.exp(-pure)), operations=2 * CALL + 4)


def _pure(rounds: Rounds) -> float:
    """Pure epsilon of all rounds, rounded up."""
    total = sum(count * part.pure for part, count in rounds)
    return total if is_single(rounds) else up(total, operations=2 * len(rounds), tiny=0.0)
