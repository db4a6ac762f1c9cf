"""What the accountant did, written down for the verifier: curves as data, and the grid of several rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from functools import singledispatch
from typing import Any

import numpy as np

from shuffledp._spans.span import Span
from shuffledp.accounting._curves.all_pairs import FiniteBlanketProfile
from shuffledp.accounting._curves.approximate import ApproximateProfile
from shuffledp.accounting._curves.binary_cohort import BinaryCohortProfile
from shuffledp.accounting._curves.clones import CloneProfile
from shuffledp.accounting._curves.combined import BestProfile, LargestProfile
from shuffledp.accounting._curves.crowd import CrowdProfile
from shuffledp.accounting._curves.exact_binary import BinaryAmongProfile, ExactBinaryProfile
from shuffledp.accounting._curves.foreign_loss import KnownLossProfile
from shuffledp.accounting._curves.gaussian_sum import GaussianSumProfile
from shuffledp.accounting._curves.groups import GroupPairsProfile, GroupsProfile
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.accounting._curves.mixture import MixtureProfile
from shuffledp.accounting._curves.noisy_sum import NoisySumProfile
from shuffledp.accounting._curves.profile import PrivacyProfile
from shuffledp.accounting._curves.subsampled import SubsampledProfile, subsampled_epsilon
from shuffledp.accounting._curves.thinned_sum import ThinnedSumProfile
from shuffledp.accounting._curves.third_value import EvenCrowdProfile
from shuffledp.accounting._ends.several_rounds import AS_MUCH, attempts, finer, grid_for
from shuffledp.accounting._ends.upper import COARSER
from shuffledp.accounting._rounds.adapted import adapted, at_delta
from shuffledp.accounting._rounds.compose import ComposedLoss, compose
from shuffledp.accounting._rounds.loss import Polygon, above, dominating
from shuffledp.accounting._rounds.round import Round, is_single
from shuffledp.errors import NoCertificateError
from shuffledp.verifying._stated import local_guarantee, loss_of
from shuffledp.verifying.certificate import Certificate

Curve = dict[str, Any]
Part = tuple[Round, int, float]  # a round, how often it is run, its delta0
_NEGLIGIBLE = 1e-15, 1e-3  # tightness: what is lost at infinity, absolutely, or as a share of delta
_OUTWARD = 1e-9  # tightness: less is the rounding of a logarithm
_BESIDE = 0.1  # speed: of what a grid exceeds delta by, what is next to nothing


def certificate_of(parts: Sequence[Part], epsilon: float, delta: float, tolerance: float) -> Certificate:
    """Of the claim that the rounds are (epsilon, delta)-DP."""
    if not math.isfinite(epsilon):
        raise NoCertificateError(f"there is nothing to certify: epsilon is {epsilon!r}")
    made = stated(parts)
    rounds = [(part, count) for part, count, _ in parts]
    if _holds_alone(made, epsilon, delta) or is_single(rounds):
        return Certificate.made(epsilon, delta, made)
    for allowed in (tolerance, *(coarser for coarser in COARSER if coarser > tolerance)):
        with suppress(NoCertificateError):
            grids, spacing = _grids(rounds, epsilon, delta, allowed)
            entries = [{**entry, "grid": grid} for entry, grid in zip(made, grids, strict=True)]
            return Certificate.made(epsilon, delta, entries, spacing)
    raise NoCertificateError("no grid was found on which the bound can be derived again")


def _holds_alone(made: Sequence[Curve], epsilon: float, delta: float) -> bool:
    """Whether the claim holds whatever the crowd adds, by what is stated."""
    known = [(entry["count"], local_guarantee(entry)) for entry in made]
    local = [(count, found) for count, found in known if found is not None]
    if len(local) < len(known) or sum(count * one.delta0 for count, one in local) > Fraction(delta):
        return False
    within = [(count, subsampled_epsilon(one.epsilon0, float(one.share))) for count, one in local]
    return epsilon >= math.fsum(count * loss for count, loss in within)


def _grids(
    rounds: list[tuple[Round, int]], epsilon: float, delta: float, tolerance: float
) -> tuple[list[dict[str, Any]], float]:
    """Of every round, on which they come to delta, or less; and the spacing."""
    tilts = rounds[0][0].profile.hints.tilts
    curves = [((part.profile, part.profile), count) for part, count in rounds]
    scales = dict.fromkeys([delta, min(_NEGLIGIBLE[0], _NEGLIGIBLE[1] * delta)])
    (resolution, stride), *others = attempts(rounds, tolerance)
    lost = math.inf
    for following in (*others, others[-1]):
        for scale in scales:
            grid, floor = grid_for(rounds, scale, resolution, stride)
            sampled = adapted(curves, grid, floor, resolution, at_delta(delta))
            samples = [found for found, _, _ in sampled.sides]
            pairs = [dominating(found, grid.spacing) for found in samples]
            loss = compose([(pair, count) for pair, (_, count) in zip(pairs, rounds, strict=True)], tilts)
            reached = float(loss.delta(np.array([epsilon]))[1][0])
            if reached <= delta:
                polygons = [above(found, grid.spacing) for found in samples]
                return [_written(polygon) for polygon in polygons], grid.spacing
            if scale == delta:
                following = _next(loss, sampled.below, (resolution, stride), following, delta, tolerance)
            if loss.infinity < _BESIDE * (reached - delta):
                break  # less at infinity is no help
        if loss.infinity > max(AS_MUCH * lost, delta):
            break  # finer ones lose as much
        lost = loss.infinity
        resolution, stride = following
    raise NoCertificateError(f"no grid of the tolerance {tolerance:g} comes to delta = {delta:g}")


def _written(polygon: Polygon) -> dict[str, Any]:
    index, value = polygon.index.astype(np.int64).tolist(), np.minimum(polygon.value, 1.0).tolist()
    return {"index": index, "value": value}


def _next(
    loss: ComposedLoss,
    below: ComposedLoss,
    now: tuple[float, int],
    following: tuple[float, int],
    delta: float,
    tolerance: float,
) -> tuple[float, int]:
    """The resolution and stride that the accountant tried next, so that its grid is found again."""
    high = loss.upper_epsilon(delta, 0.03 * tolerance)
    if not math.isfinite(high):
        return following
    near = below.delta(np.array([high * (1.0 - tolerance), high]))[0]
    return finer(*now, float(near[0]), float(near[1]), delta)


def stated(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """What a certificate says of rounds, but for its grid."""
    rows = [(count, part.pure, described(part.profile, delta0)) for part, count, delta0 in parts]
    return [{"count": count, "epsilon0": _loss(pure, curve), "curve": curve} for count, pure, curve in rows]


def _loss(pure: float, curve: Curve) -> float | None:
    """No less than that of the curve: laws that are rounded outward tell a little more than a report."""
    found = loss_of(curve)
    outward = pure < found < math.inf and not math.isclose(found, pure, rel_tol=_OUTWARD)
    return (found if outward else pure) if math.isfinite(pure) else None


@singledispatch
def described(profile: PrivacyProfile, delta0: float) -> Curve:
    """The curve as the verifier reads it (docs/reference/certificates.md)."""
    raise NoCertificateError(f"{type(profile).__name__} has no description for the verifier")


@described.register
def _(profile: AmplificationProfile, delta0: float) -> Curve:
    rows = [list(row) for row in zip(profile.own, profile.other, profile.gap, profile.clone, strict=True)]
    # What hides a message that only one of two inputs sends is no part of a report (T19).
    messages = any(clone > 0.0 == min(own, other) < max(own, other) for own, other, _, clone in rows)
    return {"kind": "messages" if messages else "law", "n": profile.n, "types": rows}


@described.register
def _(profile: CloneProfile, delta0: float) -> Curve:
    if math.isinf(profile.epsilon0):
        return {"kind": "strong", "n": profile.n, "rate": profile.rate, "weight": profile.weight}
    older = profile.rate == math.exp(-profile.epsilon0)
    return {"kind": "clones-2021" if older else "clones", "n": profile.n, "epsilon0": profile.epsilon0}


@described.register
def _(profile: ExactBinaryProfile, delta0: float) -> Curve:
    return {"kind": "binary", "n": profile.n, "epsilon0": profile.epsilon0}


@described.register
def _(profile: BinaryAmongProfile, delta0: float) -> Curve:
    return {"kind": "binary", "n": profile.n, "epsilon0": profile.epsilon0, "others": profile.others}


@described.register
def _(profile: BinaryCohortProfile, delta0: float) -> Curve:
    made = {"n": profile.n, "epsilon0": profile.epsilon0, "fraction": profile.fraction}
    return {"kind": "binary-cohort", **made}


@described.register
def _(profile: CrowdProfile, delta0: float) -> Curve:
    made: Curve = {"kind": "crowd", "n": profile.n, "epsilon0": profile.epsilon0}
    if profile.delta0 > 0.0:
        return made  # its laws are those of any epsilon0
    if profile.matrix is None:
        laws = [zip(law.own, law.other, law.gap, law.clone, strict=True) for law in profile.laws]
        made |= {"laws": [[list(row) for row in law if any(row)] for law in laws], "common": profile.common}
    else:
        made["rows"] = profile.matrix.rows.tolist()
    if isinstance(profile.matrix, Span):
        span = profile.matrix
        made |= {"spread": span.spread.tolist(), "missed": span.missed.tolist(), "lost": span.lost}
    return {**made, "fraction": profile.fraction, "rate": profile.rate}


@described.register
def _(profile: FiniteBlanketProfile, delta0: float) -> Curve:
    if profile.rate < 1.0:
        return described(profile.largest, delta0)
    rows, fraction = profile.matrix.rows.tolist(), profile.fraction
    return {"kind": "matrix", "n": profile.n, "fraction": fraction, "rows": rows}


@described.register
def _(profile: EvenCrowdProfile, delta0: float) -> Curve:
    if profile.made_of is not None:  # masses of 1e-19 beside one are lost in doubles: the verifier makes them
        clones, fraction = profile.made_of
        return {**described(clones, delta0), "fraction": fraction}
    own, other, gap, clone = profile.near - profile.other, profile.other, profile.gap, 0.5 * profile.rate
    away = [profile.away, profile.away, 0.0, profile.rest]
    rows = [[own, other, gap, clone], [other, own, -gap, clone]]
    return {"kind": "law", "n": profile.n, "types": [*rows, away] if profile.away else rows}


@described.register
def _(profile: SubsampledProfile, delta0: float) -> Curve:
    return {"kind": "cohort", "fraction": profile.fraction, "base": described(profile.base, delta0)}


@described.register
def _(profile: ApproximateProfile, delta0: float) -> Curve:
    if profile.whole is None:
        raise NoCertificateError("what delta0 is added to is not known to the verifier")
    made = {"fraction": profile.fraction, "rate": profile.rate, "base": described(profile.whole, 0.0)}
    return {"kind": "approximate", "delta0": delta0, "at": profile.lowest, **made}


@described.register
def _(profile: GroupsProfile, delta0: float) -> Curve:
    place = max(range(len(profile.crowd)), key=lambda j: sum(profile.crowd[j]), default=0)
    clone = profile.crowd[place]
    top = int(np.argmax(clone))
    rows = zip(profile.own, profile.other, profile.gap, clone, strict=True)
    groups = [
        [crowd[top] / clone[top], count]
        for crowd, count in zip(profile.crowd, profile.counts, strict=True)
        if count
    ]
    return {"kind": "groups", "types": [list(row) for row in rows], "groups": groups}


@described.register(NoisySumProfile)
@described.register(ThinnedSumProfile)
def _(profile: NoisySumProfile | ThinnedSumProfile, delta0: float) -> Curve:
    if profile.made_of is None:
        raise NoCertificateError("a sum whose messages are not known has no description for the verifier")
    made = dict(zip(("n", "messages", "modulus", "noise_distance", "sized"), profile.made_of, strict=False))
    return {"kind": "mixed-sum", "levels": profile.levels, "scale": profile.scale, **made}


@described.register
def _(profile: GaussianSumProfile, delta0: float) -> Curve:
    if profile.made_of is None:
        raise NoCertificateError("vectors whose messages are not known have no description for the verifier")
    return {"kind": "mixed-vectors", **dict(profile.made_of)}


@described.register
def _(profile: KnownLossProfile, delta0: float) -> Curve:
    laws = [
        {"loss": law.loss.tolist(), "mass": law.mass.tolist(), "infinity": law.infinity}
        for law in profile.laws
    ]
    return {"kind": "losses", "laws": laws}


@described.register
def _(profile: MixtureProfile, delta0: float) -> Curve:
    curves = [described(part, delta0) for part in profile.profiles]
    return {"kind": "mixture", "weights": list(profile.weights), "curves": curves}


@described.register
def _(profile: LargestProfile, delta0: float) -> Curve:
    first, *others = profile.profiles
    if isinstance(first, AmplificationProfile) and others == [first.reversed()]:
        return described(first, delta0)  # a law counts both ways
    return {"kind": "largest", "curves": [described(part, delta0) for part in profile.profiles]}


@described.register
def _(profile: GroupPairsProfile, delta0: float) -> Curve:
    return {"kind": "largest", "curves": [described(part, delta0) for part in profile.profiles]}


@described.register
def _(profile: BestProfile, delta0: float) -> Curve:
    curves = [described(part, delta0) for part in profile.profiles]
    return curves[0] if len(curves) == 1 else {"kind": "least", "curves": curves}
