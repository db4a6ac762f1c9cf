"""Answers: certified epsilon and delta of rounds, from their profiles.

The upper end is that of the analysis, evaluated from above; evaluated from below, it certifies how loose
the number is. The lower end is the truth of concrete datasets (``lower_ends``).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shuffledp._certified.rounding import CALL, Floats, down, positive, up
from shuffledp._progress import expected
from shuffledp.accounting._curves.clones import CloneProfile
from shuffledp.accounting._curves.combined import BestProfile
from shuffledp.accounting._curves.crowd import CrowdProfile
from shuffledp.accounting._curves.profile import PrivacyProfile, SupportingLines
from shuffledp.accounting._ends.lower import first_look, lower_delta, lower_epsilon
from shuffledp.accounting._ends.search import crossing
from shuffledp.accounting._ends.together import Asked, Search, alone
from shuffledp.accounting._rounds.adapted import Question, adapted, at_delta, at_epsilon
from shuffledp.accounting._rounds.compose import ComposedLoss, Look, compose, epsilon_within
from shuffledp.accounting._rounds.loss import Lattice, dominated, dominating, sample
from shuffledp.accounting._rounds.round import EXACT, SMALLEST_DELTA, Round, Rounds, is_single
from shuffledp.errors import CoarserBoundWarning, NoCertificateError

_MOST_REFINEMENTS, _FEW_REFINEMENTS = 7, 4  # speed
_CANDIDATES_IN_TOLERANCES = np.array([0.25, 0.5, 0.95])  # speed: above the root
_APART_IN_TOLERANCES, _FINEST = 0.5, 0.1  # speed: of a look; as a share of its usual resolution
_NEXT_TO_IN_TOLERANCES = np.array([-1.0, 0.0, 1.0])  # speed: of a start that is about the root
_AROUND_IN_TOLERANCES = np.array([-0.42, -0.15, 0.15, 0.42])  # speed
_FAR_LOOK, _CLOSE_LOOK = (np.zeros(1), 0.8), (np.array([-0.36, 0.33]), 0.6)
_LOOKS = (_AROUND_IN_TOLERANCES, 0.8), (_AROUND_IN_TOLERANCES, 0.3)
"""speed: points and resolutions, in tolerances. A first look aims; from a close start it is mostly enough."""
_MOST_STEPS = 12  # speed: from one point to the next
_GLANCE, _GLANCED, _STRIDE = 0.008, np.array([1.0, 1.01]), 8  # speed: a resolution, points, a lattice
_CORNERS = 64  # speed: points of a lattice to a sample of a curve with corners
_FINEST_STRIDE = 1024  # speed
_AIMED_AT, _LEAST_SHARE, _LARGEST_SHARE = 0.7, 0.05, 0.8  # speed: tolerances; of a resolution, the next one
_AIMED_BEYOND = 0.03  # speed: of the root, in tolerances
_MIDDLE = 0.43  # speed: of two bounds; tangents are nearer to a curve than chords
_ALIKE = 3.0  # speed: bounds of a delta whose mean is a better guess than the upper one
_USUAL_STEPS, _USUAL_REFINEMENTS = 5, 3  # speed: that a warning of long work counts on
_CLOSE_IN_TOLERANCES = 0.3  # tightness: of a point above the root to one below it
_CLOSEST_IN_TOLERANCES = 0.9  # soundness: the same with the margin, where the two sides are apart
_BEYOND_IN_TOLERANCES, _FINER, _FINEST_IN_TOLERANCES, _NEARLY = 0.1, 0.4, 0.05, 0.05  # speed
_BESIDE_IN_TOLERANCES, _NEWTON = np.array([-0.1, 0.1]), 0.3  # speed: to either side of an aim so near
_MARGIN_IN_TOLERANCES = 0.1  # soundness
"""An answer stays this far above, so that ten times the tolerance is never tighter."""
_FIRST_RESOLUTION_IN_TOLERANCES = 0.8  # speed
"""The coarsest that is likely to be certified."""
DEFAULT_TOLERANCE = 1e-3
_TAILED = 1e-2  # speed: of rounds in which rare reports tell most
_ONE_ROUND, _ITS_LOWER_END = 1e-4, 2e-4
"""Of the epsilon of one round, where none is asked for: what is tried first, without a promise."""
_FEW_CLONES, _CLOSE = 100, 1e-6  # tightness: those of so few people are summed closely in no time
_FEW_ROUNDS, _OF_THEM = 16, 3e-4  # tightness: few rounds of any randomizer are quick, too
COARSER = (_ONE_ROUND, 1e-3, 1e-2, 1e-1)  # speed: where a smaller tolerance cannot be certified
_LARGEST_EPSILON = 690.0  # soundness: exponentials end there
_NEXT_TO_NOTHING = 1e-9  # speed: a share of the pure epsilon below which zero is tried
_AGREEMENT_UNITS = 2**26  # soundness: further apart, the two ends contradict each other
AS_MUCH, _AS_FAR = 0.5, 0.95  # speed: of what was at an infinite loss before; of a distance in delta
_AS_GOOD = 3.0  # speed: tolerances that epsilon falls by
_NO_CROWD = 2.0  # speed: deviations of the loss from which on the crowd hides next to nothing
_FAR_BELOW = 3.0  # speed: in nats, more than an estimate is off by
_ROUGHLY = 0.1  # speed: a resolution that shows about how much is seen
_LOOKS_APART, _POINTS = 3, 9  # speed: to a percent
_HIDDEN_DELTA = 1e-25  # speed: so small that rounding may hide it behind several rounds


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
        _say(coarser)
    if delta == 0.0:
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
    if found == local < _pure(rounds) and not all(part.alone for part, _ in rounds):
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
    if not is_single(rounds) and delta < _infinite_loss(rounds):
        return pure, ""
    if _hardly_less(rounds, delta, pure, first):
        return pure, ""
    for allowed in (first, *(coarser for coarser in COARSER if coarser > first)):
        with suppress(NoCertificateError):
            said = f"the upper end is certified to {allowed:g} only, not to {promised:g}"
            said = said if allowed > promised else ""
            if is_single(rounds):
                upper = yield from _round_epsilon(rounds[0][0], delta, allowed, near)
            else:
                upper, loose = _composed_epsilon(rounds, delta, allowed, pure, beside)
                said = loose or said
            return min(upper, pure), said
    if pure == _pure(rounds) < math.inf:
        said = (
            "the upper end is the pure epsilon, that of every delta: none for this delta could be certified"
        )
        return pure, said
    if (apart := _apart_epsilon(rounds, delta)) >= pure == math.inf:
        raise NoCertificateError(
            f"no finite epsilon could be certified at delta = {delta:g}, which reports may reach at every "
            "epsilon: ask for a larger delta"
        )
    return min(
        apart, pure
    ), "the upper end is coarse: of every round by itself, at its share of delta, added up"


def _apart_epsilon(rounds: Rounds, delta: float) -> float:
    """The sum of each round's epsilon at its share of delta (basic composition), after a few looks."""
    share = down(delta / sum(count for _, count in rounds), operations=2)
    total = math.fsum(count * _looked_up(part.profile, share) for part, count in rounds)
    return up(total, operations=2) if math.isfinite(total) else math.inf


