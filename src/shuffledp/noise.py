"""Facts of continuous noise on the line, from its density and its tail: certified, cell by cell.

A report is x + noise for x in [0, 1]; the noise has a density f that is symmetric and log-concave. Then the
inputs 0 and 1 are the worst pair, both ways, at every alpha >= 1 (T11), and the blanket is the smaller of
their two densities. Left of 1/2 that is f(w - 1), and with rho = f(w)/f(w - 1), which falls in w, the
amplification variable is X = rho - alpha; the right half is the mirror image, X = 1 - alpha rho. The
half-line is cut into cells, between whose ends rho lies in [r, s]. Both laws that follow, from above and from
below, are in docs/proofs/continuous-noise.md, second part. For crowds: _spans/of_noise.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import CALL, Floats, down, gamma, positive, up
from shuffledp._spans.density import Density, Function
from shuffledp._spans.of_noise import span_of_noise
from shuffledp.bound import Bound
from shuffledp.facts import AmplificationLaw, Facts

_CELLS = 128  # of a half-line; speed and tightness
_GRID = 2.0**40  # ends of cells are multiples of its inverse: w, 1 - w and 1/2 - w are exact doubles
_NARROWEST = 2.0**-14  # of a cell: its mass is then known to many digits
_FARTHEST = 2.0**11  # in widths of the interval
_LARGEST_RATIO = 30.0  # log rho of the last cell, where epsilon0 is infinite; tightness
_NEARLY = 0.999999  # of epsilon0, at the end of the last cell; tightness
_RAREST = 1e-20  # what lies beyond the last cell, if that comes first; tightness
_HALVINGS = 60
_PLAUSIBLE = 1e-6  # relative: what checks of the given functions let pass
_FEWER = (1, 2, 4, 8, 16, 32, 64)  # tightness: cells that are one, until masses add up to one
_JOINED, _WELL_KNOWN = (1, 2, 4, 8), 2e-11  # tightness: cells of a crowd, until masses are known that well

Law = tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]
_NO_LAW: Law = (1.0, 0.0), (0.0, 1.0), (0.0, 0.0)  # all is seen


def facts_of_noise(
    log_density: Function, tail: Function, *, epsilon0: float = math.inf, error: float = 1e-13
) -> Facts:
    """Of x + noise for x in [0, 1], the noise having a symmetric and log-concave density f on the line.

    Other intervals: scale them. What is stated, and must be true:

    Args:
        log_density: distances t >= 0 -> log f(t), off by at most error (1 + |log f|); concave, falling.
        tail: distances t >= 0 -> the probability of noise >= t, off by at most a factor 1 +- error.
        epsilon0: the largest log-ratio f(w)/f(w - 1) of all w, if it is bounded.
        error: see above.

    The larger the error, the less is known of the masses of narrow cells: from about 1e-9 on lower ends may
    be zero, and from about 1e-7 on the local epsilon is all that is known, or nothing.

    >>> scale = 0.5
    >>> logistic = facts_of_noise(
    ...     log_density=lambda t: -t / scale - 2 * np.log1p(np.exp(-t / scale)) - math.log(scale),
    ...     tail=lambda t: 1 / (1 + np.exp(t / scale)),
    ...     epsilon0=1 / scale,
    ... )
    >>> len(logistic.above), len(logistic.concrete)
    (1, 2)
    """
    if not 0.0 <= error <= 1e-6:
        raise ValueError(f"error must be in [0, 1e-6], got {error!r}")
    most = math.inf if epsilon0 == math.inf else _validate.epsilon0(epsilon0)
    noise = _Noise(log_density, tail, error, most)
    ends = noise.ends()
    noise.check(ends)
    cells = list(noise.cells(ends))
    attained = min(max(cell.attained for cell in cells), most)
    law = _worst_law(noise, ends)
    if law is None and most == math.inf:
        law = _NO_LAW
    return Facts(
        Bound(attained, most),
        above=() if law is None else (AmplificationLaw(*law),),
        concrete=_crowds(noise, ends),
        span=span_of_noise(noise),
    )


@dataclass(frozen=True)
class _Cell:
    """Masses (low, high) under the inputs 0, 1 and 1/2, and the range of rho; ``s`` may be infinite."""

    u: tuple[float, float]
    v: tuple[float, float]
    middle: tuple[float, float]
    r: float
    s: float

    @property
    def attained(self) -> float:
        """A loss that this cell shows, rounded down."""
        shown = self.u[0] > 0.0 and self.v[1] > 0.0
        ratio = max(self.u[0] / self.v[1], 1.0) if shown else 1.0
        return down(math.log(ratio), operations=CALL + 4)

    @property
    def excess(self) -> tuple[float, float]:
        """What own mass is left over where all of the blanket's mass ``v[0]`` is at r: at most on the left,
        and at least on the right."""
        mass = self.v[0]
        most = self.u[1] - down(self.r * mass, operations=1)
        least = down(self.u[0] * (mass / self.v[1]), operations=3) - up(self.r * mass, operations=2)
        return max(most, 0.0), max(least, 0.0)

    def split(self) -> tuple[float, float]:
        """How much of the blanket's mass ``v[0]`` goes to the end s: on the left, and on the right."""
        mass, wide = self.v[0], self.s - self.r
        most, least = self.excess
        left, right = up(most / wide, operations=4), down(least / wide, operations=4)
        return (0.0, 0.0) if self.is_open else (min(left, mass), min(right, mass))

    @property
    def is_open(self) -> bool:
        """Whether rho is not bounded."""
        return math.isinf(self.s)

    @property
    def is_seen(self) -> bool:
        """Whether nothing of it is known to be hidden."""
        return self.v[0] <= 0.0 or math.isinf(self.r)


