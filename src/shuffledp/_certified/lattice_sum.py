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
   + Pr[tilted >= k0 + M]); J and M are chosen by Chernoff so that each term is below e^-depth.
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
from functools import cached_property

import numpy as np
import numpy.typing as npt

from shuffledp._certified.frequencies import (
    DEPTH,
    MAX_POINTS,
    MAX_TERMS,
    Chosen,
    Complexes,
    Ints,
    Table,
    Tilted,
    choose_frequencies,
    first_transforms,
    smooth_size,
    transformed,
)
from shuffledp._certified.rounding import (
    CALL,
    Floats,
    additions,
    gamma,
    positive,
    segment_totals,
    total,
    up,
    weighted,
)
from shuffledp.errors import NoCertificateError

ERROR_UNITS = gamma(64)  # soundness
"""Relative error of the weights (20 units) and of the arithmetic: exp (CALL) and 4 for the tilt, 2 CALL + 6
for two sines of an angle, 6 operations. Sums, and tilts by large factors, are counted apart (_tilt)."""

TERM_UNITS = 160  # soundness
"""Relative rounding of one frequency's term: the power (2 CALL), two exponentials of angles (26 each, as
these are off by three units of at most pi), two differences from one in the kernel (24 each), expm1, 12
operations of up to 3 and a complex quotient. A move by one costs another 32."""

_TERMS_AT_ONCE = 1 << 19  # speed: frequencies times atoms in one array
_DIRECTLY = 2  # speed: terms of an own measure per point, up to which a transform is not worth it
_LARGEST_LOG_SCALE = 600.0  # soundness: beyond, values overflow
# Distances from the tilt that Chernoff's bound is tried at (speed): in standard deviations of the sum,
# in tilts, and in units of the largest value.
_CHERNOFF = (2.0, 4.0, 6.5, 9.0, 12.0, 18.0, 30.0)
_USUAL = 3  # the place of what is best for a normal sum, about the root of twice the depth
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
    """Value and error share the factor e^log_scale: V in e^log_scale (value +- error).

    The error covers also that e^log_scale, the sum and the product are rounded. ``cut``: about the part of it
    that truncation has, which falls with the depth."""

    value: Floats
    error: Floats
    log_scale: Floats
    cut: Floats


def log_transform(z: Floats, w: Floats, theta: Floats) -> Floats:
    """log sum w e^{theta z} for laws with total one, accurate also where it is near zero.

    The last axis of z and w runs over atoms; theta has the others, or more in front."""
    exponent = theta[..., None] * z
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        change = total(w * np.expm1(exponent))
        result = np.log1p(np.maximum(change, -0.5))
        if (change <= -0.5).any():
            small = total(w * np.exp(exponent))
            result = np.where(change > -0.5, result, np.log(positive(small)))
        return np.asarray(result)


def _tilt(group: Group, theta: Floats, units: float) -> tuple[Tilted, Floats]:
    log_phi = log_transform(group.z, group.w, theta)
    with np.errstate(over="ignore"):
        w = group.w * np.exp(theta[:, None] * group.z - log_phi[:, None])
    w = w / total(w)[:, None]
    mean = (w * group.z).sum(axis=1)
    deviation = np.sqrt((w * (group.z - mean[:, None]) ** 2).sum(axis=1))
    # |e^{sz} - 1| <= |s| min(|z|, 2/theta) (1 + e^{theta z}), as |s| >= theta.
    size = np.abs(group.z)
    fixed = np.minimum(size, 2.0 / theta[:, None]) * group.w * np.exp(-log_phi)[:, None]
    rough = (size * w + fixed).sum(axis=1)
    # Sums over the atoms, and log phi taken off an exponent, cost more with their size.
    error = units + gamma(2.0 * additions(w.shape[1]) + 2.0 * np.abs(log_phi))
    return Tilted(theta, group.z, w, group.count, mean, deviation, rough, error), log_phi


