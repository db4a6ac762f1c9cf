"""The far tail of a curve, in logarithms: where its values are below what doubles hold.

Theorem T15' (docs/proofs/renyi.md). With K = log E[e^{t X}] of the law of a round (T1) and any t > 0,

    log H_alpha <= n K - 1 - log t - log n,

for s_+ <= e^{ts - 1}/t. Binary randomized response, exactly (T12), with q = e^epsilon0/(e^epsilon0 + 1), for
the b > 0 with alpha = (q e^b + 1 - q)/(q + (1 - q) e^b):

    log H_alpha <= epsilon - (n - 1) min(KL(q_b, q), KL(q_-b, q)),    q_b = q e^b / (q e^b + 1 - q).

A Renyi divergence of a large order needs them: e^{order epsilon} outgrows what is left of a double.
"""

from __future__ import annotations

import math

import numpy as np

from shuffledp._certified.rounding import CALL, Floats, capped, gamma, up
from shuffledp.accounting._curves.all_pairs import FiniteBlanketProfile
from shuffledp.accounting._curves.clones import CloneProfile
from shuffledp.accounting._curves.combined import BestProfile, LargestProfile
from shuffledp.accounting._curves.exact_binary import ExactBinaryProfile
from shuffledp.accounting._curves.law_sum import NUDGE, AmplificationProfile
from shuffledp.accounting._curves.mixture import MixtureProfile
from shuffledp.accounting._curves.profile import PrivacyProfile
from shuffledp.accounting._curves.subsampled import SubsampledProfile, clones_law
from shuffledp.accounting._curves.third_value import EvenCrowdProfile

_STEEPEST, _FLATTEST = 600.0, 1e-12  # soundness: e to the first is finite; speed: no tilt is flatter
_HALVINGS = 24  # tightness: of the logarithm of the tilt; any tilt is valid
_LOWEST = -(2.0**60)  # soundness: values below, in units of the largest, are raised
_MOST_CELLS = 1 << 20  # speed: laws times types times points
_LAW_UNITS = 64  # soundness: a value, its products, and the probabilities as they were stated
_BINARY_UNITS = 16 * CALL  # soundness: of an epsilon, or a divergence, made of a few calls
_MIXED_UNITS = 1024  # soundness: of e^-x down to where it underflows
_LESS = 1e-9  # tightness: by how much b is made smaller, so that its alpha is, too


def log_far(profile: PrivacyProfile, epsilon: Floats) -> Floats:
    """Logarithms of upper bounds of the curve at every epsilon >= 0; inf where none is known."""
    match profile:
        case AmplificationProfile():
            return _of_law(profile, epsilon)
        case CloneProfile(weight=1.0) if profile.epsilon0 < math.inf:
            return _of_law(clones_law(profile), epsilon)
        case EvenCrowdProfile() if profile.other > 0.0:
            return _of_law(_even_law(profile), epsilon)
        case FiniteBlanketProfile():
            types = len(profile.matrix.rows[0])
            if len(profile.laws) * types * epsilon.size > _MOST_CELLS:
                return np.full(epsilon.size, np.inf)
            return log_far(profile.largest, epsilon)
        case ExactBinaryProfile():
            return _of_binary(profile, epsilon)
        case SubsampledProfile():
            far = log_far(profile.base, profile._inner(epsilon)) + math.log(profile.fraction)
            return np.asarray(far + gamma(CALL + 4) * np.abs(far))
        case MixtureProfile():
            return _of_mixture(profile, epsilon)
        case LargestProfile():
            found = [log_far(part, epsilon) for part in profile.profiles]
            return np.asarray(np.max([np.full(epsilon.size, -np.inf), *found], axis=0))
        case BestProfile():
            return np.asarray(np.min([log_far(part, epsilon) for part in profile.profiles], axis=0))
    return np.full(epsilon.size, np.inf)


def log_above(upper: Floats) -> Floats:
    """Logarithms of numbers >= 0, rounded up."""
    with np.errstate(divide="ignore"):
        log = np.log(upper)
    return np.asarray(np.where(np.isfinite(log), log + gamma(CALL) * np.abs(log), log))


def _of_law(law: AmplificationProfile, epsilon: Floats) -> Floats:
    """Chernoff's bound of the sum of n."""
    weight, clone = law._weights(epsilon, -NUDGE), np.array(law.clone)
    hidden = clone > 0.0
    seen = (weight[:, ~hidden] > 0.0).any(axis=1)
    found = np.full(epsilon.size, np.inf)
    with np.errstate(over="ignore"):  # what overflows is negative
        x = weight[~seen][:, hidden] / clone[hidden]
    found[~seen] = _log_chernoff(x, clone[hidden], law.n)
    return found