def _looked_up(profile: PrivacyProfile, delta: float) -> float:
    """An epsilon at which the curve is certified to be at most delta; inf where none is found."""
    points = min(profile.epsilon_max, _LARGEST_EPSILON) * np.append(0.0, np.geomspace(1e-6, 1.0, 4 * _POINTS))
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
    at = np.minimum(epsilon, _LARGEST_EPSILON) * _GLANCED
    if is_single(rounds):
        above, lines = rounds[0][0].profile.both(at[:1], tolerance)
        below = lines.value
        steep = float(lines.slope_high[0] / positive(float(above[0])) * np.exp(at[0]) * at[0])
    else:
        pairs = _adapted(rounds, delta, _GLANCE, _STRIDE, at_epsilon(at[:1]))
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
    if not is_single(rounds) or pure > _LARGEST_EPSILON or not rounds[0][0].witnesses:
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


def _say(what: str) -> None:
    warnings.warn(what, CoarserBoundWarning, stacklevel=2)


def delta_of(
    rounds: Rounds, epsilon: Floats, tolerance: float, accuracy: float | None = None
) -> tuple[Floats, Floats]:
    """(lower, upper) on delta at every epsilon >= 0 (a 1-d array)."""
    high = upper_delta(rounds, epsilon, tolerance)
    low = np.zeros(epsilon.size)
    live = (epsilon < _pure(rounds)) & (epsilon <= _LARGEST_EPSILON)
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
        reached = np.minimum(epsilon[live], _LARGEST_EPSILON)
        high[live] = _each_delta(rounds, reached, tolerance)
    return np.minimum(high, 1.0)