def tail_sum(
    groups: list[Group],
    own: Own,
    k0: Floats,
    theta: Floats,
    payoff: HockeyStick | None = None,
    shifts: Sequence[int] = (0,),
    units: float = ERROR_UNITS,
    whole: bool = False,
    depth: float = DEPTH,
) -> Result:
    """Enclose V for a batch of I problems (rows), for each output of ``own``.

    With ``shifts`` (small whole numbers) and a single output, the columns of the result are the
    values at k0 + shift instead. ``units`` bounds the relative error of the given weights and of
    the arithmetic together. ``whole`` asks for one Fourier transform of a single problem also where its
    laws have few values: that suits those with few heavy ones. Each truncation is below e^-``depth`` of the
    tilted total. Raises NoCertificateError where the work would exceed the limits."""
    # Padding must not overflow under the tilt.
    groups = [Group(np.where(g.w > 0.0, g.z, 0.0), g.w, g.count) for g in groups]
    tilted, log_total = [], np.zeros_like(theta)
    rounding = np.zeros_like(theta)
    for group in groups:
        t, log_phi = _tilt(group, theta, units)
        tilted.append(t)
        log_total += group.count * log_phi
        rounding += group.count * theta * t.slack
    with np.errstate(under="ignore", over="ignore", invalid="ignore"):
        own_w = own.c * np.exp(theta[:, None] * own.z)[:, :, None]
    if not np.isfinite(own_w).all():
        raise NoCertificateError("a single value outweighs the sum: the numbers are too large")
    largest = np.abs(own_w).max(axis=2)
    points = _window(groups, tilted, own, largest, k0, theta, log_total, depth)
    points = smooth_size(points + 2 * int(np.abs(shifts).max()))
    moves = np.asarray(shifts, dtype=np.float64)
    problem = _Problem(tilted, own.z, own_w, k0, theta, points, payoff, moves, units)
    parts = [_sum(problem, chosen) for chosen in choose_frequencies(tilted, points, whole, depth)]
    value, error = (
        np.sum([part[side] for part in parts], axis=0) for side in (0, 1)
    )  # of other problems each
    # |kernel| <= 1/|1 - e^-s|, which is at most 1/(1 - e^-theta), and e^(theta/2) M/(4 r) at frequency r.
    damping = np.minimum(1.0 / -np.expm1(-theta), np.exp(np.minimum(theta, 1.0)) * (1.0 + np.log(points)))
    truncation = np.exp(-depth) * ((6.0 + 2.0 * damping) * largest.sum(axis=1))[:, None]
    truncation = truncation * np.exp(-theta[:, None] * moves)
    # Of e^(log_total - theta k0): what the transforms are off; sums, products and the difference; exp.
    relative = rounding + gamma(4.0 * np.abs(log_total) + 4.0 * np.abs(theta * k0) + CALL)
    if not (np.all(relative < 0.5) and np.all(log_total - theta * k0 < _LARGEST_LOG_SCALE)):
        raise NoCertificateError("rounding errors outgrow the sum: the numbers are too large")
    # e^relative - 1 of the prefactor, on the value and on its own uncertainty.
    error = (error + truncation) * np.exp(relative)[:, None] + np.abs(value) * np.expm1(2.0 * relative)[
        :, None
    ]
    return Result(value, error, log_total - theta * k0, truncation)