def _log_chernoff(x: Floats, clone: Floats, n: int) -> Floats:
    """log of a bound of (1/n) E[(X_1 + ... + X_n)_+] for rows of values, of probabilities ``clone``; X = 0
    with the rest, which adds nothing to E[e^{tX}] - 1."""
    found, top = np.full(len(x), -np.inf), x.max(axis=1, initial=0.0)
    some = np.flatnonzero(top > 0.0)
    if not some.size:
        return found
    y = np.maximum(x[some] / top[some, None], _LOWEST)
    t = _tilts(y, clone, n)
    z = t[:, None] * y
    grown, units = np.expm1(z), x.shape[1] + _LAW_UNITS + CALL
    # An exponent z that is off by some units moves e^z by so many of |z| e^z.
    doubt = gamma(units) * ((np.abs(z) * np.exp(z) + np.abs(grown)) @ clone)
    # e^{tX} is positive: its mean is no less than zero.
    log_mean = np.log1p(np.maximum(grown @ clone + doubt, gamma(units) - 1.0))
    parts = np.stack([n * log_mean, 0.0 * t - 1.0, -np.log(t), np.log(top[some]), 0.0 * t - math.log(n)])
    found[some] = parts.sum(axis=0) + gamma(2 * CALL + 8) * np.abs(parts).sum(axis=0)
    return found


def _tilts(y: Floats, clone: Floats, n: int) -> Floats:
    """About where n log E[e^{tY}] - log t is smallest, in every row: it is convex. Any t > 0 is valid."""
    low, high = np.full(len(y), math.log(_FLATTEST)), np.full(len(y), math.log(_STEEPEST))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        t = np.exp(middle)
        grown = np.exp(t[:, None] * y)
        mean = np.maximum(1.0 - clone.sum(), 0.0) + grown @ clone
        falls = n * t * ((y * grown) @ clone) < mean
        low, high = np.where(falls, middle, low), np.where(falls, high, middle)
    return np.asarray(np.exp(low))


def _even_law(crowd: EvenCrowdProfile) -> AmplificationProfile:
    """Reports x, x' and neither."""
    near = crowd.other + crowd.gap
    own, other = (near, crowd.other, crowd.away), (crowd.other, near, crowd.away)
    half = 0.5 * crowd.rate
    law = AmplificationProfile(crowd.n, own, other, (crowd.gap, -crowd.gap, 0.0), (half, half, crowd.rest))
    return law.without_empty_types()


def _of_binary(profile: ExactBinaryProfile, epsilon: Floats) -> Floats:
    """Where no b is known to be of a smaller epsilon than asked for, no bound."""
    lie = math.exp(-profile.epsilon0) / (1.0 + math.exp(-profile.epsilon0))
    keep, half = 1.0 - lie, math.tanh(0.5 * profile.epsilon0)
    grown = np.expm1(capped(epsilon))
    told, left = np.maximum(half + (1.0 + half) * 0.5 * grown, 0.0), half - (1.0 - half) * 0.5 * grown
    inside = (left > 0.0) & (epsilon > 0.0)
    # Where the curve is zero any bound holds: b stays where it can be told apart.
    b = np.log(np.where(inside, told / np.where(inside, left, 1.0), 1.0))
    b = np.minimum(np.maximum(b - _LESS * b, 0.0), _STEEPEST)
    b = np.where(inside, b, 0.0)
    risen = half * np.expm1(b) / (keep + lie * np.exp(b))
    known = inside & (up(np.log1p(risen), operations=_BINARY_UNITS, tiny=0.0) <= epsilon)
    least = np.minimum(_divergence(keep, lie, b), _divergence(lie, keep, b))
    parts = np.stack([epsilon, -(profile.n - 1.0) * least])
    total = parts.sum(axis=0) + gamma(8) * np.abs(parts).sum(axis=0)
    return np.asarray(np.where(known, total, np.inf))


def _divergence(p: float, rest: float, b: Floats) -> Floats:
    """KL(p_b, p), rounded down: b p_b - log(p e^b + rest), rest = 1 - p."""
    grown = p * np.expm1(b)
    tilted, log = p * np.exp(b) / (1.0 + grown), np.log1p(grown)
    return np.maximum(b * tilted - log - gamma(_BINARY_UNITS) * (b * tilted + log), 0.0)


def _of_mixture(profile: MixtureProfile, epsilon: Floats) -> Floats:
    """The mean of the kinds' bounds, each no less than those of the kinds before (see mixture)."""
    rising = np.maximum.accumulate(np.stack([log_far(part, epsilon) for part in profile.profiles]))
    weights = np.array(profile.weights)
    top = rising.max(axis=0)
    with np.errstate(invalid="ignore", under="ignore"):
        shares = np.where(np.isfinite(top), np.exp(rising - top), 1.0)
    total = top + log_above(up(weights @ shares, operations=weights.size + _MIXED_UNITS))
    return np.asarray(np.where(np.isfinite(top), total + gamma(4) * np.abs(top), top))