@dataclass(frozen=True)
class _Noise(Density):
    def ends(self) -> Floats:
        """Ends of cells, from 1/2 to the left; log rho grows by about the same from each to the next."""
        far = self._farthest()
        most = float(self.log_rho(np.array([far]))[0])
        if not math.isfinite(most):  # beyond the noise of the input 1
            most = _LARGEST_RATIO
        levels = np.linspace(0.0, most, _CELLS + 1)[1:-1]
        low, high = np.full(levels.size, far), np.full(levels.size, 0.5)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            beyond = self.log_rho(middle) >= levels
            low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
        inner = np.rint(low * _GRID) / _GRID
        # Zero is an end: no cell has both signs, and masses are differences of one tail.
        ends = [far]
        for end in np.unique([0.0, *inner]):
            apart = end >= ends[-1] + _NARROWEST and end <= 0.5 - _NARROWEST
            if end == 0.0 or (apart and not -_NARROWEST < end < _NARROWEST):
                ends.append(float(end))
        return np.array([*ends, 0.5])[::-1]

    def _farthest(self) -> float:
        """The end of the last cell: far enough that the rest is rare, or rho is as large as it gets."""
        limit = min(_LARGEST_RATIO, _NEARLY * self.epsilon0)

        def enough(w: float) -> bool:
            at = np.array([w])
            return bool(self.log_rho(at)[0] >= limit or self.beyond(-at)[0] <= _RAREST)

        high, low = 0.0, -1.0 / 64.0
        while not enough(low) and low > -_FARTHEST:
            high, low = low, 2.0 * low
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if enough(middle) else (low, middle)
        return min(math.floor(low * _GRID) / _GRID, -_NARROWEST)

    def check(self, ends: Floats) -> None:
        """What can be seen of a mistake."""
        t = np.unique(np.abs([*ends, *(1.0 - ends)]))
        f, tail = self.log_f(t), self.beyond(t)
        if abs(float(self.beyond(np.zeros(1))[0]) - 0.5) > _PLAUSIBLE:
            raise ValueError("tail(0) must be 1/2: the noise is symmetric")
        use = np.isfinite(f) & (tail > 0.0)
        t, f, tail = t[use], f[use], tail[use]
        slope = np.diff(f) / np.diff(t)
        if slope.size and (
            slope[0] > _PLAUSIBLE or (np.diff(slope) > _PLAUSIBLE * (1.0 + np.abs(slope[1:]))).any()
        ):
            raise ValueError("log_density must be concave, and fall from 0 on")
        mass = -np.diff(tail)
        slack = _PLAUSIBLE * (np.exp(f[:-1]) * np.diff(t)) + 2.0 * self.error * tail[:-1]
        if (mass > np.exp(f[:-1]) * np.diff(t) + slack).any() or (
            mass < np.exp(f[1:]) * np.diff(t) - slack
        ).any():
            raise ValueError("tail must be the integral of e^log_density from t on: they do not agree")

    def cells(self, ends: Floats) -> Iterator[_Cell]:
        """Between the ends, and what lies beyond the last one."""
        log_rho = self.log_rho(ends)
        doubt = (self.error + gamma(4 * CALL)) * (
            2.0 + np.abs(self.log_f(ends)) + np.abs(self.log_f(1.0 - ends))
        )
        with np.errstate(invalid="ignore", over="ignore"):
            # Where a density is zero: rho >= 1 is known, and no more (fmax and nan_to_num see to it).
            r = down(np.exp(np.fmax(log_rho - doubt, -1.0)), operations=CALL + 4, tiny=0.0)
            s = up(np.exp(log_rho + doubt), operations=CALL + 4, tiny=0.0)
        s = np.where(np.isnan(s), math.inf, s)
        own = self._masses(
            np.where(ends[:-1] <= 0.0, -ends[:-1], ends[1:]), np.where(ends[:-1] <= 0.0, -ends[1:], ends[:-1])
        )
        other = self._masses(1.0 - ends[:-1], 1.0 - ends[1:])
        middle = self._masses(0.5 - ends[:-1], 0.5 - ends[1:])
        for i, (u, v, m) in enumerate(zip(own, other, middle, strict=True)):
            yield _Cell(u, v, m, float(r[i]), float(s[i + 1]))
        last = float(ends[-1])
        beyond = [self._tail_mass(t) for t in (-last, 1.0 - last, 0.5 - last)]
        most = (
            up(math.exp(self.epsilon0), operations=CALL, tiny=0.0)
            if math.isfinite(self.epsilon0)
            else math.inf
        )
        yield _Cell(beyond[0], beyond[1], beyond[2], float(r[-1]), max(most, float(s[-1])))

    def _masses(self, near: Floats, far: Floats) -> list[tuple[float, float]]:
        """Probabilities of noise between two distances, (low, high)."""
        a, b = self.beyond(near), self.beyond(far)
        doubt = up((a + b) * (self.error + gamma(2)), operations=4)
        low, high = np.maximum(a - b - doubt, 0.0), np.maximum(a - b + doubt, 0.0)
        return list(zip(low.tolist(), high.tolist(), strict=True))

    def _tail_mass(self, t: float) -> tuple[float, float]:
        tail = float(self.beyond(np.array([t]))[0])
        return down(tail * (1.0 - self.error), operations=3), up(tail * (1.0 + self.error), operations=3)