def _each_delta(rounds: Rounds, epsilon: Floats, tolerance: float) -> Floats:
    """Upper ends at every epsilon; where one has no certificate, the others keep theirs."""
    for allowed in (tolerance, *(c for c in COARSER if c > tolerance and epsilon.size == 1)):
        with suppress(NoCertificateError):
            if is_single(rounds):
                high = _single_delta(rounds[0][0].profile, epsilon, allowed)
            else:
                high = _composed_delta(rounds, epsilon, allowed)
            if allowed > tolerance:
                _say(f"delta({epsilon[0]:.6g}) is certified to {allowed:g} only, not to {tolerance:g}")
            return high
    if epsilon.size > 1:
        return np.concatenate([_each_delta(rounds, part, tolerance) for part in np.array_split(epsilon, 2)])
    _say(f"delta({epsilon[0]:.6g}) is what the pure epsilon alone says: nothing else could be certified")
    # P <= E Q and Q <= E P: of all such pairs, two outcomes of odds E tell the most, (E - alpha)/(E + 1).
    pure = _pure(rounds)
    return up(-np.expm1(epsilon - pure) / (1.0 + math.exp(-pure)), operations=2 * CALL + 4)


def _pure(rounds: Rounds) -> float:
    """Pure epsilon of all rounds, rounded up."""
    total = sum(count * part.pure for part, count in rounds)
    return total if is_single(rounds) else up(total, operations=2 * len(rounds), tiny=0.0)


def _infinite_loss(rounds: Rounds) -> float:
    """A lower bound of the analysis' delta at every epsilon: that some round's loss is infinite."""
    seen = [(part.profile.infinite_loss, count) for part, count in rounds]
    if any(loss >= 1.0 for loss, _ in seen):
        return 1.0
    none = sum(count * math.log1p(-loss) for loss, count in seen)
    return down(-math.expm1(none), operations=2 * CALL + len(seen) + 2)


def _refine(attempt: Callable[[float], tuple[float, bool]], tolerance: float, most: int) -> float:
    """Try finer and finer resolutions until the looseness is certified."""
    resolution = 0.5 * tolerance
    with expected(_USUAL_REFINEMENTS, "bounding epsilon") as tried:
        for _ in range(most):
            value, certified = attempt(resolution)
            if certified:
                return value
            tried()
            resolution *= 0.4
    raise _not_certified(tolerance)


def _not_certified(tolerance: float) -> NoCertificateError:
    return NoCertificateError(
        f"tolerance {tolerance:g} could not be certified for these parameters: ask for a larger one"
    )


def _round_epsilon(part: Round, delta: float, tolerance: float, near: float | None) -> Search[float]:
    if part.alone:
        with suppress(NoCertificateError):
            return (yield from _single_epsilon(part.profile, delta, EXACT, near))
    return (yield from _single_epsilon(part.profile, delta, tolerance, near))


