"""Which frequencies of a trapezoidal sum matter: the others are proved negligible.

Part of _certified.lattice_sum (see there). The laws are already tilted; a frequency r of a problem
with M points stands for omega = 2 pi r / M."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shuffledp._certified.products import product
from shuffledp._certified.rounding import CALL, Floats, gamma, positive, weighted
from shuffledp.errors import NoCertificateError

Ints = npt.NDArray[np.int64]
Complexes = npt.NDArray[np.complex128]
Bools = npt.NDArray[np.bool_]

DEPTH = 46.0  # tightness
"""Every truncation is below e^-DEPTH of the tilted total (1.1e-20), unless another depth is asked for."""

MAX_POINTS = (1 << 31) - 1  # speed; above 2^31 integer products would overflow
"""Trapezoidal points allowed in one problem; beyond it no certificate is attempted."""

MAX_TERMS = 1 << 26  # speed
"""Frequencies times atoms summed in one call, at most."""

_MOST_CELLS = 1 << 20  # speed: cells of frequencies looked at together
_FEW_CELLS = 1 << 10  # speed: of one problem; beyond, a transform may be cheaper
_CELL_ATOMS_AT_ONCE = 1 << 19  # speed: in one array
_MOST_CELL_ATOMS = 1 << 30  # speed: some ten seconds
_PARTS_OF_A_CELL = 4  # speed
_WIDE_LAW_ATOMS = 24  # speed: a transform may be cheaper
_POINTS_PER_ATOM, _MANY_POINTS = 1024, 1 << 19  # speed: up to so many it is
_MANY_TERMS = 2000  # speed: frequencies times atoms, beyond two per point
_FEW_TERMS = 1000  # speed: copies whose powers are never negligible
_SMALL_TRANSFORM = 1 << 15  # speed: at once
_MANY_COPIES, _MOST_FIRST = 100.0, 1 << 12  # speed: powers are negligible but next to zero; in so many
_POINTS_IN_A_DEVIATION, _RARE = (40.0, 12.5), 0.1  # speed: of a transform; where a power falls so little
_ALIKE = 0.8  # speed: of values, that are different
_POINTS_PER_WAVE = 4.0  # speed: of a transform that is as quick as waves, by atoms and frequencies
_MOST_COPIES = 1e7  # speed: a transform's absolute error counts once for each
_TOLD = 0.25  # speed: of a sine's square, up to where two values in phase are told from others
_LIGHT = 0.01  # speed: of all copies, what atoms without a wave may raise an exponent by
_EDGE = 1e-6  # soundness: in frequencies, more than any rounding below 10^8


@dataclass(frozen=True)
class Tilted:
    """Laws under the tilt theta: rows of values and of weights that add up to one.

    The transform phi(theta + i omega) / phi(theta) computed from them is off by at most |theta + i omega|
    times ``slack`` = error * roughness."""

    theta: Floats
    z: Floats
    w: Floats
    count: Floats
    mean: Floats
    deviation: Floats  # standard deviation per copy
    roughness: Floats  # sum w (|z| e^{theta z} + min(|z|, 2/theta)) / phi(theta)
    error: Floats  # relative, of each weight and of the arithmetic

    @property
    def slack(self) -> Floats:
        return self.error * self.roughness


@dataclass(frozen=True)
class Table:
    """Transforms at the chosen frequencies; per problem their absolute error but for that of the weights."""

    phi: Complexes
    error: Floats

    def part(self, chosen: Ints) -> Table:
        return Table(self.phi[chosen], self.error)


@dataclass(frozen=True)
class Chosen:
    """Frequencies r of problems ``rows`` (sorted); where they are known, their transforms (one per law)."""

    rows: Ints
    r: Ints
    tables: list[Table]
    first: bool = False
    """Whether they are 0, 1, 2, ... of every problem."""


def choose_frequencies(tilted: list[Tilted], points: Ints, whole: bool, depth: float = DEPTH) -> list[Chosen]:
    """The frequencies to sum: few of them are looked for, or all are transformed and most are dropped.

    Problems of wide laws (or few terms, or where asked: ``whole``) are transformed where that is cheap, or
    where too many frequencies would remain (laws with few heavy atoms). Where one is dropped, the
    product of all transforms is below e^-(depth + 2)."""
    atoms = max(t.z.shape[1] for t in tilted)
    count = np.sum([t.count for t in tilted], axis=0)
    near, told = (None, np.zeros(points.size, bool)) if whole else _next_to_zeros(tilted, points, depth)
    found = [] if near is None else [near]
    possible, close = points <= _LARGEST_TRANSFORM, count <= _MOST_COPIES
    at_once = min(_POINTS_PER_ATOM * atoms, _MANY_POINTS) if atoms >= _WIDE_LAW_ATOMS else 0
    done = possible & close & (points <= at_once)
    if points.size == 1:
        done |= (points <= _SMALL_TRANSFORM) & (whole | (count <= _FEW_TERMS))
    done &= ~told
    if not (done | told).all():
        rows, r, crowded = _frequencies(
            tilted, points, np.flatnonzero(~done & ~told).astype(np.int64), possible, depth
        )
        kept = np.bincount(rows.astype(np.intp), minlength=points.size).astype(np.int64)
        crowded |= possible & close & (kept * atoms > 2 * points + _MANY_TERMS)
        if (kept * ~(crowded | told)).sum() * atoms > MAX_TERMS:
            crowded |= possible
        done |= crowded & ~told
        left = ~(done | told)[rows]
        if left.any():
            found.append(Chosen(rows[left], r[left], []))
    return [*found, _transformed(tilted, points, np.flatnonzero(done), depth)] if done.any() else found


def _next_to_zeros(tilted: list[Tilted], points: Ints, depth: float) -> tuple[Chosen | None, Bools]:
    """Of every problem where that is possible, and which these are: the law of most copies, a wide one, says
    how far. No transform exceeds one, so the others' drop nothing that this one does not."""
    told = np.zeros(points.size, bool)
    many = max(tilted, key=lambda t: float(t.count.max()))
    copies = (many.count >= _MANY_COPIES) & (sum(t.count for t in tilted) <= _MOST_COPIES)
    if many.z.shape[1] < _WIDE_LAW_ATOMS:
        return None, told
    phi: list[list[Complexes]] = [[] for _ in tilted]
    error = np.zeros((len(tilted), points.size))
    for i, size in enumerate(points.tolist()):
        known = _next_to_zero(many, i, size, depth) if copies[i] else None
        if known is None:
            continue
        told[i], stop = True, known[0].size
        for g, t in enumerate(tilted):
            row = i if len(t.z) > 1 else 0
            if t is many:
                found, error[g, i] = known
            else:
                both, error[g, i] = first_transforms(t.z[row], t.w[row][:, None], size, stop)
                found = both[:, 0]
            phi[g].append(found)
    if not told.any():
        return None, told
    sizes = [part.size for part in phi[0]]
    rows = np.repeat(np.flatnonzero(told).astype(np.int64), sizes)
    r = np.concatenate([np.arange(size, dtype=np.int64) for size in sizes])
    tables = [Table(np.concatenate(part), error[g]) for g, part in enumerate(phi)]
    return Chosen(rows, r, tables, first=True), told


