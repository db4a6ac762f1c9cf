"""Tails of sums of independent lattice variables, certified, at a cost independent of the count.

For independent integer variables in groups g (``count`` iid copies each, values z, probabilities
w), their sum K, and one more signed measure "own" (weights c at integers), the quantity is

    V = sum_k payoff(k) G(k),      G = law of K convolved with own,  payoff(k) = 0 for k < k0.

Everything is done under an exponential tilt theta > 0 (Esscher), so that tiny V keep their
relative accuracy, and by the M-point trapezoidal rule on the transform,

    V ~ (1/M) sum_r own(s_r) prod_g phi_g(s_r)^count  kernel(s_r),   s_r = theta + 2 pi i r / M,

which costs one evaluation per frequency whatever the count. The error is bounded, not estimated:

1. *Aliasing*. The rule returns sum_j G(j) w_j with w_j = payoff(j) for j in [k0, k0 + M) and, with
   A = the tilted total of |G|, everything else is at most A (e^{-theta (M - J)} + Pr[tilted < k0 - J]
   + Pr[tilted >= k0 + M]); J and M are chosen by Chernoff so that each term is below e^-DEPTH.
2. *Dropped frequencies*. A cell of frequencies is dropped only if the product of the |phi_g| is
   proved small all over it: |phi|^2 has a second derivative of at most 2 variance, so value and
   slope at the centre bound it on the cell. What cannot be dropped is split and finally summed.
3. *Rounding*. phi is computed as 1 + sum w (e^{sz} - 1), whose error (of w, of z by relative units
   and of the evaluation) is at most ERROR_UNITS * |s| sum w |z| (1 + e^{theta z}); this is carried
   through the powers frequency by frequency.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shuffledp._certified.frequencies import (
    DEPTH,
    MAX_POINTS,
    Complexes,
    Ints,
    Tilted,
    choose_frequencies,
    smooth_size,
)
from shuffledp._certified.rounding import UNIT, Floats
from shuffledp.errors import NoCertificateError

ERROR_UNITS = 64.0 * UNIT

MAX_TERMS = 1 << 26
"""Frequencies times atoms summed in one call, at most."""

_CELLS_AT_ONCE = 1 << 19
_CHERNOFF = (2.0, 4.0, 6.5, 9.0, 12.0, 18.0, 30.0)
_SHARES = (0.3, 0.7, 1.0)
_OF_THE_LARGEST = (0.5, 1.5, 4.0, 10.0)


@dataclass(frozen=True)
class Group:
    """``count`` (I,) iid copies of a law: values ``z`` (I, m), whole numbers; weights ``w`` (I, m).

    The weights of one row sum to one (a row may be padded by weight 0)."""

    z: Floats
    w: Floats
    count: Floats


@dataclass(frozen=True)
class Own:
    """The extra measures: weights ``c`` (I, m, outputs) at whole numbers ``z`` (I, m)."""

    z: Floats
    c: Floats


@dataclass(frozen=True)
class HockeyStick:
    """payoff(k) = 1 - decay * step^(k - k0), for k >= k0: decay = e^(epsilon - h k0) <= 1, step = e^-h.

    With decay = 0 the payoff is the indicator of k >= k0."""

    gap: Floats
    """1 - decay, accurate when small."""
    h: Floats


@dataclass(frozen=True)
class Result:
    """Value and error share the factor e^log_scale: V in e^log_scale (value +- error)."""

    value: Floats
    error: Floats
    log_scale: Floats


def log_transform(z: Floats, w: Floats, theta: Floats) -> Floats:
    """log sum w e^{theta z} for laws with total one, accurate also where it is near zero.

    The last axis of z and w runs over atoms; theta has the others, or more in front."""
    exponent = theta[..., None] * z
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        change = (w * np.expm1(exponent)).sum(axis=-1)
        result = np.log1p(np.maximum(change, -0.5))
        if (change <= -0.5).any():
            small = (w * np.exp(exponent)).sum(axis=-1)
            result = np.where(change > -0.5, result, np.log(np.maximum(small, 1e-300)))
        return np.asarray(result)


def _tilt(group: Group, theta: Floats) -> tuple[Tilted, Floats]:
    log_phi = log_transform(group.z, group.w, theta)
    with np.errstate(over="ignore"):
        w = group.w * np.exp(theta[:, None] * group.z - log_phi[:, None])
    w = w / w.sum(axis=1, keepdims=True)
    mean = (w * group.z).sum(axis=1)
    deviation = np.sqrt((w * (group.z - mean[:, None]) ** 2).sum(axis=1))
    # |e^{sz} - 1| <= |s| min(|z|, 2/theta) (1 + e^{theta z}), as |s| >= theta.
    size = np.abs(group.z)
    fixed = np.minimum(size, 2.0 / theta[:, None]) * group.w * np.exp(-log_phi)[:, None]
    rough = (size * w + fixed).sum(axis=1)
    return Tilted(group.z, w, group.count, deviation, mean, rough), log_phi


def tail_sum(
    groups: list[Group],
    own: Own,
    k0: Floats,
    theta: Floats,
    payoff: HockeyStick | None = None,
    shifts: Sequence[int] = (0,),
    units: float = ERROR_UNITS,
    whole: bool = False,
) -> Result:
    """Enclose V for a batch of I problems (rows), for each output of ``own``.

    With ``shifts`` (small whole numbers) and a single output, the columns of the result are the
    values at k0 + shift instead. ``units`` bounds the relative error of the given weights and of
    the arithmetic together. ``whole`` asks for one Fourier transform of a single problem also where its
    laws have few values: that suits those with few heavy ones. Raises NoCertificateError where the work
    would exceed the limits."""
    # Padding must not overflow under the tilt.
    groups = [Group(np.where(g.w > 0.0, g.z, 0.0), g.w, g.count) for g in groups]
    tilted, log_total = [], np.zeros_like(theta)
    rounding = np.zeros_like(theta)
    for group in groups:
        t, log_phi = _tilt(group, theta)
        tilted.append(t)
        log_total += group.count * log_phi
        rounding += group.count * units * theta * t.roughness
    with np.errstate(under="ignore", over="ignore", invalid="ignore"):
        own_w = own.c * np.exp(theta[:, None] * own.z)[:, :, None]
    if not np.isfinite(own_w).all():
        raise NoCertificateError("a single value outweighs the sum: the numbers are too large")
    own_abs = np.abs(own_w)
    largest = own_abs.max(axis=2)
    points = _window(groups, tilted, own, largest, k0, theta, log_total)
    points = smooth_size(points + 2 * int(np.abs(shifts).max()))
    rows, r, tables = choose_frequencies(tilted, points, whole)
    moves = np.asarray(shifts, dtype=np.float64)
    value, error = _sum(
        tilted, own.z, own_w, own_abs, k0, theta, points, rows, r, payoff, moves, units, tables
    )
    damping = 1.0 / -np.expm1(-theta)
    truncation = np.exp(-DEPTH) * ((6.0 + 2.0 * damping) * largest.sum(axis=1))[:, None]
    truncation = truncation * np.exp(-theta[:, None] * moves)
    relative = rounding + UNIT * (8.0 + 4.0 * np.abs(log_total) + 4.0 * np.abs(theta * k0))
    if not (np.all(relative < 0.5) and np.all(log_total - theta * k0 < 600.0)):
        raise NoCertificateError("rounding errors outgrow the sum: the numbers are too large")
    # e^rounding - 1 of the prefactor, on the value and on its own uncertainty.
    error = (error + truncation) * np.exp(relative)[:, None] + np.abs(value) * np.expm1(
        2.0 * relative
    )[:, None]
    return Result(value, error, log_total - theta * k0)


def _window(
    groups: list[Group],
    tilted: list[Tilted],
    own: Own,
    own_w: Floats,
    k0: Floats,
    theta: Floats,
    log_total: Floats,
) -> Ints:
    """The number M of trapezoidal points (odd) that keeps every alias below e^-DEPTH."""
    total = own_w.sum(axis=1)
    centre = (own_w * own.z).sum(axis=1) / total
    variance = (own_w * (own.z - centre[:, None]) ** 2).sum(axis=1) / total
    variance = variance + sum(t.count * t.deviation**2 for t in tilted)
    spread = np.sqrt(variance + 1.0)
    size = np.abs(own.c).max(axis=2)
    # The support is a bound of its own.
    left = own.z.min(axis=1) + sum(g.count * g.z.min(axis=1) for g in groups) - 1.0
    right = own.z.max(axis=1) + sum(g.count * g.z.max(axis=1) for g in groups) + 1.0

    def reach(sign: float, distance: Floats) -> Floats:
        """Chernoff: beyond it lies less than e^-DEPTH of the tilted sum, best of distances from theta."""
        shift = theta + sign * distance
        with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore"):
            moment = (size * np.exp(shift[:, :, None] * own.z)).sum(axis=2)
            moment = np.log(moment / total) - log_total
            for group in groups:
                moment = moment + group.count * log_transform(group.z, group.w, shift)
            found = (DEPTH + moment) / distance
        return np.asarray(np.where(np.isfinite(found), found, np.inf).min(axis=0))

    eta = np.stack([c / spread for c in _CHERNOFF] + [c * theta for c in _SHARES])
    left = np.maximum(left, -reach(-1.0, eta))
    right = np.minimum(right, reach(1.0, eta[: len(_CHERNOFF)]))
    enough = np.maximum(k0 - left, 1.0) + DEPTH / theta
    if np.any(right - k0 > 2.0 * enough):  # rare large values: distances that suit them
        largest = np.max([np.maximum(g.z.max(axis=1), 1.0) for g in groups], axis=0)
        right = np.minimum(right, reach(1.0, np.stack([c / largest for c in _OF_THE_LARGEST])))
    behind = np.maximum(k0 - left, 1.0)
    needed = np.maximum(behind + DEPTH / theta, right - k0) + 2.0
    if not np.all(needed < MAX_POINTS):
        raise NoCertificateError(f"the sum spreads over more than {MAX_POINTS} lattice points")
    return np.asarray(2 * np.ceil(0.5 * needed) + 1, dtype=np.int64)


def _sum(
    tilted: list[Tilted],
    own_z: Floats,
    own_w: Floats,
    own_abs: Floats,
    k0: Floats,
    theta: Floats,
    points: Ints,
    rows: Ints,
    r: Ints,
    payoff: HockeyStick | None,
    moves: Floats,
    units: float,
    tables: list[Complexes],
) -> tuple[Floats, Floats]:
    atoms = 1 if tables else max(t.z.shape[1] for t in tilted)
    if rows.size * atoms > MAX_TERMS:
        raise NoCertificateError("too many frequencies carry mass")
    outputs = max(own_w.shape[2], moves.size)
    value = np.zeros((theta.size, outputs))
    error = np.zeros((theta.size, outputs))
    for part in np.array_split(np.arange(rows.size), 1 + rows.size * atoms // _CELLS_AT_ONCE):
        i, m = rows[part], points[rows[part]]
        omega = 2.0 * np.pi * r[part] / m
        size = np.hypot(theta[i], omega)
        log_power, log_size, loss = _powers(tilted, tables, i, r[part], m, size, units)
        phase = np.exp(1j * _angles(own_z, i, r[part], m))
        numerator = np.einsum("rmo,rm->ro", own_w[i], phase)
        numerator_abs = own_abs[i].sum(axis=1)
        if moves.size > 1:
            numerator = numerator * np.exp(-(theta[i] + 1j * omega)[:, None] * moves)
            numerator_abs = numerator_abs * np.exp(-theta[i][:, None] * moves)
        turn = np.exp(-1j * _angles(k0[:, None], i, r[part], m)[:, 0])
        kernel = _kernel(theta[i], omega, payoff, i)
        share = np.where(r[part] == 0, 1.0, 2.0) / m
        term = (share * np.exp(log_power) * turn * kernel)[:, None] * numerator
        starts = np.flatnonzero(np.append(True, i[1:] != i[:-1]))
        value[i[starts]] += np.add.reduceat(term.real, starts, axis=0)
        weight = share * np.abs(kernel)
        own_error = units * (1.0 + size * np.abs(own_z[i]).max(axis=1))
        spill = weight * (np.exp(log_size) * loss + np.exp(log_power.real) * 64.0 * UNIT)
        doubt = spill[:, None] * np.abs(numerator)
        doubt += (weight * np.exp(log_size) * np.minimum(own_error, 1.0))[:, None] * numerator_abs
        error[i[starts]] += np.add.reduceat(doubt, starts, axis=0)
    return value, error


def _angles(z: Floats, i: Ints, r: Ints, m: Ints) -> Floats:
    """2 pi z r / M of problems i, reduced to [-pi, pi] in exact integer arithmetic."""
    size = m.astype(np.float64)[:, None]
    if m.max() < 1 << 26:  # products are exact doubles, and so are the remainders
        turns = np.mod(z[i], size) if len(z) > 1 else np.mod(z, size[:1])
        turns = turns * r.astype(np.float64)[:, None]
        turns -= size * np.rint(turns / size)
    else:
        whole = (np.mod(z[i], size).astype(np.int64) * r[:, None]) % m[:, None]
        turns = np.where(2 * whole > m[:, None], whole - m[:, None], whole).astype(np.float64)
    return np.asarray(turns * (2.0 * np.pi / size))


def _powers(
    tilted: list[Tilted],
    tables: list[Complexes],
    i: Ints,
    r: Ints,
    m: Ints,
    size: Floats,
    units: float,
) -> tuple[Complexes, Floats, Floats]:
    """log prod (phi_g(s)/phi_g(theta))^count, the log of its outward modulus, relative loss."""
    log_power = np.zeros(i.size, dtype=np.complex128)
    log_size = np.zeros(i.size)
    loss = np.zeros(i.size)
    for g, t in enumerate(tilted):
        if tables:
            re, im = tables[g][r].real - 1.0, tables[g][r].imag
            slack = 16.0 * UNIT * np.log2(m) + 16.0 * units
        else:
            half = 0.5 * _angles(t.z, i, r, m)
            sine = np.sin(half)
            w = t.w[i] if len(t.w) > 1 else np.broadcast_to(t.w, half.shape)
            re = -2.0 * np.einsum("ij,ij,ij->i", w, sine, sine)
            im = 2.0 * np.einsum("ij,ij,ij->i", w, sine, np.cos(half))
            slack = units * size * t.roughness[i]
        shrink = 2.0 * re + re * re + im * im
        log_modulus = 0.5 * np.where(
            shrink > -0.75,
            np.log1p(np.maximum(shrink, -0.9)),
            np.log(np.maximum(1.0 + shrink, 1e-300)),
        )
        log_power += t.count[i] * (log_modulus + 1j * np.arctan2(im, 1.0 + re))
        modulus = np.exp(log_modulus)
        outward = np.where(
            modulus > 1e3 * slack, log_modulus + np.log1p(slack / modulus), np.log(modulus + slack)
        )
        log_size += t.count[i] * np.minimum(outward, 0.0)  # no transform exceeds one
        loss += 2.0 * t.count[i] * slack / (modulus + slack)
    return log_power, log_size, np.minimum(loss, 2.0)


def _kernel(theta: Floats, omega: Floats, payoff: HockeyStick | None, i: Ints) -> Complexes:
    """sum over k >= k0 of payoff(k) e^{-s (k - k0)}, without cancellation."""
    first = one_minus_exp(theta, omega)
    if payoff is None:
        return 1.0 / first
    gap, h = payoff.gap[i], payoff.h[i]
    second = one_minus_exp(theta + h, omega)
    z1 = np.exp(-(theta + 1j * omega))
    # (1 - d) + z1 (d - e^-h) with d = 1 - gap: both parts are >= 0 at real s.
    return np.asarray((gap + z1 * (-np.expm1(-h) - gap)) / (first * second))


def one_minus_exp(theta: Floats, omega: Floats) -> Complexes:
    """1 - e^{-(theta + i omega)}."""
    decay = np.expm1(-theta)
    half = np.sin(0.5 * omega)
    re = 2.0 * half * half - decay * np.cos(omega)
    return np.asarray(re + 1j * np.exp(-theta) * np.sin(omega))
