"""The upper end of one round: where its certified curve passes delta, and the curve at an epsilon."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from shuffledp._certified.rounding import Floats, positive
from shuffledp._progress import expected
from shuffledp.accounting._curves.profile import PrivacyProfile, SupportingLines
from shuffledp.accounting._ends.coarser import not_certified, with_loose
from shuffledp.accounting._ends.search import crossing
from shuffledp.accounting._ends.together import Asked, Search, alone
from shuffledp.accounting._rounds.round import EXACT, SMALLEST_DELTA, Round
from shuffledp.errors import NoCertificateError

_MOST_REFINEMENTS, _FEW_REFINEMENTS = 7, 4  # speed
_CANDIDATES_IN_TOLERANCES = np.array([0.25, 0.5, 0.95])  # speed: above the root
_APART_IN_TOLERANCES, _FINEST = 0.5, 0.1  # speed: of a look; as a share of its usual resolution
_NEXT_TO_IN_TOLERANCES = np.array([-1.0, 0.0, 1.0])  # speed: of a start that is about the root
_AROUND_IN_TOLERANCES = np.array([-0.42, -0.15, 0.15, 0.42])  # speed
_FAR_LOOK, _CLOSE_LOOK = (np.zeros(1), 0.8), (np.array([-0.36, 0.33]), 0.6)
_LOOKS = (_AROUND_IN_TOLERANCES, 0.8), (_AROUND_IN_TOLERANCES, 0.3)
"""speed: points and resolutions, in tolerances. A first look aims; from a close start it is mostly enough."""
_MOST_STEPS = 12  # speed: from one point to the next
_USUAL_STEPS, _USUAL_REFINEMENTS = 5, 3  # speed: that a warning of long work counts on
_CLOSE_IN_TOLERANCES = 0.3  # tightness: of a point above the root to one below it
_CLOSEST_IN_TOLERANCES = 0.9  # soundness: the same with the margin, where the two sides are apart
_BEYOND_IN_TOLERANCES, _FINER, _FINEST_IN_TOLERANCES, _NEARLY = 0.1, 0.4, 0.05, 0.05  # speed
_BESIDE_IN_TOLERANCES, _NEWTON = np.array([-0.1, 0.1]), 0.3  # speed: to either side of an aim so near
_MARGIN_IN_TOLERANCES = 0.1  # soundness
"""An answer stays this far above, so that ten times the tolerance is never tighter."""
_FIRST_RESOLUTION_IN_TOLERANCES = 0.8  # speed
"""The coarsest that is likely to be certified."""
LARGEST_EPSILON = 690.0  # soundness: exponentials end there


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
    raise not_certified(tolerance)


def round_epsilon(part: Round, delta: float, tolerance: float, near: float | None) -> Search[float]:
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
    most = min(ceiling, LARGEST_EPSILON)
    start = profile.hints.start(delta, most) if near is None else min(near, most)
    if profile.slow is not None:
        with suppress(NoCertificateError):
            one, start = yield from _of_two(profile, profile.slow, delta, start, tolerance, near)
            if one is not None:
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
) -> Search[tuple[float | None, float]]:
    """Of a quick bound and a slow one that which passes delta first, if it can be told: each by itself; and
    where to begin with both."""
    quick, level = profile.quick, np.array([delta])
    other = quick.hints.start(delta, min(quick.epsilon_max, LARGEST_EPSILON))
    if 0.0 < start < other and profile.worth_it(np.array([other]), level).any():
        found, guess = _one_by_one(slow, delta, start, tolerance, other)
        if guess <= other:
            # The other one is above there: this is no looser than the smaller of both.
            at = np.array([(found or 0.0) * (1.0 - tolerance)])
            passed = found and quick.support(at, tolerance).value[0] >= delta
            return (found if passed else None), start
    found = yield from _single_epsilon(quick, delta, tolerance, near)
    if not profile.worth_it(np.array([found]), level).any():
        return found, start
    at = np.array([found * (1.0 - tolerance)])
    lines = slow.support(at, tolerance)
    if lines.value[0] >= delta:
        return found, start
    # The quick one is above delta there, and further down.
    aim = _aimed(slow, at, lines.value, lines, delta)
    return _one_by_one(slow, delta, aim, tolerance, found) if aim > 0.0 else (None, start)


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
            steep = points * np.exp(np.minimum(points, LARGEST_EPSILON)) * lines.slope_high
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
    return min(aim, profile.epsilon_max, LARGEST_EPSILON)


def single_delta(profile: PrivacyProfile, epsilon: Floats, tolerance: float) -> Floats:
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
    return with_loose(result, todo, loose, tolerance)