def _joined(ends: Floats, step: int) -> Floats:
    """So many cells made one; zero stays an end: no cell has both signs."""
    return np.unique(np.append(ends[::step], 0.0))[::-1]


def _worst_law(noise: _Noise, ends: Floats) -> Law | None:
    """Of the two ends; of cells so narrow that what their masses are off by adds up, some are one. None: none
    is known well enough."""
    laws = (_spread(list(noise.cells(_joined(ends, step)))) for step in _FEWER)
    return next((law for law in laws if _adds_up(law)), None)


def _adds_up(law: Law) -> bool:
    return math.fsum(law[0]) <= 1.0 + _PLAUSIBLE and math.fsum(law[1]) >= 1.0 - _PLAUSIBLE


def _spread(cells: list[_Cell]) -> Law:
    """All cells' masses at their ends, of both halves: own, other and clone.

    What two cells send to the end between them is one type: on the left with the larger of the two
    numbers that stand for rho there, on the right with the smaller one. Either way X only grows."""
    hidden = [cell for cell in cells if not cell.is_seen]
    if not hidden:
        return _NO_LAW
    more = up(max(cell.v[1] / cell.v[0] for cell in hidden), operations=1)
    left, right = np.zeros(len(hidden) + 1), np.zeros(len(hidden) + 1)
    for i, cell in enumerate(hidden):
        split = cell.split()
        for masses, far in zip((left, right), split, strict=True):
            masses[i] += cell.v[0] - far
            masses[i + 1] += far
    near = np.array([cell.r for cell in hidden])
    far_end = np.array([cell.r if cell.is_open else cell.s for cell in hidden])
    largest = np.maximum(np.append(near, 0.0), np.append(0.0, far_end))
    smallest = np.minimum(np.append(near, math.inf), np.append(math.inf, far_end))
    seen = [(cell.u[1], 0.0, 0.0) for cell in cells if cell.is_seen]
    seen += [(cell.v[1], cell.u[0], 0.0) for cell in cells if cell.is_seen]
    seen += [(more * cell.excess[0], 0.0, 0.0) for cell in hidden if cell.is_open]
    seen += [(0.0, cell.excess[1], 0.0) for cell in hidden if cell.is_open]
    types = np.concatenate(
        [
            np.stack([largest * more * left, left, left], axis=1),
            np.stack([more * right, smallest * right, right], axis=1),
            np.array(seen).reshape(-1, 3),
        ]
    )
    # What x sends is rounded up, the rest down: X can only grow.
    own = up(types[:, 0], operations=6, tiny=0.0)
    other, clone = (down(types[:, j], operations=6) for j in (1, 2))
    used = (own > 0.0) | (other > 0.0)
    u, v, c = (tuple(part[used].tolist()) for part in (own, other, clone))
    return u, v, c


def _crowds(noise: _Noise, ends: Floats) -> tuple[AmplificationLaw, ...]:
    """All others hold 1/2, or 0; of cells so narrow that their masses are hardly known some are one."""
    found = [_known(list(noise.cells(_joined(ends, step)))) for step in _JOINED]
    rows, error = next((one for one in found if one[1] < _WELL_KNOWN), min(found, key=lambda one: one[1]))
    if not error < _PLAUSIBLE:
        return ()
    masses = 0.5 * (rows[:, ::2] + rows[:, 1::2])
    both = np.concatenate([masses, masses[:, [1, 0, 2]]])
    u, v, z = (tuple((column / column.sum()).tolist()) for column in both.T)
    law = AmplificationLaw(u, v, z, error=up(error, operations=16))
    return law, law.among(u)


def _known(cells: list[_Cell]) -> tuple[Floats, float]:
    """Masses, low and high, of cells of which those too rare to be known to a factor are joined to the one
    before; and what that factor is."""
    rows: list[Floats] = []
    for cell in cells:
        row = np.array([*cell.u, *cell.v, *cell.middle])
        if rows and not (row[::2] > 0.0).all():
            rows[-1] = rows[-1] + row
        else:
            rows.append(row)
    ends = np.array(rows)
    return ends, float(((ends[:, 1::2] - ends[:, ::2]) / positive(ends[:, ::2])).max())
