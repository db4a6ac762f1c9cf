"""The upper end of several rounds: every round as a discrete pair on one grid, composed.

The pair above gives the number; the pair below certifies how loose it is. Finer and finer grids are tried."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from shuffledp._certified.rounding import CALL, Floats, down, up
from shuffledp._progress import expected
from shuffledp.accounting._ends.coarser import not_certified, with_loose
from shuffledp.accounting._rounds.adapted import Question, adapted, at_delta, at_epsilon
from shuffledp.accounting._rounds.compose import ComposedLoss, Look, compose, epsilon_within
from shuffledp.accounting._rounds.loss import Lattice, dominated, dominating, sample
from shuffledp.accounting._rounds.round import SMALLEST_DELTA, Rounds
from shuffledp.errors import NoCertificateError

_MOST_REFINEMENTS = 7  # speed
STRIDE = 8  # speed: points of a lattice to a sample
_CORNERS = 64  # speed: points of a lattice to a sample of a curve with corners
_FINEST_STRIDE = 1024  # speed
_AIMED_AT, _LEAST_SHARE, _LARGEST_SHARE = 0.7, 0.05, 0.8  # speed: tolerances; of a resolution, the next one
_AIMED_BEYOND = 0.03  # speed: of the root, in tolerances
_USUAL_REFINEMENTS = 3  # speed: that a warning of long work counts on
_NEXT_TO_NOTHING = 1e-9  # speed: a share of the pure epsilon below which zero is tried
AS_MUCH, _AS_FAR = 0.5, 0.95  # speed: of what was at an infinite loss before; of a distance in delta
_AS_GOOD = 3.0  # speed: tolerances that epsilon falls by
_HIDDEN_DELTA = 1e-25  # speed: so small that rounding may hide it behind several rounds


def infinite_loss(rounds: Rounds) -> float:
    """A lower bound of the analysis' delta at every epsilon: that some round's loss is infinite."""
    seen = [(part.profile.infinite_loss, count) for part, count in rounds]
    if any(loss >= 1.0 for loss, _ in seen):
        return 1.0
    none = sum(count * math.log1p(-loss) for loss, count in seen)
    return down(-math.expm1(none), operations=2 * CALL + len(seen) + 2)


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


def closely(rounds: Rounds, delta: float, resolution: float, stride: int, question: Question) -> Discretised:
    """``discretise``, with points where they matter for one question."""
    grid, floor = grid_for(rounds, delta, resolution, stride)
    pairs = [((part.profile, part.profile), count) for part, count in rounds]
    sampled = adapted(pairs, grid, floor, resolution, question)
    above = [(dominating(samples, grid.spacing), count) for samples, _, count in sampled.sides]
    return Discretised(compose(above, rounds[0][0].profile.hints.tilts), sampled.below)


def composed_epsilon(
    rounds: Rounds, delta: float, tolerance: float, pure: float, beside: Look | None
) -> tuple[float, str]:
    best = lost = apart = math.inf
    (resolution, stride), *others = attempts(rounds, tolerance)
    with expected(_USUAL_REFINEMENTS, "bounding epsilon") as tried:
        for following in (*others, others[-1]):
            try:
                pairs = closely(rounds, delta, resolution, stride, at_delta(delta))
                at_once = None
                with suppress(NoCertificateError):  # one of them may have none: each by itself
                    at_once = epsilon_within(
                        pairs.above, pairs.below, delta, tolerance, _AIMED_BEYOND * tolerance, beside
                    )
                if at_once is not None and _NEXT_TO_NOTHING * pure <= at_once < pure:
                    return min(at_once, best), ""
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
        raise not_certified(tolerance)
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
    resolution, stride = 0.5 * tolerance, _CORNERS if corners else STRIDE
    yield resolution, stride
    resolution, stride = 0.8 * resolution, 2 * stride  # most that fail, fail by little
    for _ in range(_MOST_REFINEMENTS):
        yield resolution, stride
        resolution, stride = 0.4 * resolution, min((8 if stride >= _CORNERS else 2) * stride, _FINEST_STRIDE)


def composed_delta(rounds: Rounds, epsilon: Floats, tolerance: float) -> Floats:
    """One discretisation serves the whole array; what is not certified yet is refined."""
    result = np.zeros(epsilon.size)
    todo = np.arange(epsilon.size)
    scale = 1e-15  # what lies at infinity must be small against the answers: a first guess
    for resolution, stride in attempts(rounds, tolerance):
        question = at_epsilon(epsilon[todo])
        pairs = closely(rounds, scale, resolution, stride, question)
        farthest = epsilon[todo].max(keepdims=True)
        while scale > SMALLEST_DELTA:
            smallest, known = float(pairs.above.delta(farthest)[1][0]), pairs.above.infinity
            if known <= 1e-3 * tolerance * smallest:
                break
            scale = max(min(1e-2 * smallest, scale * scale), SMALLEST_DELTA)
            pairs = closely(rounds, scale, resolution, stride, question)
            if pairs.above.infinity > 0.5 * known:
                break  # infinite losses are real
        high = pairs.above.delta(epsilon[todo])[1]
        here = pairs.below.delta(epsilon[todo])[0]
        here = np.maximum(here, infinite_loss(rounds))
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
    return with_loose(result, todo, loose, tolerance)