def _single_epsilon(
    profile: PrivacyProfile, delta: float, tolerance: float, near: float | None = None
) -> Search[float]:
    """Find where the analysis' own curve passes delta from below, then certify just above it."""
    if delta < profile.infinite_loss:
        return math.inf
    ceiling, costly = profile.epsilon_max, profile.hints.costly
    most = min(ceiling, _LARGEST_EPSILON)
    start = profile.hints.start(delta, most) if near is None else min(near, most)
    if profile.slow is not None:
        with suppress(NoCertificateError):
            if (
                one := (yield from _of_two(profile, profile.slow, delta, start, tolerance, near))
            ) is not None:
                return one
    if not costly:
        if profile.hints.apart:
            found, start = _one_by_one(profile, delta, start, tolerance)
            if found is not None:
                return found
        found, start = yield from _close_to(profile, delta, start, tolerance)
        if found is not None:
            return found
    first = (1.0 + _NEXT_TO_IN_TOLERANCES * tolerance,)  # where to look
    around: tuple[Floats, ...] = () if costly or not start > 0.0 else first

    def attempt(resolution: float) -> tuple[float, bool]:
        nonlocal start, around

        low, _ = alone(crossing(profile, resolution, delta, start, ceiling, 0.15 * tolerance, *around))
        if low == 0.0 and float(profile.upper(np.zeros(1), resolution)[0]) <= delta:
            return 0.0, True
        start, around = positive(low), first
        # A few candidates within the tolerance above it; take the first that is certified. Where
        # epsilon is ill-conditioned (near zero) the tolerance is that of delta instead.
        points = np.minimum(low * (1.0 + tolerance * _CANDIDATES_IN_TOLERANCES), ceiling)
        if resolution < 0.05 * tolerance:
            level = delta * (1.0 - 0.9 * tolerance)
            relaxed, _ = alone(crossing(profile, resolution, level, start, ceiling, 1e-3))
            points = np.append(points, max(relaxed, float(points[-1])))
        if costly:
            points = points[-1:]
        certified = (profile.upper(points, resolution) <= delta) | (points == ceiling)
        return float(points[np.argmax(certified)]), bool(certified.any())

    return _refine(attempt, tolerance, _FEW_REFINEMENTS if profile.hints.apart else _MOST_REFINEMENTS)


def _of_two(
    profile: PrivacyProfile,
    slow: PrivacyProfile,
    delta: float,
    start: float,
    tolerance: float,
    near: float | None,
) -> Search[float | None]:
    """Of a quick bound and a slow one that which passes delta first, if it can be told: each by itself."""
    quick, level = profile.quick, np.array([delta])
    other = quick.hints.start(delta, min(quick.epsilon_max, _LARGEST_EPSILON))
    if 0.0 < start < other and profile.worth_it(np.array([other]), level).any():
        found, guess = _one_by_one(slow, delta, start, tolerance, other)
        if guess <= other:
            # The other one is above there: this is no looser than the smaller of both.
            at = np.array([(found or 0.0) * (1.0 - tolerance)])
            return found if found and quick.support(at, tolerance).value[0] >= delta else None
        # Newton's step from the left goes too far, by its square.
        beyond = guess * (1.0 - (guess / start - 1.0) ** 2) > other
        return (yield from _single_epsilon(quick, delta, tolerance, near)) if beyond else None
    found = yield from _single_epsilon(quick, delta, tolerance, near)
    return None if profile.worth_it(np.array([found]), level).any() else found


def _close_to(
    profile: PrivacyProfile, delta: float, start: float, tolerance: float
) -> Search[tuple[float | None, float]]:
    """(the certified epsilon, or None; a better start), where the start is as good as it should be.

    Above the answer the curve is certified below delta, and a tolerance below it still above."""
    finer = 1.0  # where the ends of a look were too far apart: in proportion to the resolution
    for around, resolution in (_CLOSE_LOOK if profile.hints.close else _FAR_LOOK, *_LOOKS):
        points = np.minimum(start * (1.0 + tolerance * around), profile.epsilon_max)
        if not points[0] > 0.0:
            break
        with suppress(NoCertificateError):
            upper, lines = yield Asked(profile, points, finer * resolution * tolerance, both=True)
            above, below = lines.value >= delta, (upper <= delta) | (points == profile.epsilon_max)
            if above[0] and below[-1]:
                low, high = (
                    points[above][-1],
                    points[np.argmax(below)] * (1.0 + _MARGIN_IN_TOLERANCES * tolerance),
                )
                if high <= low * (1.0 + tolerance):
                    return min(float(high), profile.epsilon_max), start
            start = _aimed(profile, points, upper, lines, delta)
            apart = np.log(positive(upper) / positive(lines.value)) * lines.value
            steep = points * np.exp(np.minimum(points, _LARGEST_EPSILON)) * lines.slope_high
            loose = float((apart / positive(steep)).min()) / tolerance
            if loose > _APART_IN_TOLERANCES:
                finer = max(finer * _APART_IN_TOLERANCES / loose, _FINEST)
    return None, start