def _window(
    groups: list[Group],
    tilted: list[Tilted],
    own: Own,
    own_w: Floats,
    k0: Floats,
    theta: Floats,
    log_total: Floats,
    depth: float,
) -> Ints:
    """The number M of trapezoidal points (odd) that keeps every alias below e^-depth."""
    whole = own_w.sum(axis=1)
    centre = (own_w * own.z).sum(axis=1) / whole
    variance = (own_w * (own.z - centre[:, None]) ** 2).sum(axis=1) / whole
    variance = variance + sum(t.count * t.deviation**2 for t in tilted)
    spread = np.sqrt(variance + 1.0)
    size = np.abs(own.c).max(axis=2)
    # The support is a bound of its own.
    left = own.z.min(axis=1) + sum(g.count * g.z.min(axis=1) for g in groups) - 1.0
    right = own.z.max(axis=1) + sum(g.count * g.z.max(axis=1) for g in groups) + 1.0

    def reach(distance: Floats) -> Floats:
        """Chernoff, by each distance from theta: beyond it (below, of a negative one, in size) lies less than
        e^-depth of the tilted sum."""
        shift = theta + distance
        with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore"):
            moment = (size * np.exp(shift[:, :, None] * own.z)).sum(axis=2)
            moment = np.log(moment / whole) - log_total
            for group in groups:
                moment = moment + group.count * log_transform(group.z, group.w, shift)
            found = (depth + moment) / np.abs(distance)
        return np.asarray(np.where(np.isfinite(found), found, np.inf))

    eta = np.stack([c / spread for c in _CHERNOFF] + [c * theta for c in _SHARES])
    found = reach(np.concatenate([-eta, eta[_USUAL : _USUAL + 1]]))
    left, right = np.maximum(left, -found[:-1].min(axis=0)), np.minimum(right, found[-1])
    enough = np.maximum(k0 - left, 1.0) + depth / theta
    if np.any(right - k0 > enough):  # else it does not matter where exactly
        right = np.minimum(right, reach(eta[: len(_CHERNOFF)]).min(axis=0))
    if np.any(right - k0 > 2.0 * enough):  # rare large values: distances that suit them
        largest = np.max([np.maximum(g.z.max(axis=1), 1.0) for g in groups], axis=0)
        right = np.minimum(right, reach(np.stack([c / largest for c in _OF_THE_LARGEST])).min(axis=0))
    behind = np.maximum(k0 - left, 1.0)
    needed = np.maximum(behind + depth / theta, right - k0) + 2.0
    if not np.all(needed < MAX_POINTS):
        raise NoCertificateError(f"the sum spreads over more than {MAX_POINTS} lattice points")
    return np.asarray(2 * np.ceil(0.5 * needed) + 1, dtype=np.int64)


@dataclass(frozen=True)
class _Problem:
    """A batch of problems under their tilts, all that a frequency needs; own weights are tilted, too."""

    tilted: list[Tilted]
    own_z: Floats
    own_w: Floats
    k0: Floats
    theta: Floats
    points: Ints
    payoff: HockeyStick | None
    moves: Floats
    units: float

    @cached_property
    def same_values(self) -> bool:
        """Whether the own measure's values, where it has any weight, are the first law's."""
        types, z = self.own_z.shape[1], self.tilted[0].z
        if z.shape[1] < types or len(z) != len(self.own_z):
            return False
        return bool(((z[:, :types] == self.own_z) | ~self.own_w.any(axis=2)).all())


