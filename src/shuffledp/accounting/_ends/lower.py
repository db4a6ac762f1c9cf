"""Lower ends: how much concrete neighbouring datasets give away, whatever the analysis says.

Each round's witnesses are pairs of datasets of the real mechanism. The truth is at least what the best of
them attains in one round, and what the products of one witness per round attain in several."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import numpy as np

from shuffledp._certified.rounding import CALL, LARGEST_EXPONENT, Floats, down, positive
from shuffledp.accounting._curves.profile import PrivacyProfile, SupportingLines
from shuffledp.accounting._ends.search import NEAR_IN_TOLERANCES, crossing
from shuffledp.accounting._ends.together import Asked, Search
from shuffledp.accounting._rounds.adapted import Question, adapted, at_delta, at_epsilon
from shuffledp.accounting._rounds.compose import ComposedLoss, Look, compose
from shuffledp.accounting._rounds.loss import Lattice, dominated
from shuffledp.accounting._rounds.round import EXACT, SMALLEST_DELTA, Round, Rounds, is_single
from shuffledp.errors import NoCertificateError

Answer = TypeVar("Answer")

_MOST_RANKS = 3  # speed
_PROMISING, _MANY_USERS = 0.97, 0.1  # speed: epsilon of sums is nearly proportional to a small scale
_NORMAL = 0.5  # speed
_FIRST_LOOK, _SEEN_AT = 0.1, 12  # speed: where curves are compared, from a share of the scale on
_LESS, _NO_MATTER = -0.01, 1e-4  # speed: of a logarithm, for certain; what counts for nothing, of delta
_STRIDE, _MANY_ROUNDS = 8, 100  # speed
_BEFORE = 0.1  # speed: of the accuracy, how far before its root a lower end of rounds is looked for
_CLOSER = 0.7  # tightness: than the tolerance, where rare reports tell most
_NEAR = 0.98  # speed: of the upper end; a lower end that near is good enough
_BESIDE = np.array([0.6, 0.2, -0.2])  # speed: where to look first beside a close start, in tolerances
_BESIDE_AN_AIM = np.array([0.9, 0.0, -0.9])  # speed: the same beside the root of a tangent
_FAR_BEFORE = 0.9  # speed: of the best so far; from a tangent whose root is before that nothing is expected
_FAR_FROM_DELTA = 1.0  # speed: in nats; further away a tangent tells nothing
_CLOSE_IN_TOLERANCES = 3.0  # speed: so near the upper end, another witness can hardly add anything
_OF_THE_GAP = 0.02  # tightness
_COARSE = 1e-3
"""Accuracy of the lower end, unless a smaller tolerance is asked for."""


def _as_fine_as_can_be(attempt: Callable[[float], Answer], tolerance: float, nothing: Answer) -> Answer:
    """``attempt`` at the tolerance, or coarser, or ``nothing``: a lower end promises no accuracy."""
    for accuracy in _accuracies(tolerance):
        with suppress(NoCertificateError):
            return attempt(accuracy)
    return nothing


def _accuracies(tolerance: float) -> list[float]:
    return sorted({min(tolerance, _COARSE), _COARSE})


def first_look(rounds: Rounds, delta: float) -> Look | None:
    """What ``lower_epsilon`` of many rounds asks first."""
    many = sum(count for _, count in rounds) >= _MANY_ROUNDS and not any(p.profile.tailed for p, _ in rounds)
    if not many or not 0.0 < delta < 1.0 or not all(part.witnesses for part, _ in rounds):
        return None
    with suppress(NoCertificateError):
        losses = _witness_losses(rounds, delta, _COARSE, 0, at_delta(delta))
        at = losses[0].first_look(delta, _BEFORE * _COARSE) if len(losses) == 1 else None
        return None if at is None else (losses[0], *at)
    return None


def lower_epsilon(
    rounds: Rounds, delta: float, upper: float, tolerance: float, first: Look | None = None
) -> Search[float]:
    """An epsilon at which the witnesses still exceed ``delta``. ``first``: the ``first_look``, if known."""
    if upper == 0.0 or not all(part.witnesses for part, _ in rounds):
        return 0.0
    if is_single(rounds):
        return (yield from _witness_epsilon(rounds[0][0], delta, upper, tolerance))

    best = 0.0
    for rank in range(_ranks(rounds)):
        if rank and _outshone(rounds, rank, delta, upper):
            break

        def composed(accuracy: float, rank: int = rank) -> float:
            if first is not None and rank == 0 and accuracy == _COARSE:
                return first[0].lower_epsilon(delta, _BEFORE * accuracy)
            losses = _witness_losses(rounds, delta, accuracy, rank, at_delta(delta))
            return max(loss.lower_epsilon(delta, _BEFORE * accuracy) for loss in losses)

        found = 0.0
        if any(part.profile.tailed for part, _ in rounds) and tolerance > _COARSE:
            with suppress(NoCertificateError):
                found = composed(_CLOSER * tolerance)
        else:
            found = _as_fine_as_can_be(composed, _COARSE, 0.0)
        if found < best:
            break  # scales fall, and so does what is seen
        best = found
        # Closer than a small part of what is open between the ends would be in vain.
        if (worth := max(tolerance, _OF_THE_GAP * (1.0 - best / upper))) < _COARSE:
            best = max(best, _as_fine_as_can_be(composed, worth, 0.0))
        if best >= _NEAR * upper:
            break
    return best


def _ranks(rounds: Rounds) -> int:
    """How many choices of witnesses are tried."""
    return max(1, min(_MOST_RANKS, max(len(_promising(part)) for part, _ in rounds)))


def _outshone(rounds: Rounds, rank: int, delta: float, upper: float) -> bool:
    """Whether the witnesses of a rank seem to show less than the first ones, wherever that matters."""
    for part, count in rounds:
        first, other = _ranked(part, 0), _ranked(part, rank)
        last = min(upper, LARGEST_EXPONENT)
        points = np.append(0.0, np.geomspace(_FIRST_LOOK * min(first.hints.scale, last), last, _SEEN_AT))
        curves = [_sides(witness) for witness in (first, other)]
        seen = [[curve.hints.log_about(points) for curve in pair] for pair in curves]
        if any(side is None for pair in seen for side in pair):
            return False
        least = math.log(_NO_MATTER * delta / count)
        best, lesser = (np.maximum(np.array(pair, np.float64), least) for pair in seen)
        if not ((lesser <= _LESS + best) | (lesser <= least)).all():
            return False
    return True


def _ranked(part: Round, rank: int) -> Any:
    """``rank``: 0 for the witness of the largest scale, and so on."""
    ranked = sorted(part.witnesses, key=lambda w: -w.hints.scale)
    return ranked[min(rank, len(ranked) - 1)]


def _sides(witness: Any) -> tuple[PrivacyProfile, PrivacyProfile]:
    """The pair as it is and reversed, which may be the same curve."""
    return witness.directions[0], witness.directions[-1]


def _promising(part: Round, upper: float = 0.0) -> list[Any]:
    """Witnesses in the order of their scales: among many users, none of a clearly smaller one, as losses are
    nearly normal up to a small ``upper``."""
    ranked = sorted(part.witnesses, key=lambda w: -w.hints.scale)
    least = min(_MANY_USERS, _PROMISING / (1.0 + _NORMAL * upper) * float(ranked[0].hints.scale))
    return [witness for witness in ranked if witness.hints.scale >= least]


def seen_at_once(rounds: Rounds) -> float:
    """What the datasets of one witness per round give away at every epsilon, rounded down."""
    if not all(part.witnesses for part, _ in rounds):
        return 0.0
    most = 0.0
    for side in (0, -1):
        lost = [max(w.directions[side].infinite_loss for w in part.witnesses) for part, _ in rounds]
        counts = [count for _, count in rounds]
        none = sum(
            count * math.log1p(-down(min(loss, 1.0), operations=1, tiny=0.0))
            for loss, count in zip(lost, counts, strict=True)
        )
        most = max(most, down(-math.expm1(none), operations=2 * CALL + 2 * len(rounds) + 2, tiny=0.0))
    return most


def _witness_epsilon(part: Round, delta: float, upper: float, tolerance: float) -> Search[float]:
    """How far the best witness stays above ``delta``."""
    best = 0.0
    witnesses = part.witnesses if len(part.witnesses) == 1 else _promising(part, upper)
    curves: list[tuple[PrivacyProfile, float | None]]
    curves = [(curve, None) for witness in witnesses for curve in witness.directions]
    if part.profile.epsilon_max == math.inf > upper:  # the two directions may be far apart
        curves = _in_order([curve for curve, _ in curves], delta, upper)
    for curve, aim in curves:
        if aim is not None and aim < _FAR_BEFORE * best:
            continue
        for accuracy in _accuracies(tolerance):
            # A witness that cannot be evaluated is no witness: the others still hold.
            with suppress(NoCertificateError):
                relative = EXACT if part.alone else accuracy
                passed = yield from _passed(curve, delta, upper, best, accuracy, relative, aim)
                best = max(best, passed)
                break
        if best >= (1.0 - _CLOSE_IN_TOLERANCES * tolerance) * upper:
            return best
    return best


def _in_order(
    curves: list[PrivacyProfile], delta: float, upper: float
) -> list[tuple[PrivacyProfile, float | None]]:
    """The highest just before the upper end first, and where each passes ``delta`` by its line there."""
    at, unknown = np.array([_NEAR * upper]), SupportingLines(np.zeros(0), *np.zeros((3, 0)))
    looks = []
    for curve in curves:
        lines = _as_fine_as_can_be(partial(curve.support, at), _COARSE, unknown)
        value = float(lines.value.max(initial=0.0))
        near = abs(math.log(positive(value) / delta)) < _FAR_FROM_DELTA
        aim = curve.hints.aim(at, lines.value, lines.slope_high, delta) if near else 0.0
        looks.append((value, curve, aim if aim > 0.0 else None))
    return [(curve, aim) for _, curve, aim in sorted(looks, key=lambda look: -look[0])]


def _passed(
    curve: PrivacyProfile,
    delta: float,
    upper: float,
    best: float,
    accuracy: float,
    relative: float,
    aim: float | None = None,
) -> Search[float]:
    """How far one curve stays above ``delta``, if further than ``best``; ``aim``: about how far."""
    ceiling = 2.0 * upper  # beyond it there would be a contradiction
    start, first = upper, 1.0 - accuracy * NEAR_IN_TOLERANCES
    if aim is None and curve.hints.close and (near := curve.hints.start(delta, ceiling)) > 0.0:
        if near <= best:
            return 0.0
        start, first = near, 1.0 - accuracy * _BESIDE
    elif best > 0.0 and (yield Asked(curve, np.array([best]), accuracy)).value[0] <= delta:
        return 0.0
    elif aim is not None:
        start, first = min(aim, upper), 1.0 - accuracy * _BESIDE_AN_AIM
    return (yield from crossing(curve, accuracy, delta, start, ceiling, relative, first))[0]


def lower_delta(rounds: Rounds, epsilon: Floats, upper: Floats, tolerance: float) -> Floats:
    """The delta that the witnesses attain at every epsilon; ``upper`` tells how small it is."""
    nothing = np.zeros(epsilon.size)
    if not all(part.witnesses for part, _ in rounds):
        return nothing
    if is_single(rounds):
        best = nothing
        for curve in (d for w in rounds[0][0].witnesses for d in w.directions):

            def attained(accuracy: float, curve: PrivacyProfile = curve) -> Floats:
                return curve.support(epsilon, 0.2 * accuracy).value

            best = np.maximum(best, _as_fine_as_can_be(attained, tolerance, nothing))
        return best
    smallest = max(float(upper.min()), SMALLEST_DELTA)

    def composed(accuracy: float) -> Floats:
        losses = _witness_losses(rounds, smallest, accuracy, 0, at_epsilon(epsilon))
        return np.asarray(np.max([loss.delta(epsilon)[0] for loss in losses], axis=0))

    return np.maximum(_as_fine_as_can_be(composed, tolerance, nothing), seen_at_once(rounds))


def _witness_losses(
    rounds: Rounds, delta: float, accuracy: float, rank: int, question: Question
) -> list[ComposedLoss]:
    """Composed losses of the witness of a rank of each round, in both directions where they differ."""
    resolution = 1.5 * accuracy
    hints = rounds[0][0].profile.hints
    h = hints.spacing(rounds, resolution, _STRIDE)
    floor = 1e-6 * delta / sum(count for _, count in rounds)
    pairs = [(_sides(_ranked(part, rank)), count) for part, count in rounds]
    found = adapted(pairs, Lattice(h, _STRIDE), floor, resolution, question, both_sides=False)
    losses = [found.below]
    if not all(a is b for a, b, _ in found.sides):
        losses.append(compose([(dominated(b, a, h), c) for a, b, c in found.sides], hints.tilts))
    return losses