def _one_by_one(
    profile: PrivacyProfile, delta: float, start: float, tolerance: float, most: float = math.inf
) -> tuple[float | None, float]:
    """The same from one point after the other, where each costs as much, and both sides are nearly one; no
    further than ``most``."""
    low, high, aim, close = 0.0, math.inf, start, _CLOSE_IN_TOLERANCES
    resolution, beyond = _FIRST_RESOLUTION_IN_TOLERANCES * tolerance, _BEYOND_IN_TOLERANCES * tolerance
    with expected(_USUAL_STEPS, "bounding epsilon") as stepped:
        at = np.array([start])
        for _ in range(_MOST_STEPS):
            at = np.minimum(at, profile.epsilon_max)
            with suppress(NoCertificateError):
                upper, lines = profile.both(at, resolution)
                stepped()
                above, below = lines.value >= delta, (upper <= delta) | (at == profile.epsilon_max)
                low = max(low, float(at[above].max(initial=0.0)))
                high = min(high, float(at[below].min(initial=math.inf)))
                if high <= low * (1.0 + close * tolerance):
                    return min(high * (1.0 + _MARGIN_IN_TOLERANCES * tolerance), profile.epsilon_max), high
                last, aim = float(at[0]), _aimed(profile, at, upper, lines, delta)
                sides = [
                    profile.hints.aim(at, np.minimum(side, 1.0), lines.slope_high, delta)
                    for side in (lines.value, upper)
                ]
                apart, shrunk = (sides[1] - sides[0]) / positive(aim) + 2.0 * beyond, 1.0
                if apart > close * tolerance:
                    close = _CLOSEST_IN_TOLERANCES
                if apart > close * tolerance and abs(aim - last) <= _NEARLY * aim:
                    shrunk = min(_FINER, 0.6 * tolerance / apart)
                    resolution *= shrunk
                near = abs(aim - last) <= _NEWTON * math.sqrt(tolerance) * last
                if low < aim < high and near and close == _CLOSE_IN_TOLERANCES:
                    at = aim * (1.0 + _BESIDE_IN_TOLERANCES * tolerance)  # so near that its error is less
                else:
                    # Beyond the root, so that the next point is on its other side.
                    upwards = high > (1.0 + 3.0 * beyond) * sides[1]
                    there = aim + shrunk * (sides[upwards] - aim)
                    there *= 1.0 + (beyond if upwards else -beyond)
                    at = np.array([there if low < there < high else profile.hints.between(low, high)])
                if at[0] > 0.0 and aim <= most and resolution > _FINEST_IN_TOLERANCES * tolerance:
                    continue
            break
    return None, aim


def _aimed(
    profile: PrivacyProfile, points: Floats, upper: Floats, lines: SupportingLines, delta: float
) -> float:
    """About where a curve between these bounds passes delta."""
    middle = 0.5 * (np.minimum(upper, 1.0) + lines.value)
    aim = profile.hints.aim(points, middle, lines.slope_high, delta)
    return min(aim, profile.epsilon_max, _LARGEST_EPSILON)


def _single_delta(profile: PrivacyProfile, epsilon: Floats, tolerance: float) -> Floats:
    result = np.zeros(epsilon.size)
    todo = np.arange(epsilon.size)
    resolution = _FIRST_RESOLUTION_IN_TOLERANCES * tolerance
    finest = resolution * 0.4 ** (_MOST_REFINEMENTS - 1)
    with expected(_USUAL_REFINEMENTS, "bounding delta") as looked:
        for _ in range(_MOST_REFINEMENTS):
            at = epsilon[todo]
            points = np.concatenate([at, at * (1.0 - tolerance)])
            upper, lines = profile.both(points, resolution)
            high = upper[: at.size]
            here, below = lines.value[: at.size], lines.value[at.size :]
            done = (high <= here * (1.0 + tolerance)) | (high <= below) | (high < SMALLEST_DELTA)
            result[todo[done]] = high[done]
            todo, loose = todo[~done], high[~done]
            if not todo.size:
                return result
            looked()
            # Some curves are loose in proportion to the resolution: steps in between would be in vain.
            wide = float((loose / positive(here[~done])).max()) - 1.0
            resolution = max(resolution * (min(0.4, 0.8 * tolerance / wide) if wide < 1.0 else 0.4), finest)
    return _with_loose(result, todo, loose, tolerance)