def _sum(problem: _Problem, chosen: Chosen) -> tuple[Floats, Floats]:
    """(value, error) of the trapezoidal sum over the chosen frequencies; zero for problems without any."""
    rows, r, tables = chosen.rows, chosen.r, chosen.tables
    atoms = 1 if tables else max(t.z.shape[1] for t in problem.tilted)
    if rows.size * atoms > MAX_TERMS:
        raise NoCertificateError("too many frequencies carry mass")
    value, error = np.zeros((2, problem.theta.size, max(problem.own_w.shape[2], problem.moves.size)))
    numerators = _numerators(problem, chosen) if tables else None
    if numerators is None:
        atoms = max(atoms, problem.own_z.shape[1])
    columns = max(atoms, problem.moves.size)
    parts = np.array_split(np.arange(rows.size), 1 + rows.size * columns // _TERMS_AT_ONCE)
    moved = 32.0 * float(np.abs(problem.moves).max())
    units = TERM_UNITS + moved + additions(rows.size) + len(parts)
    for part in parts:
        i = rows[part]
        known = None if numerators is None else numerators.part(part)
        term, doubt = _terms(problem, i, r[part], [table.part(part) for table in tables], known, units)
        starts = np.flatnonzero(np.append(True, i[1:] != i[:-1]))
        value[i[starts]] += segment_totals(term, starts)
        error[i[starts]] += segment_totals(doubt, starts)
    return value, up(error, units, tiny=0.0)


def _numerators(problem: _Problem, chosen: Chosen) -> Table | None:
    """The own measures' transforms (frequencies, outputs), where products of waves, or a Fourier transform,
    are the cheaper way."""
    if problem.own_z.shape[1] <= _DIRECTLY:
        return None  # there are half as many frequencies as points
    problems, starts = np.unique(chosen.rows, return_index=True)
    if chosen.first:
        return _first_numerators(problem, problems, np.diff(np.append(starts, chosen.rows.size)))
    if chosen.rows.size * problem.own_z.shape[1] <= _DIRECTLY * problem.points[problems].sum():
        return None
    error = np.zeros(problem.theta.size)
    found = []
    for i, r in zip(problems, np.split(chosen.r, starts[1:]), strict=True):
        parts = [transformed(problem.own_z[i], w, int(problem.points[i])) for w in problem.own_w[i].T]
        error[i] = max(part[1] for part in parts)
        found.append(np.stack([part[0][r] for part in parts], axis=1))
    return Table(np.concatenate(found), error)


def _first_numerators(problem: _Problem, problems: Ints, stops: npt.NDArray[np.intp]) -> Table:
    """The same, of as many first frequencies of each problem."""
    error, found = np.zeros(problem.theta.size), []
    for i, stop in zip(problems.tolist(), stops.tolist(), strict=True):
        part, error[i] = first_transforms(problem.own_z[i], problem.own_w[i], int(problem.points[i]), stop)
        found.append(part)
    return Table(np.concatenate(found), error)


def _terms(
    problem: _Problem, i: Ints, r: Ints, tables: list[Table], known: Table | None, units: float
) -> tuple[Floats, Floats]:
    """(real part of each frequency's term, its error), both (frequencies, outputs)."""
    theta, m = problem.theta[i], problem.points[i]
    omega = 2.0 * np.pi * r / m
    size = np.hypot(theta, omega)
    log_power, log_size, loss, halves = _powers(problem.tilted, tables, i, r, m, size)
    # The numerator: its weights, exponentials and phases; its sum.
    own_error = problem.units * (1.0 + size * np.abs(problem.own_z).max(axis=1)[i])
    if not problem.own_z.any():  # all of it is at zero: no phases
        numerator = problem.own_w.sum(axis=1)[i].astype(np.complex128)
        own_error += gamma(additions(problem.own_z.shape[1]))
    elif known is None:
        types = problem.own_z.shape[1]
        if halves is None or not problem.same_values:
            halves = _halves(problem.own_z, i, r, m)
        # Phases are squares of half ones: 2 CALL units, three of the operations and 10 of the angle (3 pi).
        sine, cosine = halves[0][:, :types], halves[1][:, :types]
        real = weighted(cosine * cosine - sine * sine, problem.own_w, i)
        numerator = real + 2.0j * weighted(sine * cosine, problem.own_w, i)
        own_error += gamma(additions(problem.own_z.shape[1]))
    else:
        numerator = known.phi
        own_error += known.error[i]
    numerator_abs = np.abs(problem.own_w).sum(axis=1)[i]
    if problem.moves.size > 1:
        numerator = numerator * np.exp(-(theta + 1j * omega)[:, None] * problem.moves)
        numerator_abs = numerator_abs * np.exp(-theta[:, None] * problem.moves)
    turn = np.exp(-1j * _angles(problem.k0[:, None], i, r, m)[:, 0])
    kernel, kernel_abs = _kernel(theta, omega, problem.payoff, i)
    share = np.where(r == 0, 1.0, 2.0) / m
    power, most = np.exp(log_power.real), np.exp(log_size)
    term = (share * np.exp(log_power) * turn * kernel)[:, None] * numerator
    spill = share * (np.abs(kernel) * most * loss + kernel_abs * power * gamma(units))
    doubt = spill[:, None] * np.abs(numerator)
    doubt += (share * kernel_abs * most * np.minimum(own_error, 1.0))[:, None] * numerator_abs
    return term.real, doubt


def _halves(z: Floats, i: Ints, r: Ints, m: Ints) -> tuple[Floats, Floats]:
    """Sine and cosine of half of every angle."""
    half = 0.5 * _angles(z, i, r, m)
    return np.sin(half), np.cos(half)


def _angles(z: Floats, i: Ints, r: Ints, m: Ints) -> Floats:
    """2 pi z r / M of problems i, reduced to [-pi, pi] in exact integer arithmetic."""
    size = m.astype(np.float64)[:, None]
    if m.max() < 1 << 26:  # products are exact doubles, and so are the remainders
        if len(z) > 1:
            first = np.flatnonzero(np.append(True, i[1:] != i[:-1]))  # a remainder for each problem
            turns = np.mod(z[i[first]], size[first])
            turns = np.repeat(turns, np.diff(np.append(first, i.size)), axis=0)
        else:
            turns = np.mod(z, size[:1])
        turns = turns * r.astype(np.float64)[:, None]
        turns -= size * np.rint(turns / size)
    else:
        whole = (np.mod(z[i], size).astype(np.int64) * r[:, None]) % m[:, None]
        turns = np.where(2 * whole > m[:, None], whole - m[:, None], whole).astype(np.float64)
    return np.asarray(turns * (2.0 * np.pi / size))


def _powers(
    tilted: list[Tilted], tables: list[Table], i: Ints, r: Ints, m: Ints, size: Floats
) -> tuple[Complexes, Floats, Floats, tuple[Floats, Floats] | None]:
    """log prod (phi_g(s)/phi_g(theta))^count, the log of its outward modulus, relative loss; and of the first
    law, if no table is given, sines and cosines of half its angles.

    |(q + d)^n - q^n| <= n |d| (|q| + |d|)^(n-1) gives one half of the loss. The other covers n times the
    rounding of log q: where |q| > 1/2, 11 |q - 1| / |q| units by ``shrink``, CALL and two of |log q| for
    logarithm, product and sum: less than 48 |q - 1| / |q|; elsewhere |1 + re| is as good as re."""
    log_power = np.zeros(i.size, dtype=np.complex128)
    log_size = np.zeros(i.size)
    loss = np.zeros(i.size)
    first = None
    for g, t in enumerate(tilted):
        if tables:
            phi = tables[g].phi
            re, im = phi.real - 1.0, phi.imag
            slack = tables[g].error[i] + 16.0 * t.error[i]
        else:
            sine, cosine = halves = _halves(t.z, i, r, m)
            first = first or halves
            re = -2.0 * weighted(sine * sine, t.w[:, :, None], i)[:, 0]
            im = 2.0 * weighted(sine * cosine, t.w[:, :, None], i)[:, 0]
            slack = size * t.slack[i]
        log_phi = log_one_plus(2.0 * re + re * re + im * im, re, im)
        log_power += t.count[i] * log_phi
        modulus = np.exp(log_phi.real)
        outward = np.where(
            modulus > 1e3 * slack, log_phi.real + np.log1p(slack / modulus), np.log(modulus + slack)
        )
        log_size += t.count[i] * np.minimum(outward, 0.0)  # no transform exceeds one
        loss += 2.0 * t.count[i] * slack / (modulus + slack)
    return log_power, log_size, np.minimum(loss, 2.0), first


def log_one_plus(shrink: Floats, re: Floats, im: Floats) -> Complexes:
    """log(1 + re + i im), given also ``shrink`` = |1 + re + i im|^2 - 1, which is accurate near 0."""
    near = shrink > -0.75
    direct = np.log(positive(np.hypot(1.0 + re, im)))
    modulus = np.where(near, 0.5 * np.log1p(np.where(near, shrink, 0.0)), direct)
    return np.asarray(modulus + 1j * np.arctan2(im, 1.0 + re))


def _kernel(theta: Floats, omega: Floats, payoff: HockeyStick | None, i: Ints) -> tuple[Complexes, Floats]:
    """sum over k >= k0 of payoff(k) e^{-s (k - k0)}, and a size that its rounding is relative to."""
    first = one_minus_exp(theta, omega)
    if payoff is None:
        return 1.0 / first, 1.0 / np.abs(first)
    gap, h = payoff.gap[i], payoff.h[i]
    both = first * one_minus_exp(theta + h, omega)
    z1 = np.exp(-(theta + 1j * omega))
    # (1 - d) + z1 (d - e^-h) with d = 1 - gap: both parts are >= 0 at real s.
    rest = -np.expm1(-h) - gap
    return (gap + z1 * rest) / both, (gap + np.abs(z1 * rest)) / np.abs(both)


def one_minus_exp(theta: Floats, omega: Floats) -> Complexes:
    """1 - e^{-(theta + i omega)}."""
    decay = np.expm1(-theta)
    half = np.sin(0.5 * omega)
    re = 2.0 * half * half - decay * np.cos(omega)
    return np.asarray(re + 1j * np.exp(-theta) * np.sin(omega))