def _next_to_zero(t: Tilted, i: int, points: int, depth: float) -> tuple[Complexes, float] | None:
    """Transforms, and their error, at the first few frequencies of a wide law of many copies, where all
    others are proved negligible at once: nearer ones by moments, the farther ones, if any are left, by a
    coarse transform (docs/proofs/numerics.md, "Frequencies next to zero")."""
    row = i if len(t.z) > 1 else 0
    z, w, count = t.z[row], t.w[row], float(t.count[i])
    slack = math.hypot(float(t.theta[i]), math.pi) * float(t.slack[i])
    fall = (depth + 2.0) / count
    # Sums of so many terms, and products of two of them; all else below is less, also near a double root.
    units = gamma(8 * z.size + 8 * CALL)
    reach = _by_moments(z, w, -math.expm1(-2.0 * fall) + slack * (2.0 + slack) + units, units)
    if reach is None:
        return None
    last, edge = reach
    stop = min(math.ceil(last * points / (2.0 * math.pi)), (points - 1) // 2) + 1
    if not (last < math.pi and stop <= _MOST_FIRST):
        return None
    if edge < math.pi:
        deviation = math.sqrt(float(w @ (z - t.mean[i]) ** 2)) * (1.0 + units)
        coarse = 1 << math.ceil(math.log2(_POINTS_IN_A_DEVIATION[fall < _RARE] * deviation + 1.0))
        if coarse > _SMALL_TRANSFORM:
            return None
        value, error = transformed(z, w, coarse)
        most = float(np.abs(value[math.floor(edge * coarse / (2.0 * math.pi)) :]).max())
        if most + deviation * math.pi / coarse + slack + error + units > math.exp(-fall):
            return None
    phi, error = first_transforms(z, w[:, None], points, stop)
    return phi[:, 0], error


@np.errstate(over="ignore", invalid="ignore")  # of huge values nothing is said
def _by_moments(z: Floats, w: Floats, needed: float, units: float) -> tuple[float, float] | None:
    """Frequencies between which 1 - |phi|^2 is proved to be at least ``needed``: by the values within some
    distance of the heaviest one, of any size; each size tells of an interval, of a union without gaps."""
    away = z - z[int(w.argmax())]
    order = np.argsort(np.abs(away))
    away, w = away[order], w[order]
    size, sums = np.abs(away), np.cumsum(w)
    first, second, third, fourth = (np.cumsum(w * away**power) for power in (1, 2, 3, 4))
    flat = sums * second * (1.0 - 2.0 * units) - first * first * (1.0 + units)
    rough = units * (sums * fourth + 4.0 * np.cumsum(w * size) * np.cumsum(w * size**3) + 3.0 * second**2)
    bend = (sums * fourth - 4.0 * first * third + 3.0 * second**2 + rough) / 12.0
    inside = flat * flat - 4.0 * bend * needed
    # A size is complete where the next value is farther; others are as good.
    told = (flat > 0.0) & (inside > 0.0)
    if not told.any():
        return None
    both = flat[told] + np.sqrt(inside[told])
    low, high = 2.0 * needed / both * (1.0 + units), both / (2.0 * bend[told]) * (1.0 - units)
    place = int(low.argmin())
    last, edge = float(low[place]), float(high[place])
    while (further := float(high[low <= edge].max())) > edge:
        edge = further
    return math.sqrt(last) * (1.0 + units), math.sqrt(edge) * (1.0 - units)


def first_transforms(z: Floats, w: Floats, points: int, stop: int) -> tuple[Complexes, float]:
    """sum w e^{i omega z} at the first frequencies (rows), of measures w (m, outputs) at the same values, and
    the largest error in units of sum |w|: by Fourier transforms, or as products of waves if that is less."""
    if points <= min(_POINTS_PER_WAVE * z.size * math.sqrt(stop), _LARGEST_TRANSFORM):
        parts = [transformed(z, part, points) for part in w.T]
        return np.stack([phi[:stop] for phi, _ in parts], axis=1), max(error for _, error in parts)
    size = np.abs(w)
    away = float(((np.abs(z) @ size) / positive(size.sum(axis=0))).max())
    near = math.isqrt(stop - 1) + 1
    wide = -(-stop // near)
    # Two waves, powers whose errors add up; products and the sum, of both parts; five units of every angle.
    units = (
        gamma(1.5 * z.size + (near + wide) * (CALL + 3) + 16)
        + gamma(8) * (2.0 * math.pi * stop / points) * away
    )
    kept, place = np.unique(z, return_inverse=True)
    if kept.size <= _ALIKE * z.size:  # weights of equal values are added first
        z, w = kept, np.stack([np.bincount(place, part, kept.size) for part in w.T], axis=1)
    omega = 2.0 * math.pi / points
    first, then = _waves(near * omega, z, wide), _waves(omega, z, near).T
    return np.stack([product(part * first, then).ravel()[:stop] for part in w.T], axis=1), units


def _waves(omega: float, z: Floats, count: int) -> Complexes:
    """e^(i omega z r), r = 0, 1, ..., in rows: products of earlier ones, of three units each."""
    found = np.empty((count, z.size), np.complex128)
    found[0] = 1.0
    wave, known = np.cos(omega * z) + 1j * np.sin(omega * z), 1
    while known < count:
        more = found[known : 2 * known]
        np.multiply(found[: len(more)], wave, out=more)
        wave, known = wave * wave, 2 * known
    return found


def _transformed(tilted: list[Tilted], points: Ints, problems: Ints, depth: float) -> Chosen:
    """All frequencies by Fourier transforms, but for those whose power is negligible."""
    rows, kept = [], []
    phi: list[list[Complexes]] = [[] for _ in tilted]
    error = np.zeros((len(tilted), points.size))
    for i in problems:
        size = np.zeros((points[i] + 1) // 2)
        found = []
        for g, t in enumerate(tilted):
            row = i if len(t.z) > 1 else 0
            transform, error[g, i] = transformed(t.z[row], t.w[row], int(points[i]))
            slack = error[g, i] + 16.0 * t.error[i] + gamma(4 * CALL)
            with np.errstate(divide="ignore"):
                size += t.count[i] * np.log(np.minimum(np.abs(transform) + slack, 1.0))
            found.append(transform)
        size[0] = 0.0
        r = np.flatnonzero(size > -(depth + 2.0))
        rows.append(np.full(r.size, i, dtype=np.int64))
        kept.append(r.astype(np.int64))
        for all_phi, transform in zip(phi, found, strict=True):
            all_phi.append(transform[r])
    tables = [Table(np.concatenate(part), error[g]) for g, part in enumerate(phi)]
    return Chosen(np.concatenate(rows), np.concatenate(kept), tables)


def transformed(z: Floats, w: Floats, m: int) -> tuple[Complexes, float]:
    """sum w e^{i omega z} at all frequencies, by one Fourier transform of a smooth size (no convolution),
    and its error in units of sum |w|.

    Every intermediate of a transform of w is a partial sum of its terms, at most sum |w|: with
    log2 M stages of a few roundings each, the error is absolute: 16 units a stage are allowed. Before,
    the weights of values that agree modulo M are added."""
    place = np.mod(z, m).astype(np.intp)
    together = int(np.bincount(place[w != 0.0], minlength=1).max())
    return np.fft.rfft(np.bincount(place, w, m)).conj(), gamma(16.0 * np.log2(m) + together)


def _affordable(tilted: list[Tilted]) -> int:
    """How many cells of frequencies may be looked at together."""
    atoms = max(int(t.z.shape[1]) for t in tilted)
    return max(_FEW_CELLS, min(_MOST_CELLS, _MOST_CELL_ATOMS // atoms))


def _smooth_numbers() -> Ints:
    """Odd numbers without prime factors above 7: sizes that a Fourier transform likes."""
    found = [
        3**a * 5**b * 7**c
        for a in range(14)
        for b in range(10)
        for c in range(8)
        if 3**a * 5**b * 7**c <= _LARGEST_SMOOTH
    ]
    return np.array(sorted(found), dtype=np.int64)


def smooth_size(points: Ints) -> Ints:
    """The next odd smooth number, where one is in reach."""
    sizes = _SMOOTH[np.minimum(np.searchsorted(_SMOOTH, points), _SMOOTH.size - 1)]
    return np.where(sizes >= points, sizes, points | 1)


_LARGEST_SMOOTH = 1 << 23  # speed: of the largest transform
_SMOOTH = _smooth_numbers()
_LARGEST_TRANSFORM = int(_SMOOTH[-1])  # soundness: the error of a transform is known for smooth sizes


def _frequencies(
    tilted: list[Tilted], points: Ints, problems: Ints, possible: Bools, depth: float
) -> tuple[Ints, Ints, Bools]:
    """(row, r) of every frequency 0 <= r <= M/2 of these problems that cannot be proved negligible.

    Problems with too many are given up, and told, where a transform is ``possible``."""
    half = (points - 1) // 2
    deepest = -(depth + 2.0)
    atoms = max(t.z.shape[1] for t in tilted)
    most = np.where(possible, np.maximum(_FEW_CELLS, 2 * points // atoms), _MOST_CELLS)
    crowded = np.zeros(points.size, bool)
    total = np.sqrt(sum(t.count * t.deviation**2 for t in tilted))
    many = max(tilted, key=lambda t: float(t.count.max()))  # powers of few are never negligible
    # Cells so wide that the quadratic bound is informative, but at least a few of them.
    cells = np.clip(np.ceil(np.pi * 1.25 * many.deviation), 4, 4096).astype(np.int64)
    cells = np.where(total * np.pi < 12.0, 1, np.minimum(cells, half + 1))[problems]
    wide = atoms >= _WIDE_LAW_ATOMS
    if wide:
        cells = 1 << np.ceil(np.log2(cells)).astype(np.int64)
        rows, low, high = _even_cells(problems, cells, half)
    else:
        rows, low, high = _beside_returns(many, problems, cells, half, depth)
    kept_rows, kept_low, kept_high = [], [], []
    while rows.size:
        if wide:
            bound = np.concatenate(
                [_log_bounds(tilted, int(i), int(c), half) for i, c in zip(problems, cells, strict=True)]
            )
            wide = False
        else:
            bound = np.concatenate(
                [
                    _log_bound(tilted, rows[part], low[part], high[part], half)
                    for part in np.array_split(
                        np.arange(rows.size), 1 + rows.size * tilted[0].z.shape[1] // _CELL_ATOMS_AT_ONCE
                    )
                ]
            )
        alive = bound > deepest
        rows, low, high = rows[alive], low[alive], high[alive]
        small = high - low <= 8.0
        kept_rows.append(rows[small])
        kept_low.append(low[small])
        kept_high.append(high[small])
        crowded |= _PARTS_OF_A_CELL * np.bincount(rows[~small].astype(np.intp), minlength=points.size) > most
        open_ = ~small & ~(crowded & possible)[rows]
        rows, low, high = rows[open_], low[open_], high[open_]
        step = np.repeat((high - low) / _PARTS_OF_A_CELL, _PARTS_OF_A_CELL)
        part = np.tile(np.arange(_PARTS_OF_A_CELL), rows.size)
        rows, low = (np.repeat(rows, _PARTS_OF_A_CELL), np.repeat(low, _PARTS_OF_A_CELL) + part * step)
        high = low + step
        if rows.size > _affordable(tilted):
            raise NoCertificateError("too many frequencies carry mass")
    found = _whole(np.concatenate(kept_rows), np.concatenate(kept_low), np.concatenate(kept_high), half)
    return *found, crowded & possible


def _even_cells(problems: Ints, cells: Ints, half: Ints) -> tuple[Ints, Floats, Floats]:
    """(row, low, high): all frequencies of each problem cut into so many cells."""
    times = cells.astype(np.intp)  # what np.repeat counts in, 32 bits on some machines
    rows = np.repeat(problems, times)
    index = np.arange(rows.size, dtype=np.int64) - np.repeat(np.cumsum(cells) - cells, times)
    width = (half[rows] + 0.5) / np.repeat(cells, times)
    return rows, index * width, (index + 1) * width


def _beside_returns(
    many: Tilted, problems: Ints, cells: Ints, half: Ints, depth: float
) -> tuple[Ints, Floats, Floats]:
    """The cells to begin with, of laws of few values: about multiples of 2 pi / D, where two of the values, D
    apart, are in phase. Elsewhere one power is negligible, as for any two weights (docs/proofs/numerics.md)

        |phi(omega)| <= 1 - rho sin(omega D / 2)^2,   rho = 2 w w' / (w + w').

    Even ``cells`` where two values do not tell enough, or are in phase too often."""
    first, second = np.triu_indices(many.z.shape[1], 1)
    if not first.size:
        return _even_cells(problems, cells, half)
    w, z = (part[problems] if len(part) > 1 else part for part in (many.w, many.z))
    heavier = 2.0 * w[:, first] * w[:, second] / positive(w[:, first] + w[:, second])
    rho = np.where(z[:, first] != z[:, second], heavier, 0.0)
    best = rho.argmax(axis=1)[:, None]
    rho, apart = (
        np.broadcast_to(np.take_along_axis(part, best, axis=1)[:, 0], problems.shape)
        for part in (rho, np.abs(z[:, first] - z[:, second]))
    )
    # What the weights and their sum are off, at any frequency. Units: three of rho, five of what is needed.
    slack = np.hypot(many.theta[problems], np.pi) * many.slack[problems] + gamma(4 * many.z.shape[1] + 16)
    needed = ((depth + 2.0) / many.count[problems] + slack) / positive(rho) * (1.0 + gamma(2 * CALL))
    returns = np.floor(0.5 * apart) + 1.0
    told = (needed < _TOLD) & (returns <= cells) & (cells > 1)
    rows, low, high = _even_cells(problems[~told], cells[~told], half)
    if not told.any():
        return rows, low, high
    some, apart, turns = problems[told], apart[told], returns[told].astype(np.int64)
    # Half the width of a cell, in frequencies: an inverse sine, two roots and six operations; centres are off
    # by three units.
    sine, cosine = np.sqrt(needed[told]), np.sqrt(1.0 - needed[told])
    reach = np.arctan2(sine, cosine) * (2 * half[some] + 1) / (np.pi * apart)
    reach = reach * (1.0 + gamma(4 * CALL)) + _edge_error(half[some])
    times = turns.astype(np.intp)
    there = np.repeat(some, times)
    turn = np.arange(there.size, dtype=np.int64) - np.repeat(np.cumsum(turns) - turns, times)
    centre = turn * np.repeat((2 * half[some] + 1) / apart, times)
    reach = np.repeat(reach, times)
    ends = half[there] + 0.5
    left, right = np.clip(centre - reach, 0.0, ends), np.clip(centre + reach, 0.0, ends)
    inside = right > left
    return (
        np.concatenate([rows, there[inside]]),
        np.concatenate([low, left[inside]]),
        np.concatenate([high, right[inside]]),
    )


def _whole(rows: Ints, low: Floats, high: Floats, half: Ints) -> tuple[Ints, Ints]:
    """The whole r in [low, high) of every kept cell, each once, at most half; always r = 0."""
    pad = _edge_error(half[rows])
    first = np.maximum(np.ceil(low - pad), 0.0).astype(np.int64)
    last = np.minimum(np.ceil(high + pad).astype(np.int64), half[rows] + 1)
    count = np.maximum(last - first, 0)
    times = count.astype(np.intp)
    r = np.arange(times.sum(), dtype=np.int64) + np.repeat(first - (np.cumsum(count) - count), times)
    rows = np.repeat(rows, times)
    every = np.arange(half.size, dtype=np.int64)
    key = np.concatenate([rows * (MAX_POINTS + 1) + r, every * (MAX_POINTS + 1)])
    key.sort()
    key = key[np.append(True, key[1:] != key[:-1])]
    return key // (MAX_POINTS + 1), key % (MAX_POINTS + 1)


def _edge_error(half: Ints) -> Floats:
    """How far the edges of cells may be off: two roundings at first, one a split (16 at most), the middle."""
    return np.asarray(_EDGE + gamma(32) * half, np.float64)


def _log_bound(tilted: list[Tilted], rows: Ints, low: Floats, high: Floats, half: Ints) -> Floats:
    """Upper bound of log prod |phi_g|^count over the cell, from value and slope at its centre."""
    unit = (2.0 * np.pi / (2 * half + 1))[rows]
    centre = 0.5 * (low + high) * unit
    reach = (0.5 * (high - low) + _edge_error(half[rows])) * unit
    bound = np.zeros(rows.size)
    for t in tilted:
        # Atoms of next to no weight have no wave of their own: all together they add no more than their
        # weights, less than twice (for rounding) what would be _LIGHT in all copies.
        some = np.unique(rows) if len(t.z) > 1 else np.zeros(1, np.int64)
        most = float(t.count[rows].max())
        heavy = t.w[some].max(axis=0) * most * t.z.shape[1] > _LIGHT
        light = 0.0 if heavy.all() else 2.0 * _LIGHT / most
        w = t.w[:, heavy]
        z = t.z[:, heavy] - t.mean[:, None]
        weights = np.stack([w, w * z], axis=2)
        angle = centre[:, None] * (z[rows] if len(z) > 1 else z)
        re, d_im = weighted(np.cos(angle), weights, rows, closely=False).T
        im, d_re = weighted(np.sin(angle), weights, rows, closely=False).T
        slope = 2.0 * np.abs(im * d_im - re * d_re)
        square = re * re + im * im + slope * reach + (t.deviation[rows] * reach) ** 2
        # Values (within 1): one unit an atom in each sum, CALL and four more, three for the angle, twice as
        # squares of two; slopes (within the deviation) likewise. Then what the weights are off.
        doubt = 1.0 + 2.0 * centre * t.roughness[rows] + t.deviation[rows] * reach
        square = square + gamma(4 * (z.shape[1] + CALL + 8)) * doubt
        slack = np.hypot(t.theta[rows], centre + reach) * t.slack[rows] + light
        square = square + slack * (2.0 + slack)
        bound += 0.5 * t.count[rows] * np.log(np.minimum(square, 1.0))
    return bound


def _log_bounds(tilted: list[Tilted], i: int, cells: int, half: Ints) -> Floats:
    """``_log_bound`` of all ``cells`` (a power of two) that [0, pi] is cut into for problem i: their centres
    are odd multiples of pi / (2 cells), so that two Fourier transforms give all values and slopes."""
    size, bound = 4 * cells, np.zeros(cells)
    centre = (np.arange(cells) + 0.5) * (np.pi / cells)
    reach = 0.5 * np.pi / cells + _edge_error(half[i : i + 1]) * 2.0 * np.pi / (2 * half[i] + 1)
    for t in tilted:
        row = i if len(t.z) > 1 else 0
        w, z = t.w[row], t.z[row] - np.rint(t.mean[row])
        value, error = transformed(z, w, size)
        slope, _ = transformed(z, w * z, size)
        value, slope = value[1::2], 1j * slope[1::2]
        square = np.abs(value) ** 2 + 2.0 * np.abs((value.conj() * slope).real) * reach
        square = square + (t.deviation[i] * reach) ** 2
        # Values (within 1) and slopes (within the mean of |z|) are off by the transforms' errors, and
        # products by a few units of either.
        away = 1.0 + float((w * np.abs(z)).sum())
        square = (
            square + 8.0 * (error + gamma(16)) * (1.0 + away * reach) + gamma(16) * t.deviation[i] * reach
        )
        slack = np.hypot(t.theta[i], centre + reach) * t.slack[i]
        square = square + slack * (2.0 + slack)
        bound += 0.5 * t.count[i] * np.log(np.minimum(square, 1.0))
    return bound