def _with_loose(result: Floats, places: npt.NDArray[np.int64], high: Floats, tolerance: float) -> Floats:
    """Upper ends that are right, though it could not be certified that they are close."""
    _say(f"{places.size} of {result.size} upper ends of delta could not be certified to {tolerance:g}")
    result[places] = high
    return result


@dataclass(frozen=True)
class Discretised:
    """The composed discrete pairs above and below the rounds' analyses."""

    above: ComposedLoss
    below: ComposedLoss


def grid_for(rounds: Rounds, delta: float, resolution: float, stride: int) -> tuple[Lattice, float]:
    """The lattice for questions about ``delta``, and down to what every round is followed on it: infinite
    losses stay far below delta."""
    grid = Lattice(rounds[0][0].profile.hints.spacing(rounds, resolution, stride), stride)
    return grid, min(1e-6, 0.1 * resolution) * delta / sum(count for _, count in rounds)


def discretise(rounds: Rounds, delta: float, resolution: float, stride: int) -> Discretised:
    """Every round as two discrete pairs on the grid, composed."""
    grid, floor = grid_for(rounds, delta, resolution, stride)
    h = grid.spacing
    above, below = [], []
    for part, count in rounds:
        samples = sample(part.profile, grid, floor, resolution)
        above.append((dominating(samples, h), count))
        below.append((dominated(samples, samples, h), count))
    tilts = rounds[0][0].profile.hints.tilts
    return Discretised(compose(above, tilts), compose(below, tilts))


def _adapted(rounds: Rounds, delta: float, resolution: float, stride: int, question: Question) -> Discretised:
    """``discretise``, with points where they matter for one question."""
    grid, floor = grid_for(rounds, delta, resolution, stride)
    pairs = [((part.profile, part.profile), count) for part, count in rounds]
    sampled = adapted(pairs, grid, floor, resolution, question)
    above = [(dominating(samples, grid.spacing), count) for samples, _, count in sampled.sides]
    return Discretised(compose(above, rounds[0][0].profile.hints.tilts), sampled.below)


def _composed_epsilon(
    rounds: Rounds, delta: float, tolerance: float, pure: float, beside: Look | None
) -> tuple[float, str]:
    best = lost = apart = math.inf
    (resolution, stride), *others = attempts(rounds, tolerance)
    with expected(_USUAL_REFINEMENTS, "bounding epsilon") as tried:
        for following in (*others, others[-1]):
            try:
                pairs = _adapted(rounds, delta, resolution, stride, at_delta(delta))
                at_once = None
                with suppress(NoCertificateError):  # one of them may have none: each by itself
                    at_once = epsilon_within(
                        pairs.above, pairs.below, delta, tolerance, _AIMED_BEYOND * tolerance, beside
                    )
                if at_once is not None and _NEXT_TO_NOTHING * pure <= at_once < pure:
                    return at_once, ""
                high = min(pairs.above.upper_epsilon(delta, _AIMED_BEYOND * tolerance), pure)
                if high == 0.0 or (high == math.inf and pairs.below.infinity > delta):
                    return high, ""
                if high < _NEXT_TO_NOTHING * pure and _apart(rounds) <= delta:
                    return 0.0, ""
                previous, best = best, min(best, high)
                # The analysis itself still exceeds delta a tolerance below: no looser than that. Where
                # epsilon is ill-conditioned (near zero) the tolerance is that of delta instead.
                if high < math.inf:
                    near = pairs.below.delta(np.array([high * (1.0 - tolerance), high]))[0]
                    if near[0] >= delta or near[1] >= delta * (1.0 - tolerance):
                        return high, ""
                    before, apart = apart, delta - float(near[0])
                    if apart > _AS_FAR * before and high > (1.0 - _AS_GOOD * tolerance) * previous:
                        break  # finer ones are as far from the analysis, and as large
                    if high < pure:
                        following = finer(resolution, stride, float(near[0]), float(near[1]), delta)
                if high >= pure:
                    if pairs.above.infinity > AS_MUCH * lost:
                        break  # finer ones lose as much
                    lost = pairs.above.infinity
                resolution, stride = following
                tried()
            except NoCertificateError:
                break  # finer ones are no easier
    if best >= pure:
        raise _not_certified(tolerance)
    return best, f"the upper end is certified, but not that it is within {tolerance:g} of its analysis"


def finer(resolution: float, stride: int, before: float, here: float, delta: float) -> tuple[float, int]:
    """What to try next, where the curve from below is ``before`` and, a tolerance further, ``here``: the two
    ends are as far apart as points are coarse."""
    share = _LEAST_SHARE
    if 0.0 < here < before:
        wide = 1.0 + math.log(delta / before) / math.log(before / here)  # in tolerances
        share = min(max(_AIMED_AT / wide, _LEAST_SHARE), _LARGEST_SHARE)
    return share * resolution, min(stride << round(math.log(share) / math.log(0.4)), _FINEST_STRIDE)


def _apart(rounds: Rounds) -> float:
    """More than the total variation of all rounds together: it adds up at most."""
    parts = [count * float(part.profile.upper(np.zeros(1), 0.1)[0]) for part, count in rounds]
    return up(math.fsum(parts), operations=2)


def attempts(rounds: Rounds, tolerance: float) -> Iterator[tuple[float, int]]:
    """Resolutions and strides to try: a finer lattice helps curves with corners (small crowds)."""
    corners = any(part.profile.hints.scale > 0.1 * part.profile.epsilon_max for part, _ in rounds)
    resolution, stride = 0.5 * tolerance, _CORNERS if corners else _STRIDE
    yield resolution, stride
    resolution, stride = 0.8 * resolution, 2 * stride  # most that fail, fail by little
    for _ in range(_MOST_REFINEMENTS):
        yield resolution, stride
        resolution, stride = 0.4 * resolution, min((8 if stride >= _CORNERS else 2) * stride, _FINEST_STRIDE)


def _composed_delta(rounds: Rounds, epsilon: Floats, tolerance: float) -> Floats:
    """One discretisation serves the whole array; what is not certified yet is refined."""
    result = np.zeros(epsilon.size)
    todo = np.arange(epsilon.size)
    scale = 1e-15  # what lies at infinity must be small against the answers: a first guess
    for resolution, stride in attempts(rounds, tolerance):
        question = at_epsilon(epsilon[todo])
        pairs = _adapted(rounds, scale, resolution, stride, question)
        farthest = epsilon[todo].max(keepdims=True)
        while scale > SMALLEST_DELTA:
            smallest, known = float(pairs.above.delta(farthest)[1][0]), pairs.above.infinity
            if known <= 1e-3 * tolerance * smallest:
                break
            scale = max(min(1e-2 * smallest, scale * scale), SMALLEST_DELTA)
            pairs = _adapted(rounds, scale, resolution, stride, question)
            if pairs.above.infinity > 0.5 * known:
                break  # infinite losses are real
        high = pairs.above.delta(epsilon[todo])[1]
        here = pairs.below.delta(epsilon[todo])[0]
        here = np.maximum(here, _infinite_loss(rounds))
        done = (high <= here * (1.0 + tolerance)) | (high < 1e-250)
        if not done.all():
            before = pairs.below.delta(epsilon[todo][~done] * (1.0 - tolerance))[0]
            done[~done] = high[~done] <= before
        # So far out in the tail that rounding hides the answer: a bound, of unknown looseness.
        done |= (here == 0.0) & (high < _HIDDEN_DELTA) & (resolution < 0.5 * tolerance)
        result[todo[done]] = high[done]
        todo, loose = todo[~done], high[~done]
        if not todo.size:
            return result
    return _with_loose(result, todo, loose, tolerance)
